package gather_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// awkward are tables whose statements fail, or break another one, unless that is thought of.
var awkward = []string{
	"CREATE TABLE f.m1 (id INT NOT NULL, a INT, KEY ka (a), KEY kb (a)) ENGINE=MyISAM",
	"CREATE TABLE f.m2 (id INT NOT NULL, a INT, KEY ka (a), KEY kb (a)) ENGINE=MyISAM",
	"CREATE TABLE f.merged (id INT NOT NULL, a INT, KEY ka (a), KEY kb (a)) ENGINE=MERGE UNION=(f.m1, f.m2) INSERT_METHOD=LAST",
	"CREATE TABLE f.zero (d DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00', a INT, KEY ka (a), KEY kb (a)) ENGINE=InnoDB",
	"CREATE TABLE f.zero_in (id TINYINT NOT NULL AUTO_INCREMENT PRIMARY KEY COMMENT 'a \\\\ b', d DATE NOT NULL DEFAULT '2010-00-00') ENGINE=InnoDB AUTO_INCREMENT=126 ROW_FORMAT=COMPACT",
	"CREATE TABLE f.parted (id INT NOT NULL, d INT NOT NULL) ENGINE=InnoDB PARTITION BY HASH (d) PARTITIONS 2",
	"CREATE TABLE f.virtual (a INT NOT NULL, v INT AS (a + 1) VIRTUAL NOT NULL, UNIQUE KEY uv (v)) ENGINE=InnoDB",
	"CREATE TABLE f.reserved (id INT PRIMARY KEY, db_trx_id INT) ENGINE=MyISAM",
	"CREATE TABLE f.words (FTS_DOC_ID INT PRIMARY KEY, t TEXT, FULLTEXT KEY kt (t)) ENGINE=MyISAM",
	"CREATE TABLE f.wide (id INT PRIMARY KEY, c CHAR(255)" + strings.Join(wideColumns(), "") + ") ENGINE=MyISAM DEFAULT CHARSET=latin1",
	"CREATE TABLE f.narrow (id INT PRIMARY KEY, c CHAR(255), t TEXT, v VARCHAR(9000)) ENGINE=MyISAM DEFAULT CHARSET=latin1",
}

// wideColumns are as many as no page of InnoDB has room for.
func wideColumns() (list []string) {
	for i := range 40 {
		list = append(list, fmt.Sprintf(", c%d CHAR(255)", i))
	}
	return list
}

// TestApplies: each statement can be run as the finding says, and taken back, on a server that refuses dates of 0 and takes \ for a letter; a MERGE
// table can be read after all of them.
func TestApplies(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind)
			c := sandboxtest.Connect(t, node)
			exec := func(statements ...string) {
				t.Helper()
				for _, s := range statements {
					if err := c.Exec(t.Context(), s); err != nil {
						t.Errorf("%s: %v", s, err)
					}
				}
			}
			const mode = "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,NO_BACKSLASH_ESCAPES"
			exec("CREATE DATABASE f DEFAULT CHARACTER SET utf8mb4", "SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION', innodb_strict_mode = OFF")
			for _, s := range awkward {
				if err := c.Exec(t.Context(), s); err != nil {
					t.Logf("%s: %v", s, err)
				}
			}
			exec("SET GLOBAL sql_mode = '"+mode+"'", "SET SESSION innodb_strict_mode = ON")
			list, _ := ofSchema(t, sandboxtest.Target(t, node))
			list = slices.DeleteFunc(list, func(f advise.Finding) bool { return !strings.HasPrefix(f.Object, "f.") })
			run := func(f advise.Finding, statement string) {
				exec("SET SESSION sql_mode = '" + mode + "'")
				if _, set, ok := strings.Cut(f.Advice, "SET SESSION "); ok {
					exec("SET SESSION " + set)
				}
				if err := c.Exec(t.Context(), statement); err != nil {
					t.Errorf("%s %s: %s: %v (%s)", f.ID, f.Object, statement, err, f.Advice)
				}
			}
			comment := "SELECT COLUMN_COMMENT FROM information_schema.COLUMNS WHERE TABLE_NAME = 'zero_in' AND COLUMN_NAME = 'id'"
			before, _ := c.Text(t.Context(), comment)
			mended := 0
			for _, f := range list {
				if f.Statement != "" {
					mended++
					run(f, f.Statement)
				}
			}
			if mended < 5 {
				t.Errorf("got %d findings with a statement of %d: %+v", mended, len(list), short(list))
			}
			exec("SELECT * FROM f.merged")
			if after, _ := c.Text(t.Context(), comment); after != before {
				t.Errorf("got the comment %q, want %q", after, before)
			}
			for _, f := range slices.Backward(list) {
				if f.Statement != "" {
					run(f, f.Undo)
				}
			}
			want := []string{"schema.engine narrow", "schema.engine reserved", "schema.engine wide", "schema.engine words", "schema.no_pk parted", "index.redundant zero.kb", "schema.autoinc zero_in.id", "schema.row_format zero_in", "schema.no_pk zero", "index.redundant m1.kb", "schema.engine m1", "schema.no_pk m1"}
			got := short(list)
			for _, w := range want {
				if !slices.Contains(got, w) {
					t.Errorf("%s was not found, but %q", w, got)
				}
			}
		})
	}
}
