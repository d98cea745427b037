package failover

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/agree"
	"github.com/rissodb/risso/internal/store/state"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// stage is a group of three servers that a desk watches.
type stage struct {
	*testing.T
	box  *sandbox.Sandbox
	room *keep.Room
	desk *Desk

	mu       sync.Mutex
	events   []string
	findings map[string]fleet.Finding
}

func newStage(t *testing.T, spec string, replicas int, policy group.Policy) *stage {
	t.Helper()
	s := &stage{T: t, box: sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{spec}, Topology: sandbox.TopologyReplication, Replicas: replicas})}
	docs, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { docs.Close() })
	s.room = &keep.Room{Docs: docs, Who: "test"}
	password, err := s.box.Password()
	if err != nil {
		t.Fatal(err)
	}
	g := &group.Group{Name: "g", Active: true, Policy: policy, Since: time.Now().UTC()}
	a := keep.Access{Members: map[string]string{}, Replication: keep.Account{User: s.box.User, Password: password}}
	for i, n := range s.box.Nodes {
		status := group.Secondary
		if i == 0 {
			status = group.Primary
		}
		address := fmt.Sprintf("127.0.0.1:%d", n.Port)
		g.Members = append(g.Members, group.Member{Name: n.Name, Address: address, Status: status, Rule: group.Neutral, Weight: 1})
		a.Members[n.Name] = fmt.Sprintf("%s:%s@tcp(%s)/", s.box.User, password, address)
	}
	if err := s.room.Add(t.Context(), g, a); err != nil {
		t.Fatal(err)
	}
	s.sql(s.box.Nodes[0], "CREATE DATABASE IF NOT EXISTS test", "CREATE TABLE test.ledger (id INT AUTO_INCREMENT PRIMARY KEY)")
	return s
}

// watch lets a desk watch the group, as risso serve --failover auto does, until the test, or end, ends it.
func (s *stage) watch(patience failover.Patience) (end func()) {
	s.Helper()
	s.findings = map[string]fleet.Finding{}
	s.desk = New(Options{Room: s.room, Board: publish.NewBoard(), Auto: true, Lead: agree.Alone{}, Logger: slog.New(slog.DiscardHandler),
		Event: func(e fleet.Event) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.Log("   ", e.Text)
			s.events = append(s.events, e.Text)
		},
		Found: func(_, _ string, list []fleet.Finding) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.findings = map[string]fleet.Finding{}
			for _, f := range list {
				s.findings[f.ID] = f
			}
		}})
	s.desk.patience = patience
	ctx, cancel := context.WithCancel(s.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = s.desk.Run(ctx) })
	end = sync.OnceFunc(func() { cancel(); done.Wait() })
	s.Cleanup(end)
	return end
}

// said reports whether an event has a text.
func (s *stage) said(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if strings.Contains(e, text) {
			return true
		}
	}
	return false
}

func (s *stage) finding(id string) fleet.Finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.findings[id]
}

// sql runs statements on a node; the result is the first column of the last one's only row.
func (s *stage) sql(n *sandbox.Node, statements ...string) (value string) {
	s.Helper()
	c := sandboxtest.Connect(s, n)
	defer c.Close()
	for _, q := range statements {
		var err error
		if value, err = c.Text(s.Context(), q); err != nil {
			s.Fatalf("%s on %s: %v", q, n.Name, err)
		}
	}
	return value
}

// deaf stops what receives on nodes.
func (s *stage) deaf(nodes ...*sandbox.Node) {
	s.Helper()
	for _, n := range nodes {
		c := sandboxtest.Connect(s, n)
		s.sql(n, c.Server.StopThread("", mysql.Receiver))
		c.Close()
	}
}

// rows writes rows on a node, and waits until others have all.
func (s *stage) rows(n *sandbox.Node, count int, at ...*sandbox.Node) {
	s.Helper()
	for range count {
		s.sql(n, "INSERT INTO test.ledger VALUES ()")
	}
	for _, o := range at {
		want := s.sql(n, "SELECT COUNT(*) FROM test.ledger")
		var has string
		var err error
		await.Until(s, func() bool { // first it has no table
			c := sandboxtest.Connect(s, o)
			defer c.Close()
			has, err = c.Text(s.Context(), "SELECT COUNT(*) FROM test.ledger")
			return err == nil && has == want
		}, "%s to have the rows of %s: %s of %s, %v", o.Name, n.Name, &has, want, &err)
	}
}

// seen waits until the desk has seen what nodes have now: each is asked once a second.
func (s *stage) seen(nodes ...*sandbox.Node) {
	s.Helper()
	now := time.Now()
	await.Until(s, func() bool {
		seen, ok := s.desk.Seen(s.Context(), "g")
		later := 0
		for _, m := range seen.Members {
			for _, n := range nodes {
				if m.Name == n.Name && m.Answers && m.At.After(now) {
					later++
				}
			}
		}
		return ok && later == len(nodes)
	}, "the desk to have looked at all members")
}

func (s *stage) kill(nodes ...*sandbox.Node) {
	s.Helper()
	for _, n := range nodes {
		if err := n.Kill(syscall.SIGKILL); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *stage) start(nodes ...*sandbox.Node) {
	s.Helper()
	for _, n := range nodes {
		if err := n.Start(s.Context()); err != nil {
			s.Fatal(err)
		}
	}
}

// now is the group, and its primary.
func (s *stage) now() (*group.Group, *sandbox.Node) {
	s.Helper()
	g, err := s.room.Group(s.Context(), "g")
	if err != nil {
		s.Fatal(err)
	}
	n, err := s.box.Node(g.Members[g.Primary()].Name)
	if err != nil {
		s.Fatal(err)
	}
	return g, n
}

func (s *stage) status(n *sandbox.Node) group.Status {
	g, _ := s.now()
	return g.Members[g.Find(n.Name)].Status
}

// primary waits until a node is the primary, and all of the others but some are SECONDARY.
func (s *stage) primary(n *sandbox.Node, but ...string) {
	s.Helper()
	stands := ""
	await.Until(s, func() bool {
		g, _ := s.now()
		stands = fmt.Sprintf("%+v", g.Members)
		for _, m := range g.Members {
			want := group.Secondary
			if m.Name == n.Name {
				want = group.Primary
			}
			if m.Status != want && !strings.Contains(strings.Join(but, " "), m.Name) {
				return false
			}
		}
		j, err := s.room.Unfinished(s.Context(), "g")
		return err == nil && j == nil
	}, "%s to be the primary: %v", n.Name, &stands)
}

// receipt is that of the last change.
func (s *stage) receipt() *failover.Receipt {
	s.Helper()
	list, err := s.room.Journals(s.Context(), "g")
	if err != nil || len(list) == 0 || list[len(list)-1].Receipt == nil {
		s.Fatalf("the last receipt: %d changes, %v", len(list), err)
	}
	return list[len(list)-1].Receipt
}

// carrier changes the group as a command does.
func (s *stage) carrier() *carry.Carrier {
	return &carry.Carrier{Room: s.room, Holder: carry.NewHolder("test"), Limits: carry.DefaultLimits()}
}

// TestPowerCut: all members lose their power, and the one that received the least is there first. It is waited for those that had more; not for good.
// Where nobody received when the primary died, it is said, and a person is told what is lost.
func TestPowerCut(t *testing.T) {
	s := newStage(t, "mariadb", 3, group.Policy{Automatic: true, Rejoin: true})
	first, second, third, stale := s.box.Nodes[0], s.box.Nodes[1], s.box.Nodes[2], s.box.Nodes[3]
	patience := failover.DefaultPatience()
	end := s.watch(patience)
	s.rows(first, 1, second, third, stale)
	s.deaf(third, stale)
	await.Until(t, func() bool {
		return strings.Contains(s.finding("failover.unready").Why, "of 3 replicas only 1 receives from "+first.Name)
	}, "it to be said that nobody would be promoted by itself")
	s.rows(first, 5, second)
	s.seen(second, third, stale)
	s.kill(first, second, third, stale)
	s.start(stale)
	await.Until(t, func() bool {
		return s.said("is not failed over yet: " + second.Name + " had 5 transactions that nobody has who answers")
	}, "it to be said that %s is waited for", second.Name)
	await.Until(t, func() bool {
		return strings.Contains(s.finding("failover.manual").Why, second.Name+" had 5 transactions")
	}, "a finding that says so")
	f, err := s.carrier().Forecast(t.Context(), carry.Asked{Group: "g"})
	if err != nil || f.Choice.Count != 5 || f.Known.Silent.IsZero() {
		t.Errorf("what a person would lose meanwhile: %+v, silent since %s, %v", f.Choice, f.Known.Silent, err)
	}
	if s.sql(stale, "SELECT @@GLOBAL.read_only") != "1" {
		t.Fatalf("%s was promoted, which is known to lack 5 transactions", stale.Name)
	}
	s.start(second)
	s.primary(second, first.Name, third.Name)
	s.rows(second, 1, stale)
	if r := s.receipt(); r.Verdict != failover.NothingToLose || s.sql(second, "SELECT COUNT(*) FROM test.ledger") != "7" {
		t.Errorf("after %s came back: %+v", second.Name, r)
	}
	s.start(third, first)
	s.primary(second)
	if r := s.receipt(); r.Checked != "the old primary itself" || r.Verdict == failover.PerhapsLost || !strings.Contains(r.Words, first.Name+" came back, and has nothing that "+second.Name+" has not") {
		t.Errorf("the receipt, after %s came back with nothing of its own: %+v", first.Name, r)
	}
	s.rows(second, 1, third, first, stale)
	s.nobodyReceives(second, first, third, stale)
	s.start(second)
	await.Until(t, func() bool {
		return s.status(second) == group.Faulty && s.receipt().Checked == "the old primary itself"
	}, "the old primary to be compared")

	// Two of three are gone for good.
	_, p := s.now()
	other := map[bool]*sandbox.Node{true: third, false: first}[p == first]
	end()
	patience.Absent = 2 * time.Second
	s.watch(patience)
	s.deaf(stale)
	s.rows(p, 5, other)
	s.seen(other, stale)
	s.kill(p, other)
	at := time.Now()
	c := sandboxtest.Connect(t, stale)
	s.sql(stale, c.Server.StartReplica(""))
	c.Close()
	s.primary(stale, p.Name, other.Name, second.Name)
	if r := s.receipt(); r.Verdict != failover.Lost || r.Count != 5 || !s.said("it is not waited any longer for those that did not come back") || time.Since(at) < patience.Absent {
		t.Errorf("after %s of two that are gone for good: %+v", time.Since(at), r)
	}

	// One comes back that has more, and was no primary: no receipt is about it.
	s.start(other)
	await.Until(t, func() bool {
		return s.said(other.Name+" stays out of g: only it has ") && s.said("; risso gtid errant, with --dsn of "+other.Name+" and --source of the primary, shows")
	}, "%s to stay out, and the command that shows why", other.Name)
	if r := s.receipt(); r.Checked == "the old primary itself" || r.Old != p.Name {
		t.Errorf("the receipt of %s, after %s came back: %+v", p.Name, other.Name, r)
	}
}

// nobodyReceives kills a primary from which nobody received any more: before, it is not ready; afterwards a person is told what is lost, and by which command.
func (s *stage) nobodyReceives(old *sandbox.Node, others ...*sandbox.Node) {
	s.Helper()
	s.deaf(others...)
	s.rows(old, 3)
	await.Until(s, func() bool {
		return strings.Contains(s.finding("failover.unready").Why, "no member receives from "+old.Name)
	}, "it to be said that nobody receives")
	c := s.carrier()
	f, err := c.Forecast(s.Context(), carry.Asked{Group: "g"})
	if err != nil || f.Choice.Ready() || f.Unwell() == nil || f.Choice.Count != 3 || !strings.Contains(strings.Join(f.Words(), "; "), "its receiver is stopped") {
		s.Errorf("before it died: %v, %v: %q", err, f.Unwell(), f.Words())
	}
	s.seen(others...)
	s.kill(old)
	await.Until(s, func() bool {
		why := s.finding("failover.manual").Why
		return strings.Contains(why, others[0].Name+": its receiver is stopped") && strings.Contains(why, "3 transactions would be lost")
	}, "it to be said why it is not failed over, and what that would lose")
	if remedy := s.finding("failover.manual").Remedy; remedy != "risso failover --group g" {
		s.Errorf("the remedy: %s", remedy)
	}
	since := f.Known.At
	if f, err = c.Forecast(s.Context(), carry.Asked{Group: "g"}); err != nil || f.Refused() != nil || f.Choice.Count != 3 || f.Known.Silent.Before(since) {
		s.Fatalf("as it is dead: %v, %v, silent since %s: %q", err, f.Refused(), f.Known.Silent, f.Words())
	}
	j, err := c.Failover(s.Context(), carry.Asked{Group: "g", By: "test", Known: f.Known})
	if err != nil {
		s.Fatal(err)
	}
	if r := j.Receipt; r.Count != 3 || r.Verdict != failover.Lost || r.Longer || r.Outage < j.Began.Sub(f.Known.Silent) {
		s.Errorf("the receipt: %+v", r)
	}
}
