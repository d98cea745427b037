package accounts

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"
)

//go:embed report.html
var page string

// WriteHTML writes one page that needs nothing else, for an auditor: every account with every rule.
func (r Report) WriteHTML(w io.Writer) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"day":   func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"plugs": func(a *Account) string { return a.plugins() },
	}).Parse(page)
	if err != nil {
		return fmt.Errorf("the page's form: %w", err)
	}
	if err := t.Execute(w, r); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
