package galera

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/galera"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// run runs risso galera.
func run(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var b, e bytes.Buffer
	cmd := New(screen.Streams{In: strings.NewReader(""), Out: &b, Err: &e})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return b.String(), err
}

// cluster is three members, and what is done with them.
type cluster struct {
	t   *testing.T
	s   *sandbox.Sandbox
	dbs map[*sandbox.Node]*sql.DB
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, s: sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{"mariadb"}, Topology: sandbox.TopologyGalera}), dbs: map[*sandbox.Node]*sql.DB{}}
	for _, n := range c.s.Nodes {
		db, err := n.DB()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		c.dbs[n] = db
	}
	return c
}

func (c *cluster) exec(n *sandbox.Node, statements ...string) {
	c.t.Helper()
	for _, s := range statements {
		if _, err := c.dbs[n].ExecContext(c.t.Context(), s); err != nil {
			c.t.Fatalf("%s: %s: %v", n.Name, s, err)
		}
	}
}

// status is a number or word of SHOW GLOBAL STATUS; "" while the server does not answer.
func (c *cluster) status(n *sandbox.Node, name string) string {
	var key, value string
	_ = c.dbs[n].QueryRowContext(c.t.Context(), "SHOW GLOBAL STATUS LIKE '"+name+"'").Scan(&key, &value) // it may be down
	return value
}

func (c *cluster) awaitStatus(n *sandbox.Node, name, want string) {
	c.t.Helper()
	await.Until(c.t, func() bool { return c.status(n, name) == want }, "%s of %s to be %s", name, n.Name, want)
}

func (c *cluster) kill(nodes ...*sandbox.Node) {
	c.t.Helper()
	for _, n := range nodes {
		if err := n.Kill(syscall.SIGKILL); err != nil {
			c.t.Fatal(err)
		}
	}
	for _, n := range nodes {
		await.Until(c.t, func() bool { return ended(n) }, "%s to be gone", n.Name)
	}
}

func ended(n *sandbox.Node) bool {
	select {
	case <-n.Ended():
		return true
	default:
		return false
	}
}

func (c *cluster) start(n *sandbox.Node, args ...string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 4*time.Minute)
	defer cancel()
	if err := n.Start(ctx, args...); err != nil {
		c.t.Fatalf("start %s %q: %v", n.Name, args, err)
	}
	c.awaitStatus(n, "wsrep_local_state_comment", "Synced")
}

// dsn is of the sandbox's account over TCP, which all members take.
func (c *cluster) dsn(n *sandbox.Node) string {
	c.t.Helper()
	cfg, err := n.TCPConfig()
	if err != nil {
		c.t.Fatal(err)
	}
	return cfg.FormatDSN()
}

func (c *cluster) report(n *sandbox.Node, args ...string) *galera.Report {
	c.t.Helper()
	out, err := run(c.t, append([]string{"-o", "json", "--dsn", c.dsn(n)}, args...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	r := new(galera.Report)
	if err := json.Unmarshal([]byte(out), r); err != nil {
		c.t.Fatal(err)
	}
	return r
}

// decide asks which node to bootstrap.
func (c *cluster) decide(args ...string) (d galera.Decision, text string) {
	c.t.Helper()
	args = append([]string{"bootstrap"}, args...)
	text, err := run(c.t, args...)
	if err != nil && fault.Code(err) != fault.Failed {
		c.t.Fatal(err)
	}
	out, again := run(c.t, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		c.t.Fatal(errors.Join(err, again))
	}
	if (d.Choice == "") != (err != nil) {
		c.t.Errorf("%v ends with %v; want a failure if nothing is chosen: %s", args, err, text)
	}
	return d, text
}

// datadirs are the arguments that name nodes' data directories and logs.
func datadirs(nodes ...*sandbox.Node) (args []string) {
	for _, n := range nodes {
		args = append(args, "--datadir", n.Name+"="+n.Datadir, "--error-log", n.Name+"="+n.ErrorLog)
	}
	return args
}

func find(r *galera.Report, id, object string) *fleet.Advice {
	for i := range r.Findings {
		if f := &r.Findings[i]; f.ID == id && (object == "" || f.Object == object) {
			return f
		}
	}
	return nil
}

// TestCluster: a real cluster in all its states, with every remedy that is printed. One cluster, since it is slow to start.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.allFine()
	c.few()
	c.settings()
	c.conflict()
	c.flowControl()
	c.hung()
	c.oneKilled()
	c.longGone()
	c.twoKilled()
	c.allKilled()
	c.backByThemselves()
	c.inDDL()
	c.allInDDL()
	c.inconsistent()
	c.noHistory()
}

func (c *cluster) allFine() {
	first := c.s.Nodes[0]
	c.exec(first, "CREATE DATABASE shop", "CREATE TABLE shop.stock (id INT PRIMARY KEY, n INT NOT NULL)", "INSERT INTO shop.stock VALUES (1, 0), (2, 0)",
		"CREATE TABLE shop.ledger (id BIGINT PRIMARY KEY)", "CREATE TABLE shop.bulk (id INT AUTO_INCREMENT PRIMARY KEY, b LONGBLOB)")
	for _, n := range c.s.Nodes {
		c.awaitStatus(n, "wsrep_cluster_size", "3")
		r := c.report(n, "--look", "0")
		var names []string
		for _, m := range r.Members {
			if m.Seen && m.InView && m.Status.Primary() && m.Status.StateComment == "Synced" && m.Votes == 1 {
				names = append(names, m.Name)
			}
		}
		slices.Sort(names)
		if !slices.Equal(names, []string{"node1", "node2", "node3"}) || len(r.Members) != 3 || r.Quorum == nil || r.Quorum.Crashes != 1 || len(r.Unknown) > 0 {
			c.t.Fatalf("asked %s: got %+v; want three members, all seen, of which one may crash", n.Name, r)
		}
		for _, f := range r.Findings {
			if f.Severity > fleet.SeverityInfo {
				c.t.Errorf("all is fine, and it says %+v", f)
			}
		}
	}
	out, err := run(c.t, "--dsn", c.dsn(first))
	if err != nil || !strings.Contains(out, "of which 3 were seen") || !strings.Contains(out, "node2 lost: goes on, 2 of 3 votes") {
		c.t.Errorf("got %v and\n%s", err, out)
	}
	if d, text := c.decide(append(datadirs(c.s.Nodes[1:]...), "--dsn", c.dsn(first))...); !strings.Contains(text, "the cluster lives") {
		c.t.Errorf("the cluster lives: got %+v", d)
	}
}

// few: an account without privileges sees the members, and is told what it does not see.
func (c *cluster) few() {
	first := c.s.Nodes[0]
	c.exec(first, "CREATE USER few@'%' IDENTIFIED BY 'few'")
	var r *galera.Report
	await.Until(c.t, func() bool { // once all members have the account
		out, err := run(c.t, "-o", "json", "--look", "0", "--dsn", fmt.Sprintf("few:few@tcp(%s:%d)/", first.Host, first.Port))
		r = new(galera.Report)
		return err == nil && json.Unmarshal([]byte(out), r) == nil && len(r.Members) == 3 && !slices.ContainsFunc(r.Members, func(m galera.Member) bool { return !m.Seen })
	}, "an account with few privileges to see all members")
	if r.Quorum == nil || r.Quorum.Crashes != 1 || len(r.Unknown) != 3 || !strings.Contains(r.Unknown[0].Remedy, "GRANT SELECT ON mysql.wsrep_cluster_members") {
		c.t.Errorf("got %+v; want the quorum, and what is not known", r)
	}
	c.exec(first, "GRANT SELECT ON mysql.wsrep_cluster_members TO few@'%'")
	await.Until(c.t, func() bool {
		out, err := run(c.t, "-o", "json", "--look", "0", "--dsn", fmt.Sprintf("few:few@tcp(%s:%d)/", first.Host, first.Port))
		r = new(galera.Report)
		return err == nil && json.Unmarshal([]byte(out), r) == nil && len(r.Unknown) == 0
	}, "the grant to help")
	alone := sandboxtest.Lend(c.t, "mariadb")
	if _, err := run(c.t, "--dsn", alone.DSN); err == nil || !strings.Contains(err.Error(), "no member of a Galera cluster") {
		c.t.Errorf("a server that is in no cluster: got %v; want that", err)
	}
}

// hung: a member that hangs is not seen, and does not hold up the answer about the others.
func (c *cluster) hung() {
	first, stopped := c.s.Nodes[0], c.s.Nodes[2]
	goOn := sandboxtest.Pause(c.t, stopped)
	r := c.report(first, "--look", "0")
	if i := slices.IndexFunc(r.Members, func(m galera.Member) bool { return m.Name == stopped.Name }); i < 0 || r.Members[i].Seen || r.Members[i].NotSeen.Why != "does not answer" || len(r.Members) != 3 || !r.Members[0].Seen {
		c.t.Errorf("%s hangs: got %+v, %+v", stopped.Name, r.Members, r.Members[len(r.Members)-1].NotSeen)
	}
	goOn()
	c.awaitStatus(first, "wsrep_cluster_size", "3")
	c.awaitStatus(stopped, "wsrep_local_state_comment", "Synced")
}

// settings makes each dangerous setting, and runs what is printed for it.
func (c *cluster) settings() {
	n := c.s.Nodes[1]
	for _, w := range []struct{ id, object, make string }{
		{"galera.ignore_sb", "pc.ignore_sb", "SET GLOBAL wsrep_provider_options = 'pc.ignore_sb=yes'"},
		{"galera.ignore_quorum", "pc.ignore_quorum", "SET GLOBAL wsrep_provider_options = 'pc.ignore_quorum=yes'"},
		{"galera.fc_limit", "gcs.fc_limit", "SET GLOBAL wsrep_provider_options = 'gcs.fc_limit=1'"},
		{"galera.fc_limit", "gcs.fc_limit", "SET GLOBAL wsrep_provider_options = 'gcs.fc_limit=5000'"},
		{"galera.sst_method", "wsrep_sst_method", "SET GLOBAL wsrep_sst_method = 'rsync'"},
		{"galera.config", "wsrep_slave_threads", "SET GLOBAL wsrep_slave_threads = 1"},
		{"galera.config", "wsrep_osu_method", "SET GLOBAL wsrep_OSU_method = 'RSU'"},
		{"galera.config", "wsrep_certify_nonpk", "SET GLOBAL wsrep_certify_nonPK = OFF"},
		{"galera.config", "default_storage_engine", "SET GLOBAL default_storage_engine = 'MyISAM'"},
		{"galera.not_synced", n.Name, "SET GLOBAL wsrep_desync = ON"},
		{"galera.rejects", "wsrep_reject_queries", "SET GLOBAL wsrep_reject_queries = ALL"},
	} {
		c.exec(n, w.make)
		mine := func() *fleet.Advice {
			f := find(c.report(n, "--look", "0"), w.id, w.object)
			if f == nil || len(f.Servers) > 0 && !slices.Contains(f.Servers, n.Name) {
				return nil
			}
			return f
		}
		f := mine()
		if f == nil || f.Statement == "" {
			c.t.Errorf("%s: got %+v; want %s with a statement", w.make, f, w.id)
			continue
		}
		c.exec(n, f.Statement)
		await.Until(c.t, func() bool { return mine() == nil }, "%s to mend %s", f.Statement, w.id)
		if f.Undo == "" {
			continue
		}
		c.exec(n, f.Undo)
		await.Until(c.t, func() bool { return mine() != nil }, "%s to take %s back", f.Undo, f.Statement)
		c.exec(n, f.Statement)
	}
}

// conflict lets transactions of two members collide, and finds the row.
func (c *cluster) conflict() {
	a, b := c.s.Nodes[0], c.s.Nodes[1]
	if f := find(c.report(a, "--look", "0"), "galera.conflicts", ""); f != nil {
		c.t.Fatalf("before any conflict: got %+v", f)
	}
	collide := func() {
		c.t.Helper()
		tx, err := c.dbs[a].BeginTx(c.t.Context(), nil)
		if err != nil {
			c.t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }() // it is rolled back already
		if _, err := tx.ExecContext(c.t.Context(), "UPDATE shop.stock SET n = n + 1 WHERE id = 2"); err != nil {
			c.t.Fatal(err)
		}
		before := c.status(a, "wsrep_local_bf_aborts")
		c.exec(b, "UPDATE shop.stock SET n = n + 10 WHERE id = 2")
		await.Until(c.t, func() bool { return c.status(a, "wsrep_local_bf_aborts") != before }, "the transaction to be rolled back")
	}
	collide()
	f := find(c.report(a, "--look", "0"), "galera.conflicts", "")
	if f == nil || !strings.Contains(f.What, "nothing tells: wsrep_log_conflicts is OFF") || f.Statement == "" {
		c.t.Fatalf("a conflict that is not logged: got %+v", f)
	}
	for _, n := range c.s.Nodes {
		c.exec(n, f.Statement)
	}
	collide()
	collide()
	// The winner's statement names the table, since the one that lost was running nothing.
	if f = find(c.report(a, "--look", "0"), "galera.conflicts", "shop.stock"); f == nil || f.Statement != "" {
		c.t.Fatalf("conflicts that are logged: got %+v; want table shop.stock", f)
	}
	// Statements that commit by themselves lose while they run, so that their row is told.
	await.Until(c.t, func() bool {
		var wg sync.WaitGroup
		for _, n := range c.s.Nodes {
			wg.Go(func() {
				for range 30 {
					_, _ = c.dbs[n].ExecContext(c.t.Context(), "UPDATE shop.stock SET n = n + 1 WHERE id = 1") // it may lose
				}
			})
		}
		wg.Wait()
		f = find(c.report(a, "--look", "0"), "galera.conflicts", "shop.stock")
		return f != nil && strings.Contains(strings.Join(f.Evidence, "\n"), "× UPDATE shop.stock SET n = n + 1 WHERE id = 1")
	}, "the hot row to be told")
}

// flowControl makes one member ask the others to pause, and finds which.
func (c *cluster) flowControl() {
	first, slow := c.s.Nodes[0], c.s.Nodes[2]
	// Without a primary key each row is looked for in the whole table, and only one member minds the queue.
	c.exec(first, "CREATE TABLE shop.nokey (a INT, b INT)", "INSERT INTO shop.nokey SELECT seq, 0 FROM shop.seq_1_to_1500")
	for _, n := range c.s.Nodes {
		c.exec(n, "SET GLOBAL wsrep_provider_options = 'gcs.fc_limit=900'", "SET GLOBAL wsrep_slave_threads = 1")
	}
	c.exec(slow, "SET GLOBAL wsrep_provider_options = 'gcs.fc_limit=1'")
	var f *fleet.Advice
	ctx, cancel := context.WithCancel(c.t.Context())
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				_, _ = c.dbs[first].ExecContext(ctx, fmt.Sprintf("UPDATE shop.nokey SET b = b + 1 WHERE a %% 2 = %d", i)) // it may lose, and ends with the context
			}
		})
	}
	await.Until(c.t, func() bool {
		f = find(c.report(first, "--look", "1s"), "galera.flow_control", slow.Name)
		return f != nil
	}, "flow control to be told, with the member that asks for it")
	cancel()
	wg.Wait()
	if text := strings.Join(f.Evidence, "\n"); !strings.Contains(text, slow.Name+": wsrep_flow_control_sent") || !strings.Contains(text, "shop.nokey") || f.Statement != "SET GLOBAL wsrep_slave_threads = 4" {
		c.t.Errorf("got %+v; want the evidence of %s, and more threads", f, slow.Name)
	}
	c.exec(slow, f.Statement, "SET GLOBAL wsrep_provider_options = 'gcs.fc_limit=900'")
	c.exec(first, "DROP TABLE shop.nokey")
	for _, n := range c.s.Nodes {
		c.exec(n, "SET GLOBAL wsrep_sync_wait = 1", "SELECT COUNT(*) FROM shop.stock", "SET GLOBAL wsrep_sync_wait = 0")
	}
}

var printedRecovery = regexp.MustCompile(`mariadbd (--wsrep-recover \S+ \S+) as the user`)

// findPosition runs the printed command that finds a node's position.
func (c *cluster) findPosition(n *sandbox.Node, printed string) {
	c.t.Helper()
	m := printedRecovery.FindStringSubmatch(printed)
	if m == nil {
		c.t.Fatalf("%q has no command", printed)
	}
	// With its other options: those of the sandbox.
	cmd := exec.CommandContext(c.t.Context(), n.Program.Binary, append([]string{"--defaults-file=" + filepath.Join(filepath.Dir(n.Datadir), "my.cnf")}, strings.Fields(m[1])...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("%s: %v: %s", cmd, err, out)
	}
}

// forecast is what a node would get if it were started.
func (c *cluster) forecast(at, n *sandbox.Node) galera.Transfer {
	c.t.Helper()
	r := c.report(at, append(datadirs(n), "--look", "0")...)
	if len(r.Transfers) != 1 || r.Transfers[0].Node != n.Name {
		c.t.Fatalf("got %+v; want one of %s", r.Transfers, n.Name)
	}
	return r.Transfers[0]
}

// came is how a node got what it missed at its last start, by its own log.
func came(t *testing.T, n *sandbox.Node, before int64) (kind string) {
	t.Helper()
	b, err := os.ReadFile(n.ErrorLog)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b[before:])
	switch {
	case strings.Contains(text, "mariabackup SST completed on joiner"):
		return galera.SST
	case strings.Contains(text, "mariabackup IST completed on joiner"):
		return galera.IST
	}
	return text
}

func logged(t *testing.T, n *sandbox.Node) int64 {
	t.Helper()
	info, err := os.Stat(n.ErrorLog)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// comeBack starts a node that crashed from the position that --wsrep-recover finds, for an IST; at is a member of the primary component. One that happened to
// crash in a DDL statement takes a copy of all data.
func (c *cluster) comeBack(at, n *sandbox.Node) {
	c.t.Helper()
	t := c.forecast(at, n)
	if t.Kind == galera.SST {
		c.byCopy(at, n)
		return
	}
	const inView = "a change of the membership"
	if (t.Sure != fleet.Certain || t.Kind != galera.IST) && !strings.Contains(t.Words, inView) {
		c.findPosition(n, t.Words)
		if t = c.forecast(at, n); t.Kind != galera.IST || t.Sure != fleet.Certain && !strings.Contains(t.Words, inView) {
			c.t.Fatalf("after %s was recovered: got %+v; want IST", n.Name, t)
		}
	}
	before := logged(c.t, n)
	if t.Sure != fleet.Certain { // it happened to crash in a change of the membership: it may come at the second start only
		ctx, cancel := context.WithTimeout(c.t.Context(), 4*time.Minute)
		defer cancel()
		if err := n.Start(ctx, "--wsrep-start-position="+t.Position.String()); err != nil {
			before = logged(c.t, n)
			if c.start(n); came(c.t, n, before) != galera.SST {
				c.t.Errorf("%s did not come by an SST after %v", n.Name, err)
			}
		}
		return
	}
	c.start(n, "--wsrep-start-position="+t.Position.String())
	if got := came(c.t, n, before); got != galera.IST {
		c.t.Errorf("%s came by %s; want the IST that was told", n.Name, got)
	}
}

// oneKilled: the two that are left go on, the next crash would stop them; the one that is down would take what it missed, and does.
func (c *cluster) oneKilled() {
	first, gone := c.s.Nodes[0], c.s.Nodes[2]
	c.kill(gone)
	c.awaitStatus(first, "wsrep_cluster_size", "2")
	c.exec(first, "INSERT INTO shop.stock VALUES (10, 0)")
	r := c.report(first, "--look", "0")
	f := find(r, "galera.quorum", "")
	if r.Quorum == nil || r.Quorum.Crashes != 0 || r.Quorum.Votes != 2 || f == nil || find(r, "galera.not_member", "") == nil {
		c.t.Fatalf("one of three is killed: got %+v", r)
	}
	t := c.forecast(first, gone)
	if t.Sure == fleet.Certain {
		c.t.Errorf("it does not tell where it is: got %+v", t)
	}
	c.findPosition(gone, t.Words)
	if t = c.forecast(first, gone); t.Missed < 1 || !slices.Contains(t.Donors, first.Name) {
		c.t.Errorf("after %s was recovered: got %+v; want what it missed", gone.Name, t)
	}
	c.comeBack(first, gone)
}

// longGone: more is written than the gcache holds, so a node that comes back takes a copy of all data.
func (c *cluster) longGone() {
	first, gone := c.s.Nodes[0], c.s.Nodes[2]
	if err := gone.Stop(c.t.Context()); err != nil { // in order: grastate.dat says where it is
		c.t.Fatal(err)
	}
	c.awaitStatus(first, "wsrep_cluster_size", "2")
	if t := c.forecast(first, gone); t.Kind != galera.IST || t.Sure != fleet.Certain {
		c.t.Fatalf("stopped in order: got %+v; want IST", t)
	}
	for range 400 { // members tell each other how far they are, so that caches may forget, only every hundred transactions or so
		c.exec(first, "INSERT INTO shop.bulk (b) VALUES (REPEAT('x', 200000))")
	}
	await.Until(c.t, func() bool { return c.forecast(first, gone).Kind == galera.SST }, "the gcache to be full")
	at := logged(c.t, gone)
	c.start(gone)
	if got := came(c.t, gone, at); got != galera.SST {
		c.t.Errorf("it came by %s; want the SST that was told", got)
	}
	c.exec(first, "TRUNCATE TABLE shop.bulk")
}

// twoKilled: one is left without a majority; it is made the whole cluster when it is known that it is the furthest, and not before.
func (c *cluster) twoKilled() {
	first, second, third := c.s.Nodes[0], c.s.Nodes[1], c.s.Nodes[2]
	c.kill(third)
	c.awaitStatus(first, "wsrep_cluster_size", "2")
	c.kill(second)
	c.awaitStatus(first, "wsrep_cluster_status", "non-Primary")
	r := c.report(first, "--look", "0")
	f := find(r, "galera.non_primary", first.Name)
	if f == nil || r.Quorum != nil || !strings.Contains(r.Words[0], "no member that was seen is in a primary component") || !strings.Contains(strings.Join(f.Evidence, " "), "not seen: node2") || f.Statement != "" || !strings.Contains(f.Advice, "risso galera bootstrap") {
		c.t.Fatalf("two of three are killed: got %+v", r)
	}
	d, text := c.decide("--dsn", c.dsn(first))
	if d.Choice != "" || !strings.Contains(text, "1 member of the last view not seen") {
		c.t.Fatalf("node2 may be further: got %s", text)
	}
	args := append(datadirs(second), "--dsn", c.dsn(first))
	if d, text = c.decide(args...); d.Choice != "" || !strings.Contains(text, "node2 does not tell where it is") {
		c.t.Fatalf("node2 has not told: got %s", text)
	}
	c.findPosition(second, text)
	d, text = c.decide(args...)
	i := slices.IndexFunc(d.Steps, func(s string) bool { return strings.HasPrefix(s, "on "+first.Name+", and on no other: ") })
	if d.Choice != first.Name || i < 0 {
		c.t.Fatalf("all that matter are known: got %s", text)
	}
	_, statement, _ := strings.Cut(d.Steps[i], ": ")
	c.exec(first, statement)
	c.awaitStatus(first, "wsrep_cluster_status", "Primary")
	c.exec(first, "INSERT INTO shop.stock VALUES (11, 0)")
	c.comeBack(first, second)
	c.comeBack(first, third)
	c.awaitStatus(first, "wsrep_cluster_size", "3")
}

// ledger writes on all members until they are gone, and keeps what was acknowledged.
func (c *cluster) ledger(from int64, meanwhile func(acknowledged func() int)) (acknowledged []int64) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for i, n := range c.s.Nodes {
		wg.Go(func() {
			for id := from + int64(i); ; id += int64(len(c.s.Nodes)) {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := c.dbs[n].ExecContext(c.t.Context(), "INSERT INTO shop.ledger VALUES (?)", id); err == nil {
					mu.Lock()
					acknowledged = append(acknowledged, id)
					mu.Unlock()
				}
			}
		})
	}
	meanwhile(func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged)
	})
	close(stop)
	wg.Wait()
	return acknowledged
}

// kept counts what of the ledger is missing on a node.
func (c *cluster) kept(n *sandbox.Node, acknowledged []int64) {
	c.t.Helper()
	rows, err := c.dbs[n].QueryContext(c.t.Context(), "SELECT id FROM shop.ledger")
	if err != nil {
		c.t.Fatal(err)
	}
	defer rows.Close()
	there := map[int64]bool{}
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			c.t.Fatal(err)
		}
		there[id] = true
	}
	missing := 0
	for _, id := range acknowledged {
		if !there[id] {
			missing++
		}
	}
	if rows.Err() != nil || missing > 0 || len(acknowledged) == 0 {
		c.t.Errorf("%s lacks %d of %d acknowledged transactions, %v; want none", n.Name, missing, len(acknowledged), rows.Err())
	}
}

// allKilled: all crash, one after the other and under load, and the cluster is founded again from the node that is recommended, as printed; nothing
// that was acknowledged is lost.
func (c *cluster) allKilled() {
	first, second, third := c.s.Nodes[0], c.s.Nodes[1], c.s.Nodes[2]
	acknowledged := c.ledger(1, func(count func() int) {
		await.Until(c.t, func() bool { return count() > 100 }, "the ledger to grow")
		c.kill(first)
		c.awaitStatus(second, "wsrep_cluster_size", "2")
		at := count()
		await.Until(c.t, func() bool { return count() > at+50 }, "the two that are left to go on")
		c.kill(second, third)
	})
	// What was recovered before they last took part is told by the files' times, where the error log is not given.
	if d, text := c.decide("--datadir", "node2="+second.Datadir, "--datadir", "node3="+third.Datadir); d.Choice != "" || len(d.Refused) != 2 {
		c.t.Errorf("with old recoveries: got %s; want both refused", text)
	}
	d, text := c.decide(datadirs(first, second, third)...)
	if d.Choice != "" || len(d.Refused) != 2 || !strings.Contains(text, "node3 does not tell where it is") || !strings.Contains(d.Automatic, "all 2 members of the last view") {
		c.t.Fatalf("all crashed, and none tells where it is: got %s", text)
	}
	for i, n := range c.s.Nodes {
		if i > 0 { // node1 dropped out before: it does not matter
			j := slices.IndexFunc(d.Refused, func(r fleet.Trouble) bool { return strings.HasPrefix(r.What, n.Name) })
			if j < 0 {
				c.t.Fatalf("got %+v; want %s among them", d.Refused, n.Name)
			}
			c.findPosition(n, d.Refused[j].Remedy)
		}
	}
	d, text = c.decide(datadirs(first, second, third)...)
	chosen, err := c.s.Node(d.Choice)
	if err != nil || chosen == first || !slices.ContainsFunc(d.Reasons, func(r string) bool { return strings.Contains(r, "node1 dropped out before") }) {
		c.t.Fatalf("got %s (%v); want node2 or node3", text, err)
	}
	for _, s := range d.Steps {
		if _, command, ok := strings.Cut(s, ": sed "); ok {
			if out, err := exec.CommandContext(c.t.Context(), "sh", "-c", "sed "+command).CombinedOutput(); err != nil {
				c.t.Fatalf("%s: %v: %s", command, err, out)
			}
		}
	}
	way := d.Ways[len(d.Ways)-1].Command
	words := strings.Fields(way)
	if words[0] != "mariadbd" || !strings.HasPrefix(words[1], "--wsrep-new-cluster") || !strings.HasPrefix(words[2], "--wsrep-start-position="+d.Position.UUID) {
		c.t.Fatalf("got %s", way)
	}
	c.start(chosen, words[1:3]...)
	if got := c.status(chosen, "wsrep_cluster_state_uuid"); got != d.Position.UUID {
		c.t.Errorf("the history is %s; want that of before, %s", got, d.Position.UUID)
	}
	for _, n := range c.s.Nodes {
		if n != chosen {
			c.comeBack(chosen, n)
		}
	}
	for _, n := range c.s.Nodes {
		c.awaitStatus(n, "wsrep_cluster_size", "3")
		c.kept(n, acknowledged)
	}
}

// together starts all nodes at once, each with its own arguments.
func (c *cluster) together(args func(*sandbox.Node) []string) {
	c.t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, len(c.s.Nodes))
	for i, n := range c.s.Nodes {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(c.t.Context(), 4*time.Minute)
			defer cancel()
			errs[i] = n.Start(ctx, args(n)...)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		c.t.Fatal(err)
	}
	for _, n := range c.s.Nodes {
		c.awaitStatus(n, "wsrep_local_state_comment", "Synced")
		c.awaitStatus(n, "wsrep_cluster_size", "3")
	}
}

// backByThemselves: all crash in one view; started as is told they form it again.
func (c *cluster) backByThemselves() {
	acknowledged := c.ledger(1_000_000, func(count func() int) {
		await.Until(c.t, func() bool { return count() > 100 }, "the ledger to grow")
		c.kill(c.s.Nodes...)
	})
	const promised = "all 3 members of the last view crashed in it"
	d, text := c.decide(datadirs(c.s.Nodes...)...)
	if d.Choice != "" || !strings.Contains(d.Automatic, promised) {
		c.t.Fatalf("got %s", text)
	}
	for i, n := range c.s.Nodes {
		c.findPosition(n, d.Refused[i].Remedy)
	}
	if d, text = c.decide(datadirs(c.s.Nodes...)...); !strings.Contains(d.Automatic, promised) || d.Choice == "" {
		c.t.Fatalf("got %s", text)
	}
	c.together(func(n *sandbox.Node) []string {
		_, rest, _ := strings.Cut(d.Automatic, n.Name+" ")
		return []string{strings.TrimRight(strings.Fields(rest)[0], ",.")}
	})
	for _, n := range c.s.Nodes {
		c.kept(n, acknowledged)
	}
}

// noHistory: started without positions they say that all is well, which it is not; the advice mends it.
func (c *cluster) noHistory() {
	first := c.s.Nodes[0]
	c.kill(c.s.Nodes...)
	c.together(func(*sandbox.Node) []string { return nil })
	r := c.report(first, "--look", "0")
	f := find(r, "galera.no_history", "")
	if f == nil || f.Severity != fleet.SeverityCritical {
		c.t.Fatalf("started without positions: got %+v; want galera.no_history", r)
	}
	for _, n := range []*sandbox.Node{c.s.Nodes[1], c.s.Nodes[2], first} {
		if err := n.Stop(c.t.Context()); err != nil {
			c.t.Fatal(err)
		}
	}
	if d, text := c.decide(datadirs(c.s.Nodes...)...); d.Choice != "" || !strings.Contains(text, "no node has a history") {
		c.t.Errorf("got %s; want a refusal, as numbers without a history say nothing", text)
	}
	c.start(first, "--wsrep-new-cluster")
	other := c.s.Nodes[1]
	at := logged(c.t, other)
	c.start(other)
	if got := came(c.t, other, at); got != galera.SST {
		c.t.Errorf("%s came by %s; want a copy of all data", other.Name, got)
	}
	if r := c.report(first, "--look", "0"); find(r, "galera.no_history", "") != nil || r.Quorum == nil || r.Quorum.Votes != 2 {
		c.t.Errorf("after the advice: got %+v; want a cluster with a history", r)
	}
}
