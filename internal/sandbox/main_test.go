package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/lack"
)

// cacheDir is shared by the tests of this package, so that each kind of
// server is bootstrapped once.
var cacheDir string

// helperEnv makes the test program a separate up, which a test can kill.
const helperEnv = "RISSO_TEST_SANDBOX_UP"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		os.Exit(helperUp())
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "risso-sandbox-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	cacheDir = filepath.Join(dir, "cache")
	return m.Run()
}

// helperUp runs Up as the environment says and prints each step.
func helperUp() int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := Up(ctx, Options{
		Dir: os.Getenv(helperEnv), CacheDir: os.Getenv("RISSO_TEST_CACHE"), Name: "killed", Servers: []string{"mariadb"},
		Topology: TopologyReplication, Progress: func(s string) { fmt.Println(s) },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// needServer is sandboxtest.Need, which this package cannot import.
func needServer(t *testing.T, spec string) {
	t.Helper()
	if _, err := Find(t.Context(), spec); errors.Is(err, ErrNoServer) {
		lack.Server(t, spec)
	} else if err != nil {
		t.Fatal(err)
	}
}

// up makes a sandbox in a private folder and takes it down with the test.
func up(t *testing.T, o Options) *Sandbox {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.CacheDir == "" {
		o.CacheDir = cacheDir
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	start := time.Now()
	o.Progress = func(s string) { t.Logf("%6.2fs %s", time.Since(start).Seconds(), s) }
	s, err := Up(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%6.2fs up", time.Since(start).Seconds())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := os.Stat(s.Dir); errors.Is(err, os.ErrNotExist) {
			return // the test has done it
		}
		if err := s.Down(ctx); err != nil {
			t.Errorf("down: %v", err)
		}
		mustBeClean(t, filepath.Dir(s.Dir))
	})
	return s
}

// mustBeClean fails when a process or a file of a sandbox is left under root.
func mustBeClean(t *testing.T, root string) {
	t.Helper()
	left, err := processesUnder(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range left {
		t.Errorf("process %d is left: %v", p.PID, argv(p.PID))
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != ".lock" {
			t.Errorf("%s is left in %s, want \".lock\"", e.Name(), root)
		}
	}
}

// query runs one statement that returns one value, as root.
func query(t *testing.T, n *Node, statement string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := n.Query(ctx, statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	last := r[len(r)-1]
	if len(last.Rows) == 0 || last.Rows[0][0] == nil {
		return ""
	}
	return *last.Rows[0][len(last.Columns)-1]
}

// eventually tries for a while until a statement returns want.
func eventually(t *testing.T, n *Node, statement, want string) {
	t.Helper()
	await.Until(t, func() bool { return query(t, n, statement) == want }, "%q from %s of %s", want, statement, n.Name)
}
