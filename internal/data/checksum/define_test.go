package checksum_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/checksum"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// defined makes a schema with all that has a definition.
var defined = []string{
	"CREATE DATABASE ck CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "USE ck",
	"CREATE TABLE a (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, n INT DEFAULT 5, s VARCHAR(20) NOT NULL DEFAULT '0' COMMENT 'it''s, a `name`', t TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, j JSON, x TEXT, z TINYINT(1) NULL, g INT AS (n + 1) STORED, d DECIMAL(10,2) DEFAULT 0, e ENUM('a','b'), KEY n (n), UNIQUE KEY s (s, n)) COMMENT = 'a table'",
	"CREATE TABLE b (id INT PRIMARY KEY, a INT UNSIGNED, CONSTRAINT fk FOREIGN KEY (a) REFERENCES a (id) ON DELETE CASCADE) ",
	"CREATE TABLE p (id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))",
	"CREATE VIEW v AS SELECT id, n FROM a WHERE n > 1", "CREATE TRIGGER tr BEFORE INSERT ON a FOR EACH ROW SET NEW.n = 1",
	"CREATE PROCEDURE pr(x INT) SELECT x", "CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC RETURN x + 1", "CREATE EVENT ev ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 00:00:00' DO SELECT 1",
	"CREATE USER u@localhost", "GRANT SELECT ON ck.* TO u@localhost"}

// saysOf are all differences of definitions.
func saysOf(got checksum.Result, tables map[string]checksum.Table) string {
	var b strings.Builder
	for _, t := range tables {
		for _, on := range t.On {
			for _, d := range on.Definition {
				fmt.Fprintf(&b, "table %s: %s\n", t.Name, d)
			}
			for _, d := range on.Undefined {
				fmt.Fprintf(&b, "(table %s: %s)\n", t.Name, d)
			}
		}
	}
	for _, d := range got.Definitions {
		fmt.Fprintf(&b, "%s %s %s %s\n", d.Verdict, d.Kind, d.Name, d.What)
	}
	return b.String()
}

// TestDefinitions: what differs in a replica's definitions is reported by name, and nothing else; its rows are equal.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mariadb", "mysql-9.7"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := replication(t, []string{kind, kind})
			s.do(0, strings.Join(defined, "; "))
			s.caughtUp()
			o := s.options()
			o.Schemas = nil // accounts, too
			got, tables := s.compare(o)
			if words := saysOf(got, tables); words != "" || got.Counts.Definitions+got.Counts.Undefined != 0 || got.Counts.Differ != 0 {
				t.Fatalf("equal, and told is: %s%+v; want words \"\", Definitions + got.Counts.Undefined 0, Differ 0", words, got.Counts)
			}
			s.secretly(1, "USE ck", "ALTER TABLE a ALTER n SET DEFAULT 6", "ALTER TABLE a MODIFY e ENUM('a','b') AFTER id", "ALTER TABLE a DROP KEY s, ADD KEY more (d)", "ALTER TABLE b DROP FOREIGN KEY fk",
				"ALTER TABLE a COMMENT = 'another'", "ALTER TABLE p ADD PARTITION (PARTITION p2 VALUES LESS THAN (30))", "CREATE OR REPLACE VIEW v AS SELECT id, n FROM a WHERE n > 2", "DROP TRIGGER tr",
				"DROP FUNCTION f", "CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC RETURN x + 2", "CREATE PROCEDURE extra() SELECT 1", "ALTER EVENT ev ON SCHEDULE EVERY 2 DAY", "GRANT INSERT ON ck.* TO u@localhost", "ALTER DATABASE ck CHARACTER SET latin1")
			got, tables = s.compare(o)
			words := saysOf(got, tables)
			for _, want := range []string{"table a: column `n` is int", "table a: the columns are in another order", "table a: there is no index `s` there", "table a: index `more` is only there", "table a: option comment is 'a table' here and 'another' there",
				"table b: there is no constraint `fk` there", "table p: partitions is ", "differs view ck.v", "missing table trigger ck.tr", "differs function ck.f", "extra table procedure ck.extra", "differs event ck.ev", "differs account u@localhost", "insert", "differs schema ck"} {
				if !strings.Contains(words, want) {
					t.Errorf("nothing of %q in\n%s", want, words)
				}
			}
			if n := strings.Count(words, "\n"); n != 14 {
				t.Errorf("%d differences are told, not 14:\n%s", n, words)
			}
			if got.Counts.Differ != 0 || got.Counts.Definitions != 3+7 {
				t.Errorf("got %+v; want Differ 0, Definitions 3 + 7", got.Counts)
			}
		})
	}
}

// TestDefinitionsAcross: one schema on servers of other flavours and versions is one; what cannot be compared is reported as such, and a
// difference is still found.
func TestDefinitionsAcross(t *testing.T) {
	t.Parallel()
	kinds := []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"}
	targets := make([]mysql.Target, len(kinds))
	for i, kind := range kinds {
		node := sandboxtest.Up(t, kind, "character_set_server=utf8mb4", "collation_server=utf8mb4_general_ci")
		if _, err := node.Query(t.Context(), strings.Join(defined, "; ")); err != nil {
			t.Fatal(err)
		}
		if kind == "mysql-8.0" {
			if _, err := node.Query(t.Context(), "ALTER TABLE ck.a ALTER n SET DEFAULT 6; DROP TRIGGER ck.tr; CREATE TRIGGER ck.tr BEFORE INSERT ON ck.a FOR EACH ROW SET NEW.n = 2"); err != nil {
				t.Fatal(err)
			}
		}
		target, err := mysql.ParseTarget(node.DSN)
		if err != nil {
			t.Fatal(err)
		}
		targets[i] = target
	}
	tables := map[string]checksum.Table{}
	got, err := checksum.Compare(t.Context(), checksum.Options{Primary: targets[0], Others: targets[1:], Schemas: []string{"ck"}, Each: func(c checksum.Table) { tables[c.Name] = c }})
	if err != nil {
		t.Fatal(err)
	}
	words := saysOf(got, tables)
	t.Log(words)
	for _, line := range strings.Split(strings.TrimSpace(words), "\n") {
		if !strings.HasPrefix(line, "(") && !strings.HasPrefix(line, "failed ") && !strings.HasPrefix(line, "table a: column `n` is int default 5 here and int default 6 there") && !strings.HasPrefix(line, "differs trigger ck.tr ") {
			t.Errorf("no difference: %s", line)
		}
	}
	if got.Counts.Definitions != 2 {
		t.Errorf("got %+v, want Definitions 2", got.Counts)
	}
}
