package errant

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// killedArg makes the test's program one that carries a plan out and is killed before a step.
const killedArg = "carry-and-be-killed"

// killed reads both servers, makes a plan and carries it out, up to the step at which it kills itself; past the last step it is killed when all are done.
// args are the DSNs of replica and source, the folder of the journals, the step, and "forget" or "".
func killed(args []string) int {
	ctx := context.Background()
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var targets [2]mysql.Target
	var read [2]Reading
	for i := range targets { // the replica first
		var err error
		if targets[i], err = mysql.ParseTarget(args[i]); err != nil {
			return fail(err)
		}
		c, err := mysql.Connect(ctx, targets[i], nil)
		if err == nil {
			read[i], err = Read(ctx, []string{"replica", "source"}[i], c)
		}
		if err == nil && i == 1 {
			err = read[i].AskGone(ctx, c)
		}
		if err != nil {
			return fail(err)
		}
		c.Close()
	}
	v, err := Judge(Question{Replica: read[0], Source: &read[1]})
	if err != nil {
		return fail(err)
	}
	plan, err := MakePlan(&v, &read[0], &read[1], Wanted{RowsEqual: true, Forget: args[4] != ""}, time.Now())
	if err != nil {
		return fail(err)
	}
	step, err := strconv.Atoi(args[3])
	if err != nil {
		return fail(err)
	}
	die := func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }
	_, err = plan.Carry(ctx, Doing{Replica: targets[0], Source: targets[1], Patience: time.Minute, Keeper: Keeper{Dir: args[2], Command: "risso gtid back"}, Note: func(line any) error {
		if m, ok := line.(map[string]any); ok && m["done"] != nil && step == len(plan.Steps) {
			die()
		}
		return nil
	}, Before: func(i int, _ Step) error {
		if i == step {
			die()
		}
		return nil
	}})
	return fail(errors.Join(errors.New("it was not killed"), err))
}

// TestKilled: a repair that is killed, or interrupted, before any of its steps leaves nothing that risso gtid back, or itself, does not put in order: then the
// transactions are errant as before, or are not any more, and the replica replicates.
func TestKilled(t *testing.T) {
	for _, c := range []struct {
		spec   string
		forget bool
	}{{"mariadb", false}, {"mysql-9.7", true}, {"mysql-9.7", false}} {
		name := c.spec
		if c.forget {
			name += " forgets"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, c.spec)
			w := Wanted{RowsEqual: true, Forget: c.forget}
			id := 100
			for step := 0; ; step++ {
				if v, _, _ := p.judge(); len(v.Errant()) == 0 {
					p.strict(false)
					p.run(onReplica, "INSERT INTO shop.o VALUES (50, 1)", "DELETE FROM shop.o WHERE id = 50")
				}
				plan := p.plan(w)
				if step > len(plan.Steps) {
					break
				}
				before := p.lineage()
				for _, way := range []string{"Ctrl-C", "kill -9"} { // after a Ctrl-C it may be repaired
					if v, _, _ := p.judge(); len(v.Errant()) == 0 {
						p.run(onReplica, "INSERT INTO shop.o VALUES (50, 1)", "DELETE FROM shop.o WHERE id = 50")
						before = p.lineage()
					}
					what := fmt.Sprintf("%s before step %d of %d", way, step, len(plan.Steps))
					if way == "kill -9" {
						p.kill(step, w, what)
					} else if step < len(plan.Steps) {
						p.interrupt(step, w, what)
					}
					p.order(what, before)
					id++
					p.run(onSource, fmt.Sprintf("INSERT INTO shop.o VALUES (%d, 1)", id))
					await.Until(t, func() bool {
						return p.text(onReplica, fmt.Sprint("SELECT COUNT(*) FROM shop.o WHERE id = ", id)) == "1"
					}, "%s: the replica replicates", what)
				}
			}
			if _, err := p.carry(t.Context(), p.plan(w), nil); err != nil {
				t.Error(err)
			}
			if v, _, _ := p.judge(); len(v.Parts) > 0 {
				t.Errorf("in the end: got %+v, want nothing", v)
			}
		})
	}
}

// strict lets a MariaDB go on, or not, after a write of its own.
func (p *pair) strict(on bool) {
	p.t.Helper()
	if p.c[onReplica].Server.ByDomain() {
		p.run(onReplica, fmt.Sprintf("SET GLOBAL gtid_strict_mode = %t", on))
	}
}

// lineage is what the replica has had.
func (p *pair) lineage() mysql.BinlogState {
	p.t.Helper()
	if !p.c[onReplica].Server.ByDomain() {
		return nil
	}
	s, err := mysql.ParseBinlogState(p.text(onReplica, "SELECT @@GLOBAL.gtid_binlog_state"))
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// kill9 lets another process carry the plan out, which kills itself before a step.
func (p *pair) kill9(step int, w Wanted, what string) {
	p.t.Helper()
	forget := ""
	if w.Forget {
		forget = "forget"
	}
	cmd := exec.CommandContext(p.t.Context(), os.Args[0], killedArg, p.nodes[onReplica].DSN, p.nodes[onSource].DSN, p.keeper.Dir, fmt.Sprint(step), forget)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		p.t.Fatalf("%s: got %v: %s", what, err, out)
	}
}

// kill is kill9, and puts in order what it leaves.
func (p *pair) kill(step int, w Wanted, what string) {
	p.t.Helper()
	p.kill9(step, w, what)
	if w.Forget || p.c[onReplica].Server.ByDomain() {
		if step < 6 { // past the first step and short of the last one, the next repair says so
			if _, err := p.carry(p.t.Context(), p.plan(w), nil); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "run risso gtid back") {
				p.t.Errorf("%s: another repair: got %v, want ErrBusy", what, err)
			}
		}
		if left, err := p.keeper.Back(p.t.Context(), p.target(onReplica), true); err != nil || len(left) == 0 && step < 6 {
			p.t.Errorf("%s: dry run: got %v, %v", what, left, err)
		}
	}
	if _, err := p.keeper.Back(p.t.Context(), p.target(onReplica), false); err != nil {
		p.t.Errorf("%s: %v", what, err)
	}
}

// interrupt carries the plan out and ends its context before a step.
func (p *pair) interrupt(step int, w Wanted, what string) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	done, err := p.carry(ctx, p.plan(w), func(i int, _ Step) error {
		if i == step {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || done != step {
		p.t.Errorf("%s: got %d, %v", what, done, err)
	}
}

// order makes sure that nothing is left, that both threads run, and that the replica has had what it had, but what was errant at most.
func (p *pair) order(what string, before mysql.BinlogState) {
	p.t.Helper()
	if list, err := os.ReadDir(p.keeper.Dir); err != nil || len(list) > 0 {
		p.t.Errorf("%s: got journals %v, %v, want none", what, list, err)
	}
	v, r, s := p.judge()
	if v.Unknown != "" || len(v.Parts) != len(v.Errant()) {
		p.t.Errorf("%s: got %+v", what, v)
	}
	for _, ch := range r.Channels {
		if ch.Status.IORunning == "No" || !ch.SQLRunning {
			p.t.Errorf("%s: got %+v, want a channel that works", what, ch)
		}
	}
	if !r.Server.ByDomain() { // it has all that its source has, but what is on its way
		have, err := mysql.ParseGTIDSet(r.Executed)
		theirs, serr := mysql.ParseGTIDSet(s.Executed)
		own := func(uuid string, _ uint32) bool { return strings.EqualFold(uuid, r.UUID) }
		lacks, _ := mysql.ErrantTransactions(s.Executed, r.Executed)
		if _, lost := lacks.Split(own); err != nil || serr != nil || lost.Set.Count() > 1 || have.Intersect(theirs).Empty() {
			p.t.Errorf("%s: the replica lacks %s, %v, %v", what, lost, err, serr)
		}
		return
	}
	now := p.lineage()
	for o, n := range before {
		if o.Server != r.ServerID && now[o] < n {
			p.t.Errorf("%s: of %v it has had %d, and had %d before", what, o, now[o], n)
		}
	}
	if log, stands := p.text(onReplica, "SELECT @@gtid_binlog_pos"), p.text(onReplica, "SELECT @@gtid_slave_pos"); len(v.Errant()) == 0 && log != stands {
		p.t.Errorf("%s: its log ends at %s, as a replica it is at %s", what, log, stands)
	}
}

// TestInterruptedStop: a STOP that its session no longer waits for goes on in the server. What is put in order waits for its end.
func TestInterruptedStop(t *testing.T) {
	t.Parallel()
	p := newPair(t, "mariadb")
	p.strict(false)
	p.run(onReplica, "INSERT INTO shop.o VALUES (50, 1)", "DELETE FROM shop.o WHERE id = 50")
	p.run(onSource, "INSERT INTO shop.o VALUES (3, 1)")
	p.reach("1,2,3")
	plan := p.plan(equal)
	blocker := sandboxtest.Connect(t, p.nodes[onReplica])
	for _, s := range []string{"BEGIN", "SELECT * FROM shop.o WHERE id = 1 FOR UPDATE"} {
		if err := blocker.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	p.run(onSource, "ALTER TABLE shop.o ENGINE=InnoDB") // the applier waits for the table, and a STOP for the applier
	busy := func(words string) func() bool {
		return func() bool {
			list, err := p.c[onReplica].Maps(t.Context(), "SHOW PROCESSLIST")
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range list {
				if strings.Contains(row["Info"], words) && !strings.Contains(row["Info"], "PROCESSLIST") {
					return true
				}
			}
			return false
		}
	}
	await.Until(t, busy("ALTER TABLE"), "the applier waits")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := p.carry(ctx, plan, nil)
		ended <- err
	}()
	await.Until(t, busy("STOP SLAVE"), "the repair stops replication")
	cancel()
	time.Sleep(time.Second) // what is put in order too early would be stopped afterwards
	if err := blocker.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "is as it was before") {
		t.Errorf("got %v", err)
	}
	p.run(onSource, "INSERT INTO shop.o VALUES (4, 1)")
	p.reach("1,2,3,4")
}

// TestKilledInReset: the repair is killed just behind RESET, and the server dies, too, or somebody writes. A MariaDB goes on; a MySQL that has anything by then is not
// let to replicate.
func TestKilledInReset(t *testing.T) {
	const reset = 3 // the step
	dies := func(p *pair) {
		t.Helper()
		if err := p.nodes[onReplica].Kill(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-p.nodes[onReplica].Ended()
		if err := p.nodes[onReplica].Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.c[onReplica] = sandboxtest.Connect(t, p.nodes[onReplica])
	}
	errantOne := func(p *pair) {
		t.Helper()
		p.strict(false)
		p.run(onReplica, "SET GLOBAL read_only = 0", "INSERT INTO shop.o VALUES (50, 1)", "DELETE FROM shop.o WHERE id = 50")
	}
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		p := newPair(t, "mariadb")
		errantOne(p)
		p.kill9(reset+1, equal, "behind RESET")
		dies(p)
		if _, err := p.keeper.Back(t.Context(), p.target(onReplica), false); err != nil {
			t.Fatal(err)
		}
		p.clean(3, "1,2,3")
	})
	t.Run("mysql-9.7", func(t *testing.T) {
		t.Parallel()
		p := newPair(t, "mysql-9.7")
		errantOne(p)
		forget := Wanted{RowsEqual: true, Forget: true}
		p.kill9(reset, forget, "before RESET")
		dies(p)
		if _, err := p.keeper.Back(t.Context(), p.target(onReplica), false); err != nil {
			t.Fatal(err)
		}
		if v, _, _ := p.judge(); len(v.Errant()) != 1 {
			t.Errorf("before RESET: got %+v, want what was errant before", v)
		}
		p.kill9(reset+1, forget, "behind RESET")
		p.run(onReplica, "SET GLOBAL super_read_only = 0", "SET GLOBAL read_only = 0", "CREATE DATABASE other")
		if _, err := p.keeper.Back(t.Context(), p.target(onReplica), false); !errors.Is(err, ErrSurprise) || !strings.Contains(err.Error(), "it must not replicate like this") {
			t.Errorf("somebody wrote: got %v", err)
		}
		if _, r, _ := p.judge(); r.Channels[0].SQLRunning || r.Channels[0].Status.IORunning != "No" {
			t.Errorf("got %+v, want a channel that stands", r.Channels[0])
		}
	})
}

// TestSleepingSession: a repair's session that the network left behind, with its lock, is ended before anything is put in order.
func TestSleepingSession(t *testing.T) {
	t.Parallel()
	n := sandboxtest.Lend(t, "mariadb")
	left, c := sandboxtest.Connect(t, n), sandboxtest.Connect(t, n)
	for _, s := range left.Server.LockWrites(lockPatience) {
		if err := left.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	started, err := read.Started(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	k := Keeper{Dir: t.TempDir(), Command: "risso gtid back"}
	loan, err := k.standing(never).Borrow(k.Dir, sandboxtest.Target(t, n), c.Server, started, Standing{"replica", nil, Session{left.Server.ConnectionID, started}})
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := loan.Return(t.Context(), nil); err != nil {
		t.Fatal(err)
	} else {
		conn.Close()
	}
	if err := left.Exec(t.Context(), "DO 1"); err == nil {
		t.Error("the session that was left still works")
	}
	if err := c.Exec(t.Context(), "CREATE DATABASE unlocked"); err != nil {
		t.Errorf("its lock: %v", err)
	}
}
