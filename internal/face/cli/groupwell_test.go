package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/state"
)

// TestGroupUnwell: what is wrong with a group is told by all commands that are about its primary, each with one command that mends it; that command is run.
func TestGroupUnwell(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	box := sandboxtest.Pair(t, "mysql-9.7")
	data := filepath.Join(t.TempDir(), "data")
	args := []string{"group", "create", "g", "--manual", "--data", data}
	for i, n := range box.Nodes {
		c, err := n.TCPConfig()
		if err != nil {
			t.Fatal(err)
		}
		host := []string{"127.0.0.1", "localhost"}[i] // by another name than its source lists it
		args = append(args, "--dsn", fmt.Sprintf("db%d=%s:%s@tcp(%s:%d)/", i+1, c.User, c.Passwd, host, n.Port))
	}
	mustRun(t, args...)
	mustRun(t, "group", "health", "g", "--data", data)
	primary := openNode(t, box.Nodes[0])
	isOpen := func() bool {
		t.Helper()
		var closed bool
		if err := primary.QueryRow("SELECT @@GLOBAL.read_only").Scan(&closed); err != nil {
			t.Fatal(err)
		}
		return !closed
	}
	told := func(what, remedy string) {
		t.Helper()
		for _, line := range []string{"group health g", "switchover --group g --yes", "failover --group g --yes", "group promote g db2 --yes"} {
			code, out, said := call(t, append(strings.Fields(line), "--data", data)...)
			if code != 1 || !strings.Contains(said, what) || !strings.Contains(said, "("+remedy) {
				t.Errorf("risso %s: exit code %d, want %q and %q: %s%s", line, code, what, remedy, out, said)
			}
		}
	}

	mustExec(t, primary, "SET GLOBAL super_read_only = ON")
	told("takes no writes: somebody made it read-only", "risso group promote g db1)")
	if isOpen() {
		t.Fatal("it was opened by a command that does not say so")
	}
	if out := mustRun(t, "group", "promote", "g", "db1", "--yes", "--data", data); !strings.Contains(out, "db1, the primary of g, takes writes again") || !isOpen() {
		t.Errorf("opened: %s", out)
	}
	mustRun(t, "group", "health", "g", "--data", data)

	mustExec(t, primary, "SET GLOBAL offline_mode = ON")
	for _, line := range []string{"group health g", "switchover --group g --yes", "group promote g db1 --yes"} {
		if code, out, said := call(t, append(strings.Fields(line), "--data", data)...); code != 1 || !strings.Contains(said, "offline_mode is ON there (SET GLOBAL offline_mode = OFF on db1)") {
			t.Errorf("risso %s: exit code %d: %s%s", line, code, out, said)
		}
	}
	mustExec(t, primary, "SET GLOBAL offline_mode = OFF")
	mustRun(t, "group", "health", "g", "--data", data)

	// A switchover that was killed when writes stood still.
	st, err := state.Open(t.Context(), filepath.Join(data, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	mustExec(t, primary, "SET GLOBAL super_read_only = ON")
	if _, err := (&keep.Room{Docs: st, Who: "test"}).Begin(t.Context(), failover.Journal{Group: "g", Epoch: 1, Kind: failover.Switchover, Stage: failover.Draining, Old: "db1", New: "db2",
		Began: time.Now().UTC(), Before: map[string]failover.Was{}}); err != nil {
		t.Fatal(err)
	}
	told("was cut off", "risso failover resume --group g ")
	for _, line := range []string{"group show g", "group list", "group health g"} {
		if _, out, _ := call(t, append(strings.Fields(line), "--data", data)...); !strings.Contains(out, "a switchover to db2 that began at ") || !strings.Contains(out, "was cut off") {
			t.Errorf("risso %s does not tell of it: %s", line, out)
		}
	}
	if out := mustRun(t, "failover", "resume", "--group", "g", "--data", data); !strings.Contains(out, "the switchover to db2 that was cut off is taken back: db1 is the primary of g as before") || !isOpen() {
		t.Errorf("taken back: %s", out)
	}
	mustRun(t, "group", "health", "g", "--data", data)
}

// TestResumeMeanwhile: a switchover that was killed is taken back by another process while risso failover resume waits for the lease; resume says so, and who the primary is.
func TestResumeMeanwhile(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	box := sandboxtest.Pair(t, "mariadb")
	data := filepath.Join(t.TempDir(), "data")
	args := []string{"group", "create", "g", "--manual", "--data", data}
	for i, n := range box.Nodes {
		c, err := n.TCPConfig()
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--dsn", fmt.Sprintf("db%d=%s:%s@tcp(%s)/", i+1, c.User, c.Passwd, c.Addr))
	}
	mustRun(t, args...)
	st, err := state.Open(t.Context(), filepath.Join(data, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	room := &keep.Room{Docs: st, Who: "test"}
	mustExec(t, openNode(t, box.Nodes[0]), "SET GLOBAL read_only = ON")
	g, err := room.Change(t.Context(), "g", func(g *group.Group) error { // its holder was killed
		return g.Take(group.Claim{Holder: "killed"}, time.Now(), 3*time.Second)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := room.Begin(t.Context(), failover.Journal{Group: "g", Epoch: g.Lease.Epoch, Kind: failover.Switchover, Stage: failover.Draining, Old: "db1", New: "db2",
		Began: time.Now().UTC(), Before: map[string]failover.Was{}}); err != nil {
		t.Fatal(err)
	}
	serve := &carry.Carrier{Room: room, Holder: carry.NewHolder("serve"), Limits: carry.DefaultLimits(), Sight: new(group.Sight)}
	serve.Sight.See(g.Lease, time.Now()) // first, and so it is the first to know that the lease is over
	taken := make(chan error, 1)
	go func() {
		time.Sleep(time.Until(g.Lease.Until) + 100*time.Millisecond)
		_, err := serve.Resume(t.Context(), carry.Asked{Group: "g", By: "risso serve"})
		taken <- err
	}()
	time.Sleep(2 * time.Second)
	code, out, said := call(t, "failover", "resume", "--group", "g", "--data", data)
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	if code != 0 || !strings.Contains(out, "risso serve (process ") || !strings.Contains(out, " took the switchover to db2 that was cut off back meanwhile: db1 is the primary of g as before") {
		t.Errorf("exit code %d: %s%s", code, out, said)
	}
	if code, out, said := call(t, "failover", "resume", "--group", "g", "--data", data); code != 0 || strings.TrimSpace(out) != "nothing was cut off" {
		t.Errorf("once more: exit code %d: %s%s", code, out, said)
	}
}
