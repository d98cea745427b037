package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/face/cli/replica"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestReplica: all replicas go below one of them and back by the undo that is printed; one stops, and passes over one transaction.
func TestReplica(t *testing.T) {
	t.Parallel()
	box := sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{"mysql-9.7"}, Topology: sandbox.TopologyReplication, Replicas: 2})
	var dsns []string
	for i, n := range box.Nodes {
		dsns = append(dsns, "--dsn", fmt.Sprintf("n%d=%s", i, n.DSN))
	}
	risso := func(code int, args ...string) (out, said string) {
		t.Helper()
		got, out, said := call(t, append(append([]string{"replica"}, args...), dsns...)...)
		if got != code {
			t.Fatalf("%v: got %d, %s%s; want %d", args, got, out, said, code)
		}
		return out, said
	}
	state := t.TempDir()
	out, _ := risso(fault.OK, "move", "--all-of", "n0", "--below", "n1", "--dry-run", "--state", state)
	if !strings.Contains(out, "n2: from ") || strings.Contains(out, "n1: from") {
		t.Errorf("the plan is %s; want one for n2", out)
	}
	if _, said := risso(fault.Usage, "move", "n2", "--below", "n1", "--state", state); !strings.Contains(said, "nobody to ask") {
		t.Errorf("without --yes: %s", said)
	}
	out, _ = risso(fault.OK, "move", "--all-of", "n0", "--below", "n1", "--yes", "--state", state, "-o", "json")
	var a replica.Answer
	if err := json.Unmarshal([]byte(out), &a); err != nil || len(a.Replicas) != 1 || !a.Replicas[0].Done || !strings.HasPrefix(a.Replicas[0].Undo, "risso replica move n2 --below n0 --dsn ") {
		t.Fatalf("got %s, %v; want that n2 is done, and its undo", out, err)
	}
	if _, said := risso(fault.Failed, "move", "n1", "--below", "n2", "--yes", "--state", state); !strings.Contains(said, "it would be a ring") {
		t.Errorf("a ring: %s", said)
	}
	risso(fault.OK, "move", "n2", "--below", "n0", "--yes", "--state", state)
	primary, broken := openNode(t, box.Nodes[0]), openNode(t, box.Nodes[2])
	broken.SetMaxOpenConns(1)
	mustExec(t, primary, "CREATE DATABASE d")
	mustExec(t, primary, "CREATE TABLE d.t (id INT PRIMARY KEY)")
	await.Until(t, func() bool { _, err := broken.Exec("SELECT id FROM d.t"); return err == nil }, "the table on the replica")
	for _, q := range []string{"SET GLOBAL super_read_only = OFF", "SET sql_log_bin = 0", "INSERT INTO d.t VALUES (1)"} {
		mustExec(t, broken, q)
	}
	mustExec(t, primary, "INSERT INTO d.t VALUES (1)")
	skip := []string{"replica", "skip", "n2", "--dsn", dsns[5], "--state", state}
	await.Until(t, func() bool {
		code, said, _ := call(t, append(skip, "--dry-run")...)
		return code == fault.OK && strings.Contains(said, "it would have changed: INSERT into d.t\n")
	}, "that n2 stands at an INSERT")
	code, out, said := call(t, append(skip, "--yes", "-o", "json")...)
	if code != fault.OK || !strings.Contains(out, `"after": "it applies"`) || !strings.Contains(out, "risso checksum") {
		t.Errorf("skip: %d, %s%s", code, out, said)
	}
	if _, said := risso(fault.Failed, "skip", "n2", "--yes", "--state", state); !strings.Contains(said, "stands at no transaction") {
		t.Errorf("nothing to skip: %s", said)
	}
	for _, problem := range compileSchema(t).check(t, "replica skip", out) {
		t.Errorf("%s\n%s", problem, out)
	}
}
