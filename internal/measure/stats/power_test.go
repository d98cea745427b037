package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestDetectable makes runs with a known scatter, asks what would show, and tries it: near four times in five it must.
func TestDetectable(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	const sd = 0.03
	test, err := NewRankTest(10, 10, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	runs := func(shift float64) []float64 {
		v := make([]float64, 10)
		for i := range v {
			v[i] = 1000 * math.Exp(shift+sd*rng.NormFloat64())
		}
		return v
	}
	var ratios []float64
	for i := range 7 {
		ratios = append(ratios, test.Detectable(runs(0), runs(0.5), uint64(i)))
	}
	ratio := Median(ratios)
	found := 0
	const rounds = 1000
	for range rounds {
		if c, _ := test.Compare(runs(0), runs(math.Log(ratio))); c.P < 0.05 {
			found++
		}
	}
	if share := float64(found) / rounds; share < 0.7 || share > 0.92 {
		t.Errorf("a ratio of %.4f was found in %.0f %% of 1,000 trials; 80 %% were promised; want share from 0.7 to 0.92", ratio, 100*share)
	}
	few, err := NewRankTest(3, 3, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if d := few.Detectable([]float64{1, 2, 3}, []float64{1, 2, 3}, 1); !math.IsInf(d, 1) {
		t.Errorf("three runs are said to show a ratio of %v", d)
	}
	four, err := NewRankTest(4, 4, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if d := four.Detectable([]float64{5, 5, 5, 5}, []float64{5, 5, 5, 5}, 1); !(d >= 1 && d < 1.001) {
		t.Errorf("runs without scatter would show only a ratio of %v", d)
	}
	if n := LeastRuns(0.95); n != 4 { // 2 of 70 orders
		t.Errorf("got %d runs at least, want 4", n)
	}
}

// TestRuns checks against counting: of all orders of 3 pluses and 3 minuses, 2 have two stretches and 4 have three.
func TestRuns(t *testing.T) {
	for _, c := range []struct {
		residuals []float64
		stretches int
		p         float64
	}{
		{[]float64{1, 1, 1, -1, -1, -1}, 2, 2.0 / 20},
		{[]float64{1, 1, -1, -1, -1, 1}, 3, 6.0 / 20},
		{[]float64{1, 0, -1, 1, -1, 1, -1}, 6, 1},
		{[]float64{1, 1, 1}, 1, 1},
	} {
		stretches, p := Runs(c.residuals)
		if stretches != c.stretches || math.Abs(p-c.p) > 1e-12 {
			t.Errorf("%v: %d stretches, p %v; want %d, %v", c.residuals, stretches, p, c.stretches, c.p)
		}
	}
}
