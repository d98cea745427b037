package publishing

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/agree"
)

// TestRoom: DNS answers, and Consul is told of each change, again where it was away. It is a stand-in here: it takes everything, when it is there.
func TestRoom(t *testing.T) {
	var mu sync.Mutex
	away := true
	var told uint64 // the newest epoch
	consul := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if away {
			http.Error(w, "No cluster leader", http.StatusInternalServerError)
			return
		}
		if r.Method == http.MethodGet {
			http.NotFound(w, r)
			return
		}
		var list []struct{ KV struct{ Flags uint64 } }
		if err := json.NewDecoder(r.Body).Decode(&list); err != nil || len(list) == 0 || r.URL.Path != "/v1/txn" {
			t.Errorf("%s: %v", r.URL, err)
			return
		}
		told = list[0].KV.Flags
		_, _ = fmt.Fprint(w, "{}")
	}))
	defer consul.Close()
	b := publish.NewBoard()
	o := Options{Config: config.Publish{MaxAge: time.Hour, DNS: &config.DNS{Listen: "127.0.0.1:0", Zone: "db.example.com"}, Consul: &publish.Consul{URL: consul.URL},
		Hooks: []publish.Hook{{Name: "a", At: []publish.Moment{publish.Failed}, Command: []string{"/bin/true"}}}}, Views: b, Lead: agree.Alone{}, Logger: slog.New(slog.DiscardHandler)}
	room, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if room.Desk() == nil || room.Hooks() == nil {
		t.Error("no answers over HTTP, or no hooks")
	}
	taken := o
	taken.Config.DNS = &config.DNS{Listen: room.DNS(), Zone: "db.example.com"}
	if _, err := New(t.Context(), taken); fault.Code(err) != fault.InUse {
		t.Errorf("a port that is in use: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- room.Run(ctx) }()
	tell := func(epoch uint64, address string) {
		now := time.Now()
		b.Tell(group.View{Group: "shop", Epoch: epoch, Seen: now, Since: now, Primary: &group.Server{Name: "db1", Address: address}}, nil)
	}
	tell(1, "10.0.0.1:3306")
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, room.DNS())
	}}
	resolves := func(want string) {
		t.Helper()
		if got, err := r.LookupHost(t.Context(), "primary.shop.db.example.com."); err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("%q, %v; want %s", got, err, want)
		}
	}
	resolves("10.0.0.1")
	tell(2, "10.0.0.2:3306")
	resolves("10.0.0.2")
	toldTo := func(epoch uint64) {
		t.Helper()
		await.Until(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return told == epoch
		}, "Consul was not told of epoch %d", epoch)
	}
	mu.Lock()
	away = false
	mu.Unlock()
	toldTo(2)
	tell(3, "10.0.0.3:3306")
	toldTo(3)
	b.Forget("shop")
	tell(4, "10.0.0.3:3306") // there again
	toldTo(4)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	o.Config = config.Publish{NoHTTP: true}
	if room, err = New(t.Context(), o); err != nil || room.Desk() != nil || room.Hooks() != nil || room.DNS() != "" {
		t.Errorf("nothing: %+v, %v", room, err)
	}
	room.Close()
	o.Config.DNS = &config.DNS{Listen: "192.0.2.1:53", Zone: "x"}
	if _, err := New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "answer DNS at 192.0.2.1:53") {
		t.Errorf("an address that is not here: %v", err)
	}
}

// turns is a controller that leads when a test says so.
type turns struct {
	agree.Alone
	leads chan context.Context
}

// WhileLeader calls f for each context that comes.
func (l turns) WhileLeader(ctx context.Context, f func(ctx context.Context)) {
	for {
		select {
		case fctx := <-l.leads:
			f(fctx)
		case <-ctx.Done():
			return
		}
	}
}

// TestConsulByLeader: only the controller that leads tells Consul, what it sees counts whatever its clock says, and it tells all when it begins to lead.
func TestConsulByLeader(t *testing.T) {
	var mu sync.Mutex
	type entry struct {
		ModifyIndex, Flags uint64
		Value              []byte
	}
	var there entry
	consul := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodGet {
			_ = json.NewEncoder(w).Encode([]entry{there})
			return
		}
		var list []struct {
			KV struct {
				Flags, Index uint64
				Value        []byte
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&list); err != nil || len(list) == 0 || list[0].KV.Index != there.ModifyIndex {
			w.WriteHeader(http.StatusConflict)
			return
		}
		there = entry{there.ModifyIndex + 1, list[0].KV.Flags, list[0].KV.Value}
		_, _ = fmt.Fprint(w, "{}")
	}))
	defer consul.Close()
	replicas := func() int {
		mu.Lock()
		defer mu.Unlock()
		var v group.View
		_ = json.Unmarshal(there.Value, &v) // nothing is there yet
		return len(v.Replicas)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	room := func(replicas int, clock time.Duration) turns {
		b, l := publish.NewBoard(), turns{leads: make(chan context.Context)}
		b.Tell(group.View{Group: "shop", Epoch: 3, Seen: time.Now().Add(clock), Primary: &group.Server{Name: "db1", Address: "10.0.0.1:3306"}, Replicas: make([]group.Server, replicas)}, nil)
		r, err := New(ctx, Options{Config: config.Publish{MaxAge: 2 * time.Hour, Consul: &publish.Consul{URL: consul.URL, NoServices: true}}, Views: b, Lead: l, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = r.Run(ctx) }()
		return l
	}
	sees, late := room(2, 0), room(1, -time.Hour)
	for range 2 {
		for _, c := range []struct {
			lead turns
			want int
		}{{sees, 2}, {late, 1}} {
			lead, ends := context.WithCancel(ctx)
			c.lead.leads <- lead
			await.Until(t, func() bool { return replicas() == c.want }, "Consul was not told by who leads")
			time.Sleep(100 * time.Millisecond)
			if got := replicas(); got != c.want {
				t.Errorf("Consul has %d replicas, as who does not lead sees it; want %d", got, c.want)
			}
			ends()
		}
	}
}
