package plan

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/sqltext"
)

// Severity of a sentence.
const (
	Bad    = "bad"    // work that grows with the product of what is read, or most of the work
	Costly = "costly" // work that another plan would spare
	Note   = "note"   // good to know
)

// Sentence is one observation about one node of a plan.
type Sentence struct {
	Node     int     `json:"node"`
	Kind     string  `json:"kind"` // full_scan, dependent_subquery, filesort, …: stable, for programs
	Severity string  `json:"severity"`
	Share    float64 `json:"share"` // the node's share of the plan's own costs or times, 0 to 1
	Text     string  `json:"text"`
}

func (s Sentence) mark() string {
	switch s.Severity {
	case Bad:
		return "!!"
	case Costly:
		return "! "
	}
	return "· "
}

// many is the number of rows from which on work that could be saved is called costly, and a hundred times that bad:
// below it a statement takes about a millisecond, whatever its plan.
const many = 1000

// Sentences says in words what the tabular form of a plan hides, worst first. sql is the statement or "".
func Sentences(p *Plan, sql string) []Sentence { return sentences(newAdviser(p, nil, sql)) }

// sentences uses what is known of the tables, too.
func sentences(a *adviser) []Sentence {
	p, sql := a.plan, a.sql
	t := &teller{plan: p, a: a, known: sql != "", sql: strings.ToUpper(sql + " " + p.Rewritten), words: map[string]bool{}, parents: map[*Node]*Node{}}
	text := sql
	if sql == "" {
		text = p.Rewritten
	}
	for _, x := range lex(text) { // the server's own words may have SQL_BUFFER_RESULT even if it was not written
		if x.Kind == sqltext.TokenWord {
			t.words[strings.ToUpper(x.Text)] = true
		}
	}
	t.blocks = append(blocksOf(sql), blocksOf(p.Rewritten)...)
	p.Root.Walk(func(n, parent *Node, _ int) {
		t.parents[n] = parent
		t.sum += t.weight(n)
	})
	t.heaviest()
	p.Root.Walk(func(n, _ *Node, _ int) { t.node(n) })
	rank := map[string]int{Bad: 0, Costly: 1, Note: 2}
	sort.SliceStable(t.out, func(i, j int) bool {
		a, b := t.out[i], t.out[j]
		if rank[a.Severity] != rank[b.Severity] {
			return rank[a.Severity] < rank[b.Severity]
		}
		return a.Share > b.Share
	})
	return t.out
}

type teller struct {
	plan    *Plan
	a       *adviser        // for what a table reads
	known   bool            // the statement is
	sql     string          // upper case, with the server's rewriting of it
	words   map[string]bool // of the statement, in upper case
	blocks  []block         // of both
	parents map[*Node]*Node
	sum     float64
	out     []Sentence
}

// weight is a node's own time if it was measured, else its own cost.
func (t *teller) weight(n *Node) float64 {
	if t.plan.Analyzed {
		return n.OwnTime.Or(0)
	}
	return n.OwnCost.Or(0)
}

func (t *teller) share(n *Node) float64 {
	if t.sum <= 0 {
		return 0
	}
	return t.weight(n) / t.sum
}

func (t *teller) say(n *Node, kind, severity, format string, args ...any) {
	t.out = append(t.out, Sentence{Node: n.ID, Kind: kind, Severity: severity, Share: t.share(n), Text: fmt.Sprintf(format, args...)})
}

// graded returns the severity for so many rows of work.
func graded(rows float64) string {
	switch {
	case rows >= 100*many:
		return Bad
	case rows >= many:
		return Costly
	}
	return Note
}

// heaviest names the node that has the largest part, when it has much and is not the only one.
func (t *teller) heaviest() {
	var top *Node
	nodes := 0
	t.plan.Root.Walk(func(n, _ *Node, _ int) {
		if t.weight(n) > 0 {
			nodes++
			if top == nil || t.weight(n) > t.weight(top) {
				top = n
			}
		}
	})
	if nodes < 2 || t.share(top) < 0.3 {
		return
	}
	what := "expected cost"
	if t.plan.Analyzed {
		what = "measured time"
	}
	t.say(top, "heaviest", Costly, "%s of the %s is here: %s.", digits.Percent(t.share(top)), what, top.Label())
}

// node says all that there is to say about one node.
func (t *teller) node(n *Node) {
	t.message(n)
	switch n.Kind {
	case KindTable:
		t.table(n)
	case KindSubquery:
		t.subquery(n)
	case KindCache:
		t.cache(n)
	case KindUnion:
		t.union(n)
	case KindMaterialise:
		t.materialise(n)
	case KindBuffer, KindTemporary:
		t.buffer(n)
	case KindHashJoin:
		t.hashJoin(n)
	case KindIndexMerge:
		t.indexMerge(n)
	case KindRowidFilter:
		t.say(n, "rowid_filter", Note, "Before rows are looked up, their row ids are tested against those of index %s.", n.Key)
	case KindInsert, KindUpdate, KindDelete, KindReplace:
		if !t.plan.Analyzed {
			t.say(n, "writes", Note, "The statement would %s %s; it was explained, not run.", n.Kind, n.Table)
		}
	}
	t.temporary(n)
	if n.Filesort || n.Kind == KindSort && n.Role != "sort" {
		t.sort(n)
	}
	t.estimate(n)
}

// temporary says what a temporary table of a clause is for.
func (t *teller) temporary(n *Node) {
	switch n.Kind {
	case KindTable, KindUnion, KindMaterialise, KindTemporary, KindBuffer:
		return // they say more
	}
	if !n.Temporary {
		return
	}
	rows := t.input(n)
	if n.Kind == KindOrder && n.Filesort && t.plan.Format == FormatMySQL1 {
		// Counted with Created_tmp_tables: 5.7 and 8.0.15 make it, 9.7 does not.
		t.say(n, "sort_of_join", Note, "The plan has a temporary table for the ORDER BY, of about %s. MySQL 5.7 and 8.0.15 create it; 9.7 sorts the rows as they come.", amount(rows, "row", "rows"))
		return
	}
	t.say(n, "temporary_table", graded(rows), "The %s needs a temporary table for %s.", t.clause(n), t.about(n, rows, "row", "rows"))
}

// clause names the part of the statement that a node represents.
func (t *teller) clause(n *Node) string {
	switch n.Kind {
	case KindGroup:
		return "GROUP BY"
	case KindOrder, KindSort:
		return "ORDER BY"
	case KindDistinct:
		return "DISTINCT"
	case KindWindow:
		return "window function"
	}
	return strings.ReplaceAll(string(n.Kind), "_", " ")
}

// input is how many rows reach a node.
func (t *teller) input(n *Node) float64 {
	if n.Kind == KindUnion && !n.Rows.Known() && len(n.Children) > 1 {
		sum := 0.0
		for _, c := range n.Children {
			if c.Kind != KindSubquery && c.Kind != KindCache {
				sum += t.input(&Node{Kind: KindQuery, Rows: Unknown(), Children: []*Node{c}})
			}
		}
		return sum
	}
	for _, c := range n.Children {
		switch {
		case c.Kind == KindSubquery, c.Kind == KindCache:
			continue
		case c.ActualRows.Known() && c.Loops.Known():
			rows := float64(c.ActualRows * c.Loops)
			if c.Kind == KindTable && c.ActualFiltered.Known() {
				rows *= float64(c.ActualFiltered) / 100
			}
			return rows
		case c.Produced.Known():
			return float64(c.Produced)
		case c.Kind == KindNestedLoop && len(c.Children) > 0 && !c.Rows.Known():
			last := c.Children[len(c.Children)-1]
			if last.ActualRows.Known() && last.Loops.Known() {
				return float64(last.ActualRows*last.Loops) * last.ActualFiltered.Or(100) / 100
			}
			if last.Produced.Known() {
				return float64(last.Produced)
			}
			return totals{join: true}.rowsOut(c)
		case c.Kind == KindTable && t.joinFormat():
			return totals{join: true}.rowsOut(c)
		case c.Rows.Known():
			return float64(c.Rows)
		}
		return t.input(c)
	}
	return n.Rows.Or(0)
}

func (t *teller) joinFormat() bool {
	return t.plan.Format == FormatMySQL1 || t.plan.Format == FormatMariaDB || t.plan.Format == FormatTable
}

func (t *teller) message(n *Node) {
	m := strings.ToLower(n.Message)
	switch {
	case m == "":
	case strings.Contains(m, "impossible"), strings.Contains(m, "no matching row"):
		t.say(n, "impossible", Costly, "%s: the optimiser found that no row can match, and reads none. Is the condition intended?", n.Message)
	case strings.Contains(m, "optimized away"):
		t.say(n, "optimised_away", Note, "%s: MIN, MAX or COUNT was answered from an index while planning.", n.Message)
	case strings.Contains(m, "not optimized"):
		t.say(n, "not_optimised", Note, "%s: this part is planned only when it runs.", n.Message)
	default:
		t.say(n, "message", Note, "%s.", n.Message)
	}
}

// runs says how often a node runs, in words and as a number.
func (t *teller) runs(n *Node) (string, float64) {
	loops := n.Loops
	if !loops.Known() && len(n.Children) > 0 {
		loops = n.Children[0].Loops // a heading has no figures
	}
	if loops.Known() {
		return amount(float64(loops), "time", "times") + " (counted)", float64(loops)
	}
	times := n.Executions.Or(1)
	if t.endsAbove(n) {
		return "at most about " + amount(times, "time", "times"), times
	}
	return "about " + amount(times, "time", "times"), times
}

// endsAbove reports whether a subquery is asked by rows of a table whose reading may end early.
func (t *teller) endsAbove(n *Node) bool {
	p := t.parents[n]
	if p == nil || n.Executions.Or(1) <= 1 {
		return false
	}
	if p.Kind == KindTable {
		_, early := t.a.ends(p)
		return early
	}
	for _, c := range p.Children {
		if c.Kind != KindSubquery && c.Kind != KindCache && t.early(c) {
			return true
		}
	}
	return false
}

// upper makes the first letter a capital.
func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// readRows is how many rows a node reads in all its executions, counted or expected.
func readRows(n *Node) float64 {
	if n.ActualRows.Known() && n.Loops.Known() {
		return float64(n.ActualRows * n.Loops)
	}
	return n.Rows.Or(0) * n.Executions.Or(1)
}

// readRows is how many rows of a table are read, as far as it is known what ends that early.
func (t *teller) readRows(n *Node) float64 {
	if n.ActualRows.Known() && n.Loops.Known() {
		return readRows(n)
	}
	once, _ := t.a.reads(n)
	return once * n.Executions.Or(1)
}

// early reports whether the reading of a table at or below a node may end early, and was not counted.
func (t *teller) early(n *Node) bool {
	found := false
	n.Walk(func(m, _ *Node, _ int) {
		if m.Kind == KindTable && !m.ActualRows.Known() && !found {
			_, found = t.a.ends(m)
		}
	})
	return found
}

func (t *teller) subquery(n *Node) {
	name := strings.TrimSpace("Subquery " + selectNumber(n))
	of := ""
	if p := t.parents[n]; p != nil && p.Kind == KindTable {
		of = " attached to " + p.Name()
	}
	words, times := t.runs(n)
	if t.plan.Format == FormatTable && !n.Loops.Known() {
		words = "how often is not shown by a tabular plan"
	}
	below, most, told := 0.0, 0.0, true
	for _, c := range n.Children {
		c.Walk(func(m, _ *Node, _ int) {
			if m.Kind != KindTable {
				return
			}
			below += t.readRows(m)
			rows, ok := t.a.most(m)
			told = told && ok
			if most += readRows(m); !m.ActualRows.Known() {
				most += rows*m.Executions.Or(1) - readRows(m)
			}
		})
	}
	reads := ""
	switch {
	case below == 0 || t.plan.Format == FormatTable && !n.Loops.Known() || !told:
	case t.early(n):
		reads = fmt.Sprintf(", at most %s in all", amount(most, "row", "rows"))
	default:
		reads = fmt.Sprintf(", %s in all", amount(below, "row", "rows"))
	}
	switch {
	case n.Dependent:
		t.say(n, "dependent_subquery", t.atLeast(n, times, below), "%s%s is dependent: it runs again for each outer row tested, %s%s. A join, or a derived table that is computed once, would run it once.", name, of, words, reads)
	case n.Uncacheable:
		t.say(n, "uncacheable_subquery", t.atLeast(n, times, below), "%s%s is uncacheable (it contains RAND(), a user variable or similar): its result must not be cached, so it runs again for each row, %s%s.", name, of, words, reads)
	case n.Loops > 1:
		t.say(n, "repeated_subquery", t.atLeast(n, times, below), "%s%s ran %s%s.", name, of, words, reads)
	case n.Message == "" && !(len(n.Children) == 1 && n.Children[0].Kind == KindMaterialise):
		t.say(n, "attached_subquery", Note, "%s%s is cacheable: it runs once, and its result is cached%s.", name, of, reads)
	}
}

func (t *teller) atLeast(n *Node, times, below float64) string {
	if s := graded(math.Max(below, times)); s != Note {
		return s
	}
	if t.share(n) > 0.3 {
		return Costly
	}
	return Note
}

func (t *teller) cache(n *Node) {
	t.subquery(n)
	if v, ok := n.member("r_hit_ratio"); ok {
		t.out[len(t.out)-1].Text += fmt.Sprintf(" MariaDB cached results by parameter: %s of the executions were answered from the cache.", digits.Percent(float64(v)/100))
	} else if len(t.out) > 0 && t.out[len(t.out)-1].Node == n.ID {
		t.out[len(t.out)-1].Text += " MariaDB caches its results by parameter, so repeated outer values cost nothing."
	}
}

// member reads a number that was kept by its name.
func (n *Node) member(name string) (Figure, bool) {
	for _, m := range n.Extra {
		if m.Name == name {
			var num json.Number
			if err := json.Unmarshal(m.Value, &num); err == nil {
				return number(num)
			}
		}
	}
	return Unknown(), false
}

func (t *teller) union(n *Node) {
	var parts []string
	for _, c := range n.Children {
		if c.SelectID > 0 {
			parts = append(parts, selectNumber(c))
		}
	}
	of := fmt.Sprintf("%d query specifications", len(n.Children))
	if len(parts) > 0 {
		of += " (" + strings.Join(parts, ", ") + ")"
	}
	switch {
	case n.Recursive:
		t.say(n, "recursive", Note, "A recursive CTE: its second part runs again on the rows of the previous round, until there are none.")
	case n.Temporary || n.Table != "" && !t.unionAll():
		t.say(n, "union_result", graded(readRows(n)), "The UNION collects the rows of %s in a temporary table%s and removes duplicates. UNION ALL would not.", of, suffix(n.Table))
	case len(n.Children) > 1:
		t.say(n, "union_result", Note, "The rows of %s are sent one after the other, without a temporary table.", of)
	}
}

// unionAll reports whether every union of the statement keeps duplicates, as far as the text is known.
func (t *teller) unionAll() bool {
	return strings.Contains(t.sql, "UNION ALL") && strings.Count(t.sql, "UNION") == strings.Count(t.sql, "UNION ALL")
}

func suffix(name string) string {
	if name == "" {
		return ""
	}
	return " " + name
}

func (t *teller) materialise(n *Node) {
	p := t.parents[n]
	what := "A subquery"
	if p != nil && p.Kind == KindTable && p.Table != "" {
		switch {
		case strings.HasPrefix(p.Name(), "<subquery"), p.Name() == "":
			what = strings.TrimSpace("Subquery " + selectNumber(n))
		case strings.HasPrefix(p.Name(), "<derived"):
			what = "The derived table or CTE #" + strings.TrimSuffix(strings.TrimPrefix(p.Name(), "<derived"), ">")
		default:
			what = "The derived table or CTE " + p.Name()
		}
	}
	if shares(n) {
		if p == nil || !shares(p) {
			t.say(n, "shared", Note, "%s is read from a temporary table that another step fills: it is computed once for both.", what)
		}
		return
	}
	rows, exact := t.kept(n)
	if strings.Contains(strings.ToLower(n.Title), "union") {
		t.say(n, "union_result", graded(rows), "The UNION collects the rows of %d query specifications in a temporary table and removes duplicates. UNION ALL would not.", len(n.Children))
		return
	}
	held, more := "about "+amount(rows, "row is", "rows are"), ""
	switch {
	case !exact && rows == 0:
		held, more = "its rows are", "; how many there are is unknown"
	case !exact:
		held = "its rows, at most about " + digits.Count(rows) + ", are"
	}
	t.say(n, "materialised", graded(rows), "%s is materialised: %s put in a temporary table%s%s.", what, held, map[bool]string{true: " again for each outer row (dependent)", false: ", once"}[n.Dependent && !(p != nil && p.Name() == "<materialized_subquery>")], more) // 5.7 calls that dependent, and makes it once
}

// shares reports whether a step only reads the temporary table that another one fills: a CTE that is used twice.
func shares(n *Node) bool {
	if n.Kind != KindMaterialise {
		return false
	}
	if strings.Contains(n.Title, "printed elsewhere") || strings.HasPrefix(n.Role, "shared") {
		return true
	}
	return len(n.Children) == 1 && shares(n.Children[0])
}

// kept is how many rows a step puts in its temporary table, or false and the most that can reach it.
func (t *teller) kept(n *Node) (rows float64, exact bool) {
	p := t.parents[n]
	switch {
	case n.ActualRows.Known():
		return float64(n.ActualRows * Figure(n.Loops.Or(1))), true
	case p != nil && p.Kind == KindTable && p.Access == AccessAll && p.ActualRows.Known() && p.Loops >= 1:
		return float64(p.ActualRows), true
	case n.Rows.Known() && n.Rows > 0:
		return float64(n.Rows), true
	}
	if recursive(n) {
		return 0, false
	}
	rows, fewer := t.reaching(n)
	if rows == 0 && p != nil {
		return p.Rows.Or(0), false
	}
	if limit := t.limitOf(n); limit > 0 && rows > limit {
		return limit, false
	}
	return rows, !fewer
}

// limitOf is the LIMIT of the SELECT that fills a temporary table; 0 if there is none or it is unknown.
func (t *teller) limitOf(n *Node) float64 {
	limit := 0.0
	n.Walk(func(m, _ *Node, _ int) {
		if m.Kind == KindTable && limit == 0 && t.a.selectOf(m) == n {
			if b := t.a.blockFor(m); b != nil {
				limit = float64(b.limit)
			}
		}
	})
	return limit
}

// recursive reports whether a step fills its temporary table from itself: no plan says how often.
func recursive(n *Node) bool {
	found := false
	n.Walk(func(x, _ *Node, _ int) { found = found || x.Recursive })
	return found
}

// reaching is how many rows reach a node, and whether they are fewer by something between that gathers them: groups,
// distinct values, a temporary table of which that is unknown, a limit.
func (t *teller) reaching(n *Node) (rows float64, fewer bool) {
	for c := n; c != nil; {
		var below *Node
		for _, x := range c.Children {
			if x.Kind != KindSubquery && x.Kind != KindCache {
				below = x
				break
			}
		}
		if below == nil || c != n && (c.Rows.Known() && c.Rows > 0 || c.ActualRows.Known()) || below.Kind == KindTable && below.Rows.Known() {
			break
		}
		switch below.Kind {
		case KindGroup, KindDistinct, KindUnion, KindLimit, KindWindow:
			fewer = fewer || !below.Rows.Known() && !below.ActualRows.Known()
		case KindTemporary:
			fewer = fewer || !t.known || t.words["GROUP"] || t.words["DISTINCT"]
		}
		c = below
	}
	return t.input(n), fewer
}

// buffer says what a buffer_result is, or a temporary table whose reason the plan does not give.
func (t *teller) buffer(n *Node) {
	asked := t.words["SQL_BUFFER_RESULT"] && !t.words["INSERT"] && !t.words["REPLACE"]
	p := t.parents[n]
	rows := t.input(n)
	switch {
	case asked && (n.Kind == KindBuffer && n.Temporary || n.Kind == KindTemporary && (p == nil || p.Kind != KindSort)):
		where := ""
		if p != nil && p.Kind == KindGroup {
			where = " inside the grouping_operation"
		}
		held, severity := t.held(n)
		t.say(n, "buffer_result", severity, "SQL_BUFFER_RESULT: a buffer_result%s puts the rows of the result%s in a temporary table before any is sent, so that locks are released early. Tabular EXPLAIN says only \"Using temporary\", as if the GROUP BY needed it.", where, held)
	case n.Kind == KindBuffer && n.Temporary:
		why := "the plan does not say why: SQL_BUFFER_RESULT, or a statement that writes into a table it reads, would do that"
		if t.words["INSERT"] || t.words["REPLACE"] {
			why = "so that rows it writes are not read again"
		}
		held, severity := t.held(n)
		t.say(n, "temporary_table", severity, "The rows of the result%s are collected in a temporary table first; %s.", held, why)
	case n.Kind == KindBuffer:
		t.say(n, "buffer_rows", Note, "The rows to change are collected first, so that a changed row is not found again.")
	default:
		t.say(n, "temporary_table", graded(rows), "%s through a temporary table.", upper(t.about(n, rows, "row goes", "rows go")))
	}
}

// held is how many rows a buffer_result has, in words. Counted with Handler_write on 5.7 to 9.7: those of the result,
// though JSON version 1 draws it below the grouping.
func (t *teller) held(n *Node) (words, severity string) {
	if n.Rows.Known() || n.ActualRows.Known() {
		return fmt.Sprintf(" (about %s)", digits.Count(n.rowsOnce())), graded(n.rowsOnce())
	}
	return "", Note
}

func (t *teller) hashJoin(n *Node) {
	if n.Condition == "" && !strings.Contains(n.JoinType, "semi") {
		t.say(n, "cartesian", graded(n.Rows.Or(0)), "A hash join without a condition: every row meets every row, about %s.", amount(n.Rows.Or(0), "pair", "pairs"))
		return
	}
	t.say(n, "hash_join", Note, "A hash join on %s: one side is read into memory (join_buffer_size), the other is streamed past it; no index is used to find matches.", pretty(n.Condition))
}

func (t *teller) indexMerge(n *Node) {
	var keys []string
	for _, c := range n.Children {
		if c.Key != "" {
			keys = append(keys, c.Key)
		}
	}
	t.merge(n, strings.Join(keys, ", "))
}

func (t *teller) merge(n *Node, keys string) {
	better := "one index over the columns of both would find the rows at once"
	if title := strings.ToLower(n.Title + n.Key); strings.Contains(title, "union") || strings.Contains(title, "dedup") {
		better = "a UNION of two statements can do the same by plain look-ups"
	}
	t.say(n, "index_merge", graded(readRows(n)), "Index merge: indexes %s are read and their row ids are combined; %s.", keys, better)
}

func (t *teller) sort(n *Node) {
	by := ""
	if len(n.SortKeys) > 0 {
		by = " by " + pretty(strings.Join(n.SortKeys, ", "))
	}
	v, limited := n.member("r_limit")
	if !limited {
		v, limited = n.member("per_chunk_limit")
	}
	rows, fewer := t.sorted(n)
	if limited && v > 0 {
		t.say(n, "filesort", graded(rows), "Filesort: about %s sorted%s. Only the first %s kept, in a priority queue.", amount(rows, "row is", "rows are"), by, amount(float64(v), "is", "are"))
		return
	}
	switch {
	case fewer && n.Kind == KindSort && n.ActualRows.Known():
		rows = float64(n.ActualRows * Figure(n.Loops.Or(1)))
		t.say(n, "filesort", graded(rows), "Filesort: what the steps below have collected, %s, is sorted%s.", amount(rows, "row", "rows"), by)
	case fewer:
		t.say(n, "filesort", Note, "Filesort: what the steps below have collected is sorted%s; how many rows is unknown, at most about %s.", by, digits.Count(rows))
	default:
		if n.Kind == KindSort && n.ActualRows.Known() { // MariaDB counted what it returned
			rows = float64(n.ActualRows * Figure(n.Loops.Or(1)))
		}
		spare := ""
		if t.orderable(n) {
			spare = " An index in that order would avoid it."
		}
		t.say(n, "filesort", graded(rows), "Filesort: about %s sorted%s.%s", amount(rows, "row is", "rows are"), by, spare)
	}
}

// orderable reports whether what is sorted are the rows of one table by its bare columns: the order an index can have.
func (t *teller) orderable(n *Node) bool {
	tables, found := 0, false
	n.Walk(func(x, _ *Node, _ int) { found = found || x.Kind == KindTable && t.a.sortsFound(x) })
	if found {
		return false
	}
	if n.Kind == KindTable {
		tables = 1
	}
	for _, c := range n.Children {
		c.Walk(func(x, _ *Node, _ int) {
			switch {
			case x.Kind == KindTable && !x.Inner():
				tables++
			case x.Kind == KindTable, x.Kind == KindUnion, x.Kind == KindNestedLoop, x.Kind == KindHashJoin:
				tables += 2
			}
		})
	}
	keys := n.SortKeys
	if len(keys) == 0 && len(t.blocks) > 0 {
		b := t.blocks[0]
		list := b.order
		if n.Kind == KindGroup || len(list) == 0 {
			list = b.group
		}
		for _, item := range list {
			keys = append(keys, textOf(b.resolve(item)))
		}
	}
	for _, k := range keys {
		if _, column, rest := columnAt(lex(k)); column == "" || len(rest) > 1 || len(rest) == 1 && !word(rest[0], "DESC") && !word(rest[0], "ASC") {
			return false
		}
	}
	return tables == 1 && len(keys) > 0
}

// sorted is how many rows reach a sort, and whether what is sorted is less: the groups that they make.
func (t *teller) sorted(n *Node) (rows float64, fewer bool) {
	switch p := t.parents[n]; {
	case n.Kind == KindTable:
		return readRows(n), n.Temporary
	case len(n.Children) == 0 && p != nil: // a sort of a window computation
		return n.ActualRows.Or(t.lastInput(p)), false
	}
	rows, fewer = t.reaching(n)
	if n.Kind == KindGroup && n.Temporary { // what its temporary table holds is sorted
		fewer = true
	}
	return rows, fewer
}

// offBy is how many times more rows were expected than came; 1 if that is unknown.
func offBy(n *Node) float64 {
	if !n.Rows.Known() || !n.ActualRows.Known() {
		return 1
	}
	return math.Max(float64(n.Rows), 0.5) / math.Max(float64(n.ActualRows), 0.5)
}

// lastInput is how many rows come from the last child of a node.
func (t *teller) lastInput(n *Node) float64 {
	return t.input(&Node{Kind: n.Kind, Rows: Unknown(), Children: n.Children[len(n.Children)-1:]})
}

// estimate says where the optimiser was wrong by a factor of ten or more, about tables that have statistics.
func (t *teller) estimate(n *Node) {
	if !n.Rows.Known() || !n.ActualRows.Known() || n.Loops.Or(0) <= 0 || n.Kind == KindLimit || t.plan.Partial || t.made(n) {
		return
	}
	want, got := float64(n.Rows), float64(n.ActualRows)
	for p := t.parents[n]; p != nil; p = t.parents[p] {
		if p.Kind == KindLimit || p.Kind == KindSubquery || strings.Contains(p.JoinType, "semi") || strings.Contains(p.JoinType, "anti") {
			return // it was stopped early
		}
	}
	if n.hasMember("first_match") || n.hasMember("not_exists") {
		return
	}
	f, word := offBy(n), "too many"
	for _, c := range n.Children {
		// Only where the error begins: what is above inherits it.
		if g := offBy(c); c.Kind != KindSubquery && (f >= 1 && g > f/3 && g >= 10 || f < 1 && g < f*3 && g <= 0.1) {
			return
		}
	}
	unless := ""
	if f > 1 && t.joinFormat() { // these formats have no step for LIMIT
		switch stops, told := t.stops(n); {
		case stops:
			return
		case !told:
			unless = ", unless a LIMIT ended it early, which this plan does not show"
		}
	}
	if f < 1 {
		f, word = 1/f, "too few"
	}
	if f < 10 || math.Max(want, got) < 10 {
		return
	}
	severity := Costly
	if f >= 100 && math.Max(want, got)*float64(n.Loops) >= many && unless == "" {
		severity = Bad
	}
	runs := "in one run"
	if n.Loops > 1 {
		runs = "on average of " + digits.Count(float64(n.Loops)) + " runs"
	}
	t.say(n, "estimate", severity, "The optimiser expected %s rows and %s were found (%s): %s by a factor of %s%s. ANALYZE TABLE, or a histogram on the columns of the condition, can fix that.",
		digits.Count(want), digits.Count(got), runs, word, digits.Count(f), unless)
}

// made reports whether a node's rows come from a table that the server makes: there are no statistics of it.
func (t *teller) made(n *Node) bool {
	made := false
	n.Walk(func(x, _ *Node, _ int) {
		made = made || x.Kind == KindTable && x.Inner() || x.Kind == KindMaterialise || x.Kind == KindTemporary || x.Kind == KindGroup || x.Kind == KindWindow
	})
	return made
}

// stops reports whether a LIMIT of its SELECT may end the reading of a table early, and whether the statement is known,
// so that this can be said.
func (t *teller) stops(n *Node) (stops, told bool) {
	for p := t.parents[n]; p != nil; p = t.parents[p] {
		switch p.Kind {
		case KindSort, KindGroup, KindTemporary, KindDistinct, KindOrder:
			return false, true // all rows are read for it
		case KindSubquery, KindCache:
			return true, true // EXISTS and its like end with the first row
		}
	}
	if !t.known {
		return false, false
	}
	for i := range t.blocks {
		if t.blocks[i].limited {
			return true, true
		}
	}
	return false, true
}
