package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// The power that Detectable asks for, and how well it is estimated.
const (
	power        = 0.8
	powerSamples = 300
	powerSteps   = 14
	largestShift = 3 // of logarithms: 20 times
)

// Detectable is the smallest ratio above 1 that runs as scattered as these would show, at p below 1 − confidence, four times
// in five. It is +Inf when so few runs can show nothing. The scatter is that of the figures around their medians, drawn
// again and again (a smoothed bootstrap: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, section 25.5 on power);
// seed makes it repeatable.
func (r *RankTest) Detectable(a, b []float64, seed uint64) float64 {
	scatter := residuals(a, b)
	return fewer(max(r.m, r.n), mostPairs, func(n int) float64 {
		small := r
		if largest := max(r.m, r.n); n < largest {
			var err error
			if small, err = NewRankTest(max(2, r.m*n/largest), max(2, r.n*n/largest), r.confidence); err != nil {
				return math.Inf(1)
			}
		}
		return detectable(scatter, seed, func(draw func(n int, at float64) []float64, shift float64) bool {
			x, y := draw(small.m, 0), draw(small.n, shift)
			return small.p(x, y, rankU(x, y)) < 1-r.confidence
		})
	})
}

// fewer is what n figures would show, worked out from what so many would show where n are more than is quickly drawn: it falls with
// the root of their number.
func fewer(n, most int, shows func(n int) float64) float64 {
	if n <= most {
		return shows(n)
	}
	return math.Exp(math.Log(shows(most)) * math.Sqrt(float64(most)/float64(n)))
}

// detectable looks for the smallest shift of logarithms, as a ratio, that a test shows with the power asked for. test draws
// figures around a place, scattered as given, and says whether it shows the shift.
func detectable(scatter []float64, seed uint64, test func(draw func(n int, at float64) []float64, shift float64) bool) float64 {
	spread := 0.0
	for _, v := range scatter {
		spread += v * v / float64(len(scatter))
	}
	// Each figure is drawn with some noise, so that few figures make more than few values.
	noise := math.Sqrt(spread) * math.Pow(float64(len(scatter)), -0.2)
	shows := func(shift float64) bool {
		rng := rand.New(rand.NewPCG(seed, 2))
		draw := func(n int, at float64) []float64 {
			v := make([]float64, n)
			for i := range v {
				v[i] = at + scatter[rng.IntN(len(scatter))] + noise*rng.NormFloat64()
			}
			return v
		}
		hits := 0
		for range powerSamples {
			if test(draw, shift) {
				hits++
			}
		}
		return float64(hits) >= power*powerSamples
	}
	low, high := 0.0, math.Max(spread, 1e-6)
	for !shows(high) {
		if high >= largestShift {
			return math.Inf(1)
		}
		low, high = high, min(2*high, largestShift)
	}
	for range powerSteps {
		if middle := (low + high) / 2; shows(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return math.Exp(high)
}

// residuals are the logarithms of the figures less the median of their own side, widened by what the median removes.
func residuals(sides ...[]float64) (out []float64) {
	n := 0
	for _, side := range sides {
		n += len(side)
	}
	widen := math.Sqrt(float64(n) / float64(n-len(sides)))
	for _, side := range sides {
		logs := make([]float64, len(side))
		for i, v := range side {
			logs[i] = math.Log(v)
		}
		middle := Median(logs)
		for _, v := range logs {
			out = append(out, (v-middle)*widen)
		}
	}
	return out
}

// rankU counts the pairs in which B's figure is the larger one; equal ones count half.
func rankU(a, b []float64) (u float64) {
	a = slices.Clone(a)
	slices.Sort(a)
	for _, y := range b {
		less, _ := slices.BinarySearch(a, y)
		equal := less
		for equal < len(a) && a[equal] == y {
			equal++
		}
		u += float64(less) + float64(equal-less)/2
	}
	return u
}

// LeastRuns is the smallest number of runs of each side for which the test can find a difference at all.
func LeastRuns(confidence float64) int {
	for n := 2; ; n++ {
		if uDistribution(n, n).twoSided(0) < 1-confidence {
			return n
		}
	}
}

// Runs tests whether the signs of the residuals of a fit change as often as chance would have it: few changes mean that the
// law misses a bend. It returns the number of stretches of one sign and the probability of so few or fewer; zeros are left out.
//
// Source: Wald and Wolfowitz, On a test whether two samples are from the same population (1940), exact distribution.
func Runs(residuals []float64) (stretches int, p float64) {
	signs := make([]bool, 0, len(residuals))
	plus, minus := 0, 0
	for _, r := range residuals {
		if r == 0 {
			continue
		}
		below := math.Signbit(r)
		signs = append(signs, below)
		if below {
			minus++
		} else {
			plus++
		}
	}
	stretches = len(slices.Compact(slices.Clone(signs)))
	if plus == 0 || minus == 0 {
		return stretches, 1 // no order to speak of
	}
	total := choose(plus+minus, plus)
	for r := 2; r <= stretches; r++ {
		k := r / 2
		if r%2 == 0 {
			p += 2 * choose(plus-1, k-1) * choose(minus-1, k-1) / total
		} else {
			p += (choose(plus-1, k-1)*choose(minus-1, k) + choose(plus-1, k)*choose(minus-1, k-1)) / total
		}
	}
	return stretches, min(1, p)
}

// choose is the number of ways to choose k of n; none where k is more.
func choose(n, k int) float64 {
	c := 1.0
	for i := range k {
		c = c * float64(n-i) / float64(i+1)
	}
	return c
}
