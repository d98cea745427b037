package picture

import (
	"fmt"
	"html"
	"strings"

	"github.com/rissodb/risso/internal/oneline"
)

// The drawing is coloured by CSS alone, light and dark. What colours say, shapes, dashes and words say too.
const (
	svgLight = `.rt .bg{fill:#fff}.rt .box{fill:#f7f9fb;stroke:#aab4be}.rt .t{fill:#18212d}.rt .d{fill:#566273}.rt .edge{stroke:#8b99a8;fill:none;stroke-width:1.5}.rt .tip{fill:#8b99a8}
.rt .around{fill:none;stroke:#8b99a8;stroke-dasharray:2 3}.rt .unseen .box{stroke-dasharray:5 4;fill:none}.rt .warning .box{stroke:#a35f00;stroke-width:2}.rt .critical .box{stroke:#c22a2a;stroke-width:2}
.rt .edge.warning{stroke:#a35f00}.rt .edge.critical{stroke:#c22a2a}.rt .edge.dashed{stroke-dasharray:5 4}.rt .mark.ok,.rt .mark.unknown{fill:#7d858d}.rt .mark.warning{fill:#a35f00}.rt .mark.critical{fill:#c22a2a}
.rt text{font:11.5px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}.rt .h{font-weight:600;font-size:12.5px}`
	svgDark = `.rt .bg{fill:#101316}.rt .box{fill:#181c20;stroke:#414a52}.rt .t{fill:#dde2e6}.rt .d{fill:#9aa3ab}.rt .edge,.rt .around{stroke:#7c8a98}.rt .warning .box{stroke:#e5a33c}.rt .critical .box{stroke:#f2685f}
.rt .edge.warning{stroke:#e5a33c}.rt .edge.critical{stroke:#f2685f}.rt .mark.warning{fill:#e5a33c}.rt .mark.critical{fill:#f2685f}`
)

// marks are the shapes of the states, 12 pixels wide.
var marks = map[string]string{
	OK:       `M6 3a3 3 0 1 1 0 6a3 3 0 1 1 0-6z`,
	Warning:  `M6 1.2 11.4 11H.6z`,
	Critical: `M6 .5 11.5 6 6 11.5.5 6z`,
	Unknown:  `M6 2a4 4 0 1 1 0 8a4 4 0 1 1 0-8zM6 4a2 2 0 1 0 0 4a2 2 0 1 0 0-4z`,
}

// Lines are what is written into a server's place: its name, then as much as fits.
func (n *Node) Lines() []string {
	lines := []string{n.Name}
	if n.H >= 40 && len(n.Words) > 0 {
		lines = append(lines, n.Words[0])
	}
	if n.H >= 58 && len(n.Words) > 1 {
		lines = append(lines, strings.Join(n.Words[1:], ", "))
	}
	return lines
}

// SVG draws the picture as one file without scripts, readable on light and on dark backgrounds.
func (p *Picture) SVG() string {
	const head = 34.0
	var b strings.Builder
	width := max(p.Width, 420)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" class="rt" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-label="%s">
<style>
%s
@media (prefers-color-scheme:dark){%s}
</style>
<defs><marker id="rt-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>
<rect class="bg" width="100%%" height="100%%"/>
<text class="t h" x="%.0f" y="24">%s</text>
<g transform="translate(0 %.0f)">
`, width, p.Height+head, width, p.Height+head, text("replication topology: "+p.Words, 1000), svgLight, svgDark, margin, text(p.Words, width-2*margin), head)
	for _, x := range p.Boxes {
		fmt.Fprintf(&b, `<rect class="around" x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="8"/><text class="d" x="%.0f" y="%.0f">%s</text>`+"\n", x.X, x.Y, x.W, x.H, x.X+boxPad, x.Y+17, text(x.Words, x.W-2*boxPad))
	}
	for _, state := range []string{Unknown, OK, Warning, Critical} { // the worst are drawn over the others
		for i := range p.Links {
			if l := &p.Links[i]; l.State == state {
				p.drawLink(&b, l)
			}
		}
	}
	for i := range p.Nodes {
		p.Nodes[i].draw(&b)
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

func (p *Picture) drawLink(b *strings.Builder, l *Link) {
	class := "edge " + l.State
	if l.Kind != Runs && l.Kind != Late {
		class += " dashed"
	}
	fmt.Fprintf(b, `<path class="%s" d="%s" marker-end="url(#rt-tip)"><title>%s</title></path>`+"\n", class, l.Path, text(p.Nodes[l.Source].Name+" → "+p.Nodes[l.Replica].Name+": "+l.Words, 2000))
}

func (n *Node) draw(b *strings.Builder) {
	class := n.State
	if !n.Seen {
		class += " unseen"
	}
	fmt.Fprintf(b, `<g class="%s" transform="translate(%.0f %.0f)"><title>%s</title><rect class="box" width="%.0f" height="%.0f" rx="5"/>`, class, n.X, n.Y, text(n.Name+": "+strings.Join(n.Words, ", "), 4000), n.W, n.H)
	fmt.Fprintf(b, `<path class="mark %s" fill-rule="evenodd" transform="translate(8 %.0f)" d="%s"/>`, n.State, min(n.H/2-6, 6), marks[n.State])
	for i, line := range n.Lines() {
		x, y, kind, room := 8.0, 17+float64(i)*17, "d", n.W-14
		if i == 0 {
			x, kind, room = 25, "t h", (n.W-30)*0.92
		}
		fmt.Fprintf(b, `<text class="%s" x="%.0f" y="%.0f">%s</text>`, kind, x, y, text(line, room))
	}
	b.WriteString("</g>\n")
}

// text is a text that fits into a width, escaped.
func text(s string, room float64) string {
	const char = 6.2 // mean width
	return html.EscapeString(oneline.Cut(oneline.Of(s), max(int(room/char), 4)))
}
