package plan_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// programs are functions that do what a read-only transaction does not prevent, and one that runs long.
var programs = []string{
	"CREATE FUNCTION tunes(x INT) RETURNS INT DETERMINISTIC BEGIN SET GLOBAL max_connect_errors = 4711; RETURN x; END",
	"CREATE FUNCTION tunes2(x INT) RETURNS INT DETERMINISTIC BEGIN DECLARE y INT; SET y = 1, @@global.max_connect_errors = 4711; RETURN x; END",
	"CREATE FUNCTION around(x INT) RETURNS INT DETERMINISTIC RETURN tunes(x) + 1",
	"CREATE FUNCTION files(x INT) RETURNS INT DETERMINISTIC BEGIN SELECT x INTO OUTFILE '%s'; RETURN x; END",
	"CREATE FUNCTION marksm(x INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO seenm VALUES (x); RETURN x; END",
	"CREATE FUNCTION spins(x INT) RETURNS INT DETERMINISTIC BEGIN DECLARE i INT DEFAULT 0; WHILE i < 2000000000 DO SET i = i + 1; END WHILE; RETURN x; END",
	"CREATE FUNCTION plain(x INT) RETURNS INT DETERMINISTIC BEGIN IF @@global.max_connect_errors = 5 THEN SET @plain = 1; END IF; RETURN x + 1; END",
	"CREATE FUNCTION inner_one() RETURNS INT READS SQL DATA RETURN 1",
	"CREATE VIEW sees AS SELECT d, tunes(3) AS s FROM digits",
	"CREATE SEQUENCE numbers",
}

// TestPlanningRunsNothing: what servers run while they plan a statement changes nothing and ends in time.
func TestPlanningRunsNothing(t *testing.T) {
	t.Parallel()
	eachServer(t, func(s *server) {
		dir, err := os.MkdirTemp("", "rpf-")
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o777); err != nil {
			s.t.Fatal(err)
		}
		file := filepath.Join(dir, "written")
		s.exec("USE shop; CREATE TABLE seenm (n INT) ENGINE=MyISAM")
		for _, q := range programs {
			if strings.Contains(q, "SEQUENCE") && !s.mariadb() {
				continue
			}
			if strings.Contains(q, "%s") {
				q = fmt.Sprintf(q, file)
			}
			s.exec("USE shop; " + q)
		}
		setting := s.value("SELECT @@global.max_connect_errors")
		unchanged := func(what string) {
			if now := s.value("SELECT @@global.max_connect_errors"); now != setting {
				s.t.Errorf("%s: max_connect_errors is %s", what, now)
				s.exec("SET GLOBAL max_connect_errors = " + setting)
			}
			for _, table := range []string{"seen", "seenm"} {
				if n := s.value("SELECT COUNT(*) FROM shop." + table); n != "0" {
					s.t.Errorf("%s: %s rows in %s", what, n, table)
				}
			}
			if n := s.value("SELECT COUNT(*) FROM shop.loose"); n != "1000" {
				s.t.Errorf("%s: %s of 1,000 rows are left", what, n)
			}
			if list, _ := os.ReadDir(dir); len(list) > 0 {
				s.t.Errorf("%s: a file was written", what)
			}
		}
		// That this server really runs such a function to plan: otherwise the test proves nothing.
		s.exec("USE shop; START TRANSACTION READ ONLY; EXPLAIN SELECT note FROM orders WHERE id = (SELECT MAX(tunes(d)) FROM digits); ROLLBACK")
		if s.value("SELECT @@global.max_connect_errors") != "4711" {
			s.t.Error("this server's EXPLAIN runs no function: the test proves nothing")
		}
		s.exec("SET GLOBAL max_connect_errors = " + setting)
		s.refused(unchanged, file)
		s.harmless(unchanged)
		s.bounded()
	})
}

// refused: statements that are not sent at all, or that the server refuses.
func (s *server) refused(unchanged func(string), file string) {
	constant := func(f string) string {
		return "SELECT note FROM orders WHERE id = (SELECT MAX(" + f + "(d)) FROM digits)"
	}
	for _, c := range []struct{ sql, says string }{
		{constant("tunes"), "function shop.tunes sets a global variable"},
		{constant("shop.`tunes`"), "function shop.tunes"},
		{constant("TUNES"), "function shop.tunes"},
		{constant("tunes2"), "function shop.tunes2 sets a global variable"},
		{constant("around"), "function shop.tunes sets"},
		{constant("files"), "function shop.files writes a file"},
		{"SELECT * FROM sees WHERE s = 3", "function shop.tunes"},
		{"SELECT x.s FROM (SELECT tunes(3) s) x", "function shop.tunes"},
		{"SELECT note FROM orders WHERE id = /*!50000 tunes(3) */", "function shop.tunes"},
		{"DELETE FROM loose WHERE a = (SELECT MAX(marksm(d)) FROM digits)", "function shop.marksm has INSERT"},
		{"UPDATE loose SET a = marksm(3) WHERE b = 5", "function shop.marksm has INSERT"},
		{"SELECT note FROM orders WHERE id = sys_exec('touch " + file + "')", "sys_exec(), which changes the server"},
		{"SELECT 1 WHERE group_replication_set_as_primary('x') = 1", "changes the server"},
		{"SELECT note FROM orders INTO OUTFILE '" + file + "'", "writes a file"},
		{"SELECT note FROM orders /*!50000 INTO DUMPFILE '" + file + "' */", "writes a file"},
		{"SELECT 1 /*! ; DELETE FROM loose */", "more than one"},
		{"CALL anything()", "servers explain SELECT"},
		{"/*!50000 ANALYZE */ SELECT 1", "without ANALYZE"},
		{"/*!50000 ANALYZE */ UPDATE loose SET a = 1", "without ANALYZE"},
		{"FOR CONNECTION 1", "servers explain SELECT"},
		{"SET GLOBAL max_connect_errors = 4711", "servers explain SELECT"},
	} {
		_, _, err := s.take(plan.Request{SQL: c.sql})
		if !errors.Is(err, plan.ErrStatement) || !strings.Contains(err.Error(), c.says) {
			s.t.Errorf("%s: %v; want %q", c.sql, err, c.says)
		}
		unchanged(c.sql)
	}
	for _, sql := range []string{constant("marksm"), constant("marks")} {
		if _, _, err := s.take(plan.Request{SQL: sql}); mysql.ErrorNumber(err) != errno.ReadOnlyTransaction {
			s.t.Errorf("%s: %v", sql, err)
		}
		unchanged(sql)
	}
	// What the text says and what the server makes of it differ: the comment is for a server that does not exist.
	for _, sql := range []string{"/*!99999 SELECT 1; */ DELETE FROM loose", "/*!99999 SELECT */ UPDATE loose SET a = 1"} {
		for _, analyze := range []bool{false, true} {
			_, _, err := s.take(plan.Request{SQL: sql, Analyze: analyze})
			if err == nil {
				s.t.Errorf("%s (analyze %t) was explained", sql, analyze)
			}
			unchanged(sql)
		}
	}
	if s.mariadb() {
		before := s.value("SELECT next_not_cached_value FROM shop.numbers")
		if _, _, err := s.take(plan.Request{SQL: constant("NEXTVAL(numbers)+ABS")}); err == nil {
			s.t.Error("a sequence was asked for its next value")
		}
		if now := s.value("SELECT next_not_cached_value FROM shop.numbers"); now != before {
			s.t.Errorf("the sequence went from %s to %s", before, now)
		}
	}
}

// harmless: statements that change nothing are explained, no matter what they look like.
func (s *server) harmless(unchanged func(string)) {
	list := []string{"SELECT a INTO @x FROM loose LIMIT 1", "UPDATE loose SET a = 5 WHERE b = 3", "DELETE FROM loose WHERE b = 3", "INSERT INTO loose VALUES (1, 1)", "REPLACE INTO digits VALUES (5)",
		"SELECT @x := 5", "SELECT * FROM loose FOR UPDATE", "SELECT 'SET GLOBAL x = 1', 'INTO OUTFILE'", "SELECT GET_LOCK('rp', 1)", "SELECT inner_one()"}
	if s.can(80) && !s.mariadb() {
		list = append(list, "WITH x AS (SELECT 1 AS a) DELETE FROM loose WHERE a IN (SELECT a FROM x)", "WITH x AS (SELECT 1 AS a) UPDATE loose SET b = 7 WHERE a IN (SELECT a FROM x)")
	}
	for _, sql := range list {
		if _, _, err := s.take(plan.Request{SQL: sql}); err != nil && !(strings.Contains(sql, "INTO @x") || strings.Contains(sql, "FOR UPDATE")) {
			s.t.Errorf("%s: %v", sql, err)
		}
		unchanged(sql)
	}
	taken, _, err := s.take(plan.Request{SQL: "SELECT note FROM orders WHERE id = plain(5)"})
	if err != nil || len(taken.Notes) != 1 || !strings.Contains(taken.Notes[0], "shop.plain may have run") {
		s.t.Errorf("a function that does no harm: %v, %+v", err, taken)
	}
	s.noneLeft("info LIKE '%GET_LOCK%' AND info NOT LIKE '%processlist%'")
}

// noneLeft waits until no such statement runs: a server has answered a moment before it says so.
func (s *server) noneLeft(where string) {
	s.t.Helper()
	await.Until(s.t, func() bool { return s.value("SELECT COUNT(*) FROM information_schema.processlist WHERE "+where) == "0" }, "the end of all statements %s", where)
}

// bounded: a function that spins while the server plans ends at the limit of time.
func (s *server) bounded() {
	for _, sql := range []string{"SELECT note FROM orders WHERE id = (SELECT MAX(spins(d)) FROM digits)", "SELECT note FROM orders WHERE id = (SELECT MAX(SLEEP(5)) FROM digits)"} {
		begin := time.Now()
		_, _, err := s.take(plan.Request{SQL: sql, Timeout: time.Second})
		if took := time.Since(begin); took > 20*time.Second {
			s.t.Errorf("%s: planned for %s, limit 1 s: %v", sql, took, err)
		}
	}
	s.noneLeft("command = 'Query' AND info NOT LIKE '%processlist%'")
}
