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
		Hooks: []publish.Hook{{Name: "a", At: []publish.Moment{publish.Failed}, Command: []string{"/bin/true"}}}}, Views: b, Logger: slog.New(slog.DiscardHandler)}
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
