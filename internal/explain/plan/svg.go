package plan

import (
	"fmt"
	"html"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/oneline"
)

// Sizes of the drawing, in pixels.
const (
	svgMargin  = 24.0
	svgGapX    = 22.0
	svgGapY    = 40.0
	svgPad     = 12.0
	svgLine    = 17.0
	svgMinBox  = 150.0
	svgMaxBox  = 380.0
	svgMinPage = 760.0
	svgTitle   = 8.0 // mean width of a character of the first line, bold 13 px
	svgSmall   = 6.4 // of the others, 12 px
	svgLabel   = 36  // characters of the first line that surely fit
	svgEdgeMin = 1.5
	svgEdgeMax = 16.0
)

// svgStyle colours the drawing by CSS alone, light and dark; each rule is for the drawing only, so that it can be put into a page.
const (
	svgLight = `.rp .bg{fill:#fff}.rp .box{fill:#f7f9fb;stroke:#c3ccd6}.rp .t{fill:#18212d}.rp .d{fill:#566273}.rp .edge{stroke:#a9bacb;fill:none}.rp .track{fill:#e3e9ef}.rp .bar{fill:#4a78b5}
.rp .bad{fill:#c22f2f}.rp .costly{fill:#c27c0e}.rp .note{fill:#7d8b9b}.rp .sql{fill:#24507f}.rp .num{fill:#fff}
.rp text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}.rp .t1{font-weight:600;font-size:13px}.rp .h{font-weight:600;font-size:15px}.rp .n{font-size:10px;font-weight:600}.rp .m{font-family:ui-monospace,"DejaVu Sans Mono",Menlo,monospace;font-size:11.5px}`
	svgDark = `.rp .bg{fill:#10151c}.rp .box{fill:#1a222c;stroke:#3a4756}.rp .t{fill:#e6ebf1}.rp .d{fill:#9aa8b8}.rp .edge{stroke:#48596b}.rp .track{fill:#2b3642}.rp .bar{fill:#6b9bd8}.rp .bad{fill:#e05a5a}.rp .costly{fill:#d99a3a}.rp .note{fill:#5d6b7a}.rp .sql{fill:#8fbcf0}`
)

// Themes of a drawing. Without one it follows the reader's system.
const (
	ThemeLight = "light"
	ThemeDark  = "dark"
)

// SVGOptions say how Draw draws.
type SVGOptions struct {
	Theme string // ThemeLight, ThemeDark or "", which follows the reader's system
	Bare  bool   // the tree alone: no title, no sentences
}

func (o SVGOptions) style() string {
	switch o.Theme {
	case ThemeLight:
		return "<style>\n" + svgLight + "\n</style>"
	case ThemeDark:
		return "<style>\n" + svgLight + "\n" + svgDark + "\n</style>"
	}
	return "<style>\n" + svgLight + "\n@media (prefers-color-scheme:dark){" + svgDark + "}\n</style>"
}

// svgBox is a node's place.
type svgBox struct {
	n          *Node
	lines      []string
	x, y, w, h float64 // x is the middle
	span       float64 // width of the box and all below it
	share      float64 // own part of the whole, 0 to 1
	below      float64 // part of the whole in it and below it
	mark       string  // severity of its worst sentence, or ""
	children   []*svgBox
}

type svgDrawing struct {
	b        strings.Builder
	analyzed bool
	sum      float64
	marks    map[int]string
	bottom   float64
}

// SVG draws the tree with boxes and edges: a box says what a node does, its bar and the width of its edge how much
// of the plan's cost (of its time, when it was measured) is in it and below it. The sentences are below the tree.
// It is one file without scripts, readable on light and on dark backgrounds.
func SVG(e Explained) string { return Draw(e, SVGOptions{}) }

// Draw is SVG with options.
func Draw(e Explained, o SVGOptions) string {
	d := &svgDrawing{analyzed: e.Plan.Analyzed, marks: map[int]string{}}
	for _, s := range e.Sentences {
		if _, ok := d.marks[s.Node]; !ok {
			d.marks[s.Node] = s.Severity // they are sorted, worst first
		}
	}
	t := &teller{plan: e.Plan}
	e.Plan.Root.Walk(func(n, _ *Node, _ int) { d.sum += t.weight(n) })
	root := d.box(t, e.Plan.Root)
	title := "plan " + e.ID + ", " + e.Plan.Format.Words()
	if e.Server != "" {
		title += ", " + e.Server
	}
	width, top, head := math.Max(svgMinPage, root.span+2*svgMargin), svgMargin+44, ""
	if o.Bare {
		width, top = root.span+2*svgMargin, svgMargin
	} else {
		head = fmt.Sprintf(`<text class="t h" x="%.0f" y="%.0f">%s</text>`+"\n", svgMargin, svgMargin+8, escape(title))
	}
	d.place(root, (width-root.span)/2, top)
	d.edges(root)
	d.boxes(root)
	if !o.Bare {
		d.below(e, width)
	}
	height := d.bottom + svgMargin
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" class="rp" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-label="%s">
%s
<rect class="bg" width="100%%" height="100%%"/>
%s%s</svg>
`, width, height, width, height, escape(title), o.style(), head, d.b.String())
}

// escape makes text fit for XML: control characters, which XML forbids, become blanks.
func escape(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	return html.EscapeString(s)
}

// barred reports whether a box has a bar: it does when the node has a figure of its own.
func (d *svgDrawing) barred(n *Node) bool {
	if d.analyzed {
		return d.sum > 0 && n.OwnTime.Known()
	}
	return d.sum > 0 && n.OwnCost.Known()
}

// box sizes a node and all below it.
func (d *svgDrawing) box(t *teller, n *Node) *svgBox {
	b := &svgBox{n: n, mark: d.marks[n.ID], lines: svgLines(n, d.analyzed)}
	if d.sum > 0 {
		b.share = t.weight(n) / d.sum
	}
	b.below = b.share
	b.w = svgMinBox
	for i, l := range b.lines {
		per := svgSmall
		if i == 0 {
			per = svgTitle + 0.3
		}
		b.w = math.Max(b.w, float64(utf8.RuneCountInString(l))*per+2*svgPad+26)
	}
	b.w = math.Min(b.w, svgMaxBox)
	b.h = float64(len(b.lines))*svgLine + 2*svgPad - 4
	if d.barred(n) {
		b.h += 10
	}
	inner := -svgGapX
	for _, c := range n.Children {
		cb := d.box(t, c)
		b.children = append(b.children, cb)
		b.below += cb.below
		inner += cb.span + svgGapX
	}
	b.span = math.Max(b.w, inner)
	return b
}

// svgLines are the lines of a box: what, where, rows, cost.
func svgLines(n *Node, analyzed bool) []string {
	lines := []string{n.Label()}
	if short, ok := strings.CutSuffix(lines[0], ", "+n.Message); ok && n.Message != "" && utf8.RuneCountInString(lines[0]) > svgLabel {
		lines = []string{short, n.Message}
	}
	if c := both(n.Condition, n.IndexCondition); c != "" {
		lines = append(lines, "where "+pretty(c))
	}
	rows := ""
	switch {
	case analyzed && n.ActualRows.Known() && n.Rows.Known():
		rows = fmt.Sprintf("%s, expected %s", amount(float64(n.ActualRows), "row", "rows"), n.Rows.count())
	case n.ActualRows.Known():
		rows = amount(float64(n.ActualRows), "row", "rows")
	case n.Rows.Known():
		rows = "about " + amount(float64(n.Rows), "row", "rows")
	}
	if runs := n.runsKnown(); rows != "" && runs > 1 {
		rows += fmt.Sprintf(", × %s", digits.Count(runs))
	}
	if rows != "" {
		lines = append(lines, rows)
	}
	switch {
	case analyzed && n.OwnTime.Known():
		lines = append(lines, "own time "+digits.Seconds(float64(n.OwnTime)/1000))
	case n.OwnCost.Known():
		lines = append(lines, "own cost "+n.OwnCost.count())
	}
	return lines
}

// place assigns each box its coordinates: children side by side under their parent.
func (d *svgDrawing) place(b *svgBox, left, y float64) {
	b.x, b.y = left+b.span/2, y
	d.bottom = math.Max(d.bottom, y+b.h)
	inner := -svgGapX
	for _, c := range b.children {
		inner += c.span + svgGapX
	}
	at := left + (b.span-inner)/2
	for _, c := range b.children {
		d.place(c, at, y+b.h+svgGapY)
		at += c.span + svgGapX
	}
}

func (d *svgDrawing) edges(b *svgBox) {
	for _, c := range b.children {
		wide := svgEdgeMin + (svgEdgeMax-svgEdgeMin)*math.Min(1, c.below)
		y1, y2 := c.y, b.y+b.h
		dash := ""
		if c.n.Kind == KindSubquery || c.n.Kind == KindCache {
			dash = ` stroke-dasharray="6 4"`
		}
		fmt.Fprintf(&d.b, `<path class="edge" stroke-width="%.1f"%s d="M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f"/>`+"\n", wide, dash, c.x, y1, c.x, y1-svgGapY/2, b.x, y2+svgGapY/2, b.x, y2)
		d.edges(c)
	}
}

func (d *svgDrawing) boxes(b *svgBox) {
	x := b.x - b.w/2
	fmt.Fprintf(&d.b, `<g><title>%s</title><rect class="box" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="7"/>`, escape(svgTip(b.n)), x, b.y, b.w, b.h)
	if b.mark == Bad || b.mark == Costly {
		fmt.Fprintf(&d.b, `<path class="%s" d="M%.1f %.1fv%.1fa7 7 0 0 1 0 0h-1a6 6 0 0 1 -4 -6v%.1fa6 6 0 0 1 4 -6z"/>`, b.mark, x+5, b.y, b.h, -(b.h - 12))
	}
	numClass := b.mark
	if numClass == "" {
		numClass = Note
	}
	label := digits.Count(float64(b.n.ID))
	numW := 10 + 6*float64(len(label))
	fmt.Fprintf(&d.b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="15" rx="7.5"/><text class="num n" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`,
		numClass, x+b.w-numW-6, b.y+6, numW, x+b.w-numW/2-6, b.y+17, label)
	for i, l := range b.lines {
		class, per, room := "d", svgSmall, b.w-2*svgPad
		if i == 0 {
			class, per, room = "t t1", svgTitle, b.w-2*svgPad-numW+4
		}
		fmt.Fprintf(&d.b, `<text class="%s" x="%.1f" y="%.1f">%s</text>`, class, x+svgPad, b.y+svgPad+svgLine*float64(i)+9, escape(oneline.Cut(l, int(room/per))))
	}
	if d.barred(b.n) {
		y, full := b.y+b.h-12, b.w-2*svgPad-38
		fmt.Fprintf(&d.b, `<rect class="track" x="%.1f" y="%.1f" width="%.1f" height="5" rx="2.5"/><rect class="bar" x="%.1f" y="%.1f" width="%.1f" height="5" rx="2.5"/><text class="d n" x="%.1f" y="%.1f" text-anchor="end">%.0f %%</text>`,
			x+svgPad, y, full, x+svgPad, y, full*math.Min(1, b.share), x+b.w-svgPad, y+6, 100*b.share)
	}
	d.b.WriteString("</g>\n")
	for _, c := range b.children {
		d.boxes(c)
	}
}

// svgTip is the whole text of a box, as its tooltip.
func svgTip(n *Node) string {
	parts := []string{"#" + digits.Count(float64(n.ID)) + " " + n.Label()}
	for _, p := range []struct{ word, text string }{{"server's words: ", n.Title}, {"condition: ", n.Condition}, {"index condition: ", n.IndexCondition},
		{"possible keys: ", strings.Join(n.PossibleKeys, ", ")}, {"used columns: ", strings.Join(n.UsedColumns, ", ")}} {
		if p.text != "" {
			parts = append(parts, p.word+oneline.Of(p.text))
		}
	}
	for _, m := range n.Extra {
		parts = append(parts, m.Name+": "+string(m.Value))
	}
	return strings.Join(parts, " · ")
}

// below writes what the bars mean, the sentences and the advice under the tree.
func (d *svgDrawing) below(e Explained, width float64) {
	y := d.bottom + 34
	chars := int((width - 2*svgMargin - 40) / svgSmall)
	if d.sum > 0 {
		what := "expected cost"
		if d.analyzed {
			what = "measured time"
		}
		fmt.Fprintf(&d.b, `<text class="d" x="%.0f" y="%.1f">Bar: the step's own part of the %s. Width of a line: the part in the step and below it.</text>`+"\n", svgMargin, y, what)
		y += 26
	}
	for _, s := range e.Sentences {
		if s.Severity == Note && len(e.Sentences) > 12 {
			continue
		}
		label := digits.Count(float64(s.Node))
		w := 10 + 6*float64(len(label))
		fmt.Fprintf(&d.b, `<rect class="%s" x="%.0f" y="%.1f" width="%.1f" height="15" rx="7.5"/><text class="num n" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, s.Severity, svgMargin, y-11, w, svgMargin+w/2, y, label)
		for _, l := range wrapped("", s.Text, chars) {
			fmt.Fprintf(&d.b, `<text class="t" x="%.0f" y="%.1f">%s</text>`+"\n", svgMargin+34, y, escape(l))
			y += svgLine
		}
		y += 6
	}
	for _, a := range e.Advice {
		y += 8
		for _, text := range a.Texts {
			for _, l := range wrapped("", text, chars+5) {
				fmt.Fprintf(&d.b, `<text class="d" x="%.0f" y="%.1f">%s</text>`+"\n", svgMargin, y, escape(l))
				y += svgLine
			}
		}
		if a.Statement != "" {
			for _, l := range wrapped("", a.Statement+";", int(float64(chars)*svgSmall/7)) {
				fmt.Fprintf(&d.b, `<text class="sql m" x="%.0f" y="%.1f">%s</text>`+"\n", svgMargin, y+2, escape(l))
				y += svgLine
			}
		}
	}
	d.bottom = y - svgLine + 6
}

// Dot is the tree in the language of Graphviz.
func Dot(p *Plan) string {
	var b strings.Builder
	b.WriteString("digraph plan {\n  rankdir=BT\n  node [shape=box, style=rounded, fontname=\"sans-serif\"]\n")
	p.Root.Walk(func(n, parent *Node, _ int) {
		lines := svgLines(n, p.Analyzed)
		for i := range lines {
			lines[i] = dotEscape(oneline.Cut(lines[i], 60))
		}
		fmt.Fprintf(&b, "  n%d [label=\"%s\"]\n", n.ID, strings.Join(lines, `\n`))
		if parent != nil {
			style := ""
			if n.Kind == KindSubquery || n.Kind == KindCache {
				style = " [style=dashed]"
			}
			fmt.Fprintf(&b, "  n%d -> n%d%s\n", n.ID, parent.ID, style)
		}
	})
	b.WriteString("}\n")
	return b.String()
}

func dotEscape(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)
}
