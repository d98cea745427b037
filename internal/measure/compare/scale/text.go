package scale

import (
	"fmt"
	"html"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/rissodb/risso/internal/digits"
)

// Text writes a report for people; ascii: without other signs than those in the chart.
func (r *Report) Text(w io.Writer, ascii bool) error {
	var b strings.Builder
	if r.Source != "" {
		fmt.Fprintf(&b, "%s\n\n", r.Source)
	}
	if r.Interrupted {
		b.WriteString("Interrupted: this is what was measured so far.\n\n")
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range r.rows() {
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	t.Flush() // into memory
	fmt.Fprintf(&b, "\n%s\n\n", strings.Join(r.Chart(ascii), "\n"))
	for _, line := range r.Words {
		fmt.Fprintln(&b, line)
	}
	if len(r.Predictions) > 0 {
		b.WriteString("\nNot run, by the law:\n")
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		for _, row := range r.predicted() {
			fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
		}
		t.Flush()
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// rows is the table of what was measured.
func (r *Report) rows() [][]string {
	head := []string{"threads", "tps", "runs"}
	if r.Law != nil {
		head = append(head, "law", "error")
	}
	if r.Processors > 0 {
		head = append(head, "processors")
	}
	rows := [][]string{head}
	for _, p := range r.Points {
		row := []string{fmt.Sprint(p.Threads), digits.Count(p.Median), fmt.Sprint(len(p.Runs))}
		if r.Law != nil {
			row = append(row, digits.Count(p.Law), digits.Change(p.Error))
		}
		switch {
		case p.Beyond:
			row = append(row, "beyond")
		case r.Processors > 0:
			row = append(row, "within")
		}
		rows = append(rows, row)
	}
	return rows
}

func (r *Report) predicted() [][]string {
	rows := [][]string{{"threads", "tps", "95 % interval", ""}}
	for _, p := range r.Predictions {
		outside := ""
		if p.Outside {
			outside = "outside the sweep"
		}
		rows = append(rows, []string{fmt.Sprint(p.Threads), digits.Count(p.TPS), strings.TrimSuffix(strings.TrimPrefix(interval(p.Bound, digits.Count), " (95 %: "), ")"), outside})
	}
	return rows
}

// Markdown writes a report for a document.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", strings.ReplaceAll(r.Source, "|", `\|`))
	table(&b, r.rows())
	fmt.Fprintln(&b)
	for _, line := range r.Words {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "- Note: %s\n", n)
	}
	if len(r.Predictions) > 0 {
		b.WriteString("\nNot run, by the law:\n\n")
		table(&b, r.predicted())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func table(b *strings.Builder, rows [][]string) {
	for i, row := range rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(b, "|%s\n", strings.Repeat("---:|", len(row)))
		}
	}
}

// CSV writes points and law, one line for each thread count.
func (r *Report) CSV(w io.Writer) error {
	var b strings.Builder
	b.WriteString("threads,tps,law,low,high,measured\n")
	for _, p := range r.Points {
		law := ""
		if r.Law != nil {
			law = fmt.Sprintf("%.3f", p.Law)
		}
		for _, x := range p.Runs {
			fmt.Fprintf(&b, "%d,%.3f,%s,,,yes\n", p.Threads, x, law)
		}
	}
	for _, p := range r.Predictions {
		low, high := "", ""
		if p.Bound.Low != nil {
			low = fmt.Sprintf("%.3f", *p.Bound.Low)
		}
		if p.Bound.High != nil {
			high = fmt.Sprintf("%.3f", *p.Bound.High)
		}
		fmt.Fprintf(&b, "%d,,%.3f,%s,%s,no\n", p.Threads, p.TPS, low, high)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// HTML writes a page that needs nothing but itself.
func (r *Report) HTML(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Scalability</title>
<style>body{font:15px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#222}table{border-collapse:collapse}td,th{padding:.1rem .8rem;text-align:right;border-bottom:1px solid #ddd}svg{width:100%;height:auto}.scroll{overflow-x:auto}td,th{white-space:nowrap}@media(max-width:640px){body{font-size:14px;margin:1rem auto}svg text{font-size:18px}td,th{padding:.1rem .4rem}}</style>
<h1>Scalability</h1>
`)
	fmt.Fprintf(&b, "<p>%s</p>\n%s", html.EscapeString(r.Source), r.SVG())
	for _, line := range r.Words {
		fmt.Fprintf(&b, "<p>%s</p>\n", html.EscapeString(line))
	}
	htmlTable(&b, r.rows())
	if len(r.Predictions) > 0 {
		b.WriteString("<h2>Not run, by the law</h2>\n")
		htmlTable(&b, r.predicted())
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "<p><em>%s</em></p>\n", html.EscapeString(n))
	}
	b.WriteString("</html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func htmlTable(b *strings.Builder, rows [][]string) {
	b.WriteString("<div class=\"scroll\"><table>\n")
	for i, row := range rows {
		tag := "td"
		if i == 0 {
			tag = "th"
		}
		b.WriteString("<tr>")
		for _, c := range row {
			fmt.Fprintf(b, "<%s>%s</%s>", tag, html.EscapeString(c), tag)
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table></div>\n")
}
