package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// runSandbox runs one `risso sandbox` command and returns what it wrote.
func runSandbox(t *testing.T, args ...string) (out, progress string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var o, e bytes.Buffer
	cmd := newRoot(screen.Streams{Out: &o, Err: &e})
	cmd.SetArgs(append([]string{"sandbox"}, args...))
	err = cmd.ExecuteContext(ctx)
	return o.String(), e.String(), err
}

func TestSandboxCommands(t *testing.T) {
	sandboxtest.Need(t, "mariadb")
	root := t.TempDir()
	t.Setenv("RISSO_SANDBOX_DIR", root)
	t.Cleanup(func() { // where the test broke off
		left, err := sandbox.List(root)
		if err != nil {
			t.Error(err)
		}
		for _, s := range left {
			if err := s.Down(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	out, progress, err := runSandbox(t, "up", "box", "--topology", "replication", "--replicas", "1", "--option", "max_connections=55", "--output", "json")
	if err != nil {
		t.Fatal(err)
	}
	if progress != "" {
		t.Errorf("there is progress in a pipe: %s, want \"\"", progress)
	}
	up := nodesOf(t, out)
	if len(up) != 2 || up[0]["role"] != "primary" || up[1]["role"] != "replica" {
		t.Fatalf("nodes: got %v; want len(up) 2, up[0][\"role\"] \"primary\", up[1][\"role\"] \"replica\"", up)
	}
	for _, key := range []string{"name", "role", "server", "version", "host", "port", "socket", "datadir", "pid", "state", "dsn"} {
		if up[0][key] == nil || up[0][key] == "" || up[0][key] == 0.0 {
			t.Errorf("up does not tell %s; want up[0][key] not nil, up[0][key] not \"\", up[0][key] not 0.0", key)
		}
	}
	if out, _, err = runSandbox(t, "list", "-o", "json"); err != nil || len(nodesOf(t, out)) != 2 {
		t.Errorf("list: got %s %v; want len(nodesOf(t, out)) 2", out, err)
	}
	if out, _, err = runSandbox(t, "list"); err != nil || strings.Count(out, "running") != 4 {
		t.Errorf("list: got %s %v; want strings.Count(out, \"running\") 4", out, err)
	}
	if out, _, err = runSandbox(t, "servers"); err != nil || !strings.Contains(out, "mariadb") {
		t.Errorf("servers: got %s %v; want \"mariadb\" in it", out, err)
	}
	trySandboxExec(t)
	trySandboxTurns(t)
	if _, _, err = runSandbox(t, "up", "box"); exitCodeOf(err) != 2 {
		t.Errorf("up of a name that exists: got %v, want 2", err)
	}
	trySandboxDown(t, root)
}

func trySandboxExec(t *testing.T) {
	t.Helper()
	out, _, err := runSandbox(t, "exec", "box", "--", "SELECT 1 AS a, NULL AS b, 'x\ty' AS c;", "SELECT @@max_connections AS m")
	if want := "a\tb\tc\n1\tNULL\tx\\ty\nm\n55\n"; err != nil || out != want {
		t.Errorf("exec: got %q %v; want %q", out, err, want)
	}
	out, _, err = runSandbox(t, "exec", "box", "replica1", "-o", "json", "--", "SELECT @@read_only AS r")
	var got struct{ Results []sandbox.Result }
	if jerr := json.Unmarshal([]byte(out), &got); err != nil || jerr != nil || *got.Results[0].Rows[0][0] != "1" {
		t.Errorf("exec as JSON: got %q %v %v; want *got.Results[0].Rows[0][0] \"1\"", out, err, jerr)
	}
	if out, _, err = runSandbox(t, "exec", "box", "--", "-N", "-e", "SELECT 5"); err != nil || out != "5\n" {
		t.Errorf("client: got %q %v; want \"5\\n\"", out, err)
	}
	if _, _, err = runSandbox(t, "exec", "box", "--", "-e", "SELEC"); exitCodeOf(err) != 1 {
		t.Errorf("client that fails: got %v, want 1", err)
	}
	if _, _, err = runSandbox(t, "exec", "box", "nobody", "--", "SELECT 1"); exitCodeOf(err) != 2 || !strings.Contains(fleet.RemedyOf(err), "replica1") {
		t.Errorf("exec on no node: got %v; want exitCodeOf(err) 2, \"replica1\" in it", err)
	}
}

// trySandboxTurns stops, starts and kills nodes by their names, and looks what the config calls them.
func trySandboxTurns(t *testing.T) {
	t.Helper()
	for _, c := range []struct{ turn, was, now string }{
		{"stop", "running", "stopped"}, {"stop", "stopped", "stopped"}, {"start", "stopped", "running"}, {"start", "running", "running"},
		{"restart", "running", "running"}, {"kill", "running", "stopped"}, {"restart", "stopped", "running"},
	} {
		out, _, err := runSandbox(t, c.turn, "replica1", "-o", "json")
		var got struct {
			Sandbox, Was string
			Node         struct {
				Name, State string
				PID         int
			}
		}
		if jerr := json.Unmarshal([]byte(out), &got); err != nil || jerr != nil || got.Was != c.was || got.Node.State != c.now || (got.Node.PID != 0) != (c.now == "running") || got.Sandbox != "box" {
			t.Errorf("%s: got %s %v; want %s, then %s", c.turn, out, err, c.was, c.now)
		}
	}
	if out, _, err := runSandbox(t, "exec", "box", "replica1", "--", "SELECT 7"); err != nil || out != "7\n7\n" {
		t.Errorf("after all that it answers %q %v; want 7", out, err)
	}
	if out, _, err := runSandbox(t, "kill", "primary", "--sandbox", "box"); err != nil || out != "node primary of sandbox box killed\n" {
		t.Errorf("kill: got %q %v", out, err)
	}
	if out, _, err := runSandbox(t, "start", "primary"); err != nil || out != "node primary of sandbox box runs\n" {
		t.Errorf("start: got %q %v", out, err)
	}
	out, _, err := runSandbox(t, "config", "box")
	if err != nil || !strings.Contains(out, "name: box-primary\n") || !strings.Contains(out, "name: box-replica1\n") {
		t.Errorf("config: got %s %v; want the names box-primary and box-replica1", out, err)
	}
	for _, args := range [][]string{{"stop", "nobody"}, {"stop"}, {"kill", "primary", "--sandbox", "nosuch"}} {
		if _, _, err := runSandbox(t, args...); exitCodeOf(err) != 2 {
			t.Errorf("%v: got %v, want 2", args, err)
		}
	}
}

func trySandboxDown(t *testing.T, root string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(root, "other"), 0o700); err != nil { // what a killed up may leave
		t.Fatal(err)
	}
	_, _, err := runSandbox(t, "down")
	if exitCodeOf(err) != 2 || !strings.Contains(fleet.RemedyOf(err), "box, other") {
		t.Errorf("down with two sandboxes: got %v; want exitCodeOf(err) 2, \"box, other\" in it", err)
	}
	if out, _, err := runSandbox(t, "down", "other"); err != nil || out != "sandbox other removed\n" {
		t.Errorf("down: got %q %v; want \"sandbox other removed\\n\"", out, err)
	}
	out, _, err := runSandbox(t, "down", "--output", "json")
	if err != nil || strings.Join(strings.Fields(out), "") != `{"removed":["box"]}` {
		t.Errorf("down of the only one: got %q %v; want strings.Join(strings.Fields(out), \"\") \"{\\\"removed\\\":[\\\"box\\\"]}\"", out, err)
	}
	if _, _, err := runSandbox(t, "down"); exitCodeOf(err) != 2 {
		t.Errorf("down without any: got %v, want 2", err)
	}
	if _, _, err := runSandbox(t, "down", "--all"); err != nil {
		t.Errorf("down --all without any: %v", err)
	}
	if out, _, err := runSandbox(t, "list", "-o", "json"); err != nil || strings.Join(strings.Fields(out), "") != `{"sandboxes":[]}` {
		t.Errorf("list without any: got %q %v; want strings.Join(strings.Fields(out), \"\") \"{\\\"sandboxes\\\":[]}\"", out, err)
	}
}

// TestSandboxUpInterrupted sends this process what Ctrl-C sends.
func TestSandboxUpInterrupted(t *testing.T) {
	sandboxtest.Need(t, "mariadb")
	root := t.TempDir()
	t.Setenv("RISSO_SANDBOX_DIR", root)
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // so that there is a template to make
	shield, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	go func() {
		for shield.Err() == nil {
			if found, err := sandbox.List(root); err == nil && len(found) > 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	_, _, err := runSandbox(t, "up", "--topology", "replication")
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("up says %v; want an error, \"interrupted\" in the error", err)
	}
	if found, err := sandbox.List(root); err != nil || len(found) > 0 {
		t.Errorf("%d sandboxes are left, %v; want none", len(found), err)
	}
}

func TestSandboxUsage(t *testing.T) {
	t.Setenv("RISSO_SANDBOX_DIR", t.TempDir())
	for _, args := range [][]string{
		{"up", "a", "b"}, {"up", "--topology", "ring"}, {"up", "--output", "yaml"}, {"up", "--option", "a b"},
		{"down", "a", "--all"}, {"down", "nobody"}, {"exec"}, {"exec", "a", "b", "c"}, {"list", "x"},
	} {
		if _, _, err := runSandbox(t, args...); exitCodeOf(err) != 2 {
			t.Errorf("%v: got %v, want 2", args, err)
		}
	}
}

func exitCodeOf(err error) int {
	if err == nil {
		return fault.OK
	}
	return fault.Code(err)
}

func nodesOf(t *testing.T, out string) []map[string]any {
	t.Helper()
	var got struct {
		Sandboxes []struct{ Nodes []map[string]any }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Sandboxes) != 1 {
		t.Fatalf("%v in %s; want len(got.Sandboxes) 1", err, out)
	}
	return got.Sandboxes[0].Nodes
}
