package plan

import (
	"math"
	"strings"
)

// sampled is the part of a table's rows that comparisons match together, by its sample; false where some of them
// could not be asked.
func (a *adviser) sampled(f *TableFacts, list []conjunct) (float64, bool) {
	var texts []string
	for _, c := range list {
		if c.sample == "" {
			return 0, false
		}
		texts = append(texts, c.sample)
	}
	if len(texts) == 0 {
		return 0, false
	}
	return f.Sample.share(texts)
}

// portion is the part of a table's rows that comparisons match, all together by its sample or each by itself.
func (a *adviser) portion(f *TableFacts, list []conjunct) (float64, bool) {
	if f.Sample == nil || f.Sample.Rows == 0 || len(list) == 0 {
		return 0, false
	}
	if s, ok := a.sampled(f, list); ok {
		return s, true
	}
	part := 1.0
	for _, c := range list {
		s, ok := f.share(c)
		if !ok {
			return 0, false
		}
		part *= s
	}
	return math.Max(part, 0.5/f.Rows), true
}

// share is the part of a table's rows that one comparison matches, by the sample or by an index's statistics.
func (t *TableFacts) share(c conjunct) (float64, bool) {
	if c.sample != "" {
		if s, ok := t.Sample.share([]string{c.sample}); ok {
			return s, true
		}
	}
	if c.kind != "equal" {
		return 1, false
	}
	for _, i := range t.Indexes {
		if i.BTree && len(i.Columns) > 0 && strings.EqualFold(i.Columns[0], c.column) && len(i.Distinct) > 0 && i.Distinct[0] > 0 {
			return 1 / i.Distinct[0], true
		}
	}
	if t.Sample != nil && t.Sample.Distinct[strings.ToLower(c.column)] > 0 {
		return 1 / t.Sample.Distinct[strings.ToLower(c.column)], true
	}
	return 1, false
}

// rowsBy is how many rows of the table an index that begins with these columns leaves in one execution, and whether
// that is more than a guess.
func (a *adviser) rowsBy(n *Node, f *TableFacts, ad *Advice, w wanted, columns []string) (rows float64, known bool) {
	if len(columns) == 0 {
		return f.Rows, true
	}
	named := map[string]bool{}
	for _, c := range columns {
		named[strings.ToLower(c)] = true
	}
	if f.unique(w.equal, named) {
		return 1, true
	}
	var mine []conjunct
	for _, c := range w.all {
		if c.kind != "other" && named[strings.ToLower(c.column)] {
			mine = append(mine, c)
		}
	}
	whole := n.Access == AccessAll || n.Access == AccessIndex
	if whole && len(mine) == len(w.all) && (ad.Counted || f.Sample == nil || f.Sample.Rows == 0) {
		return ad.Matched, ad.Counted || ad.Part < 1
	}
	if f.Sample == nil || f.Sample.Rows == 0 {
		return a.guessed(n, f, ad, w, columns), ad.Part < 1
	}
	if s, ok := a.sampled(f, mine); ok { // all of them together, where they are all there is
		return f.Rows * s, true
	}
	rows, known = f.Rows, true
	for _, c := range mine {
		s, ok := f.share(c)
		if c.kind == "equal" && s == 1 || !ok {
			known = known && ok
		}
		rows *= s
	}
	rows = math.Max(rows, math.Min(1, f.Rows))
	if whole && ad.Counted {
		rows = math.Max(rows, ad.Matched)
	}
	return rows, known
}

// unique reports whether columns compared for equality hold a unique index.
func (t *TableFacts) unique(equal []string, among map[string]bool) bool {
	have := map[string]bool{}
	for _, c := range equal {
		have[strings.ToLower(c)] = among[strings.ToLower(c)]
	}
	for _, i := range t.Indexes {
		all := i.Unique && i.BTree && len(i.Columns) > 0
		for j, c := range i.Columns {
			all = all && have[strings.ToLower(c)] && i.Prefix[j] == 0
		}
		if all {
			return true
		}
	}
	return false
}

// guessed is how many rows columns are expected to leave where only the server's own estimates are known.
func (a *adviser) guessed(n *Node, f *TableFacts, ad *Advice, w wanted, columns []string) float64 {
	rows := math.Inf(1)
	fixed := map[string]bool{}
	for _, c := range columns {
		fixed[strings.ToLower(c)] = true
	}
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
	if math.IsInf(rows, 1) { // unknown: each comparison is assumed to leave the same part
		k := float64(len(columns))
		rows = f.Rows * math.Pow(math.Max(1/f.Rows, ad.Part), k/math.Max(k, float64(len(w.all))))
	}
	return rows
}

// passing is the part of the rows which an index on columns leaves that passes all the conditions, and whether it is
// known.
func (a *adviser) passing(n *Node, f *TableFacts, ad *Advice, w wanted, columns []string, left float64) (float64, bool) {
	served := true
	for _, c := range w.all {
		in := false
		for _, name := range columns {
			in = in || strings.EqualFold(name, c.column)
		}
		served = served && in && c.kind != "other"
	}
	if served {
		return 1, true
	}
	whole := n.Access == AccessAll || n.Access == AccessIndex
	if whole && ad.Counted {
		return math.Min(1, math.Max(ad.Matched, 0.5)/math.Max(left, 1)), true
	}
	if s, ok := a.sampled(f, w.all); ok {
		return math.Min(1, s*f.Rows/math.Max(left, 1)), true
	}
	if f.Sample == nil && ad.Part < 1 {
		return math.Min(1, ad.Part*f.Rows/math.Max(left, 1)), true
	}
	return 1, false
}

// found is how many rows of an access pass all its conditions in one execution.
func (a *adviser) found(n *Node, f *TableFacts, ad *Advice, w wanted) float64 {
	if n.Access == AccessAll || n.Access == AccessIndex {
		return ad.Matched
	}
	if s, ok := a.sampled(f, w.all); ok && !ad.Counted {
		return math.Min(ad.Matched, s*f.Rows)
	}
	share, _ := passingPart(n, a.parents[n])
	return ad.Matched * math.Min(1, share)
}

// readsNow is how many rows or entries one execution of an access reads: fewer than all where a LIMIT ends it.
func (a *adviser) readsNow(n *Node, f *TableFacts) float64 {
	rows, _ := a.reads(n)
	if rows <= 0 {
		rows = f.Rows
	}
	return rows
}

// selectOf is the SELECT that an access belongs to.
func (a *adviser) selectOf(n *Node) *Node {
	top := n
	for p := a.parents[n]; p != nil; p = a.parents[p] {
		top = p
		switch p.Kind {
		case KindQuery, KindSubquery, KindMaterialise, KindCache, KindUnion:
			return top
		}
	}
	return top
}

// runs is how often an access runs: counted, or expected by what a sample says about the tables before it, if the server
// expects more.
func (a *adviser) runs(n *Node) float64 {
	runs := n.runsKnown()
	if !n.Loops.Known() && runs > 1 {
		runs = math.Max(1, math.Min(runs, a.outerRows(n)))
	}
	return runs
}

// scanned is how many rows of tables a SELECT reads, in all executions; those of the root are of the whole statement.
func (a *adviser) scanned(top *Node) float64 {
	rows := 0.0
	var add func(x *Node)
	add = func(x *Node) {
		switch {
		case x != top && top != a.plan.Root && (x.Kind == KindSubquery || x.Kind == KindCache || x.Kind == KindMaterialise):
			return // another SELECT
		case x.Kind == KindTable && !x.Inner():
			runs := a.runs(x)
			if x.JoinBuffer != "" || a.hashed(x) {
				runs = 1
			}
			once, _ := a.reads(x)
			rows += once*runs + a.compared(x)
		}
		for _, c := range x.Children {
			add(c)
		}
	}
	add(top)
	return rows
}

// outerRows is how many rows of the tables joined before it meet a table, in all executions: so often an index of it
// would be looked into.
func (a *adviser) outerRows(n *Node) float64 {
	rows := 1.0
	for c, p := n, a.parents[n]; p != nil; c, p = p, a.parents[p] {
		switch p.Kind {
		case KindNestedLoop, KindBatchedJoin:
			for _, before := range p.Children {
				if before == c {
					break
				}
				rows *= a.out(before)
			}
		case KindHashJoin:
			for _, other := range p.Children {
				if other != c {
					rows *= a.out(other)
				}
			}
		case KindQuery, KindSubquery, KindMaterialise, KindCache:
			return rows * math.Max(1, p.Executions.Or(1))
		}
	}
	return rows
}

// out is how many rows a part of a join hands on.
func (a *adviser) out(n *Node) float64 {
	if n.ActualRows.Known() {
		rows := float64(n.ActualRows)
		if n.Kind == KindTable && n.ActualFiltered.Known() {
			rows *= float64(n.ActualFiltered) / 100
		}
		return rows
	}
	if n.Kind == KindTable {
		if f := a.tables[n.Name()]; f != nil && (n.Access == AccessAll || n.Access == AccessIndex) {
			var own []conjunct
			for _, c := range a.wanted(n, f).all {
				if c.sample != "" {
					own = append(own, c)
				}
			}
			if s, ok := a.sampled(f, own); ok {
				return s * f.Rows
			}
		}
		return n.Rows.Or(1) * n.Filtered.Or(100) / 100
	}
	if n.Kind == KindNestedLoop && !n.Rows.Known() {
		rows := 1.0
		for _, c := range n.Children {
			rows *= a.out(c)
		}
		return rows
	}
	for _, c := range n.Children {
		if c.Kind != KindSubquery && c.Kind != KindCache {
			return a.out(c)
		}
	}
	return n.Rows.Or(1)
}
