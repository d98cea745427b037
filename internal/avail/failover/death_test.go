package failover_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
)

// TestBelief holds when a primary is taken for dead: never on one observer's word, never while a replica hears it, never for a login or for full connections.
func TestBelief(t *testing.T) {
	const ms = time.Millisecond
	start := time.Now()
	both := func(connected bool, heard time.Duration) func(at time.Time) []failover.Witness {
		return func(at time.Time) (list []failover.Witness) {
			for _, name := range []string{"b", "c"} {
				list = append(list, failover.Witness{Name: name, At: at, Answers: true, Follows: true, Connected: connected, Heard: start.Add(heard), Since: start.Add(-time.Hour), Beat: 500 * ms})
			}
			return list
		}
	}
	with := func(f func(time.Time) []failover.Witness, change func(*failover.Witness)) func(time.Time) []failover.Witness {
		return func(at time.Time) []failover.Witness {
			list := f(at)
			change(&list[0])
			slices.Reverse(list) // the next one changes another
			return list
		}
	}
	deaf := func(w *failover.Witness) { w.Follows, w.Deaf = false, "its receiver is stopped" }
	denied := func(w *failover.Witness) { w.Deaf = "error 1045" }
	started := func(w *failover.Witness) { w.Follows, w.Deaf = false, "started" }
	for _, c := range []struct {
		what string
		kind string        // of each probe
		for_ time.Duration // how long
		says func(at time.Time) []failover.Witness
		want failover.State
	}{
		{"killed", "refused", 600 * ms, both(false, 0), failover.Dead},
		{"killed a moment ago", "refused", 300 * ms, both(false, 0), failover.Suspect},
		{"killed, and a replica has not noticed", "refused", 600 * ms, with(both(false, 0), func(w *failover.Witness) { w.Connected = true }), failover.Suspect},
		{"the way to it is cut here", "refused", 5 * time.Second, both(true, 4900*ms), failover.Unreachable},
		{"a stall of 2 s", "timeout", 2 * time.Second, both(true, 0), failover.Suspect},
		{"a stall of 3 s", "timeout", 3 * time.Second, both(true, 0), failover.Suspect},
		{"frozen", "hung", 4500 * ms, both(true, 0), failover.Dead},
		{"slow here, heard there", "timeout", 9 * time.Second, both(true, 8*time.Second), failover.Unreachable},
		{"the network swallows, and they lost it", "timeout", 4500 * ms, both(false, 0), failover.Dead},
		{"one of two says so", "refused", 2 * time.Second, with(both(false, 0), func(w *failover.Witness) { w.Answers = false }), failover.Unreachable},
		{"at one of two nothing listens", "refused", 2 * time.Second, with(both(false, 0), func(w *failover.Witness) { w.Answers, w.Down = false, true }), failover.Dead},
		{"at one of two nothing listened a while ago", "refused", 2 * time.Second, with(both(false, 0), func(w *failover.Witness) { w.Answers, w.Down, w.At = false, true, w.At.Add(-9*time.Second) }), failover.Unreachable},
		{"nothing listens anywhere", "refused", 2 * time.Second, func(at time.Time) []failover.Witness {
			return []failover.Witness{{Name: "b", At: at, Down: true}, {Name: "c", At: at, Down: true}}
		}, failover.Unreachable},
		{"one was stopped by somebody", "refused", 2 * time.Second, with(both(false, 0), func(w *failover.Witness) { w.Follows = false }), failover.Unreachable},
		{"both were stopped by somebody", "refused", 9 * time.Second, with(with(both(false, 0), deaf), deaf), failover.Unreachable},
		{"both had no account, and cannot connect since", "refused", 9 * time.Second, with(with(both(false, 0), denied), denied), failover.Unreachable},
		{"both were stopped, and somebody started them", "refused", 9 * time.Second, with(with(both(false, 0), started), started), failover.Dead},
		{"one of them was deaf", "refused", 9 * time.Second, with(both(false, 0), deaf), failover.Unreachable},
		{"their words are old", "refused", 2 * time.Second, func(at time.Time) []failover.Witness { return both(false, 0)(at.Add(-3 * time.Second)) }, failover.Unreachable},
		{"nobody can say", "refused", 9 * time.Second, func(time.Time) []failover.Witness { return nil }, failover.Unreachable},
		{"wrong password", "login", 9 * time.Second, both(false, 0), failover.Unasked},
		{"too many connections", "full", 9 * time.Second, both(false, 0), failover.Unasked},
		{"refused and then late", "mixed", 2 * time.Second, both(false, 0), failover.Suspect},
	} {
		w := failover.NewWatch(failover.DefaultPatience(), []string{"b", "c"})
		w.Probed(failover.Probe{At: start.Add(-250 * ms), OK: true})
		var at time.Time
		for d := time.Duration(0); d <= c.for_; d += 250 * ms {
			at = start.Add(d)
			kind := c.kind
			if kind == "mixed" {
				if kind = "refused"; d > time.Second {
					kind = "timeout"
				}
			}
			w.Probed(failover.Probe{At: at, Kind: kind, Text: kind})
		}
		for _, x := range c.says(at) {
			w.Heard(x)
			if x.Deaf == "error 1045" || x.Deaf == "started" { // its error is another one since it tried again
				x.Follows, x.Deaf = true, ""
				w.Heard(x)
			}
		}
		if got := w.Belief(start.Add(c.for_)); got.State != c.want || strings.Contains(c.what, "deaf") && !strings.Contains(got.Words, "only 1 of 2 replicas can say that they lost it, too; the others did not receive from it before") {
			t.Errorf("%s: %s (%s), want %s", c.what, got.State, got.Words, c.want)
		}
		w.Probed(failover.Probe{At: at, OK: true})
		if got := w.Belief(at); got.State != failover.Alive {
			t.Errorf("%s, and it answers again: %s", c.what, got.State)
		}
	}
}

// TestFull: a primary that answers while commits wait for room on its disk is replaced, unless they go on soon.
func TestFull(t *testing.T) {
	start := time.Now()
	w := failover.NewWatch(failover.DefaultPatience(), []string{"b", "c"})
	for _, c := range []struct {
		after time.Duration
		full  int
		want  failover.State
	}{{0, 0, failover.Alive}, {250 * time.Millisecond, 3, failover.Alive}, {750 * time.Millisecond, 0, failover.Alive}, {time.Second, 4, failover.Alive},
		{1900 * time.Millisecond, 4, failover.Alive}, {2 * time.Second, 1, failover.Dead}, {3 * time.Second, 0, failover.Alive}} {
		at := start.Add(c.after)
		still := at.Add(-4 * time.Second)
		w.Probed(failover.Probe{At: at, OK: true, Full: c.full, Still: still})
		if b := w.Belief(at); b.State != c.want || b.State == failover.Dead && (!b.Since.Equal(start.Add(-3*time.Second)) || b.Kind != failover.KindFull || !strings.Contains(b.Words, "1 commit waits")) {
			t.Errorf("after %s: got %+v, want %s", c.after, b, c.want)
		}
	}
}

// TestDeafStays: a replica that could not know, and did not answer a look, cannot know either when it answers again and only tries to connect.
func TestDeafStays(t *testing.T) {
	for _, late := range []bool{false, true} {
		at := time.Now()
		w := failover.NewWatch(failover.DefaultPatience(), []string{"b"})
		x := failover.Witness{Name: "b", At: at, Answers: true, Follows: true, Deaf: "error 1045"}
		w.Heard(x)
		for range 3 {
			at = at.Add(2 * time.Second)
			w.Probed(failover.Probe{At: at, Kind: "timeout"})
		}
		if late {
			w.Heard(failover.Witness{Name: "b", At: at})
		}
		x.At, x.Deaf = at, ""
		w.Heard(x)
		if b := w.Belief(at); b.State != failover.Unreachable || !b.Alone {
			t.Errorf("with a look that it did not answer, %t: %+v", late, b)
		}
	}
}
