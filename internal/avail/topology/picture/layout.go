package picture

import (
	"cmp"
	"fmt"
	"slices"
)

// measures of a drawing, in pixels. The more servers there are, the less is written into each.
type measures struct {
	w, h     float64 // of a server
	gap      float64 // beside it
	row      float64 // between two rows of servers that share a source
	down     float64 // between a source and its replicas
	maxNodes int     // up to how many servers
}

var sizes = []measures{{204, 58, 18, 26, 46, 40}, {158, 40, 14, 20, 38, 120}, {112, 22, 8, 9, 24, 1 << 30}}

const (
	margin = 16.0
	shelf  = 1180.0 // how wide replicas of one source are drawn beside each other, before a further row begins
	gutter = 16.0   // left of several rows, for the line that leads to them
	aside  = 44.0   // right of all, for lines that lead back
	boxPad = 12.0
	boxTop = 26.0 // for its words
)

// item is a server with all that is drawn below it, or a cluster.
type item struct {
	node  int // -1: a cluster, or all
	kids  []*item
	rows  [][]*item
	inner float64 // width of the rows
	w, h  float64
	name  string // of a cluster
}

// layout places a picture.
type layout struct {
	p    *Picture
	m    measures
	done []bool
	tree map[int]bool // links along which the tree grows
	from [][]int      // links by source
}

// place gives all that is drawn its place: replicas below their sources, in rows; members of a cluster in a box; links that close rings as lines that lead back.
func (p *Picture) place() {
	l := &layout{p: p, done: make([]bool, len(p.Nodes)), tree: map[int]bool{}, from: make([][]int, len(p.Nodes))}
	for _, m := range sizes {
		if l.m = m; len(p.Nodes) <= m.maxNodes {
			break
		}
	}
	fed := make([]bool, len(p.Nodes))
	for i, k := range p.Links {
		l.from[k.Source] = append(l.from[k.Source], i)
		fed[k.Replica] = true
	}
	all := &item{node: -1, kids: l.roots(fed)}
	l.measure(all, 2*l.m.gap, l.m.down)
	p.Boxes = []Box{}
	for i := range p.Links {
		p.Links[i].Path, p.Links[i].Back = "", !l.tree[i]
	}
	l.put(all, margin, margin)
	back := 0.0
	for i := range p.Links {
		if k := &p.Links[i]; k.Back {
			k.Path, back = p.curve(k), aside
		}
	}
	p.Width, p.Height = all.w+2*margin+back, all.h+2*margin+back/2
}

// roots are the trees and clusters, those without links last.
func (l *layout) roots(fed []bool) (list []*item) {
	clusters := map[string]*item{}
	var alone []*item
	for i := range l.p.Nodes {
		name := l.p.Nodes[i].Cluster
		if name == "" {
			continue
		}
		c := clusters[name]
		if c == nil {
			c = &item{node: -1, name: name}
			clusters[name] = c
			list = append(list, c)
		}
		l.done[i] = true
		c.kids = append(c.kids, &item{node: i})
	}
	for _, c := range list {
		for _, m := range c.kids {
			l.grow(m)
		}
	}
	for i := range l.p.Nodes {
		switch {
		case l.done[i] || fed[i]:
		case len(l.from[i]) == 0:
			l.done[i] = true
			alone = append(alone, &item{node: i})
		default:
			l.done[i] = true
			root := &item{node: i}
			l.grow(root)
			list = append(list, root)
		}
	}
	rest := make([]int, 0, len(l.p.Nodes)) // rings that nothing else feeds begin with a writable server
	for i := range l.p.Nodes {
		if !l.done[i] {
			rest = append(rest, i)
		}
	}
	slices.SortStableFunc(rest, func(a, b int) int { return cmp.Compare(l.writable(b), l.writable(a)) })
	for _, i := range rest {
		if !l.done[i] {
			l.done[i] = true
			root := &item{node: i}
			l.grow(root)
			list = append(list, root)
		}
	}
	return append(list, alone...)
}

func (l *layout) writable(i int) int {
	if l.p.Nodes[i].Writable {
		return 1
	}
	return 0
}

// grow puts those that replicate from a server below it: those that have replicas themselves come first.
func (l *layout) grow(it *item) {
	for _, k := range l.from[it.node] {
		r := l.p.Links[k].Replica
		if l.done[r] {
			continue
		}
		l.done[r], l.tree[k] = true, true
		kid := &item{node: r}
		it.kids = append(it.kids, kid)
	}
	for _, kid := range it.kids {
		l.grow(kid)
	}
	slices.SortStableFunc(it.kids, func(a, b *item) int { return cmp.Compare(min(len(b.kids), 1), min(len(a.kids), 1)) })
}

// measure puts what is below an item into rows, and finds how large it is.
func (l *layout) measure(it *item, gap, row float64) {
	for _, kid := range it.kids {
		l.measure(kid, l.m.gap, l.m.row)
	}
	width := 0.0
	for _, kid := range it.kids {
		n := len(it.rows) - 1
		if n < 0 || width+gap+kid.w > shelf {
			it.rows = append(it.rows, []*item{kid})
			width = kid.w
		} else {
			it.rows[n] = append(it.rows[n], kid)
			width += gap + kid.w
		}
		it.inner = max(it.inner, width)
	}
	below := 0.0
	for i, r := range it.rows {
		high := 0.0
		for _, kid := range r {
			high = max(high, kid.h)
		}
		if below += high; i > 0 {
			below += row
		}
	}
	it.w, it.h = it.inner, below
	switch {
	case it.node >= 0:
		if len(it.rows) > 1 {
			it.w += gutter
		}
		it.w, it.h = max(it.w, l.m.w), l.m.h
		if below > 0 {
			it.h += l.m.down + below
		}
	case it.name != "":
		it.w, it.h = it.inner+2*boxPad, below+boxTop+boxPad
	}
}

// put places an item with its upper left corner.
func (l *layout) put(it *item, x, y float64) {
	gap, row, top, left := l.m.gap, l.m.row, y, x
	var n *Node
	switch {
	case it.node >= 0:
		n = &l.p.Nodes[it.node]
		n.X, n.Y, n.W, n.H = x+(it.w-l.m.w)/2, y, l.m.w, l.m.h
		top += l.m.h + l.m.down
		left += (it.w - it.inner) / 2
		if len(it.rows) > 1 {
			left = x + it.w - it.inner
		}
	case it.name != "":
		left, top = x+boxPad, y+boxTop
	default:
		gap, row = 2*gap, l.m.down
	}
	for k, r := range it.rows {
		width, high := -gap, 0.0
		for _, kid := range r {
			width, high = width+gap+kid.w, max(high, kid.h)
		}
		at := left
		if n != nil && len(it.rows) == 1 {
			at += (it.inner - width) / 2
		}
		for _, kid := range r {
			l.put(kid, at, top)
			if n != nil {
				l.join(it.node, kid.node, k, left-gutter/2, top-row/2)
			}
			at += kid.w + gap
		}
		top += high + row
	}
	if it.name != "" {
		l.p.box(it)
	}
}

// join draws the line from a source to a replica in its row k: from the second on around the left of those above.
func (l *layout) join(source, replica, k int, side, above float64) {
	s, r := &l.p.Nodes[source], &l.p.Nodes[replica]
	path := fmt.Sprintf("M%.0f %.0fV%.0f", s.X+s.W/2, s.Y+s.H, s.Y+s.H+l.m.down/2)
	if k > 0 {
		path += fmt.Sprintf("H%.0fV%.0f", side, above)
	}
	path += fmt.Sprintf("H%.0fV%.0f", r.X+r.W/2, r.Y)
	for i := range l.p.Links {
		if v := &l.p.Links[i]; v.Source == source && v.Replica == replica && l.tree[i] {
			v.Path = path
		}
	}
}

// curve is the line of a link that is not one of the tree.
func (p *Picture) curve(k *Link) string {
	s, r := &p.Nodes[k.Source], &p.Nodes[k.Replica]
	sx, rx := s.X+s.W/2, r.X+r.W/2
	switch {
	case s.Y+s.H < r.Y: // down
		d := min((r.Y-s.Y-s.H)/2, 60)
		return fmt.Sprintf("M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f", sx, s.Y+s.H, sx, s.Y+s.H+d, rx+r.W/4, r.Y-d, rx+r.W/4, r.Y)
	case s.Y == r.Y && s != r: // beside
		return fmt.Sprintf("M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f", sx, s.Y+s.H, sx, s.Y+s.H+22, rx, r.Y+r.H+22, rx, r.Y+r.H)
	}
	out := max(s.X+s.W, r.X+r.W) + aside // up, or to itself
	return fmt.Sprintf("M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f", s.X+s.W, s.Y+s.H*2/3, out, s.Y+s.H*2/3, out, r.Y+r.H/3, r.X+r.W, r.Y+r.H/3)
}

// box draws the box of a cluster around its members.
func (p *Picture) box(it *item) {
	b := Box{Cluster: it.name, State: Unknown}
	first, seen := &p.Nodes[it.kids[0].node], 0
	x1, y1, x2, y2 := first.X, first.Y, first.X+first.W, first.Y+first.H
	quorum := false
	for _, kid := range it.kids {
		n := &p.Nodes[kid.node]
		x1, y1, x2, y2 = min(x1, n.X), min(y1, n.Y), max(x2, n.X+n.W), max(y2, n.Y+n.H)
		b.State = Worse(b.State, n.State)
		if n.Seen {
			seen++
			quorum = quorum || !n.NoQuorum
		}
	}
	b.X, b.Y, b.W, b.H = x1-boxPad, y1-boxTop, x2-x1+2*boxPad, y2-y1+boxTop+boxPad
	b.Words = fmt.Sprintf("cluster: %d of %d seen", seen, len(it.kids))
	if seen > 0 && !quorum {
		b.Words += ", without quorum"
	}
	p.Boxes = append(p.Boxes, b)
}
