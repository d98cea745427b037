package sqltext

import (
	"fmt"
	"strings"
	"testing"
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
