package report

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/bench"
)

// The bounds of what a page draws.
const (
	mostPoints = 240 // of a line over time; longer runs are drawn by buckets with a band
	mostLines  = 40  // in one chart
	mostPanels = 6   // charts of latency over time, one for each run
)

// bucket is a part of a timeline.
type bucket struct {
	from, to       float64 // seconds since the start of the measured time
	rate, low, top float64 // transactions per second: mean, least, most second
	p50, p95, p99  float64 // the median second of the bucket would hide the worst: the highest is taken
	max            float64
	errors         int64
	backlog        int64
}

// buckets parts a run's timeline, which has whole seconds only, into at most mostPoints.
func buckets(r Run) []bucket {
	width := (len(r.Timeline) + mostPoints - 1) / mostPoints
	var out []bucket
	for i := 0; i < len(r.Timeline); i += max(width, 1) {
		part := r.Timeline[i:min(i+max(width, 1), len(r.Timeline))]
		b := bucket{from: float64(part[0].Second), to: float64(part[len(part)-1].Second + 1), low: math.Inf(1), p50: math.NaN(), p95: math.NaN(), p99: math.NaN(), max: math.NaN()}
		var done float64
		for _, s := range part {
			rate := float64(s.Transactions)
			done += rate
			b.low, b.top = min(b.low, rate), max(b.top, rate)
			b.errors += s.Errors
			b.backlog = max(b.backlog, s.Backlog)
			if s.Transactions > 0 {
				b.p50, b.p95, b.p99, b.max = larger(b.p50, s.P50), larger(b.p95, s.P95), larger(b.p99, s.P99), larger(b.max, s.Max)
			}
		}
		b.rate = done / float64(len(part))
		out = append(out, b)
	}
	return out
}

func larger(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

// colours assigns each group a colour.
func colours(list []Group) map[*bench.Result]int {
	out := map[*bench.Result]int{}
	for i, g := range list {
		for _, r := range g.Runs {
			out[r.Result] = i
		}
	}
	return out
}

// timeAxis goes over the longest of these runs.
func timeAxis(runs []Run) axis {
	a := axis{min: 0, max: 1, name: "seconds since the start of the measured time", label: func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }}
	for _, r := range runs {
		for _, s := range r.Timeline {
			a.min, a.max = min(a.min, float64(s.Second)), max(a.max, float64(s.Second+1))
		}
	}
	if step := niceStep((a.max - a.min) / 8); step < 1 {
		for v := a.min; v <= a.max; v++ {
			a.ticks = append(a.ticks, v)
		}
	}
	return a
}

// throughputChart draws transactions per second over time.
func throughputChart(list []Group) *chart {
	var runs []Run
	for _, g := range list {
		runs = append(runs, g.Runs...)
	}
	c := &chart{title: "Transactions per second", x: timeAxis(runs), y: axis{label: digits.Count}}
	colour := colours(list)
	top := 0.0
	for _, g := range list {
		for _, r := range g.Runs {
			if len(c.lines) >= mostLines {
				c.note = fmt.Sprintf("The first %d runs are drawn.", mostLines)
				break
			}
			l := line{name: g.Name, colour: colour[r.Result], thin: len(runs) > 4}
			for _, b := range buckets(r) {
				l.x, l.y = append(l.x, (b.from+b.to)/2), append(l.y, b.rate)
				l.lo, l.hi = append(l.lo, b.low), append(l.hi, b.top)
				top = max(top, b.top)
			}
			if len(r.Timeline) <= mostPoints {
				l.lo, l.hi = nil, nil
			}
			c.lines = append(c.lines, l)
		}
	}
	if len(list) == 1 {
		for i := range c.lines {
			c.lines[i].name = ""
		}
	}
	c.y.max = niceTop(top)
	if len(runs) == 1 {
		c.trouble(runs[0])
		for _, b := range buckets(runs[0]) {
			text := fmt.Sprintf("%s: %s/s, median %s, p99 %s", span(b), digits.Count(b.rate), digits.Seconds(b.p50), digits.Seconds(b.p99))
			if b.errors > 0 {
				text += ", " + digits.Counted(int(b.errors), "error")
			}
			c.tips = append(c.tips, tip{b.from, b.to, text})
		}
	} else {
		for _, r := range runs {
			c.outages(r)
		}
	}
	return c
}

func span(b bucket) string {
	if b.to-b.from <= 1 {
		return "second " + digits.Count(b.from)
	}
	return fmt.Sprintf("seconds %s to %s", digits.Count(b.from), digits.Count(b.to))
}

// trouble marks warm-up, outages and seconds with errors.
func (c *chart) trouble(r Run) {
	if c.x.min < 0 {
		c.regions = append(c.regions, region{c.x.min, 0, "warmup", "warm-up: not counted"})
	}
	c.outages(r)
	for _, b := range buckets(r) {
		if b.errors > 0 {
			c.ticks = append(c.ticks, tip{b.from, b.to, span(b) + ": " + digits.Counted(int(b.errors), "error")})
		}
	}
}

func (c *chart) outages(r Run) {
	for _, o := range r.Outages {
		class := "stall"
		if o.Errors {
			class = "outage"
		}
		length := float64(o.Milliseconds) / 1000
		c.regions = append(c.regions, region{o.From, o.From + length, class, fmt.Sprintf("%s: %s from second %s, %s", r.Name, outageKind(o.Errors), digits.Count(o.From), digits.Seconds(float64(o.Milliseconds)/1000))})
	}
}

// latencyChart draws percentiles of one run over time.
func latencyChart(r Run, title string) *chart {
	c := &chart{title: title, x: timeAxis([]Run{r}), y: axis{log: true, label: digits.Seconds}}
	list := buckets(r)
	least, most := math.Inf(1), 0.0
	for i, p := range []struct {
		name string
		of   func(bucket) float64
	}{
		{"slowest", func(b bucket) float64 { return b.max }}, {"p99", func(b bucket) float64 { return b.p99 }},
		{"p95", func(b bucket) float64 { return b.p95 }}, {"p50", func(b bucket) float64 { return b.p50 }},
	} {
		l := line{name: p.name, colour: []int{-1, 2, 0, 1}[i]}
		for _, b := range list {
			v := p.of(b)
			if !(v > 0) {
				v = math.NaN()
			}
			least, most = min(least, orElse(v, least)), max(most, orElse(v, most))
			l.x, l.y = append(l.x, (b.from+b.to)/2), append(l.y, v)
		}
		c.lines = append(c.lines, l)
	}
	c.y.min, c.y.max = logEnds(least, most)
	c.trouble(r)
	for _, b := range list {
		if b.max > 0 {
			c.tips = append(c.tips, tip{b.from, b.to, fmt.Sprintf("%s: median %s, p95 %s, p99 %s, slowest %s", span(b), digits.Seconds(b.p50), digits.Seconds(b.p95), digits.Seconds(b.p99), digits.Seconds(b.max))})
		}
	}
	return c
}

// backlogChart draws how many transactions of an open loop waited to begin; nil if none did.
func backlogChart(r Run) *chart {
	c := &chart{title: "Transactions waiting to begin", x: timeAxis([]Run{r}), y: axis{label: digits.Count}}
	l := line{colour: 5}
	top := 0.0
	for _, b := range buckets(r) {
		l.x, l.y = append(l.x, (b.from+b.to)/2), append(l.y, float64(b.backlog))
		top = max(top, float64(b.backlog))
		c.tips = append(c.tips, tip{b.from, b.to, fmt.Sprintf("%s: at most %s waited at the same time", span(b), digits.Thousands(b.backlog))})
	}
	if top == 0 {
		return nil
	}
	c.y.max, c.lines = niceTop(top), []line{l}
	c.trouble(r)
	return c
}

func orElse(v, other float64) float64 {
	if math.IsNaN(v) {
		return other
	}
	return v
}

// logEnds rounds the ends of a logarithmic axis outwards to 1, 2 or 5.
func logEnds(least, most float64) (float64, float64) {
	if !(least > 0) || math.IsInf(least, 0) || !(most > 0) {
		return 1e-3, 1
	}
	lo, hi := math.Pow(10, math.Floor(math.Log10(least))), niceStep(most)
	for _, m := range []float64{5, 2} {
		if lo*m <= least {
			lo *= m
			break
		}
	}
	if hi <= lo*1.5 {
		hi = lo * 10
	}
	return lo, hi
}

// histogramOf decodes a run's histogram; nil if it has none that can be read.
func histogramOf(r Run) (h *hdrhistogram.Histogram) {
	if r.Histogram == "" || len(r.Histogram) > maxHistogram {
		return nil
	}
	defer func() { // the decoder trusts what it reads; a damaged file must only cost its chart
		if recover() != nil {
			h = nil
		}
	}()
	h, err := hdrhistogram.Decode([]byte(r.Histogram))
	if err != nil || h == nil || h.TotalCount() == 0 {
		return nil
	}
	return h
}

// maxHistogram bounds what is decoded: an encoded histogram of an hour's range with two digits has a few kilobytes.
const maxHistogram = 1 << 20

// distributionChart draws how long transactions took, by percentile: each step to the right is a tenth of what is left.
// Source of the form: Gil Tene's HdrHistogram plotter.
func distributionChart(list []Group) *chart {
	c := &chart{title: "Latency by percentile", y: axis{log: true, label: digits.Seconds}, x: axis{min: 1, log: true, name: "percentile", label: func(v float64) string {
		return strconv.FormatFloat(100-100/v, 'f', -1, 64) + " %"
	}}}
	colour := colours(list)
	least, most, far := math.Inf(1), 0.0, 100.0
	runs := 0
	for _, g := range list {
		runs += len(g.Runs)
	}
	for _, g := range list {
		for _, r := range g.Runs {
			h := histogramOf(r)
			if h == nil || len(c.lines) >= mostLines {
				continue
			}
			l := line{name: g.Name, colour: colour[r.Result], thin: runs > 4}
			end := float64(h.TotalCount())
			far = max(far, end)
			slowest := max(r.Latency.Max, float64(h.Max())/1e9*0.99)
			for k := 0; ; k++ {
				x := math.Pow(10, float64(k)/24)
				if x > end {
					x = end
				}
				v := min(float64(h.ValueAtPercentile(100-100/x))/1e9, slowest)
				if x == end {
					v = slowest
				}
				l.x, l.y = append(l.x, x), append(l.y, v)
				if v > 0 {
					least, most = min(least, v), max(most, v)
				}
				if x >= end {
					break
				}
			}
			c.lines = append(c.lines, l)
		}
	}
	if len(c.lines) == 0 {
		return nil
	}
	if len(list) == 1 {
		for i := range c.lines {
			c.lines[i].name = ""
		}
	}
	c.x.max = far
	c.x.ticks = []float64{1, 2, 10}
	for v := 100.0; v <= far; v *= 10 {
		c.x.ticks = append(c.x.ticks, v)
	}
	c.y.min, c.y.max = logEnds(least, most)
	c.note = "Each step to the right leaves a tenth of the remaining transactions; the line ends at the slowest one."
	if len(list[0].Runs) > 0 && list[0].Runs[0].Rate > 0 {
		c.note += " Latency counts from when a transaction was to begin."
	}
	return c
}

// sweepChart draws measured throughput by threads, and the law with its interval.
func sweepChart(s *Sweep) *chart {
	c := &chart{title: "Throughput by threads, and the Universal Scalability Law", x: axis{min: 0, name: "threads", label: digits.Count}, y: axis{label: digits.Count}}
	last := s.Points[len(s.Points)-1].N
	c.x.max = niceTop(last * 1.25)
	if p := s.Fit.Peak(); p > last && p < 4*last {
		c.x.max = niceTop(p * 1.2)
	}
	law := line{name: "law, with its 95 % interval", colour: 0}
	top := 0.0
	for i := range 121 {
		n := max(c.x.max*float64(i)/120, 1)
		v, in := s.Fit.Predict(n)
		law.x, law.y = append(law.x, n), append(law.y, v)
		law.lo, law.hi = append(law.lo, max(in.Low, 0)), append(law.hi, in.High)
		top = max(top, v)
	}
	points := line{name: "measured", colour: 2, dots: true}
	for _, p := range s.Points {
		points.x, points.y = append(points.x, p.N), append(points.y, p.X)
		top = max(top, p.X)
	}
	c.y.max = niceTop(top * 1.1)
	c.lines = []line{law, points}
	if p := s.Fit.Peak(); p < c.x.max {
		c.mark, c.markTip = p, "highest at "+digits.Count(math.Round(p))
	}
	return c
}

// The size of the small picture of an interval.
const (
	barWidth  = 300.0
	barHeight = 22.0
)

// intervalBars draws each comparison's ratio with its interval on one axis, where a line means "the same".
func intervalBars(list []Comparison) []template.HTML {
	lo, hi := 1.0, 1.0
	for _, v := range list {
		for _, x := range []float64{v.Ratio, v.Low, v.High} {
			if x > 0 && !math.IsInf(x, 0) {
				lo, hi = min(lo, x), max(hi, x)
			}
		}
	}
	room := max((math.Log(hi)-math.Log(lo))*0.08, 0.01)
	from, to := math.Log(lo)-room, math.Log(hi)+room
	px := func(v float64) float64 { return (math.Log(v) - from) / (to - from) * barWidth }
	var out []template.HTML
	for _, v := range list {
		var b strings.Builder
		fmt.Fprintf(&b, `<svg class="bar" viewBox="0 0 %g %g" role="img" aria-label="ratio and interval"><line class="one" x1="%.1f" x2="%.1f" y1="0" y2="%g"/>`, barWidth, barHeight, px(1), px(1), barHeight)
		if v.Low > 0 && v.High > 0 {
			fmt.Fprintf(&b, `<path class="interval" d="M%.1f 7v8M%.1f 11H%.1fM%.1f 7v8"/>`, px(v.Low), px(v.Low), px(v.High), px(v.High))
		}
		if v.Ratio > 0 && !math.IsInf(v.Ratio, 0) {
			fmt.Fprintf(&b, `<circle class="c0" cx="%.1f" cy="11" r="4"/>`, px(v.Ratio))
		}
		b.WriteString("</svg>")
		out = append(out, template.HTML(b.String()))
	}
	return out
}
