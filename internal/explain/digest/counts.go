package digest

import "math"

// counts is a small table of counters: quantile buckets and values of one class together, so that a class that
// saw little takes little. A key is a dimension (a number attribute, or db, user, host, a text attribute) and
// a bucket's or a value's number. Each entry is one word: key+1 in the upper 24 bits, the count in the lower 40.
//
// Once there are many, or pages take hardly more, they are in pages instead, where nothing has to be searched and
// a counter takes a quarter of the processor's cache: neighbouring numbers, 64 to a page, and no page where there are
// none. What a page's counter cannot hold goes to the table again.
type counts struct {
	slots []uint64
	used  int
	pages [][]*page // by dimension, then by number; nil: all is in slots
	held  int       // bytes of pages
}

type page [1 << pageBits]uint16

const (
	countBits = 40
	countMask = 1<<countBits - 1
	firstSize = 16
	dimShift  = 16
	maxDim    = 1<<8 - 2 // the highest key + 1 must fit in 24 bits
	maxID     = 1<<dimShift - 1
	fewSlots  = 128  // how large the table gets before pages are thought of
	manySlots = 2048 // how large the table gets before there are pages in any case
	pageBits  = 6
	pageMask  = 1<<pageBits - 1
	pageBytes = 2<<pageBits + 8
)

func key(dim, id uint32) uint64 { return uint64(dim<<dimShift|id) + 1 }

func place(k uint64, mask uint64) uint64 { return (k * 0x9E3779B97F4A7C15) >> 40 & mask }

// bump adds 1 to a counter that is in a page and over 0; it reports whether there is one.
func (c *counts) bump(dim, id uint32) bool {
	if int(dim) >= len(c.pages) {
		return false
	}
	list := c.pages[dim]
	if n := int(id >> pageBits); n < len(list) && list[n] != nil {
		p := &list[n][id&pageMask]
		if *p-1 < math.MaxUint16-1 {
			*p++
			return true
		}
	}
	return false
}

// add adds n and reports whether the key is new.
func (c *counts) add(dim, id uint32, n uint64) bool {
	if c.pages == nil {
		return c.addSlot(dim, id, n)
	}
	p := &c.page(dim, id)[id&pageMask]
	before := uint64(*p)
	if n <= math.MaxUint16-before {
		*p += uint16(n)
		return before == 0
	}
	c.addSlot(dim, id, before+n-1)
	*p = 1 // a counter in use is never 0
	return before == 0
}

// page returns the page that a counter is in.
func (c *counts) page(dim, id uint32) *page {
	c.pages = grown(c.pages, int(dim)+1)
	n := int(id >> pageBits)
	list := grown(c.pages[dim], n+1)
	c.pages[dim] = list
	if list[n] == nil {
		list[n] = new(page)
		c.held += pageBytes
	}
	return list[n]
}

// dense reports whether pages would take no more than a table of four times the size, which soon would be needed.
func (c *counts) dense() bool {
	seen := make(map[uint32]struct{})
	for _, s := range c.slots {
		if s != 0 {
			seen[uint32(s>>countBits-1)>>pageBits] = struct{}{}
		}
	}
	return len(seen)*pageBytes <= 4*8*len(c.slots)
}

// turn puts the counters into pages.
func (c *counts) turn() {
	old := *c
	*c = counts{pages: [][]*page{}}
	old.each(func(dim, id uint32, n uint64) { c.add(dim, id, n) })
}

func (c *counts) addSlot(dim, id uint32, n uint64) bool {
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
			if c.used*2 > len(c.slots) { // half empty: a key is found at its place, or next to it
				c.grow()
			}
			return true
		}
	}
}

// has reports whether the key is there.
func (c *counts) has(dim, id uint32) bool {
	if c.pages != nil {
		return c.inPage(dim, id) > 0
	}
	return c.inSlot(dim, id) > 0
}

func (c *counts) inPage(dim, id uint32) uint64 {
	if int(dim) < len(c.pages) {
		list := c.pages[dim]
		if n := int(id >> pageBits); n < len(list) && list[n] != nil {
			return uint64(list[n][id&pageMask])
		}
	}
	return 0
}

func (c *counts) inSlot(dim, id uint32) uint64 {
	if len(c.slots) == 0 {
		return 0
	}
	k := key(dim, id)
	mask := uint64(len(c.slots) - 1)
	for i := place(k, mask); ; i = (i + 1) & mask {
		switch s := c.slots[i]; {
		case s>>countBits == k:
			return s & countMask
		case s == 0:
			return 0
		}
	}
}

func (c *counts) grow() {
	if c.pages == nil && (len(c.slots) >= manySlots || len(c.slots) >= fewSlots && c.dense()) {
		c.turn()
		return
	}
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
	for dim, list := range c.pages {
		for n, p := range list {
			if p == nil {
				continue
			}
			for i, v := range p {
				if v > 0 {
					id := uint32(n<<pageBits + i)
					f(uint32(dim), id, min(uint64(v)+c.inSlot(uint32(dim), id), countMask))
				}
			}
		}
	}
	if c.pages != nil {
		return
	}
	for _, s := range c.slots {
		if s != 0 {
			k := uint32(s>>countBits) - 1
			f(k>>dimShift, k&maxID, s&countMask)
		}
	}
}

func (c *counts) bytes() int { return 8*len(c.slots) + c.held }
