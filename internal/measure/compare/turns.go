package compare

import (
	"fmt"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/measure/bench"
)

// neighbours is how long after the first run of a pair the second may begin, in addition to the length of the first: the machine has to
// be the same for both.
const neighbours = time.Minute

// turns finds out by their times whether the runs of two sides were made in pairs of neighbours, one of each side, and puts them in
// that order; note says what it means for the verdict when they were not, or not quite.
func turns(a, b *Side) (note string) {
	if a.Paired && b.Paired || a.Shuffled && b.Shuffled || len(a.Runs) == 0 || len(b.Runs) == 0 {
		return ""
	}
	var all []run
	for _, r := range a.Runs {
		all = append(all, run{r, false})
	}
	for _, r := range b.Runs {
		all = append(all, run{r, true})
	}
	const advice = "changes on the machine in between count as a difference, too, however small p is; risso bench compare with a workload alternates runs"
	if slices.ContainsFunc(all, func(r run) bool { return r.Source != "" || r.Began.IsZero() }) {
		return "it is unknown when the runs were made, so they are not judged as pairs: " + advice
	}
	slices.SortStableFunc(all, func(x, y run) int { return x.Began.Compare(y.Began) })
	whole := len(all) - len(all)%2 // an interrupted comparison has one run more of a side, at its end
	pairedA, pairedB, ahead := []*bench.Result{}, []*bench.Result{}, 0
	for i := 0; i < whole; i += 2 {
		x, y := all[i], all[i+1]
		if x.second == y.second || x.gap(y) > neighbours+time.Duration(x.Seconds*float64(time.Second)) || !x.Began.Before(y.Began) {
			changes := 0
			for k := 1; k < len(all); k++ {
				if all[k].second != all[k-1].second {
					changes++
				}
			}
			how := "the runs were not made in turns"
			if changes == 1 {
				how = fmt.Sprintf("all runs of %s were made before those of %s", nameOf(a, b, all[0].second), nameOf(a, b, !all[0].second))
			}
			return how + ", so they are not judged as pairs: " + advice
		}
		if x.second {
			x, y = y, x
		} else {
			ahead++
		}
		pairedA, pairedB = append(pairedA, x.Result), append(pairedB, y.Result)
	}
	if whole < len(all) {
		if last := all[whole]; last.second {
			pairedB = append(pairedB, last.Result)
		} else {
			pairedA = append(pairedA, last.Result)
		}
	}
	a.Runs, b.Runs, a.Paired, b.Paired = pairedA, pairedB, true, true
	if n := whole / 2; n > 1 && (ahead == 0 || ahead == n) {
		return fmt.Sprintf("%s ran first in all %d pairs: the effect of going first or second counts as a difference", nameOf(a, b, ahead == 0), n)
	}
	return ""
}

// run is one of a side.
type run struct {
	*bench.Result
	second bool // of B
}

// gap is how long after the measured time of r the warm-up of the next one began.
func (r run) gap(next run) time.Duration {
	return next.Began.Sub(r.Began) - time.Duration((r.Seconds+next.WarmupSeconds)*float64(time.Second))
}

func nameOf(a, b *Side, second bool) string {
	if second {
		return b.Name
	}
	return a.Name
}
