package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/drill"
	"github.com/rissodb/risso/internal/face/cli/check"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestDrillCommand takes a backup, goes on, mirrors the binary logs, and proves the backup up to the last change; then it
// is wrong about what should be there, and a part of it is damaged.
func TestDrillCommand(t *testing.T) {
	for _, c := range []struct {
		spec     string
		physical bool
	}{{"mariadb", false}, {"mariadb", true}, {"mysql-9.7", false}} {
		t.Run(fmt.Sprint(c.spec, " physical ", c.physical), func(t *testing.T) { testDrillCommand(t, c.spec, c.physical) })
	}
}

func testDrillCommand(t *testing.T, spec string, physical bool) {
	n := sandboxtest.Up(t, spec)
	dir, err := os.MkdirTemp("", "rt-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("RISSO_SANDBOX_DIR", dir)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	place := filepath.Join(t.TempDir(), "bk")
	sql := func(statements string) {
		t.Helper()
		if _, err := n.Query(t.Context(), statements); err != nil {
			t.Fatal(err)
		}
	}
	sql(`SET GLOBAL event_scheduler=OFF; CREATE DATABASE shop; USE shop; CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, t VARCHAR(100), KEY(t)); INSERT INTO a (t) VALUES ('x'),('y'),('z');
		CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO DELETE FROM shop.a`)
	backup := []string{"backup", "--dsn", n.DSN, "--to", place}
	if physical {
		backup = append(backup, "--physical")
	}
	mustRun(t, backup...)
	sql("DELETE FROM shop.a WHERE t = 'y'; INSERT INTO shop.a (t) VALUES ('later')")
	mustRun(t, "binlog", "follow", "--dsn", n.DSN, "--to", place, "--once")
	out := mustRun(t, "drill", "--from", place, "--servers", spec, "--output", "json", "--query", "SELECT COUNT(*) FROM shop.a => 3", "--query", "SELECT t FROM shop.a ORDER BY id DESC LIMIT 1 => later")
	var p drill.Proof
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !p.Passed || p.Rolled == nil || p.Rolled.Transactions != 2 || p.Recovery <= 0 || p.Check.Tables == 0 || (p.Compare.Tables == 0) != physical || len(p.Queries) != 2 {
		t.Errorf("%+v", p)
	}
	if line := mustRun(t, "check", "backup", "--from", place); !strings.HasPrefix(line, "BACKUP OK - ") || !strings.Contains(line, " gap=0;") {
		t.Errorf("got %v; want \"BACKUP OK - \" at its beginning, \" gap=0;\" in it", line)
	}
	code, out, errs := call(t, "drill", "--from", place, "--servers", spec, "--no-roll", "--query", "SELECT COUNT(*) FROM shop.a => 4")
	if code != fault.Failed || !strings.Contains(out, "NOT PROVEN: SELECT COUNT(*) FROM shop.a gave 3, want 4") || !strings.Contains(errs, "not proven") {
		t.Errorf("got %d %s %s; want code fault.Failed, \"NOT PROVEN: SELECT COUNT(*) FROM shop.a gave 3, want 4\" in it, \"not proven\" in it",
			code, out, errs)
	}
	if code, line, _ := call(t, "check", "backup", "--from", place); code != check.Critical || !strings.HasPrefix(line, "BACKUP CRITICAL - the last drill failed") {
		t.Errorf("got %d %s; want code check.Critical, \"BACKUP CRITICAL - the last drill failed\" at its beginning", code, line)
	}
	parts, err := filepath.Glob(filepath.Join(place, map[bool]string{true: "physical/*/*", false: "data/*/*/*"}[physical]))
	if err != nil || len(parts) == 0 {
		t.Fatalf("got %v, %v; want not 0", parts, err)
	}
	b, err := os.ReadFile(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.Remove(parts[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(parts[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := call(t, "drill", "--from", place, "--servers", spec); code != fault.Failed || !strings.Contains(out, "damaged") {
		t.Errorf("got %d %s; want code fault.Failed, \"damaged\" in it", code, out)
	}
	if list, err := sandbox.List(dir); err != nil || len(list) > 0 {
		t.Errorf("got %v, %v; want none", list, err)
	}
}

// mustRun runs a command that must succeed, and returns its output.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := call(t, args...)
	if code != fault.OK {
		t.Fatalf("%s: got %d %s %s, want fault.OK", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// TestCheckWrongUse: what is wrong use elsewhere is UNKNOWN here, on standard output.
func TestCheckWrongUse(t *testing.T) {
	for _, args := range [][]string{{}, {"--from"}, {"--from", t.TempDir()}, {"--nonsense"}, {"--from", "s3:"}, {"--from", "x", "--warning", "soon"}, {"--from", "x", "y"}} {
		code, out, errs := call(t, append([]string{"check", "backup"}, args...)...)
		if code != check.Unknown || !strings.HasPrefix(out, "BACKUP UNKNOWN - ") || strings.Count(out, "\n") != 1 || errs != "" {
			t.Errorf("%q: got %d %q %q; want code check.Unknown, \"BACKUP UNKNOWN - \" at its beginning, strings.Count(out, \"\\n\") 1, errs \"\"",
				args, code, out, errs)
		}
	}
}
