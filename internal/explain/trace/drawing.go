package trace

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/oneline"
)

// drawing writes SVG: no scripts, nothing fetched, light and dark by the viewer's choice. All text passes through esc.
type drawing struct {
	b strings.Builder
}

const drawingStyle = `
:root{--bg:#fff;--ink:#1c2430;--soft:#5d6978;--line:#d5dbe3;--box:#f6f8fa;--statement:#7d9cc0;--instruction:#a893d1;--open:#e0962e;--plan:#a9b4c2;--execute:#6aa56e;
--rows:#3f7f54;--sort:#4b9aa0;--temporary:#2f7c86;--commit:#7c8f3c;--locks:#c4473d;--files:#8b6a4f;--other:#c9d0d9;--sleep:#e1e5ea;--dead:#b45f06;--deadbox:#fdf1e0;--onbar:#0d131a}
@media (prefers-color-scheme:dark){:root{--bg:#12171d;--ink:#e3e8ee;--soft:#98a4b3;--line:#333d49;--box:#1b222b;--statement:#5f82ab;--instruction:#8a74b8;--open:#d08a2a;--plan:#6d7987;--execute:#568c5b;
--rows:#61a877;--sort:#4b9aa0;--temporary:#49a0ab;--commit:#8a9c4a;--locks:#d8645a;--files:#a98663;--other:#4b5663;--sleep:#2a323c;--dead:#f0a94e;--deadbox:#33260f;--onbar:#0b0f14}}
.bg{fill:var(--bg)}text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:var(--ink)}.soft{fill:var(--soft)}.small{font-size:11px}.big{font-size:15px;font-weight:600}
.sql{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:11px}.b{font-weight:600}.end{text-anchor:end}.mid{text-anchor:middle}.on{fill:var(--onbar)}
.axis{stroke:var(--line);stroke-width:1}.box{fill:var(--box);stroke:var(--line)}.program{fill:var(--box);stroke:var(--instruction);stroke-width:1.6}
.deadbox{fill:var(--deadbox);stroke:var(--dead);stroke-dasharray:4 3}.deadink{fill:var(--dead)}.edge{fill:none;stroke:var(--line)}.deadedge{fill:none;stroke:var(--dead);stroke-dasharray:4 3;opacity:.75}
.statement{fill:var(--statement)}.instruction{fill:var(--instruction)}.open{fill:var(--open)}.plan{fill:var(--plan)}.execute{fill:var(--execute)}.rows{fill:var(--rows)}.sort{fill:var(--sort)}
.temporary{fill:var(--temporary)}.commit{fill:var(--commit)}.locks{fill:var(--locks)}.files{fill:var(--files)}.other{fill:var(--other)}.sleep{fill:var(--sleep)}`

// classes are the colours of phases, by class name of the style.
var classes = map[phase]string{
	phaseOpen: "open", phasePlan: "plan", phaseExecute: "execute", phaseRows: "rows", phaseSort: "sort", phaseTemporary: "temporary", phaseCommit: "commit", phaseLocks: "locks",
	phaseSleep: "sleep", phaseFiles: "files", phaseClient: "plan", phaseLatches: "locks", phaseInstructions: "instruction", phaseOther: "other",
}

func (d *drawing) f(format string, a ...any) { fmt.Fprintf(&d.b, format+"\n", a...) }

func (d *drawing) text(x, y float64, class, s string) {
	d.f(`<text x="%.1f" y="%.1f" class="%s">%s</text>`, x, y, class, esc(s))
}

func (d *drawing) rect(x, y, w, h, round float64, class, title string) {
	if title == "" {
		d.f(`<rect x="%.2f" y="%.1f" width="%.2f" height="%.1f" rx="%.1f" class="%s"/>`, x, y, w, h, round, class)
		return
	}
	d.f(`<rect x="%.2f" y="%.1f" width="%.2f" height="%.1f" rx="%.1f" class="%s"><title>%s</title></rect>`, x, y, w, h, round, class, esc(title))
}

// paragraph writes sentences in lines of limited length and returns the y below them.
func (d *drawing) paragraph(x, y float64, class string, width int, sentences []string) float64 {
	for _, s := range sentences {
		line := ""
		for _, word := range strings.Fields(s) {
			if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
				d.text(x, y, class, line)
				y += 17
				line = ""
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
		d.text(x, y, class, line)
		y += 19
	}
	return y
}

// legend writes the colours of those phases that occur, and returns the y below it.
func (d *drawing) legend(x, y float64, list []legendItem) float64 {
	at := x
	for _, l := range list {
		w := 22 + 6.3*float64(utf8.RuneCountInString(l.words))
		if at+w > 1180 {
			at, y = x, y+18
		}
		d.rect(at, y-9, 10, 10, 2, l.class, "")
		d.text(at+15, y, "small soft", l.words)
		at += w + 8
	}
	return y + 20
}

type legendItem struct{ class, words string }

// write puts the drawing into a file of a size.
func (d *drawing) write(w io.Writer, width, height float64, title string) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n<title>%s</title>\n<style>%s</style>\n<rect width=\"100%%\" height=\"100%%\" class=\"bg\"/>\n",
		width, height, width, height, esc(title), drawingStyle)
	out.WriteString(d.b.String())
	out.WriteString("</svg>\n")
	return out.Flush()
}

// esc makes any text harmless in XML: SQL can contain anything.
func esc(s string) string { return html.EscapeString(oneline.Of(s)) }

// fit cuts a text to a width in pixels, at so many pixels a character; "" when nothing sensible fits.
func fit(s string, width, char float64) string {
	n := int(width / char)
	if n < 3 {
		return ""
	}
	return oneline.Cut(oneline.Of(s), n)
}
