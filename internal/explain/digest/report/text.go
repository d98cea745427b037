package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/oneline"
)

// Text writes a profile for a terminal, a file or a mail: at most Options.Width columns, except for statements that are
// there to be copied.
func Text(w io.Writer, p *digest.Profile, o Options) error {
	t := &textWriter{width: o.width()}
	v := build(p, o)
	t.header(v)
	t.profile(v)
	for _, c := range v.Classes {
		t.class(c)
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

type textWriter struct {
	b     strings.Builder
	width int
}

func (t *textWriter) line(format string, args ...any) {
	t.b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " "))
	t.b.WriteByte('\n')
}

// paragraph writes text in as many lines as it needs; further lines begin below the first.
func (t *textWriter) paragraph(lead, text string) {
	n := utf8.RuneCountInString(lead)
	for i, l := range wrap(text, max(t.width-n, 30), 50) {
		if i > 0 {
			lead = strings.Repeat(" ", n)
		}
		t.line("%s%s", lead, l)
	}
}

func (t *textWriter) header(v view) {
	t.line("%s", oneline.Cut(v.Title, t.width))
	for _, s := range v.Sources {
		t.paragraph("  ", s)
	}
	if v.Range != "" {
		t.paragraph("", v.Range)
	}
	t.paragraph("", v.Summary)
	if v.Lost != "" {
		t.paragraph("!! ", v.Lost)
	}
	if v.Filter != "" {
		t.paragraph("only ", line(v.Filter))
	}
	if len(v.Overall) > 0 {
		t.line("")
		t.figures(v.Overall)
		if len(v.Zero) > 0 {
			t.paragraph("always 0: ", strings.Join(v.Zero, ", "))
		}
	}
	if len(v.Skipped)+len(v.Notes) > 0 || v.Error != "" {
		t.line("")
	}
	if v.Error != "" {
		t.paragraph("", v.Error)
	}
	for i, s := range v.Skipped {
		if i == 0 {
			t.paragraph("Left out: ", s)
		} else {
			t.paragraph("          ", s)
		}
	}
	for _, n := range v.Notes {
		t.paragraph("Note: ", line(n))
	}
}

// figures writes a table of figures, without the columns in which nothing is known.
func (t *textWriter) figures(lines []figures) {
	heads, rows := columnsOf(lines)
	for i := range heads[1:] {
		heads[i+1] = ">" + heads[i+1]
	}
	for _, l := range (columns{heads: heads, rows: rows, gap: 3, width: t.width}).lines() {
		t.line("%s", l)
	}
}

func (t *textWriter) profile(v view) {
	if len(v.Profile) == 0 {
		return
	}
	c := columns{heads: []string{">RANK", "CLASS"}, gap: 2, width: t.width}
	if v.Timed {
		c.heads = append(c.heads, ">TIME", ">SHARE", ">CALLS", ">R/CALL", ">V/M")
	} else {
		c.heads = append(c.heads, ">CALLS", ">SHARE")
	}
	if v.Ordered != "" {
		c.heads = append(c.heads, ">"+strings.ToUpper(label(strings.ReplaceAll(v.Ordered, ":", " "))))
	}
	last := "STATEMENT"
	if v.Grouped != "" && v.Grouped != "fingerprint" {
		last = strings.ToUpper(label(v.Grouped))
	}
	c.heads = append(c.heads, last)
	for _, r := range v.Profile {
		id := r.ID
		if t.width < 120 {
			id = shortID(id)
		}
		row := []string{r.Rank, id}
		if v.Timed {
			row = append(row, r.Time, r.Share, r.Calls, r.Each, r.VM)
		} else {
			row = append(row, r.Calls, r.Share)
		}
		if v.Ordered != "" {
			row = append(row, r.Figure)
		}
		c.rows = append(c.rows, append(row, r.Statement))
	}
	t.line("")
	for _, l := range c.lines() {
		t.line("%s", l)
	}
}

// shortID is enough of an ID to distinguish classes in one report.
func shortID(id string) string { return id[:min(8, len(id))] }

func (t *textWriter) class(c class) {
	t.line("")
	t.line("")
	head := fmt.Sprintf("%s. %s", c.Rank, c.Statement)
	room := t.width - len(c.ID) - 2
	head = oneline.Cut(head, room)
	t.line("%s%s%s", head, strings.Repeat(" ", max(2, t.width-utf8.RuneCountInString(head)-len(c.ID))), c.ID)
	t.line("%s", strings.Repeat("─", t.width))
	if c.Fingerprint != "" && c.Fingerprint != c.Statement {
		for _, l := range wrap(c.Fingerprint, t.width, 6) {
			t.line("%s", l)
		}
	}
	if c.PtID != "" {
		t.paragraph("in pt-query-digest      ", c.PtID)
	}
	if c.Digest != "" {
		t.paragraph("in performance_schema   ", c.Digest)
	}
	if c.When != "" {
		t.paragraph("", c.When)
	}
	t.line("")
	t.figures(c.Figures)
	if len(c.Values) > 0 {
		t.line("")
		w := 0
		for _, x := range c.Values {
			w = max(w, utf8.RuneCountInString(x.Name))
		}
		for _, x := range c.Values {
			t.paragraph(fmt.Sprintf("%-*s  ", w, x.Name), x.Text)
		}
	}
	t.histogram(c.Histogram)
	if len(c.Tables) > 0 {
		t.line("")
		t.line("Tables")
		for _, s := range c.Tables {
			t.line("  %s", s)
		}
	}
	for i, s := range c.Samples {
		t.sample(i, s)
	}
	if c.Explain != "" {
		t.line("")
		t.line("Explain it")
		t.block(c.Explain)
	}
	if c.NoExplain != "" {
		t.line("(%s)", c.NoExplain)
	}
}

func (t *textWriter) histogram(h []bucket) {
	if len(h) == 0 {
		return
	}
	t.line("")
	t.line("Query time")
	w := 0
	for _, b := range h {
		w = max(w, len(digits.Thousands(b.Calls)))
	}
	for _, b := range h {
		t.line("  %8s  %*s  %s", b.Label, w, digits.Thousands(b.Calls), bar(b.Part, 1, max(t.width-14-w, 10)))
	}
}

func (t *textWriter) sample(i int, s sample) {
	t.line("")
	name := "Slowest"
	if i > 0 {
		name = fmt.Sprintf("Slowest but %d", i)
	}
	if name += ":"; !s.Timed {
		name = "Sample"
	}
	t.line("%s %s", name, s.Head)
	t.block(s.Query)
	if s.Cut != "" {
		t.line("  … %s", s.Cut)
	}
	if s.Plan != "" {
		t.line("Plan as the server logged it")
		t.block(s.Plan)
	}
}

// block writes a text as it is, indented.
func (t *textWriter) block(s string) {
	for _, l := range strings.Split(s, "\n") {
		t.line("  %s", strings.TrimRight(l, " "))
	}
}
