package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestDrillUnlogged: what a server leaves out of its binary logs is reported by the doctor, the mirror and the restore, and a drill that
// rolls forward over it proves nothing. Without rolling forward nothing is wrong.
func TestDrillUnlogged(t *testing.T) {
	for _, c := range []struct{ spec, option string }{{"mariadb", "binlog-ignore-db=hidden"}, {"mysql-9.7", "binlog-do-db=shop"}} {
		t.Run(c.spec, func(t *testing.T) {
			n := sandboxtest.Up(t, c.spec, c.option)
			dir, err := os.MkdirTemp("", "rt-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			t.Setenv("RISSO_SANDBOX_DIR", dir)
			t.Setenv("XDG_STATE_HOME", t.TempDir())
			place := filepath.Join(t.TempDir(), "bk")
			if _, err := n.Query(t.Context(), "CREATE DATABASE shop; CREATE DATABASE hidden; CREATE TABLE shop.a (id INT PRIMARY KEY); CREATE TABLE hidden.b (id INT PRIMARY KEY)"); err != nil {
				t.Fatal(err)
			}
			mustRun(t, "backup", "--dsn", n.DSN, "--to", place)
			if _, err := n.Query(t.Context(), "USE hidden; INSERT INTO b VALUES (1); USE shop; INSERT INTO a VALUES (1)"); err != nil {
				t.Fatal(err)
			}
			if _, _, errs := call(t, "binlog", "follow", "--dsn", n.DSN, "--to", place, "--once"); !strings.Contains(errs, "cannot be rolled forward") {
				t.Errorf("follow: got %s, want \"cannot be rolled forward\" in it", errs)
			}
			if _, out, errs := call(t, "restore", "--from", place, "--into", n.DSN, "--overwrite", "--to-time", "2100-01-01 00:00:00", "--dry-run"); !strings.Contains(out, "note: nothing of hidden") {
				t.Errorf("restore: got %s %s, want \"note: nothing of hidden\" in it", out, errs)
			}
			if code, out, _ := call(t, "drill", "--from", place, "--servers", c.spec); code != fault.Failed || !strings.Contains(out, "NOT PROVEN: rolling forward does not cover hidden") {
				t.Errorf("drill: got %d %s; want code fault.Failed, \"NOT PROVEN: rolling forward does not cover hidden\" in it", code, out)
			}
			if code, out, _ := call(t, "drill", "--from", place, "--servers", c.spec, "--no-roll"); code != fault.OK {
				t.Errorf("drill --no-roll: got %d %s, want fault.OK", code, out)
			}
			if c.spec == "mariadb" { // the result is printed, even if it cannot be stored
				proofs := filepath.Join(place, "proofs")
				if err := errors.Join(os.RemoveAll(proofs), os.WriteFile(proofs, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
				if code, out, errs := call(t, "drill", "--from", place, "--servers", c.spec, "--no-roll"); code != fault.Failed || !strings.Contains(out, "\nPROVEN: ") || !strings.Contains(errs, "store the proof") {
					t.Errorf("drill without room for its proof: got %d %s %s; want code fault.Failed, \"\\nPROVEN: \" in it, \"store the proof\" in it",
						code, out, errs)
				}
				os.Remove(proofs)
			}
			if _, out, _ := call(t, "doctor", "--dsn", n.DSN, "--for", "follow"); !strings.Contains(out, "cannot be rolled forward") {
				t.Errorf("doctor: got %s, want \"cannot be rolled forward\" in it", out)
			}
			if c.spec != "mariadb" { // whose tool is installed
				return
			}
			// A physical backup knows it, too.
			place = filepath.Join(t.TempDir(), "files")
			mustRun(t, "backup", "--physical", "--dsn", n.DSN, "--to", place)
			if _, out, _ := call(t, "backup", "show", "--from", place); !strings.Contains(out, "the server writes only some of its changes to the binary log") {
				t.Errorf("show: got %s, want \"the server writes only some of its changes to the binary log\" in it", out)
			}
			call(t, "binlog", "follow", "--dsn", n.DSN, "--to", place, "--once")
			if code, out, errs := call(t, "drill", "--from", place, "--servers", c.spec); code != fault.Failed || !strings.Contains(out, "NOT PROVEN: rolling forward does not cover hidden") {
				t.Errorf("drill of a physical backup: got %d %s %s; want code fault.Failed, \"NOT PROVEN: rolling forward does not cover hidden\" in it",
					code, out, errs)
			}
		})
	}
}
