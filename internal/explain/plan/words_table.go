package plan

import (
	"fmt"
	"math"
	"strings"

	"github.com/rissodb/risso/internal/digits"
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
		t.say(n, "buffer_rows", Note, "The rows to change are collected first, so that a changed row is not found again.")
	} else if n.Temporary && !n.Inner() {
		t.say(n, "temporary_table", graded(readRows(n)), "\"Using temporary\": rows of %s go through a temporary table, for %s.", n.Name(), t.temporaryReasons())
	}
	if n.JoinBuffer != "" {
		t.joinBuffer(n)
	}
	if n.Inner() {
		return
	}
	if rechecked(n, t.parents[n]) {
		severity := Costly
		if graded(readRows(n)) == Bad {
			severity = Bad
		}
		t.say(n, "range_checked", severity, "No index of %s is chosen while planning: for each row of the tables before it the server checks again whether one is usable, and otherwise reads all of it.", n.Name())
		return
	}
	if n.hasMember("using_index_for_group_by") {
		t.say(n, "loose_index_scan", Note, "Loose index scan: only the first entries of each group in index %s are read.", n.Key)
		return
	}
	rows := t.readRows(n)
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
		t.say(n, "covering", Note, "Covering: index %s alone suffices, the rows of %s are not touched.", n.Key, n.Name())
	case rows < 100 && !n.Covering:
	case n.Key != "" && n.Key != "PRIMARY" && n.Role == "":
		t.say(n, "not_covering", graded(rows), "Index %s of %s is not covering: each of %s needs a look-up of its row in the clustered index, at random places.", n.Key, n.Name(), t.about(n, readRows(n), "entry", "entries"))
	}
}

// rechecked reports whether an index of a table is looked for again with each row of the tables before it.
func rechecked(n, parent *Node) bool {
	return n.hasMember("range_checked_for_each_record") || strings.Contains(n.Title, "re-planned") || parent != nil && parent.Title == "range-checked-for-each-record"
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
		return "a reason that tabular EXPLAIN does not show"
	case 1:
		return list[0]
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1] + "; tabular EXPLAIN does not show which"
}

// hasMember reports whether a plan has a member of that name for which there is no field.
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
	often := ", %s times"
	if e, held, early := t.stopped(n, "row", "rows"); early {
		words, often = fmt.Sprintf("Full scan of %s that ends when %s: %s read", n.Name(), e.when, held), ", at most %s times"
	}
	if runs := n.runsKnown(); runs > 1 {
		words += fmt.Sprintf(often, digits.Count(runs))
	}
	words += t.passing(n) + "."
	switch {
	case len(n.PossibleKeys) > 0:
		words += fmt.Sprintf(" Possible, but not used: %s.", strings.Join(n.PossibleKeys, ", "))
	case t.condition(n) != "" && t.plan.Format != FormatTree && t.plan.Format != FormatMySQL2:
		words += " No index matches its condition."
	}
	t.say(n, "full_scan", severity, "%s", words)
}

// stopped says what ends the reading of a table early, and how many rows or entries are read until then.
func (t *teller) stopped(n *Node, one, more string) (e ending, held string, early bool) {
	e, early = t.a.ends(n)
	if !early || n.ActualRows.Known() {
		return e, "", false
	}
	rows, known := t.a.reads(n)
	most, told := t.a.most(n)
	is, are := one+" is", more+" are"
	switch {
	case known && told && rows < most && t.a.tested(n):
		held = fmt.Sprintf("about %s if those that pass are spread evenly, and at most all of about %s", amount(rows, one, more), amount(most, is, are))
	case known:
		held = "about " + amount(rows, is, are)
	case told:
		held = "at most all of about " + amount(most, is, are)
	default:
		held = "how soon is unknown, at most all " + are
	}
	return e, held, true
}

func (t *teller) indexScan(n *Node, rows float64) {
	one, more := "entry", "entries"
	if n.Key == "PRIMARY" && !n.Covering {
		one, more = "row", "rows"
	}
	if e, held, early := t.stopped(n, one, more); early {
		looked, severity := "it is covering, the rows are not touched", graded(rows)
		switch {
		case n.Key == "PRIMARY" && !n.Covering:
			t.say(n, "full_scan", severity, "%s is read in the order of its primary key until %s: %s read%s.", n.Name(), e.when, held, t.passing(n))
			return
		case !n.Covering:
			looked = "it is not covering: as many rows are looked up in the clustered index, at random places"
			if severity == Costly && t.share(n) > 0.5 {
				severity = Bad
			}
		}
		t.say(n, "full_index_scan", severity, "Index %s of %s is read in its order until %s: %s read, and %s%s.", n.Key, n.Name(), e.when, held, looked, t.passing(n))
		return
	}
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

// rowsOnce is the number of rows of one execution, counted or expected.
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

// about is a number of rows, as one that may not be reached if the reading of a table may end early.
func (t *teller) about(n *Node, rows float64, one, more string) string {
	what := "about " + strings.TrimSpace(amount(rows, one, more))
	if t.early(n) {
		return "at most " + what
	}
	return what
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
		return fmt.Sprintf(", and %s of them pass the condition (%s)", digits.Percent(part), word)
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
		t.say(n, "join_buffer", graded(inner), "Table %s is joined without an index, by a hash of the join buffer (%s): %s on one side, %s on the other.", n.Name(), n.JoinBuffer, t.about(n, outer, "row", "rows"), digits.Count(inner))
		return
	}
	if strings.Contains(n.JoinBuffer, "Batched") || strings.Contains(n.JoinBuffer, "BKA") {
		t.say(n, "join_buffer", Note, "Look-ups in %s are collected in a join buffer and done in order (%s).", n.Name(), n.JoinBuffer)
		return
	}
	t.say(n, "join_buffer", graded(pairs), "Table %s is joined without an index: its rows are compared with those of the join buffer (%s), %s × %s = %s.", n.Name(), n.JoinBuffer, t.about(n, outer, "", ""), digits.Count(inner), amount(pairs, "pair", "pairs"))
}
