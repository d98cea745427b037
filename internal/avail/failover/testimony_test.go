package failover_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
)

// TestWeigh holds what controllers and agents make of a primary that neither this controller nor its replicas hear, and of one of which its replicas cannot say.
func TestWeigh(t *testing.T) {
	const ms = time.Millisecond
	start := time.Now()
	controller := func(name string, lives bool) failover.Testimony {
		return failover.Testimony{Who: "controller " + name, Lives: lives}
	}
	agent := func(change func(*failover.Testimony)) failover.Testimony {
		a := failover.Testimony{Who: "the agent of a", Beside: true, Lives: true}
		change(&a)
		return a
	}
	idle := agent(func(a *failover.Testimony) { a.Wrote = start.Add(-time.Hour) })
	writes := agent(func(a *failover.Testimony) { a.Wrote = start.Add(4900 * ms) })
	last := agent(func(a *failover.Testimony) { a.Wrote = start.Add(600 * ms) })
	gone := agent(func(a *failover.Testimony) { a.Lives, a.Gone, a.Words = false, true, "its process is gone" })
	blind := agent(func(a *failover.Testimony) { a.Lives = false })
	for _, c := range []struct {
		what  string
		kind  string
		for_  time.Duration
		deaf  bool // replicas cannot say
		told  []failover.Testimony
		old   time.Duration // before the end they were told; before the start, if it is longer
		want  failover.State
		words string
	}{
		{"nobody else is asked", "refused", 600 * ms, false, nil, 0, failover.Dead, "b, c lost it"},
		{"the other controller does not reach it either", "refused", 600 * ms, false, []failover.Testimony{controller("y", false)}, 0, failover.Dead, ""},
		{"the other controller reaches it", "refused", 600 * ms, false, []failover.Testimony{controller("y", true)}, 0, failover.Suspect, "it answers controller y"},
		{"the other controller goes on to reach it", "timeout", 5 * time.Second, false, []failover.Testimony{controller("y", true)}, 0, failover.Unreachable, "nor do replicas hear it, but it answers controller y"},
		{"one of two others reaches it", "timeout", 5 * time.Second, false, []failover.Testimony{controller("y", true), controller("z", false)}, 0, failover.Dead, ""},
		{"both others reach it", "timeout", 5 * time.Second, false, []failover.Testimony{controller("y", true), controller("z", true)}, 0, failover.Unreachable, "it answers controller y, controller z"},
		{"the other reached it before", "refused", 600 * ms, false, []failover.Testimony{controller("y", true)}, 700 * ms, failover.Dead, ""},
		{"the other reached it a while ago", "timeout", 5 * time.Second, false, []failover.Testimony{controller("y", true)}, 2 * time.Second, failover.Dead, ""},
		{"its agent sees it take transactions", "timeout", 5 * time.Second, false, []failover.Testimony{writes}, 0, failover.Unreachable, "the agent of a sees it take transactions"},
		{"its agent sees it answer, and nothing is written", "timeout", 5 * time.Second, false, []failover.Testimony{idle}, 0, failover.Dead, ""},
		{"its agent saw what was under way", "timeout", 5 * time.Second, false, []failover.Testimony{last}, 0, failover.Dead, ""},
		{"it is refused here, and answers its agent", "refused", 600 * ms, false, []failover.Testimony{idle}, 0, failover.Suspect, "it answers the agent of a"},
		{"it is refused here for long, and answers its agent", "refused", 5 * time.Second, false, []failover.Testimony{idle}, 0, failover.Dead, ""},
		{"its agent sees that it is gone", "refused", 600 * ms, false, []failover.Testimony{gone}, 0, failover.Dead, "the agent of a: its process is gone"},
		{"replicas cannot say, nor can anybody", "refused", 600 * ms, true, nil, 0, failover.Unreachable, "only 0 of 2"},
		{"replicas cannot say, and its agent can", "refused", 600 * ms, true, []failover.Testimony{gone}, 0, failover.Dead, "the agent of a: its process is gone"},
		{"replicas cannot say, and its agent could before", "refused", 600 * ms, true, []failover.Testimony{gone}, 700 * ms, failover.Unreachable, "only 0 of 2"},
		{"replicas cannot say, nor can its agent", "refused", 600 * ms, true, []failover.Testimony{blind}, 0, failover.Unreachable, "only 0 of 2"},
		{"replicas cannot say, and a controller does not reach it", "refused", 600 * ms, true, []failover.Testimony{controller("y", false)}, 0, failover.Unreachable, "only 0 of 2"},
		{"replicas cannot say, its agent and a controller differ", "refused", 600 * ms, true, []failover.Testimony{gone, controller("y", true)}, 0, failover.Unreachable, "only 0 of 2"},
	} {
		w := failover.NewWatch(failover.DefaultPatience(), []string{"b", "c"})
		w.Told(controller("y", true)) // of a time when it answered
		w.Probed(failover.Probe{At: start.Add(-250 * ms), OK: true})
		at := start
		for d := time.Duration(0); d <= c.for_; d += 200 * ms {
			at = start.Add(d)
			w.Probed(failover.Probe{At: at, Kind: c.kind, Text: c.kind})
		}
		for _, name := range []string{"b", "c"} {
			w.Heard(failover.Witness{Name: name, At: at, Answers: true, Follows: !c.deaf, Since: start.Add(-time.Hour), Beat: 500 * ms})
		}
		end := start.Add(c.for_)
		for _, x := range c.told {
			x.At = end.Add(-c.old)
			w.Told(x)
		}
		b := w.Belief(end)
		if b.State != c.want || !strings.Contains(b.Words, c.words) || b.Elsewhere != (strings.Contains(b.Words, "nor do replicas")) {
			t.Errorf("%s: %+v, want %s with %q", c.what, b, c.want, c.words)
		}
		w.Probed(failover.Probe{At: end, OK: true})
		w.Probed(failover.Probe{At: end.Add(ms), Kind: "refused"})
		w.Probed(failover.Probe{At: end.Add(600 * ms), Kind: "refused"})
		for _, name := range []string{"b", "c"} {
			w.Heard(failover.Witness{Name: name, At: end.Add(600 * ms), Answers: true, Follows: true})
		}
		if b := w.Belief(end.Add(600 * ms)); b.State != failover.Dead || strings.Contains(b.Words, "agent") {
			t.Errorf("%s, it answered, and died: what was said before counts: %+v", c.what, b)
		}
	}
}
