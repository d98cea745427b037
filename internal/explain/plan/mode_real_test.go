package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/plan"
)

// coded is a table whose codes have what quotes are about.
const coded = `USE shop; CREATE TABLE coded (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, code VARCHAR(20) NOT NULL, status VARCHAR(10) NOT NULL, placed DATETIME NOT NULL, filler CHAR(100) NOT NULL DEFAULT 'x') DEFAULT CHARSET=latin1;
INSERT INTO coded (code, status, placed) SELECT CONCAT('a', CHAR(92), '"', n), ELT(1+n%3, 'paid', 'new', 'sent'), '2024-01-01' + INTERVAL n MINUTE FROM
 (SELECT a.d+10*b.d+100*c.d+1000*e.d+10000*f.d n FROM digits a, digits b, digits c, digits e, digits f WHERE f.d<2) t;
ANALYZE TABLE coded`

// modes are values of sql_mode under which a server reads or shows SQL otherwise, and one statement in the words of each.
var modes = []struct{ mode, sql string }{
	{"", `SELECT * FROM coded WHERE code = 'a\\"12' AND status='paid'`},
	{"ANSI_QUOTES", `SELECT * FROM "coded" WHERE "code" = 'a\\"12' AND status='paid'`},
	{"ANSI_QUOTES", `SELECT * FROM coded WHERE code = 'a\\"12' AND status='paid'`},
	{"NO_BACKSLASH_ESCAPES", `SELECT * FROM coded WHERE code = 'a\"12' AND status="paid"`},
	{"PIPES_AS_CONCAT", `SELECT * FROM coded WHERE code = 'a\\"' || '12' AND status='paid'`},
	{"ANSI,NO_BACKSLASH_ESCAPES", `SELECT * FROM "coded" WHERE "code" = 'a\"1' || '2' AND status='paid'`},
	{"HIGH_NOT_PRECEDENCE,IGNORE_SPACE,PAD_CHAR_TO_FULL_LENGTH,REAL_AS_FLOAT,NO_UNSIGNED_SUBTRACTION", `SELECT * FROM coded WHERE code = 'a\\"12' AND status='paid'`},
	{"ORACLE", `SELECT * FROM "coded" WHERE "code" = 'a\\"12' AND status='paid'`},
	{"ORACLE", `SELECT * FROM coded WHERE code = 'a\\"' || '12' AND status='paid'`},
	{"MSSQL", `SELECT * FROM "coded" WHERE "code" = 'a\\"12' AND status='paid'`},
}

// TestModes: in any sql_mode, a statement that is valid in it is explained, measured and advised on.
func TestModes(t *testing.T) {
	t.Parallel()
	eachServer(t, func(s *server) {
		s.exec(coded)
		for _, c := range modes {
			if (c.mode == "ORACLE" || c.mode == "MSSQL") && !s.mariadb() {
				continue
			}
			s.exec("SET GLOBAL sql_mode = '" + c.mode + "'")
			for _, analyze := range []bool{false, true} {
				if analyze && !s.mariadb() && !s.can(97) {
					continue
				}
				taken, facts, err := s.take(plan.Request{SQL: c.sql + ";\n", Analyze: analyze})
				if err != nil {
					s.t.Errorf("%s: %s: %v", c.mode, c.sql, err)
					continue
				}
				e := plan.Explain(taken.Plan, facts, taken.SQL)
				show := strings.Join(e.Lines(0), "\n")
				if a := adviceFor(e, "shop.coded"); a == nil || !slices.Contains(a.Columns, "code") || !slices.Contains(a.Columns, "status") {
					s.t.Errorf("%s: %s: (code, status) is not advised:\n%s", c.mode, c.sql, show)
				}
				if strings.Contains(show, "could not") || strings.Contains(show, "could be sampled") {
					s.t.Errorf("%s: %s:\n%s", c.mode, c.sql, show)
				}
				for _, f := range facts {
					if f.Sample == nil || f.Sample.Rows == 0 {
						s.t.Errorf("%s: %s: no rows were looked at", c.mode, c.sql)
					}
				}
			}
			s.exec("SET GLOBAL sql_mode = ''")
		}
	})
}

// TestSampleNames: what columns are called does not come between Risso's questions of a sample.
func TestSampleNames(t *testing.T) {
	t.Parallel()
	eachServer(t, func(s *server) {
		s.exec(coded + `; CREATE TABLE named (k VARCHAR(20) COLLATE latin1_bin, v INT, rows_of_it INT, s INT, g INT, fil CHAR(60), KEY k (k)) DEFAULT CHARSET=latin1;
INSERT INTO named SELECT code, id, id, id, id, '' FROM coded; ANALYZE TABLE named`)
		for _, column := range []string{"k", "rows_of_it", "s", "g"} {
			sql := "SELECT o.id FROM coded o JOIN named n ON n." + column + " = o.code WHERE o.id < 50"
			_, facts, err := s.take(plan.Request{SQL: sql})
			if err != nil {
				s.t.Fatal(err)
			}
			asked := false
			for _, f := range facts {
				if f.Sample != nil && f.Sample.Problem != "" {
					s.t.Errorf("%s: %s", sql, f.Sample.Problem)
				}
				asked = asked || f.Sample != nil
			}
			if !asked {
				s.t.Errorf("%s: no rows were looked at", sql)
			}
		}
	})
}
