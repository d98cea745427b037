package stats

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMedians: of odd and even numbers of figures, in any order; of none there is none.
func TestMedians(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{{[]float64{7}, 7}, {[]float64{9, 1}, 5}, {[]float64{9, 1, 4}, 4}, {[]float64{8, 1, 4, 2}, 3}, {[]float64{5, 3, 1, 4, 2}, 3}, {[]float64{10, 2, 4, 3, 1, 20}, 3.5}} {
		if got := Median(c.of); got != c.want {
			t.Errorf("%v: got %v, want %v", c.of, got, c.want)
		}
	}
	if got := Median(nil); !math.IsNaN(got) {
		t.Errorf("of nothing: got %v, want no number", got)
	}
}

// TestRankTable: what samples of some sizes can show. The probabilities are the counts of orders in Mann and Whitney's tables.
func TestRankTable(t *testing.T) {
	for _, c := range []struct {
		m, n           int
		confidence     float64
		smallest, held float64
		cut            int
	}{
		{2, 2, .95, 2 / 6.0, 1 - 2/6.0, 0}, {3, 3, .95, 2 / 20.0, 1 - 2/20.0, 0}, {4, 4, .95, 2 / 70.0, 1 - 2/70.0, 0}, {5, 5, .95, 2 / 252.0, 1 - 8/252.0, 2}, {5, 5, .99, 2 / 252.0, 1 - 2/252.0, 0},
		{5, 5, .5, 2 / 252.0, 1 - 2*53/252.0, 8}, {3, 5, .95, 2 / 56.0, 1 - 2/56.0, 0}, {5, 3, .95, 2 / 56.0, 1 - 2/56.0, 0}, {4, 6, .95, 2 / 210.0, 1 - 8/210.0, 2},
	} {
		r, err := NewRankTest(c.m, c.n, c.confidence)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(r.SmallestP()-c.smallest) > 1e-12 || r.cut != c.cut || math.Abs(r.held-c.held) > 1e-12 {
			t.Errorf("%d and %d at %v: got smallest %v, cut %d, held %v; want %v, %d, %v", c.m, c.n, c.confidence, r.smallest, r.cut, r.held, c.smallest, c.cut, c.held)
		}
	}
	for _, size := range [][2]int{{1, 2}, {2, 1}, {0, 0}} {
		if _, err := NewRankTest(size[0], size[1], .95); !errors.Is(err, ErrTooFew) {
			t.Errorf("%v: got %v, want too few", size, err)
		}
	}
	r, _ := NewRankTest(2, 3, .95)
	for _, bad := range [][2][]float64{{{1, 2}, {1, 2}}, {{1}, {1, 2, 3}}, {{1, 2}, {1, 0, 3}}, {{1, math.Inf(1)}, {1, 2, 3}}, {{1, math.NaN()}, {1, 2, 3}}} {
		if _, err := r.Compare(bad[0], bad[1]); err == nil {
			t.Errorf("%v: got no error", bad)
		}
	}
	// 30 by 30 pairs are counted, 30 by 31 are not: there the normal distribution is used.
	exact, _ := NewRankTest(30, 30, .95)
	normal, _ := NewRankTest(30, 31, .95)
	if exact.dist == nil || normal.dist != nil || math.Abs(float64(exact.cut+10-normal.cut)) > 2 || math.Abs(exact.held-normal.held) > 0.004 {
		t.Errorf("got cuts %d and %d, held %v and %v; want nearly the same", exact.cut, normal.cut, exact.held, normal.held)
	}
	for confidence, want := range map[float64]int{.5: 2, .9: 4, .95: 4, .99: 5, .999: 7} {
		if got := LeastRuns(confidence); got != want {
			t.Errorf("at %v: got %d runs, want %d", confidence, got, want)
		}
	}
}

// TestPairTable: the same of pairs, from Wilcoxon's tables.
func TestPairTable(t *testing.T) {
	for _, c := range []struct {
		n              int
		confidence     float64
		smallest, held float64
		cut            int
	}{{2, .95, .5, .5, 0}, {5, .95, 2 / 32.0, 1 - 2/32.0, 0}, {6, .95, 2 / 64.0, 1 - 2/64.0, 0}, {7, .95, 2 / 128.0, 1 - 6/128.0, 2}, {10, .95, 2 / 1024.0, 1 - 2*25/1024.0, 8}, {10, .99, 2 / 1024.0, 1 - 2*5/1024.0, 3}, {3, .5, .25, .5, 1}} {
		p, err := NewPairTest(c.n, c.confidence)
		if err != nil {
			t.Fatal(err)
		}
		if p.SmallestP() != c.smallest || p.cut != c.cut || math.Abs(p.held-c.held) > 1e-12 {
			t.Errorf("%d pairs at %v: got smallest %v, cut %d, held %v; want %v, %d, %v", c.n, c.confidence, p.SmallestP(), p.cut, p.held, c.smallest, c.cut, c.held)
		}
	}
	for n, word := range map[int]string{0: "no pairs", 1: "1 pair"} {
		if _, err := NewPairTest(n, .95); !errors.Is(err, ErrTooFew) || !strings.Contains(err.Error(), word) {
			t.Errorf("%d: got %v, want too few: %s", n, err, word)
		}
	}
	exact, _ := NewPairTest(200, .95)
	normal, _ := NewPairTest(201, .95)
	if exact.dist == nil || normal.dist != nil || math.Abs(float64(normal.cut-exact.cut)-86) > 20 || math.Abs(exact.held-normal.held) > 0.0005 {
		t.Errorf("got cuts %d and %d, held %v and %v; want nearly the same", exact.cut, normal.cut, exact.held, normal.held)
	}
	for confidence, want := range map[float64]int{.5: 3, .9: 5, .95: 6, .99: 8, .999: 11} {
		if got := LeastPairs(confidence); got != want {
			t.Errorf("at %v: got %d pairs, want %d", confidence, got, want)
		}
	}
}

// TestByHand compares figures that are few enough to do it on paper.
func TestByHand(t *testing.T) {
	for _, c := range []struct {
		a, b                []float64
		ratio, low, high, p float64
	}{
		{[]float64{1, 2}, []float64{4, 8}, 4, 2, 8, 2 / 6.0}, {[]float64{4, 8}, []float64{1, 2}, .25, .125, .5, 2 / 6.0},
		{[]float64{1, 2, 4}, []float64{8, 16, 32}, 8, 2, 32, 2 / 20.0}, {[]float64{1, 4}, []float64{2, 8}, math.Sqrt(8) / math.Sqrt2, .5, 8, 4 / 6.0},
		{[]float64{1, 2}, []float64{2, 4}, 2, 1, 4, 4 / 6.0}, {[]float64{1, 4}, []float64{2, 2.5}, math.Sqrt(1.25), .5, 2.5, 1},
		{[]float64{3, 3}, []float64{3, 3}, 1, 1, 1, 1},
	} {
		r, err := NewRankTest(len(c.a), len(c.b), .95)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Compare(c.a, c.b)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.Ratio-c.ratio) > 1e-9 || math.Abs(got.Low-c.low) > 1e-9 || math.Abs(got.High-c.high) > 1e-9 || math.Abs(got.P-c.p) > 1e-9 || got.Test != TestRanks || got.Confidence != .95 {
			t.Errorf("%v and %v: got %+v; want ratio %v (%v to %v), p %v", c.a, c.b, got, c.ratio, c.low, c.high, c.p)
		}
	}
	p, err := NewPairTest(3, .95)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Compare([]float64{1, 1, 1}, []float64{2, 4, 16})
	// Logarithms 1, 2 and 4, their means 1.5, 2.5 and 3: the middle of all six is 2.25.
	if err != nil || math.Abs(got.Ratio-math.Pow(2, 2.25)) > 1e-9 || math.Abs(got.Low-2) > 1e-9 || math.Abs(got.High-16) > 1e-9 || got.P != .25 || got.MedianB != 4 || got.Test != TestPairs {
		t.Errorf("three pairs: got %+v, %v; want math.Abs(got.Ratio - math.Pow(2, 2.25)) at most 1e-9, math.Abs(got.Low - 2) at most 1e-9, math.Abs(got.High - 16) at most 1e-9, P .25, MedianB 4, Test TestPairs",
			got, err)
	}
	if got, err := p.Compare([]float64{1, 1, 1}, []float64{2, .25, 16}); err != nil || math.Abs(got.P-.75) > 1e-12 {
		t.Errorf("signs +1 −2 +3: got p %v, %v; want 0.75", got.P, err)
	}
	if got, err := p.Compare([]float64{1, 1, 1}, []float64{1, 1, 1}); err != nil || got.P != 1 || got.Ratio != 1 {
		t.Errorf("no difference: got %+v, %v; want P 1, Ratio 1", got, err)
	}
	if _, err := p.Compare([]float64{1, 1}, []float64{1, 1, 1}); err == nil {
		t.Error("two figures passed for three")
	}
	if _, err := p.AlikeWithin([]float64{1}, []float64{0}, .03); err == nil {
		t.Error("a figure of nothing was compared")
	}
}

func TestSteadyEdges(t *testing.T) {
	for _, c := range []struct {
		of      []float64
		from    int
		drift   float64
		reached bool
	}{
		{[]float64{1, 2, 3, 4, 5}, 0, 4 / 3.0, false}, {[]float64{5, 4, 3, 2, 1}, 0, -4 / 3.0, false}, {[]float64{7, 7, 7, 7, 7}, 0, 0, true},
		{[]float64{1, 1, 9, 9, 9, 9, 9, 9, 9, 9}, 2, 0, true}, {[]float64{1, 1, 1, 1, 1, 1, 9, 9, 9, 9}, 0, 0, false}, // no more than the first half could go, which makes it no better
		{[]float64{1, 9, 9, 9, 9, 9}, 1, 0, true}, {[]float64{1, 1, 9, 9, 9, 9}, 1, 0, false}, // and five stay
		{[]float64{1, 1, 1, 1, 1, 9, 9, 9, 9, 9}, 5, 0, true}, {[]float64{1, 1, 1, 1, 1, 1, 1, 9, 9, 9, 9, 9}, 0, 0, false}, // half of them may go
		{[]float64{97.5, 98.75, 100, 101.25, 102.5}, 0, .05, false}, {[]float64{.5, .75, 1, 1.25, 1.5}, 0, 1, false},
		{[]float64{0, 0, 0, 0, 0}, 0, 0, true}, {[]float64{100, 101, 102, 103, 104}, 0, 4 / 102.0, true}, {[]float64{100, 102, 104, 106, 108}, 0, 8 / 104.0, false},
	} {
		got := SteadyState(c.of)
		if got.From != c.from || got.Reached != c.reached || c.drift != 0 && math.Abs(got.Drift-c.drift) > 1e-9 || got.Test != steadyWordy {
			t.Errorf("%v: got %+v, want from %d, drift %v, steady %v", c.of, got, c.from, c.drift, c.reached)
		}
	}
	if got := SteadyState([]float64{1, 1, 1, 1}); got.Test != steadyTooFew || got.Reached {
		t.Errorf("four figures: got %+v, want no test", got)
	}
}

func TestLinear(t *testing.T) {
	a := [3][3]float64{{0, 2, 1}, {1, -2, -3}, {-1, 1, 2}}
	if x := solve(a, [3]float64{-8, 0, 3}); math.Abs(x[0]+4) > 1e-12 || math.Abs(x[1]+5) > 1e-12 || math.Abs(x[2]-2) > 1e-12 {
		t.Errorf("got %v, want -4, -5, 2", x)
	}
	spd := [3][3]float64{{4, 12, -16}, {12, 37, -43}, {-16, -43, 98}}
	if l := cholesky(spd); l != [3][3]float64{{2, 0, 0}, {6, 1, 0}, {-8, 5, 3}} {
		t.Errorf("got %v, want the known root", l)
	}
	inv := inverse(spd)
	for i := range 3 {
		for j := range 3 {
			sum := 0.0
			for k := range 3 {
				sum += spd[i][k] * inv[k][j]
			}
			if want := map[bool]float64{true: 1}[i == j]; math.Abs(sum-want) > 1e-9 {
				t.Errorf("got %v at %d, %d of a matrix and its inverse, want %v", sum, i, j, want)
			}
		}
	}
	if x := solve([3][3]float64{{1, 0, 0}, {0, 0, 0}, {0, 0, 4}}, [3]float64{3, 0, 8}); x != [3]float64{3, 0, 2} {
		t.Errorf("what nothing tells: got %v, want 3, 0, 2", x)
	}
	if l := cholesky([3][3]float64{{-1, 0, 0}, {0, 1, 0}, {0, 0, 0}}); l != [3][3]float64{{0, 0, 0}, {0, 1, 0}, {0, 0, 0}} {
		t.Errorf("what rounding made impossible: got %v, want zero rows", l)
	}
}

func TestLaw(t *testing.T) {
	u := USL{Lambda: 100, Sigma: .1, Kappa: .01}
	for n, want := range map[float64]float64{1: 100, 2: 200 / 1.12, 10: 1000 / 2.8, 100: 10000 / 109.9} {
		if got := u.At(n); math.Abs(got-want) > 1e-9 {
			t.Errorf("with %v sessions: got %v, want %v", n, got, want)
		}
	}
	for u, want := range map[USL]float64{u: math.Sqrt(90), {Lambda: 1, Sigma: 1}: 1, {Lambda: 1, Sigma: 2, Kappa: 1}: 1, {Lambda: 1, Sigma: .5}: math.Inf(1), {Lambda: 1, Kappa: 4}: 1, {Lambda: 1, Kappa: .25}: 2} {
		if got := u.Peak(); got != want && math.Abs(got-want) > 1e-12 {
			t.Errorf("%+v: got the peak at %v, want %v", u, got, want)
		}
	}
	for _, bad := range [][]Point{{{1, 1}, {2, 2}, {3, 3}, {3, 4}}, {{1, 1}, {2, 2}, {3, 3}, {0, 4}}, {{1, 1}, {2, 2}, {3, 3}, {4, 0}}, {{1, 1}, {2, 2}, {3, 3}, {4, math.Inf(1)}}, {{1, 1}, {2, 2}, {3, 3}, {math.Inf(1), 4}}, {{1, 1}}} {
		if _, err := FitCoefficients(bad); err == nil {
			t.Errorf("%v: got no error", bad)
		}
	}
}

// TestSpending: looks may err by parts that come to what all of them may.
func TestSpending(t *testing.T) {
	got := SpendAlpha(.05, []int{6, 12, 24})
	if sum := got[0] + got[1] + got[2]; math.Abs(sum-.05) > 1e-12 || math.Abs(got[0]-.05*math.Log(1+(math.E-1)/4)) > 1e-12 || !(got[0] > 0 && got[1] > 0 && got[2] > 0) {
		t.Errorf("got %v, want parts of 0.05", got)
	}
	if one := SpendAlpha(.05, []int{7}); math.Abs(one[0]-.05) > 1e-12 {
		t.Errorf("one look: got %v, want all of it", one)
	}
}

// TestFigures checks figures that are computed in many steps, with drawn numbers: they are the same for the same seed. testdata has
// them; RISSO_WRITE=1 rewrites them.
func TestFigures(t *testing.T) {
	var b strings.Builder
	say := func(what string, figures ...float64) {
		fmt.Fprintf(&b, "%s:", what)
		for _, f := range figures {
			fmt.Fprintf(&b, " %.6g", f)
		}
		b.WriteByte('\n')
	}
	rng := rand.New(rand.NewPCG(21, 22))
	sample := func(n int, at, spread float64) (v []float64) {
		for range n {
			v = append(v, at*math.Exp(spread*rng.NormFloat64()))
		}
		return v
	}
	for _, size := range [][2]int{{5, 5}, {8, 12}, {30, 31}, {150, 160}} {
		a, c := sample(size[0], 100, .05), sample(size[1], 103, .05)
		r, err := NewRankTest(size[0], size[1], .95)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Compare(a, c)
		if err != nil {
			t.Fatal(err)
		}
		say(fmt.Sprint("ranks of ", size), got.MedianA, got.MedianB, got.Ratio, got.Low, got.High, got.P, got.SmallestP, got.Held)
		if size[0] < 30 {
			say(fmt.Sprint("detectable by ranks of ", size), r.Detectable(a, c, 1))
		}
		for i := range a {
			a[i] = math.Round(a[i])
		}
		for i := range c {
			c[i] = math.Round(c[i])
		}
		if got, err = r.Compare(a, c); err != nil {
			t.Fatal(err)
		}
		say("with ties", got.Ratio, got.Low, got.High, got.P)
	}
	for _, n := range []int{7, 20, 205} {
		a := sample(n, 100, .05)
		c := make([]float64, n)
		for i := range a {
			c[i] = a[i] * math.Exp(.01+.02*rng.NormFloat64())
		}
		p, err := NewPairTest(n, .95)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Compare(a, c)
		if err != nil {
			t.Fatal(err)
		}
		alike, err := p.AlikeWithin(a, c, .02)
		if err != nil {
			t.Fatal(err)
		}
		say(fmt.Sprintf("%d pairs", n), got.Ratio, got.Low, got.High, got.P, got.SmallestP, got.Held, alike)
		if n < 100 {
			say("detectable", p.Detectable(a, c, 1))
		}
	}
	for name, points := range map[string][]Point{"epyc": epyc, "short": epyc[:5], "repeated": slices.Concat(epyc[:6], epyc[3:9])} {
		f, err := FitUSL(points, 7)
		if err != nil {
			t.Fatal(err)
		}
		x, at := f.Predict(40)
		say("law of "+name, f.Lambda, f.Sigma, f.Kappa, f.RSquared, f.Peak(), x)
		say("  its bounds "+name, f.Lambda95.Low, f.Lambda95.High, f.Sigma95.Low, f.Sigma95.High, f.Kappa95.Low, f.Kappa95.High, f.Peak95().Low, f.Peak95().High, at.Low, at.High)
	}
	say("false alarms", FalseRate(sample(40, 100, .05), 8, .05, 3, func(r *rand.Rand) []bool {
		out := make([]bool, 16)
		for i := range out {
			out[i] = r.IntN(2) == 0
		}
		return out
	}))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	file := filepath.Join("testdata", "figures.txt")
	if os.Getenv("RISSO_WRITE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
