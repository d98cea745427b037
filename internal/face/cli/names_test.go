package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestNamesAskedFor: each command understands the names of tables that another prints, and none goes on without a name that it was given.
func TestNamesAskedFor(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	n, other := sandboxtest.Up(t, "mariadb"), sandboxtest.Up(t, "mariadb")
	s := &restoreStory{t: t, spec: "mariadb", here: n, there: other}
	place := filepath.Join(t.TempDir(), "bk")
	const tables = "CREATE DATABASE pt; CREATE TABLE pt.t (id INT PRIMARY KEY); CREATE TABLE pt.`a.b` (id INT PRIMARY KEY); CREATE TABLE pt.`o'd d` (id INT PRIMARY KEY); " +
		"INSERT INTO pt.t VALUES (1); INSERT INTO pt.`a.b` VALUES (1); INSERT INTO pt.`o'd d` VALUES (1), (2)"
	s.sql(n, tables)
	s.sql(other, tables+"; INSERT INTO pt.`o'd d` VALUES (3)")
	mustRun(t, "backup", "--dsn", n.DSN, "--to", place)
	if out := mustRun(t, "backup", "--dsn", n.DSN, "--to", filepath.Join(t.TempDir(), "some"), "--table", "pt.`o'd d`", "--table", "`pt`.`a.b`"); !strings.Contains(out, "2 tables") {
		t.Errorf("got %v, want \"2 tables\" in it", out)
	}
	s.sql(n, "INSERT INTO pt.t VALUES (100)")
	said := func(code int, says string, args ...string) {
		t.Helper()
		got, out, errs := call(t, args...)
		if got != code || !strings.Contains(out+errs, says) {
			t.Errorf("%q: %d, not %d with %q: %s%s", args, got, code, says, out, errs)
		}
	}
	restore := func(code int, says string, more ...string) {
		t.Helper()
		said(code, says, append([]string{"restore", "--from", place, "--into", n.DSN, "--overwrite"}, more...)...)
		if got := s.sql(n, "SELECT COUNT(*) FROM pt.t"); got != "[[2]]" {
			t.Errorf("%q changed the live table: %s, want \"[[2]]\"", more, got)
		}
	}
	restore(fault.Usage, "no table `pt`.`nosuch`", "--table", "pt.a*", "--table", "pt.nosuch")
	restore(fault.Usage, "did you mean pt.t?", "--table", "pt.a*", "--table", "pt.tt")
	restore(fault.Usage, "no schema `nosuch`", "--schema", "pt", "--schema", "nosuch")
	restore(fault.Usage, "did you mean pt.t?", "--table", "pt.t", "--rename", "pt.tt=pt.t_before")
	restore(fault.Usage, "no schema `nosuch`", "--schema", "pt", "--rename", "nosuch=x")
	restore(fault.OK, "matches nothing that is restored", "--table", "pt.a*", "--rename", "pt.t=pt.x") // it is there, and not asked for
	restore(fault.OK, "1 table", "--table", "pt.`o'd d`", "--rename", "pt.`o'd d`=pt.`o``x`")

	checksum := func(code int, says string, more ...string) {
		t.Helper()
		said(code, says, append([]string{"checksum", "--dsn", n.DSN, "--against", other.DSN}, more...)...)
	}
	checksum(fault.Usage, "did you mean pt.a.b?", "--table", "pt.a.b", "--table", "pt.a.bc")
	checksum(fault.Usage, "no nosuch", "--schema", "pt", "--schema", "nosuch")
	checksum(fault.OK, "1 equal", "--table", "pt.`a.b`")
	checksum(fault.Differs, "1 table differs", "--table", "pt.`a.b`", "--table", "pt.`o'd d`")
	checksum(fault.Usage, "not closed", "--table", "`pt.t")

	logs := filepath.Join(t.TempDir(), "logs")
	s.sql(n, "DELETE FROM pt.`o'd d`")
	gtid := strings.Trim(s.sql(n, "SELECT @@gtid_binlog_pos"), "[]")
	mustRun(t, "binlog", "follow", "--dsn", n.DSN, "--to", logs, "--once")
	undo := []string{"binlog", "undo", "--dsn", n.DSN, "--from", logs, "--gtid", gtid}
	said(fault.OK, "INSERT INTO `pt`.`o'd d`", append(undo, "--table", "pt.`o'd d`")...)
	if code, out, errs := call(t, append(undo, "--table", "pt.nosuch", "--table", "pt.`o'd d`")...); code != fault.Failed || out != "" || !strings.Contains(errs, "changes pt.nosuch") {
		t.Errorf("undo: got %d %s%s; want code fault.Failed, out \"\", \"changes pt.nosuch\" in it", code, out, errs)
	}
	search := []string{"binlog", "search", "--from", logs, "--kind", "delete"}
	said(fault.OK, "1 of ", append(search, "--table", "pt.`o'd d`")...)
	said(fault.Failed, "changes pt.nosuch", append(search, "--table", "pt.nosuch")...)
	said(fault.OK, "note: no transaction that was read changes pt.nosuch", append(search, "--table", "pt.nosuch", "--table", "pt.*")...)
	apply := []string{"binlog", "apply", "--from", logs, "--into", other.DSN, "--start", "binlog.000001:4", "--dry-run"}
	said(fault.Failed, "changes pt.nosuch", append(apply, "--table", "pt.nosuch", "--table", "pt.t")...)
	said(fault.OK, "would apply", append(apply, "--table", "pt.`o'd d`")...)
}
