package web

import (
	"fmt"

	"github.com/prometheus/prometheus/promql/parser"
)

// The engine checks whether its time is over between series, and not while it works on one: a subquery in a subquery keeps it
// busy with a single series for hours, and one of small steps over a long range in which there is no sample, too. So what
// one series may cost is bounded before the engine begins.
const (
	mostWork     = 2e9 // samples that a function looks at in its windows, again at each step; some seconds
	mostSubsteps = 1e7 // steps of a subquery
	sortWork     = 20  // what a sample costs where windows are sorted
	moveWork     = 0.1 // where windows are only moved on
	thinnedStep  = 8000
	thinnedRange = 86_400_000 // milliseconds: see series.Store.QueryableFor
)

// course is the times at which an expression is evaluated, in milliseconds; zero: one time only.
type course struct{ span, step float64 }

func (c course) steps() float64 {
	if c.step <= 0 {
		return 1
	}
	return 1 + c.span/c.step
}

// workload finds expressions that would keep the engine busy with one series for too long.
type workload struct {
	samples float64 // that a window can have at the most
}

// check returns errCostly for an expression that is evaluated in a course, within a subquery or not.
func (w workload) check(node parser.Node, c course, within bool) error {
	switch n := node.(type) {
	case *parser.Call:
		for _, arg := range n.Args {
			if w.window(n.Func.Name, arg, c, within) > mostWork {
				return tooCostly("%s would go over more than %.0g samples of a series", n.Func.Name, mostWork)
			}
		}
	case *parser.SubqueryExpr:
		if c, within = courseOf(n, c), true; c.steps() > mostSubsteps {
			return tooCostly("a subquery has more than %.0g steps", mostSubsteps)
		}
	}
	for child := range parser.ChildrenIter(node) {
		if err := w.check(child, c, within); err != nil {
			return err
		}
	}
	return nil
}

// courseOf is the course of what is in a subquery.
func courseOf(n *parser.SubqueryExpr, c course) course {
	if n.Timestamp != nil || n.StartOrEnd != 0 { // it is evaluated once
		c = course{}
	}
	step := float64(n.Step.Milliseconds())
	if step <= 0 {
		step = subqueryStep
	}
	return course{c.span + float64(n.Range.Milliseconds()), step}
}

// window is what it costs a function to go over the windows that an argument represents; 0 if it is none.
func (w workload) window(function string, arg parser.Expr, c course, within bool) float64 {
	cost, count := 1.0, 0.0
	switch function {
	case "last_over_time", "first_over_time", "irate", "idelta", "delta", "present_over_time", "absent_over_time", "count_over_time":
		cost = moveWork
	case "quantile_over_time", "mad_over_time":
		cost = sortWork
	}
	switch a := arg.(type) {
	case *parser.MatrixSelector:
		thinned := (function == "rate" || function == "increase") && !within && a.Range.Milliseconds() <= thinnedRange && (c.step == 0 || c.step >= thinnedStep)
		if v, ok := a.VectorSelector.(*parser.VectorSelector); thinned || ok && (v.Timestamp != nil || v.StartOrEnd != 0) {
			return 0
		}
		count = a.Range.Seconds()
	case *parser.SubqueryExpr:
		if a.Timestamp != nil || a.StartOrEnd != 0 {
			return 0
		}
		count = float64(a.Range.Milliseconds()) / courseOf(a, c).step
	}
	return cost * c.steps() * min(count, w.samples)
}

func tooCostly(format string, args ...any) error {
	return fmt.Errorf("%w: %s; ask for larger steps, or a shorter range", errCostly, fmt.Sprintf(format, args...))
}
