package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCuts holds the intervals of few figures against their definition, with all orders counted one by one: as many quotients are
// left out at each end as U may be with no more than half of what the confidence leaves.
func TestCuts(t *testing.T) {
	for m := 2; m <= 6; m++ {
		for n := 2; n <= 6; n++ {
			counts, total := make([]float64, m*n+2), 0.0
			for mask := range uint(1) << (m + n) {
				if bits.OnesCount(mask) != n {
					continue
				}
				u := 0
				for i := range m + n {
					if mask>>i&1 == 1 {
						u += bits.OnesCount(^mask & (1<<i - 1))
					}
				}
				counts[u]++
				total++
			}
			for _, confidence := range []float64{.4, .7, .9, .95, .99} {
				cut, below := 0, counts[0]
				for (below+counts[cut+1])/total <= (1-confidence)/2 {
					cut++
					below += counts[cut]
				}
				r, err := NewRankTest(m, n, confidence)
				if err != nil {
					t.Fatal(err)
				}
				if held := 1 - 2*below/total; r.cut != cut || math.Abs(r.held-held) > 1e-12 {
					t.Errorf("%d and %d at %v: got cut %d, held %v; want %d, %v", m, n, confidence, r.cut, r.held, cut, held)
				}
			}
		}
	}
}

// TestManyCuts: where the normal distribution replaces the exact one, what is left out is the same, or one less of pairs. The exact
// figures are R's: qwilcox(0.025, m, n) - 1 and qsignrank(0.025, n) - 1.
func TestManyCuts(t *testing.T) {
	for _, c := range []struct{ m, n, want int }{{30, 31, 328}, {25, 60, 546}, {50, 50, 965}, {20, 100, 721}, {60, 60, 1426}} {
		r, err := NewRankTest(c.m, c.n, .95)
		if err != nil {
			t.Fatal(err)
		}
		if r.cut != c.want {
			t.Errorf("%d and %d: got %d, want %d", c.m, c.n, r.cut, c.want)
		}
	}
	for _, c := range []struct{ n, want int }{{201, 8532}, {210, 9350}, {250, 13444}, {300, 19628}} {
		p, err := NewPairTest(c.n, .95)
		if err != nil {
			t.Fatal(err)
		}
		if p.cut != c.want && p.cut != c.want-1 {
			t.Errorf("%d pairs: got %d, want %d or one less", c.n, p.cut, c.want)
		}
	}
	// An interval that never errs is the whole range.
	r, _ := NewRankTest(30, 31, 1)
	p, _ := NewPairTest(201, 1)
	if r.cut != 0 || p.cut != 0 {
		t.Errorf("with a confidence of 1: got cuts %d and %d, want none", r.cut, p.cut)
	}
}

// TestUnwritten: numbers that are too many to be written down are found as those that are.
func TestUnwritten(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	draw := func(n int) (v []float64) {
		for range n {
			v = append(v, rng.NormFloat64())
		}
		return v
	}
	x, y := draw(120), draw(140)
	var means, differences []float64
	d := draw(190)
	for i := range d {
		for j := i; j < len(d); j++ {
			means = append(means, (d[i]+d[j])/2)
		}
	}
	for _, v := range x {
		for _, w := range y {
			differences = append(differences, w-v)
		}
	}
	x0, y0, d0 := slices.Clone(x), slices.Clone(y), slices.Clone(d)
	for what, c := range map[string]struct {
		got ordered
		all []float64
	}{"means": {walsh(d), means}, "differences": {shifts(x, y), differences}} {
		slices.Sort(c.all)
		n := len(c.all)
		if c.got.all != nil || c.got.n != n {
			t.Fatalf("%s: got %d, written down %v; want %d, not written down", what, c.got.n, c.got.all != nil, n)
		}
		for _, at := range []int{0, 1, 2, 100, n / 3, n/2 - 1, n / 2, n - 100, n - 2, n - 1} {
			if got := c.got.at(at); math.Abs(got-c.all[at]) > 1e-12 {
				t.Errorf("%s: got %v at %d, want %v", what, got, at, c.all[at])
			}
		}
		want := c.all[n/2]
		if n%2 == 0 {
			want = (c.all[n/2-1] + c.all[n/2]) / 2
		}
		if got := c.got.median(); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: got the median %v, want %v", what, got, want)
		}
	}
	if !slices.Equal(x, x0) || !slices.Equal(y, y0) || !slices.Equal(d, d0) {
		t.Error("got the figures in another order, want them as given")
	}
}

// TestManyAlike: many figures that are the same on both sides are not different at all, and pairs that all go one way are as
// different as they can be.
func TestManyAlike(t *testing.T) {
	var a []float64
	for i := range 40 {
		a = append(a, float64(i+1))
	}
	if c, err := compare(a, a); err != nil || c.P != 1 {
		t.Errorf("40 figures against themselves: got p %v, %v; want 1", c.P, err)
	}
	p, err := NewPairTest(200, .95)
	if err != nil {
		t.Fatal(err)
	}
	low, high := make([]float64, 200), make([]float64, 200)
	for i := range low {
		low[i], high[i] = 1, float64(i+2)
	}
	if c, err := p.Compare(low, high); err != nil || c.P != math.Ldexp(1, -199) || c.SmallestP != c.P {
		t.Errorf("200 pairs all of one sign: got p %v of %v, %v; want 2 to the power of -199", c.P, c.SmallestP, err)
	}
}

// TestRunsCounted holds the probabilities of runs against all orders of up to five signs of each kind, counted one by one.
func TestRunsCounted(t *testing.T) {
	for plus := 1; plus <= 5; plus++ {
		for minus := 1; minus <= 5; minus++ {
			counts, total := make([]float64, plus+minus+1), 0.0
			orders := map[int][]float64{} // one for each number of stretches
			for mask := range uint(1) << (plus + minus) {
				if bits.OnesCount(mask) != plus {
					continue
				}
				var signs []float64
				stretches := 1
				for i := range plus + minus {
					signs = append(signs, float64(mask>>i&1)-.5)
					if i > 0 && signs[i] != signs[i-1] {
						stretches++
					}
				}
				counts[stretches]++
				total++
				orders[stretches] = signs
			}
			upTo := 0.0
			for s, n := range counts {
				if upTo += n; n == 0 {
					continue
				}
				got, p := Runs(append([]float64{0}, orders[s]...)) // nothing is of no sign
				if got != s || math.Abs(p-upTo/total) > 1e-12 {
					t.Errorf("%v: got %d stretches, p %v; want %d, %v", orders[s], got, p, s, upTo/total)
				}
			}
		}
	}
	for _, one := range [][]float64{nil, {0}, {1, 2}, {-1}} {
		if got, p := Runs(one); p != 1 || got > 1 {
			t.Errorf("%v: got %d stretches, p %v; want at most one, and 1", one, got, p)
		}
	}
}

// TestDetectableEdge: what shows from a known shift on is found there, up to twenty times (e^3); the rest is infinite.
func TestDetectableEdge(t *testing.T) {
	type draws = func(n int, at float64) []float64
	scatter := []float64{-.1, .1, .05, -.05}
	for _, edge := range []float64{.01, .3, 1.7, 2.9, 3} {
		if got := detectable(scatter, 1, func(_ draws, shift float64) bool { return shift >= edge }); got < math.Exp(edge) || got > math.Exp(edge)*1.001 {
			t.Errorf("what shows from e^%v on: got %v, want %v", edge, got, math.Exp(edge))
		}
	}
	if got := detectable(scatter, 1, func(_ draws, shift float64) bool { return shift > 3 }); !math.IsInf(got, 1) {
		t.Errorf("what shows beyond e^3 alone: got %v, want infinity", got)
	}
	few, err := NewRankTest(3, 3, .95)
	if err != nil {
		t.Fatal(err)
	}
	if got := few.Detectable([]float64{1, 1.01, 1.02}, []float64{1, 1.01, 1.03}, 1); !math.IsInf(got, 1) {
		t.Errorf("three runs of each, which cannot show anything: got %v, want infinity", got)
	}
	// A pair more than are worked out exactly shows as much.
	rng := rand.New(rand.NewPCG(33, 34))
	a, b := make([]float64, 201), make([]float64, 201)
	for i := range a {
		a[i], b[i] = math.Exp(.05*rng.NormFloat64()), math.Exp(.05*rng.NormFloat64())
	}
	var shown [2]float64
	for i, n := range []int{200, 201} {
		p, err := NewPairTest(n, .95)
		if err != nil {
			t.Fatal(err)
		}
		shown[i] = math.Log(p.Detectable(a[:n], b[:n], 1))
	}
	if math.Abs(shown[0]/shown[1]-1) > .1 || shown[0] < .01 || shown[0] > .02 { // by theory 2.8 × 0.0707/√200, a tenth more for ranks
		t.Errorf("200 and 201 pairs: got %v and %v, want about 0.014", shown[0], shown[1])
	}
}

// TestChiSquared: the mean, the variance and the upper five per cent of what is drawn are those of the tables.
func TestChiSquared(t *testing.T) {
	for degrees, limit := range map[float64]float64{1: 3.841, 2: 5.991, 3: 7.815, 5: 11.070, 18: 28.869} {
		rng := rand.New(rand.NewPCG(35, 36))
		const rounds = 20000
		var mean, squares, beyond float64
		for range rounds {
			x := chiSquared(rng, degrees)
			mean += x / rounds
			squares += x * x / rounds
			if x > limit {
				beyond++
			}
		}
		// Four standard errors.
		near(t, "mean", mean, degrees, 4*math.Sqrt(2*degrees/rounds))
		near(t, "variance", squares-mean*mean, 2*degrees, 4*2*degrees*math.Sqrt((2+12/degrees)/rounds))
		near(t, "share beyond the 95 % of the table", beyond/rounds, .05, 4*math.Sqrt(.05*.95/rounds))
	}
}

// TestUnits: the law does not hang on the unit of throughput: in ten thousands of transactions it is the same.
func TestUnits(t *testing.T) {
	const unit = 1e-4
	small := slices.Clone(epyc)
	for i := range small {
		small[i].X *= unit
	}
	want, err := FitUSL(epyc, 3)
	if err != nil {
		t.Fatal(err)
	}
	got, err := FitUSL(small, 3)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string][2]float64{
		"λ": {got.Lambda, want.Lambda * unit}, "λ low": {got.Lambda95.Low, want.Lambda95.Low * unit}, "λ high": {got.Lambda95.High, want.Lambda95.High * unit}, "σ": {got.Sigma, want.Sigma},
		"σ low": {got.Sigma95.Low, want.Sigma95.Low}, "κ": {got.Kappa, want.Kappa}, "κ high": {got.Kappa95.High, want.Kappa95.High}, "R²": {got.RSquared, want.RSquared},
	} {
		if math.Abs(c[0]/c[1]-1) > 1e-4 {
			t.Errorf("%s: got %v, want %v", what, c[0], c[1])
		}
	}
}

// TestLinearForm: points of a law lie on its linear form, so that the first guess is the law itself; where the form would begin
// below zero, the guess is the first point's.
func TestLinearForm(t *testing.T) {
	all := [3]bool{true, true, true}
	for _, law := range []USL{{100, .1, .001}, {.5, .3, 0}, {2000, 0, .02}} {
		var points []Point
		for _, n := range []float64{1, 2, 3, 5, 9, 30} {
			points = append(points, Point{n, law.At(n)})
		}
		if got := linear(points, all); math.Abs(got.Lambda/law.Lambda-1) > 1e-9 || math.Abs(got.Sigma-law.Sigma) > 1e-9 || math.Abs(got.Kappa-law.Kappa) > 1e-9 {
			t.Errorf("got %+v, want %+v", got, law)
		}
	}
	below := []Point{{2, 2}, {3, 1}, {4, 4 / 5.0}, {5, 5 / 7.0}} // N/X is 1, 3, 5, 7: at no session it would be -3
	if got := linear(below, [3]bool{true, true, false}); got != (USL{Lambda: 1}) {
		t.Errorf("got %+v, want the first point's throughput of a session, 1", got)
	}
}

// TestPivots: equations are solved in any order.
func TestPivots(t *testing.T) {
	rows := [3][3]float64{{2, 0, 0}, {0, 3, 0}, {0, 0, 4}}
	right := [3]float64{2, 6, 12}
	for _, o := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		var a [3][3]float64
		var b [3]float64
		for i, from := range o {
			a[i], b[i] = rows[from], right[from]
		}
		if got := solve(a, b); got != [3]float64{1, 2, 3} {
			t.Errorf("in the order %v: got %v, want 1, 2, 3", o, got)
		}
	}
}

// TestFalseRateOfFour: four runs are the least that say anything.
func TestFalseRateOfFour(t *testing.T) {
	deal := func(*rand.Rand) []bool { return make([]bool, 12) }
	if got := FalseRate([]float64{1, 1, 1, 1}, 6, .05, 1, deal); got != 0 {
		t.Errorf("four equal runs: got %v, want 0", got)
	}
	if got := FalseRate([]float64{1, 1, 1, 1}, 5, .05, 1, deal); !math.IsNaN(got) {
		t.Errorf("of five pairs, which can show nothing: got %v, want no number", got)
	}
}
