package series

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestScales: the smallest scale at which every value comes back, and the bits of floats where none does.
func TestScales(t *testing.T) {
	negative := math.Copysign(0, -1)
	for _, c := range []struct {
		v     []float64
		scale uint8
		x     []int64
	}{
		{[]float64{1, 2, -3}, 0, []int64{1, 2, -3}}, {[]float64{0.5}, 1, []int64{5}}, {[]float64{7, 0.1}, 1, []int64{70, 1}}, {[]float64{0.1, 12345.67, 2}, 2, []int64{10, 1234567, 200}}, {[]float64{-0.5, 0}, 1, []int64{-5, 0}}, {nil, 0, nil},
		{[]float64{1e-12}, 12, []int64{1}}, {[]float64{1e-13}, floatScale, nil}, {[]float64{math.Pi}, floatScale, nil}, {[]float64{1, negative}, floatScale, nil}, {[]float64{math.NaN()}, floatScale, nil}, {[]float64{math.Inf(1)}, floatScale, nil}, {[]float64{math.Inf(-1)}, floatScale, nil},
		{[]float64{-1 << 63}, 0, []int64{math.MinInt64}}, {[]float64{1 << 63}, floatScale, nil}, {[]float64{1<<63 - 1024}, 0, []int64{1<<63 - 1024}}, {[]float64{-1<<63 - 2048}, floatScale, nil},
		{[]float64{900719925474099.1}, 1, []int64{1<<53 - 1}}, {[]float64{900719925474099.2}, floatScale, nil}, {[]float64{-900719925474099.1}, 1, []int64{-1<<53 + 1}}, {[]float64{-900719925474099.2}, floatScale, nil},
	} {
		x, scale := toInts([]int64{99}, c.v)
		if scale != c.scale || x[0] != 99 || len(x) != 1+len(c.v) || c.x != nil && !slices.Equal(x[1:], c.x) {
			t.Errorf("%v: got %v at scale %d, want %v at %d", c.v, x, scale, c.x, c.scale)
			continue
		}
		for i, v := range c.v {
			if got := toFloat(x[1+i], scale); math.Float64bits(got) != math.Float64bits(v) {
				t.Errorf("%v comes back as %v, want math.Float64bits(v)", v, got)
			}
		}
	}
	for scale := range uint8(maxScale + 1) {
		if got, want := toFloat(15, scale), 15/math.Pow10(int(scale)); got != want {
			t.Errorf("scale %d: got %v, want %v", scale, got, want)
		}
	}
	// Scale 15 keeps the order: as float64 bits, of negative ones all but the sign turned.
	ascending := []float64{math.Inf(-1), -math.MaxFloat64, -1.5, -5e-324, negative, 0, 5e-324, 1.5, math.Inf(1)}
	if x := floatInts(nil, ascending); !slices.IsSorted(x) || x[7] != 0x3FF8000000000000 || x[2] != -0x3FF8000000000001 || x[4] != -1 {
		t.Errorf("got %x, want ascending ones", x)
	}
}

// TestSymbols: the magnitude classes of FORMAT.md.
func TestSymbols(t *testing.T) {
	for s := range 256 {
		base, width := uint64(s), 0
		if j := s - 16; j >= 0 {
			width = j/4 + 2
			base = uint64(4+j%4) << width
		}
		if e := symbols[s]; width <= 61 && (e.base != base || int(e.bits) != width || bits.OnesCount64(e.mask) != width || e.mask&(e.mask+1) != 0) {
			t.Errorf("symbol %d: got %+v, want %d and %d bits", s, e, base, width)
		}
		if width > 61 {
			continue
		}
		for _, rest := range []uint64{0, 1<<width - 1} {
			if sym, r, n := symbolOf(base + rest); int(sym) != s || r != rest || int(n) != width {
				t.Errorf("%d: got symbol %d with %d in %d bits, want %d with %d in %d", base+rest, sym, r, n, s, rest, width)
			}
		}
	}
}

// TestFormatChunk: chunks written by hand, of each method and order; and such as are refused.
func TestFormatChunk(t *testing.T) {
	_, dec := fuzzTools(t)
	zip := func(head, raw string) string {
		return head + string(zipped(t, unhex(t, raw)))
	}
	hexed := func(text string) string { return string(unhex(t, text)) }
	for name, c := range map[string]struct {
		b    string
		n    int
		want []int64 // from y[0] = 100 on; nil: refused
	}{
		"no change from the level":       {hexed("01 00"), 3, []int64{100, 100, 100}},
		"a level of 5 more":              {hexed("01 0a"), 3, []int64{100, 105, 105}},
		"one that differs":               {hexed("01 0a 01 03"), 4, []int64{100, 105, 103, 105}},
		"the last differs":               {hexed("01 00 02 02"), 4, []int64{100, 100, 100, 101}},
		"two differ":                     {hexed("01 00 00 02 00 04"), 3, []int64{100, 101, 102}},
		"steps of 5":                     {hexed("11 0a"), 4, []int64{100, 105, 110, 115}},
		"steps of 5, one of 4":           {hexed("11 0a 01 01"), 4, []int64{100, 105, 109, 114}},
		"steps from 5 on that grow":      {hexed("21 0a 01 02 00 02"), 4, []int64{100, 105, 111, 118}},
		"symbols as they are":            {hexed("03 00 03 01 02 0f"), 4, []int64{100, 99, 101, 92}},
		"symbols with bits":              {hexed("13 00 03 10 11 00 1b"), 4, []int64{100, 100 - 10, 100 - 10 + 11, 101}}, // zigzag 16+3 is -10, 20+2 is 11
		"one symbol":                     {hexed("04 00 01 02"), 4, []int64{100, 101, 101, 101}},
		"one symbol with bits":           {hexed("04 00 01 10 24"), 4, []int64{100, 108, 91, 109}}, // zigzag 16, 17, 18
		"zigzag varints":                 {zip(hexed("15 02"), "02 01 80 02"), 4, []int64{100, 102, 102, 231}},
		"a single one":                   {hexed("01 00"), 1, nil},
		"more than an hour":              {hexed("01 00"), 3601, nil},
		"nothing":                        {"", 3, nil},
		"no base":                        {hexed("01"), 3, nil},
		"method 0":                       {hexed("00 00"), 3, nil},
		"method 7":                       {hexed("07 00"), 3, nil},
		"order 3":                        {hexed("31 00"), 3, nil},
		"a change past the end":          {hexed("01 00 02 02"), 3, nil},
		"changes past the end":           {hexed("01 00 01 02 00 02"), 3, nil},
		"far past the end":               {hexed("01 00 03 02"), 3, nil},
		"a distance without a change":    {hexed("01 00 01"), 3, nil},
		"symbols that end early":         {hexed("03 00 03 01 02"), 4, nil},
		"too few symbols":                {hexed("03 00 02 01 02"), 4, nil},
		"too many symbols":               {hexed("03 00 04 01 02 01 02"), 4, nil},
		"no symbol to repeat":            {hexed("04 00 00"), 4, nil},
		"two symbols to repeat":          {hexed("04 00 02 02 02"), 4, nil},
		"no bits for the symbol":         {hexed("04 00 01 10"), 4, nil},
		"no bits for symbols":            {hexed("03 00 03 10 10 10"), 4, nil},
		"far from any bit":               {hexed("03 00 06 c0 c0 c0 c0 c0 c0"), 7, nil},
		"entropy of rubbish":             {hexed("02 00 02 ff ff"), 4, nil},
		"Huffman of rubbish":             {hexed("06 00 02 ff ff"), 4, nil},
		"too few varints":                {zip(hexed("05 00"), "02 01"), 4, nil},
		"too many varints":               {zip(hexed("05 00"), "02 01 01 01"), 4, nil},
		"more than numbers can take":     {zip(hexed("05 00"), "02 01 01 01 01 01 01 01 01 01 01 01 01 01 01 01 01 01 01 01 01"), 3, nil},
		"no frame of Zstandard":          {hexed("05 00 01 02 03"), 4, nil},
		"the widest numbers, and no bit": {zip(hexed("05 00"), "ff ff ff ff ff ff ff ff ff 01 fe ff ff ff ff ff ff ff ff 01"), 3, []int64{100, math.MinInt64 + 100, math.MinInt64 + 99}},
	} {
		var d decoder
		x := make([]int64, c.n)
		x[0] = 100
		switch err := d.chunk(dec, []byte(c.b), x); {
		case (err == nil) != (c.want != nil), err == nil && !slices.Equal(x, c.want):
			t.Errorf("%s: got %v, %v; want %v", name, x, err, c.want)
		case err != nil && (name[:3] == "met" || name[:3] == "ord") && !errors.Is(err, errMethod):
			t.Errorf("%s: got %v, want an unknown method", name, err)
		}
	}
	var d decoder
	x := make([]int64, maxChunkValues)
	if err := d.chunk(dec, unhex(t, "11 02"), x); err != nil || x[maxChunkValues-1] != maxChunkValues-1 {
		t.Errorf("a whole hour: got %d, %v; want %d", x[maxChunkValues-1], err, maxChunkValues-1)
	}
}

// TestChunkSizes: what columns of known shapes may take at most, by arithmetic: a head of two bytes for what a predictor foretells; two bytes
// for each change; the entropy of what is random, with a tenth more for the table.
func TestChunkSizes(t *testing.T) {
	e, err := newEncoder()
	if err != nil {
		t.Fatal(err)
	}
	_, dec := fuzzTools(t)
	const anyOrder, anyMethod = 15, 15
	r := rand.New(rand.NewPCG(21, 22))
	noise := func(n int64) func(int) int64 { return func(int) int64 { return r.Int64N(n) } }
	sum := func(step func(int) int64) func(int) int64 {
		v := int64(0)
		return func(i int) int64 { v += step(i); return v }
	}
	every := func(n int, v int64) func(int) int64 {
		return func(i int) int64 {
			if i%n == n-1 {
				return v
			}
			return 0
		}
	}
	for _, c := range []struct {
		name        string
		at          func(i int) int64
		n           int
		method      byte
		order       byte
		base        int64
		least, most int // bytes
	}{
		{"another level than at first", func(i int) int64 { return 1000 * int64(min(i, 1)) }, 3600, methodSparse, orderLevel, 1000, 3, 3},
		{"steps of 17", func(i int) int64 { return 17 * int64(i) }, 3600, methodSparse, orderDelta, 17, 2, 2},
		{"a square", func(i int) int64 { return int64(i) * int64(i) }, 60, methodFSE, orderSecond, 1, 3, 8},
		{"two values", func(i int) int64 { return int64(i) }, 2, methodSparse, orderDelta, 1, 2, 2},
		{"two changes", sum(every(25, 3)), 60, methodSparse, orderDelta, 0, 6, 6},
		{"a level with two peaks", every(25, 7), 60, methodSparse, orderLevel, 0, 6, 6},
		{"noise of a bit", noise(2), 3600, methodFSE, orderLevel, 0, 450, 500},
		{"noise of 3 bits around 1000", func(i int) int64 { return 1000 + noise(8)(i) }, 3600, methodHuff, orderLevel, 0, 1350, 1420},
		{"steps of 100 to 107", sum(func(i int) int64 { return 100 + r.Int64N(8) }), 3600, methodHuff, orderDelta, 0, 1350, 1420},
		{"steps that grow by 0 to 7", sum(sum(noise(8))), 3600, methodHuff, orderSecond, 0, 1350, 1480},
		{"noise of 20 bits", noise(1 << 20), 3600, methodHuff, orderLevel, 0, 8900, 9300},
		{"noise of 64 bits", func(int) int64 { return int64(r.Uint64()) }, 3600, methodHuff, anyOrder, 0, 28000, 29500},
		{"more above than below", func(i int) int64 {
			if i < 2 {
				return int64(2 * i)
			}
			return []int64{0, 1000, 1000, 0, 1000}[r.IntN(5)]
		}, 300, anyMethod, orderLevel, 1000, 10, 120},
		{"a pattern that repeats", func(i int) int64 { return []int64{5, 900, 31, 77777, 12, 4, 4444, 81, 333, 60000}[i%10] }, 3600, methodZstd, orderLevel, 0, 30, 90},
		{"steps in a pattern that repeats", sum(func(i int) int64 { return []int64{5, 900, 31, 77777, 12, 4, 4444, 81, 333, 60000}[i%10] }), 3600, methodZstd, orderDelta, 0, 30, 90},
	} {
		x := make([]int64, c.n)
		for i := range x {
			x[i] = c.at(i)
		}
		b := slices.Clone(e.chunk(x))
		in := input{b: b[1:]}
		base := in.varint()
		if c.method != anyMethod && b[0]&15 != c.method || c.order != anyOrder && b[0]>>4 != c.order || c.base != 0 && base != c.base || len(b) < c.least || len(b) > c.most {
			t.Errorf("%s: got method %d, order %d, base %d, %d bytes; want %d, %d, %d, %d to %d bytes", c.name, b[0]&15, b[0]>>4, base, len(b), c.method, c.order, c.base, c.least, c.most)
		}
		y := make([]int64, c.n)
		y[0] = x[0]
		var d decoder
		if err := d.chunk(dec, b, y); err != nil || !slices.Equal(x, y) {
			t.Errorf("%s: %v, or not what it was; want x %v", c.name, err, y)
		}
	}
}
