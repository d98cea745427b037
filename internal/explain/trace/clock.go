package trace

import "time"

// clock relates the server's clock, which counts picoseconds since the server started, to this machine's. Nothing reports the
// server's present, but no event is later: each time in a row that was read is a bound, and a running event's row, or one that
// has just ended, comes within one poll of it.
type clock struct {
	anchor time.Time
	offset uint64 // at the anchor, at least; 0: nothing is known
}

// saw notes that a row read by now has a time of the server.
func (c *clock) saw(ps uint64, now time.Time) {
	if since := uint64(max(now.Sub(c.anchor), 0)) * 1000; ps > since {
		c.offset = max(c.offset, ps-since)
	}
}

// at is a moment on the server's clock; 0: not known.
func (c *clock) at(t time.Time) uint64 {
	if c.offset == 0 {
		return 0
	}
	return c.offset + uint64(max(t.Sub(c.anchor), 0))*1000
}
