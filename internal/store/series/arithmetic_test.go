package series

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestNearestRank: percentiles as the definition of the nearest rank has them: of n sorted values the one at the place ceil(p*n/100).
func TestNearestRank(t *testing.T) {
	var q quantiler
	r := rand.New(rand.NewPCG(31, 32))
	upTo := func(n int) (v []float64) {
		for i := range n {
			v = append(v, float64(i+1))
		}
		return v
	}
	clustered := append(slices.Repeat([]float64{7}, 60), 1, 1e9)
	for _, c := range []struct {
		v    []float64
		want [5]float64
	}{
		{[]float64{15, 20, 35, 40, 50}, [5]float64{15, 15, 35, 50, 50}}, {[]float64{3}, [5]float64{3, 3, 3, 3, 3}}, {[]float64{3, 4}, [5]float64{3, 3, 3, 4, 4}}, {upTo(20), [5]float64{1, 1, 10, 19, 20}}, {upTo(21), [5]float64{1, 2, 11, 20, 21}},
		{upTo(48), [5]float64{1, 3, 24, 46, 48}}, {upTo(49), [5]float64{1, 3, 25, 47, 49}}, {upTo(100), [5]float64{1, 5, 50, 95, 100}}, {upTo(3600), [5]float64{1, 180, 1800, 3420, 3600}},
		{slices.Repeat([]float64{-2}, 100), [5]float64{-2, -2, -2, -2, -2}}, {clustered, [5]float64{1, 7, 7, 7, 1e9}}, {append(upTo(99), math.Inf(1)), [5]float64{1, 5, 50, 95, math.Inf(1)}}, {append(upTo(99), -math.MaxFloat64), [5]float64{-math.MaxFloat64, 4, 49, 94, 99}},
		{append(slices.Repeat([]float64{0}, 60), 5e-324, 1e-323), [5]float64{0, 0, 0, 0, 1e-323}}, {append(slices.Repeat([]float64{0}, 95), slices.Repeat([]float64{1}, 5)...), [5]float64{0, 0, 0, 0, 1}}, {append(slices.Repeat([]float64{0}, 94), slices.Repeat([]float64{1}, 6)...), [5]float64{0, 0, 0, 1, 1}},
	} {
		r.Shuffle(len(c.v), func(i, j int) { c.v[i], c.v[j] = c.v[j], c.v[i] })
		n := len(c.v)
		if got := q.band(c.v); got != c.want {
			t.Errorf("%d values: got %v, want %v", n, got, c.want)
		}
	}
	for _, n := range []int{1, 2, 16, 17, 18, 33, 100} {
		for _, v := range [][]float64{upTo(n), slices.Repeat([]float64{4}, n), append(slices.Repeat([]float64{1}, n/2), slices.Repeat([]float64{2}, n-n/2)...)} {
			sorted := slices.Clone(v)
			for i, want := range sorted {
				r.Shuffle(n, func(i, j int) { v[i], v[j] = v[j], v[i] })
				if got := selectRank(v, i); got != want {
					t.Errorf("of %d values at %d: got %v, want %v", n, i, got, want)
				}
			}
		}
	}
}

// TestRatesOfAnHour: what counts as a rate, and which of them a late tick touches.
func TestRatesOfAnHour(t *testing.T) {
	p := runs{{0, 4}, {10, 2}}
	vals := []float64{1, 3, 2, 7, 10, 15} // in the seconds 0 to 3, 10 and 11
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		vals []float64
		typ  Type
		late runs
		want rollup
	}{
		"a counter: one goes backwards, one is after a gap": {vals, Counter, nil, rollup{3, 3, 12, [5]float64{2, 2, 5, 5, 5}}},
		"the second of a rate is late":                      {vals, Counter, runs{{3, 1}}, rollup{3, 2, 12, [5]float64{2, 2, 2, 5, 5}}},
		"the one before it is late":                         {vals, Counter, runs{{10, 1}}, rollup{3, 2, 12, [5]float64{2, 2, 2, 5, 5}}},
		"late, where no rate is":                            {vals, Counter, runs{{4, 6}}, rollup{3, 3, 12, [5]float64{2, 2, 5, 5, 5}}},
		"all late":                                          {vals, Counter, runs{{0, 12}}, rollup{3, 0, 12, [5]float64{}}},
		"all but one late":                                  {vals, Counter, runs{{3, 1}, {11, 1}}, rollup{3, 1, 12, [5]float64{2, 2, 2, 2, 2}}},
		"a gauge, late or not":                              {vals, Gauge, runs{{0, 12}}, rollup{6, 6, 38, [5]float64{1, 1, 3, 15, 15}}},
		"a counter that stays":                              {[]float64{5, 5, 5, 5, 1, 1}, Counter, nil, rollup{4, 4, 0, [5]float64{}}},
		"infinity less infinity":                            {[]float64{1, inf, inf, inf, 1, 2}, Counter, nil, rollup{2, 2, inf, [5]float64{1, 1, 1, inf, inf}}},
	} {
		var q quantiler
		if got, _ := q.rollupOf(c.vals, p, c.late, c.typ, []float64{99}); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
	for name, c := range map[string]struct {
		p, late runs
		typ     Type
		want    rollup
	}{
		"a gauge":                     {p, nil, Gauge, rollup{6, 6, 15, [5]float64{2.5, 2.5, 2.5, 2.5, 2.5}}},
		"a counter":                   {p, nil, Counter, rollup{n: 4, trusted: 4}},
		"a late second between two":   {runs{{0, 10}}, runs{{3, 1}}, Counter, rollup{n: 9, trusted: 7}},
		"two late seconds":            {runs{{0, 10}}, runs{{3, 2}}, Counter, rollup{n: 9, trusted: 6}},
		"the first":                   {runs{{0, 10}}, runs{{0, 1}}, Counter, rollup{n: 9, trusted: 8}},
		"the last":                    {runs{{0, 10}}, runs{{9, 1}}, Counter, rollup{n: 9, trusted: 8}},
		"next to a gap":               {p, runs{{3, 1}, {10, 1}}, Counter, rollup{n: 4, trusted: 2}},
		"one that has no tick itself": {p, runs{{4, 1}}, Counter, rollup{n: 4, trusted: 4}},
	} {
		if got := flatRollup(2.5, c.p, c.late, c.typ == Counter); got != c.want {
			t.Errorf("one value, %s: got %+v, want %+v", name, got, c.want)
		}
	}
	in := input{b: appendRollup(nil, rollup{5, 3, -2, [5]float64{-8, -7, 1, 4, 4}}, false)}
	if want := unhex(t, "05 02 0f 4c 01 08 03 00"); !bytes.Equal(in.b, want) {
		t.Errorf("got %x, want %x", in.b, want)
	}
	if got := in.rollup(false); got != (rollup{5, 3, -2, [5]float64{-8, -7, 1, 4, 4}}) || in.err != nil || len(in.b) > 0 {
		t.Errorf("got %+v, %v", got, in.err)
	}
}

// TestMixture: joined uniform distributions are distributions that one can write down.
func TestMixture(t *testing.T) {
	uniform := func(lo, hi float64, n int) rollup {
		at := func(p float64) float64 { return lo + p*(hi-lo) }
		return rollup{n: n, trusted: n, band: [5]float64{lo, at(.05), at(.5), at(.95), hi}}
	}
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		parts []rollup
		want  [5]float64
	}{
		"one":                  {[]rollup{{n: 1, trusted: 1, band: [5]float64{1, 9, 9, 9, 30}}}, [5]float64{1, 9, 9, 9, 30}},
		"the same twice":       {[]rollup{uniform(0, 100, 7), uniform(0, 100, 7)}, [5]float64{0, 5, 50, 95, 100}},
		"one above the other":  {[]rollup{uniform(100, 200, 50), uniform(0, 100, 50)}, [5]float64{0, 10, 100, 190, 200}},
		"of unlike weight":     {[]rollup{uniform(0, 100, 300), uniform(100, 200, 100)}, [5]float64{0, 20. / 3, 200. / 3, 180, 200}},
		"one within the other": {[]rollup{uniform(0, 100, 10), uniform(40, 60, 10)}, [5]float64{0, 10, 50, 90, 100}},
		"points":               {[]rollup{uniform(3, 3, 10), uniform(5, 5, 30)}, [5]float64{3, 3, 5, 5, 5}},
		"points, half each":    {[]rollup{uniform(3, 3, 10), uniform(5, 5, 10)}, [5]float64{3, 3, 3, 5, 5}},
		"only few are trusted": {[]rollup{uniform(0, 100, 10), {n: 900, trusted: 10, band: uniform(100, 200, 0).band}}, [5]float64{0, 10, 100, 190, 200}},
		"without end":          {[]rollup{{trusted: 1, band: [5]float64{-inf, 1, 2, 3, 4}}, {trusted: 1, band: [5]float64{0, 5, 6, 7, inf}}}, [5]float64{-inf, 5, 6, 7, inf}},
	} {
		got := mixture(c.parts)
		for i := range got {
			if d := math.Abs(got[i] - c.want[i]); d > 1e-9 || d != d && got[i] != c.want[i] {
				t.Errorf("%s: got %v, want %v", name, got, c.want)
				break
			}
		}
	}
}

// TestColumn: what an hour's column becomes: its integers, their common divisor, and the width of its rollup.
func TestColumn(t *testing.T) {
	for _, c := range []struct {
		x    []int64
		want int64
	}{
		{[]int64{0, 16384, 49152}, 16384}, {[]int64{5}, 1}, {[]int64{1, 1}, 1}, {[]int64{10, 4}, 6}, {[]int64{0, 6, 10}, 2}, {[]int64{7, 1, 4}, 3}, {[]int64{0, 12, 18, 7}, 1}, {[]int64{math.MinInt64, math.MaxInt64}, 1}, {[]int64{math.MinInt64, 0}, 1}, {[]int64{0, math.MinInt64}, 1}, {[]int64{0, math.MaxInt64}, math.MaxInt64}, {[]int64{0, 0, 4}, 4},
	} {
		if got := divisor(c.x); got != c.want {
			t.Errorf("%d: got %d, want %d", c.x, got, c.want)
		}
	}
	few, many := sampleOf([]int64{1, 2, 4, 8}), make([]int64, 129)
	for i := range many {
		many[i] = int64(i * i) // the step after i is 2i+1
	}
	if few != [sampleDeltas]int64{1, 2, 4} {
		t.Errorf("got %v, want 1, 2, 4", few)
	}
	every, all := sampleOf(many), sampleOf(many[:65])
	for i := range sampleDeltas {
		if every[i] != int64(4*i+1) || all[i] != int64(2*i+1) {
			t.Errorf("at %d: got %d, %d; want %d, %d", i, every[i], all[i], 4*i+1, 2*i+1)
		}
	}
	for _, c := range []struct {
		a, b [sampleDeltas]int64
		want int64
	}{
		{[sampleDeltas]int64{3, 6}, [sampleDeltas]int64{1, 2}, 3}, {[sampleDeltas]int64{3, 6}, [sampleDeltas]int64{}, 0}, {[sampleDeltas]int64{}, [sampleDeltas]int64{1}, 0}, {[sampleDeltas]int64{-4}, [sampleDeltas]int64{2}, -2}, {[sampleDeltas]int64{5}, [sampleDeltas]int64{2}, 2}, {[sampleDeltas]int64{7}, [sampleDeltas]int64{2}, 4}, {[sampleDeltas]int64{1, 2}, [sampleDeltas]int64{2, 1}, 1},
		{[sampleDeltas]int64{1<<31 - 1}, [sampleDeltas]int64{1}, 1<<31 - 1}, {[sampleDeltas]int64{1 << 31}, [sampleDeltas]int64{1}, 0}, {[sampleDeltas]int64{-1 << 31}, [sampleDeltas]int64{1}, 0},
	} {
		if got := ratio(&c.a, &c.b); got != c.want {
			t.Errorf("%v and %v: got %d, want %d", c.a[:2], c.b[:2], got, c.want)
		}
	}
	h := newHour(t, 60)
	const wide = 1 << 53
	for _, c := range []struct {
		typ         Type
		v           []float64
		kind, scale uint8
		first, last int64
		gcd         int64
		wide        bool
	}{
		{Gauge, nil, columnAbsent, 0, 0, 0, 0, false}, {Gauge, []float64{2.5, 2.5, 2.5}, columnConstant, 1, 25, 25, 1, false}, {Counter, []float64{0, 16384, 49152}, columnVarying, 0, 0, 49152, 16384, false}, {Gauge, []float64{1, 2.5, 1}, columnVarying, 1, 10, 10, 15, false}, {Gauge, []float64{3, 4}, columnVarying, 0, 3, 4, 1, false},
		{Gauge, []float64{math.Inf(1), 1}, columnVarying, floatScale, 0x7FF0000000000000, 0x3FF0000000000000, 1 << 62, true},
		// The rollup is in floats where a float64 does not hold every integer: from 2^53 on.
		{Gauge, []float64{0, wide / 2}, columnVarying, 0, 0, wide / 2, wide / 2, true}, {Gauge, []float64{0, wide/2 - 1}, columnVarying, 0, 0, wide/2 - 1, wide/2 - 1, false}, {Gauge, []float64{-wide / 2, 0}, columnVarying, 0, -wide / 2, 0, wide / 2, true}, {Gauge, []float64{1 - wide/2, 0}, columnVarying, 0, 1 - wide/2, 0, wide/2 - 1, false},
		{Counter, []float64{0, wide - 1}, columnVarying, 0, 0, wide - 1, wide - 1, false}, {Counter, []float64{-1, wide - 1}, columnVarying, 0, -1, wide - 1, wide, true}, {Counter, []float64{0, -wide}, columnVarying, 0, 0, -wide, wide, true}, {Counter, []float64{0, 1 - wide}, columnVarying, 0, 0, 1 - wide, wide - 1, false}, {Counter, []float64{wide, 0}, columnVarying, 0, wide, 0, wide, true}, {Counter, []float64{wide - 1, 0}, columnVarying, 0, wide - 1, 0, wide - 1, false},
	} {
		e, chunk := h.column(0, c.typ, c.v, runs{{0, uint16(len(c.v))}})
		if e.kind != c.kind || e.scale != c.scale || e.first != c.first || e.last != c.last || e.gcd != c.gcd || e.wide != c.wide || e.ref != -1 || e.size != len(chunk) || (chunk != nil) != (c.kind == columnVarying) {
			t.Errorf("%v: got %+v and %d bytes, want %+v", c.v, e, len(chunk), c)
		}
	}
	if e, _ := h.column(0, Counter, []float64{0.5, 1, 3}, runs{{0, 3}}); e.rollup() != (rollup{2, 2, 2.5, [5]float64{.5, .5, .5, 2, 2}}) {
		t.Errorf("got %+v, want the rates 0.5 and 2", e.rollup())
	}
	h = newHour(t, 60)
	for i, c := range []struct {
		p    runs
		want int
	}{{runs{{0, 60}}, 0}, {runs{{0, 59}}, 1}, {runs{{1, 59}}, 2}, {runs{{0, 59}}, 1}, {runs{{0, 60}}, 0}, {runs{{1, 59}}, 2}} {
		if got := h.presence(c.p); got != c.want {
			t.Errorf("presence %d: got %d, want %d", i, got, c.want)
		}
	}
}

// newHour begins an hour with so many ticks.
func newHour(t *testing.T, ticks uint16) *hourEncoder {
	t.Helper()
	enc, err := newEncoder()
	if err != nil {
		t.Fatal(err)
	}
	h := &hourEncoder{enc: enc}
	h.begin(&hourInfo{})
	h.bases = append(h.bases, base{})
	h.begin(&hourInfo{ticks: runs{{0, ticks}}})
	return h
}

// TestReferences: which columns are stored as multiples of others, which multiple, and how large the rest is.
func TestReferences(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 34))
	random := func(n int) []float64 {
		v := make([]float64, n)
		v[0] = 1000
		for i := 1; i < n; i++ {
			v[i] = v[i-1] + float64(r.IntN(1000))
		}
		return v
	}
	like := func(v []float64, f func(i int, x float64) float64) []float64 {
		out := make([]float64, len(v))
		for i, x := range v {
			out[i] = f(i, x)
		}
		return out
	}
	a, b := random(600), random(600)
	all, most := runs{{0, 600}}, runs{{0, 599}}
	h := newHour(t, 600)
	step := func(at int, by float64) func(i int, x float64) float64 {
		return func(i int, x float64) float64 {
			if i >= at {
				return x + by
			}
			return x
		}
	}
	noisy := func(n int) func(int, float64) float64 {
		sum := 0
		return func(_ int, x float64) float64 { sum += r.IntN(n); return x + float64(sum) }
	}
	columns := map[int][]int64{}
	_, dec := fuzzTools(t)
	for _, c := range []struct {
		name        string
		v           []float64
		p           runs
		ref         int
		mul, gcd    int64
		least, most int
	}{
		{"the first", a, all, -1, 0, 1, 600, 900},
		{"another", b, all, -1, 0, 1, 600, 900},
		{"the first again", a, all, 0, 1, 1, 0, 0},
		{"three times the second", like(b, func(_ int, x float64) float64 { return 3*x + 5 }), all, 1, 3, 1, 0, 0},
		{"less the first", like(a, func(_ int, x float64) float64 { return 1 - x }), all, 0, -1, 1, 0, 0},
		{"a step of 4096 in it", like(a, step(300, 4096)), all, 0, 1, 4096, 3, 8},
		{"a step of 1", like(a, step(300, 1)), all, 0, 1, 1, 3, 8},
		{"some of both", like(a, func(i int, x float64) float64 { return x + float64(i%3) }), all, 0, 1, 1, 3, 250},
		{"at other seconds", a[:599], most, -1, 0, 1, 600, 900},
		{"those again", a[:599], most, 8, 1, 1, 0, 0},
		{"with little noise", like(a, noisy(128)), all, 0, 1, 1, 500, 580},
		{"with so much noise that less than a sixth is saved", like(a, noisy(512)), all, -1, 0, 1, 700, 900},
		{"small, and through 0", like(a, func(i int, _ float64) float64 { return float64(5 - 7*i) }), all, -1, 0, 7, 2, 2},
		{"small without a reference", like(a, func(i int, _ float64) float64 { return float64(7 * i) }), all, -1, 0, 7, 2, 2},
	} {
		i := len(h.bases)
		index, ok := map[string]int{"the first": 0, "another": 1, "at other seconds": 8}[c.name]
		if !ok {
			index = 99
		}
		e, chunk := h.column(index, Counter, c.v, c.p)
		if e.ref != c.ref || e.mul != c.mul || e.gcd != c.gcd || e.size != len(chunk) || len(chunk) < c.least || len(chunk) > c.most || (len(h.bases) > i) != (e.ref < 0 && len(chunk) >= minReference) {
			t.Errorf("%s: got column %d times %d, divisor %d, %d bytes, %d bases; want %d times %d, %d, %d to %d bytes", c.name, e.ref, e.mul, e.gcd, len(chunk), len(h.bases), c.ref, c.mul, c.gcd, c.least, c.most)
		}
		y := make([]int64, len(c.v))
		if len(chunk) > 0 {
			var d decoder
			if err := d.chunk(dec, chunk, y); err != nil {
				t.Error(c.name, err)
			}
		}
		for k := range y { // as FORMAT.md has it
			if y[k] = e.first + e.gcd*y[k]; e.ref >= 0 {
				y[k] += e.mul * (columns[e.ref][k] - columns[e.ref][0])
			}
			if y[k] != int64(c.v[k]) {
				t.Fatalf("%s at %d: got %d back, want %v", c.name, k, y[k], c.v[k])
			}
		}
		if e.ref < 0 {
			columns[index] = y
		}
	}
	// A chunk of 22 bytes is not worth a second decode, one of 24 is; a head of two bytes, and two for each change.
	for changes, want := range map[int]int{10: -1, 11: 0} {
		v := make([]float64, 200)
		for i := range v {
			if i > 0 {
				v[i] = v[i-1]
			}
			if i%18 == 17 && i/18 < changes {
				v[i] += float64(1 + i/18*5%13)
			}
		}
		h := newHour(t, 200)
		_, own := h.column(0, Counter, v, runs{{0, 200}})
		n := len(own)
		if e, _ := h.column(1, Counter, v, runs{{0, 200}}); e.ref != want {
			t.Errorf("%d changes in %d bytes: got column %d, want %d", changes, n, e.ref, want)
		}
	}
	// As many columns are remembered, and no more.
	h = newHour(t, 60)
	var kept, dropped []float64
	for i := range maxBases + 1 {
		if kept, dropped = dropped, random(60); i < maxBases || len(h.bases) == maxBases {
			h.column(i, Counter, dropped, runs{{0, 60}})
		}
	}
	if e, _ := h.column(600, Counter, kept, runs{{0, 60}}); e.ref != maxBases-1 {
		t.Errorf("got column %d, want the last that is remembered", e.ref)
	}
	if e, _ := h.column(601, Counter, dropped, runs{{0, 60}}); e.ref != -1 {
		t.Errorf("got column %d, want none: there were too many", e.ref)
	}
}

// TestBandsOfSeconds: buckets of a few seconds, computed by hand.
func TestBandsOfSeconds(t *testing.T) {
	s := openStore(t, t.TempDir())
	w := openWriterT(t, s, "db")
	w.Define(Desc{Name: "c", Type: Counter})
	w.Define(Desc{Name: "g"})
	none := math.NaN()
	// A gap at 3, a late tick at 8, a counter that begins again at 10, no value at 12.
	for _, tick := range []struct {
		at   int64
		c, g float64
		late bool
	}{{0, 10, 1, false}, {1, 12, 2, false}, {2, 15, 3, false}, {4, 20, 4, false}, {5, 26, none, false}, {6, 26, 6, false}, {7, 27, 7, false}, {8, 37, 8, true}, {9, 38, 9, false}, {10, 1, 0, false}, {11, 5, -1, false}, {12, none, 5, false}, {13, 7, 5, false}, {14, 10, 5, false}} {
		if err := w.Append(t0+tick.at, []float64{tick.c, tick.g}, tick.late); err != nil {
			t.Fatal(err)
		}
	}
	type bucket struct {
		n    int
		avg  float64
		band [5]float64
	}
	empty := bucket{0, none, [5]float64{none, none, none, none, none}}
	for _, c := range []struct {
		key            string
		from, to, step int64
		want           []bucket
	}{
		// Rates: 2 and 3 | 6, 0, 1, and 10 and 1 next to the late tick | 4 and 3.
		{"c", 0, 15, 5, []bucket{{2, 2.5, [5]float64{2, 2, 2, 3, 3}}, {5, 3.6, [5]float64{0, 0, 1, 6, 6}}, {2, 3.5, [5]float64{3, 3, 3, 4, 4}}}},
		{"c", 1, 4, 1, []bucket{{1, 2, [5]float64{2, 2, 2, 2, 2}}, {1, 3, [5]float64{3, 3, 3, 3, 3}}, empty}},
		{"c", 8, 10, 2, []bucket{{2, 5.5, [5]float64{1, 1, 1, 10, 10}}}}, // none but late ones
		{"c", 14, 17, 2, []bucket{{1, 3, [5]float64{3, 3, 3, 3, 3}}, empty}},
		{"g", 0, 15, 5, []bucket{{4, 2.5, [5]float64{1, 1, 2, 4, 4}}, {4, 7.5, [5]float64{6, 6, 7, 9, 9}}, {5, 2.8, [5]float64{-1, -1, 5, 5, 5}}}},
		{"g", -1, 1, 1, []bucket{empty, {1, 1, [5]float64{1, 1, 1, 1, 1}}}},
		{"nothing", 0, 2, 1, []bucket{empty, empty}}, {"c", 3, 3, 1, nil},
	} {
		got, err := s.Bands(context.Background(), "db", []string{c.key}, t0+c.from, t0+c.to, c.step)
		if err != nil || len(got) != 1 || len(got[0].N) != len(c.want) {
			t.Fatalf("%s: got %+v, %v; want %d buckets", c.key, got, err, len(c.want))
		}
		b := got[0]
		if b.Key != c.key || b.Start != t0+c.from || b.Step != c.step || (b.Type == Counter) != (c.key == "c" && c.want != nil) {
			t.Errorf("%s: got %+v", c.key, b)
		}
		for i, want := range c.want {
			same := func(x, y float64) bool { return x == y || x != x && y != y || math.Abs(x-y) < 1e-12 }
			band := [5]float64{b.Min[i], b.P5[i], b.P50[i], b.P95[i], b.Max[i]}
			if b.N[i] != want.n || !same(b.Avg[i], want.avg) || !slices.EqualFunc(band[:], want.band[:], same) {
				t.Errorf("%s by %d, bucket %d: got %d, %v, %v; want %+v", c.key, c.step, i, b.N[i], b.Avg[i], band, want)
			}
		}
	}
	for _, c := range []struct {
		from, to, step int64
		want           error
	}{{0, 200_000, 1, nil}, {0, 200_001, 1, ErrRange}, {0, 10, 0, ErrRange}, {5, 4, 1, ErrRange}, {5, 5, 1, nil}} {
		if _, err := s.Bands(context.Background(), "db", []string{"c"}, c.from, c.to, c.step); !errors.Is(err, c.want) {
			t.Errorf("from %d to %d by %d: got %v, want %v", c.from, c.to, c.step, err, c.want)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Bands(ended, "db", []string{"c", "g"}, t0, t0+9, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was called off", err)
	}
}

// TestBandsOfHours: whole hours come from rollups where there are some. Counts, means and extremes are those of the single seconds: at the
// borders of hours, next to late ticks, and where an hour or a series is missing.
func TestBandsOfHours(t *testing.T) {
	s := openStore(t, t.TempDir())
	in, err := s.ensure("db")
	if err != nil {
		t.Fatal(err)
	}
	const hours = 6 // of which the fourth is missing
	none := math.NaN()
	shapes := []struct {
		typ Type
		at  func(hour, second int) float64
	}{
		{Counter, func(h, i int) float64 { return float64(h*hourSeconds*h + i*(h+1)) }},     // another rate in each hour
		{Counter, func(h, i int) float64 { return float64(1000 - 500*h + i%50*i) }},         // starts again often
		{Counter, func(h, i int) float64 { return float64(7 * h) }},                         // constant in each hour
		{Gauge, func(h, i int) float64 { return 2.5 }},                                      // constant
		{Gauge, func(h, i int) float64 { return float64((i*7919 + h) % 1000) }},             // all over
		{Counter, func(h, i int) float64 { return []float64{float64(i), none}[h%2] }},       // not in every hour
		{Counter, func(h, i int) float64 { return []float64{none, float64(i)}[min(i, 1)] }}, // not in the first second
		{Counter, func(h, i int) float64 { return []float64{float64(i), none}[i/3599] }},    // not in the last
		{Gauge, func(h, i int) float64 { return []float64{none, float64(h)}[i/1800] }},      // half an hour, constant
		{Counter, func(h, i int) float64 { return math.Floor(float64(h*3600+i)/7) / 4 }},    // of a scale
		{Counter, func(h, i int) float64 { return float64(h*3600+i) * (1 << 45) }},          // wide
	}
	late := func(h, i int) bool { return h == 1 && (i == 0 || i == 100 || i == 3599) || h == 4 && i%2 == 0 }
	var descs []Desc
	var ids []*seriesID
	for i, sh := range shapes {
		descs = append(descs, Desc{Name: string(rune('a' + i)), Type: sh.typ})
		ids = append(ids, s.cat.intern(descs[i]))
	}
	m := newModel(descs)
	add := func(h, from, to int) { // seconds of an hour, into memory
		for start := from; start < to; start += minuteSeconds {
			mi := &minute{start: t0 + int64(h*hourSeconds+start)}
			for sec := range minuteSeconds {
				row := make([]float64, len(shapes))
				for i, sh := range shapes {
					row[i] = sh.at(h, start+sec)
				}
				mi.set(sec, row, late(h, start+sec))
				m.note(mi.start+int64(sec), row, late(h, start+sec))
			}
			in.mu.Lock()
			in.last = mi.start + minuteSeconds - 1
			in.pending = append(in.pending, &pendingMinute{minute: mi, descs: ids})
			in.mu.Unlock()
		}
	}
	check := func() {
		t.Helper()
		for _, c := range []struct{ from, to, step int64 }{
			{0, hours * hourSeconds, hourSeconds}, {0, hours * hourSeconds, 2 * hourSeconds}, {hourSeconds, 5 * hourSeconds, 3 * hourSeconds}, {-hourSeconds, 2*hourSeconds + 1800, hourSeconds}, {0, 3*hourSeconds - 1, 3 * hourSeconds}, {1800, 2*hourSeconds + 1800, hourSeconds}, {3590, 3610, 1}, {2 * hourSeconds, 5 * hourSeconds, hourSeconds / 2},
		} {
			m.checkBands(t, s, "db", t0+c.from, t0+c.to, c.step)
		}
	}
	for _, h := range []int{0, 1, 2, 4} {
		add(h, 0, hourSeconds-1800*(h/4)) // of the last one, the first half
		if err := sealAndMerge(in, t0+int64(h)*hourSeconds); err != nil {
			t.Fatal(err)
		}
	}
	check() // blocks
	// Where each rate touches a late tick the extremes are not kept: the mean stands for them.
	got, err := s.Bands(context.Background(), "db", []string{"a"}, t0+4*hourSeconds, t0+5*hourSeconds, hourSeconds)
	if err != nil || got[0].N[0] != 1799 || got[0].Min[0] != 5 || got[0].P50[0] != 5 || got[0].Max[0] != 5 {
		t.Errorf("got %+v, %v; want 1799 rates of 5", got, err)
	}
	add(4, 1800, hourSeconds-60)
	if err := in.sealPending(); err != nil {
		t.Fatal(err)
	}
	check() // and frames
	add(4, hourSeconds-60, hourSeconds)
	add(5, 0, hourSeconds)
	check() // and memory
	// The percentiles of one hour are its own: of a rate of 2, and of the numbers from 0 to 999 in equal parts.
	got, err = s.Bands(context.Background(), "db", []string{"a", "e"}, t0+hourSeconds, t0+2*hourSeconds, hourSeconds)
	if err != nil || got[0].P5[0] != 2 || got[0].P50[0] != 2 || got[0].P95[0] != 2 || math.Abs(got[1].P50[0]-500) > 5 || math.Abs(got[1].P5[0]-50) > 5 || math.Abs(got[1].P95[0]-950) > 5 {
		t.Errorf("got %+v, %v; want 2, and 50, 500 and 950", got, err)
	}
}
