package digest

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/rissodb/risso/internal/sqltext"
)

const (
	// keepText bounds the bytes kept of a fingerprint and, if no other bound is asked for, of a sample.
	keepText = 16 << 10
	// sampleMemory bounds what all workers together keep of samples beyond keepText of each.
	sampleMemory = 24 << 20
	// ptMemory bounds the bytes of statements, of which a part is kept, that a worker works pt-query-digest's ID out for.
	ptMemory = 256 << 20
	// maxClassValues bounds how many values of db, user, host and so on a class counts.
	maxClassValues = 4000
)

// class holds the figures of one class in one worker.
type class struct {
	hash    uint64
	key     []byte // the group, at most keepText bytes of it
	keyLen  int
	id      string // of key, and in the end its name
	plain   string // its name; empty: not worked out yet
	calls   uint64
	query   metric // Query_time
	lock    metric // Lock_time
	size    metric // Query_size
	metrics []metric
	flags   [][2]uint64 // no, yes
	counts  counts
	values  int // how many values counts holds
	hist    [8]uint64
	good    uint64 // calls ≤ T
	fair    uint64 // calls ≤ 4T
	first   int64
	last    int64
	samples []sample // slowest first
	// spellings are pt-query-digest's IDs when the class was joined of several; the heaviest first.
	spellings []string
	shaped
	// What waits until it is known what the log's current database and time were where the block began.
	pending     bool
	pendingDB   uint64
	pendingTime bool
}

// sample is a statement kept. Its slices are the class's own.
type sample struct {
	query, explain, db, user, host []byte
	time                           int64
	micros                         uint64
	cut                            int
	source                         int
	offset                         int64
	pendingDB, pendingTime         bool
	pt                             string // pt-query-digest's ID of the whole statement, where only a part of it is kept; empty: not known
}

// ptID is pt-query-digest's ID of the statement; empty when it is not known.
func (s *sample) ptID() string {
	if s.cut != 0 {
		return s.pt
	}
	return sqltext.PtID(string(s.query))
}

// before orders samples: slowest first, then in the order of the sources.
func (s *sample) compare(o *sample) int {
	return cmp.Or(cmp.Compare(o.micros, s.micros), cmp.Compare(s.source, o.source), cmp.Compare(s.offset, o.offset))
}

// bytes is what counts against the memory for classes.
func (s *sample) bytes() int {
	return cap(s.query) - s.extra() + cap(s.explain) + cap(s.db) + cap(s.user) + cap(s.host) + int(unsafe.Sizeof(*s))
}

// extra is what is kept of the statement beyond keepText.
func (s *sample) extra() int { return max(cap(s.query)-2*keepText, 0) }

func (c *class) extra() (n int) {
	for i := range c.samples {
		n += c.samples[i].extra()
	}
	return n
}

// set takes a statement, at most limit bytes of it.
func (s *sample) set(ev *raw, source, limit int) {
	q := ev.query
	s.cut = ev.cut
	if len(q) > limit {
		s.cut += len(q) - limit
		q = q[:limit]
	}
	if cap(s.query) > 2*keepText && cap(s.query) > 2*len(q) {
		s.query = nil // a short statement must not hold the memory of a long one
	}
	if len(q) > cap(s.query) && len(q) > keepText {
		s.query = make([]byte, 0, len(q))
	}
	s.query = append(s.query[:0], q...)
	s.explain = append(s.explain[:0], ev.explain[:min(len(ev.explain), keepText)]...)
	s.db = append(s.db[:0], ev.db...)
	s.user = append(s.user[:0], ev.user...)
	s.host = append(s.host[:0], ev.host...)
	s.time, s.micros = ev.time, ev.queryTime
	s.source, s.offset, s.pt = source, ev.offset, ""
	s.pendingDB, s.pendingTime = !ev.dbKnown, ev.time == 0
}

// sampleLimit is how many bytes of a statement of n may be kept in place of an old sample: as many as were asked for, as
// long as there is memory for them.
func (w *worker) sampleLimit(old *sample, n int) int {
	if w.SampleBytes >= 0 {
		n = min(n, w.SampleBytes)
	}
	if n > 2*keepText && w.extra.Load()-int64(old.extra())+int64(n) > sampleMemory {
		return keepText
	}
	return n
}

// histBucket is the power of ten that a number of micros is in, as far as the histogram distinguishes them: 0 is
// under 10, 7 is 10 seconds and more. 1233/4096 is log10(2), about.
func histBucket(v uint64) int {
	i := bits.Len64(min(v, 10_000_000)) * 1233 >> 12
	if i < len(pow10) && v < pow10[i] {
		i--
	}
	return max(i, 0)
}

// mergeFrom adds the figures of o, of another worker whose slots and values translate by t.
func (c *class) mergeFrom(o *class, t *translation, samples int) {
	c.calls += o.calls
	c.query.merge(&o.query)
	c.lock.merge(&o.lock)
	c.size.merge(&o.size)
	for i := range o.metrics {
		if o.metrics[i].count() > 0 {
			at := t.metric(i)
			c.metrics = grown(c.metrics, at+1)
			c.metrics[at].merge(&o.metrics[i])
		}
	}
	for i, f := range o.flags {
		if f[0]+f[1] > 0 {
			at := t.flag(i)
			c.flags = grown(c.flags, at+1)
			c.flags[at][0] += f[0]
			c.flags[at][1] += f[1]
		}
	}
	o.counts.each(func(dim, id uint32, n uint64) { t.count(c, dim, id, n) })
	for i, n := range o.hist {
		c.hist[i] += n
	}
	c.good += o.good
	c.fair += o.fair
	c.seen(o.first)
	c.seen(o.last)
	for _, s := range o.samples {
		c.offer(s, samples)
	}
}

// seen widens first and last to a time; 0 is none.
func (c *class) seen(t int64) {
	if t == 0 {
		return
	}
	if c.first == 0 || t < c.first {
		c.first = t
	}
	if t > c.last {
		c.last = t
	}
}

// offer keeps a sample if it is among the slowest.
func (c *class) offer(s sample, limit int) {
	i, _ := slices.BinarySearchFunc(c.samples, s, func(a, b sample) int { return a.compare(&b) })
	if i >= limit {
		return
	}
	c.samples = slices.Insert(c.samples, i, s)
	if len(c.samples) > limit {
		c.samples = c.samples[:limit]
	}
}

// grown makes a slice at least n long.
func grown[T any](s []T, n int) []T {
	if len(s) >= n {
		return s
	}
	return append(s, make([]T, n-len(s))...)
}

func (c *class) bytes() int {
	n := int(unsafe.Sizeof(*c)) + cap(c.key) + len(c.id) + len(c.plain) + cap(c.metrics)*int(unsafe.Sizeof(metric{})) + cap(c.flags)*16 + c.counts.bytes()
	for i := range c.samples {
		n += c.samples[i].bytes()
	}
	return n + 32
}

// classTable finds classes by their group. Hashes are separate so that a miss touches little memory.
type classTable struct {
	hashes []uint64
	list   []*class
	n      int
}

func (t *classTable) find(hash uint64, key []byte) *class {
	if len(t.hashes) == 0 {
		return nil
	}
	mask := uint64(len(t.hashes) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		c := t.list[i]
		if c == nil {
			return nil
		}
		if t.hashes[i] == hash && c.keyLen == len(key) && bytes.Equal(c.key, key[:len(c.key)]) {
			return c
		}
	}
}

// like finds the class that another worker calls c.
func (t *classTable) like(c *class) *class {
	if len(t.hashes) == 0 {
		return nil
	}
	mask := uint64(len(t.hashes) - 1)
	for i := c.hash & mask; t.list[i] != nil; i = (i + 1) & mask {
		if o := t.list[i]; o.hash == c.hash && o.keyLen == c.keyLen && bytes.Equal(o.key, c.key) {
			return o
		}
	}
	return nil
}

func (t *classTable) insert(c *class) {
	if t.n*2 >= len(t.hashes) {
		old := t.list
		size := max(2*len(old), 256)
		t.hashes, t.list = make([]uint64, size), make([]*class, size)
		for _, c := range old {
			if c != nil {
				t.put(c)
			}
		}
	}
	t.put(c)
	t.n++
}

func (t *classTable) put(c *class) {
	mask := uint64(len(t.hashes) - 1)
	i := c.hash & mask
	for t.list[i] != nil {
		i = (i + 1) & mask
	}
	t.hashes[i], t.list[i] = c.hash, c
}

// all lists the classes.
func (t *classTable) all() []*class {
	out := make([]*class, 0, t.n)
	for _, c := range t.list {
		if c != nil {
			out = append(out, c)
		}
	}
	return out
}

func (t *classTable) clear() { *t = classTable{} }
