package group

import (
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/fault"
)

// Lease is who may change a group now. Whoever takes it raises the epoch; what carries an older epoch is void.
//
// Clocks of several machines are never compared: a lease is over for who has seen it unchanged for as long as it holds, by its own clock, which counts durations
// only; or if the controller that has it does not lead any more.
type Lease struct {
	Holder string        `json:"holder"` // who: a name of a process that no other has
	Epoch  uint64        `json:"epoch"`
	Until  time.Time     `json:"until"` // by the holder's clock; for people
	For    time.Duration `json:"for_ns,omitempty"`
	Beat   uint64        `json:"beat,omitempty"`  // counts its renewals
	Reign  uint64        `json:"reign,omitempty"` // the number of the leadership under which a controller has it; 0: it is no controller's
}

// DefaultLease is how long a lease holds that does not say so.
const DefaultLease = 30 * time.Second

func (l Lease) length() time.Duration {
	if l.For <= 0 {
		return DefaultLease
	}
	return l.For
}

// same reports whether a lease was not renewed.
func (l Lease) same(o Lease) bool {
	return l.Holder == o.Holder && l.Epoch == o.Epoch && l.Beat == o.Beat && l.Until.Equal(o.Until)
}

// Sight is a lease as one process sees it. It belongs to one goroutine.
type Sight struct {
	lease Lease
	since time.Time // since when it has not changed
}

// See takes a look at a lease, and reports whether another one, or an older renewal, was seen before.
func (s *Sight) See(l Lease, now time.Time) (changed bool) {
	if !s.since.IsZero() && s.lease.same(l) {
		return false
	}
	changed = !s.since.IsZero()
	s.lease, s.since = l, now
	return changed
}

// Over reports whether nobody has a lease any more: its holder did not renew it for as long as it holds.
func (s *Sight) Over(l Lease, now time.Time) bool {
	return l.Holder == "" || s != nil && !s.since.IsZero() && s.lease.same(l) && now.Sub(s.since) > l.length()
}

// Claim is who wants a lease.
type Claim struct {
	Holder string
	Reign  uint64 // the number of the leadership under which a controller acts, which was confirmed just now; 0: it is no controller
	Sight  *Sight // of the lease that is there; nil: it was not looked at before
}

// May reports whether a claim may take a lease: nobody has it, or not any more. A controller that leads has nothing to fear of those that led before.
func (c Claim) May(l Lease, now time.Time) bool {
	return l.Holder == c.Holder || l.Reign > 0 && c.Reign > l.Reign || c.Sight.Over(l, now)
}

// Take gives the lease to who claims it, for a while, with a new epoch, unless another one has it.
func (g *Group) Take(c Claim, now time.Time, d time.Duration) error {
	if !c.May(g.Lease, now) {
		return fault.New(fault.Failed, "wait until it is done", fmt.Errorf("%s: %w", g.Lease.Holder, ErrHeld))
	}
	g.Lease = Lease{Holder: c.Holder, Epoch: max(g.Lease.Epoch, g.Epoch) + 1, Until: now.Add(d), For: d, Reign: c.Reign}
	return nil
}

// Renew keeps the lease.
func (g *Group) Renew(now time.Time) {
	g.Lease.Beat++
	g.Lease.Until = now.Add(g.Lease.length())
}

// Free gives the lease up.
func (g *Group) Free(holder string) {
	if g.Lease.Holder == holder {
		g.Lease, g.Moving = Lease{Epoch: g.Lease.Epoch}, false
	}
}
