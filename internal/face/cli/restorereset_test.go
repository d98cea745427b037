package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestRollAfterReset: after RESET the newest series of mirrored logs is of another history than the backup's, with the same names, places and
// GTIDs. A backup is rolled forward with the one that it is of, to its end and no further, and with none if that was not mirrored.
func TestRollAfterReset(t *testing.T) {
	for _, c := range []struct {
		spec    string
		options []string
	}{{"mysql-5.7", []string{"gtid_mode=OFF", "enforce_gtid_consistency=OFF"}}, {"mysql-8.0", nil}, {"mariadb", nil}} {
		t.Run(c.spec, func(t *testing.T) {
			n := sandboxtest.Up(t, c.spec, c.options...)
			dir, err := os.MkdirTemp("", "rr-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			t.Setenv("RISSO_SANDBOX_DIR", dir)
			t.Setenv("XDG_STATE_HOME", t.TempDir())
			s := &restoreStory{t: t, spec: c.spec, here: n}
			sql := func(q string) string { return strings.Trim(s.sql(n, q), "[]") }
			nextSecond := s.between // logs tell whole seconds
			place, late := filepath.Join(t.TempDir(), "bk"), filepath.Join(t.TempDir(), "late")
			follow := func(to string) { mustRun(t, "binlog", "follow", "--dsn", n.DSN, "--to", to, "--once") }
			sql("CREATE DATABASE f; CREATE TABLE f.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARBINARY(200)); CREATE TABLE f.u (id INT PRIMARY KEY)")
			mustRun(t, "backup", "--dsn", n.DSN, "--to", place)
			mustRun(t, "backup", "--dsn", n.DSN, "--to", late)
			nextSecond()
			for i := range 5 {
				sql(fmt.Sprintf("INSERT INTO f.t (v) VALUES ('before the reset %d')", i))
			}
			at := nextSecond()
			follow(place)
			sql("RESET MASTER; INSERT INTO f.t (v) VALUES ('behind it')")
			restore := func(to, until string, more ...string) (int, string, string) {
				args := append([]string{"restore", "--from", to, "--into", n.DSN, "--table", "f.t", "--rename", "f.t=f.old", "--to-time", until}, more...)
				return call(t, args...)
			}
			refused := func(says, to string, more ...string) {
				t.Helper()
				code, out, errs := restore(to, nextSecond(), more...)
				if code != fault.Failed || !strings.Contains(out+errs, says) {
					t.Errorf("restore %v: got %d %s%s; want code fault.Failed, %q in out + errs", more, code, out, errs, says)
				}
				if got := sql("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'f'"); got != "2" {
					t.Errorf("restore %v left %s tables, want \"2\"", more, got)
				}
			}
			for range 2 { // at first the new log is shorter than the old one up to the position, then longer
				follow(place)
				follow(late)
				refused("restarted its binary logs", place)
				refused("restarted its binary logs", place, "--dry-run")
				refused("a different history", late)
				refused("a different history", late, "--dry-run")
				for i := range 8 {
					sql(fmt.Sprintf("INSERT INTO f.t (v) VALUES (REPEAT('behind the reset %d ', 9))", i))
				}
			}
			follow(place) // as long as the position at least: what it holds tells, without a clock
			refused("a different history", place, "--series", newestSeries(t, place))
			if code, out, errs := restore(place, at); code != fault.OK {
				t.Errorf("restore: got %d %s%s, want fault.OK", code, out, errs)
			}
			if got := sql("SELECT COUNT(*), MAX(id), MIN(v) FROM f.old"); got != "5 5 before the reset 0" {
				t.Errorf("rolled forward to %s: got %s, want \"5 5 before the reset 0\"", at, got)
			}
			if c.spec != "mariadb" { // a drill has the same room, and needs a server
				return
			}
			if code, out, _ := call(t, "drill", "--from", place, "--servers", c.spec); code != fault.OK || !strings.Contains(out, "rolled forward: 5 transactions") || !strings.Contains(out, "restarted its binary logs") {
				t.Errorf("drill: got %d %s; want code fault.OK, \"rolled forward: 5 transactions\" in it, \"restarted its binary logs\" in it", code, out)
			}
			if code, out, errs := call(t, "drill", "--from", late, "--servers", c.spec); code != fault.Failed || !strings.Contains(out+errs, "a different history") {
				t.Errorf("drill: got %d %s%s; want code fault.Failed, \"a different history\" in out + errs", code, out, errs)
			}
			sql("INSERT INTO f.u VALUES (1)")
			mustRun(t, "backup", "--dsn", n.DSN, "--to", late) // and the mirror goes on after it
			if code, out, errs := call(t, "drill", "--from", late, "--servers", c.spec); code != fault.OK || !strings.Contains(out, "nothing is rolled forward") || strings.Contains(out, "rolled forward: ") {
				t.Errorf("drill: got %d %s%s; want code fault.OK, \"nothing is rolled forward\" in it, no \"rolled forward: \" in it", code, out, errs)
			}
		})
	}
}

// newestSeries is the key of the series that grew last.
func newestSeries(t *testing.T, at string) string {
	t.Helper()
	place, done, err := places.OpenLogs(t.Context(), at, "")
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	all, err := mirror.List(t.Context(), place, at)
	if err != nil || len(all) != 2 {
		t.Fatalf("got %d series: %v; want 2", len(all), err)
	}
	return slices.MaxFunc(all, func(a, b mirror.Series) int { return a.Logs[len(a.Logs)-1].Last.Compare(b.Logs[len(b.Logs)-1].Last) }).Key
}
