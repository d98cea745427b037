package load_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// rental is a schema of the kind that people try servers with: every kind of program, words after SET that are no character
// sets, and types whose text differs between servers.
var rental = []string{
	"CREATE DATABASE rental CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci", "USE rental",
	"CREATE TABLE film (film_id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, title VARCHAR(128) NOT NULL, year YEAR, rate DECIMAL(4,2) NOT NULL DEFAULT 4.99, surface FLOAT(10,2) NOT NULL DEFAULT '0.00', " +
		"rating ENUM('G','PG','NC-17') DEFAULT 'G', extras SET('Trailers','Deleted Scenes'), code CHAR(3) CHARACTER SET latin1 NOT NULL DEFAULT '', picture BLOB, changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, " +
		"KEY (title(20)), FULLTEXT KEY words (title))",
	"INSERT INTO film VALUES (1, 'ACADEMY DINOSAUR', 2006, 0.99, 652090.00, 'PG', 'Deleted Scenes', 'AFG', x'89504e470d0a', '2006-02-15 05:03:42'), (2, 'Größe''s -- end', 1901, 4.99, 193.5, 'NC-17', 'Trailers,Deleted Scenes', 'é', NULL, '2038-01-19 03:14:07')",
	"CREATE TABLE payment (payment_id INT NOT NULL, film_id SMALLINT UNSIGNED NOT NULL, amount DECIMAL(5,2) NOT NULL, paid DATE NOT NULL, PRIMARY KEY (payment_id, paid), KEY (film_id)) " +
		"PARTITION BY RANGE (TO_DAYS(paid)) (PARTITION p0 VALUES LESS THAN (TO_DAYS('2006-01-01')), PARTITION p1 VALUES LESS THAN MAXVALUE)",
	"INSERT INTO payment VALUES (1, 1, 2.99, '2005-05-25'), (2, 2, 0.99, '2006-02-14')",
	"CREATE TABLE rent (id INT PRIMARY KEY, film_id SMALLINT UNSIGNED, CONSTRAINT fk_rent FOREIGN KEY (film_id) REFERENCES film (film_id) ON UPDATE CASCADE)", "INSERT INTO rent VALUES (7, 2)",
	"CREATE TABLE words_of (film_id SMALLINT PRIMARY KEY, title VARCHAR(255))", "CREATE TABLE plain (id INT PRIMARY KEY, v CHAR(9)) ENGINE=MyISAM", "INSERT INTO plain VALUES (1, 'x')",
	"CREATE TABLE marks (id INT PRIMARY KEY, a ENUM('x','y'), b ENUM('x','','y'), c SET('p','','q'), d ENUM('2','','1'), e ENUM('é','') CHARACTER SET ucs2, z ENUM('0','1') NOT NULL, y YEAR, t TIME(6), d0 DATE, ts TIMESTAMP(6) NULL, bi BIT(9), du DOUBLE, bin BINARY(3))",
	"SET sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'", "INSERT IGNORE INTO marks VALUES (1, 0, 0, 0, 0, 0, 0, 0, '-838:59:59', '0000-00-00', '0000-00-00 00:00:00', 0, 5e-324, ''), (2, 'x', '', 2, '', '', '0', 1901, '-00:00:00.000001', '2020-02-31', '2021-10-31 01:30:00', 256, 1.7976931348623157e308, 'a '), " +
		"(3, 2, 1, 3, 1, 1, 1, 2155, '838:59:59', '9999-12-31', '2021-10-31 00:30:00.5', 511, -2.2250738585072014e-308, x'000000'), (4, NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL), (5, 1, 3, 6, 3, 2, 2, 70, '12:00:00', '2020-00-00', '1970-01-01 00:00:01', 1, 0.1e0 + 0.2e0, 'abc')",
	"CREATE TABLE counted (id INT AUTO_INCREMENT PRIMARY KEY, v INT)", "INSERT INTO counted VALUES (0, 1), (-5, 2), (7, 3)", "SET sql_mode = DEFAULT",
	"CREATE TRIGGER ins_film AFTER INSERT ON film FOR EACH ROW BEGIN INSERT INTO words_of VALUES (NEW.film_id, NEW.title); SET @last_title = NEW.title; END",
	"CREATE FUNCTION title_of (p_film INT) RETURNS VARCHAR(128) READS SQL DATA BEGIN DECLARE v VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci; SET v = (SELECT title FROM film WHERE film_id = p_film); RETURN v; END",
	"CREATE PROCEDURE rewards (IN p_min TINYINT UNSIGNED, OUT p_count INT) READS SQL DATA COMMENT 'a customizable report' BEGIN DECLARE last_month_start DATE; DECLARE last_month_end DATE; " +
		"/* don't */ SET last_month_start = DATE_SUB('2006-03-14', INTERVAL 1 MONTH);\n-- it isn't one\nSET last_month_start = STR_TO_DATE(CONCAT(YEAR(last_month_start),'-',MONTH(last_month_start),'-01'),'%Y-%m-%d');\n" +
		"SET last_month_end = LAST_DAY(last_month_start); CREATE TEMPORARY TABLE tmp (n INT NOT NULL PRIMARY KEY); INSERT INTO tmp SELECT payment_id FROM payment WHERE paid BETWEEN last_month_start AND last_month_end; SELECT COUNT(*) FROM tmp INTO p_count; DROP TABLE tmp; END",
	"CREATE VIEW list AS SELECT f.film_id AS id, title_of(f.film_id) AS title, GROUP_CONCAT(CONCAT(p.amount, _utf8mb4' on ', p.paid) ORDER BY p.paid SEPARATOR ', ') AS paid FROM film f LEFT JOIN payment p ON f.film_id = p.film_id GROUP BY f.film_id",
	"CREATE VIEW above AS SELECT id, title FROM list WHERE paid IS NOT NULL",
	"CREATE EVENT nightly ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 00:00:00' DO BEGIN SET @seen = 1; CALL rewards(1, @seen); END",
}

// rentalAnswers ask for all of it, through each program.
var rentalAnswers = []string{
	"SELECT * FROM film ORDER BY film_id", "SELECT HEX(title), HEX(code), HEX(picture), rating + 0, extras + 0, surface + 0 FROM film ORDER BY film_id", "SELECT * FROM payment ORDER BY payment_id", "SELECT * FROM rent", "SELECT * FROM plain", "SELECT id, a + 0, b + 0, c + 0, d + 0, e + 0, z + 0, y, t, d0, ts, HEX(bi), du, HEX(bin) FROM marks ORDER BY id", "SELECT * FROM counted ORDER BY id", "SELECT AUTO_INCREMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'rental' AND TABLE_NAME = 'counted'",
	"SELECT * FROM list ORDER BY id", "SELECT * FROM above ORDER BY id",
	"CALL rewards(7, @c)", "SELECT @c", "INSERT INTO film (film_id, title) VALUES (50, 'made by a trigger')", "SELECT * FROM words_of", "SELECT @last_title", "DELETE FROM film WHERE film_id = 50", "DELETE FROM words_of",
	"SELECT COUNT(*) FROM payment PARTITION (p0)", "SELECT film_id FROM film WHERE MATCH (title) AGAINST ('dinosaur')", "SELECT EVENT_NAME, STATUS FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'rental'",
	"SELECT CONSTRAINT_NAME, UPDATE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'rental'",
}

// travellers are all servers that are here, each started once for all journeys.
func travellers(t *testing.T) map[string]*sandbox.Node {
	var mu sync.Mutex
	nodes := map[string]*sandbox.Node{}
	t.Run("start", func(t *testing.T) {
		for _, spec := range servers {
			if _, err := sandboxtest.Find(t.Context(), spec); err != nil {
				sandboxtest.Need(t, spec)
			}
		}
	})
	var wait sync.WaitGroup
	for _, spec := range servers {
		if _, err := sandboxtest.Find(t.Context(), spec); err != nil {
			continue
		}
		wait.Go(func() {
			node := lend(t, spec)
			mu.Lock()
			nodes[spec] = node
			mu.Unlock()
		})
	}
	wait.Wait()
	return nodes
}

// takeBackup takes a whole backup of some schemas.
func takeBackup(t *testing.T, node *sandbox.Node, schemas ...string) *repo.Repo {
	t.Helper()
	r, _ := emptyRepo(t)
	if _, err := dump.Run(t.Context(), r, dump.Options{Target: target(t, node), Threads: 2, Select: dump.Selection{Schemas: schemas}}); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTravel: what one server holds is restored on each other one, and what cannot be is reported by name.
func TestTravel(t *testing.T) {
	nodes := travellers(t)
	t.Run("every pair", func(t *testing.T) { testPairs(t, nodes) })
	t.Run("collations", func(t *testing.T) { testDefaultCollations(t, nodes) })
	t.Run("types in JSON", func(t *testing.T) { testTypes(t, nodes) })
	t.Run("foreign clauses", func(t *testing.T) { testForeign(t, nodes) })
	t.Run("long rows", func(t *testing.T) { testLongRows(t, nodes) })
	t.Run("merge", func(t *testing.T) { testMerge(t, nodes["mariadb"], nodes["mysql-9.7"]) })
	t.Run("left out", func(t *testing.T) { testLeftOut(t, nodes["mariadb"], nodes["mysql-9.7"]) })
	t.Run("beside", func(t *testing.T) { testBeside(t, nodes) })
	t.Run("lost definers", func(t *testing.T) { testLostDefiners(t, nodes) })
	t.Run("lost function", func(t *testing.T) { testLostFunction(t, nodes) })
	t.Run("computed", func(t *testing.T) { testComputed(t, nodes) })
	t.Run("archive", func(t *testing.T) { testArchive(t, nodes["mysql-9.7"]) })
	t.Run("bytes", func(t *testing.T) { testBytes(t, nodes) })
	t.Run("past events", func(t *testing.T) { testPastEvents(t, nodes) })
	t.Run("checks", func(t *testing.T) { testChecks(t, nodes["mariadb"], nodes["mysql-9.7"]) })
	t.Run("text defaults", func(t *testing.T) { testTextDefaults(t, nodes["mariadb"], nodes["mysql-9.7"]) })
	t.Run("non-standard keys", func(t *testing.T) { testNonStandardKeys(t, nodes) })
	t.Run("warning rows", func(t *testing.T) { testWarningRows(t, nodes) })
	t.Run("broken checks", func(t *testing.T) { testBrokenChecks(t, nodes["mariadb"], nodes["mysql-9.7"]) })
	t.Run("refused tables", func(t *testing.T) { testRefusedTables(t, nodes["mysql-9.7"]) })
	t.Run("other letters", func(t *testing.T) { testOtherLetters(t, nodes) })
	t.Run("broken trigger", func(t *testing.T) { testBrokenTrigger(t, nodes) })
	t.Run("lost key", func(t *testing.T) { testLostKey(t, nodes["mysql-9.7"], nodes["mariadb"]) })
	t.Run("odd keys", func(t *testing.T) { testOddKeys(t, nodes["mariadb"], nodes["mysql-9.7"]) })
	t.Run("odd keys at home", func(t *testing.T) { testOddKeys(t, nodes["mariadb"], nodes["mariadb"]) })
	t.Run("unknown character set", func(t *testing.T) { testUnknownCharset(t, nodes["mysql-9.7"], nodes["mariadb"]) })
	t.Run("types of sequences", func(t *testing.T) { testSequenceTypes(t, nodes["mariadb-11.8"], nodes["mariadb"]) })
}

// testPairs takes a schema from each server to each other one, and asks both the same.
func testPairs(t *testing.T, nodes map[string]*sandbox.Node) {
	answers := func(node *sandbox.Node) string {
		s := stream(t, node)
		exec(t, s, "SET NAMES utf8mb4", "SET time_zone = '+00:00'", "USE rental")
		var b strings.Builder
		for _, q := range rentalAnswers {
			fmt.Fprintf(&b, "%s:\n%s", q, ask(t, s, q))
		}
		return b.String()
	}
	for from, source := range nodes {
		exec(t, stream(t, source), rental...)
		r, want := takeBackup(t, source, "rental"), answers(source)
		exec(t, stream(t, source), "DROP DATABASE rental")
		for into, node := range nodes {
			t.Run(from+" to "+into, func(t *testing.T) {
				res, err := restore(t, load.Options{Repo: r, Into: target(t, node)})
				otherwise := slices.DeleteFunc(slices.Clone(res.Otherwise), func(f load.Finding) bool { // MariaDB's collations of UCA 14
					return from == "mariadb-11.8" && strings.HasSuffix(f.Why, "sorts and compares a little differently")
				})
				if err != nil || len(res.Notes) > 0 || len(otherwise) > 0 {
					t.Errorf("%v: got %+v, %+v, %+v; want no res.Notes, no otherwise", err, res.Different, res.LeftOut, res.Otherwise)
				}
				if got := answers(node); got != want {
					t.Error(differ(want, got))
				}
				exec(t, stream(t, node), "DROP DATABASE rental")
			})
			if t.Failed() {
				return
			}
		}
	}
}

// testDefaultCollations: a character set that is named alone means the collation that it meant where it was written, on servers with other
// defaults, too: keys depend on it.
func testDefaultCollations(t *testing.T, nodes map[string]*sandbox.Node) {
	const columns = "SELECT TABLE_NAME, COLUMN_NAME, REPLACE(COLLATION_NAME, 'utf8mb3', 'utf8') FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'k' AND TABLE_NAME <> 'v' ORDER BY 1, 2"
	const others = "SELECT REPLACE(DEFAULT_COLLATION_NAME, 'utf8mb3', 'utf8') FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'k' UNION ALL SELECT REPLACE(COLLATION_NAME, 'utf8mb3', 'utf8') FROM information_schema.PARAMETERS WHERE SPECIFIC_SCHEMA = 'k'"
	for from, source := range nodes {
		exec(t, stream(t, source), "CREATE DATABASE k CHARACTER SET utf8mb4", "USE k", "CREATE TABLE a (a VARCHAR(9), UNIQUE KEY (a)) CHARSET=utf8mb4", "INSERT IGNORE INTO a VALUES ('ß'), ('ss')",
			"CREATE TABLE b (a VARCHAR(9), g VARCHAR(20) AS (CONCAT(a, CONVERT('x' USING utf8))) STORED) CHARSET=utf8", "CREATE TABLE c (a VARCHAR(9) CHARACTER SET utf8mb4, b ENUM('x') CHARACTER SET utf8, c CHAR(1) CHARACTER SET ucs2, d TEXT CHARACTER SET utf16, e TEXT CHARACTER SET utf32) CHARSET=latin1",
			"CREATE FUNCTION f (x VARCHAR(9) CHARSET utf8mb4) RETURNS VARCHAR(9) CHARSET utf8 DETERMINISTIC RETURN x")
		r := takeBackup(t, source, "k")
		want, also := ask(t, stream(t, source), columns), ask(t, stream(t, source), others)
		exec(t, stream(t, source), "DROP DATABASE k")
		for into, node := range nodes {
			res, err := restore(t, load.Options{Repo: r, Into: target(t, node)})
			if err != nil {
				t.Errorf("%s to %s: %v: %+v", from, into, err, res.Different)
			}
			if got := ask(t, stream(t, node), columns); got != want && len(res.Otherwise) == 0 {
				t.Errorf("%s to %s: %s", from, into, differ(want, got))
			}
			if got := ask(t, stream(t, node), others); got != also && (from == "mysql-5.7" || from == "mariadb") && into != "mariadb-11.8" { // elsewhere parameters have the session's default
				t.Errorf("%s to %s: %s", from, into, differ(also, got))
			}
			exec(t, stream(t, node), "DROP DATABASE k")
		}
	}
}

// testLongRows: rows that are large go in by a prepared INSERT, in pieces, where LOAD DATA takes a time that grows with the square of
// their size; what the server takes in no INSERT is still loaded by LOAD DATA.
func testLongRows(t *testing.T, nodes map[string]*sandbox.Node) {
	for from, node := range nodes {
		if strings.HasPrefix(from, "mariadb") { // it has bulk operations
			continue
		}
		t.Run(from, func(t *testing.T) {
			s := stream(t, node)
			exec(t, s, "CREATE DATABASE l CHARACTER SET utf8mb4", "USE l", "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a LONGBLOB, n INT, j JSON, x LONGTEXT CHARACTER SET latin1, e VARCHAR(9))",
				"INSERT INTO t VALUES (1, REPEAT(x'00275c0a41ff0d', 300000), NULL, JSON_ARRAY(REPEAT('ä\\n', 100000), 1), REPEAT(_latin1 x'e4', 70000), ''), (2, NULL, 5, NULL, NULL, NULL), (3, REPEAT('b', 65536), -1, '[1]', REPEAT('c', 65537), 'd')",
				"CREATE TABLE small LIKE t", "INSERT INTO small (a, e) SELECT REPEAT('x', 100), id FROM t", "INSERT INTO small (a) VALUES (REPEAT('y', 1200000))")
			picture := func() string {
				return ask(t, stream(t, node), "SELECT id, SHA2(a, 256), n, SHA2(j, 256), JSON_TYPE(j), SHA2(HEX(x), 256), e FROM l.t ORDER BY 1") + ask(t, stream(t, node), "SELECT id, SHA2(a, 256), e FROM l.small ORDER BY 1")
			}
			sent := func() string { return ask(t, stream(t, node), "SHOW GLOBAL STATUS LIKE 'Com_stmt_send_long_data'") }
			r, want, before := takeBackup(t, node, "l"), picture(), sent()
			for _, packet := range []string{"@@max_allowed_packet", "1048576"} {
				exec(t, s, "DROP DATABASE l", "SET GLOBAL max_allowed_packet = "+packet)
				if res, err := restore(t, load.Options{Repo: r, Into: target(t, node)}); err != nil {
					t.Fatalf("%v: %+v", err, res.Different)
				}
				if got := picture(); got != want {
					t.Error(differ(want, got))
				}
				if after := sent(); after == before {
					t.Error("no value was sent in pieces")
				}
			}
			exec(t, s, "DROP DATABASE l", "SET GLOBAL max_allowed_packet = 4194304")
		})
	}
}

// testMerge: a table over others is tried without them, which are not there yet, and what comes after it is tried as well.
func testMerge(t *testing.T, from, into *sandbox.Node) {
	exec(t, stream(t, from), "CREATE DATABASE m CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "USE m", "CREATE TABLE z1 (id INT PRIMARY KEY) ENGINE=MyISAM", "CREATE TABLE z2 LIKE z1", "INSERT INTO z1 VALUES (1)", "INSERT INTO z2 VALUES (2)",
		"CREATE TABLE both_of (id INT, KEY (id)) ENGINE=MERGE UNION=(z1, z2) INSERT_METHOD=LAST", "ALTER TABLE z1 DROP PRIMARY KEY, MODIFY id INT, ADD KEY (id)", "ALTER TABLE z2 DROP PRIMARY KEY, MODIFY id INT, ADD KEY (id)",
		"CREATE TABLE c (id INT PRIMARY KEY)", "INSERT INTO c VALUES (3)")
	res, err := restore(t, load.Options{Repo: takeBackup(t, from, "m"), Into: target(t, into)})
	if err != nil || res.Tables != 4 || len(res.LeftOut) > 0 {
		t.Fatalf("%v: got %+v, %+v, %+v; want res.Tables 4, no res.LeftOut", err, res.Different, res.LeftOut, res.Otherwise)
	}
	if got := ask(t, stream(t, into), "SELECT id FROM m.both_of ORDER BY 1") + ask(t, stream(t, into), "SELECT id FROM m.c"); got != "1|\n2|\n3|\n" {
		t.Errorf("got %q, want \"1|\\n2|\\n3|\\n\"", got)
	}
}

// testLeftOut: what was left away on request makes the restore an error that names each, though all the rest is there and equal.
func testLeftOut(t *testing.T, from, into *sandbox.Node) {
	exec(t, stream(t, from), "CREATE DATABASE a CHARACTER SET utf8mb4 COLLATE utf8mb4_bin COMMENT 'of a'", "USE a", "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE SEQUENCE s", "CREATE VIEW own_view AS SELECT JSON_DETAILED('[1]') AS j", "CREATE TABLE away (id INT)", "CREATE VIEW broken AS SELECT id FROM away", "DROP TABLE away",
		"CREATE FUNCTION own_chr () RETURNS VARCHAR(9) DETERMINISTIC RETURN CHR(65)")
	res, err := restore(t, load.Options{Repo: takeBackup(t, from, "a"), Into: target(t, into), SkipIncompatible: true})
	if !errors.Is(err, load.ErrLeftOut) || !strings.Contains(err.Error(), "sequence `a`.`s`") || len(res.Different) > 0 {
		t.Fatalf("%v: got %+v, %+v, %+v; want load.ErrLeftOut, \"sequence `a`.`s`\" in the error, no res.Different",
			err, res.Different, res.LeftOut, res.Otherwise)
	}
	var names []string
	for _, f := range res.LeftOut {
		names = append(names, f.What)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"function `a`.`own_chr`", "sequence `a`.`s`", "view `a`.`own_view`"}) {
		t.Errorf("got %q, want []string{\"function `a`.`own_chr`\", \"sequence `a`.`s`\", \"view `a`.`own_view`\"}", names)
	}
	for _, f := range res.LeftOut {
		if f.Create == "" || f.What == "view `a`.`own_view`" && !strings.Contains(f.Create, "json_detailed('[1]')") {
			t.Errorf("nobody could mend %+v", f)
		}
	}
	if notes := strings.Join(res.Notes, "\n"); len(res.Notes) != 1 || !strings.Contains(notes, "view `a`.`broken` is not created: it was broken when the backup was taken") || !strings.Contains(notes, "`away`") {
		t.Errorf("got %q; want len(res.Notes) 1, \"view `a`.`broken` is not created: it was broken when the backup was taken\" in notes, \"`away`\" in notes",
			res.Notes)
	}
	if len(res.Otherwise) != 1 || res.Otherwise[0].What != "schema `a`" {
		t.Errorf("got %+v; want len(res.Otherwise) 1, res.Otherwise[0].What \"schema `a`\"", res.Otherwise)
	}
	if got := ask(t, stream(t, into), "SELECT id FROM a.t"); got != "1|\n" {
		t.Errorf("got %q, want \"1|\\n\"", got)
	}
}
