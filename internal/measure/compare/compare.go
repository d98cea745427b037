// Package compare tells whether B is faster than A: from results that are there, or from runs that it makes in turns so that
// both see the same weather. The verdict is a rank test and an interval, in words; too few runs are said to be too few.
package compare

import (
	"fmt"
	"math"
	"strings"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/measure/stats"
)

// Confidence of intervals, and 1 − the p below which a difference counts.
const Confidence = 0.95

// Side is one of the two that are compared.
type Side struct {
	Name     string          `json:"name"`               // "A" or "B"
	What     string          `json:"what"`               // a file, a server, settings
	Settings []Setting       `json:"settings,omitempty"` // variables that were set for its runs
	Runs     []*bench.Result `json:"runs"`
	// Paired says that the i-th run of either side was made at about the same time.
	Paired bool `json:"paired,omitempty"`
}

// The outcomes of a verdict.
const (
	Faster  = "faster" // B is
	Slower  = "slower" // B is
	Unclear = "no difference can be told"
	TooFew  = "too few runs"
	Unknown = "cannot be compared" // a run did nothing
)

// Verdict is what the runs say about one measure.
type Verdict struct {
	Measure string `json:"measure"` // transactions per second, p95 latency, p99 latency
	A       string `json:"a"`       // names of the sides
	B       string `json:"b"`
	Unit    string `json:"unit"` // per second, seconds
	RunsA   int    `json:"runs_a"`
	RunsB   int    `json:"runs_b"`
	// Comparison is B over A, as measured: with latency a ratio above 1 is slower.
	*stats.Comparison
	Outcome string `json:"outcome"`
	// Detectable is the smallest ratio that runs as scattered as these would show four times in five; 0: none.
	Detectable float64 `json:"detectable,omitempty"`
	// Pairs are runs made at about the same time; in PairsB of them B did better. PairsP is how likely so uneven a number is
	// when neither is better (the sign test). A machine that drifts disturbs pairs less than medians.
	Pairs  int     `json:"pairs,omitempty"`
	PairsB int     `json:"pairs_b,omitempty"`
	PairsP float64 `json:"pairs_p,omitempty"`
	Words  string  `json:"words"`
}

// Report is a comparison.
type Report struct {
	A           Side                 `json:"a"`
	B           Side                 `json:"b"`
	Order       string               `json:"order,omitempty"` // in which the runs were made
	Verdicts    []Verdict            `json:"verdicts"`
	Differences []environ.Difference `json:"differences"` // between what the runs were made with, beside what was set
	Notes       []string             `json:"notes"`
	Interrupted bool                 `json:"interrupted,omitempty"`
	Seed        uint64               `json:"seed"`
}

// measure is a figure of a run.
type measure struct {
	name, unit string
	of         func(*bench.Result) float64
	moreBetter bool
}

func measures() []measure {
	latency := func(p float64) measure {
		return measure{fmt.Sprintf("p%g latency", p), "seconds", func(r *bench.Result) float64 { return r.Latency.At(p) }, false}
	}
	return []measure{
		{"transactions per second", "per second", func(r *bench.Result) float64 { return r.TransactionsPerSecond }, true},
		latency(95), latency(99),
	}
}

// Judge compares the runs of two sides. The seed serves the estimate of what would show.
func Judge(a, b Side, seed uint64) *Report {
	r := &Report{A: a, B: b, Seed: seed, Differences: differences(&a, &b), Notes: []string{}}
	for _, m := range measures() {
		if m.moreBetter && rated(a) && rated(b) {
			r.Notes = append(r.Notes, "the rate of transactions was given, so it is no result: only latency is compared")
			continue
		}
		r.Verdicts = append(r.Verdicts, judge(m, a, b, seed))
	}
	r.Notes = append(r.Notes, notes(a, b)...)
	return r
}

func rated(s Side) bool { return len(s.Runs) > 0 && s.Runs[0].Rate > 0 }

func judge(m measure, a, b Side, seed uint64) Verdict {
	figures := func(s Side) []float64 {
		v := make([]float64, len(s.Runs))
		for i := range s.Runs {
			v[i] = m.of(s.Runs[i])
		}
		return v
	}
	x, y := figures(a), figures(b)
	v := judgeFigures(m, a.Name, b.Name, x, y, seed)
	if a.Paired && b.Paired && len(x) == len(y) && v.Comparison != nil && v.Outcome != TooFew {
		v.pair(m, x, y)
	}
	return v
}

// pair looks at the pairs.
func (v *Verdict) pair(m measure, a, b []float64) {
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		v.Pairs++
		if b[i] > a[i] == m.moreBetter {
			v.PairsB++
		}
	}
	v.PairsP = stats.SignTest(v.PairsB, v.Pairs)
	if v.Pairs > 0 {
		v.Words += fmt.Sprintf("; %s did better in %d of %d pairs of neighbouring runs (sign test p %s)", v.B, v.PairsB, v.Pairs, probability(v.PairsP))
	}
}

func judgeFigures(m measure, nameA, nameB string, a, b []float64, seed uint64) Verdict {
	v := Verdict{Measure: m.name, A: nameA, B: nameB, Unit: m.unit, RunsA: len(a), RunsB: len(b), Outcome: TooFew}
	test, err := stats.NewRankTest(len(a), len(b), Confidence)
	if err != nil {
		v.Words = fmt.Sprintf("too few runs: %d of %s and %d of %s; make at least %d of each", len(a), nameA, len(b), nameB, stats.LeastRuns(Confidence))
		return v
	}
	c, err := test.Compare(a, b)
	if err != nil {
		v.Outcome = Unknown
		v.Words = "cannot be compared: " + err.Error()
		return v
	}
	v.Comparison = &c
	if d := test.Detectable(a, b, seed); !math.IsInf(d, 1) {
		v.Detectable = d
	}
	switch alpha := 1 - Confidence; {
	case c.SmallestP >= alpha:
	case c.P >= alpha:
		v.Outcome = Unclear
	case (c.Ratio > 1) == m.moreBetter:
		v.Outcome = Faster
	default:
		v.Outcome = Slower
	}
	v.Words = words(m, v)
	return v
}

// notes tell what may spoil a comparison.
func notes(a, b Side) (out []string) {
	for _, s := range []Side{a, b} {
		interrupted, failing := 0, 0
		var errs int64
		kinds := map[string]bool{}
		for _, r := range s.Runs {
			if r.Interrupted {
				interrupted++
			}
			if len(r.Errors) > 0 {
				failing++
			}
			for _, e := range r.Errors {
				errs += e.Count
				kinds[e.Label] = true
			}
		}
		if failing > 0 {
			out = append(out, fmt.Sprintf("%s: %d transactions failed in %d of %d runs (errors %s)", s.Name, errs, failing, len(s.Runs), strings.Join(sorted(kinds), ", ")))
		}
		if interrupted > 0 {
			out = append(out, fmt.Sprintf("%s: %d of %d runs were interrupted and are shorter than the others", s.Name, interrupted, len(s.Runs)))
		}
		if unsteady := drifting(s.Runs); unsteady > 0 {
			out = append(out, fmt.Sprintf("%s: %d of %d runs were not steady: a longer warm-up would make them so, or a quieter machine", s.Name, unsteady, len(s.Runs)))
		}
	}
	return out
}

// drifting counts the runs whose seconds show no steady state. Runs too short to test are not counted.
func drifting(runs []*bench.Result) (n int) {
	for i := range runs {
		var seconds []float64
		for _, s := range runs[i].Timeline {
			if s.Second >= 0 && float64(s.Second+1) <= runs[i].Seconds+0.01 {
				seconds = append(seconds, float64(s.Transactions))
			}
		}
		if len(seconds) >= 10 && !stats.SteadyState(seconds).Reached {
			n++
		}
	}
	return n
}
