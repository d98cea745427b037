package trace

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Node is an event in the tree.
type Node struct {
	*Event
	Parent   *Node
	Children []*Node
	// Lost represents a statement of which no row was read, only what happened in it.
	Lost bool
	// Before says that a statement had begun before the trace: little of it was recorded.
	Before bool

	// shift is added to the times of a wait: see align.
	shift int64
	// First and Last are the node's span in picoseconds since the server started; of a running event until the tree's Now.
	First, Last uint64
	// Own is the time in which none of the children ran, in picoseconds.
	Own uint64
}

// Took is the node's span.
func (n *Node) Took() uint64 { return n.Last - n.First }

// Tree is what a connection did, nested.
type Tree struct {
	Roots        []*Node  // statements sent by the client, and its idle times, by time
	Transactions []*Event // by time
	Now          uint64   // picoseconds since the server started, when the last event was read
	Events       int      // how many different events there are
	Missing      uint64   // event numbers between the first and the last event that no row has
	unborn       []uint64 // numbers given to no event: not missing
}

// Build makes the tree of events in any order, with repetitions. Of several rows of one event the one that has ended counts.
// now is when running events were last seen; the latest time of any event is taken when it is later. Events up to the number known
// had begun before: those of them that are not there do not count as missing.
//
// The numbers say what contains what: B is in A when A.ID < B.ID ≤ A.End (MySQL worklog 5863). NESTING_EVENT_ID is not
// used: a stage that is interrupted by a stored function names the function's instruction as its parent.
func Build(events []Event, now, known uint64) *Tree {
	t := &Tree{Now: now}
	list := distinct(events)
	t.Events = len(list)
	for i := range list {
		if !list[i].otherClock() {
			t.Now = max(t.Now, list[i].Start, list[i].Stop)
		}
	}
	if len(list) > 0 {
		t.unborn = unborn(list)
		t.Missing = missing(list, t.unborn, known)
	}
	t.nest(list)
	t.align()
	t.measure()
	return t
}

// missing counts the numbers that no event has, from the first event or the first one after known to the last.
func missing(list []Event, unborn []uint64, known uint64) uint64 {
	first, last, seen := max(list[0].ID, known+1), uint64(0), uint64(0)
	for i := range list {
		last = max(last, list[i].ID, list[i].End)
		if list[i].ID >= first {
			seen++
		}
	}
	for _, n := range unborn {
		if n >= first {
			seen++
		}
	}
	if span := last + 1 - min(first, last+1); span > seen {
		return span - seen
	}
	return 0
}

// unborn finds numbers that the server assigned to files that it could not open, such as a .TRG of a table without triggers: it
// counts them and records nothing. Such a number is a single one before another file; what rings lose comes in runs.
func unborn(list []Event) (out []uint64) {
	file := func(e *Event) bool { return strings.HasPrefix(e.Name, "wait/io/file/") }
	for i := 1; i < len(list); i++ {
		a, b := &list[i-1], &list[i]
		if b.ID == a.ID+2 && file(b) && (file(a) || a.Kind == KindStage) {
			out = append(out, a.ID+1)
		}
	}
	return out
}

// distinct sorts by number and keeps one row of each event: the most complete.
func distinct(events []Event) []Event {
	list := slices.Clone(events)
	slices.SortStableFunc(list, func(a, b Event) int {
		if c := cmp.Compare(a.ID, b.ID); c != 0 {
			return c
		}
		if c := cmp.Compare(a.Kind, b.Kind); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(b.End, a.End), cmp.Compare(b.Stop, a.Stop), cmp.Compare(b.RowsExamined, a.RowsExamined), cmp.Compare(b.RowsSent, a.RowsSent),
			cmp.Compare(b.Start, a.Start), cmp.Compare(b.Name, a.Name), cmp.Compare(b.SQL, a.SQL), cmp.Compare(b.Nesting, a.Nesting), cmp.Compare(b.Level, a.Level))
	})
	// A number belongs to one event; two kinds under one number are a row that was read while the server overwrote it.
	return slices.CompactFunc(list, func(a, b Event) bool { return a.ID == b.ID })
}

func (t *Tree) nest(list []Event) {
	var open []*Node // candidates for a parent, outermost first
	for i := range list {
		e := &list[i]
		if e.Kind == KindTransaction {
			t.Transactions = append(t.Transactions, e)
			continue
		}
		for len(open) > 0 && !covers(open[len(open)-1], e) {
			open = open[:len(open)-1]
		}
		n := &Node{Event: e}
		n.Parent = parentOf(open, e)
		if n.Parent == nil && inside(e) {
			n.Parent = t.lost(&open, e)
		}
		if n.Parent == nil {
			t.Roots = append(t.Roots, n)
		} else {
			n.Parent.Children = append(n.Parent.Children, n)
		}
		open = append(open, n)
	}
}

func covers(n *Node, e *Event) bool {
	switch {
	case n.Lost: // goes on until something that no client statement contains
		return inside(e)
	case n.End != 0:
		return e.ID <= n.End
	case n.Kind == KindStatement: // its end was not seen: it lasts until a statement that cannot be in it
		return !e.Idle() && (e.Kind != KindStatement || e.Level > n.Level)
	default:
		return n.Kind == KindStage && e.Kind == KindWait
	}
}

// inside reports whether an event can only have happened within a statement.
func inside(e *Event) bool {
	switch e.Kind {
	case KindStage:
		return true
	case KindStatement:
		return e.Level > 0 || e.Instruction()
	default:
		return e.Nesting != 0 && !e.Idle()
	}
}

func parentOf(open []*Node, e *Event) *Node {
	for i := len(open) - 1; i >= 0; i-- {
		p := open[i]
		if !covers(p, e) || e.Idle() {
			continue
		}
		switch e.Kind {
		case KindWait:
			return p
		default: // a stage ends where a statement within it begins a stage: only statements contain
			if p.Kind == KindStatement {
				return p
			}
		}
	}
	return nil
}

// lost makes a node for a statement that was not seen.
func (t *Tree) lost(open *[]*Node, e *Event) *Node {
	n := &Node{Lost: true, Event: &Event{Kind: KindStatement, ID: e.ID, Name: "statement not seen", Start: e.Start, Nesting: e.Nesting}}
	t.Roots = append(t.Roots, n)
	*open = append(*open, n)
	return n
}

// otherClock reports whether the event is timed by another clock than statements and stages: the servers time waits by the
// processor's cycle counter and all else in nanoseconds (performance_schema.setup_timers of MySQL 5.7 shows it), and the two
// do not start at the same moment: waits seem to happen some milliseconds off their statement.
func (e *Event) otherClock() bool { return e.Kind == KindWait && !e.Idle() }

// align finds how far the waits' clock is from the other, and shifts waits by it. A wait is within the stage or statement
// that contains it by number: that bounds the difference from both sides. The narrowest bounds give the first estimate; it is
// moved, wait by wait, no more than the bounds demand, because the clocks drift.
func (t *Tree) align() {
	var waits []*Node
	var first *Node
	narrow := uint64(math.MaxUint64)
	t.Walk(func(n *Node, _ int) bool {
		if !n.otherClock() || !n.Timed() {
			return true
		}
		waits = append(waits, n)
		if lo, hi, ok := n.bounds(); ok && hi >= lo && uint64(hi-lo) < narrow {
			narrow, first = uint64(hi-lo), n
		}
		return true
	})
	if first == nil {
		return
	}
	lo, hi, _ := first.bounds()
	start := lo + (hi-lo)/2
	at := slices.Index(waits, first)
	shift := start
	for _, n := range waits[at:] {
		shift = n.fit(shift)
	}
	shift = start
	for i := at - 1; i >= 0; i-- {
		shift = waits[i].fit(shift)
	}
	t.Walk(func(n *Node, _ int) bool { // a wait within a wait goes with it
		if n.otherClock() && n.Parent != nil && n.Parent.otherClock() {
			n.shift = n.Parent.shift
		}
		return true
	})
}

// bounds are the least and the most by which a wait can be shifted.
func (n *Node) bounds() (lo, hi int64, ok bool) {
	p := n.Parent
	if p == nil || p.Lost || p.otherClock() || !p.Timed() || !p.Ended() || !n.Ended() {
		return 0, 0, false
	}
	return int64(p.Start - n.Start), int64(p.Stop - n.Stop), true
}

func (n *Node) fit(shift int64) int64 {
	if lo, hi, ok := n.bounds(); ok && hi >= lo {
		shift = min(max(shift, lo), hi)
	}
	n.shift = shift
	return shift
}

func moved(ps uint64, by int64) uint64 {
	if by < 0 && uint64(-by) > ps {
		return 0
	}
	return ps + uint64(by)
}

// measure sets First, Last and Own of all nodes.
func (t *Tree) measure() {
	for _, r := range t.Roots {
		t.span(r)
	}
	clip(t.Roots)
	for _, r := range t.Roots {
		own(r)
	}
}

func (t *Tree) span(n *Node) {
	n.First, n.Last = n.Start, n.stop(t.Now)
	if n.shift != 0 && n.Timed() {
		n.First, n.Last = moved(n.First, n.shift), moved(n.Last, n.shift)
	}
	for _, c := range n.Children {
		t.span(c)
	}
	clip(n.Children)
	if !n.Lost {
		return
	}
	n.First, n.Last = 0, 0
	for _, c := range n.Children {
		if c.First != 0 && (n.First == 0 || c.First < n.First) {
			n.First = c.First
		}
		n.Last = max(n.Last, c.Last)
	}
	n.Last = max(n.First, n.Last)
}

// clip ends what the next sibling must have ended: a stage, and an event whose end was not seen.
func clip(siblings []*Node) {
	next := uint64(0)
	for i := len(siblings) - 1; i >= 0; i-- {
		n := siblings[i]
		if next != 0 && (n.Kind == KindStage || !n.Ended()) && n.Last > next {
			n.Last = max(n.First, next)
		}
		if n.First != 0 {
			next = n.First
		}
	}
}

func own(n *Node) {
	for _, c := range n.Children {
		own(c)
	}
	n.Own = n.Took() - min(n.Took(), covered(n))
	if p := n.Parent; p != nil && !p.Lost && n.otherClock() { // a wait for a lock outlives the stage that it began in
		lo, hi := max(n.First, p.First), min(n.Last, p.Last)
		n.Own = min(n.Own, hi-min(lo, hi))
	}
}

// covered is how much of a node's span its children fill, in picoseconds.
func covered(n *Node) uint64 {
	sum, at := uint64(0), n.First
	children := slices.Clone(n.Children)
	slices.SortStableFunc(children, func(a, b *Node) int { return cmp.Compare(a.First, b.First) })
	for _, c := range children {
		lo, hi := max(c.First, at), min(c.Last, n.Last)
		if c.First == 0 || hi <= lo {
			continue
		}
		sum += hi - lo
		at = hi
	}
	return sum
}

// Walk visits a node and all below it, by number; f returning false leaves out what is below.
func (n *Node) Walk(f func(n *Node, depth int) bool) { n.walk(0, f) }

func (n *Node) walk(depth int, f func(*Node, int) bool) {
	if !f(n, depth) {
		return
	}
	for _, c := range n.Children {
		c.walk(depth+1, f)
	}
}

// Walk visits all nodes.
func (t *Tree) Walk(f func(n *Node, depth int) bool) {
	for _, r := range t.Roots {
		r.Walk(f)
	}
}

// within leaves out of all spans what was before the trace began, what is after its end, and what is outside of the statement that
// an event happened in: the clock of waits is another. An end of 0 means unknown.
func (t *Tree) within(zero, end uint64) {
	if end == 0 {
		end = math.MaxUint64
	}
	for _, r := range t.Roots {
		r.Before = r.Before || r.First != 0 && r.First < zero
		r.contain(zero, end)
		own(r)
	}
}

func (n *Node) contain(lo, hi uint64) {
	if n.First != 0 {
		n.First = min(max(n.First, lo), hi)
		n.Last = min(max(n.Last, n.First), hi)
		if p := n.Parent; n.Running && n.otherClock() && p != nil && p.Running {
			n.Last = max(n.First, p.Last)
		}
	}
	if n.First != 0 && n.Kind == KindStatement { // a wait for a lock outlives the stage that it began in
		lo, hi = n.First, n.Last
	}
	for _, c := range n.Children {
		c.contain(lo, hi)
	}
}

// unseen stretches the statements of which the server had recorded no beginning, or has recorded no end yet: until and since are when
// the connection was busy so, 0 if it was not.
func (t *Tree) unseen(zero, until, since uint64) {
	var list []*Node
	for _, r := range t.Roots {
		if r.Kind == KindStatement {
			list = append(list, r)
		}
	}
	if len(list) == 0 {
		return
	}
	if r := list[0]; r.Lost && until != 0 && r.First <= until {
		r.First, r.Before = min(r.First, zero), true
	}
	if r := list[len(list)-1]; r.Lost && since != 0 && r.Last >= since {
		r.Last, r.Running = max(r.Last, t.Now), true
	}
}

// Busy is the time that statements took, and Idle what the connection waited for its client, in picoseconds.
func (t *Tree) Busy() (busy, idle uint64) {
	for _, r := range t.Roots {
		switch {
		case r.Idle():
			idle += r.Took()
		case r.Kind == KindStatement:
			busy += r.Took()
		}
	}
	return busy, idle
}
