package binlog

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/sqltext"
)

// TestChanges: for each statement in a server's log a search says what it changes, and nothing else.
func TestChanges(t *testing.T) {
	for _, spec := range flavours {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec, "sync_binlog=0", "innodb_flush_log_at_trx_commit=2", "binlog_format=STATEMENT")
			c := conn(t, openDB(t, n))
			run(t, c, "FLUSH BINARY LOGS", "CREATE DATABASE shop", "USE shop")
			want := []string{"create database shop"}
			for _, s := range []struct{ do, want string }{
				{"CREATE TABLE o (id INT PRIMARY KEY, v INT)", "create shop.o"},
				{"CREATE TABLE p LIKE o", "create shop.p"},
				{"CREATE TABLE q SELECT * FROM o", "create shop.q"},
				{"CREATE VIEW v AS SELECT o.id FROM o", "create view shop.v"},
				{"CREATE TRIGGER tr BEFORE INSERT ON o FOR EACH ROW SET NEW.v = 1", "create trigger shop.tr"},
				{"CREATE PROCEDURE pr() BEGIN INSERT INTO o VALUES (1, 1); DELETE FROM p; END", "create procedure shop.pr"},
				{"CREATE FUNCTION fn() RETURNS INT DETERMINISTIC RETURN (SELECT MAX(id) FROM o)", "create function shop.fn"},
				{"CREATE EVENT ev ON SCHEDULE EVERY 1 YEAR DISABLE DO DELETE FROM o", "create event shop.ev"},
				{"CREATE INDEX i ON o (v)", "alter shop.o"},
				{"DROP INDEX i ON o", "alter shop.o"},
				{"INSERT INTO o VALUES (1, 1), (2, 2)", "insert shop.o"},
				{"INSERT INTO p SELECT * FROM o", "insert shop.p"},
				{"DELETE p FROM p JOIN o ON p.id = o.id WHERE o.id = 1", "delete shop.p"},
				{"UPDATE p SET v = 3 WHERE id IN (SELECT id FROM o)", "update shop.p"},
				{"ALTER TABLE p RENAME TO r", "alter shop.p to shop.r"},
				{"RENAME TABLE r TO p, o TO o2", "rename shop.r to shop.p\nrename shop.o to shop.o2"},
				{"TRUNCATE TABLE p", "truncate shop.p"},
				{"CREATE USER u@localhost", "create user u@localhost"},
				{"GRANT SELECT ON shop.* TO u@localhost", "other"},
				{"DROP USER u@localhost", "drop user u@localhost"},
				{"DROP VIEW v", "drop view shop.v"},
				{"DROP TRIGGER tr", "drop trigger shop.tr"},
				{"DROP PROCEDURE pr", "drop procedure shop.pr"},
				{"DROP FUNCTION fn", "drop function shop.fn"},
				{"DROP EVENT ev", "drop event shop.ev"},
				{"CREATE TEMPORARY TABLE o2 (id INT)", "create temporary table shop.o2"},
				{"DROP TEMPORARY TABLE o2", "drop temporary table shop.o2"},
				{"ALTER TABLE p PARTITION BY HASH (id) PARTITIONS 2", "alter shop.p"},
				{"ALTER TABLE p TRUNCATE PARTITION p0", "alter shop.p"},
				{"DROP TABLE p, o2", "drop shop.p\ndrop shop.o2"},
				{"DROP DATABASE shop", "drop database shop"},
			} {
				if (spec == "mysql-5.7" || spec == "mysql-8.0") && strings.HasPrefix(s.do, "CREATE TABLE q") {
					continue // refused there: with GTIDs it would be two transactions
				}
				run(t, c, s.do)
				want = append(want, strings.Split(s.want, "\n")...)
			}
			c.Close()
			files := logged(t, n)
			files = files[len(files)-1:]
			res, err := Search(t.Context(), files, Damage{})
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(res.Found, func(a, b Found) int { return cmp.Compare(a.Pos, b.Pos) })
			var got []string
			for _, f := range res.Found {
				for _, ch := range f.Changes {
					line := strings.Join(strings.Fields(ch.Kind+" "+ch.Object+" "+ch.Table), " ")
					if ch.To != "" {
						line += " to " + ch.To
					}
					got = append(got, line)
				}
			}
			if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
				t.Errorf("got:\n%s\nwant:\n%s", a, b)
			}

			// An emptied partition is as bad as a dropped table.
			res, err = Search(t.Context(), files, Damage{Rows: 1, Kinds: []string{"alter"}})
			if err != nil || len(res.Found) != 1 || !strings.Contains(res.Found[0].Statements[0].Text, "TRUNCATE PARTITION") {
				t.Errorf("what emptied partitions: got %+v, %v; want len(res.Found) 1, \"TRUNCATE PARTITION\" in res.Found[0].Statements[0].Text", res.Found, err)
			}
			// Rows of a table went with it and with its schema, and not with a temporary table of its name.
			res, err = Search(t.Context(), files, Damage{Rows: 1, Kinds: []string{"drop"},
				Tables: func(schema, table string) bool { return schema == "shop" && table == "o2" }, Schemas: func(schema string) bool { return schema == "shop" }})
			if err != nil || len(res.Found) != 2 || !strings.HasPrefix(res.Found[0].Statements[0].Text, "DROP TABLE") || !strings.HasPrefix(res.Found[1].Statements[0].Text, "DROP DATABASE") {
				t.Errorf("what dropped shop.o2: got %+v, %v; want len(res.Found) 2, \"DROP TABLE\" at the beginning of res.Found[0].Statements[0].Text, \"DROP DATABASE\" at the beginning of res.Found[1].Statements[0].Text",
					res.Found, err)
			}
		})
	}
}

// TestEffects: after which statements a table's number of rows is known, is 0, or unknown.
func TestEffects(t *testing.T) {
	for text, want := range map[string]effect{
		"DROP TABLE t": effectReset, "TRUNCATE t": effectReset, "CREATE TABLE t (a INT)": effectReset, "CREATE OR REPLACE TABLE t LIKE u": effectReset,
		"CREATE TABLE IF NOT EXISTS t (a INT)": effectNone, "CREATE TABLE t SELECT * FROM u": effectOdd, "CREATE INDEX i ON t (a)": effectNone,
		"CREATE TEMPORARY TABLE t (a INT)": effectNone, "DROP TEMPORARY TABLE t": effectNone, "DROP VIEW t": effectNone, "CREATE TRIGGER t BEFORE DELETE ON u FOR EACH ROW SET @a = 1": effectNone,
		"ALTER TABLE t ADD a INT /* PARTITION */": effectNone, "ALTER TABLE t ADD (" + strings.Repeat("a INT, ", 100) + "b INT), DROP PARTITION p": effectOdd,
		"ALTER TABLE t RENAME COLUMN a TO b": effectNone, "ALTER TABLE t RENAME u": effectOdd, "RENAME TABLE t TO u": effectOdd,
		"INSERT INTO t VALUES (1)": effectOdd, "DELETE FROM t": effectOdd, "UPDATE t SET a = 1": effectNone,
	} {
		c, ok := sqltext.Dialect{}.ReadChange(text)
		if got := effectOf(c); !ok || got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// TestChangedTables: a roll forward of some tables runs what changes those, and not what only reads them.
func TestChangedTables(t *testing.T) {
	for text, want := range map[string]string{
		"CREATE VIEW v AS SELECT * FROM t": "s.v", "CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW DELETE FROM u": "s.t", "CREATE PROCEDURE p() DELETE FROM t": "",
		"RENAME TABLE t TO u, x.v TO w": "s.t x.v s.u s.w", "ALTER TABLE t RENAME x.u": "s.t x.u", "DROP TABLE t, x.u": "s.t x.u", "DROP DATABASE t": "", "DROP USER t": "",
		"UPDATE t SET a = (SELECT 1 FROM u)": "s.t", "OPTIMIZE TABLE t, u": "s.t s.u", "GRANT ALL ON t TO u": "",
	} {
		var got []string
		for _, x := range changedTables(binlogevent.Query{Schema: "s", Text: []byte(text)}) {
			got = append(got, x.Schema+"."+x.Name)
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%s: %s, want %s", text, g, want)
		}
	}
}
