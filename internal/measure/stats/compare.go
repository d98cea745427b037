// Package stats is the arithmetic behind verdicts: are two sets of runs different, and by how much; when did a run become
// steady; how does throughput grow with the number of sessions. It is pure: no clock, no input, no output.
package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrTooFew says that there are not enough figures to say anything.
var ErrTooFew = errors.New("too few figures")

// Comparison says how the figures of B stand to those of A.
type Comparison struct {
	MedianA float64 `json:"median_a"`
	MedianB float64 `json:"median_b"`
	// Ratio is the Hodges-Lehmann estimate of B over A, the median of all quotients, and Low and High bound it with
	// the given confidence.
	Ratio      float64 `json:"ratio"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"` // as asked, such as 0.95; the interval holds at least that
	// P is how likely figures at least this far apart are when A and B are alike: the two-sided Mann-Whitney U test.
	P         float64 `json:"p"`
	SmallestP float64 `json:"smallest_p"` // the smallest P that so many figures can give
}

// Compare tests whether B differs from A. All figures must be above zero. It makes no assumption about their distribution.
//
// Sources: Mann and Whitney, On a test of whether one of two random variables is stochastically larger than the other
// (1947); Hodges and Lehmann, Estimates of location based on rank tests (1963). On logarithms, so that the shift is a ratio.
func Compare(a, b []float64, confidence float64) (Comparison, error) {
	c := Comparison{Confidence: confidence}
	if len(a) < 2 || len(b) < 2 {
		return c, fmt.Errorf("%w: %d and %d runs; two of each is the least", ErrTooFew, len(a), len(b))
	}
	for _, v := range slices.Concat(a, b) {
		if !(v > 0) || math.IsInf(v, 0) {
			return c, fmt.Errorf("a figure of %v cannot be compared by ratio", v)
		}
	}
	c.MedianA, c.MedianB = Median(a), Median(b)
	quotients := make([]float64, 0, len(a)*len(b))
	u, ties := 0.0, false
	for _, x := range a {
		for _, y := range b {
			quotients = append(quotients, math.Log(y/x))
			switch {
			case y > x:
				u++
			case y == x:
				u += 0.5
				ties = true
			}
		}
	}
	slices.Sort(quotients)
	c.Ratio = math.Exp(median(quotients))
	dist := uDistribution(len(a), len(b))
	if ties {
		c.P = normalP(a, b, u)
	} else {
		c.P = dist.twoSided(u)
	}
	c.SmallestP = dist.twoSided(0)
	k := dist.quantile((1 - confidence) / 2)
	n := len(quotients)
	c.Low, c.High = math.Exp(quotients[k]), math.Exp(quotients[n-1-k])
	return c, nil
}

// Median is the middle figure, or the mean of the two in the middle; NaN of none.
func Median(v []float64) float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return median(s)
}

func median(sorted []float64) float64 {
	n := len(sorted)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// uTable is the distribution of U under the hypothesis that both samples come from one distribution.
type uTable []float64 // probability of each U

// uDistribution counts, for each U, the ways to choose which of the ranks are B's. The number of ways with i of B's and j of
// A's left follows from whether the largest rank is B's or A's.
func uDistribution(m, n int) uTable {
	// ways[j][u] with i figures of B and j of A, built up over i.
	ways := make([][]float64, m+1)
	for j := range ways {
		ways[j] = make([]float64, m*n+1)
		ways[j][0] = 1
	}
	for i := 1; i <= n; i++ {
		next := make([][]float64, m+1)
		for j := range next {
			next[j] = make([]float64, m*n+1)
			if j == 0 {
				next[j][0] = 1
				continue
			}
			for u := 0; u <= i*j; u++ {
				// The largest is B's: it beats all j of A. It is A's: it beats none, U stays.
				next[j][u] = next[j-1][u]
				if u >= j {
					next[j][u] += ways[j][u-j]
				}
			}
		}
		ways = next
	}
	total := 0.0
	for _, w := range ways[m] {
		total += w
	}
	t := make(uTable, m*n+1)
	for u, w := range ways[m] {
		t[u] = w / total
	}
	return t
}

// twoSided is the probability of a U at least as far from the middle.
func (t uTable) twoSided(u float64) float64 {
	u = min(u, float64(len(t)-1)-u)
	p := 0.0
	for i := 0; float64(i) <= u; i++ {
		p += t[i]
	}
	return min(1, 2*p)
}

// quantile is the largest k for which U < k has at most that probability.
func (t uTable) quantile(p float64) int {
	sum := 0.0
	for k, q := range t {
		if sum += q; sum > p {
			return k
		}
	}
	return 0
}

// normalP is the test's P by the normal approximation, corrected for ties and continuity.
func normalP(a, b []float64, u float64) float64 {
	m, n := float64(len(a)), float64(len(b))
	all := slices.Concat(a, b)
	slices.Sort(all)
	tied := 0.0
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j] == all[i] {
			j++
		}
		t := float64(j - i)
		tied += t*t*t - t
		i = j
	}
	variance := m * n / 12 * ((m + n + 1) - tied/((m+n)*(m+n-1)))
	if variance <= 0 {
		return 1
	}
	z := max(0, math.Abs(u-m*n/2)-0.5) / math.Sqrt(variance)
	return math.Erfc(z / math.Sqrt2)
}
