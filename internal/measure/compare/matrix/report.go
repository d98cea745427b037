package matrix

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/compare"
	"github.com/rissodb/risso/internal/measure/compare/scale"
	"github.com/rissodb/risso/internal/measure/stats"
)

// Report answers one question for each axis along which the cells differ.
type Report struct {
	Name        string     `json:"name"`
	Dir         string     `json:"dir"`
	Versions    []string   `json:"versions"` // of the servers
	Runs        int        `json:"runs"`     // runs of each cell, as requested
	Seconds     float64    `json:"seconds"`  // length of each run, as requested
	Questions   []Question `json:"questions"`
	Cells       []Result   `json:"cells"`
	Missing     int        `json:"missing_runs"`
	Interrupted bool       `json:"interrupted,omitempty"`
	Notes       []string   `json:"notes"`
}

// Result is a cell with its runs.
type Result struct {
	Cell
	Figure
}

// Figure is the result of the runs of one cell.
type Figure struct {
	Value  string    `json:"value"` // value on the axis of the question
	Runs   []float64 `json:"runs"`  // transactions per second
	Median float64   `json:"median"`
	Low    float64   `json:"low"` // the lowest and the highest run
	High   float64   `json:"high"`
	P95    float64   `json:"p95"` // seconds, the median of the runs
	P99    float64   `json:"p99"`
	Errors int64     `json:"errors,omitempty"` // transactions that failed
}

// Question is how throughput depends on one axis, all else being equal.
type Question struct {
	Axis   string   `json:"axis"`
	Title  string   `json:"title"`
	Values []string `json:"values"` // the others are compared with the first
	Rows   []Row    `json:"rows"`
}

// Row is one combination of the other axes.
type Row struct {
	Where    map[string]string `json:"where"` // axis: value, for axes that vary
	Label    string            `json:"label"`
	Figures  []Figure          `json:"figures"`  // one for each value of the axis
	Verdicts []compare.Verdict `json:"verdicts"` // on throughput: each value except the first against the first
	Latency  []compare.Verdict `json:"latency"`  // the same for p95
	Law      *scale.Law        `json:"law,omitempty"`
}

// ReportOf reads the results that are there and answers.
func ReportOf(f *File, dir string) (*Report, error) {
	r := &Report{Name: f.Name, Dir: dir, Runs: f.Runs, Seconds: secondsOf(f.Time), Notes: []string{}, Questions: []Question{}, Versions: []string{}}
	runs := map[string][]*bench.Result{}
	unsteady := 0
	for _, c := range f.Cells() {
		found, err := readRuns(dir, c, f.Runs)
		if err != nil {
			return nil, err
		}
		for _, x := range found {
			if x == nil {
				r.Missing++
				continue
			}
			runs[c.ID] = append(runs[c.ID], x)
			if v := c.Server + " " + x.ServerVersion; !slices.Contains(r.Versions, v) {
				r.Versions = append(r.Versions, v)
			}
		}
		fig := figureOf(runs[c.ID])
		r.Cells = append(r.Cells, Result{c, fig})
		if fig.Median > 0 && (fig.High-fig.Low)/fig.Median > 0.5 {
			unsteady++
		}
		if fig.Errors > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%s, %s, %s: %s failed", c.site(), c.Workload, digits.Counted(c.Threads, "thread"), digits.Counted(fig.Errors, "transaction")))
		}
	}
	if unsteady > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("in %d of %s the runs differ by more than half of their median: the machine was not quiet", unsteady, digits.Counted(len(r.Cells), "cell")))
	}
	if least := stats.LeastRuns(compare.Confidence); f.Runs < least {
		r.Notes = append(r.Notes, fmt.Sprintf("%s too few to show any difference: at least %d are needed", digits.Plural(f.Runs, "run of each is", "runs of each are"), least))
	}
	for _, axis := range axes() {
		if q := question(axis, f, runs); q != nil {
			r.Questions = append(r.Questions, *q)
		}
	}
	return r, nil
}

func secondsOf(d duration) float64 { return float64(d) / 1e9 }

func figureOf(runs []*bench.Result) (f Figure) {
	f.Runs = []float64{}
	var p95, p99 []float64
	for i := range runs {
		f.Runs = append(f.Runs, runs[i].TransactionsPerSecond)
		p95, p99 = append(p95, runs[i].Latency.At(95)), append(p99, runs[i].Latency.At(99))
		for _, e := range runs[i].Errors {
			f.Errors += e.Count
		}
	}
	if len(runs) > 0 {
		f.Median, f.Low, f.High = stats.Median(f.Runs), slices.Min(f.Runs), slices.Max(f.Runs)
		f.P95, f.P99 = stats.Median(p95), stats.Median(p99)
	}
	return f
}

// varying returns the values of an axis in the order of the file.
func varying(axis string, cells []Cell) (out []string) {
	for _, c := range cells {
		if v := c.Value(axis); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// question is about one axis; nil when all cells are alike on it, or only threads vary and it asks something else.
func question(axis string, f *File, runs map[string][]*bench.Result) *Question {
	cells := f.Cells()
	values := varying(axis, cells)
	if len(values) < 2 {
		return nil
	}
	q := &Question{Axis: axis, Values: values, Title: fmt.Sprintf("How does throughput depend on the %s (%s)?", axis, strings.Join(values, ", "))}
	if axis == AxisOptions || axis == AxisThreads {
		q.Title = fmt.Sprintf("How does throughput depend on %s (%s)?", axis, strings.Join(values, ", "))
	}
	at := map[string]int{} // row by the values of the other axes
	sides := map[string][]compare.Side{}
	for _, c := range cells {
		where := map[string]string{}
		var label []string
		for _, other := range axes() {
			if other != axis && len(varying(other, cells)) > 1 {
				where[other] = c.Value(other)
				label = append(label, shown(other, c.Value(other)))
			}
		}
		key := strings.Join(label, ", ")
		i, ok := at[key]
		if !ok {
			i = len(q.Rows)
			at[key] = i
			q.Rows = append(q.Rows, Row{Where: where, Label: key, Verdicts: []compare.Verdict{}, Latency: []compare.Verdict{}})
		}
		fig := figureOf(runs[c.ID])
		fig.Value = c.Value(axis)
		q.Rows[i].Figures = append(q.Rows[i].Figures, fig)
		sides[key] = append(sides[key], compare.Side{Name: shown(axis, c.Value(axis)), Runs: runs[c.ID], Paired: len(runs[c.ID]) == f.Runs})
	}
	for i := range q.Rows {
		row := &q.Rows[i]
		all := sides[row.Label]
		for _, s := range all[1:] {
			for _, v := range compare.Judge(all[0], s, compare.Terms{Seed: f.Seed}).Verdicts {
				switch v.Measure {
				case "transactions per second":
					row.Verdicts = append(row.Verdicts, v)
				case "p95 latency":
					row.Latency = append(row.Latency, v)
				}
			}
		}
		if axis == AxisThreads {
			row.Law = law(row.Figures, f.Seed)
		}
	}
	return q
}

// law fits the scalability law to a row of thread counts; nil when there are too few.
func law(figures []Figure, seed uint64) *scale.Law {
	var points []scale.Point
	for _, f := range figures {
		n, err := strconv.Atoi(f.Value)
		for _, x := range f.Runs {
			if err == nil && x > 0 {
				points = append(points, scale.Point{Threads: n, TPS: x})
			}
		}
	}
	r, err := scale.Fit(points, scale.Options{Seed: seed})
	if err != nil {
		return nil
	}
	return r.Law
}

// shown is a value with what it counts.
func shown(axis, value string) string {
	switch axis {
	case AxisThreads:
		if value == "1" {
			return "1 thread"
		}
		return value + " threads"
	case AxisSize:
		return value + " rows"
	}
	return value
}

// The bars of the chart in text.
const barWidth = 40

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	r.head(&b, "")
	for _, q := range r.Questions {
		fmt.Fprintf(&b, "\n%s\n\n", q.Title)
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, row := range q.table() {
			fmt.Fprintln(t, strings.Join(row, "\t"))
		}
		t.Flush() // into memory
		fmt.Fprintln(&b)
		for _, line := range q.chart() {
			fmt.Fprintln(&b, line)
		}
		for _, line := range q.words() {
			fmt.Fprintln(&b, line)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) head(b *strings.Builder, mark string) {
	fmt.Fprintf(b, "%s%s: %s, %s of each, %s each\n", mark, or(r.Name, "matrix"), digits.Counted(len(r.Cells), "cell"), digits.Counted(r.Runs, "run"), digits.Seconds(r.Seconds))
	for _, v := range r.Versions {
		fmt.Fprintf(b, "%s%s\n", mark, v)
	}
	switch {
	case r.Interrupted:
		fmt.Fprintf(b, "%sInterrupted: %s missing. The same command continues.\n", mark, digits.Plural(r.Missing, "run is", "runs are"))
	case r.Missing > 0:
		fmt.Fprintf(b, "%s%s missing. Run the same command again to add them.\n", mark, digits.Plural(r.Missing, "run is", "runs are"))
	}
}

func or(s, standard string) string {
	if s == "" {
		return standard
	}
	return s
}

// table has a line for each row and a column for each value.
func (q Question) table() [][]string {
	head := []string{""}
	for i, v := range q.Values {
		head = append(head, shown(q.Axis, v))
		if i > 0 {
			head = append(head, "ratio (95 %)")
		}
	}
	rows := [][]string{head}
	for _, row := range q.Rows {
		line := []string{row.Label}
		for i, f := range row.Figures {
			line = append(line, spread(f))
			if i > 0 {
				line = append(line, ratio(row, i-1))
			}
		}
		rows = append(rows, line)
	}
	return rows
}

func ratio(row Row, i int) string {
	if i >= len(row.Verdicts) || row.Verdicts[i].Comparison == nil {
		return "-"
	}
	v := row.Verdicts[i]
	text := fmt.Sprintf("%s (%s-%s)", digits.Ratio(v.Ratio), digits.Ratio(v.Low), digits.Ratio(v.High))
	if v.Outcome != compare.Faster && v.Outcome != compare.Slower {
		text += " ?"
	}
	return text
}

func spread(f Figure) string {
	if len(f.Runs) == 0 {
		return "-"
	}
	return fmt.Sprintf("%s (%s-%s)", digits.Count(f.Median), digits.Count(f.Low), digits.Count(f.High))
}

// top is the highest figure of all rows with the same workload, which share a scale: another workload's transactions are not
// comparable, and may be a hundred times longer.
func (q Question) top(of Row) (top float64) {
	for _, row := range q.Rows {
		if row.Where[AxisWorkload] != of.Where[AxisWorkload] {
			continue
		}
		for _, f := range row.Figures {
			top = max(top, f.High)
		}
	}
	return top
}

// chart draws a bar for each figure, with the span of its runs.
func (q Question) chart() (out []string) {
	width := 0
	for _, v := range q.Values {
		width = max(width, len([]rune(shown(q.Axis, v))))
	}
	for _, row := range q.Rows {
		top := q.top(row)
		if top == 0 {
			continue
		}
		if row.Label != "" {
			out = append(out, row.Label)
		}
		for _, f := range row.Figures {
			name := []rune(shown(q.Axis, f.Value))
			bar := []rune(strings.Repeat("█", int(f.Median/top*barWidth+0.5)) + strings.Repeat(" ", barWidth))[:barWidth]
			for i := int(f.Median/top*barWidth + 0.5); i < int(f.High/top*barWidth+0.5) && i < barWidth; i++ {
				bar[i] = '─'
			}
			for i := int(f.Low/top*barWidth + 0.5); i < int(f.Median/top*barWidth+0.5) && i < barWidth; i++ {
				bar[i] = '▒'
			}
			out = append(out, fmt.Sprintf("  %s%s %s %s", string(name), strings.Repeat(" ", width-len(name)), string(bar), digits.Count(f.Median)))
		}
	}
	if len(out) == 0 {
		return nil
	}
	scales := ""
	if q.Rows[0].Where[AxisWorkload] != "" {
		scales = "; each workload has a separate scale"
	}
	return append(out, "  (█ to the lowest run, ▒ to the median, ─ to the highest"+scales+")", "")
}

// words are the verdicts, one line each.
func (q Question) words() (out []string) {
	for _, row := range q.Rows {
		label := row.Label
		if label != "" {
			label += ": "
		}
		for _, v := range row.Verdicts {
			out = append(out, label+v.Words)
		}
		if row.Law != nil && row.Law.Peak != nil {
			fits := ""
			if !row.Law.Fits {
				fits = ", but the law does not fit well"
			}
			out = append(out, fmt.Sprintf("%sthe scalability law has σ %s, κ %s and its peak with %s%s", label, digits.Three(row.Law.Sigma), digits.Three(row.Law.Kappa), digits.Counted(int64(math.Round(*row.Law.Peak)), "thread"), fits))
		}
	}
	return out
}

// Markdown writes the report for a document.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	r.head(&b, "- ")
	for _, q := range r.Questions {
		fmt.Fprintf(&b, "\n## %s\n\n", escape(q.Title))
		for i, row := range q.table() {
			for j := range row {
				row[j] = escape(row[j])
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
			if i == 0 {
				fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(row)))
			}
		}
		if chart := q.chart(); len(chart) > 0 {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.TrimRight(strings.Join(chart, "\n"), "\n"))
		}
		fmt.Fprintln(&b)
		for _, line := range q.words() {
			fmt.Fprintf(&b, "- %s\n", escape(line))
		}
	}
	if len(r.Notes) > 0 {
		fmt.Fprintln(&b)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "- Note: %s\n", escape(n))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func escape(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", "*", `\*`).Replace(s)
}

// HTML writes a page that needs nothing but itself, with one chart for each question.
func (r *Report) HTML(w io.Writer) error {
	var b, head strings.Builder
	b.WriteString(`<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Matrix</title>
<style>body{font:15px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;color:#222}table{border-collapse:collapse}td,th{padding:.1rem .8rem;text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}svg{width:100%;height:auto}.scroll{overflow-x:auto}td,th{white-space:nowrap}p,li{overflow-wrap:anywhere}@media(max-width:640px){body{font-size:14px;margin:1rem auto}svg text{font-size:15px}td,th{padding:.1rem .4rem}}</style>
`)
	fmt.Fprintf(&b, "<h1>%s</h1>\n", html.EscapeString(or(r.Name, "Matrix")))
	r.head(&head, "")
	for line := range strings.Lines(head.String()) {
		fmt.Fprintf(&b, "<p>%s</p>\n", html.EscapeString(strings.TrimSpace(line)))
	}
	for _, q := range r.Questions {
		fmt.Fprintf(&b, "<h2>%s</h2>\n%s<div class=\"scroll\"><table>\n", html.EscapeString(q.Title), q.SVG())
		for i, row := range q.table() {
			tag := "td"
			if i == 0 {
				tag = "th"
			}
			b.WriteString("<tr>")
			for _, c := range row {
				fmt.Fprintf(&b, "<%s>%s</%s>", tag, html.EscapeString(c), tag)
			}
			b.WriteString("</tr>\n")
		}
		b.WriteString("</table></div>\n<ul>\n")
		for _, line := range q.words() {
			fmt.Fprintf(&b, "<li>%s</li>\n", html.EscapeString(line))
		}
		b.WriteString("</ul>\n")
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "<p><em>%s</em></p>\n", html.EscapeString(n))
	}
	b.WriteString("</html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// The measures of a chart in SVG.
const (
	svgWidth, svgBar, svgGap = 760, 16, 10
	svgNames, svgNumbers     = 250, 80
	svgPlot                  = svgWidth - svgNames - svgNumbers
)

// colours of the values, in turn.
func colours() []string {
	return []string{"#1f6feb", "#d9730d", "#2da44e", "#8250df", "#bf3989", "#57606a"}
}

// SVG draws the medians as bars, with the span of the runs.
func (q Question) SVG() string {
	height := svgGap
	for _, row := range q.Rows {
		height += svgBar + len(row.Figures)*(svgBar+2) + svgGap
	}
	var b strings.Builder
	out := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	out(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="system-ui,sans-serif" font-size="12">`, svgWidth, height)
	y := svgGap
	for _, row := range q.Rows {
		top := max(q.top(row), 1e-9)
		x := func(v float64) float64 { return svgNames + v/top*svgPlot }
		out(`<text x="0" y="%d" font-weight="bold">%s</text>`, y+svgBar-4, html.EscapeString(row.Label))
		y += svgBar
		for i, f := range row.Figures {
			middle := y + svgBar/2
			out(`<text x="%d" y="%d" text-anchor="end">%s</text>`, svgNames-6, y+svgBar-4, html.EscapeString(shown(q.Axis, f.Value)))
			out(`<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"><title>%s</title></rect>`, svgNames, y, x(f.Median)-svgNames, svgBar, colours()[i%len(colours())], html.EscapeString(spread(f)))
			out(`<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#222" stroke-width="2"/>`, x(f.Low), x(f.High), middle, middle)
			out(`<text x="%.1f" y="%d">%s</text>`, x(f.High)+6, y+svgBar-4, digits.Count(f.Median))
			y += svgBar + 2
		}
		y += svgGap
	}
	out("</svg>")
	return b.String()
}
