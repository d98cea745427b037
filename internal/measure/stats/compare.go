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

// The tests that a Comparison may come from.
const (
	TestRanks = "Mann-Whitney U"       // of two heaps of figures
	TestPairs = "Wilcoxon signed rank" // of figures in pairs
)

// Comparison compares the figures of B with those of A.
type Comparison struct {
	Test    string  `json:"test"`
	MedianA float64 `json:"median_a"`
	MedianB float64 `json:"median_b"`
	// Ratio is the Hodges-Lehmann estimate of B over A, the median of all quotients (of pairs: of their quotients and the
	// means of any two), and Low and High are its confidence interval.
	Ratio      float64 `json:"ratio"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"` // the confidence asked for, such as 0.95
	// Held is the confidence that the interval really has: at least the one asked for if there are enough figures, less if
	// there are so few that even the whole range of the quotients is not enough.
	Held float64 `json:"held"`
	// P is the probability of figures at least this far apart if A and B are alike, two-sided.
	P         float64 `json:"p"`
	SmallestP float64 `json:"smallest_p"` // the smallest P possible with this many figures
}

// RankTest compares samples of fixed sizes: what depends on the sizes alone is worked out once.
type RankTest struct {
	m, n       int
	confidence float64
	dist       uTable // nil: more figures than are counted exactly
	smallest   float64
	cut        int     // quotients to leave out at each end
	held       float64 // confidence of what is left
}

// exactPairs is how many pairs of figures the exact distributions are worked out for; above, the normal distribution is
// close.
const exactPairs = 900

// NewRankTest prepares a test of m figures of A against n of B.
func NewRankTest(m, n int, confidence float64) (*RankTest, error) {
	if m < 2 || n < 2 {
		return nil, fmt.Errorf("%w: %d and %d runs; at least two of each are needed", ErrTooFew, m, n)
	}
	r := &RankTest{m: m, n: n, confidence: confidence}
	tail := (1 - confidence) / 2
	if m*n > exactPairs {
		mean, sd := float64(m*n)/2, math.Sqrt(float64(m*n*(m+n+1))/12)
		r.smallest = math.Erfc((mean - 0.5) / sd / math.Sqrt2)
		r.cut = max(0, int(mean-0.5+sd*math.Sqrt2*math.Erfinv(2*tail-1)))
		r.held = 1 - math.Erfc((mean-float64(r.cut)+0.5)/sd/math.Sqrt2)
		return r, nil
	}
	r.dist = uDistribution(m, n)
	r.smallest = r.dist.twoSided(0)
	// The interval from the k-th smallest to the k-th largest quotient misses the truth when U is below k: with cut = k−1.
	below := r.dist[0]
	for r.cut = 0; below+r.dist[r.cut+1] <= tail; {
		r.cut++
		below += r.dist[r.cut]
	}
	r.held = 1 - 2*below
	return r, nil
}

// SmallestP is the smallest P that so many figures can give.
func (r *RankTest) SmallestP() float64 { return r.smallest }

// Compare tests one pair of samples.
func (r *RankTest) Compare(a, b []float64) (Comparison, error) {
	c := Comparison{Test: TestRanks, Confidence: r.confidence, SmallestP: r.smallest, Held: r.held}
	if len(a) != r.m || len(b) != r.n {
		return c, fmt.Errorf("%d and %d figures for a test of %d and %d", len(a), len(b), r.m, r.n)
	}
	logs := [2][]float64{}
	for i, v := range [][]float64{a, b} {
		for _, x := range v {
			if !(x > 0) || math.IsInf(x, 0) {
				return c, fmt.Errorf("a figure of %v cannot be compared by ratio", x)
			}
			logs[i] = append(logs[i], math.Log(x))
		}
	}
	c.MedianA, c.MedianB = Median(a), Median(b)
	q := shifts(logs[0], logs[1])
	c.Ratio, c.Low, c.High = math.Exp(q.median()), math.Exp(q.at(r.cut)), math.Exp(q.at(q.n-1-r.cut))
	c.P = r.p(a, b, rankU(a, b))
	return c, nil
}

// ordered are sorted numbers. Where they are too many to be written down, it is known how many of them there are up to a number.
type ordered struct {
	n         int
	all       []float64 // nil: too many
	low, high float64   // the least and the largest
	upTo      func(x float64) int
}

// mostWritten is how many numbers are written down and sorted.
const mostWritten = 1 << 14

// at returns the number at a place, from 0.
func (o ordered) at(place int) float64 {
	if o.all != nil {
		return o.all[place]
	}
	low, high := o.low, o.high
	if o.upTo(low) > place {
		return low
	}
	for { // more than place are up to high, not so many up to low
		middle := low + (high-low)/2
		if !(middle > low && middle < high) {
			return high
		}
		if o.upTo(middle) > place {
			high = middle
		} else {
			low = middle
		}
	}
}

// median is the number in the middle, or the mean of the two there.
func (o ordered) median() float64 {
	if o.n%2 == 1 {
		return o.at(o.n / 2)
	}
	return (o.at(o.n/2-1) + o.at(o.n/2)) / 2
}

// shifts are the differences of all y and all x.
func shifts(x, y []float64) ordered {
	if n := len(x) * len(y); n <= mostWritten {
		all := make([]float64, 0, n)
		for _, v := range x {
			for _, w := range y {
				all = append(all, w-v)
			}
		}
		slices.Sort(all)
		return ordered{n: n, all: all}
	}
	x, y = slices.Clone(x), slices.Clone(y)
	slices.Sort(x)
	slices.Sort(y)
	return ordered{n: len(x) * len(y), low: y[0] - x[len(x)-1], high: y[len(y)-1] - x[0], upTo: func(limit float64) (count int) {
		j := 0
		for _, v := range x {
			for j < len(y) && y[j]-v <= limit {
				j++
			}
			count += j
		}
		return count
	}}
}

// p is the two-sided probability of u.
func (r *RankTest) p(a, b []float64, u float64) float64 {
	all := slices.Concat(a, b)
	slices.Sort(all)
	tied := len(slices.Compact(slices.Clone(all))) < len(all)
	switch {
	case r.dist == nil:
		return normalP(all, r.m, r.n, u)
	case tied:
		return tiedP(all, r.m, r.n, u)
	}
	return r.dist.twoSided(u)
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
		ways[j] = []float64{1}
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

// tiedP is the exact two-sided probability of u where figures are equal: of all ways to choose which of the figures are
// B's, the share that is at least as far from the middle.
func tiedP(all []float64, m, n int, u float64) float64 {
	// Twice the rank keeps the middle ranks of equal figures whole. ways[k][s]: k figures are B's, their doubled ranks sum
	// up to s.
	top := 2 * (m + n) * n
	ways := make([][]float64, n+1)
	for k := range ways {
		ways[k] = make([]float64, top+1)
	}
	ways[0][0] = 1
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j] == all[i] {
			j++
		}
		rank := i + j + 1 // twice the mean of the ranks i+1 to j
		for k := min(n, j); k > 0; k-- {
			for take, c := 1, 1.0; take <= min(k, j-i); take++ {
				c = c * float64(j-i-take+1) / float64(take)
				for s := take * rank; s <= top; s++ {
					ways[k][s] += c * ways[k-take][s-take*rank]
				}
			}
		}
		i = j
	}
	far := math.Abs(2*u - float64(m*n))
	total, p := 0.0, 0.0
	for s, w := range ways[n] {
		total += w
		if math.Abs(float64(s-n*(n+1)-m*n)) >= far-1e-9 { // doubled U is the doubled sum of ranks less n(n+1)
			p += w
		}
	}
	return p / total
}

// normalP is the test's P by the normal approximation, corrected for ties and continuity.
func normalP(all []float64, of, by int, u float64) float64 {
	m, n := float64(of), float64(by)
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
