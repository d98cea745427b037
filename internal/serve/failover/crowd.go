package failover

import (
	"context"
	"sync"
	"time"
)

// This file keeps what many groups cost at once within bounds: when a machine is too busy, or the network is, all of them are late, and to ask more because of that makes it worse.

// crowd knows how many groups are late at the same time.
type crowd struct {
	mu          sync.Mutex
	groups      int
	period      int64 // a second
	late, later int   // how many groups were late in it, and in the one before
}

// A crowd is late if so many of all groups are, and more than a few.
const (
	crowdLeast = 4
	crowdShare = 4 // one in
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
	switch period := now.Unix(); {
	case period == c.period+1:
		c.period, c.later, c.late = period, c.late, 0
	case period != c.period:
		c.period, c.later, c.late = period, 0, 0
	}
	if *counted != c.period {
		*counted = c.period
		c.late++
	}
	return max(c.late, c.later) > max(crowdLeast, c.groups/crowdShare)
}

// tendAtOnce is how many groups are looked after at a time: each of them makes new connections to all of its members.
const tendAtOnce = 32

// turn waits until a group may be looked after; leave ends that. false: something has to be done meanwhile, or ctx ended.
func (d *Desk) turn(ctx context.Context, hurry <-chan struct{}) (leave func(), ok bool) {
	select {
	case d.turns <- struct{}{}:
		return func() { <-d.turns }, true
	case <-hurry:
	case <-ctx.Done():
	}
	return nil, false
}
