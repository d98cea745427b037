package gather_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// kinds are the servers that are looked at.
var kinds = []string{"mysql-9.7", "mariadb", "mysql-8.0", "mysql-5.7"}

// planted are tables with one fault each, and some without, in names that statements have to quote.
var planted = []string{
	"CREATE DATABASE `d``'é`",
	"CREATE TABLE `d``'é`.nopk (a INT, b INT) ENGINE=InnoDB",
	"INSERT INTO `d``'é`.nopk VALUES (1, 1), (2, 2)",
	"CREATE TABLE `d``'é`.implicit (a INT NOT NULL, b INT, UNIQUE KEY `u``k` (a)) ENGINE=InnoDB",
	"CREATE TABLE `d``'é`.`dup\"s` (id INT PRIMARY KEY, a INT, b INT, KEY `k a` (a) COMMENT 'it''s, (old)', KEY kab (a, b), KEY kaid (a, id)) ENGINE=InnoDB",
	"CREATE TABLE `d``'é`.parent (id INT PRIMARY KEY, x INT, UNIQUE KEY ux (x), KEY kx (x, id)) ENGINE=InnoDB",
	"CREATE TABLE `d``'é`.child (id INT PRIMARY KEY, p INT, q INT, KEY kp (p), KEY kpq (p, q), FOREIGN KEY (p) REFERENCES parent (x)) ENGINE=InnoDB",
	"CREATE TABLE `d``'é`.autoinc (id TINYINT UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'n,)' PRIMARY KEY, a INT) ENGINE=InnoDB AUTO_INCREMENT=240",
	"INSERT INTO `d``'é`.autoinc (a) VALUES (1)",
	"CREATE TABLE `d``'é`.fine (id BIGINT PRIMARY KEY, a INT, b INT, KEY ka (a), UNIQUE KEY ub (b)) ENGINE=InnoDB",
	"CREATE VIEW `d``'é`.v AS SELECT 1 AS one",
}

// TestStatements: what is planted is found, and nothing else; each statement runs, and nothing is found then; each undo runs, and the
// tables are as they were.
func TestStatements(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind)
			c := sandboxtest.Connect(t, node)
			if err := c.Exec(t.Context(), "SET SESSION foreign_key_checks = 1"); err != nil {
				t.Fatal(err)
			}
			for _, s := range planted {
				if strings.Contains(s, "child") {
					if err := c.Exec(t.Context(), "USE `d``'é`"); err != nil {
						t.Fatal(err)
					}
				}
				if err := c.Exec(t.Context(), s); err != nil {
					t.Fatalf("%s: %v", s, err)
				}
			}
			before := definitions(t, c)
			list := look(t, node.DSN)
			var ids []string
			for _, f := range list {
				ids = append(ids, f.ID+" "+strings.TrimPrefix(f.Object, "d`'é."))
			}
			slices.Sort(ids)
			want := []string{"index.redundant child.kp", "index.redundant dup\"s.k a", "index.redundant dup\"s.kaid", "index.redundant parent.kx", "schema.autoinc autoinc.id", "schema.no_pk implicit", "schema.no_pk nopk"}
			if !slices.Equal(ids, want) {
				t.Errorf("got %q,\nwant %q", ids, want)
			}
			for _, f := range list {
				if err := c.Exec(t.Context(), f.Statement); err != nil {
					t.Errorf("%s: %v", f.Statement, err)
				}
			}
			for _, f := range look(t, node.DSN) {
				t.Errorf("after its statement: %s %s: %s", f.ID, f.Object, f.What)
			}
			for _, f := range slices.Backward(list) {
				if err := c.Exec(t.Context(), f.Undo); err != nil {
					t.Errorf("%s: %v", f.Undo, err)
				}
			}
			if after := definitions(t, c); !slices.Equal(before, after) {
				t.Errorf("after the undo:\n%s\nbefore:\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
			}
		})
	}
}

// look finds what is wrong with the planted schema.
func look(t *testing.T, dsn string) []advise.Finding {
	t.Helper()
	target, err := mysql.ParseTarget(dsn)
	if err != nil {
		t.Fatal(err)
	}
	choice, err := pattern.NewChoice([]string{"d`'é"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := gather.Look(t.Context(), target, gather.Options{NoLoad: true, Wanted: func(id string) bool { return id != "index.unused" }, Choice: choice})
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(a.Missing, func(m fleet.Trouble) bool { return m.What != "settings that the next start takes back" }) { // MySQL 5.7 does not tell them
		t.Errorf("missing: %+v", a.Missing)
	}
	return slices.DeleteFunc(a.Findings, func(f advise.Finding) bool { return !strings.HasPrefix(f.Object, "d`'é.") })
}

// definitions are the lines of all tables' definitions, sorted: the order of indexes does not matter.
func definitions(t *testing.T, c *mysql.Conn) (lines []string) {
	t.Helper()
	for _, table := range []string{"nopk", "implicit", "dup\"s", "parent", "child", "autoinc", "fine"} {
		rows, err := c.Maps(t.Context(), "SHOW CREATE TABLE `d``'é`.`"+table+"`")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(rows[0]["Create Table"]) {
			lines = append(lines, table+": "+strings.Trim(line, " ,\n"))
		}
	}
	slices.Sort(lines)
	return lines
}

// TestFewPrivileges: an account gets what it may see, and is told what it cannot.
func TestFewPrivileges(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind)
			c := sandboxtest.Connect(t, node)
			for _, s := range []string{"CREATE DATABASE d", "CREATE TABLE d.seen (a INT) ENGINE=InnoDB", "CREATE TABLE d.unseen (a INT) ENGINE=InnoDB",
				"CREATE USER low@'%' IDENTIFIED BY 'pw'", "GRANT SELECT ON d.seen TO low@'%'"} {
				if err := c.Exec(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			target, err := mysql.ParseTarget("low:pw@unix(" + node.Socket + ")/")
			if err != nil {
				t.Fatal(err)
			}
			o := gather.Options{NoLoad: true, Wanted: func(id string) bool { return id == "schema.no_pk" }}
			a, err := gather.Look(t.Context(), target, o)
			if err != nil {
				t.Fatal(err)
			}
			if len(a.Findings) != 1 || a.Findings[0].Object != "d.seen" || a.Tables != 1 {
				t.Errorf("got %+v of %d tables, want d.seen of 1 table", a.Findings, a.Tables)
			}
			if !slices.ContainsFunc(a.Missing, func(m fleet.Trouble) bool {
				return strings.Contains(m.Remedy, "GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON *.*")
			}) {
				t.Fatalf("missing %+v: nothing says that tables are not seen", a.Missing)
			}
			for _, m := range a.Missing { // the remedies are tried
				if m.Remedy == "" { // that of the schemas gives it as well
					continue
				}
				if err := c.Exec(t.Context(), m.Remedy); err != nil {
					t.Errorf("%s: %v", m.Remedy, err)
				}
			}
			if a, err = gather.Look(t.Context(), target, o); err != nil || a.Tables != 2 || len(a.Findings) != 2 || len(a.Missing) != 0 {
				t.Errorf("after the remedies: %+v of %d tables, missing %+v, %v; want 2 tables and nothing missing", a.Findings, a.Tables, a.Missing, err)
			}
		})
	}
}
