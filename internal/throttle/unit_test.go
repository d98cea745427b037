package throttle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
)

// clocked is a gate whose clock only goes on when somebody waits at it, or does work.
func clocked(t *testing.T, l Limits) (g *Gate, work func(time.Duration), now func() time.Duration) {
	t.Helper()
	g, err := New(t.Context(), l, mysql.Target{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	clock := start
	g.now = func() time.Time { return clock }
	g.sleep = func(ctx context.Context, d time.Duration) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		clock = clock.Add(d)
		return nil
	}
	return g, func(d time.Duration) { clock = clock.Add(d) }, func() time.Duration { return clock.Sub(start) }
}

// What passes is no more than the rate, however it is cut, and no less when the work itself is slower.
func TestRate(t *testing.T) {
	for _, c := range []struct {
		name   string
		pieces []int64
		each   time.Duration // of work, with each piece
		want   time.Duration // when the piece after the last may begin
		held   time.Duration
	}{
		{"one", []int64{1000}, 0, time.Second, time.Second},
		{"many", []int64{100, 200, 300, 400, 500, 500}, 0, 2 * time.Second, 2 * time.Second},
		{"tiny", []int64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, 10 * time.Millisecond, 10 * time.Millisecond},
		{"with work", []int64{1000, 1000}, 400 * time.Millisecond, 2 * time.Second, 1200 * time.Millisecond},
		{"slower than the rate", []int64{1000, 1000, 1000}, 2 * time.Second, 6 * time.Second, 0},
		{"nothing", []int64{0, 0}, 0, 0, 0},
		{"huge", []int64{1 << 60}, 0, 1e9 * time.Second, 1e9 * time.Second},
	} {
		g, work, now := clocked(t, Limits{MaxRate: 1000})
		for _, n := range append(c.pieces, 0) {
			if err := g.Pass(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				work(c.each)
			}
		}
		held, why := g.Held()
		if d := now() - c.want; d > time.Microsecond || d < -time.Microsecond || why != "" {
			t.Errorf("%s: got %s, not %s; %q; want d at most time.Microsecond, d at least -time.Microsecond, why \"\"", c.name, now(), c.want, why)
		}
		if d := held - c.held; d > time.Microsecond || d < -time.Microsecond {
			t.Errorf("%s: held for %s, not %s; want d at most time.Microsecond, d at least -time.Microsecond", c.name, held, c.held)
		}
	}
}

// A pause in the work is no credit: what was not used does not pass at once later.
func TestNoCredit(t *testing.T) {
	g, work, now := clocked(t, Limits{MaxRate: 1000})
	work(time.Hour)
	for range 5 {
		if err := g.Pass(t.Context(), 1000); err != nil {
			t.Fatal(err)
		}
	}
	if got := now() - time.Hour; got != 4*time.Second {
		t.Errorf("five seconds' bytes began within %s, want 4 * time.Second", got)
	}
}

// Without a limit nothing waits, a nil gate included.
func TestOpen(t *testing.T) {
	g, _, now := clocked(t, Limits{})
	var none *Gate
	for range 100 {
		if err := errors.Join(g.Pass(t.Context(), 1<<60), none.Pass(t.Context(), 1<<60)); err != nil {
			t.Fatal(err)
		}
	}
	if held, why := none.Held(); now() != 0 || held != 0 || why != "" {
		t.Errorf("got %s, held %s, %q; want now() 0, held 0, why \"\"", now(), held, why)
	}
}

// A waiter is released when all reasons are gone, when the context ends with its cause, and when the gate is closed.
func TestReasons(t *testing.T) {
	g, _, _ := clocked(t, Limits{})
	g.set("a", "a lags")
	g.set("b", "b lags")
	wait := func(ctx context.Context) chan error {
		c := make(chan error, 1)
		go func() { c <- g.Pass(ctx, 1) }()
		return c
	}
	waits := func(c chan error) {
		t.Helper()
		select {
		case err := <-c:
			t.Fatalf("it passed: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	passes := func(c chan error, want error) {
		t.Helper()
		select {
		case err := <-c:
			if !errors.Is(err, want) {
				t.Errorf("%v, not %v", err, want)
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("it waits for ever")
		}
	}
	c := wait(t.Context())
	g.set("a", "")
	waits(c)
	if _, why := g.Held(); why != "b lags" {
		t.Errorf("got %q, want \"b lags\"", why)
	}
	g.set("b", "")
	passes(c, nil)
	g.set("a", "a lags")
	end := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	c = wait(ctx)
	waits(c)
	cancel(end)
	passes(c, end)
	passes(wait(ctx), end)
	c = wait(t.Context())
	waits(c)
	g.Close()
	passes(c, nil)
}

// What a server says about itself closes the gate where a limit is passed, and not where it is reached.
func TestReason(t *testing.T) {
	both := Limits{MaxLag: 5 * time.Second, MaxThreadsRunning: 8, Own: 3}
	for _, c := range []struct {
		name   string
		limits Limits
		f      figures
		want   string
	}{
		{"nothing is wrong", both, figures{}, ""},
		{"5 s behind, as it may be", both, figures{lags: true, lag: 5 * time.Second}, ""},
		{"more", both, figures{lags: true, lag: 6 * time.Second}, "db1 is 6s behind"},
		{"not a replica", both, figures{lag: time.Hour}, ""},
		{"replication is stopped", both, figures{lags: true, lag: -1}, "db1 does not replicate"},
		{"just caught up", both, figures{lags: true}, ""},
		{"lag does not matter", Limits{MaxThreadsRunning: 8}, figures{lags: true, lag: time.Hour}, ""},
		{"nor that it is stopped", Limits{MaxThreadsRunning: 8}, figures{lags: true, lag: -1}, ""},
		{"8 statements beside Risso's own 3 and the one that asks", both, figures{running: 12}, ""},
		{"9", both, figures{running: 13}, "db1 runs 9 statements at once"},
		{"one statement, where none may run", Limits{MaxThreadsRunning: 1, Own: -1}, figures{running: 2}, "db1 runs 2 statements at once"},
		{"threads do not matter", Limits{MaxLag: time.Second}, figures{running: 100}, ""},
		{"both: the server's own trouble first", both, figures{running: 100, lags: true, lag: time.Hour}, "db1 runs 96 statements at once"},
	} {
		if got := c.limits.reason("db1", c.f); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestWatch: what a server says closes and opens the gate, each time that it is asked; one that cannot be asked closes it, and is dropped.
func TestWatch(t *testing.T) {
	g, err := New(t.Context(), Limits{}, mysql.Target{})
	if err != nil {
		t.Fatal(err)
	}
	g.limits = Limits{MaxLag: 5 * time.Second, Every: time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type answer struct {
		f   figures
		err error
	}
	asked, ended := make(chan answer), make(chan bool, 10)
	answers := []answer{{f: figures{lags: true, lag: 6 * time.Second}}}
	ask := func(ctx context.Context) (figures, error) {
		if len(answers) > 0 {
			a := answers[0]
			answers = answers[1:]
			return a.f, a.err
		}
		select {
		case a := <-asked:
			return a.f, a.err
		case <-ctx.Done():
			return figures{}, ctx.Err()
		}
	}
	if err := g.watch(ctx, "db1", ask, func() { ended <- true }); err != nil {
		t.Fatal(err)
	}
	says := func(want string) {
		t.Helper()
		await.Until(t, func() bool {
			_, why := g.Held()
			return why == want
		}, "the gate to say %q", want)
	}
	says("db1 is 6s behind")
	asked <- answer{f: figures{lags: true, lag: 5 * time.Second}}
	says("")
	asked <- answer{f: figures{lags: true, lag: -1}}
	says("db1 does not replicate")
	if len(ended) != 0 {
		t.Errorf("got an end while it answers: got %v, want 0", len(ended))
	}
	asked <- answer{err: errors.New("gone")}
	says("it cannot be queried: gone")
	if <-ended; len(ended) != 0 {
		t.Errorf("got more than one end of one that cannot be asked: got %v, want 0", len(ended))
	}
	asked <- answer{}
	says("")
	cancel()
	g.done.Wait()
	if len(ended) == 0 {
		t.Error("got no end where the watching ends")
	}
	if _, why := g.Held(); why != "" {
		t.Errorf("got %q for the end of the watching, want nothing", why)
	}
	first := errors.New("refused")
	answers, ended = []answer{{err: first}}, make(chan bool, 10)
	if err := g.watch(t.Context(), "db2", ask, func() { ended <- true }); !errors.Is(err, first) || len(ended) != 1 {
		t.Errorf("at first: got %v, %d ends; want that error, and one", err, len(ended))
	}
	g.Close()
}

// TestNew: a missing server is an error if it has to be asked, and none is asked without a limit.
func TestNew(t *testing.T) {
	nobody, err := mysql.ParseTarget("u:p@tcp(127.0.0.1:1)/")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		limits Limits
		asked  bool
	}{"nothing": {Limits{}, false}, "a rate": {Limits{MaxRate: 1}, false}, "lag": {Limits{MaxLag: 1}, true}, "threads": {Limits{MaxThreadsRunning: 1}, true}} {
		g, err := New(t.Context(), c.limits, nobody)
		if (err != nil) != c.asked || (g == nil) != c.asked {
			t.Errorf("a limit of %s: got %v, %v; want the server asked: %v", name, g, err, c.asked)
		}
		if g != nil {
			g.Close()
		}
	}
}

// TestWake: every change wakes who waits; what changes nothing does not.
func TestWake(t *testing.T) {
	g, _, _ := clocked(t, Limits{})
	woken := func(c chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	for _, step := range []struct {
		who, reason string
		wakes       bool
	}{{"a", "", false}, {"a", "lags", true}, {"a", "lags", false}, {"a", "lags more", true}, {"b", "lags", true}, {"a", "", true}, {"a", "", false}} {
		before := g.changed
		g.set(step.who, step.reason)
		if got := woken(before); got != step.wakes {
			t.Errorf("%s %q: got woken %v, want %v", step.who, step.reason, got, step.wakes)
		}
	}
	if len(g.reasons) != 1 || g.reasons["b"] != "lags" {
		t.Errorf("got %v, want what b says", g.reasons)
	}
}

// fake is a server with given answers.
type fake struct {
	lag         time.Duration
	lags        bool
	running     string
	fail        error
	asked, ends int
}

func (f *fake) Lag(ctx context.Context) (time.Duration, bool, error) {
	if at, ok := ctx.Deadline(); !ok || time.Until(at) > 10*time.Second {
		return 0, false, errors.New("asked without a limit of ten seconds")
	}
	f.asked++
	return f.lag, f.lags, f.fail
}

func (f *fake) Maps(context.Context, string) ([]map[string]string, error) {
	f.asked += 100
	if f.running == "" {
		return nil, f.fail
	}
	return []map[string]string{{"Value": f.running}}, f.fail
}

func (f *fake) Close() error { f.ends++; return nil }

// TestAsk: which servers are asked what, by the limits; a server that goes away is dropped, and asked again.
func TestAsk(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits Limits
		asked  [2]int // of the server and of its replica: the lag by ones, threads by hundreds
		want   string // the gate's reason
	}{
		{"nothing", Limits{MaxRate: 1}, [2]int{0, 0}, ""}, {"lag of both", Limits{MaxLag: 5 * time.Second}, [2]int{1, 1}, "r is 7s behind"}, {"threads of the server", Limits{MaxThreadsRunning: 20}, [2]int{100, 0}, ""}, {"too many threads", Limits{MaxThreadsRunning: 18}, [2]int{100, 0}, "s runs 19 statements at once"},
		{"lag that is borne, and threads of the server", Limits{MaxLag: 7 * time.Second, MaxThreadsRunning: 1, Own: 18}, [2]int{101, 1}, ""}, {"the least limits", Limits{MaxLag: 1, MaxThreadsRunning: 100}, [2]int{101, 1}, "r is 7s behind"},
	} {
		servers := map[string]*fake{"s": {running: "20"}, "r": {lag: 7 * time.Second, lags: true, running: "900"}}
		list := targets("s", "r")
		connect := func(_ context.Context, x mysql.Target) (session, error) { return servers[name(list, x)], nil }
		g, err := newGate(t.Context(), c.limits, connect, list)
		if err != nil {
			t.Fatal(err)
		}
		if _, why := g.Held(); strings.NewReplacer(list[0].Address(), "s", list[1].Address(), "r").Replace(why) != c.want {
			t.Errorf("%s: got %q, want %q", c.name, why, c.want)
		}
		watching := c.asked != [2]int{}
		if want := time.Second; watching && g.limits.Every != want {
			t.Errorf("%s: got asked each %v, want each %v", c.name, g.limits.Every, want)
		}
		g.Close()
		for i, who := range []string{"s", "r"} {
			if servers[who].asked != c.asked[i] || servers[who].ends != map[bool]int{true: 1}[c.asked[i] > 0] {
				t.Errorf("%s: got %s asked %d, ended %d times; want %d, and an end for each that was asked", c.name, who, servers[who].asked, servers[who].ends, c.asked[i])
			}
		}
	}
	// The replica cannot be asked: no server is asked any more.
	gone := errors.New("gone")
	list := targets("s", "r")
	servers := map[string]*fake{"s": {}, "r": {fail: gone}}
	g, err := newGate(t.Context(), Limits{MaxLag: time.Second, Every: time.Millisecond}, func(_ context.Context, x mysql.Target) (session, error) { return servers[name(list, x)], nil }, list)
	if g != nil || !errors.Is(err, gone) || servers["s"].ends == 0 || servers["r"].ends == 0 {
		t.Errorf("got %v, %v, ends %d and %d; want the error, and both ended", g, err, servers["s"].ends, servers["r"].ends)
	}
	asked := servers["s"].asked
	if time.Sleep(20 * time.Millisecond); servers["s"].asked != asked {
		t.Error("got the server asked behind the end")
	}
	a := &asker{limits: Limits{MaxLag: 1, MaxThreadsRunning: 1}, main: true}
	connects := 0
	f := &fake{running: "7", lag: 3, lags: true}
	a.connect = func(context.Context) (session, error) { connects++; return f, nil }
	for range 3 {
		if got, err := a.ask(t.Context()); err != nil || got != (figures{lag: 3, lags: true, running: 7}) {
			t.Errorf("got %+v, %v; want figures{lag: 3, lags: true, running: 7}", got, err)
		}
	}
	if connects != 1 {
		t.Errorf("got %d connections for three questions, want one", connects)
	}
	a.close()
	a.close()
	if _, err := a.ask(t.Context()); err != nil || connects != 2 || f.ends != 1 {
		t.Errorf("behind the end: got %v, %d connections, %d ends; want a second one", err, connects, f.ends)
	}
	f.running = ""
	if got, err := a.ask(t.Context()); err != nil || got.running != 0 {
		t.Errorf("a server that does not say: got %+v, %v; want none running", got, err)
	}
	a.limits.MaxLag, f.fail = 0, gone
	if _, err := a.ask(t.Context()); !errors.Is(err, gone) {
		t.Errorf("threads that cannot be asked for: got %v, want gone", err)
	}
	a.connect = func(context.Context) (session, error) { return nil, gone }
	if a.close(); a.conn != nil {
		t.Errorf("got a connection behind the end: got %v, want nil", a.conn)
	}
	if _, err := a.ask(t.Context()); !errors.Is(err, gone) || a.conn != nil {
		t.Errorf("no connection: got %v; want gone, a.conn nil", err)
	}
}

func targets(ports ...string) (list []mysql.Target) {
	for i := range ports {
		t, err := mysql.ParseTarget(fmt.Sprintf("u:p@tcp(127.0.0.1:%d)/", i+1))
		if err != nil {
			panic(err)
		}
		list = append(list, t)
	}
	return list
}

func name(list []mysql.Target, t mysql.Target) string {
	if t.Address() == list[0].Address() {
		return "s"
	}
	return "r"
}

// TestClosed: after Close nothing waits, and Held says how long those that waited did.
func TestClosed(t *testing.T) {
	g, work, _ := clocked(t, Limits{MaxRate: 1})
	g.set("a", "lags")
	passed := make(chan error)
	go func() { passed <- g.Pass(t.Context(), 0) }()
	time.Sleep(20 * time.Millisecond)
	g.mu.Lock()
	work(3 * time.Second)
	g.mu.Unlock()
	g.Close()
	if err := <-passed; err != nil {
		t.Fatal(err)
	}
	if held, why := g.Held(); held != 3*time.Second || why != "" {
		t.Errorf("got held for %v, %q; want 3s", held, why)
	}
	// Work that does not wait is not held, however long it takes.
	g, work, _ = clocked(t, Limits{})
	now := g.now
	g.now = func() time.Time { work(time.Second); return now() }
	if err := g.Pass(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if held, _ := g.Held(); held != 0 {
		t.Errorf("got held for %v, want not at all", held)
	}
	// A byte a second is the slowest rate.
	g, _, at := clocked(t, Limits{MaxRate: 1})
	for range 3 {
		if err := g.Pass(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	if got := at(); got != 2*time.Second {
		t.Errorf("three bytes at one a second: got the third after %v, want 2s", got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := g.Pass(ended, 0); err == nil {
		t.Error("behind the end of the context: got no error")
	}
}
