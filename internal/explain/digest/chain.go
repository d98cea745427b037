package digest

import "sync"

// chain carries what an event may leave out (current database, time) over the borders of blocks. Blocks are
// numbered from 0 in the order of the log; each is published once, when it has been parsed. A worker that must
// know what was current where its block began waits for the blocks before it: those are held by workers that
// have begun earlier, so the first block that is not published never waits.
type chain struct {
	mu      sync.Mutex
	changed sync.Cond
	next    int64 // the block that cur is the beginning of
	cur     lineContext
	early   map[int64]lineContext // published, but something before is not
	stopped bool
}

func newChain() *chain {
	c := &chain{early: make(map[int64]lineContext), cur: lineContext{dbKnown: true}}
	c.changed.L = &c.mu
	return c
}

// at returns what is current at the beginning of a block, if that is known already.
func (c *chain) at(block int64) (lineContext, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cur.clone(), c.next == block
}

// wait returns what is current at the beginning of a block; false when the reading was given up.
func (c *chain) wait(block int64) (lineContext, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.next != block && !c.stopped {
		c.changed.Wait()
	}
	return c.cur.clone(), c.next == block
}

// publish says what was current at the end of a block, as far as the block says.
func (c *chain) publish(block int64, l lineContext) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.early[block] = l.clone()
	for {
		l, ok := c.early[c.next]
		if !ok {
			break
		}
		delete(c.early, c.next)
		c.next++
		if l.dbKnown {
			c.cur.db = l.db
		}
		if l.timeKnown {
			c.cur.time, c.cur.timeKnown = l.time, true
		}
	}
	c.changed.Broadcast()
}

// stop wakes all that wait: a block will not be published.
func (c *chain) stop() {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.changed.Broadcast()
}

func (c *lineContext) clone() lineContext {
	l := *c
	l.db = append([]byte(nil), c.db...)
	return l
}
