package series

import (
	"encoding/binary"
	"math"
	"slices"
)

// rollup is what an hour of a series looked like: of the rate a second for a counter, of the
// value for a gauge. Only pairs of ticks within the hour count; what happened between
// two hours is added when they are joined.
type rollup struct {
	n       int // how many rates or values
	trusted int // how many of them no late tick touches; the extremes are of these
	sum     float64
	band    [5]float64 // min, p5, p50, p95, max
}

const (
	bandMin = iota
	bandP5
	bandP50
	bandP95
	bandMax
)

// binCount is how many bins values are counted into before those of the bins that matter are looked at.
const binCount = 512

// quantiler finds percentiles; it is used by one goroutine at a time.
type quantiler struct {
	counts [binCount]uint32
	wanted [binCount]uint8 // bit i: the bin holds the rank of percentile i
	gather [3][]float64
}

// rank is the index of the nearest-rank percentile in n sorted values.
func rank(percent, n int) int { return (percent*n+99)/100 - 1 }

// band returns minimum, 5th, 50th and 95th percentile (nearest rank) and maximum of v, of which there is at least one.
// It may change the order of v.
func (q *quantiler) band(v []float64) (b [5]float64) {
	n := len(v)
	ranks := [3]int{rank(5, n), rank(50, n), rank(95, n)}
	if n <= 48 {
		slices.Sort(v)
		return [5]float64{v[0], v[ranks[0]], v[ranks[1]], v[ranks[2]], v[n-1]}
	}
	lo, hi := v[0], v[0]
	for _, x := range v {
		if x < lo {
			lo = x
		}
		if x > hi {
			hi = x
		}
	}
	if lo == hi {
		return [5]float64{lo, lo, lo, lo, lo}
	}
	b[bandMin], b[bandMax] = lo, hi
	f := float64(binCount-1) / (hi - lo)
	if math.IsInf(f, 0) || f == 0 {
		for i, r := range ranks {
			b[bandP5+i] = selectRank(v, r)
		}
		return b
	}
	before := q.count(v, lo, f, ranks)
	for i, r := range ranks {
		g := q.gather[i]
		b[bandP5+i] = selectRank(g, r-before[i])
	}
	return b
}

// count puts the values of the bins that hold the ranks into gather, and says how many values are in lower bins.
func (q *quantiler) count(v []float64, lo, f float64, ranks [3]int) (before [3]int) {
	clear(q.counts[:])
	for _, x := range v {
		q.counts[uint((x-lo)*f)%binCount]++
	}
	var bins [3]int
	bin, sum := 0, 0
	for i, r := range ranks {
		for sum+int(q.counts[bin]) <= r {
			sum += int(q.counts[bin])
			bin++
		}
		bins[i], before[i] = bin, sum
	}
	for i, bin := range bins {
		q.wanted[bin] |= 1 << i
		if n := int(q.counts[bin]); cap(q.gather[i]) < n {
			q.gather[i] = make([]float64, 0, n+n/2)
		}
		q.gather[i] = q.gather[i][:0]
	}
	for _, x := range v {
		if w := q.wanted[uint((x-lo)*f)%binCount]; w != 0 {
			for i := range q.gather {
				if w>>i&1 != 0 {
					q.gather[i] = append(q.gather[i], x)
				}
			}
		}
	}
	for _, bin := range bins {
		q.wanted[bin] = 0
	}
	return before
}

// selectRank finds the value that would be at index r if v were sorted; it changes the order of v.
func selectRank(v []float64, r int) float64 {
	for len(v) > 16 {
		a, m, b := v[0], v[len(v)/2], v[len(v)-1]
		pivot := max(min(a, m), min(max(a, m), b))
		// Less than the pivot to the left, more to the right, equal ones between.
		lt, i, gt := 0, 0, len(v)
		for i < gt {
			switch x := v[i]; {
			case x < pivot:
				v[lt], v[i] = x, v[lt]
				lt++
				i++
			case x > pivot:
				gt--
				v[gt], v[i] = x, v[gt]
			default:
				i++
			}
		}
		switch {
		case r < lt:
			v = v[:lt]
		case r >= gt:
			v, r = v[gt:], r-gt
		default:
			return pivot
		}
	}
	slices.Sort(v)
	return v[r]
}

// rollupOf computes the rollup of an hour's column. vals are its values where p says.
// Values are in units of the scale when they are integers that floats hold exactly.
func (q *quantiler) rollupOf(vals []float64, p, late runs, t Type, work []float64) (rollup, []float64) {
	var r rollup
	work = work[:0]
	i := 0
	for _, x := range p {
		for k := 0; k < int(x.n); k, i = k+1, i+1 {
			v := vals[i]
			if t == Counter {
				if k == 0 || vals[i] < vals[i-1] {
					continue
				}
				v -= vals[i-1]
			}
			if v != v { // infinity less infinity
				continue
			}
			r.n++
			r.sum += v
			if s := int(x.from) + k; t == Counter && len(late) > 0 && (late.has(s) || late.has(s-1)) {
				continue
			}
			work = append(work, v)
		}
	}
	if r.trusted = len(work); r.trusted > 0 {
		r.band = q.band(work)
	}
	return r, work
}

// appendRollup writes a rollup. Where all parts are integers (in units of the column's scale) they are
// written as such, the extremes as distances; else as floats.
func appendRollup(b []byte, r rollup, wide bool) []byte {
	b = binary.AppendUvarint(b, uint64(r.n))
	b = binary.AppendUvarint(b, uint64(r.n-r.trusted))
	if wide {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.sum))
		for _, v := range r.band {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		return b
	}
	lo := int64(r.band[bandMin])
	b = appendZigzag(b, lo)
	b = appendZigzag(b, int64(r.sum)-lo*int64(r.n))
	for i := bandP5; i <= bandMax; i++ {
		b = binary.AppendUvarint(b, uint64(int64(r.band[i])-int64(r.band[i-1])))
	}
	return b
}

// rollup reads one, in the units it was written in.
func (in *input) rollup(wide bool) (r rollup) {
	r.n = in.length(hourSeconds)
	r.trusted = r.n - in.length(r.n)
	if wide {
		r.sum = math.Float64frombits(in.u64())
		for i := range r.band {
			r.band[i] = math.Float64frombits(in.u64())
		}
		return r
	}
	lo := in.varint()
	r.sum = float64(in.varint() + lo*int64(r.n))
	for i := range r.band {
		if i > bandMin {
			lo += int64(in.uvarint())
		}
		r.band[i] = float64(lo)
	}
	return r
}

// rollup returns the rollup of a varying column as rates or values.
func (e *entry) rollup() rollup {
	r := e.unit
	if e.wide || e.scale == 0 {
		return r
	}
	r.sum /= pow10[e.scale]
	for i := range r.band {
		r.band[i] /= pow10[e.scale]
	}
	return r
}
