package scale

import (
	"fmt"
	"math"
	"strings"

	"github.com/rissodb/risso/internal/digits"
)

// words say the report.
func (r *Report) words() {
	say := func(format string, args ...any) { r.Words = append(r.Words, fmt.Sprintf(format, args...)) }
	if r.Law != nil {
		r.lawWords(say)
	}
	if r.Processors > 0 {
		var beyond []string
		for _, m := range r.Points {
			if m.Beyond {
				beyond = append(beyond, fmt.Sprint(m.Threads))
			}
		}
		switch {
		case len(beyond) == len(r.Points):
			say("All thread counts exceed the machine's %s: what is measured is how threads share them.", processors(r.Processors))
		case len(beyond) > 0:
			say("Beyond the machine's %s lie %s threads: there threads also wait for a processor, and σ and κ include that queue.", processors(r.Processors), strings.Join(beyond, ", "))
		}
	} else {
		r.Notes = append(r.Notes, "how many processors the machine has is not known (give --processors): it is unknown which part is beyond them")
	}
}

func processors(n int) string {
	return digits.Counted(n, "processor")
}

func (r *Report) lawWords(say func(string, ...any)) {
	l := r.Law
	if l.Fits {
		say("The Universal Scalability Law fits (R² %s).", digits.Ratio(l.RSquared))
	} else {
		say("The Universal Scalability Law does not fit well (R² %s): %s. Take what follows as a rough guide.", digits.Ratio(l.RSquared), strings.Join(l.Doubts, "; "))
	}
	say("λ %s: one thread makes %s transactions per second%s.", digits.Count(l.Lambda), digits.Count(l.Lambda), interval(l.LambdaBound, digits.Count))
	switch {
	case l.Sigma >= 1:
		say("σ %s%s: above 1, which is impossible for a share of work: more threads do less than one, as if they get in each other's way.", digits.Three(l.Sigma), interval(l.SigmaBound, digits.Three))
	case l.Sigma > 1e-9:
		say("σ %s%s: %s of the work is done by one thread at a time; that alone would hold throughput below %s a second, %s times one thread's.", digits.Three(l.Sigma), interval(l.SigmaBound, digits.Three),
			digits.Percent(l.Sigma), digits.Count(l.Lambda/l.Sigma), digits.Ratio(1/l.Sigma))
	default:
		say("σ 0: there is no sign of waiting for serial work.")
	}
	switch {
	case l.Peak == nil:
		say("κ 0: there is no sign of coordination cost between threads; throughput does not fall.")
	case *l.Peak <= 1:
		say("The peak is %s transactions per second with 1 thread%s: throughput falls with each further one.", digits.Count(*l.PeakTPS), interval(l.PeakBound, whole))
	default:
		say("κ %s%s: each pair of threads costs %s of a transaction's time, so throughput falls beyond %s.", digits.Three(l.Kappa), interval(l.KappaBound, digits.Three), digits.Percent(l.Kappa), threads(int(math.Round(*l.Peak))))
		largest := r.Points[len(r.Points)-1].Threads
		where := ""
		if *l.Peak > float64(largest) {
			where = fmt.Sprintf("; that is beyond the %d that were run, and was not observed", largest)
		}
		say("The peak is %s transactions per second with %s%s%s.", digits.Count(*l.PeakTPS), threads(int(math.Round(*l.Peak))), interval(l.PeakBound, whole), where)
	}
	if l.LargestAt > 0 {
		say("Left out in turn, thread counts are predicted with a median error of %s, at most %s (with %s).", digits.Percent(l.TypicalError), digits.Percent(l.LargestError), threads(l.LargestAt))
	}
}

// interval is the 95 % interval in brackets.
func interval(b Bound, form func(float64) string) string {
	low, high := "0", "any"
	if b.Low != nil {
		low = form(*b.Low)
	}
	if b.High != nil {
		high = form(*b.High)
	}
	return fmt.Sprintf(" (95 %%: %s to %s)", low, high)
}

// whole is a throughput without a fraction.
func whole(v float64) string { return digits.Count(math.Round(v)) }
