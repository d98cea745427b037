package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/measure/compare"
	"github.com/rissodb/risso/internal/oneline"
)

// Defaults of --precise, and the most runs of each side that are made.
const (
	preciseRuns = 60
	preciseSame = 6
	mostRuns    = 500
)

// precision is a flag of a share: 3%, 0.5 %.
type precision float64

func (p *precision) Type() string { return "share" }

func (p *precision) String() string {
	if *p == 0 {
		return ""
	}
	return strconv.FormatFloat(100*float64(*p), 'g', -1, 64) + "%"
}

func (p *precision) Set(text string) error {
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(v >= 0.1 && v <= 50) {
		return errors.New("write it as 3%: from 0.1% to 50%")
	}
	*p = precision(v / 100)
	return nil
}

// verdicts are what --fail-if may name, with the outcomes that it means.
var verdicts = map[string][]string{
	"slower": {compare.Slower}, "faster": {compare.Faster}, "different": {compare.Slower, compare.Faster}, "unclear": {compare.Unclear},
}

func (f *compareFlags) checkVerdicts() error {
	for _, name := range f.failIf {
		if verdicts[name] == nil {
			return fault.Usagef("--fail-if %q: slower, faster, different or unclear", name)
		}
	}
	return nil
}

// verdict returns the exit code that --fail-if asks for.
func (f *compareFlags) verdict(r *compare.Report) error {
	if len(f.failIf) == 0 {
		return nil
	}
	if len(r.Verdicts) == 0 {
		return fault.New(fault.Unsure, "", errors.New("no verdict: nothing could be compared"))
	}
	v := r.Verdicts[0]
	what := v.Measure
	if r.Instead != "" {
		what = fmt.Sprintf("%s (%s)", v.Measure, r.Instead)
	}
	if !v.Given() {
		return fault.New(fault.Unsure, "", fmt.Errorf("no verdict: %s: %s", what, v.Outcome))
	}
	for _, name := range f.failIf {
		if slices.Contains(verdicts[name], v.Outcome) {
			return fault.New(fault.Differs, "", fmt.Errorf("the verdict is one of --fail-if %s: %s: %s", strings.Join(f.failIf, ","), what, v.Outcome))
		}
	}
	return nil
}

// measure makes the runs, does what has to be done afterwards in any case, and tells the verdict.
func (c *comparison) measure(ctx context.Context, runA, runB compare.Runner, afterwards func() error) error {
	show := newSteps(c.streams.Err, len(c.order)+2*c.same)
	made := 0
	step := func(_ int, what string) { show.begin(made, "%s", what); made++ }
	var same *compare.SameReport
	var interrupted bool
	var err error
	if c.same > 0 {
		one, other := compare.Side{Name: "A"}, compare.Side{Name: "A again"}
		compare.InTurns(c.compareFlags.order, c.same, &one, &other)
		var order []bool
		if order, err = compare.Order(c.compareFlags.order, c.same, c.Seed+1); err == nil {
			interrupted, err = compare.Interleave(ctx, order, &one, &other, runA, runA, func(i int, _ bool) { step(i, "A against A") })
		}
		if err == nil && !interrupted {
			same = compare.Same(one, other, order, c.compareFlags.order, min(c.runs, samePairs), c.Seed)
			if screen.OnTerminal(c.streams.Err) {
				show.end()
				fmt.Fprintln(c.streams.Err, same.Words)
			}
		}
	}
	precise := compare.Precise{Within: float64(c.precise), Most: c.runs, Seed: c.Seed}
	pairs, alpha := []int{c.runs}, []float64{1 - compare.Confidence}
	if c.precise > 0 {
		pairs, alpha = precise.Looks()
	}
	var r *compare.Report
	from, done := 0, false
	for i, n := range pairs {
		if err != nil || interrupted {
			break
		}
		interrupted, err = compare.Interleave(ctx, c.order[2*from:2*n], &c.a, &c.b, runA, runB, func(i int, second bool) {
			step(i, map[bool]string{false: "A", true: "B"}[second])
		})
		if from = n; c.precise > 0 && err == nil && !interrupted {
			if r, done = precise.Look(c.a, c.b, alpha[i]); done {
				break
			}
		}
	}
	show.end()
	err = errors.Join(err, afterwards())
	if len(c.a.Runs)+len(c.b.Runs) == 0 {
		if err == nil {
			err = fault.New(fault.Interrupted, "", errors.New("interrupted before the first run was over: nothing was measured"))
		}
		return err
	}
	if r == nil || interrupted || err != nil {
		// An interrupted one was never judged with what it has now: the last level that was left to it is the strictest.
		r = compare.Judge(c.a, c.b, compare.Terms{Seed: c.Seed, Alpha: slices.Min(alpha), Margin: precise.Within})
	}
	if c.precise > 0 {
		precise.Tell(r, done)
	}
	r.Same, r.Order, r.Interrupted = same, compare.OrderString(c.order[:2*min(from, c.runs)]), interrupted || err != nil
	r.Notes = append(r.Notes, c.noted...)
	if werr := writeComparison(c.streams.Out, r, c.output); err == nil {
		err = werr
	}
	switch {
	case err == nil && interrupted:
		return fault.New(fault.Interrupted, "", fmt.Errorf("interrupted after %d of %s", len(c.a.Runs)+len(c.b.Runs), digits.Counted(len(c.order), "run")))
	case err == nil:
		return c.verdict(r)
	}
	return err
}

// samePairs is for how many pairs the smallest visible effect is given if more may be made.
const samePairs = 20

// refuseSame says that both sides would be the same.
func refuseSame(settings []compare.Setting) error {
	return fault.New(fault.Usage, "use values that the server distinguishes", fmt.Errorf("both sides are the same: the server has %s for A and B", oneline.Cut(strings.Join(settingNames(settings), ", "), 200)))
}
