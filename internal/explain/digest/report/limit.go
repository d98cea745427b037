package report

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/explain/digest"
)

// Limit is how many classes are shown: the first Classes of them, and no more than it takes to make up Share of the
// figure that orders them. 0 is no bound.
type Limit struct {
	Classes int
	Share   float64 // 0 to 1
}

// ParseLimit reads "20", "95%", "95%:20" (whichever comes first) or "all".
func ParseLimit(s string) (Limit, error) {
	var l Limit
	if s == "all" {
		return l, nil
	}
	bad := fmt.Errorf("%q: a number of classes (20), a share (95%%), both (95%%:20), or all", s)
	share, n, both := strings.Cut(s, ":")
	if p, ok := strings.CutSuffix(share, "%"); ok {
		v, err := strconv.ParseFloat(p, 64)
		if err != nil || !(v > 0 && v <= 100) {
			return l, bad
		}
		if l.Share = v / 100; !both {
			return l, nil
		}
	} else if n = share; both {
		return l, bad
	}
	v, err := strconv.Atoi(n)
	if err != nil || v < 1 {
		return l, bad
	}
	l.Classes = v
	return l, nil
}

// Apply moves the classes beyond the limit into Other, whose percentiles are then unknown (NaN). The profile is
// changed in place.
func (l Limit) Apply(p *digest.Profile) {
	keep, sum := len(p.Classes), 0.0
	if l.Classes > 0 {
		keep = min(keep, l.Classes)
	}
	if l.Share > 0 && l.Share < 1 {
		for i := range p.Classes[:keep] {
			if sum += p.Classes[i].Share; sum >= l.Share-1e-9 {
				keep = i + 1
				break
			}
		}
	}
	if keep == len(p.Classes) {
		return
	}
	if p.Other == nil {
		p.Other = &digest.Class{Group: "other", Apdex: math.NaN(), VarianceToMean: math.NaN()}
	}
	for i := keep; i < len(p.Classes); i++ {
		add(p.Other, &p.Classes[i])
	}
	p.Classes = p.Classes[:keep:keep]
}

// add adds the figures of a class that can be added.
func add(to, c *digest.Class) {
	to.Calls += c.Calls
	to.Share += c.Share
	to.Apdex, to.VarianceToMean = math.NaN(), math.NaN()
	if to.First.IsZero() || !c.First.IsZero() && c.First.Before(to.First) {
		to.First = c.First
	}
	if c.Last.After(to.Last) {
		to.Last = c.Last
	}
	for i, n := range c.Histogram {
		to.Histogram[i] += n
	}
	for _, m := range c.Metrics {
		addMetric(to, m)
	}
}

func addMetric(to *digest.Class, m digest.Metric) {
	for i := range to.Metrics {
		x := &to.Metrics[i]
		if x.Name != m.Name {
			continue
		}
		if m.Count == 0 {
			return
		}
		if x.Count == 0 {
			x.Min, x.Max = m.Min, m.Max
		}
		x.Min, x.Max = min(x.Min, m.Min), max(x.Max, m.Max)
		x.Count += m.Count
		x.Sum += m.Sum
		x.Avg = x.Sum / float64(x.Count)
		x.P95, x.Median, x.Stddev = math.NaN(), math.NaN(), math.NaN()
		return
	}
	m.P95, m.Median, m.Stddev = math.NaN(), math.NaN(), math.NaN()
	to.Metrics = append(to.Metrics, m)
}

// RankByCalls ranks the classes of a source without times, such as a general log, by their calls. A profile with
// times stays as it is.
func RankByCalls(p *digest.Profile) {
	if p.Metric(queryTime).Max > 0 || p.Calls == 0 {
		return
	}
	p.OrderBy = "calls"
	sort.SliceStable(p.Classes, func(i, j int) bool { return p.Classes[i].Calls > p.Classes[j].Calls })
	for i := range p.Classes {
		p.Classes[i].Share = float64(p.Classes[i].Calls) / float64(p.Calls)
	}
	if p.Other != nil {
		p.Other.Share = float64(p.Other.Calls) / float64(p.Calls)
	}
}
