package plan_test

import (
	"context"
	"errors"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// kinds are the servers whose plans are read.
var kinds = []string{"mysql-9.7", "mariadb", "mariadb-11.8", "mysql-8.0", "mysql-5.7"}

// shop makes the tables that the recorded plans in testdata were made with.
const shop = `CREATE DATABASE shop; USE shop;
CREATE TABLE digits (d INT NOT NULL PRIMARY KEY);
INSERT INTO digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
CREATE TABLE customers (id INT NOT NULL PRIMARY KEY, name VARCHAR(40) NOT NULL, country CHAR(2) NOT NULL, vip TINYINT NOT NULL DEFAULT 0, KEY country (country)) DEFAULT CHARSET=latin1;
INSERT INTO customers SELECT a.d*100+b.d*10+c.d, CONCAT('name', a.d, b.d, c.d), ELT(1+(b.d+c.d)%4,'de','fr','gb','us'), IF(c.d=0,1,0) FROM digits a, digits b, digits c;
CREATE TABLE orders (id INT NOT NULL PRIMARY KEY, customer INT NOT NULL, status INT NOT NULL, region INT NOT NULL, placed DATETIME NOT NULL, total DECIMAL(10,2) NOT NULL, note VARCHAR(80) NOT NULL,
 KEY customer (customer), KEY status (status), KEY region (region), KEY placed (placed)) DEFAULT CHARSET=latin1;
INSERT INTO orders SELECT n, (n*7)%1000, (n*13)%50, (n*17)%60, '2024-01-01' + INTERVAL n MINUTE, n%977, REPEAT('x', 60) FROM (SELECT a.d*1000+b.d*100+c.d*10+e.d n FROM digits a, digits b, digits c, digits e) t;
CREATE TABLE loose (a INT, b INT) DEFAULT CHARSET=latin1;
INSERT INTO loose SELECT a.d*10+b.d, c.d FROM digits a, digits b, digits c;
CREATE TABLE seen (n INT) ENGINE=InnoDB;
SET GLOBAL log_bin_trust_function_creators=1;
CREATE FUNCTION marks(x INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO seen VALUES (x); RETURN x; END;
ANALYZE TABLE customers, orders, loose`

// seed is the table of the index arithmetic, scaled down: 200,000 rows.
const seed = `CREATE TABLE seed (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, ts DATETIME NOT NULL, col1 INT NOT NULL, col2 INT NOT NULL, payload VARCHAR(200) NOT NULL, KEY ts (ts)) DEFAULT CHARSET=latin1;
INSERT INTO seed (ts, col1, col2, payload) SELECT '2024-01-01' + INTERVAL n MINUTE, n%97, n%89, REPEAT('x', 60 + n%80) FROM
 (SELECT a.d+10*b.d+100*c.d+1000*e.d+10000*f.d+100000*g.d n FROM digits a, digits b, digits c, digits e, digits f, digits g WHERE g.d<2) t;
ANALYZE TABLE seed`

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

type server struct {
	t    *testing.T
	kind string
	node *sandbox.Node

	shown map[string]float64 // see once
}

// eachServer runs a test on a server of each kind, with nothing but the shop in it.
func eachServer(t *testing.T, f func(s *server)) {
	eachKind(t, func(s *server) {
		s.exec(shop)
		f(s)
	})
}

// eachKind runs a test on an empty server of each kind.
func eachKind(t *testing.T, f func(s *server)) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f(&server{t: t, kind: kind, node: sandboxtest.Lend(t, kind, "performance_schema=OFF"), shown: map[string]float64{}})
		})
	}
}

func (s *server) exec(sql string) []sandbox.Result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	r, err := s.node.Query(ctx, sql)
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return r
}

func (s *server) value(sql string) string {
	s.t.Helper()
	r := s.exec(sql)
	last := r[len(r)-1]
	if len(last.Rows) == 0 || last.Rows[0][0] == nil {
		return ""
	}
	return *last.Rows[0][0]
}

func (s *server) mariadb() bool { return strings.HasPrefix(s.kind, "mariadb") }

// can reports whether the server is as new as one of MySQL of that number; MariaDB is new enough for all.
func (s *server) can(number int) bool {
	have := map[string]int{"mysql-5.7": 57, "mysql-8.0": 80, "mysql-9.7": 97, "mariadb": 100, "mariadb-11.8": 118}
	return have[s.kind] >= number
}

func (s *server) connect() *mysql.Conn {
	s.t.Helper()
	target, err := mysql.ParseTarget(s.node.DSN)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := mysql.Connect(s.t.Context(), target.WithPatience(time.Minute), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *server) take(r plan.Request) (*plan.Taken, []plan.TableFacts, error) {
	s.t.Helper()
	if r.Database == "" {
		r.Database = "shop"
	}
	c := s.connect()
	defer c.Close()
	taken, err := plan.Take(s.t.Context(), c, r)
	if err != nil {
		return nil, nil, err
	}
	facts, err := plan.ReadFacts(s.t.Context(), c, taken.Plan, r.SQL)
	return taken, facts, err
}

func (s *server) explain(sql string, analyze bool) plan.Explained {
	s.t.Helper()
	taken, facts, err := s.take(plan.Request{SQL: sql, Analyze: analyze, Timeout: 30 * time.Second})
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	if len(taken.Notes) > 0 {
		s.t.Errorf("%s: %v", sql, taken.Notes)
	}
	return plan.Explain(taken.Plan, facts, sql)
}

// told finds the sentence of that kind.
func told(e plan.Explained, kind string) (string, bool) {
	for _, s := range e.Sentences {
		if s.Kind == kind {
			return s.Text, true
		}
	}
	return "", false
}

func has(p *plan.Plan, f func(n *plan.Node) bool) bool {
	found := false
	p.Root.Walk(func(n, _ *plan.Node, _ int) { found = found || f(n) })
	return found
}

const (
	unionSQL     = "SELECT id, name FROM customers WHERE country = 'de' AND id IN (SELECT customer FROM orders WHERE total > 970) UNION SELECT id, note FROM orders WHERE status = (SELECT MAX(status) FROM orders) AND total > (SELECT AVG(total) FROM orders i WHERE i.customer = orders.customer)"
	bufferSQL    = "SELECT SQL_BUFFER_RESULT status, COUNT(*), SUM(total) FROM orders GROUP BY status"
	dependentSQL = "SELECT c.name, (SELECT MAX(total) FROM orders o WHERE o.customer = c.id) FROM customers c WHERE c.vip = 1"
)

// cases are statements, what the plan's tree has, and which sentences are printed, on each server that can run them.
var cases = []struct {
	name, sql string
	since     int // kinds of server that know the syntax: see can
	kind      plan.Kind
	tells     []string
	word      string // in the first of these sentences
	only      string // where the optimiser chooses so; "": everywhere
}{
	{name: "union", sql: unionSQL, kind: plan.KindUnion, tells: []string{"dependent_subquery", "union_result"}, word: "#5"},
	{name: "dependent", sql: dependentSQL, tells: []string{"dependent_subquery", "full_scan"}, word: "again for each outer row"},
	{name: "uncacheable", sql: "SELECT id FROM orders WHERE status > (SELECT RAND()*50 FROM digits LIMIT 1)", tells: []string{"uncacheable_subquery"}, word: "#2"},
	{name: "derived", sql: "SELECT d.customer, d.s, c.name FROM (SELECT customer, SUM(total) s FROM orders FORCE INDEX (customer) GROUP BY customer ORDER BY s DESC LIMIT 10) d JOIN customers c ON c.id = d.customer", kind: plan.KindMaterialise, tells: []string{"materialised", "filesort", "full_index_scan"}},
	{name: "cte", since: 80, sql: "WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT n.i, c.name FROM n JOIN customers c ON c.id = n.i", kind: plan.KindMaterialise, tells: []string{"materialised"}, word: "CTE"},
	{name: "window", since: 80, sql: "SELECT customer, total, RANK() OVER (PARTITION BY customer ORDER BY total DESC) r FROM orders WHERE status = 3", kind: plan.KindWindow, tells: []string{"filesort"}, word: "200 rows"},
	{name: "join without index", sql: "SELECT COUNT(*) FROM loose x JOIN loose y ON x.a = y.b", tells: []string{"join_buffer", "full_scan"}, word: "1,000"},
	{name: "index merge", sql: "SELECT note FROM orders WHERE status = 7 AND region = 19", tells: []string{"index_merge"}, word: "region"},
	{name: "filesort", sql: "SELECT note, total FROM orders ORDER BY total DESC LIMIT 10", tells: []string{"filesort", "full_scan"}},
	{name: "covering", sql: "SELECT customer FROM orders WHERE customer BETWEEN 10 AND 20", tells: []string{"covering"}, word: "customer"},
	{name: "impossible", sql: "SELECT note FROM orders WHERE id = 1 AND id = 2", tells: []string{"impossible"}},
	{name: "optimised away", sql: "SELECT MAX(id) FROM orders", tells: []string{"optimised_away"}},
	{name: "loose index scan", sql: "SELECT customer, MIN(id) FROM orders GROUP BY customer", tells: []string{"loose_index_scan"}, word: "customer", only: "mysql"},
	{name: "range checked", sql: "SELECT * FROM orders x JOIN orders y ON x.customer < y.region AND y.id < x.id LIMIT 3", tells: []string{"range_checked"}, word: " y "},
	{name: "update", sql: "UPDATE orders SET note = 'y' WHERE total > 950", tells: []string{"writes"}},
	{name: "delete", sql: "DELETE FROM orders WHERE status = 2", tells: []string{"writes"}},
	{name: "insert select", sql: "INSERT INTO loose SELECT status, COUNT(*) FROM orders GROUP BY status", tells: []string{"full_index_scan"}},
}

// TestServers: each statement on each server gives the tree and the words, and EXPLAIN changes nothing.
func TestServers(t *testing.T) {
	t.Parallel()
	eachServer(t, func(s *server) {
		before := s.value("CHECKSUM TABLE shop.orders") + s.value("SELECT COUNT(*) FROM shop.loose")
		for _, c := range cases {
			if !s.can(c.since) || !strings.HasPrefix(s.kind, c.only) {
				continue
			}
			e := s.explain(c.sql, false)
			show := strings.Join(e.Lines(0), "\n")
			if c.kind != "" && !has(e.Plan, func(n *plan.Node) bool { return n.Kind == c.kind }) {
				s.t.Errorf("%s: no node %s in\n%s", c.name, c.kind, show)
			}
			for i, kind := range c.tells {
				text, ok := told(e, kind)
				if !ok || i == 0 && !strings.Contains(text, c.word) {
					s.t.Errorf("%s: %s is not told, or without %q: %q\n%s", c.name, kind, c.word, text, show)
				}
			}
			if e.ID != plan.ID(s.explain(c.sql, false).Plan) {
				s.t.Errorf("%s: the same statement has two IDs", c.name)
			}
		}
		if after := s.value("CHECKSUM TABLE shop.orders") + s.value("SELECT COUNT(*) FROM shop.loose"); before != after {
			s.t.Errorf("explaining changed the tables: %s, then %s", before, after)
		}
		s.bufferResult()
		s.measured()
		s.forms()
	})
}

// bufferResult: SQL_BUFFER_RESULT is named, inside the grouping if the server reports it.
func (s *server) bufferResult() {
	sql := bufferSQL
	if s.kind == "mariadb-11.8" { // by its costs the grouping takes a temporary table anyway
		sql = strings.Replace(sql, "FROM orders", "FROM orders FORCE INDEX (status)", 1)
	}
	e := s.explain(sql, false)
	text, ok := told(e, "buffer_result")
	if !ok || !s.mariadb() && !strings.Contains(text, "inside the grouping_operation") {
		s.t.Errorf("SQL_BUFFER_RESULT is told as %q", text)
	}
	if !s.mariadb() && !has(e.Plan, func(n *plan.Node) bool {
		return n.Kind == plan.KindGroup && len(n.Children) == 1 && n.Children[0].Kind == plan.KindBuffer && n.Children[0].Temporary
	}) {
		s.t.Errorf("no buffer_result inside a grouping_operation:\n%s", plan.Shape(e.Plan))
	}
	plain := s.explain(strings.Replace(sql, "SQL_BUFFER_RESULT ", "", 1), false)
	if text, ok := told(plain, "buffer_result"); ok {
		s.t.Errorf("without SQL_BUFFER_RESULT it is told nevertheless: %q", text)
	}
	if plain.ID == e.ID {
		s.t.Error("SQL_BUFFER_RESULT does not change the plan's ID")
	}
}

// measured: ANALYZE counts what is known in advance.
func (s *server) measured() {
	if !s.mariadb() && !s.can(97) {
		if _, _, err := s.take(plan.Request{SQL: dependentSQL, Analyze: true}); err == nil || !strings.Contains(err.Error(), "8.0.18") {
			s.t.Errorf("a server without EXPLAIN ANALYZE answers %v", err)
		}
		return
	}
	e := s.explain(dependentSQL, true)
	text, _ := told(e, "dependent_subquery")
	if !e.Plan.Analyzed || !strings.Contains(text, "100 times") || !strings.Contains(text, "1,000 rows") {
		s.t.Errorf("measured: %q\n%s", text, strings.Join(e.Lines(0), "\n"))
	}
	if !has(e.Plan, func(n *plan.Node) bool {
		return n.Name() == "o" && n.Loops == 100 && n.ActualRows == 10 && n.OwnTime > 0
	}) {
		s.t.Errorf("o is not read 100 times, 10 rows each:\n%s", strings.Join(e.Lines(0), "\n"))
	}
	// A condition on a column without statistics: the optimiser cannot know that 976 is the largest but one value.
	e = s.explain("SELECT COUNT(*) FROM orders WHERE total + 0 > 975.5 AND note LIKE 'x%' AND region <> 70", true)
	if text, ok := told(e, "full_scan"); !ok || !strings.Contains(text, "0.1 % of them pass the condition (counted)") {
		s.t.Errorf("10 of 10,000 rows pass: %q\n%s", text, strings.Join(e.Lines(0), "\n"))
	}
	if s.can(97) && !s.mariadb() {
		e = s.explain("SELECT COUNT(*) FROM loose x JOIN loose y ON x.a = y.b", true)
		if text, ok := told(e, "hash_join"); !ok || !strings.Contains(text, "y.b = x.a") {
			s.t.Errorf("the hash join is told as %q", text)
		}
	}
}

// forms: every form that a server has gives the same join order.
func (s *server) forms() {
	sql := "SELECT c.name, o.placed FROM customers c JOIN orders o ON o.customer = c.id WHERE c.country = 'fr'"
	forms := []string{"json", "table"}
	if s.kind == "mysql-9.7" {
		forms = []string{"json", "json2", "tree", "table"}
	}
	first := ""
	for _, form := range forms {
		taken, _, err := s.take(plan.Request{SQL: sql, Form: form})
		if err != nil {
			s.t.Errorf("%s: %v", form, err)
			continue
		}
		var order []string
		taken.Plan.Root.Walk(func(n, _ *plan.Node, _ int) {
			if n.Kind == plan.KindTable {
				order = append(order, n.Name()+" "+n.Key)
			}
		})
		got := strings.Join(order, ", ")
		if first == "" {
			first = got
		}
		if got != first || !strings.HasSuffix(got, "o customer") {
			s.t.Errorf("%s: %s, and %s: %s", forms[0], first, form, got)
		}
	}
	if _, _, err := s.take(plan.Request{SQL: sql, Form: "json7"}); err == nil || !strings.Contains(err.Error(), "table") {
		s.t.Errorf("an unknown form: %v", err)
	}
}

// TestSeed: a range of 44 % is not worth an index that does not cover; the advised one is taken, and its size is
// what was foretold.
func TestSeed(t *testing.T) {
	t.Parallel()
	eachServer(t, func(s *server) {
		s.exec("USE shop; " + seed)
		const sql = "SELECT SUM(col1), MAX(col2) FROM seed WHERE ts < '2024-01-01' + INTERVAL 88000 MINUTE"
		e := s.explain(sql, false)
		if !has(e.Plan, func(n *plan.Node) bool { return n.Table == "seed" && n.Access == plan.AccessAll }) || len(e.Advice) != 1 {
			s.t.Fatalf("no full scan, or no advice:\n%s", strings.Join(e.Lines(0), "\n"))
		}
		a := e.Advice[0]
		if got := strings.Join(a.Columns, ","); got != "ts,col1,col2" || a.Range != 1 || a.Equality != 0 || strings.Join(a.Replaces, ",") != "ts" {
			s.t.Errorf("advised: %+v", a)
		}
		s.exec(a.Statement + "; ANALYZE TABLE shop.seed")
		after := s.explain(sql, false)
		if !has(after.Plan, func(n *plan.Node) bool {
			return n.Table == "seed" && n.Access == plan.AccessRange && n.Key == "ts_col1_col2" && n.Covering
		}) {
			s.t.Errorf("the server does not take the advised index:\n%s", strings.Join(after.Lines(0), "\n"))
		}
		if len(after.Advice) != 0 {
			s.t.Errorf("there is still advice: %+v", after.Advice)
		}
		if after.ID == e.ID {
			s.t.Error("the flip does not change the plan's ID")
		}
		pages, err := strconv.ParseFloat(s.value("SELECT stat_value FROM mysql.innodb_index_stats WHERE table_name = 'seed' AND index_name = 'ts_col1_col2' AND stat_name = 'n_leaf_pages'"), 64)
		if err != nil {
			s.t.Fatal(err)
		}
		if math.Abs(a.IndexPages-pages) > 0.15*pages {
			s.t.Errorf("foretold %v pages, the index has %v", a.IndexPages, pages)
		}
	})
}

// TestNeverExecuted: what may write or run long is refused, bounded and leaves nothing behind.
func TestNeverExecuted(t *testing.T) {
	t.Parallel()
	eachServer(t, func(s *server) {
		for _, sql := range []string{"DELETE FROM loose", "INSERT INTO loose VALUES (1,1)", "SELECT 1; DELETE FROM loose", "SELECT * FROM loose INTO OUTFILE '/tmp/never'",
			"SELECT * FROM loose FOR UPDATE", "WITH x AS (SELECT 1) DELETE FROM loose", "SELECT /*! 1 INTO @a */", "DROP TABLE loose", "SELECT a INTO @x FROM loose LIMIT 1", "ANALYZE SELECT 1", "", "/* nothing */"} {
			if _, _, err := s.take(plan.Request{SQL: sql, Analyze: true}); !errors.Is(err, plan.ErrStatement) {
				s.t.Errorf("%q with ANALYZE: %v", sql, err)
			}
		}
		for _, sql := range []string{"SELECT 1; DELETE FROM loose", "DROP TABLE loose", "SELECT a FROM loose WHERE a = ?", "CALL x()", "EXPLAIN SELECT 1"} {
			if _, _, err := s.take(plan.Request{SQL: sql}); !errors.Is(err, plan.ErrStatement) {
				s.t.Errorf("%q: %v", sql, err)
			}
		}
		// EXPLAIN evaluates this function while it plans: first that it does, then that Take does not let it write.
		s.exec("USE shop; EXPLAIN SELECT note FROM orders WHERE id = (SELECT MAX(marks(d)) FROM digits)")
		if s.value("SELECT COUNT(*) FROM shop.seen") == "0" {
			s.t.Error("this server's EXPLAIN runs no constant subquery: the test proves nothing")
		}
		s.exec("DELETE FROM shop.seen")
		if _, _, err := s.take(plan.Request{SQL: "SELECT note FROM orders WHERE id = (SELECT MAX(marks(d)) FROM digits)"}); mysql.ErrorNumber(err) != errno.ReadOnlyTransaction {
			s.t.Errorf("a function that writes: %v", err)
		}
		// A statement that writes is explained in a transaction that may write: a function that writes is refused there.
		if _, _, err := s.take(plan.Request{SQL: "DELETE FROM loose WHERE a = (SELECT MAX(marks(d)) FROM digits)"}); !errors.Is(err, plan.ErrStatement) || !strings.Contains(err.Error(), "shop.marks has INSERT") {
			s.t.Errorf("a DELETE with a function that writes: %v", err)
		}
		if _, _, err := s.take(plan.Request{SQL: "DELETE FROM loose WHERE a = (SELECT MAX(d) FROM digits)"}); err != nil {
			s.t.Errorf("a DELETE with a constant subquery: %v", err)
		}
		if n := s.value("SELECT COUNT(*) FROM shop.seen"); n != "0" {
			s.t.Errorf("explaining wrote %s rows", n)
		}
		if n := s.value("SELECT COUNT(*) FROM shop.loose"); n != "1000" {
			s.t.Errorf("%s of 1,000 rows are left", n)
		}
		if s.can(97) {
			begin := time.Now()
			taken, _, err := s.take(plan.Request{SQL: "SELECT COUNT(*) FROM orders a, orders b, orders c WHERE a.note < b.note OR b.note < c.note", Analyze: true, Timeout: time.Second})
			said := err == nil && len(taken.Notes) > 0 && strings.Contains(taken.Notes[0], "time limit")
			if n := mysql.ErrorNumber(err); !said && n != errno.StatementTimeout && n != errno.StatementTimeoutMariaDB || time.Since(begin) > 20*time.Second {
				s.t.Errorf("a join of a million million rows ended after %s with %v", time.Since(begin), err)
			}
		}
		s.connection()
	})
}

// connection: the plan of what another connection runs.
func (s *server) connection() {
	busy := s.connect()
	done := make(chan error, 1)
	go func() {
		done <- busy.Exec(s.t.Context(), "SELECT COUNT(*) FROM shop.orders o WHERE o.region = 5 AND SLEEP(0.05) = 0")
	}()
	id := busy.Server.ConnectionID
	var taken *plan.Taken
	var err error
	await.Until(s.t, func() bool {
		taken, _, err = s.take(plan.Request{Connection: id})
		return err == nil && has(taken.Plan, func(n *plan.Node) bool { return n.Name() == "o" })
	}, "the plan of connection %d", id)
	if !has(taken.Plan, func(n *plan.Node) bool { return n.Name() == "o" && n.Key == "region" }) {
		s.t.Errorf("the plan of connection %d does not use the index region", id)
	}
	target, err := mysql.ParseTarget(s.node.DSN)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := mysql.Kill(s.t.Context(), target, id); err != nil {
		s.t.Error(err)
	}
	if err := <-done; err == nil {
		s.t.Error("the statement of the busy connection was not ended")
	}
	if _, _, err := s.take(plan.Request{Connection: 999999}); mysql.ErrorNumber(err) == 0 {
		s.t.Errorf("a connection that is not there: %v", err)
	}
}
