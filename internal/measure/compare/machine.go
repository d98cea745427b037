package compare

import (
	"fmt"
	"math"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/environ"
)

// The sides had unlike conditions if one of them had this much more of something (as a ratio of the medians' kind), unless chance
// makes so large a difference more often than every second time. To doubt a verdict takes less than to give one: at a load of 20 six
// busy loops next to one side once showed at p 0.2 only, and made it 2.5 times slower.
const (
	unlikeFrom  = 1.05
	unlikeUnder = 0.5
)

// unlike is what one side had more of than the other.
type unlike struct {
	words  string  // what each side had
	ratio  float64 // B over A; above 1: B had it better. 1: nothing differs
	told   bool    // the runs tell what they had at all
	remote bool    // nothing is seen of the server's machine
	nameA  string
	nameB  string
}

// uneven checks whether the machine was the same for both sides.
func (p paired) uneven() unlike {
	u := unlike{ratio: 1, nameA: p.nameA, nameB: p.nameB}
	for _, r := range append(append([]*bench.Result{}, p.a...), p.b...) {
		u.remote = u.remote || r.Use != nil && r.Use.Elsewhere
	}
	for _, had := range []struct {
		of    func(*environ.Use) (float64, bool)
		form  func(float64) string
		words string
	}{
		{(*environ.Use).Left, digits.Percent, "with other programs running a thread of %s could count on %s of a processor, one of %s on %s"},
		{ran, digits.Percent, "%s's client had a processor for %s of the time it was runnable, %s's for %s"},
		{clock, megahertz, "the processors ran at different speeds: with %s at %s, with %s at %s"},
	} {
		a, okA := usesOf(p.a, had.of)
		b, okB := usesOf(p.b, had.of)
		if !okA || !okB {
			continue
		}
		u.told = true
		test, err := p.test(1 - Confidence)
		if err != nil {
			return u
		}
		c, err := test.Compare(a, b)
		if err != nil || c.P >= unlikeUnder || math.Abs(math.Log(c.Ratio)) < math.Log(unlikeFrom) {
			continue
		}
		u.ratio = c.Ratio
		u.words = fmt.Sprintf(had.words, p.nameA, had.form(c.MedianA), p.nameB, had.form(c.MedianB))
		return u
	}
	return u
}

// ran is how much of its ready time the client ran, if it is unknown what others took: else the queue may be the server's
// own doing.
func ran(u *environ.Use) (float64, bool) {
	if _, known := u.Left(); known || u == nil || u.ClientWait == nil {
		return 0, false
	}
	return max(1-*u.ClientWait, 0.001), true
}

// clock is the mean frequency.
func clock(u *environ.Use) (float64, bool) {
	if u == nil || u.MHz == nil {
		return 0, false
	}
	return *u.MHz, true
}

func megahertz(v float64) string { return digits.Count(v) + " MHz" }

// usesOf are the figures of all runs, where all tell them.
func usesOf(runs []*bench.Result, of func(*environ.Use) (float64, bool)) ([]float64, bool) {
	out := make([]float64, len(runs))
	for i, r := range runs {
		v, ok := of(r.Use)
		if !ok {
			return nil, false
		}
		out[i] = v
	}
	return out, len(out) > 0
}

// doubt withholds a verdict that the machine may have made, and tells the reason with one that it cannot have made.
func (u unlike) doubt(m measure, v *Verdict) {
	if u.ratio == 1 || !v.Given() {
		return
	}
	favours, other := v.B, v.A
	if u.ratio < 1 {
		favours, other = v.A, v.B
	}
	better := map[string]string{Faster: v.B, Slower: v.A}[v.Outcome]
	switch {
	case better != "" && better != favours:
		v.Words += fmt.Sprintf(", although %s had less of the machine (%s)", other, u.words)
	case v.Outcome == Unclear:
		v.Words += fmt.Sprintf("; and the sides were not disturbed alike: %s", u.words)
	default:
		v.Seems, v.Outcome, v.Reason = v.Outcome, Withheld, "the sides were not disturbed alike: "+u.words
		v.Words = fmt.Sprintf("verdict withheld: %s; so what the figures seem to say (%s) may be caused by other programs: repeat the runs when the machine is quiet", v.Reason, v.Words)
	}
}

// note says what is not known of the machine.
func (u unlike) note() string {
	switch {
	case !u.told:
		return "what else the machine did is not known for all runs, nor whether other programs disturbed one side"
	case u.remote:
		return "the server's machine was not observed: disturbances there are not known"
	}
	return ""
}

// Trust returns one line for each run: whether the run had the machine to itself.
func (r *Report) Trust() (out [][2]string) {
	for _, s := range []Side{r.A, r.B} {
		for i, run := range s.Runs {
			if run.Use != nil {
				out = append(out, [2]string{fmt.Sprintf("%s %d", s.Name, i+1), run.Use.Line()})
			}
		}
	}
	return out
}
