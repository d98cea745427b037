package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/sqltext"
)

// Report is a trace and what it means.
type Report struct {
	Words  []string `json:"words"` // where the time went, in sentences
	Notes  []string `json:"notes"` // limitations of the trace, and its cost
	Phases []Phase  `json:"phases"`
	Map    *Map     `json:"map"`
	Trace  *Trace   `json:"trace"`
	Tree   *Tree    `json:"-"`
}

// NewReport works out what a trace means. With redact the literals of all statements are hidden; what sets a password is
// hidden anyway.
func NewReport(t *Trace, redact bool) *Report {
	if redact {
		t.redact()
	}
	r := &Report{Trace: t, Tree: Build(t.Events, t.Now, t.known)}
	t.Missing = r.Tree.Missing
	r.Tree.unseen(t.Zero, t.busyBefore, t.busyAfter)
	r.Tree.within(t.Zero, t.Now)
	r.Map = NewMap(r.Tree, t.Bodies)
	r.Phases = phases(r.Tree, t.Totals, r.Map.Busy, t.locked)
	// Lists are never null in JSON.
	t.Events, t.Totals, t.Rings = some(t.Events), some(t.Totals), some(t.Rings)
	t.NotRecorded, t.Changed, t.LockWaits = some(t.NotRecorded), some(t.Changed), some(t.LockWaits)
	r.Phases, r.Map.Roots = some(r.Phases), some(r.Map.Roots)
	r.Words = r.words()
	r.Notes = r.notes()
	return r
}

func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// redact hides the literals of statements and of the server's messages.
func (t *Trace) redact() {
	for i := range t.Events {
		e := &t.Events[i]
		e.SQL = hide(e.SQL)
		e.Message = hideQuoted(e.Message)
	}
	for i := range t.LockWaits {
		hideLock(&t.LockWaits[i].LockWait)
		if b := t.LockWaits[i].Behind; b != nil {
			hideLock(b)
		}
	}
	t.Connection.Info = hide(t.Connection.Info)
	if t.After != nil {
		t.After.Info = hide(t.After.Info)
	}
}

func hide(sql string) string {
	if sql == "" {
		return ""
	}
	return string(sqltext.Redact(nil, []byte(sql)))
}

// hideQuoted hides quoted parts of a message of the server: values and names.
func hideQuoted(s string) string {
	parts := strings.Split(s, "'")
	for i := 1; i < len(parts); i += 2 {
		parts[i] = "?"
	}
	return strings.Join(parts, "'")
}

// guard hides what sets a password: such a text never leaves this package as it is.
func guard(sql string) string {
	if sqltext.SetsPassword([]byte(sql)) {
		return hide(sql)
	}
	return sql
}

// Statement is the text of a statement in one line; with redact without its literals.
func Statement(sql string, redact bool) string {
	if redact {
		sql = hide(sql)
	}
	return oneline.Of(guard(sql))
}

func (r *Report) words() []string {
	t := r.Trace
	sent, with := r.sent()
	who := fmt.Sprintf("Connection %d (%s)", t.Connection.ID, oneline.Of(t.Connection.User+at(t.Connection.Host)))
	watched := digits.Seconds(t.Seconds)
	var out []string
	switch busy := r.Map.Busy; {
	case sent == 0 && busy == 0 && t.After != nil && t.After.Command != "Sleep":
		return append(append(out, who+r.withinStatement()), t.lockWords()...)
	case sent == 0 && busy == 0 && (t.partly || t.countedOnly > 0):
		return append(out, fmt.Sprintf("Nothing that %s may have sent in %s was recorded%s.", lower(who), watched, r.endWords()))
	case sent == 0 && busy == 0:
		return append(out, fmt.Sprintf("%s sent nothing in %s%s.", who, watched, r.endWords()))
	case r.Tree.lossy():
		out = append(out, fmt.Sprintf("%s was seen busy for %s of %s, %s%s.", who, human(busy), watched, with, r.endWords()))
	default:
		out = append(out, fmt.Sprintf("%s was busy for %s of %s, %s%s.", who, human(busy), watched, with, r.endWords()))
	}
	var parts []string
	for _, p := range r.Phases {
		if p.Share < 0.05 || len(parts) == 4 {
			break
		}
		parts = append(parts, digits.Percent(p.Share)+" "+p.Name)
	}
	if len(parts) > 0 {
		parts[0] = strings.Replace(parts[0], " % ", " % of that was spent ", 1)
		out = append(out, strings.Join(parts, ", ")+".")
	}
	out = append(out, t.lockWords()...)
	out = append(out, r.deadWords()...)
	if m := r.Map.Roots; len(m) > 1 && m[0].Total*2 > r.Map.Busy {
		out = append(out, fmt.Sprintf("Most expensive: %s, %s (%s).", oneline.Cut(oneline.Of(m[0].title()), 60), human(m[0].Total), digits.Percent(share(m[0].Total, r.Map.Busy))))
	}
	if r.Tree.lossy() {
		s := r.missing() + ": the map, the timeline and remarks on single statements show what was seen"
		if stageSeconds(t.Totals) > 0 {
			s += "; the shares of time are from the server's own counters, which lose nothing"
		}
		out = append(out, s+".")
	}
	return out
}

// sent counts the statements of which the server has an event, and says in words how many there were and whether the last still ran.
func (r *Report) sent() (sent int, words string) {
	var last *Node
	lost := 0
	for _, n := range r.Tree.Roots {
		if n.Kind != KindStatement {
			continue
		}
		if last = n; n.Lost {
			lost++
		} else {
			sent++
		}
	}
	words = "with " + digits.Counted(sent, "statement")
	if r.Tree.lossy() {
		words += " that " + wasWere(uint64(sent)) + " seen"
	}
	switch {
	case sent == 0 && lost > 0:
		words = fmt.Sprintf("with %s known only by %s parts", digits.Counted(lost, "statement"), itsTheir(lost))
	case lost > 0:
		words += fmt.Sprintf(" and %d more known only by %s parts", lost, itsTheir(lost))
	}
	switch {
	case last == nil || !last.Running:
	case sent+lost == 1:
		words += ", which still ran when the trace ended"
	default:
		words += "; the last of them still ran when the trace ended"
	}
	return sent, words
}

func itsTheir(n int) string {
	if n == 1 {
		return "its"
	}
	return "their"
}

// withinStatement says that the connection is in a statement of which there is no event. The server tells its age in whole seconds.
func (r *Report) withinStatement() string {
	t := r.Trace
	s := " was in a statement that the server does not record"
	if t.After.Seconds >= t.Seconds {
		s = " was in a statement that had begun before the trace, and that the server does not record"
	}
	return fmt.Sprintf("%s: %s (%s, for %s).", s, oneline.Cut(oneline.Of(t.After.Info), 60), oneline.Of(t.After.State), digits.Seconds(max(t.After.Seconds, 0)))
}

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// hideLock hides values: of the blocker's statement, the record's key, and the name of a user lock.
func hideLock(w *read.LockWait) {
	w.Blocker.Statement = hide(w.Blocker.Statement)
	if w.Kind == read.LockUser {
		w.Name = "?"
	}
	if w.Data != "" {
		w.Data = "?"
	}
}

func (r *Report) endWords() string {
	switch r.Trace.Ended {
	case "connection":
		return "; then it closed"
	case "full":
		return fmt.Sprintf("; the trace ended there: it has %s, the maximum", digits.Counted(r.Tree.Events, "event"))
	case "interrupted":
		return "; the trace was interrupted"
	}
	return ""
}

func at(host string) string {
	if host == "" {
		return ""
	}
	return "@" + host
}

// deadWords says which tables were opened for nothing, by which kinds of statements: those that lost most time first.
func (r *Report) deadWords() (out []string) {
	var hit []*MapNode
	r.Map.each(func(g *MapNode) {
		if g.deadTables() > 0 {
			hit = append(hit, g)
		}
	})
	slices.SortStableFunc(hit, func(a, b *MapNode) int { return cmp.Compare(b.Open, a.Open) })
	for _, g := range hit[:min(len(hit), 3)] {
		out = append(out, g.deadWords())
	}
	if len(hit) > 3 {
		out = append(out, fmt.Sprintf("%s more did the same: see the map.", digits.Counted(len(hit)-3, "statement")))
	}
	return out
}

func (g *MapNode) deadWords() string {
	var names []string
	var where []Place
	for _, u := range g.Tables {
		if u.Unused() {
			names = append(names, u.Table)
			where = append(where, u.Where...)
		}
	}
	s := fmt.Sprintf("%s opened and locked %s", oneline.Cut(oneline.Of(g.title()), 50), joinAnd(names))
	if len(g.Tables) > len(names) {
		s += fmt.Sprintf(" (%d of %d tables)", len(names), len(g.Tables))
	}
	if g.Whole > 1 {
		s += fmt.Sprintf(" in %s calls", digits.Thousands(g.Whole))
	}
	s += " and used no row of " + itThem(len(names))
	if len(where) > 0 {
		s += ": " + placesWords(where) + " " + itThem(len(names)) + " in statements that did not run"
	}
	if g.Open > 0 {
		s += fmt.Sprintf("; opening, locking and closing tables took %s of its %s (%s)", human(g.Open/uint64(g.Whole)), human(g.WholeSum/uint64(g.Whole)), digits.Percent(share(g.Open, g.WholeSum)))
	}
	return s + "." + g.conditionWords(where)
}

// conditionWords says what the conditions cost by which programs pass over what did not run.
func (g *MapNode) conditionWords(where []Place) string {
	named := map[string]bool{}
	for _, p := range where {
		named[p.Program] = true
	}
	s := ""
	var visit func(*MapNode)
	visit = func(p *MapNode) {
		_, short, _ := strings.Cut(p.Name, " ")
		if c := p.Conditions; p.Kind == "program" && named[short] && c != nil && p.Total > 0 {
			named[short] = false
			s += fmt.Sprintf(" The %s that %s evaluated took %s, %s of its own time; %s of that for opening tables, which every instruction does.",
				digits.Counted(c.Count, "condition"), short, human(c.Total), digits.Percent(share(c.Total, p.Total)), human(c.Open))
		}
		for _, c := range p.Children {
			visit(c)
		}
	}
	visit(g)
	return s
}

// placesWords joins places by program: shop.f4 names (lines 4, 7 and 10).
func placesWords(where []Place) string {
	lines := map[string][]int{}
	var programs []string
	for _, p := range where {
		if _, ok := lines[p.Program]; !ok {
			programs = append(programs, p.Program)
		}
		if !slices.Contains(lines[p.Program], p.Line) {
			lines[p.Program] = append(lines[p.Program], p.Line)
		}
	}
	slices.Sort(programs)
	var out []string
	for _, name := range programs {
		s := name
		list := lines[name]
		slices.Sort(list)
		if len(list) == 1 && list[0] > 0 {
			s += fmt.Sprintf(" (line %d)", list[0])
		} else if len(list) > 1 {
			var words []string
			for _, l := range list {
				words = append(words, fmt.Sprint(l))
			}
			s += " (lines " + joinAnd(words) + ")"
		}
		out = append(out, s)
	}
	return joinAnd(out) + " " + verbS("name", len(out))
}

// missing says how many events there must have been that were not read.
func (r *Report) missing() string {
	n := r.Trace.Missing
	they := "they"
	if n == 1 {
		they = "it"
	}
	return fmt.Sprintf("%s of %s %s overwritten before %s could be read, or not recorded", digits.Thousands(n), digits.Counted(n+uint64(r.Tree.Events), "event"), wasWere(n), they)
}

// lossy reports whether so many events are missing that sums over those that were seen say little.
func (t *Tree) lossy() bool { return t.Missing*100 > uint64(t.Events) }

// counters are the dearest of the server's own counters, in words.
func (r *Report) counters() string {
	var list []string
	for _, kind := range []string{"statement/sql/", "statement/sp/", "stage/", "wait/"} {
		n := 0
		for _, t := range r.Trace.Totals {
			if strings.HasPrefix(t.Name, kind) && n < 4 {
				list = append(list, fmt.Sprintf("%s %s× %s", shortName(t.Name), digits.Thousands(t.Count), digits.Seconds(t.Seconds)))
				n++
			}
		}
	}
	return strings.Join(list, ", ")
}

func (g *MapNode) deadTables() (n int) {
	for _, u := range g.Tables {
		if u.Unused() {
			n++
		}
	}
	return n
}

// each visits all groups of the map.
func (m *Map) each(f func(*MapNode)) {
	var visit func([]*MapNode)
	visit = func(list []*MapNode) {
		for _, g := range list {
			f(g)
			visit(g.Children)
		}
	}
	visit(m.Roots)
}

// title is what a group is called: its SQL or its name.
func (g *MapNode) title() string {
	if g.SQL != "" {
		return g.SQL
	}
	return g.Name
}

// notes say what limits the trace.
func (r *Report) notes() (out []string) {
	t := r.Trace
	if len(t.NotRecorded) > 0 {
		out = append(out, "Not recorded: "+joinWords(t.NotRecorded)+". risso trace --enable switches it on for the time of a trace.")
	}
	for _, g := range t.lockGaps {
		out = append(out, fmt.Sprintf("Not known: %s (%s). %s.", g.What, oneline.Of(g.Why), strings.TrimSuffix(g.Remedy, ".")))
	}
	if t.Missing > 0 && !r.Tree.lossy() {
		out = append(out, r.missing()+".")
	}
	if t.countedOnly > t.Missing { // else that is reported
		out = append(out, fmt.Sprintf("The server counted %s of the connection more than its tables of events had: they were recorded only part of the time, or the tables were emptied.", digits.Counted(t.countedOnly, "statement")))
	}
	if r.Tree.lossy() && len(t.Rings) > 0 {
		var rings []string
		for _, g := range t.Rings {
			rings = append(rings, fmt.Sprintf("%s %d", g.Table, g.Rows))
		}
		out = append(out, "The server keeps this many events for all connections: "+strings.Join(rings, ", ")+" (performance_schema_…_size, at its start).")
		out = append(out, "The server's own counters: "+r.counters()+".")
	}
	if t.Nested > 0 {
		out = append(out, fmt.Sprintf("%s of all connections %s nested deeper than performance_schema_max_statement_stack, and not recorded.", digits.Counted(t.Nested, "statement"), wasWere(t.Nested)))
	}
	for i := range t.Events {
		if t.Events[i].Cut {
			out = append(out, fmt.Sprintf("The server cut texts of statements at %d bytes (performance_schema_max_sql_text_length).", t.SQLTextLength))
			break
		}
	}
	if len(t.Changed) > 0 {
		out = append(out, t.changedWords())
	}
	if t.Ended == "connection" && !slices.ContainsFunc(t.Rings, func(g Ring) bool { return g.Table == "events_statements_history_long" }) {
		out = append(out, "What it did in the last moments before it closed is lost: events_statements_history_long is off.")
	}
	return append(out, fmt.Sprintf("Tracing took %s in %s, which the server answered in %s, and %s on the network.", digits.Counted(t.Cost.Queries, "statement"), digits.Counted(t.Cost.Polls, "poll"), digits.Seconds(t.Cost.Seconds), digits.Bytes(t.Cost.Bytes)))
}

// changedWords say what was changed for the trace, and whether it is as before.
func (t *Trace) changedWords() string {
	ran := func(part string) bool {
		return slices.ContainsFunc(t.Changed, func(s string) bool { return strings.Contains(s, part) })
	}
	s := "What was recorded was changed for the trace, "
	if t.left {
		s += "and could not be put back (risso trace --restore does it)"
	} else {
		s += "and put back"
	}
	if ran(" performance_schema.setup_") {
		s += ": consumers and instruments are global, so every connection paid for them"
	}
	if ran(" HISTORY = 'NO' WHERE HISTORY") {
		s += "; the history of other connections was off during that time"
	}
	return s + "."
}

func wasWere(n uint64) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

func areIs(n uint64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func share(part, all uint64) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}

func joinAnd(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

func itThem(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// verbS is the verb for n subjects.
func verbS(verb string, n int) string {
	if n == 1 {
		return verb + "s"
	}
	return verb
}
