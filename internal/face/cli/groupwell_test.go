package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/agent"
	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/state"
)

// lateAgent lets a group have an agent that fences later than controllers wait for: that is told, with what to do.
func lateAgent(t *testing.T, data string) {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("shared"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(agent.New(agent.Options{Group: "g", Member: "db1", Token: "shared", Fence: agent.FenceLost, TTL: 10 * time.Second}).Handler())
	defer h.Close()
	port := h.Listener.Addr().(*net.TCPAddr).Port
	mustRun(t, "group", "set-policy", "g", "--agent-ttl", "3s", "--agent-port", fmt.Sprint(port), "--agent-token-file", token, "--data", data)
	for _, output := range []string{"text", "json"} {
		if out := mustRun(t, "group", "health", "g", "-o", output, "--data", data); !strings.Contains(out, "its --ttl is 10 s and the --agent-ttl of the group 3 s") || !strings.Contains(out, "risso group set-policy g --agent-ttl 10s") {
			t.Errorf("an agent that fences too late: %s", out)
		}
	}
	mustRun(t, "group", "set-policy", "g", "--agent-ttl", "0", "--agent-port", "0", "--data", data)
}

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
	for _, line := range []string{"group health g", "failover --group g --dry-run", "switchover --group g --dry-run"} {
		if _, out, said := call(t, append(strings.Fields(line), "-o", "json", "--data", data)...); strings.Count(out, `"words": "nothing to apply"`) != 3 || !strings.Contains(out, `"handover": {`) {
			t.Errorf("risso %s does not say for how long it is waited: %s%s", line, out, said)
		}
	}
	lateAgent(t, data)
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
	for _, line := range []string{"group remove g db2", "group remove g"} {
		if code, _, said := call(t, append(strings.Fields(line), "--data", data)...); code != 1 || !strings.Contains(said, "was cut off (risso failover resume --group g ") {
			t.Errorf("risso %s: exit code %d: %s", line, code, said)
		}
	}
	for _, line := range []string{"group show g", "group list", "group health g"} {
		if _, out, _ := call(t, append(strings.Fields(line), "--data", data)...); !strings.Contains(out, "a switchover to db2 that began at ") || !strings.Contains(out, "was cut off") {
			t.Errorf("risso %s does not tell of it: %s", line, out)
		}
	}
	if out := mustRun(t, "failover", "resume", "--group", "g", "--data", data); !strings.Contains(out, "the switchover to db2 that was cut off is taken back: db1 is the primary of g as before") || !isOpen() {
		t.Errorf("taken back: %s", out)
	}
	mustRun(t, "group", "health", "g", "--data", data)
	deserted(t, box.Nodes[0], data)
}

// deserted: a group that has no primary, or a dead one, is not ready, whoever could follow; where that is said, the command that mends it is named.
func deserted(t *testing.T, primary *sandbox.Node, data string) {
	t.Helper()
	told := func(state string, says, remedy string) {
		t.Helper()
		for output, want := range map[string]string{"text": says, "json": `"ready": false`} {
			if code, out, said := call(t, "group", "health", "g", "-o", output, "--data", data); code != 1 || !strings.Contains(out, want) || !strings.Contains(said, says) || !strings.Contains(said, "("+remedy+")") {
				t.Errorf("%s, %s: exit code %d: %s%s", state, output, code, out, said)
			}
		}
	}
	mustRun(t, "group", "demote", "g", "--yes", "--data", data)
	told("no primary", "g has no primary: db1 would be promoted", "risso group promote g")
	mustRun(t, "group", "promote", "g", "db1", "--yes", "--data", data)
	mustRun(t, "group", "health", "g", "--data", data)
	if err := primary.Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"group activate g", "group deactivate g"} {
		mustRun(t, append(strings.Fields(line), "--data", data)...)
		told("dead, after "+line, "g: db1, the primary, does not answer: ", "risso failover --group g")
	}
	mustRun(t, "failover", "--group", "g", "--yes", "--data", data)
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

// dryPair is a group of two servers, of which a test asks what would be done.
type dryPair struct {
	*testing.T
	box  *sandbox.Sandbox
	data string
	gone bool // the primary
}

func newDryPair(t *testing.T, spec string) *dryPair {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	d := &dryPair{T: t, box: sandboxtest.Pair(t, spec), data: filepath.Join(t.TempDir(), "data")}
	args := []string{"group", "create", "g", "--manual", "--data", d.data}
	for i, n := range d.box.Nodes {
		c, err := n.TCPConfig()
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--dsn", fmt.Sprintf("db%d=%s:%s@tcp(%s)/", i+1, c.User, c.Passwd, c.Addr))
	}
	mustRun(t, args...)
	return d
}

// state is all that a change of the primary changes: the group with its lease, whether servers take writes, whether they replicate, and what they wrote.
func (d *dryPair) state() string {
	d.Helper()
	out := mustRun(d.T, "group", "show", "g", "--data", d.data, "-o", "json") + mustRun(d.T, "receipt", "--group", "g", "--no-logs", "--data", d.data)
	for i, n := range d.box.Nodes {
		if d.gone && i == 0 {
			continue
		}
		c := sandboxtest.Connect(d.T, n)
		set, err := mysql.LoggedGTIDs(d.Context(), c)
		if err != nil {
			d.Fatal(err)
		}
		v, err := read.Variables(d.Context(), c, []string{"read_only", c.Server.ReadOnlyVariable()})
		if err != nil {
			d.Fatal(err)
		}
		list, err := read.ReplicaChannels(d.Context(), c)
		if err != nil {
			d.Fatal(err)
		}
		out += fmt.Sprintln(n.Name, v, set)
		for _, ch := range list {
			out += fmt.Sprintln(ch.Status.Source, ch.SQLRunning)
		}
	}
	return out
}

// dry runs a command with --dry-run, and sees that nothing is changed, and that JSON has the steps that it prints, which are returned.
func (d *dryPair) dry(line string, says ...string) []string {
	d.Helper()
	before := d.state()
	args := append(strings.Fields(line), "--dry-run", "--data", d.data)
	out := mustRun(d.T, args...)
	for _, want := range says {
		if !strings.Contains(out, want) {
			d.Errorf("risso %s does not say %q: %s", line, want, out)
		}
	}
	var a struct {
		DryRun bool `json:"dry_run"`
		Plan   []string
	}
	if err := json.Unmarshal([]byte(mustRun(d.T, append(args, "-o", "json")...)), &a); err != nil || !a.DryRun || len(a.Plan) == 0 {
		d.Errorf("risso %s: %v: the JSON is %+v", line, err, a)
	}
	for _, step := range a.Plan {
		if !strings.Contains(out, step) {
			d.Errorf("risso %s does not print the step %q: %s", line, step, out)
		}
	}
	if after := d.state(); after != before {
		d.Errorf("risso %s changed something: it was\n%s\nand is\n%s", line, before, after)
	}
	return a.Plan
}

// TestPromoteDemoteDryRun: promote and demote show what they would do, as switchover and failover do, and change nothing.
func TestPromoteDemoteDryRun(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			d := newDryPair(t, spec)
			if got, want := d.dry("group promote g db2", "switchover of g from db1 to db2"), d.dry("switchover --group g --to db2"); !slices.Equal(got, want) {
				t.Errorf("promote would do %q, and switchover %q", got, want)
			}
			d.dry("group demote g", "nobody takes writes in g until a member is promoted", "read_only = ON on db1", "tell clients that g has no primary")
			primary := sandboxtest.Connect(t, d.box.Nodes[0])
			if err := primary.Exec(t.Context(), primary.Server.Shut()); err != nil {
				t.Fatal(err)
			}
			d.dry("group promote g db1", "db1, the primary of g, takes no writes", "read_only = OFF on db1")
			mustRun(t, "group", "promote", "g", "db1", "--yes", "--data", d.data)
			mustRun(t, "group", "demote", "g", "--yes", "--data", d.data)
			mustRun(t, "group", "promote", "g", "db1", "--yes", "--data", d.data)
			if err := d.box.Nodes[0].Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			d.gone = true
			if got, want := d.dry("group promote g", "failover of g from db1 to db2"), d.dry("failover --group g"); !slices.Equal(got, want) {
				t.Errorf("promote would do %q, and failover %q", got, want)
			}
			if code, out, said := call(t, "group", "demote", "g", "--dry-run", "--data", d.data); code != 1 || !strings.Contains(said, "db1: it cannot be done: it does not answer") {
				t.Errorf("a primary that is dead: exit code %d: %s%s", code, out, said)
			}
		})
	}
}

// TestResumeDryRun: what would become of a change that was cut off is shown, and that comes true.
func TestResumeDryRun(t *testing.T) {
	d := newDryPair(t, "mariadb")
	if out := mustRun(t, "failover", "resume", "--group", "g", "--dry-run", "--data", d.data); strings.TrimSpace(out) != "nothing was cut off" {
		t.Errorf("nothing: %s", out)
	}
	st, err := state.Open(t.Context(), filepath.Join(d.data, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	room := &keep.Room{Docs: st, Who: "test"}
	primary := sandboxtest.Connect(t, d.box.Nodes[0])
	cut := func(epoch uint64, kind failover.Kind, stage failover.Stage) {
		t.Helper()
		if err := primary.Exec(t.Context(), primary.Server.Shut()); err != nil {
			t.Fatal(err)
		}
		if _, err := room.Begin(t.Context(), failover.Journal{Group: "g", Epoch: epoch, Kind: kind, Stage: stage, Old: "db1", New: "db2", Began: time.Now().UTC(), Before: map[string]failover.Was{}}); err != nil {
			t.Fatal(err)
		}
	}
	cut(1, failover.Switchover, failover.Draining)
	d.dry("failover resume --group g", "g: a switchover to db2 that began at ", " and was cut off is taken back", "read_only = ON on db2", "read_only = OFF on db1", "on db2")
	if out := mustRun(t, "failover", "resume", "--group", "g", "--data", d.data); !strings.Contains(out, "db1 is the primary of g as before") {
		t.Errorf("taken back: %s", out)
	}
	cut(10, failover.Switchover, failover.Promoting)
	d.dry("failover resume --group g", " and was cut off is brought to its end", "read_only = OFF on db2", "tell clients that db2 is the primary", "on db1")
	if out := mustRun(t, "failover", "resume", "--group", "g", "--data", d.data); !strings.Contains(out, "db2 is the primary of g, epoch 10") {
		t.Errorf("brought to its end: %s", out)
	}
}
