package publish

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
)

// shop is a view of a group of three.
func shop(epoch uint64, primary string, now time.Time) group.View {
	lag := func(d time.Duration) *time.Duration { return &d }
	v := group.View{Group: "shop", Epoch: epoch, Since: now.Add(-time.Hour), Seen: now,
		Replicas: []group.Server{{Name: "db2", Address: "10.0.0.2:3306", Weight: 1, Lag: lag(2 * time.Second)}, {Name: "db3", Address: "10.0.0.3:3306", Weight: 3}, {Name: "db4", Address: "10.0.0.4:3306"}}}
	if primary == "" {
		v.NoPrimary = "a failover is under way"
		return v
	}
	v.Primary = &group.Server{Name: primary, Address: "10.0.0." + primary[2:] + ":3306"}
	return v
}

// asked is the answer of a desk whose clock stands.
func asked(d *Desk, method, target string, header ...string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	d.ServeHTTP(w, r)
	return w
}

// TestDesk: what is answered, by the view and its age.
func TestDesk(t *testing.T) {
	now := time.Now()
	b := NewBoard()
	d := NewDesk(b, 0)
	d.now = func() time.Time { return now }
	starting := StartingBoard()
	starts := NewDesk(starting, 0)
	for _, target := range []string{"/primary", "/primary?group=shop", "/api/view?group=shop", "/group/shop", "/primary/db1?group=shop"} {
		if w := asked(starts, "GET", target); w.Code != 503 || !strings.Contains(w.Body.String(), "starts") || w.Header().Get("Retry-After") != "1" {
			t.Errorf("%s of one that starts: %d %s", target, w.Code, w.Body)
		}
	}
	starting.Names([]string{"shop"})
	for target, want := range map[string]int{"/primary": 503, "/primary?group=shop": 503, "/api/view?group=shop": 503, "/primary?group=nosuch": 404} {
		if w := asked(starts, "GET", target); w.Code != want || want == 503 && (!strings.Contains(w.Body.String(), "not known yet") || w.Header().Get("Retry-After") != "1") {
			t.Errorf("%s of one that knows only which groups there are: %d %s", target, w.Code, w.Body)
		}
	}
	if w := asked(d, "GET", "/primary"); w.Code != 503 || !strings.Contains(w.Body.String(), "there is no group") {
		t.Errorf("without groups: %d %s", w.Code, w.Body)
	}
	b.Tell(shop(7, "db1", now.Add(-1200*time.Millisecond)), nil)
	none := shop(3, "", now)
	none.Group, none.Replicas = "none", nil
	b.Tell(none, nil)
	old := shop(9, "db1", now.Add(-6*time.Second))
	old.Group = "old"
	b.Tell(old, nil)
	ahead := shop(9, "db1", now.Add(time.Minute))
	ahead.Group = "ahead"
	b.Tell(ahead, nil)
	never := group.View{Group: "never"}
	b.Tell(never, nil)
	for _, c := range []struct {
		method, target string
		code           int
		says           string
	}{
		{"GET", "/primary?group=shop", 200, `"server":"db1","address":"10.0.0.1:3306","since":`},
		{"GET", "/primary?group=shop", 200, `"epoch":7`},
		{"OPTIONS", "/primary?group=shop", 200, `"epoch":7`},
		{"POST", "/primary?group=shop", 405, "GET, HEAD or OPTIONS"},
		{"GET", "/primary?group=shop&format=text", 200, "10.0.0.1:3306\n"},
		{"GET", "/primary", 400, "several groups"},
		{"GET", "/primary?group=shop&group=none", 400, "?group is given 2 times"},
		{"GET", "/primary?group=%zz", 400, "cannot be read"},
		{"GET", "/primary?group=nosuch", 404, "no group of that name"},
		{"GET", "/primary?group=none", 503, `no server of none takes writes now: a failover is under way","group":"none","epoch":3`},
		{"GET", "/primary?group=old", 503, `last known 6 s ago`},
		{"GET", "/primary?group=ahead", 503, `last known`},
		{"GET", "/primary?group=never", 503, `not known yet`},
		{"GET", "/replicas?group=shop", 200, `[{"server":"db2","address":"10.0.0.2:3306","weight":1,"lag_ns":2000000000},{"server":"db3","address":"10.0.0.3:3306","weight":3}]`},
		{"GET", "/replicas?group=shop&format=text", 200, "10.0.0.2:3306\n10.0.0.3:3306\n"},
		{"GET", "/replicas?group=shop&max_lag=2s", 200, `[{"server":"db2","address":"10.0.0.2:3306","weight":1,"lag_ns":2000000000}]`}, // db3's lag is not known
		{"GET", "/replicas?group=shop&max_lag=1", 503, "at most 1s behind"},
		{"GET", "/replicas?group=shop&max_lag=soon", 400, "write it as 5s"},
		{"GET", "/replicas?group=shop&maxlag=5s", 400, "max_lag"},
		{"GET", "/api/view?group=shop&seen=7", 200, ""},
		{"GET", "/replicas?group=none", 503, "no replica of none"},
		{"GET", "/replicas?group=old", 503, "too long"},
		{"GET", "/primary/db1?group=shop", 200, "db1 is the primary of shop, epoch 7."},
		{"HEAD", "/primary/db1?group=shop", 200, ""},
		{"GET", "/primary/10.0.0.1:3306?group=shop", 200, "db1 is"},
		{"GET", "/primary/db2?group=shop", 409, "not the primary"},
		{"GET", "/primary/db1?group=old", 503, "too long"},
		{"GET", "/primary/?group=shop", 409, "not the primary"},
		{"GET", "/replica/db2?group=shop", 200, "answers reads"},
		{"GET", "/replica/db2?group=shop&max-lag=1", 409, "at most 1s"},
		{"GET", "/replica/db4?group=shop", 409, "no replica"}, // its weight is 0
		{"GET", "/replica/db1?group=shop", 409, "no replica"},
		{"GET", "/group/shop", 200, "is known"},
		{"GET", "/group/old", 503, "too long"},
		{"GET", "/group/nosuch", 404, "no group"},
		{"GET", "/api/view?group=shop", 200, `"group":"shop","epoch":7,"primary":{"server":"db1"`},
		{"GET", "/api/view?group=old", 503, "too long"},
		{"GET", "/api/view?group=nosuch", 404, "no group"},
	} {
		w := asked(d, c.method, c.target)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s: got %d %q, want %d with %q", c.method, c.target, w.Code, w.Body, c.code, c.says)
		}
		if strings.Contains(w.Body.String(), "10.0.0.") && IsCheck(strings.SplitN(c.target, "?", 2)[0]) {
			t.Errorf("%s tells an address: %s", c.target, w.Body)
		}
	}
	if w := asked(d, "GET", "/primary?group=shop"); w.Header().Get("Age") != "1" || w.Header().Get("Risso-Age") != "1200ms" {
		t.Errorf("headers %v", w.Header())
	}
}

// TestWait: who has the newest view is answered when there is another one, or when the time is over.
func TestWait(t *testing.T) {
	b := NewBoard()
	d := NewDesk(b, time.Hour)
	b.Tell(shop(1, "db1", time.Now()), nil)
	first := asked(d, "GET", "/api/view?wait=30s")
	tag := first.Header().Get("ETag")
	if first.Code != 200 || tag == "" {
		t.Fatalf("%d, tag %q", first.Code, tag)
	}
	b.Tell(shop(1, "db1", time.Now()), nil) // Since differs: another view
	again := asked(d, "GET", "/api/view?wait=30s", "If-None-Match", tag)
	tag = again.Header().Get("ETag")
	if w := asked(d, "GET", "/api/view?wait=20ms", "If-None-Match", `"x", W/`+tag); w.Code != 304 || w.Body.Len() > 0 || w.Header().Get("ETag") != tag || w.Header().Get("Risso-Age") == "" {
		t.Errorf("nothing new: %d %q %v", w.Code, w.Body, w.Header())
	}
	done := make(chan *httptest.ResponseRecorder)
	go func() { done <- asked(d, "GET", "/api/view?wait=30s", "If-None-Match", tag) }()
	b.Tell(shop(2, "db2", time.Now()), nil)
	var v group.View
	if w := <-done; w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &v) != nil || v.Epoch != 2 {
		t.Errorf("a change: %d %+v", w.Code, v)
	}
	go func() { done <- asked(d, "GET", "/api/view?wait=30s", "If-None-Match", `"`+tagOf(coarse(v))+`"`) }()
	b.Forget("shop")
	if w := <-done; w.Code == 200 || w.Code == 304 {
		t.Errorf("a group that went: %d", w.Code)
	}
	d = NewDesk(b, time.Millisecond)
	b.Tell(shop(3, "db2", time.Now()), nil)
	v, _ = b.View("shop")
	if w := asked(d, "GET", "/api/view?wait=30s", "If-None-Match", `"`+tagOf(coarse(v))+`"`); w.Code != 503 {
		t.Errorf("a view that got too old: %d", w.Code)
	}
	d = NewDesk(b, time.Hour)
	d.waiting.Store(mostWaiting)
	if w := asked(d, "GET", "/api/view?wait=30s", "If-None-Match", `"`+tagOf(coarse(v))+`"`); w.Code != http.StatusNotModified {
		t.Errorf("one too many who waits: %d", w.Code)
	}
}

// TestOlderEpoch: an older view, whoever brings it, changes nothing.
func TestOlderEpoch(t *testing.T) {
	now := time.Now()
	b := NewBoard()
	for _, c := range []struct {
		v    group.View
		want bool
	}{{shop(5, "db1", now), true}, {shop(4, "db2", now.Add(time.Minute)), false}, {shop(5, "", now.Add(time.Second)), true}, {shop(5, "db1", now), false}, {shop(6, "db2", now), true}} {
		if got := b.Tell(c.v, nil); got != c.want {
			t.Errorf("%+v was taken: %t", c.v, got)
		}
	}
	if v, _ := b.View("shop"); v.Epoch != 6 || v.Primary.Name != "db2" {
		t.Errorf("%+v", v)
	}
	if tagOf(coarse(shop(1, "db1", now))) == tagOf(coarse(shop(2, "db1", now))) {
		t.Error("two epochs have one tag")
	}
}

// TestSettle: a balancer is told of the next primary only when all balancers have been told of the end of the one before for long enough.
func TestSettle(t *testing.T) {
	now := time.Now()
	b := NewBoard()
	d := NewDesk(b, time.Hour)
	d.now = func() time.Time { return now }
	b.now = d.now
	is := func(target string, want int) {
		t.Helper()
		if w := asked(d, "GET", target); w.Code != want {
			t.Errorf("%s: got %d %s, want %d", target, w.Code, w.Body, want)
		}
	}
	b.Tell(shop(1, "db1", now), nil)
	now = now.Add(time.Second)
	is("/primary/db1?settle=1s", 200)
	b.Tell(shop(2, "db2", now.Add(time.Millisecond)), nil)
	is("/primary/db1?settle=1s", 409)
	is("/primary/db2?settle=1s", 409)
	is("/primary/db2", 200) // who does not ask for it
	now = now.Add(999 * time.Millisecond)
	is("/primary/db2?settle=1s", 409)
	now = now.Add(2 * time.Millisecond)
	is("/primary/db2?settle=1s", 200)
	is("/primary/db2?settle=soon", 400)

	// A process that just began does not know whom the one before told, and one of several not whom another one told, unless it has told the primary for longer.
	// The clock of who made the view does not matter.
	d.told = map[string]map[string]time.Time{}
	is("/primary/db2?settle=1s", 200)
	for epoch, ahead := range []time.Duration{-time.Hour, 0, 10 * time.Minute} {
		v := shop(uint64(3+epoch), "db3", now)
		v.Since = now.Add(ahead)
		b.Tell(v, nil)
		d.told = map[string]map[string]time.Time{}
		is("/primary/db2?settle=1s", 409)
		is("/primary/db3?settle=1s", 503)
		is("/primary/db3", 200)
		now = now.Add(time.Second)
		b.Tell(shop(uint64(3+epoch), "", now), nil)
		v.Seen = now
		b.Tell(v, nil)
		is("/primary/db3?settle=1s", 200)
	}
}
