package series

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"
)

// hold puts seconds of an instance into memory: what row returns for each, nil for no tick.
func hold(in *instance, descs []*seriesID, from, to int64, row func(at int64) (vals []float64, late bool)) {
	for start := floorTo(from, minuteSeconds); start < to; start += minuteSeconds {
		m := &minute{start: start}
		for sec := range minuteSeconds {
			at := start + int64(sec)
			if at < from || at >= to {
				continue
			}
			if vals, late := row(at); vals != nil {
				m.set(sec, vals, late)
			}
		}
		if m.ticks == 0 {
			continue
		}
		in.mu.Lock()
		in.last = max(in.last, start+minuteSeconds-1)
		in.pending = append(in.pending, &pendingMinute{minute: m, descs: descs})
		in.mu.Unlock()
	}
}

// toDay makes a day's block of what an instance has in memory.
func toDay(t *testing.T, s *Store, in *instance, hours ...int64) {
	t.Helper()
	for _, h := range hours {
		if err := sealAndMerge(in, h); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Compact(context.Background(), time.Unix(t0+2*daySeconds, 0)); err != nil {
		t.Fatal(err)
	}
	if n := len(in.blocks); n != 1 || in.blocks[0].end-in.blocks[0].start != daySeconds {
		t.Fatalf("got %d blocks, want one of a day", n)
	}
}

// bucket is the number of values of one bucket, with their extremes and percentiles.
type bucket struct {
	n    int
	band [5]float64
}

func wantBands(t *testing.T, s *Store, what, key string, from, to, step int64, want []bucket) Bands {
	t.Helper()
	got, err := s.Bands(context.Background(), "db", []string{key}, from, to, step)
	if err != nil || len(got[0].N) != len(want) {
		t.Fatalf("%s: got %+v, %v; want %d buckets", what, got, err, len(want))
	}
	b := got[0]
	for i, w := range want {
		band := [5]float64{b.Min[i], b.P5[i], b.P50[i], b.P95[i], b.Max[i]}
		if b.N[i] != w.n || w.n > 0 && !slices.EqualFunc(band[:], w.band[:], func(x, y float64) bool { return math.Abs(x-y) < 1e-9 }) {
			t.Errorf("%s, bucket %d: got %d, %v; want %d, %v", what, i, b.N[i], band, w.n, w.band)
		}
	}
	return b
}

// TestBandsOfDays: the rollups of a day's block, which percentiles tell from single seconds, also where memory lies over a block.
func TestBandsOfDays(t *testing.T) {
	s := openStore(t, t.TempDir())
	in, err := s.ensure("db")
	if err != nil {
		t.Fatal(err)
	}
	// Within each hour two rates in five are 0 and the others 100; the rate over the border of two hours is 50.
	values := map[int64][]float64{}
	for i, v := int64(0), 0.0; i < 4*hourSeconds; i++ {
		switch {
		case i%hourSeconds == 0:
			v += 50
		case i%5 > 1:
			v += 100
		}
		values[t0+i] = []float64{v}
	}
	missing := t0 + 2*hourSeconds
	descs := []*seriesID{s.cat.intern(Desc{Name: "c", Type: Counter})}
	hold(in, descs, t0, t0+4*hourSeconds, func(at int64) ([]float64, bool) {
		if at == missing {
			return nil, false
		}
		return values[at], false
	})
	const h = hourSeconds
	toDay(t, s, in, t0, t0+h, t0+2*h, t0+3*h)
	exact := [5]float64{0, 0, 100, 100, 100}
	// Of 3,599 rates 5 % are at most 0 and another 45 % lie between 0 and 100, one is 50: at 5 % there are 180 of 3,600, at 50 % 1,800.
	mixed := [5]float64{0, (180 - .05*3599) / (.45 * 3599) * 100, (1800 - 1 - .05*3599) / (.45 * 3599) * 100, 100, 100}
	for _, c := range []struct {
		what           string
		from, to, step int64
		want           []bucket
	}{
		{"hours", 0, 4 * h, h, []bucket{{3599, exact}, {3600, mixed}, {3598, exact}, {3600, mixed}}},
		{"from an odd hour", h, 2 * h, h, []bucket{{3600, mixed}}},
		{"to before an hour is over", 3 * h, 4*h - 1, h, []bucket{{3599, exact}}},
		{"from within an hour", h / 2, 3 * h / 2, h, []bucket{{3600, exact}}},
		{"from a second after the hour", h + 1, 2*h + 1, h, []bucket{{3599, exact}}},
		{"not by hours", h, 2 * h, h / 2, []bucket{{1800, exact}, {1800, exact}}},
		{"where nothing is", -2 * h, h, h, []bucket{{}, {}, {3599, exact}}},
		{"and after it", 3 * h, 6 * h, h, []bucket{{3600, mixed}, {}, {}}},
	} {
		wantBands(t, s, c.what, "c", t0+c.from, t0+c.to, c.step, c.want)
	}
	// The second that was missing comes late: its hour is read by seconds, the others are not.
	hold(in, descs, missing, missing+1, func(at int64) ([]float64, bool) { return values[at], false })
	wantBands(t, s, "memory over a block", "c", t0+h, t0+4*h, h, []bucket{{3600, mixed}, {3600, exact}, {3600, mixed}})
	wantBands(t, s, "before memory", "c", t0+h, t0+2*h, h, []bucket{{3600, mixed}})
}

// TestBandsOfFewRates: hours of a day that have few seconds, and late ones.
func TestBandsOfFewRates(t *testing.T) {
	s := openStore(t, t.TempDir())
	in, err := s.ensure("db")
	if err != nil {
		t.Fatal(err)
	}
	descs := []*seriesID{s.cat.intern(Desc{Name: "c", Type: Counter}), s.cat.intern(Desc{Name: "other"})}
	const h = hourSeconds
	last := h - 1
	ticks := map[int64]float64{
		10: 100, 11: 107, // one rate of 7, and in the next hour rates of 1
		2 * h: 0, 2*h + int64(last): 0, 3 * h: 10, 3*h + int64(last): 10, 4 * h: 30, // two rates, both over a border and late
		6*h + int64(last): 0, // a late second; in the next hour rates of 9, 5 and 2, of which the last is of a late second
		7 * h:             9, 7*h + 1: 14, 7*h + 99: 14, 7*h + 100: 16, 7*h + 101: 17,
	}
	hold(in, descs, t0, t0+8*h, func(at int64) ([]float64, bool) {
		i := at - t0
		if i >= h && i < 2*h {
			return []float64{float64(i)}, false
		}
		v, ok := ticks[i]
		if i == 5*h {
			return []float64{math.NaN(), 1}, false
		}
		if !ok {
			return nil, false
		}
		return []float64{v}, i == 3*h || i == 4*h || i == 6*h+int64(last) || i == 7*h+100
	})
	toDay(t, s, in, t0, t0+h, t0+2*h, t0+3*h, t0+4*h, t0+5*h, t0+6*h, t0+7*h)
	for _, c := range []struct {
		what           string
		from, to, step int64
		want           []bucket
	}{
		{"one rate", 0, h, h, []bucket{{1, [5]float64{7, 7, 7, 7, 7}}}},
		{"one rate, and many", 0, 2 * h, 2 * h, []bucket{{3600, [5]float64{1, 1, 1, 1, 7}}}},
		{"late rates over borders", 3 * h, 5 * h, 2 * h, []bucket{{2, [5]float64{10, 10, 10, 20, 20}}}},
		{"an hour of another series", 5 * h, 6 * h, h, []bucket{{}}},
		{"late ticks by hours", 7 * h, 8 * h, h, []bucket{{4, [5]float64{5, 5, 5, 5, 5}}}},
		{"late ticks by minutes", 7 * h, 7*h + 120, 120, []bucket{{4, [5]float64{5, 5, 5, 5, 5}}}},
	} {
		wantBands(t, s, c.what, "c", t0+c.from, t0+c.to, c.step, c.want)
	}
}

// TestTypeOfSeries: the newest decides: what is being written, then minutes in memory, then frames, then the blocks of the range.
func TestTypeOfSeries(t *testing.T) {
	s := openStore(t, t.TempDir())
	in, err := s.ensure("db")
	if err != nil {
		t.Fatal(err)
	}
	minutes := func(typ Type, at int64) {
		descs := []*seriesID{s.cat.intern(Desc{Name: "x", Type: typ})}
		hold(in, descs, at, at+2, func(at int64) ([]float64, bool) { return []float64{float64(at % 2)}, false })
	}
	const h = hourSeconds
	check := func(what string, from, to int64, want Type, found bool) {
		t.Helper()
		if got, ok := in.typeOf("x", t0+from, t0+to); got != want || ok != found {
			t.Errorf("%s: got %d, %t; want %d, %t", what, got, ok, want, found)
		}
	}
	check("nothing", 0, h, Gauge, false)
	for i, typ := range []Type{Gauge, Counter, Gauge} { // blocks of hours
		minutes(typ, t0+int64(i)*h)
		if err := sealAndMerge(in, t0+int64(i)*h); err != nil {
			t.Fatal(err)
		}
	}
	blocks := func(what string) {
		t.Helper()
		check(what+", the second hour", 0, 2*h, Counter, true)
		check(what+", just that hour", h, 2*h, Counter, true)
		check(what+", to a second of the third", h, 2*h+1, Gauge, true)
		check(what+", the first", 0, h, Gauge, true)
		check(what+", from its last second", 2*h-1, 2*h, Counter, true)
		check(what+", before", -h, 0, Gauge, false)
		check(what+", after", 3*h, 4*h, Gauge, false)
	}
	blocks("known blocks")
	for _, r := range in.blocks { // as after Open
		r.schema.Store(nil)
		s.blocks.drop(r)
	}
	blocks("blocks that were never open")
	for i := range int64(8) { // frames: the newest is a counter
		typ := Gauge
		if i == 5 {
			typ = Counter
		}
		minutes(typ, t0+3*h+(i*h+i*60)%(6*h))
	}
	if err := in.sealPending(); err != nil {
		t.Fatal(err)
	}
	check("frames", 0, h, Counter, true)
	minutes(Counter, t0+9*h)
	minutes(Gauge, t0+9*h+60)
	check("memory", 0, h, Gauge, true)
	in.pending = in.pending[:1]
	check("one minute in memory", 0, h, Counter, true)
	if w := openWriterT(t, s, "db"); w.Define(Desc{Name: "x"}) != 0 {
		t.Fatal("got another position, want the first")
	}
	check("being written", 0, h, Gauge, true)
}

// TestFlatRollup: the rates of an hour in which a series did not change, and how many of them no late tick touches.
func TestFlatRollup(t *testing.T) {
	for _, c := range []struct {
		p, late    runs
		counter    bool
		n, trusted int
	}{
		{runs{{0, 3600}}, nil, true, 3599, 3599},
		{runs{{0, 3600}}, runs{{0, 1}, {100, 2}, {3599, 1}}, true, 3599, 3594}, // at 1, 100 to 102, 3599
		{runs{{10, 5}, {20, 3}}, runs{{9, 2}, {14, 1}, {20, 1}}, true, 6, 3},   // at 11, 14, 21
		{runs{{10, 5}, {20, 3}}, runs{{9, 2}}, false, 8, 8},
		{runs{{7, 1}}, nil, true, 0, 0},
	} {
		v := 0.0
		if !c.counter {
			v = 2.5
		}
		if got, want := flatRollup(2.5, c.p, c.late, c.counter), (rollup{c.n, c.trusted, v * float64(c.n), [5]float64{v, v, v, v, v}}); got != want {
			t.Errorf("%v, late %v: got %+v, want %+v", c.p, c.late, got, want)
		}
	}
}

// TestMixturePoints: values that many share are given as they are, without an error of rounding.
func TestMixturePoints(t *testing.T) {
	for name, c := range map[string]struct {
		parts []rollup
		want  [5]float64
	}{
		"mostly zeros":         {[]rollup{{trusted: 10, band: [5]float64{0, 0, 0, 0, 1e6}}, {trusted: 10, band: [5]float64{0, 0, 0, 0, 3e6}}}, [5]float64{0, 0, 0, 0, 3e6}},
		"mostly one number":    {[]rollup{{trusted: 10, band: [5]float64{-5, .3, .3, .3, 1e6}}, {trusted: 30, band: [5]float64{-1e9, .3, .3, .3, 9}}}, [5]float64{-1e9, .3, .3, .3, 1e6}},
		"of half a line":       {[]rollup{{trusted: 20, band: [5]float64{0, 1, 2, 2, 2}}, {trusted: 20, band: [5]float64{4, 4, 4, 6, 8}}}, [5]float64{0, 10. / 9, 2, 52. / 9, 8}},
		"next to each other":   {[]rollup{{trusted: 9, band: [5]float64{1, 1, 1, 1, 1}}, {trusted: 1, band: [5]float64{math.Nextafter(1, 2), math.Nextafter(1, 2), math.Nextafter(1, 2), math.Nextafter(1, 2), math.Nextafter(1, 2)}}}, [5]float64{1, 1, 1, math.Nextafter(1, 2), math.Nextafter(1, 2)}},
		"without end, of four": {[]rollup{{trusted: 1, band: [5]float64{0, 1, 2, 3, 4}}, {trusted: 1, band: [5]float64{0, 1, 2, 3, 5}}, {trusted: 1, band: [5]float64{0, 6, 7, 8, math.Inf(1)}}, {trusted: 1, band: [5]float64{0, 1, 2, 3, 6}}}, [5]float64{0, 6, 7, 8, math.Inf(1)}},
	} {
		got := mixture(c.parts)
		for i := range got {
			if got[i] != c.want[i] && !(math.Abs(got[i]-c.want[i]) < 1e-14) {
				t.Errorf("%s: got %v, want %v", name, got, c.want)
				break
			}
		}
	}
}
