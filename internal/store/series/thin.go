package series

import (
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// A rate over an hour is determined by its first and last sample and by those on both sides of a reset; the engine would walk
// over the 3,600. What follows leaves out the samples between, and only where the answer stays the same to the last bit:
//
//   - rate and increase add up prev for every cur < prev, and take last - first. A window that keeps its first sample, its
//     last one and both sides of every reset gives the same sum, in the same order.
//   - They extrapolate to a window's edge when the sample there is nearer than 1.1 times the mean distance of samples. That
//     distance is a second at least, and grows when samples are left out: a window with a sample within one second of
//     either edge is extrapolated to both, thinned or not. Any other window keeps all its samples.

// thinFrom is the shortest step, in milliseconds, that is worth it, and thinRange the longest window that is read ahead for.
const (
	thinFrom  = 8_000
	thinRange = daySeconds * 1000
)

// QueryableFor is Queryable for one expression. It may leave out samples that cannot change what the expression returns.
func (s *Store) QueryableFor(expr parser.Expr) storage.Queryable {
	thin := true
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		// Within a subquery the windows end where its own steps are, and the engine does not say where that is.
		if _, sub := n.(*parser.SubqueryExpr); sub {
			thin = false
		}
		if v, ok := n.(*parser.VectorSelector); ok && (v.Anchored || v.Smoothed) {
			thin = false
		}
		return nil
	})
	return queryable{s, thin}
}

// windows are the ranges that a rate is computed over: (end-length, end] for every end from first to last by step; milliseconds.
type windows struct {
	first, last, step, length int64
}

// windowsOf tells the windows of a selector from the engine's hints, if thinning may be used at all.
func windowsOf(h *storage.SelectHints) *windows {
	if h == nil || h.Range <= 0 || h.Range > thinRange || h.Func != "rate" && h.Func != "increase" {
		return nil
	}
	// The engine selects from the first window's start, which is exclusive, plus 1 ms.
	w := &windows{first: h.Start - 1 + h.Range, last: h.End, step: h.Step, length: h.Range}
	if w.step <= 0 {
		w.step = max(w.last-w.first, 0) + 1
	}
	if w.step < thinFrom && w.last > w.first || w.first-w.length < 0 {
		return nil
	}
	return w
}

// stretch is a window in whole seconds, both included; dense if there is a sample at either end.
type stretch struct {
	lo, hi int64
	dense  bool
}

type hourVals struct {
	hour int64
	vals [hourSeconds]float64
}

// thinIterator walks over the samples of a series that its windows need.
type thinIterator struct {
	s      *selectedSeries
	c      cursor
	next   int         // index in s.hours of the hour to be read next
	ahead  []*hourVals // hours read and not yet thinned, ascending
	free   []*hourVals
	end    int64     // of the next window that is not in active
	active []stretch // windows that reach into the current hour
	prev   float64   // the sample before the current hour; NaN for none

	ts []int64 // what is left of the current hour
	vs []float64
	at int
}

// reset makes the iterator ready for a series.
func (it *thinIterator) reset(s *selectedSeries) {
	it.c.close()
	it.c.open(s.in, s.key, s.from)
	it.free = append(it.free, it.ahead...)
	it.s, it.next, it.ahead, it.active = s, 0, it.ahead[:0], it.active[:0]
	it.end, it.prev = s.win.first, math.NaN()
	it.ts, it.vs, it.at = it.ts[:0], it.vs[:0], -1
}

func (it *thinIterator) close() { it.c.close() }

// Next implements chunkenc.Iterator.
func (it *thinIterator) Next() chunkenc.ValueType {
	it.at++
	for it.at >= len(it.ts) {
		if !it.hour() {
			return chunkenc.ValNone
		}
		it.at = 0
	}
	return chunkenc.ValFloat
}

// Seek implements chunkenc.Iterator.
func (it *thinIterator) Seek(t millis) chunkenc.ValueType {
	it.at = max(it.at, 0)
	for len(it.ts) == 0 || it.ts[len(it.ts)-1] < t {
		if !it.hour() {
			it.at = len(it.ts)
			return chunkenc.ValNone
		}
		it.at = 0
	}
	i, _ := slices.BinarySearch(it.ts[it.at:], t)
	it.at += i
	return chunkenc.ValFloat
}

// hour thins the next hour that any window needs.
func (it *thinIterator) hour() bool {
	it.ts, it.vs = it.ts[:0], it.vs[:0]
	if len(it.ahead) == 0 && !it.read(true) {
		return false
	}
	h := it.ahead[0]
	var keep [hourSeconds]bool
	it.mark(&keep, h)
	it.ahead = append(it.ahead[:0], it.ahead[1:]...)
	it.free = append(it.free, h)
	from, to := max(it.s.from-h.hour, 0), min(it.s.to-h.hour, hourSeconds)
	prev, before := it.prev, -1
	for i := from; i < to; i++ {
		v := h.vals[i]
		if v != v {
			continue
		}
		if v < prev { // a reset: the engine needs both sides
			keep[i] = true
			if before >= 0 {
				keep[before] = true
			}
		}
		prev, before = v, int(i)
	}
	if before >= 0 { // the next hour may begin with a reset
		keep[before] = true
		it.prev = prev
	}
	for i := from; i < to; i++ {
		if v := h.vals[i]; keep[i] && v == v {
			it.ts = append(it.ts, (h.hour+i)*1000)
			it.vs = append(it.vs, v)
		}
	}
	return true
}

// mark marks what the windows that reach into an hour need of it.
func (it *thinIterator) mark(keep *[hourSeconds]bool, h *hourVals) {
	w := it.s.win
	for ; it.end <= w.last; it.end += w.step {
		a := stretch{lo: (it.end-w.length)/1000 + 1, hi: it.end / 1000}
		if a.lo >= h.hour+hourSeconds {
			break
		}
		if a.hi >= h.hour {
			a.dense = it.present(a.lo) && it.present(a.hi)
			it.active = append(it.active, a)
		}
	}
	done := int64(0) // all seconds before it that have to be marked are
	left := it.active[:0]
	for _, a := range it.active {
		lo, hi := a.lo-h.hour, a.hi-h.hour
		if a.dense {
			if lo >= 0 {
				keep[lo] = true
			}
			if hi < hourSeconds {
				keep[hi] = true
			}
		} else {
			for i := max(lo, done); i <= min(hi, hourSeconds-1); i++ {
				keep[i] = true
			}
			done = max(done, min(hi+1, hourSeconds))
		}
		if hi >= hourSeconds {
			left = append(left, a)
		}
	}
	it.active = left
}

// present reports whether there is a sample at a second of the current hour or a later one.
func (it *thinIterator) present(sec int64) bool {
	hour := floorTo(sec, hourSeconds)
	for it.ahead[len(it.ahead)-1].hour < hour {
		if !it.read(false) {
			return false
		}
	}
	for _, h := range it.ahead {
		if h.hour == hour {
			v := h.vals[sec-hour]
			return v == v
		}
	}
	return false
}

// read reads one more hour ahead; it may pass over hours that no window reaches into.
func (it *thinIterator) read(skip bool) bool {
	w := it.s.win
	for it.next < len(it.s.hours) {
		hour := it.s.hours[it.next]
		it.next++
		if skip && len(it.active) == 0 {
			for it.end <= w.last && it.end/1000 < hour {
				it.end += w.step
			}
			if it.end > w.last {
				return false
			}
			if (it.end-w.length)/1000+1 >= hour+hourSeconds {
				continue
			}
		}
		if !it.c.hour(hour) {
			continue
		}
		h := &hourVals{}
		if n := len(it.free); n > 0 {
			h, it.free = it.free[n-1], it.free[:n-1]
		}
		h.hour = hour
		copy(h.vals[:], it.c.vals[1:])
		it.ahead = append(it.ahead, h)
		return true
	}
	return false
}

// At implements chunkenc.Iterator.
func (it *thinIterator) At() (int64, float64) { return it.ts[it.at], it.vs[it.at] }

// AtT implements chunkenc.Iterator.
func (it *thinIterator) AtT() int64 { return it.ts[it.at] }

// AtST implements chunkenc.Iterator; there are no start times.
func (it *thinIterator) AtST() int64 { return 0 }

// AtHistogram implements chunkenc.Iterator; there are no histograms.
func (it *thinIterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	return it.AtT(), nil
}

// AtFloatHistogram implements chunkenc.Iterator; there are no histograms.
func (it *thinIterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return it.AtT(), nil
}

// Err implements chunkenc.Iterator.
func (it *thinIterator) Err() error { return nil }
