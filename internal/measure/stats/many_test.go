package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMany: thousands of figures, or of pairs, are compared as few are, and soon.
func TestMany(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	const n, truth = 3000, 1.01
	var a, b []float64
	for range n {
		weather := math.Exp(0.3 * rng.NormFloat64())
		a, b = append(a, weather*math.Exp(0.05*rng.NormFloat64())), append(b, truth*weather*math.Exp(0.05*rng.NormFloat64()))
	}
	pairs, err := NewPairTest(n, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	c, err := pairs.Compare(a, b)
	if err != nil || c.P > 1e-6 || c.Low > truth || c.High < truth || c.High/c.Low > 1.006 || math.Abs(c.Held-0.95) > 0.001 {
		t.Errorf("got %d pairs: %+v, %v; want P at most 1e-6, Low at most %v, High at least %v, High / c.Low at most 1.006, math.Abs(c.Held - 0.95) at most 0.001",
			n, c, err, truth, truth)
	}
	if d := pairs.Detectable(a, b, 1); !(d > 1.002 && d < 1.006) { // by theory 2.87 standard errors of the mean: 1.0037
		t.Errorf("%d pairs would show %v", n, d)
	}
	if p, err := pairs.AlikeWithin(a, b, 0.02); err != nil || p > 1e-6 {
		t.Errorf("alike within 2 %%: p %v, %v; want at most 1e-6", p, err)
	}
	ranks, err := NewRankTest(n, n-500, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	c, err = ranks.Compare(a, b[500:])
	if err != nil || c.Low > truth || c.High < truth || c.High/c.Low > 1.05 {
		t.Errorf("got %d figures: %+v, %v; want Low at most %v, High at least %v, High / c.Low at most 1.05", n, c, err, truth, truth)
	}
	if d := ranks.Detectable(a, b[500:], 1); !(d > 1.015 && d < 1.04) { // 2.87 standard errors: 1.024
		t.Errorf("%d figures would show %v", n, d)
	}
}

// TestApproximate holds what many figures get against what few of them get exactly.
func TestApproximate(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	var d []float64
	for range mostPairs {
		d = append(d, 0.1+rng.NormFloat64())
	}
	for i := 0; i < mostPairs; i += 7 { // ties
		d[i] = 0.5
	}
	ranks := make([]int, len(d))
	for i := range ranks {
		ranks[i] = 2 * (i + 1)
	}
	exact := signedSums(ranks)
	for _, off := range []int{0, 1000, -1900, 2600, -3400, 6000} { // 1,639 is one standard deviation
		var below, above float64
		sum := (len(exact)-1)/2 + off
		for s, p := range exact {
			if s <= sum {
				below += p
			}
			if s >= sum {
				above += p
			}
		}
		x, y := normalTails(ranks, sum)
		near(t, "below", x, below, 1e-3)
		near(t, "above", y, above, 1e-3)
	}
	// Places among numbers that are not written down.
	w := walsh(d[:150]) // 11,325 of them
	lazy := walsh(append(slices.Clone(d), d...))
	for _, o := range []ordered{w, lazy, shifts(d[:50], d), shifts(d, append(slices.Clone(d), d...))} {
		if o.n == 0 || (o.all == nil) != (o.n > mostWritten) {
			t.Fatalf("%d numbers", o.n)
		}
		last := math.Inf(-1)
		for _, place := range []int{0, 1, o.n / 3, o.n/2 - 1, o.n / 2, o.n - 1} {
			v := o.at(place)
			if v < last {
				t.Errorf("place %d of %d: %v after %v", place, o.n, v, last)
			}
			if last = v; o.all == nil && (o.upTo(v) <= place || o.upTo(math.Nextafter(v, math.Inf(-1))) > place) {
				t.Errorf("place %d of %d is not %v", place, o.n, v)
			}
		}
	}
}
