package failover

import (
	"sync"
	"time"
)

// This file keeps what many groups cost at once within bounds: when a machine is too busy, or the network is, all of them are late, and to ask more because of that makes it worse.

// crowd knows how many groups are late at the same time.
type crowd struct {
	mu           sync.Mutex
	groups       int
	period       int64 // a second
	late, before int   // how many groups were late in it, and in the one before
}

// A crowd is late if so many of all groups are, and more than a few.
const (
	crowdLeast = 4
	crowdShare = 4 // one in
)

// Who is one of a crowd has its members looked at so often while its primary is late, and is one no longer when that has been so for long.
const (
	everyCrowd = 500 * time.Millisecond
	lateFor    = 10 * time.Second
)

// size says how many groups there are.
func (c *crowd) size(groups int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups = groups
}

// count is how many groups there are.
func (c *crowd) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.groups
}

// is notes that a group is late, and reports whether it is one of a crowd. counted is kept by each group: the last period in which it was late.
func (c *crowd) is(counted *int64, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn(now)
	if *counted != c.period {
		*counted = c.period
		c.late++
	}
	return c.many()
}

// there reports whether there is a crowd.
func (c *crowd) there(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn(now)
	return c.many()
}

// turn begins a new period if it is time.
func (c *crowd) turn(now time.Time) {
	switch period := now.Unix(); {
	case period == c.period+1:
		c.period, c.before, c.late = period, c.late, 0
	case period != c.period:
		c.period, c.before, c.late = period, 0, 0
	}
}

func (c *crowd) many() bool { return max(c.late, c.before) > max(crowdLeast, c.groups/crowdShare) }

// tendAtOnce is how many groups are looked after at a time: each of them makes new connections to all of its members.
const tendAtOnce = 32

// turn lets a group be looked after if so many are not already; leave ends that.
func (d *Desk) turn() (leave func(), ok bool) {
	select {
	case d.turns <- struct{}{}:
		return func() { <-d.turns }, true
	default:
		return nil, false
	}
}
