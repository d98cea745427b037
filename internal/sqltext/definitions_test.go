package sqltext

import (
	"fmt"
	"strings"
	"testing"
)

// TestEdgesOfChange: clauses of each statement that changes something, on both sides of what they mean. Sources: MySQL manual, "ALTER TABLE", "RENAME
// TABLE", "CREATE USER", "DELETE"; MariaDB documentation, "ALTER TABLE", "SET STATEMENT".
func TestEdgesOfChange(t *testing.T) {
	maria := Dialect{MariaDB: true, Version: 101106}
	for in, want := range map[string]string{
		"CREATE TABLE o (a INT) (SELECT 1)": "CREATE TABLE o filled", "CREATE TABLE o (a INT) VALUES ROW(1)": "CREATE TABLE o filled", "CREATE TABLE o (a INT, b INT AS (a + 1))": "CREATE TABLE o", "CREATE TABLE o ((a INT)) TABLE p": "CREATE TABLE o filled", "CREATE TABLE o (a INT, PARTITION p VALUES IN (1))": "CREATE TABLE o", "CREATE TABLE o": "CREATE TABLE o", "CREATE TEMPORARY TABLE s.o (a INT)": "CREATE TABLE s.o temporary", "CREATE VIEW IF NOT EXISTS v AS SELECT 1": "CREATE VIEW v kept", "CREATE OR REPLACE VIEW v AS SELECT 1": "CREATE VIEW v replaces", "CREATE TRIGGER IF NOT EXISTS s.g AFTER DELETE ON o FOR EACH ROW SET @a = 1": "CREATE TRIGGER s.g @ o kept", "CREATE TRIGGER g": "CREATE TRIGGER g", "CREATE SERVER x FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')": "CREATE SERVER x", "CREATE RESOURCE GROUP g TYPE = USER": "CREATE RESOURCE GROUP g", "CREATE UNDO TABLESPACE u ADD DATAFILE 'x'": "CREATE UNDO TABLESPACE u", "CREATE LOGFILE GROUP l ADD UNDOFILE 'x'": "CREATE LOGFILE GROUP l", "CREATE LIBRARY s.l LANGUAGE JAVASCRIPT AS $$ 1 $$": "CREATE LIBRARY s.l", "CREATE SPATIAL INDEX i ON o (a)": "ALTER TABLE o", "CREATE VECTOR INDEX i ON o (a)": "ALTER TABLE o", "CREATE FULLTEXT INDEX IF NOT EXISTS i ON s.o (a)": "ALTER TABLE s.o", "CREATE INDEX i": "", "CREATE ONLINE UNIQUE INDEX i ON o (a)": "ALTER TABLE o", "CREATE INDEX i ON 5": "", "DROP SPATIAL REFERENCE SYSTEM IF EXISTS 5": "DROP SPATIAL REFERENCE SYSTEM", "DROP TEMPORARY TABLES o, s.p": "DROP TABLE o s.p temporary", "DROP INDEX `PRIMARY` ON s.o": "ALTER TABLE s.o", "DROP TABLE": "", "DROP VIEW": "", "DROP DATABASE": "DROP DATABASE", "DROP SCHEMA s": "DROP DATABASE s", "DROP FUNCTION s.f": "DROP FUNCTION s.f", "DROP EVENT e": "DROP EVENT e", "DROP SEQUENCE a, b": "DROP SEQUENCE a b", "DROP ROLE a, b@c": "DROP ROLE a b@c", "DROP USER": "DROP USER",
		"ALTER TABLE o ADD a INT, RENAME p": "ALTER TABLE o > p more", "ALTER TABLE o DROP CHECK c, RENAME p": "ALTER TABLE o > p more constraints c", "ALTER TABLE o RENAME AS p": "ALTER TABLE o > p more", "ALTER TABLE o RENAME s.p, DROP CHECK c": "ALTER TABLE o > s.p more constraints c", "ALTER TABLE o RENAME KEY a TO b": "ALTER TABLE o", "ALTER TABLE o RENAME COLUMN a TO b, RENAME INDEX c TO d": "ALTER TABLE o", "ALTER TABLE o RENAME TO p, DISCARD TABLESPACE": "ALTER TABLE o > p moves more", "ALTER TABLE o ADD (a INT REFERENCES p (b))": "ALTER TABLE o more", "ALTER TABLE o ADD a INT DEFAULT (rename)": "ALTER TABLE o", "ALTER TABLE o ADD a ENUM('x') COMMENT 'UNION'": "ALTER TABLE o", "ALTER TABLE o ADD `union` INT, ADD `partition` INT": "ALTER TABLE o", "ALTER TABLE o EXCHANGE PARTITION p WITH TABLE q WITH VALIDATION, RENAME TO r": "ALTER TABLE o q > r moves more", "ALTER TABLE o EXCHANGE PARTITION p": "ALTER TABLE o moves more", "ALTER TABLE o CONVERT TABLE p TO PARTITION q VALUES IN (1), ADD CONSTRAINT c CHECK (a)": "ALTER TABLE o p moves more checks c", "ALTER TABLE o CONVERT TO CHARACTER SET utf8, DROP CHECK c": "ALTER TABLE o constraints c", "ALTER TABLE o TRUNCATE PARTITION ALL": "ALTER TABLE o moves empties", "ALTER TABLE o COALESCE PARTITION 2": "ALTER TABLE o moves", "ALTER TABLE o REORGANIZE PARTITION a INTO (PARTITION b VALUES IN (1))": "ALTER TABLE o moves", "ALTER TABLE o PARTITION BY HASH (a)": "ALTER TABLE o moves", "ALTER TABLE o REMOVE PARTITIONING": "ALTER TABLE o", "ALTER TABLE o IMPORT TABLESPACE": "ALTER TABLE o moves", "ALTER TABLE o ADD SYSTEM VERSIONING": "ALTER TABLE o moves", "ALTER TABLE o ENGINE = BLACKHOLE": "ALTER TABLE o moves", "ALTER TABLE o ADD CHECK (a IN (SELECT partition))": "ALTER TABLE o", "ALTER TABLE o": "ALTER TABLE o", "ALTER IGNORE TABLE s.o ADD UNIQUE (a)": "ALTER TABLE s.o moves", "ALTER OFFLINE TABLE o FORCE": "ALTER TABLE o", "ALTER TABLE o DROP CONSTRAINT a, DROP FOREIGN KEY b, ALTER CHECK c ENFORCED, DROP PRIMARY KEY": "ALTER TABLE o constraints a b c", "ALTER TABLE o ADD FOREIGN KEY b (c) REFERENCES s.p (d), DROP CONSTRAINT e": "ALTER TABLE o more constraints e", "ALTER TABLE o ADD CONSTRAINT a PRIMARY KEY (b), ADD CONSTRAINT CHECK (c), ADD CONSTRAINT `d` CHECK (c)": "ALTER TABLE o checks d", "ALTER TABLE o ADD CONSTRAINT a UNIQUE (b), DROP PARTITION p": "ALTER TABLE o moves empties", "ALTER TABLE o ADD (CONSTRAINT a CHECK (b)), RENAME p": "ALTER TABLE o > p more checks a", "ALTER TABLE o ADD CONSTRAINT IF NOT EXISTS a CHECK (b), DROP FOREIGN KEY IF EXISTS c, DROP CHECK IF EXISTS d": "ALTER TABLE o constraints c d checks a",
		"ALTER DATABASE CHARACTER SET utf8": "ALTER DATABASE", "ALTER DATABASE DEFAULT COLLATE x": "ALTER DATABASE", "ALTER SCHEMA CHARSET utf8": "ALTER DATABASE", "ALTER DATABASE ENCRYPTION 'Y'": "ALTER DATABASE", "ALTER DATABASE READ ONLY = 1": "ALTER DATABASE", "ALTER DATABASE COMMENT 'x'": "ALTER DATABASE", "ALTER DATABASE `default` COMMENT 'x'": "ALTER DATABASE default", "ALTER EVENT s.e RENAME TO s.f": "ALTER EVENT s.e > s.f", "ALTER EVENT e ENABLE": "ALTER EVENT e", "ALTER EVENT e DO RENAME TABLE a TO b": "ALTER EVENT e", "ALTER PROCEDURE p COMMENT 'x'": "ALTER PROCEDURE p", "ALTER DEFINER=a@b VIEW v AS SELECT 1": "ALTER VIEW v", "ALTER SEQUENCE IF EXISTS s RESTART": "ALTER SEQUENCE s", "ALTER TABLESPACE t RENAME TO u": "ALTER TABLESPACE t", "ALTER SERVER s OPTIONS (USER 'x')": "ALTER SERVER s",
		"CREATE USER a IDENTIFIED BY 'x', b@c": "CREATE USER a b@c", "CREATE USER a IDENTIFIED WITH p AS 'x' REQUIRE SSL, b": "CREATE USER a", "CREATE USER a, b PASSWORD EXPIRE NEVER, c": "CREATE USER a b", "CREATE USER a IDENTIFIED BY PASSWORD 'x', b": "CREATE USER a b", "CREATE USER a PASSWORD HISTORY 5, b": "CREATE USER a", "CREATE USER a PASSWORD REUSE INTERVAL 5 DAY, b": "CREATE USER a", "CREATE USER a PASSWORD REQUIRE CURRENT, b": "CREATE USER a", "CREATE USER a ACCOUNT LOCK, b": "CREATE USER a", "CREATE USER a ATTRIBUTE '{}', b": "CREATE USER a", "CREATE USER a COMMENT 'x', b": "CREATE USER a", "CREATE USER a DEFAULT ROLE b, c": "CREATE USER a", "CREATE USER a WITH MAX_QUERIES_PER_HOUR 5, b": "CREATE USER a", "CREATE USER a IDENTIFIED VIA p USING PASSWORD('x', 'y') OR q, b": "CREATE USER a b", "CREATE USER a; b, c": "CREATE USER a", "CREATE USER a@b, CURRENT_USER()": "CREATE USER a@b CURRENT_USER", "ALTER USER a IDENTIFIED BY 'x' REPLACE 'y', b IDENTIFIED BY 'z'": "ALTER USER a b", "RENAME USER a TO b": "RENAME USER a > b", "CREATE ROLE a, b": "CREATE ROLE a b",
		"RENAME TABLE a TO b, s.c TO d": "RENAME TABLE a s.c > b d", "RENAME TABLE a TO 5": "", "RENAME TABLE a b": "", "RENAME TABLE a NOWAIT TO b": "RENAME TABLE a > b", "RENAME TABLES IF EXISTS a TO b": "RENAME TABLE a > b", "RENAME x": "", "TRUNCATE TABLE s.o": "TRUNCATE TABLE s.o", "TRUNCATE": "",
		"INSERT INTO o VALUES (1)": "INSERT TABLE o", "INSERT INTO o SELECT * FROM p, q": "INSERT TABLE o", "REPLACE INTO s.o SELECT 1": "INSERT TABLE s.o", "LOAD XML INFILE 'x' INTO TABLE o": "INSERT TABLE o", "INSERT": "", "UPDATE": "", "UPDATE s.o, o SET s.o.a = 1": "UPDATE TABLE s.o o", "UPDATE o SET a = 1": "UPDATE TABLE o", "DELETE a FROM o a, o b": "DELETE TABLE o", "DELETE o FROM o JOIN p": "DELETE TABLE o", "DELETE s.o FROM s.o JOIN p": "DELETE TABLE s.o", "DELETE s.o FROM o JOIN p": "DELETE TABLE o", "DELETE o FROM s.o JOIN p": "DELETE TABLE s.o", "DELETE s.o FROM t.o JOIN p": "DELETE TABLE t.o p", "DELETE A FROM o AS a JOIN p": "DELETE TABLE o", "DELETE O FROM o JOIN p": "DELETE TABLE o", "DELETE `a` FROM o AS `a` JOIN p": "DELETE TABLE o", "DELETE a FROM o `a` JOIN p": "DELETE TABLE o", "DELETE o, p FROM o JOIN p JOIN q": "DELETE TABLE o p", "DELETE s.a FROM o a JOIN p": "DELETE TABLE o p", "DELETE FROM o, p USING o JOIN p JOIN q": "DELETE TABLE o p", "DELETE FROM o": "DELETE TABLE o", "DELETE FROM o WHERE a; DELETE FROM p": "DELETE TABLE o p", "WITH c AS (SELECT 1) DELETE c2 FROM o c2 JOIN c": "DELETE TABLE o", "DELETE FROM o FOR PORTION OF p FROM '2000-01-01' TO '2001-01-01'": "DELETE TABLE o",
		"SET STATEMENT a = 1 FOR RENAME TABLE b TO c": "RENAME TABLE b > c", "SET STATEMENT a = 1 FOR CREATE TRIGGER g AFTER DELETE ON o FOR EACH ROW SET @a = 1": "CREATE TRIGGER g @ o", "SET STATEMENT a = 1 FOR ALTER TABLE o DROP CHECK b, ADD CONSTRAINT c CHECK (d)": "ALTER TABLE o constraints b checks c", "SET STATEMENT a = 1": "", "SET STATEMENT FOR DROP TABLE o": "DROP TABLE o", "SET a = 1 FOR DROP TABLE o": "", "SET": "",
	} {
		got := ""
		x, ok := maria.ReadChange(in)
		if ok {
			got = shownChange(t, in, x)
			for _, list := range [][]Ident{x.Names, x.To, {x.On}, x.Constraints, x.Checks} {
				for _, n := range list {
					if place := in[n.Begin:n.End]; n.End > 0 && strings.NewReplacer("`", "", " ", "", "()", "").Replace(place) != strings.TrimPrefix(n.Schema+"."+n.Name, ".") {
						t.Errorf("%s: %s.%s stands at %q", in, n.Schema, n.Name, place)
					}
				}
			}
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
	for kind, in := range map[string]bool{"TABLE": true, "VIEW": true, "TRIGGER": true, "PROCEDURE": true, "FUNCTION": true, "EVENT": true, "SEQUENCE": true, "PACKAGE": true, "PACKAGE BODY": true, "LIBRARY": true, "DATABASE": false, "USER": false, "ROLE": false, "SERVER": false, "TABLESPACE": false, "": false} {
		if got := (Change{Kind: kind}).InSchema(); got != in {
			t.Errorf("%s: got %v in a schema, want %v", kind, got, in)
		}
	}
}

// TestEdgesOfRename: which names are a schema's, and which only look like one. Source: MySQL manual, "Identifier Qualifiers".
func TestEdgesOfRename(t *testing.T) {
	to := func(schema string) (string, bool) { return "n", schema == "s" }
	oracle := Dialect{MariaDB: true, Version: 101106}.WithMode("ORACLE")
	for _, c := range []struct {
		d              Dialect
		in, want, left string // ☃ is the other name
	}{
		{in: "SELECT s.a FROM t", want: "SELECT ☃.a FROM t"}, {in: "SELECT s.a FROM s", want: "SELECT s.a FROM s"}, {in: "SELECT s.a FROM t s", want: "SELECT s.a FROM t s"}, {in: "SELECT s.a FROM t AS s", want: "SELECT s.a FROM t AS s"}, {in: "SELECT s.a FROM (SELECT 1) s", want: "SELECT s.a FROM (SELECT 1) s"}, {in: "SELECT s.a FROM `t` `s`", want: "SELECT s.a FROM `t` `s`"}, {in: "SELECT s.t.a, s.t.* FROM s", want: "SELECT ☃.t.a, ☃.t.* FROM s"}, {in: "SELECT s.f(1), s.a FROM s", want: "SELECT ☃.f(1), s.a FROM s"}, {in: "SELECT s.* FROM t", want: "SELECT s.* FROM t"}, {in: "SELECT * FROM s.t JOIN s.u, (s.v)", want: "SELECT * FROM ☃.t JOIN ☃.u, (☃.v)"}, {in: "SELECT a.s.b, a.s FROM x.s", want: "SELECT a.s.b, a.s FROM x.s"}, {in: "SELECT s FROM t", want: "SELECT s FROM t"}, {in: "SELECT @s.a, @@s.a, @`s`.b", want: "SELECT @s.a, @@s.a, @`s`.b"}, {in: "SELECT s.a, s AS b FROM t", want: "SELECT ☃.a, s AS b FROM t"}, {in: "SELECT b AS s, s.a FROM t", want: "SELECT b AS s, s.a FROM t"}, {in: "SELECT DISTINCT s, s.a FROM t WHERE s AND s OR NOT s GROUP BY s HAVING s ORDER BY s LIMIT s", want: "SELECT DISTINCT s, ☃.a FROM t WHERE s AND s OR NOT s GROUP BY s HAVING s ORDER BY s LIMIT s"}, {in: "SELECT s.a FROM t WHERE CASE s WHEN s THEN s ELSE s END", want: "SELECT ☃.a FROM t WHERE CASE s WHEN s THEN s ELSE s END"}, {in: "SELECT (s) , s.a FROM t", want: "SELECT (s) , ☃.a FROM t"},
		{in: "CALL s.p()", want: "CALL ☃.p()"}, {in: "CALL s.p", want: "CALL ☃.p"}, {in: "TRUNCATE TABLE s.t", want: "TRUNCATE TABLE ☃.t"}, {in: "TRUNCATE s.t", want: "TRUNCATE ☃.t"}, {in: "DROP TRIGGER s.g", want: "DROP TRIGGER ☃.g"}, {in: "DROP EVENT s.e", want: "DROP EVENT ☃.e"}, {in: "DROP VIEW s.v, s.w", want: "DROP VIEW ☃.v, ☃.w"}, {in: "DROP PROCEDURE s.p", want: "DROP PROCEDURE ☃.p"}, {in: "DROP SEQUENCE s.q", want: "DROP SEQUENCE ☃.q"}, {in: "HANDLER s.t OPEN", want: "HANDLER ☃.t OPEN"}, {in: "LOCK TABLES s.t READ, s.u WRITE", want: "LOCK TABLES ☃.t READ, ☃.u WRITE"},
		{in: "SELECT NEXT VALUE FOR s.q, s.a FROM s", want: "SELECT NEXT VALUE FOR ☃.q, s.a FROM s"}, {in: "SELECT NEXTVAL(s.q), LASTVAL(s.q), SETVAL(s.q, 1), MAX(s.q) FROM s", want: "SELECT NEXTVAL(☃.q), LASTVAL(☃.q), SETVAL(☃.q, 1), MAX(s.q) FROM s"}, {d: oracle, in: "CREATE PROCEDURE p AS a s.t%ROWTYPE; BEGIN SELECT s.b FROM s; END", want: "CREATE PROCEDURE p AS a ☃.t%ROWTYPE; BEGIN SELECT s.b FROM s; END"}, {in: "CREATE PROCEDURE p() BEGIN DECLARE a ROW TYPE OF s.t; SELECT s.b FROM s; END", want: "CREATE PROCEDURE p() BEGIN DECLARE a ROW TYPE OF ☃.t; SELECT s.b FROM s; END"}, {in: "CREATE PROCEDURE p() BEGIN FOR s IN (SELECT 1) DO SELECT s.a; END FOR; END", want: "CREATE PROCEDURE p() BEGIN FOR s IN (SELECT 1) DO SELECT s.a; END FOR; END"}, {in: "CREATE PROCEDURE p() BEGIN DECLARE s CURSOR FOR SELECT 1; SELECT s.a; END", want: "CREATE PROCEDURE p() BEGIN DECLARE s CURSOR FOR SELECT 1; SELECT s.a; END"},
		{in: "DELETE s.t FROM s.t, u", want: "DELETE ☃.t FROM ☃.t, u"}, {in: "DELETE s.t, s.u.* FROM s.t, s.u, s", want: "DELETE ☃.t, ☃.u.* FROM ☃.t, ☃.u, s"}, {in: "DELETE FROM s.t USING s.t, s", want: "DELETE FROM ☃.t USING ☃.t, s"}, {in: "DELETE FROM s WHERE s.a", want: "DELETE FROM s WHERE s.a"}, {in: "DELETE FROM t USING t, s WHERE s.a", want: "DELETE FROM t USING t, s WHERE s.a"}, {in: "DELETE QUICK s.t FROM s.t, s", want: "DELETE QUICK ☃.t FROM ☃.t, s"},
		{in: "USE s", want: "USE ☃"}, {in: "SELECT 1 USE s", want: "SELECT 1 USE s"}, {in: "DROP DATABASE s", want: "DROP DATABASE ☃"}, {in: "CREATE SCHEMA IF NOT EXISTS s", want: "CREATE SCHEMA IF NOT EXISTS ☃"}, {in: "CREATE DATABASE s COMMENT 's'", want: "CREATE DATABASE ☃ COMMENT 's'"}, {in: "DATABASE s", want: "DATABASE s"}, {in: "ALTER DATABASE `s` CHARACTER SET s", want: "ALTER DATABASE ☃ CHARACTER SET s"}, {in: "DROP TABLE IF EXISTS s", want: "DROP TABLE IF EXISTS s"},
		{in: "SHOW TABLES FROM s", want: "SHOW TABLES FROM ☃"}, {in: "SHOW FULL TABLES IN s LIKE 'a'", want: "SHOW FULL TABLES IN ☃ LIKE 'a'"}, {in: "SHOW COLUMNS FROM s", want: "SHOW COLUMNS FROM s"}, {in: "SHOW FULL FIELDS FROM t IN s", want: "SHOW FULL FIELDS FROM t IN ☃"}, {in: "SHOW INDEX IN s FROM s", want: "SHOW INDEX IN s FROM ☃"}, {in: "SHOW KEYS FROM s.t", want: "SHOW KEYS FROM ☃.t"}, {in: "SHOW INDEXES FROM t FROM s", want: "SHOW INDEXES FROM t FROM ☃"}, {in: "SHOW TABLE STATUS FROM s", want: "SHOW TABLE STATUS FROM ☃"}, {in: "SELECT a FROM s", want: "SELECT a FROM s"}, {in: "SHOW TABLES; SELECT 1 FROM s", want: "SHOW TABLES; SELECT 1 FROM s"}, {in: "SHOW EVENTS IN s", want: "SHOW EVENTS IN ☃"},
		{in: "GRANT SELECT ON s.* TO s@s", want: "GRANT SELECT ON ☃.* TO s@s"}, {in: "GRANT SELECT (s) ON s.s TO u", want: "GRANT SELECT (s) ON ☃.s TO u"}, {in: "REVOKE SELECT ON `s`.* FROM u", want: "REVOKE SELECT ON ☃.* FROM u"}, {in: "GRANT SELECT ON `_`.* TO u", want: "GRANT SELECT ON `_`.* TO u", left: "`_`"}, {in: "GRANT SELECT ON `s%`.t TO u", want: "GRANT SELECT ON `s%`.t TO u"}, {in: "GRANT SELECT ON *.* TO u", want: "GRANT SELECT ON *.* TO u"}, {in: "GRANT s TO u", want: "GRANT s TO u"}, {in: "GRANT SELECT (`a_b`) ON s.t TO u", want: "GRANT SELECT (`a_b`) ON ☃.t TO u"}, {in: "REVOKE SELECT ON `s%`.* FROM u", want: "REVOKE SELECT ON `s%`.* FROM u"},
		{in: "CREATE TRIGGER s.g BEFORE INSERT ON s.t FOR EACH ROW SET NEW.a = s.b", want: "CREATE TRIGGER ☃.g BEFORE INSERT ON ☃.t FOR EACH ROW SET NEW.a = ☃.b"}, {in: "CREATE TRIGGER g BEFORE INSERT ON s.t FOR EACH ROW INSERT INTO s VALUES (1)", want: "CREATE TRIGGER g BEFORE INSERT ON ☃.t FOR EACH ROW INSERT INTO s VALUES (1)"}, {in: "CREATE PROCEDURE p() BEGIN SELECT 1 FROM s; CALL s.q; END", want: "CREATE PROCEDURE p() BEGIN SELECT 1 FROM s; CALL ☃.q; END"}, {in: "CREATE PROCEDURE p() WITH s AS (SELECT 1 a) SELECT s.a FROM s", want: "CREATE PROCEDURE p() WITH s AS (SELECT 1 a) SELECT s.a FROM s"}, {in: "CREATE VIEW s.v AS TABLE s.t", want: "CREATE VIEW ☃.v AS TABLE ☃.t"}, {in: "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES s.u (b))", want: "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES ☃.u (b))"}, {in: "CREATE SEQUENCE s.q", want: "CREATE SEQUENCE ☃.q"}, {in: "CREATE TABLE s.t (a INT DEFAULT (NEXTVAL(s.q)))", want: "CREATE TABLE ☃.t (a INT DEFAULT (NEXTVAL(☃.q)))"}, {in: "CREATE EVENT s.e ON SCHEDULE EVERY 1 DAY DO SELECT 1", want: "CREATE EVENT ☃.e ON SCHEDULE EVERY 1 DAY DO SELECT 1"},
		{in: "SELECT 's', 'x s.t y', 'sx', 'x_s', 's$', 'x-s-y', '(s)' FROM t", want: "SELECT 's', 'x s.t y', 'sx', 'x_s', 's$', 'x-s-y', '(s)' FROM t", left: "'s'|'x s.t y'|'x-s-y'|'(s)'"}, {in: "SELECT 1 COMMENT 's'", want: "SELECT 1 COMMENT 's'"}, {in: "CREATE TABLE t (a INT COMMENT 's') COMMENT = 's'", want: "CREATE TABLE t (a INT COMMENT 's') COMMENT = 's'"}, {in: "CREATE DEFINER='s'@'s' VIEW v AS SELECT 1", want: "CREATE DEFINER='s'@'s' VIEW v AS SELECT 1"}, {in: "SELECT a = 's'", want: "SELECT a = 's'", left: "'s'"}, {in: "SELECT 'é`s`é'", want: "SELECT 'é`s`é'", left: "'é`s`é'"},
		{in: "PREPARE a FROM @b", want: "PREPARE a FROM @b", left: "PREPARE a FROM @b"}, {in: "EXECUTE IMMEDIATE a", want: "EXECUTE IMMEDIATE a", left: "EXECUTE IMMEDIATE a"}, {in: "EXECUTE a; DEALLOCATE PREPARE a", want: "EXECUTE a; DEALLOCATE PREPARE a"}, {in: "PREPARE a FROM @b; SELECT 1", want: "PREPARE a FROM @b; SELECT 1", left: "PREPARE a FROM @b"}, {in: "EXECUTE IMMEDIATE a b c d e f", want: "EXECUTE IMMEDIATE a b c d e f", left: "EXECUTE IMMEDIATE a b c d"},
	} {
		edits, left := c.d.Rename(c.in, to)
		want := strings.ReplaceAll(c.want, "☃", "`n`")
		if got := Apply(c.in, edits); got != want {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, want)
		}
		var texts []string
		for _, l := range left {
			texts = append(texts, l.Text)
			if reason := map[bool]LeftReason{true: LeftPattern, false: LeftString}[strings.HasPrefix(l.Text, "`")]; l.Reason != reason && (l.Reason != LeftPrepared || !strings.Contains(l.Text, "E")) {
				t.Errorf("%s: got the reason %d for %s", c.in, l.Reason, l.Text)
			}
		}
		if s := strings.Join(texts, "|"); s != c.left {
			t.Errorf("%s\n got %s\nwant %s left", c.in, s, c.left)
		}
	}
	const grant = "GRANT SELECT ON `s`.* TO u"
	if edits, _ := (Dialect{}).Rename(grant, func(name string) (string, bool) { return `n_\%`, name == "s" }); Apply(grant, edits) != "GRANT SELECT ON `n\\_\\\\\\%`.* TO u" {
		t.Errorf("got %s, want \"GRANT SELECT ON `n\\\\_\\\\\\\\\\\\%%`.* TO u\"", Apply(grant, edits)) // a pattern that only this name is like
	}
	for n, want := range map[int]string{61: strings.Repeat("x", 61) + "_fk", 62: fmt.Sprintf("%s_", strings.Repeat("x", 47))} { // 64 characters at most
		if got := CopyName("fk", "t", strings.Repeat("x", n)); !strings.HasPrefix(got, want) || len(got) != 64 {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := Apply("abcdef", []Edit{{4, 5, "Y"}, {1, 3, ""}, {6, 6, "!"}, {0, 0, "<"}}); got != "<adYf!" {
		t.Errorf("got %s, want \"<adYf!\"", got)
	}
}

// TestEdgesOfRedact: what is left of a statement without its values, and of one that sets a password.
func TestEdgesOfRedact(t *testing.T) {
	for in, want := range map[string]string{
		"SELECT a*/* x */b": "SELECT a* b", "SELECT a */* x */ 2": "SELECT a *  ?", "/*!50000 SELECT 1 */": "/*!50000 SELECT ? */", "SELECT /*! a */ 1": "SELECT /*! a */ ?", "SELECT /*!*/ 1": "SELECT /*!*/ ?", "/* x *//* y */SELECT 1": "SELECT ?", "SELECT 1 # x": "SELECT ? ", "SELECT -1": "SELECT -?", "SELECT 1/* x */": "SELECT ? ", "SELECT 1 /* x": "SELECT ? ", "SELECT `1`, a.1, b1": "SELECT `1`, a.1, b1", "SELECT 1 -- x\n + 2": "SELECT ? \n + ?", "SELECT 1--\x01x\n+2": "SELECT ? \n+?",
		"UPDATE t SET password = 'x', a = 1": "UPDATE t SET password = ?, a = ?", "INSERT INTO t (pwd) VALUES ('x')": "INSERT INTO t (pwd) VALUES (?)", "DELETE FROM t WHERE passwd = 'x'": "DELETE FROM t WHERE passwd = ?", "REPLACE t SET password = 'x'": "REPLACE t SET password = ?", "WITH a AS (SELECT 1) SELECT password FROM a": "WITH a AS (SELECT ?) SELECT password FROM a", "CALL p(password)": "CALL p(password)", "LOAD DATA INFILE 'x' INTO TABLE password": "LOAD DATA INFILE ? INTO TABLE password", "EXPLAIN SELECT password": "EXPLAIN SELECT password", "TABLE password": "TABLE password", "VALUES ROW(password)": "VALUES ROW(password)", "(SELECT password)": "(SELECT password)", "CREATE USER a IDENTIFIED BY 'x'": "CREATE USER a IDENTIFIED ...", "SET PASSWORD = 'x'": "SET PASSWORD ...", "GRANT USAGE ON *.* TO a IDENTIFIED BY x": "GRANT USAGE ON *.* TO a IDENTIFIED ...", "SET `password` = 'x'": "SET `password` ...", "CHANGE MASTER TO MASTER_PASSWORD='x', MASTER_HOST='y'": "CHANGE MASTER TO MASTER_PASSWORD...", "IDENTIFIED": "IDENTIFIED", "CREATE TABLE t (a INT) CONNECTION='x'": "CREATE TABLE t (a INT) CONNECTION...", "PREPARE s FROM 'SET PASSWORD = ''x'''": "PREPARE s FROM ?", "SET a = 'x'": "SET a = ?", "SET passports = 1": "SET passports = ?",
	} {
		if got := string(Redact(nil, []byte(in))); got != want {
			t.Errorf("%s\n got %q\nwant %q", in, got, want)
		}
	}
	for _, name := range []string{"get_lock", "release_lock", "release_all_locks", "sleep", "benchmark", "load_file", "nextval", "lastval", "setval", "last_insert_id", "master_pos_wait", "source_pos_wait", "master_gtid_wait", "wait_for_executed_gtid_set", "wait_until_sql_thread_after_gtids", "lib_mysqludf_sys_info", "sys_exec", "sys_eval", "sys_set", "set_masking_dictionary", "gen_dictionary_load", "gen_dictionary_drop", "mysql_query_attribute_string_set", "flush_rewrite_rules", "load_rewrite_rules", "rotate_system_key", "group_replication_x", "audit_log_x", "asynchronous_connection_failover_x", "mysql_firewall_x", "keyring_x", "version_tokens_x", "service_x"} {
		for _, stmt := range []string{"SELECT %s(1)", "SELECT a FROM t WHERE b = %s (1)", "SELECT `%s`(1)"} {
			for _, n := range []string{name, strings.ToUpper(name)} {
				if err := ReadsOnly([]byte(fmt.Sprintf(stmt, n))); err == nil {
					t.Errorf("%s: got that it reads only", fmt.Sprintf(stmt, n))
				}
			}
		}
		if err := ReadsOnly([]byte("SELECT x" + name + "(1), `" + name + "` FROM t")); err != nil && !strings.HasPrefix(name, "nextval") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for stmt, why := range map[string]string{
		"SELECT '": "a quote is not closed", "SELECT 'a": "a quote is not closed", "SELECT 'a'''": "", "SELECT 'a''": "a quote is not closed", `SELECT 'a\'`: "a quote is not closed", `SELECT 'a\\'`: "depends on sql_mode", `SELECT 'a\'b'`: "depends on sql_mode", `SELECT "a\"b"`: "depends on sql_mode", "SELECT `a\\`": "", "SELECT `": "a quote is not closed", "SELECT 1 /*": "a comment is not closed", "SELECT 1 /*/": "a comment is not closed", "SELECT 1 /**": "a comment is not closed", "SELECT 1 /**/": "", "SELECT 1 /* x */": "", "SELECT 1 /*! x */": "it holds an executable comment", "SELECT 1 / 2 - 3": "", "SELECT 1\x00": "it holds a NUL byte", "'x'": "it has no verb", "DELETE FROM t": "it is a DELETE", "SELECT 1; x": "another statement follows", "SELECT 1;;": "another statement follows", "SELECT @a:=1": "it sets a variable", "SELECT @a : = 1": "it sets a variable", "SELECT \"f\"(1)": "it calls the function", "SELECT 'f'(1)": "", "SELECT a.f(1)": "f is a stored function", "SELECT f(1) INTO @a": "INTO writes", "SELECT a FROM t PROCEDURE p()": "PROCEDURE runs code", "SELECT 1 FOR UPDATE": "it locks the rows", "SELECT 1 FOR SHARE": "it locks the rows", "SELECT 1 LOCK IN SHARE MODE": "it locks the rows", "SELECT a update, b share FROM t": "", "SELECT NEXT VALUE FOR s": "a value of a sequence", "SELECT PREVIOUS VALUE FOR s": "a value of a sequence", "SELECT a value FROM t": "", "SELECT s.nextval": "a value of a sequence", "SELECT s.into, s.procedure, @into FROM t": "", "SELECT 1 #": "", "SELECT 1 # it's": "", "SELECT 6/2*3, a-b*c": "", "SELECT @@procedure, @@into": "", "SELECT 1 --": "",
	} {
		if err := ReadsOnly([]byte(stmt)); why == "" && err != nil || why != "" && (err == nil || !strings.Contains(err.Error(), why)) {
			t.Errorf("%s: got %v, want %q", stmt, err, why)
		}
	}
}
