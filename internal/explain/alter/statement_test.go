package alter

import (
	"errors"
	"testing"

	"github.com/rissodb/risso/internal/sqltext"
)

// TestParse: what is said of the way is taken out of the statement, and put in again where each server reads it.
func TestParse(t *testing.T) {
	for _, c := range []struct{ text, table, body, algorithm, lock, with string }{
		{"ALTER TABLE t ADD n INT", "``.`t`", "ADD n INT", "", "", "ALTER /* risso: x */ TABLE ``.`t` ALGORITHM=INPLACE, LOCK=NONE, ADD n INT"},
		{"alter table `a``b` . `c d` add n int, algorithm = inplace, lock=shared;", "`a``b`.`c d`", "add n int", "INPLACE", "SHARED", "ALTER /* risso: x */ TABLE `a``b`.`c d` ALGORITHM=INPLACE, LOCK=NONE, add n int"},
		{"ALTER TABLE s.t ALGORITHM=COPY, ADD n INT DEFAULT (1+2), DROP o", "`s`.`t`", "ADD n INT DEFAULT (1+2), DROP o", "COPY", "", ""},
		{"ALTER TABLE t ALGORITHM COPY, FORCE", "``.`t`", "FORCE", "COPY", "", ""},
		{"ALTER TABLE t LOCK=NONE PARTITION BY HASH (id)", "``.`t`", "PARTITION BY HASH (id)", "", "NONE", "ALTER /* risso: x */ TABLE ``.`t` ALGORITHM=INPLACE, LOCK=NONE PARTITION BY HASH (id)"},
		{"ALTER TABLE t WAIT 5 ADD n INT COMMENT 'ALGORITHM=COPY, x'", "``.`t`", "ADD n INT COMMENT 'ALGORITHM=COPY, x'", "", "", ""},
		{"ALTER TABLE t NOWAIT DROP COLUMN `lock`", "``.`t`", "DROP COLUMN `lock`", "", "", ""},
		{"ALTER ONLINE TABLE IF EXISTS t ADD INDEX (a,b)", "``.`t`", "ADD INDEX (a,b)", "", "", ""},
		{"ALTER IGNORE TABLE t ADD UNIQUE (a)", "``.`t`", "ADD UNIQUE (a)", "", "", "ALTER IGNORE /* risso: x */ TABLE ``.`t` ALGORITHM=INPLACE, LOCK=NONE, ADD UNIQUE (a)"},
	} {
		s, err := Parse(sqltext.Dialect{}, c.text)
		if err != nil || s.Table.String() != c.table || s.Body != c.body || s.Algorithm != c.algorithm || s.Lock != c.lock {
			t.Errorf("%s: got %+v, %v; want %+v", c.text, s, err, c)
		}
		if got := s.With("x", "INPLACE", "NONE"); c.with != "" && got != c.with {
			t.Errorf("%s: got %s, want %s", c.text, got, c.with)
		}
	}
	for _, text := range []string{"", "ALTER", "ALTER TABLE", "ALTER TABLE t", "ALTER TABLE t ALGORITHM=COPY", "ALTER TABLE t ADD n INT; DROP TABLE t", "ALTER TABLE t ADD n INT COMMENT 'x", "CREATE INDEX i ON t (a)", "ALTER VIEW v AS SELECT 1", "DROP TABLE t"} {
		if s, err := Parse(sqltext.Dialect{}, text); !errors.Is(err, ErrStatement) {
			t.Errorf("%q: got %+v, %v; want ErrStatement", text, s, err)
		}
	}
}

// TestParseNames: what else a statement names.
func TestParseNames(t *testing.T) {
	s, err := Parse(sqltext.Dialect{}, "ALTER TABLE s.t CHANGE a b INT, RENAME COLUMN `c d` TO e, ADD FOREIGN KEY (x) REFERENCES p (id), RENAME TO t2, CHANGE COLUMN same same BIGINT")
	if err != nil {
		t.Fatal(err)
	}
	s = s.In("other")
	if len(s.Renamed) != 2 || s.Renamed["a"] != "b" || s.Renamed["c d"] != "e" {
		t.Errorf("renamed: got %v, want a and c d", s.Renamed)
	}
	if len(s.Others) != 1 || s.Others[0].String() != "`s`.`p`" || s.RenamedTo == nil || s.RenamedTo.String() != "`s`.`t2`" {
		t.Errorf("got %v and %v, want s.p and s.t2", s.Others, s.RenamedTo)
	}
	s, err = Parse(sqltext.Dialect{}.WithMode("ANSI_QUOTES"), `ALTER TABLE "t" EXCHANGE PARTITION p WITH TABLE "x"."y"`)
	if err != nil || len(s.Others) != 1 || s.Others[0].String() != "`x`.`y`" || s.Table.Name != "t" {
		t.Errorf("got %+v, %v; want x.y", s, err)
	}
}
