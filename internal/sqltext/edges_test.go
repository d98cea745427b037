package sqltext

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestEdgesOfCreate: each part of a CREATE, and its place. Sources: MySQL manual, "Data Definition Statements"; MariaDB documentation, "CREATE".
func TestEdgesOfCreate(t *testing.T) {
	maria := Dialect{MariaDB: true, Version: 101106}
	for _, c := range []struct {
		d        Dialect
		in, want string
	}{
		{in: "CREATE TABLE a.b (c INT)", want: "TABLE a.b"}, {in: "CREATE OR REPLACE TABLE b (c INT)", want: "TABLE b replaces"}, {in: "CREATE TEMPORARY TABLE IF NOT EXISTS b (c INT)", want: "TABLE b kept temporary"}, {in: "CREATE TABLE `a` . `b` (c INT)", want: "TABLE a.b"},
		{in: "CREATE SCHEMA s", want: "DATABASE s"}, {in: "CREATE DATABASE IF NOT EXISTS s", want: "DATABASE s kept"}, {in: "CREATE USER a@b", want: "USER a account a@b"}, {in: "CREATE USER IF NOT EXISTS 'a b'@'%' REQUIRE SSL", want: "USER a b kept account a b@%"}, {in: "CREATE ROLE r", want: "ROLE r account r"}, {d: maria, in: "CREATE ROLE r WITH ADMIN CURRENT_USER", want: "ROLE r account r"}, {in: "CREATE USER a DEFAULT ROLE b", want: "USER a account a roles b at DEFAULT ROLE b"}, {in: "CREATE USER a@h DEFAULT ROLE b@i, `c` , d REQUIRE SSL", want: "USER a account a@h roles b@i, `c` , d at DEFAULT ROLE b@i, `c` , d"}, {in: "CREATE USER a@`b` IDENTIFIED BY 'x'", want: "USER a account a@b"}, {in: "CREATE USER CURRENT_USER()", want: "USER CURRENT_USER account CURRENT_USER"}, {in: "CREATE USER `current_user`@h", want: "USER current_user account current_user@h"},
		{in: "CREATE DEFINER = a@b VIEW v AS SELECT 1", want: "VIEW v definer a@b at DEFINER = a@b"}, {in: "CREATE DEFINER=CURRENT_USER VIEW v AS SELECT 1", want: "VIEW v definer CURRENT_USER at DEFINER=CURRENT_USER"}, {in: "CREATE DEFINER=CURRENT_USER ( ) VIEW v AS SELECT 1", want: "VIEW v definer CURRENT_USER at DEFINER=CURRENT_USER ( )"}, {d: maria, in: "CREATE DEFINER=r FUNCTION f() RETURNS INT RETURN 1", want: "FUNCTION f definer r at DEFINER=r"}, {in: "CREATE ALGORITHM=MERGE DEFINER='a'@'b' SQL SECURITY INVOKER VIEW v (c, d) AS SELECT 1, 2", want: "VIEW v invoker definer a@b at DEFINER='a'@'b'"}, {in: "CREATE ALGORITHM=TEMPTABLE VIEW v AS SELECT 1", want: "VIEW v"}, {in: "CREATE SQL SECURITY DEFINER VIEW v AS SELECT 1", want: "VIEW v"}, {in: "CREATE PROCEDURE p() SQL SECURITY INVOKER SELECT 1", want: "PROCEDURE p invoker"}, {in: "CREATE PROCEDURE p() SQL SECURITY DEFINER SELECT 1", want: "PROCEDURE p"}, {in: "CREATE JSON RELATIONAL DUALITY VIEW v AS SELECT 1", want: "VIEW v"}, {in: "CREATE JSON DUALITY VIEW v AS SELECT 1", want: "VIEW v"}, {d: maria, in: "CREATE AGGREGATE FUNCTION f(a INT) RETURNS INT BEGIN LOOP FETCH GROUP NEXT ROW; END LOOP; END", want: "FUNCTION f"},
		{in: "CREATE TRIGGER g BEFORE INSERT ON s.t FOR EACH ROW SET @a = 1", want: "TRIGGER g on s.t"}, {in: "CREATE TRIGGER g AFTER UPDATE ON t FOR EACH ROW PRECEDES s.h SET @a = 1", want: "TRIGGER g on t"},
		{in: "CREATE EVENT e ON SCHEDULE AT NOW() DISABLE DO SELECT 1", want: "EVENT e state DISABLE at DISABLE"}, {in: "CREATE EVENT e ON SCHEDULE EVERY 1 HOUR enable COMMENT 'x' DO SELECT 1", want: "EVENT e state ENABLE at enable"}, {in: "CREATE EVENT e ON SCHEDULE EVERY 1 HOUR DO SELECT 1", want: "EVENT e"}, {in: "CREATE EVENT e ON SCHEDULE EVERY 1 HOUR DISABLE ON SLAVE DO SELECT 1", want: "EVENT e state DISABLE at DISABLE"}, {in: "CREATE EVENT e ON SCHEDULE EVERY 1 HOUR DO SELECT enable", want: "EVENT e"},
		{in: "CREATE TABLE t (a INT) DATA DIRECTORY '/x' INDEX DIRECTORY='/y', ENGINE=InnoDB", want: "TABLE t without DATA DIRECTORY '/x'|INDEX DIRECTORY='/y',"}, {in: "CREATE TABLE t (a INT) PARTITION BY HASH(a) (PARTITION p DATA DIRECTORY = '/x' ENGINE=InnoDB)", want: "TABLE t without DATA DIRECTORY = '/x'"}, {in: "CREATE TABLE t (a INT) COMMENT=data directory='/x'", want: "TABLE t"}, {in: "CREATE TABLE t (data INT, `index` INT)", want: "TABLE t"},
		{in: "CREATE FUNCTION f(a INT, b ENUM('x','y')) RETURNS ENUM('a', 'b') CHARACTER SET utf8 COLLATE utf8_bin LANGUAGE SQL CONTAINS SQL SQL SECURITY INVOKER COMMENT 'c' RETURN 'a'", want: "FUNCTION f invoker"}, {in: "CREATE FUNCTION f() RETURNS LONG VARCHAR MODIFIES SQL DATA NOT DETERMINISTIC SQL SECURITY INVOKER RETURN 1", want: "FUNCTION f invoker"}, {in: "CREATE FUNCTION f() RETURNS NATIONAL CHAR VARYING(5) BYTE SQL SECURITY INVOKER RETURN 1", want: "FUNCTION f invoker"}, {d: maria, in: "CREATE FUNCTION f() RETURNS TYPE OF s.t.c SQL SECURITY INVOKER RETURN 1", want: "FUNCTION f invoker"}, {d: maria.WithMode("ORACLE"), in: "CREATE FUNCTION f RETURN s.t.c%TYPE SQL SECURITY INVOKER AS BEGIN RETURN 1; END", want: "FUNCTION f invoker"}, {in: "CREATE FUNCTION f() RETURNS CHAR CHARSET utf8 ASCII SQL SECURITY INVOKER RETURN 1", want: "FUNCTION f invoker"}, {d: Dialect{Version: 90000}, in: "CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT USING (l AS m) SQL SECURITY INVOKER AS $$ 1 $$", want: "FUNCTION f invoker"}, {in: "CREATE PROCEDURE p(IN a DECIMAL(5, 2), OUT b INT) SQL SECURITY INVOKER BEGIN END", want: "PROCEDURE p invoker"},
	} {
		x, err := c.d.ReadCreate(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got := shownCreate(c.in, x); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, c.want)
		}
	}
	for in, why := range map[string]string{
		"CREATE": "it is CREATE nothing", "CREATE VIEW": "it has no name", "CREATE TABLE t": "nothing", "CREATE TABLE t (a INT) PARTITION BY HASH (a); x": "X", "CREATE TABLE t ((a))": "no list of columns", "CREATE TABLE a.b.c (a INT)": "no name", "CREATE USER": "no account", "CREATE VIEW a.'b' AS SELECT 1": "no name", "CREATE USER 5": "no account", "CREATE USER a DEFAULT ROLE": "no role", "CREATE USER a; DROP USER b": "another statement follows it, DROP", "CREATE USER a, b": "another account, B", "CREATE USER a DEFAULT ROLE b, 5": "no role", "CREATE ALGORITHM=x VIEW v AS SELECT 1": "it is CREATE X", "CREATE ALGORITHM MERGE VIEW v AS SELECT 1": "MERGE", "CREATE SQL SECURITY x VIEW v AS SELECT 1": "X", "CREATE DEFINER a VIEW v AS SELECT 1": "DEFINER", "CREATE DEFINER= VIEW": "nothing", "CREATE DEFINER=5 VIEW v AS SELECT 1": "DEFINER", "CREATE VIEW v SELECT 1": "no AS", "CREATE TRIGGER g BEFORE INSERT FOR EACH ROW SET a=1": "of no table", "CREATE TRIGGER g BEFORE INSERT ON t SET a=1": "of no table", "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH STATEMENT SET a=1": "of no table", "CREATE EVENT e ON SCHEDULE EVERY 1 DAY": "does nothing", "CREATE FUNCTION f SONAME 'x'": "it loads a library",
		"CREATE TABLE t (a INT) REPLACE SELECT 1": "REPLACE", "CREATE TABLE t (a INT) PARTITION BY HASH (a) TABLE u": "has TABLE", "CREATE TABLE t (a INT) PARTITION BY HASH (a) WITH b AS (SELECT 1) SELECT 2": "has WITH", "CREATE 'x'": `it is CREATE "'x'"`, "DROP TABLE t": "it is DROP and no CREATE", "'x'": "no CREATE", "CREATE TABLE t (a INT) 'x'; 'y'": `follows it, "'y'"`, "CREATE LOGFILE GROUP g": "LOGFILE", "CREATE VIEW v AS SELECT 1;; SELECT 2": "SELECT", "CREATE " + strings.Repeat("x", 50): "it is CREATE " + strings.Repeat("X", 40),
	} {
		if _, err := (Dialect{}).ReadCreate(in); !errors.Is(err, ErrStatement) || !strings.HasSuffix(err.Error(), why) && !strings.Contains(err.Error(), why) {
			t.Errorf("%s: got %v, want %s", in, err, why)
		}
	}
	for _, c := range []struct{ in, definer, want string }{
		{"CREATE DEFINER=a@b VIEW v AS SELECT 1", "`c`@`d`", "CREATE DEFINER=`c`@`d` VIEW v AS SELECT 1"}, {"CREATE DEFINER=a@b VIEW v AS SELECT 1", "", "CREATE  VIEW v AS SELECT 1"}, {"CREATE VIEW v AS SELECT 1", "c@d", "CREATE DEFINER=c@d VIEW v AS SELECT 1"}, {"CREATE OR REPLACE VIEW v AS SELECT 1", "c@d", "CREATE OR REPLACE DEFINER=c@d VIEW v AS SELECT 1"}, {"CREATE VIEW v AS SELECT 1", "", "CREATE VIEW v AS SELECT 1"},
	} {
		if x, err := (Dialect{}).ReadCreate(c.in); err != nil || Apply(c.in, []Edit{x.Replace(c.definer)}) != c.want {
			t.Errorf("%s by %s: %v; want Apply(c.in, []Edit{x.Replace(c.definer)}) %v", c.in, c.definer, err, c.want)
		}
	}
}

// shownCreate is what a CREATE says, as text.
func shownCreate(in string, x *Create) string {
	out := x.Kind + " "
	if x.Name.Schema != "" {
		out += x.Name.Schema + "."
	}
	out += x.Name.Name
	for _, f := range []struct {
		is   bool
		word string
	}{{x.OrReplace, "replaces"}, {x.IfNotExists, "kept"}, {x.Temporary, "temporary"}, {x.Invoker, "invoker"}} {
		if f.is {
			out += " " + f.word
		}
	}
	if x.Account.End > 0 {
		out += " account " + x.Account.String()
	}
	if x.On.End > 0 {
		out += " on " + strings.TrimPrefix(x.On.Schema+"."+x.On.Name, ".")
	}
	if d := x.Definer; d.End > 0 {
		out += " definer " + d.String() + " at " + in[d.Begin:d.End]
	}
	for _, n := range []struct {
		what string
		Ident
	}{{"state", x.State}, {"roles", x.Roles}} {
		if n.End > 0 {
			out += " " + n.what + " " + n.Name + " at " + in[n.Begin:n.End]
		}
	}
	for i, e := range x.Directories {
		out += map[bool]string{true: " without ", false: "|"}[i == 0] + in[e.Begin:e.End]
	}
	return out
}

// TestPrograms: where the statements of stored programs begin. Sources: MySQL manual, "Compound Statement Syntax"; MariaDB documentation, "Programmatic and
// Compound Statements" and "sql_mode=ORACLE".
func TestPrograms(t *testing.T) {
	oracle := Dialect{MariaDB: true, Version: 101106}.WithMode("ORACLE")
	for _, c := range []struct {
		d        Dialect
		in, want string
	}{
		{in: "CREATE PROCEDURE p() SELECT 1;", want: "SELECT"}, {in: "CREATE PROCEDURE p() SELECT 1;;", want: "SELECT"}, {in: "CREATE PROCEDURE p() BEGIN END", want: ""}, {in: "CREATE PROCEDURE p() BEGIN SELECT 1; END;", want: "SELECT"}, {in: "CREATE PROCEDURE p() `l x`: BEGIN SELECT 1; END `l x`", want: "SELECT"}, {in: "CREATE PROCEDURE p() BEGIN NOT ATOMIC SELECT 1; END", want: "SELECT"}, {in: "CREATE PROCEDURE p() BEGIN (SELECT 1); `x`; END", want: "( x"},
		{in: "CREATE PROCEDURE p() IF a THEN SELECT 1; ELSEIF b THEN SELECT 2; ELSE SELECT 3; END IF", want: "IF SELECT ELSEIF SELECT SELECT"}, {in: "CREATE PROCEDURE p() CASE a WHEN 1 THEN SELECT 1; WHEN 2 THEN SELECT 2; ELSE SELECT 3; END CASE", want: "CASE SELECT WHEN SELECT SELECT"}, {in: "CREATE PROCEDURE p() BEGIN SET a = CASE WHEN b THEN c ELSE d END; SELECT CASE e WHEN 1 THEN CASE f WHEN 2 THEN 3 END END; SELECT 2; END", want: "SET SELECT SELECT"}, {in: "CREATE PROCEDURE p() BEGIN IF CASE WHEN a THEN b ELSE c END THEN SELECT 1; END IF; SELECT 2; END", want: "IF SELECT SELECT"}, {in: "CREATE PROCEDURE p() BEGIN SET a = IF(b, c, d); SELECT 1; END", want: "SET SELECT"},
		{in: "CREATE PROCEDURE p() WHILE a DO SELECT 1; SELECT 2; END WHILE", want: "WHILE SELECT SELECT"}, {in: "CREATE PROCEDURE p() REPEAT SELECT 1; SELECT 2; UNTIL a END REPEAT", want: "SELECT SELECT UNTIL"}, {in: "CREATE PROCEDURE p() LOOP SELECT 1; LEAVE l; END LOOP", want: "SELECT LEAVE"}, {in: "CREATE PROCEDURE p() l: LOOP ITERATE l; END LOOP l", want: "ITERATE"}, {in: "CREATE PROCEDURE p() BEGIN SELECT REPEAT('a', 3); DO REPEAT('b', 2); REPEAT SET a = REPEAT('c', 1); UNTIL b END REPEAT; SELECT 2; END", want: "SELECT DO SET UNTIL SELECT"}, {in: "CREATE PROCEDURE p() BEGIN FOR i IN 1..3 DO SELECT i; END FOR; SELECT 2; END", want: "FOR SELECT SELECT"}, {in: "CREATE PROCEDURE p() BEGIN WHILE a DO WHILE b DO SELECT 1; END WHILE; END WHILE; SELECT 2; END", want: "WHILE WHILE SELECT SELECT"},
		{in: "CREATE PROCEDURE p() BEGIN DECLARE a INT DEFAULT 5; DECLARE c CURSOR FOR SELECT 1; DECLARE CONTINUE HANDLER FOR NOT FOUND SET d = 1; OPEN c; END", want: "DECLARE DECLARE DECLARE SET OPEN"}, {in: "CREATE PROCEDURE p() BEGIN DECLARE EXIT HANDLER FOR 1062, SQLSTATE '23000', SQLSTATE VALUE '45000', NOT FOUND, SQLWARNING, my BEGIN SELECT 1; END; SELECT 2; END", want: "DECLARE SELECT SELECT"}, {in: "CREATE PROCEDURE p() BEGIN DECLARE UNDO HANDLER FOR SQLEXCEPTION IF a THEN SELECT 1; END IF; SELECT 2; END", want: "DECLARE IF SELECT SELECT"},
		{in: "CREATE PROCEDURE p() BEGIN SELECT t.case, t.end, begin.x FROM t; `end`.y; SELECT 2; END", want: "SELECT end SELECT"}, {in: "CREATE PROCEDURE p() BEGIN BEGIN SELECT 1; END; BEGIN SELECT 2; END; END", want: "SELECT SELECT"}, {in: "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO IF a THEN SELECT 1; END IF", want: "IF SELECT"}, {in: "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW BEGIN SET NEW.a = 1; SET NEW.b = 2; END", want: "SET SET"}, {in: "CREATE VIEW v AS SELECT CASE a WHEN 1 THEN 2 END", want: "SELECT"},
		{d: oracle, in: "CREATE PROCEDURE p AS a INT; b VARCHAR(5) := 'x'; BEGIN SELECT 1; END", want: "a b SELECT"}, {d: oracle, in: "CREATE PROCEDURE p IS BEGIN SELECT 1; EXCEPTION WHEN a THEN SELECT 2; WHEN OTHERS THEN SELECT 3; END", want: "SELECT WHEN SELECT WHEN SELECT"}, {d: oracle, in: "CREATE PROCEDURE p AS BEGIN <<a>> LOOP SELECT 1; END LOOP; WHILE b LOOP SELECT 2; END LOOP; FOR i IN 1..2 LOOP SELECT 3; END LOOP; DECLARE c INT; BEGIN SELECT 4; END; SELECT 5; END", want: "SELECT WHILE SELECT FOR SELECT DECLARE SELECT SELECT"}, {d: oracle, in: "CREATE PACKAGE k AS PROCEDURE a; FUNCTION b(c INT) RETURN INT; END", want: ""}, {d: oracle, in: "CREATE PACKAGE BODY k AS PROCEDURE a AS PROCEDURE b IS BEGIN SELECT 1; END; BEGIN SELECT 2; END; PROCEDURE c; BEGIN SELECT 3; END", want: "SELECT SELECT SELECT"}, {d: oracle, in: "CREATE PROCEDURE p AS BEGIN IF a THEN SELECT 1; ELSIF b THEN SELECT 2; END IF; GOTO l; END", want: "IF SELECT ELSIF SELECT GOTO"},
	} {
		x, err := c.d.ReadCreate(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		var got []string
		for _, i := range x.statements {
			got = append(got, x.t[i].Text)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.in, s, c.want)
		}
	}
	for _, in := range []string{"BEGIN SELECT 1; END; SELECT 2", "IF a THEN SELECT 1; END IF; SELECT 2", "CASE WHEN a THEN SELECT 1; END CASE; SELECT 2", "WHILE a DO SELECT 1; END WHILE; SELECT 2", "REPEAT SELECT 1; UNTIL a END REPEAT; SELECT 2", "LOOP SELECT 1; END LOOP; SELECT 2", "FOR i IN 1..2 DO SELECT 1; END FOR; SELECT 2", "SELECT CASE WHEN a THEN b END; SELECT 2", "BEGIN DECLARE EXIT HANDLER FOR 1 SELECT 1; END; SELECT 2", "BEGIN END; SELECT 2", "l: BEGIN END l; SELECT 2"} {
		if _, err := (Dialect{MariaDB: true, Version: 101106}).ReadCreate("CREATE PROCEDURE p() " + in); !errors.Is(err, ErrStatement) || !strings.HasSuffix(err.Error(), "another statement follows it, SELECT") {
			t.Errorf("%s: got %v, want that a SELECT follows it", in, err)
		}
	}
}

// TestEdgesOfGrant: what a grant is on, and for whom. Sources: MySQL manual and MariaDB documentation, "GRANT", "REVOKE", "SET DEFAULT ROLE".
func TestEdgesOfGrant(t *testing.T) {
	for in, want := range map[string]string{
		"GRANT SELECT ON *.* TO u": "SELECT@6 ON *.* TO u", "GRANT SELECT, INSERT (a, b) ON s.* TO u@h WITH GRANT OPTION": "SELECT@6 INSERT (a, b)@14 ON s.* schema s TO u@h grantable", "GRANT SELECT ON s.t TO u": "SELECT@6 ON s.t TO u", "GRANT SELECT ON `s%`.* TO u": "SELECT@6 ON s%.* schema s% TO u", "GRANT SELECT ON t TO u": "SELECT@6 ON TO u", "GRANT SELECT ON * TO u": "SELECT@6 ON TO u", "GRANT SELECT ON TABLE s.t TO u": "SELECT@6 ON TO u", "GRANT EXECUTE ON PROCEDURE s.p TO u": "EXECUTE@6 ON TO u", "GRANT PROXY ON a@b TO u": "PROXY@6 ON TO u", "GRANT r TO u": "r@6 TO u", "GRANT r, q@h TO u WITH ADMIN OPTION": "r@6 q@h@9 TO u", "REVOKE ALL PRIVILEGES ON s.t FROM u@h": "ALL PRIVILEGES@7 ON s.t FROM u@h", "REVOKE r FROM u": "r@7 FROM u", "REVOKE GRANT OPTION ON s.* FROM u": "GRANT OPTION@7 ON s.* schema s FROM u", "SET DEFAULT ROLE r TO u": "r@17 TO u", "SET DEFAULT ROLE a, b FOR u": "a@17 b@20 FOR u", "grant select on s.t to current_user()": "select@6 ON s.t TO current_user", "GRANT SELECT (`on`, `to`) ON s.t TO u": "SELECT (`on`, `to`)@6 ON s.t TO u", "GRANT SELECT ON s.t TO u REQUIRE SSL WITH MAX_QUERIES_PER_HOUR 5 GRANT OPTION": "SELECT@6 ON s.t TO u grantable", "GRANT SELECT ON s.t TO u WITH GRANT": "SELECT@6 ON s.t TO u", "GRANT SELECT ON 's'.* TO u": "SELECT@6 ON TO u", "GRANT SELECT ON s.5 TO u": "SELECT@6 ON s.5 TO u", "GRANT SELECT ON s:t TO u": "SELECT@6 ON TO u",
		"GRANT ROLE ON *.* TO u": "ROLE@6 ON *.* TO u",
	} {
		g, err := Dialect{}.ReadGrant(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		var out []string
		for _, p := range g.Privileges {
			if in[p.Begin:p.End] != p.Name {
				t.Errorf("%s: %s stands at %s", in, p.Name, in[p.Begin:p.End])
			}
			out = append(out, fmt.Sprintf("%s@%d", p.Name, p.Begin))
		}
		if g.On > 0 {
			out = append(out, strings.ToUpper(in[g.On:g.On+2]))
		}
		if o := g.Object; o.End > 0 {
			out = append(out, o.Schema+"."+o.Name)
			if got := strings.NewReplacer("`", "", " ", "").Replace(in[o.Begin:o.End]); got != o.Schema+"."+o.Name {
				t.Errorf("%s: the object stands at %s, want %s", in, got, o.Schema+"."+o.Name)
			}
		}
		if s := g.Schema; s.End > 0 {
			out = append(out, "schema "+s.Name)
			if strings.Trim(in[s.Begin:s.End], "`") != s.Name {
				t.Errorf("%s: the schema stands at %s, want strings.Trim(in[s.Begin:s.End], \"`\") %v", in, in[s.Begin:s.End], s.Name)
			}
		}
		word := "TO"
		if strings.Contains(in, " FROM ") {
			word = "FROM"
		} else if strings.Contains(in, " FOR ") {
			word = "FOR"
		}
		out = append(out, word+" "+g.To.String())
		if g.Grantable {
			out = append(out, "grantable")
		}
		if s := strings.Join(out, " "); s != want {
			t.Errorf("%s\n got %s\nwant %s", in, s, want)
		}
	}
	for in, why := range map[string]string{"GRANT": "for nobody", "GRANT SELECT ON s.t": "for nobody", "GRANT SELECT ON s.t FROM u": "for nobody", "REVOKE SELECT ON s.t TO u": "for nobody", "GRANT SELECT ON s.t; x TO u": "for nobody", "GRANT SELECT ON s.t TO 5": "for nobody", "GRANT SELECT ON s.t TO": "for nobody", "GRANT SELECT (TO u": "for nobody", "GRANT SELECT ON s.t TO u, v": "too, V", "GRANT SELECT ON s.t TO u; DROP x": "it, DROP", "SET ROLE r": "it is SET", "GRANT x FOR u": "for nobody", "SET DEFAULT ROLE r": "for nobody", "GRANT SELECT ON s.t TO 'u": "not closed", "": "it is nothing"} {
		if _, err := (Dialect{}).ReadGrant(in); !errors.Is(err, ErrStatement) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: got %v, want %s", in, err, why)
		}
	}
	for _, c := range []struct {
		text, words string
		begin, end  int
	}{
		{"a FOR b", "FOR", 2, 5}, {"FOR b", "FOR", 0, 3}, {"a b FOR", "FOR", 4, 7}, {"a (FOR) b FOR c", "FOR", 10, 13}, {"a ((FOR) FOR) FOR", "FOR", 14, 17}, {"a) FOR", "FOR", 3, 6}, {"a) (b) FOR", "FOR", 7, 10}, {"a.FOR b FOR", "FOR", 8, 11}, {"'FOR' `FOR` /* FOR */ for", "FOR", 22, 25}, {"WITH x WITH GRANT OPTION", "WITH GRANT OPTION", 7, 24}, {"a , b", ",", 2, 3}, {"a", "FOR", -1, -1}, {"", "FOR", -1, -1}, {"(FOR", "FOR", -1, -1}, {"FORX", "FOR", -1, -1},
	} {
		begin, end := Dialect{}.Find(c.text, strings.Fields(c.words)...)
		if begin != c.begin || end != c.end || (Dialect{}).Has(c.text, strings.Fields(c.words)...) != (c.begin >= 0) {
			t.Errorf("%s in %s: got %d to %d, want %d to %d", c.words, c.text, begin, end, c.begin, c.end)
		}
	}
	for _, c := range []struct {
		a    Account
		want string
	}{{Account{User: "u", Host: "h"}, "u@h"}, {Account{User: "u", NoHost: true}, "u"}, {Account{User: "u"}, "u@"}} {
		if got := c.a.String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// TestEscapes: what a string is worth. Source: MySQL manual, "String Literals", escape sequences.
func TestEscapes(t *testing.T) {
	for in, want := range map[string]string{`'\0\'\"\b\n\r\t\Z\\\%\_\x'`: "\x00'\"\b\n\r\t\x1a\\\\%\\_x", `"a""b'c"`: `a"b'c`, `'a''b"c'`: `a'b"c`, `'a\'`: "a'", `n'a\nb'`: "a\nb", `_utf8'a''b'`: "a'b", "'a": "a", "x'41'": "41"} {
		if got := (Dialect{}).Value(Tokens(in)[0]); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
	for s, want := range map[string]string{"a b": "a b", "é": "é", "": "", "a\nb": `"a\nb"`, "\x1b[2J": `"\x1b[2J"`, `a"b`: `"a\"b"`, "\xff": `"\xff"`, `a\b`: `"a\\b"`} {
		if got := Printable(s); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}
