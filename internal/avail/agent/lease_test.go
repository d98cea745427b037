package agent

import (
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/fence"
	"github.com/rissodb/risso/internal/avail/group"
)

// lease is one whose events are told in seconds.
type lease struct {
	*Lease
	t         *testing.T
	restarted bool
}

func s(seconds float64) Moment { return Moment(seconds * float64(time.Second)) }

func (l lease) hear(at float64, epoch uint64, primary string) {
	v := group.View{Epoch: epoch}
	if primary != "" {
		v.Primary = &group.Server{Name: primary}
	}
	l.Hear(s(at), 0, v, func(g group.Server) bool { return g.Name == "me" })
}

func (l lease) want(at float64, c Claims, act Act) Decision {
	l.t.Helper()
	d := l.Decide(s(at), c, l.restarted)
	if d.Act != act {
		l.t.Errorf("at %g s: got %+v, want %s", at, d, act)
	}
	return d
}

// close does what is decided.
func (l lease) close(at float64, c Claims) {
	l.t.Helper()
	d := l.want(at, c, Close)
	l.Fenced(fence.State{Epoch: d.Epoch, Unheard: d.Unheard, ReadOnly: "OFF"})
}

func begin(t *testing.T, policy string) lease {
	return lease{NewLease(policy, 3*time.Second), t, false}
}

// TestLost: the lease holds for the TTL from when the request was sent that was answered last, and the same controller's word in the same epoch opens the server again.
func TestLost(t *testing.T) {
	l := begin(t, FenceLost)
	l.hear(1, 4, "me")
	l.want(3.9, ClaimsYes, Stay)
	l.hear(2, 4, "me")
	l.want(4.9, ClaimsYes, Stay)
	l.want(5, ClaimsUnknown, Close)
	l.close(5, ClaimsYes)
	l.want(6, ClaimsNo, Stay)
	l.want(7, ClaimsYes, Stay) // somebody opened it: a controller, perhaps
	l.want(10, ClaimsYes, Close)
	l.hear(11, 4, "") // during a failover nobody is the primary
	l.want(11, ClaimsNo, Stay)
	l.hear(12, 4, "me")
	l.want(12.1, ClaimsNo, Open)
	l.Opened()
	l.want(12.2, ClaimsYes, Stay)
	l.want(15, ClaimsNo, Stay) // it is read-only already: nothing is to be done
}

// TestAge: an answer that is old when it is given confirms as much shorter, and none shortens what a younger one confirmed.
func TestAge(t *testing.T) {
	l := begin(t, FenceLost)
	mine := func(group.Server) bool { return true }
	l.Hear(s(10), 2*time.Second, group.View{Epoch: 1, Primary: &group.Server{Name: "me"}}, mine)
	l.want(10.9, ClaimsYes, Stay)
	l.want(11, ClaimsYes, Close)
	l.Hear(s(12), 0, group.View{Epoch: 1, Primary: &group.Server{Name: "me"}}, mine)
	l.Hear(s(12.5), 2*time.Second, group.View{Epoch: 1, Primary: &group.Server{Name: "me"}}, mine)
	l.want(14.9, ClaimsYes, Stay)
	for text, want := range map[string]time.Duration{"1200ms": 1200 * time.Millisecond, "": 0, "x": 0} {
		if got := ageOf(text); got != want {
			t.Errorf("%q: got %s", text, got)
		}
	}
}

// TestDeposed: another primary of a higher epoch closes it at once, and only a still higher one opens it; what is older, or was overtaken, says nothing.
func TestDeposed(t *testing.T) {
	l := begin(t, FenceDeposed)
	l.hear(1, 4, "me")
	l.want(60, ClaimsYes, Stay) // by this policy
	l.hear(61, 5, "other")
	l.close(61, ClaimsYes)
	l.hear(62, 4, "me") // a controller that does not know yet
	l.want(62, ClaimsNo, Stay)
	l.hear(63, 5, "me") // nobody may say that
	l.want(63, ClaimsNo, Stay)
	l.hear(60.5, 5, "other")
	l.hear(64, 6, "me")
	l.want(64, ClaimsNo, Open)
}

// TestOvertaken: an answer that was asked for before another does not bring back what that one ended.
func TestOvertaken(t *testing.T) {
	l := begin(t, FenceLost)
	l.hear(1, 4, "me")
	l.hear(2, 4, "")
	l.hear(1.5, 4, "me")
	if l.Valid(s(2)) {
		t.Error("an answer that was overtaken confirmed it")
	}
	l.close(4, ClaimsYes)
}

// TestStart: a server that takes writes when its agent is started has the TTL to be confirmed; one that replicates, whose agent only watches, or whose group no controller has, is left alone.
func TestStart(t *testing.T) {
	l := begin(t, FenceLost)
	l.want(1, ClaimsYes, Stay)
	l.want(3.9, ClaimsYes, Stay)
	l.want(4, ClaimsUnknown, Stay) // it never was the primary, as far as is known
	l.close(4, ClaimsYes)
	l = begin(t, FenceLost)
	l.want(1, ClaimsYes, Stay)
	l.Absent(s(60))
	l.want(62, ClaimsYes, Stay)
	l.want(63, ClaimsYes, Close) // and now none answers
	l = begin(t, FenceNever)
	l.want(1, ClaimsYes, Stay)
	l.want(60, ClaimsYes, Stay)
}

// TestPromoted: a replica that is promoted takes writes before anybody says that it is the primary, and is left alone; so is an old primary that is one again. Two primaries are not for long.
func TestPromoted(t *testing.T) {
	l := begin(t, FenceLost)
	l.hear(1, 4, "other")
	l.want(1, ClaimsNo, Stay)
	l.want(2, ClaimsYes, Stay)
	l.hear(3, 4, "")
	l.want(3, ClaimsYes, Stay)
	l.hear(4, 5, "me")
	l.want(4, ClaimsYes, Stay)
	l.hear(5, 6, "other") // a switchover: it was closed first
	l.want(5, ClaimsNo, Stay)
	l.want(60, ClaimsYes, Stay) // it is to be the primary again
	l.hear(61, 7, "me")
	l.want(61, ClaimsYes, Stay)
	l.hear(62, 8, "other")
	l.want(62, ClaimsYes, Close) // it was the primary a moment ago
	l = begin(t, FenceLost)      // a switchover whose controller ended the sessions of the agent: it could not see that the server was closed, and was told by the fence
	l.hear(1, 4, "me")
	l.hear(2, 5, "other")
	l.want(2, ClaimsUnknown, Close)
	l.Closed()
	l.want(2.1, ClaimsUnknown, Stay)
	l.want(9, ClaimsYes, Stay)
	l = begin(t, FenceDeposed)
	l.hear(1, 4, "other")
	l.want(1, ClaimsYes, Stay)
	l.hear(4, 4, "other")
	l.want(4, ClaimsYes, Close)
}

// TestAfterKill: an agent that finds what one before it noted goes on from there.
func TestAfterKill(t *testing.T) {
	l := begin(t, FenceLost)
	l.Fenced(fence.State{Epoch: 4, Unheard: true, ReadOnly: "OFF"})
	l.want(0.1, ClaimsYes, Stay)
	l.restarted = true
	l.want(0.2, ClaimsYes, Close) // at once
	l.hear(1, 5, "other")
	if state, raised := l.Raise(); !raised || state.Epoch != 5 || state.Unheard || state.ReadOnly != "OFF" {
		t.Errorf("got %+v, %t", state, raised)
	}
	if _, raised := l.Raise(); raised {
		t.Error("raised twice")
	}
	l = begin(t, FenceLost)
	l.Fenced(fence.State{Epoch: 5, ReadOnly: "OFF"})
	l.hear(1, 4, "me")
	l.want(1, ClaimsNo, Stay)
}

// TestOrder: an order closes it whatever the policy is, but not against a newer confirmation.
func TestOrder(t *testing.T) {
	l := begin(t, FenceNever)
	l.hear(1, 4, "me")
	if l.Order(4, s(2)) == nil || l.Order(3, s(60)) == nil {
		t.Error("an order against a confirmation was taken")
	}
	if err := l.Order(5, s(2)); err != nil {
		t.Error(err)
	}
	l.close(2, ClaimsYes)
	l.hear(3, 5, "me")
	l.want(3, ClaimsNo, Stay)
	l.hear(4, 6, "me")
	l.want(4, ClaimsNo, Open)
}

// TestWait: a controller waits longer than any agent that runs takes, however the two clocks and the network behave.
func TestWait(t *testing.T) {
	const ttl = 3 * time.Second
	for _, rate := range []float64{0.995, 1, 1.005} { // of the agent's clock
		// The controller answered when it was asked, or later; it counts from its answer, the agent from its question. How long both were on their way makes the lease only shorter.
		fenced := (ttl + tick + fenceLimit).Seconds() / rate
		if promotes := within(ttl).Seconds(); promotes < fenced {
			t.Errorf("rate %g: promoted after %g s, fenced after %g s", rate, promotes, fenced)
		}
	}
	if got, want := Wait(ttl), within(ttl)+time.Second; got != want { // controllers that did not read yet that it is replaced confirm it
		t.Errorf("got %s, want %s", got, want)
	}
}
