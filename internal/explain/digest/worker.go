package digest

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rissodb/risso/internal/sqltext"
)

// groupKind is how events fall into classes.
type groupKind uint8

const (
	groupFingerprint groupKind = iota
	groupDB
	groupUser
	groupHost
	groupTables
	groupAttr
)

// plan is derived from Options: what every worker needs to know.
type plan struct {
	Options
	group   groupKind
	order   order
	orderBy string // what order is called
	seed    maphash.Seed
	since   int64
	until   int64
	apdex   uint64       // micros
	ordered bool         // db and time must be known before an event is judged
	budget  int          // bytes of classes per worker
	extra   atomic.Int64 // bytes of samples beyond keepText of each, of all workers
}

// worker has the figures of the events that one goroutine has read.
type worker struct {
	*plan
	mu      sync.Mutex // held while a block is counted; Each takes it to look
	parser  slowParser
	names   *names
	values  *values
	fp      sqltext.Fingerprinter
	text    []byte
	texts   []byte            // of a stream's event
	groups  map[uint64][]byte // of GroupBy tables: fingerprint's hash → tables
	classes classTable
	// classify numbers the fingerprints; byNumber are their classes, prints the bytes it keeps, about.
	classify sqltext.Classifier
	byNumber []*class
	prints   int
	bytes    int
	touched  []*class // classes with something pending
	reshaped []*class // classes that have a shape
	skipped  map[string]int64
	other    *class // what was folded
	folded   int64
	lacking  uint64 // the most micros that folding may take from one class
	source   int
	ptBytes  int // of statements whose ID of pt-query-digest was worked out though a part of them is kept
	events   int64
	chain    *chain // of the source being read
	seq      int64  // of the block being read
	raw      raw
	event    Event
	server   string
	info     SourceInfo // with Follow: of the one source
}

func newWorker(p *plan) *worker {
	w := &worker{plan: p, names: newNames(), values: newValues(), skipped: make(map[string]int64)}
	w.parser = slowParser{
		names: w.names, zone: p.Location, limit: statementLimit, all: p.Filter != nil || p.group == groupAttr,
		skip:   func(why string, n int64) { w.skipped[why] += n },
		server: func(line []byte) { w.server = serverName(line) },
	}
	return w
}

// serverName is what a log's first line says about the server.
func serverName(line []byte) string {
	s := strings.TrimRight(string(line), "\r\n")
	return strings.TrimSuffix(strings.TrimSuffix(s, " started with:"), ".")
}

// add counts an event.
func (w *worker) add(ev *raw) {
	w.events++
	if !w.Own && IsOwn(ev.query) {
		w.skipped[SkippedOwn]++
		return
	}
	if w.since != 0 || w.until != 0 {
		switch {
		case ev.time == 0:
			w.skipped[skipDateless]++
			return
		case ev.time < w.since || w.until != 0 && ev.time >= w.until:
			w.skipped[skipOutOfTime]++
			return
		}
	}
	if w.Filter != nil && !w.Filter.Keep(w.full(ev)) {
		w.skipped[skipFilter]++
		return
	}
	if w.group == groupFingerprint {
		w.count(w.classOf(ev), ev)
		return
	}
	group, ok := w.groupOf(ev)
	if !ok {
		w.skipped[skipNoGroup]++
		return
	}
	h := maphash.Bytes(w.seed, group)
	c := w.classes.find(h, group)
	if c == nil {
		c = w.newClass(h, group)
	}
	w.count(c, ev)
}

// classOf finds the class of the event's fingerprint.
func (w *worker) classOf(ev *raw) *class {
	n := w.classify.Classify(ev.query)
	if n < len(w.byNumber) {
		if c := w.byNumber[n]; c != nil {
			return c
		}
	}
	w.text = append(w.text[:0], w.classify.Fingerprint(n)...)
	h := maphash.Bytes(w.seed, w.text)
	c := w.classes.find(h, w.text)
	if c == nil {
		c = w.newClass(h, w.text)
	}
	if n >= len(w.byNumber) {
		w.prints += len(w.text) + 100
		if w.prints > w.budget/4 { // the classifier keeps all fingerprints; start over
			w.forget()
			return c
		}
	}
	w.byNumber = grown(w.byNumber, n+1)
	w.byNumber[n] = c
	return c
}

// forget empties the classifier. Classes stay.
func (w *worker) forget() {
	w.classify = sqltext.Classifier{}
	w.byNumber, w.prints = nil, 0
}

// groupOf is the name of the event's class.
func (w *worker) groupOf(ev *raw) ([]byte, bool) {
	switch w.group {
	case groupDB:
		return ev.db, len(ev.db) > 0
	case groupUser:
		return ev.user, len(ev.user) > 0
	case groupHost:
		return ev.host, len(ev.host) > 0
	case groupAttr:
		return w.attrGroup(ev)
	}
	w.text = w.fp.Append(w.text[:0], ev.query)
	return w.tablesGroup(ev)
}

func (w *worker) newClass(h uint64, group []byte) *class {
	if w.bytes > w.budget {
		w.fold()
	}
	c := &class{hash: h, keyLen: len(group), id: sqltext.ClassID(group)}
	c.key = append(c.key, group[:min(len(group), keepText)]...)
	if len(group) > keepText { // of the whole, which is not kept
		c.plain = plainID(group)
	}
	c.metrics = make([]metric, w.names.metrics)
	c.flags = make([][2]uint64, w.names.flags)
	w.classes.insert(c)
	w.bytes += c.bytes()
	return c
}

// count adds an event to its class.
func (w *worker) count(c *class, ev *raw) {
	c.calls++
	q := ev.queryTime
	if ev.gotQuery {
		w.time(c, q)
	}
	if ev.gotLock {
		w.number(c, &c.lock, dimLockTime, ev.lockTime)
	}
	w.number(c, &c.size, dimQuerySize, uint64(len(ev.query)+ev.cut)*micro)
	if len(c.metrics) < w.names.metrics {
		c.metrics = grown(c.metrics, w.names.metrics)
	}
	if len(c.flags) < w.names.flags {
		c.flags = grown(c.flags, w.names.flags)
	}
	if s := ev.shape; s != nil {
		if c.shape != s {
			w.reshape(c, s)
		}
		c.shaped.events++
	}
	for i := range ev.attrs {
		a := &ev.attrs[i]
		switch a.kind {
		case AttrNumber:
			m := &c.metrics[a.at]
			if i >= ev.shaped {
				m.events++
			}
			if a.num != 0 {
				m.add(a.num)
				if b := bucketOf(a.num); !c.counts.bump(uint32(a.dim), b) {
					w.tally(c, uint32(a.dim), b, 1)
				}
			}
		case AttrFlag:
			c.flags[a.at][a.num&1]++
			if i < ev.shaped { // spread counts all as No
				c.flags[a.at][0]--
			}
		case AttrText:
			if !a.ignore {
				w.value(c, uint32(a.dim), ev.text(a))
			}
		}
	}
	w.people(c, ev)
	w.context(c, ev)
	if n := len(c.samples); w.Samples > 0 && (n < w.Samples || q > c.samples[n-1].micros) {
		w.sample(c, ev)
	}
}

// time counts how long an event took.
func (w *worker) time(c *class, q uint64) {
	w.number(c, &c.query, dimQueryTime, q)
	c.hist[histBucket(q)]++
	if q <= w.apdex {
		c.good++
	} else if q <= 4*w.apdex {
		c.fair++
	}
}

// reshape makes s the shape that the class's events are counted under.
func (w *worker) reshape(c *class, s *shape) {
	if c.shape != nil {
		c.spread()
	} else {
		w.reshaped = append(w.reshaped, c)
	}
	c.shape = s
}

// spread makes the figures of all classes whole. Only while a block is counted they are not.
func (w *worker) spread() {
	for _, c := range w.reshaped {
		c.spread()
		c.shape = nil
	}
	w.reshaped = w.reshaped[:0]
}

// people counts user and host.
func (w *worker) people(c *class, ev *raw) {
	if e := ev.who; e != nil {
		if e.userID == 0 {
			e.userID = w.values.id(e.user)
		}
		if e.hostID == 0 {
			e.hostID = w.values.id(e.host)
		}
		if len(e.user) > 0 {
			w.valueID(c, dimUser, e.userID, 1)
		}
		if len(e.host) > 0 {
			w.valueID(c, dimHost, e.hostID, 1)
		}
		return
	}
	if len(ev.user) > 0 {
		w.value(c, dimUser, ev.user)
	}
	if len(ev.host) > 0 {
		w.value(c, dimHost, ev.host)
	}
}

// context counts what may not be known yet: database and time.
func (w *worker) context(c *class, ev *raw) {
	if ev.dbKnown && ev.time != 0 {
		if len(ev.db) > 0 {
			w.value(c, dimDB, ev.db)
		}
		c.seen(ev.time)
		return
	}
	if ev.time == 0 {
		c.pendingTime = true
	} else {
		c.seen(ev.time)
	}
	if !ev.dbKnown {
		c.pendingDB++
	} else if len(ev.db) > 0 {
		w.value(c, dimDB, ev.db)
	}
	if !c.pending {
		c.pending = true
		w.touched = append(w.touched, c)
	}
}

func (w *worker) number(c *class, m *metric, dim uint32, v uint64) {
	m.events++
	if v == 0 {
		return
	}
	m.add(v)
	if b := bucketOf(v); !c.counts.bump(dim, b) {
		w.tally(c, dim, b, 1)
	}
}

func (w *worker) value(c *class, dim uint32, b []byte) { w.valueID(c, dim, w.values.id(b), 1) }

func (w *worker) valueID(c *class, dim, id uint32, n uint64) {
	if n == 1 && c.counts.bump(dim, id) {
		return
	}
	if c.values >= maxClassValues && !c.counts.has(dim, id) {
		id = 0
	}
	if w.tally(c, dim, id, n) {
		c.values++
	}
}

// tally adds to a counter of the class, and to the memory that takes; it reports whether the counter is new.
func (w *worker) tally(c *class, dim, id uint32, n uint64) bool {
	before := c.counts.bytes()
	isNew := c.counts.add(dim, id, n)
	w.bytes += c.counts.bytes() - before
	return isNew
}

// sample keeps the event's statement, and drops the fastest if there are too many.
func (w *worker) sample(c *class, ev *raw) {
	var s sample
	if len(c.samples) >= w.Samples {
		s = c.samples[len(c.samples)-1]
		c.samples = c.samples[:len(c.samples)-1]
	}
	before, extra := s.bytes(), s.extra()
	s.set(ev, w.source, w.sampleLimit(&s, len(ev.query)))
	if s.cut > 0 && ev.cut == 0 && w.group == groupFingerprint && w.ptBytes < ptMemory && (len(c.samples) == 0 || s.micros >= c.samples[0].micros) {
		w.ptBytes += len(ev.query)
		s.pt = sqltext.PtID(string(ev.query)) // the part that is kept has another
	}
	w.bytes += s.bytes() - before
	if n := s.extra() - extra; n != 0 {
		w.extra.Add(int64(n))
	}
	c.offer(s, w.Samples)
}

// settle assigns to what is pending the database and the time that were current where the block began.
func (w *worker) settle(l *lineContext) {
	for _, c := range w.touched {
		if c.pendingDB > 0 && len(l.db) > 0 {
			w.valueID(c, dimDB, w.values.id(l.db), c.pendingDB)
		}
		if c.pendingTime && l.timeKnown {
			c.seen(l.time)
		}
		for i := range c.samples {
			s := &c.samples[i]
			if s.pendingDB {
				s.db, s.pendingDB = append(s.db[:0], l.db...), false
			}
			if s.pendingTime {
				s.time, s.pendingTime = l.time, false
			}
		}
		c.pending, c.pendingDB, c.pendingTime = false, 0, false
	}
	w.touched = w.touched[:0]
}

// fold makes room: the half of the classes with the least Query_time goes into one class, other. A class that
// comes again starts over; what may be missing from it is bounded by lacking.
func (w *worker) fold() {
	w.spread()
	if len(w.touched) > 0 && w.chain != nil {
		l, ok := w.chain.wait(w.seq)
		if !ok {
			return
		}
		w.settle(&l)
	}
	all := w.classes.all()
	slices.SortFunc(all, func(a, b *class) int {
		return cmp.Or(cmp.Compare(b.query.sum.hi, a.query.sum.hi), cmp.Compare(b.query.sum.lo, a.query.sum.lo), cmp.Compare(a.id, b.id))
	})
	keep := len(all) / 2
	if w.other == nil {
		w.other = &class{}
	}
	same := &translation{same: true, to: w}
	w.classes.clear()
	w.byNumber = w.byNumber[:0]
	clear(w.byNumber[:cap(w.byNumber)])
	w.bytes = 0
	for _, c := range all[:keep] {
		w.classes.insert(c)
		w.bytes += c.bytes()
	}
	if keep < len(all) {
		w.lacking += all[keep].query.sum.lo
	}
	for _, c := range all[keep:] {
		w.extra.Add(-int64(c.extra()))
		w.other.mergeFrom(c, same, 0)
		w.folded++
	}
}

// tablesGroup is the list of the statement's tables, as "db.t1, t2"; it is found once per fingerprint.
func (w *worker) tablesGroup(ev *raw) ([]byte, bool) {
	h := maphash.Bytes(w.seed, w.text)
	g, ok := w.groups[h]
	if !ok {
		for i, t := range sqltext.Tables(ev.query) {
			if i > 0 {
				g = append(g, ", "...)
			}
			if t.Schema != "" {
				g = append(append(g, t.Schema...), '.')
			}
			g = append(g, t.Name...)
		}
		if w.groups == nil || len(w.groups) > maxGroups {
			w.groups = make(map[uint64][]byte)
		}
		w.groups[h] = g
	}
	return g, len(g) > 0
}

// maxGroups bounds the fingerprints whose tables are remembered.
const maxGroups = 10_000
