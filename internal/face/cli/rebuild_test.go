package cli

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/face/cli/replica"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// rebuilt is a primary with two replicas, of which the first has transactions of its own.
type rebuilt struct {
	*testing.T
	box    *sandbox.Sandbox
	dsns   []string
	state  string
	db     []*sql.DB
	broken *mysql.Conn
}

func rebuiltServers(t *testing.T, spec string) *rebuilt {
	r := &rebuilt{T: t, state: t.TempDir(), box: sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{spec}, Topology: sandbox.TopologyReplication, Replicas: 2})}
	for i, n := range r.box.Nodes {
		r.dsns = append(r.dsns, "--dsn", fmt.Sprintf("n%d=%s", i, n.DSN))
		r.db = append(r.db, openNode(t, n))
	}
	r.broken = sandboxtest.Connect(t, r.box.Nodes[1])
	if r.broken.Server.MariaDB() { // a primary of long ago wrote here
		former := sandboxtest.Connect(t, r.box.Nodes[0])
		for _, q := range []string{"SET SESSION server_id = 77", "CREATE DATABASE former", "DROP DATABASE former"} {
			if err := former.Exec(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, q := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20))", "CREATE USER few@localhost IDENTIFIED BY 'few1-Few'",
		"GRANT SELECT, PROCESS, RELOAD, REPLICATION SLAVE, REPLICATION CLIENT, " + r.broken.Server.ReplicaPrivilege() + " ON *.* TO few@localhost", "INSERT INTO d.t VALUES (1, 'a'), (2, 'b'), (3, 'c')", "CREATE VIEW d.w AS SELECT id FROM d.t",
		"CREATE EVENT d.e ON SCHEDULE EVERY 1 DAY DO DELETE FROM d.t WHERE id > 1000"} {
		mustExec(t, r.db[0], q)
	}
	for i := range 2 {
		await.Until(t, func() bool { return r.rows(i+1, "SELECT EVENT_NAME FROM information_schema.EVENTS") == "e" }, "what the primary wrote on n%d", i+1)
	}
	s := r.broken.Server
	for _, q := range []string{s.StopReplica(""), s.Point("", mysql.Pointing{Beat: rebuiltBeat}), s.StartReplica("")} {
		if err := r.broken.Exec(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	r.errs()
	return r
}

// rebuiltBeat is how often the source of a replica says that it lives, which is to stay so.
const rebuiltBeat = 1500 * time.Millisecond

// errs lets the replica have transactions of its own.
func (r *rebuilt) errs() {
	r.Helper()
	s := r.broken.Server
	for _, q := range []string{"SET GLOBAL " + s.ReadOnlyVariable() + " = OFF", "CREATE DATABASE own", "CREATE TABLE own.x (id INT PRIMARY KEY)", "DELETE FROM d.t WHERE id = 2", "REVOKE PROCESS ON *.* FROM few@localhost", "SET GLOBAL " + s.ReadOnlyVariable() + " = ON"} {
		if err := r.broken.Exec(r.Context(), q); err != nil {
			r.Fatalf("%s: %v", q, err)
		}
	}
}

// rows is a column of all rows.
func (r *rebuilt) rows(node int, query string) string {
	r.Helper()
	list, err := r.db[node].QueryContext(r.Context(), query)
	if err != nil {
		return err.Error()
	}
	defer list.Close()
	var out []string
	for list.Next() {
		var text string
		if err := list.Scan(&text); err != nil {
			r.Fatal(err)
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func (r *rebuilt) channel() read.ReplicaChannel {
	r.Helper()
	list, err := read.OuterChannels(r.Context(), r.broken)
	if err != nil || len(list) != 1 {
		r.Fatalf("channels: %v, %v", list, err)
	}
	return list[0]
}

func (r *rebuilt) args(command ...string) []string {
	return append(append(append([]string{"replica"}, command...), r.dsns...), "--state", r.state)
}

func (r *rebuilt) risso(code int, command ...string) (out, said string) {
	r.Helper()
	got, out, said := call(r.T, r.args(command...)...)
	if got != code {
		r.Fatalf("%v: got %d, %s%s; want %d", command, got, out, said, code)
	}
	return out, said
}

// killed runs a command in another process, and kills that before a step.
func (r *rebuilt) killed(step string, command ...string) {
	r.Helper()
	b, err := json.Marshal(r.args(command...))
	if err != nil {
		r.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestRebuild$")
	cmd.Env = append(os.Environ(), "RISSO_TEST_REBUILD="+string(b), "RISSO_TEST_REBUILD_STEP="+step)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.Fatal(err)
	}
	stood := false
	for lines := bufio.NewScanner(out); !stood && lines.Scan(); {
		if stood = lines.Text() == "stands before it"; !stood {
			r.Log(lines.Text())
		}
	}
	if err := cmd.Process.Kill(); err != nil || !stood {
		r.Fatalf("it did not come to %q: %v", step, err)
	}
	_ = cmd.Wait()
}

// before calls a function when a text is written that has some words.
type before struct {
	io.Writer
	words string
	do    func()
}

func (b before) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(b.words)) {
		b.do()
	}
	return b.Writer.Write(p)
}

// rebuildCutOff is the process that is killed.
func rebuildCutOff(t *testing.T, args string) {
	var list []string
	if err := json.Unmarshal([]byte(args), &list); err != nil {
		t.Fatal(err)
	}
	stand := func() {
		fmt.Println("stands before it")
		<-t.Context().Done()
	}
	Main(t.Context(), list, screen.Streams{In: strings.NewReader(""), Out: os.Stderr, Err: before{os.Stdout, "risso: " + os.Getenv("RISSO_TEST_REBUILD_STEP"), stand}})
	t.Fatal("it went on")
}

// TestRebuild: a replica with transactions of its own gets all of its data anew; what is refused; and what is left after a kill before each step that counts.
func TestRebuild(t *testing.T) {
	if args := os.Getenv("RISSO_TEST_REBUILD"); args != "" {
		rebuildCutOff(t, args)
		return
	}
	t.Parallel()
	for _, spec := range []string{"mysql-9.7", "mariadb"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			r := rebuiltServers(t, spec)
			r.refused()
			r.interrupted()
			r.cutOff()
			r.isRebuilt()
		})
	}
}

func (r *rebuilt) refused() {
	r.Helper()
	for _, c := range []struct {
		code int
		args []string
		want string
	}{
		{fault.Failed, []string{"rebuild", "n0"}, "replicates from nobody"},
		{fault.Usage, []string{"rebuild", "nowhere"}, "no server nowhere was found; there are n0, n1, n2"},
		{fault.Usage, []string{"rebuild", "n1", "--from", "nowhere"}, "no server nowhere was found"},
		{fault.Failed, []string{"rebuild", "n1", "--from", "n1"}, "is n1 itself"},
		{fault.Failed, []string{"rebuild", "n2", "--from", "n1"}, "n1 has transactions of its own (errant), which the copy would have as well"},
		{fault.Usage, []string{"rebuild", "n1"}, "nothing was done: there is nobody to ask"},
	} {
		if _, said := r.risso(c.code, c.args...); !strings.Contains(said, c.want) {
			r.Errorf("%v: %s; want %q", c.args, said, c.want)
		}
	}
	few := []string{"replica", "rebuild", "n2", "--dsn", r.dsns[1], "--dsn", strings.Replace(r.dsns[5], "root@", "few:few1-Few@", 1), "--state", r.state, "--dry-run"}
	if code, _, said := call(r.T, few...); code != fault.Failed || !strings.Contains(said, "the account of n2 may not do all that a rebuild does (GRANT ALL PRIVILEGES ON *.* TO 'few'@'localhost' WITH GRANT OPTION)") {
		r.Errorf("by an account with few privileges: %d, %s", code, said)
	}
	out, _ := r.risso(fault.OK, "rebuild", "n1", "--dry-run")
	for _, want := range []string{"n1, which replicates from n0, is rebuilt from n2: a replica of the same source", "lost: transactions that only it has (errant): ", ": create own.x\n", ": delete d.t, 1 row\n", "not known: none was done from here yet"} {
		if !strings.Contains(out, want) {
			r.Errorf("the plan is %s; want %q", out, want)
		}
	}
	if got := r.rows(1, "SELECT id FROM d.t ORDER BY id"); got != "1 3" {
		r.Errorf("after all that was refused n1 has %s", got)
	}
}

// asBefore wants that nothing happened to the replica.
func (r *rebuilt) asBefore(when string) {
	r.Helper()
	ch := r.channel()
	if got := r.rows(1, "SELECT id FROM d.t ORDER BY id"); got != "1 3" || !ch.SQLRunning || ch.Status.IORunning == "No" || strings.HasSuffix(ch.SourceHost, ".invalid") || ch.BeatEvery != rebuiltBeat.Seconds() || r.rows(1, "SELECT @@GLOBAL."+r.broken.Server.ReadOnlyVariable()) != "1" {
		r.Errorf("%s: n1 has %s, %+v; want that it is as before", when, got, ch.Status)
	}
}

// interrupted: by a signal before the data are dropped, all goes back by itself.
func (r *rebuilt) interrupted() {
	r.Helper()
	for _, step := range []string{"STOP", "drop"} {
		ctx, cancel := context.WithCancel(r.Context())
		var said bytes.Buffer
		code := Main(ctx, r.args("rebuild", "n1", "--yes"), screen.Streams{In: strings.NewReader(""), Out: io.Discard, Err: before{&said, "risso: " + step, cancel}})
		cancel()
		if code != fault.Interrupted {
			r.Errorf("interrupted before %s: got %d, %s", step, code, said.String())
		}
		r.asBefore("interrupted before " + step)
	}
}

// cutOff: killed before the data are dropped, risso replica back puts it back; after that, nothing but another run does.
func (r *rebuilt) cutOff() {
	r.Helper()
	r.killed("drop", "rebuild", "n1", "--yes")
	if ch := r.channel(); !strings.HasSuffix(ch.SourceHost, ".rebuilding.invalid") || ch.SQLRunning {
		r.Errorf("killed before drop: %+v; want that it points nowhere", ch.Status)
	}
	if _, said := r.risso(fault.Failed, "move", "n1", "--below", "n2"); !strings.Contains(said, "risso replica rebuild") {
		r.Errorf("moved while it is rebuilt: %s", said)
	}
	r.risso(fault.OK, "back", "--yes")
	r.asBefore("killed before drop")
	r.killed("load", "rebuild", "n1", "--yes")
	n := r.box.Nodes[1] // the server as well: what is left has to last
	if err := errors.Join(n.Kill(syscall.SIGKILL), n.Start(r.Context())); err != nil {
		r.Fatal(err)
	}
	r.broken = sandboxtest.Connect(r.T, n)
	ch := r.channel()
	if got := r.rows(1, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME IN ('d', 'own')"); got != "" || !strings.HasSuffix(ch.SourceHost, ".rebuilding.invalid") || r.rows(1, "SELECT @@GLOBAL.read_only") != "1" {
		r.Errorf("killed before load: n1 has %q, %+v; want that it is empty, read-only and points nowhere", got, ch.Status)
	}
	for _, args := range [][]string{{"attach", "n1", "--yes"}, {"back", "--yes"}, {"rebuild", "n1", "--dry-run"}} {
		code, want := fault.OK, "goes on with what an earlier run has: a copy of n2"
		switch args[0] {
		case "attach":
			code, want = fault.Failed, "n1 is being rebuilt, and has not all of its rows (risso replica rebuild n1 --dsn 'n0="
		case "back":
			want = "n1 is being rebuilt: risso replica rebuild n1 --dsn 'n0="
		}
		if out, said := r.risso(code, args...); !strings.Contains(out+said, want) {
			r.Errorf("%v: %s%s; want %q", args, out, said, want)
		}
	}
}

// isRebuilt: it goes on, and is a replica like the others.
func (r *rebuilt) isRebuilt() {
	r.Helper()
	for _, q := range []string{"CREATE USER later@'%' IDENTIFIED BY 'later1-Later'", "INSERT INTO d.t VALUES (4, 'd')"} { // after the copy
		mustExec(r.T, r.db[0], q)
	}
	out, _ := r.risso(fault.OK, "rebuild", "n1", "--yes", "-o", "json")
	var a replica.RebuildAnswer
	if err := json.Unmarshal([]byte(out), &a); err != nil || !a.Done || a.GoesOn == "" || a.Compare == nil || a.Compare.Counts.Equal != 1 {
		r.Errorf("got %s, %v; want that it went on, is done, and equal", out, err)
	}
	ch := r.channel()
	if got := r.rows(1, "SELECT id FROM d.t ORDER BY id"); got != "1 2 3 4" || !ch.SQLRunning || !ch.IORunning || !ch.GTID || ch.BeatEvery != rebuiltBeat.Seconds() || r.rows(1, "SELECT @@GLOBAL."+r.broken.Server.ReadOnlyVariable()) != "1" {
		r.Errorf("n1 has %s, %+v; want that it replicates, and is as read-only as before", got, ch.Status)
	}
	if got := r.rows(1, "SELECT STATUS FROM information_schema.EVENTS"); !strings.HasSuffix(got, "SIDE_DISABLED") {
		r.Errorf("the event is %s", got)
	}
	if _, err := os.Stat(r.state + "/rebuild-n1"); !os.IsNotExist(err) {
		r.Errorf("the copy is left: %v", err)
	}
	if r.broken.Server.MariaDB() {
		if got := r.rows(1, "SELECT @@GLOBAL.gtid_binlog_state"); !strings.Contains(got, "0-77-") {
			t := r.rows(0, "SELECT @@GLOBAL.gtid_binlog_state")
			r.Errorf("gtid_binlog_state is %s, on the primary %s: should n1 become the primary, the others seem to have transactions that it has not", got, t)
		}
	}
	r.errs()
	out, _ = r.risso(fault.OK, "rebuild", "n1", "--from", "n0", "--yes", "--compare", "sample")
	if !strings.Contains(out, "from n0: it was asked for") || r.rows(1, "SELECT id FROM d.t ORDER BY id") != "1 2 3 4" {
		r.Errorf("once more, from the source: %s", out)
	}
	if out, _ := r.risso(fault.OK, "rebuild", "n1", "--dry-run"); !strings.Contains(out, "nothing that was seen says that it has to be rebuilt") {
		r.Errorf("of one that is well: %s", out)
	}
}

// TestRebuildFromBackup: by the newest backup that a drill has proven, rolled forward by mirrored logs, as its source has purged them; killed before the end of that.
func TestRebuildFromBackup(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"mysql-9.7", "mariadb"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			r := rebuiltServers(t, spec)
			place, n := t.TempDir(), r.box.Nodes[0]
			rebuild := []string{"rebuild", "n1", "--from", "backup", "--repository", place, "--yes"}
			mustRun(t, "backup", "--dsn", n.DSN, "--to", place)
			if _, said := r.risso(fault.Failed, rebuild...); !strings.Contains(said, "1 backup fits, and none was proven by restoring it (risso drill --from ") {
				t.Errorf("of a backup that nobody restored: %s", said)
			}
			mustRun(t, "drill", "--from", place, "--servers", spec)
			for _, q := range []string{"INSERT INTO d.t VALUES (4, 'mirrored')", "CREATE USER later@'%' IDENTIFIED BY 'later1-Later'", "FLUSH BINARY LOGS"} {
				mustExec(t, r.db[0], q)
			}
			mustRun(t, "binlog", "follow", "--once", "--dsn", n.DSN, "--to", place)
			for _, q := range []string{"INSERT INTO d.t VALUES (5, 'later')", "FLUSH BINARY LOGS"} {
				mustExec(t, r.db[0], q)
			}
			await.Until(t, func() bool { return r.rows(2, "SELECT MAX(id) FROM d.t") == "5" }, "all has arrived on n2")
			var second string
			if logs, err := mysql.Logs(t.Context(), sandboxtest.Connect(t, n)); err != nil || len(logs) != 3 {
				t.Fatalf("logs: %v, %v", logs, err)
			} else {
				second = logs[1].Name
			}
			await.Until(t, func() bool {
				_, err := r.db[0].Exec("PURGE BINARY LOGS TO '" + second + "'")
				return err == nil && r.logs(n) == 2
			}, "the first log is purged")
			r.killed("set", rebuild...)
			r.killed("roll", rebuild...)
			out, _ := r.risso(fault.OK, append(rebuild, "-o", "json")...)
			var a replica.RebuildAnswer
			if err := json.Unmarshal([]byte(out), &a); err != nil || !a.Done || !strings.Contains(a.GoesOn, ", rolled forward") || a.Compare == nil || a.Compare.Counts.Equal != 1 {
				t.Errorf("got %s, %v; want that it is rolled forward, and equal", out, err)
			}
			if got, ch := r.rows(1, "SELECT id FROM d.t ORDER BY id"), r.channel(); got != "1 2 3 4 5" || !ch.SQLRunning || !ch.IORunning {
				t.Errorf("n1 has %s, %+v", got, ch.Status)
			}
			if got := r.rows(1, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'risso%'"); got != "" {
				t.Errorf("%s is left", got)
			}
		})
	}
}

// logs is how many binary logs a server has.
func (r *rebuilt) logs(n *sandbox.Node) int {
	r.Helper()
	list, err := mysql.Logs(r.Context(), sandboxtest.Connect(r.T, n))
	if err != nil {
		r.Fatal(err)
	}
	return len(list)
}

// TestRebuildClone: CLONE replaces the files of a replica, which nothing starts again; killed while it is away, the run that goes on has to be told the password.
func TestRebuildClone(t *testing.T) {
	t.Parallel()
	r := rebuiltServers(t, "mysql-9.7")
	password, err := r.box.Password()
	if err != nil {
		t.Fatal(err)
	}
	r.dsns = nil
	for i, n := range r.box.Nodes { // the donor's account has to be good over the network
		r.dsns = append(r.dsns, "--dsn", fmt.Sprintf("n%d=risso:%s@tcp(127.0.0.1:%d)/", i, password, n.Port))
	}
	donor := openNode(t, r.box.Nodes[2])
	for _, c := range []struct{ from, want string }{
		{"clone=n0", "CLONE would bring 1 events of n0 that are switched on"},
		{"clone", "n2 has no plug-in clone, and takes none, as it is super_read_only (SET GLOBAL super_read_only = OFF; INSTALL PLUGIN clone SONAME 'mysql_clone.so'; SET GLOBAL super_read_only = ON on n2)"},
	} {
		if _, said := r.risso(fault.Failed, "rebuild", "n1", "--from", c.from, "--dry-run"); !strings.Contains(said, c.want) {
			t.Errorf("--from %s: %s; want %q", c.from, said, c.want)
		}
	}
	for _, q := range []string{"SET GLOBAL super_read_only = OFF", "INSTALL PLUGIN clone SONAME 'mysql_clone.so'", "SET GLOBAL super_read_only = ON"} { // as it says
		mustExec(t, donor, q)
	}
	before, err := mysql.ReadChannelSettings(t.Context(), r.broken, "")
	if err != nil {
		t.Fatal(err)
	}
	rebuild := []string{"rebuild", "n1", "--from", "clone", "--yes"}
	mustExec(t, donor, "SET GLOBAL max_allowed_packet = 1048576") // less than CLONE wants
	if _, said := r.risso(fault.Failed, rebuild...); !strings.Contains(said, "n1 has all of its data, and replicates from") {
		t.Errorf("refused by the donor: %s", said)
	}
	r.asBefore("refused by the donor")
	mustExec(t, donor, "SET GLOBAL max_allowed_packet = 67108864")
	started := r.startsAgain()
	r.killed("set", rebuild...)
	<-started
	if _, said := r.risso(fault.Failed, rebuild...); !strings.Contains(said, "the password of 'risso', by which n1 follows its source, is not known any more") || !strings.Contains(said, "(RISSO_REPLICATION_PASSWORD=… in the environment)") {
		t.Errorf("without the password: %s", said)
	}
	os.Setenv("RISSO_REPLICATION_PASSWORD", password)
	t.Cleanup(func() { os.Unsetenv("RISSO_REPLICATION_PASSWORD") })
	out, _ := r.risso(fault.OK, append(rebuild, "-o", "json")...)
	r.cloned(before, out)
	r.errs()
	os.Unsetenv("RISSO_REPLICATION_PASSWORD")
	started = r.startsAgain()
	out, said := r.risso(fault.OK, append(rebuild, "-o", "json")...)
	<-started
	if !strings.Contains(said, "n1 has its copy and cannot restart itself, as nothing would start it again: start it on its machine") {
		t.Errorf("what it said: %s", said)
	}
	r.cloned(before, out)
	for _, path := range []string{r.state, r.box.Nodes[1].Datadir + "/../error.log"} {
		if text, err := exec.Command("grep", "-rl", password, path).Output(); len(text) > 0 {
			t.Errorf("the password is in %s, %v", text, err)
		}
	}
}

// startsAgain starts the replica once it has gone away, in place of whatever starts servers, and tells when it is back.
func (r *rebuilt) startsAgain() chan struct{} {
	back := make(chan struct{})
	go func() { // ends with the test
		defer close(back)
		<-r.box.Nodes[1].Ended()
		for r.box.Nodes[1].Start(r.Context()) != nil && delay.For(r.Context(), 100*time.Millisecond) == nil {
		}
	}()
	return back
}

// cloned wants that the replica is a copy, and set as before.
func (r *rebuilt) cloned(before mysql.ChannelSettings, out string) {
	r.Helper()
	r.broken = sandboxtest.Connect(r.T, r.box.Nodes[1])
	var a replica.RebuildAnswer
	if err := json.Unmarshal([]byte(out), &a); err != nil || !a.Done || a.Compare == nil || a.Compare.Counts.Equal != 1 {
		r.Errorf("got %s, %v; want that it is done, and equal", out, err)
	}
	after, err := mysql.ReadChannelSettings(r.Context(), r.broken, "")
	if ch := r.channel(); err != nil || !slices.Equal(after.Options, before.Options) || !ch.SQLRunning || !ch.IORunning || r.rows(1, "SELECT id FROM d.t ORDER BY id") != "1 2 3" {
		r.Errorf("the channel is set to %v, %v, %+v; want %v", after.Options, err, ch.Status, before.Options)
	}
	if got := r.rows(1, "SELECT STATUS FROM information_schema.EVENTS") + r.rows(1, "SELECT @@GLOBAL.super_read_only"); got != "REPLICA_SIDE_DISABLED1" {
		r.Errorf("event and super_read_only: %s", got)
	}
}

// TestRebuildRemedies: whatever status a member has, the commands that a refused rebuild names let it be rebuilt; they are run as they are printed.
func TestRebuildRemedies(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Setenv("XDG_STATE_HOME", t.TempDir())
			box := sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{spec}, Topology: sandbox.TopologyReplication, Replicas: 2})
			data := t.TempDir()
			run := func(line string) (int, string) {
				t.Helper()
				code, out, said := call(t, append(strings.Fields(line), "--data", data)...)
				return code, out + said
			}
			create := "group create g"
			for i, n := range box.Nodes {
				c, err := n.TCPConfig()
				if err != nil {
					t.Fatal(err)
				}
				create += fmt.Sprintf(" --dsn m%d=%s:%s@tcp(%s)/", i, c.User, c.Passwd, c.Addr)
			}
			if code, said := run(create); code != 0 {
				t.Fatal(said)
			}
			named := regexp.MustCompile(`risso ([a-z0-9 A-Z-]+?) (?:lets|takes|rebuilds) `)
			for _, c := range []struct {
				member string
				before []string // commands
				says   string
			}{
				{"m2", nil, "m2 is SECONDARY: only a FAULTY member is rebuilt"},
				{"m1", []string{"group set-status g m1 SPARE"}, "m1 is SPARE: only a FAULTY member is rebuilt"},
				{"m0", []string{"group set-status g m1 SPARE", "group set-status g m2 SPARE", "group set-status g m2 SECONDARY"}, "m0 is the primary of g: only a FAULTY member is rebuilt"},
			} {
				for _, line := range c.before {
					if code, said := run(line); code != 0 {
						t.Fatalf("%s: %s", line, said)
					}
				}
				code, said := run("group rebuild g " + c.member + " --dry-run")
				if code != fault.Failed || !strings.Contains(said, c.says) {
					t.Fatalf("%s: exit code %d, want %q: %s", c.member, code, c.says, said)
				}
				remedy := named.FindAllStringSubmatch(strings.ReplaceAll(said, ")", " "), -1)
				if len(remedy) == 0 {
					t.Fatalf("%s: no remedy: %s", c.member, said)
				}
				for _, r := range remedy {
					line := r[1]
					if !strings.HasPrefix(line, "group set-status") {
						line += " --yes"
					}
					if code, said := run(line); code != 0 {
						t.Fatalf("risso %s: exit code %d: %s", line, code, said)
					}
				}
				if len(remedy) == 1 {
					if code, said := run("group rebuild g " + c.member + " --dry-run"); code != 0 {
						t.Errorf("%s, after its remedy: %s", c.member, said)
					}
				}
			}
			if _, said := run("group show g"); !regexp.MustCompile(`m0 .* (SPARE|SECONDARY)`).MatchString(said) {
				t.Errorf("the old primary is not rebuilt: %s", said)
			}
		})
	}
}
