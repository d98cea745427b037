package compare

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/bench"
)

// leastCalls is how many calls of a class each run has to have.
const leastCalls = 10

// classes judges the classes of statements of a replay by the servers' own times: server time against server time, run by run.
// The error that may be made is divided over them, so only so many are judged, those that took most time first, as the number of
// runs can distinguish at all.
func classes(p paired, u unlike, t Terms) (out []Verdict, note string) {
	if len(p.a) == 0 || len(p.b) == 0 {
		return nil, ""
	}
	type class struct {
		name string
		took float64 // by the clients of all runs
	}
	var list []class
	left := 0
	for _, k := range p.a[0].Kinds {
		if k.Recorded == nil {
			continue
		}
		c, told := class{name: k.Name}, true
		for _, r := range slices.Concat(p.a, p.b) {
			_, ok := serverTime(r, k.Name)
			told = told && ok
			for _, x := range r.Kinds {
				if x.Name == k.Name {
					c.took += float64(x.Transactions) * x.Latency.Avg
				}
			}
		}
		if told {
			list = append(list, c)
		} else {
			left++
		}
	}
	slices.SortStableFunc(list, func(x, y class) int { return cmp.Compare(y.took, x.took) })
	test, err := p.test(t.Alpha)
	if err != nil || len(list) == 0 {
		return nil, leftOut(left, 0)
	}
	most := 1
	for most < len(list) && test.SmallestP() < t.Alpha/float64(most+1) {
		most++
	}
	for _, c := range list[:most] {
		m := measure{name: "server time of " + c.name, unit: "seconds", of: func(r *bench.Result) (float64, bool) { return serverTime(r, c.name) }}
		x, y, _ := p.figures(m)
		v := judge(m, p, x, y, Terms{Seed: t.Seed, Alpha: t.Alpha / float64(most)})
		u.doubt(m, &v)
		out = append(out, v)
	}
	return out, leftOut(left, len(list)-most)
}

// serverTime is the median of what the server itself took for a class in a run, less what being asked for times costs.
func serverTime(r *bench.Result, name string) (float64, bool) {
	for _, k := range r.Kinds {
		if k.Name == name && k.Recorded != nil && k.Recorded.Now != nil {
			now := k.Recorded.Now
			return now.Median - now.Empty, now.Calls >= leastCalls && now.Median >= 2*now.Empty
		}
	}
	return 0, false
}

// leftOut says which classes are not judged.
func leftOut(untold, beyond int) string {
	switch {
	case untold > 0 && beyond > 0:
		return leftOut(untold, 0) + " and " + leftOut(0, beyond) + "; more runs show more of the latter"
	case untold > 0:
		return fmt.Sprintf("%s not judged: too short, too few calls in a run, or a server that does not report its own time", were(untold))
	case beyond > 0:
		return fmt.Sprintf("%s not judged: that takes more runs", were(beyond))
	}
	return ""
}

func were(n int) string {
	return digits.Plural(n, "class of statements was", "classes of statements were")
}
