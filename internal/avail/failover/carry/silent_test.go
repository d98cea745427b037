package carry

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestFellSilent: a transaction was acknowledged by one replica alone, and the failover ends without it: that replica dies while it applies what it received; it is FAULTY, and replicates all the
// same; it was started since, and threw away what it had received. The receipt counts it, or says that it is not known, and never that nothing is lost.
func TestFellSilent(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		for what, do := range map[string]struct {
			before func(u *trio, has *sandbox.Node)              // when the primary is dead
			during func(u *trio, has *sandbox.Node, said string) // while it goes on
			counts bool
		}{
			"it dies while it applies": {during: func(u *trio, has *sandbox.Node, said string) {
				if strings.HasPrefix(said, has.Name+": applies what it received") {
					_ = has.Kill(syscall.SIGKILL)
				}
			}, counts: true},
			"it is FAULTY": {before: func(u *trio, has *sandbox.Node) {
				u.change(func(g *group.Group) { g.Members[g.Find(has.Name)].Status = group.Faulty })
			}, counts: true},
			"it was started since": {before: func(u *trio, has *sandbox.Node) {
				time.Sleep(2 * time.Second) // servers tell by the second when they were started
				if err := has.Kill(syscall.SIGKILL); err != nil {
					u.Fatal(err)
				}
				<-has.Ended()
				if err := has.Start(u.Context()); err != nil {
					u.Fatal(err)
				}
			}},
		} {
			t.Run(spec+" "+what, func(t *testing.T) {
				t.Parallel()
				u := newTrio(t, spec, group.Policy{Automatic: true, SemiSync: true})
				_, old := u.primary()
				lacks, has := u.box.Nodes[1], u.box.Nodes[2]
				u.receives(lacks)
				u.receives(has)
				if !u.write(old, time.Minute) {
					t.Fatal("the primary takes no write")
				}
				await.Until(t, func() bool { return u.has(lacks, old) && u.has(has, old) }, "the replicas to have all")
				known := u.known()
				u.sql(lacks, sandboxtest.Connect(t, lacks).Server.StopThread("", mysql.Receiver))
				locks := sandboxtest.Connect(t, has)
				if err := locks.Exec(t.Context(), "LOCK TABLES test.ledger READ"); err != nil {
					t.Fatal(err)
				}
				if !u.write(old, time.Minute) {
					t.Fatal("no replica acknowledges")
				}
				if err := old.Kill(syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				<-old.Ended()
				if do.before != nil {
					do.before(u, has)
				}
				c := u.carrier()
				c.Limits.Drain = 20 * time.Second
				c.Say = func(text string) {
					t.Log("  ", oneLine(text))
					if do.during != nil {
						do.during(u, has, text)
					}
				}
				a := Asked{Group: "g", By: "test", Known: known}
				if what == "it was started since" {
					a.To = lacks.Name
				}
				j, err := c.Failover(t.Context(), a)
				if err != nil || j.New != lacks.Name || j.Receipt == nil {
					t.Fatalf("got %+v, %v; want that %s follows", j, err, lacks.Name)
				}
				if r := j.Receipt; r.Verdict == failover.NothingLost || do.counts && r.Count != 1 {
					t.Errorf("the receipt: %s, %d: %s", r.Verdict, r.Count, r.Words)
				}
			})
		}
	}
}

// change writes the group.
func (u *trio) change(f func(g *group.Group)) {
	u.Helper()
	if _, err := u.room.Change(u.Context(), "g", func(g *group.Group) error { f(g); return nil }); err != nil {
		u.Fatal(err)
	}
}

// TestPromotesBesideNobody: a promotion that was cut off goes on while the old primary is there again, and takes writes. It takes none any more when another one does, and what it took
// is not lost: who follows has it, or, where that cannot get it, a switchover goes back.
func TestPromotesBesideNobody(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		for _, kind := range []failover.Kind{failover.Failover, failover.Switchover} {
			t.Run(spec+" "+string(kind), func(t *testing.T) {
				t.Parallel()
				u := newTrio(t, spec, group.Policy{Rejoin: true})
				g, old := u.primary()
				first := u.box.Nodes[1]
				u.receives(first)
				j, err := u.room.Begin(t.Context(), failover.Journal{Group: "g", Epoch: g.Epoch + 1, Kind: kind, Stage: failover.Promoting, By: "test", Old: old.Name, New: first.Name, Began: time.Now().UTC(), Before: map[string]failover.Was{}, Known: u.known()})
				if err != nil || j == nil {
					t.Fatal(err)
				}
				if kind == failover.Switchover { // it cannot get what comes now
					u.sql(first, sandboxtest.Connect(t, first).Server.StopThread("", mysql.Receiver))
				}
				if !u.write(old, time.Minute) {
					t.Fatal("the old primary takes no write")
				}
				c := u.carrier()
				c.step = func(where, statement string) {
					if where == first.Name && strings.Contains(statement, "read_only") && strings.Contains(statement, "0") {
						if open := u.sql(old, "SELECT @@GLOBAL.read_only"); open == "0" {
							t.Errorf("%s on %s, while %s takes writes", statement, where, old.Name)
						}
					}
				}
				out, err := c.Resume(t.Context(), Asked{Group: "g", By: "test"})
				want := failover.Done
				if kind == failover.Switchover {
					want = failover.Undone
				}
				if out == nil || out.Stage != want {
					t.Fatalf("got %+v, %v; want %s", out, err, want)
				}
				if kind == failover.Switchover && !u.write(old, time.Minute) {
					t.Error("the primary takes no writes as before")
				}
				u.complete()
			})
		}
	}
}

// TestOfAnother: a failover of a primary that was replaced while somebody thought about it is refused: what would be done now is not what they agreed to.
func TestOfAnother(t *testing.T) {
	t.Parallel()
	u := newTrio(t, "mariadb", group.Policy{})
	_, old := u.primary()
	known := u.known()
	if _, err := u.carrier().Switchover(t.Context(), Asked{Group: "g", By: "test"}); err != nil {
		t.Fatal(err)
	}
	_, now := u.primary()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	j, err := u.carrier().Failover(ctx, Asked{Group: "g", By: "test", From: old.Name, Known: known})
	if want := old.Name + " is not the primary any more, " + now.Name + " is; nothing was changed"; j != nil || !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %+v, %v", j, err)
	}
	if !u.write(now, time.Minute) {
		t.Errorf("%s takes no writes", now.Name)
	}
}

// TestSeveralChannels: a member that also replicates from elsewhere is stopped from receiving from the group, and from nobody else, and is pointed nowhere: which channel would be, nobody told.
func TestSeveralChannels(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{})
			_, old := u.primary()
			n := u.box.Nodes[2]
			u.receives(n)
			u.named(n, old)
			u.elsewhere(n)
			known := u.known()
			if err := old.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			<-old.Ended()
			elsewhere := func() read.ReplicaChannel {
				for _, ch := range u.channels(n) {
					if ch.Name == "" {
						return ch
					}
				}
				t.Fatalf("its own channel is gone: %+v", u.channels(n))
				return read.ReplicaChannel{}
			}
			c := u.carrier()
			c.step = func(where, statement string) {
				if io := elsewhere().Status.IORunning; where == u.box.Nodes[1].Name && io == "No" {
					t.Errorf("before %s on %s: what it replicates from elsewhere was stopped", statement, where)
				}
			}
			j, err := c.Failover(t.Context(), Asked{Group: "g", By: "test", Known: known, AcceptLoss: true})
			if err != nil || j.New != u.box.Nodes[1].Name {
				t.Fatalf("got %+v, %v", j, err)
			}
			stopped := false
			for _, ch := range u.channels(n) {
				if ch.Name == "belair" {
					stopped = ch.Status.IORunning == "No"
				}
			}
			if ch := elsewhere(); !stopped || ch.Status.Source != "127.0.0.1:1" || ch.Status.IORunning == "No" {
				t.Errorf("its channels: %+v", u.channels(n))
			}
		})
	}
}

// elsewhere lets a node try to replicate from where nothing listens, by a channel without a name, too.
func (u *trio) elsewhere(n *sandbox.Node) {
	u.Helper()
	c := sandboxtest.Connect(u, n)
	s := c.Server
	c.Close()
	u.sql(n, s.Follow(mysql.Following{Host: "127.0.0.1", Port: 1, User: "x", Password: "y"})+map[bool]string{false: " FOR CHANNEL ''"}[s.MariaDB()], s.StartReplica(""))
}
