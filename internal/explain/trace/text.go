package trace

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/oneline"
)

// TextOptions say how much of the time line is written.
type TextOptions struct {
	All   bool // every event; else the dearest of each statement
	Width int  // of a line in characters; 0: 120
}

// How many children and statements the text shows when not all are asked for.
const (
	dearestChildren = 8
	dearestRoots    = 30
	leastPercent    = 2 // of its statement's time: what took less is not unfolded
	barWidth        = 24
)

// WriteTimeline writes the tree as an indented time line: when it began, how long it took, where in its statement that was.
func WriteTimeline(w io.Writer, t *Tree, zero uint64, o TextOptions) error {
	if o.Width <= 0 {
		o.Width = 120
	}
	tw := &timeline{w: w, o: o, zero: zero}
	tw.siblings(t.Roots, nil, 0, dearestRoots)
	return tw.err
}

type timeline struct {
	w    io.Writer
	o    TextOptions
	zero uint64
	err  error
}

func (t *timeline) line(format string, a ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintln(t.w, strings.TrimRight(oneline.Cut(fmt.Sprintf(format, a...), t.o.Width), " "))
	}
}

// siblings writes nodes by time; those that took little are folded into a line between the others.
func (t *timeline) siblings(list []*Node, root *Node, depth, most int) {
	show := dearest(list, most)
	if t.o.All {
		show = nil
	}
	for i := 0; i < len(list); {
		if show == nil || show[list[i]] {
			r := root
			if r == nil {
				r = list[i]
			}
			t.node(list[i], r, depth)
			i++
			continue
		}
		j, sum := i, uint64(0)
		for ; j < len(list) && !show[list[j]]; j++ {
			sum += list[j].Took()
		}
		t.line("%11s %10s  %*s  %s… %d more: %s", "", human(sum), barWidth, "", indent(depth), j-i, namesOf(list[i:j]))
		i = j
	}
}

// dearest chooses what to show; nil: everything.
func dearest(list []*Node, most int) map[*Node]bool {
	if len(list) <= most+1 {
		return nil
	}
	by := slices.Clone(list)
	slices.SortStableFunc(by, func(a, b *Node) int {
		switch {
		case a.Took() > b.Took():
			return -1
		case a.Took() < b.Took():
			return 1
		}
		return 0
	})
	show := make(map[*Node]bool, most)
	for _, n := range by[:most] {
		show[n] = true
	}
	return show
}

// namesOf lists the different names of nodes, the most frequent first.
func namesOf(list []*Node) string {
	count := map[string]int{}
	var names []string
	for _, n := range list {
		s := n.Short()
		if count[s] == 0 {
			names = append(names, s)
		}
		count[s]++
	}
	slices.SortStableFunc(names, func(a, b string) int { return count[b] - count[a] })
	for i, s := range names {
		if count[s] > 1 {
			names[i] = fmt.Sprintf("%s ×%d", s, count[s])
		}
	}
	if len(names) > 4 {
		names = append(names[:4], "…")
	}
	return strings.Join(names, ", ")
}

func (t *timeline) node(n, root *Node, depth int) {
	took, when := human(n.Took()), offset(n.First, t.zero)
	if n != root { // within a statement its beginning is zero
		when = "+" + human(n.First-min(n.First, root.First))
	}
	if !n.Timed() && !n.Lost {
		took, when = "not timed", ""
	}
	t.line("%11s %10s  %s  %s%s", when, took, bar(n, root), indent(depth), oneline.Of(n.label()+n.remarks()))
	if !t.o.All && n != root && n.Took()*100 < root.Took()*leastPercent {
		return
	}
	t.siblings(n.Children, root, depth+1, max(dearestChildren-2*depth, 3))
}

func indent(depth int) string { return strings.Repeat("  ", depth) }

// bar shows where in the root's span a node is.
func bar(n, root *Node) string {
	cells := []rune(strings.Repeat("·", barWidth))
	if root.Idle() {
		return strings.Repeat(" ", barWidth)
	}
	span := float64(root.Took())
	if span == 0 {
		return string(cells)
	}
	at := func(ps uint64) float64 { return float64(ps-min(ps, root.First)) / span * barWidth }
	lo, hi := at(n.First), at(n.Last)
	first := min(int(lo), barWidth-1)
	if hi-lo < 0.5 {
		cells[first] = '▏'
		return string(cells)
	}
	for i := first; i < min(max(int(hi+0.5), first+1), barWidth); i++ {
		cells[i] = '█'
	}
	return string(cells)
}

// label is the name of a node: its SQL, or its instrument.
func (n *Node) label() string {
	switch {
	case n.Lost:
		return "(a statement that was not seen; what it did:)"
	case n.Kind == KindStatement && n.Program != nil:
		s := n.Short()
		if n.SQL != "" {
			s = n.SQL
		}
		return n.Program.Name + ": " + s
	case n.Kind == KindStatement && n.SQL != "":
		return n.SQL
	case n.Idle():
		return "idle: waits for its client"
	case n.Kind == KindWait && n.Object != nil:
		s := n.Short() + " " + n.Operation + " " + n.objectName()
		if n.Object.Index != "" {
			s += " (" + n.Object.Index + ")"
		}
		return s
	case n.Kind == KindWait && n.Operation != "":
		return n.Short() + " " + n.Operation
	}
	return n.Short()
}

func (e *Event) objectName() string {
	if t := e.Object.Table(); t != "" {
		return t
	}
	name := e.Object.Name
	if e.Object.Type == "FILE" {
		parts := strings.Split(name, "/")
		name = strings.Join(parts[max(0, len(parts)-2):], "/")
	} else if e.Object.Schema != "" {
		name = e.Object.Schema + "." + name
	}
	return name
}

// remarks are the figures of a statement that matter, in brackets.
func (n *Node) remarks() string {
	var out []string
	add := func(v int64, one, many string) {
		switch {
		case v == 1:
			out = append(out, "1 "+one)
		case v > 1:
			out = append(out, fmt.Sprintf("%d %s", v, many))
		}
	}
	if n.Kind == KindStatement && !n.Lost {
		add(n.RowsExamined, "row examined", "rows examined")
		add(n.RowsSent, "row sent", "rows sent")
		add(n.RowsAffected, "row changed", "rows changed")
		add(n.TmpTables, "temporary table", "temporary tables")
		add(n.TmpDisk, "temporary table on disk", "temporary tables on disk")
		add(n.SortRows, "row sorted", "rows sorted")
		if n.Errno != 0 {
			out = append(out, fmt.Sprintf("error %d: %s", n.Errno, n.Message))
		}
		if n.Cut {
			out = append(out, "text cut by the server")
		}
	}
	if n.Kind == KindWait && n.Bytes > 0 && n.Object != nil && n.Object.Type == "FILE" {
		out = append(out, digits.Counted(n.Bytes, "byte"))
	}
	switch {
	case n.Running:
		out = append(out, "still running")
	case !n.Ended() && !n.Lost:
		out = append(out, "end not seen")
	}
	if len(out) == 0 {
		return ""
	}
	return "  [" + strings.Join(out, ", ") + "]"
}

// human is a time of picoseconds as people read it.
func human(ps uint64) string { return digits.Seconds(float64(ps) / 1e12) }

// offset is a moment as seconds since the trace began.
func offset(ps, zero uint64) string {
	if ps == 0 {
		return ""
	}
	d := time.Duration(int64(ps/1000) - int64(zero/1000))
	return fmt.Sprintf("%+.6f s", d.Seconds())
}
