package advise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// wish is an index that one class would like, by the arithmetic of package plan.
type wish struct {
	class *Class
	a     plan.Advice
	saved float64 // seconds of the class that it would spare, estimated
}

// equal are the columns that are compared for equality, in small letters, and tail what has to follow them: a range, or an order.
func (w *wish) equal() []string { return lower(w.a.Columns[:w.a.Equality]) }
func (w *wish) tail() []string {
	rest := lower(w.a.Columns[w.a.Equality:])
	return rest[:min(len(rest), max(w.a.Range, len(w.a.Order)))]
}

func lower(list []string) []string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = strings.ToLower(x)
	}
	return out
}

// joint is one index that serves several classes: that of the host, whose first columns may have to come in another order. begins are the
// sets of columns with which it has to begin, each within the next.
type joint struct {
	host    *wish
	members []*wish
	begins  [][]string
}

// missing finds indexes that the classes which cost most would profit from; one that serves several of them is preferred to one for each.
func (l *Load) missing(s *Server) (list []Finding) {
	var wishes []*wish
	for i := range l.Classes {
		c := &l.Classes[i]
		if l.Seconds > 0 && c.Seconds/l.Seconds < LeastShare {
			continue
		}
		for _, a := range c.Indexes {
			if a.Statement != "" && len(a.Columns) > 0 && a.Equality <= len(a.Columns) {
				wishes = append(wishes, &wish{c, a, c.Seconds * spared(c, a)})
			}
		}
	}
	slices.SortStableFunc(wishes, func(a, b *wish) int { return len(b.a.Columns) - len(a.a.Columns) }) // the wider serve the narrower
	var joints []*joint
	for _, w := range wishes {
		if !slices.ContainsFunc(joints, func(j *joint) bool { return j.takes(w) }) {
			joints = append(joints, &joint{host: w, members: []*wish{w}, begins: [][]string{w.equal()}})
		}
	}
	for _, j := range joints {
		list = append(list, l.missingFinding(s, j))
	}
	return list
}

// spared is the part of a class' reads that an index spares. A look-up of a row counts as another two entries, as in package plan.
func spared(c *Class, a plan.Advice) float64 {
	now := float64(c.RowsExamined) / max(1, float64(c.Calls))
	if now <= 0 {
		now = a.Rows * max(1, a.Runs)
	}
	then := (a.Entries + 1) * max(1, a.Runs)
	if !a.Covering {
		then += 2 * a.Lookups * max(1, a.Runs)
	}
	return max(0, 1-then/max(1, now))
}

// takes adds a wish to a joint if its index can serve it as well.
func (j *joint) takes(w *wish) bool {
	if !strings.EqualFold(j.host.a.Table, w.a.Table) {
		return false
	}
	equal, all := w.equal(), j.host.equal()
	if same(equal, all) {
		tail, rest := w.tail(), lower(j.host.a.Columns[j.host.a.Equality:])
		if len(tail) > len(rest) || !slices.Equal(tail, rest[:len(tail)]) || len(tail) > 0 && turned(j.host, w) {
			return false
		}
		j.members = append(j.members, w)
		return true
	}
	if len(w.tail()) > 0 || len(equal) == 0 {
		return false
	}
	for i, set := range j.begins { // a chain: each within the next
		if same(equal, set) {
			break
		}
		if within(equal, set) && (i == 0 || within(j.begins[i-1], equal)) {
			j.begins = slices.Insert(j.begins, i, equal)
			break
		}
		if i == len(j.begins)-1 || !within(set, equal) {
			return false
		}
	}
	j.members = append(j.members, w)
	return true
}

// turned reports whether the columns of an order have other directions in two proposals; then neither serves the other.
func turned(a, b *wish) bool {
	desc := func(w *wish) bool { return strings.Contains(strings.ToUpper(w.a.Statement), " DESC") }
	return desc(a) != desc(b)
}

func within(a, b []string) bool {
	return !slices.ContainsFunc(a, func(x string) bool { return !slices.Contains(b, x) })
}

func same(a, b []string) bool { return within(a, b) && within(b, a) }

// order is the host's columns with those first that the narrower ones need first.
func (j *joint) order() (order []int) {
	taken := map[string]bool{}
	columns := lower(j.host.a.Columns)
	for _, set := range j.begins {
		for i, c := range columns {
			if slices.Contains(set, c) && !taken[c] {
				taken[c] = true
				order = append(order, i)
			}
		}
	}
	for i, c := range columns {
		if !taken[c] {
			order = append(order, i)
		}
	}
	return order
}

// reordered is a CREATE INDEX with its columns in another order.
func reordered(statement string, order []int) string {
	if slices.IsSorted(order) {
		return statement
	}
	tokens := sqltext.Tokens(statement)
	from := slices.IndexFunc(tokens, func(t sqltext.Token) bool { return t.Kind == sqltext.TokenSign && t.Text == "(" })
	if from < 0 {
		return statement
	}
	inside, _, ok := sqltext.Group(tokens[from:])
	list := sqltext.Elements(inside)
	if !ok || len(list) != len(order) {
		return statement
	}
	parts := make([]string, len(list))
	for i, n := range order {
		parts[i] = statement[list[n][0].Begin:list[n][len(list[n])-1].End]
	}
	return statement[:inside[0].Begin] + strings.Join(parts, ", ") + statement[inside[len(inside)-1].End:]
}

// IndexOf is the name of the index that a CREATE INDEX makes.
func indexOf(statement string) string {
	tokens := sqltext.Tokens(statement)
	for i, t := range tokens {
		if strings.EqualFold(t.Text, "INDEX") && i+1 < len(tokens) && tokens[i+1].Name() {
			return tokens[i+1].Text
		}
	}
	return ""
}

func (l *Load) missingFinding(s *Server, j *joint) Finding {
	a := j.host.a
	table, saved := tableOf(j.host.class, a.Table), 0.0
	statement := reordered(a.Statement, j.order())
	name := indexOf(statement)
	f := Finding{ID: "index.missing", Object: table.Schema + "." + table.Name + "." + name, Statement: statement, Undo: "ALTER TABLE " + table.String() + " DROP INDEX " + mysql.Quote(name),
		Effect: "in place: reads the whole table once and sorts; reads and writes go on meanwhile", Sure: Likely, Since: s.Now.Add(-l.Span),
		Why:   "its statements read rows only to throw them away",
		Doubt: "the figures are estimates of the server and of Risso's arithmetic: risso advise prove measures them"}
	served := map[string]bool{}
	for _, m := range j.members {
		if served[m.class.ID] {
			continue
		}
		served[m.class.ID] = true
		saved += m.saved
		f.Evidence = append(f.Evidence, fmt.Sprintf("class %s: %s; %s; reads %s by a call now, about %s entries of it then", m.class.ID, m.class.short(), l.costs(m.class),
			digits.Roughly(int64(float64(m.class.RowsExamined)/max(1, float64(m.class.Calls))), "row"), digits.Count((m.a.Entries+1)*max(1, m.a.Runs))))
	}
	f.What = fmt.Sprintf("an index of %s on (%s) would spare %s most of its reads", table.Schema+"."+table.Name, strings.Join(pick(a.Columns, j.order()), ", "), digits.Plural(len(served), "class of statements", "classes of statements"))
	load := saved / l.Span.Seconds()
	if len(a.Replaces) > 0 {
		f.Evidence = append(f.Evidence, "it does the work of "+strings.Join(a.Replaces, ", "))
	}
	f.Evidence = append(f.Evidence, digits.Bytes(a.IndexBytes)+" on disk")
	w, known := l.Writes[table]
	switch per := w.Rows / l.Span.Seconds(); {
	case !known:
		f.Evidence = append(f.Evidence, "no class of statements that writes the table was seen")
	case w.Entry > 0:
		cost := per * w.Entry
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s written each second, which one more index costs about %s of time each second, as an INSERT takes now for each index; it spares %s", digits.Rate(per)+" rows", digits.Seconds(cost), digits.Seconds(load)))
		if load -= cost; load <= 0 {
			f.Statement, f.Undo, f.Effect = "", "", ""
			f.Advice = "do not make it: its upkeep costs more than it spares"
			load = 0
		}
	default:
		f.Evidence = append(f.Evidence, digits.Rate(per)+" rows written each second; what one more index adds to that is not known: no INSERT was seen")
	}
	f.Cost, f.Severity = Cost{Seconds: load}, severityOf(load)
	if f.Statement != "" {
		f.Advice = fmt.Sprintf("risso advise prove '%s:%s' measures it on a copy", f.ID, f.Object)
	}
	return f
}

// tableOf is the table of an advice, which package plan writes as schema.table.
func tableOf(c *Class, name string) mysql.TableName {
	for _, t := range c.Tables {
		if strings.EqualFold(t.Schema+"."+t.Name, name) {
			return t
		}
	}
	schema, table, ok := strings.Cut(name, ".")
	if !ok {
		return mysql.TableName{Schema: c.Database, Name: name}
	}
	return mysql.TableName{Schema: schema, Name: table}
}

func pick(list []string, order []int) []string {
	out := make([]string, len(order))
	for i, n := range order {
		out[i] = list[n]
	}
	return out
}
