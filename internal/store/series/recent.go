package series

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// What Recent keeps.
const (
	recentLookback = 300_000 // milliseconds that an expression looks back for a value, as the engine has it
	recentSpan     = 900     // seconds of the longest window that is kept; longer ones are asked of the store
	recentSlack    = 10      // seconds kept before a window
	recentCells    = 8 << 20 // values kept at most, in all
	recentIdle     = 600     // seconds after which what nobody asks for is forgotten
)

// Recent answers questions that are asked again each second: what one looked at is kept in memory, and what was appended since is added to it.
// It answers what the store would. Without a call of Update it does not see what is new.
type Recent struct {
	s *Store

	mu    sync.Mutex
	sets  map[string]*recentSet
	cells int
	now   int64
}

// NewRecent makes a Recent that keeps nothing yet.
func NewRecent(s *Store) *Recent { return &Recent{s: s, sets: map[string]*recentSet{}} }

// recentSet is the series that one selector picks.
type recentSet struct {
	matchers []*labels.Matcher
	size     int // seconds that are kept of each series
	window   bool
	parts    map[*instance]*recentPart
	asked    int64
}

// recentPart is what a set has of one instance.
type recentPart struct {
	last   int64 // the newest tick that is in it
	writer *Writer
	descs  int // how many of the writer's series were looked at
	byKey  map[string]*recentSeries
	list   []*recentSeries
}

// recentSeries is the newest values of one series.
type recentSeries struct {
	pos    int // in the writer's rows; -1: it has no such series
	lbls   labels.Labels
	vals   []float64 // by second modulo size
	oldT   int64     // the newest value before those; only without a window
	oldV   float64
	hasOld bool
}

// Queryable is Store.Queryable.
func (r *Recent) Queryable() storage.Queryable { return recentQueryable{r.s.Queryable(), r} }

// Instances are those that have series.
func (r *Recent) Instances() []string { return r.s.Instances() }

// QueryableFor is Store.QueryableFor.
func (r *Recent) QueryableFor(e parser.Expr) storage.Queryable {
	return recentQueryable{r.s.QueryableFor(e), r}
}

type recentQueryable struct {
	storage.Queryable
	r *Recent
}

// Querier implements storage.Queryable.
func (q recentQueryable) Querier(mint, maxt int64) (storage.Querier, error) {
	base, err := q.Queryable.Querier(mint, maxt)
	if err != nil {
		return nil, err
	}
	return recentQuerier{base, q.r}, nil
}

type recentQuerier struct {
	storage.Querier
	r *Recent
}

// Select implements storage.Querier.
func (q recentQuerier) Select(ctx context.Context, sortSeries bool, h *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	if h == nil || h.Func == "series" || h.Limit > 0 {
		return q.Querier.Select(ctx, sortSeries, h, matchers...)
	}
	size, window := 0, false
	switch span := h.End - h.Start; {
	case h.Range == 0 && span < recentLookback:
		size = recentSlack
	case h.Range > 0 && span < h.Range && h.Range <= recentSpan*1000:
		size, window = int(h.Range/1000)+recentSlack, true
	default: // several moments, or a long window
		return q.Querier.Select(ctx, sortSeries, h, matchers...)
	}
	set := q.r.selected(ctx, size, window, h.Start, h.End, matchers)
	if set == nil {
		return q.Querier.Select(ctx, sortSeries, h, matchers...)
	}
	if sortSeries {
		slices.SortFunc(set.list, func(a, b *recentCopy) int { return labels.Compare(a.lbls, b.lbls) })
	}
	return set
}

// selected returns the samples of a selector, all from start to end or, without a window, the newest of each series; nil: they are not kept.
func (r *Recent) selected(ctx context.Context, size int, window bool, start, end int64, matchers []*labels.Matcher) *recentAnswer {
	from, to := seconds(start, end)
	if from >= to {
		return nil
	}
	var key strings.Builder
	key.WriteString(strconv.Itoa(size) + strconv.FormatBool(window))
	for _, m := range matchers {
		key.WriteByte(0)
		key.WriteString(m.String())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	set := r.sets[key.String()]
	if set == nil {
		if r.now == 0 || r.cells > recentCells {
			return nil
		}
		set = &recentSet{matchers: matchers, size: size, window: window, parts: map[*instance]*recentPart{}}
		for _, in := range r.s.all() {
			if err := r.fill(ctx, set, in); err != nil {
				return nil
			}
		}
		r.sets[key.String()] = set
	}
	set.asked = r.now
	out := &recentAnswer{}
	for _, in := range r.s.all() { // in the store's order
		p := set.parts[in]
		if p == nil || p.last == math.MinInt64 {
			continue
		}
		if window && p.last-int64(size) >= from || to-1 < p.last-int64(size) { // it is about an older moment
			return nil
		}
		for _, s := range p.list {
			if c := s.copy(p.last, int64(size), from, to, window); c != nil {
				out.list = append(out.list, c)
			}
		}
	}
	return out
}

// fill reads what the store has of an instance for a set, up to its newest tick.
func (r *Recent) fill(ctx context.Context, set *recentSet, in *instance) error {
	in.mu.RLock()
	last := in.last
	in.mu.RUnlock()
	if p := set.parts[in]; p != nil {
		r.cells -= len(p.list) * set.size
	}
	p := &recentPart{last: last, byKey: map[string]*recentSeries{}}
	set.parts[in] = p
	if last == math.MinInt64 || !in.allowed(set.matchers) {
		return nil
	}
	back := int64(set.size)
	if !set.window {
		back = recentLookback / 1000
	}
	q := &querier{s: r.s, mint: (last - back) * 1000, maxt: last * 1000}
	defer q.Close()
	from, to := seconds(q.mint, q.maxt)
	sp := &span{q: q, in: in, from: from, to: to, hours: in.hoursWithin(from, to)}
	var it chunkenc.Iterator
	for _, d := range in.selected(from, to, set.matchers) {
		if err := ctx.Err(); err != nil {
			delete(set.parts, in)
			return err
		}
		s := p.add(in, d, set.size)
		it = (&selectedSeries{span: sp, key: d.key, lbls: s.lbls}).Iterator(it)
		for it.Next() != chunkenc.ValNone {
			t, v := it.At()
			if t /= 1000; t > last-int64(set.size) {
				s.vals[t%int64(set.size)] = v
			} else if !set.window {
				s.oldT, s.oldV, s.hasOld = t, v, true
			}
		}
	}
	r.cells += len(p.list) * set.size
	return nil
}

func (p *recentPart) add(in *instance, d *seriesID, size int) *recentSeries {
	s := &recentSeries{pos: -1, lbls: in.labels(d), vals: make([]float64, size)}
	for i := range s.vals {
		s.vals[i] = math.NaN()
	}
	p.byKey[d.key] = s
	p.list = append(p.list, s)
	return s
}

// Update takes over what was appended until now, in Unix seconds, and forgets what was not asked for lately.
func (r *Recent) Update(ctx context.Context, now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = now
	for key, set := range r.sets {
		if now-set.asked > recentIdle || now < set.asked {
			for _, p := range set.parts {
				r.cells -= len(p.list) * set.size
			}
			delete(r.sets, key)
		}
	}
	for _, in := range r.s.all() {
		for _, set := range r.sets {
			p := set.parts[in]
			if p == nil || !r.follow(set, p, in) {
				if err := r.fill(ctx, set, in); err != nil {
					return
				}
			}
		}
	}
}

// follow adds the ticks after the newest that a part has; false: they are not all in memory.
func (r *Recent) follow(set *recentSet, p *recentPart, in *instance) bool {
	in.mu.RLock()
	defer in.mu.RUnlock()
	if in.last == p.last {
		return true
	}
	if in.last < p.last || in.last-p.last > int64(set.size) || p.last == math.MinInt64 {
		return false
	}
	if in.writer == nil || p.writer != nil && p.writer != in.writer {
		return false // another writer began another row, and may have begun the same minute a second time
	}
	if p.writer != in.writer || p.descs != len(in.descs) {
		if !in.allowed(set.matchers) {
			p.last = in.last
			return true
		}
		r.resolve(set, p, in)
	}
	for t := p.last + 1; t <= in.last; t++ {
		row, there := in.rowAt(t)
		if !there {
			return false
		}
		for _, s := range p.list {
			s.push(t, int64(set.size), row, !set.window)
		}
	}
	p.last = in.last
	return true
}

// rowAt is the row of a second; nil: there was no tick; false: that is not in memory any more. The caller holds mu.
func (in *instance) rowAt(t int64) ([]float64, bool) {
	start := floorTo(t, minuteSeconds)
	m := in.cur
	if m == nil || m.start != start {
		m = nil
		for _, p := range in.pending {
			if p.start == start {
				m = p.minute
			}
		}
	}
	if m == nil {
		return nil, false
	}
	if m.ticks>>(t-start)&1 == 0 {
		return nil, true
	}
	return m.rows[t-start], true
}

// resolve finds the series of a writer that a set picks. The caller holds mu.
func (r *Recent) resolve(set *recentSet, p *recentPart, in *instance) {
	if p.writer != in.writer {
		p.writer, p.descs = in.writer, 0
		for _, s := range p.list {
			s.pos = -1
		}
	}
	for _, d := range in.filter(in.descs[p.descs:], set.matchers) {
		s := p.byKey[d.key]
		if s == nil {
			s = p.add(in, d, set.size)
			r.cells += set.size
		}
		s.pos = in.pos[d.key]
	}
	p.descs = len(in.descs)
}

// push takes the value of a second.
func (s *recentSeries) push(t, size int64, row []float64, keepOld bool) {
	at := t % size
	if old := s.vals[at]; keepOld && old == old {
		s.oldT, s.oldV, s.hasOld = t-size, old, true
	}
	s.vals[at] = math.NaN()
	if s.pos >= 0 && s.pos < len(row) {
		s.vals[at] = row[s.pos]
	}
}

// copy is what a series has from from on and before to; nil: nothing. Without a window it is the newest.
func (s *recentSeries) copy(last, size, from, to int64, window bool) *recentCopy {
	end := min(to-1, last)
	if !window {
		for t := end; t > last-size && t >= from; t-- {
			if v := s.vals[t%size]; v == v {
				return &recentCopy{lbls: s.lbls, first: t, vals: []float64{v}}
			}
		}
		if s.hasOld && s.oldT >= from && s.oldT < to {
			return &recentCopy{lbls: s.lbls, first: s.oldT, vals: []float64{s.oldV}}
		}
		return nil
	}
	begin := max(from, last-size+1)
	if begin > end {
		return nil
	}
	c := &recentCopy{lbls: s.lbls, first: begin, vals: make([]float64, 0, end-begin+1)}
	any := false
	for t := begin; t <= end; t++ {
		v := s.vals[t%size]
		any = any || v == v
		c.vals = append(c.vals, v)
	}
	if !any {
		return nil
	}
	return c
}

// recentAnswer is the answer to a selector.
type recentAnswer struct {
	seriesSet
	list []*recentCopy
	at   int
}

// Next and At implement storage.SeriesSet.
func (a *recentAnswer) Next() bool         { a.at++; return a.at <= len(a.list) }
func (a *recentAnswer) At() storage.Series { return a.list[a.at-1] }

// recentCopy is samples of a series, by the second.
type recentCopy struct {
	lbls  labels.Labels
	first int64
	vals  []float64
}

// Labels implements storage.Series.
func (c *recentCopy) Labels() labels.Labels { return c.lbls }

// Iterator implements storage.Series.
func (c *recentCopy) Iterator(old chunkenc.Iterator) chunkenc.Iterator {
	it, ok := old.(*recentIterator)
	if !ok {
		it = new(recentIterator)
	}
	it.c, it.at = c, -1
	return it
}

type recentIterator struct {
	c  *recentCopy
	at int
}

// Next implements chunkenc.Iterator.
func (it *recentIterator) Next() chunkenc.ValueType {
	for it.at++; it.at < len(it.c.vals); it.at++ {
		if v := it.c.vals[it.at]; v == v {
			return chunkenc.ValFloat
		}
	}
	return chunkenc.ValNone
}

// Seek implements chunkenc.Iterator.
func (it *recentIterator) Seek(t millis) chunkenc.ValueType {
	sec := (max(t, 0) + 999) / 1000
	if it.at >= 0 && it.at < len(it.c.vals) && it.c.first+int64(it.at) >= sec {
		return chunkenc.ValFloat
	}
	it.at = max(it.at, int(min(max(sec-it.c.first, 0), int64(len(it.c.vals))))-1)
	return it.Next()
}

// At implements chunkenc.Iterator.
func (it *recentIterator) At() (int64, float64) { return it.AtT(), it.c.vals[it.at] }

// AtT implements chunkenc.Iterator.
func (it *recentIterator) AtT() int64 { return (it.c.first + int64(it.at)) * 1000 }

// AtST implements chunkenc.Iterator; there are no start times.
func (it *recentIterator) AtST() int64 { return 0 }

// AtHistogram implements chunkenc.Iterator; there are no histograms.
func (it *recentIterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	return it.AtT(), nil
}

// AtFloatHistogram implements chunkenc.Iterator; there are no histograms.
func (it *recentIterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return it.AtT(), nil
}

// Err implements chunkenc.Iterator.
func (it *recentIterator) Err() error { return nil }
