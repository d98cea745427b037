package load_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/sandbox"
)

// shop is a schema with a little of everything.
var shop = []string{
	"CREATE DATABASE `odd ``name.x` CHARACTER SET utf8mb4",
	"USE `odd ``name.x`",
	"CREATE TABLE seq (n INT PRIMARY KEY)",
	"INSERT INTO seq SELECT a.d + b.d * 10 + c.d * 100 FROM (SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) a, (SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) b, (SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) c",
	"CREATE TABLE `t \"1\"` (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, `grö\nße` DECIMAL(30,10), b BIT(7), j JSON, e ENUM('a','ü'), d DATETIME(6), z BLOB, v INT AS (b + 1) STORED, f FLOAT, y YEAR, tx TEXT CHARACTER SET latin1, KEY (`grö\nße`), UNIQUE KEY u (d)) COMMENT 'it''s; \\\\ \n ü'",
	"INSERT INTO `t \"1\"` (`grö\nße`, b, j, e, d, z, f, y, tx) SELECT n * 1.5, n % 128, JSON_OBJECT('a', n), IF(n % 2, 'a', 'ü'), '2018-07-13 10:00:00.123456' + INTERVAL n SECOND, CONCAT('\\t\\n\\\\\\0\\r''\"', UNHEX(SHA2(n, 256))), n / 3, 1901 + n % 200, CONCAT('ß\\t\\n\\\\', n) FROM seq",
	"CREATE TABLE kids (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES seq (n))",
	"INSERT INTO kids SELECT n, n FROM seq",
	"CREATE TABLE k1 (id INT PRIMARY KEY, r INT)", "CREATE TABLE k2 (id INT PRIMARY KEY, r INT, FOREIGN KEY (r) REFERENCES k1 (id))",
	"ALTER TABLE k1 ADD FOREIGN KEY (r) REFERENCES k2 (id)", "SET foreign_key_checks = 0", "INSERT INTO k1 VALUES (1, 1)", "INSERT INTO k2 VALUES (1, 1)", "SET foreign_key_checks = 1",
	"CREATE TABLE `empty` (id INT PRIMARY KEY)",
	"CREATE TABLE old (id INT PRIMARY KEY, x TEXT CHARACTER SET latin1, ts TIMESTAMP NULL) ENGINE = MyISAM",
	"INSERT INTO old VALUES (1, 'x', NULL), (2, 'ß', '2000-01-01 00:00:01')",
	"CREATE TABLE nokey (a INT, b VARCHAR(10))", "INSERT INTO nokey VALUES (1, NULL), (1, NULL), (2, ''), (3, '\\\\N'), (4, 'NULL')",
	"CREATE TABLE geo (id INT PRIMARY KEY, g POINT NOT NULL, SPATIAL KEY (g))", "INSERT INTO geo SELECT n, ST_GeomFromText(CONCAT('POINT(', n % 90, ' ', n / 7, ')')) FROM seq",
	"CREATE VIEW b_view AS SELECT id FROM kids", "CREATE VIEW a_view AS SELECT id FROM b_view",
	"CREATE TRIGGER tr BEFORE INSERT ON old FOR EACH ROW SET NEW.x = CONCAT(NEW.x, '!')",
	"CREATE FUNCTION f (a INT) RETURNS INT DETERMINISTIC RETURN a + 1",
	"CREATE PROCEDURE pr () BEGIN SELECT 'ä'; END",
	"CREATE EVENT ev ON SCHEDULE EVERY 1 DAY ENABLE DO SELECT 1",
}

var shopTables = []string{"seq", "`t \"1\"`", "kids", "k1", "k2", "`empty`", "old", "nokey", "geo"}

var servers = []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"}

// TestRoundTrip: what is restored is what was, on every server; nothing is overwritten; one table can be restored alone.
func TestRoundTrip(t *testing.T) {
	for _, spec := range servers {
		t.Run(spec, func(t *testing.T) {
			node := lend(t, spec)
			s := stream(t, node)
			exec(t, s, "SET GLOBAL event_scheduler = ON", "SET GLOBAL log_bin_trust_function_creators = OFF")
			exec(t, s, shop...)
			r, _ := emptyRepo(t)
			smallDump(t, node, r, "odd `name.x")
			before := picture(t, node)
			o := load.Options{Repo: r, Into: target(t, node), Threads: 3}
			if _, err := restore(t, o); !errors.Is(err, load.ErrExists) {
				t.Fatalf("over what is there: %v, want load.ErrExists", err)
			}
			if d := differ(before, picture(t, node)); d != "" {
				t.Fatalf("a refused restore changed something: got %s, want \"\"", d)
			}
			exec(t, s, "USE mysql", "DROP DATABASE `odd ``name.x`")
			res, err := restore(t, o)
			if err != nil {
				t.Fatalf("%v: %+v", err, res)
			}
			if d := differ(before, picture(t, node)); d != "" {
				t.Fatalf("got %v, want \"\"", d)
			}
			if res.Tables != int64(len(shopTables)) || len(res.Different) != 0 || res.Rows == 0 {
				t.Errorf("got %+v; want Tables %v, no res.Different, Rows not 0", res, int64(len(shopTables)))
			}
			exec(t, s, "DELETE FROM `odd ``name.x`.kids WHERE id % 2")
			o.Tables, o.Rename = []string{"`odd ``name.x`.k*s"}, []string{"`odd ``name.x`.kids=beside.kids2"}
			if res, err = restore(t, o); err != nil || res.Tables != 1 || res.Rows != 1000 {
				t.Fatalf("one table: got %+v, %v; want Tables 1, Rows 1000", res, err)
			}
			o.Rename, o.Overwrite = nil, true
			exec(t, s, "SET GLOBAL local_infile = 0")
			if res, err = restore(t, o); err != nil || res.Tables != 1 {
				t.Fatalf("one table over what is there, by INSERT: %+v, %v; want Tables 1", res, err)
			}
			if d := differ(before, picture(t, node)); d != "" {
				t.Fatalf("got %v, want \"\"", d)
			}
			o.Tables = nil
			if res, err = restore(t, o); err != nil {
				t.Fatalf("everything over what is there, by INSERT: %+v, %v", res, err)
			}
			if d := differ(before, picture(t, node)); d != "" {
				t.Fatalf("got %v, want \"\"", d)
			}
			if !strings.HasPrefix(spec, "mariadb") {
				return
			}
			prepared := ask(t, s, "SHOW GLOBAL STATUS LIKE 'Com_stmt_prepare'")
			o.BulkBytes = 1
			if res, err = restore(t, o); err != nil {
				t.Fatalf("everything by prepared INSERTs: %+v, %v", res, err)
			}
			if d := differ(before, picture(t, node)); d != "" {
				t.Fatalf("got %v, want \"\"", d)
			}
			if ask(t, s, "SHOW GLOBAL STATUS LIKE 'Com_stmt_prepare'") == prepared {
				t.Error("nothing was prepared")
			}
		})
	}
}

// picture is the checksum and definition of everything in the shop.
func picture(t *testing.T, node *sandbox.Node) string {
	t.Helper()
	s := stream(t, node)
	exec(t, s, "USE `odd ``name.x`")
	var b strings.Builder
	for _, table := range shopTables {
		if table != "`t \"1\"`" { // MySQL 5.7 adds up the addresses of JSON values
			b.WriteString(ask(t, s, "CHECKSUM TABLE "+table))
		}
		fmt.Fprintf(&b, "%s %x\n", table, sha256.Sum256([]byte(ask(t, s, "SELECT * FROM "+table+" ORDER BY 1"))))
		b.WriteString(ask(t, s, "SHOW CREATE TABLE "+table))
	}
	for _, o := range []string{"VIEW a_view", "VIEW b_view", "FUNCTION f", "PROCEDURE pr", "EVENT ev"} {
		b.WriteString(ask(t, s, "SHOW CREATE "+o))
	}
	b.WriteString(ask(t, s, "SELECT TRIGGER_NAME, ACTION_STATEMENT, SQL_MODE, DEFINER, CHARACTER_SET_CLIENT, COLLATION_CONNECTION, DATABASE_COLLATION FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'odd `name.x'"))
	b.WriteString(ask(t, s, "SELECT f(1), COUNT(*) FROM a_view"))
	return b.String()
}

// differ returns the lines that two texts do not share.
func differ(a, b string) string {
	if a == b {
		return ""
	}
	count := map[string]int{}
	for _, l := range strings.Split(a, "\n") {
		count[l]++
	}
	for _, l := range strings.Split(b, "\n") {
		count[l]--
	}
	var out []string
	for l, n := range count {
		switch {
		case n > 0:
			out = append(out, "- "+l)
		case n < 0:
			out = append(out, "+ "+l)
		}
	}
	return "other lines, or another order:\n" + strings.Join(out, "\n")
}

// TestOther: what a server of another kind does not know is reported before anything is changed, and left out on request.
func TestOther(t *testing.T) {
	from, into := lend(t, "mysql-9.7"), lend(t, "mariadb")
	s := stream(t, from)
	exec(t, s, "CREATE DATABASE o", "USE o", "CREATE TABLE t (id INT PRIMARY KEY, j JSON, i INT INVISIBLE)", `INSERT INTO t VALUES (1, '{"a": 1}')`,
		"CREATE TABLE f (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET gb18030)", "CREATE VIEW v AS SELECT id FROM t", "CREATE VIEW w AS SELECT id FROM f")
	r, _ := emptyRepo(t)
	smallDump(t, from, r, "o")
	o := load.Options{Repo: r, Into: target(t, into)}
	to := stream(t, into)
	_, err := restore(t, o)
	if !errors.Is(err, load.ErrIncompatible) || !strings.Contains(err.Error(), "`o`.`f`") {
		t.Fatalf("got %v; want load.ErrIncompatible, \"`o`.`f`\" in the error", err)
	}
	if left := ask(t, to, "SHOW DATABASES LIKE 'o'") + ask(t, to, "SHOW DATABASES LIKE 'risso%'"); left != "" {
		t.Fatalf("refused, and there is %s; want \"\"", left)
	}
	var plan load.Plan
	o.SkipIncompatible, o.Confirm = true, func(p load.Plan) error { plan = p; return nil }
	res, err := restore(t, o)
	if !errors.Is(err, load.ErrLeftOut) || res.Tables != 1 || res.Rows != 1 {
		t.Fatalf("got %+v, %v; want load.ErrLeftOut, Tables 1, Rows 1", res, err)
	}
	said := fmt.Sprint(plan.Findings)
	for _, word := range []string{"utf8mb4_0900_ai_ci", "`o`.`f`", "`o`.`w`"} {
		if !strings.Contains(said, word) {
			t.Errorf("%s is not said: %s", word, said)
		}
	}
	if got := ask(t, to, "SELECT id, j FROM o.t") + ask(t, to, "SELECT * FROM o.v"); got != "1|{\"a\": 1}|\n1|\n" {
		t.Errorf("got %q, want \"1|{\\\"a\\\": 1}|\\n1|\\n\"", got)
	}
	if len(res.Notes) > 0 {
		t.Errorf("what stays away was told before: %q, want none", res.Notes)
	}
}

// TestDamage: a changed bit of a chunk is found before any of its rows is sent; once repaired, the restore goes on; --overwrite leaves other
// tables alone.
func TestDamage(t *testing.T) {
	node := lend(t, "mariadb")
	s := stream(t, node)
	exec(t, s, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v TEXT)", "INSERT INTO d.t VALUES (1, 'a'), (2, 'b')")
	r, dir := emptyRepo(t)
	smallDump(t, node, r, "d")
	exec(t, s, "DROP DATABASE d")
	o := load.Options{Repo: r, Into: target(t, node)}
	chunks, err := filepath.Glob(filepath.Join(dir, "data", "d", "t", "*"))
	if err != nil || len(chunks) != 1 {
		t.Fatalf("got %v, %v; want length 1", chunks, err)
	}
	whole, err := os.ReadFile(chunks[0])
	if err != nil {
		t.Fatal(err)
	}
	damaged := slices.Clone(whole)
	damaged[len(damaged)/2] ^= 4
	if err := os.WriteFile(chunks[0], damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := restore(t, o); !errors.Is(err, repo.ErrDamaged) {
		t.Fatalf("got %v, want repo.ErrDamaged", err)
	}
	if n := ask(t, s, "SELECT COUNT(*) FROM d.t"); n != "0|\n" {
		t.Errorf("%s rows of a damaged chunk, want \"0|\\n\"", n)
	}
	if err := os.WriteFile(chunks[0], whole, 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := restore(t, o)
	if err != nil || !res.Resumed || res.Rows != 2 {
		t.Fatalf("got %+v, %v; want Resumed true, Rows 2", res, err)
	}
	exec(t, s, "DROP DATABASE d", "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v TEXT)")
	exec(t, s, "CREATE TABLE d.other (id INT PRIMARY KEY)")
	o.Overwrite, o.Table = true, nil
	if res, err = restore(t, o); err != nil {
		t.Fatalf("%+v, %v", res, err)
	}
	if n := ask(t, s, "SELECT COUNT(*) FROM d.other"); n != "0|\n" {
		t.Errorf("a table that the backup does not have was touched: got %v, want \"0|\\n\"", n)
	}
}

// TestLargeRows: rows that fill an INSERT each are loaded by INSERT; one that is larger than the server takes is refused before anything
// is changed, or is loaded by LOAD DATA if that is allowed.
func TestLargeRows(t *testing.T) {
	node := lend(t, "mariadb")
	s := stream(t, node)
	exec(t, s, "SET GLOBAL local_infile = 0")
	exec(t, s, "CREATE DATABASE l", "CREATE TABLE l.t (id INT AUTO_INCREMENT PRIMARY KEY, a LONGBLOB)", "CREATE TABLE l.ü (ö INT PRIMARY KEY)", "INSERT INTO l.ü VALUES (1)",
		"INSERT INTO l.t (a) VALUES (REPEAT('\\0', 400000)), (REPEAT('a''', 300000)), ('x'), (REPEAT('b', 900000))")
	r, _ := emptyRepo(t)
	smallDump(t, node, r, "l")
	picture := func() string { return ask(t, s, "CHECKSUM TABLE l.t, l.ü") + ask(t, s, "SHOW CREATE TABLE l.ü") }
	before := picture()
	exec(t, s, "SET GLOBAL max_allowed_packet = 1048576", "DROP DATABASE l")
	if res, err := restore(t, load.Options{Repo: r, Into: target(t, node), Threads: 3}); err != nil {
		t.Fatalf("%v: %+v", err, res)
	}
	if after := picture(); after != before {
		t.Errorf("there was %s, there is %s", before, after)
	}
	exec(t, s, "SET GLOBAL max_allowed_packet = 16777216")
	exec(t, stream(t, node), "INSERT INTO l.t (a) SELECT REPEAT('c', 9000000)")
	r, _ = emptyRepo(t)
	smallDump(t, node, r, "l")
	before = picture()
	exec(t, s, "SET GLOBAL max_allowed_packet = 1048576", "DROP DATABASE l")
	o := load.Options{Repo: r, Into: target(t, node), Threads: 3}
	if _, err := restore(t, o); !errors.Is(err, load.ErrIncompatible) || !strings.Contains(err.Error(), "max_allowed_packet") {
		t.Fatalf("got %v; want load.ErrIncompatible, \"max_allowed_packet\" in the error", err)
	}
	if left := ask(t, s, "SHOW DATABASES LIKE 'l'"); left != "" {
		t.Errorf("refused, and something was made: got %v, want \"\"", left)
	}
	exec(t, s, "SET GLOBAL local_infile = 1")
	if res, err := restore(t, o); err != nil {
		t.Fatalf("%v: %+v", err, res)
	}
	if after := picture(); after != before {
		t.Errorf("there was %s, there is %s", before, after)
	}
}
