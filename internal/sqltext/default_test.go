package sqltext

import "testing"

func TestForDefault(t *testing.T) {
	for _, c := range []struct{ mode, sql, want string }{
		{"", `SELECT "a", 'b\'c'`, `SELECT "a", 'b\'c'`},
		{"ANSI_QUOTES", `SELECT "a""b"."c` + "`" + `d" FROM t WHERE x = 'say "hi"' /* "c" */`, "SELECT `a\"b`.`c``d` FROM t WHERE x = 'say \"hi\"' /* \"c\" */"},
		{"NO_BACKSLASH_ESCAPES", `SELECT 'a\', "b\", _utf8'c\\' -- '\'`, `SELECT 'a\\', "b\\", _utf8'c\\\\' -- '\'`},
		{"ANSI", `SELECT "n\" FROM "t" WHERE x LIKE '%\_' OR y = 'it''s'`, "SELECT `n\\` FROM `t` WHERE x LIKE '%\\_' OR y = 'it''s'"},
		{"ANSI_QUOTES,NO_BACKSLASH_ESCAPES", `SELECT "n\" FROM t WHERE x = 'a\' AND y = '\\'`, "SELECT `n\\` FROM t WHERE x = 'a\\\\' AND y = '\\\\\\\\'"},
	} {
		if got := (Dialect{}).WithMode(c.mode).ForDefault(c.sql); got != c.want {
			t.Errorf("%s: %s\nis  %s\nnot %s", c.mode, c.sql, got, c.want)
		}
	}
}
