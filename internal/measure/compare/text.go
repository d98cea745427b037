package compare

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/environ"
)

// Text writes a report for people: the verdicts first, then the figures, then what else differs.
func (r *Report) Text(w io.Writer) error {
	p := &printer{w: w}
	for _, v := range r.Verdicts {
		p.line("%s", sentence(v))
	}
	if text := r.judgedBy(); text != "" {
		p.line("%s", text)
	}
	if r.Same != nil {
		p.line("%s.", r.Same.Words)
	}
	if r.Interrupted {
		p.line("Interrupted: this is what was measured so far.")
	}
	p.line("")
	t := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	rows := r.rows()
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	p.line("")
	p.line("A: %s", r.A.describe())
	p.line("B: %s", r.B.describe())
	if r.Order != "" {
		p.line("order of runs: %s (seed %d)", r.Order, r.Seed)
	}
	if len(r.Classes) > 0 {
		p.line("\n%s:", classesHead)
		for _, v := range r.Classes {
			p.line("  %s", sentence(v))
		}
	}
	if len(r.Why) > 0 {
		p.line("\nWhat the server did differently:")
		for _, c := range r.Why {
			p.line("  %s", c)
		}
	}
	if trust := r.Trust(); len(trust) > 0 {
		p.line("\nThe machine in each run:")
		for _, t := range trust {
			p.line("  %-4s %s", t[0], t[1])
		}
	}
	if len(r.Differences) > 0 {
		p.line("\nWhat else differs:")
		t := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
		for _, d := range r.shown() {
			fmt.Fprintf(t, "  %s\t%s\t%s\n", d.What, d.A, d.B)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	for _, n := range r.Notes {
		p.line("note: %s", n)
	}
	return p.err
}

const classesHead = "Classes of statements by the servers' own times (all these verdicts together err with a probability of at most 5 %)"

// judgedBy says which verdict counts, where it is not the one on throughput.
func (r *Report) judgedBy() string {
	if r.Judged == "" || r.Instead == "" {
		return ""
	}
	return fmt.Sprintf("The verdict that counts (--fail-if, --precise) is the one on %s, because %s.", r.Judged, r.Instead)
}

// Markdown writes a report for a document.
func (r *Report) Markdown(w io.Writer) error {
	p := &printer{w: w}
	for _, v := range r.Verdicts {
		p.line("- %s", escape(sentence(v)))
	}
	if text := r.judgedBy(); text != "" {
		p.line("- %s", escape(text))
	}
	if r.Same != nil {
		p.line("- %s.", escape(r.Same.Words))
	}
	if r.Interrupted {
		p.line("- Interrupted: this is what was measured so far.")
	}
	p.line("")
	table(p, r.rows())
	p.line("")
	p.line("- A: %s", escape(r.A.describe()))
	p.line("- B: %s", escape(r.B.describe()))
	if r.Order != "" {
		p.line("- Order of runs: %s (seed %d)", r.Order, r.Seed)
	}
	if len(r.Classes) > 0 {
		p.line("\n%s:\n", classesHead)
		for _, v := range r.Classes {
			p.line("- %s", escape(sentence(v)))
		}
	}
	if len(r.Why) > 0 {
		p.line("\nWhat the server did differently, per transaction:\n")
		rows := [][]string{{"what", "A", "B", "p"}}
		for _, c := range r.Why {
			rows = append(rows, []string{strings.TrimSuffix(c.What+", "+c.Unit, ", "), digits.Three(c.A), digits.Three(c.B), digits.Chance(c.P)})
		}
		table(p, rows)
	}
	if trust := r.Trust(); len(trust) > 0 {
		p.line("\nThe machine in each run:\n")
		for _, t := range trust {
			p.line("- %s: %s", t[0], escape(t[1]))
		}
	}
	if len(r.Differences) > 0 {
		p.line("\nWhat else differs:\n")
		rows := [][]string{{"what", "A", "B"}}
		for _, d := range r.shown() {
			rows = append(rows, []string{d.What, d.A, d.B})
		}
		table(p, rows)
	}
	if len(r.Notes) > 0 {
		p.line("")
	}
	for _, n := range r.Notes {
		p.line("- Note: %s", escape(n))
	}
	return p.err
}

// longValue is how much of a value that differs is shown.
const longValue = 60

func (r *Report) shown() []environ.Difference {
	out := slices.Clone(r.Differences)
	for i := range out {
		out[i].A, out[i].B = apart(out[i].A, out[i].B)
	}
	return out
}

// apart cuts two long values so that the place where they part is shown.
func apart(a, b string) (string, string) {
	a, b = strings.Join(strings.Fields(a), " "), strings.Join(strings.Fields(b), " ")
	x, y := []rune(a), []rune(b)
	if len(x) <= longValue && len(y) <= longValue {
		return orEmpty(a), orEmpty(b)
	}
	same := 0
	for same < len(x) && same < len(y) && x[same] == y[same] {
		same++
	}
	from := max(0, same-longValue/3)
	cut := func(v []rune) string {
		text := v[min(from, len(v)):]
		head, end := "", ""
		if from > 0 {
			head = "…"
		}
		if len(text) > longValue {
			text, end = text[:longValue], "…"
		}
		return head + string(text) + end
	}
	return orEmpty(cut(x)), orEmpty(cut(y))
}

func orEmpty(s string) string {
	if s == "" {
		return "(empty)"
	}
	return s
}

func sentence(v Verdict) string {
	text := v.Words
	if !strings.Contains(text, v.Measure) {
		text = v.Measure + ": " + text
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// rows is the table of figures.
func (r *Report) rows() [][]string {
	rows := [][]string{{"", "A", "B", "B / A", "interval", "p"}}
	for _, v := range r.Verdicts {
		row := []string{v.Measure, "-", "-", "-", "-", "-"}
		if c := v.Comparison; c != nil {
			row[1], row[2], row[3] = amount(c.MedianA, v.Unit), amount(c.MedianB, v.Unit), digits.Ratio(c.Ratio)
			row[4] = fmt.Sprintf("%s-%s (%s)", digits.Ratio(c.Low), digits.Ratio(c.High), digits.Percent(c.Held))
			row[5] = digits.Chance(c.P)
		}
		rows = append(rows, row)
	}
	if i := slices.IndexFunc(r.Verdicts, func(v Verdict) bool { return v.Comparison != nil }); i >= 0 {
		rows[0][5] = "p (" + r.Verdicts[i].Test + ")"
	}
	return append(rows, []string{"runs", fmt.Sprint(len(r.A.Runs)), fmt.Sprint(len(r.B.Runs)), "", "", ""})
}

// amount is a figure in its unit.
func amount(v float64, unit string) string {
	if unit == "seconds" {
		return digits.Seconds(v)
	}
	return digits.Count(v)
}

func (s Side) describe() string {
	text := s.What
	if len(s.Runs) > 0 {
		r := s.Runs[0]
		if r.Source != "" {
			text += ", " + r.Source
		}
		if !strings.Contains(text, r.Server) {
			text += ", " + r.Server
		}
		if v := strings.Fields(r.ServerVersion); len(v) > 0 && !strings.Contains(text, v[0]) {
			text += ", " + r.ServerVersion
		}
		text += fmt.Sprintf(": %s, %s, %s of %s", r.Workload, known(r.Threads, "thread"), digits.Counted(len(s.Runs), "run"), digits.Seconds(r.Seconds))
	}
	return text
}

// known counts, where the number is known.
func known(n int, what string) string {
	if n == 0 {
		return what + "s not told"
	}
	return digits.Counted(n, what)
}

// printer remembers the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) Write(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	n, err := p.w.Write(b)
	p.err = err
	return n, err
}

func (p *printer) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// table writes rows, the first one as the head.
func table(p *printer, rows [][]string) {
	for i, row := range rows {
		cells := make([]string, len(row))
		for j, c := range row {
			cells[j] = escape(c)
		}
		p.line("| %s |", strings.Join(cells, " | "))
		if i == 0 {
			p.line("|%s", strings.Repeat("---|", len(row)))
		}
	}
}

// escape keeps a text within a cell of Markdown.
func escape(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "`", "'", "<", "&lt;", "*", `\*`).Replace(s)
}
