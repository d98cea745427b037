package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/restore"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestRollNames: what the binary logs do to events whose times are over by now, and to constraints of a table that comes back under another
// name, is done.
func TestRollNames(t *testing.T) {
	for _, spec := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Setenv("XDG_STATE_HOME", t.TempDir())
			node := sandboxtest.Up(t, spec, "event_scheduler=OFF", "local_infile=1", "log_bin_trust_function_creators=1")
			s := &restoreStory{t: t, spec: spec, here: node, there: node, place: filepath.Join(t.TempDir(), "bk")}
			s.events()
			s.copies()
			if spec == "mariadb" || spec == "mysql-9.7" {
				s.cutRoll()
			}
		})
	}
}

// last is the GTID of the last transaction.
func (s *restoreStory) last() string {
	s.t.Helper()
	if strings.HasPrefix(s.spec, "mariadb") {
		return strings.Trim(s.sql(s.here, "SELECT @@gtid_binlog_pos"), "[]")
	}
	source, last, _ := strings.Cut(strings.Trim(s.sql(s.here, "SELECT @@GLOBAL.gtid_executed"), "[]"), ":")
	return source + ":" + last[strings.LastIndexByte(last, '-')+1:]
}

// events: they are as they were at the end of the roll forward, except those that a server no longer has.
func (s *restoreStory) events() {
	s.sql(s.here, `SET timestamp = UNIX_TIMESTAMP('2001-01-01'); CREATE DATABASE ev; USE ev; CREATE TABLE t (id INT PRIMARY KEY);
		CREATE EVENT dropped ON SCHEDULE AT '2001-01-05' DO SELECT 1; CREATE EVENT dropped_too ON SCHEDULE AT '2001-01-05' DO SELECT 1; CREATE EVENT later ON SCHEDULE AT '2001-01-05' DO SELECT 2;
		CREATE EVENT is_past ON SCHEDULE AT '2001-01-05' DO SELECT 3; CREATE EVENT stays ON SCHEDULE EVERY 1 DAY DO SELECT 4; CREATE EVENT off ON SCHEDULE EVERY 1 DAY DO SELECT 5; CREATE EVENT was_off ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 6;
		CREATE EVENT goes_on ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 7`)
	zones := "SELECT DATE_FORMAT(UTC_TIMESTAMP() + INTERVAL %s HOUR, '%%Y-%%m-%%d %%H:%%i:%%s')"
	at := func(hours string) string { return strings.Trim(s.sql(s.here, fmt.Sprintf(zones, hours)), "[]") }
	s.sql(s.here, "USE ev; SET time_zone = '-10:00'; CREATE EVENT to_come ON SCHEDULE AT '"+at("-5")+"' DO SELECT 8; SET time_zone = '+10:00', timestamp = UNIX_TIMESTAMP() - 86400; CREATE EVENT was_east ON SCHEDULE AT '"+at("5")+"' DO SELECT 9")
	mustRun(s.t, "backup", "--dsn", s.here.DSN, "--to", s.place, "--schema", "ev", "--no-users")
	s.sql(s.here, `USE ev; SET timestamp = UNIX_TIMESTAMP('2001-01-03'); DROP EVENT dropped; DROP EVENT /* IF EXISTS */ ev.dropped_too; ALTER EVENT later ON SCHEDULE AT '2037-01-01'; ALTER EVENT off DISABLE; ALTER EVENT goes_on ENABLE; ALTER EVENT stays COMMENT 'altered'; INSERT INTO t VALUES (1)`)
	until := s.last()
	s.sql(s.here, "DROP DATABASE ev")
	out := mustRun(s.t, "restore", "--from", s.place, "--into", s.here.DSN, "--logs-dsn", s.here.DSN, "--to-gtid", until)
	s.says(out, "event `ev`.`is_past` is not created: its last time is past", "event `ev`.`was_east` is not created: its last time is past")
	if strings.Contains(out, "`dropped`") || strings.Contains(out, "`later`") {
		s.t.Errorf("it is said of what is as it was: %s", out)
	}
	if got := s.sql(s.here, "SELECT EVENT_NAME, STATUS, EVENT_COMMENT, EVENT_DEFINITION FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'ev' ORDER BY 1"); got != "[[goes_on ENABLED  SELECT 7] [later ENABLED  SELECT 2] [off DISABLED  SELECT 5] [stays ENABLED altered SELECT 4] [to_come ENABLED  SELECT 8] [was_off DISABLED  SELECT 6]]" {
		s.t.Errorf("the events are %s", got)
	}
	if got := s.sql(s.here, "SELECT COUNT(*) FROM ev.t"); got != "[[1]]" {
		s.t.Errorf("%s rows", got)
	}
	s.sql(s.here, "DROP DATABASE ev")
}

// copies: a copy's constraints have other names, by which the binary logs find them.
func (s *restoreStory) copies() {
	s.sql(s.here, "CREATE DATABASE c; USE c; CREATE TABLE p (id INT PRIMARY KEY); INSERT INTO p VALUES (1); CREATE TABLE o (id INT PRIMARY KEY, a INT, b INT, CONSTRAINT `fk``a` FOREIGN KEY (a) REFERENCES p (id), FOREIGN KEY (b) REFERENCES p (id), CONSTRAINT small CHECK (a < 9), CHECK (b < 9)); INSERT INTO o VALUES (1, 1, 1)")
	place := s.place + "2"
	mustRun(s.t, "backup", "--dsn", s.here.DSN, "--to", place, "--schema", "c", "--no-users")
	change := "USE c; ALTER TABLE o DROP FOREIGN KEY `fk``a`, ADD d INT; ALTER TABLE o DROP FOREIGN KEY o_ibfk_1, ADD UNIQUE KEY uniq (d); INSERT INTO o VALUES (2, 8, 8, 8)"
	checks := ""
	switch s.spec {
	case "mysql-9.7":
		change += "; ALTER TABLE o DROP CHECK small; ALTER TABLE o ADD CONSTRAINT added CHECK (d < 10), ALTER CHECK o_chk_1 NOT ENFORCED; ALTER TABLE o ALTER CHECK added NOT ENFORCED; ALTER TABLE o DROP CONSTRAINT added, ADD CONSTRAINT added CHECK (d < 11)"
		checks = " [o2_added CHECK] [o2_chk_1 CHECK]"
	case "mariadb", "mariadb-11.8":
		change += "; ALTER TABLE o DROP CONSTRAINT small; ALTER TABLE o ADD CONSTRAINT added CHECK (d < 10)"
		checks = " [CONSTRAINT_1 CHECK] [added CHECK]"
	}
	s.sql(s.here, change+"; INSERT INTO o VALUES (3, 10, 7, 9)")
	until := s.last()
	s.sql(s.here, "INSERT INTO c.o VALUES (4, 4, 4, 4)")
	s.says(mustRun(s.t, "restore", "--from", place, "--into", s.here.DSN, "--logs-dsn", s.here.DSN, "--to-gtid", until, "--table", "c.o", "--rename", "c.o=c.o2"), "`fk``a` belongs to the former table: `o2_fk``a` instead", "Rolled forward by")
	if got := s.sql(s.here, "SELECT CONSTRAINT_NAME, CONSTRAINT_TYPE FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = 'c' AND TABLE_NAME = 'o2' AND CONSTRAINT_TYPE IN ('CHECK', 'FOREIGN KEY') ORDER BY 1 COLLATE utf8mb4_bin"); got != "["+strings.TrimSpace(checks)+"]" {
		s.t.Errorf("the constraints are %s", got)
	}
	if got := s.sql(s.here, "SELECT * FROM c.o2 ORDER BY id"); got != "[[1 1 1 NULL] [2 8 8 8] [3 10 7 9]]" {
		s.t.Errorf("the rows are %s", got)
	}
	s.sql(s.here, "DROP DATABASE c")
}

// cutRoll: what was found out before the binary logs is reported by a restore that was cut off after them.
func (s *restoreStory) cutRoll() {
	ctx := s.t.Context()
	s.sql(s.here, `CREATE DATABASE cr; USE cr; CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (2); CREATE TABLE counts (n INT); INSERT INTO counts VALUES (1); CREATE TABLE computed (a INT AS (1) VIRTUAL, c INT AS (a + 1) VIRTUAL); CREATE TABLE tb (b INT); CREATE TRIGGER of_b BEFORE INSERT ON tb FOR EACH ROW SET NEW.b = 1; ALTER TABLE tb CHANGE b c INT;
		CREATE PROCEDURE p () SELECT 1; CREATE VIEW v AS SELECT id FROM t; SET timestamp = UNIX_TIMESTAMP('2001-01-01'); CREATE EVENT past ON SCHEDULE AT '2001-01-05' DO SELECT 1`)
	place := s.place + "3"
	mustRun(s.t, "backup", "--dsn", s.here.DSN, "--to", place, "--schema", "cr", "--no-users")
	s.sql(s.here, "INSERT INTO cr.t VALUES (3); INSERT INTO cr.counts VALUES (2); ALTER DATABASE cr COLLATE latin1_bin")
	f := restore.Flags{From: place, Logs: flags.Logs{Server: flags.Server{Dsn: s.here.DSN}}}
	last, err := mysql.ParseGTID(s.last())
	if err != nil {
		s.t.Fatal(err)
	}
	until := binlog.Stop{GTID: last}
	s.sql(s.here, "DROP DATABASE cr")
	policy, err := f.Policy(f.From, func(string) {})
	if err != nil {
		s.t.Fatal(err)
	}
	r, closePlace, err := flags.Source{From: f.From, Policy: policy}.Open(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	defer closePlace()
	into, err := mysql.ParseTarget(s.here.DSN)
	if err != nil {
		s.t.Fatal(err)
	}
	o := load.Options{Repo: r, Into: into, Schemas: []string{"cr"}, Until: until, Roller: restore.Roller{F: f}}
	outcome := func() string {
		res, err := load.Restore(ctx, o)
		slices.Sort(res.Notes)
		if res.Rolled == nil {
			s.t.Fatalf("%v: %+v", err, res)
		}
		done := *res.Rolled
		done.Notes = nil
		text := fmt.Sprintf("rolled by %+v\n%v\n%d tables, %d rows, %d objects\n%+v\n%+v\n%s\n", done, err, res.Tables, res.Rows, res.Objects, res.LeftOut, res.Otherwise, strings.Join(res.Notes, "\n"))
		for _, q := range []string{"SELECT id FROM cr.t ORDER BY 1", "SELECT n FROM cr.counts ORDER BY 1", "SELECT EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'cr'", "SHOW DATABASES LIKE 'risso%'"} {
			text += s.sql(s.here, q) + "\n"
		}
		return text
	}
	want := outcome()
	for _, text := range []string{"4 tables, 3 rows, 2 objects", "rolled by {Transactions:", "trigger `cr`.`of_b`", "table `cr`.`computed`: all its columns", "event `cr`.`past` is not created", "[[1] [2] [3]]\n[[1] [2]]\n[]\n[]"} {
		if !strings.Contains(want, text) {
			s.t.Errorf("nothing of %q: %s", text, want)
		}
	}
	s.sql(s.here, "DROP DATABASE cr")
	for _, at := range []string{"binary logs", "events", "grants", "looking at views", "journal"} {
		ctx, cancel := context.WithCancel(ctx)
		var rolled atomic.Bool
		o := o
		o.Progress = func(p load.Progress) {
			if p.Stage == "binary logs" {
				rolled.Store(true)
			}
			if rolled.Load() && p.Stage == at {
				cancel()
			}
		}
		if _, err := load.Restore(ctx, o); err == nil || ctx.Err() == nil {
			s.t.Fatalf("cut off at %s: %v", at, err)
		}
		cancel()
	}
	if got := outcome(); got != want {
		s.t.Errorf("there was\n%s\nthere is\n%s", want, got)
	}
	s.sql(s.here, "DROP DATABASE cr")
}
