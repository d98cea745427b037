package chaos

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
)

//go:embed page.html
var pageSource string

// WritePage writes the certificate as a page that needs nothing else. The certificate is in it as JSON, too, so that the page can be verified.
func (c *Certificate) WritePage(w io.Writer) error {
	text, err := json.Marshal(c) // escapes <, > and &, so that it ends no element
	if err != nil {
		return err
	}
	worst := time.Duration(1)
	for _, e := range c.Events {
		worst = max(worst, e.Outage.For)
	}
	t, err := template.New("page").Funcs(template.FuncMap{
		"span":   digits.Span,
		"many":   func(n int) string { return digits.Thousands(int64(n)) },
		"clock":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"at":     func(d time.Duration) string { return digits.Span(d.Round(100 * time.Millisecond)) },
		"bar":    func(d time.Duration) string { return fmt.Sprintf("%.1f", 100*float64(d)/float64(worst)) },
		"join":   strings.Join,
		"broken": func(e Event) string { return e.violation() },
		"alarm":  func(e Event) bool { return e.falseAlarm() },
	}).Parse(pageSource)
	if err != nil {
		return err
	}
	return t.Execute(w, struct {
		*Certificate
		JSON  template.JS
		Chart template.HTML
	}{c, template.JS(text), c.chart()}) //nolint:gosec // JSON with its signs escaped, and a drawing of numbers
}

// chart draws the acknowledged writes of each second, with the faults.
func (c *Certificate) chart() template.HTML {
	const width, height = 1100.0, 140.0
	if len(c.Rates) < 2 {
		return ""
	}
	most := 1
	for _, n := range c.Rates {
		most = max(most, n)
	}
	x := func(seconds float64) float64 { return width * seconds / float64(len(c.Rates)) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="acknowledged writes per second">`, width, height+16)
	for _, e := range c.Events {
		class := "fault"
		if e.violation() != "" {
			class = "fault broken"
		}
		from, to := e.Broken.Seconds(), e.Healed.Seconds()
		fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="0" width="%.1f" height="%.0f"><title>%s</title></rect>`, class, x(from), max(x(to)-x(from), 1), height,
			template.HTMLEscapeString(e.Fault.String()+" ["+e.Target+"]"))
	}
	b.WriteString(`<polyline class="rate" points="`)
	for i, n := range c.Rates {
		fmt.Fprintf(&b, "%.1f,%.1f ", x(float64(i)+.5), height-height*float64(n)/float64(most))
	}
	fmt.Fprintf(&b, `"/><text x="0" y="%.0f">0</text><text x="%.0f" y="%.0f" text-anchor="end">%s</text><text x="4" y="12">%s/s</text></svg>`, height+13, width, height+13,
		digits.Span(time.Duration(len(c.Rates))*time.Second), digits.Thousands(int64(most)))
	return template.HTML(b.String()) //nolint:gosec // numbers, and text that is escaped
}
