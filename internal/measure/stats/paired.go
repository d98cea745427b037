package stats

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// PairTest compares pairs: the i-th figure of A and the i-th of B were measured at about the same time, so what disturbed
// both is taken out. It is Wilcoxon's signed rank test on the logarithms of the quotients, exact, also with ties.
//
// Source: Wilcoxon, Individual comparisons by ranking methods (1945); the interval from the Walsh averages: Tukey (1949),
// Hodges and Lehmann (1963).
type PairTest struct {
	n          int
	confidence float64
	dist       []float64 // probability of each sum of the ranks with one sign, without ties; nil: more than are worked out exactly
	cut        int       // Walsh averages to leave out at each end
	held       float64
}

// mostPairs is for how many pairs everything is computed exactly; above, the normal distribution is close.
const mostPairs = 200

// NewPairTest prepares a test of n pairs.
func NewPairTest(n int, confidence float64) (*PairTest, error) {
	if n < 2 {
		return nil, fmt.Errorf("%w: %s; at least two are needed", ErrTooFew, map[bool]string{true: "1 pair", false: "no pairs"}[n == 1])
	}
	tail := (1 - confidence) / 2
	if n > mostPairs {
		mean, sd := float64(n)*float64(n+1)/4, math.Sqrt(float64(n)*float64(n+1)*float64(2*n+1)/24)
		t := &PairTest{n: n, confidence: confidence, cut: max(0, int(mean-0.5+sd*math.Sqrt2*math.Erfinv(2*tail-1)))}
		t.held = 1 - math.Erfc((mean-float64(t.cut)+0.5)/sd/math.Sqrt2)
		return t, nil
	}
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = 2 * (i + 1)
	}
	t := &PairTest{n: n, confidence: confidence, dist: signedSums(ranks)}
	// The interval from the k-th smallest to the k-th largest average misses the truth when the sum is below k.
	below := t.dist[0]
	for t.cut = 0; below+t.dist[2*(t.cut+1)] <= tail; {
		t.cut++
		below += t.dist[2*t.cut]
	}
	t.held = 1 - 2*below
	return t, nil
}

// signedSums is the distribution of the sum of those of the doubled ranks whose sign is plus, when each sign is as likely.
func signedSums(ranks []int) []float64 {
	top := 0
	for _, r := range ranks {
		top += r
	}
	p := make([]float64, top+1)
	p[0] = 1
	reached := 0
	for _, r := range ranks {
		reached += r
		for s := reached; s >= 0; s-- {
			p[s] /= 2
			if s >= r {
				p[s] += p[s-r] / 2
			}
		}
	}
	return p
}

// SmallestP is the smallest two-sided P that so many pairs can give.
func (t *PairTest) SmallestP() float64 { return math.Ldexp(1, 1-t.n) }

// LeastPairs is the smallest number of pairs for which the test can find a difference at all.
func LeastPairs(confidence float64) int {
	n := 2
	for math.Ldexp(1, 1-n) >= 1-confidence {
		n++
	}
	return n
}

// Compare tests pairs of figures above zero.
func (t *PairTest) Compare(a, b []float64) (Comparison, error) {
	c := Comparison{Test: TestPairs, Confidence: t.confidence, SmallestP: t.SmallestP(), Held: t.held}
	if len(a) != t.n || len(b) != t.n {
		return c, fmt.Errorf("%d and %d figures for a test of %d pairs", len(a), len(b), t.n)
	}
	d, err := quotients(a, b)
	if err != nil {
		return c, err
	}
	c.MedianA, c.MedianB = Median(a), Median(b)
	w := walsh(d)
	c.Ratio, c.Low, c.High = math.Exp(w.median()), math.Exp(w.at(t.cut)), math.Exp(w.at(w.n-1-t.cut))
	below, above := signedTails(d, 0)
	c.P = min(1, 2*min(below, above))
	return c, nil
}

// quotients are the logarithms of the quotients of the pairs.
func quotients(a, b []float64) ([]float64, error) {
	d := make([]float64, len(a))
	for i := range a {
		for _, x := range []float64{a[i], b[i]} {
			if !(x > 0) || math.IsInf(x, 0) {
				return nil, fmt.Errorf("a figure of %v cannot be compared by ratio", x)
			}
		}
		d[i] = math.Log(b[i] / a[i])
	}
	return d, nil
}

// walsh are the means of all pairs of differences, each with itself too.
func walsh(d []float64) ordered {
	n := len(d)
	means := n * (n + 1) / 2
	if means <= mostWritten {
		w := make([]float64, 0, means)
		for i, x := range d {
			for _, y := range d[i:] {
				w = append(w, (x+y)/2)
			}
		}
		slices.Sort(w)
		return ordered{n: len(w), all: w}
	}
	d = slices.Clone(d)
	slices.Sort(d)
	return ordered{n: means, low: d[0], high: d[n-1], upTo: func(x float64) (count int) {
		for i, j := 0, n-1; i < n; i++ {
			for j >= i && (d[i]+d[j])/2 > x {
				j--
			}
			if j < i {
				break
			}
			count += j - i + 1
		}
		return count
	}}
}

// signedTails are the probabilities of a sum of the ranks above the middle that is as small, or as large, as that of d
// around middle; differences of nothing are left out.
func signedTails(d []float64, middle float64) (below, above float64) {
	type part struct {
		size float64
		plus bool
	}
	var list []part
	for _, x := range d {
		if x != middle {
			list = append(list, part{math.Abs(x - middle), x > middle})
		}
	}
	slices.SortFunc(list, func(x, y part) int { return cmp.Compare(x.size, y.size) })
	ranks, sum := make([]int, len(list)), 0
	for i := 0; i < len(list); {
		j := i
		for j < len(list) && list[j].size == list[i].size {
			j++
		}
		for k := i; k < j; k++ {
			ranks[k] = i + j + 1 // twice the mean of the ranks i+1 to j
			if list[k].plus {
				sum += ranks[k]
			}
		}
		i = j
	}
	if len(ranks) > mostPairs {
		return normalTails(ranks, sum)
	}
	for s, p := range signedSums(ranks) {
		if s <= sum {
			below += p
		}
		if s >= sum {
			above += p
		}
	}
	return min(1, below), min(1, above)
}

// normalTails are signedTails by the normal distribution, corrected for continuity; ranks of ties make it narrower.
func normalTails(ranks []int, sum int) (below, above float64) {
	mean, variance := 0.0, 0.0
	for _, r := range ranks {
		mean, variance = mean+float64(r)/2, variance+float64(r)*float64(r)/4
	}
	sd := math.Sqrt(variance)
	tail := func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
	return tail((float64(sum) + 1 - mean) / sd), tail((mean + 1 - float64(sum)) / sd)
}

// Detectable is what RankTest.Detectable is, for pairs: the scatter is that of the quotients of the pairs.
func (t *PairTest) Detectable(a, b []float64, seed uint64) float64 {
	d, err := quotients(a, b)
	if err != nil || t.SmallestP() >= 1-t.confidence || len(d) < 2 {
		return math.Inf(1)
	}
	if t.n > mostPairs {
		return fewer(t.n, mostPairs, func(n int) float64 {
			small, err := NewPairTest(n, t.confidence)
			if err != nil {
				return math.Inf(1)
			}
			return small.detectable(d, seed)
		})
	}
	return t.detectable(d, seed)
}

// detectable draws as many pairs as the test has from the quotients d, which may be more.
func (t *PairTest) detectable(d []float64, seed uint64) float64 {
	middle := walsh(d).median()
	widen := math.Sqrt(float64(len(d)) / float64(len(d)-1))
	for i := range d {
		d[i] = (d[i] - middle) * widen
	}
	// Wilcoxon's test looks at signs and ranks alone: P is below the limit where the sum is at most this.
	limit, p := -1, 0.0
	for s := 0; s < len(t.dist); s += 2 {
		if p += t.dist[s]; 2*p >= 1-t.confidence {
			break
		}
		limit = s
	}
	return detectable(d, seed, func(draw func(n int, at float64) []float64, shift float64) bool {
		return signedSum(draw(t.n, -shift)) <= limit
	})
}

// signedSum is the doubled sum of the ranks of what is above zero.
func signedSum(d []float64) (sum int) {
	order := slices.Clone(d)
	slices.SortFunc(order, func(x, y float64) int { return cmp.Compare(math.Abs(x), math.Abs(y)) })
	for i, x := range order {
		if x > 0 {
			sum += 2 * (i + 1)
		}
	}
	return sum
}

// AlikeWithin is the larger P of two one-sided tests: that B is not below A by the margin (0.03: three per cent) or more, and
// not above. Where it is below 1 − confidence, both are alike within the margin.
//
// Source: Schuirmann, A comparison of the two one-sided tests procedure (1987).
func (t *PairTest) AlikeWithin(a, b []float64, margin float64) (float64, error) {
	d, err := quotients(a, b)
	if err != nil {
		return 1, err
	}
	edge := math.Log1p(margin)
	_, above := signedTails(d, -edge)
	below, _ := signedTails(d, edge)
	return max(below, above), nil
}

// SpendAlpha divides the error that may be made over looks at growing numbers of pairs, the last of them most: at each look
// a test may err by what it returns, and all of them together by no more than alpha. Nothing is taken back for looks seeing
// some of the same pairs, so that the true error is below.
//
// Source: Lan and DeMets, Discrete sequential boundaries for clinical trials (1983), the spending function near Pocock's.
func SpendAlpha(alpha float64, looks []int) []float64 {
	out, spent := make([]float64, len(looks)), 0.0
	for i, n := range looks {
		by := alpha * math.Log(1+(math.E-1)*float64(n)/float64(looks[len(looks)-1]))
		out[i], spent = by-spent, by
	}
	return out
}

// FalseRate estimates how often so many pairs of runs of one and the same thing show a difference at p below alpha: the runs,
// in the order in which they were made, are drawn again in blocks of neighbours, so that a machine's drift and moods stay in
// them, and deal gives for each place whose it is: true is B's.
//
// Source: Politis and Romano, A circular block-resampling procedure for stationary data (1992).
func FalseRate(runs []float64, pairs int, alpha float64, seed uint64, deal func(*rand.Rand) []bool) float64 {
	const rounds = 1000
	if len(runs) < 4 || pairs < LeastPairs(1-alpha) {
		return math.NaN()
	}
	rng := rand.New(rand.NewPCG(seed, 4))
	block := int(math.Round(2 * math.Cbrt(float64(len(runs)))))
	d := make([]float64, pairs)
	wolf := 0
	for range rounds {
		var at, left int
		next := func() float64 {
			if left == 0 {
				at, left = rng.IntN(len(runs)), block
			}
			v := runs[at%len(runs)]
			at, left = at+1, left-1
			return v
		}
		order := deal(rng)
		for i := range d {
			first, second := next(), next()
			if order[2*i] {
				first, second = second, first
			}
			d[i] = math.Log(second / first)
		}
		if below, above := signedTails(d, 0); 2*min(below, above) < alpha {
			wolf++
		}
	}
	return float64(wolf) / rounds
}
