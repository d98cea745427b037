package plan

import (
	"math"
	"strings"
)

// total numbers the nodes and works out what a format leaves to the reader: how often each node is expected to run,
// what it costs by itself, and the time it took by itself.
//
// Formats disagree on what a figure means:
//   - MySQL's version 1: read_cost and eval_cost of a table are its own, for one execution of its block.
//   - FORMAT=TREE and version 2: cost is of one execution with all below it, so that own = cost × executions less
//     that of the children; actual time is the mean of one loop with all below it.
//   - MariaDB: cost (11.0 and later), r_table_time_ms and r_other_time_ms are the table's own, of all executions;
//     r_total_time_ms of a query block holds all below it.
func total(p *Plan) {
	p.namesInBackticks()
	id := 0
	p.Root.Walk(func(n, _ *Node, _ int) {
		id++
		n.ID = id
	})
	t := totalsOf(p)
	t.executions(p.Root, 1, 1)
	if t.join {
		t.ownCosts(p.Root, 1)
		t.blockTime(p.Root)
	} else {
		t.treeCosts(p.Root)
		t.treeTime(p.Root)
	}
}

func totalsOf(p *Plan) totals {
	return totals{join: p.Format == FormatMySQL1 || p.Format == FormatMariaDB || p.Format == FormatTable, tabular: p.Format == FormatTable}
}

type totals struct {
	tabular bool // it is unknown what subqueries are attached to
	join    bool // tables know their place in a join: rows and costs are for the block
}

// rowsOut is what the optimiser expects a node to hand on in one execution.
func (t totals) rowsOut(n *Node) float64 {
	switch {
	case n.Limit > 0 && len(n.Children) > 0:
		return math.Min(float64(n.Limit), t.rowsOut(n.Children[0]))
	case n.Kind == KindTable && n.Rows.Known():
		if t.join {
			return float64(n.Rows) * n.Filtered.Or(100) / 100
		}
		return float64(n.Rows)
	case n.Rows.Known():
		return float64(n.Rows)
	case n.Kind == KindNestedLoop && t.join:
		out := 1.0
		for _, c := range n.Children {
			out *= t.rowsOut(c)
		}
		return out
	}
	for _, c := range n.Children {
		if c.Kind != KindSubquery && c.Kind != KindCache {
			return t.rowsOut(c)
		}
	}
	return 1
}

// executions says how often each node is expected to run: the inner side of a nested loop once for each row of the
// outer one; a subquery that is dependent or may not be cached once for each row that is tested; what is kept, once.
// selects is how often the SELECT of the node runs: what a server reports itself is of one run of it.
func (t totals) executions(n *Node, times, selects float64) {
	switch n.Kind {
	case KindQuery, KindSubquery, KindMaterialise, KindCache:
		selects = times
	}
	n.Executions = Figure(times)
	if n.told > 0 && n.JoinBuffer == "" { // MariaDB 11 shows for a join buffer how many rows go into it
		n.Executions = Figure(n.told * selects)
	}
	outer := times
	for i, c := range n.Children {
		at := times
		switch {
		case c.Kind == KindSubquery, c.Kind == KindCache:
			at = 1
			if (c.Uncacheable || c.Dependent || c.Kind == KindCache) && !t.tabular {
				at = times * t.tested(n, c)
			}
		case c.Kind == KindMaterialise && !c.Dependent:
			at = 1
		case n.Kind == KindNestedLoop, n.Kind == KindBatchedJoin:
			at = outer
			if c.Kind == KindTable && t.join && c.Produced.Known() {
				outer = times * float64(c.Produced)
			} else if i == 0 || t.join {
				outer *= t.rowsOut(c)
			}
			if c.JoinBuffer != "" {
				at = times // the buffer is filled, then the table is read once for it
			}
		}
		t.executions(c, at, selects)
	}
}

// tested is how many rows of one execution of n meet a subquery that is attached there: all that a table reads, all that
// reach a filter; for a subquery of the select list, all that come out.
func (t totals) tested(n, subquery *Node) float64 {
	if n.Kind == KindTable {
		return n.Rows.Or(1)
	}
	if strings.Contains(subquery.Role, "select list") && n.Rows.Known() {
		return float64(n.Rows)
	}
	for _, c := range n.Children {
		if c.Kind != KindSubquery && c.Kind != KindCache {
			return t.rowsOut(c)
		}
	}
	return 1
}

// ownCosts turns the costs of a block's parts, given for one execution of the block, into those of all.
func (t totals) ownCosts(n *Node, block float64) {
	switch n.Kind {
	case KindQuery, KindSubquery, KindMaterialise, KindCache:
		block = n.Executions.Or(1)
	}
	if n.Kind == KindTable && n.Cost.Known() && !n.OwnCost.Known() { // MariaDB 11
		n.OwnCost = n.Cost * Figure(block)
	} else if n.OwnCost.Known() {
		if n.Kind == KindTable {
			n.Cost = n.OwnCost
		}
		n.OwnCost *= Figure(block)
	}
	for _, c := range n.Children {
		t.ownCosts(c, block)
	}
}

// treeCosts fills in own costs where a cost holds all below it, and returns the cost of all executions.
func (t totals) treeCosts(n *Node) float64 {
	below, subqueries, kept := 0.0, 0.0, 0.0
	for _, c := range n.Children {
		cost := t.treeCosts(c)
		if n.Kind == KindTable && (c.Kind == KindMaterialise || c.Kind == KindTemporary) {
			kept += c.Cost.Or(0) // reported again with each look-up, but done once
		}
		if c.Kind == KindSubquery {
			subqueries += cost // MySQL adds them to no node above
		} else {
			below += cost
		}
	}
	if !n.Cost.Known() {
		return below + subqueries
	}
	all := float64(n.Cost) * n.Executions.Or(1)
	if kept > 0 {
		all = below + math.Max(0, float64(n.Cost)-kept)*n.Executions.Or(1)
	}
	n.OwnCost = Figure(math.Max(0, all-below))
	return all + subqueries
}

// treeTime fills in own times where a time holds all below it, and returns that time.
func (t totals) treeTime(n *Node) float64 {
	below := 0.0
	for _, c := range n.Children {
		below += t.treeTime(c)
	}
	if !n.Time.Known() {
		if n.Kind == KindQuery && below > 0 {
			n.Time = Figure(below)
		}
		return below
	}
	n.OwnTime = Figure(math.Max(0, float64(n.Time)-below))
	return float64(n.Time)
}

// blockTime does the same for MariaDB's mixture of own and whole times.
func (t totals) blockTime(n *Node) float64 {
	below := 0.0
	for _, c := range n.Children {
		below += t.blockTime(c)
	}
	switch {
	case n.Kind == KindTable && n.Time.Known() && !n.OwnTime.Known():
		n.OwnTime = n.Time // MariaDB before 10.9 reports r_total_time_ms of a table: its own
		n.Time = Unknown()
	case n.Kind == KindSort && n.Time.Known() && float64(n.Time) < below:
		n.OwnTime = n.Time // it sorts what a temporary table below has gathered
		n.Time = Unknown()
	case n.Time.Known() && n.Kind != KindTable:
		n.OwnTime = Figure(math.Max(0, float64(n.Time)-below))
		return float64(n.Time)
	}
	all := n.OwnTime.Or(0) + below
	if all > 0 {
		n.Time = Figure(all)
	}
	return all
}
