package turn

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/semisync"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// pair is a primary and a replica that reaches it over a link.
type pair struct {
	t       *testing.T
	nodes   []*sandbox.Node
	primary *mysql.Conn
	link    *sandboxtest.Link
	o       Options
}

func newPair(t *testing.T, spec string) *pair {
	t.Helper()
	s := sandboxtest.Pair(t, spec)
	p := &pair{t: t, nodes: s.Nodes, primary: sandboxtest.Connect(t, s.Nodes[0])}
	p.link = sandboxtest.NewLink(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Nodes[0].Port)))
	_, port, _ := net.SplitHostPort(p.link.Addr)
	replica := sandboxtest.Connect(t, s.Nodes[1])
	change := "CHANGE MASTER TO MASTER_PORT = " + port
	if replica.Server.ApplyModeVariable() == "replica_exec_mode" {
		change = "CHANGE REPLICATION SOURCE TO SOURCE_PORT = " + port
	}
	run(t, replica, replica.Server.StopReplica(""), change, replica.Server.StartReplica(""))
	run(t, p.primary, "CREATE TABLE test.t (id INT AUTO_INCREMENT PRIMARY KEY)")
	p.o = Options{Primary: sandboxtest.Target(t, s.Nodes[0]), Replicas: []mysql.Target{sandboxtest.Target(t, s.Nodes[1])}, State: t.TempDir(), Patience: time.Minute}
	return p
}

func run(t *testing.T, c *mysql.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// open reads how they stand. The replica may be away.
func (p *pair) open() *Group {
	p.t.Helper()
	g, err := Look(p.t.Context(), p.o)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(g.Close)
	return g
}

// look is the verdict.
func (p *pair) look() semisync.Report {
	p.t.Helper()
	g, err := Look(p.t.Context(), p.o)
	if err != nil {
		p.t.Fatal(err)
	}
	defer g.Close()
	return semisync.Judge(g.Facts)
}

// connected waits until the replica is there.
func (p *pair) connected() *Group {
	p.t.Helper()
	await.Until(p.t, func() bool { r := p.look(); return len(r.Replicas) == 1 && r.Replicas[0].Receives }, "a replica that receives")
	return p.open()
}

// turn switches it on or off, as planned.
func (p *pair) turn(plan func(*Group) (*Turn, error)) *Turn {
	p.t.Helper()
	g := p.connected()
	g.settle = 2 * time.Minute
	turned, err := plan(g)
	if err != nil {
		p.t.Fatal(err)
	}
	journal, err := turned.Run(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	if text, err := os.ReadFile(journal); err != nil || !strings.Contains(string(text), `"finished"`) {
		p.t.Errorf("journal: got %s, %v, want that it is finished", text, err)
	}
	return turned
}

func (p *pair) state(want semisync.State) semisync.Report {
	p.t.Helper()
	var r semisync.Report
	await.Until(p.t, func() bool { r = p.look(); return r.State == want }, "%s: got %+v", want, &r)
	return r
}

// insert writes on the primary; what it returns tells when that is over.
func (p *pair) insert() <-chan error {
	p.t.Helper()
	c, done := sandboxtest.Connect(p.t, p.nodes[0]), make(chan error, 1)
	go func() { done <- c.Exec(p.t.Context(), "INSERT INTO test.t VALUES ()") }()
	return done
}

// TestTurn: on, with settings that lose nothing; measured over a distance; a replica that is gone blocks writes, and what is said ends that; off.
func TestTurn(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, spec)
			if r := p.look(); r.State != semisync.Off {
				t.Fatalf("got %s, want off", r.State)
			}
			p.alone()
			on := p.turn((*Group).On)
			r := p.state(semisync.InForce)
			p.killed()
			if s := r.Source; s.WaitPoint != "AFTER_SYNC" || s.Timeout != semisync.Forever || !s.WaitNone || s.Clients != 1 || len(r.Problems) > 0 || !r.Replicas[0].Side.InForce {
				t.Errorf("on: got %+v, problems %+v", s, r.Problems)
			}
			if keeps := p.primary.Server.KeepsSettings(); keeps == (len(on.Lines) > 0) {
				t.Errorf("got %d servers with lines for option files, though the server keeps settings: %t", len(on.Lines), keeps)
			}
			set, err := read.Variables(t.Context(), sandboxtest.Connect(t, p.nodes[1]), []string{guarded})
			if err != nil || set[guarded] == "OFF" {
				t.Errorf("%s of the replica: got %v, %v, want it as it was", guarded, set, err)
			}
			p.measure()
			p.blocked()

			p.turn((*Group).Off)
			if r := p.state(semisync.Off); r.Replicas[0].Side.InForce {
				t.Errorf("off: the replica still acknowledges: %+v", r.Replicas)
			}
			if m := p.commits(true); m.Waited != 0 || m.Acked != 0 {
				t.Errorf("off, at 78 ms: got %+v, want that no commit waits", m)
			} else {
				t.Logf("off, at 78 ms a commit takes %.1f ms: %.0f/s", m.Seconds*1e3, 1/m.Seconds)
			}
			for _, u := range p.turn((*Group).On).Undo() {
				node := p.nodes[0]
				if u.Server == p.nodes[1].Socket {
					node = p.nodes[1]
				}
				run(t, sandboxtest.Connect(t, node), strings.Split(u.Statement, "; ")...)
			}
			if r := p.state(semisync.Off); r.Replicas[0].Side.Enabled {
				t.Errorf("undone: the replica is still on: %+v", r.Replicas)
			}
			p.interrupted()
		})
	}
}

// alone: a replica without replicas of its own is called no primary.
func (p *pair) alone() {
	p.t.Helper()
	g, err := Look(p.t.Context(), Options{Primary: p.o.Replicas[0], State: p.o.State})
	if err != nil {
		p.t.Fatal(err)
	}
	defer g.Close()
	if r := semisync.Judge(g.Facts); r.State != semisync.Off || len(r.Problems) != 1 || r.Problems[0].Code != "is_replica" || !strings.Contains(r.Words, "a replica of "+p.link.Addr) {
		p.t.Errorf("a replica asked as a primary: got %+v", r)
	}
}

// killedEnv makes the test program a process that ends while super_read_only is lifted: the folder of journals, and the server.
const killedEnv = "RISSO_TEST_LENT"

func TestMain(m *testing.M) {
	if dir, dsn, is := strings.Cut(os.Getenv(killedEnv), "\n"); is {
		if err := lendAndDie(dir, dsn); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func lendAndDie(dir, dsn string) error {
	ctx := context.Background()
	target, err := mysql.ParseTarget(dsn)
	if err != nil {
		return err
	}
	c, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return err
	}
	started, err := read.Started(ctx, c)
	if err != nil {
		return err
	}
	if _, err := lent().Borrow(dir, target, c.Server, started, "ON"); err != nil {
		return err
	}
	return c.Exec(ctx, "SET GLOBAL "+guarded+" = OFF")
}

// killed: what a killed process left lifted is put back by the next one.
func (p *pair) killed() {
	t := p.t
	t.Helper()
	replica := sandboxtest.Connect(t, p.nodes[1])
	if replica.Server.ReadOnlyVariable() != guarded {
		return
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killedEnv+"="+p.o.State+"\n"+p.nodes[1].DSN)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	is := func() string {
		set, err := read.Variables(t.Context(), replica, []string{guarded})
		if err != nil {
			t.Fatal(err)
		}
		return set[guarded]
	}
	if got := is(); got != "OFF" {
		t.Fatalf("left by a killed process: got %s, want OFF", got)
	}
	if left := p.open().Left(t.Context()); len(left) != 1 || !strings.Contains(left[0], guarded+" of "+p.nodes[1].Socket+" is off") {
		t.Errorf("left by a killed process: got %q, want that it is off", left)
	}
	p.turn((*Group).On) // nothing is to be done but that
	if got := is(); got != "ON" {
		t.Errorf("%s afterwards: got %s, want ON", guarded, got)
	}
}

// distance is how far the replica is away, there and back, in a measurement.
const distance = 78 * time.Millisecond

// commits measures what they take.
func (p *pair) commits(far bool) *semisync.Measured {
	t := p.t
	t.Helper()
	if far {
		p.link.Latency.Store(int64(distance / 2))
		defer p.link.Latency.Store(0)
	}
	g := p.open()
	plan, err := g.Measure(20)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.RunMeasure(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	return g.Facts.Measured
}

// measure: at 78 ms distance a commit waits for a round trip.
func (p *pair) measure() {
	t := p.t
	t.Helper()
	near, far := p.commits(false), p.commits(true)
	if far.Acked < 20 || far.Waited < distance.Seconds() || far.Seconds < far.Waited || near.Waited >= far.Waited {
		t.Errorf("at 78 ms: got %+v, want 20 acknowledged after a round trip; near: %+v", far, near)
	}
	t.Logf("a commit takes %.1f ms, waiting %.1f; at 78 ms %.1f ms, waiting %.1f: %.1f/s", near.Seconds*1e3, near.Waited*1e3, far.Seconds*1e3, far.Waited*1e3, 1/far.Seconds)
	run(t, p.primary, "CREATE DATABASE "+schema)
	g := p.open()
	plan, err := g.Measure(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.RunMeasure(t.Context(), plan); err == nil || !strings.Contains(fmt.Sprint(err), "database exists") {
		t.Errorf("over what is there: got %v, want an error", err)
	}
	run(t, p.primary, "DROP DATABASE "+schema)
	for k := range plan {
		g := p.open()
		plan, err := g.Measure(MostCommits)
		if err != nil {
			t.Fatal(err)
		}
		ctx := cut(t, plan, k, k == 1)
		err = g.RunMeasure(ctx, plan)
		if left, lerr := p.primary.Maps(t.Context(), "SHOW DATABASES LIKE '"+schema+"'"); lerr != nil || len(left) > 0 || (err == nil) != (k == len(plan)-1) {
			t.Errorf("a measurement interrupted at %s: got %v, %v, left %v; want no schema", plan[k], err, lerr, left)
		}
	}
}

// cut lets a plan be interrupted after a step, or in its midst.
func cut(t *testing.T, plan change.Plan, k int, amid bool) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	do := plan[k].Do
	plan[k].Do = func(ctx context.Context) error {
		if amid {
			go cancel()
			return do(ctx)
		}
		defer cancel()
		return do(ctx)
	}
	return ctx
}

// asItIs is how the primary is set, and what it keeps for its next start.
func (p *pair) asItIs() string {
	p.t.Helper()
	now, err := read.SemiSyncNow(p.t.Context(), p.primary)
	if err != nil {
		p.t.Fatal(err)
	}
	s := now.Source
	text := fmt.Sprint(s.Enabled, s.WaitPoint, s.Timeout, s.WaitNone, s.Count)
	for _, name := range []string{"enabled", "timeout", "wait_point"} {
		value, is, err := mysql.KeptSetting(p.t.Context(), p.primary, s.Names.Prefix+"_"+name)
		if err != nil {
			p.t.Fatal(err)
		}
		text += fmt.Sprint(" ", value, is)
	}
	return text
}

// interrupted: switching it on ends after each step, with the primary off, and on under other settings: then that is as it was, writes go on, and the replica receives.
func (p *pair) interrupted() {
	t := p.t
	t.Helper()
	for _, on := range []string{"OFF", "ON"} {
		names := p.look().Source.Names
		for _, statement := range []string{p.primary.Server.SetLasting(names.Prefix+"_timeout", "9000"), "SET GLOBAL " + names.Prefix + "_wait_point = AFTER_COMMIT", "SET GLOBAL " + names.Prefix + "_enabled = " + on} {
			run(t, p.primary, statement)
		}
		was, steps := p.asItIs(), 1
		for k := 0; k < steps; k++ {
			g := p.connected()
			turned, err := g.On()
			if err != nil {
				t.Fatal(err)
			}
			steps = len(turned.Plan)
			if k == steps-1 { // in its midst: it is on, and not seen to be in force
				g.settle = 0
			}
			_, err = turned.Run(cut(t, turned.Plan, k, k == steps-1))
			if got := p.asItIs(); err == nil || got != was {
				t.Errorf("%s, interrupted at %s: got %s, %v; want it as it was, %s", on, turned.Plan[k], got, err, was)
			}
			if err := <-p.insert(); err != nil {
				t.Errorf("a write afterwards: %v", err)
			}
			for _, u := range turned.Undo() {
				if u.Server != p.nodes[1].Socket {
					t.Errorf("left to be undone: %+v", u)
				}
				run(t, sandboxtest.Connect(t, p.nodes[1]), strings.Split(u.Statement, "; ")...)
			}
			p.connected()
		}
		t.Logf("%s, interrupted after each of %d steps: %s", on, steps, was)
	}
}

const schema = measured // of a measurement

// level waits until the replica has applied all. A MariaDB that is killed in the midst of a DROP writes it anew when it starts, as a transaction of its own.
func (p *pair) level() {
	t := p.t
	t.Helper()
	want, err := mysql.LoggedGTIDs(t.Context(), p.primary)
	if err != nil {
		t.Fatal(err)
	}
	replica := sandboxtest.Connect(t, p.nodes[1])
	await.Until(t, func() bool {
		has, err := mysql.AppliedGTIDs(t.Context(), replica)
		return err == nil && has.ContainsSet(want)
	}, "a replica that has applied all")
}

// blocked: without its replica the primary stands, and that is said; the remedy lets it go on.
func (p *pair) blocked() {
	t := p.t
	t.Helper()
	p.level()
	if err := p.nodes[1].Turn(t.Context(), sandbox.TurnKill); err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool { r := p.look(); return r.Source.Clients == 0 }, "a primary that knows that its replica is gone")
	written := p.insert()
	var r semisync.Report
	await.Until(t, func() bool { r = p.look(); return r.Source.Waiting > 0 }, "a write that waits: %+v", &r)
	if r.State != semisync.Blocked || len(r.Problems) == 0 || r.Problems[0].Code != "blocked" || !strings.Contains(r.Words, "writes are blocked: 1 session waits") {
		t.Fatalf("without a replica: got %s, %q, %+v", r.State, r.Words, r.Problems)
	}
	if g := p.open(); len(g.Gaps) != 1 || g.Facts.Unheard != -1 {
		t.Errorf("a replica that cannot be asked: got %+v, %d, want that, and that it is not known what it has", g.Gaps, g.Facts.Unheard)
	} else if _, err := g.Measure(1); err == nil {
		t.Error("a measurement that would wait for ever: no error")
	}
	select {
	case err := <-written:
		t.Fatalf("the write is over: %v, want that it waits", err)
	default:
	}
	statement, _, _ := strings.Cut(r.Problems[0].Next, " (")
	run(t, p.primary, statement)
	if err := <-written; err != nil {
		t.Errorf("the write that waited: %v", err)
	}
	if err := p.nodes[1].Turn(t.Context(), sandbox.TurnStart); err != nil {
		t.Fatal(err)
	}
	p.turn((*Group).On)
	p.state(semisync.InForce)
}

// TestSurprise: a plan that meets something else than it expects stops, and leaves a primary that waits for nobody.
func TestSurprise(t *testing.T) {
	p := newPair(t, "mariadb")
	g := p.connected()
	if _, err := (&Group{o: Options{Count: 2}, primary: g.primary, Facts: g.Facts}).On(); err == nil {
		t.Error("two acknowledgements of MariaDB: no error")
	}
	turned, err := g.On()
	if err != nil {
		t.Fatal(err)
	}
	g.settle = time.Second
	p.link.Rate.Store(-1) // the replica cannot connect anew
	if _, err := turned.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "0 replicas can acknowledge, 1 are needed") {
		t.Errorf("got %v, want that no replica can acknowledge", err)
	}
	if err := <-p.insert(); err != nil {
		t.Errorf("a write afterwards: %v", err)
	}
	if len(turned.Undo()) == 0 {
		t.Error("no way back is told")
	}
	p.link.Rate.Store(0)

	// This MySQL comes without the plug-ins.
	p = newPair(t, "mysql-5.7")
	turned, err = p.connected().On()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := turned.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "0 of ") || len(turned.Undo()) > 0 {
		t.Errorf("a plug-in that is not there: got %v, undo %v, want that nothing was done", err, turned.Undo())
	}
	if len(turned.Lines) != 2 {
		t.Errorf("lines for option files: got %+v, want those of two servers", turned.Lines)
	}
}
