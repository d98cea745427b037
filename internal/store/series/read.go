package series

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"slices"
	"strings"
)

// Points are samples of one series, ascending in time.
type Points struct {
	T []int64 // Unix seconds
	V []float64
}

// Raw returns the samples of a series from a time, inclusive, to a time, exclusive.
// A series or instance that does not exist has no samples.
func (s *Store) Raw(ctx context.Context, instance, key string, from, to int64) (Points, error) {
	var p Points
	in := s.instance(instance)
	if in == nil || from >= to {
		return p, nil
	}
	c := in.cursor(key, from)
	defer c.close()
	for _, hour := range in.hoursWithin(from, to) {
		if err := ctx.Err(); err != nil {
			return p, fmt.Errorf("read %s of %s: %w", key, instance, err)
		}
		if !c.hour(hour) {
			continue
		}
		lo, hi := max(from-hour, 0), min(to-hour, hourSeconds)
		for i, v := range c.vals[1+lo : 1+hi] {
			if v == v {
				p.T = append(p.T, hour+lo+int64(i))
				p.V = append(p.V, v)
			}
		}
	}
	return p, nil
}

// Descs lists the series of an instance that have data in the files and minutes that a range touches, by key.
// Its grain is that of files: an hour, or a day for days that are over.
func (s *Store) Descs(instance string, from, to int64) []Desc {
	in := s.instance(instance)
	if in == nil {
		return nil
	}
	var list []Desc
	for _, d := range in.seriesWithin(from, to, true) {
		list = append(list, d.Desc)
	}
	return list
}

// seriesWithin lists the series that files and minutes of a range know, by key; with data, only those that have any there.
// What is newest decides on the type.
func (in *instance) seriesWithin(from, to int64, withData bool) []*seriesID {
	found := map[string]*seriesID{}
	done := map[*schema]bool{}
	in.mu.RLock()
	mem := in.memoryWithin(from, to)
	in.mu.RUnlock()
	in.files.RLock()
	for _, r := range in.blocks {
		if r.end <= from || r.start >= to {
			continue
		}
		in.blockSeries(r, found, done, withData)
	}
	for _, f := range in.hours {
		for _, r := range f.refs {
			if r.start+minuteSeconds <= from || r.start >= to || done[r.schema] {
				continue
			}
			fr, err := in.s.frames.get(f, r, in.s)
			if err != nil {
				continue
			}
			for i, d := range r.schema.series {
				if !withData || fr.has(i) {
					found[d.key] = d
				}
			}
		}
	}
	in.files.RUnlock()
	for _, d := range mem {
		found[d.key] = d
	}
	list := make([]*seriesID, 0, len(found))
	for _, d := range found {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b *seriesID) int { return strings.Compare(a.key, b.key) })
	return list
}

func (in *instance) blockSeries(r *blockRef, found map[string]*seriesID, done map[*schema]bool, withData bool) {
	sch := r.schema.Load()
	if sch != nil && done[sch] {
		return
	}
	if sch != nil && !withData {
		for _, d := range sch.series {
			found[d.key] = d
		}
		done[sch] = true
		return
	}
	b, err := in.s.blocks.get(r, in.s)
	if err != nil {
		in.unreadable(r, err)
		return
	}
	defer in.s.blocks.release(b)
	all := true
	for i, d := range b.sch.series {
		if !withData || b.has(i) {
			found[d.key] = d
		} else {
			all = false
		}
	}
	done[b.sch] = all
}

// unreadable takes note of a block that cannot be read, for the worker to tell; a file that another goroutine just replaced is none.
func (in *instance) unreadable(r *blockRef, err error) {
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var d *damageError
	if errors.As(err, &d) || errors.Is(err, errVersion) {
		in.damagedBlock(r, err)
	}
}

// memoryWithin lists the series that minutes in memory have values of. The caller holds mu.
func (in *instance) memoryWithin(from, to int64) (list []*seriesID) {
	add := func(m *minute, descs []*seriesID) {
		if m == nil || m.start+minuteSeconds <= from || m.start >= to {
			return
		}
		for i, d := range descs {
			for t := m.ticks; t != 0; t &= t - 1 {
				if v := m.value(i, bits.TrailingZeros64(t)); v == v {
					list = append(list, d)
					break
				}
			}
		}
	}
	for _, m := range in.pending {
		add(m.minute, m.descs)
	}
	add(in.cur, in.descs)
	return list
}

// memPoint is a sample in memory.
type memPoint struct {
	t    int64
	v    float64
	late bool
}

// memory copies the samples of a series that are in memory only. The caller holds mu.
func (in *instance) memory(key string) (list []memPoint) {
	add := func(m *minute, pos int) {
		for t := m.ticks; t != 0; t &= t - 1 {
			s := bits.TrailingZeros64(t)
			list = append(list, memPoint{m.start + int64(s), m.value(pos, s), m.late>>s&1 != 0})
		}
	}
	for _, m := range in.pending {
		for i, d := range m.descs {
			if d.key == key {
				add(m.minute, i)
				break
			}
		}
	}
	if in.cur != nil {
		if i, ok := in.pos[key]; ok {
			add(in.cur, i)
		}
	}
	return list
}

// hoursWithin lists the hours of a range that have data, ascending.
func (in *instance) hoursWithin(from, to int64) (hours []int64) {
	add := func(h int64) {
		if h+hourSeconds > from && h < to {
			hours = append(hours, h)
		}
	}
	in.mu.RLock()
	for _, m := range in.pending {
		add(floorTo(m.start, hourSeconds))
	}
	if in.cur != nil {
		add(floorTo(in.cur.start, hourSeconds))
	}
	in.mu.RUnlock()
	in.files.RLock()
	for h := range in.hours {
		add(h)
	}
	for _, r := range in.blocks {
		for h := r.start; h < r.end; h += hourSeconds {
			add(h)
		}
	}
	in.files.RUnlock()
	slices.Sort(hours)
	return slices.Compact(hours)
}

// cursor reads a series hour by hour. It takes what is in memory first and reads files later: a minute that is sealed in
// between is then seen twice, which is once, and never missed.
type cursor struct {
	in   *instance
	key  string
	mem  []memPoint
	buf  *hourBuffer
	vals []float64 // vals[1+s] is second s of the hour read last; vals[0] belongs to the caller
	late []bool    // the same for late ticks, where anyLate says there are any

	anyLate bool
	seg     segment
	segOf   *blockRef // what seg was read from
	chunks  bool      // seg has chunks
	file    *blockFile
}

func (in *instance) cursor(key string, from int64) *cursor {
	c := &cursor{}
	c.open(in, key, from)
	return c
}

// open makes the cursor ready for a series; it may have been used for another one and closed.
func (c *cursor) open(in *instance, key string, from int64) {
	c.in, c.key, c.mem = in, key, nil
	if c.buf == nil {
		c.buf = in.s.hours.Get().(*hourBuffer)
		c.vals, c.late = c.buf.vals[:], c.buf.late[:]
	}
	c.vals[0] = math.NaN()
	c.late[0] = false
	c.segOf, c.seg.index, c.anyLate = nil, -1, false
	in.mu.RLock()
	defer in.mu.RUnlock()
	if in.last >= from {
		c.mem = in.memory(key)
	}
}

// close returns the cursor's memory.
func (c *cursor) close() {
	if c.file != nil {
		c.in.s.blocks.release(c.file)
		c.file = nil
	}
	if c.buf != nil {
		c.in.s.hours.Put(c.buf)
		c.buf = nil
	}
}

// hour fills vals with an hour and says whether it has any value. What is damaged reads as absent and is reported to the worker.
func (c *cursor) hour(hour int64) bool {
	vals := c.vals[1:]
	if c.anyLate {
		clear(c.late[1:])
	}
	c.anyLate = false
	found := c.blocks(hour, vals)
	c.in.files.RLock()
	if f := c.in.hours[hour]; f != nil {
		found = true
		if err := f.values(c.in.s, c.key, vals); err != nil {
			c.in.s.log.Warn("frames cannot be read", "instance", c.in.id, "err", err)
			c.in.damagedFrames(f, err)
		}
		for _, r := range f.refs {
			for t := r.late; t != 0; t &= t - 1 {
				c.setLate(int(r.start-hour) + bits.TrailingZeros64(t))
			}
		}
	}
	c.in.files.RUnlock()
	for _, m := range c.mem {
		if at := m.t - hour; at >= 0 && at < hourSeconds {
			found = true
			if v := vals[at]; v != v {
				vals[at] = m.v
			}
			if m.late {
				c.setLate(int(at))
			}
		}
	}
	return found
}

func (c *cursor) setLate(second int) {
	if !c.anyLate {
		clear(c.late[1:])
	}
	c.anyLate = true
	c.late[1+second] = true
}

// blocks fills vals from the blocks that have the hour.
func (c *cursor) blocks(hour int64, vals []float64) (found bool) {
	sc := c.in.s.pool.Get().(*scratch)
	defer c.in.s.pool.Put(sc)
	c.in.files.RLock()
	defer c.in.files.RUnlock()
	fresh := true
	defer func() {
		if fresh {
			nan(vals)
		}
	}()
	for _, r := range c.in.covering(hour) {
		if !c.load(r, true) {
			continue
		}
		h := int((hour - r.start) / hourSeconds)
		if c.seg.entries[h].kind == columnAbsent {
			continue
		}
		found = true
		if err := c.file.values(sc, &c.seg, h, vals, fresh); err != nil {
			c.in.unreadable(r, err)
		}
		fresh = false
		for _, x := range c.file.hourTab[h].late {
			for s := range int(x.n) {
				c.setLate(int(x.from) + s)
			}
		}
	}
	return found
}

// covering lists the blocks that have an hour: one, or two for a moment. The caller holds files.
func (in *instance) covering(hour int64) []*blockRef {
	i, _ := slices.BinarySearchFunc(in.blocks, hour+hourSeconds, func(r *blockRef, t int64) int {
		if r.start < t {
			return -1
		}
		return 1
	})
	first := i
	for first > 0 && in.blocks[first-1].start > hour-daySeconds {
		first--
	}
	var list []*blockRef
	for _, r := range in.blocks[first:i] {
		if r.start <= hour && hour < r.end {
			list = append(list, r)
		}
	}
	return list
}

// load makes seg that of a block, with its chunks or only its entries; false when the block has nothing of the series.
// The caller holds files.
func (c *cursor) load(r *blockRef, chunks bool) bool {
	if c.segOf != r || c.file == nil {
		if c.file != nil {
			c.in.s.blocks.release(c.file)
			c.file = nil
		}
		b, err := c.in.s.blocks.get(r, c.in.s)
		if err != nil {
			c.in.unreadable(r, err)
			return false
		}
		c.file, c.segOf, c.chunks = b, r, false
		c.seg.index = -1
	}
	i := c.file.sch.find(c.key)
	if i < 0 || !c.file.has(i) {
		return false
	}
	if c.seg.index == i && (c.chunks || !chunks) {
		return true
	}
	if err := c.file.readSegment(&c.seg, i, chunks); err != nil {
		c.seg.index = -1
		c.in.unreadable(r, err)
		return false
	}
	c.chunks = chunks
	return true
}
