package plan_test

import (
	"bufio"
	sqldriver "database/sql/driver"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/mysql"
)

// advised is one statement of testdata/advice/corpus.txt, with what is known about it.
type advised struct {
	line    int
	sql     string
	answers [][]answer            // each of them is right; an empty one is "none"
	on      map[string][][]answer // the answers there
	skip    map[string]bool
	not     []answer // indexes that are no help
	spares  string   // "", "sort", "pages" or "together"
	says    []string // in the words of the advice
	why     string
}

// answer is an index: its columns, of which those of one step may be in any order, and what may follow.
type answer struct {
	table string
	steps [][]string
	tail  []string
}

// matches reports whether columns are those of the answer.
func (a answer) matches(table string, columns []string) bool {
	if a.table != table {
		return false
	}
	for _, step := range a.steps {
		if len(columns) < len(step) {
			return false
		}
		mine := slices.Clone(columns[:len(step)])
		slices.Sort(mine)
		want := slices.Clone(step)
		slices.Sort(want)
		if !slices.Equal(mine, want) {
			return false
		}
		columns = columns[len(step):]
	}
	for _, c := range columns {
		if !slices.Contains(a.tail, c) {
			return false
		}
	}
	return true
}

// columns of the answer, as one would write the index.
func (a answer) columns() []string { return slices.Concat(a.steps...) }

var answerForm = regexp.MustCompile(`^(\w+) \(([^\[\])]*)(?:\[([^\]]*)\])?\)$`)

func readAnswers(t *testing.T, text string) []answer {
	t.Helper()
	if text == "none" {
		return nil
	}
	var out []answer
	for _, one := range strings.Split(text, "; ") {
		m := answerForm.FindStringSubmatch(one)
		if m == nil {
			t.Fatalf("not an answer: got %q, want m not nil", one)
		}
		a := answer{table: m[1], tail: strings.Fields(m[3])}
		for _, step := range strings.Split(strings.TrimSpace(m[2]), ", ") {
			a.steps = append(a.steps, strings.Split(step, " & "))
		}
		out = append(out, a)
	}
	return out
}

// readCorpus reads the file of statements.
func readCorpus(t *testing.T) []advised {
	t.Helper()
	f, err := os.Open("testdata/advice/corpus.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []advised
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' || strings.HasPrefix(line, "==") {
			continue
		}
		c := &advised{}
		if len(out) > 0 {
			c = &out[len(out)-1]
		}
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "->":
			c.answers = append(c.answers, readAnswers(t, rest))
		case "not":
			c.not = append(c.not, readAnswers(t, rest)...)
		case "spares":
			c.spares = rest
		case "says":
			c.says = append(c.says, rest)
		case "why:":
			c.why = rest
		case "on":
			kinds, what, _ := strings.Cut(rest, ": ")
			for _, k := range strings.Fields(kinds) {
				if what == "skip" {
					c.skip[k] = true
				} else {
					c.on[k] = append(c.on[k], readAnswers(t, strings.TrimPrefix(what, "-> ")))
				}
			}
		default:
			out = append(out, advised{line: n, sql: line, on: map[string][][]answer{}, skip: map[string]bool{}})
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for _, c := range out {
		if len(c.answers) == 0 && len(c.on) == 0 || c.why == "" {
			t.Fatalf("corpus.txt:%d has no answer or no reason: %s", c.line, c.sql)
		}
	}
	return out
}

// work is what a server did for a statement in one session.
type work struct {
	reads  float64 // rows and entries read, by the sum of Handler_read_…
	sorted float64 // rows sorted, and written to temporary tables
	pages  float64 // pages asked for, of the whole server
}

// trial is one statement on one server.
type trial struct {
	advised
	indexes [2][]plan.Advice // advised without and with --analyze
	shown   [2]string
	right   bool
	before  *work // without any index that is built here; nil: not counted yet
}

// TestCorpusAsTold: README and docs say about how many statements the corpus has.
func TestCorpusAsTold(t *testing.T) {
	n := len(readCorpus(t))
	for _, path := range []string{"../../../README.md", "../../../docs/explain.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`[Mm]ore than (\d+) statements with known answers`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s does not tell of the corpus, want m not nil", path)
		}
		if told, err := strconv.Atoi(string(m[1])); err != nil || told >= n || told+40 < n {
			t.Errorf("%s tells of more than %s statements, there are %d", path, m[1], n)
		}
	}
}

// TestAdviceCorpus: of each statement the advice is as known, and each advised index, once built, spares a third of
// the rows read at least; an index that is known to be no help spares less.
func TestAdviceCorpus(t *testing.T) {
	t.Parallel()
	corpus := readCorpus(t)
	tables, err := os.ReadFile("testdata/advice/tables.sql")
	if err != nil {
		t.Fatal(err)
	}
	eachKind(t, func(s *server) {
		s.exec(string(tables))
		c := s.connect()
		s.run(c, "SET GLOBAL innodb_flush_log_at_trx_commit = 0")
		s.run(c, "SET GLOBAL sync_binlog = 0")
		s.run(c, "USE sale")
		var list []*trial
		for _, one := range corpus {
			if !one.skip[s.kind] {
				list = append(list, s.ask(c, one))
			}
		}
		s.words(c)
		s.pairs(c)
		s.cached(c)
		s.merged(c)
		s.measure(c, list)
		s.useless(c, list)
		counts := map[string]int{}
		for _, x := range list {
			what := "an index"
			if len(x.indexes[0])+len(x.indexes[1]) == 0 {
				what = "none"
			}
			counts[map[bool]string{true: "right: ", false: "wrong: "}[x.right]+what]++
		}
		s.t.Logf("%s, %d statements: %v", s.kind, len(list), counts)
	})
}

// ask takes the advice on a statement, without running it and, if the server can, by running it.
func (s *server) ask(c *mysql.Conn, one advised) *trial {
	s.t.Helper()
	x := &trial{advised: one, right: true}
	want := one.answers
	if on, ok := one.on[s.kind]; ok {
		want = on
	}
	for i, analyze := range []bool{false, true} {
		if analyze && (!s.mariadb() && !s.can(97) || !strings.HasPrefix(one.sql, "SELECT") && !strings.HasPrefix(one.sql, "WITH") || strings.HasSuffix(one.sql, "FOR UPDATE")) {
			break
		}
		taken, facts, err := s.take(plan.Request{SQL: one.sql, Analyze: analyze, Database: "sale", Timeout: time.Minute})
		if err != nil {
			s.t.Errorf("corpus.txt:%d: %s: %v", one.line, one.sql, err)
			x.right = false
			break
		}
		e := plan.Explain(taken.Plan, facts, one.sql)
		s.truthful(c, e, one.sql)
		x.shown[i] = strings.Join(e.Lines(0), "\n")
		x.indexes[i] = indexesOf(e)
		for _, want := range one.says {
			if !strings.Contains(wordsOf(e), want) {
				s.t.Errorf("corpus.txt:%d: %s\n  analyze %v, %q is not said\n%s", one.line, one.sql, analyze, want, x.shown[i])
			}
		}
		plan.Redact(taken.Plan)
		if again := plan.Explain(taken.Plan, facts, one.sql); statements(indexesOf(again)) != statements(x.indexes[i]) && !strings.Contains(one.sql, "LIKE") {
			s.t.Errorf("corpus.txt:%d: %s\n  redacted, %s is advised, else %s", one.line, one.sql, statements(indexesOf(again)), statements(x.indexes[i]))
		}
		if !slices.ContainsFunc(want, func(a []answer) bool { return answered(a, x.indexes[i]) }) {
			x.right = false
			s.t.Errorf("corpus.txt:%d: %s\n  analyze %v, wanted %v (%s), advised %s\n%s", one.line, one.sql, analyze, want, one.why, statements(x.indexes[i]), x.shown[i])
		}
	}
	return x
}

// indexesOf is the advice that has an index.
func indexesOf(e plan.Explained) (out []plan.Advice) {
	for _, a := range e.Advice {
		if a.Statement != "" {
			out = append(out, a)
		}
	}
	return out
}

// wordsOf is all that the advice says.
func wordsOf(e plan.Explained) string {
	var out []string
	for _, a := range e.Advice {
		out = append(out, a.Texts...)
	}
	return strings.Join(out, "\n")
}

// merged: for an OR of two columns the advice is that an index on each of them, or those and a UNION, saves most of the reading.
func (s *server) merged(c *mysql.Conn) {
	s.t.Helper()
	const sql, union = "SELECT * FROM orders WHERE customer = 77 OR code = 'C77'", "SELECT * FROM orders WHERE customer = 77 UNION SELECT * FROM orders WHERE code = 'C77'"
	s.run(c, "CREATE INDEX merged_a ON orders (customer)")
	s.run(c, "CREATE INDEX merged_b ON orders (code)")
	for _, q := range []string{sql, union} {
		if w := s.count(c, q); w.reads > 1000 {
			s.t.Errorf("%s\n  with an index on each of customer and code reads %v\n%s", q, w.reads, s.tabular(q))
		}
	}
	s.run(c, "DROP INDEX merged_a ON orders")
	s.run(c, "DROP INDEX merged_b ON orders")
}

// cached: as many rows are read below a subquery that runs again as the server counts, also where MariaDB keeps its
// results.
func (s *server) cached(c *mysql.Conn) {
	s.t.Helper()
	const sql = "SELECT * FROM wages w WHERE salary = (SELECT MAX(salary) FROM wages w2 WHERE w2.emp_no = w.emp_no)"
	taken, facts, err := s.take(plan.Request{SQL: sql, Database: "sale"})
	if err != nil {
		s.t.Fatal(err)
	}
	e := plan.Explain(taken.Plan, facts, sql)
	said := 0.0
	for _, x := range e.Sentences {
		if m := inAll.FindStringSubmatch(x.Text); m != nil && x.Kind == "dependent_subquery" {
			said, _ = strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
		}
	}
	if read := s.count(c, sql).reads; said < read/20 || said > read*20 {
		s.t.Errorf("%s\n  %v rows in all are told, %v are read\n%s", sql, said, read, strings.Join(e.Lines(0), "\n"))
	}
}

var inAll = regexp.MustCompile(`times, ([\d,]+) rows? in all`)

// pairs: an index is advised for a join that compares hundreds of millions of pairs of rows. It is run with the index
// only: without it the join takes a minute.
func (s *server) pairs(c *mysql.Conn) {
	s.t.Helper()
	for _, x := range []struct{ sql, column, kind string }{
		{"SELECT o.id FROM orders o STRAIGHT_JOIN items i ON i.price = o.amount", "price", "join_buffer"},
		{"SELECT COUNT(*) FROM foreigners f JOIN foreigners g ON f.name = g.name AND f.id < g.id", "name", "range_checked"},
	} {
		taken, facts, err := s.take(plan.Request{SQL: x.sql, Database: "sale"})
		if err != nil {
			s.t.Fatal(err)
		}
		e := plan.Explain(taken.Plan, facts, x.sql)
		found := indexesOf(e)
		if !slices.ContainsFunc(e.Sentences, func(y plan.Sentence) bool { return y.Kind == x.kind && y.Severity == plan.Bad }) {
			if s.kind == "mysql-9.7" && x.kind == "join_buffer" { // it joins by a hash
				continue
			}
			s.t.Errorf("%s\n  is not told as bad:\n%s", x.sql, strings.Join(e.Lines(0), "\n"))
		}
		if len(found) != 1 || found[0].Columns[0] != x.column {
			s.t.Errorf("%s\n  advised %s\n%s", x.sql, statements(found), strings.Join(e.Lines(0), "\n"))
			continue
		}
		s.run(c, found[0].Statement)
		if w := s.count(c, x.sql); w.reads > 200_000 {
			s.t.Errorf("%s\n  %s leaves %v reads", x.sql, found[0].Statement, w.reads)
		}
		s.run(c, dropping(found[0].Statement))
	}
}

func statements(list []plan.Advice) string {
	var out []string
	for _, a := range list {
		out = append(out, a.Statement)
	}
	return strings.Join(out, "; ")
}

// answered reports whether the indexes advised are those of the answer.
func answered(want []answer, list []plan.Advice) bool {
	if len(want) != len(list) {
		return false
	}
	for _, a := range list {
		var cols []string
		_, inside, _ := strings.Cut(a.Statement, " ON ")
		for _, c := range a.Columns {
			if strings.Contains(inside, "`"+c+"` DESC") {
				c += " DESC"
			}
			cols = append(cols, c)
		}
		_, table, _ := strings.Cut(a.Table, ".")
		if !slices.ContainsFunc(want, func(w answer) bool { return w.matches(table, cols) }) {
			return false
		}
	}
	return true
}

// measure builds what was advised, all statements with the same indexes together, and counts.
func (s *server) measure(c *mysql.Conn, list []*trial) {
	s.t.Helper()
	groups := map[string][]*trial{}
	var order []string
	for _, x := range list {
		for i := range x.indexes {
			key := statements(x.indexes[i])
			if key == "" || slices.Contains(groups[key], x) {
				continue
			}
			if groups[key] == nil {
				order = append(order, key)
			}
			groups[key] = append(groups[key], x)
		}
	}
	for _, key := range order {
		built := strings.Split(key, "; ")
		whole := slices.ContainsFunc(groups[key], func(x *trial) bool { return x.spares == "together" })
		last := make([]work, len(groups[key]))
		for j, x := range groups[key] {
			last[j] = s.before(c, x)
		}
		for i, create := range built {
			if s.run(c, create); whole && i+1 < len(built) {
				continue
			}
			for j, x := range groups[key] {
				now := s.count(c, x.sql)
				if i+1 < len(built) || !clearly(last[j], now, x.spares) { // the server may look at the new index by itself
					if again := s.count(c, x.sql); again.pages < now.pages {
						now = again
					}
				}
				if !clearly(last[j], now, x.spares) {
					x.right = false
					s.t.Errorf("corpus.txt:%d: %s\n  %s does not spare a third: %+v before, %+v after\n%s\n%s", x.line, x.sql, create, last[j], now, x.shown[0], s.tabular(x.sql))
				}
				last[j] = now
			}
		}
		for _, create := range built {
			s.run(c, dropping(create))
		}
	}
}

// useless builds the indexes that are known to be no help, each once for all statements that it is no help for.
func (s *server) useless(c *mysql.Conn, list []*trial) {
	s.t.Helper()
	groups := map[string][]*trial{}
	var order []string
	for _, x := range list {
		if _, other := x.on[s.kind]; other {
			continue // and so may be what helps
		}
		for _, a := range x.not {
			place := fmt.Sprintf("`sale`.`%s` (%s)", a.table, strings.Join(a.columns(), ", "))
			if groups[place] == nil {
				order = append(order, place)
			}
			groups[place] = append(groups[place], x)
		}
	}
	for _, place := range order {
		before := make([]work, len(groups[place]))
		for i, x := range groups[place] {
			before[i] = s.before(c, x)
		}
		s.run(c, "CREATE INDEX `useless` ON "+place)
		for i, x := range groups[place] {
			if after := s.count(c, x.sql); clearly(before[i], after, "") {
				x.right = false
				s.t.Errorf("corpus.txt:%d: %s\n  an index on %s helps nevertheless: %+v before, %+v after\n%s", x.line, x.sql, place, before[i], after, s.tabular(x.sql))
			}
		}
		table, _, _ := strings.Cut(place, " ")
		s.run(c, "DROP INDEX `useless` ON "+table)
	}
}

// clearly reports whether a third of the rows read at least is spared, and not at the price of more
// pages, unless nine rows of ten are spared.
func clearly(before, after work, spares string) bool {
	less := func(before, after float64) bool { return after <= before*2/3 }
	switch spares {
	case "sort":
		return after.reads <= before.reads*1.01 && less(before.sorted, after.sorted)
	case "pages":
		return after.reads <= before.reads*1.01 && less(before.pages, after.pages)
	}
	return less(before.reads, after.reads) && (after.pages <= before.pages || after.reads < before.reads/10)
}

var indexOn = regexp.MustCompile("^CREATE INDEX (`[^`]*`) ON (`[^`]*`.`[^`]*`)")

func dropping(create string) string {
	m := indexOn.FindStringSubmatch(create)
	return "DROP INDEX " + m[1] + " ON " + m[2]
}

func (s *server) run(c *mysql.Conn, sql string) {
	s.t.Helper()
	if err := c.Query(s.t.Context(), sql, func([]sqldriver.Value) error { return nil }); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// before counts what a statement does with the indexes of the tables alone.
func (s *server) before(c *mysql.Conn, x *trial) work {
	s.t.Helper()
	if x.before == nil {
		w := s.count(c, x.sql)
		x.before = &w
	}
	return *x.before
}

// count runs a statement, undoes it, and reads what the session did.
func (s *server) count(c *mysql.Conn, sql string) work {
	s.t.Helper()
	pages := s.status(c, "GLOBAL", "Innodb_buffer_pool_read_requests")
	s.run(c, "FLUSH STATUS") // which ends a transaction
	s.run(c, "BEGIN")
	s.run(c, sql)
	var w work
	rows, err := c.Maps(s.t.Context(), "SHOW SESSION STATUS")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range rows {
		v, _ := strconv.ParseFloat(r["Value"], 64)
		switch name := r["Variable_name"]; {
		case strings.HasPrefix(name, "Handler_read_"):
			w.reads += v
		case name == "Sort_rows", name == "Handler_write", name == "Handler_tmp_write", name == "Handler_update", name == "Handler_tmp_update":
			w.sorted += v
		}
	}
	w.pages = s.status(c, "GLOBAL", "Innodb_buffer_pool_read_requests") - pages
	s.run(c, "ROLLBACK")
	return w
}

func (s *server) status(c *mysql.Conn, scope, name string) float64 {
	s.t.Helper()
	rows, err := c.Maps(s.t.Context(), "SHOW "+scope+" STATUS LIKE '"+name+"'")
	if err != nil || len(rows) != 1 {
		s.t.Fatalf("%s: %v, %v", name, rows, err)
	}
	v, _ := strconv.ParseFloat(rows[0]["Value"], 64)
	return v
}

// tabular is the plan as the server shows it now.
func (s *server) tabular(sql string) string {
	taken, _, err := s.take(plan.Request{SQL: sql, Database: "sale"})
	if err != nil {
		return err.Error()
	}
	return strings.Join(plan.Explain(taken.Plan, nil, sql).Lines(0), "\n")
}
