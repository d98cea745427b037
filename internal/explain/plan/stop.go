package plan

import (
	"math"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/sqltext"
)

// ending is what may end the reading of a table before all of it is read.
type ending struct {
	when string  // in words: "LIMIT 5 is reached"
	rows float64 // of the SELECT, after which it ends; 0: unknown
}

// governs is the SELECT whose LIMIT ends the reading of a table: its own, or the one that the server has merged it
// into; nil if that is not certain.
func (a *adviser) governs(n *Node) *block {
	top := a.selectOf(n)
	if a.parents[top] == nil && len(a.blocks) > 0 && sqltext.Verb([]byte(a.sql)) != "WITH" && !word(firstOf(a.sql), "WITH") {
		return &a.blocks[0]
	}
	return a.blockFor(n)
}

func firstOf(sql string) token {
	if t := lex(sql); len(t) > 0 {
		return t[0]
	}
	return token{}
}

// ends finds what may end the reading of a table early. It is none where the rows are sorted, grouped or gathered
// before the first of them is given.
func (a *adviser) ends(n *Node) (ending, bool) {
	b := a.governs(n)
	if b == nil || a.hashes(n) {
		return ending{}, false
	}
	distinct := b.distinct && len(b.order) == 0 // its temporary table only keeps what was given already
	if a.sorts(n) && !distinct {
		return ending{}, false
	}
	for _, x := range a.joined(n) {
		if x.Kind == KindTable && !x.Inner() && x.Temporary && !distinct {
			return ending{}, false // tabular EXPLAIN shows it at the first table, for all
		}
	}
	own := a.blockFor(n)
	exists, in := a.askedOnce(n)
	switch {
	case len(b.group) > 0 || b.aggregates() || b.distinct && !distinct:
		return ending{}, false
	case b.limit > 0:
		return ending{"LIMIT " + digits.Count(float64(b.limit)) + " is reached", float64(b.limit)}, true
	case b.limited:
		return ending{"its LIMIT is reached", 0}, true
	case b.parts: // a UNION ALL that is sent as it comes; older servers gather it first
		return ending{"the LIMIT of the UNION is reached", 0}, true
	case exists && own != nil && own.exists && !own.aggregates() && len(own.group) == 0:
		return ending{"a row is found (EXISTS)", 1}, true
	case in && own != nil && own.in:
		return ending{"a row is found (IN)", 1}, true
	}
	return ending{}, false
}

// askedOnce reports whether the first row that a table returns ends its reading if its SELECT follows EXISTS, and if it follows
// IN. What is kept in a temporary table is read whole, and so is a table that the server has made part of the join outside, unless
// the plan says that one match is enough.
func (a *adviser) askedOnce(n *Node) (exists, in bool) {
	exists = n.hasMember("first_match") || n.hasMember("not_exists")
	for c, p := n, a.parents[n]; p != nil; c, p = p, a.parents[p] {
		in = in || c.Dependent || p.Dependent
		switch p.Kind {
		case KindSubquery, KindCache:
			return true, in
		case KindMaterialise:
			return false, false
		case KindNestedLoop:
			exists = exists || p.Children[0] != c && (strings.Contains(p.JoinType, "semi") || strings.Contains(p.JoinType, "anti"))
		}
	}
	return exists, false
}

// hashes reports whether a table is read whole into memory before the join begins.
func (a *adviser) hashes(n *Node) bool {
	for p := n; p != nil; p = a.parents[p] {
		if p.Kind == KindHash || p.Role == "hash" {
			return true
		}
		switch p.Kind {
		case KindQuery, KindSubquery, KindMaterialise, KindCache:
			return false
		}
	}
	return false
}

// most is how many rows one execution of an access reads at most, and whether that is known. What a server expects of
// a whole index under a LIMIT may be the LIMIT itself, no matter what the condition lets pass.
func (a *adviser) most(n *Node) (float64, bool) {
	if _, early := a.ends(n); !early || n.Access != AccessIndex || n.ActualRows.Known() {
		return n.rowsOnce(), true
	}
	if f := a.tables[n.Name()]; f != nil {
		return math.Max(f.Rows, n.rowsOnce()), true
	}
	return n.rowsOnce(), false
}

// reads is how many rows one execution of an access is expected to read; false where something ends it early and
// it is unknown when.
func (a *adviser) reads(n *Node) (rows float64, known bool) {
	most, told := a.most(n)
	e, early := a.ends(n)
	if !early || n.ActualRows.Known() {
		return most, true
	}
	if !a.first(n) || e.rows == 0 {
		return most, false
	}
	b := a.governs(n)
	known = told && len(a.joined(n)) == 0 && !b.distinct
	if !a.tested(n) {
		if !told {
			most = e.rows
		}
		return math.Min(most, e.rows), len(a.joined(n)) == 0 && !b.distinct
	}
	f := a.tables[n.Name()]
	if f == nil {
		return math.Min(most, e.rows/math.Max(1e-9, n.Filtered.Or(100)/100)), false
	}
	w := a.wanted(n, f)
	part, ok := a.portion(f, w.all)
	if !ok || len(w.all) == 0 {
		return math.Min(most, e.rows/math.Max(1/f.Rows, n.Filtered.Or(100)/100)), false
	}
	if f.Sample.none(w.all) {
		return most, false
	}
	_, whole := a.sampled(f, w.all)
	known = known && whole && part*f.Sample.Rows >= sampleSure
	if n.Access != AccessAll && n.Access != AccessIndex { // what it finds passes a part of the conditions already
		part = math.Min(1, part*f.Rows/math.Max(1, n.rowsOnce()))
	}
	return math.Min(most, math.Ceil(e.rows/part)), known
}

// sampleSure is how many rows of a sample must match for the number of rows to be known by them.
const sampleSure = 5

// first reports whether a table is read first in its join.
func (a *adviser) first(n *Node) bool {
	for c, p := n, a.parents[n]; p != nil; c, p = p, a.parents[p] {
		switch p.Kind {
		case KindNestedLoop:
			if p.Children[0] != c {
				return false
			}
		case KindHashJoin, KindHash, KindBatchedJoin, KindWindow, KindIndexMerge:
			return false
		case KindQuery, KindSubquery, KindMaterialise, KindCache:
			return true
		}
	}
	return true
}

// tested reports whether rows of a table are tested when they are read.
func (a *adviser) tested(n *Node) bool {
	if n.Condition != "" || n.IndexCondition != "" {
		return true
	}
	p := a.parents[n]
	return p != nil && (p.Kind == KindFilter || p.Kind == KindHashJoin)
}

// aggregates reports whether an item of the select list needs all rows.
func (b *block) aggregates() bool {
	plain := *b
	plain.group, plain.distinct = nil, false
	return plain.gathers()
}

// asked says which word precedes the SELECT at a place in the tokens: EXISTS and IN are asked for one row only.
func asked(t []token, i int) string {
	for i--; i > 0 && sign(t[i], "("); i-- {
		if x := t[i-1]; x.Kind == sqltext.TokenWord {
			return strings.ToUpper(x.Text)
		}
	}
	return ""
}
