package incident

import (
	"fmt"
	"html"
	"strings"

	"github.com/rissodb/risso/internal/oneline"
)

// Measures of the drawing, in pixels. A character of the text is some seven wide.
const (
	svgWidth, svgLine, svgPad = 760, 18, 12
	svgChars                  = 96
)

// drawSVG draws who waits for whom: a box for each transaction, and arrows from each to the one whose lock it wants.
func (d *Deadlock) drawSVG() string {
	if len(d.Transactions) == 0 {
		return ""
	}
	var b strings.Builder
	y := 4
	mid := make([]int, len(d.Transactions))
	for i, t := range d.Transactions {
		lines := []string{fmt.Sprintf("%s connection %d%s, transaction %s", t.Name, t.Session, at(t.User, t.Host), t.Trx), oneline.Of(t.Statement)}
		for _, h := range t.Holds {
			lines = append(lines, "holds "+h)
		}
		for _, w := range t.Waits {
			lines = append(lines, "waits for "+w)
		}
		colour := "#2b6cb0"
		if t.Victim {
			lines[0] += ": rolled back"
			colour = "#c53030"
		}
		height := len(lines)*svgLine + svgPad
		fmt.Fprintf(&b, `<rect x="2" y="%d" width="%d" height="%d" rx="6" fill="none" stroke="%s" stroke-width="2"/>`, y, svgWidth-80, height, colour)
		for n, l := range lines {
			weight := ""
			if n == 0 {
				weight = ` font-weight="bold"`
			}
			fmt.Fprintf(&b, `<text x="%d" y="%d"%s>%s</text>`, svgPad, y+svgLine*(n+1)-2, weight, html.EscapeString(oneline.Cut(l, svgChars)))
		}
		mid[i] = y + height/2
		y += height + 16
	}
	if n := len(d.Transactions); n == 2 { // of more, the report does not say who waits for whom
		x := svgWidth - 78
		fmt.Fprintf(&b, `<path d="M%d %d C%d %d %d %d %d %d" class="arrow"/><path d="M%d %d C%d %d %d %d %d %d" class="arrow"/>`,
			x, mid[0]-6, x+70, mid[0]-6, x+70, mid[1]+6, x+6, mid[1]+6, x, mid[1]-8, x+36, mid[1]-8, x+36, mid[0]+8, x+6, mid[0]+8)
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="who waits for whom in the deadlock" font-family="ui-monospace, monospace" font-size="12" fill="currentColor">`+
		`<defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>`+
		`<style>.arrow{fill:none;stroke:currentColor;stroke-width:1.5;marker-end:url(#tip)}</style>%s</svg>`, svgWidth, y, b.String())
}
