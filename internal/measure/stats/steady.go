package stats

import "math"

// Steady says from when on a run was steady.
type Steady struct {
	Reached bool `json:"reached"`
	From    int  `json:"from"` // index of the first figure that belongs to the steady part
	// Drift is how far the least-squares line through the steady part rises (or falls, below 0) from its beginning to
	// its end, as a share of its mean.
	Drift float64 `json:"drift"`
	Test  string  `json:"test"` // in words
}

// The limits of the test.
const (
	steadyDrift  = 0.05
	steadyLeast  = 5 // figures
	steadyWordy  = "the marginal standard error rule (MSER) cuts off the beginning; the rest is steady if its trend is less than 5 % of its mean"
	steadyTooFew = "fewer than five figures: not tested"
)

// SteadyState finds the beginning of a series that does not belong to its steady part, such as the filling of a cache, and
// tests whether the rest is steady.
//
// Sources: White, An effective truncation heuristic for bias reduction in simulation output (1997), which looks for the
// beginning only in the first half; fio's steadystate=…_slope for the drift.
func SteadyState(v []float64) Steady {
	n := len(v)
	if n < steadyLeast {
		return Steady{Test: steadyTooFew}
	}
	// Sums from the end let each cut be judged in constant time.
	best := math.Inf(1)
	var from int
	var sum, sq float64
	for d := n - 1; d >= 0; d-- {
		sum += v[d]
		sq += v[d] * v[d]
		k := float64(n - d)
		if d > n/2 || n-d < steadyLeast {
			continue
		}
		if mser := (sq - sum*sum/k) / (k * k); mser <= best {
			best, from = mser, d
		}
	}
	s := Steady{From: from, Test: steadyWordy}
	s.Drift = drift(v[from:])
	s.Reached = math.Abs(s.Drift) < steadyDrift
	return s
}

// drift is the rise of the least-squares line over the whole series, as a share of the mean.
func drift(v []float64) float64 {
	n := float64(len(v))
	var mean, sxy, sxx float64
	for _, y := range v {
		mean += y / n
	}
	for i, y := range v {
		x := float64(i) - (n-1)/2
		sxy += x * (y - mean)
		sxx += x * x
	}
	if mean == 0 {
		return 0
	}
	return sxy / sxx * (n - 1) / mean
}
