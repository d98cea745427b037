package postgres_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/postgres"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// ask runs a query by PostgreSQL's own client.
func ask(t *testing.T, s *postgres.Server, sql string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(s.Bin, "psql"), "-Atq", s.URL(""), "-c", sql).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", sql, err, out)
	}
	return strings.TrimSpace(string(out))
}

func gone(t *testing.T, s *postgres.Server) {
	t.Helper()
	if _, err := os.Stat(s.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v, want os.ErrNotExist", err)
	}
	list, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		if b, err := os.ReadFile(p); err == nil && strings.Contains(string(b), s.Data) {
			t.Errorf("a process is left: %s", strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
}

// TestServer keeps its data through a stop and a crash, and nothing of itself after Down.
func TestServer(t *testing.T) {
	s := sandboxtest.Postgres(t, "work_mem=3MB", "cluster_name=it's")
	if v := ask(t, s, "SHOW server_version"); !strings.HasPrefix(v, s.Version) || s.Version == "" {
		t.Errorf("version %q, the server says %q; want %q at its beginning, s.Version not \"\"", s.Version, v, s.Version)
	}
	if v := ask(t, s, "SELECT current_setting('work_mem') || current_setting('cluster_name') || current_setting('listen_addresses')"); v != "3MBit's" {
		t.Errorf("settings %q, want \"3MBit's\"", v)
	}
	ask(t, s, "CREATE TABLE t AS SELECT 42 AS a")
	for name, end := range map[string]func(context.Context) error{"stop": s.Stop, "kill": s.Kill} {
		if err := errors.Join(end(t.Context()), end(t.Context()), s.Start(t.Context())); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if v := ask(t, s, "SELECT a FROM t"); v != "42" {
			t.Errorf("after a %s: got %q, want \"42\"", name, v)
		}
	}
	if st, err := os.Stat(s.Dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("others may enter its folder: got %v, %v; want Perm() 0o700", st.Mode(), err)
	}
	if err := s.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone(t, s)
}

// TestRemove removes what a killed process left, by its name.
func TestRemove(t *testing.T) {
	if _, err := postgres.Find(""); errors.Is(err, sandbox.ErrNoServer) {
		lack.Of(t, "PostgreSQL is not installed: run script/setup")
	}
	const name = "test-remove"
	s, err := postgres.Up(t.Context(), postgres.Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Up(t.Context(), postgres.Options{Name: name}); err == nil {
		t.Error("two servers of one name")
	}
	if err := postgres.Remove(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	gone(t, s)
	if err := postgres.Remove(t.Context(), name); err != nil {
		t.Errorf("nothing to remove: %v", err)
	}
	// What is there under the name, but is no server.
	if err := os.WriteFile(s.Dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(s.Dir)
	if err := postgres.Remove(t.Context(), name); err == nil {
		t.Error("a file was taken for a server")
	}
}

// TestFails leaves nothing, and tells why.
func TestFails(t *testing.T) {
	if _, err := postgres.Find(""); errors.Is(err, sandbox.ErrNoServer) {
		lack.Of(t, "PostgreSQL is not installed: run script/setup")
	}
	before, _ := filepath.Glob(filepath.Join(os.TempDir(), "risso-postgres-test-fails*"))
	for setting, says := range map[string]string{"shared_buffers=much": "shared_buffers", "no_such_thing=1": "no_such_thing", "x": "name=value", "a=b\nc=d": "name=value"} {
		_, err := postgres.Up(t.Context(), postgres.Options{Name: "test-fails", Settings: []string{setting}})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v; want an error, %q in the error, no \"\\n\" in the error", setting, err, says)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := postgres.Up(ctx, postgres.Options{Name: "test-fails"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if after, _ := filepath.Glob(filepath.Join(os.TempDir(), "risso-postgres-test-fails*")); len(after) != len(before) {
		t.Errorf("left: got %q, want length %v", after, len(before))
	}
	for _, spec := range []string{"postgres-1", "postgresql", "postgres-x", "mariadb"} {
		if _, err := postgres.Find(spec); !errors.Is(err, sandbox.ErrNoServer) {
			t.Errorf("%s: got %v, want sandbox.ErrNoServer", spec, err)
		}
	}
}
