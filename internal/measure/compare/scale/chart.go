package scale

import (
	"fmt"
	"math"
	"strings"

	"github.com/rissodb/risso/internal/digits"
)

// The size of the chart in text, without its scales.
const (
	chartWidth  = 64
	chartHeight = 16
)

// logAbove is from which quotient of the largest and the smallest count on the axis of threads is logarithmic.
const logAbove = 16

// axis places thread counts from 0 to 1.
type axis struct {
	low, high float64
	log       bool
}

func (r *Report) axis() axis {
	low, high := float64(r.Points[0].Threads), float64(r.Points[len(r.Points)-1].Threads)
	if n := len(r.Curve); n > 0 {
		high = r.Curve[n-1].Threads
	}
	a := axis{low: low, high: high, log: high/low > logAbove}
	if !a.log {
		a.low = 0
	}
	return a
}

func (a axis) at(n float64) float64 {
	switch {
	case a.high == a.low:
		return 0.5
	case a.log:
		return math.Log(n/a.low) / math.Log(a.high/a.low)
	}
	return (n - a.low) / (a.high - a.low)
}

// top is the highest throughput to show.
func (r *Report) top() (top float64) {
	for _, p := range r.Points {
		for _, x := range p.Runs {
			top = max(top, x)
		}
	}
	for _, c := range r.Curve {
		top = max(top, c.TPS)
	}
	return top
}

// Chart draws the points (● or o) and the law (· or .) for a terminal; a bar marks where the processors end.
func (r *Report) Chart(ascii bool) []string {
	if len(r.Points) == 0 {
		return nil
	}
	dot, curve, wall := '●', '·', '┊'
	left, corner, dash := "│", "└", "─"
	if ascii {
		dot, curve, wall, left, corner, dash = 'o', '.', ':', "|", "+", "-"
	}
	grid := make([][]rune, chartHeight)
	for y := range grid {
		grid[y] = []rune(strings.Repeat(" ", chartWidth))
	}
	a, top := r.axis(), r.top()
	put := func(n, x float64, mark rune) {
		col := int(math.Round(a.at(n) * (chartWidth - 1)))
		row := chartHeight - 1 - int(math.Round(x/top*(chartHeight-1)))
		if col >= 0 && col < chartWidth && row >= 0 && row < chartHeight {
			grid[row][col] = mark
		}
	}
	if p := float64(r.Processors); p > 0 && p >= a.low && p < a.high {
		for y := range chartHeight {
			put(p, top*float64(y)/(chartHeight-1), wall)
		}
	}
	for _, c := range r.Curve {
		put(c.Threads, c.TPS, curve)
	}
	for _, p := range r.Points {
		put(float64(p.Threads), p.Median, dot)
	}
	width := 0
	for y := 0; y < chartHeight; y += 5 {
		width = max(width, len(digits.Count(top*float64(chartHeight-1-y)/(chartHeight-1))))
	}
	var out []string
	for y, row := range grid {
		label := ""
		if y%5 == 0 {
			label = digits.Count(top * float64(chartHeight-1-y) / (chartHeight - 1))
		}
		out = append(out, fmt.Sprintf("%*s %s%s", width, label, left, strings.TrimRight(string(row), " ")))
	}
	out = append(out, strings.Repeat(" ", width+1)+corner+strings.Repeat(dash, chartWidth))
	out = append(out, strings.Repeat(" ", width+2)+r.labels(a))
	legend := fmt.Sprintf("%c measured   %c the law", dot, curve)
	if r.Processors > 0 {
		legend += fmt.Sprintf("   %c processors of the machine", wall)
	}
	return append(out, strings.Repeat(" ", width+2)+"threads   "+legend)
}

// labels are the thread counts below the chart, as many as have room.
func (r *Report) labels(a axis) string {
	line := []rune(strings.Repeat(" ", chartWidth+4))
	free := 0
	for _, p := range r.Points {
		text := fmt.Sprint(p.Threads)
		from := max(0, int(math.Round(a.at(float64(p.Threads))*(chartWidth-1)))-len(text)/2)
		if from < free || from+len(text) > len(line) {
			continue
		}
		copy(line[from:], []rune(text))
		free = from + len(text) + 1
	}
	return strings.TrimRight(string(line), " ")
}

// The size of the drawing.
const (
	svgWidth, svgHeight            = 720, 360
	svgLeft, svgRight              = 70, 20
	svgTop, svgBottom              = 20, 50
	svgPlotWidth                   = svgWidth - svgLeft - svgRight
	svgPlotHeight                  = svgHeight - svgTop - svgBottom
	svgInk, svgFaint, svgBlue      = "#333", "#ddd", "#1f6feb"
	svgBand, svgOrange, svgPaper   = "#1f6feb22", "#d9730d", "#fff"
	svgFont                        = `font-family="system-ui,sans-serif" font-size="12"`
	svgGridLines, svgLabelDistance = 4, 44
)

// SVG draws the points, the law with its interval, and where the processors end.
func (r *Report) SVG() string {
	var b strings.Builder
	out := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	out(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="Throughput by threads">`, svgWidth, svgHeight)
	out(`<rect width="%d" height="%d" fill="%s"/>`, svgWidth, svgHeight, svgPaper)
	if len(r.Points) > 0 {
		r.drawing(out)
	}
	out("</svg>")
	return b.String()
}

func (r *Report) drawing(out func(string, ...any)) {
	a, top := r.axis(), r.top()*1.05
	x := func(n float64) float64 { return svgLeft + a.at(n)*svgPlotWidth }
	y := func(v float64) float64 { return svgTop + svgPlotHeight*(1-math.Min(v/top, 1)) }
	for i := range svgGridLines + 1 {
		v := top * float64(i) / svgGridLines
		out(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="%s"/>`, svgLeft, svgWidth-svgRight, y(v), y(v), svgFaint)
		out(`<text x="%d" y="%.1f" text-anchor="end" fill="%s" %s>%s</text>`, svgLeft-6, y(v)+4, svgInk, svgFont, digits.Count(v))
	}
	last := -math.MaxFloat64
	for _, p := range r.Points {
		at := x(float64(p.Threads))
		if at-last < svgLabelDistance {
			continue
		}
		last = at
		out(`<text x="%.1f" y="%d" text-anchor="middle" fill="%s" %s>%d</text>`, at, svgHeight-svgBottom+18, svgInk, svgFont, p.Threads)
	}
	out(`<text x="%d" y="%d" text-anchor="middle" fill="%s" %s>threads</text>`, svgLeft+svgPlotWidth/2, svgHeight-12, svgInk, svgFont)
	out(`<text x="%d" y="%d" fill="%s" %s>transactions per second</text>`, svgLeft, svgTop-6, svgInk, svgFont)
	if p := float64(r.Processors); p > 0 && p >= a.low && p < a.high {
		out(`<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="%s" stroke-dasharray="3 3"/>`, x(p), x(p), svgTop, svgTop+svgPlotHeight, svgInk)
		out(`<text x="%.1f" y="%d" fill="%s" %s>%s</text>`, x(p)+4, svgTop+svgPlotHeight-8, svgInk, svgFont, processors(r.Processors)) // the law is high above there
	}
	if len(r.Curve) > 0 {
		var band, line strings.Builder
		for _, c := range r.Curve {
			fmt.Fprintf(&band, "%.1f,%.1f ", x(c.Threads), y(c.High))
			fmt.Fprintf(&line, "%.1f,%.1f ", x(c.Threads), y(c.TPS))
		}
		for i := len(r.Curve) - 1; i >= 0; i-- {
			fmt.Fprintf(&band, "%.1f,%.1f ", x(r.Curve[i].Threads), y(r.Curve[i].Low))
		}
		out(`<polygon points="%s" fill="%s"/>`, strings.TrimSpace(band.String()), svgBand)
		out(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, strings.TrimSpace(line.String()), svgBlue)
	}
	for _, p := range r.Points {
		for _, v := range p.Runs {
			out(`<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"><title>%s: %s</title></circle>`, x(float64(p.Threads)), y(v), svgOrange, threads(p.Threads), digits.Count(v))
		}
	}
}
