package trace

import (
	"fmt"
	"io"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/oneline"
)

// WriteText writes all of a report: words, map, time line, notes.
func (r *Report) WriteText(w io.Writer, o TextOptions) error {
	if o.Width <= 0 {
		o.Width = 120
	}
	p := &printer{w: w, width: o.Width}
	for _, s := range r.Words {
		p.wrapped(s)
	}
	if len(r.Map.Roots) > 0 {
		p.line("")
		p.line("MAP (what ran in what, most expensive first; own: time excluding everything below)")
		p.line("   share       total         own    count")
		p.groups(r.Map.Roots, r.Map.Busy, 0, o.All)
	}
	if p.err == nil && len(r.Tree.Roots) > 0 {
		p.line("")
		p.line("TIMELINE (seconds since the trace began; within a statement, since the statement began)")
		if p.err == nil {
			p.err = WriteTimeline(w, r.Tree, r.Trace.Zero, o)
		}
	}
	p.line("")
	for _, s := range r.Notes {
		p.wrapped(s)
	}
	return p.err
}

type printer struct {
	w     io.Writer
	width int
	err   error
}

func (p *printer) line(format string, a ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, oneline.Cut(strings.TrimRight(fmt.Sprintf(format, a...), " "), p.width))
	}
}

// wrapped writes a sentence in lines of the wanted width.
func (p *printer) wrapped(s string) {
	line := ""
	s = oneline.Of(s)
	for _, word := range strings.Fields(s) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > p.width {
			p.line("%s", line)
			line = "  " + word
			continue
		}
		line = strings.TrimPrefix(line+" "+word, " ")
		if strings.HasPrefix(line, " ") {
			line = " " + line
		}
	}
	p.line("%s", line)
}

// In the text, groups below this share of the busy time, or after so many costlier ones, are summed up.
const (
	leastShare = 0.005
	mostGroups = 12
)

func (p *printer) groups(list []*MapNode, busy uint64, depth int, all bool) {
	rest, sum := 0, uint64(0)
	for i, g := range list {
		if !all && (i >= mostGroups || share(g.Total, busy) < leastShare && g.deadTables() == 0 && g.Kind != "program" && depth > 0) {
			rest++
			sum += g.Total
			continue
		}
		count, own := digits.Thousands(g.Count), human(g.Own)
		if g.Kind == "program" {
			own = ""
			if g.Count == 0 {
				count = ""
			}
		}
		p.line("%8s  %10s  %10s  %7s  %s%s", digits.Percent(share(g.Total, busy)), human(g.Total), own, count, indent(depth), oneline.Of(g.text()))
		for _, u := range g.Tables {
			if u.Unused() {
				p.line("%8s%10s  %10s  %7s  %s! %s", "", "", "", digits.Thousands(u.Opened), indent(depth+1), u.text())
			}
		}
		p.groups(g.Children, busy, depth+1, all)
	}
	if rest > 0 {
		p.line("%8s  %10s  %10s  %7s  %s… %d more", digits.Percent(share(sum, busy)), human(sum), "", "", indent(depth), rest)
	}
}

func (g *MapNode) text() string {
	switch g.Kind {
	case "program":
		if w := g.Conditions.words(g); w != "" {
			return g.Name + "  [" + w + "]"
		}
		return g.Name
	case "instruction", "statement":
		s := g.title()
		if used := len(g.Tables) - g.deadTables(); len(g.Tables) > 0 {
			s += fmt.Sprintf("  [opens %s, uses %d]", digits.Counted(len(g.Tables), "table"), used)
		}
		return s
	case "stage":
		return "· " + g.Name
	}
	return "~ " + g.Name
}

func (u TableUse) text() string {
	s := u.Table + ": opened and locked, never used"
	if len(u.Where) > 0 {
		var places []string
		for _, p := range u.Where {
			places = append(places, p.String())
		}
		s += "; named in " + strings.Join(places, ", ")
	}
	return s
}
