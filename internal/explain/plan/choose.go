package plan

import (
	"fmt"
	"math"
	"sort"
	"strings"
)

// part is one column of a proposed index.
type part struct {
	column     string
	prefix     int // characters, or bytes of a binary column; 0: the whole
	descending bool
}

// proposal is an index that is considered for one access.
type proposal struct {
	parts    []part
	equality int      // how many of the first parts are compared for equality
	ranges   int      // 1: the next one is a range
	order    []string // columns whose order spares sorting
	covering bool
	entries  float64 // of the index, that one execution reads
}

// has says whether a column is in the index, with its whole value.
func (p *proposal) has(column string) bool {
	for _, x := range p.parts {
		if strings.EqualFold(x.column, column) && x.prefix == 0 {
			return true
		}
	}
	return false
}

func (p *proposal) columns() []string {
	out := make([]string, len(p.parts))
	for i, x := range p.parts {
		out[i] = x.column
	}
	return out
}

// choose proposes an index for one access and works out its figures; it reports false where none is worth its room.
func (a *adviser) choose(n *Node, f *TableFacts, ad *Advice) bool {
	used := n.UsedColumns
	if used == nil && a.named[n.Name()] == 1 {
		used = columnsOf(a.sql, n.Name(), f)
	}
	w := predicates(a.conditions(n), n.Name(), f)
	if !f.holdsExpressions() && !n.Covering {
		for _, b := range w.bad {
			ad.Unusable = append(ad.Unusable, b.text)
			ad.told = append(ad.told, "No index on "+b.column+" can serve "+b.text+": "+b.why+".")
		}
	}
	if ad.unknown = len(used) == 0; ad.unknown {
		return false
	}
	order := a.ordering(n, f, w.equal)
	if order.why != "" && a.sorts(n) {
		ad.told = append(ad.told, "The sort stays: "+order.why+".")
	}
	head := a.head(n, f, ad, w, order)
	if f.primaryLeads(head.columns()) && head.parts[0].prefix == 0 && len(head.order) == 0 {
		return false // the clustered index finds these rows already, and covers
	}
	for _, p := range []proposal{f.covering(head, used), head} {
		if len(p.parts) == 0 || f.served(p) || !a.worth(n, f, ad, p, order) {
			continue
		}
		a.take(f, ad, p, order, n)
		return true
	}
	return false
}

// take makes a proposal the advice.
func (a *adviser) take(f *TableFacts, ad *Advice, p proposal, order ordering, n *Node) {
	ad.Columns, ad.Equality, ad.Range, ad.Order, ad.Covering = p.columns(), p.equality, p.ranges, p.order, p.covering
	ad.IndexBytes = indexBytes(f, ad.Columns)
	for _, x := range p.parts {
		if c := f.column(x.column); x.prefix > 0 && c != nil {
			ad.told = append(ad.told, fmt.Sprintf("Of %s (%s) only the first %d characters go into the index: a key has at most %s bytes, and %s of one column. Whether they tell values apart is seen by SELECT COUNT(DISTINCT LEFT(%s, %d)) / COUNT(DISTINCT %s).",
				x.column, c.Type, x.prefix, count(f.keyBytes()), count(f.columnBytes()), quoteName(x.column), x.prefix, quoteName(x.column)))
		}
	}
	ad.IndexPages = math.Ceil(ad.IndexBytes / f.PageSize)
	ad.RangePages = a.rangePages(f, p)
	if !p.covering {
		ad.Lookups = p.entries
	}
	ad.Statement = statement(f, p.parts)
	ad.Replaces = replaced(f, p.parts)
	if len(p.order) > 0 {
		ad.told = append(ad.told, orderWords(a.sorts(n), order, p, a.passing(n, f, ad)))
	}
}

// rangePages is how many pages of the proposed index one execution reads.
func (a *adviser) rangePages(f *TableFacts, p proposal) float64 {
	pages := math.Ceil(indexBytes(f, p.columns()) / f.PageSize)
	return math.Max(1, math.Ceil(pages*math.Min(1, p.entries/f.Rows)))
}

// passing is how many rows of an access are left for what comes after it, in one execution.
func (a *adviser) passing(n *Node, f *TableFacts, ad *Advice) float64 {
	if n.Access == AccessAll || n.Access == AccessIndex {
		return ad.Matched
	}
	share, _ := passingPart(n, a.parents[n])
	return ad.Matched * math.Min(1, share)
}

// head are the columns that find or order the rows. Where a range and an order compete, the cheaper one is taken.
func (a *adviser) head(n *Node, f *TableFacts, ad *Advice, w wanted, o ordering) proposal {
	search := f.key(w.equal, append(append([]string(nil), w.in...), first(w.ranges)...), nil)
	search.equality, search.ranges = min(len(search.parts), len(w.equal)+len(w.in)), 0
	if len(search.parts) > search.equality {
		search.ranges = 1
	}
	found := a.passing(n, f, ad)
	search.entries = found
	if len(search.parts) == 0 {
		search.entries = f.Rows
	}
	if len(o.columns) == 0 {
		return search
	}
	ordered := f.key(w.equal, nil, o.columns)
	if len(ordered.parts) < len(w.equal)+len(o.columns) || ordered.prefixed() {
		ad.told = append(ad.told, "The order stays a sort: its columns are too long for an index to hold them whole.")
		return search
	}
	ordered.equality = len(w.equal)
	for _, c := range o.columns {
		ordered.order = append(ordered.order, c.name)
	}
	if len(w.in) == 0 && (len(w.ranges) == 0 || w.ranges[0] == o.columns[0].name) {
		ordered.ranges = len(first(w.ranges))
		ordered.entries = found
		if o.limit > 0 {
			ordered.entries = math.Min(found, float64(o.limit))
		}
		return ordered
	}
	all := math.Max(found, a.equalityRows(n, f, ad, w))
	ordered.entries = all
	kept := found
	if o.limit > 0 && found > 0 {
		ordered.entries = math.Min(all, float64(o.limit)*all/found)
		kept = math.Min(found, float64(o.limit))
	}
	steps := found * (1 + math.Log2(math.Max(2, kept))/2)
	chosen, taken, other := ordered, o.word, "range"
	if steps < ordered.entries {
		chosen, taken, other = search, "range", o.word
	}
	stops := ""
	if o.limit > 0 {
		stops = fmt.Sprintf(", because LIMIT stops after %s rows that match", count(float64(o.limit)))
	}
	ad.told = append(ad.told, fmt.Sprintf("After the columns compared for equality only one can follow: the range on %s, or the %s. The range reads about %s rows and sorts them, %s × (1 + ½ log2 %s) = %s steps; the order reads about %s entries%s, and sorts nothing. So the %s is taken and not the %s.",
		strings.Join(append(append([]string(nil), w.in...), first(w.ranges)...), ", "), o.word, count(found), count(found), count(math.Max(2, kept)), count(math.Ceil(steps)), count(math.Ceil(ordered.entries)), stops, taken, other))
	return chosen
}

func first(list []string) []string { return list[:min(1, len(list))] }

// equalityRows is how many rows the columns compared for equality alone are expected to leave.
func (a *adviser) equalityRows(n *Node, f *TableFacts, ad *Advice, w wanted) float64 {
	if len(w.equal) == 0 {
		return f.Rows
	}
	fixed := map[string]bool{}
	for _, c := range w.equal {
		fixed[strings.ToLower(c)] = true
	}
	rows := math.Inf(1)
	for _, i := range f.Indexes {
		for j, c := range i.Columns {
			if !fixed[strings.ToLower(c)] || j >= len(i.Distinct) {
				break
			}
			if i.Distinct[j] > 0 {
				rows = math.Min(rows, f.Rows/i.Distinct[j])
			}
		}
	}
	if n.Access == AccessRef {
		same := true
		for _, c := range n.KeyParts {
			same = same && fixed[strings.ToLower(c)]
		}
		if same {
			rows = math.Min(rows, n.rowsOnce())
		}
	}
	if math.IsInf(rows, 1) { // nobody knows: each comparison is taken to leave the same part
		equal := float64(len(w.equal))
		rows = f.Rows * math.Pow(math.Max(1/f.Rows, ad.Part), equal/(equal+1))
	}
	return rows
}

// ordering is the order that the statement wants of a table's rows, where an index could give it: the rows of that
// table have to come first in the join, and nothing between may lose their order.
func (a *adviser) ordering(n *Node, f *TableFacts, fixed []string) ordering {
	if a.named[n.Name()] != 1 {
		return ordering{}
	}
	b := blockOf(a.blocks, n.Name())
	if b == nil {
		return ordering{}
	}
	for c, p := n, a.parents[n]; p != nil && p.Kind != KindQuery; c, p = p, a.parents[p] {
		switch p.Kind {
		case KindNestedLoop:
			if p.Children[0] != c {
				return ordering{}
			}
			for _, other := range p.Children {
				if other.JoinBuffer != "" {
					return ordering{}
				}
			}
		case KindHashJoin, KindHash, KindBatchedJoin, KindWindow, KindIndexMerge:
			return ordering{}
		}
	}
	o := b.orderOf(n.Name(), f, fixed)
	mixed := false
	for _, c := range o.columns {
		mixed = mixed || c.descending != o.columns[0].descending
	}
	switch {
	case !mixed: // an index is read backwards as well
		for i := range o.columns {
			o.columns[i].descending = false
		}
	case !f.Descending:
		return ordering{why: o.word + " goes up by one column and down by another, and the indexes of this server go one way"}
	}
	return o
}

// sorts says whether the plan sorts, or fills a temporary table, in the block of an access.
func (a *adviser) sorts(n *Node) bool {
	for p := n; p != nil; p = a.parents[p] {
		if p.Kind == KindBuffer {
			continue
		}
		if p.Filesort || p.Kind == KindSort || p.Kind == KindTemporary || p.Temporary && p.Kind != KindMaterialise && p.Kind != KindUnion {
			return true
		}
		if p.Kind == KindQuery || p.Kind == KindSubquery || p.Kind == KindMaterialise || p.Kind == KindCache {
			return false
		}
	}
	return false
}

// worth says whether a proposed index reads clearly less than what the plan does, or spares a sort of many rows.
func (a *adviser) worth(n *Node, f *TableFacts, ad *Advice, p proposal, o ordering) bool {
	pages := a.rangePages(f, p)
	if !p.covering {
		pages += touched(ad.TablePages, p.entries)
	}
	now := ad.TablePages
	switch {
	case n.Covering:
		now = math.Ceil(indexBytes(f, f.columnsOfKey(n.Key)) / f.PageSize * math.Min(1, ad.Part))
	case n.Access == AccessIndex:
		now = ad.TablePages + touched(ad.TablePages, ad.Rows)
	case n.Access != AccessAll:
		now = math.Max(1, ad.PagesTouched)
	}
	if len(p.order) > 0 && a.sorts(n) && a.passing(n, f, ad) >= many {
		return p.covering && n.Covering && pages <= 2*now+1 || pages <= now
	}
	switch {
	case n.Covering:
		return false
	case n.Access != AccessAll && ad.Matched < 100 && n.Executions.Or(1) < 100:
		return false // a handful of look-ups is cheap
	case !p.covering && len(p.parts) > 0 && p.equality+p.ranges == 0 && (o.limit == 0 || len(p.order) == 0):
		return false
	case !p.covering, p.equality+p.ranges == 0:
		return pages <= now/2
	}
	return pages <= now*0.75
}

// columnsOfKey are the columns of an index.
func (t *TableFacts) columnsOfKey(name string) []string {
	for _, i := range t.Indexes {
		if i.Name == name {
			return i.Columns
		}
	}
	return nil
}

// holdsExpressions says whether an index of the table is of an expression: what looks unusable may be served by it.
func (t *TableFacts) holdsExpressions() bool {
	for _, i := range t.Indexes {
		for _, c := range i.Columns {
			if c == "" {
				return true
			}
		}
	}
	return false
}

// served says whether an index that is there does what the proposed one would.
func (t *TableFacts) served(p proposal) bool {
	head := p.equality + p.ranges
	if len(p.order) > 0 {
		head = p.equality + len(p.order)
	}
	for _, i := range t.Indexes {
		if !i.BTree || len(i.Columns) < head || i.Name == "PRIMARY" && head == 0 {
			continue
		}
		fits := true
		for j := 0; j < head && fits; j++ {
			among := p.parts[j : j+1]
			if j < p.equality {
				among = p.parts[:p.equality]
			}
			fits = false
			for _, x := range among {
				fits = fits || strings.EqualFold(x.column, i.Columns[j]) && (i.Prefix[j] == 0 || x.prefix > 0)
			}
		}
		all := append(append([]string(nil), i.Columns...), t.primary()...)
		for _, x := range p.parts[head:] {
			found := false
			for _, c := range all {
				found = found || strings.EqualFold(c, x.column)
			}
			fits = fits && found
		}
		if fits {
			return true
		}
	}
	return false
}

// key makes an index of columns compared for equality, of further ones that find rows, and of those that order them.
// Columns too long for a key come last among the first, with a prefix; behind a prefix nothing follows.
func (t *TableFacts) key(equal, more []string, order []sortColumn) proposal {
	var p proposal
	sorted := append([]string(nil), equal...)
	sort.SliceStable(sorted, func(i, j int) bool { return t.whole(sorted[i]) && !t.whole(sorted[j]) })
	bytes := 0.0
	add := func(name string, descending bool) {
		c := t.column(name)
		if c == nil || p.has(name) || p.prefixed() || len(p.parts) == maxIndexCols || !c.keyable() {
			return
		}
		x := part{column: c.Name, descending: descending}
		size := c.keyBytes()
		if size > t.columnBytes() || bytes+size > t.keyBytes() || c.long() {
			x.prefix = c.prefix(math.Min(t.columnBytes(), t.keyBytes()-bytes))
			if x.prefix == 0 {
				return
			}
			size = float64(x.prefix) * c.charBytes()
		}
		bytes += size
		p.parts = append(p.parts, x)
	}
	for _, c := range append(sorted, more...) {
		add(c, false)
	}
	for _, c := range order {
		add(c.name, c.descending)
	}
	return p
}

func (p *proposal) prefixed() bool { return len(p.parts) > 0 && p.parts[len(p.parts)-1].prefix > 0 }

// whole says whether a column can stand in a key with its whole value.
func (t *TableFacts) whole(name string) bool {
	c := t.column(name)
	return c != nil && c.keyable() && !c.long() && c.keyBytes() <= t.columnBytes()
}

// covering adds to the head of an index what else the statement needs of the table; it is empty where that does not
// fit. The primary key is in every secondary index anyhow.
func (t *TableFacts) covering(head proposal, used []string) proposal {
	p := head
	p.parts = append([]part(nil), head.parts...)
	key := map[string]bool{}
	for _, c := range t.primary() {
		key[strings.ToLower(c)] = true
	}
	bytes := 0.0
	for _, x := range p.parts {
		bytes += t.column(x.column).keyBytes()
	}
	if p.prefixed() {
		return proposal{}
	}
	for _, name := range used {
		if key[strings.ToLower(name)] || p.has(name) {
			continue
		}
		c := t.column(name)
		if c == nil {
			continue
		}
		bytes += c.keyBytes()
		if !t.whole(name) || bytes > t.keyBytes() || len(p.parts) == maxIndexCols {
			return proposal{}
		}
		p.parts = append(p.parts, part{column: c.Name})
	}
	p.covering = true
	return p
}

// replaced are the indexes whose columns lead the new one in the same order: they are no longer needed.
func replaced(f *TableFacts, parts []part) []string {
	var out []string
	for _, i := range f.Indexes {
		if i.Unique || !i.BTree || len(i.Columns) > len(parts) {
			continue
		}
		same := true
		for j, c := range i.Columns {
			same = same && strings.EqualFold(c, parts[j].column) && i.Prefix[j] == 0 && parts[j].prefix == 0
		}
		if same {
			out = append(out, i.Name)
		}
	}
	return out
}

func statement(f *TableFacts, parts []part) string {
	names, quoted := make([]string, len(parts)), make([]string, len(parts))
	for i, x := range parts {
		names[i], quoted[i] = x.column, quoteName(x.column)
		if x.prefix > 0 {
			quoted[i] += fmt.Sprintf("(%d)", x.prefix)
		}
		if x.descending {
			quoted[i] += " DESC"
		}
	}
	name := strings.Join(names, "_")
	if r := []rune(name); len(r) > 60 {
		name = string(r[:50]) + "_cover"
	}
	taken := map[string]bool{}
	for _, i := range f.Indexes {
		taken[strings.ToLower(i.Name)] = true
	}
	for base, i := name, 2; taken[strings.ToLower(name)]; i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	return fmt.Sprintf("CREATE INDEX %s ON %s.%s (%s)", quoteName(name), quoteName(f.Schema), quoteName(f.Table), strings.Join(quoted, ", "))
}
