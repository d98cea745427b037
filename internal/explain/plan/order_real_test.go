package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/plan"
)

// big is a table of 60,000 rows whose rows are too long to be read for a few columns.
const big = `USE shop; CREATE TABLE big (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL, status INT NOT NULL, placed DATETIME NOT NULL, code VARCHAR(20) NOT NULL, total INT NOT NULL,
 payload VARCHAR(300) NOT NULL, body TEXT, KEY total (total)) DEFAULT CHARSET=latin1;
INSERT INTO big (customer, status, placed, code, total, payload, body) SELECT n%1000, n%50, '2024-01-01' + INTERVAL (n*7919)%60000 MINUTE, n%500, n%977, REPEAT('x', 200), CONCAT('body ', n) FROM
 (SELECT a.d+10*b.d+100*c.d+1000*e.d+10000*f.d n FROM digits a, digits b, digits c, digits e, digits f WHERE f.d<6) t;
ANALYZE TABLE big`

// ordered are statements whose sorting or grouping an index could spare: the columns advised, and whether the sort goes.
var ordered = []struct {
	name, sql, columns string
	gone               bool
	says               []string
}{
	{"order behind equality", "SELECT placed, total FROM big WHERE status = 7 ORDER BY placed", "status,placed,total", true, []string{"in the order of the ORDER BY (placed)", "no filesort"}},
	{"group", "SELECT customer, SUM(total) FROM big GROUP BY customer", "customer,total", true, []string{"in the order of the GROUP BY (customer)"}},
	{"group and order", "SELECT customer, status, COUNT(*) FROM big GROUP BY status, customer ORDER BY status", "status,customer", true, []string{"GROUP BY and ORDER BY (status, customer)"}},
	{"group, and order otherwise", "SELECT customer, status, COUNT(*) FROM big GROUP BY customer, status ORDER BY status", "customer,status", false, []string{"sorted again for the ORDER BY"}},
	{"order of the groups", "SELECT customer, SUM(total) s FROM big GROUP BY 1 ORDER BY s DESC LIMIT 3", "customer,total", false, []string{"The ORDER BY sorts the groups"}},
	{"order wins over range", "SELECT b.placed, b.total FROM big AS b WHERE b.status = 7 AND b.total > 100 ORDER BY b.placed DESC LIMIT 10", "status,placed,total", true, []string{"only one can follow: the range on total, or the ORDER BY", "LIMIT stops after 10 rows", "So the ORDER BY is taken and not the range"}},
	{"range wins over order", "SELECT placed, total FROM big WHERE total BETWEEN 100 AND 104 ORDER BY placed", "total,placed", false, []string{"So the range is taken and not the ORDER BY"}},
	{"range is the order", "SELECT placed, code FROM big WHERE status = 7 AND placed > '2024-01-02' ORDER BY placed", "status,placed,code", true, []string{"the range, which is the order as well"}},
	{"join and backticks", "SELECT `b`.`placed`, c.name FROM `big` `b` JOIN customers c ON c.id = b.customer WHERE `b`.status = 3 ORDER BY `b`.`placed` LIMIT 20", "status,placed,customer", true, nil},
	{"not covering", "SELECT * FROM big WHERE status = 7 ORDER BY placed LIMIT 10", "status,placed", true, []string{"It is not covering: about 10 rows are looked up"}},
	{"distinct", "SELECT DISTINCT status, code FROM big", "status,code", true, []string{"DISTINCT (status, code)"}},
	{"alias in the order", "SELECT placed AS moment, total FROM big WHERE status = 7 ORDER BY moment", "status,placed,total", true, nil},
}

// sorts reports whether a plan has a filesort or a temporary table.
func sorts(p *plan.Plan) bool {
	return has(p, func(n *plan.Node) bool {
		return n.Filesort || n.Temporary || n.Kind == plan.KindSort || n.Kind == plan.KindTemporary
	})
}

// TestOrder: the server takes the index that is advised for ORDER BY, GROUP BY and DISTINCT, and its sort is gone.
func TestOrder(t *testing.T) {
	t.Parallel()
	eachServer(t, func(s *server) {
		s.exec(big)
		for _, c := range ordered {
			e := s.explain(c.sql, false)
			show := strings.Join(e.Lines(0), "\n")
			if !sorts(e.Plan) {
				s.t.Errorf("%s: nothing is sorted before: the case proves nothing\n%s", c.name, show)
			}
			a := adviceFor(e, "shop.big")
			if a == nil || strings.Join(a.Columns, ",") != c.columns {
				s.t.Errorf("%s: not advised (%s):\n%s", c.name, c.columns, show)
				continue
			}
			for _, want := range c.says {
				if text := strings.Join(a.Texts, " "); !strings.Contains(text, want) {
					s.t.Errorf("%s: %q is not said: %s", c.name, want, text)
				}
			}
			s.exec(a.Statement + "; ANALYZE TABLE shop.big")
			after := s.explain(c.sql, false)
			name := strings.Split(a.Statement, "`")[1]
			if !has(after.Plan, func(n *plan.Node) bool { return n.Key == name }) || sorts(after.Plan) == c.gone {
				s.t.Errorf("%s: with %s the plan is\n%s\nbefore it was\n%s", c.name, a.Statement, strings.Join(after.Lines(0), "\n"), show)
			}
			if again := adviceFor(after, "shop.big"); again != nil && again.Statement != "" {
				s.t.Errorf("%s: with the advised index there, %s is advised", c.name, again.Statement)
			}
			s.exec("DROP INDEX " + name + " ON shop.big; ANALYZE TABLE shop.big")
		}
		s.directions()
		s.unusable()
		s.prefixes()
	})
}

func adviceFor(e plan.Explained, table string) *plan.Advice {
	for i := range e.Advice {
		if e.Advice[i].Table == table {
			return &e.Advice[i]
		}
	}
	return nil
}

// directions: an order up and down needs an index with both, which not every server has.
func (s *server) directions() {
	sql := "SELECT status, code FROM big ORDER BY status, code DESC LIMIT 5"
	e := s.explain(sql, false)
	a := adviceFor(e, "shop.big")
	if !s.can(80) {
		if a == nil || len(a.Order) > 0 || !strings.Contains(strings.Join(a.Texts, " "), "have only one direction") {
			s.t.Errorf("5.7 keeps no descending index: %+v", a)
		}
		return
	}
	if a == nil || !strings.Contains(a.Statement, "(`status`, `code` DESC)") {
		s.t.Fatalf("directions: %s", strings.Join(e.Lines(0), "\n"))
	}
	s.exec(a.Statement)
	if after := s.explain(sql, false); sorts(after.Plan) {
		s.t.Errorf("still sorted with %s:\n%s", a.Statement, strings.Join(after.Lines(0), "\n"))
	}
	s.exec("DROP INDEX status_code ON shop.big")
}

// unusable: comparisons that no index serves are named, and no index on their column is advised; rewritten,
// they can use one.
func (s *server) unusable() {
	s.exec("CREATE INDEX placed ON shop.big (placed); CREATE INDEX code ON shop.big (code); ANALYZE TABLE shop.big")
	for _, c := range []struct{ sql, column, better string }{
		{"SELECT * FROM big b WHERE DATE(b.placed) = '2024-01-05'", "placed", "SELECT * FROM big b WHERE b.placed >= '2024-01-05' AND b.placed < '2024-01-05 00:30:00'"},
		{"SELECT * FROM big WHERE code = 17", "code", "SELECT * FROM big WHERE code = '17'"},
		{"SELECT * FROM big WHERE code LIKE '%17'", "code", "SELECT * FROM big WHERE code LIKE '499%'"},
		{"SELECT * FROM big WHERE UPPER(`code`) = '17'", "code", "SELECT * FROM big WHERE `code` = '17'"},
		{"SELECT * FROM big WHERE total + 1 = 18", "total", "SELECT * FROM big WHERE total = 17"},
	} {
		if s.kind == "mariadb-11.8" && strings.Contains(c.sql, "DATE(") {
			if a := adviceFor(s.explain(c.sql, false), "shop.big"); a != nil && len(a.Unusable) > 0 {
				s.t.Errorf("%s is read as a range since 11.1: %+v", c.sql, a)
			}
			s.exec("DROP INDEX placed ON shop.big")
			if a := adviceFor(s.explain(c.sql, false), "shop.big"); a != nil && len(a.Unusable) > 0 {
				s.t.Errorf("%s without an index is told to be unusable: %+v", c.sql, a)
			}
			s.exec("CREATE INDEX placed ON shop.big (placed); ANALYZE TABLE shop.big")
			continue
		}
		e := s.explain(c.sql, false)
		a := adviceFor(e, "shop.big")
		if a == nil || len(a.Unusable) != 1 || !strings.Contains(strings.Join(a.Texts, " "), "No index on "+c.column+" can serve") || a.Statement != "" {
			s.t.Errorf("%s: %+v\n%s", c.sql, a, strings.Join(e.Lines(0), "\n"))
		}
		if !has(e.Plan, func(n *plan.Node) bool { return n.Access == plan.AccessAll }) {
			s.t.Errorf("%s is no full scan: the case proves nothing", c.sql)
		}
		better := s.explain(c.better, false)
		if a := adviceFor(better, "shop.big"); a != nil && len(a.Unusable) > 0 || !has(better.Plan, func(n *plan.Node) bool { return n.Key == c.column }) {
			s.t.Errorf("%s does not use the index, or is told not to: %s", c.better, strings.Join(better.Lines(0), "\n"))
		}
	}
	s.exec("DROP INDEX placed ON shop.big; DROP INDEX code ON shop.big")
}

// prefixes: of a TEXT only its beginning is put into an index. Only a measured plan knows how few rows match.
func (s *server) prefixes() {
	if !s.mariadb() && !s.can(97) {
		return
	}
	sql := "SELECT payload FROM big WHERE body = 'body 4711'"
	taken, facts, err := s.take(plan.Request{SQL: sql, Analyze: true, Timeout: 30 * time.Second})
	if err != nil {
		s.t.Fatal(err)
	}
	a := adviceFor(plan.Explain(taken.Plan, facts, sql), "shop.big")
	if a == nil || !strings.HasSuffix(a.Statement, "(`body`(64))") {
		s.t.Fatalf("a TEXT: %+v", a)
	}
	s.exec(a.Statement)
	if after := s.explain(sql, false); !has(after.Plan, func(n *plan.Node) bool { return n.Key == "body" && n.Access == plan.AccessRef }) {
		s.t.Errorf("%s is not taken:\n%s", a.Statement, strings.Join(after.Lines(0), "\n"))
	}
}
