package retire

import (
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

func TestJudge(t *testing.T) {
	class := func(first string, calls int64, seconds float64, rows, errors int64) Class {
		return Class{Digest: "x", First: first, Text: "SELECT `b` FROM `d` . `t` FORCE INDEX ( `kb` ) WHERE `a` = ?", Cost: fleet.Cost{Calls: calls, Seconds: seconds, RowsExamined: rows, Errors: errors}}
	}
	was := class("2026-01-01", 1000, 1, 10_000, 0) // 1 ms and 10 rows by a call
	for _, c := range []struct {
		name  string
		now   Class
		worse bool
	}{
		{"as before", class("2026-01-01", 2000, 2, 20_000, 0), false},
		{"more rows", class("2026-01-01", 1010, 1.01, 20_000, 0), true},
		{"more rows, of two calls", class("2026-01-01", 1002, 1.002, 30_000, 0), false},
		{"twice as many rows, but few", class("2026-01-01", 2000, 2, 30_000, 0), false},
		{"slower", class("2026-01-01", 1100, 1.9, 11_000, 0), true},
		{"slower, by little", class("2026-01-01", 1100, 1.25, 11_000, 0), false},
		{"slower, of few calls", class("2026-01-01", 1005, 3, 10_050, 0), false},
		{"slower since a restart", class("2026-02-01", 100, 1.9, 1000, 0), true},
		{"as before since a restart", class("2026-02-01", 100, 0.1, 1000, 0), false},
		{"fails", class("2026-01-01", 1001, 1, 10_000, 1), true},
		{"not run", was, false},
	} {
		j := Judge([]Class{was}, []Class{c.now}, &Record{Schema: "d", Table: "t", Index: "kb"}, touches(mysql.TableName{Schema: "D", Name: "T"}, nil), false)
		if (len(j.Worse) > 0) != c.worse {
			t.Errorf("%s: got %+v, want worse: %t", c.name, j.Worse, c.worse)
		}
	}
}

func TestTouches(t *testing.T) {
	views := Views{{Schema: "v", Name: "one"}: {{Schema: "d", Name: "t"}}, {Schema: "v", Name: "two"}: {{Schema: "v", Name: "one"}}, {Schema: "v", Name: "other"}: {{Schema: "d", Name: "u"}}}
	for text, want := range map[string]bool{"SELECT 1 FROM `d` . `t`": true, "SELECT 1 FROM t": true, "SELECT 1 FROM u": false, "SELECT 1 FROM v.two": true, "SELECT 1 FROM v.other": false, "UPDATE v.one SET a = 1": true} {
		if got := touches(mysql.TableName{Schema: "d", Name: "t"}, views)(Class{Schema: "d", Text: text}); got != want {
			t.Errorf("%s: got %t, want %t", text, got, want)
		}
	}
}

// TestRare: a report that ran a few times before is worse by one call; a class that did not run before is doubtful if it reads many rows and the
// index may have served it.
func TestRare(t *testing.T) {
	class := func(text string, calls, rows int64) Class {
		return Class{Digest: "x", First: "2026-01-01", Text: text, Cost: fleet.Cost{Calls: calls, Seconds: float64(calls), RowsExamined: rows}}
	}
	r := &Record{Schema: "d", Table: "t", Index: "kb", Definition: "KEY `kb` (`b`,`c`)"}
	const report, other, view = "SELECT `a` FROM `d` . `t` WHERE `b` = ?", "SELECT `a` FROM `d` . `t` WHERE `a` = ?", "SELECT `x` FROM `d` . `v`"
	views := Views{{Schema: "d", Name: "v"}: {{Schema: "d", Name: "t"}}}
	for _, x := range []struct {
		name            string
		before, now     []Class
		late            bool
		worse, doubtful int
	}{
		{"once a month", []Class{class(report, 3, 30)}, []Class{class(report, 4, 10_030)}, false, 1, 0},
		{"once a month, as before", []Class{class(report, 3, 30)}, []Class{class(report, 4, 45)}, false, 0, 0},
		{"never before", nil, []Class{class(report, 1, 10_000)}, false, 0, 1},
		{"never before, few rows", nil, []Class{class(report, 1, 100)}, false, 0, 0},
		{"never before, by another column", nil, []Class{class(other, 1, 10_000)}, false, 0, 0},
		{"never before, by a view", nil, []Class{class(view, 1, 10_000)}, false, 0, 1},
		{"before, but watched late", []Class{class(report, 3, 30)}, []Class{class(report, 4, 10_030)}, true, 0, 1},
	} {
		if j := Judge(x.before, x.now, r, touches(mysql.TableName{Schema: "d", Name: "t"}, views), x.late); len(j.Worse) != x.worse || len(j.Doubtful) != x.doubtful {
			t.Errorf("%s: got %+v, want %d worse and %d doubtful", x.name, j, x.worse, x.doubtful)
		}
	}
}

// touches reports whether a class reads or writes a table, itself or by a view.
func touches(table mysql.TableName, views Views) func(Class) bool {
	return touchesAny(views.reading(table))
}
