package after

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/measure/stats"
	"github.com/rissodb/risso/internal/oneline"
)

// What counts as a change. Minutes next to each other are alike, which a test does not know: so a change must be improbable, and large
// as well.
const (
	doubt        = 0.05 // of all tests of a kind together
	leastFactor  = 1.25 // of throughput, load and latency of a server
	classFactor  = 1.5  // of a class
	leastShare   = 0.01 // of the server's load, that a class has to have before or after
	leastCalls   = 10   // of a class that is new
	leastErrors  = 0.01 // of a call, that a class' errors change by
	regular      = 0.8  // of the minutes before, in which a class has to have run that is gone
	dayBefore    = 86400
	overwhelming = 3 // a factor at which it does not matter that minutes next to each other are alike
)

// compare says what changed.
func (s *seen) compare() (out Server) {
	out.Measures, out.Classes, out.Plans = []Measure{}, []Class{}, []Plan{}
	if len(s.before) < needed || len(s.after) < needed {
		out.Words = []string{fmt.Sprintf("too little data: %s seen before and %d after; %d of each are needed", digits.Counted(len(s.before), "minute"), len(s.after), needed)}
		return out
	}
	out.Enough = true
	all := tests{}
	out.Measures = s.measures(all)
	for _, m := range out.Measures {
		if words := m.words(); words != "" {
			out.Words = append(out.Words, words)
		}
	}
	out.Classes = s.changed(all)
	for _, c := range out.Classes {
		out.Words = append(out.Words, c.Words)
	}
	return out
}

// tested is the answer of a test of two heaps of figures.
type tested struct {
	before, after float64 // medians
	p             float64
	verdict       Verdict
}

// tests are the tests that were prepared, by the numbers of figures and the confidence.
type tests map[testKey]*stats.RankTest

type testKey struct {
	m, n  int
	alpha float64
}

func (all tests) of(m, n int, alpha float64) (*stats.RankTest, error) {
	key := testKey{m, n, alpha}
	if r, ok := all[key]; ok {
		return r, nil
	}
	r, err := stats.NewRankTest(m, n, 1-alpha)
	if err == nil {
		all[key] = r
	}
	return r, err
}

// test compares figures of minutes. Figures may be 0: least is what is added to all then, a size at which nobody minds a difference.
// alpha is how probable a false alarm may be, factor the least change that counts.
func (all tests) test(a, b []float64, least, alpha, factor float64) (t tested) {
	t.verdict = Unknown
	if len(a) < 2 || len(b) < 2 {
		return t
	}
	t.before, t.after = stats.Median(a), stats.Median(b)
	a, b = plus(a, least), plus(b, least)
	r, err := all.of(len(a), len(b), alpha)
	if err != nil || r.SmallestP() > alpha {
		return t
	}
	c, err := r.Compare(a, b)
	if err != nil {
		return t
	}
	t.p, t.verdict = c.P, Same
	if c.Ratio < overwhelming && c.Ratio > 1.0/overwhelming {
		t.p = doubted(c.P, alike(a, b))
	}
	switch {
	case t.p > alpha:
	case c.Ratio >= factor && c.Low > 1:
		t.verdict = Up
	case c.Ratio <= 1/factor && c.High < 1:
		t.verdict = Down
	}
	return t
}

func plus(v []float64, least float64) []float64 {
	out := slices.Clone(v)
	for i := range out {
		out[i] += least
	}
	return out
}

// alike is how much a minute tells of the next one: the correlation of neighbours, by the logarithms of the figures without the level of
// their window; 0 where they are independent.
func alike(windows ...[]float64) float64 {
	product, square := 0.0, 0.0
	for _, v := range windows {
		level := math.Log(stats.Median(v))
		for i := range v {
			x := math.Log(v[i]) - level
			square += x * x
			if i > 0 {
				product += x * (math.Log(v[i-1]) - level)
			}
		}
	}
	if square == 0 {
		return 0
	}
	return min(max(product/square, 0), 0.9)
}

// doubted is a probability as it would be with as many figures as there are independent ones: a series in which neighbours are alike
// by r tells as much as (1−r)/(1+r) of its length. Source: Bartlett, Some aspects of the time-correlation problem (1935).
func doubted(p, r float64) float64 {
	z := math.Sqrt2 * math.Erfinv(1-max(p, 1e-15))
	return math.Erfc(z * math.Sqrt((1-r)/(1+r)) / math.Sqrt2)
}

// figures are a number of each minute; those that have none are left out.
func figures(list []minute, f func(m minute) (float64, bool)) (out []float64) {
	for _, m := range list {
		if v, ok := f(m); ok {
			out = append(out, v)
		}
	}
	return out
}

// measures compares the server's sums.
func (s *seen) measures(all tests) (list []Measure) {
	kinds := []struct {
		what, unit string
		least      float64
		of         func(m minute) (float64, bool)
	}{
		{"throughput", "statements/s", 0.1, func(m minute) (float64, bool) { return float64(m.total.Calls) / 60, true }},
		{"latency", "seconds", 1e-6, func(m minute) (float64, bool) { return latency(m.total) }},
		{"load", "seconds of statements/s", 0.001, func(m minute) (float64, bool) { return m.total.Seconds / 60, true }},
		{"errors", "errors/s", 1.0 / 60, func(m minute) (float64, bool) { return float64(m.total.Errors) / 60, true }},
	}
	for _, k := range kinds {
		a, b := figures(s.before, k.of), figures(s.after, k.of)
		t := all.test(a, b, k.least, doubt/float64(len(kinds)), leastFactor)
		m := Measure{What: k.what, Unit: k.unit, Before: t.before, After: t.after, Verdict: t.verdict, P: t.p}
		if k.what == "errors" { // mostly 0: the middle one says nothing
			m.Before, m.After = mean(a), mean(b)
		}
		list = append(list, m)
	}
	return list
}

func mean(v []float64) (sum float64) {
	for _, x := range v {
		sum += x
	}
	return sum / float64(max(len(v), 1))
}

func latency(c fleet.Cost) (float64, bool) {
	if c.Calls == 0 {
		return 0, false
	}
	return c.Seconds / float64(c.Calls), true
}

// words say what a measure did; empty: nothing to be told.
func (m Measure) words() string {
	if m.Verdict != Up && m.Verdict != Down {
		return ""
	}
	show := map[string]func(float64) string{"throughput": digits.Rate, "latency": digits.Seconds, "load": digits.Three, "errors": digits.Rate}[m.What]
	name := map[string]string{"throughput": "throughput", "latency": "the mean latency of a statement", "load": "load (statements running at once)", "errors": "errors"}[m.What]
	text := fmt.Sprintf("%s: %s → %s", name, show(m.Before), show(m.After))
	if m.Before > 0 {
		text += fmt.Sprintf(" (%s)", digits.Change(m.After/m.Before-1))
	}
	return text
}

// changed are the classes that changed, those that brought or took most load first.
func (s *seen) changed(all tests) (list []Class) {
	list = []Class{}
	a, b := sums(s.before), sums(s.after)
	total := max(load(s.before), load(s.after))
	var candidates []string
	for id := range s.classes {
		brought := max(a[id].Seconds/float64(len(s.before)*60), b[id].Seconds/float64(len(s.after)*60))
		if brought >= leastShare*total || a[id].Errors != b[id].Errors || a[id].Calls == 0 && b[id].Calls >= leastCalls {
			candidates = append(candidates, id)
		}
	}
	weight := func(id string) float64 { return max(a[id].Seconds, b[id].Seconds) }
	slices.SortFunc(candidates, func(x, y string) int { return cmp.Or(cmp.Compare(weight(y), weight(x)), cmp.Compare(x, y)) })
	candidates = candidates[:min(len(candidates), mostClasses)]
	alpha := doubt / float64(max(3*len(candidates), 1)) // of each: its rate, its latency, its errors
	for _, id := range candidates {
		c := Class{ID: id, Fingerprint: s.classes[id].fingerprint, Before: side(a[id], len(s.before)), After: side(b[id], len(s.after))}
		c.Load = c.After.Load - c.Before.Load
		if s.judge(all, &c, a[id], b[id], alpha) {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(x, y Class) int { return cmp.Compare(max(y.Load, -y.Load), max(x.Load, -x.Load)) })
	return list
}

// judge says how a class changed; false: not in a way that stands out.
func (s *seen) judge(all tests, c *Class, a, b fleet.Cost, alpha float64) bool {
	of := func(f func(c fleet.Cost) (float64, bool)) func(m minute) (float64, bool) {
		return func(m minute) (float64, bool) { return f(m.classes[c.ID]) }
	}
	rate := of(func(c fleet.Cost) (float64, bool) { return float64(c.Calls) / 60, true })
	calls := all.test(figures(s.before, rate), figures(s.after, rate), 1.0/60, alpha, classFactor)
	share := func(of, total float64) string { return digits.Percent(of / max(total, 1e-9)) }
	name := short(c.Fingerprint)
	if a.Calls == 0 && s.classes[c.ID].first >= s.at-s.at%60 && b.Calls >= leastCalls {
		c.Change, c.P = "new", calls.p
		c.Words = fmt.Sprintf("a new class of statements, %s of the load, %s of %s each: %s", share(c.After.Load, load(s.after)), digits.Rate(c.After.Rate), digits.Seconds(c.After.Latency), name)
		if s.at-s.earliest < dayBefore {
			c.Words += fmt.Sprintf(" (new as far as Risso knows, which is %s before)", digits.Age(float64(max(s.at-s.earliest, 0))))
		}
		return true
	}
	ran := len(figures(s.before, func(m minute) (float64, bool) { _, ok := m.classes[c.ID]; return 0, ok }))
	switch {
	case b.Calls == 0 && calls.verdict == Down && float64(ran) >= regular*float64(len(s.before)):
		c.Change, c.P = "gone", calls.p
		c.Words = fmt.Sprintf("does not run any more (%s before): %s", digits.Rate(c.Before.Rate), name)
		return true
	case a.Calls == 0 || b.Calls == 0: // now and then, or for the first time in this window: no change that is known
		return false
	}
	each := all.test(figures(s.before, of(latency)), figures(s.after, of(latency)), 1e-6, alpha, classFactor)
	wrong := all.test(figures(s.before, of(failing)), figures(s.after, of(failing)), leastErrors, alpha, classFactor)
	switch {
	case wrong.verdict == Up && c.After.Errors-c.Before.Errors >= leastErrors:
		c.Change, c.P = "errors", wrong.p
		c.Words = fmt.Sprintf("fails more: %s → %s of its calls: %s", digits.Percent(c.Before.Errors), digits.Percent(c.After.Errors), name)
	case each.verdict == Up || each.verdict == Down:
		c.Change, c.P = map[Verdict]string{Up: "slower", Down: "faster"}[each.verdict], each.p
		c.Words = fmt.Sprintf("%s: %s → %s a call: %s", c.Change, digits.Seconds(each.before), digits.Seconds(each.after), name)
	case calls.verdict == Up || calls.verdict == Down:
		c.Change, c.P = map[Verdict]string{Up: "oftener", Down: "rarer"}[calls.verdict], calls.p
		c.Words = fmt.Sprintf("%s: %s → %s: %s", c.Change, digits.Rate(calls.before), digits.Rate(calls.after), name)
	default:
		return false
	}
	return true
}

// failing is how many errors a call has.
func failing(c fleet.Cost) (float64, bool) {
	return float64(c.Errors) / float64(max(c.Calls, 1)), c.Calls > 0
}

func sums(list []minute) map[string]fleet.Cost {
	out := map[string]fleet.Cost{}
	for _, m := range list {
		for id, c := range m.classes {
			sum := out[id]
			sum.Add(c)
			out[id] = sum
		}
	}
	return out
}

// load is how many seconds of statements ran in a second.
func load(list []minute) (sum float64) {
	for _, m := range list {
		sum += m.total.Seconds
	}
	return sum / float64(60*max(len(list), 1))
}

func side(c fleet.Cost, minutes int) (s Side) {
	seconds := float64(60 * minutes)
	s.Rate, s.Load = float64(c.Calls)/seconds, c.Seconds/seconds
	s.Latency, _ = latency(c)
	s.Errors, _ = failing(c)
	return s
}

// short is a fingerprint in a sentence.
func short(fingerprint string) string { return oneline.Cut(oneline.Of(fingerprint), 100) }
