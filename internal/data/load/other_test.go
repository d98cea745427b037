package load_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
)

// programs are objects that every server can have, in an order that is not theirs: each view needs one that comes later by name.
var programs = []string{
	"CREATE DATABASE p CHARACTER SET utf8mb4", "USE p", "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO t VALUES (1, 'a'), (2, 'a ')",
	"CREATE FUNCTION twice (a INT) RETURNS INT DETERMINISTIC RETURN 2 * a",
	"CREATE VIEW z1 AS SELECT twice(id) AS id FROM t", "CREATE VIEW m2 AS SELECT id FROM z1", "CREATE VIEW a3 AS SELECT m2.id FROM m2 JOIN z1 USING (id)",
	"CREATE PROCEDURE common (IN a INT) BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION ROLLBACK; INSERT INTO t (id) VALUES (a); END",
	"CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.v = CONCAT(NEW.v, '!')", "CREATE EVENT ev ON SCHEDULE EVERY 1 DAY DO DELETE FROM p.t",
}

// accounts are such that some can be restored everywhere, some not.
var accountsOf = map[string][]string{
	"mysql-9.7": {"CREATE USER open@'%' REQUIRE SSL WITH MAX_USER_CONNECTIONS 7", "CREATE USER sha2@'%' IDENTIFIED BY 'secret'", "CREATE ROLE reader", "GRANT SELECT ON p.* TO reader",
		"GRANT reader TO open@'%'", "SET DEFAULT ROLE reader TO open@'%'", "GRANT REPLICATION CLIENT, CREATE ROLE, INSERT ON *.* TO open@'%' WITH GRANT OPTION", "GRANT BINLOG_ADMIN, CLONE_ADMIN ON *.* TO open@'%'",
		"GRANT UPDATE (v) ON p.t TO open@'%'", "CREATE USER `o``d'd`@'10.0.0.%'", "GRANT EXECUTE ON PROCEDURE p.common TO `o``d'd`@'10.0.0.%'"},
	"mysql-8.0": {"CREATE USER native@'%' IDENTIFIED WITH mysql_native_password BY 'secret' PASSWORD EXPIRE INTERVAL 90 DAY PASSWORD HISTORY 5", "GRANT SELECT ON *.* TO native@'%'"},
	"mariadb": {"CREATE USER open@'%' REQUIRE SSL WITH MAX_USER_CONNECTIONS 7 MAX_STATEMENT_TIME 3", "CREATE USER native@'%' IDENTIFIED BY 'secret' PASSWORD EXPIRE INTERVAL 90 DAY", "CREATE ROLE reader",
		"GRANT SELECT ON p.* TO reader", "GRANT reader TO open@'%'", "SET DEFAULT ROLE reader FOR open@'%'", "GRANT BINLOG MONITOR, DELETE HISTORY, INSERT ON *.* TO open@'%' WITH GRANT OPTION", "GRANT BINLOG ADMIN ON *.* TO open@'%'",
		"GRANT UPDATE (v) ON p.t TO open@'%'", "CREATE USER `o``d'd`@'10.0.0.%'", "GRANT EXECUTE ON PROCEDURE p.common TO `o``d'd`@'10.0.0.%'"},
}

// onlyThere are programs that servers of the other flavour cannot have.
var onlyThere = map[string][]string{
	"mysql-9.7": {"CREATE FUNCTION own_uuid () RETURNS BINARY(16) DETERMINISTIC RETURN UUID_TO_BIN('6ccd780c-baba-1026-9564-5b8c656024db')", "CREATE VIEW own_view AS SELECT BIN_TO_UUID(own_uuid()) AS u",
		"CREATE VIEW own_view2 AS SELECT u FROM own_view", "CREATE PROCEDURE own_lateral () SELECT * FROM t, LATERAL (SELECT t.id) x"},
	"mariadb": {"CREATE VIEW own_view AS SELECT JSON_DETAILED('[1]') AS j", "CREATE VIEW own_view2 AS SELECT j FROM own_view", "CREATE PROCEDURE own_for () BEGIN FOR i IN 1..3 DO SELECT i; END FOR; END",
		"CREATE FUNCTION own_chr () RETURNS VARCHAR(9) DETERMINISTIC RETURN CHR(65)", "CREATE TRIGGER own_trigger AFTER DELETE ON t FOR EACH ROW IF OLD.id = 1 THEN INSERT INTO t VALUES (3, 'x') RETURNING id; END IF"},
}

// TestOtherPrograms: what cannot be restored of programs and accounts is reported before anything is changed, each by its name, and
// the rest is restored and works.
func TestOtherPrograms(t *testing.T) {
	nodes := map[string]*sandbox.Node{}
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		nodes[spec] = lend(t, spec)
		s := stream(t, nodes[spec])
		exec(t, s, programs...)
		exec(t, s, onlyThere[spec][:len(onlyThere[spec])-1]...)
		if spec != "mariadb" {
			exec(t, s, onlyThere[spec][len(onlyThere[spec])-1])
		}
		exec(t, s, accountsOf[spec]...)
	}
	backups := map[string]*repo.Repo{}
	for spec, node := range nodes {
		backups[spec], _ = emptyRepo(t)
		if _, err := dump.Run(t.Context(), backups[spec], dump.Options{Target: target(t, node), Threads: 2}); err != nil {
			t.Fatal(err)
		}
		s := stream(t, node)
		exec(t, s, "DROP DATABASE p", "DROP USER open@'%', `o``d'd`@'10.0.0.%'", "DROP ROLE reader")
	}
	for from, into := range map[string]string{"mariadb": "mysql-9.7", "mysql-9.7": "mariadb"} {
		t.Run(from+" into "+into, func(t *testing.T) {
			to := stream(t, nodes[into])
			o := load.Options{Repo: backups[from], Into: target(t, nodes[into]), DryRun: true}
			before := ask(t, to, everything)
			_, err := restore(t, o)
			var no *load.Incompatible
			if !errors.As(err, &no) {
				t.Fatalf("it comes along: %v", err)
			}
			if after := ask(t, to, everything); after != before {
				t.Errorf("a rehearsal changed something: got %s, want after %v", differ(before, after), before)
			}
			checkFindings(t, from, no.Findings)
			o.DryRun, o.SkipIncompatible = false, true
			res, err := restore(t, o)
			if !errors.Is(err, load.ErrLeftOut) || len(res.Different) > 0 || len(res.LeftOut) != 5 {
				t.Fatalf("%v: got %+v; want load.ErrLeftOut, no res.Different, len(LeftOut) 5", err, res)
			}
			for _, n := range res.Notes {
				if !strings.Contains(n, "it stays as it is") {
					t.Errorf("not told before: got %s, want \"it stays as it is\" in it", n)
				}
			}
			if got := ask(t, to, "SELECT id FROM p.a3 ORDER BY 1") + ask(t, to, "SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'p'"); got != "2|\n4|\n1|\n" {
				t.Errorf("views and triggers: got %q, want \"2|\\n4|\\n1|\\n\"", got)
			}
			grants := ask(t, to, "SHOW GRANTS FOR open@'%'") + ask(t, to, "SHOW GRANTS FOR `o``d'd`@'10.0.0.%'") + ask(t, to, "SHOW CREATE USER open@'%'")
			for _, g := range []string{"INSERT", "UPDATE (`v`) ON `p`.`t`", "`reader`", "EXECUTE ON PROCEDURE `p`.`common`", "WITH GRANT OPTION", "BINLOG", "MAX_USER_CONNECTIONS 7", "REQUIRE SSL"} {
				if !strings.Contains(grants, g) {
					t.Errorf("no %s in %s", g, grants)
				}
			}
		})
	}
	t.Run("passwords", func(t *testing.T) { testPasswords(t, nodes["mariadb"]) })
}

const everything = "SELECT 1, SCHEMA_NAME FROM information_schema.SCHEMATA UNION ALL SELECT 2, CONCAT(User, Host) FROM mysql.user UNION ALL SELECT 3, ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA <> 'sys' ORDER BY 1, 2"

// checkFindings makes sure that all of onlyThere and no other program is named.
func checkFindings(t *testing.T, from string, list []load.Finding) {
	t.Helper()
	var lost, gained []string
	for _, f := range list {
		if f.Mapped == "" {
			lost = append(lost, f.What)
		} else {
			gained = append(gained, f.What+": "+f.Why)
		}
	}
	want := map[string][]string{
		"mysql-9.7": {"account sha2@%", "function `p`.`own_uuid`", "procedure `p`.`own_lateral`", "view `p`.`own_view`", "view `p`.`own_view2`"},
		"mariadb":   {"account native@%", "function `p`.`own_chr`", "procedure `p`.`own_for`", "view `p`.`own_view`", "view `p`.`own_view2`"},
	}[from]
	slices.Sort(lost)
	slices.Sort(want)
	if !slices.Equal(lost, want) {
		t.Errorf("%q are told, not %q: %+v", lost, want, list)
	}
	privileges := map[string]string{"mysql-9.7": "CLONE_ADMIN", "mariadb": "DELETE HISTORY"}[from]
	if said := strings.Join(gained, "\n"); !strings.Contains(said, "privileges that are not here: "+privileges) || from == "mariadb" && !strings.Contains(said, "MAX_STATEMENT_TIME") {
		t.Errorf("no privileges in %s", said)
	}
}

// testPasswords: accounts that log in by mysql_native_password go over between flavours, with their passwords.
func testPasswords(t *testing.T, maria *sandbox.Node) {
	eight := lend(t, "mysql-8.0")
	exec(t, stream(t, eight), accountsOf["mysql-8.0"]...)
	exec(t, stream(t, eight), "CREATE DATABASE q", "CREATE TABLE q.t (v VARCHAR(9) COLLATE utf8mb4_0900_ai_ci UNIQUE)", "INSERT INTO q.t VALUES ('a'), ('a ')")
	for _, c := range []struct{ from, into *sandbox.Node }{{maria, eight}, {eight, maria}} {
		r, _ := emptyRepo(t)
		if _, err := dump.Run(t.Context(), r, dump.Options{Target: target(t, c.from)}); err != nil {
			t.Fatal(err)
		}
		s := stream(t, c.into)
		exec(t, s, "DROP USER IF EXISTS native@'%'", "DROP DATABASE IF EXISTS p")
		if _, err := restore(t, load.Options{Repo: r, Into: target(t, c.into), SkipIncompatible: true, Schemas: nil, Overwrite: true}); err != nil && !errors.Is(err, load.ErrLeftOut) {
			t.Fatal(err)
		}
		if _, err := mysql.Connect(t.Context(), with(t, c.into, "native", "secret"), nil); err != nil {
			t.Errorf("with the password of before: %v", err)
		}
		exec(t, stream(t, c.from), "DROP USER native@'%'")
	}
	if n := ask(t, stream(t, maria), "SELECT COUNT(*) FROM q.t"); n != "2|\n" {
		t.Errorf("%s rows: 'a' and 'a ' are two, want \"2|\\n\"", n)
	}
}

func with(t *testing.T, n *sandbox.Node, user, password string) mysql.Target {
	t.Helper()
	to, err := mysql.ParseTarget(user + ":" + password + "@unix(" + n.Socket + ")/")
	if err != nil {
		t.Fatal(err)
	}
	return to
}
