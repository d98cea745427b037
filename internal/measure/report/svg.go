package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// The size of a chart in its own units, and the space around the plot.
const (
	chartWidth  = 680.0
	chartHeight = 230.0
	padLeft     = 62.0
	padRight    = 12.0
	padTop      = 10.0
	padBottom   = 34.0
)

// axis is one direction of a chart.
type axis struct {
	min, max float64
	log      bool
	name     string
	label    func(float64) string
	ticks    []float64 // nil: chosen here
}

// at places a value between 0 and 1.
func (a axis) at(v float64) float64 {
	lo, hi := a.min, a.max
	if a.log {
		v, lo, hi = math.Log(max(v, a.min)), math.Log(lo), math.Log(hi)
	}
	if hi <= lo {
		return 0
	}
	return (v - lo) / (hi - lo)
}

// splits are where the axis is labelled.
func (a axis) splits(most int) []float64 {
	if a.ticks != nil {
		return a.ticks
	}
	if a.log {
		return logSplits(a.min, a.max, most)
	}
	step := niceStep((a.max - a.min) / float64(most))
	var out []float64
	for v := math.Ceil(a.min/step) * step; v <= a.max+step*1e-9; v += step {
		if math.Abs(v) < step*1e-9 {
			v = 0 // and no -0
		}
		out = append(out, v)
	}
	return out
}

// logSplits are 1, 2, 5 of each decade, or the decades alone where those are too many.
func logSplits(lo, hi float64, most int) []float64 {
	for _, parts := range [][]float64{{1, 2, 5}, {1}} {
		var out []float64
		for d := math.Floor(math.Log10(lo)); d <= math.Ceil(math.Log10(hi)); d++ {
			for _, p := range parts {
				if v := p * math.Pow(10, d); v >= lo*(1-1e-9) && v <= hi*(1+1e-9) {
					out = append(out, v)
				}
			}
		}
		if len(out) <= most || len(parts) == 1 {
			return out
		}
	}
	return nil
}

// niceStep is the smallest of 1, 2, 5 times a power of ten that is at least v.
func niceStep(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*p*(1+1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// niceTop is a round end of an axis that begins at 0.
func niceTop(v float64) float64 {
	if !(v > 0) {
		return 1
	}
	step := niceStep(v / 5)
	return math.Ceil(v/step*(1-1e-9)) * step
}

// line is a series of a chart; NaN is a gap.
type line struct {
	name   string
	colour int // of the palette; below 0: grey
	x, y   []float64
	lo, hi []float64 // a band around it; may be nil
	dots   bool      // points instead of a line
	dashed bool
	thin   bool
}

// region is a part of the x axis that is marked.
type region struct {
	from, to float64
	class    string // outage, stall, warmup
	tip      string
}

// tip is a text that shows where the pointer is.
type tip struct {
	from, to float64
	text     string
}

// chart is a picture with two axes.
type chart struct {
	title   string
	note    string
	x, y    axis
	lines   []line
	regions []region
	ticks   []tip // small marks on the floor: seconds with errors
	tips    []tip
	mark    float64 // a vertical line at this x; 0: none
	markTip string
}

func (c *chart) px(v float64) float64 {
	return padLeft + min(max(c.x.at(v), 0), 1)*(chartWidth-padLeft-padRight)
}

func (c *chart) py(v float64) float64 {
	return chartHeight - padBottom - min(max(c.y.at(v), 0), 1)*(chartHeight-padTop-padBottom)
}

// render draws the chart. All texts are escaped.
func (c *chart) render() template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<figure><figcaption><h3>%s</h3>%s</figcaption>`, html.EscapeString(c.title), c.legend())
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, chartWidth, chartHeight, html.EscapeString(c.title))
	c.grid(&b)
	for _, r := range c.regions {
		x0, x1 := c.px(r.from), c.px(r.to)
		fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%g" width="%.1f" height="%g"><title>%s</title></rect>`, r.class, x0, padTop, max(x1-x0, 1.5), chartHeight-padTop-padBottom, html.EscapeString(r.tip))
	}
	for _, l := range c.lines {
		c.band(&b, l)
	}
	for _, l := range c.lines {
		c.draw(&b, l)
	}
	if c.mark > c.x.min && c.mark < c.x.max {
		fmt.Fprintf(&b, `<line class="mark" x1="%.1f" x2="%.1f" y1="%g" y2="%g"/><text class="mark" x="%.1f" y="%g">%s</text>`,
			c.px(c.mark), c.px(c.mark), padTop, chartHeight-padBottom, c.px(c.mark)+4, padTop+10, html.EscapeString(c.markTip))
	}
	for _, t := range c.ticks {
		x := (c.px(t.from) + c.px(t.to)) / 2
		fmt.Fprintf(&b, `<path class="error" d="M%.1f %gl-3.5 7h7z"><title>%s</title></path>`, x, chartHeight-padBottom-7.5, html.EscapeString(t.text))
	}
	for _, t := range c.tips {
		x0, x1 := c.px(t.from), c.px(t.to)
		fmt.Fprintf(&b, `<rect class="tip" x="%.1f" y="%g" width="%.1f" height="%g"><title>%s</title></rect>`, x0, padTop, max(x1-x0, .5), chartHeight-padTop-padBottom, html.EscapeString(t.text))
	}
	b.WriteString(`</svg>`)
	if c.note != "" {
		fmt.Fprintf(&b, `<p class="note">%s</p>`, html.EscapeString(c.note))
	}
	b.WriteString(`</figure>`)
	return template.HTML(b.String())
}

// legend names the colours, each name once.
func (c *chart) legend() string {
	var b strings.Builder
	seen := map[string]bool{}
	for _, l := range c.lines {
		if l.name == "" || seen[l.name] {
			continue
		}
		seen[l.name] = true
		class := "swatch " + colourClass(l.colour)
		if l.dashed {
			class += " dashed"
		}
		if l.dots {
			class += " dot"
		}
		fmt.Fprintf(&b, `<li><i class="%s"></i>%s</li>`, class, html.EscapeString(l.name))
	}
	if b.Len() == 0 {
		return ""
	}
	return "<ul>" + b.String() + "</ul>"
}

// paletteSize is how many colours the page has; further lines take them again.
const paletteSize = 8

func colourClass(n int) string {
	if n < 0 {
		return "grey"
	}
	return fmt.Sprintf("c%d", n%paletteSize)
}

func (c *chart) grid(b *strings.Builder) {
	bottom := chartHeight - padBottom
	for _, v := range c.y.splits(5) {
		y := c.py(v)
		fmt.Fprintf(b, `<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/><text class="y" x="%g" y="%.1f">%s</text>`,
			padLeft, chartWidth-padRight, y, y, padLeft-6, y+3.5, html.EscapeString(c.y.label(v)))
	}
	right := chartWidth - padRight
	for _, v := range c.x.splits(8) {
		x, label := c.px(v), c.x.label(v)
		half := float64(len([]rune(label))) * 2.9
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%g" y2="%g"/>`, x, x, padTop, bottom)
		fmt.Fprintf(b, `<text class="x" x="%.1f" y="%g">%s</text>`, min(x, right+padRight-half), bottom+14, html.EscapeString(label))
	}
	if c.x.name != "" {
		fmt.Fprintf(b, `<text class="axis" x="%g" y="%g">%s</text>`, chartWidth-padRight, chartHeight-5, html.EscapeString(c.x.name))
	}
}

func (c *chart) band(b *strings.Builder, l line) {
	if l.lo == nil {
		return
	}
	for from := 0; from < len(l.x); {
		to := from
		for to < len(l.x) && !math.IsNaN(l.lo[to]) && !math.IsNaN(l.hi[to]) {
			to++
		}
		if to-from > 1 {
			fmt.Fprintf(b, `<path class="band %s" d="M`, colourClass(l.colour))
			for i := from; i < to; i++ {
				fmt.Fprintf(b, "%.1f %.1f ", c.px(l.x[i]), c.py(l.hi[i]))
			}
			for i := to - 1; i >= from; i-- {
				fmt.Fprintf(b, "%.1f %.1f ", c.px(l.x[i]), c.py(l.lo[i]))
			}
			b.WriteString(`z"/>`)
		}
		from = to + 1
	}
}

func (c *chart) draw(b *strings.Builder, l line) {
	if l.dots {
		for i := range l.x {
			if !math.IsNaN(l.y[i]) {
				fmt.Fprintf(b, `<circle class="%s" cx="%.1f" cy="%.1f" r="3.4"/>`, colourClass(l.colour), c.px(l.x[i]), c.py(l.y[i]))
			}
		}
		return
	}
	class := colourClass(l.colour)
	if l.dashed {
		class += " dashed"
	}
	if l.thin {
		class += " thin"
	}
	var path strings.Builder
	pen := false
	for i := range l.x {
		if math.IsNaN(l.y[i]) {
			pen = false
			continue
		}
		alone := (i == 0 || math.IsNaN(l.y[i-1])) && (i == len(l.x)-1 || math.IsNaN(l.y[i+1]))
		if alone {
			fmt.Fprintf(b, `<circle class="%s" cx="%.1f" cy="%.1f" r="1.8"/>`, colourClass(l.colour), c.px(l.x[i]), c.py(l.y[i]))
			continue
		}
		letter := "L"
		if !pen {
			letter = "M"
		}
		pen = true
		fmt.Fprintf(&path, "%s%.1f %.1f", letter, c.px(l.x[i]), c.py(l.y[i]))
	}
	if path.Len() > 0 {
		fmt.Fprintf(b, `<path class="line %s" d="%s"/>`, class, path.String())
	}
}
