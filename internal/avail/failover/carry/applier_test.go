package carry

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestAppliersFail: the appliers of all replicas stop at a row that is not there, their receivers go on to acknowledge, and the primary dies. What was acknowledged is in
// relay logs, and nowhere else: a failover is refused, however often it is tried, and loses none of it; once one is mended as the words say it follows, with every
// row. Vitess lost them (issue 21092): it pointed the replicas at their source again while they were in that state, and so threw the relay logs away.
func TestAppliersFail(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{Automatic: true, SemiSync: true, Rejoin: true})
			_, old := u.primary()
			await.Until(t, func() bool { return u.write(old, time.Minute) }, "the primary %s to take a write", old.Name)
			u.complete()
			gone := u.rows[0]
			u.rows = u.rows[1:]
			for _, n := range u.box.Nodes[1:] {
				u.unlogged(n, "DELETE FROM test.ledger")
			}
			u.sql(old, "DELETE FROM test.ledger")
			for range 3 {
				if !u.write(old, time.Minute) {
					t.Fatal("the primary takes no write whose replicas acknowledge, and do not apply")
				}
			}
			for _, n := range u.box.Nodes[1:] {
				await.Until(t, func() bool { ch := u.channel(n); return !ch.SQLRunning && ch.Status.SQL.Number == 1032 }, "the applier of %s to fail", n.Name)
			}
			known, server := u.known(), sandboxtest.Connect(t, old).Server
			if err := old.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			first := u.box.Nodes[1]
			for range 2 {
				_, err := u.carrier().Failover(t.Context(), Asked{Group: "g", By: "test", Known: known})
				if err == nil || !strings.Contains(err.Error(), "stopped applying") {
					t.Fatalf("a failover to one that does not apply: got %v", err)
				}
			}
			u.unlogged(first, fmt.Sprintf("INSERT INTO test.ledger VALUES (%d)", gone))
			if server.MariaDB() {
				u.standing(first, known)
			} else {
				u.sql(first, server.StartThread("", mysql.Applier))
			}
			await.Until(t, func() bool { return u.channel(first).SQLRunning }, "the applier of %s to run", first.Name)
			f, err := u.carrier().Forecast(t.Context(), Asked{Group: "g", Known: known})
			if plan := f.Plan.Words(); err != nil || server.MariaDB() != slices.ContainsFunc(plan, func(step string) bool {
				return strings.Contains(step, "on "+u.box.Nodes[2].Name+": now that it is known")
			}) {
				t.Errorf("who does not apply goes on receiving: got %v, %q", err, plan)
			}
			j, err := u.carrier().Failover(t.Context(), Asked{Group: "g", By: "test", Known: known})
			if err != nil || j.New != first.Name || j.Receipt == nil || j.Receipt.Verdict != failover.NothingLost {
				t.Fatalf("once %s was mended: got %+v, %v", first.Name, j, err)
			}
			u.complete(old.Name, u.box.Nodes[2].Name)
		})
	}
}

// standing stops both threads of a MariaDB that has received what it has not applied: a failover is refused again, says so, and names the statements by which it applies that.
func (u *trio) standing(n *sandbox.Node, known failover.Known) {
	u.Helper()
	u.sql(n, "STOP SLAVE")
	for _, why := range []string{"START would throw away", "by file and position"} {
		_, err := u.carrier().Failover(u.Context(), Asked{Group: "g", By: "test", Known: known})
		if err == nil || !strings.Contains(err.Error(), why) {
			u.Fatalf("a failover to one that stands: got %v, want %q", err, why)
		}
		remedy, where, _ := strings.Cut(fleet.RemedyOf(err), " on it")
		if where != "" {
			u.Fatalf("the remedy %q", fleet.RemedyOf(err))
		}
		u.sql(n, strings.Split(remedy, "; ")...)
		await.Until(u, func() bool {
			done, err := mysql.ReceivedAll(u.Context(), sandboxtest.Connect(u, n), u.channel(n).Received)
			return err == nil && done
		}, "%s to apply what it received", n.Name)
	}
}

// unlogged runs a statement on a replica as if it had lost something.
func (u *trio) unlogged(n *sandbox.Node, statement string) {
	u.Helper()
	c := sandboxtest.Connect(u, n)
	defer c.Close()
	list := []string{"SET sql_log_bin = 0", statement}
	if c.Server.ReadOnlyVariable() == "super_read_only" {
		list = []string{"SET GLOBAL super_read_only = OFF", list[0], list[1], "SET GLOBAL super_read_only = ON"}
	}
	for _, s := range list {
		if err := c.Exec(u.Context(), s); err != nil {
			u.Fatalf("%s on %s: %v", s, n.Name, err)
		}
	}
}

// channel is the only channel of a replica.
func (u *trio) channel(n *sandbox.Node) read.ReplicaChannel {
	u.Helper()
	c := sandboxtest.Connect(u, n)
	defer c.Close()
	list, err := read.ReplicaChannels(u.Context(), c)
	if err != nil || len(list) != 1 {
		u.Fatalf("the channels of %s: %d, %v", n.Name, len(list), err)
	}
	return list[0]
}

// TestAppliedNowhere: what was acknowledged last only one replica has received, which does not apply, and the other one follows. The first is not pointed at it, as that would
// throw the last copy away: it stays out, is told what it has, and once it is mended it has the rows.
func TestAppliedNowhere(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{Automatic: true, SemiSync: true, Rejoin: true})
			_, old := u.primary()
			await.Until(t, func() bool { return u.write(old, time.Minute) }, "the primary %s to take a write", old.Name)
			u.complete()
			server := sandboxtest.Connect(t, old).Server
			first, second := u.box.Nodes[1], u.box.Nodes[2]
			u.sql(second, server.StopThread("", mysql.Receiver))
			await.Until(t, func() bool { return u.channel(second).Status.IORunning == "No" }, "%s to receive no more", second.Name)
			u.sql(first, server.StopThread("", mysql.Applier))
			had := u.last
			for range 3 {
				if !u.write(old, time.Minute) {
					t.Fatal("the primary takes no write that one replica acknowledges")
				}
			}
			known := u.known()
			if err := old.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			j, err := u.carrier().Failover(t.Context(), Asked{Group: "g", By: "test", Known: known})
			if err != nil || j.New != second.Name || j.Receipt == nil || j.Receipt.Verdict != failover.Lost {
				t.Fatalf("got %+v, %v; want that %s follows, and what is lost", j, err, second.Name)
			}
			for range 2 {
				g, _ := u.primary()
				if m := g.Members[g.Find(first.Name)]; m.Status != group.Faulty || m.Errant == "" || !strings.Contains(m.Fault, "has received "+m.Errant) {
					t.Fatalf("%s, which has what nobody else has: got %+v", first.Name, m)
				}
				if _, _, err := u.carrier().Tend(t.Context(), "g", Tends); err != nil {
					t.Fatal(err)
				}
			}
			if ch := u.channel(first); ch.Status.IORunning != "No" {
				t.Errorf("%s receives still (%s), and may acknowledge what the old primary writes", first.Name, ch.Status.IORunning)
			}
			applies := server.StartThread("", mysql.Applier)
			if server.MariaDB() {
				g, _ := u.primary()
				_, words, _ := strings.Cut(g.Members[g.Find(first.Name)].Fault, "so would START; ")
				applies, _, _ = strings.Cut(words, " applies it")
			}
			u.sql(first, strings.Split(applies, "; ")...)
			await.Until(t, func() bool { return u.sql(first, "SELECT COUNT(*) FROM test.ledger") == fmt.Sprint(len(u.rows)) }, "%s to have all rows", first.Name)
			if n := u.sql(second, "SELECT MAX(id) FROM test.ledger"); n != fmt.Sprint(had) {
				t.Errorf("%s has rows up to %s, want %d: the test loses nothing", second.Name, n, had)
			}
		})
	}
}
