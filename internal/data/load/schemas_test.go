package load_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/sandbox"
)

// testBeside: a table is restored under another name next to the original, whose constraints keep their names; its foreign keys
// refer to itself where they did, and to the table that they referred to if that is restored in another schema.
func testBeside(t *testing.T, nodes map[string]*sandbox.Node) {
	for spec, node := range nodes {
		s := stream(t, node)
		exec(t, s, "CREATE DATABASE b", "USE b", "CREATE TABLE customers (id INT PRIMARY KEY)", "INSERT INTO customers VALUES (1)",
			"CREATE TABLE orders (id INT PRIMARY KEY, c INT, p INT, CONSTRAINT `of ``whom` FOREIGN KEY (c) REFERENCES customers (id), CONSTRAINT parent FOREIGN KEY (p) REFERENCES orders (id) ON DELETE CASCADE, CONSTRAINT positive CHECK (id > 0))",
			"INSERT INTO orders VALUES (1, 1, NULL), (2, 1, 1)")
		r, was := takeBackup(t, node, "b"), ask(t, s, "SHOW CREATE TABLE orders")
		for to, want := range map[string]string{"b.`or``ders`": "b.customers|\nb.or`ders|\n", "beside.orders_before": "b.customers|\nbeside.orders_before|\n"} {
			res, err := restore(t, load.Options{Repo: r, Into: target(t, node), Tables: []string{"b.orders"}, Rename: []string{"b.orders=" + to}})
			if err != nil || res.Rows != 2 {
				t.Errorf("%s to %s: %v: %+v; want res.Rows 2", spec, to, err, res)
				continue
			}
			schema, name, _ := strings.Cut(strings.ReplaceAll(strings.ReplaceAll(to, "``", "\x00"), "`", ""), ".")
			name = strings.ReplaceAll(name, "\x00", "`")
			got := ask(t, s, "SELECT CONCAT(REFERENCED_TABLE_SCHEMA, '.', REFERENCED_TABLE_NAME) FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = '"+schema+"' AND TABLE_NAME = '"+name+"' AND REFERENCED_TABLE_NAME IS NOT NULL ORDER BY 1")
			if got != want {
				t.Errorf("%s to %s: the foreign keys point at %q, not %q", spec, to, got, want)
			}
			told := 2
			if spec == "mysql-9.7" { // where checks share their names
				told = 3
			}
			if len(res.Otherwise) != told || !slices.ContainsFunc(res.Otherwise, func(f load.Finding) bool { return strings.Contains(f.Why, "`of ``whom`") }) {
				t.Errorf("%s to %s: %+v", spec, to, res.Otherwise)
			}
			exec(t, s, "DROP TABLE "+to, "DROP DATABASE IF EXISTS beside")
		}
		if now := ask(t, s, "SHOW CREATE TABLE orders"); now != was {
			t.Errorf("%s: got %s, want now %v", spec, differ(was, now), was)
		}
		exec(t, s, "DROP DATABASE b")
	}
}

// testPastEvents: an event whose times are over cannot be made; that is no failure: it is named.
func testPastEvents(t *testing.T, nodes map[string]*sandbox.Node) {
	for spec, node := range nodes {
		s := stream(t, node)
		exec(t, s, "SET time_zone = '+00:00', timestamp = UNIX_TIMESTAMP('2001-01-01')", "CREATE DATABASE e", "USE e",
			"CREATE EVENT `o``nce` ON SCHEDULE AT '2001-01-02' DO SELECT 1", "CREATE EVENT ended ON SCHEDULE EVERY 1 HOUR STARTS '2001-01-02' ENDS '2001-01-03' DO SELECT 1",
			"CREATE EVENT kept ON SCHEDULE AT '2001-01-02' ON COMPLETION PRESERVE DO SELECT 1", "CREATE EVENT goes_on ON SCHEDULE EVERY 1 YEAR STARTS '2001-01-02' DO SELECT 1")
		r := takeBackup(t, node, "e")
		exec(t, s, "DROP DATABASE e")
		res, err := restore(t, load.Options{Repo: r, Into: target(t, node)})
		if err != nil {
			t.Errorf("%s: %v: %+v", spec, err, res)
		}
		notes := strings.Join(res.Notes, "\n")
		if len(res.Notes) != 2 || !strings.Contains(notes, "event `e`.`o``nce` is not created: its last time is past") || !strings.Contains(notes, "event `e`.`ended`") {
			t.Errorf("%s: got %q; want len(res.Notes) 2, \"event `e`.`o``nce` is not created: its last time is past\" in notes, \"event `e`.`ended`\" in notes",
				spec, res.Notes)
		}
		if got := ask(t, s, "SELECT EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'e' ORDER BY 1"); got != "goes_on|\nkept|\n" || res.Objects != 2 {
			t.Errorf("%s: %q, %d objects", spec, got, res.Objects)
		}
		exec(t, s, "DROP DATABASE e")
	}
}

// testChecks: MariaDB has the name of a check once in a table, MySQL once in a schema; names that it generates are alike in all tables.
func testChecks(t *testing.T, from, into *sandbox.Node) {
	exec(t, stream(t, from), "CREATE DATABASE h", "USE h", "CREATE TABLE a (n INT, CHECK (n > 0))", "CREATE TABLE b (n INT, CHECK (n > 1), CHECK (n < 9))", "INSERT INTO a VALUES (1)")
	res, err := restore(t, load.Options{Repo: takeBackup(t, from, "h"), Into: target(t, into)})
	if err != nil || len(res.Otherwise) != 1 || !strings.HasPrefix(res.Otherwise[0].What, "table `h`.") || !strings.Contains(res.Otherwise[0].Why, "`CONSTRAINT_1`") {
		t.Fatalf("%v: got %+v, %+v; want len(res.Otherwise) 1, \"table `h`.\" at the beginning of res.Otherwise[0].What, \"`CONSTRAINT_1`\" in res.Otherwise[0].Why",
			err, res.LeftOut, res.Otherwise)
	}
	s := stream(t, into)
	if got := ask(t, s, "SELECT COUNT(*) FROM information_schema.CHECK_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'h'"); got != "3|\n" {
		t.Errorf("%q checks, want \"3|\\n\"", got)
	}
	for _, wrong := range []string{"INSERT INTO h.a VALUES (0)", "INSERT INTO h.b VALUES (1)", "INSERT INTO h.b VALUES (9)"} {
		if s.Exec(t.Context(), wrong) == nil {
			t.Errorf("%s is taken, want s.Exec(t.Context(), wrong) not nil", wrong)
		}
	}
}

// testTextDefaults: a default of a TEXT or BLOB in MariaDB is restored in MySQL as well.
func testTextDefaults(t *testing.T, from, into *sandbox.Node) {
	exec(t, stream(t, from), "CREATE DATABASE x CHARACTER SET utf8mb4", "USE x", "CREATE TABLE t (id INT PRIMARY KEY, a TEXT DEFAULT 'it''s ü', b BLOB NOT NULL DEFAULT '', c LONGTEXT DEFAULT NULL, d TINYTEXT CHARACTER SET latin1 NOT NULL DEFAULT 7 COMMENT ' DEFAULT ')")
	res, err := restore(t, load.Options{Repo: takeBackup(t, from, "x"), Into: target(t, into)})
	if err != nil || len(res.Otherwise) > 0 {
		t.Fatalf("%v: got %+v, %+v; want none", err, res.LeftOut, res.Otherwise)
	}
	for _, node := range []*sandbox.Node{from, into} {
		exec(t, stream(t, node), "INSERT INTO x.t (id) VALUES (1)")
		if got := ask(t, stream(t, node), "SELECT a, b, c IS NULL, d FROM x.t"); got != "it's ü||1|7|\n" {
			t.Errorf("got %q, want \"it's ü||1|7|\\n\"", got)
		}
	}
}

// testNonStandardKeys: foreign keys to columns that are not unique are restored on a server that makes no new ones.
func testNonStandardKeys(t *testing.T, nodes map[string]*sandbox.Node) {
	into := nodes["mysql-9.7"]
	for from, node := range nodes {
		s := stream(t, node)
		if node == into {
			exec(t, s, "SET restrict_fk_on_non_standard_key = 0")
		}
		exec(t, s, "CREATE DATABASE n", "USE n", "CREATE TABLE z (a INT, b INT, KEY (a, b))", "INSERT INTO z VALUES (1, 1), (1, 2)", "CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES z (a))", "INSERT INTO c VALUES (1)")
		r := takeBackup(t, node, "n")
		exec(t, s, "DROP DATABASE n")
		if res, err := restore(t, load.Options{Repo: r, Into: target(t, into)}); err != nil || res.Rows != 3 {
			t.Errorf("from %s: got %v: %+v; want Rows 3", from, err, res)
		}
		exec(t, stream(t, into), "DROP DATABASE IF EXISTS n")
	}
}

// testSequenceTypes: a sequence of a type that an older MariaDB does not have is named before anything is changed.
func testSequenceTypes(t *testing.T, from, into *sandbox.Node) {
	exec(t, stream(t, from), "CREATE DATABASE q", "USE q", "CREATE SEQUENCE small AS TINYINT UNSIGNED", "CREATE SEQUENCE plain", "DO NEXTVAL(plain)", "CREATE TABLE numbered (id INT DEFAULT NEXTVAL(plain), v INT NOT NULL)", "CREATE VIEW next_one AS SELECT NEXTVAL(plain) AS n")
	o := load.Options{Repo: takeBackup(t, from, "q"), Into: target(t, into)}
	if res, err := restore(t, o); !errors.Is(err, load.ErrIncompatible) || !strings.Contains(err.Error(), "sequence `q`.`small`") || res.Changed {
		t.Fatalf("%v: got %+v; want load.ErrIncompatible, \"sequence `q`.`small`\" in the error, Changed false", err, res)
	}
	o.SkipIncompatible = true
	if res, err := restore(t, o); !errors.Is(err, load.ErrLeftOut) || len(res.LeftOut) != 1 || len(res.Otherwise) > 0 {
		t.Fatalf("%v: got %+v, %+v; want load.ErrLeftOut, len(res.LeftOut) 1, no res.Otherwise", err, res.LeftOut, res.Otherwise)
	}
	exec(t, stream(t, into), "INSERT INTO q.numbered (v) VALUES (1)")
	if got := ask(t, stream(t, into), "SELECT id > 1, n > id FROM q.numbered, q.next_one"); got != "1|1|\n" {
		t.Errorf("got %q, want \"1|1|\\n\"", got)
	}
	if got := ask(t, stream(t, into), "SELECT NEXTVAL(q.plain) > 1"); got != "1|\n" {
		t.Errorf("got %q, want \"1|\\n\"", got)
	}
}

// testLostDefiners: views over views whose definers are gone are restored as they were, whatever the order of their names.
func testLostDefiners(t *testing.T, nodes map[string]*sandbox.Node) {
	for spec, node := range nodes {
		s := stream(t, node)
		exec(t, s, "CREATE DATABASE g", "USE g", "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE USER gone@localhost", "GRANT ALL ON g.* TO gone@localhost", "CREATE DEFINER = gone@localhost VIEW m1 AS SELECT id FROM t",
			"CREATE DEFINER = gone@localhost SQL SECURITY DEFINER VIEW a2 AS SELECT id FROM m1", "CREATE VIEW z3 AS SELECT a2.id FROM a2 JOIN m1 ON m1.id = a2.id", "CREATE VIEW b4 AS SELECT id FROM z3",
			"DROP USER gone@localhost")
		was := map[string]string{}
		for _, name := range []string{"m1", "a2", "z3", "b4"} {
			was[name] = ask(t, s, "SHOW CREATE VIEW "+name)
		}
		r := takeBackup(t, node, "g")
		exec(t, s, "DROP DATABASE g")
		res, err := restore(t, load.Options{Repo: r, Into: target(t, node)})
		if err != nil || res.Objects != 4 || len(res.Notes) != 4 || strings.Count(strings.Join(res.Notes, "\n"), "is created but does not work, as when the backup was taken: ") != 4 {
			t.Errorf("%s: %v: %+v", spec, err, res)
		}
		exec(t, s, "USE g")
		for name, want := range was {
			if got := ask(t, s, "SHOW CREATE VIEW "+name); got != want {
				t.Errorf("%s: %s", spec, differ(want, got))
			}
		}
		exec(t, s, "DROP DATABASE g")
	}
}

// testBytes: a default that is no text comes back byte by byte.
func testBytes(t *testing.T, nodes map[string]*sandbox.Node) {
	for spec, node := range nodes {
		s := stream(t, node)
		exec(t, s, "SET NAMES utf8mb4", "CREATE DATABASE y CHARACTER SET utf8mb4", "USE y", "CREATE TABLE t (id INT PRIMARY KEY, a VARBINARY(9) DEFAULT x'ff0027fe5c0a', b BINARY(2) NOT NULL DEFAULT x'80', c VARBINARY(4) DEFAULT x'c3a9', d VARBINARY(9) DEFAULT 'a\\0''b', e CHAR(3) CHARACTER SET latin1 DEFAULT 'é')")
		r := takeBackup(t, node, "y")
		exec(t, s, "DROP DATABASE y")
		if res, err := restore(t, load.Options{Repo: r, Into: target(t, node)}); err != nil {
			t.Errorf("%s: %v: %+v", spec, err, res)
			continue
		}
		exec(t, s, "USE y", "INSERT INTO t (id) VALUES (1)")
		if got := ask(t, s, "SELECT HEX(a), HEX(b), HEX(c), HEX(d), HEX(e) FROM t"); got != "FF0027FE5C0A|8000|C3A9|61002762|E9|\n" {
			t.Errorf("%s: got %q, want \"FF0027FE5C0A|8000|C3A9|61002762|E9|\\n\"", spec, got)
		}
		exec(t, s, "DROP DATABASE y")
	}
}

// testLostFunction: a view over a function whose definer is gone keeps nothing else out of a backup, and is named if it cannot be made.
func testLostFunction(t *testing.T, nodes map[string]*sandbox.Node) {
	for spec, node := range nodes {
		s := stream(t, node)
		exec(t, s, "CREATE DATABASE u", "USE u", "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE USER gone@localhost", "GRANT ALL ON u.* TO gone@localhost",
			"CREATE DEFINER = gone@localhost FUNCTION f () RETURNS INT DETERMINISTIC RETURN 1", "CREATE VIEW `v``1` AS SELECT id AS a FROM t WHERE id = f() WITH LOCAL CHECK OPTION", "CREATE VIEW w AS SELECT id FROM t", "DROP USER gone@localhost",
			"CREATE TABLE x (a VARCHAR(9), b VARCHAR(9)) CHARSET utf8mb4 COLLATE utf8mb4_general_ci", "CREATE VIEW mixed AS SELECT a FROM x WHERE a = b", "ALTER TABLE x MODIFY b VARCHAR(9) COLLATE utf8mb4_unicode_ci")
		r := takeBackup(t, node, "u")
		exec(t, s, "DROP DATABASE u")
		res, err := restore(t, load.Options{Repo: r, Into: target(t, node)})
		if res.Rows != 1 || err != nil && !errors.Is(err, load.ErrLeftOut) {
			t.Errorf("%s: %v: %+v", spec, err, res)
		}
		made := ask(t, s, "SELECT TABLE_NAME FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'u' AND TABLE_NAME <> 'mixed' ORDER BY 1")
		told := strings.Join(res.Notes, "\n")
		for _, f := range res.LeftOut {
			told += f.What + ": " + f.Create
		}
		if ask(t, s, "SELECT COUNT(*) FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'u' AND TABLE_NAME = 'mixed'") != "1|\n" && !strings.Contains(told, "view `u`.`mixed`") {
			t.Errorf("%s: nothing is said of what cannot be made: %q", spec, told)
		}
		named := strings.Contains(told, "view `u`.`v``1`") && strings.Contains(told, "WITH LOCAL CHECK OPTION")
		if made != "v`1|\nw|\n" && (made != "w|\n" || !named) {
			t.Errorf("%s: %q is there, and it says %q", spec, made, told)
		}
		exec(t, s, "CREATE USER gone@localhost", "GRANT ALL ON u.* TO gone@localhost")
		if strings.HasPrefix(made, "v") && ask(t, s, "SELECT a FROM u.`v``1`") != "1|\n" {
			t.Errorf("%s: the view is another one", spec)
		}
		exec(t, s, "DROP USER gone@localhost", "DROP DATABASE u")
	}
}

// testComputed: a table all whose columns are computed keeps nothing else from being restored, and the backup says what is missing.
func testComputed(t *testing.T, nodes map[string]*sandbox.Node) {
	for spec, node := range nodes {
		s := stream(t, node)
		exec(t, s, "CREATE DATABASE c", "USE c", "CREATE TABLE t (a INT AS (1) VIRTUAL, b INT AS (a + 1) VIRTUAL)", "INSERT INTO t VALUES (), ()", "CREATE TABLE u (id INT PRIMARY KEY)", "INSERT INTO u VALUES (1)")
		r, _ := emptyRepo(t)
		b, err := dump.Run(t.Context(), r, dump.Options{Target: target(t, node), Select: dump.Selection{Schemas: []string{"c"}}})
		if err != nil || !slices.ContainsFunc(b.Header.Notes, func(n string) bool { return strings.HasPrefix(n, "Rows of `c`.`t` are not in the backup") }) {
			t.Fatalf("%s: %v: %q", spec, err, b.Header.Notes)
		}
		exec(t, s, "DROP DATABASE c")
		if res, err := restore(t, load.Options{Repo: r, Into: target(t, node)}); err != nil || res.Tables != 2 || res.Rows != 1 || len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "table `c`.`t`: all its columns are computed") {
			t.Errorf("%s: got %v: %+v; want Tables 2, Rows 1, len(Notes) 1, \"table `c`.`t`: all its columns are computed\" in Notes[0]", spec, err, res)
		}
		exec(t, s, "INSERT INTO c.t VALUES ()", "DROP DATABASE c")
	}
}

// testArchive: rows of an ARCHIVE table with numbers come back, and it goes on to count.
func testArchive(t *testing.T, node *sandbox.Node) {
	s := stream(t, node)
	exec(t, s, "CREATE DATABASE v", "USE v", "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(9)) ENGINE=ARCHIVE COMMENT=' AUTO_INCREMENT=9'", "INSERT INTO t (a) VALUES ('x'), ('y')")
	r := takeBackup(t, node, "v")
	exec(t, s, "DROP DATABASE v")
	if res, err := restore(t, load.Options{Repo: r, Into: target(t, node)}); err != nil || res.Rows != 2 {
		t.Fatalf("%v: got %+v; want Rows 2", err, res)
	}
	exec(t, s, "INSERT INTO v.t (a) VALUES ('z')")
	if got := ask(t, s, "SELECT MAX(id) FROM v.t"); got != "3|\n" {
		t.Errorf("got %q, want \"3|\\n\"", got)
	}
	exec(t, s, "DROP DATABASE v")
}

// testWarningRows: rows of which a server computes something go in, though it warns of what it computes with each time.
func testWarningRows(t *testing.T, nodes map[string]*sandbox.Node) {
	const rows = "SELECT * FROM w.c ORDER BY a"
	for from, source := range nodes {
		s := stream(t, source)
		exec(t, s, "CREATE DATABASE w CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "USE w", "SET sql_mode = ''", "CREATE TABLE c (a INT, CONSTRAINT same CHECK (a <> 'x)'))", "INSERT INTO c VALUES (1), (2)", "CREATE TABLE k (id INT PRIMARY KEY, CHECK (id <> '1x')) ENGINE=MyISAM", "INSERT INTO k VALUES (5)",
			"CREATE TABLE g (a INT, s VARCHAR(9), b INT AS (s + 1) STORED, d VARCHAR(2) AS (s) STORED, KEY (b))", "INSERT INTO g (a, s) VALUES (1, '5 and more')", "CREATE TABLE v (a VARCHAR(9), b INT AS (a + 1) VIRTUAL, KEY (b))", "INSERT INTO v (a) VALUES ('1x')")
		r := takeBackup(t, source, "w")
		exec(t, s, "DROP DATABASE w")
		for into, node := range nodes {
			if into != from && into != "mysql-9.7" && into != "mariadb" {
				continue
			}
			res, err := restore(t, load.Options{Repo: r, Into: target(t, node)})
			if err != nil || res.Rows != 5 {
				t.Errorf("%s to %s: %v: %+v; want res.Rows 5", from, into, err, res)
			}
			if got := ask(t, stream(t, node), rows) + ask(t, stream(t, node), "SELECT a, b, d FROM w.g") + ask(t, stream(t, node), "SELECT b FROM w.v"); got != "1|\n2|\n1|6|5 |\n2|\n" {
				t.Errorf("%s to %s: %q, want \"1|\\n2|\\n1|6|5 |\\n2|\\n\"", from, into, got)
			}
			if has := !strings.HasPrefix(from, "mysql-5") && from != "mysql-8.0"; has && stream(t, node).Exec(t.Context(), "INSERT INTO w.c VALUES (0)") == nil {
				t.Errorf("%s to %s: the check is not there", from, into)
			}
			exec(t, stream(t, node), "DROP DATABASE w")
		}
	}
}

// testBrokenChecks: rows that break a check, or for which it cannot be computed, are restored nevertheless; those checks are named, the
// others are enforced.
func testBrokenChecks(t *testing.T, from, into *sandbox.Node) {
	s := stream(t, from)
	exec(t, s, "CREATE DATABASE b", "USE b", "SET check_constraint_checks = 0")
	for table, engine := range map[string]string{"k": "InnoDB", "m": "MyISAM"} {
		exec(t, s, "CREATE TABLE "+table+" (id INT PRIMARY KEY, a INT CHECK (a > 0), b VARCHAR(20), CONSTRAINT `of ``"+table+"` CHECK (JSON_EXTRACT(b, '$.a') IS NULL), CONSTRAINT kept_"+table+" CHECK (id > 0)) ENGINE="+engine,
			"INSERT INTO "+table+" VALUES (1, 1, NULL), (2, -1, NULL), (3, 1, 'no json')")
	}
	r := takeBackup(t, from, "b")
	exec(t, s, "DROP DATABASE b")
	res, err := restore(t, load.Options{Repo: r, Into: target(t, into)})
	told := ""
	for _, f := range res.Otherwise {
		told += f.What + ": " + f.Why + ": " + f.Mapped + "\n"
	}
	if err != nil || res.Rows != 6 || len(res.Otherwise) != 4 || strings.Count(told, "NOT ENFORCED") != 4 || !strings.Contains(told, "`of ``k`") || strings.Contains(told, "kept_") {
		t.Errorf("%v: got %+v: %s; want Rows 6, len(Otherwise) 4, strings.Count(told, \"NOT ENFORCED\") 4, \"`of ``k`\" in it, no \"kept_\" in it",
			err, res, told)
	}
	s = stream(t, into)
	for _, table := range []string{"b.k", "b.m"} {
		exec(t, s, "INSERT INTO "+table+" VALUES (9, -1, 'x')")
		if s.Exec(t.Context(), "INSERT INTO "+table+" VALUES (0, 1, NULL)") == nil {
			t.Errorf("%s: a check that the rows keep is not enforced", table)
		}
	}
	exec(t, s, "DROP DATABASE b")
}

// testRefusedTables: a table that the server refuses only when it is made does not stop the others. It is named, with what depends on it;
// if no table can be made at all, the restore ends, to go on later.
func testRefusedTables(t *testing.T, node *sandbox.Node) {
	s := stream(t, node)
	exec(t, s, "CREATE SPATIAL REFERENCE SYSTEM 990001 NAME 'risso' DEFINITION 'GEOGCS[\"risso\",DATUM[\"d\",SPHEROID[\"s\",6378137,298.257223563]],PRIMEM[\"Greenwich\",0],UNIT[\"degree\",0.017453292519943278],AXIS[\"Lat\",NORTH],AXIS[\"Lon\",EAST]]'",
		"CREATE DATABASE r", "USE r", "CREATE TABLE g (id INT PRIMARY KEY, p POINT SRID 990001)", "INSERT INTO g VALUES (1, NULL)", "CREATE TABLE t (id INT PRIMARY KEY, g INT, CONSTRAINT to_g FOREIGN KEY (g) REFERENCES g (id))", "INSERT INTO t VALUES (1, 1)",
		"CREATE VIEW over_g AS SELECT id FROM g", "CREATE VIEW over_t AS SELECT id FROM t", "CREATE TRIGGER of_g BEFORE INSERT ON g FOR EACH ROW SET @g = 1", "CREATE TRIGGER of_t BEFORE INSERT ON t FOR EACH ROW SET @t = 1")
	r := takeBackup(t, node, "r")
	exec(t, s, "DROP DATABASE r", "DROP SPATIAL REFERENCE SYSTEM 990001")
	res, err := restore(t, load.Options{Repo: r, Into: target(t, node)})
	var names []string
	for _, f := range res.LeftOut {
		names = append(names, f.What)
	}
	slices.Sort(names)
	if !errors.Is(err, load.ErrLeftOut) || !slices.Equal(names, []string{"table `r`.`g`", "trigger `r`.`of_g`", "view `r`.`over_g`"}) || res.Tables != 1 || res.Rows != 1 || res.Objects != 2 || len(res.Otherwise) > 0 {
		t.Errorf("%v: got %q: %+v; want load.ErrLeftOut, names []string{\"table `r`.`g`\", \"trigger `r`.`of_g`\", \"view `r`.`over_g`\"}, Tables 1, Rows 1, Objects 2, no res.Otherwise",
			err, names, res)
	}
	if notes := strings.Join(res.Notes, "\n"); len(res.Notes) != 1 || !strings.Contains(notes, "table `r`.`t`: its foreign key `to_g` refers to `r`.`g`, which is not restored") {
		t.Errorf("got %q; want len(res.Notes) 1, \"table `r`.`t`: its foreign key `to_g` refers to `r`.`g`, which is not restored\" in notes", res.Notes)
	}
	if got := ask(t, s, "SELECT id FROM r.over_t") + ask(t, s, "SHOW TABLES FROM r") + ask(t, s, "SHOW DATABASES LIKE 'risso%'"); got != "1|\nover_t|\nt|\n" {
		t.Errorf("got %q, want \"1|\\nover_t|\\nt|\\n\"", got)
	}
	if s.Exec(t.Context(), "INSERT INTO r.t VALUES (2, 1)") == nil {
		t.Error("a row that points at what is not there is taken")
	}
	exec(t, s, "CREATE TABLE r.g (id INT PRIMARY KEY)", "INSERT INTO r.g VALUES (1)", "INSERT INTO r.t VALUES (2, 1)", "DROP DATABASE r", "CREATE DATABASE r", "ALTER DATABASE r READ ONLY = 1")
	if res, err = restore(t, load.Options{Repo: r, Into: target(t, node)}); err == nil || errors.Is(err, load.ErrLeftOut) || len(res.LeftOut) > 0 {
		t.Errorf("where no table can be made: %v: %+v; want an error, errors.Is(err, load.ErrLeftOut) false, no res.LeftOut", err, res)
	}
	exec(t, s, "ALTER DATABASE r READ ONLY = 0")
	if res, err = restore(t, load.Options{Repo: r, Into: target(t, node)}); !errors.Is(err, load.ErrLeftOut) || !res.Resumed || res.Rows != 1 {
		t.Errorf("going on: got %v: %+v; want load.ErrLeftOut, Resumed true, Rows 1", err, res)
	}
	exec(t, s, "DROP DATABASE r")
}

// testUnknownCharset: a table of a character set that the server does not have is left out with what depends on it, as announced, and is
// restored if it was converted as advised.
func testUnknownCharset(t *testing.T, from, into *sandbox.Node) {
	s := stream(t, from)
	exec(t, s, "CREATE DATABASE z CHARACTER SET gb18030", "USE z", "CREATE TABLE f (id INT PRIMARY KEY, v VARCHAR(9), KEY (v)) COLLATE gb18030_bin", "INSERT INTO f VALUES (1, _utf8mb4 x'f09f9880')", "CREATE TABLE c (id INT PRIMARY KEY, CONSTRAINT to_f FOREIGN KEY (id) REFERENCES f (id)) CHARSET utf8mb4 COLLATE utf8mb4_general_ci", "INSERT INTO c VALUES (1)",
		"CREATE TRIGGER of_f BEFORE INSERT ON f FOR EACH ROW SET @f = 1", "CREATE VIEW over_f AS SELECT id FROM f")
	o := load.Options{Repo: takeBackup(t, from, "z"), Into: target(t, into)}
	var told *load.Incompatible
	if res, err := restore(t, o); !errors.As(err, &told) || res.Changed {
		t.Fatalf("%v: %+v", err, res)
	}
	i := slices.IndexFunc(told.Findings, func(f load.Finding) bool { return f.What == "table `z`.`f`" })
	if i < 0 {
		t.Fatalf("got %+v, want i at least 0", told.Findings)
	}
	_, advice, _ := strings.Cut(told.Findings[i].Why, "ALTER TABLE … ")
	advice, _, _ = strings.Cut(advice, " has one that is")
	var plan load.Plan
	o.SkipIncompatible, o.Confirm = true, func(p load.Plan) error { plan = p; return nil }
	res, err := restore(t, o)
	if !errors.Is(err, load.ErrLeftOut) || len(res.LeftOut) != 3 || res.Rows != 1 || len(plan.Notes) != 1 || len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "`to_f` refers to `z`.`f`") {
		t.Errorf("%v: got %+v: %q; want load.ErrLeftOut, len(LeftOut) 3, Rows 1, len(plan.Notes) 1, len(Notes) 1, \"`to_f` refers to `z`.`f`\" in Notes[0]",
			err, res, plan.Notes)
	}
	exec(t, stream(t, into), "DROP DATABASE z")
	exec(t, s, "SET foreign_key_checks = 0", "ALTER TABLE f "+advice)
	if res, err = restore(t, load.Options{Repo: takeBackup(t, from, "z"), Into: target(t, into)}); err == nil || !strings.Contains(err.Error(), "trigger") || strings.Contains(err.Error(), "`z`.`f`: character") {
		t.Errorf("converted: got %v: %+v; want an error, \"trigger\" in the error, no \"`z`.`f`: character\" in the error", err, res)
	}
	exec(t, s, "ALTER DATABASE z "+strings.TrimPrefix(advice, "CONVERT TO "), "DROP TRIGGER of_f", "CREATE TRIGGER of_f BEFORE INSERT ON f FOR EACH ROW SET @f = 1")
	if res, err = restore(t, load.Options{Repo: takeBackup(t, from, "z"), Into: target(t, into)}); err != nil || res.Rows != 2 || len(res.LeftOut) > 0 {
		t.Errorf("converted with its schema: got %v: %+v; want Rows 2, no res.LeftOut", err, res)
	}
	if got := ask(t, stream(t, into), "SELECT HEX(v) FROM z.f"); got != "F09F9880|\n" {
		t.Errorf("got %q, want \"F09F9880|\\n\"", got)
	}
	exec(t, s, "DROP DATABASE z")
	exec(t, stream(t, into), "DROP DATABASE z")
}

// testOddKeys: a foreign key that the server does not take, but another one took while its table did not exist yet, keeps neither of its
// tables from being restored: it is named.
func testOddKeys(t *testing.T, from, into *sandbox.Node) {
	s := stream(t, from)
	exec(t, s, "CREATE DATABASE o CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "USE o", "SET foreign_key_checks = 0", "CREATE TABLE a_child (id INT PRIMARY KEY, p BIGINT, c INT, t VARCHAR(9) CHARACTER SET latin1, g INT, CONSTRAINT wide FOREIGN KEY (p) REFERENCES parent (id), CONSTRAINT gone FOREIGN KEY (c) REFERENCES parent (x), "+
		"CONSTRAINT text FOREIGN KEY (t) REFERENCES parent (t), CONSTRAINT keyless FOREIGN KEY (g) REFERENCES parent (g), CONSTRAINT good FOREIGN KEY (c) REFERENCES parent (id))", "CREATE TABLE parent (id INT PRIMARY KEY, t VARCHAR(9), g INT, KEY (t))",
		"INSERT INTO parent VALUES (1, 'x', 1), (2, 'y', 2)", "INSERT INTO a_child VALUES (1, 1, 1, 'x', 1)", "CREATE TABLE fine (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES parent (id))")
	r := takeBackup(t, from, "o")
	exec(t, s, "DROP DATABASE o")
	res, err := restore(t, load.Options{Repo: r, Into: target(t, into), Threads: 1})
	told := ""
	for _, f := range res.Otherwise {
		told += f.What + ": " + f.Why + ": " + f.Mapped + "\n"
	}
	if err != nil || res.Rows != 3 || len(res.LeftOut) > 0 || strings.Contains(told, "CONSTRAINT `good`") || strings.Count(told, "table `o`.`a_child`: CONSTRAINT `") != len(res.Otherwise) {
		t.Errorf("%v: got %+v: %s; want Rows 3, no res.LeftOut, no \"CONSTRAINT `good`\" in it, strings.Count(told, \"table `o`.`a_child`: CONSTRAINT `\") %v",
			err, res, told, len(res.Otherwise))
	}
	keys := ask(t, stream(t, into), "SELECT CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'o' ORDER BY 1")
	for _, name := range []string{"fine_ibfk_1", "gone", "good", "keyless", "text", "wide"} {
		if there, said := strings.Contains(keys, name+"|"), strings.Contains(told, "CONSTRAINT `"+name+"`"); there == said {
			t.Errorf("%s: it is there: %v, and said to be not: %v", name, there, said)
		}
	}
	exec(t, stream(t, into), "DROP DATABASE o")
}

// testLostKey: rows of a table whose primary key stays away, because it is over a computed column, are compared nevertheless.
func testLostKey(t *testing.T, from, into *sandbox.Node) {
	s := stream(t, from)
	exec(t, s, "CREATE DATABASE p", "USE p", "CREATE TABLE g (a INT, b INT AS (a + 1) STORED PRIMARY KEY)", "INSERT INTO g (a) VALUES (1), (5)")
	r := takeBackup(t, from, "p")
	exec(t, s, "DROP DATABASE p")
	res, err := restore(t, load.Options{Repo: r, Into: target(t, into)})
	if err != nil || res.Rows != 2 || len(res.Otherwise) == 0 {
		t.Errorf("%v: got %+v; want Rows 2, len(Otherwise) not 0", err, res)
	}
	if got := ask(t, stream(t, into), "SELECT a FROM p.g ORDER BY 1"); got != "1|\n5|\n" {
		t.Errorf("got %q, want \"1|\\n5|\\n\"", got)
	}
	exec(t, stream(t, into), "DROP DATABASE p")
}

// testOtherLetters: programs that were made in a session of another character set, with names and comments that are no ASCII, come back as they were.
func testOtherLetters(t *testing.T, nodes map[string]*sandbox.Node) {
	questions := []string{"SELECT ROUTINE_NAME, ROUTINE_COMMENT, ROUTINE_DEFINITION, DEFINER, CHARACTER_SET_CLIENT FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'ö' ORDER BY 1", "SELECT EVENT_NAME, EVENT_COMMENT, EVENT_DEFINITION, DEFINER FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'ö'",
		"SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE, ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'ö'", "SELECT PARAMETER_NAME FROM information_schema.PARAMETERS WHERE SPECIFIC_SCHEMA = 'ö' ORDER BY 1", "SELECT TABLE_NAME FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'ö'", "SELECT * FROM `ö`.`vé`"}
	for spec, node := range nodes {
		s := stream(t, node)
		exec(t, s, "SET NAMES utf8mb4", "CREATE DATABASE `ö`", "USE `ö`", "CREATE TABLE `té` (a INT)", "CREATE USER `mü`@localhost")
		latin := func(text string) string {
			var b []byte
			for _, r := range text {
				b = append(b, byte(r))
			}
			return string(b)
		}
		exec(t, s, "SET NAMES latin1", latin("CREATE PROCEDURE `pé` (`aé` INT) COMMENT 'cé''s \\\\' SELECT 'bé', `aé`"), latin("CREATE EVENT `eé` ON SCHEDULE EVERY 1 DAY STARTS '2037-01-01' COMMENT 'cé' DO SELECT 'bé' /* COMMENT 'x' */"), latin("CREATE TRIGGER `gé` BEFORE INSERT ON `té` FOR EACH ROW SET @a = 'bé'"),
			latin("CREATE VIEW `vé` AS SELECT 'bé' AS `cé`"), "SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'", latin(`CREATE DEFINER="mü"@localhost PROCEDURE "pî" () COMMENT 'î\''' SQL SECURITY INVOKER SELECT 'î\'`), "SET sql_mode = DEFAULT", "SET NAMES utf8mb4")
		answers := func() (all string) {
			s := stream(t, node)
			exec(t, s, "SET NAMES utf8mb4")
			for _, q := range questions {
				all += ask(t, s, q)
			}
			return all
		}
		want := answers()
		r := takeBackup(t, node, "ö")
		exec(t, s, "DROP DATABASE `ö`")
		if res, err := restore(t, load.Options{Repo: r, Into: target(t, node)}); err != nil || res.Objects != 5 {
			t.Errorf("%s: got %v: %+v; want Objects 5", spec, err, res)
			continue
		}
		if got := answers(); got != want || !strings.Contains(got, "cé's \\|") || !strings.Contains(got, "eé|cé|") {
			t.Errorf("%s: %s", spec, differ(want, got))
		}
		exec(t, s, "DROP DATABASE `ö`", "DROP USER `mü`@localhost")
	}
}

// testBrokenTrigger: a trigger that names a column which its table no longer has cannot be made anywhere: it is named, and stops nothing else.
func testBrokenTrigger(t *testing.T, nodes map[string]*sandbox.Node) {
	for spec, node := range nodes {
		s := stream(t, node)
		exec(t, s, "CREATE DATABASE j", "USE j", "CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1, 1)", "CREATE TRIGGER broken BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1", "CREATE TABLE u (id INT PRIMARY KEY)",
			"CREATE TRIGGER whole BEFORE INSERT ON u FOR EACH ROW SET NEW.id = 7", "ALTER TABLE t DROP COLUMN a")
		r := takeBackup(t, node, "j")
		exec(t, s, "DROP DATABASE j")
		res, err := restore(t, load.Options{Repo: r, Into: target(t, node)})
		if !errors.Is(err, load.ErrLeftOut) || res.Rows != 1 || res.Objects != 1 || len(res.LeftOut) != 1 || res.LeftOut[0].What != "trigger `j`.`broken`" || !strings.Contains(res.LeftOut[0].Create, "NEW.a = 1") {
			t.Errorf("%s: got %v: %+v; want load.ErrLeftOut, Rows 1, Objects 1, len(LeftOut) 1, LeftOut[0].What \"trigger `j`.`broken`\", \"NEW.a = 1\" in LeftOut[0].Create",
				spec, err, res)
		}
		exec(t, s, "DROP DATABASE j")
	}
}
