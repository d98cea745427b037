package compare

import (
	"fmt"
	"math"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/stats"
)

// words say a verdict. A ratio is told from the side on which it is above 1.
func words(m measure, v Verdict) string {
	c := v.Comparison
	switch v.Outcome {
	case TooFew:
		return fmt.Sprintf("too few runs: with %d and %d the smallest possible p is %s, so no difference, however large, could be shown; make at least %d of each",
			v.RunsA, v.RunsB, probability(c.SmallestP), stats.LeastRuns(Confidence))
	case Unclear:
		text := "no difference can be shown: " + between(m, v)
		switch {
		case v.Detectable > 0:
			text += fmt.Sprintf("; with %s a difference under %s would not show", runs(v), difference(v.Detectable))
		default:
			text += fmt.Sprintf("; with %s so scattered hardly any difference would show", runs(v))
		}
		return text
	}
	if v.Outcome == Alike {
		return fmt.Sprintf("alike within %s: %s (p of a larger difference %s)", percent(v.Margin), between(m, v), probability(v.AlikeP))
	}
	ratio, low, high := c.Ratio, c.Low, c.High
	if ratio < 1 {
		ratio, low, high = 1/ratio, 1/high, 1/low
	}
	word := v.Outcome
	if !m.moreBetter {
		word = map[string]string{Faster: "shorter", Slower: "longer"}[v.Outcome]
	}
	subject := v.B + " is"
	if !m.moreBetter {
		subject = v.B + "'s " + m.name + " is"
	}
	if ratio < wholeTimes {
		// With few figures the interval may touch the other side.
		return fmt.Sprintf("%s %s %s, %s interval %s to %s%s", subject, percent(ratio-1), word, confidence(c), percent(low-1), percent(high-1), tail(v))
	}
	return fmt.Sprintf("%s %s times %s, %s interval %s-%s%s", subject, figure(ratio), word, confidence(c), figure(low), figure(high), tail(v))
}

// difference tells a ratio above 1 in per cent, or in times where it is large.
func difference(ratio float64) string {
	if ratio < 2 {
		return percent(ratio - 1)
	}
	return figure(ratio) + " times"
}

// wholeTimes is from where on a ratio is told in times and not in per cent.
const wholeTimes = 1.2

// confidence is that of an interval.
func confidence(c *stats.Comparison) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", 100*c.Confidence), "0"), ".") + " %"
}

// tail tells the p, and how the pairs stand.
func tail(v Verdict) string {
	text := fmt.Sprintf(" (p %s)", probability(v.P))
	if v.Pairs > 0 {
		text += fmt.Sprintf("; %s did better in %d of %s of neighbouring runs", v.B, v.PairsB, digits.Counted(v.Pairs, "pair"))
	}
	return text
}

func between(m measure, v Verdict) string {
	c, what, who := v.Comparison, "as fast as "+v.A, v.B
	if !m.moreBetter {
		what, who = v.A+"'s", v.B+"'s "+m.name
	}
	return fmt.Sprintf("%s is %s to %s times %s (%s interval; p %s)", who, fixed(c.Low), fixed(c.High), what, confidence(c), probability(c.P))
}

func runs(v Verdict) string {
	if v.RunsA == v.RunsB {
		return digits.Counted(v.RunsA, "run") + " of each"
	}
	return fmt.Sprintf("%d and %s", v.RunsA, digits.Counted(v.RunsB, "run"))
}

// probability is a p with two digits.
func probability(p float64) string {
	if p < 1e-4 {
		return "below 0.0001"
	}
	return fmt.Sprintf("%.2g", p)
}

// figure gives three digits.
func figure(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// fixed shows ratios near 1 so that they can be told from it.
func fixed(v float64) string {
	if math.Abs(v-1) < 0.05 {
		return fmt.Sprintf("%.3f", v)
	}
	return figure(v)
}

func percent(share float64) string {
	switch a := math.Abs(share); {
	case a >= 0.1:
		return fmt.Sprintf("%.0f %%", 100*share)
	case a >= 0.001 || a == 0:
		return fmt.Sprintf("%.1f %%", 100*share)
	}
	return fmt.Sprintf("%.2g %%", 100*share)
}
