package failover

import (
	"slices"
	"time"

	"github.com/rissodb/risso/internal/avail/lag"
	"github.com/rissodb/risso/internal/digits"
)

// ToApply is how much a candidate has to apply, and how long that takes, in words.
func (c *Candidate) ToApply() string {
	left, how := int64(c.Waiting), ""
	if c.Drain != nil {
		if how = ": " + c.Drain.Words; c.Drain.Transactions != nil {
			left = *c.Drain.Transactions
		}
		if left == 0 {
			return "nothing to apply"
		}
	}
	return digits.Counted(left, "transaction") + " to apply" + how
}

// Candidate is the one of a name; nil: there is none.
func (c *Choice) Candidate(name string) *Candidate {
	if i := slices.IndexFunc(c.Candidates, func(k Candidate) bool { return k.Name == name }); i >= 0 {
		return &c.Candidates[i]
	}
	return nil
}

// Since is how long a candidate takes to apply what it, or another member, received, by how much it has finished since it was looked at before; and for how long it has finished nothing, though it
// had something to apply. It is nil if that is not known: it had less to apply before than it has finished, and so was not seen at its full speed.
func (c *Candidate) Since(before *Candidate) (d *lag.Drain, stands time.Duration) {
	had, finished, span := before.Waiting+before.Lacks, c.executed.Ahead(before.executed), c.asked.Sub(before.asked)
	if had == 0 || had < finished {
		return nil, 0
	}
	took := lag.DrainAt(int64(c.Waiting+c.Lacks), int64(finished), span.Seconds())
	if finished == 0 {
		stands = span
	}
	return &took, stands
}
