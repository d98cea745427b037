package sqltext

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestReadCreate(t *testing.T) {
	oracle := Dialect{MariaDB: true, Version: 101119}.WithMode("ORACLE")
	for _, c := range []struct {
		d        Dialect
		in, want string // kind name definer, and how its statements begin
	}{
		{in: "CREATE ALGORITHM=UNDEFINED DEFINER=`a``b`@`%` SQL SECURITY DEFINER VIEW `s`.`v` AS select 1", want: "VIEW s.v a`b@% select"},
		{in: "create or replace temporary table if not exists t (a int default (1), key (a)) engine=InnoDB comment='as select' /*!50100 partition by hash (a) */", want: "TABLE .t "},
		{in: "CREATE TABLE `t` (`a` int) WITH SYSTEM VERSIONING PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1) ENGINE = InnoDB)", want: "TABLE .t "},
		{in: "CREATE DEFINER=CURRENT_USER() PROCEDURE p (IN a INT) COMMENT 'x' NOT DETERMINISTIC SQL SECURITY INVOKER UPDATE t SET a = 1;", want: "PROCEDURE .p CURRENT_USER UPDATE"},
		{in: "CREATE PROCEDURE p() l: BEGIN DECLARE EXIT HANDLER FOR NOT FOUND, SQLSTATE VALUE '01000' BEGIN END; IF a THEN SELECT CASE a WHEN 1 THEN 2 ELSE 3 END; " +
			"ELSEIF b THEN DELETE FROM t; ELSE CASE b WHEN 1 THEN INSERT INTO t VALUES (1); ELSE BEGIN END; END CASE; END IF; REPEAT SET x = 1; UNTIL a END REPEAT; " +
			"w: WHILE EXISTS (SELECT 1) DO LEAVE w; END WHILE w; LOOP ITERATE l; END LOOP; END l", want: "PROCEDURE .p  DECLARE IF SELECT ELSEIF DELETE CASE INSERT SET UNTIL WHILE LEAVE ITERATE"},
		{in: "CREATE FUNCTION f() RETURNS varchar(10) CHARSET utf8mb4 COLLATE utf8mb4_bin DETERMINISTIC RETURN 'a;b'", want: "FUNCTION .f  RETURN"},
		{in: "CREATE FUNCTION f(a DECIMAL(5,2)) RETURNS decimal(10,2) unsigned BEGIN RETURN end.a; END", want: "FUNCTION .f  RETURN"},
		{in: "CREATE FUNCTION f() RETURNS double READS SQL DATA BEGIN DECLARE r DOUBLE; RETURN r; END", want: "FUNCTION .f  DECLARE RETURN"},
		{in: "CREATE FUNCTION f() RETURNS double\nBEGIN RETURN 1; END", want: "FUNCTION .f  RETURN"},
		{in: "CREATE FUNCTION f() RETURNS DOUBLE PRECISION UNSIGNED NO SQL RETURN 1", want: "FUNCTION .f  RETURN"},
		{in: "CREATE PROCEDURE p() BEGIN WHILE i < 3 DO UPDATE slots SET end = NOW() WHERE id = i; SET i = i + 1; END WHILE; LOOP SELECT start, end INTO a, b FROM slots; END LOOP; SELECT 1; END", want: "PROCEDURE .p  WHILE UPDATE SET SELECT SELECT"},
		{in: "CREATE DEFINER='a'@'b' TRIGGER s . /* x */ g AFTER INSERT ON s.t FOR EACH ROW FOLLOWS h SET @a = 1", want: "TRIGGER s.g a@b SET"},
		{in: "CREATE EVENT e ON SCHEDULE EVERY 1 DAY STARTS '2020-01-01' ON COMPLETION NOT PRESERVE ENABLE COMMENT 'do' DO BEGIN SELECT 1; END", want: "EVENT .e  SELECT"},
		{in: "/*!50003 CREATE*/ /*!50017 DEFINER=`r`@`h`*/ /*!50003 TRIGGER g BEFORE DELETE ON t FOR EACH ROW DO 1 */", want: "TRIGGER .g r@h DO"},
		{in: "CREATE SEQUENCE `q` start with 1 minvalue 1 cycle ENGINE=InnoDB", want: "SEQUENCE .q  start"},
		{in: "CREATE USER `u`@`%` IDENTIFIED WITH 'p' AS 'x,y' DEFAULT ROLE `a`@`%`,`b`@`%` REQUIRE NONE", want: "USER .u "},
		{d: oracle, in: "CREATE PROCEDURE p (a INT) AS b INT; CURSOR c IS SELECT 1; BEGIN <<l>> FOR i IN 1..3 LOOP SELECT i; END LOOP; EXCEPTION WHEN OTHERS THEN NULL; END;",
			want: "PROCEDURE .p  b CURSOR FOR SELECT WHEN NULL"},
		{d: oracle, in: `CREATE PACKAGE BODY "k" AS x INT; PROCEDURE p AS BEGIN DELETE FROM t; END; FUNCTION f RETURN INT AS BEGIN RETURN 1; END; BEGIN SET x = 1; END`, want: "PACKAGE BODY .k  x DELETE RETURN SET"},
		{d: Dialect{MariaDB: true}, in: "CREATE PACKAGE k PROCEDURE p(); FUNCTION f() RETURNS INT; END", want: "PACKAGE .k "},
		{d: Dialect{MariaDB: true}, in: "CREATE PACKAGE BODY k PROCEDURE p() BEGIN SELECT 1; END; FUNCTION f() RETURNS INT RETURN 1; END", want: "PACKAGE BODY .k  SELECT RETURN"},
		{d: Dialect{Version: 90704}, in: "CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS $$ return '; DROP' $$", want: "FUNCTION .f  AS"},
	} {
		got, err := c.d.ReadCreate(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		definer := ""
		if got.Definer.End > 0 {
			definer = got.Definer.String()
		}
		s := fmt.Sprintf("%s %s.%s %s", got.Kind, got.Name.Schema, got.Name.Name, definer)
		for _, i := range got.statements {
			s += " " + got.t[i].Text
		}
		if s != c.want {
			t.Errorf("%s\n is %s\nwant %s", c.in, s, c.want)
		}
	}
}

func TestReadCreateRefuses(t *testing.T) {
	for in, why := range map[string]string{
		"": "nothing", "GRANT ALL ON *.* TO u": "GRANT", "SET GLOBAL a = 1": "SET", "CREATE INDEX i ON t (a)": "INDEX",
		"CREATE PROCEDURE p() SELECT 1; DROP DATABASE d":                                     "DROP",
		"CREATE PROCEDURE p() BEGIN SELECT 1; END; DROP DATABASE d":                          "DROP",
		"CREATE PROCEDURE p() BEGIN IF a THEN SELECT 1; END IF; END; DROP DATABASE d":        "DROP",
		"CREATE VIEW v AS SELECT 1; SET GLOBAL a = 1":                                        "SET",
		"CREATE TABLE t (a int) AS SELECT 1":                                                 "AS",
		"CREATE TABLE t (a int) ENGINE=InnoDB SELECT 1":                                      "SELECT",
		"CREATE TABLE t (a int) IGNORE (SELECT 1)":                                           "IGNORE",
		"CREATE TABLE t (a int) WITH x AS (SELECT 1) SELECT 2":                               "WITH",
		"CREATE TABLE t LIKE u":                                                              "LIKE",
		"CREATE TABLE t (LIKE u)":                                                            "no list of columns",
		"CREATE TABLE t SELECT 1":                                                            "SELECT",
		"CREATE TABLE t (a int) START TRANSACTION":                                           "START",
		"CREATE TABLE t (a int); DROP TABLE u":                                               "DROP",
		"CREATE FUNCTION f RETURNS STRING SONAME 'x.so'":                                     "library",
		"CREATE AGGREGATE FUNCTION f RETURNS REAL SONAME 'x.so'":                             "library",
		"CREATE USER a@b IDENTIFIED BY 'x', c@d":                                             "another account",
		"CREATE ROLE a, b":                                                                   "another account",
		"CREATE EVENT e ON SCHEDULE EVERY 1 DAY; DROP DATABASE d; DO 1":                      "does nothing",
		"CREATE PROCEDURE p() SELECT 'a":                                                     "not closed",
		"CREATE PROCEDURE p() SELECT 1 /* a":                                                 "not closed",
		"CREATE PROCEDURE p() SELECT 1 /*!50000 + 1":                                         "not closed",
		"CREATE PROCEDURE p() SELECT 1 \x00":                                                 "NUL",
		"CREATE DEFINER=a@b DEFINER=c@d VIEW v AS SELECT 1":                                  "DEFINER",
		"CREATE VIEW a.b.c AS SELECT 1":                                                      "no name",
		"CREATE /*!50000 DATABASE x */ /* VIEW v AS SELECT 1 */; CREATE VIEW v AS SELECT 1 ": "another statement",
	} {
		if _, err := (Dialect{}).ReadCreate(in); !errors.Is(err, ErrStatement) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %s", in, err, why)
		}
	}
}
