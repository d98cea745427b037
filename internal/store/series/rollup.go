package series

import (
	"encoding/binary"
	"math"
	"slices"
)

// rollup is what an hour of a series looked like: of the rate a second for a counter, of the
// value for a gauge. Only pairs of ticks within the hour count; what happened between
// two hours is added by whoever joins them.
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

// quantiles gives minimum, 5th, 50th and 95th percentile (nearest rank) and maximum of v.
// It changes the order of v only when v is short.
type quantiler struct {
	counts [512]uint32
	gather []float64
	spare  []float64
}

// rank is the index of the nearest-rank percentile in n sorted values.
func rank(percent, n int) int { return (percent*n+99)/100 - 1 }

func (q *quantiler) band(v []float64) (b [5]float64) {
	n := len(v)
	ranks := [3]int{rank(5, n), rank(50, n), rank(95, n)}
	if n <= 48 {
		slices.Sort(v)
		return [5]float64{v[0], v[ranks[0]], v[ranks[1]], v[ranks[2]], v[n-1]}
	}
	lo, hi := v[0], v[0]
	for _, x := range v {
		lo, hi = min(lo, x), max(hi, x)
	}
	b[bandMin], b[bandMax] = lo, hi
	for i, r := range ranks {
		b[bandP5+i] = lo
		if lo != hi {
			b[bandP5+i] = q.pick(v, lo, hi, r, i == 0)
		}
	}
	return b
}

// pick finds the value of a rank: it counts values into bins, takes the bin that holds the
// rank, and goes on within it.
func (q *quantiler) pick(v []float64, lo, hi float64, r int, count bool) float64 {
	f := float64(len(q.counts)-1) / (hi - lo)
	if math.IsInf(f, 0) || f == 0 || math.IsInf(hi-lo, 0) {
		q.spare = append(q.spare[:0], v...)
		slices.Sort(q.spare)
		return q.spare[r]
	}
	if count {
		clear(q.counts[:])
		for _, x := range v {
			q.counts[uint((x-lo)*f)&511]++
		}
	}
	bin, before := 0, 0
	for before+int(q.counts[bin]) <= r {
		before += int(q.counts[bin])
		bin++
	}
	if cap(q.gather) < len(v) {
		q.gather = make([]float64, 0, max(len(v), hourSeconds))
	}
	g := q.gather[:0]
	glo, ghi := math.Inf(1), math.Inf(-1)
	for _, x := range v {
		if int((x-lo)*f) == bin {
			g = append(g, x)
			glo, ghi = min(glo, x), max(ghi, x)
		}
	}
	if glo == ghi {
		return glo
	}
	slices.Sort(g)
	return g[r-before]
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

// rollup gives the rollup of a varying column as rates or values.
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
