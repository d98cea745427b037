package digest

import "encoding/binary"

// A log repeats itself: the same attributes come in the same order, with the same blanks and line ends between
// them. shape is a node of the tree of such headers, as they came so far; the way from the root to a node is a
// sequence of attributes. A header is read by going down the tree: what is between two values is compared,
// not searched, and what an event has as most events have it (0, No) is not touched at all: it is known from how
// many events of a class had the shape (worker.spread). What the tree does not know is read by attrLine, which
// teaches it. Both read the same; a test holds that.
type shape struct {
	gap    [gapWords]uint64 // what precedes the value: from the end of the one before
	mask   [gapWords]uint64 // which bits of gap count
	length int              // of gap in bytes
	kind   shapeKind
	ref    attrRef // how the value is counted, for numbers, flags and texts
	name   *attrName
	parent *shape
	likely *shape // the kid that came last
	kids   []*shape
}

const (
	gapWords = 4
	gapBytes = 8 * gapWords
	// shapeMargin is what must follow for a step to be read without looking for the block's end: a gap, and
	// what parseMicros and the times of log_slow_extra look at.
	shapeMargin = gapBytes + 64
	maxShapes   = 2000 // nodes
	maxKids     = 16
)

// shapeKind says how a value is read. Those up to shapeThread are numbers.
type shapeKind uint8

const (
	shapeNumber shapeKind = iota
	shapeQueryTime
	shapeLockTime
	shapeThread
	shapeFlag
	shapeText
	shapeIgnore
	shapeSchema
	shapeNone // is not learned
)

// find returns the kid whose gap begins b, or nil.
func (s *shape) find(b *[gapBytes]byte) *shape {
	for _, k := range s.kids {
		if k.fits(b) {
			s.likely = k
			return k
		}
	}
	return nil
}

func (s *shape) fits(b *[gapBytes]byte) bool {
	for i := range s.gap {
		if (binary.LittleEndian.Uint64(b[8*i:])^s.gap[i])&s.mask[i] != 0 {
			return false
		}
	}
	return true
}

// follow reads attributes as the tree knows them, from b[i:] on, and returns the end of the last value it read.
func (p *slowParser) follow(b []byte, i int, ev *raw) int {
	s, attrs := &p.shapes, ev.attrs
	for len(b)-i >= shapeMargin {
		g := (*[gapBytes]byte)(b[i:])
		k := s.likely
		if k == nil {
			break
		}
		if (binary.LittleEndian.Uint64(g[:])^k.gap[0])&k.mask[0]|(binary.LittleEndian.Uint64(g[8:])^k.gap[1])&k.mask[1]|
			(binary.LittleEndian.Uint64(g[16:])^k.gap[2])&k.mask[2]|(binary.LittleEndian.Uint64(g[24:])^k.gap[3])&k.mask[3] != 0 {
			if g[0] == '\n' && g[1] != '#' { // the header's end
				break
			}
			if k = s.find(g); k == nil {
				break
			}
		}
		at := i + k.length
		if k.kind > shapeThread {
			if at = p.followWord(b, at, k, &attrs, ev); at < 0 {
				break
			}
			s, i = k, at
			continue
		}
		if b[at] == '0' && b[at+1] <= ' ' { // most attributes are 0
			if k.kind != shapeNumber {
				k.give(ev, 0)
			}
			s, i = k, at+1
			continue
		}
		for at < len(b)-shapeMargin/2 && b[at] == ' ' {
			at++
		}
		// Nearly all are whole and have less than eight digits, or are times under ten seconds.
		v, n, ok := uint64(0), 0, false
		if x := binary.LittleEndian.Uint64(b[at:]); byte(x>>8) == '.' {
			v, n = digits8(x >> 16)
			d := x&0xff - '0'
			v += d * micro
			ok = n == 6 && d <= 9
			n += 2
		} else {
			v, n = digits8(x)
			v *= micro
			ok = n > 0 && n < 8
		}
		if ok && b[at+n] <= ' ' {
			i = at + n
		} else if v, n, ok = parseMicros(b, at); ok && v < maxMicros { // attrLine says what cannot be
			i = n
		} else {
			break
		}
		s = k
		if k.kind != shapeNumber {
			k.give(ev, v)
		} else if v != 0 {
			attrs = pushed(attrs, &k.ref, v)
		}
	}
	ev.attrs, ev.shaped = attrs, len(attrs)
	if s != &p.shapes {
		ev.shape, p.prev, p.marked = s, s.name, false
	}
	p.tail, p.tailEnd = s, i
	return i
}

// give sets what is no attribute.
func (s *shape) give(ev *raw, v uint64) {
	if s.kind == shapeThread {
		ev.thread = int64(v / micro)
		return
	}
	if s.kind == shapeQueryTime {
		ev.queryTime, ev.gotQuery, ev.announced = v, true, true
	} else {
		ev.lockTime, ev.gotLock = v, true
	}
}

// followWord reads a value that is no number, and returns its end, or -1 if it is of another kind than usual.
func (p *slowParser) followWord(b []byte, i int, k *shape, attrs *[]rawAttr, ev *raw) int {
	switch k.kind {
	case shapeFlag:
		switch {
		case b[i] == 'N' && b[i+1] == 'o' && b[i+2] <= ' ':
			return i + 2
		case b[i] == 'Y' && b[i+1] == 'e' && b[i+2] == 's' && b[i+3] <= ' ':
			*attrs = pushed(*attrs, &k.ref, 1)
			return i + 3
		}
		return -1
	case shapeSchema:
		end, _ := p.value(b, i, k.name, ev)
		return end
	case shapeIgnore:
		if isoHere(b, i) {
			return i + isoLen
		}
	}
	end := i
	for end < len(b) && b[end] > ' ' {
		end++
	}
	word := b[i:end]
	if n := len(word); n == 0 || word[n-1] == ':' || string(word) == "Yes" || string(word) == "No" {
		return -1
	}
	if k.kind == shapeText {
		*attrs = pushed(*attrs, &k.ref, textAt(i, end-i))
	}
	return end
}

// isoHere reports whether a time such as Start and End of log_slow_extra is at b[i:].
func isoHere(b []byte, i int) bool {
	return len(b)-i > isoLen && b[i+isoLen] <= ' ' && b[i+isoLen-1] == 'Z' && b[i+10] == 'T'
}

// mark notes the attributes that follow has read as seen, before attrLine reads others.
func (p *slowParser) mark(ev *raw) {
	p.marked = true
	for s := ev.shape; s != nil && s.parent != nil; s = s.parent {
		s.name.seen = p.seq
	}
}

// learn adds to the tree what attrLine has read after what follow has read: a value at b[at:end].
func (p *slowParser) learn(b []byte, at, end int, n *attrName, kind shapeKind) {
	t := p.tail
	p.tail = nil
	if t == nil || kind == shapeNone || p.all || at-p.tailEnd > gapBytes || len(t.kids) >= maxKids || p.shapeCount >= maxShapes {
		return
	}
	gap := b[p.tailEnd:at]
	s := &shape{length: len(gap), kind: kind, name: n, parent: t}
	var text, mask [gapBytes]byte
	copy(text[:], gap)
	for i := range gap {
		mask[i] = 0xff
	}
	for i := range s.gap {
		s.gap[i] = binary.LittleEndian.Uint64(text[8*i:])
		s.mask[i] = binary.LittleEndian.Uint64(mask[8*i:])
	}
	for _, k := range t.kids {
		if k.fits(&text) && k.length == len(gap) { // the value is of another kind this time
			return
		}
	}
	switch kind {
	case shapeNumber:
		s.ref = n.refs[AttrNumber]
	case shapeFlag:
		s.ref = n.refs[AttrFlag]
	case shapeText:
		s.ref = n.refs[AttrText]
	}
	if kind <= shapeText && kind != shapeQueryTime && kind != shapeLockTime && kind != shapeThread && s.ref.slot < 0 {
		return // there are too many names
	}
	t.kids = append(t.kids, s)
	t.likely = s
	p.shapeCount++
	p.tail, p.tailEnd = s, end
}

// shaped counts a class's events that had one shape one after the other.
type shaped struct {
	shape  *shape
	events uint64
}

// spread counts the events that had the class's shape with each attribute of it.
func (c *class) spread() {
	for s := c.shape; c.shaped.events > 0 && s.parent != nil; s = s.parent {
		switch s.kind {
		case shapeNumber:
			c.metrics[s.ref.at].events += c.shaped.events
		case shapeFlag:
			c.flags[s.ref.at][0] += c.shaped.events
		}
	}
	c.shaped.events = 0
}
