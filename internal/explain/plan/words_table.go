package plan

import (
	"fmt"
	"math"
	"strings"
)

// table says how a table is read.
func (t *teller) table(n *Node) {
	ran := "; it was explained, not run"
	if t.plan.Analyzed {
		ran = ", and did when this was measured"
	}
	if n.Role == "insert" || n.Role == "replace" {
		t.say(n, "writes", Note, "The statement would %s into %s%s.", n.Role, n.Name(), ran)
		return
	}
	if n.Role == "update" || n.Role == "delete" {
		t.say(n, "writes", Note, "The statement would %s rows of %s%s.", n.Role, n.Name(), ran)
	}
	if n.Loops.Known() && n.Loops == 0 && t.plan.Analyzed {
		t.say(n, "never_executed", Note, "Table %s was never read in this run.", n.Name())
		return
	}
	if n.Temporary && (n.Role == "update" || n.Role == "delete") {
		t.say(n, "buffer_rows", Note, "The rows to change are gathered first, so that a changed row is not met again.")
	} else if n.Temporary && !n.Inner() {
		t.say(n, "temporary_table", graded(readRows(n)), "\"Using temporary\": rows of %s go through a temporary table, for %s.", n.Name(), t.temporaryReasons())
	}
	if n.JoinBuffer != "" {
		t.joinBuffer(n)
	}
	if n.Inner() {
		return
	}
	if n.hasMember("range_checked_for_each_record") || strings.Contains(n.Title, "re-planned") || t.parents[n] != nil && t.parents[n].Title == "range-checked-for-each-record" {
		t.say(n, "range_checked", Costly, "No index of %s is chosen while planning: for each row of the tables before it the server looks again whether one fits, and else reads it whole.", n.Name())
		return
	}
	if n.hasMember("using_index_for_group_by") {
		t.say(n, "loose_index_scan", Note, "Loose index scan: of index %s only the first entries of each group are read.", n.Key)
		return
	}
	rows := readRows(n)
	switch {
	case n.Access == AccessAll:
		t.fullScan(n, rows)
	case n.Access == AccessIndex && n.Role != "part of the index merge":
		t.indexScan(n, rows)
	case n.Access == AccessMerge:
		if len(n.Children) == 0 {
			t.merge(n, keysOf(n.Key))
		}
	case n.Access == AccessConst || n.Access == AccessSystem || n.Access == AccessEqRef && n.Executions.Or(1) <= 1:
	case n.Key != "" && n.Covering:
		t.say(n, "covering", Note, "Covering: index %s alone answers, the rows of %s are not touched.", n.Key, n.Name())
	case rows < 100 && !n.Covering:
	case n.Key != "" && n.Key != "PRIMARY" && n.Role == "":
		t.say(n, "not_covering", graded(rows), "Index %s of %s is not covering: each of about %s entries needs a look-up of its row in the clustered index, at random places.", n.Key, n.Name(), count(rows))
	}
}

// temporaryReasons are what a temporary table may be for, as far as the statement is known.
func (t *teller) temporaryReasons() string {
	var list []string
	for _, r := range []struct{ word, name string }{{"GROUP", "GROUP BY"}, {"DISTINCT", "DISTINCT"}, {"ORDER", "ORDER BY"}, {"SQL_BUFFER_RESULT", "SQL_BUFFER_RESULT"}} {
		if t.words[r.word] || !t.known {
			list = append(list, r.name)
		}
	}
	switch len(list) {
	case 0:
		return "a reason that tabular EXPLAIN does not tell"
	case 1:
		return list[0]
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1] + "; tabular EXPLAIN does not tell which"
}

// hasMember says whether a plan told something of that name that has no field.
func (n *Node) hasMember(name string) bool {
	for _, m := range n.Extra {
		if m.Name == name && string(m.Value) != "false" {
			return true
		}
	}
	return false
}

// keysOf reads intersect(a,b).
func keysOf(key string) string {
	if p := parenthesised(key); p != "" {
		return p
	}
	return key
}

func (t *teller) fullScan(n *Node, rows float64) {
	severity := graded(rows)
	if severity == Costly && (n.Executions.Or(1) > 1 && n.JoinBuffer == "" || t.share(n) > 0.5 && rows > 10*many) {
		severity = Bad
	}
	words := fmt.Sprintf("Full scan of %s: all of about %s read", n.Name(), amount(n.rowsOnce(), "row is", "rows are"))
	if runs := n.runsKnown(); runs > 1 {
		words += fmt.Sprintf(", %s times", count(runs))
	}
	words += t.passing(n) + "."
	switch {
	case len(n.PossibleKeys) > 0:
		words += fmt.Sprintf(" Possible, but not taken: %s.", strings.Join(n.PossibleKeys, ", "))
	case t.condition(n) != "" && t.plan.Format != FormatTree && t.plan.Format != FormatMySQL2:
		words += " No index fits its condition."
	}
	t.say(n, "full_scan", severity, "%s", words)
}

func (t *teller) indexScan(n *Node, rows float64) {
	if n.Covering {
		t.say(n, "full_index_scan", graded(rows), "The whole index %s of %s is read, about %s; it is covering, the rows are not touched.", n.Key, n.Name(), amount(n.rowsOnce(), "entry", "entries"))
		return
	}
	if n.Key == "PRIMARY" {
		t.say(n, "full_scan", graded(rows), "Full scan of %s in the order of its primary key, about %s%s.", n.Name(), amount(n.rowsOnce(), "row", "rows"), t.passing(n))
		return
	}
	severity := graded(rows)
	if severity == Costly && t.share(n) > 0.5 {
		severity = Bad
	}
	t.say(n, "full_index_scan", severity, "The whole index %s of %s is read for its order, about %s, and it is not covering: as many rows are looked up in the clustered index, at random places.", n.Key, n.Name(), amount(n.rowsOnce(), "entry", "entries"))
}

// rowsOnce are the rows of one execution, counted or expected.
func (n *Node) rowsOnce() float64 {
	if n.ActualRows.Known() && n.Loops.Or(0) > 0 {
		return float64(n.ActualRows)
	}
	return n.Rows.Or(0)
}

func (n *Node) runsKnown() float64 {
	if n.Loops.Known() {
		return float64(n.Loops)
	}
	return n.Executions.Or(1)
}

// condition is what rows of a table are tested with: its own, or the filter's above it.
func (t *teller) condition(n *Node) string {
	if n.Condition != "" {
		return n.Condition
	}
	if p := t.parents[n]; p != nil && p.Kind == KindFilter {
		return p.Condition
	}
	return ""
}

// passing says which part of the rows read passes the condition.
func (t *teller) passing(n *Node) string {
	if part, counted := passingPart(n, t.parents[n]); part < 1 {
		word := "expected"
		if counted {
			word = "counted"
		}
		return fmt.Sprintf(", and %s %% of them pass the condition (%s)", count(100*part), word)
	}
	return ""
}

// passingPart is the part of a table's rows that pass its condition, 0 to 1, and whether it was counted.
func passingPart(n, parent *Node) (part float64, counted bool) {
	filter := parent != nil && parent.Kind == KindFilter && parent.Children[0] == n
	switch {
	case n.ActualFiltered.Known() && n.ActualRows > 0:
		return float64(n.ActualFiltered) / 100, true
	case filter && parent.ActualRows.Known() && n.ActualRows > 0 && n.Loops > 0:
		return float64(parent.ActualRows*parent.Loops) / float64(n.ActualRows*n.Loops), true
	case n.Filtered.Known():
		return float64(n.Filtered) / 100, false
	case filter && parent.Rows.Known() && n.Rows > 0:
		return float64(parent.Rows / n.Rows), false
	}
	return 1, false
}

func (t *teller) joinBuffer(n *Node) {
	outer := 1.0
	if p := t.parents[n]; p != nil && p.Kind == KindNestedLoop {
		for _, c := range p.Children {
			if c == n {
				break
			}
			if c.ActualRows.Known() && c.Kind == KindTable {
				outer = float64(c.ActualRows) * math.Max(1, c.Loops.Or(1)) * c.ActualFiltered.Or(100) / 100
			} else if c.Produced.Known() {
				outer = float64(c.Produced)
			} else {
				outer *= totals{join: true}.rowsOut(c)
			}
		}
	}
	inner := n.rowsOnce()
	pairs := outer * inner
	if strings.Contains(strings.ToLower(n.JoinBuffer), "hash") {
		t.say(n, "join_buffer", graded(inner), "Table %s is joined without an index, by a hash of the join buffer (%s): about %s on one side, %s on the other.", n.Name(), n.JoinBuffer, amount(outer, "row", "rows"), count(inner))
		return
	}
	if strings.Contains(n.JoinBuffer, "Batched") || strings.Contains(n.JoinBuffer, "BKA") {
		t.say(n, "join_buffer", Note, "Look-ups in %s are gathered in a join buffer and made in order (%s).", n.Name(), n.JoinBuffer)
		return
	}
	t.say(n, "join_buffer", graded(pairs), "Table %s is joined without an index: its rows are compared with those of the join buffer (%s), about %s × %s = %s.", n.Name(), n.JoinBuffer, count(outer), count(inner), amount(pairs, "pair", "pairs"))
}
