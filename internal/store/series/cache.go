package series

import (
	"container/list"
	"errors"
	"sync"
)

// frameCache keeps decompressed frames, the most recently used ones, within a bound of bytes.
type frameCache struct {
	mu    sync.Mutex
	limit int
	used  int
	items map[*frameRef]*list.Element
	order *list.List // of *cachedFrame, most recently used first
}

type cachedFrame struct {
	ref  *frameRef
	once sync.Once
	f    *frame
	err  error
	size int
}

func newFrameCache(limit int) *frameCache {
	return &frameCache{limit: limit, items: map[*frameRef]*list.Element{}, order: list.New()}
}

// get returns a frame, reading it if need be. Many that want the same frame wait for one to read it.
func (c *frameCache) get(f *framesFile, r *frameRef, s *Store) (*frame, error) {
	c.mu.Lock()
	e := c.items[r]
	if e == nil {
		e = c.order.PushFront(&cachedFrame{ref: r})
		c.items[r] = e
	} else {
		c.order.MoveToFront(e)
	}
	item := e.Value.(*cachedFrame)
	c.mu.Unlock()
	item.once.Do(func() {
		item.f, item.err = f.load(r, s)
		c.filled(item)
	})
	return item.f, item.err
}

func (c *frameCache) filled(item *cachedFrame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.items[item.ref] == nil {
		return // dropped in the meantime
	}
	if item.err != nil {
		c.removeLocked(item.ref)
		return
	}
	item.size = item.f.size()
	c.used += item.size
	for c.used > c.limit && c.order.Len() > 1 {
		c.removeLocked(c.order.Back().Value.(*cachedFrame).ref)
	}
}

func (c *frameCache) removeLocked(r *frameRef) {
	if e := c.items[r]; e != nil {
		c.used -= e.Value.(*cachedFrame).size
		c.order.Remove(e)
		delete(c.items, r)
	}
}

// drop forgets frames whose file is gone.
func (c *frameCache) drop(refs []*frameRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range refs {
		c.removeLocked(r)
	}
}

func (c *frameCache) bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.used)
}

// openBlocks is how many block files are open at a time while nothing is read.
const openBlocks = 64

// blockCache keeps block files open, the most recently used ones.
type blockCache struct {
	mu    sync.Mutex
	items map[*blockRef]*list.Element
	order *list.List // of *cachedBlock, most recently used first
}

type cachedBlock struct {
	ref  *blockRef
	file *blockFile
}

func newBlockCache() *blockCache {
	return &blockCache{items: map[*blockRef]*list.Element{}, order: list.New()}
}

// get opens a block or finds it open; release gives it back.
func (c *blockCache) get(r *blockRef, s *Store) (*blockFile, error) {
	c.mu.Lock()
	if e := c.items[r]; e != nil {
		c.order.MoveToFront(e)
		b := e.Value.(*cachedBlock).file
		b.refs++
		c.mu.Unlock()
		return b, nil
	}
	c.mu.Unlock()
	b, err := openBlock(r.path, s.cat, s.dec)
	if err != nil {
		return nil, err
	}
	if b.start != r.start || b.start+int64(b.hours)*hourSeconds != r.end {
		b.closer.Close()
		return nil, &damageError{r.path, errors.New("its time is not the one in its name")}
	}
	r.schema.Store(b.sch)
	if b.hurt != nil { // all of it can be read; it is rewritten before it is damaged again
		r.in.damagedBlock(r, &damageError{r.path, b.hurt})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.items[r]; e != nil { // another was faster
		b.closer.Close()
		b = e.Value.(*cachedBlock).file
		b.refs++
		return b, nil
	}
	b.refs = 2 // the cache's and the caller's
	c.items[r] = c.order.PushFront(&cachedBlock{r, b})
	for c.order.Len() > openBlocks {
		c.removeLocked(c.order.Back().Value.(*cachedBlock).ref)
	}
	return b, nil
}

func (c *blockCache) release(b *blockFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releaseLocked(b)
}

func (c *blockCache) releaseLocked(b *blockFile) {
	if b.refs--; b.refs == 0 {
		b.closer.Close()
	}
}

func (c *blockCache) removeLocked(r *blockRef) {
	if e := c.items[r]; e != nil {
		c.releaseLocked(e.Value.(*cachedBlock).file)
		c.order.Remove(e)
		delete(c.items, r)
	}
}

// drop closes a block that is replaced or removed, as soon as it is no longer read.
func (c *blockCache) drop(r *blockRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(r)
}

func (c *blockCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.items {
		c.removeLocked(r)
	}
}

func (c *blockCache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}

// rowPool keeps rows of the minutes in memory for reuse.
type rowPool struct {
	mu   sync.Mutex
	free [][]float64
}

// keptRows is how many unused rows are kept: some seconds of a hundred servers.
const keptRows = 512

func (p *rowPool) get(n int) []float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := len(p.free) - 1; k >= 0 {
		r := p.free[k]
		p.free = p.free[:k]
		if cap(r) >= n {
			return r[:n]
		}
	}
	return make([]float64, n)
}

func (p *rowPool) put(rows [][]float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range rows {
		if r != nil && len(p.free) < keptRows {
			p.free = append(p.free, r)
		}
	}
}
