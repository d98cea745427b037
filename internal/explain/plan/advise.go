package plan

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
)

// Advice is the arithmetic of one table's access: what reading it costs in pages, and which covering index would improve it.
// Formulas:
//
//   - A scan reads the P = data length / page size pages of the clustered index, in sequence.
//   - A range of k rows by an index that does not hold all columns is k look-ups of rows at random places. They touch
//     P × (1 − (1 − 1/P)^k) different pages (Cardenas 1975, Analysis and performance of inverted data base structures);
//     with a cold cache as many reads at least.
//   - By pages, an index that is not covering pays while k < P: below one row for each page of the table.
//   - If both an order and a range are wanted, only one of the two can follow the columns compared for equality.
//     Reading a row is one step and comparing two in a sort half of one, as in the servers' own cost constants
//     (row_evaluate_cost 0.1, key_compare_cost 0.05: https://dev.mysql.com/doc/refman/9.4/en/cost-model.html): the
//     range of k rows takes k × (1 + ½ log2 k) steps, the order as many as it reads entries.
//   - An entry of a secondary InnoDB index has 5 bytes of header, a bit for each nullable column, a length byte or two
//     for each column of variable length, its columns and those of the primary key that it does not have already
//     (https://dev.mysql.com/doc/refman/9.4/en/innodb-row-format.html). A page has about 128 bytes of frame and, when
//     the index is built in one go, is filled to 15/16 (innodb_fill_factor = 100 leaves 1/16 free).
type Advice struct {
	Node      int      `json:"node"`
	Table     string   `json:"table"`              // schema.table
	Columns   []string `json:"columns"`            // columns of the proposed index: equality, then range, then the rest
	Equality  int      `json:"equality"`           // how many of Columns are compared for equality
	Range     int      `json:"range"`              // 1 if the next column is the range
	Order     []string `json:"order,omitempty"`    // columns of Columns whose order avoids sorting or grouping
	Covering  bool     `json:"covering"`           // the proposed index alone suffices
	Unusable  []string `json:"unusable,omitempty"` // comparisons that no index on their column helps
	Statement string   `json:"statement"`          // CREATE INDEX …
	Replaces  []string `json:"replaces,omitempty"`

	Rows         float64  `json:"rows"`          // rows of the table, by the server's estimate
	TablePages   float64  `json:"table_pages"`   // P
	Matched      float64  `json:"matched"`       // k: rows that match
	Part         float64  `json:"part"`          // k / Rows
	Counted      bool     `json:"counted"`       // k was counted by ANALYZE, not estimated
	Sampled      bool     `json:"sampled"`       // k was estimated from a sample of the table's rows
	PagesTouched float64  `json:"pages_touched"` // distinct pages that k random look-ups touch
	IndexBytes   float64  `json:"index_bytes"`   // size of the proposed index
	IndexPages   float64  `json:"index_pages"`
	RangePages   float64  `json:"range_pages"` // pages of it read by the range, in sequence
	Lookups      float64  `json:"lookups"`     // rows to look up if it is not covering
	Entries      float64  `json:"entries"`     // entries of the proposed index that one execution reads
	Runs         float64  `json:"runs"`        // executions
	Passing      float64  `json:"passing"`     // rows of one execution that meet all conditions
	Texts        []string `json:"texts"`

	told    []string // what else there is to say of the choice
	refused []string // why indexes were not chosen
	keyed   []part   // Columns, with prefixes and directions
}

const (
	pageFrame    = 128       // bytes of a page that hold no record: headers, directory, trailer
	pageFill     = 15.0 / 16 // of a page, when an index is built by sorting
	recordHeader = 5         // bytes, row formats compact and dynamic
	pointerBytes = 18        // of a clustered record: transaction id 6, roll pointer 7, header 5
	maxIndexCols = 16        // of an InnoDB index
	maxKeyBytes  = 3072      // of an InnoDB index with 16 KiB pages
	worthPages   = 8         // tables below so many pages are read in one go anyhow
)

// Advise works out, for each table that is not read by a covering index, what it reads and which index would save
// it. It is a pure function: tables are the facts. Without facts for a table, or where the plan and the statement do
// not tell its columns, it says nothing about it. An index is advised only if it would read clearly fewer rows,
// spare a sort or a temporary table of many rows, or many look-ups; else the advice has the reason and no Statement.
func Advise(p *Plan, tables []TableFacts, sql string) []Advice {
	a := newAdviser(p, tables, sql)
	var turned, out []Advice
	p.Root.Walk(func(n, _ *Node, _ int) { turned = append(turned, a.turned(n)...) })
	p.Root.Walk(func(n, _ *Node, _ int) {
		for _, t := range turned {
			if t.Node == n.ID {
				return // it is read in another way then
			}
		}
		if ad, ok := a.table(n); ok {
			out = append(out, ad)
		}
	})
	gain := func(ad Advice) float64 { return ad.gain() * math.Max(1, p.Find(ad.Node).runsKnown()) }
	sort.SliceStable(out, func(i, j int) bool { return gain(out[i]) > gain(out[j]) })
	return merged(append(turned, out...))
}

func newAdviser(p *Plan, tables []TableFacts, sql string) *adviser {
	a := &adviser{plan: p, sql: sql, blocks: blocksOf(sql), tables: map[string]*TableFacts{}, parents: map[*Node]*Node{}, named: map[string]int{}, written: writtenBy(sql)}
	a.texts = append([]string{p.Rewritten}, p.views...)
	for _, text := range a.texts {
		a.rewritten = append(a.rewritten, blocksOf(text)...)
	}
	p.Root.Walk(func(n, parent *Node, _ int) {
		a.parents[n] = parent
		if n.Kind == KindTable {
			a.named[n.Name()]++
		}
	})
	for i := range tables {
		a.tables[tables[i].Name] = &tables[i]
	}
	return a
}

// merged leaves each proposed index once, at the access that gains most. An index that only begins another one is left
// out: the other serves both.
func merged(list []Advice) []Advice {
	out := []Advice{}
	for i, ad := range list {
		by := -1
		for j, other := range list {
			if ad.Statement != "" && j != i && other.Statement != "" && ad.Table == other.Table && begins(ad.keyed, other.keyed) && (len(ad.keyed) < len(other.keyed) || j < i) {
				by = j
			}
		}
		if by < 0 {
			for j, other := range list {
				if j != i && ad.Statement != "" && other.Statement != "" && ad.Table == other.Table && begins(other.keyed, ad.keyed) && (len(other.keyed) < len(ad.keyed) || i < j) {
					ad.Texts = append(ad.Texts, fmt.Sprintf("It serves #%d, too.", other.Node))
				}
			}
			out = append(out, ad)
		}
	}
	return out
}

// begins reports whether the columns of one index begin another one.
func begins(short, long []part) bool {
	if len(short) > len(long) {
		return false
	}
	for i, x := range short {
		if x != long[i] {
			return false
		}
	}
	return true
}

// gain is how many pages the index spares.
func (a Advice) gain() float64 {
	return math.Min(a.TablePages, math.Max(a.PagesTouched, 1)) - a.RangePages
}

type adviser struct {
	plan      *Plan
	sql       string
	blocks    []block  // of the statement
	texts     []string // the statement as the server rewrote it, and its views
	rewritten []block  // of these
	tables    map[string]*TableFacts
	parents   map[*Node]*Node
	named     map[string]int  // how many accesses have a name: columns of the statement's text cannot distinguish them
	written   map[string]bool // columns that an UPDATE sets, in lower case
}

// considered reports whether an index could change the access.
func (a *adviser) considered(n *Node, f *TableFacts) bool {
	if n.Kind != KindTable || n.Inner() || f == nil || !strings.EqualFold(f.Engine, "InnoDB") || f.Rows < 1 {
		return false
	}
	switch n.Access {
	case AccessAll, AccessIndex, AccessRange, AccessRef, AccessMerge, "ref_or_null":
	default:
		return false
	}
	switch n.Role {
	case "insert", "replace", "part of the index merge":
		return false
	}
	return f.pages() >= worthPages
}

// pages of the clustered index.
func (t *TableFacts) pages() float64 { return math.Max(1, t.DataLength/t.PageSize) }

// table advises on one access, or reports false if there is no advice.
func (a *adviser) table(n *Node) (Advice, bool) {
	f := a.tables[n.Name()]
	if !a.considered(n, f) {
		return Advice{}, false
	}
	ad := Advice{Node: n.ID, Table: f.Schema + "." + f.Table, Rows: f.Rows, TablePages: f.pages()}
	w := a.wanted(n, f)
	a.matched(n, f, w, &ad)
	ad.PagesTouched = touched(ad.TablePages, ad.Matched)
	if !a.choose(n, f, w, &ad) && len(ad.told) == 0 && (n.Covering || n.Key == "PRIMARY" || len(n.PossibleKeys) == 0 || n.Access != AccessAll) {
		return Advice{}, false
	}
	ad.Texts = a.words(n, f, &ad)
	return ad, true
}

// wanted is what the conditions ask of a table.
func (a *adviser) wanted(n *Node, f *TableFacts) wanted {
	w := predicates(a.conditions(n), n.Name(), f, a.tables)
	for i, c := range w.all { // a hidden number would not be found by an index of strings
		if col := f.column(c.column); c.kind == "equal" && col.text() && c.sample != "" && hidden(c.sample) {
			if _, asked := f.Sample.share([]string{c.sample}); !asked {
				w.all[i].kind = "other"
				w.equal = without(w.equal, c.column)
			}
		}
	}
	for i, c := range w.all { // it runs again for each row of the table itself
		if c.kind != "other" && a.dependsOn(c) {
			w.all[i].kind = "other"
			w.equal, w.in, w.ranges = without(w.equal, c.column), without(w.in, c.column), without(w.ranges, c.column)
		}
	}
	for _, c := range a.conversions(n, f) {
		for i := range w.all {
			if w.all[i].column == c.column && w.all[i].kind == "equal" {
				w.all[i].kind = "other"
				w.equal = without(w.equal, c.column)
				w.bad = append(w.bad, c)
			}
		}
	}
	return w
}

// subqueryNumber is a subquery in a condition: (subquery#2) in MariaDB's words, (select #2) in MySQL's.
var subqueryNumber = pattern.Lazy(`\b(?:subquery|select ?)[#$](\d+)`)

// dependsOn reports whether a comparison is with a subquery that depends on rows outside of it: its value is known only
// when those are, so no index is looked into by it.
func (a *adviser) dependsOn(c conjunct) bool {
	m := subqueryNumber().FindStringSubmatch(c.text)
	if m == nil {
		return false
	}
	dependent := false
	a.plan.Root.Walk(func(n, _ *Node, _ int) {
		dependent = dependent || n.Dependent && strconv.FormatInt(int64(n.SelectID), 10) == m[1]
	})
	return dependent
}

// conversions are the comparisons of the statement, of a column of a table with one of another table, that make the
// server convert the column. A plan may show the other column's value in its place, and hide it by that.
func (a *adviser) conversions(n *Node, f *TableFacts) (out []unusable) {
	t := lex(a.sql)
	for i, x := range t {
		if !sign(x, "=") || i == 0 || i+1 == len(t) {
			continue
		}
		for _, left := range []int{1, 3} { // a column, or table.column
			if i < left || left == 1 && i > 1 && sign(t[i-2], ".") {
				continue
			}
			if c, ok := converted(t[i-left:min(i+4, len(t))], n.Name(), f, a.tables); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

// matched finds how many rows of the table the statement needs in one execution.
func (a *adviser) matched(n *Node, f *TableFacts, w wanted, ad *Advice) {
	part, counted := passingPart(n, a.parents[n])
	rows := n.rowsOnce()
	_, early := a.ends(n)
	ad.Counted = counted
	switch n.Access {
	case AccessAll, AccessIndex:
		if early && counted { // of what was read until it ended: how many match in total is not counted
			ad.Counted, ad.Part, ad.Matched = false, part, part*f.Rows
			return
		}
		if share, ok := a.portion(f, w.all); ok && !counted {
			part, ad.Sampled = share, true
		}
		ad.Part = math.Min(1, part)
		ad.Matched = ad.Part * f.Rows
		if counted {
			ad.Matched = part * rows
		}
	default: // what the index returns has to be looked up, whether it passes or not
		ad.Matched = rows
		ad.Counted = n.ActualRows.Known()
		ad.Part = math.Min(1, rows/f.Rows)
	}
}

// touched is the number of different pages of P that k random look-ups touch (Cardenas 1975).
func touched(pages, k float64) float64 {
	if pages <= 1 {
		return math.Min(1, k)
	}
	return pages * (1 - math.Exp(k*math.Log1p(-1/pages)))
}

// conditions are the texts that decide which rows of a node are wanted.
func (a *adviser) conditions(n *Node) []string {
	out := []string{n.Condition, n.IndexCondition}
	if b := a.blockFor(n); b != nil && n.Condition == "" && rechecked(n, a.parents[n]) { // the plan leaves it out
		out = append(append(out, b.where), b.on...)
	}
	looked := n.Access != AccessRange && n.Access != AccessMerge // MySQL writes "const" after a range of an UPDATE
	for i, ref := range n.Ref {
		if looked && i < len(n.KeyParts) && ref != "" {
			out = append(out, a.reference(n, n.KeyParts[i], ref))
		}
	}
	for c, p := n, a.parents[n]; p != nil; c, p = p, a.parents[p] {
		switch {
		case p.Kind == KindFilter && p.Children[0] == c, p.Kind == KindHashJoin:
			out = append(out, p.Condition)
		case p.Kind == KindIndexMerge, p.Kind == KindHash, p.Kind == KindNestedLoop:
		default:
			return out
		}
	}
	return out
}

// reference is what a column of a key is compared with. "const" and "func" mean a value that the statement may
// contain; else an unknown value takes its place.
func (a *adviser) reference(n *Node, column, ref string) string {
	if ref != "const" && ref != "func" {
		return mysql.Quote(column) + " = " + ref
	}
	f := a.tables[n.Name()]
	for _, list := range [][]block{a.blocks, a.rewritten} {
		b := blockOf(list, n.Name())
		if f == nil || b == nil || a.named[n.Name()] != 1 {
			continue
		}
		for _, c := range predicates([]string{b.where}, n.Name(), f, nil).all {
			if c.kind == "equal" && strings.EqualFold(c.column, column) && c.sample != "" {
				return c.sample
			}
		}
	}
	return mysql.Quote(column) + " = ?"
}
