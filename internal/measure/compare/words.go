package compare

import (
	"fmt"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/stats"
)

// words put a verdict into words. A ratio is given from the side on which it is above 1.
func words(m measure, v Verdict) string {
	c := v.Comparison
	switch v.Outcome {
	case TooFew:
		return fmt.Sprintf("too few runs: with %d and %d the smallest possible p is %s, so no difference, however large, could be shown; make at least %d of each",
			v.RunsA, v.RunsB, digits.Chance(c.SmallestP), stats.LeastRuns(Confidence))
	case Unclear:
		text := "no difference can be shown: " + between(m, v)
		switch {
		case v.Detectable > 0:
			text += fmt.Sprintf("; with %s a difference under %s would not show", runs(v), difference(v.Detectable))
		default:
			text += fmt.Sprintf("; with %s this scattered hardly any difference would show", runs(v))
		}
		return text
	}
	if v.Outcome == Alike {
		return fmt.Sprintf("alike within %s: %s (p of a larger difference %s)", digits.Percent(v.Margin), between(m, v), digits.Chance(v.AlikeP))
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
		return fmt.Sprintf("%s %s %s, %s interval %s to %s%s", subject, digits.Percent(ratio-1), word, confidence(c), digits.Percent(low-1), digits.Percent(high-1), tail(v))
	}
	return fmt.Sprintf("%s %s times %s, %s interval %s-%s%s", subject, digits.Ratio(ratio), word, confidence(c), digits.Ratio(low), digits.Ratio(high), tail(v))
}

// difference tells a ratio above 1 in per cent, or in times where it is large.
func difference(ratio float64) string {
	if ratio < 2 {
		return digits.Percent(ratio - 1)
	}
	return digits.Ratio(ratio) + " times"
}

// wholeTimes is from where on a ratio is given in times and not in percent.
const wholeTimes = 1.2

// confidence is that of an interval.
func confidence(c *stats.Comparison) string { return digits.Percent(c.Confidence) }

// tail returns the p, and how the pairs turned out.
func tail(v Verdict) string {
	text := fmt.Sprintf(" (p %s)", digits.Chance(v.P))
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
	return fmt.Sprintf("%s is %s to %s times %s (%s interval; p %s)", who, digits.Ratio(c.Low), digits.Ratio(c.High), what, confidence(c), digits.Chance(c.P))
}

func runs(v Verdict) string {
	if v.RunsA == v.RunsB {
		return digits.Counted(v.RunsA, "run") + " of each"
	}
	return fmt.Sprintf("%d and %s", v.RunsA, digits.Counted(v.RunsB, "run"))
}
