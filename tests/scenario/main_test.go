// Package scenario_test runs the real program against real servers and breaks what can break.
//
// RISSO_BIN names a built program; without it one is built. RISSO_NEED_SERVERS=1 makes a failure of what is
// missing and script/setup installs.
package scenario_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

var (
	binary  string // the program under test
	root    string // folder of everything that these tests make, but servers
	servers string // folder of those
	config  string // the account's own: the keys that backups are signed by
)

// The kinds of server that Risso promises to watch.
var kinds = []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	// Short, for the paths of sockets.
	if root, err = os.MkdirTemp("", "rs-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(root)
	if servers, err = sandboxtest.Folder("rs-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(servers)
	if config, err = os.MkdirTemp("", "rs-config-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(config)
	if binary, err = program(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	watchStalls()
	if err := sandboxtest.Parallel(5); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if left := leftovers(); len(left) > 0 {
		fmt.Fprintln(os.Stderr, "left behind:", strings.Join(left, "\n  "))
		return 1
	}
	return code
}

// program is RISSO_BIN, or else built now.
func program() (string, error) {
	if b := os.Getenv("RISSO_BIN"); b != "" {
		return filepath.Abs(b)
	}
	out := filepath.Join(root, "risso")
	cmd := exec.Command("go", "build", "-o", out, "github.com/rissodb/risso/cmd/risso")
	if b, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build risso: %w: %s", err, b)
	}
	return out, nil
}

// leftovers lists processes that work under root or next to servers, and what is there.
func leftovers() (left []string) {
	proc, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return []string{err.Error()}
	}
	for _, p := range proc {
		b, err := os.ReadFile(p)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(p)))
		if err == nil && pid != os.Getpid() && (strings.Contains(string(b), root+"/") || strings.Contains(string(b), servers+"/")) {
			left = append(left, fmt.Sprintf("process %d: %s", pid, strings.ReplaceAll(string(b), "\x00", " ")))
		}
	}
	// Each test's folder goes with the test; only the program may lie here.
	for _, dir := range []string{root, servers} {
		list, err := os.ReadDir(dir)
		if err != nil {
			return append(left, err.Error())
		}
		for _, e := range list {
			if e.Name() != "risso" {
				left = append(left, "folder "+filepath.Join(dir, e.Name()))
			}
		}
	}
	return left
}

// tempDir is a folder with a short name that goes with the test.
func tempDir(t *testing.T) string {
	t.Helper()
	return tempDirIn(t, root)
}

func tempDirIn(t *testing.T, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "t")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the test's folder: %v", err)
		}
	})
	return dir
}

// eachKind runs a test for each kind of server, at the same time.
func eachKind(t *testing.T, list []string, f func(t *testing.T, kind string)) {
	t.Helper()
	for _, kind := range list {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			sandboxtest.Need(t, kind)
			f(t, kind)
		})
	}
}

// up makes a sandbox that goes with the test.
func up(t *testing.T, o sandbox.Options) *sandbox.Sandbox {
	t.Helper()
	if o.Dir == "" {
		o.Dir = tempDirIn(t, servers)
	}
	return sandboxtest.Sandbox(t, o)
}

// single is one server of a kind.
func single(t *testing.T, kind string, settings ...string) *sandbox.Node {
	t.Helper()
	return up(t, sandbox.Options{Name: "s", Servers: []string{kind}, Settings: settings}).Primary()
}

// exec runs statements as root.
func execSQL(t *testing.T, n *sandbox.Node, statements string) []sandbox.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := n.Query(ctx, statements)
	if err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
	return r
}

// value runs a statement that returns one value.
func value(t *testing.T, n *sandbox.Node, statement string) string {
	t.Helper()
	r := execSQL(t, n, statement)
	last := r[len(r)-1]
	if len(last.Rows) == 0 || last.Rows[0][0] == nil {
		return ""
	}
	return *last.Rows[0][0]
}

// patience is how long a test waits for what must come. It says nothing about how fast that is: a machine that runs all tests
// at the same time with the race detector takes its time.
const patience = 3 * time.Minute

// await waits until f says that it is so.
func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	awaitWithin(t, patience, what, f)
}

// awaitWithin is await where the time is what is tested.
func awaitWithin(t *testing.T, limit time.Duration, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; {
		if f() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s still not: %s", limit, what)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
