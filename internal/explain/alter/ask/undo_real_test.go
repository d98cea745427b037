package ask

import (
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/alter"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestUndoes: what takes a statement back gives the definition back as it was, on a server whose sessions have ANSI_QUOTES, too.
func TestUndoes(t *testing.T) {
	each(t, func(t *testing.T, spec string, n *sandbox.Node, c *mysql.Conn) {
		hide := "ALTER INDEX ka INVISIBLE"
		if c.Server.MariaDB() {
			hide = "ALTER INDEX ka IGNORED"
		}
		do(t, c, "CREATE DATABASE u DEFAULT CHARACTER SET utf8mb4", "SET GLOBAL sql_mode = 'ANSI_QUOTES,STRICT_TRANS_TABLES'")
		target, box := sandboxtest.Target(t, n), boxOf(t, spec)
		for _, body := range []string{
			"RENAME COLUMN a TO n, ADD COLUMN a VARCHAR(100)",
			"RENAME COLUMN a TO b, RENAME COLUMN b TO a",
			"DROP COLUMN b, CHANGE a b VARCHAR(20)",
			"DROP INDEX ka, DROP COLUMN a, ADD COLUMN a INT, ADD KEY ka (a)",
			"CONVERT TO CHARACTER SET latin1",
			"ROW_FORMAT=COMPRESSED, KEY_BLOCK_SIZE=4, STATS_PERSISTENT=1",
			`COMMENT 'a "comment"'`,
			`ADD COLUMN "x y" INT COMMENT 'AS (x), it''s', ADD UNIQUE ("x y")`,
			hide,
		} {
			do(t, c, "DROP TABLE IF EXISTS u.t", "CREATE TABLE u.t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20), v VARCHAR(20) CHARACTER SET latin1, KEY ka (a), KEY kb (b)) ENGINE=InnoDB", "INSERT INTO u.t (a, b) VALUES (1, 'x')")
			before := defined(t, target)
			p, err := Plan(t.Context(), Options{Target: target, Statement: "ALTER TABLE u.t " + body, Box: box})
			if err != nil {
				t.Fatal(err)
			}
			if p.Undo == "" {
				t.Errorf("%s: got no undo; lost %q", body, p.Lost)
				continue
			}
			do(t, c, "SET SESSION sql_mode = 'ANSI_QUOTES'", p.Plan.Statement)
			if now := defined(t, target); !alter.SameTable(now, p.After) {
				t.Errorf("%s: got %s, want what the plan says: %s", body, now, p.After)
			}
			do(t, c, p.Undo)
			now := defined(t, target)
			if strings.Contains(strings.Join(p.Lost, ""), "KEY_BLOCK_SIZE") {
				now = strings.ReplaceAll(now, ") KEY_BLOCK_SIZE=4", ")")
			}
			if !alter.SameTable(now, before) {
				t.Errorf("%s, taken back by %s: got %s, want %s", body, p.Undo, now, before)
			}
			for _, d := range p.Test {
				if d.Select != "" {
					do(t, c, d.Select)
				}
			}
		}
		do(t, c, "DROP TABLE u.t", "CREATE TABLE u.t (id INT) PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (10))", "CREATE TABLE u.e (id INT)", "INSERT INTO u.e VALUES (20)")
		const exchange = "ALTER TABLE u.t EXCHANGE PARTITION p WITH TABLE u.e"
		if p, err := Plan(t.Context(), Options{Target: target, Statement: exchange, Box: box}); err != nil || len(p.Test) != 1 || c.Exec(t.Context(), exchange) == nil {
			t.Errorf("%s: got %+v, %v; want that rows may not fit, and that they do not", exchange, p.Test, err)
		}
		do(t, c, "DROP TABLE u.t", "CREATE TABLE u.t (id INT)", "CREATE TABLE u.taken (id INT)", "CREATE TABLE u.parent (id INT PRIMARY KEY)")
		if p, err := Plan(t.Context(), Options{Target: target, Statement: "ALTER TABLE u.t RENAME TO u.taken", Box: box}); err != nil || !strings.Contains(p.Refused, "1050") {
			t.Errorf("to a name that is taken: got %q, %v; want that the server refuses it", p.Refused, err)
		}
		p, err := Plan(t.Context(), Options{Target: target, Statement: "ALTER TABLE u.t ADD p INT, ADD FOREIGN KEY (p) REFERENCES u.parent (id)", Box: box})
		if err != nil || len(p.Test) != 1 || p.Test[0].Select != "" {
			t.Errorf("a foreign key over a new column: got %+v, %v; want that it is said, without a SELECT", p.Test, err)
		}
	})
}

// TestBreaks: what uses a column that goes is named, and breaks in fact; what does not is not named, and goes on.
func TestBreaks(t *testing.T) {
	each(t, func(t *testing.T, spec string, n *sandbox.Node, c *mysql.Conn) {
		target, box := sandboxtest.Target(t, n), boxOf(t, spec)
		do(t, c, "CREATE DATABASE b", "CREATE TABLE b.t (id INT PRIMARY KEY, a INT, k INT)", "INSERT INTO b.t VALUES (1, 2, 3)", "CREATE VIEW b.plain AS SELECT a FROM b.t", "CREATE VIEW b.joined AS SELECT x.id, `of it`.a FROM b.t x JOIN b.t `of it` ON x.id = `of it`.id", "CREATE VIEW b.other AS SELECT k, 'a' AS a FROM b.t")
		for _, s := range []struct {
			body  string
			broke []string // of all views
		}{{"DROP COLUMN a", []string{"joined", "plain"}}, {"RENAME COLUMN a TO aa", []string{"joined", "plain"}}, {"ADD COLUMN n INT", nil}, {"DROP COLUMN id", []string{"joined"}}, {"RENAME TO b.t2", []string{"joined", "other", "plain"}}} {
			p, err := Plan(t.Context(), Options{Target: target, Statement: "ALTER TABLE b.t " + s.body, Box: box})
			if err != nil {
				t.Fatal(err)
			}
			do(t, c, p.Plan.Statement)
			for _, v := range []string{"joined", "other", "plain"} {
				said := slices.ContainsFunc(p.Lines, func(l alter.Line) bool { return l.Head == "breaks" && strings.Contains(l.Text, "`"+v+"`") })
				breaks := c.Exec(t.Context(), "DO (SELECT COUNT(*) FROM b."+v+")") != nil
				if want := slices.Contains(s.broke, v); said != want || breaks != want {
					t.Errorf("%s, view %s: said to break %t, breaks %t; want %t", s.body, v, said, breaks, want)
				}
			}
			do(t, c, "DROP TABLE IF EXISTS b.t, b.t2", "CREATE TABLE b.t (id INT PRIMARY KEY, a INT, k INT)")
		}
		do(t, c, "CREATE TRIGGER b.fired BEFORE INSERT ON b.t FOR EACH ROW SET NEW.k = NEW.`a` + 1")
		p, err := Plan(t.Context(), Options{Target: target, Statement: "ALTER TABLE b.t CHANGE a aa INT", Box: box})
		if err != nil || !slices.ContainsFunc(p.Lines, func(l alter.Line) bool { return l.Head == "breaks" && strings.Contains(l.Text, "`fired`") }) {
			t.Errorf("got %+v, %v; want that the trigger breaks", p.Lines, err)
		}
		do(t, c, p.Plan.Statement)
		if err := c.Exec(t.Context(), "INSERT INTO b.t VALUES (1, 2, 3)"); err == nil {
			t.Error("the trigger goes on")
		}
	})
}

// defined is the definition of u.t.
func defined(t *testing.T, target mysql.Target) string {
	t.Helper()
	s, err := target.ConnectStream(t.Context(), mysql.StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := mysql.Connect(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := s.ForRows(t.Context(), c.Server); err != nil {
		t.Fatal(err)
	}
	create, err := define.CreateTable(t.Context(), s, mysql.TableName{Schema: "u", Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	return create
}
