package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/digest"
)

//go:embed page.html
var page string

// HTML writes a profile as one file that opens by itself: no script, nothing loaded, light and dark by the reader's
// setting. A policy in the page forbids both, should anything ever slip through.
func HTML(w io.Writer, p *digest.Profile, o Options) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"width":     func(part float64) string { return fmt.Sprintf("%.1f", 100*max(0, min(part, 1))) },
		"short":     shortID,
		"thousands": digits.Thousands[int64],
		"line":      line,
	}).Parse(page)
	if err != nil {
		return fmt.Errorf("the page's template: %w", err)
	}
	return t.Execute(w, build(p, o))
}
