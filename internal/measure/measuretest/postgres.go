// Package measuretest starts servers for the tests of this wing that the sandbox does not know.
package measuretest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// postgresBin is where Debian keeps PostgreSQL's programs.
const postgresBin = "/usr/lib/postgresql/15/bin"

// Postgres starts a PostgreSQL of its own as user postgres, on a socket only, and gives the folder of the socket, in which
// its log is the file log. The account postgres needs no password. Settings are name=value.
func Postgres(t testing.TB, settings ...string) (dir string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(postgresBin, "initdb")); err != nil {
		t.Skip("PostgreSQL 15 is not installed: run script/setup")
	}
	dir, err := os.MkdirTemp("", "risso-pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
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
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	run("initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync")
	options := "-c listen_addresses='' -c fsync=off -k " + dir
	for _, s := range settings {
		options += " -c " + strings.ReplaceAll(s, " ", `\ `)
	}
	run("pg_ctl", "-D", data, "-w", "-l", filepath.Join(dir, "log"), "-o", options, "start")
	t.Cleanup(func() {
		if _, err := os.Stat(filepath.Join(data, "postmaster.pid")); err == nil { // a test may have ended it
			run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
		}
	})
	return dir
}
