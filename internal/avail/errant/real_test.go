package errant

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// pair is a primary and its replica.
type pair struct {
	t      *testing.T
	nodes  [2]*sandbox.Node // the source, the replica
	c      [2]*mysql.Conn
	latest map[string]int64 // connection IDs of those that a repair opened
}

const (
	onSource  = 0
	onReplica = 1
)

func newPair(t *testing.T, spec string, settings ...string) *pair {
	t.Helper()
	s := sandboxtest.Pair(t, spec, settings...)
	p := &pair{t: t, nodes: [2]*sandbox.Node{s.Nodes[0], s.Nodes[1]}, latest: map[string]int64{}}
	for i, n := range p.nodes {
		p.c[i] = sandboxtest.Connect(t, n)
	}
	p.run(onSource, "CREATE DATABASE shop", "CREATE TABLE shop.o (id INT PRIMARY KEY, v INT)", "INSERT INTO shop.o VALUES (1, 1), (2, 2)")
	p.reach("1,2")
	p.run(onReplica, "SET GLOBAL read_only = 0")
	return p
}

func (p *pair) run(on int, statements ...string) {
	p.t.Helper()
	for _, s := range statements {
		if err := p.c[on].Exec(p.t.Context(), s); err != nil {
			p.t.Fatalf("%s: %v", s, err)
		}
	}
}

func (p *pair) text(on int, query string) string {
	p.t.Helper()
	s, err := p.c[on].Text(p.t.Context(), query)
	if err != nil {
		p.t.Fatalf("%s: %v", query, err)
	}
	return s
}

// reach waits until the replica has rows with these numbers.
func (p *pair) reach(ids string) {
	p.t.Helper()
	await.Until(p.t, func() bool {
		s, err := p.c[onReplica].Text(p.t.Context(), "SELECT GROUP_CONCAT(id ORDER BY id) FROM shop.o")
		return err == nil && s == ids
	}, "the replica has rows %s", ids)
}

// judge reads the replica, then its source.
func (p *pair) judge() (Verdict, Reading, Reading) {
	p.t.Helper()
	r, err := Read(p.t.Context(), "replica", p.c[onReplica])
	if err != nil {
		p.t.Fatal(err)
	}
	s, err := Read(p.t.Context(), "source", p.c[onSource])
	if err != nil {
		p.t.Fatal(err)
	}
	v, err := Judge(Question{Replica: r, Source: &s})
	if err != nil {
		p.t.Fatal(err)
	}
	return v, r, s
}

func (p *pair) plan() *Plan {
	p.t.Helper()
	v, r, s := p.judge()
	plan, err := MakePlan(&v, &r, &s, true, time.Now())
	if err != nil {
		p.t.Fatal(err)
	}
	return &plan
}

// carry carries a plan out; before step kill (-1: none) the repair's connections are ended.
func (p *pair) carry(plan *Plan, kill int) (int, error) {
	p.t.Helper()
	connect := func(on int) func(context.Context) (*mysql.Conn, error) {
		return func(ctx context.Context) (*mysql.Conn, error) {
			c, err := mysql.Connect(ctx, sandboxtest.Target(p.t, p.nodes[on]), nil)
			if err == nil {
				p.latest[fmt.Sprint(on)] = c.Server.ConnectionID
			}
			return c, err
		}
	}
	noted := 0
	done, err := plan.Carry(p.t.Context(), Doing{Replica: connect(onReplica), Source: connect(onSource), Note: func(any) error { noted++; return nil }, Patience: time.Minute, Before: func(i int, _ Step) error {
		if noted != i+1 {
			p.t.Errorf("step %d: %d lines of the journal are there, want %d", i, noted, i+1)
		}
		if i == kill {
			p.run(onSource, fmt.Sprint("KILL ", p.latest["0"]))
			p.run(onReplica, fmt.Sprint("KILL ", p.latest["1"]))
		}
		return nil
	}})
	return done, err
}

// remedy runs what an error says after some words, up to a semicolon and a word that is no SQL.
func (p *pair) remedy(err error, after string) {
	p.t.Helper()
	_, text, ok := strings.Cut(err.Error(), after)
	if !ok {
		p.t.Fatalf("got %v, want %q in it", err, after)
	}
	text, _, _ = strings.Cut(text, "; then risso")
	p.run(onReplica, strings.Split(text, "; ")...)
}

// clean makes sure that nothing is errant, and that what the source writes arrives.
func (p *pair) clean(id int, ids string) {
	p.t.Helper()
	p.run(onSource, fmt.Sprintf("INSERT INTO shop.o VALUES (%d, 1)", id))
	p.reach(ids)
	if v, _, _ := p.judge(); len(v.Parts) > 0 || v.Unknown != "" {
		p.t.Errorf("after the repair: got %+v, want nothing", v)
	}
}

// TestRepairMySQL: errant transactions become empty ones on the primary; a connection that breaks in the midst leaves the rest to the next plan.
func TestRepairMySQL(t *testing.T) {
	for _, spec := range []string{"mysql-5.7", "mysql-8.0", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, spec)
			if v, _, _ := p.judge(); len(v.Parts) > 0 {
				t.Fatalf("before: got %+v, want nothing", v)
			}
			p.run(onReplica, "INSERT INTO shop.o VALUES (11, 1)", "INSERT INTO shop.o VALUES (12, 1)", "DELETE FROM shop.o WHERE id IN (11, 12)")
			uuid := p.text(onReplica, "SELECT @@server_uuid")
			v, r, _ := p.judge()
			if len(v.Parts) != 1 || v.Parts[0].GTIDs != uuid+":1-3" || v.Parts[0].Kind != KindErrant || v.Parts[0].Sure != Certain || v.Parts[0].Count != 3 {
				t.Fatalf("got %+v, want %s:1-3", v, uuid)
			}
			if down, err := Judge(Question{Replica: r}); err != nil || len(down.Parts) != 1 || down.Parts[0].GTIDs != uuid+":1-3" || down.Parts[0].Sure != Likely {
				t.Errorf("with the source down: got %+v, %v", down, err)
			}
			plan := p.plan()
			if done, err := p.carry(plan, 1); err == nil || done != 1 || !strings.Contains(err.Error(), "1 of 3 transactions are done") || !strings.Contains(err.Error(), "plan again") {
				t.Fatalf("killed in the midst: got %d, %v", done, err)
			}
			again := p.plan()
			if len(again.Steps) != 2 || len(plan.Same(again)) == 0 {
				t.Fatalf("the plan after that: got %+v, which differs by %v", again, plan.Same(again))
			}
			p.run(onSource, "SET GTID_NEXT = '"+uuid+":3'", "BEGIN", "COMMIT", "SET GTID_NEXT = 'AUTOMATIC'") // somebody else is at it, too
			if done, err := p.carry(again, -1); !errors.Is(err, ErrSurprise) || done != 1 {
				t.Fatalf("done by somebody else: got %d, %v", done, err)
			}
			p.clean(3, "1,2,3")
			p.run(onReplica, "INSERT INTO shop.o VALUES (13, 1)", "DELETE FROM shop.o WHERE id = 13")
			if done, err := p.carry(p.plan(), -1); err != nil || done != 2 {
				t.Fatalf("got %d, %v", done, err)
			}
			p.clean(4, "1,2,3,4")
		})
	}
}

// TestRepairMariaDB: a replica forgets; wherever the connection breaks, the error says what gets it going again.
func TestRepairMariaDB(t *testing.T) {
	p := newPair(t, "mariadb")
	p.run(onReplica, "SET GLOBAL gtid_strict_mode = OFF", "INSERT INTO shop.o VALUES (11, 1)", "DELETE FROM shop.o WHERE id = 11")
	p.run(onSource, "INSERT INTO shop.o VALUES (3, 1)", "INSERT INTO shop.o VALUES (4, 1)") // with the numbers that the replica used
	p.reach("1,2,3,4")
	id := p.text(onReplica, "SELECT @@server_id")
	v, r, _ := p.judge()
	if len(v.Parts) != 1 || !strings.HasPrefix(v.Parts[0].GTIDs, "0-"+id+"-") || v.Parts[0].Sure != Certain || !strings.Contains(strings.Join(v.Notes, " "), "gtid_strict_mode is OFF") {
		t.Fatalf("got %+v, want what server %s wrote", v, id)
	}
	if down, err := Judge(Question{Replica: r}); err != nil || len(down.Parts) != 1 || down.Parts[0].GTIDs != v.Parts[0].GTIDs || down.Parts[0].Sure != Likely {
		t.Errorf("with the source down: got %+v, %v", down, err)
	}
	plan := p.plan()
	again, reset := -1, -1
	for i, s := range plan.Steps {
		switch {
		case s.kind == stepAgain:
			again = i
		case s.kind == stepReset && reset < 0:
			reset = i
		}
	}
	if _, err := p.carry(plan, again); err == nil {
		t.Fatal("killed before the reset: got no error")
	} else {
		p.remedy(err, "To go back, on replica: ")
	}
	p.run(onSource, "INSERT INTO shop.o VALUES (5, 1)")
	p.reach("1,2,3,4,5")
	if now := p.plan(); len(plan.Same(now)) > 0 {
		t.Errorf("only positions have gone on: got %v", plan.Same(now))
	}
	if _, err := p.carry(p.plan(), reset+1); err == nil {
		t.Fatal("killed after the reset: got no error")
	} else {
		p.remedy(err, "To go on, on replica: ")
	}
	p.clean(6, "1,2,3,4,5,6")
	p.run(onReplica, "SET GLOBAL gtid_strict_mode = ON", "CREATE DATABASE extra", "INSERT INTO shop.o VALUES (12, 1)", "DELETE FROM shop.o WHERE id = 12")
	p.run(onSource, "INSERT INTO shop.o VALUES (7, 1)")
	await.Until(t, func() bool {
		_, r, _ := p.judge()
		return len(r.Channels) == 1 && !r.Channels[0].SQLRunning
	}, "the replica stops at a number that it has used")
	stale := p.plan()
	p.run(onReplica, "INSERT INTO shop.o VALUES (13, 1)", "DELETE FROM shop.o WHERE id = 13")
	if _, err := p.carry(stale, -1); !errors.Is(err, ErrSurprise) {
		t.Fatalf("another one since: got %v, want ErrSurprise", err)
	} else {
		p.remedy(err, "To go back, on replica: ")
	}
	if done, err := p.carry(p.plan(), -1); err != nil || done != len(plan.Steps) {
		t.Fatalf("got %d, %v", done, err)
	}
	p.clean(8, "1,2,3,4,5,6,7,8")
}

// TestAhead: a replica that has what its source is still committing, because another one has not acknowledged it, is ahead and not errant.
func TestAhead(t *testing.T) {
	p := newPair(t, "mysql-9.7", "plugin_load_add=semisync_source.so")
	p.run(onSource, "SET GLOBAL rpl_semi_sync_source_timeout = 3600000", "SET GLOBAL rpl_semi_sync_source_wait_no_replica = ON", "SET GLOBAL rpl_semi_sync_source_enabled = ON")
	blocked := sandboxtest.Connect(t, p.nodes[onSource])
	ended := make(chan error, 1)
	go func() { ended <- blocked.Exec(context.WithoutCancel(t.Context()), "INSERT INTO shop.o VALUES (3, 3)") }()
	p.reach("1,2,3")
	v, _, _ := p.judge()
	uuid := p.text(onSource, "SELECT @@server_uuid")
	if len(v.Parts) != 1 || v.Parts[0].Kind != KindAhead || v.Parts[0].Sure != Certain || !strings.HasPrefix(v.Parts[0].GTIDs, uuid) {
		t.Errorf("got %+v, want one of %s that is ahead", v, uuid)
	}
	if plan := p.plan(); plan.Method != MethodNone || len(plan.Steps) > 0 {
		t.Errorf("got %+v, want nothing to repair", plan)
	}
	p.run(onSource, "SET GLOBAL rpl_semi_sync_source_enabled = OFF")
	if err := <-ended; err != nil {
		t.Errorf("the commit: %v", err)
	}
	if v, _, _ := p.judge(); len(v.Parts) > 0 {
		t.Errorf("when it is committed: got %+v, want nothing", v)
	}
}
