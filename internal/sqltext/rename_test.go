package sqltext

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestRename: names are resolved as the servers do; what they do with the result is held in data/load, by TestRenamePrograms.
func TestRename(t *testing.T) {
	to := func(schema string) (string, bool) { return "new`s", schema == "s" }
	ansi := Dialect{}.WithMode("ANSI_QUOTES")
	for _, c := range []struct {
		d              Dialect
		in, want, left string
	}{
		{in: "CREATE VIEW `s`.`v` AS select `s`.`t`.`a`,`s`.`f`(1) from (`s`.`t` join `o`.`s` `x` on(`s`.`a`))", want: "CREATE VIEW ☃.`v` AS select ☃.`t`.`a`,☃.`f`(1) from (☃.`t` join `o`.`s` `x` on(`s`.`a`))"},
		{in: "CREATE VIEW v AS SELECT s.a FROM o.t AS s, s.u", want: "CREATE VIEW v AS SELECT s.a FROM o.t AS s, ☃.u"},
		{in: "CREATE VIEW v AS SELECT s.*, s FROM s.t s", want: "CREATE VIEW v AS SELECT s.*, s FROM ☃.t s"},
		{in: "CREATE PROCEDURE p() BEGIN -- s.t\n SET s.x = 1, @s.t = 2, @@s.t = 3; END", want: "CREATE PROCEDURE p() BEGIN -- s.t\n SET ☃.x = 1, @s.t = 2, @@s.t = 3; END"},
		{in: "CREATE PROCEDURE p() BEGIN DECLARE s ROW TYPE OF s.t; SET s.a = 1; END", want: "CREATE PROCEDURE p() BEGIN DECLARE s ROW TYPE OF ☃.t; SET s.a = 1; END"},
		{in: "CREATE PROCEDURE p() BEGIN WITH s AS (SELECT 1 a) SELECT s.a FROM s; INSERT INTO s.t (a) SELECT s.a FROM s ON DUPLICATE KEY UPDATE s.t.a = VALUES(a); END",
			want: "CREATE PROCEDURE p() BEGIN WITH s AS (SELECT 1 a) SELECT s.a FROM s; INSERT INTO ☃.t (a) SELECT s.a FROM s ON DUPLICATE KEY UPDATE ☃.t.a = VALUES(a); END"},
		{in: "CREATE PROCEDURE p() BEGIN SHOW COLUMNS FROM s FROM s; SHOW TABLES IN s; SHOW CREATE TABLE s.t; DROP DATABASE IF EXISTS s; CALL s.p(); END", want: "CREATE PROCEDURE p() BEGIN SHOW COLUMNS FROM s FROM ☃; SHOW TABLES IN ☃; SHOW CREATE TABLE ☃.t; DROP DATABASE IF EXISTS ☃; CALL ☃.p(); END"},
		{in: "CREATE PROCEDURE p() DELETE s.t, s FROM s.t JOIN o.s USING (a)", want: "CREATE PROCEDURE p() DELETE ☃.t, s FROM ☃.t JOIN o.s USING (a)"},
		{d: ansi, in: `CREATE TRIGGER "s"."g" BEFORE INSERT ON "s"."t" FOR EACH ROW SET NEW.a = "s"."f"('s'), NEW.b = 's\'`, want: `CREATE TRIGGER "new` + "`" + `s"."g" BEFORE INSERT ON "new` + "`" + `s"."t" FOR EACH ROW SET NEW.a = "new` + "`" + `s"."f"('s'), NEW.b = 's\'`, left: `'s'|'s\'`},
		{in: "CREATE TABLE `t` (`s` int, `a` int CHECK (`s` > 1), FOREIGN KEY (`a`) REFERENCES `s`.`s` (`s`)) UNION=(`s`.`a`,`s`) COMMENT='s.t'", want: "CREATE TABLE `t` (`s` int, `a` int CHECK (`s` > 1), FOREIGN KEY (`a`) REFERENCES ☃.`s` (`s`)) UNION=(☃.`a`,`s`) COMMENT='s.t'"},
		{in: "GRANT SELECT (`s`), INSERT ON `s`.* TO `s`@`s`", want: "GRANT SELECT (`s`), INSERT ON ☃.* TO `s`@`s`"},
		{in: "GRANT SELECT ON `s%`.* TO u@h", want: "GRANT SELECT ON `s%`.* TO u@h", left: "`s%`"},
		{in: "GRANT EXECUTE ON PROCEDURE `s`.`s` TO u@h", want: "GRANT EXECUTE ON PROCEDURE ☃.`s` TO u@h"},
		{in: "DO SETVAL(`s`.`q`, 1, 0, 1)", want: "DO SETVAL(☃.`q`, 1, 0, 1)"},
		{in: "CREATE PROCEDURE p() BEGIN PREPARE x FROM 'SELECT 1'; EXECUTE IMMEDIATE CONCAT('DROP TABLE ', 's', '.t'); END", want: "CREATE PROCEDURE p() BEGIN PREPARE x FROM 'SELECT 1'; EXECUTE IMMEDIATE CONCAT('DROP TABLE ', 's', '.t'); END",
			left: "PREPARE x FROM 'SELECT 1'|EXECUTE IMMEDIATE CONCAT('DROP TABLE ',|'s'"},
	} {
		edits, left := c.d.Rename(c.in, to)
		got := Apply(c.in, edits)
		if want := strings.ReplaceAll(c.want, "☃", "`new``s`"); got != want {
			t.Errorf("%s\n is %s\nwant %s", c.in, got, want)
		}
		var texts []string
		for _, l := range left {
			texts = append(texts, l.Text)
		}
		if s := strings.Join(texts, "|"); s != c.left {
			t.Errorf("%s\nleaves %s, want %s", c.in, fmt.Sprintf("%q", s), c.left)
		}
	}
}

// TestCopyName: a constraint of a copy has a name that follows from its own and from the copy's, is no longer than names may be, and
// differs for each.
func TestCopyName(t *testing.T) {
	long := strings.Repeat("ü", 60)
	seen := map[string]bool{}
	for _, c := range []struct{ constraint, table, copied, want string }{
		{"fk", "t", "t2", "t2_fk"}, {"t_ibfk_1", "t", "t2", "t2_ibfk_1"}, {"t_chk_12", "t", "t2", "t2_chk_12"},
		{"t_ibfk_", "t", "t2", "t2_t_ibfk_"}, {"t_ibfk_1x", "t", "t2", "t2_t_ibfk_1x"}, {"t_x_1", "t", "t2", "t2_t_x_1"}, {"u_ibfk_1", "t", "t2", "t2_u_ibfk_1"}, {"t", "t", "t2", "t2_t"},
		{"1234", long, long + "x", ""}, {"1235", long, long + "x", ""},
	} {
		got := CopyName(c.constraint, c.table, c.copied)
		if c.want != "" && got != c.want || seen[got] || utf8.RuneCountInString(got) > 64 || !utf8.ValidString(got) {
			t.Errorf("%s of %s in %s: %s", c.constraint, c.table, c.copied, got)
		}
		seen[got] = true
	}
}
