package gather_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestTestedKeys: of tables without a primary key the server says which columns tell rows apart, and what is proposed by that can be done
// and undone, in partitions as well. Of a table without rows nothing is said.
func TestTestedKeys(t *testing.T) {
	tables := []struct {
		name, columns string
		rows          string
		key           string // that is proposed; "" for a column of its own, "-" for no statement
		evidence      string // that has to be there
	}{
		{"visits", "uuid CHAR(36) NOT NULL, at DATETIME", "('a', NULL), ('b', NULL)", "uuid", "all rows differ in uuid"},
		{"alike", "code INT NOT NULL, at DATETIME", "(1, NULL), (1, NULL)", "", "rows are alike in code"},
		{"folded", "code VARCHAR(20) NOT NULL, n INT", "('a', 1), ('A', 2)", "", "rows are alike in code"}, // a key compares as the collation does
		{"joins", "user_id INT NOT NULL, group_id INT NOT NULL", "(1, 1), (1, 2), (2, 1)", "user_id,group_id", "all rows differ in user_id, group_id"},
		{"empty", "id INT NOT NULL, n INT", "", "", ""},
		{"nullable", "id INT NULL, n INT", "(1, 1)", "", ""},
		{"long", "code VARCHAR(1000) NOT NULL, n INT", "('a', 1)", "", ""},
		{"months", "id INT NOT NULL, d DATE NOT NULL) ENGINE=InnoDB PARTITION BY RANGE (TO_DAYS(d)) (PARTITION p0 VALUES LESS THAN (700000), PARTITION p1 VALUES LESS THAN MAXVALUE", "(1, '2026-01-01'), (1, '2026-01-02')", "id,d", "all rows differ in id, d"},
		{"parts", "n INT, d DATE NOT NULL) ENGINE=InnoDB PARTITION BY RANGE (TO_DAYS(d)) (PARTITION p0 VALUES LESS THAN (700000), PARTITION p1 VALUES LESS THAN MAXVALUE", "(1, '2026-01-01'), (1, '2026-01-01')", "", ""},
		{"maybe", "n INT, d DATE NULL) ENGINE=InnoDB PARTITION BY RANGE (TO_DAYS(d)) (PARTITION p0 VALUES LESS THAN (700000), PARTITION p1 VALUES LESS THAN MAXVALUE", "(1, NULL)", "-", ""},
		{"hashed", "n INT NOT NULL) ENGINE=InnoDB PARTITION BY HASH (n) PARTITIONS 3", "(1), (1)", "", ""},
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind)
			c := sandboxtest.Connect(t, node)
			do := func(statement string) {
				t.Helper()
				if err := c.Exec(t.Context(), statement); err != nil {
					t.Errorf("%s: %v", statement, err)
				}
			}
			do("CREATE DATABASE tested DEFAULT CHARACTER SET utf8mb4")
			for _, x := range tables {
				create := "CREATE TABLE tested." + x.name + " (" + x.columns
				if !strings.HasSuffix(x.columns, "PARTITIONS 3") {
					create += ")"
				}
				do(create)
				if x.rows != "" {
					do("INSERT INTO tested." + x.name + " VALUES " + x.rows)
				}
			}
			found := lookForKeys(t, node.DSN)
			if len(found) != len(tables) {
				t.Errorf("%d findings for %d tables", len(found), len(tables))
			}
			for _, x := range tables {
				f := found["tested."+x.name]
				if x.evidence != "" && !slices.Contains(f.Evidence, x.evidence) {
					t.Errorf("%s: %q does not say %q", x.name, f.Evidence, x.evidence)
				}
				if x.rows == "" && slices.ContainsFunc(f.Evidence, func(e string) bool { return strings.Contains(e, "differ") }) {
					t.Errorf("%s has no rows: %q", x.name, f.Evidence)
				}
				if x.key == "-" {
					if f.Statement != "" || f.Advice == "" {
						t.Errorf("%s: %q, %q", x.name, f.Statement, f.Advice)
					}
					continue
				}
				tried(t, c, "tested."+x.name, f, x.key)
			}
		})
	}
}

// lookForKeys are the findings about missing primary keys, by their objects.
func lookForKeys(t *testing.T, dsn string) map[string]advise.Finding {
	t.Helper()
	target, err := mysql.ParseTarget(dsn)
	if err != nil {
		t.Fatal(err)
	}
	choice, err := pattern.NewChoice([]string{"tested"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := gather.Look(t.Context(), target, gather.Options{NoLoad: true, TestKeys: time.Minute, Wanted: func(id string) bool { return id == "schema.no_pk" }, Choice: choice})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]advise.Finding{}
	for _, f := range a.Findings {
		found[f.Object] = f
	}
	return found
}

// tried carries out what a finding proposes, checks which key the table has then, and takes it back.
func tried(t *testing.T, c *mysql.Conn, table string, f advise.Finding, key string) {
	t.Helper()
	definition := func() string {
		rows, err := c.Maps(t.Context(), "SHOW CREATE TABLE "+table)
		if err != nil {
			t.Fatal(err)
		}
		return rows[0]["Create Table"]
	}
	before := definition()
	if err := c.Exec(t.Context(), f.Statement); err != nil {
		t.Errorf("%s: %v", f.Statement, err)
		return
	}
	if want := "PRIMARY KEY (`" + strings.ReplaceAll(key, ",", "`,`") + "`)"; key != "" && !strings.Contains(definition(), want) {
		t.Errorf("after %s there is no %s:\n%s", f.Statement, want, definition())
	}
	if err := c.Exec(t.Context(), f.Undo); err != nil {
		t.Errorf("%s: %v", f.Undo, err)
	}
	if after := definition(); after != before {
		t.Errorf("after %s:\n%s\nbefore:\n%s", f.Undo, after, before)
	}
}
