package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/stats"
)

// Precise says how long a comparison goes on.
type Precise struct {
	Within float64 // until the interval reaches no further than this to either side (0.03: three per cent), or alike is proven
	Most   int     // pairs at most
	Seed   uint64
}

// firstLook is after how many pairs is looked for the first time; then at half as many more each time.
const firstLook = 8

// Looks are the numbers of pairs after which the comparison is looked at, with the error that each look may make. All of them
// together err no more often than one look would.
func (p Precise) Looks() (pairs []int, alpha []float64) {
	for n := firstLook; n < p.Most; n += n / 2 {
		pairs = append(pairs, n)
	}
	pairs = append(pairs, p.Most)
	return pairs, stats.SpendAlpha(1-Confidence, pairs)
}

// Look judges after some pairs; done says that the answer is as sure as it was asked to be.
func (p Precise) Look(a, b Side, alpha float64) (r *Report, done bool) {
	r = Judge(a, b, Terms{Seed: p.Seed, Alpha: alpha, Margin: p.Within})
	if len(r.Verdicts) == 0 {
		return r, true // nothing to go on for
	}
	v := r.Verdicts[0]
	switch {
	case v.Outcome == Alike:
		return r, true
	case v.Comparison == nil || v.SmallestP >= alpha || v.Outcome == Withheld:
		return r, false
	}
	return r, reach(v.Comparison) <= p.Within
}

// reach is how far the interval goes from the ratio, to its farther side.
func reach(c *stats.Comparison) float64 { return max(c.High/c.Ratio, c.Ratio/c.Low) - 1 }

// Tell notes in the report how it ended.
func (p Precise) Tell(r *Report, done bool) {
	if len(r.Verdicts) == 0 {
		return
	}
	v := r.Verdicts[0]
	text := ""
	if v.Comparison != nil {
		text = fmt.Sprintf("%s was tested repeatedly, and may still err in %s of such comparisons: the intervals here are those of the last test, at %s",
			v.Measure, digits.Percent(1-Confidence), confidence(v.Comparison))
	}
	with := digits.Counted(len(r.A.Runs), "pair")
	switch {
	case v.Comparison == nil:
		text = fmt.Sprintf("%s was not reached with %s: %s", digits.Percent(p.Within), with, v.Words)
	case v.Outcome == Withheld:
		text = fmt.Sprintf("there is no answer within %s with %s, because the verdict on %s was withheld: %s (its interval reaches %s from the ratio); %s", digits.Percent(p.Within), with, v.Measure, v.Reason, digits.Percent(reach(v.Comparison)), text)
	case !done:
		text = fmt.Sprintf("%s was not reached with %s: the interval reaches %s from the ratio; %s", digits.Percent(p.Within), with, digits.Percent(reach(v.Comparison)), text)
	}
	r.Notes = append([]string{text}, r.Notes...)
}

// SameReport is what runs of A against A say about the machine.
type SameReport struct {
	Pairs int     `json:"pairs"`
	P     float64 `json:"p"`
	Ratio float64 `json:"ratio"`
	// FalseRate is how often such comparisons find a difference at p below 0.05, by resampling these runs; -1: too few runs.
	FalseRate float64 `json:"false_rate"`
	// Visible is the smallest ratio that VisibleWith pairs would detect four times out of five; 0: none.
	Visible     float64 `json:"visible,omitempty"`
	VisibleWith int     `json:"visible_with"`
	Words       string  `json:"words"`
}

// Same judges runs of A against runs of A, made in that order; with is how many pairs the comparison will have, and how in which
// order they are made.
func Same(one, other Side, order []bool, how string, with int, seed uint64) *SameReport {
	p := pair(one, other)
	m := measures()[0]
	if rated(one) {
		m = measures()[1]
	}
	x, y, missing := p.figures(m)
	s := &SameReport{Pairs: len(x), FalseRate: -1, VisibleWith: with}
	if missing != "" || len(x) < 2 {
		s.Words = "A against A: too few runs to say anything about the machine"
		return s
	}
	test, err := stats.NewPairTest(len(x), Confidence)
	if err == nil {
		var c stats.Comparison
		if c, err = test.Compare(x, y); err == nil {
			s.P, s.Ratio = c.P, c.Ratio
		}
	}
	if err != nil {
		s.Words = "A against A: " + err.Error()
		return s
	}
	var series []float64
	for i := range x {
		two := []float64{x[i], y[i]}
		if 2*i < len(order) && order[2*i] {
			slices.Reverse(two)
		}
		series = append(series, two...)
	}
	deal := func(rng *rand.Rand) []bool {
		dealt, err := Order(how, with, rng.Uint64())
		if err != nil {
			return make([]bool, 2*with)
		}
		return dealt
	}
	if rate := stats.FalseRate(series, with, 1-Confidence, seed, deal); !math.IsNaN(rate) {
		s.FalseRate = rate
	}
	if planned, err := stats.NewPairTest(with, Confidence); err == nil {
		if d := planned.Detectable(x, y, seed); !math.IsInf(d, 1) {
			s.Visible = d
		}
	}
	s.Words = s.words(m)
	return s
}

func (s *SameReport) words(m measure) string {
	told := "no difference is shown"
	if s.P < 1-Confidence {
		told = fmt.Sprintf("A DIFFERENCE OF %s IS TOLD THAT IS NONE", digits.Percent(max(s.Ratio, 1/s.Ratio)-1))
	}
	text := fmt.Sprintf("A against A, %d pairs, %s: %s (p %s)", s.Pairs, m.name, told, digits.Chance(s.P))
	if s.FalseRate >= 0 {
		text += fmt.Sprintf("; of comparisons resampled from these runs %s show a difference (%s may)", digits.Percent(s.FalseRate), digits.Percent(1-Confidence))
	}
	if s.Visible > 0 {
		return text + fmt.Sprintf("; with %d pairs a difference under %s would not show", s.VisibleWith, difference(s.Visible))
	}
	return text + fmt.Sprintf("; with %d pairs hardly any difference would show", s.VisibleWith)
}
