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

// faults are schemas' faults: what plants one, and what is found then. What a server refuses to make is not there.
var faults = []struct {
	plant string
	find  string // ID and object, without the schema
	stays bool   // no statement mends it
}{
	{plant: "CREATE TABLE f.myisam (id INT PRIMARY KEY, a INT, b CHAR(3)) ENGINE=MyISAM ROW_FORMAT=FIXED", find: "schema.engine myisam"},
	{plant: "CREATE TABLE f.grouped (g INT NOT NULL, n INT NOT NULL AUTO_INCREMENT, PRIMARY KEY (g, n)) ENGINE=MyISAM", find: "schema.engine grouped", stays: true},
	{plant: "CREATE TABLE f.aria (id INT PRIMARY KEY) ENGINE=Aria", find: "schema.engine aria"},
	{plant: "CREATE TABLE f.memory (id INT PRIMARY KEY) ENGINE=MEMORY", find: "schema.engine memory", stays: true},
	{plant: "CREATE TABLE f.compact (id INT PRIMARY KEY) ENGINE=InnoDB ROW_FORMAT=COMPACT", find: "schema.row_format compact"},
	{plant: "CREATE TABLE f.zero (id INT PRIMARY KEY, z INT(5) UNSIGNED ZEROFILL NOT NULL DEFAULT 7 COMMENT 'it''s') ENGINE=InnoDB", find: "schema.types zero.z"},
	{plant: "CREATE TABLE f.md (id INT PRIMARY KEY, m FLOAT(7,3)) ENGINE=InnoDB", find: "schema.types md.m", stays: true},
	{plant: "CREATE TABLE f.three (id INT PRIMARY KEY, t VARCHAR(20) NOT NULL, x TEXT, KEY (t)) ENGINE=InnoDB DEFAULT CHARSET=utf8 COLLATE=utf8_unicode_ci", find: "schema.charset three"},
	{plant: "CREATE TABLE f.long_key (id INT PRIMARY KEY, l VARCHAR(1000), KEY (l)) ENGINE=InnoDB DEFAULT CHARSET=utf8", find: "schema.charset long_key", stays: true},
	{plant: "CREATE TABLE f.parts (d DATE NOT NULL, PRIMARY KEY (d)) ENGINE=InnoDB PARTITION BY RANGE (TO_DAYS(d)) (PARTITION p1 VALUES LESS THAN (TO_DAYS('2020-01-01')), PARTITION p2 VALUES LESS THAN (TO_DAYS('2020-02-01')))", find: "schema.partitions parts", stays: true},
	{plant: "CREATE TABLE f.months (d DATE NOT NULL, PRIMARY KEY (d)) ENGINE=InnoDB PARTITION BY RANGE COLUMNS (d) (PARTITION p1 VALUES LESS THAN ('NOW-1'), PARTITION `p 2` VALUES LESS THAN ('NOW+0'))", find: "schema.partitions months"},
	{plant: "CREATE TABLE f.stamps (d TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (d)) ENGINE=InnoDB PARTITION BY RANGE (UNIX_TIMESTAMP(d)) (PARTITION p1 VALUES LESS THAN (UNIX_TIMESTAMP('NOW-1 00:00:00')), PARTITION p2 VALUES LESS THAN (UNIX_TIMESTAMP('NOW+0 00:00:00')))", find: "schema.partitions stamps"},
	{plant: "CREATE TABLE f.numbers (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB AUTO_INCREMENT=1950 PARTITION BY RANGE (id) (PARTITION p1000 VALUES LESS THAN (1000), PARTITION p2000 VALUES LESS THAN (2000))", find: "schema.partitions numbers"},
	{plant: "CREATE TABLE f.open (d DATE NOT NULL, PRIMARY KEY (d)) ENGINE=InnoDB PARTITION BY RANGE COLUMNS (d) (PARTITION p1 VALUES LESS THAN ('2020-01-01'), PARTITION pmax VALUES LESS THAN (MAXVALUE))"},
	{plant: "CREATE TABLE f.hidden (id INT PRIMARY KEY, a INT, KEY ka (a) INVISIBLE) ENGINE=InnoDB", find: "index.hidden hidden.ka"},
	{plant: "CREATE TABLE f.ignored (id INT PRIMARY KEY, a INT, KEY ka (a) IGNORED) ENGINE=InnoDB", find: "index.hidden ignored.ka"},
	{plant: "CREATE TABLE f.p (id INT PRIMARY KEY, u INT, UNIQUE KEY uu (u)) ENGINE=InnoDB"},
	{plant: "CREATE TABLE f.c (id INT PRIMARY KEY, pid INT, pu INT, KEY kp (pid), KEY ku (pu), CONSTRAINT fp FOREIGN KEY (pid) REFERENCES f.p (id), CONSTRAINT fu FOREIGN KEY (pu) REFERENCES f.p (u)) ENGINE=InnoDB"},
	{plant: "ALTER TABLE f.c DROP KEY kp", find: "fk.unindexed c"},
	{plant: "ALTER TABLE f.p DROP KEY uu", find: "fk.unindexed p"},
	{plant: "CREATE TABLE f.nu (id INT PRIMARY KEY, n INT, KEY kn (n)) ENGINE=InnoDB"},
	{plant: "CREATE TABLE f.nc (id INT PRIMARY KEY, n INT, CONSTRAINT fn FOREIGN KEY (n) REFERENCES f.nu (n)) ENGINE=InnoDB", find: "fk.not_unique nc", stays: true},
	{plant: "CREATE TABLE f.orphan (id INT PRIMARY KEY, n INT, CONSTRAINT fo FOREIGN KEY (n) REFERENCES f.gone (id)) ENGINE=InnoDB"},
	{plant: "CREATE TABLE f.under (a INT)"},
	{plant: "CREATE VIEW f.broken AS SELECT a FROM f.under"},
	{plant: "DROP TABLE f.under", find: "view.broken broken", stays: true},
	{plant: "CREATE TABLE f.joined1 (code VARCHAR(9) COLLATE utf8mb4_bin PRIMARY KEY) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"},
	{plant: "CREATE TABLE f.joined2 (id INT PRIMARY KEY, code VARCHAR(9) COLLATE utf8mb4_general_ci, KEY (code)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4", find: "schema.collations joined2.code", stays: true},
	{plant: "CREATE DEFINER = 'gone'@'no''where' PROCEDURE f.run() SELECT 1"},
	{plant: "CREATE EVENT f.off ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1", find: "event.disabled off"},
	{plant: "CREATE TABLE f.auto (n INT NOT NULL AUTO_INCREMENT, KEY (n)) ENGINE=InnoDB", find: "schema.no_pk auto", stays: true},
	{plant: "CREATE TABLE f.plain_myisam (a INT) ENGINE=MyISAM", find: "schema.no_pk plain_myisam"},
}

// ofMonth writes days around this month into a statement: NOW-1 is the first of the month before.
func ofMonth(s string) string {
	first := time.Date(time.Now().Year(), time.Now().Month(), 1, 0, 0, 0, 0, time.UTC)
	return strings.NewReplacer("NOW-1", first.AddDate(0, -1, 0).Format(time.DateOnly), "NOW+0", first.Format(time.DateOnly)).Replace(s)
}

// TestSchemas: each fault that is planted is found, with one statement it is mended, and the undo brings it back.
func TestSchemas(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind)
			c := sandboxtest.Connect(t, node)
			for _, s := range []string{"CREATE DATABASE f DEFAULT CHARACTER SET utf8mb4", "SET SESSION foreign_key_checks = 0, sql_mode = 'NO_ENGINE_SUBSTITUTION'"} {
				if err := c.Exec(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			var want []string
			stays := map[string]bool{}
			for _, f := range faults {
				if err := c.Exec(t.Context(), ofMonth(f.plant)); err != nil {
					t.Logf("%s: %v", f.plant, err)
					continue
				}
				if f.find != "" {
					want = append(want, f.find)
					stays[f.find] = f.stays
				}
			}
			want = append(want, "schema.engine plain_myisam")
			if got, _ := ofSchema(t, sandboxtest.Target(t, node)); slices.ContainsFunc(got, func(f advise.Finding) bool { return f.ID == "definer.missing" && f.Object == "gone@no'where" }) == false {
				t.Error("the procedure whose definer is gone was not found")
			}
			list, missing := ofSchema(t, sandboxtest.Target(t, node))
			list = slices.DeleteFunc(list, func(f advise.Finding) bool { return !strings.HasPrefix(f.Object, "f.") })
			if got := short(list); !slices.Equal(got, sorted(want)) {
				t.Errorf("found %q,\nwant %q\nmissing %+v", got, sorted(want), missing)
			}
			if err := c.Exec(t.Context(), "SET SESSION foreign_key_checks = 1"); err != nil {
				t.Fatal(err)
			}
			for _, f := range list {
				key := f.ID + " " + strings.TrimPrefix(f.Object, "f.")
				if stays[key] {
					continue
				}
				if f.Statement == "" || f.Undo == "" || f.Effect == "" {
					t.Errorf("%s %s: statement %q, undo %q, effect %q: want all three", f.ID, f.Object, f.Statement, f.Undo, f.Effect)
					continue
				}
				if err := c.Exec(t.Context(), f.Statement); err != nil {
					t.Errorf("%s: %s: %v", f.ID, f.Statement, err)
				}
			}
			after, _ := ofSchema(t, sandboxtest.Target(t, node))
			for _, f := range after {
				if key := f.ID + " " + strings.TrimPrefix(f.Object, "f."); strings.HasPrefix(f.Object, "f.") && !stays[key] {
					t.Errorf("after its statement: %s %s: %s", f.ID, f.Object, f.What)
				}
			}
			for _, f := range slices.Backward(list) {
				if key := f.ID + " " + strings.TrimPrefix(f.Object, "f."); !stays[key] {
					if err := c.Exec(t.Context(), f.Undo); err != nil {
						t.Errorf("%s: %s: %v", f.ID, f.Undo, err)
					}
				}
			}
			back, _ := ofSchema(t, sandboxtest.Target(t, node))
			back = slices.DeleteFunc(back, func(f advise.Finding) bool { return !strings.HasPrefix(f.Object, "f.") })
			if got := short(back); !slices.Equal(got, sorted(want)) {
				t.Errorf("after the undo %q,\nwant %q", got, sorted(want))
			}
		})
	}
}

func ofSchema(t *testing.T, target mysql.Target) ([]advise.Finding, any) {
	t.Helper()
	choice, err := pattern.NewChoice([]string{"f"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := gather.Look(t.Context(), target, gather.Options{Choice: choice})
	if err != nil {
		t.Fatal(err)
	}
	return a.Findings, a.Missing
}

// short are IDs and objects without the schema, sorted.
func short(list []advise.Finding) (keys []string) {
	for _, f := range list {
		keys = append(keys, f.ID+" "+strings.TrimPrefix(f.Object, "f."))
	}
	return sorted(keys)
}
