package applier

import (
	"cmp"
	"slices"
	"sort"
)

// keysKept is how many keys of a transaction are compared with those of others.
const keysKept = 16

// seen is a transaction of the window.
type seen struct {
	need   need
	cost   float64
	by     int32 // which transaction kept it waiting; -1: none of the window
	behalf int32 // and on behalf of which: itself, or one before it that was not given out
	tables []Table
	keys   []uint64
	whole  bool // keys has all rows of it
	long   Long
}

// window holds the transactions that were added last, to find out of which the chain consists that takes longest.
type window struct {
	list []seen
	key  func(uint64) (Table, string)
	keys []uint64 // backs seen.keys

	total   float64          // of all chains
	parts   map[part]float64 // what they consist of
	singles []single         // transactions that took much of them
}

// part is what a limit is about.
type part struct {
	kind  Kind
	table Table
	key   string
}

// single is a transaction of a chain.
type single struct {
	cost float64
	part part
	long Long
}

func newWindow(key func(uint64) (Table, string)) window {
	return window{key: key, parts: map[part]float64{}}
}

// add takes a transaction, and returns its place.
func (w *window) add(t *Transaction, n need, cost float64) int32 {
	x := seen{need: n, cost: cost, by: -1, behalf: -1, long: briefly(t, cost)}
	x.tables = slices.Clone(t.Tables[:min(len(t.Tables), keysKept)])
	from := len(w.keys)
	for _, named := range []bool{true, false} { // those that occur often are kept first
		for _, k := range t.Keys {
			if len(w.keys)-from == keysKept {
				break
			}
			if _, name := w.key(k); (name != "") == named {
				w.keys = append(w.keys, k)
			}
		}
	}
	x.keys = w.keys[from:len(w.keys):len(w.keys)]
	x.whole = len(t.Keys) <= keysKept && !t.Unkeyed && !t.Statements
	w.list = append(w.list, x)
	return int32(len(w.list) - 1)
}

// waited says what the transaction that was added last waited for.
func (w *window) waited(by, behalf int32) {
	x := &w.list[len(w.list)-1]
	x.by, x.behalf = by, behalf
}

// close goes back along the chain that ends with a transaction, adds up of what it consists, and begins another window.
func (w *window) close(last int32) {
	for i := last; i >= 0; {
		x := &w.list[i]
		p := w.partOf(x)
		w.total += x.cost
		w.parts[p] += x.cost
		w.single(x, p)
		if x.by >= i { // cannot be
			break
		}
		i = x.by
	}
	clear(w.list)
	w.list, w.keys = w.list[:0], nil
}

// single keeps the transactions that took most.
func (w *window) single(x *seen, p part) {
	const most = 8
	if len(w.singles) == most && x.cost <= w.singles[most-1].cost {
		return
	}
	s := single{x.cost, p, x.long}
	s.long.named(x.tables)
	w.singles = append(w.singles, s)
	sort.SliceStable(w.singles, func(i, j int) bool { return w.singles[i].cost > w.singles[j].cost })
	w.singles = w.singles[:min(len(w.singles), most)]
}

// partOf is why a transaction of the chain could not begin earlier.
func (w *window) partOf(x *seen) part {
	if x.long.DDL {
		return part{kind: Definition, table: firstTable(x)}
	}
	if x.by < 0 {
		return part{}
	}
	waiter := x
	if x.behalf >= 0 {
		waiter = &w.list[x.behalf]
	}
	others := []*seen{&w.list[x.by]}
	for _, n := range []int64{waiter.need.after, waiter.need.holder} {
		if other := w.numbered(n, waiter.need.domain); other != nil {
			others = append(others, other)
		}
	}
	for _, o := range others {
		if o.long.DDL {
			return part{kind: Definition, table: firstTable(o)}
		}
	}
	for _, o := range others {
		for _, k := range waiter.keys {
			if slices.Contains(o.keys, k) {
				if table, name := w.key(k); name != "" {
					return part{HotRow, table, name}
				}
				return part{HotTable, tableOf(waiter, o), ""}
			}
		}
	}
	together := Table{}
	for _, o := range others {
		t := tableOf(waiter, o)
		if t != (Table{}) && !(waiter.whole && o.whole) {
			return part{HotTable, t, ""} // they may share rows
		}
		if together == (Table{}) {
			together = t
		}
	}
	return part{kind: CommitOrder, table: together}
}

// numbered finds a transaction of the window by its number.
func (w *window) numbered(number int64, domain uint32) *seen {
	if number <= 0 {
		return nil
	}
	i, ok := slices.BinarySearchFunc(w.list, number, func(x seen, n int64) int { return cmp.Compare(x.need.number, n) })
	if !ok || w.list[i].need.domain != domain {
		return nil
	}
	return &w.list[i]
}

func firstTable(x *seen) Table {
	if len(x.tables) == 0 {
		return Table{}
	}
	return x.tables[0]
}

// tableOf is a table that both changed.
func tableOf(a, b *seen) Table {
	for _, t := range a.tables {
		if slices.Contains(b.tables, t) {
			return t
		}
	}
	return Table{}
}

// largeSingle is from which share of the chain on a single transaction is a limit by itself.
const largeSingle = 0.1

// longFor is how many times as long as others it is.
const longFor = 5

// limits are what the chains consist of, the largest first. mean is what a transaction costs on average.
func (w *window) limits(mean float64) []Limit {
	list := []Limit{}
	if w.total <= 0 {
		return list
	}
	for _, s := range w.singles {
		if s.cost < largeSingle*w.total || s.cost < longFor*mean || s.part.kind == Definition {
			continue
		}
		w.parts[s.part] -= s.cost
		name := s.long.GTID.String()
		long := s.long
		list = append(list, Limit{Kind: LongOne, Name: name, Share: s.cost / w.total, Long: &long})
	}
	for p, cost := range w.parts {
		const least = 0.02
		if p.kind == "" || cost < least*w.total {
			continue
		}
		l := Limit{Kind: p.kind, Share: cost / w.total}
		switch p.kind {
		case HotRow:
			l.Name, l.Table = p.key, p.table.String()
		case HotTable, Definition, CommitOrder:
			l.Name = p.table.String()
		}
		list = append(list, l)
	}
	sort.SliceStable(list, func(i, j int) bool {
		if list[i].Share != list[j].Share {
			return list[i].Share > list[j].Share
		}
		return list[i].Kind+Kind(list[i].Name) < list[j].Kind+Kind(list[j].Name)
	})
	return list[:min(len(list), 10)]
}
