package sqltext

import (
	"strings"
	"testing"
)

// TestReadChange: what a statement changes, and not what it reads, calls, refers to, or belongs to.
func TestReadChange(t *testing.T) {
	maria := Dialect{MariaDB: true, Version: 101106}
	for _, c := range []struct {
		text, want string // verb, kind, names, "> names afterwards", "@ table of a trigger", what else is so
		d          Dialect
	}{
		{"CREATE TABLE shop.o (id INT, v INT REFERENCES p (id))", "CREATE TABLE shop.o", Dialect{}},
		{"create table if not exists o like p", "CREATE TABLE o kept", Dialect{}},
		{"CREATE TABLE o (LIKE p)", "CREATE TABLE o", Dialect{}},
		{"CREATE TABLE o (a INT) ENGINE=InnoDB AS SELECT * FROM p", "CREATE TABLE o filled", Dialect{}},
		{"CREATE TABLE o TABLE p", "CREATE TABLE o filled", Dialect{}},
		{"CREATE TABLE o (a INT COMMENT 'SELECT') PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1))", "CREATE TABLE o", Dialect{}},
		{"CREATE TABLE `o` (`id` int) START TRANSACTION", "CREATE TABLE o", Dialect{}},
		{"CREATE OR REPLACE TEMPORARY TABLE o (a INT)", "CREATE TABLE o temporary replaces", Dialect{}},
		{"CREATE ALGORITHM=UNDEFINED DEFINER=`a`@`%` SQL SECURITY DEFINER VIEW `shop`.`v` AS SELECT * FROM shop.o", "CREATE VIEW shop.v", Dialect{}},
		{"CREATE DEFINER=`a`@`%` TRIGGER tr BEFORE INSERT ON shop.o FOR EACH ROW INSERT INTO log SELECT * FROM p", "CREATE TRIGGER tr @ shop.o", Dialect{}},
		{"CREATE PROCEDURE p() BEGIN INSERT INTO o VALUES (1); DROP TABLE q; END", "CREATE PROCEDURE p", Dialect{}},
		{"CREATE FUNCTION f(a INT) RETURNS INT RETURN (SELECT MAX(id) FROM o)", "CREATE FUNCTION f", Dialect{}},
		{"CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM o", "CREATE EVENT e", Dialect{}},
		{"CREATE UNIQUE INDEX i USING BTREE ON shop.o (a)", "ALTER TABLE shop.o", Dialect{}},
		{"CREATE OR REPLACE INDEX i ON o (a)", "ALTER TABLE o", maria},
		{"DROP INDEX i ON o", "ALTER TABLE o", Dialect{}},
		{"CREATE SCHEMA IF NOT EXISTS shop DEFAULT CHARACTER SET utf8mb4", "CREATE DATABASE shop kept", Dialect{}},
		{"CREATE USER 'a'@'%' IDENTIFIED WITH 'x' AS 'y', b IDENTIFIED BY PASSWORD '*z' DEFAULT ROLE c, d", "CREATE USER a@% b", Dialect{}},
		{"CREATE ROLE r WITH ADMIN a, b", "CREATE ROLE r", maria},
		{"CREATE SEQUENCE s", "CREATE SEQUENCE s", maria},
		{"CREATE SPATIAL REFERENCE SYSTEM 4120 NAME 'x'", "CREATE SPATIAL REFERENCE SYSTEM", Dialect{}},
		{"CREATE TABLESPACE ts ADD DATAFILE 'x'", "CREATE TABLESPACE ts", Dialect{}},
		{"ALTER TABLE o ADD KEY (a), RENAME COLUMN a TO b, RENAME INDEX i TO j, ADD CHECK (a LIKE 'x')", "ALTER TABLE o", Dialect{}},
		{"ALTER TABLE `o` RENAME TO shop2.`p`, ADD a INT", "ALTER TABLE o > shop2.p more", Dialect{}},
		{"ALTER TABLE o RENAME = p", "ALTER TABLE o > p more", Dialect{}},
		{"ALTER TABLE o ADD FOREIGN KEY (a) REFERENCES p (id)", "ALTER TABLE o more", Dialect{}},
		{"ALTER TABLE o DROP FOREIGN KEY `a``b`, DROP KEY k, DROP CONSTRAINT c, drop check d, ALTER CHECK e NOT ENFORCED, ALTER CONSTRAINT f ENFORCED, DROP a", "ALTER TABLE o constraints a`b c d e f", Dialect{}},
		{"ALTER TABLE o DROP FOREIGN KEY IF EXISTS a, DROP CONSTRAINT IF EXISTS b", "ALTER TABLE o constraints a b", maria},
		{"ALTER TABLE o ADD CONSTRAINT a CHECK (b > 0), ADD c INT CONSTRAINT `d` CHECK (c > 0), ADD (e INT CONSTRAINT f CHECK (e > 0)), ADD CHECK (b < 9), ADD CONSTRAINT g UNIQUE (b), ADD CONSTRAINT CHECK (b < 8)", "ALTER TABLE o checks a d f", Dialect{}},
		{"ALTER TABLE o ADD CONSTRAINT IF NOT EXISTS a CHECK (b > 0), MODIFY b INT CHECK (b > 1)", "ALTER TABLE o checks a", maria},
		{"ALTER TABLE o ADD CONSTRAINT a FOREIGN KEY (b) REFERENCES p (c)", "ALTER TABLE o more", Dialect{}}, {"ALTER TABLE o ADD CONSTRAINT FOREIGN KEY (b) REFERENCES p (c), DROP CHECK d", "ALTER TABLE o more constraints d", Dialect{}},
		{"ALTER TABLE o DROP CHECK", "ALTER TABLE o", Dialect{}}, {"ALTER TABLE o DROP FOREIGN", "ALTER TABLE o", Dialect{}}, {"ALTER TABLE o ADD CONSTRAINT", "ALTER TABLE o", Dialect{}},
		{"SET STATEMENT a = 1 FOR ALTER TABLE o DROP CONSTRAINT c", "ALTER TABLE o constraints c", maria},
		{"ALTER TABLE o UNION = (p, q)", "ALTER TABLE o more", Dialect{}},
		{"ALTER TABLE o /* " + strings.Repeat("long ", 100) + "*/ TRUNCATE PARTITION p0", "ALTER TABLE o moves empties", Dialect{}},
		{"ALTER TABLE o DROP PARTITION IF EXISTS p0, p1", "ALTER TABLE o moves empties", maria},
		{"ALTER TABLE o ADD PARTITION (PARTITION p1 VALUES LESS THAN (5))", "ALTER TABLE o moves", Dialect{}},
		{"ALTER TABLE o EXCHANGE PARTITION p0 WITH TABLE shop2.p WITHOUT VALIDATION", "ALTER TABLE o shop2.p moves more", Dialect{}},
		{"ALTER TABLE o CONVERT PARTITION p0 TO TABLE p", "ALTER TABLE o p moves more", maria},
		{"ALTER TABLE o CONVERT TABLE p TO PARTITION p0 VALUES LESS THAN (3)", "ALTER TABLE o p moves more", maria},
		{"ALTER TABLE o CONVERT TO CHARACTER SET utf8mb4", "ALTER TABLE o", Dialect{}},
		{"ALTER ONLINE IGNORE TABLE IF EXISTS o ADD UNIQUE (a)", "ALTER TABLE o moves", maria},
		{"ALTER TABLE o ENGINE=InnoDB", "ALTER TABLE o", Dialect{}},
		{"ALTER TABLE o ENGINE=BLACKHOLE", "ALTER TABLE o moves", Dialect{}},
		{"ALTER TABLE o DISCARD TABLESPACE", "ALTER TABLE o moves", Dialect{}},
		{"ALTER DATABASE COLLATE utf8mb4_bin", "ALTER DATABASE", Dialect{}},
		{"ALTER DATABASE shop COLLATE utf8mb4_bin", "ALTER DATABASE shop", Dialect{}},
		{"ALTER EVENT e ON SCHEDULE EVERY 2 DAY RENAME TO f DO DELETE FROM o", "ALTER EVENT e > f", Dialect{}},
		{"ALTER VIEW v AS SELECT * FROM o", "ALTER VIEW v", Dialect{}},
		{"ALTER USER a@b PASSWORD EXPIRE", "ALTER USER a@b", Dialect{}},
		{"ALTER INSTANCE ROTATE INNODB MASTER KEY", "ALTER INSTANCE", Dialect{}},
		{"DROP TABLE IF EXISTS `shop`.`o`,`p` /* generated by server */", "DROP TABLE shop.o p", Dialect{}},
		{"DROP TABLES o, p RESTRICT", "DROP TABLE o p", Dialect{}},
		{"DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `o`", "DROP TABLE o temporary", Dialect{}},
		{"DROP VIEW v, w", "DROP VIEW v w", Dialect{}},
		{"DROP TRIGGER shop.tr", "DROP TRIGGER shop.tr", Dialect{}},
		{"DROP PROCEDURE IF EXISTS p", "DROP PROCEDURE p", Dialect{}},
		{"DROP DATABASE `sh``op`", "DROP DATABASE sh`op", Dialect{}},
		{"DROP USER IF EXISTS a@b, 'c d'", "DROP USER a@b c d", Dialect{}},
		{"DROP PACKAGE BODY p", "DROP PACKAGE BODY p", maria},
		{"TRUNCATE shop.o", "TRUNCATE TABLE shop.o", Dialect{}},
		{"RENAME TABLE o TO _o_old, _o_new TO o", "RENAME TABLE o _o_new > _o_old o", Dialect{}},
		{"RENAME TABLES IF EXISTS o WAIT 5 TO shop.p", "RENAME TABLE o > shop.p", maria},
		{"RENAME USER a@b TO c@d, e TO f", "RENAME USER a@b e > c@d f", Dialect{}},
		{`ALTER TABLE "shop"."o" ADD a INT`, "ALTER TABLE shop.o", Dialect{ANSIQuotes: true}},
		{"INSERT INTO o SELECT * FROM p ON DUPLICATE KEY UPDATE a = 1", "INSERT TABLE o", Dialect{}},
		{"REPLACE o VALUES (1)", "INSERT TABLE o", Dialect{}},
		{"LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE shop.o FIELDS TERMINATED BY ','", "INSERT TABLE shop.o", Dialect{}},
		{"UPDATE o SET a = (SELECT MAX(a) FROM p) WHERE id IN (SELECT id FROM q)", "UPDATE TABLE o", Dialect{}},
		{"UPDATE (o JOIN shop.p USING (id)) LEFT JOIN (SELECT * FROM q) AS d USING (id) SET o.a = d.a", "UPDATE TABLE o shop.p", Dialect{}},
		{"WITH w AS (SELECT * FROM q) UPDATE o JOIN w SET o.a = 1", "UPDATE TABLE o", Dialect{}},
		{"WITH w AS (SELECT * FROM o) DELETE FROM o WHERE id IN (SELECT id FROM w)", "DELETE TABLE o", Dialect{}},
		{"DELETE FROM o WHERE id IN (SELECT id FROM p)", "DELETE TABLE o", Dialect{}},
		{"DELETE QUICK a, c.* FROM o AS a JOIN p b ON a.x = b.x JOIN shop.c", "DELETE TABLE o shop.c", Dialect{}},
		{"DELETE FROM a USING o a JOIN p WHERE a.id = p.id", "DELETE TABLE o", Dialect{}},
		{"DELETE HISTORY FROM o BEFORE SYSTEM_TIME now()", "DELETE TABLE o", maria},
		{"SET STATEMENT max_statement_time = 1, sql_mode = 'FOR' FOR DELETE FROM o WHERE 1", "DELETE TABLE o", maria},
		{"SET STATEMENT a = (SELECT 1) FOR ALTER TABLE o ADD a INT", "ALTER TABLE o", maria},
		{"SET GLOBAL a = 1", "", Dialect{}}, {"SET STATEMENT a = 1 FOR SELECT * FROM o FOR UPDATE", "", maria}, {"GRANT ALL ON shop.o TO a", "", Dialect{}}, {"OPTIMIZE TABLE o", "", Dialect{}}, {"SELECT * FROM o", "", Dialect{}},
		{"ALTER TABLE", "", Dialect{}}, {"CREATE INDEX i ON", "", Dialect{}}, {"DROP", "", Dialect{}}, {"DROP PREPARE p", "", Dialect{}}, {"RENAME TABLE o", "", Dialect{}}, {"CREATE OR", "", Dialect{}}, {"", "", Dialect{}},
	} {
		got := ""
		if x, ok := c.d.ReadChange(c.text); ok {
			got = shownChange(t, c.text, x)
		}
		if got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

// shownChange is a change as text. Places have to be those of the names.
func shownChange(t *testing.T, text string, c Change) string {
	names := func(list []Ident) (out string) {
		for _, n := range list {
			if n.End > 0 && !strings.Contains(strings.NewReplacer("``", "`").Replace(text[n.Begin:n.End]), strings.Split(n.Name, "@")[0]) {
				t.Errorf("%s: %q is not at %d to %d", text, n.Name, n.Begin, n.End)
			}
			if n.Schema != "" {
				out += " " + n.Schema + "." + n.Name
			} else {
				out += " " + n.Name
			}
		}
		return out
	}
	out := c.Verb + " " + c.Kind + names(c.Names)
	if len(c.To) > 0 {
		out += " >" + names(c.To)
	}
	if c.On.Name != "" {
		out += " @" + names([]Ident{c.On})
	}
	for _, f := range []struct {
		is   bool
		word string
	}{{c.Temporary, "temporary"}, {c.OrReplace, "replaces"}, {c.Kept, "kept"}, {c.Filled, "filled"}, {c.Moves, "moves"}, {c.Empties, "empties"}, {c.More, "more"}} {
		if f.is {
			out += " " + f.word
		}
	}
	if len(c.Constraints) > 0 {
		out += " constraints" + names(c.Constraints)
	}
	if len(c.Checks) > 0 {
		out += " checks" + names(c.Checks)
	}
	return out
}
