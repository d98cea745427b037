package plan

import (
	"fmt"
	"math"
	"strings"

	"github.com/rissodb/risso/internal/digits"
)

// turned advises on joins that a server begins at the wrong end for want of an index: one table is read whole, and
// each of its rows looks up another by a unique key, of which few pass a condition with constants. With an index on that
// condition, and one on the column that the first is joined by, it would begin at the other table.
func (a *adviser) turned(n *Node) []Advice {
	f := a.tables[n.Name()]
	if n.Kind != KindTable || n.Inner() || f == nil || n.Access != AccessEqRef || !strings.EqualFold(f.Engine, "InnoDB") || n.runsKnown() < many {
		return nil
	}
	outer, column := a.joinedBy(n)
	if outer == nil {
		return nil
	}
	of := a.tables[outer.Name()]
	w := a.wanted(n, f).alone()
	ad := Advice{Node: n.ID, Table: f.Schema + "." + f.Table, Rows: f.Rows, TablePages: f.pages()}
	part, known := a.portion(f, w.all)
	if !known || len(w.equal)+len(w.in)+len(w.ranges) == 0 {
		return nil
	}
	ad.Part, ad.Matched, ad.Sampled = part, part*f.Rows, true
	ad.PagesTouched = touched(ad.TablePages, ad.Matched)
	first, ok := a.finding(n, f, w, &ad, 1)
	if !ok {
		return nil
	}
	back := Advice{Node: outer.ID, Table: of.Schema + "." + of.Table, Rows: of.Rows, TablePages: of.pages()}
	join := wanted{}
	join.add(conjunct{column: column, kind: "equal", join: true}, map[string]bool{})
	share, known := of.share(join.all[0])
	whole := outer.rowsOnce()
	if own, ok := a.portion(of, a.wanted(outer, of).alone().all); ok {
		whole = math.Min(whole, own*of.Rows) // an index for its own conditions would leave so many
	}
	if !known || (ad.Matched+1)*math.Max(1, share*of.Rows) > 0.3*whole {
		return nil
	}
	back.Part, back.Sampled = share, true
	back.Matched = share * of.Rows
	back.PagesTouched = touched(back.TablePages, back.Matched)
	second, ok := a.finding(outer, of, join, &back, math.Max(1, ad.Matched))
	if !ok {
		return nil
	}
	var out []Advice
	together := ""
	if first != nil && second != nil { // seen on MariaDB 11.8 and MySQL 9.7: with one of them the join begins as before
		together = " The two indexes belong together: either alone may save little."
	}
	why := fmt.Sprintf("%s is looked up %s times by its key, and about %s of its %s rows pass %s%s: with an index it would be read first, and %s looked up by %s.",
		n.Name(), digits.Count(n.runsKnown()), digits.Count(math.Ceil(ad.Matched)), digits.Count(f.Rows), w.all[0].text, where(f.Sample, &ad), outer.Name(), column)
	why += together
	for _, x := range []struct {
		n  *Node
		f  *TableFacts
		ad *Advice
		c  *candidate
	}{{outer, of, &back, second}, {n, f, &ad, first}} {
		if x.c == nil {
			continue // an index is there
		}
		x.ad.told = append(x.ad.told, why)
		a.take(x.f, x.ad, x.c, ordering{}, x.n)
		x.ad.Texts = a.words(x.n, x.f, x.ad)
		out = append(out, *x.ad)
	}
	return out
}

// joinedBy is the table read whole at the begin of the join, by a column of which another one is looked up.
func (a *adviser) joinedBy(n *Node) (*Node, string) {
	for _, ref := range n.Ref {
		q, column, rest := columnAt(lex(ref))
		if len(rest) > 0 || q == "" {
			continue
		}
		for _, x := range a.joined(n) {
			if f := a.tables[x.Name()]; x.Kind == KindTable && f != nil && strings.EqualFold(x.Name(), q) && x.Access == AccessAll && f.column(column) != nil && f.pages() >= worthPages && strings.EqualFold(f.Engine, "InnoDB") {
				return x, f.column(column).Name
			}
		}
	}
	return nil, ""
}

// finding is the index that finds rows by what is wanted; nil with true if it exists, or the table small.
func (a *adviser) finding(n *Node, f *TableFacts, w wanted, ad *Advice, runs float64) (*candidate, bool) {
	if f.pages() < worthPages {
		return nil, true
	}
	list := a.heads(n, f, ad, w, ordering{}, runs)
	if len(list) == 0 {
		return nil, false
	}
	c := list[0]
	whole := c.proposal
	c.parts = f.withoutPrimary(c.parts, false)
	c.fit()
	c.entries = ad.Matched
	if len(c.parts) == 0 || f.served(c.proposal) {
		return nil, true
	}
	if indexBytes(f, c.columns()) > indexShare*f.DataLength {
		return nil, false
	}
	if used := a.used(n, f); len(used) > 0 && !a.writes() {
		if wide := f.covering(whole, used); len(wide.parts) > 0 && indexBytes(f, wide.columns()) <= coveringShare*f.DataLength {
			c.proposal = wide
		}
	}
	return &c, true
}
