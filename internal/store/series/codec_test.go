package series

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// odd are floats that codecs stumble over.
var odd = []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 1e-300, 5e-324, math.MaxFloat64, -math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(),
	1 << 53, 1<<53 + 2, -(1<<53 + 2), 1 << 62, 1 << 63, -1 << 63, 18446744073709551615, 9007199254740993, 123456789012.34, 0.000000000001, 1e15 + 0.5, 4294967296.01}

// columns makes value sequences of many shapes.
func columns(r *rand.Rand) []float64 {
	n := 2 + r.IntN(maxChunkValues-1)
	if r.IntN(3) == 0 {
		n = 2 + r.IntN(60)
	}
	v := make([]float64, n)
	kind, x := r.IntN(12), float64(r.IntN(1<<30))
	scale := math.Pow(10, float64(r.IntN(15)))
	for i := range v {
		switch kind {
		case 0:
			x += float64(r.IntN(1000))
		case 1:
			x += 4096 * float64(r.IntN(9)-4)
		case 2:
			x = float64(r.Int64()) * float64(r.IntN(3)-1)
		case 3:
			x = odd[r.IntN(len(odd))]
		case 4:
			x = r.NormFloat64()
		case 5:
			if r.IntN(100) == 0 {
				x++
			}
		case 6:
			x = math.Round(r.Float64()*scale) / scale
		case 7:
			x = math.Float64frombits(r.Uint64())
		case 8:
			x += 17
		case 9:
			x = math.Floor(1000 * math.Sin(float64(i)/100))
		case 10:
			x += math.Round(r.Float64()*100) / 100
		case 11:
			if x += float64(r.Int64N(1 << 50)); r.IntN(50) == 0 {
				x = 0
			}
		}
		v[i] = x
	}
	return v
}

// TestColumnsComeBack encodes columns as an hour does, reads them back, and compares bit by bit.
func TestColumnsComeBack(t *testing.T) {
	e, err := newEncoder()
	if err != nil {
		t.Fatal(err)
	}
	_, dec := fuzzTools(t)
	r := rand.New(rand.NewPCG(11, 12))
	var d decoder
	rounds := 3000
	if testing.Short() {
		t.Log("short: a tenth of the columns")
		rounds = 300
	}
	for round := range rounds {
		v := columns(r)
		x, scale := toInts(nil, v)
		for i := range x {
			if math.Float64bits(toFloat(x[i], scale)) != math.Float64bits(v[i]) {
				t.Fatalf("round %d: got %v (%x) becomes %v at scale %d, want math.Float64bits(v[i])",
					round, v[i], math.Float64bits(v[i]), toFloat(x[i], scale), scale)
			}
		}
		if slices.Max(x) == slices.Min(x) {
			continue
		}
		c := e.chunk(x)
		y := make([]int64, len(x))
		y[0] = x[0]
		if err := d.chunk(dec, c, y); err != nil {
			t.Fatalf("round %d, method %x: %v", round, c[0], err)
		}
		if !slices.Equal(x, y) {
			t.Fatalf("round %d, method %x: not what was encoded; want x %v", round, c[0], y)
		}
	}
}

// TestHoursComeBack takes whole hours of columns, some of them multiples of others, through a block file.
func TestHoursComeBack(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	rounds := 30
	if testing.Short() {
		t.Log("short: six hours of thirty")
		rounds = 6
	}
	for range rounds {
		s := openStore(t, t.TempDir())
		in, err := s.ensure("db")
		if err != nil {
			t.Fatal(err)
		}
		m := &minuteMaker{}
		want := map[string][]float64{}
		for i := range 12 {
			d := Desc{Name: string(rune('a' + i)), Type: Type(i % 2)}
			m.descs = append(m.descs, s.cat.intern(d))
			v := columns(r)
			if i > 3 && r.IntN(2) == 0 {
				v = slices.Clone(want[m.descs[r.IntN(4)].key])
				f := float64(r.IntN(5))
				for k := range v {
					if v[k] = v[k] * f; r.IntN(20) == 0 {
						v[k] += float64(r.IntN(10))
					}
				}
			}
			for len(v) < hourSeconds {
				v = append(v, v...)
			}
			v = v[:hourSeconds]
			if r.IntN(3) == 0 {
				for k := range v {
					if r.IntN(5) == 0 {
						v[k] = math.NaN()
					}
				}
			}
			want[d.Key()] = v
		}
		m.fill(in, want)
		if err := sealAndMerge(in, t0); err != nil {
			t.Fatal(err)
		}
		for key, v := range want {
			c := in.cursor(key, t0)
			c.hour(t0)
			for k := range v {
				if got := c.vals[1+k]; math.Float64bits(got) != math.Float64bits(v[k]) && !(got != got && v[k] != v[k]) {
					t.Fatalf("%s second %d: %v, want %v", key, k, got, v[k])
				}
			}
			c.close()
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReferenceThatDoesNotPay makes a column look like a multiple of another one at the places that are sampled, and
// nowhere else: the attempt is larger than the column's own chunk, and must not harm that.
func TestReferenceThatDoesNotPay(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for round := range 5 {
		s := openStore(t, t.TempDir())
		in, err := s.ensure("db")
		if err != nil {
			t.Fatal(err)
		}
		m := &minuteMaker{}
		base, like := make([]float64, hourSeconds), make([]float64, hourSeconds)
		sampled := map[int]bool{}
		for i := range sampleDeltas {
			sampled[i*(hourSeconds-1)/sampleDeltas] = true
		}
		for i := range hourSeconds - 1 {
			d := float64(1 + r.IntN(100))
			base[i+1] = base[i] + d
			if sampled[i] {
				like[i+1] = like[i] + d*(1<<30)
			} else {
				like[i+1] = like[i] + float64(r.IntN(50))
			}
		}
		want := map[string][]float64{"a": base, "b": like}
		for _, name := range []string{"a", "b"} {
			m.descs = append(m.descs, s.cat.intern(Desc{Name: name, Type: Counter}))
		}
		m.fill(in, want)
		if err := sealAndMerge(in, t0); err != nil {
			t.Fatal(err)
		}
		for key, v := range want {
			c := in.cursor(key, t0)
			c.hour(t0)
			if !slices.Equal(c.vals[1:1+len(v)], v) {
				t.Errorf("round %d: %s is not what was stored, want c.vals[1 : 1+len(v)] %v", round, key, v)
			}
			c.close()
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// minuteMaker puts whole hours into an instance without a writer.
type minuteMaker struct{ descs []*seriesID }

func (mm *minuteMaker) fill(in *instance, want map[string][]float64) {
	for start := int64(0); start < hourSeconds; start += minuteSeconds {
		m := &minute{start: t0 + start}
		for s := range minuteSeconds {
			row := make([]float64, len(mm.descs))
			for i, d := range mm.descs {
				row[i] = want[d.key][int(start)+s]
			}
			m.set(s, row, false)
		}
		in.mu.Lock()
		in.pending = append(in.pending, &pendingMinute{minute: m, descs: mm.descs})
		in.mu.Unlock()
	}
}

// sealAndMerge makes a block of an hour whose minutes are in memory. The store's own goroutine does the same a second after it began.
func sealAndMerge(in *instance, hour int64) error {
	if err := in.sealPending(); err != nil {
		return err
	}
	in.write.Lock()
	defer in.write.Unlock()
	return in.mergeHour(hour)
}

func TestPercentiles(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	var q quantiler
	for range 2000 {
		var v []float64
		for _, x := range columns(r) {
			if x == x {
				v = append(v, x)
			}
		}
		if len(v) == 0 {
			continue
		}
		w := slices.Clone(v)
		slices.Sort(w)
		n := len(w)
		want := [5]float64{w[0], w[rank(5, n)], w[rank(50, n)], w[rank(95, n)], w[n-1]}
		if got := q.band(v); got != want {
			t.Fatalf("%d values: %v, want %v", n, got, want)
		}
	}
}
