package compare

import (
	"fmt"
	"math"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/bench"
)

// Cause is something that the server did differently per transaction on one side.
type Cause struct {
	Counter string  `json:"counter"` // the server's name for it
	What    string  `json:"what"`
	Unit    string  `json:"unit,omitempty"`
	A       float64 `json:"a"` // per transaction, the median of the runs
	B       float64 `json:"b"`
	P       float64 `json:"p"`
}

// String says it in words.
func (c Cause) String() string {
	unit := c.Unit
	if unit != "" {
		unit = " " + unit
	}
	return fmt.Sprintf("%s: %s%s a transaction with A, %s%s with B", c.What, digits.Three(c.A), unit, digits.Three(c.B), unit)
}

// The causes that are reported: at least so much of a difference, no more often by chance than so, of things that happen at least so
// often, and no more of them than so.
const (
	causeFrom   = 1.2
	causeUnder  = 0.05
	causeSeldom = 0.001 // a transaction
	mostCauses  = 6
)

// causes compares what the server counted for each transaction; the most telling counters first, in the order of
// bench.Counters.
func causes(p paired) []Cause {
	var out []Cause
	add := func(name, what, unit string, of func(*bench.Result) (float64, bool)) {
		if c, ok := p.cause(of); ok && len(out) < mostCauses {
			c.Counter, c.What, c.Unit = name, what, unit
			out = append(out, c)
		}
	}
	for _, c := range bench.Counters() {
		add(c.Name, c.What, c.Unit, func(r *bench.Result) (float64, bool) {
			n, ok := r.Counted[c.Name]
			return (float64(n) + 0.1) / float64(r.Transactions), ok && r.Transactions > 0
		})
	}
	add("", "the server's processor time", "µs", func(r *bench.Result) (float64, bool) {
		if r.Use == nil || r.Use.Server == nil || r.TransactionsPerSecond == 0 {
			return 0, false
		}
		return 1e6 * max(*r.Use.Server, 1e-6) / r.TransactionsPerSecond, true
	})
	return out
}

// cause tests one figure.
func (p paired) cause(of func(*bench.Result) (float64, bool)) (Cause, bool) {
	side := func(runs []*bench.Result) (v []float64, ok bool) {
		for _, r := range runs {
			x, ok := of(r)
			if !ok {
				return nil, false
			}
			v = append(v, x)
		}
		return v, len(v) > 0
	}
	a, okA := side(p.a)
	b, okB := side(p.b)
	if !okA || !okB {
		return Cause{}, false
	}
	test, err := p.test(1 - Confidence)
	if err != nil {
		return Cause{}, false
	}
	c, err := test.Compare(a, b)
	if err != nil || c.P >= causeUnder || math.Abs(math.Log(c.Ratio)) < math.Log(causeFrom) || max(c.MedianA, c.MedianB) < causeSeldom {
		return Cause{}, false
	}
	return Cause{A: c.MedianA, B: c.MedianB, P: c.P}, true
}
