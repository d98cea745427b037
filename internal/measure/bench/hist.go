package bench

import (
	"math"
	"math/bits"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range of the histograms, in nanoseconds, and their precision: two digits are 1 %.
const (
	shortest = 1
	longest  = int64(time.Hour)
	figures  = 2

	half  = 128                     // cells of one power of two
	slots = (42 - 8 + 1 + 1) * half // longest has 42 bits
)

// hist counts durations with the cells of an HdrHistogram of two digits, so that it can be handed on as one. This is not
// a library because sessions hand a histogram over each second: it knows which cells are in use, so that adding it to
// another and clearing it take microseconds. It also keeps exactly what cells only have to 1 %.
type hist struct {
	counts   []int64
	lo, hi   int // cells in use: lo ≤ i < hi
	n        int64
	sum, sq  float64
	min, max int64
}

func newHist() *hist { return &hist{counts: make([]int64, slots), lo: slots} }

// cell returns the cell of a duration of at most longest. Source: the layout of HdrHistogram's counts.
func cell(v int64) int {
	if v < 2*half {
		return int(max(v, 0))
	}
	e := bits.Len64(uint64(v)) - 8
	return e*half + int(v>>e)
}

// top returns the largest duration of a cell.
func top(i int) int64 {
	if i < 2*half {
		return int64(i)
	}
	e := i/half - 1
	return (int64(i-e*half)+1)<<e - 1
}

// add counts one duration.
func (h *hist) add(v int64) { h.addMany(v, 1) }

// addMany counts n equal durations.
func (h *hist) addMany(v, n int64) {
	i := cell(min(v, longest))
	h.counts[i] += n
	if i < h.lo {
		h.lo = i
	}
	if i >= h.hi {
		h.hi = i + 1
	}
	if h.n == 0 || v < h.min {
		h.min = v
	}
	if v > h.max {
		h.max = v
	}
	h.n += n
	f, many := float64(v), float64(n)
	h.sum += f * many
	h.sq += f * f * many
}

// merge adds all that another has.
func (h *hist) merge(o *hist) {
	if o.n == 0 {
		return
	}
	for i, n := range o.counts[o.lo:o.hi] {
		h.counts[o.lo+i] += n
	}
	if h.n == 0 || o.min < h.min {
		h.min = o.min
	}
	h.lo, h.hi, h.max = min(h.lo, o.lo), max(h.hi, o.hi), max(h.max, o.max)
	h.n += o.n
	h.sum += o.sum
	h.sq += o.sq
}

// clear empties it.
func (h *hist) clear() {
	if h.n > 0 {
		clear(h.counts[h.lo:h.hi])
		*h = hist{counts: h.counts, lo: slots}
	}
}

// at returns the duration that p percent did not exceed: at most 1 % too long, and never more than the longest.
func (h *hist) at(p float64) int64 {
	if h.n == 0 {
		return 0
	}
	want := max(int64(math.Ceil(p/100*float64(h.n)-1e-9)), 1)
	for i := h.lo; i < h.hi; i++ {
		if want -= h.counts[i]; want <= 0 {
			return min(max(top(i), h.min), h.max)
		}
	}
	return h.max
}

// latency returns the figures of a result.
func (h *hist) latency(wanted []float64) Latency {
	l := Latency{Percentiles: []Percentile{}}
	if h.n == 0 {
		return l
	}
	l.Min, l.Max, l.Avg = float64(h.min)/1e9, float64(h.max)/1e9, h.sum/float64(h.n)/1e9
	if h.n > 1 {
		l.Stddev = math.Sqrt(max(0, (h.sq-h.sum*h.sum/float64(h.n))/float64(h.n-1))) / 1e9
	}
	for _, p := range wanted {
		l.Percentiles = append(l.Percentiles, Percentile{Percentile: p, Seconds: float64(h.at(p)) / 1e9})
	}
	return l
}

// encode writes it as an HdrHistogram: V2, compressed, base64.
func (h *hist) encode() (string, error) {
	b, err := hdrhistogram.Import(&hdrhistogram.Snapshot{
		LowestTrackableValue: shortest, HighestTrackableValue: longest, SignificantFigures: figures, Counts: h.counts,
	}).Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	return string(b), err
}
