package compare

import "github.com/rissodb/risso/internal/measure/bench"

// Times judges seconds that one thing took before and after a change, the i-th of both measured at about the same time.
func Times(what string, before, after []float64, seed uint64) Verdict {
	p := paired{nameA: "before", nameB: "after", pairs: len(before) == len(after)}
	for i := range before {
		p.a = append(p.a, &bench.Result{Transactions: 1, Seconds: before[i]})
	}
	for i := range after {
		p.b = append(p.b, &bench.Result{Transactions: 1, Seconds: after[i]})
	}
	return judge(measure{name: what, unit: "seconds"}, p, before, after, Terms{Seed: seed, Alpha: 1 - Confidence})
}
