package size

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
)

// The tones of boxes.
const (
	toneTable = "table"
	toneIndex = "index"
	toneSpace = "space"
	toneLog   = "log"
	toneRest  = "rest"
)

// Node is a part of the data, and what it consists of. The area of its box is what it takes on disk.
type Node struct {
	Name  string  `json:"name"`
	Tone  string  `json:"tone"`
	Bytes int64   `json:"bytes"`
	Title string  `json:"title"` // all that is known of it, in a line
	Parts []*Node `json:"parts,omitzero"`
}

// Tree is the report as parts of parts: schemas with tables with indexes, and spaces.
func (r *Report) Tree() *Node {
	root := &Node{Name: r.Server, Bytes: r.Total.Allocated, Title: r.Server + ": " + digits.Bytes(r.Total.Allocated)}
	listed := map[string][]*Node{}
	for i := range r.Tables {
		t := &r.Tables[i]
		listed[t.Schema] = append(listed[t.Schema], t.node())
	}
	for _, s := range r.Schemas {
		n := &Node{Name: s.Name, Tone: toneTable, Bytes: s.Allocated, Title: fmt.Sprintf("Schema %s: %s in %s", s.Name, digits.Bytes(s.Allocated), digits.Counted(s.Tables, "table")), Parts: listed[s.Name]}
		rest := s.Allocated
		for _, p := range n.Parts {
			rest -= p.Bytes
		}
		if others := s.Tables - len(n.Parts); others > 0 && rest > 0 {
			n.Parts = append(n.Parts, &Node{Name: digits.Counted(others, "smaller table"), Tone: toneRest, Bytes: rest, Title: fmt.Sprintf("%s of %s: %s", digits.Counted(others, "smaller table"), s.Name, digits.Bytes(rest))})
		}
		root.Parts = append(root.Parts, n)
	}
	if len(r.Spaces) > 0 {
		n := &Node{Name: "logs, undo, system, temporary", Tone: toneSpace}
		for _, s := range r.Spaces {
			tone := toneSpace
			if s.Kind == KindBinlog || s.Kind == KindRelay || s.Kind == KindRedo || s.Kind == KindLog {
				tone = toneLog
			}
			title := s.String() + ", " + digits.Bytes(s.Allocated)
			if s.Free != nil {
				title += ", " + digits.Bytes(*s.Free) + " free inside"
			}
			n.Parts = append(n.Parts, &Node{Name: s.Name, Tone: tone, Bytes: s.Allocated, Title: title})
			n.Bytes += s.Allocated
		}
		n.Title = "What belongs to no single table: " + digits.Bytes(n.Bytes)
		root.Parts = append(root.Parts, n)
	}
	return root
}

// node is a table with its indexes.
func (t *Table) node() *Node {
	title := mysql.TableName{Schema: t.Schema, Name: t.Name}.String() + ": " + digits.Bytes(t.Allocated)
	if t.File != t.Allocated {
		title += " of a file of " + digits.Bytes(t.File)
	}
	if t.Rows != nil {
		title += ", about " + digits.Roughly(*t.Rows, "row")
	}
	if t.Free != nil && *t.Free > 0 {
		title += ", " + digits.Bytes(*t.Free) + " free inside"
	}
	if t.PartitionCount > 0 {
		title += ", " + digits.Counted(t.PartitionCount, "partition")
	}
	n := &Node{Name: t.Name, Tone: toneTable, Bytes: t.Allocated, Title: title}
	sum := int64(0)
	for _, x := range t.Indexes {
		sum += x.Bytes
	}
	free := t.Free != nil && *t.Free > 0 && t.File > 0
	if sum <= 0 || len(t.Indexes) < 2 && !free {
		return n
	}
	// Pages are counted before they are compressed, and now and then only: each index has its share of what the table takes.
	used := t.Allocated
	if free {
		used -= int64(float64(*t.Free) / float64(t.File) * float64(t.Allocated))
	}
	for _, x := range t.Indexes {
		tone := toneIndex
		if x.Name == "PRIMARY" || x.Name == "GEN_CLUST_INDEX" {
			tone = toneTable
		}
		n.Parts = append(n.Parts, &Node{Name: x.Name, Tone: tone, Bytes: int64(float64(used) * float64(x.Bytes) / float64(sum)), Title: fmt.Sprintf("index %s of %s.%s: %s in pages", x.Name, t.Schema, t.Name, digits.Bytes(x.Bytes))})
	}
	if used < t.Allocated {
		n.Parts = append(n.Parts, &Node{Name: "free", Tone: toneRest, Bytes: t.Allocated - used, Title: fmt.Sprintf("free in %s.%s: %s of the file", t.Schema, t.Name, digits.Bytes(*t.Free))})
	}
	return n
}

// The size of the drawing in its own units, and of what is in it.
const (
	DrawWidth  = 1200.0
	DrawHeight = 640.0
	headHeight = 17.0
	charWidth  = 6.6
	leastBox   = 3.0  // smaller ones are left out
	leastParts = 46.0 // of a side, from where on a box shows its parts
)

// Placed is a box of the drawing.
type Placed struct {
	Box
	Name  string `json:"name"`
	Title string `json:"title"`
	Tone  string `json:"tone"`
	Depth int    `json:"depth"` // 0: a schema; 1: its tables; 2: their indexes
	Bytes int64  `json:"bytes"`
}

// Boxes are the parts of a tree as boxes in boxes, those outside before those inside, in a drawing of DrawWidth by DrawHeight. Those too
// small to be seen are left out.
func (n *Node) Boxes() []Placed { return n.inside(nil, Box{0, 0, DrawWidth, DrawHeight}, 0) }

// inside places the parts of a box.
func (n *Node) inside(out []Placed, in Box, depth int) []Placed {
	parts := largestFirst(n.Parts)
	weights := make([]float64, len(parts))
	for i, p := range parts {
		weights[i] = float64(p.Bytes)
	}
	for i, x := range Squarify(weights, in) {
		if x.W < leastBox || x.H < leastBox {
			continue
		}
		p := parts[i]
		out = append(out, Placed{x, oneline.Of(p.Name), oneline.Of(p.Title), p.Tone, depth, p.Bytes})
		if len(p.Parts) > 0 && x.W >= leastParts && x.H >= leastParts {
			out = p.inside(out, Box{x.X + 2, x.Y + headHeight, x.W - 4, x.H - headHeight - 2}, depth+1)
		}
	}
	return out
}

// SVG draws a tree of parts. Each box has its title, and can be reached by keyboard.
func (n *Node) SVG() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="treemap" viewBox="0 0 %s %s" role="group" aria-label="%s">`, px(DrawWidth), px(DrawHeight), html.EscapeString("Treemap of "+oneline.Of(n.Title)))
	for _, x := range n.Boxes() {
		fmt.Fprintf(&b, `<g tabindex="0" role="img" aria-label="%s"><title>%[1]s</title><rect class="%s d%d" x="%s" y="%s" width="%s" height="%s"/>`,
			html.EscapeString(x.Title), x.Tone, x.Depth, px(x.X+0.5), px(x.Y+0.5), px(x.W-1), px(x.H-1))
		if label := x.Label(); label != "" {
			fmt.Fprintf(&b, `<text class="d%d" x="%s" y="%s">%s</text>`, x.Depth, px(x.X+5), px(x.Y+12.5), html.EscapeString(label))
		}
		b.WriteString("</g>")
	}
	b.WriteString("</svg>")
	return b.String()
}

// Label is what is written into the box: its name, and its size if there is room; "" if there is none.
func (x Placed) Label() string {
	room := int((x.W - 8) / charWidth)
	if room < 4 || x.H < headHeight {
		return ""
	}
	if size := digits.Bytes(x.Bytes); len([]rune(x.Name))+len(size)+1 <= room {
		return x.Name + " " + size
	}
	return oneline.Cut(x.Name, room)
}

// largestFirst are the parts in the order in which Squarify wants them.
func largestFirst(parts []*Node) []*Node {
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b *Node) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return parts
}

// px is a coordinate.
func px(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
