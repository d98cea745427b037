package digest

// counts is a small table of counters: quantile buckets and values of one class together, so that a class that
// saw little takes little. A key is a dimension (a number attribute, or db, user, host, a text attribute) and
// a bucket's or a value's number. Each entry is one word: key+1 in the upper 24 bits, the count in the lower 40.
type counts struct {
	slots []uint64
	used  int
}

const (
	countBits = 40
	countMask = 1<<countBits - 1
	firstSize = 16
	dimShift  = 16
	maxDim    = 1<<8 - 2 // the highest key + 1 must fit in 24 bits
	maxID     = 1<<dimShift - 1
)

func key(dim, id uint32) uint64 { return uint64(dim<<dimShift|id) + 1 }

func place(k uint64, mask uint64) uint64 { return (k * 0x9E3779B97F4A7C15) >> 40 & mask }

// add adds n and tells whether the key is new.
func (c *counts) add(dim, id uint32, n uint64) bool {
	k := key(dim, id)
	if len(c.slots) == 0 {
		c.slots = make([]uint64, firstSize)
	}
	mask := uint64(len(c.slots) - 1)
	for i := place(k, mask); ; i = (i + 1) & mask {
		s := c.slots[i]
		if s>>countBits == k {
			if s&countMask+n <= countMask {
				c.slots[i] = s + n
			} else {
				c.slots[i] = s | countMask
			}
			return false
		}
		if s == 0 {
			c.slots[i] = k<<countBits | min(n, countMask)
			c.used++
			if c.used*2 > len(c.slots) { // half empty: a key is found at its place, or beside it
				c.grow()
			}
			return true
		}
	}
}

// has tells whether the key is there.
func (c *counts) has(dim, id uint32) bool {
	if len(c.slots) == 0 {
		return false
	}
	k := key(dim, id)
	mask := uint64(len(c.slots) - 1)
	for i := place(k, mask); ; i = (i + 1) & mask {
		switch s := c.slots[i]; {
		case s>>countBits == k:
			return true
		case s == 0:
			return false
		}
	}
}

func (c *counts) grow() {
	old := c.slots
	c.slots = make([]uint64, 2*len(old))
	mask := uint64(len(c.slots) - 1)
	for _, s := range old {
		if s == 0 {
			continue
		}
		i := place(s>>countBits, mask)
		for c.slots[i] != 0 {
			i = (i + 1) & mask
		}
		c.slots[i] = s
	}
}

// each calls f for every counter, in no order.
func (c *counts) each(f func(dim, id uint32, n uint64)) {
	for _, s := range c.slots {
		if s != 0 {
			k := uint32(s>>countBits) - 1
			f(k>>dimShift, k&maxID, s&countMask)
		}
	}
}

func (c *counts) bytes() int { return 8 * len(c.slots) }
