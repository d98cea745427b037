package plan

import (
	"fmt"
	"math"
	"strings"

	"github.com/rissodb/risso/internal/digits"
)

// worth reports whether a proposed index reads clearly fewer rows than the plan does and no more pages, or spares a sort
// or many look-ups. What it says of a proposal that does not is kept in ad.refused.
func (a *adviser) worth(n *Node, f *TableFacts, ad *Advice, p *candidate, o ordering) bool {
	bytes := indexBytes(f, p.columns())
	if bytes > indexShare*f.DataLength {
		ad.refused = append(ad.refused, fmt.Sprintf("An index on (%s) would be %s of the table's size: nearly a copy of it. None is recommended.", strings.Join(p.columns(), ", "), digits.Percent(bytes/f.DataLength)))
		return false
	}
	buffered := n.JoinBuffer != "" || a.hashed(n)
	nowRuns := n.runsKnown()
	if buffered {
		nowRuns = 1
	} else if fewer := a.runs(n) / math.Max(1, nowRuns); fewer < 1 { // which an index of a table before it would bring about, too
		nowRuns *= fewer
		p.runs *= fewer
		defer func(runs float64) { p.runs = runs }(p.runs / fewer)
	}
	once := a.readsNow(n, f)
	compared := a.compared(n)
	now, then := once*nowRuns+compared, p.entries*p.runs
	if p.runs > 1 {
		then += p.runs
	}
	pages := math.Min(a.rangePages(f, p.proposal)*p.runs, math.Ceil(bytes/f.PageSize)*math.Max(1, then/f.Rows))
	if !p.covering {
		pages += touched(ad.TablePages, p.entries*p.runs)
	}
	before := a.pagesNow(n, f, ad, once, nowRuns)
	if e, early := a.ends(n); early && e.rows == 0 && !n.ActualRows.Known() {
		ad.refused = append(ad.refused, fmt.Sprintf("Reading ends when %s, and how soon that is is not known: no index is recommended for it.", e.when))
		return false
	}
	if len(p.order) > 0 && a.sorts(n) && ad.Passing >= many && !a.thinned(n) && p.covering && then <= now*1.01 {
		if n.Covering && pages <= 2*before+1 || pages <= before {
			return true
		}
	}
	if n.Access != AccessAll && n.Key != "PRIMARY" && !n.Covering && p.covering && now >= worthRows && then <= now*1.01 && pages <= before/4 {
		return true
	}
	if all := a.scanned(a.selectOf(n)); now-then < worthShare*all || now-then < worthAny*a.scanned(a.plan.Root) {
		if e, early := a.ends(n); early && !n.ActualRows.Known() {
			ad.refused = append(ad.refused, fmt.Sprintf("Reading ends when %s. If the rows that pass are spread evenly, an index on (%s) would save about %s: too few. None is recommended.", e.when, strings.Join(p.columns(), ", "), amount(math.Max(0, now-then), "row", "rows")))
			return false
		}
		ad.refused = append(ad.refused, fmt.Sprintf("An index on (%s) would avoid %s of the %s read for this SELECT: too few. None is recommended.", strings.Join(p.columns(), ", "), amount(math.Max(0, now-then), "row", "rows"), digits.Count(all)))
		return false
	}
	if compared >= manyCompared && then <= now/20 {
		return true // no matter how many pages are read for it
	}
	fewer := then <= 0.6*now && now-then >= worthRows
	limit := before * 0.75
	if !p.covering && then > now/20 {
		limit = before / 2
	}
	if fewer && pages <= limit {
		return true
	}
	if n.Access == AccessAll && !n.Covering {
		a.refuse(ad, p, o, fewer, now, then, before, pages)
	}
	return false
}

// thinned reports whether conditions on other tables of the join leave fewer rows to be sorted than a table returns; how many is not known.
func (a *adviser) thinned(n *Node) bool {
	for _, other := range a.joined(n) {
		if other.Condition != "" {
			return true
		}
	}
	return false
}

// What an index has to spare, as parts of the rows of tables that are read: of its SELECT's, and of all.
const (
	worthShare = 0.25
	worthAny   = 0.02
)

// Comparing a pair of rows in a join buffer counts as a tenth of reading a row; from this many on it takes seconds.
const (
	pairShare    = 0.1
	manyCompared = 2000 * many
)

// compared is what a table costs that is compared row by row with those of a join buffer, as so many rows read: 0 for
// other joins.
func (a *adviser) compared(n *Node) float64 {
	if !strings.Contains(n.JoinBuffer, "Nested Loop") {
		return 0
	}
	if _, early := a.ends(n); early {
		return 0
	}
	return a.outerRows(n) * n.rowsOnce() * pairShare
}

// worthRows is how many rows an index has to spare, so that it is worth a word.
const worthRows = 100

// refuse says why a proposal is not advised.
func (a *adviser) refuse(ad *Advice, p *candidate, o ordering, fewer bool, now, then, before, pages float64) {
	cols := strings.Join(p.columns(), ", ")
	switch {
	case fewer && !p.covering:
		ad.refused = append(ad.refused, fmt.Sprintf("An index on (%s) would find about %s, but look each up at a random place: about %s, where %s are read in sequence now. None is recommended.", cols, amount(then, "row", "rows"), amount(math.Ceil(pages), "page", "pages"), digits.Count(before)))
	case now-then >= worthRows || then >= now/2:
		ad.refused = append(ad.refused, append(p.told, fmt.Sprintf("With an index on (%s) about %s would be read, where %s rows are read now: too few are saved. None is recommended.", cols, amount(math.Min(then, now), "entry", "entries"), digits.Count(now)))...)
	}
}

// pagesNow is how many pages an access reads in all executions.
func (a *adviser) pagesNow(n *Node, f *TableFacts, ad *Advice, once, runs float64) float64 {
	pages := ad.TablePages
	part := math.Min(1, once/f.Rows)
	switch {
	case n.Covering:
		pages = math.Ceil(indexBytes(f, f.columnsOfKey(n.Key)) / f.PageSize * part)
	case n.Access == AccessAll || n.Key == "PRIMARY":
		pages *= part
	default:
		pages = math.Ceil(indexBytes(f, f.columnsOfKey(n.Key))/f.PageSize*part) + touched(ad.TablePages, once)
	}
	// More than the whole is not touched, however often it is looked into; so it is counted of a proposal as well.
	whole := ad.TablePages * math.Max(1, once*runs/f.Rows)
	if n.Access != AccessAll && n.Key != "PRIMARY" {
		whole += math.Ceil(indexBytes(f, f.columnsOfKey(n.Key)) / f.PageSize)
	}
	return math.Min(math.Max(1, pages)*math.Max(1, runs), math.Max(whole, 1))
}

// btree reports whether an index is one, with nothing but whole columns.
func (t *TableFacts) btree(key string) bool {
	for _, i := range t.Indexes {
		if i.Name == key {
			for j, c := range i.Columns {
				if c == "" || i.Prefix[j] > 0 {
					return false
				}
			}
			return i.BTree
		}
	}
	return false
}
