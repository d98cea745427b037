package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Known values: Hollander and Wolfe's depression scores (the example of R's wilcox.test, V = 40, p = 0.03906 two-sided),
// and the distribution for three pairs, counted by hand.
func TestPairedKnown(t *testing.T) {
	// The scores' differences decide; as logarithms so that the ratio is their shift.
	x := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	y := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	a, b := make([]float64, len(x)), make([]float64, len(x))
	for i := range x {
		a[i], b[i] = math.Exp(y[i]), math.Exp(x[i])
	}
	test, err := NewPairTest(len(a), 0.95)
	if err != nil {
		t.Fatal(err)
	}
	c, err := test.Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "p", c.P, 0.0390625, 1e-9)
	near(t, "pseudo-median", math.Log(c.Ratio), 0.46, 1e-3) // R: wilcox.test(conf.int = TRUE)
	near(t, "low", math.Log(c.Low), 0.010, 1e-3)
	near(t, "high", math.Log(c.High), 0.786, 1e-3)
	for s, want := range []float64{1, 0, 1, 0, 1, 0, 2, 0, 1, 0, 1, 0, 1} {
		near(t, "P(W)", signedSums([]int{2, 4, 6})[s], want/8, 1e-12)
	}
	if n := LeastPairs(0.95); n != 6 {
		t.Errorf("%d pairs are the least, want 6", n)
	}
	if _, err := test.Compare(append([]float64{0}, a[1:]...), b); err == nil {
		t.Error("a zero was compared")
	}
	if c, err := test.Compare(a, a); err != nil || c.P != 1 || c.Ratio != 1 {
		t.Errorf("equal pairs: got %+v, %v; want P 1, Ratio 1", c, err)
	}
}

// TestPairsBeatDrift: where the machine drifts by far more than the difference, the pairs see it and the heaps do not; and of
// pairs without a difference no more than one in twenty cries wolf.
func TestPairsBeatDrift(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	pairs, err := NewPairTest(10, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	ranks, err := NewRankTest(10, 10, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	const rounds, truth = 1000, 1.05
	var seen, heaps, wolf, held, alike, wrongly int
	for range rounds {
		var a, b, same []float64
		for i := range 10 {
			weather := math.Exp(0.2 * rng.NormFloat64() * float64(1+i%3))
			draw := func(by float64) float64 { return by * weather * math.Exp(0.02*rng.NormFloat64()) }
			a, b, same = append(a, draw(1)), append(b, draw(truth)), append(same, draw(1))
		}
		c, _ := pairs.Compare(a, b)
		if c.P < 0.05 {
			seen++
		}
		if c.Low <= truth && truth <= c.High {
			held++
		}
		if c, _ := ranks.Compare(a, b); c.P < 0.05 {
			heaps++
		}
		if c, _ := pairs.Compare(a, same); c.P < 0.05 {
			wolf++
		}
		if p, _ := pairs.AlikeWithin(a, same, 0.03); p < 0.05 {
			alike++
		}
		if p, _ := pairs.AlikeWithin(a, b, 0.05); p < 0.05 { // the truth lies on the edge
			wrongly++
		}
	}
	if seen < rounds*9/10 || heaps > rounds/5 {
		t.Errorf("of %d differences pairs see %d, heaps %d; want seen at least %d, heaps at most %d", rounds, seen, heaps, rounds*9/10, rounds/5)
	}
	if wolf > rounds*7/100 || held < rounds*93/100 {
		t.Errorf("got %d of %d cry wolf, %d intervals hold the truth; want wolf at most %d, held at least %d",
			wolf, rounds, held, rounds*7/100, rounds*93/100)
	}
	if alike < rounds*6/10 || wrongly > rounds*7/100 {
		t.Errorf("of %d alike pairs %d are proven so; %d wrongly at the edge; want alike at least %d, wrongly at most %d",
			rounds, alike, wrongly, rounds*6/10, rounds*7/100)
	}
}

// TestPairsDetectable: what is said to show four times in five does so.
func TestPairsDetectable(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const n, rounds = 12, 60
	test, err := NewPairTest(n, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	hits, tries := 0, 0
	for round := range rounds {
		pair := func(by float64) (a, b []float64) {
			for range n {
				weather := math.Exp(0.3 * rng.NormFloat64())
				a, b = append(a, weather*math.Exp(0.05*rng.NormFloat64())), append(b, by*weather*math.Exp(0.05*rng.NormFloat64()))
			}
			return a, b
		}
		a, b := pair(1)
		by := test.Detectable(a, b, uint64(round))
		if math.IsInf(by, 1) || by < 1.01 || by > 1.3 {
			t.Fatalf("detectable is %v; want math.IsInf(by, 1) false, by from 1.01 to 1.3", by)
		}
		for range 20 {
			a, b := pair(by)
			if c, _ := test.Compare(a, b); c.P < 0.05 {
				hits++
			}
			tries++
		}
	}
	if share := float64(hits) / float64(tries); share < 0.7 || share > 0.95 {
		t.Errorf("what is said to show four times in five shows in %.2f, want from 0.7 to 0.95", share)
	}
	few, _ := NewPairTest(5, 0.95)
	if d := few.Detectable([]float64{1, 2, 3, 4, 5}, []float64{2, 3, 4, 5, 6}, 1); !math.IsInf(d, 1) {
		t.Errorf("five pairs cannot show anything, told is %v", d)
	}
}

// TestSpendAlpha looks again and again at pairs without a difference: all looks together may not err more often than one.
func TestSpendAlpha(t *testing.T) {
	looks := []int{8, 12, 18, 27, 40}
	levels := SpendAlpha(0.05, looks)
	sum := 0.0
	for _, a := range levels {
		if !(a > 0) {
			t.Errorf("levels %v, want (a > 0) true", levels)
		}
		sum += a
	}
	near(t, "all looks", sum, 0.05, 1e-12)
	rng := rand.New(rand.NewPCG(9, 10))
	const rounds = 1500
	corrected, naive := 0, 0
	for range rounds {
		var d []float64
		for range looks[len(looks)-1] {
			d = append(d, rng.NormFloat64())
		}
		hit, plain := false, false
		for i, n := range looks {
			below, above := signedTails(d[:n], 0)
			p := 2 * min(below, above)
			hit, plain = hit || p < levels[i], plain || p < 0.05
		}
		if hit {
			corrected++
		}
		if plain {
			naive++
		}
	}
	if corrected > rounds*6/100 || naive < rounds*9/100 {
		t.Errorf("of %d without a difference %d told one, %d without the correction; want corrected at most %d, naive at least %d",
			rounds, corrected, naive, rounds*6/100, rounds*9/100)
	}
}

// TestFalseRate: independent runs err as often as they may; runs with moods that last err more.
func TestFalseRate(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	var calm, jumping []float64
	for i := range 40 {
		calm = append(calm, math.Exp(0.05*rng.NormFloat64()))
		// Each second run is slower, as where something runs at just that rhythm.
		jumping = append(jumping, math.Exp(0.01*rng.NormFloat64()+0.2*float64((i/2)%2)))
	}
	turns := func(*rand.Rand) []bool { // A B B A
		order := make([]bool, 20)
		for i := range order {
			order[i] = i%4 == 1 || i%4 == 2
		}
		return order
	}
	drawn := func(rng *rand.Rand) []bool {
		order := make([]bool, 20)
		for i := 0; i < len(order); i += 2 {
			order[i] = rng.IntN(2) == 1
			order[i+1] = !order[i]
		}
		return order
	}
	if r := FalseRate(calm, 10, 0.05, 1, turns); r > 0.08 {
		t.Errorf("calm runs err in %v, want at most 0.08", r)
	}
	if r := FalseRate(jumping, 10, 0.05, 1, turns); r < 0.1 {
		t.Errorf("runs of a machine that jumps in the rhythm of the pairs err in %v, want at least 0.1", r)
	}
	if r := FalseRate(jumping, 10, 0.05, 1, drawn); r > 0.07 {
		t.Errorf("where the order is drawn they err in %v, want at most 0.07", r)
	}
	if r := FalseRate(calm[:3], 10, 0.05, 1, turns); !math.IsNaN(r) {
		t.Errorf("three runs tell %v", r)
	}
}
