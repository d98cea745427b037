package scenario_test

import (
	"encoding/json"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rissodb/risso/internal/sandbox"
)

// refilled is a member that is rebuilt, as risso group show has it.
type refilled struct {
	Name, Status, Errant string
	Rebuild              *struct {
		Holder, From, Stage, Problem string
		Tries                        int
	}
}

// refilled asks for a member.
func (q *squad) refilled(name string) (m refilled) {
	q.Helper()
	code, said := command(q.T, "group", "show", "g", "--data", q.data, "-o", "json")
	var a struct {
		Groups []struct{ Members []refilled }
	}
	if err := json.Unmarshal([]byte(said), &a); code != 0 || err != nil || len(a.Groups) != 1 {
		q.Fatalf("risso group show: exit code %d, %v: %s", code, err, said)
	}
	for _, one := range a.Groups[0].Members {
		if one.Name == name {
			m = one
		}
	}
	return m
}

// TestFailoverRebuild: an old primary that comes back with a transaction of its own is rebuilt, as the policy says so; serve is killed amid that, and goes on; another
// failover stops it, and it goes on from the next primary; what only it had can be read afterwards. Then a replica is rebuilt by hand.
func TestFailoverRebuild(t *testing.T) {
	eachKind(t, []string{"mariadb", "mysql-9.7"}, func(t *testing.T, kind string) {
		q := newSquad(t, sandbox.Options{Servers: []string{kind}}, "--rebuild", "--pause", "1s")
		first := q.box.Nodes[0]
		execSQL(t, first, "CREATE TABLE app.quiet (id INT PRIMARY KEY); INSERT INTO app.quiet VALUES (1)")
		begin := func() *risso { return serve(t, q.data, "--failover", "auto", "--host-only", "--no-statements") }
		s := begin()
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("serve: %s", s.err)
			}
		})
		q.whole()

		if err := first.Kill(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		var p *sandbox.Node
		await(t, "another primary", func() bool { _, p = q.members(); return p != first && q.open(p) })
		q.mustWrite(1)
		s.kill(t)
		if err := first.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		execSQL(t, first, "SET GLOBAL read_only = OFF; INSERT INTO app.ledger VALUES (900001)")

		donor := q.others(p)[0]
		if donor == first {
			donor = q.others(p)[1]
		}
		release := q.lock(donor)
		defer release()
		s = begin()
		running := func() bool {
			m := q.refilled(first.Name)
			return m.Rebuild != nil && m.Rebuild.Holder != "" && m.Rebuild.Stage != "" && m.Rebuild.From == donor.Name
		}
		await(t, "a rebuild from a replica", running)
		was := q.refilled(first.Name)
		holder := was.Rebuild.Holder
		s.kill(t)
		s = begin()
		await(t, "a rebuild that goes on", func() bool { return running() && q.refilled(first.Name).Rebuild.Holder != holder })
		if code, said := command(t, "group", "rebuild", "g", first.Name, "--data", q.data, "--yes"); code == 0 || !strings.Contains(said, "one is at a time") {
			t.Errorf("a second rebuild: exit code %d: %s", code, said)
		}

		if err := p.Kill(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		await(t, "the donor to be the primary", func() bool { _, now := q.members(); return now == donor && q.open(donor) })
		await(t, "the rebuild to be stopped", func() bool { return q.heard(s, "was stopped, and goes on later") > 0 })
		if m := q.refilled(first.Name); m.Status != "FAULTY" || m.Rebuild == nil || m.Rebuild.Tries != 0 {
			t.Errorf("after the failover: %+v", m)
		}
		if q.open(first) {
			t.Error("a member that is rebuilt takes writes")
		}
		release()
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		q.whole()
		if got := value(t, first, "SELECT COUNT(*) FROM app.ledger WHERE id = 900001"); got != "0" {
			t.Errorf("after the rebuild there is %s of the row that only it had, want 0", got)
		}
		for _, said := range []string{mustCommand(t, "group", "rebuilds", "g", "--data", q.data), mustCommand(t, "receipt", "--group", "g", "--data", q.data)} {
			if was.Errant == "" || !strings.Contains(said, was.Errant) {
				t.Errorf("what only it had is not told any more: %s", said)
			}
		}
		s.stop(t, syscall.SIGTERM)
		q.byHand(p)
	})
}

// lock keeps a table of a node from being read by others, until what it returns is called.
func (q *squad) lock(n *sandbox.Node) (release func()) {
	q.Helper()
	if !strings.Contains(value(q.T, n, "SELECT VERSION()"), "MariaDB") { // where it would let nobody lock a table
		execSQL(q.T, n, "SET GLOBAL super_read_only = OFF")
	}
	db, err := n.DB()
	if err != nil {
		q.Fatal(err)
	}
	c, err := db.Conn(q.Context())
	if err == nil {
		_, err = c.ExecContext(q.Context(), "LOCK TABLES app.quiet WRITE")
	}
	if err != nil {
		q.Fatal(err)
	}
	return sync.OnceFunc(func() { c.Close(); db.Close() })
}

// prepared: a prepared XA transaction is told before anything is dropped, with what ends it.
func (q *squad) prepared(n *sandbox.Node, args ...string) {
	q.Helper()
	db, err := n.DB()
	if err != nil {
		q.Fatal(err)
	}
	c, err := db.Conn(q.Context())
	if err != nil {
		q.Fatal(err)
	}
	for _, s := range []string{"XA START 'it''s x9'", "INSERT INTO app.ledger VALUES (900003)", "XA END 'it''s x9'", "XA PREPARE 'it''s x9'"} {
		if _, err := c.ExecContext(q.Context(), s); err != nil {
			q.Fatalf("%s: %v", s, err)
		}
	}
	c.Close()
	db.Close()
	if code, said := command(q.T, args...); code == 0 || !strings.Contains(said, "prepared XA transaction: ") || !strings.Contains(said, "XA ROLLBACK") {
		q.Errorf("with a prepared transaction: exit code %d: %s", code, said)
	}
	if got := value(q.T, n, "SELECT COUNT(*) FROM app.ledger"); got == "0" {
		q.Error("its rows are gone")
	}
	execSQL(q.T, n, "XA ROLLBACK 'it''s x9'")
}

// byHand rebuilds a replica that has a transaction of its own, without risso serve.
func (q *squad) byHand(n *sandbox.Node) {
	q.Helper()
	q.Log("by hand:", n.Name)
	args := []string{"group", "rebuild", "g", n.Name, "--data", q.data, "--state", tempDir(q.T)}
	if code, said := command(q.T, append(args, "--yes")...); code == 0 || !strings.Contains(said, "only a FAULTY member is rebuilt") {
		q.Errorf("a member that is well: exit code %d: %s", code, said)
	}
	mustCommand(q.T, "group", "set-status", "g", n.Name, "FAULTY", "--data", q.data)
	execSQL(q.T, n, "SET GLOBAL read_only = OFF; INSERT INTO app.ledger VALUES (900002)")
	if code, said := command(q.T, append(args, "--yes")...); code == 0 || !strings.Contains(said, "takes writes") {
		q.Errorf("a member that takes writes: exit code %d: %s", code, said)
	}
	execSQL(q.T, n, "SET GLOBAL read_only = ON")
	if said := mustCommand(q.T, append(args, "--dry-run")...); !strings.Contains(said, "errant") || value(q.T, n, "SELECT COUNT(*) FROM app.ledger WHERE id = 900002") != "1" {
		q.Errorf("a dry run: %s", said)
	}
	q.prepared(n, append(args, "--yes")...)
	before := mustCommand(q.T, "group", "rebuilds", "g", "--data", q.data)
	mustCommand(q.T, append(args, "--yes")...)
	if after := mustCommand(q.T, "group", "rebuilds", "g", "--data", q.data); strings.Count(after, "only it had") != strings.Count(before, "only it had")+1 || !strings.Contains(after, "insert app.ledger, 1 row") && !strings.Contains(after, "insert `app`.`ledger`, 1 row") {
		q.Errorf("what only it had is not told: %s", after)
	}
	if got := value(q.T, n, "SELECT COUNT(*) FROM app.ledger WHERE id = 900002"); got != "0" {
		q.Errorf("after the rebuild there is %s of the row that only it had, want 0", got)
	}
	if m := q.refilled(n.Name); m.Status != "SPARE" || m.Rebuild != nil {
		q.Errorf("after the rebuild: %+v", m)
	}
	q.mustWrite(1)
	q.complete(q.box.Nodes...)
}
