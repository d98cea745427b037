package incident

import (
	_ "embed" // the page's template
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
)

//go:embed page.tmpl
var pageText string

// pageData is what the template sees.
type pageData struct {
	*Told
	Charts []chart
	Roots  *Moment // the moment with the most lock waits; nil: none had any
	Most   *Moment // the one with the most sessions
}

// chart is a line as SVG.
type chart struct {
	Name, Most string
	SVG        template.HTML
}

// HTML writes the incident as one page that refers to nothing elsewhere.
func (t *Told) HTML(w io.Writer) error {
	page, err := template.New("incident").Funcs(template.FuncMap{
		"clock":   func(at time.Time) string { return at.Local().Format("15:04:05") },
		"day":     func(at time.Time) string { return at.Local().Format("2006-01-02 15:04:05 MST") },
		"tick":    func(at int64) string { return time.Unix(at, 0).Local().Format("15:04:05") },
		"seconds": digits.Seconds,
		"svg":     func(s string) template.HTML { return template.HTML(s) }, // made by this package, which escapes what it holds
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("the template of the page: %w", err)
	}
	data := pageData{Told: t}
	for _, m := range t.Moments {
		if len(m.Locks) > 0 && (data.Roots == nil || m.Blocked() > data.Roots.Blocked()) {
			data.Roots = m
		}
		if data.Most == nil || len(m.Sessions) > len(data.Most.Sessions) {
			data.Most = m
		}
	}
	for _, l := range t.Lines {
		data.Charts = append(data.Charts, t.chart(l))
	}
	return page.Execute(w, data)
}

// Measures of a chart.
const chartWidth, chartHeight = 720.0, 56.0

// chart draws a line: gaps are gaps, and a mark stands where the incident began.
func (t *Told) chart(l Line) chart {
	most := 0.0
	for _, v := range l.Values {
		if v != nil {
			most = math.Max(most, *v)
		}
	}
	x := func(i int) float64 { return float64(i) / math.Max(float64(len(l.Values)-1), 1) * chartWidth }
	var path strings.Builder
	pen := "M"
	for i, v := range l.Values {
		if v == nil {
			pen = "M"
			continue
		}
		y := chartHeight - 2
		if most > 0 {
			y -= *v / most * (chartHeight - 6)
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", pen, x(i), y)
		pen = "L"
	}
	begin := x(int(max(t.Incident.Began.Unix()-t.From, 0)))
	svg := fmt.Sprintf(`<svg viewBox="0 0 %.0f %.0f" preserveAspectRatio="none" role="img" aria-label="%s"><path class="mark" d="M%.1f 0V%.0f"/><path class="line" d="%s"/></svg>`,
		chartWidth, chartHeight, template.HTMLEscapeString(l.Name), begin, chartHeight, path.String())
	return chart{Name: l.Name, Most: strings.TrimSpace(digits.Number(most) + " " + l.Unit), SVG: template.HTML(svg)}
}
