package throttle

import (
	"context"
	"errors"
	"testing"
	"time"

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
			t.Errorf("%s: %s, not %s; %q", c.name, now(), c.want, why)
		}
		if d := held - c.held; d > time.Microsecond || d < -time.Microsecond {
			t.Errorf("%s: held for %s, not %s", c.name, held, c.held)
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
		t.Errorf("five seconds' bytes began within %s", got)
	}
}

// Without a limit nobody waits, a nil gate included.
func TestOpen(t *testing.T) {
	g, _, now := clocked(t, Limits{})
	var none *Gate
	for range 100 {
		if err := errors.Join(g.Pass(t.Context(), 1<<60), none.Pass(t.Context(), 1<<60)); err != nil {
			t.Fatal(err)
		}
	}
	if held, why := none.Held(); now() != 0 || held != 0 || why != "" {
		t.Errorf("%s, held %s, %q", now(), held, why)
	}
}

// Who waits is let go when all reasons are gone, when the context ends with its cause, and when the gate is closed.
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
		t.Errorf("%q", why)
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

// What a server says of itself closes the gate where a limit is passed, and not where it is reached.
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

// TestWatch: what a server says closes and opens the gate, each time that it is asked; one that cannot be asked closes it, and is left.
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
		for range 2000 {
			if _, why := g.Held(); why == want {
				return
			}
			time.Sleep(time.Millisecond)
		}
		_, why := g.Held()
		t.Errorf("got %q, want %q", why, want)
	}
	says("db1 is 6s behind")
	asked <- answer{f: figures{lags: true, lag: 5 * time.Second}}
	says("")
	asked <- answer{f: figures{lags: true, lag: -1}}
	says("db1 does not replicate")
	if len(ended) != 0 {
		t.Error("got an end while it answers")
	}
	asked <- answer{err: errors.New("gone")}
	says("it cannot be asked: gone")
	if <-ended; len(ended) != 0 {
		t.Error("got more than one end of one that cannot be asked")
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

// TestNew: a server that is not there is an error where something is to be asked of it, and nobody is asked without a limit.
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
