package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: %v, want %v ± %v", what, got, want, tolerance)
	}
}

// Exact probabilities of U, counted by hand for 2 and 3 figures: 10 orders, U = 0 in one of them.
func TestUDistribution(t *testing.T) {
	want := []float64{.1, .1, .2, .2, .2, .1, .1}
	for u, p := range uDistribution(2, 3) {
		near(t, "P(U)", p, want[u], 1e-12)
	}
	sum := 0.0
	for _, p := range uDistribution(12, 9) {
		sum += p
	}
	near(t, "sum", sum, 1, 1e-9)
}

func TestCompare(t *testing.T) {
	a := []float64{690, 700, 688, 695, 702, 691, 689, 699, 694, 698}
	b := make([]float64, len(a))
	for i, v := range a {
		b[i] = v * 1.6
	}
	c, err := compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "ratio", c.Ratio, 1.6, 0.005)
	near(t, "p", c.P, 2/184756.0, 1e-9) // 2 of the C(20, 10) orders
	if !(c.Low < 1.6 && 1.6 < c.High && c.High-c.Low < 0.05) {
		t.Errorf("interval %v to %v, want (c.Low < 1.6 && 1.6 < c.High && c.High-c.Low < 0.05) true", c.Low, c.High)
	}
	if c, err := compare(a[:3], b[:3]); err != nil || math.Abs(c.SmallestP-0.1) > 1e-12 {
		t.Errorf("three runs: got %+v, %v; want math.Abs(c.SmallestP - 0.1) at most 1e-12", c, err)
	}
	if _, err := compare(a[:1], b); err == nil {
		t.Error("one run was compared")
	}
	if _, err := compare([]float64{0, 1}, b); err == nil {
		t.Error("a zero was compared")
	}
	if c, err := compare([]float64{5, 5, 5}, []float64{5, 5, 5}); err != nil || c.P != 1 || c.Ratio != 1 {
		t.Errorf("equal figures: got %+v, %v; want P 1, Ratio 1", c, err)
	}
}

// TestCoverage draws from one known distribution: the interval must hold the true ratio as often as it says, and the test
// must cry wolf no more often than it may.
func TestCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const rounds, truth = 4000, 1.1
	held, wolf := 0, 0
	test, err := NewRankTest(10, 10, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	for range rounds {
		var a, b, same []float64
		for range 10 {
			a = append(a, math.Exp(rng.NormFloat64()*0.05))
			b = append(b, truth*math.Exp(rng.NormFloat64()*0.05))
			same = append(same, math.Exp(rng.NormFloat64()*0.05))
		}
		if c, _ := test.Compare(a, b); c.Low <= truth && truth <= c.High {
			held++
		}
		if c, _ := test.Compare(a, same); c.P < 0.05 {
			wolf++
		}
	}
	// Three standard errors of a share of 0.95 in 4,000 are 0.01.
	if share := float64(held) / rounds; math.Abs(share-test.held) > 0.01 || test.held < 0.95 {
		t.Errorf("the interval of 95 %% held the truth in %.1f %%; want math.Abs(share - test.held) at most 0.01, test.held at least 0.95", 100*share)
	}
	if share := float64(wolf) / rounds; share > 0.06 || share < 0.02 {
		t.Errorf("a test at 5 %% found a difference that is not there in %.1f %%; want share at most 0.06, share at least 0.02", 100*share)
	}
}

// TestHeld checks the confidence that intervals of few figures claim, where it is far from what was asked.
func TestHeld(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, size := range [][2]int{{3, 3}, {4, 4}, {5, 3}, {6, 6}, {60, 60}} {
		test, err := NewRankTest(size[0], size[1], 0.95)
		if err != nil {
			t.Fatal(err)
		}
		if few := size[0] == 3; few != (test.held < 0.95) { // the extreme orders are 2 of 20
			t.Errorf("%v figures: the interval holds %.4f, want few %v", size, test.held, test.held < 0.95)
		}
		rounds := 2000
		if size[0] > 10 {
			rounds = 200
		}
		held := 0
		for range rounds {
			a, b := make([]float64, size[0]), make([]float64, size[1])
			for i := range a {
				a[i] = math.Exp(rng.NormFloat64())
			}
			for i := range b {
				b[i] = 2 * math.Exp(rng.NormFloat64())
			}
			if c, _ := test.Compare(a, b); c.Low <= 2 && 2 <= c.High {
				held++
			}
		}
		limit := 3.3 * math.Sqrt(test.held*(1-test.held)/float64(rounds))
		near(t, "share of intervals that held the truth", float64(held)/float64(rounds), test.held, limit)
	}
}

// TestTies counts all ways by hand and compares.
func TestTies(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 50 {
		m, n := 2+rng.IntN(4), 2+rng.IntN(4)
		all := make([]float64, m+n)
		for i := range all {
			all[i] = float64(1 + rng.IntN(4))
		}
		uOf := func(isB func(int) bool) (u float64) {
			for i := range all {
				for j := range all {
					if isB(j) && !isB(i) {
						if all[j] > all[i] {
							u++
						} else if all[j] == all[i] {
							u += 0.5
						}
					}
				}
			}
			return u
		}
		far := math.Abs(uOf(func(i int) bool { return i >= m }) - float64(m*n)/2)
		count, total := 0.0, 0.0
		for mask := range 1 << (m + n) {
			if bits.OnesCount(uint(mask)) != n {
				continue
			}
			total++
			if math.Abs(uOf(func(i int) bool { return mask>>i&1 == 1 })-float64(m*n)/2) >= far {
				count++
			}
		}
		c, err := compare(all[:m], all[m:])
		if err != nil {
			t.Fatal(err)
		}
		near(t, "p with ties", c.P, count/total, 1e-12)
	}
	// If figures are too many to count, the approximation must be near the exact value.
	var a, b []float64
	for range 24 {
		a = append(a, math.Round(100+8*rng.NormFloat64()))
		b = append(b, math.Round(104+8*rng.NormFloat64()))
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	u := 0.0
	for _, x := range a {
		for _, y := range b {
			if y > x {
				u++
			} else if y == x {
				u += 0.5
			}
		}
	}
	near(t, "approximation", normalP(all, 24, 24, u), tiedP(all, 24, 24, u), 0.003)
}

func TestSteadyState(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	warm := make([]float64, 60)
	for i := range warm {
		warm[i] = 1000*(1-math.Exp(-float64(i)/4)) + rng.NormFloat64()*10
	}
	if s := SteadyState(warm); !s.Reached || s.From < 6 || s.From > 30 {
		t.Errorf("a cache that fills with a time constant of 4 s: got %+v; want Reached true, From from 6 to 30", s)
	}
	ramp := make([]float64, 60)
	for i := range ramp {
		ramp[i] = 100 + 10*float64(i)
	}
	if s := SteadyState(ramp); s.Reached {
		t.Errorf("a ramp is steady: %+v", s)
	}
	flat := []float64{5, 5, 5, 5, 5, 5, 5, 5}
	if s := SteadyState(flat); !s.Reached || s.From != 0 || s.Drift != 0 {
		t.Errorf("a constant is not steady from its beginning: %+v; want Reached true, From 0, Drift 0", s)
	}
	if s := SteadyState(flat[:4]); s.Reached {
		t.Error("four figures were called steady")
	}
}

// The sweep of an EPYC server in transactions a second, as it was published.
var epyc = []Point{
	{1, 943}, {2, 1859}, {4, 3533}, {8, 6762}, {12, 10012}, {16, 13063}, {20, 15348}, {24, 16886}, {30, 18150}, {36, 18923},
	{42, 19375}, {48, 20111}, {56, 20549}, {64, 20861}, {72, 21124}, {80, 21370}, {100, 21807}, {128, 22161}, {192, 22389},
	{256, 22091}, {512, 19524},
}

func TestFitOfKnownLaw(t *testing.T) {
	truth := USL{Lambda: 1000, Sigma: 0.03, Kappa: 0.0002}
	var exact []Point
	for _, n := range []float64{1, 2, 4, 8, 16, 32, 64, 128} {
		exact = append(exact, Point{n, truth.At(n)})
	}
	f, err := FitUSL(exact, 1)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "λ", f.Lambda, 1000, 1e-3)
	near(t, "σ", f.Sigma, 0.03, 1e-6)
	near(t, "κ", f.Kappa, 0.0002, 1e-8)
	near(t, "peak", f.Peak(), math.Sqrt(0.97/0.0002), 1e-2)
	near(t, "R²", f.RSquared, 1, 1e-9)
	linear := []Point{{1, 10}, {2, 20}, {4, 40}, {8, 80}}
	if f, err := FitUSL(linear, 1); err != nil || f.Kappa != 0 && f.Kappa > 1e-12 || f.Peak() < 1e5 {
		t.Errorf("throughput that only grows: %+v, %v", f, err)
	}
	flat := []Point{{1, 10}, {2, 10}, {4, 10}, {8, 10}}
	if f, err := FitUSL(flat, 1); err != nil || math.Abs(f.Sigma-1) > 1e-6 || !(f.RSquared <= 1) {
		t.Errorf("throughput that never grows: got %+v, %v; want math.Abs(f.Sigma - 1) at most 1e-6, (f.RSquared <= 1) true", f, err)
	}
	if _, err := FitUSL(exact[:3], 1); err == nil {
		t.Error("three points were fitted")
	}
}

// TestFitCoverage fits sweeps with known errors: the intervals must hold the truth about as often as they say.
func TestFitCoverage(t *testing.T) {
	truth := USL{Lambda: 1000, Sigma: 0.03, Kappa: 0.0002}
	rng := rand.New(rand.NewPCG(5, 6))
	const rounds = 300
	held := map[string]int{}
	for range rounds {
		var points []Point
		for _, n := range []float64{1, 2, 4, 8, 16, 32, 64, 128} {
			points = append(points, Point{n, truth.At(n) + 100*rng.NormFloat64()})
		}
		f, err := FitUSL(points, rng.Uint64())
		if err != nil {
			t.Fatal(err)
		}
		_, at96 := f.Predict(96)
		for what, in := range map[string]bool{
			"σ":                  f.Sigma95.Low <= truth.Sigma && truth.Sigma <= f.Sigma95.High,
			"κ":                  f.Kappa95.Low <= truth.Kappa && truth.Kappa <= f.Kappa95.High,
			"throughput with 96": at96.Low <= truth.At(96) && truth.At(96) <= at96.High,
			"peak":               f.Peak95().Low <= truth.Peak() && truth.Peak() <= f.Peak95().High,
		} {
			if in {
				held[what]++
			}
		}
	}
	for what, n := range held {
		if share := float64(n) / rounds; share < 0.90 || share > 0.99 {
			t.Errorf("%s: the interval of 95 %% held the truth in %.1f %%, want share from 0.90 to 0.99", what, 100*share)
		}
	}
}

func TestFitOfPublishedSweep(t *testing.T) {
	f, err := FitUSL(epyc, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("λ %.1f σ %.5f κ %.3g peak %.0f %+v R² %.4f", f.Lambda, f.Sigma, f.Kappa, f.Peak(), f.Peak95(), f.RSquared)
	if f.RSquared < 0.97 || f.Peak() < 100 || f.Peak() > 300 {
		t.Errorf("R² %v, peak at %v sessions; measured was the highest at 192; want f.RSquared at least 0.97, f.Peak() from 100 to 300",
			f.RSquared, f.Peak())
	}
}

// compare tests whether b differs from a with a confidence of 95 %.
func compare(a, b []float64) (Comparison, error) {
	r, err := NewRankTest(len(a), len(b), 0.95)
	if err != nil {
		return Comparison{}, err
	}
	return r.Compare(a, b)
}
