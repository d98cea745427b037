package load_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// rare are things that other tools lose, or trip over.
var rare = map[string][]string{
	"mariadb": {
		"CREATE DATABASE rare CHARACTER SET utf8mb4", "USE rare",
		"CREATE SEQUENCE round START 8 MINVALUE 1 MAXVALUE 10 CYCLE NOCACHE", "DO NEXTVAL(round), NEXTVAL(round), NEXTVAL(round), NEXTVAL(round)",
		"CREATE SEQUENCE down START -5 INCREMENT -3 MINVALUE -100 MAXVALUE 0 CACHE 5", "DO NEXTVAL(down)",
		"CREATE SEQUENCE ended START 10 MAXVALUE 11 NOCYCLE NOCACHE", "DO NEXTVAL(ended), NEXTVAL(ended)",
		"CREATE TABLE numbered (id INT DEFAULT NEXTVAL(down) PRIMARY KEY, v INT)", "INSERT INTO numbered (v) VALUES (1), (2)",
		"CREATE TABLE past (id INT PRIMARY KEY, v VARCHAR(10), KEY (v)) WITH SYSTEM VERSIONING", "INSERT INTO past SELECT seq, 'first' FROM seq_1_to_300",
		"UPDATE past SET v = 'second' WHERE id % 3 = 0", "UPDATE past SET v = 'third' WHERE id % 9 = 0", "DELETE FROM past WHERE id % 5 = 0",
		"CREATE TABLE past2 (id VARCHAR(5) PRIMARY KEY, v INT, w INT WITHOUT SYSTEM VERSIONING, `from` TIMESTAMP(6) GENERATED ALWAYS AS ROW START, `to` TIMESTAMP(6) GENERATED ALWAYS AS ROW END INVISIBLE, PERIOD FOR SYSTEM_TIME (`from`, `to`)) WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME LIMIT 100 PARTITIONS 3",
		"INSERT INTO past2 (id, v, w) SELECT seq, seq, 1 FROM seq_1_to_50", "UPDATE past2 SET v = v + 1", "DELETE FROM past2 WHERE v % 2",
		"CREATE TABLE past3 (v INT) WITH SYSTEM VERSIONING", "INSERT INTO past3 VALUES (1), (1), (2)", "DELETE FROM past3 WHERE v = 1",
		"CREATE TABLE counted (id INT PRIMARY KEY, v INT, a BIGINT UNSIGNED GENERATED ALWAYS AS ROW START, b BIGINT UNSIGNED GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (a, b)) WITH SYSTEM VERSIONING", "INSERT INTO counted (id, v) VALUES (1, 1)",
		"CREATE TABLE period (id INT, v INT, d1 DATE, d2 DATE, PERIOD FOR p (d1, d2), UNIQUE (id, p WITHOUT OVERLAPS))", "INSERT INTO period VALUES (1, 1, '2020-01-01', '2021-01-01')",
		"CREATE TABLE checked (a INT CHECK (a > 0), b INT DEFAULT (a + 1), c VARCHAR(40) DEFAULT (UUID()), CONSTRAINT `c``k` CHECK (b > a))", "SET check_constraint_checks = 0", "INSERT INTO checked VALUES (-1, -5, 'x')", "SET check_constraint_checks = 1",
		"CREATE TABLE made (id INT PRIMARY KEY, a JSON, v INT AS (JSON_VALUE(a, '$.x')) VIRTUAL, s VARCHAR(20) AS (CONCAT(id, '-')) PERSISTENT, KEY (v), UNIQUE KEY (s))", `INSERT INTO made (id, a) VALUES (1, '{"x": 3}'), (2, NULL)`,
		"CREATE TABLE hidden (id INT PRIMARY KEY, i INT INVISIBLE, KEY k (i) IGNORED, KEY d (i DESC))", "INSERT INTO hidden (id, i) VALUES (1, 5), (2, 6)",
		"CREATE TABLE sub (id INT, d DATE, PRIMARY KEY (id, d)) PARTITION BY RANGE (YEAR(d)) SUBPARTITION BY HASH (id) SUBPARTITIONS 32 (PARTITION p0 VALUES LESS THAN (2000), PARTITION `p 1` VALUES LESS THAN MAXVALUE)", "INSERT INTO sub VALUES (1, '1999-01-01'), (2, '2001-01-01')",
		"CREATE TABLE m1 (a INT NOT NULL, KEY (a)) ENGINE = MyISAM", "CREATE TABLE m2 (a INT NOT NULL, KEY (a)) ENGINE = MyISAM", "INSERT INTO m1 VALUES (1), (2)", "INSERT INTO m2 VALUES (3)",
		"CREATE TABLE a_merge (a INT NOT NULL, KEY (a)) ENGINE = MERGE UNION = (m1, m2) INSERT_METHOD = LAST",
		"CREATE TABLE csv (a INT NOT NULL, b VARCHAR(20) NOT NULL) ENGINE = CSV", `INSERT INTO csv VALUES (1, 'x"y'), (2, 'n\nl')`,
		"CREATE TABLE fired (w VARCHAR(9))", "CREATE TRIGGER t1 BEFORE INSERT ON checked FOR EACH ROW INSERT INTO fired VALUES ('t1')", "CREATE TRIGGER t2 BEFORE INSERT ON checked FOR EACH ROW PRECEDES t1 INSERT INTO fired VALUES ('t2')",
		"CREATE TRIGGER t3 BEFORE INSERT ON checked FOR EACH ROW FOLLOWS t2 INSERT INTO fired VALUES ('t3')",
		"CREATE AGGREGATE FUNCTION agg (x INT) RETURNS INT DETERMINISTIC BEGIN DECLARE s INT DEFAULT 0; DECLARE CONTINUE HANDLER FOR NOT FOUND RETURN s; LOOP FETCH GROUP NEXT ROW; SET s = s + x; END LOOP; END",
		"CREATE DEFINER = ghost@nowhere SQL SECURITY INVOKER VIEW ghosts AS SELECT 1 AS a", "CREATE VIEW bounded AS SELECT * FROM m1 WHERE a > 0 WITH LOCAL CHECK OPTION", "CREATE EVENT away ON SCHEDULE EVERY 1 HOUR DISABLE ON SLAVE DO SELECT 1",
		"SET time_zone = '+05:00'", "CREATE EVENT zone ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 00:00:00' DO SELECT 1", "SET time_zone = '+00:00'",
		"CREATE USER two@'%' IDENTIFIED VIA mysql_native_password USING PASSWORD('x') OR unix_socket", "CREATE USER ended@'%' IDENTIFIED VIA mysql_native_password USING PASSWORD('x') REQUIRE SSL WITH MAX_QUERIES_PER_HOUR 5 ACCOUNT LOCK PASSWORD EXPIRE",
		"CREATE USER `o``'\"`@'10.0.0.0/255.0.0.0' IDENTIFIED BY 'p' REQUIRE SUBJECT '/CN=a' AND ISSUER '/CN=b'", "CREATE USER ''@elsewhere",
		"CREATE ROLE inner_role", "CREATE ROLE outer_role", "GRANT inner_role TO outer_role", "GRANT outer_role TO ended@'%' WITH ADMIN OPTION", "SET DEFAULT ROLE outer_role FOR ended@'%'",
		"GRANT INSERT (a, b), UPDATE (b) ON rare.checked TO two@'%' WITH GRANT OPTION", "GRANT SELECT ON rare.* TO PUBLIC", "GRANT DELETE HISTORY ON rare.past TO two@'%'", "GRANT SELECT ON rare.down TO two@'%'", "GRANT ALL ON `a\\_b`.* TO two@'%'",
	},
	"mysql-9.7": {
		"SET GLOBAL partial_revokes = ON", "CREATE DATABASE rare CHARACTER SET utf8mb4", "USE rare",
		"CREATE TABLE checked (a INT CHECK (a > 0), b INT DEFAULT ((a + 1)), c VARCHAR(40) DEFAULT (UUID()), d JSON DEFAULT (JSON_ARRAY(1)), CONSTRAINT `c``k` CHECK (b > a) NOT ENFORCED)", "INSERT INTO checked (a, b) VALUES (1, 0)",
		"CREATE TABLE made (id INT PRIMARY KEY, a JSON, v INT AS (a->>'$.x') VIRTUAL, s VARCHAR(20) AS (CONCAT(id, '-')) STORED, KEY (v), UNIQUE KEY (s), KEY fx ((id * 2)), KEY mv ((CAST(a->'$.t' AS UNSIGNED ARRAY))))", `INSERT INTO made (id, a) VALUES (1, '{"x": 3, "t": [1, 2]}'), (2, NULL)`,
		"CREATE TABLE hidden (id INT PRIMARY KEY, i INT INVISIBLE, KEY k (i) INVISIBLE, KEY d (i DESC, id ASC))", "INSERT INTO hidden (id, i) VALUES (1, 5), (2, 6)",
		"SET sql_generate_invisible_primary_key = 1", "CREATE TABLE keyed (a INT, b VARCHAR(5))", "INSERT INTO keyed VALUES (1, 'a'), (2, 'b')", "SET sql_generate_invisible_primary_key = 0",
		"CREATE TABLE sub (id INT, d DATE, PRIMARY KEY (id, d)) PARTITION BY RANGE (YEAR(d)) SUBPARTITION BY HASH (id) SUBPARTITIONS 32 (PARTITION p0 VALUES LESS THAN (2000), PARTITION `p 1` VALUES LESS THAN MAXVALUE)", "INSERT INTO sub VALUES (1, '1999-01-01'), (2, '2001-01-01')",
		"CREATE TABLE vectors (id INT PRIMARY KEY, v VECTOR(3))", "INSERT INTO vectors VALUES (1, TO_VECTOR('[1,2,3]')), (2, NULL)",
		"CREATE TABLE m1 (a INT NOT NULL, KEY (a)) ENGINE = MyISAM", "CREATE TABLE m2 (a INT NOT NULL, KEY (a)) ENGINE = MyISAM", "INSERT INTO m1 VALUES (1), (2)", "INSERT INTO m2 VALUES (3)",
		"CREATE TABLE a_merge (a INT NOT NULL, KEY (a)) ENGINE = MERGE UNION = (m1, m2) INSERT_METHOD = LAST",
		"CREATE TABLE archived (a INT) ENGINE = ARCHIVE", "INSERT INTO archived VALUES (1), (2)",
		"CREATE TABLESPACE rare_space ADD DATAFILE 'rare_space.ibd'", "CREATE TABLE spaced (id INT PRIMARY KEY) TABLESPACE rare_space", "INSERT INTO spaced VALUES (1)",
		"CREATE TABLE fired (w VARCHAR(9))", "CREATE TRIGGER t1 BEFORE INSERT ON checked FOR EACH ROW INSERT INTO fired VALUES ('t1')", "CREATE TRIGGER t2 BEFORE INSERT ON checked FOR EACH ROW PRECEDES t1 INSERT INTO fired VALUES ('t2')",
		"CREATE TRIGGER t3 BEFORE INSERT ON checked FOR EACH ROW FOLLOWS t2 INSERT INTO fired VALUES ('t3')",
		"CREATE DEFINER = ghost@nowhere SQL SECURITY INVOKER VIEW ghosts AS SELECT 1 AS a", "CREATE VIEW bounded AS SELECT * FROM m1 WHERE a > 0 WITH LOCAL CHECK OPTION", "CREATE EVENT away ON SCHEDULE EVERY 1 HOUR DISABLE ON REPLICA DO SELECT 1",
		"SET time_zone = '+05:00'", "CREATE EVENT zone ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 00:00:00' DO SELECT 1", "SET time_zone = '+00:00'",
		"CREATE USER two@'%' IDENTIFIED WITH caching_sha2_password BY 'x' REQUIRE X509 WITH MAX_QUERIES_PER_HOUR 5 PASSWORD EXPIRE INTERVAL 3 DAY FAILED_LOGIN_ATTEMPTS 3 PASSWORD_LOCK_TIME 2 PASSWORD HISTORY 5 PASSWORD REUSE INTERVAL 10 DAY PASSWORD REQUIRE CURRENT COMMENT 'hey'",
		"CREATE USER ended@'%' IDENTIFIED BY 'secret' ACCOUNT LOCK PASSWORD EXPIRE", "CREATE USER `o``'\"`@'10.0.0.0/255.0.0.0' IDENTIFIED BY 'p' REQUIRE SUBJECT '/CN=a' AND ISSUER '/CN=b'", "CREATE USER ''@elsewhere",
		"CREATE ROLE inner_role, 'outer role'@'host'", "GRANT inner_role TO 'outer role'@'host'", "GRANT 'outer role'@'host', inner_role TO ended@'%' WITH ADMIN OPTION", "SET DEFAULT ROLE 'outer role'@'host', inner_role TO ended@'%'",
		"GRANT INSERT (a, b), UPDATE (b) ON rare.checked TO two@'%' WITH GRANT OPTION" /* a name, with partial_revokes */, "GRANT ALL ON `a_b`.* TO two@'%'",
		"CREATE USER limited@'%' IDENTIFIED BY 'q'", "GRANT SELECT, INSERT ON *.* TO limited@'%'", "REVOKE INSERT ON rare.* FROM limited@'%'", "REVOKE SELECT ON mysql.* FROM limited@'%'",
	},
}

// gone removes what rare made.
var gone = map[string][]string{
	"mariadb":   {"DROP DATABASE rare", "DROP USER two@'%', ended@'%', `o``'\"`@'10.0.0.0/255.0.0.0', ''@elsewhere", "DROP ROLE inner_role, outer_role", "REVOKE SELECT ON rare.* FROM PUBLIC"},
	"mysql-9.7": {"DROP DATABASE rare", "DROP TABLESPACE rare_space", "DROP USER two@'%', ended@'%', `o``'\"`@'10.0.0.0/255.0.0.0', ''@elsewhere, limited@'%'", "DROP ROLE inner_role, 'outer role'@'host'", "SET GLOBAL partial_revokes = OFF"},
}

// TestRare: what backups easily lose is restored as it was; what the server would refuse now is reported before anything is changed.
func TestRare(t *testing.T) {
	for spec, statements := range rare {
		t.Run(spec, func(t *testing.T) {
			node := sandboxtest.Up(t, spec, "local_infile=1", "log_bin_trust_function_creators=1", "event_scheduler=OFF")
			s := stream(t, node)
			exec(t, s, "SET NAMES utf8mb4", "SET time_zone = '+00:00'")
			exec(t, s, statements...)
			r, _ := emptyRepo(t)
			b, err := dump.Run(t.Context(), r, dump.Options{Target: target(t, node), Threads: 2, ChunkAim: 500})
			if err != nil {
				t.Fatal(err)
			}
			checkNotes(t, spec, b.Header.Notes)
			before := rarePicture(t, node, spec)
			exec(t, s, "USE mysql")
			exec(t, s, gone[spec]...)
			o := load.Options{Repo: r, Into: target(t, node), Threads: 2, BatchBytes: 2000}
			if spec == "mysql-9.7" {
				before = strings.Replace(before, " /*!50100 TABLESPACE `rare_space` */", "", 1)
				checkRefusal(t, s, o)
			}
			res, err := restore(t, o)
			if err != nil {
				t.Fatalf("%v: %+v", err, res.Different)
			}
			if len(res.Notes) > 0 {
				t.Errorf("not all came back: %q, want none", res.Notes)
			}
			if d := differ(before, rarePicture(t, node, spec)); d != "" {
				t.Fatalf("got %v, want \"\"", d)
			}
			if n := ask(t, s, "SELECT COUNT(*) FROM rare.fired"); n != "0|\n" {
				t.Errorf("triggers fired %s times, want \"0|\\n\"", n)
			}
			if spec == "mariadb" {
				noHistory(t, node)
			}
		})
	}
}

// checkNotes makes sure that a backup says of which tables it has not all.
func checkNotes(t *testing.T, spec string, notes []string) {
	t.Helper()
	want := []string{"Definitions only: `rare`.`a_merge`"}
	if spec == "mariadb" {
		want = append(want, "Historical rows of `rare`.`counted` are not in the backup")
	}
	for _, w := range want {
		if !slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, w) }) {
			t.Errorf("%s… is not said: %q", w, notes)
		}
	}
	if slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "`past") }) {
		t.Errorf("rows of the past are not all there: %q", notes)
	}
}

// checkRefusal makes sure that an account is not made that could do more than before.
func checkRefusal(t *testing.T, s *mysql.Stream, o load.Options) {
	t.Helper()
	var no *load.Incompatible
	if _, err := restore(t, o); !errors.As(err, &no) || !strings.Contains(err.Error(), "account limited@%") || strings.Contains(err.Error(), "ended@%") {
		t.Fatalf("privileges but for some schemas: %v", err)
	}
	if !slices.ContainsFunc(no.Findings, func(f load.Finding) bool { return f.What == "table `rare`.`spaced`" && f.Mapped != "" }) {
		t.Errorf("the tablespace is not told: %+v", no.Findings)
	}
	if left := ask(t, s, "SHOW DATABASES LIKE 'r%'"); left != "" {
		t.Errorf("refused, and there is %s; want \"\"", left)
	}
	exec(t, s, "SET GLOBAL partial_revokes = ON")
}

// rarePicture is what rare made.
func rarePicture(t *testing.T, node *sandbox.Node, spec string) string {
	t.Helper()
	s := stream(t, node)
	exec(t, s, "SET NAMES utf8mb4", "SET time_zone = '+00:00'", "USE rare")
	if spec != "mariadb" {
		exec(t, s, "SET print_identified_with_as_hex = 1")
	}
	var b strings.Builder
	for _, row := range strings.Split(strings.TrimSuffix(ask(t, s, "SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'rare' ORDER BY 1"), "\n"), "\n") {
		cells := strings.Split(row, "|")
		name := mysql.Quote(cells[0])
		b.WriteString(ask(t, s, "SHOW CREATE TABLE "+name))
		columns := ask(t, s, "SELECT GROUP_CONCAT(CONCAT('`', COLUMN_NAME, '`') ORDER BY ORDINAL_POSITION SEPARATOR ', ') FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'rare' AND TABLE_NAME = "+mysql.Literal(cells[0]))
		columns = strings.TrimSuffix(columns, "|\n")
		switch {
		case cells[0] == "counted": // the numbers of transactions are new
			b.WriteString(ask(t, s, "SELECT id, v FROM counted"))
			continue
		case strings.Contains(cells[1], "VERSIONED"):
			if !strings.Contains(columns, "`from`") {
				columns += ", row_start, row_end"
			}
			name += " FOR SYSTEM_TIME ALL"
		}
		rows := strings.Split(ask(t, s, "SELECT "+columns+" FROM "+name), "\n")
		slices.Sort(rows)
		b.WriteString(cells[0] + "\n" + strings.Join(rows, "\n") + "\n")
	}
	b.WriteString(ask(t, s, "SELECT TRIGGER_NAME, ACTION_ORDER, ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'rare' ORDER BY 1"))
	b.WriteString(ask(t, s, "SELECT EVENT_NAME, STATUS, TIME_ZONE, STARTS > '2029-01-01', ON_COMPLETION FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'rare' ORDER BY 1"))
	b.WriteString(ask(t, s, "SELECT ROUTINE_NAME, ROUTINE_DEFINITION, DTD_IDENTIFIER FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'rare' ORDER BY 1"))
	accounts := []string{"two@'%'", "ended@'%'", "`o``'\"`@'10.0.0.0/255.0.0.0'", "''@elsewhere"}
	only := []string{"limited@'%'", "inner_role", "'outer role'@'host'"}
	if spec == "mariadb" {
		only = []string{"inner_role", "outer_role", "PUBLIC"}
	}
	for _, a := range accounts {
		b.WriteString(ask(t, s, "SHOW CREATE USER "+a))
	}
	for _, a := range append(accounts, only...) {
		b.WriteString(ask(t, s, "SHOW GRANTS FOR "+a))
	}
	return b.String()
}

// noHistory makes sure that without rows of the past a table has those of now, and that a note says so.
func noHistory(t *testing.T, node *sandbox.Node) {
	s := stream(t, node)
	exec(t, s, "CREATE DATABASE h", "CREATE TABLE h.t (id INT PRIMARY KEY) WITH SYSTEM VERSIONING", "INSERT INTO h.t VALUES (1), (2)", "DELETE FROM h.t WHERE id = 1")
	r, _ := emptyRepo(t)
	b, err := dump.Run(t.Context(), r, dump.Options{Target: target(t, node), NoHistory: true, Select: dump.Selection{Schemas: []string{"h"}}})
	if err != nil || b.Header.Rows != 1 || !strings.Contains(strings.Join(b.Header.Notes, "; "), "`h`.`t`") {
		t.Fatalf("got %+v, %v; want Rows 1, \"`h`.`t`\" in strings.Join(b.Header.Notes, \"; \")", b.Header, err)
	}
	exec(t, s, "DROP DATABASE h")
	if _, err := restore(t, load.Options{Repo: r, Into: target(t, node)}); err != nil {
		t.Fatal(err)
	}
	if n := ask(t, s, "SELECT COUNT(*) FROM h.t FOR SYSTEM_TIME ALL"); n != "1|\n" {
		t.Errorf("%s rows, want \"1|\\n\"", n)
	}
}
