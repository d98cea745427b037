package plan

import (
	"strings"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/oneline"
)

// TextOptions say how Text draws.
type TextOptions struct {
	Width      int  // columns of the terminal; 0: as wide as it gets
	Conditions bool // with the conditions under the nodes
}

// Text draws the tree for a terminal, a line a node, with its figures in columns. Lines have no ends.
func Text(p *Plan, o TextOptions) []string {
	d := textDrawing{o: o}
	d.columns(p)
	d.node(p.Root, "", "")
	return d.lines()
}

type textRow struct {
	id, tree, note string // note: a condition, that has no figures
	cells          []string
}

type textColumn struct {
	head string
	get  func(n *Node) string
}

type textDrawing struct {
	o    TextOptions
	cols []textColumn
	rows []textRow
}

// columns takes those that some node has a figure for.
func (d *textDrawing) columns(p *Plan) {
	all := []textColumn{
		{"own cost", func(n *Node) string { return n.OwnCost.count() }},
		{"cost", func(n *Node) string { return n.Cost.count() }},
		{"rows", func(n *Node) string { return n.Rows.count() }},
		{"filtered", func(n *Node) string {
			if !n.Filtered.Known() || n.Filtered == 100 {
				return ""
			}
			return digits.Percent(float64(n.Filtered) / 100)
		}},
		{"runs", func(n *Node) string {
			if n.Executions <= 1 {
				return ""
			}
			return n.Executions.count()
		}},
		{"actual rows", func(n *Node) string { return n.ActualRows.count() }},
		{"loops", func(n *Node) string { return n.Loops.count() }},
		{"own time", func(n *Node) string {
			if !n.OwnTime.Known() {
				return ""
			}
			return digits.Seconds(float64(n.OwnTime) / 1000)
		}},
	}
	for _, c := range all {
		told := false
		p.Root.Walk(func(n, _ *Node, _ int) { told = told || c.get(n) != "" })
		if told && !(c.head == "runs" && p.Analyzed) {
			d.cols = append(d.cols, c)
		}
	}
}

// node draws one node: head is the prefix of its line, rest that of the lines under it.
func (d *textDrawing) node(n *Node, head, rest string) {
	row := textRow{id: digits.Count(float64(n.ID)), tree: head + n.Label()}
	for _, c := range d.cols {
		row.cells = append(row.cells, c.get(n))
	}
	d.rows = append(d.rows, row)
	if d.o.Conditions {
		bar := rest + "  "
		if len(n.Children) > 0 {
			bar = rest + "│ "
		}
		for _, c := range []struct{ word, text string }{{"where ", n.Condition}, {"in the index ", n.IndexCondition}} {
			if c.text != "" {
				d.rows = append(d.rows, textRow{note: bar + "  " + c.word + pretty(c.text)})
			}
		}
	}
	for i, c := range n.Children {
		if i == len(n.Children)-1 {
			d.node(c, rest+"└─ ", rest+"   ")
		} else {
			d.node(c, rest+"├─ ", rest+"│  ")
		}
	}
}

// lines aligns the rows: number, figures, tree. The tree comes last so that depth does not push the figures away.
func (d *textDrawing) lines() []string {
	widths := make([]int, len(d.cols))
	idWidth := 1
	for i, c := range d.cols {
		widths[i] = utf8.RuneCountInString(c.head)
	}
	for _, r := range d.rows {
		idWidth = max(idWidth, len(r.id))
		for i, c := range r.cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	out := make([]string, 0, len(d.rows)+1)
	head := make([]string, len(d.cols))
	for i, c := range d.cols {
		head[i] = c.head
	}
	for _, r := range append([]textRow{{id: "#", cells: head, tree: "step"}}, d.rows...) {
		var b strings.Builder
		b.WriteString(padLeft(r.id, idWidth))
		for i := range d.cols {
			cell := ""
			if i < len(r.cells) {
				cell = r.cells[i]
			}
			b.WriteString("  " + padLeft(cell, widths[i]))
		}
		b.WriteString("  " + r.tree + r.note)
		out = append(out, oneline.Cut(strings.TrimRight(b.String(), " "), d.o.Width))
	}
	return out
}

func padLeft(s string, width int) string {
	if n := width - utf8.RuneCountInString(s); n > 0 {
		return strings.Repeat(" ", n) + s
	}
	return s
}
