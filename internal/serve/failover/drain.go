package failover

import (
	"time"

	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/lag"
	"github.com/rissodb/risso/internal/digits"
)

// drainLong is from when on it is wrong that a failover waits until the one that follows has applied what was received: half of how long it waits at most.
var drainLong = carry.DefaultLimits().Drain / 2

// draining is how long a failover would wait for the one that follows, by how much that has finished from one look after the group to the next: nothing is asked for it.
type draining struct {
	last   *carry.Forecast // the last look
	drain  *lag.Drain      // nil: the winner has nothing to apply, or is not known to be at its full speed
	stands time.Duration   // for how long it has finished nothing, though it has something to apply
	times  int             // how many looks in turn said that it takes long: a burst after a calm is no sign of that
}

// see takes a look.
func (d *draining) see(f *carry.Forecast) {
	was := *d
	*d = draining{last: f}
	now := f.Choice.Candidate(f.Choice.Winner)
	if now == nil || now.Waiting+now.Lacks == 0 || was.last == nil || was.last.Old != f.Old {
		return
	}
	before := was.last.Choice.Candidate(now.Name)
	if before == nil {
		return
	}
	if d.drain, d.stands = now.Since(before); d.stands > 0 && was.last.Choice.Winner == now.Name {
		d.stands += was.stands
	}
	if d.stands > drainLong || d.drain != nil && d.drain.Seconds != nil && *d.drain.Seconds > drainLong.Seconds() {
		d.times = was.times + 1
	}
}

// long says what is wrong with that, if it takes long; "": it does not, or that is not known.
func (d *draining) long() (what, why string) {
	if d.times < 2 {
		return "", ""
	}
	winner, limit := d.last.Choice.Winner, carry.DefaultLimits().Drain
	what, why = "for "+d.drain.Words, winner+" has "+digits.Counted(*d.drain.Transactions, "transaction")+" to apply"
	if d.drain.Seconds == nil {
		what, why = "until "+winner+" has applied what it received, nobody knows how long", why+", and has finished none for "+digits.Age(d.stands.Seconds())
	}
	return what, why + "; nobody takes writes meanwhile, and after " + digits.Span(limit) + " it is given up for another one, if there is one"
}
