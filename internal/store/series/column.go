package series

import (
	"math"
	"math/bits"
	"slices"
)

// hourEncoder turns the columns of one hour into entries and chunks. It remembers columns that
// others may be derived from: counters of one cause move together.
type hourEncoder struct {
	enc   *encoder
	quant quantiler
	hour  *hourInfo
	bases []base // columns of this hour that are independent
	ints  []int64
	rest  []int64
	own   []byte
	work  []float64
	units []float64
}

// base is a column that others can refer to.
type base struct {
	index  int // in the schema
	pres   int
	x      []int64
	sample [sampleDeltas]int64
}

// Reference search: this many deltas are compared, and this many bases at the most looked at.
const (
	sampleDeltas = 64
	maxBases     = 512
	minReference = 24 // bytes of a chunk below which a reference is not worth a second decode
)

// begin starts an hour. late and ticks are complete; presences are added as columns come.
func (h *hourEncoder) begin(info *hourInfo) {
	h.hour = info
	h.bases = h.bases[:0]
}

func (h *hourEncoder) presence(p runs) int {
	if p.equal(h.hour.ticks) {
		return 0
	}
	for i, q := range h.hour.pres {
		if q.equal(p) {
			return i + 1
		}
	}
	h.hour.pres = append(h.hour.pres, slices.Clone(p))
	return len(h.hour.pres)
}

// column encodes the values of the series at index, present at p. The chunk is valid until the next call.
func (h *hourEncoder) column(index int, t Type, vals []float64, p runs) (entry, []byte) {
	if len(vals) == 0 {
		return entry{ref: -1}, nil
	}
	e := entry{kind: columnConstant, ref: -1, gcd: 1, pres: h.presence(p)}
	h.ints, e.scale = toInts(h.ints[:0], vals)
	x := h.ints
	e.first, e.last = x[0], x[len(x)-1]
	for _, v := range x {
		if v != e.first {
			e.kind = columnVarying
			break
		}
	}
	if e.kind == columnConstant {
		return e, nil
	}
	h.rollup(&e, t, vals, x, p)
	e.gcd = divisor(x)
	h.rest = slices.Grow(h.rest[:0], len(x))[:len(x)]
	y := h.rest
	for i, v := range x {
		y[i] = (v - e.first) / e.gcd
	}
	chunk := h.enc.chunk(y)
	if len(chunk) >= minReference {
		var referred bool
		if chunk, referred = h.byReference(&e, x, chunk); referred {
			e.size = len(chunk)
			return e, chunk
		}
		if len(h.bases) < maxBases {
			h.bases = append(h.bases, h.newBase(index, e.pres, x))
		}
	}
	e.size = len(chunk)
	return e, chunk
}

func (h *hourEncoder) rollup(e *entry, t Type, vals []float64, x []int64, p runs) {
	const exact = 1 << 53
	e.wide = e.scale == floatScale
	h.units = h.units[:0]
	for _, v := range x {
		e.wide = e.wide || v >= exact || v <= -exact
		h.units = append(h.units, float64(v))
	}
	if !e.wide {
		e.unit, h.work = h.quant.rollupOf(h.units, p, h.hour.late, t, h.work)
		limit := math.Abs(e.unit.sum)
		if t == Gauge {
			limit = max(math.Abs(e.unit.band[bandMin]), math.Abs(e.unit.band[bandMax])) * float64(len(x))
		}
		e.wide = limit >= exact
	}
	if e.wide {
		e.unit, h.work = h.quant.rollupOf(vals, p, h.hour.late, t, h.work)
	}
}

// divisor is the greatest common divisor of all distances from the first value; pages of 16 KiB count in 16384ths.
func divisor(x []int64) int64 {
	g := uint64(0)
	for _, v := range x {
		d := v - x[0]
		if (v > x[0]) != (d > 0) { // overflow
			return 1
		}
		for a := uint64(max(d, -d)); a != 0; {
			g, a = a, g%a
		}
		if g == 1 {
			return 1
		}
	}
	if g == 0 || g > math.MaxInt64 {
		return 1
	}
	return int64(g)
}

func (h *hourEncoder) newBase(index, pres int, x []int64) base {
	b := base{index: index, pres: pres, x: slices.Clone(x)}
	b.sample = sampleOf(x)
	return b
}

// sampleOf takes deltas from all over a column, in short stretches.
func sampleOf(x []int64) (s [sampleDeltas]int64) {
	n := len(x) - 1
	for i := range s {
		at := i
		if n > sampleDeltas {
			at = i * n / sampleDeltas
		} else if i >= n {
			break
		}
		s[i] = x[at+1] - x[at]
	}
	return s
}

// byReference looks for a column of which this one is, nearly, a multiple; own is the chunk without one. It returns the chunk to
// store, own or the better one: own itself is in the encoder's buffer, which an attempt writes over.
func (h *hourEncoder) byReference(e *entry, x []int64, own []byte) ([]byte, bool) {
	s := sampleOf(x)
	best, bestMul, bestCost := -1, int64(0), 0
	for _, v := range s {
		bestCost += bits.Len64(zigzag(v / e.gcd))
	}
	for i := range h.bases {
		b := &h.bases[i]
		if b.pres != e.pres {
			continue
		}
		mul := ratio(&s, &b.sample)
		if mul == 0 {
			continue
		}
		cost := 0
		for j, v := range s {
			cost += bits.Len64(zigzag(v - mul*b.sample[j]))
			if cost >= bestCost {
				break
			}
		}
		if cost < bestCost {
			best, bestMul, bestCost = i, mul, cost
		}
	}
	if best < 0 {
		return own, false
	}
	h.own = append(h.own[:0], own...)
	b := &h.bases[best]
	zero := true
	for i, v := range x {
		h.rest[i] = (v - e.first) - bestMul*(b.x[i]-b.x[0])
		zero = zero && h.rest[i] == 0
	}
	var c []byte
	g := int64(1)
	if !zero {
		g = divisor(h.rest)
		if g > 1 {
			for i := range h.rest {
				h.rest[i] /= g
			}
		}
		c = h.enc.chunk(h.rest)
	}
	// A reference costs a second decode: it has to save a sixth.
	if len(c)*6 > len(h.own)*5 {
		return h.own, false
	}
	e.gcd, e.ref, e.mul = g, b.index, bestMul
	return c, true
}

// ratio is the whole number by which b comes nearest to a, 0 for none.
func ratio(a, b *[sampleDeltas]int64) int64 {
	var ab, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		ab += x * y
		bb += y * y
	}
	if bb == 0 {
		return 0
	}
	r := math.RoundToEven(ab / bb)
	if !(math.Abs(r) < 1<<31) {
		return 0
	}
	return int64(r)
}
