// Package compare finds out whether B is faster than A: from existing results, or from runs that it alternates so that both
// meet the same conditions. The verdict is a test of pairs or ranks and an interval, in words. Too few runs are reported as
// such, and a verdict that other programs may have caused by disturbing one side more is withheld.
package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/measure/stats"
)

// Confidence of intervals, and 1 − the p below which a difference counts.
const Confidence = 0.95

// Side is one of the two sides compared.
type Side struct {
	Name     string          `json:"name"`               // "A" or "B"
	What     string          `json:"what"`               // a file, a server, settings
	Settings []Setting       `json:"settings,omitempty"` // the server's variables during its runs
	Runs     []*bench.Result `json:"runs"`
	// Paired says that the i-th run of either side was made at about the same time.
	Paired bool `json:"paired,omitempty"`
	// Shuffled says that the order of all runs of both sides was random.
	Shuffled bool `json:"shuffled,omitempty"`
}

// The outcomes of a verdict.
const (
	Faster   = "faster" // B is
	Slower   = "slower" // B is
	Alike    = "alike"  // within the margin that was asked for
	Unclear  = "no difference can be shown"
	TooFew   = "too few runs"
	Withheld = "withheld"           // others disturbed one side more
	Unknown  = "cannot be compared" // nothing was measured
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
	// Seems is the outcome that a withheld verdict would have had.
	Seems string `json:"seems,omitempty"`
	// Reason is why it was withheld.
	Reason string `json:"reason,omitempty"`
	// Detectable is the smallest ratio that runs with this much scatter would detect four times out of five; 0: none.
	Detectable float64 `json:"detectable,omitempty"`
	// Pairs counts pairs of runs made at about the same time whose figures differ; in PairsB of them B did better. With six or more, pairs are tested.
	Pairs  int `json:"pairs,omitempty"`
	PairsB int `json:"pairs_b,omitempty"`
	// Margin is the largest difference that counts as alike (0.03: three per cent), AlikeP the p of a larger one; 0: not tested.
	Margin float64 `json:"margin,omitempty"`
	AlikeP float64 `json:"alike_p,omitempty"`
	Words  string  `json:"words"`
}

// Sentence is the verdict as a sentence that names the measure.
func (v Verdict) Sentence() string { return sentence(v) }

// Given reports whether the verdict answers the question: faster, slower, alike, or that no difference can be shown.
func (v Verdict) Given() bool {
	return slices.Contains([]string{Faster, Slower, Alike, Unclear}, v.Outcome)
}

// Report is a comparison.
type Report struct {
	A        Side      `json:"a"`
	B        Side      `json:"b"`
	Order    string    `json:"order,omitempty"` // in which the runs were made
	Verdicts []Verdict `json:"verdicts"`
	// Classes are the verdicts on single classes of statements, of a replay.
	Classes []Verdict `json:"classes,omitempty"`
	// Judged is the measure of the first verdict, which --fail-if and --precise use; Instead says why it is not throughput.
	Judged      string               `json:"judged,omitempty"`
	Instead     string               `json:"instead,omitempty"` // why the first verdict is not about throughput, in words
	Why         []Cause              `json:"why,omitempty"`     // what the server did differently
	Same        *SameReport          `json:"same,omitempty"`
	Differences []environ.Difference `json:"differences"` // differences between the environments of the runs, apart from the settings compared
	Notes       []string             `json:"notes"`
	Interrupted bool                 `json:"interrupted,omitempty"`
	Seed        uint64               `json:"seed"`
}

// Terms are how sides are judged. The zero value is Confidence and no margin.
type Terms struct {
	Seed   uint64  // of the estimate of what would show
	Alpha  float64 // how often a verdict may be wrong if there is no difference; 0: 1 − Confidence
	Margin float64 // say whether both are alike within this; 0: do not
}

// measure is a figure of a run; false if the run does not have it.
type measure struct {
	name, unit string
	of         func(*bench.Result) (float64, bool)
	moreBetter bool
}

// A run in which nothing succeeded is the slowest there is. To be compared by ratio it counts as half a transaction, all of
// whose users waited for its whole length.
func throughput(r *bench.Result) (float64, bool) {
	if r.Transactions == 0 && r.TransactionsPerSecond == 0 {
		return 0.5 / r.Seconds, r.Seconds > 0
	}
	return r.TransactionsPerSecond, r.TransactionsPerSecond > 0
}

func latency(p float64) func(*bench.Result) (float64, bool) {
	return func(r *bench.Result) (float64, bool) {
		if idle(r) {
			return max(r.Seconds, r.Latency.At(p)), r.Seconds > 0
		}
		v := r.Latency.At(p)
		return v, v > 0
	}
}

// idle says that a run did nothing.
func idle(r *bench.Result) bool { return r.Transactions == 0 && r.TransactionsPerSecond == 0 }

func measures() []measure {
	of := func(p float64) measure {
		return measure{fmt.Sprintf("p%g latency", p), "seconds", latency(p), false}
	}
	return []measure{{"transactions per second", "per second", throughput, true}, of(95), of(99)}
}

// Judge compares the runs of two sides.
func Judge(a, b Side, t Terms) *Report {
	if t.Alpha == 0 {
		t.Alpha = 1 - Confidence
	}
	turned := turns(&a, &b)
	r := &Report{A: a, B: b, Seed: t.Seed, Differences: differences(&a, &b), Notes: []string{}}
	if turned != "" {
		r.Notes = append(r.Notes, turned)
	}
	p := pair(a, b)
	uneven := p.uneven()
	for _, m := range measures() {
		if m.moreBetter && (rated(a) || rated(b)) {
			r.Notes = append(r.Notes, "the rate of transactions was given, so it is not a result: only latency is compared")
			r.Instead = "the rate of transactions was given"
			continue
		}
		x, y, missing := p.figures(m)
		if missing != "" {
			r.Notes = append(r.Notes, fmt.Sprintf("%s is not compared: %s does not have it", m.name, missing))
			if len(r.Verdicts) == 0 {
				r.Instead = fmt.Sprintf("%s does not report %s", missing, m.name)
			}
			continue
		}
		v := judge(m, p, x, y, t)
		uneven.doubt(m, &v)
		r.Verdicts = append(r.Verdicts, v)
	}
	if len(r.Verdicts) > 0 {
		r.Judged = r.Verdicts[0].Measure
	}
	var left string
	if r.Classes, left = classes(p, uneven, t); left != "" {
		r.Notes = append(r.Notes, left)
	}
	r.Why = causes(p)
	r.Notes = append(r.Notes, notes(a, b)...)
	if text := uneven.note(); text != "" {
		r.Notes = append(r.Notes, text)
	}
	return r
}

func rated(s Side) bool { return len(s.Runs) > 0 && s.Runs[0].Rate > 0 }

// paired are the runs that are judged: without those that measured nothing, as pairs where they were made so.
type paired struct {
	nameA, nameB string
	a, b         []*bench.Result
	pairs        bool
}

// pair takes the runs of which something was measured.
func pair(a, b Side) paired {
	p := paired{nameA: a.Name, nameB: b.Name, pairs: a.Paired && b.Paired}
	usable := func(r *bench.Result) bool { return r.Seconds > 0 || !idle(r) }
	if !p.pairs {
		for _, r := range a.Runs {
			if usable(r) {
				p.a = append(p.a, r)
			}
		}
		for _, r := range b.Runs {
			if usable(r) {
				p.b = append(p.b, r)
			}
		}
		return p
	}
	for i := range min(len(a.Runs), len(b.Runs)) {
		if usable(a.Runs[i]) && usable(b.Runs[i]) {
			p.a, p.b = append(p.a, a.Runs[i]), append(p.b, b.Runs[i])
		}
	}
	return p
}

// figures are those of one measure; missing names the side that does not have it.
func (p paired) figures(m measure) (x, y []float64, missing string) {
	of := func(runs []*bench.Result, name string) (out []float64) {
		for _, r := range runs {
			v, ok := m.of(r)
			if !ok {
				missing = name
			}
			out = append(out, v)
		}
		return out
	}
	return of(p.a, p.nameA), of(p.b, p.nameB), missing
}

// tester is a test of figures of a fixed number.
type tester interface {
	Compare(a, b []float64) (stats.Comparison, error)
	SmallestP() float64
	Detectable(a, b []float64, seed uint64) float64
}

// test takes the pairs if there are enough of them for a pair test to tell anything, else the ranks.
func (p paired) test(alpha float64) (tester, error) {
	if p.pairs && len(p.a) >= stats.LeastPairs(1-alpha) {
		return stats.NewPairTest(len(p.a), 1-alpha)
	}
	return stats.NewRankTest(len(p.a), len(p.b), 1-alpha)
}

func judge(m measure, p paired, a, b []float64, t Terms) Verdict {
	v := Verdict{Measure: m.name, A: p.nameA, B: p.nameB, Unit: m.unit, RunsA: len(a), RunsB: len(b), Outcome: TooFew}
	test, err := p.test(t.Alpha)
	if err != nil {
		v.Words = fmt.Sprintf("too few runs: %d of %s and %d of %s; make at least %d of each", len(a), p.nameA, len(b), p.nameB, stats.LeastRuns(1-t.Alpha))
		return v
	}
	if n, of, who := p.mostlyIdle(); n > 0 {
		v.Outcome, v.Words = Unknown, fmt.Sprintf("cannot be compared: %s did nothing at all in %d of %s", who, n, digits.Counted(of, "run"))
		return v
	}
	c, err := test.Compare(a, b)
	if err != nil {
		v.Outcome = Unknown
		v.Words = "cannot be compared: " + err.Error()
		return v
	}
	v.Comparison = &c
	if d := test.Detectable(a, b, t.Seed); !math.IsInf(d, 1) {
		v.Detectable = d
	}
	v.countPairs(m, p, a, b)
	v.Margin = t.Margin
	if pairs, ok := test.(*stats.PairTest); ok && t.Margin > 0 {
		if v.AlikeP, err = pairs.AlikeWithin(a, b, t.Margin); err != nil {
			v.AlikeP = 1
		}
	}
	switch {
	case c.SmallestP >= t.Alpha:
	case v.Margin > 0 && v.AlikeP > 0 && v.AlikeP < t.Alpha:
		v.Outcome = Alike
	case c.P >= t.Alpha:
		v.Outcome = Unclear
	case (c.Ratio > 1) == m.moreBetter:
		v.Outcome = Faster
	default:
		v.Outcome = Slower
	}
	v.Words = words(m, v)
	return v
}

// mostlyIdle names the side that did nothing in half of its runs or more: no ratio says anything then.
func (p paired) mostlyIdle() (n, of int, who string) {
	for _, s := range []struct {
		name string
		runs []*bench.Result
	}{{p.nameA, p.a}, {p.nameB, p.b}} {
		n = 0
		for _, r := range s.runs {
			if idle(r) {
				n++
			}
		}
		if 2*n >= len(s.runs) && n > 0 {
			return n, len(s.runs), s.name
		}
	}
	return 0, 0, ""
}

// countPairs counts in how many pairs B did better.
func (v *Verdict) countPairs(m measure, p paired, a, b []float64) {
	if !p.pairs {
		return
	}
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		v.Pairs++
		if b[i] > a[i] == m.moreBetter {
			v.PairsB++
		}
	}
}

// notes tell what may spoil a comparison.
func notes(a, b Side) (out []string) {
	for _, s := range []Side{a, b} {
		interrupted, failing, nothing, unmeasured := 0, 0, 0, 0
		of := digits.Counted(len(s.Runs), "run")
		var errs int64
		kinds := map[string]bool{}
		for _, r := range s.Runs {
			if r.Interrupted {
				interrupted++
			}
			if len(r.Errors) > 0 {
				failing++
			}
			switch {
			case idle(r) && r.Seconds > 0:
				nothing++
			case idle(r):
				unmeasured++
			}
			for _, e := range r.Errors {
				errs += e.Count
				kinds[e.Label] = true
			}
		}
		if source := valuesOf(s.Runs, func(r *bench.Result) string { return r.Source }); strings.Trim(source, ", ") != "" {
			text := fmt.Sprintf("%s was measured by %s, another program with other clocks and sessions", s.Name, source)
			if slices.ContainsFunc(s.Runs, func(r *bench.Result) bool { return r.Workload == bench.UnknownWorkload }) {
				text += "; it does not say which workload it ran: both sides are assumed to have run the same"
			}
			out = append(out, text)
		}
		if nothing > 0 {
			out = append(out, fmt.Sprintf("%s: %d of %s did nothing at all: each counts as half a transaction, and as waiting for its whole length", s.Name, nothing, of))
		}
		if unmeasured > 0 {
			out = append(out, fmt.Sprintf("%s: %d of %s measured nothing: left out", s.Name, unmeasured, of))
		}
		if failing > 0 {
			out = append(out, fmt.Sprintf("%s: %s failed in %d of %s (errors %s)", s.Name, digits.Counted(errs, "transaction"), failing, of, strings.Join(sorted(kinds), ", ")))
		}
		if interrupted > 0 {
			out = append(out, fmt.Sprintf("%s: %d of %s interrupted, and shorter than the others", s.Name, interrupted, of))
		}
		if unsteady := drifting(s.Runs); unsteady > 0 {
			out = append(out, fmt.Sprintf("%s: %d of %s not steady, which a longer warm-up or a quieter machine would fix", s.Name, unsteady, of))
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
