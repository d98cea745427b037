package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/oneline"
)

// Markdown writes a profile for an issue, a wiki or a chat: tables as GitHub reads them, statements in code blocks.
func Markdown(w io.Writer, p *digest.Profile, o Options) error {
	v := build(p, o)
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", inline(v.Title))
	for _, s := range v.Sources {
		fmt.Fprintf(&b, "- %s\n", inline(s))
	}
	fmt.Fprintf(&b, "\n%s  \n%s\n", inline(v.Range), inline(v.Summary))
	if v.Lost != "" {
		fmt.Fprintf(&b, "\n**%s**\n", inline(v.Lost))
	}
	if v.Filter != "" {
		fmt.Fprintf(&b, "\nOnly %s\n", code(line(v.Filter)))
	}
	markdownFigures(&b, v.Overall, v.Zero)
	for _, s := range v.Skipped {
		fmt.Fprintf(&b, "\nLeft out: %s\n", inline(s))
	}
	for _, n := range append([]string{v.Error}, v.Notes...) {
		if n != "" {
			fmt.Fprintf(&b, "\n%s\n", inline(line(n)))
		}
	}
	markdownProfile(&b, v)
	for _, c := range v.Classes {
		markdownClass(&b, c)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func markdownProfile(b *strings.Builder, v view) {
	if len(v.Profile) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Profile\n\n| | class | time | share | calls | R/call | V/M | statement |\n|--:|---|--:|--:|--:|--:|--:|---|\n")
	for _, r := range v.Profile {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", r.Rank, shortID(r.ID), r.Time, r.Share, r.Calls, r.Each, r.VM, inline(oneline.Cut(r.Statement, 100)))
	}
}

func markdownFigures(b *strings.Builder, lines grid, zero []string) {
	if len(lines) > 0 {
		heads := lines.Heads()
		fmt.Fprintf(b, "\n| %s |\n|---|%s\n", strings.Join(heads, " | "), strings.Repeat("--:|", len(heads)-1))
	}
	for _, r := range lines.Rows() {
		r[0] = inline(r[0])
		fmt.Fprintf(b, "| %s |\n", strings.Join(r, " | "))
	}
	if len(zero) > 0 {
		fmt.Fprintf(b, "\nAlways 0: %s\n", inline(strings.Join(zero, ", ")))
	}
}

func markdownClass(b *strings.Builder, c class) {
	fmt.Fprintf(b, "\n## %s. %s\n\n%s of the whole, class %s", c.Rank, inline(c.Statement), c.Share, code(c.ID))
	if c.PtID != "" {
		fmt.Fprintf(b, ", in pt-query-digest %s", code(c.PtID))
	}
	if c.Digest != "" {
		fmt.Fprintf(b, ", in performance\\_schema %s", code(c.Digest))
	}
	if c.When != "" {
		fmt.Fprintf(b, "  \n%s", inline(c.When))
	}
	b.WriteString("\n")
	if c.Fingerprint != "" {
		fence(b, c.Fingerprint)
	}
	markdownFigures(b, c.Figures, nil)
	if len(c.Values) > 0 {
		b.WriteString("\n")
	}
	for _, x := range c.Values {
		fmt.Fprintf(b, "- %s: %s\n", inline(x.Name), inline(x.Text))
	}
	if len(c.Histogram) > 0 {
		var h strings.Builder
		for _, x := range c.Histogram {
			fmt.Fprintf(&h, "%8s  %11s  %s\n", x.Label, digits.Thousands(x.Calls), bar(x.Part, 1, 50))
		}
		fence(b, strings.TrimRight(h.String(), " \n"))
	}
	for _, s := range c.Samples {
		fmt.Fprintf(b, "\n%s %s\n", map[bool]string{true: "Slowest:", false: "Sample"}[s.Timed], inline(s.Head))
		fence(b, s.Query)
		if s.Cut != "" {
			fmt.Fprintf(b, "\n… %s\n", s.Cut)
		}
		if s.Plan != "" {
			fence(b, s.Plan)
		}
	}
	if more := append(append([]string(nil), c.Tables...), c.Explain); len(more) > 1 || c.Explain != "" {
		b.WriteString("\nTo go on:\n")
		fence(b, strings.TrimSpace(strings.Join(more, "\n")))
	}
	if c.NoExplain != "" {
		fmt.Fprintf(b, "\n(%s)\n", inline(c.NoExplain))
	}
}

// inline is text that no Markdown reader takes for markup, and that stays in its cell.
func inline(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case strings.ContainsRune("\\`*_{}[]<>#|~$&!@", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// code is text as code within a line.
func code(s string) string {
	ticks := strings.Repeat("`", longestRun(s)+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return ticks + s + ticks
}

// fence writes a block of code that its content cannot end.
func fence(b *strings.Builder, s string) {
	ticks := strings.Repeat("`", max(3, longestRun(s)+1))
	fmt.Fprintf(b, "\n%s\n%s\n%s\n", ticks, s, ticks)
}

// longestRun is the longest row of backticks.
func longestRun(s string) (most int) {
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] != '`' {
			n = 0
			continue
		}
		n++
		most = max(most, n)
	}
	return most
}
