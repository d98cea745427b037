package plan_test

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/mysql"
)

// wordy are statements whose plans are easily described wrongly, on the tables of the advice corpus; the number is that of the
// MySQL that knows the syntax.
var wordy = []struct {
	since int
	sql   string
}{
	{0, "SELECT customer, SUM(amount) s FROM orders GROUP BY customer ORDER BY s DESC LIMIT 3"},
	{0, "SELECT customer, SUM(amount) s FROM orders GROUP BY customer ORDER BY s"},
	{0, "SELECT customer, SUM(amount) FROM orders WHERE status = 2 GROUP BY customer ORDER BY NULL"},
	{0, "SELECT DISTINCT customer, shop FROM orders ORDER BY shop, customer"},
	{0, "SELECT DISTINCT o.customer, c.name FROM orders o JOIN customers c ON c.id = o.customer WHERE c.segment = 1 ORDER BY c.name"},
	{0, "SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = o.customer WHERE o.status = 3 ORDER BY c.name"},
	{0, "SELECT o.id, i.price FROM items i JOIN orders o ON o.id = i.order_id WHERE i.product = 9 ORDER BY o.amount LIMIT 5"},
	{0, "SELECT * FROM orders WHERE status = 2 LIMIT 5"},
	{0, "SELECT * FROM orders ORDER BY id DESC LIMIT 3"},
	{0, "SELECT c.name FROM customers c WHERE EXISTS (SELECT 1 FROM visits v WHERE v.customer = c.id AND v.month = 2) LIMIT 4"},
	{0, "SELECT customer FROM orders WHERE status = 2 UNION SELECT id FROM customers WHERE segment = 1 ORDER BY 1"},
	{0, "SELECT customer FROM orders WHERE status = 2 UNION ALL SELECT id FROM customers WHERE segment = 1 ORDER BY 1 LIMIT 7"},
	{0, "SELECT SQL_BUFFER_RESULT customer, COUNT(*) FROM orders WHERE status = 2 GROUP BY customer"},
	{0, "SELECT SQL_BUFFER_RESULT id FROM orders WHERE status = 2"},
	{0, "SELECT 'SQL_BUFFER_RESULT' AS x, customer, COUNT(DISTINCT shop) FROM orders GROUP BY x, customer"},
	{0, "INSERT INTO pairs SELECT a + 1000, b, c FROM pairs WHERE c = 3"},
	{0, "INSERT INTO pairs SELECT customer + 5000, id, COUNT(*) FROM orders WHERE status = 1 GROUP BY customer, id"},
	{0, "REPLACE INTO pairs SELECT b, a, c FROM pairs WHERE a = 5"},
	{0, "UPDATE orders SET shop = shop + 1 WHERE shop > 17"},
	{0, "DELETE FROM items WHERE product = 3 ORDER BY price LIMIT 4"},
	{0, "UPDATE orders o JOIN (SELECT customer, MAX(amount) m FROM orders GROUP BY customer) t ON t.customer = o.customer AND t.m = o.amount SET o.paid = 0"},
	{0, "SELECT d.customer, d.n FROM (SELECT customer, COUNT(*) n FROM orders GROUP BY customer) d WHERE d.n > 14 ORDER BY d.n DESC"},
	{0, "SELECT shop, COUNT(*) FROM orders GROUP BY shop WITH ROLLUP"},
	{0, "SELECT a.id, b.id FROM orders a, orders b WHERE a.customer = b.customer AND a.status = 2 AND b.status = 3"},
	{0, "SELECT customer, (SELECT COUNT(*) FROM items i WHERE i.order_id = o.id) FROM orders o WHERE o.id < 60 ORDER BY 2 DESC LIMIT 2"},
	{0, "SELECT id FROM orders WHERE customer NOT IN (SELECT customer FROM visits WHERE month = 3)"},
	{0, "SELECT id FROM orders WHERE amount > ALL (SELECT price FROM items WHERE qty = 3)"},
	{0, "SELECT o.id FROM orders o LEFT JOIN visits v ON v.id = o.id AND v.month = 1 WHERE v.id IS NULL"},
	{0, "SELECT shop, MIN(amount) FROM orders GROUP BY shop HAVING MIN(amount) > 10 ORDER BY MIN(amount)"},
	{0, "SELECT 1"},
	{0, "SELECT * FROM orders WHERE 1 = 0"},
	{0, "SELECT SQL_CALC_FOUND_ROWS * FROM orders WHERE status = 2 LIMIT 5"},
	{0, "SELECT id, note LIKE '%9' x FROM orders HAVING x = 1 LIMIT 5"},
	{0, "SELECT * FROM countries LIMIT 100"},
	{0, "SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.status = 2)"},
	{0, "SELECT id FROM customers WHERE id NOT IN (SELECT customer FROM orders WHERE amount > 90000)"},
	{100, "SELECT * FROM orders WHERE status = 2 LIMIT 5 ROWS EXAMINED 100000"},
	{100, "SELECT * FROM orders ORDER BY id FETCH FIRST 5 ROWS ONLY"},
	{80, "WITH t AS (SELECT customer, SUM(amount) s FROM orders GROUP BY customer) SELECT COUNT(*) FROM t a JOIN t b ON a.s = b.s"},
	{80, "WITH t AS (SELECT customer, SUM(amount) s FROM orders WHERE status = 2 GROUP BY customer) SELECT * FROM t WHERE s = (SELECT MAX(s) FROM t)"},
	{80, "WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 50) SELECT a.i, b.i FROM n a JOIN n b ON b.i = a.i + 1"},
	{80, "SELECT customer, SUM(amount) OVER (PARTITION BY shop ORDER BY id) FROM orders WHERE status = 2"},
	{80, "SELECT customer, RANK() OVER (ORDER BY SUM(amount)) FROM orders WHERE status = 2 GROUP BY customer ORDER BY customer"},
	{80, "SELECT customer FROM orders WHERE status = 2 EXCEPT SELECT id FROM customers WHERE segment = 1"},
}

// words: each sentence on these statements is true on this server.
func (s *server) words(c *mysql.Conn) {
	s.t.Helper()
	s.marked(c)
	for _, x := range wordy {
		if !s.can(x.since) || strings.Contains(x.sql, "EXCEPT") && s.kind == "mysql-8.0" {
			continue
		}
		for _, analyze := range []bool{false, true} {
			if analyze && (!s.mariadb() && !s.can(97) || !strings.HasPrefix(x.sql, "SELECT") && !strings.HasPrefix(x.sql, "WITH")) {
				continue
			}
			taken, facts, err := s.take(plan.Request{SQL: x.sql, Analyze: analyze, Database: "sale"})
			if err != nil {
				s.t.Errorf("%s: %v", x.sql, err)
				continue
			}
			s.truthful(c, plan.Explain(taken.Plan, facts, x.sql), x.sql)
		}
	}
}

// marked: a plan is the same while MySQL writes end markers into it.
func (s *server) marked(c *mysql.Conn) {
	s.t.Helper()
	if s.mariadb() {
		return // it has none
	}
	const sql = "SELECT customer, '*/' FROM orders WHERE note LIKE '/*%\"' AND shop IN (SELECT id FROM customers) ORDER BY amount"
	plain := s.planOf(sql)
	s.run(c, "SET GLOBAL end_markers_in_json = ON")
	defer s.run(c, "SET GLOBAL end_markers_in_json = OFF")
	taken, _, err := s.take(plan.Request{SQL: sql, Database: "sale"})
	if err != nil || !strings.Contains(taken.Text, "} /* query_block */") || plan.ID(taken.Plan) != plain {
		s.t.Errorf("with end markers: %v\n%+v", err, taken)
	}
}

func (s *server) planOf(sql string) string {
	s.t.Helper()
	taken, _, err := s.take(plan.Request{SQL: sql, Database: "sale"})
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return plan.ID(taken.Plan)
}

// truthful holds the sentences on a plan against its tree, and against what the server counts when it runs the
// statement.
func (s *server) truthful(c *mysql.Conn, e plan.Explained, sql string) {
	s.t.Helper()
	bad := func(format string, args ...any) {
		s.t.Helper()
		s.t.Errorf("%s\n  %s\n%s", sql, fmt.Sprintf(format, args...), strings.Join(e.Lines(0), "\n"))
	}
	known := figuresOf(e.Plan)
	kept, filled := 0, 0
	e.Plan.Root.Walk(func(n, _ *plan.Node, _ int) {
		if n.Kind == plan.KindMaterialise && !strings.Contains(n.Title, "elsewhere") && n.Role != "shared with another reader" {
			filled++
		}
	})
	for _, x := range e.Sentences {
		n := e.Plan.Find(x.Node)
		for _, m := range numberForm.FindAllString(withoutVersions(x), -1) {
			if v, err := strconv.ParseFloat(strings.ReplaceAll(m, ",", ""), 64); err != nil || !known.has(v, x.Kind) && !endedEarly.MatchString(x.Text) {
				bad("%s: %s is no figure of the tree: %s", x.Kind, m, x.Text)
			}
		}
		if x.Kind == "full_scan" || x.Kind == "full_index_scan" {
			s.reading(c, e, sql, x.Text, bad)
		}
		switch x.Kind {
		case "filesort":
			if !n.Filesort && n.Kind != plan.KindSort {
				bad("no filesort in the tree: %s", x.Text)
			}
			s.filesort(c, e, sql, x.Text, bad)
		case "covering", "not_covering", "full_index_scan":
			if n.Key == "" || !strings.Contains(x.Text, n.Key) || n.Covering != !strings.Contains(x.Text, "not covering") {
				bad("the tree has another index: %s", x.Text)
			}
		case "buffer_result":
			if !strings.HasPrefix(sql, "SELECT SQL_BUFFER_RESULT") {
				bad("nobody wrote SQL_BUFFER_RESULT: %s", x.Text)
			}
		case "materialised":
			kept++
		case "estimate":
			if strings.Contains(sql, "LIMIT") && strings.Contains(x.Text, "too many") && !sorts(e.Plan) {
				bad("LIMIT ended it, not bad statistics: %s", x.Text)
			}
		case "sort_of_join":
			made := s.session(c, sql, "Created_tmp_tables") > 0
			if other := strings.Contains(sql, "GROUP") || strings.Contains(sql, "DISTINCT") || strings.Contains(sql, "(SELECT"); made != (s.kind != "mysql-9.7") && !other {
				bad("a temporary table is made: %v; %s", made, x.Text)
			}
		case "temporary_table", "union_result":
			if !strings.Contains(x.Text, "temporary table") || strings.Contains(x.Text, "without") {
				break
			}
			if s.session(c, sql, "Created_tmp_tables") == 0 {
				bad("the server makes no temporary table: %s", x.Text)
			}
		}
	}
	if kept > filled {
		bad("%d steps are told to fill a temporary table, the tree has %d", kept, filled)
	}
	s.reasons(e, bad)
	for _, a := range e.Advice {
		text := strings.Join(a.Texts, " ")
		if n := e.Plan.Find(a.Node); strings.Contains(text, "none is used") && len(n.PossibleKeys) == 0 || strings.Contains(text, "too many of its columns") {
			bad("no index is there to be taken: %s", text)
		}
		if strings.Contains(text, "(possible: PRIMARY)") {
			bad("the primary key looks no rows up at random: %s", text)
		}
	}
}

// reasons: of each table that is read whole, without an end that comes earlier, an index is advised, or why none is.
func (s *server) reasons(e plan.Explained, bad func(string, ...any)) {
	s.t.Helper()
	told := map[int]bool{}
	for _, a := range e.Advice {
		told[a.Node] = told[a.Node] || len(a.Texts) > 0
		if text := strings.Join(a.Texts, " "); innerForm.MatchString(text) {
			bad("the optimizer's own notation: %s", text)
		}
	}
	for _, x := range e.Sentences {
		told[x.Node] = told[x.Node] || x.Kind == "full_scan" && strings.Contains(x.Text, "ends when")
		if innerForm.MatchString(x.Text) {
			bad("the optimizer's own notation: %s", x.Text)
		}
	}
	for _, m := range servesToo.FindAllStringSubmatch(wordsOf(e), -1) {
		id, _ := strconv.Atoi(m[1])
		told[id] = true
	}
	e.Plan.Root.Walk(func(n, _ *plan.Node, _ int) {
		if n.Kind == plan.KindTable && !n.Inner() && n.Access == plan.AccessAll && n.ActualRows.Or(n.Rows.Or(0)) >= 1000 && n.Loops.Or(1) > 0 && n.Role != "insert" && n.Role != "replace" && !told[n.ID] {
			bad("#%d is read whole, and nothing says why no index is advised", n.ID)
		}
	})
}

var servesToo = regexp.MustCompile(`It serves #(\d+), too`)

var innerForm = regexp.MustCompile(`<[a-z_]+>\(|<materialize>|trigcond`)

var (
	numberForm = regexp.MustCompile(`\d[\d,]*(?:\.\d+)?`)
	sortedRows = regexp.MustCompile(`(at most about|about|gathered,) ([\d,]+)(?: rows)?`)
)

var (
	endedEarly = regexp.MustCompile(`LIMIT [\d,]+ is reached|\(EXISTS\)|\(IN\)`)
	readAll    = regexp.MustCompile(`(at most all of|all of|read,|is reached:|\(EXISTS\):|\(IN\):|its order,|primary key,) about ([\d,]+) (?:rows?|entry|entries)`)
)

// reading: a plan that reads one table once reads as many rows as it says, and never more than "at most" says.
func (s *server) reading(c *mysql.Conn, e plan.Explained, sql, text string, bad func(string, ...any)) {
	s.t.Helper()
	tables := 0
	e.Plan.Root.Walk(func(n, _ *plan.Node, _ int) {
		switch {
		case n.Kind == plan.KindTable && !n.Inner():
			tables++
		case n.Kind == plan.KindTable, n.Kind == plan.KindTemporary, n.Kind == plan.KindWindow, n.Kind == plan.KindBuffer:
			tables += 2 // what the server makes itself is read, too
		}
	})
	m := readAll.FindStringSubmatch(text)
	if m == nil && !endedEarly.MatchString(text) {
		bad("how many rows are read is not found in: %s", text)
	}
	if m == nil || tables != 1 || !strings.HasPrefix(sql, "SELECT") || strings.Contains(sql, "(SELECT") && !strings.Contains(sql, "EXISTS") || strings.Contains(sql, "GROUP") || strings.Contains(sql, "DISTINCT") || strings.Contains(text, "times") {
		return
	}
	said, _ := strconv.ParseFloat(strings.ReplaceAll(m[2], ",", ""), 64)
	read := s.once("reads "+sql, func() float64 { return s.count(c, sql).reads })
	least, most := said/1.3-20, said*1.3+20
	if sorts(e.Plan) { // what is sorted may be read again
		most = math.Inf(1)
	}
	if m[1] == "at most all of" {
		least = 0
	} else if strings.Contains(text, "spread evenly") {
		least, most = said/3-20, said*3+20
	}
	if read < least || read > most {
		bad("%v rows and entries are read: %s", read, text)
	}
}

// withoutVersions is a sentence without the numbers of servers.
func withoutVersions(x plan.Sentence) string {
	if x.Kind != "sort_of_join" {
		return x.Text
	}
	text, _, _ := strings.Cut(x.Text, "MySQL")
	return text
}

// filesort: as many rows are sorted as is said. Only a measured plan knows; another one may be off by the optimiser's
// estimate, but not by orders of magnitude if it says "at most".
func (s *server) filesort(c *mysql.Conn, e plan.Explained, sql, text string, bad func(string, ...any)) {
	s.t.Helper()
	m := sortedRows.FindStringSubmatch(text)
	several := 0
	for _, x := range e.Sentences {
		if x.Kind == "filesort" {
			several++
		}
	}
	if m == nil || several > 1 || strings.Contains(text, "Only the first") || strings.Contains(sql, "LIMIT") || strings.Contains(sql, "OVER") {
		return
	}
	said, _ := strconv.ParseFloat(strings.ReplaceAll(m[2], ",", ""), 64)
	sorted := s.session(c, sql, "Sort_rows")
	switch {
	case m[1] == "at most about":
		if sorted > 1.2*said+10 {
			bad("%v rows are sorted: %s", sorted, text)
		}
	case e.Plan.Analyzed && math.Abs(sorted-said) > 0.01*said+1:
		bad("%v rows are sorted: %s", sorted, text)
	}
}

// session runs a statement, undoes it, and reads what its session counted.
func (s *server) session(c *mysql.Conn, sql, name string) float64 {
	s.t.Helper()
	return s.once(name+" "+sql, func() float64 {
		s.run(c, "FLUSH STATUS")
		s.run(c, "BEGIN")
		s.run(c, sql)
		v := s.status(c, "SESSION", name)
		s.run(c, "ROLLBACK")
		return v
	})
}

// once remembers what running a statement has shown: while sentences are compared with it, with and without --analyze, the tables stay
// as they are.
func (s *server) once(key string, measure func() float64) float64 {
	v, known := s.shown[key]
	if !known {
		v = measure()
		s.shown[key] = v
	}
	return v
}

// figureSet are the numbers that a drawn tree shows, and those that follow from them.
type figureSet struct{ values []float64 }

func figuresOf(p *plan.Plan) figureSet {
	var f figureSet
	add := func(list ...float64) {
		for _, v := range list {
			if !math.IsNaN(v) {
				f.values = append(f.values, v)
			}
		}
	}
	p.Root.Walk(func(n, _ *plan.Node, _ int) {
		rows, actual := float64(n.Rows), float64(n.ActualRows)
		add(rows, actual, float64(n.Loops), float64(n.Executions), float64(n.Produced), float64(n.Limit), float64(n.SelectID), float64(len(n.Children)),
			rows*float64(n.Executions), actual*float64(n.Loops), rows*float64(n.Filtered)/100, actual*float64(n.Loops)*float64(n.ActualFiltered)/100, actual*float64(n.ActualFiltered)/100)
		below, out, product := 0.0, 0.0, 1.0
		n.Walk(func(x, _ *plan.Node, _ int) {
			if x.Kind != plan.KindTable {
				return
			}
			if x.ActualRows.Known() && x.Loops.Known() {
				below += float64(x.ActualRows * x.Loops)
				add(float64(x.ActualRows*x.Loops) * x.ActualFiltered.Or(100) / 100)
				out += float64(x.ActualRows*x.Loops) * x.ActualFiltered.Or(100) / 100
			} else {
				below += x.Rows.Or(0) * x.Executions.Or(1)
				out += x.Rows.Or(0) * x.Filtered.Or(100) / 100
			}
		})
		for _, x := range n.Children {
			r := x.Rows.Or(1) * x.Filtered.Or(100) / 100
			product *= r
			add(product, product*x.Rows.Or(1))
		}
		add(below, out)
		for _, text := range append([]string{n.Condition, n.IndexCondition, n.Title, n.Table, n.Key, n.Message, n.JoinBuffer, strings.Join(n.SortKeys, " "), strings.Join(n.Functions, " ")}, n.PossibleKeys...) {
			for _, m := range numberForm.FindAllString(text, -1) {
				v, err := strconv.ParseFloat(strings.ReplaceAll(m, ",", ""), 64)
				if err == nil {
					add(v)
				}
			}
		}
		for _, x := range n.Extra {
			if v, err := strconv.ParseFloat(string(x.Value), 64); err == nil {
				add(v)
			}
		}
	})
	return f
}

// has reports whether a number of a sentence of that kind is one of the tree: to the digits that are written, or as a
// share or a factor.
func (f figureSet) has(v float64, kind string) bool {
	near := func(a, b float64) bool { return math.Abs(a-b) <= math.Max(0.5, 0.001*math.Abs(b)) }
	for _, x := range f.values {
		if near(v, x) {
			return true
		}
	}
	switch kind {
	case "heaviest", "full_scan": // a share in per cent
		return v <= 100
	case "join_buffer": // pairs of rows
		for _, x := range f.values {
			for _, y := range f.values {
				if near(v, x*y) {
					return true
				}
			}
		}
	case "estimate": // a factor
		for _, x := range f.values {
			for _, y := range f.values {
				if near(v, math.Max(x, 0.5)/math.Max(y, 0.5)) {
					return true
				}
			}
		}
	}
	return false
}
