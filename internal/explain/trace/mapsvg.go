package trace

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/oneline"
)

// box is one place of the map with where it is drawn: a kind of statement, a stored program, an instruction, or a table.
type box struct {
	group *MapNode
	table *TableUse
	to    []*box

	depth        int
	x, y, height float64
}

const (
	boxWidth   = 240.0
	boxGap     = 38.0
	mostBoxes  = 8 // below one parent
	lineHeight = 15.0
	boxRunes   = 32 // characters of SQL in a line of a box
)

// boxes chooses what the map shows: statements, what they call, and the tables that they open.
func (r *Report) boxes() []*box {
	var place func(g *MapNode, depth int) *box
	place = func(g *MapNode, depth int) *box {
		b := &box{group: g, depth: depth}
		below := g.calls()
		slices.SortStableFunc(below, func(a, b *MapNode) int { return cmp.Compare(b.Total, a.Total) })
		for i, c := range below {
			if i < mostBoxes || c.dead() {
				b.to = append(b.to, place(c, depth+1))
			}
		}
		for i := range g.Tables {
			b.to = append(b.to, &box{table: &g.Tables[i], depth: depth + 1})
		}
		return b
	}
	var out []*box
	for i, g := range r.Map.Roots {
		if i < mostBoxes || g.dead() {
			out = append(out, place(g, 0))
		}
	}
	return out
}

// calls are the programs and instructions that ran in a group, also those that ran within a stage or a wait.
func (g *MapNode) calls() (out []*MapNode) {
	for _, c := range g.Children {
		switch c.Kind {
		case "program", "instruction", "statement":
			out = append(out, c)
		}
	}
	return out
}

// dead reports whether a group or anything below it opened tables for nothing.
func (g *MapNode) dead() bool {
	return g.deadTables() > 0 || slices.ContainsFunc(g.Children, (*MapNode).dead)
}

// WriteMapSVG draws the execution map: from the statements on the left through programs and instructions to the tables; what
// was opened and never used is marked.
func (r *Report) WriteMapSVG(w io.Writer) error {
	roots := r.boxes()
	deepest := 0
	var depth func(list []*box)
	depth = func(list []*box) {
		for _, b := range list {
			deepest = max(deepest, b.depth)
			depth(b.to)
		}
	}
	depth(roots)
	width := max(pageWidth, 2*margin+float64(deepest+1)*(boxWidth+boxGap)-boxGap)
	d := &drawing{}
	title := fmt.Sprintf("Execution map of connection %d", r.Trace.Connection.ID)
	d.text(margin, 32, "big", title)
	d.text(width-margin, 32, "soft end", r.Trace.Server+", "+r.Trace.Began.UTC().Format("2006-01-02 15:04:05 UTC"))
	y := d.paragraph(margin, 58, "", int(width/7.2), r.Words)
	y = d.legend(margin, y+4, r.legend()) + 8
	for _, b := range roots {
		y = slices.Max(b.place(y, nil)) + 14
	}
	for _, b := range roots {
		d.edges(b, r.Map.Busy)
	}
	for _, b := range roots {
		d.boxAll(b, r.Map.Busy)
	}
	y = d.paragraph(margin, y+12, "small soft", int(width/6.4), r.Notes)
	return d.write(w, width, y+6, title)
}

// place positions a box and all that it leads to: each as high as its column is free, and no higher than what leads
// to it. free is the y below the boxes of each column.
func (b *box) place(y float64, free []float64) []float64 {
	for len(free) <= b.depth {
		free = append(free, 0)
	}
	b.x = margin + float64(b.depth)*(boxWidth+boxGap)
	b.y = max(y, free[b.depth])
	for c := b; len(c.to) > 0; { // in a line with the first that it leads to, and so on
		if c = c.to[0]; c.depth < len(free) {
			b.y = max(b.y, free[c.depth])
		}
	}
	b.height = b.needs()
	free[b.depth] = b.y + b.height + 8
	for _, c := range b.to {
		free = c.place(b.y, free)
	}
	return free
}

func (b *box) lines() []string {
	if b.table != nil {
		lines := []string{b.table.Table}
		if b.table.Unused() {
			lines = append(lines, fmt.Sprintf("opened %s×, never used", digits.Thousands(b.table.Opened)))
			for _, p := range b.table.Where {
				lines = append(lines, "named in "+p.String())
			}
		} else {
			lines = append(lines, fmt.Sprintf("opened %s×, used in %s", digits.Thousands(b.table.Opened), digits.Thousands(b.table.Used)))
		}
		return lines
	}
	g := b.group
	s := oneline.Of(g.title())
	lines := []string{oneline.Cut(s, boxRunes)}
	if r := []rune(s); len(r) > boxRunes {
		lines = []string{string(r[:boxRunes]), oneline.Cut(string(r[boxRunes:]), boxRunes)}
	}
	if w := g.Conditions.words(g); w != "" {
		lines = append(lines, w)
	}
	return lines
}

func (b *box) needs() float64 {
	n := float64(len(b.lines()))
	if b.table != nil {
		return 10 + n*lineHeight
	}
	return 10 + n*lineHeight + 14 + 14
}

func (d *drawing) edges(b *box, busy uint64) {
	for _, c := range b.to {
		x1, y1, x2, y2 := b.x+boxWidth, b.y+22, c.x, c.y+22
		class, thick := "edge", 1.2
		if c.table != nil && c.table.Unused() {
			class = "deadedge"
		} else if c.group != nil {
			thick = 1.2 + 8*min(share(c.group.Total, busy), 1)
		}
		d.f(`<path d="M%.1f %.1f C%.1f %.1f %.1f %.1f %.1f %.1f" class="%s" stroke-width="%.1f"/>`, x1, y1, x1+boxGap/2, y1, x2-boxGap/2, y2, x2, y2, class, thick)
		d.edges(c, busy)
	}
}

func (d *drawing) boxAll(b *box, busy uint64) {
	d.box(b, busy)
	for _, c := range b.to {
		d.boxAll(c, busy)
	}
}

func (d *drawing) box(b *box, busy uint64) {
	if b.table != nil {
		class, ink := "box", "small soft"
		if b.table.Unused() {
			class, ink = "deadbox", "small deadink"
		}
		d.rect(b.x, b.y, boxWidth, b.height, 10, class, "")
		for i, s := range b.lines() {
			c := ink
			if i == 0 {
				c = "sql b"
			}
			d.text(b.x+12, b.y+18+float64(i)*lineHeight, c, oneline.Cut(s, boxRunes+2))
		}
		return
	}
	g := b.group
	class := "box"
	if g.Kind == "program" {
		class = "program"
	}
	d.rect(b.x, b.y, boxWidth, b.height, 4, class, g.title())
	y := b.y + 18
	for _, s := range b.lines() {
		c := "sql"
		if g.Kind == "program" {
			c = "b"
		}
		if s == g.Conditions.words(g) {
			c = "small"
		}
		d.text(b.x+10, y, c, s)
		y += lineHeight
	}
	figures := human(g.Total) + " · " + digits.Percent(share(g.Total, busy))
	if g.Count > 0 {
		figures = fmt.Sprintf("%s× · %s", digits.Thousands(g.Count), figures)
	}
	d.text(b.x+10, y, "small soft", figures)
	if g.Count > 1 {
		d.text(b.x+boxWidth-10, y, "small soft end", human(g.Total/uint64(g.Count))+" each")
	}
	d.stack(b.x+10, y+6, boxWidth-20, g)
}

// stack draws what the time of a group was spent on.
func (d *drawing) stack(x, y, width float64, g *MapNode) {
	parts := g.parts()
	if g.Total == 0 {
		return
	}
	at := x
	for _, p := range parts {
		w := width * share(p.ps, g.Total)
		if w < 0.5 || at+w > x+width+0.5 {
			continue
		}
		d.rect(at, y, w, 6, 0, p.class, p.words+": "+human(p.ps))
		at += w
	}
}

type part struct {
	class, words string
	ps           uint64
}

// parts divides a group's time: what it called, its stages by phase, and the rest.
func (g *MapNode) parts() (out []part) {
	sums := map[phase]uint64{}
	called, all := uint64(0), uint64(0)
	if g.Kind == "program" {
		for _, c := range g.Children {
			for _, p := range c.parts() {
				out = merge(out, p)
			}
		}
		return out
	}
	for _, n := range g.nodes {
		for _, c := range n.Children {
			all += c.Took()
			switch c.Kind {
			case KindStatement:
				called += c.Took()
			case KindStage:
				rows := uint64(0)
				for _, w := range c.Children {
					sums[w.phase()] += w.Took()
					rows += w.Took()
				}
				sums[phaseOf(c.Name)] += c.Took() - min(rows, c.Took())
			default:
				sums[c.phase()] += c.Took()
			}
		}
	}
	if called > 0 {
		out = append(out, part{"instruction", "stored programs", called})
	}
	for _, p := range []phase{phaseOpen, phasePlan, phaseExecute, phaseRows, phaseSort, phaseTemporary, phaseLocks, phaseFiles, phaseCommit, phaseClient, phaseLatches, phaseSleep} {
		if sums[p] > 0 {
			out = append(out, part{classes[p], string(p), sums[p]})
		}
	}
	if g.Total > all {
		out = append(out, part{"other", "own", g.Total - all})
	}
	return out
}

func merge(list []part, p part) []part {
	for i := range list {
		if list[i].words == p.words {
			list[i].ps += p.ps
			return list
		}
	}
	return append(list, p)
}

// WriteDOT writes the execution map for Graphviz.
func (r *Report) WriteDOT(w io.Writer) error {
	var b strings.Builder
	b.WriteString("digraph trace {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n  edge [arrowsize=0.6];\n")
	id := 0
	var visit func(x *box) int
	visit = func(x *box) int {
		id++
		me := id
		style := ""
		label := strings.Join(x.lines(), "\n")
		switch {
		case x.table != nil && x.table.Unused():
			style = ", style=dashed, color=orange3, fontcolor=orange4"
		case x.table != nil:
			style = ", style=rounded"
		default:
			label += fmt.Sprintf("\n%s× %s, %s", digits.Thousands(x.group.Count), human(x.group.Total), digits.Percent(share(x.group.Total, r.Map.Busy)))
			if x.group.Kind == "program" {
				label = strings.Replace(label, "\n0× ", "\n", 1)
				style = ", penwidth=2"
			}
		}
		fmt.Fprintf(&b, "  n%d [label=%s%s];\n", me, dotQuote(label), style)
		for _, c := range x.to {
			edge := ""
			if c.table != nil && c.table.Unused() {
				edge = " [style=dashed, color=orange3]"
			} else if c.group != nil {
				edge = fmt.Sprintf(" [penwidth=%.1f]", 1+5*min(share(c.group.Total, r.Map.Busy), 1))
			}
			fmt.Fprintf(&b, "  n%d -> n%d%s;\n", me, visit(c), edge)
		}
		return me
	}
	for _, x := range r.boxes() {
		visit(x)
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// dotQuote makes a DOT string; the lines in it are kept.
func dotQuote(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(oneline.Of(l))
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}
