package sandboxtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// Up starts one server for a test and ends it with the test. settings are "key=value" for its option file.
func Up(t testing.TB, spec string, settings ...string) *sandbox.Node {
	t.Helper()
	Need(t, spec)
	dir := shortDir(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s, err := sandbox.Up(ctx, sandbox.Options{Name: "t", Dir: dir, Servers: []string{spec}, Settings: settings, StartTimeout: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Down(ctx); err != nil {
			t.Errorf("down: %v", err)
		}
	})
	return s.Primary()
}

// shortDir is a folder whose name leaves room for the path of a socket.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rt-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// postgresBin is where Debian keeps PostgreSQL's programs.
const postgresBin = "/usr/lib/postgresql/15/bin"

// Postgres starts a PostgreSQL of its own, on a socket only, and gives its address. It skips the test where PostgreSQL
// is not installed.
func Postgres(t testing.TB) (url string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(postgresBin, "initdb")); err != nil {
		t.Skip("PostgreSQL 15 is not installed: run script/setup")
	}
	dir := shortDir(t)
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command("runuser", append([]string{"-u", "postgres", "--", filepath.Join(postgresBin, name)}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	if out, err := exec.Command("chown", "postgres", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data := filepath.Join(dir, "data")
	run("initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync")
	run("pg_ctl", "-D", data, "-w", "-l", filepath.Join(dir, "log"), "-o", "-c listen_addresses='' -k "+dir+" -c fsync=off", "start")
	t.Cleanup(func() { run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop") })
	return "postgres:///postgres?user=postgres&host=" + dir
}
