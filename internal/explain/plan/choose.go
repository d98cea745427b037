package plan

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
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

// has reports whether a column is in the index, with its whole value.
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

// choose proposes an index for one access and works out its figures; it reports false if none is worth its space,
// and why in ad.told.
func (a *adviser) choose(n *Node, f *TableFacts, w wanted, ad *Advice) bool {
	if !f.holdsExpressions() && !n.Covering {
		for _, b := range w.bad {
			ad.Unusable = append(ad.Unusable, b.text)
			ad.told = append(ad.told, "No index on "+b.column+" can serve "+b.text+": "+b.why+".")
		}
	}
	order := a.ordering(n, f, w.equal)
	if f.Sample != nil && f.Sample.Problem != "" {
		ad.told = append(ad.told, "No rows of "+f.Table+" could be sampled: "+f.Sample.Problem+".")
	}
	if order.why != "" && a.sorts(n) {
		ad.told = append(ad.told, "The sort stays: "+order.why+".")
	}
	w = a.unwritten(n, w, ad)
	var best *candidate
	for _, c := range a.candidates(n, f, ad, w, order) {
		if !a.worth(n, f, ad, &c, order) {
			continue
		}
		if best == nil || c.total() < best.total() {
			best = &c
		}
	}
	if best == nil {
		ad.told = append(ad.told, ad.refused...)
		a.unadvised(n, f, w, ad)
		return false
	}
	a.take(f, ad, best, order, n)
	return true
}

// candidate is a proposal, how often it would be looked into, and what to say about it.
type candidate struct {
	proposal
	runs float64
	told []string
}

// total is how many entries all executions read, a look-up in the table counted as another two.
func (c *candidate) total() float64 {
	per := c.entries + 1
	if !c.covering {
		per += 2 * c.entries
	}
	return per * c.runs
}

// unwritten removes the columns that the statement writes: each row that it changes would move in the index by
// which it was found.
func (a *adviser) unwritten(n *Node, w wanted, ad *Advice) wanted {
	for _, c := range append(append(append([]string(nil), w.equal...), w.in...), w.ranges...) {
		if a.writesTo(n, c) {
			ad.told = append(ad.told, fmt.Sprintf("%s is left out: the statement changes it, so every changed row would move in an index on it.", c))
			w.equal, w.in, w.ranges = without(w.equal, c), without(w.in, c), without(w.ranges, c)
		}
	}
	return w
}

// writesTo reports whether the statement sets a column of a table.
func (a *adviser) writesTo(n *Node, column string) bool {
	column = strings.ToLower(column)
	return a.written[column] || a.written[strings.ToLower(n.Name())+"."+column]
}

// candidates are the indexes that are considered: each by itself and, if it is small, with everything else that is needed.
func (a *adviser) candidates(n *Node, f *TableFacts, ad *Advice, w wanted, order ordering) []candidate {
	var heads []candidate
	buffered := n.JoinBuffer != "" || a.hashed(n)
	if !buffered {
		heads = a.heads(n, f, ad, w, order, n.runsKnown())
	} else {
		heads = append(a.heads(n, f, ad, w.alone(), order, 1), a.heads(n, f, ad, w, ordering{}, a.outerRows(n))...)
	}
	used := a.used(n, f)
	var out []candidate
	for _, h := range heads {
		whole := h.proposal // what follows it must not come between its columns
		h.parts = f.withoutPrimary(h.parts, len(h.order) > 0)
		h.fit()
		if len(h.parts) == 0 || f.served(h.proposal) {
			if len(used) == 0 || len(h.parts) == 0 || n.Covering || n.Key == "PRIMARY" {
				continue
			}
		} else {
			h.covering = len(used) > 0 && !a.writes() && f.holds(h.proposal, used)
			out = append(out, h)
		}
		if wide := f.covering(whole, used); len(used) > 0 && !a.writes() && len(wide.parts) > len(h.parts) && !f.served(wide) {
			if share := indexBytes(f, wide.columns()) / math.Max(f.DataLength, 1); share > coveringShare {
				h.told = append(h.told, fmt.Sprintf("A covering index, (%s), would be %s of the table's size: too large for what it saves.", strings.Join(wide.columns(), ", "), digits.Percent(share)))
				if len(out) > 0 {
					out[len(out)-1].told = h.told
				}
				continue
			}
			out = append(out, candidate{wide, h.runs, h.told})
		}
	}
	return out
}

// fit makes the counts of a proposal those of the columns that are left of it.
func (p *proposal) fit() {
	p.equality = min(p.equality, len(p.parts))
	p.ranges = min(p.ranges, len(p.parts)-p.equality)
	p.order = p.order[:min(len(p.order), len(p.parts)-p.equality)]
}

// Largest indexes that are advised, as parts of the table's size: one that covers, and any at all.
const (
	coveringShare = 0.25
	indexShare    = 0.75
)

// used are the columns of a table that the statement needs, by the plan or by the statement's text; nil where neither
// tells.
func (a *adviser) used(n *Node, f *TableFacts) []string {
	if n.UsedColumns != nil {
		return n.UsedColumns
	}
	if a.named[n.Name()] != 1 {
		return nil
	}
	for _, text := range a.texts {
		if blockOf(blocksOf(text), n.Name()) != nil {
			return columnsOf(text, n.Name(), f)
		}
	}
	if blockOf(a.blocks, n.Name()) == nil {
		return nil // a view's: the statement does not name its columns
	}
	return columnsOf(a.sql, n.Name(), f)
}

// writes reports whether the statement changes rows: the rows themselves are needed then.
func (a *adviser) writes() bool {
	switch sqltext.Verb([]byte(a.sql)) {
	case "UPDATE", "DELETE":
		return true
	}
	return false
}

// sortsFound reports whether the statement changes rows that an index finds: then servers sort them, and look at no index that has the
// order (counted by Handler_read on MySQL 5.7 to 9.7, MariaDB 10.11 and 11.8).
func (a *adviser) sortsFound(n *Node) bool {
	return a.writes() && n.Access != AccessAll && n.Access != AccessIndex && n.Key != ""
}

// hashed reports whether a table is read for a hash join, which uses no index of it to find partners.
func (a *adviser) hashed(n *Node) bool {
	for p := a.parents[n]; p != nil; p = a.parents[p] {
		switch p.Kind {
		case KindHashJoin:
			return true
		case KindFilter, KindHash:
		default:
			return false
		}
	}
	return false
}

// alone are the comparisons with constants: all that finds rows of a table that is read first.
func (w wanted) alone() wanted {
	out := wanted{bad: w.bad}
	seen := map[string]bool{}
	for _, c := range w.all {
		if !c.join {
			out.add(c, seen)
		}
	}
	return out
}

// joined reports whether a column is compared for equality with another table's.
func (w wanted) joined() bool {
	for _, c := range w.all {
		if c.kind == "equal" && c.join {
			return true
		}
	}
	return false
}

// holds reports whether an index has all these columns; those of the primary key are in every one.
func (t *TableFacts) holds(p proposal, used []string) bool {
	for _, name := range used {
		in := p.has(name)
		for _, c := range t.primary() {
			in = in || strings.EqualFold(c, name)
		}
		if !in {
			return false
		}
	}
	return true
}

// withoutPrimary takes off the end of an index what InnoDB puts there anyway: the primary key. Where the index begins
// with the primary key nothing is left: the table itself is in that order.
func (t *TableFacts) withoutPrimary(parts []part, ordered bool) []part {
	pk := t.primary()
	same := func(at int) bool {
		for i, x := range parts[at:] {
			if i >= len(pk) || !strings.EqualFold(x.column, pk[i]) || x.descending {
				return false
			}
		}
		return true
	}
	if len(pk) > 0 && len(parts) > 0 && strings.EqualFold(parts[0].column, pk[0]) {
		return nil
	}
	if ordered {
		return parts
	}
	for at := range parts {
		if at > 0 && same(at) {
			return parts[:at]
		}
	}
	return parts
}

// take makes a proposal the advice.
func (a *adviser) take(f *TableFacts, ad *Advice, p *candidate, order ordering, n *Node) {
	ad.told = append(ad.told, p.told...)
	ad.Columns, ad.Equality, ad.Range, ad.Order, ad.Covering, ad.keyed = p.columns(), p.equality, p.ranges, p.order, p.covering, p.parts
	ad.IndexBytes = indexBytes(f, ad.Columns)
	for _, x := range p.parts {
		if c := f.column(x.column); x.prefix > 0 && c != nil {
			ad.told = append(ad.told, fmt.Sprintf("Of %s (%s) only the first %d characters go into the index: a key has at most %s bytes, and %s of one column. Whether they distinguish values shows SELECT COUNT(DISTINCT LEFT(%s, %d)) / COUNT(DISTINCT %s).",
				x.column, c.Type, x.prefix, digits.Count(f.keyBytes()), digits.Count(f.columnBytes()), mysql.Quote(x.column), x.prefix, mysql.Quote(x.column)))
		}
	}
	ad.IndexPages = math.Ceil(ad.IndexBytes / f.PageSize)
	ad.Entries, ad.Runs = p.entries, p.runs
	ad.RangePages = a.rangePages(f, p.proposal)
	if !p.covering {
		ad.Lookups = p.entries
	}
	ad.Statement = statement(f, p.parts)
	ad.Replaces = replaced(f, p.parts)
	if len(p.order) > 0 {
		ad.told = append(ad.told, orderWords(a.sorts(n), order, p.proposal, ad.Passing))
	}
}

// rangePages is how many pages of the proposed index one execution reads.
func (a *adviser) rangePages(f *TableFacts, p proposal) float64 {
	pages := math.Ceil(indexBytes(f, p.columns()) / f.PageSize)
	return math.Max(1, math.Ceil(pages*math.Min(1, p.entries/f.Rows)))
}

// allButFew is the part of the rows from which on a range finds nothing.
const allButFew = 0.98

// narrowest is the range that leaves the fewest rows; "" if none leaves clearly fewer than all.
func (a *adviser) narrowest(f *TableFacts, w wanted) []string {
	best, least := "", allButFew
	for _, column := range w.ranges {
		share, known, wide := 1.0, false, true
		for _, c := range w.all {
			if c.column == column && c.kind != "other" {
				s, ok := f.share(c)
				share, known, wide = share*s, known || ok, wide && c.wide
			}
		}
		if !known {
			if best == "" && least == allButFew && !wide {
				best = column
			}
			continue
		}
		if share < least {
			best, least = column, share
		}
	}
	if best == "" {
		return nil
	}
	return []string{best}
}

// extending puts columns first that an index has already, in its order: that index can go then.
func (t *TableFacts) extending(equal []string) []string {
	for _, i := range t.Indexes {
		if !i.BTree || i.Unique || len(i.Columns) == 0 || len(i.Columns) > len(equal) {
			continue
		}
		rest, inside := equal, true
		for _, c := range i.Columns {
			name := ""
			for _, e := range equal {
				if strings.EqualFold(e, c) {
					name = e
				}
			}
			inside = inside && name != ""
			rest = without(rest, name)
		}
		if inside {
			return append(append([]string(nil), i.Columns...), rest...)
		}
	}
	return equal
}

// heads are the columns that find rows and those that order them. If a range and an order compete for the place
// after the columns compared for equality, both are proposed, and the one that takes fewer steps says why.
func (a *adviser) heads(n *Node, f *TableFacts, ad *Advice, w wanted, o ordering, runs float64) []candidate {
	ranges := a.narrowest(f, w)
	if w.joined() { // servers look up a join's rows by equality alone: a range after it finds none
		ranges = nil
	}
	equal := f.extending(w.equal)
	finding := append(append([]string(nil), w.in...), ranges...)
	search := candidate{proposal: f.key(equal, finding, nil), runs: runs}
	search.equality = min(len(search.parts), len(w.equal)+len(w.in))
	if len(search.parts) > search.equality {
		search.ranges = 1
	}
	ad.Passing = a.found(n, f, ad, w)
	var known bool
	search.entries, known = a.rowsBy(n, f, ad, w, append(append(append([]string(nil), equal...), w.in...), ranges...))
	if e, early := a.ends(n); early && e.rows > 0 && known && len(o.columns) == 0 {
		by := append(append(append([]string(nil), equal...), w.in...), ranges...)
		if pass, ok := a.passing(n, f, ad, w, by, search.entries); ok {
			search.entries = math.Min(search.entries, math.Ceil(e.rows/pass))
		}
	}
	var out []candidate
	switch {
	case len(search.parts) > 0 && known:
		out = append(out, search)
	case len(search.parts) > 0:
		ad.told = append(ad.told, fmt.Sprintf("Whether an index on (%s) would find few rows is not known: neither statistics nor a sample say how many match.", strings.Join(search.columns(), ", ")))
	}
	if ordered, ok := a.ordered(n, f, ad, w, o, equal); ok {
		ordered.runs = runs
		out = a.compete(ad, o, out, ordered, finding)
	}
	if len(out) == 0 && len(w.all) == 0 && len(o.columns) == 0 && n.Key != "" && n.Key != "PRIMARY" && !n.Covering {
		// The index that is read for its order, with what else is needed.
		if cols := f.columnsOfKey(n.Key); f.btree(n.Key) {
			p := candidate{proposal: f.key(cols, nil, nil), runs: runs}
			p.entries = a.readsNow(n, f)
			out = append(out, p)
		}
	}
	return out
}

// ordered is the index that has the rows in the order wanted, after the columns compared for equality.
func (a *adviser) ordered(n *Node, f *TableFacts, ad *Advice, w wanted, o ordering, equal []string) (candidate, bool) {
	if len(o.columns) == 0 {
		return candidate{}, false
	}
	for _, c := range o.columns {
		if a.writesTo(n, c.name) {
			return candidate{}, false
		}
	}
	if a.sortsFound(n) {
		ad.told = append(ad.told, fmt.Sprintf("The sort stays: an UPDATE or DELETE that finds its rows by an index (%s) sorts them, and uses no other index for the order.", n.Key))
		return candidate{}, false
	}
	p := candidate{proposal: f.key(equal, nil, o.columns)}
	if len(p.parts) < len(w.equal)+len(o.columns) || p.prefixed() {
		ad.told = append(ad.told, "The order still needs a sort: its columns are too long for an index to contain them in full.")
		return candidate{}, false
	}
	p.equality = len(w.equal)
	for _, c := range o.columns {
		p.order = append(p.order, c.name)
	}
	by := append([]string(nil), equal...)
	if len(w.in) == 0 && len(w.ranges) > len(without(w.ranges, o.columns[0].name)) {
		p.ranges = 1
		by = append(by, o.columns[0].name)
	}
	all, _ := a.rowsBy(n, f, ad, w, by)
	p.entries = math.Max(all, ad.Passing)
	if o.limit == 0 {
		return p, true
	}
	pass, known := a.passing(n, f, ad, w, by, p.entries)
	if o.extreme && (len(w.all) > len(w.equal) || w.joined()) {
		return candidate{}, false // only after constants MIN and MAX are looked up at an end of the index
	}
	if !known {
		ad.told = append(ad.told, fmt.Sprintf("An index on (%s) has the order, but it does not serve all conditions: it would be read until %s, and how soon that is is not known.", strings.Join(p.columns(), ", "), amount(float64(o.limit), "row matches", "rows match")))
		return p, true
	}
	p.entries = math.Min(p.entries, math.Ceil(float64(o.limit)/pass))
	if pass < 0.99 && p.ranges == 0 {
		if none := f.Sample.none(w.all); none && !ad.Counted {
			p.told = append(p.told, fmt.Sprintf("(%s) does not serve all conditions, and none of the %s looked at passes them: it may be read to its end before LIMIT %s is reached.", strings.Join(p.columns(), ", "), amount(f.Sample.Rows, "row", "rows"), digits.Count(float64(o.limit))))
			return p, true
		}
		p.told = append(p.told, fmt.Sprintf("(%s) does not serve all conditions: %s of its entries pass them, so that LIMIT %s is reached after about %s%s.", strings.Join(p.columns(), ", "), digits.Percent(pass), digits.Count(float64(o.limit)), amount(p.entries, "entry", "entries"), where(f.Sample, ad)))
	}
	return p, true
}

// where says where a figure comes from.
func where(s *Sample, ad *Advice) string {
	switch {
	case ad.Counted:
		return " (counted)"
	case s != nil && s.Rows > 0:
		return " (by a sample of " + amount(s.Rows, "row", "rows") + ")"
	}
	return " (expected)"
}

// compete sets a search and an order side by side, and says which takes fewer steps.
func (a *adviser) compete(ad *Advice, o ordering, out []candidate, ordered candidate, finding []string) []candidate {
	if len(out) == 0 {
		return append(out, ordered)
	}
	search := &out[0]
	if len(finding) == 0 || len(finding) == 1 && ordered.ranges == 1 && finding[0] == o.columns[0].name {
		return []candidate{ordered} // it finds all that the search would
	}
	kept := ad.Passing
	if o.limit > 0 {
		kept = math.Min(kept, float64(o.limit))
	}
	steps := search.entries * (1 + math.Log2(math.Max(2, kept))/2)
	taken, other := o.word, "range"
	if steps < ordered.entries {
		taken, other = "range", o.word
	}
	stops := ""
	if o.limit > 0 {
		stops = fmt.Sprintf(", because LIMIT stops after %s", amount(float64(o.limit), "row that matches", "rows that match"))
	}
	text := fmt.Sprintf("After the columns compared for equality only one can follow: the range on %s, or the %s. The range reads about %s rows and sorts them, %s × (1 + ½ log2 %s) = %s steps; the order reads about %s%s, and sorts nothing. So the %s is taken and not the %s.",
		strings.Join(finding, ", "), o.word, digits.Count(search.entries), digits.Count(search.entries), digits.Count(math.Max(2, kept)), digits.Count(math.Ceil(steps)), amount(math.Ceil(ordered.entries), "entry", "entries"), stops, taken, other)
	if taken == "range" {
		search.told = append(search.told, text)
		return out
	}
	ordered.told = append(ordered.told, text)
	return []candidate{ordered}
}

// ordering is the order that the statement wants of a table's rows, if an index could provide it: the rows of that
// table have to come first in the join, and nothing between may lose their order.
func (a *adviser) ordering(n *Node, f *TableFacts, fixed []string) ordering {
	b := a.blockFor(n)
	if b == nil || !a.leads(n) {
		return ordering{}
	}
	o := b.orderOf(n.Name(), f, fixed)
	if a.thinned(n) { // LIMIT may come late
		o.limit = 0
	}
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
		return ordering{why: o.word + " ascends by one column and descends by another, and indexes of this server have only one direction"}
	}
	return o
}

// blockFor is the SELECT that reads a table, in the statement or in the server's words; nil if that is not certain.
func (a *adviser) blockFor(n *Node) *block {
	if a.named[n.Name()] != 1 {
		return nil
	}
	if b := blockOf(a.blocks, n.Name()); b != nil {
		return b
	}
	return blockOf(a.rewritten, n.Name())
}

// joined are the other tables of the join that a table is part of.
func (a *adviser) joined(n *Node) []*Node {
	var out []*Node
	for p := a.parents[n]; p != nil && p.Kind != KindQuery && p.Kind != KindSubquery && p.Kind != KindMaterialise; p = a.parents[p] {
		if p.Kind == KindNestedLoop {
			p.Walk(func(x, _ *Node, _ int) {
				if x != n && x.Kind != KindSubquery {
					out = append(out, x)
				}
			})
		}
	}
	return out
}

// leads reports whether a table is read first, and nothing between it and the result loses the order of its rows.
func (a *adviser) leads(n *Node) bool {
	for c, p := n, a.parents[n]; p != nil && p.Kind != KindQuery; c, p = p, a.parents[p] {
		switch p.Kind {
		case KindNestedLoop:
			if p.Children[0] != c {
				return false
			}
			for _, other := range p.Children {
				if other.JoinBuffer != "" {
					return false
				}
			}
		case KindHashJoin, KindHash, KindBatchedJoin, KindWindow, KindIndexMerge:
			return false
		}
	}
	return true
}

// sorts reports whether the plan sorts, or fills a temporary table, in the block of an access.
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

// columnsOfKey are the columns of an index.
func (t *TableFacts) columnsOfKey(name string) []string {
	for _, i := range t.Indexes {
		if i.Name == name {
			return i.Columns
		}
	}
	return nil
}

// holdsExpressions reports whether an index of the table is of an expression: what looks unusable may be served by it.
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

// served reports whether an index that is there does what the proposed one would.
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
// Columns too long for a key come last among the first, with a prefix; nothing follows a prefix.
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

// whole reports whether a column can be in a key with its whole value.
func (t *TableFacts) whole(name string) bool {
	c := t.column(name)
	return c != nil && c.keyable() && !c.long() && c.keyBytes() <= t.columnBytes()
}

// covering adds to the head of an index what else the statement needs of the table; it is empty if that does not
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
		names[i], quoted[i] = x.column, mysql.Quote(x.column)
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
	return fmt.Sprintf("CREATE INDEX %s ON %s.%s (%s)", mysql.Quote(name), mysql.Quote(f.Schema), mysql.Quote(f.Table), strings.Join(quoted, ", "))
}
