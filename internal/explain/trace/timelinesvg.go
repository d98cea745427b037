package trace

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/rissodb/risso/internal/digits"
)

const (
	pageWidth = 1200.0
	margin    = 20.0
	rowHeight = 19.0
	mostPanel = 8
)

// WriteTimelineSVG draws the time line: the whole trace in one strip, then the costliest statement of each kind, each on its own
// scale, with what happened in it row under row.
func (r *Report) WriteTimelineSVG(w io.Writer) error {
	d := &drawing{}
	title := fmt.Sprintf("Timeline of connection %d", r.Trace.Connection.ID)
	d.text(margin, 32, "big", title)
	d.text(pageWidth-margin, 32, "soft end", r.Trace.Server+", "+r.Trace.Began.UTC().Format("2006-01-02 15:04:05 UTC"))
	y := d.paragraph(margin, 58, "", 165, r.Words)
	y = d.legend(margin, y+4, r.legend())
	y = d.strip(r, y+6)
	for _, p := range r.panels() {
		y = d.panel(r, p, y+14)
	}
	y = d.paragraph(margin, y+24, "small soft", 185, r.Notes)
	return d.write(w, pageWidth, y+6, title)
}

// legend are the colours that this trace needs.
func (r *Report) legend() []legendItem {
	used := map[string]bool{}
	programs := false
	r.Tree.Walk(func(n *Node, _ int) bool {
		programs = programs || n.Program != nil
		if n.Kind != KindStatement {
			used[classes[n.phase()]] = true
		}
		return true
	})
	list := []legendItem{{"statement", "statement"}}
	if programs {
		list = append(list, legendItem{"instruction", "of a stored program"})
	}
	for _, l := range []legendItem{{"open", "open, lock, close tables"}, {"plan", "parse, plan, clean up"}, {"execute", "execute"}, {"rows", "read and write rows"}, {"sort", "sort"}, {"temporary", "temporary tables"},
		{"commit", "commit"}, {"locks", "wait for locks"}, {"files", "files"}, {"sleep", "sleep"}} {
		if used[l.class] {
			list = append(list, l)
		}
	}
	return list
}

// strip draws the whole trace.
func (d *drawing) strip(r *Report, y float64) float64 {
	lo, hi := r.span()
	if hi <= lo {
		return y
	}
	scale := (pageWidth - 2*margin) / float64(hi-lo)
	d.text(margin, y+10, "b", "The whole trace")
	y += 18
	d.rect(margin, y, pageWidth-2*margin, 22, 3, "box", "")
	last := -1.0
	for _, n := range r.Tree.Roots {
		if n.Kind != KindStatement || n.Last <= lo {
			continue
		}
		x := margin + float64(max(n.First, lo)-lo)*scale
		w := max(float64(n.Last-max(n.First, lo))*scale, 0.8)
		if x+w < last+0.3 {
			continue
		}
		last = x + w
		class := "statement"
		if n.sleeps() || n.Before {
			class = "sleep"
		}
		d.rect(x, y+1, w, 20, 1, class, n.tip(r.Trace.Zero))
		if s := fit(n.label(), w-8, 6.7); s != "" {
			on := "sql on"
			if class == "sleep" {
				on = "sql soft"
			}
			d.text(x+4, y+15, on, s)
		}
	}
	y += 22
	for _, e := range r.Tree.Transactions {
		if !e.Timed() || e.stop(hi) <= lo {
			continue
		}
		x := margin + float64(max(e.Start, lo)-lo)*scale
		d.rect(x, y+3, max(float64(e.stop(hi)-max(e.Start, lo))*scale, 0.8), 3, 1, "commit", fmt.Sprintf("transaction, %s, %s", e.State, human(e.stop(hi)-e.Start)))
	}
	return d.ticks(y+8, uint64(hi-lo), 0)
}

// span is the time that the strip shows.
func (r *Report) span() (lo, hi uint64) {
	lo = r.Trace.Zero
	return lo, max(r.Tree.Now, lo)
}

// sleeps reports whether nearly all of a statement was a sleep that it asked for.
func (n *Node) sleeps() bool {
	for _, c := range n.Children {
		if c.Kind == KindStage && phaseOf(c.Name) == phaseSleep && c.Took()*10 > n.Took()*9 {
			return true
		}
	}
	return false
}

// tip is what a pointer over a node shows.
func (n *Node) tip(zero uint64) string {
	s := n.label() + n.remarks() + " · " + human(n.Took())
	if n.Own != n.Took() && n.Own > 0 {
		s += ", own " + human(n.Own)
	}
	if zero != 0 && n.Parent == nil {
		s += " · at " + offset(n.First, zero)
	}
	return s + " · " + n.Name
}

// ticks draws a time axis over the page's width.
func (d *drawing) ticks(y float64, span, from uint64) float64 {
	step := uint64(1)
	for _, s := range []uint64{1, 2, 5} {
		for ; ; s *= 10 {
			if span/s <= 10 {
				break
			}
		}
		if step == 1 || s < step {
			step = s
		}
	}
	scale := (pageWidth - 2*margin) / float64(span)
	for t := uint64(0); t <= span; t += step {
		x := margin + float64(t)*scale
		d.f(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="axis"/>`, x, y, x, y+4)
		class := "small soft mid"
		if t == 0 {
			class = "small soft"
		} else if x > pageWidth-margin-20 {
			class = "small soft end"
		}
		d.text(x, y+16, class, human(from+t))
	}
	return y + 20
}

// panel is one statement to be drawn for all of its kind.
type panel struct {
	node  *Node
	group *MapNode
}

// panels chooses the statement to draw of each kind: the dearest that was seen whole, or else the dearest. They come by time.
func (r *Report) panels() (out []panel) {
	whole := wholes(r.Tree)
	for _, g := range r.Map.Roots {
		if len(out) == mostPanel {
			break
		}
		var best *Node
		for _, n := range g.nodes {
			if len(n.Children) > 0 && (best == nil || whole[n] && !whole[best] || whole[n] == whole[best] && n.Took() > best.Took()) {
				best = n
			}
		}
		if best != nil && !best.sleeps() && !best.Before && best.Name != "statement/com/Quit" {
			out = append(out, panel{best, g})
		}
	}
	slices.SortStableFunc(out, func(a, b panel) int { return cmp.Compare(a.node.First, b.node.First) })
	return out
}

// panel draws one statement.
func (d *drawing) panel(r *Report, p panel, y float64) float64 {
	n := p.node
	head := human(n.Took())
	if p.group.Count > 1 {
		head = fmt.Sprintf("%s; %s such took %s", head, digits.Thousands(p.group.Count), human(p.group.Total))
	}
	d.text(margin, y+10, "sql b", fit(n.label(), 850, 6.7))
	d.text(pageWidth-margin, y+10, "soft small end", head+" · at "+offset(n.First, r.Trace.Zero))
	y += 18
	if n.Took() == 0 {
		return y
	}
	scale := (pageWidth - 2*margin) / float64(n.Took())
	var ends []float64 // how far each row is drawn
	deepest := 0
	n.Walk(func(x *Node, depth int) bool {
		if x.First == 0 {
			return true
		}
		for len(ends) <= depth {
			ends = append(ends, 0)
		}
		left := margin + float64(max(x.First, n.First)-n.First)*scale
		width := float64(x.Last-min(x.Last, max(x.First, n.First))) * scale
		width = min(width, pageWidth-margin-left)
		if width < 0.7 { // what is too small to see is drawn once for all
			width = 0.7
			if left < ends[depth] {
				return true
			}
		}
		ends[depth] = left + width
		deepest = max(deepest, depth)
		class := classes[x.phase()]
		if x.Kind == KindStatement {
			class = "statement"
			if x.Program != nil {
				class = "instruction"
			}
		}
		top := y + float64(depth)*rowHeight
		d.rect(left, top, max(width-0.4, 0.5), rowHeight-2, 1.5, class, x.tip(0))
		if s := fit(x.label(), width-6, 6.4); s != "" {
			on := "small on"
			if x.Kind == KindStatement {
				on = "sql on"
				s = fit(x.label(), width-6, 6.7)
			}
			d.text(left+4, top+13, on, s)
		}
		return true
	})
	y += float64(deepest+1) * rowHeight
	return d.ticks(y+1, n.Took(), 0)
}
