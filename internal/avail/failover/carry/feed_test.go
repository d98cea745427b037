package carry

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// ahead lets the last member of the group receive a row that the second one does not, after something was done to it, and kills the primary. What was known of it is returned.
func (u *trio) ahead(before func(last *sandbox.Node)) failover.Known {
	u.Helper()
	old, first, last := u.box.Nodes[0], u.box.Nodes[1], u.box.Nodes[2]
	server := sandboxtest.Connect(u, old).Server
	if !u.write(old, time.Minute) {
		u.Fatal("the primary takes no write")
	}
	u.complete()
	before(last)
	u.sql(first, server.StopThread("", mysql.Receiver))
	if !u.write(old, time.Minute) {
		u.Fatal("the primary takes no write")
	}
	await.Until(u, func() bool { return u.has(last, old) }, "%s to receive what %s does not", last.Name, first.Name)
	known := u.known()
	if err := old.Kill(syscall.SIGKILL); err != nil {
		u.Fatal(err)
	}
	<-old.Ended()
	return known
}

// TestFeedDelayed: only a member that stays an hour behind received the last transaction. It applies that at once, the one that follows gets it from there, and the member stays behind as
// before.
func TestFeedDelayed(t *testing.T) {
	t.Parallel()
	const hour = 3600
	u := newTrio(t, "mysql-9.7", group.Policy{Lossless: true})
	old, first, last := u.box.Nodes[0], u.box.Nodes[1], u.box.Nodes[2]
	a := Asked{Group: "g", By: "test", Known: u.ahead(func(n *sandbox.Node) { u.delay(n, hour) })}
	f, err := u.carrier().Forecast(t.Context(), a)
	if err != nil || !strings.Contains(strings.Join(f.Plan.Words(), "\n"), "SOURCE_DELAY = 0") {
		t.Errorf("the forecast: %v, %q", err, f.Plan.Words())
	}
	j, err := u.carrier().Failover(t.Context(), a)
	if err != nil || j.New != first.Name || j.Receipt.Verdict == failover.Lost {
		t.Fatalf("got %+v, %v; want that %s follows with all that %s received", j, err, first.Name, last.Name)
	}
	u.complete(old.Name)
	if seconds, _ := u.delayed(last); seconds != hour {
		t.Errorf("%s stays %d s behind, want %d", last.Name, seconds, hour)
	}
}

// TestFeedFails: only one member received the last transaction, and does not come to apply it. Nobody follows by a policy that is lossless; who accepts the loss gets the other one as
// the primary, which is well.
func TestFeedFails(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{Lossless: true})
			first, last := u.box.Nodes[1], u.box.Nodes[2]
			if _, err := u.room.Change(t.Context(), "g", func(g *group.Group) error {
				g.Members[g.Find(last.Name)].Rule = group.Never
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			a := Asked{Group: "g", By: "test", Known: u.ahead(func(n *sandbox.Node) {
				if spec == "mariadb" {
					u.delay(n, 3600)
				} else if err := sandboxtest.Connect(t, n).Exec(t.Context(), "LOCK TABLES test.ledger READ"); err != nil {
					t.Fatal(err)
				}
			})}
			c := u.carrier()
			c.Limits.Drain = 2 * time.Second
			j, err := c.Failover(t.Context(), a)
			if err == nil || j.Stage != failover.Undone || !strings.Contains(err.Error(), "would be lost") || !strings.Contains(err.Error(), "cannot get from "+last.Name) {
				t.Fatalf("a lossless group: got %v, %+v", err, j)
			}
			a.To, a.AcceptLoss = first.Name, true
			j, err = c.Failover(t.Context(), a)
			if err != nil || j.New != first.Name || j.Receipt.Verdict != failover.Lost {
				t.Fatalf("got %+v, %v; want that %s follows, and what is lost", j, err, first.Name)
			}
			if !slices.ContainsFunc(j.Steps, func(e failover.Entry) bool { return strings.Contains(e.What, "cannot get from "+last.Name) }) {
				t.Error("it is not said why the rest is lost")
			}
			if !u.write(first, time.Minute) {
				t.Errorf("%s takes no write", first.Name)
			}
		})
	}
}

// TestFeedDies: the only member that received the last transaction dies when the other one is about to get it from there. That one follows all the same.
func TestFeedDies(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{})
			first, last := u.box.Nodes[1], u.box.Nodes[2]
			a := Asked{Group: "g", By: "test", To: first.Name, Known: u.ahead(func(*sandbox.Node) {})}
			c := u.carrier()
			c.step = func(where, statement string) {
				if where != first.Name || !strings.HasPrefix(statement, "START ") || last.Kill(syscall.SIGKILL) != nil {
					return
				}
				<-last.Ended()
			}
			j, err := c.Failover(t.Context(), a)
			if err != nil || j.New != first.Name || j.Receipt.Verdict != failover.Lost {
				t.Fatalf("got %+v, %v; want that %s follows, and what is lost", j, err, first.Name)
			}
			if !u.write(first, time.Minute) {
				t.Errorf("%s takes no write", first.Name)
			}
		})
	}
}

// TestFeederFollows: one that is preferred cannot get the last transaction from the only member that received it, as the logs of that one do not go back so far. That one follows, and nothing is lost.
func TestFeederFollows(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{})
			first, last := u.box.Nodes[1], u.box.Nodes[2]
			if _, err := u.room.Change(t.Context(), "g", func(g *group.Group) error {
				g.Members[g.Find(first.Name)].Rule = group.Prefer
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			a := Asked{Group: "g", By: "test", Known: u.ahead(func(*sandbox.Node) {})}
			u.replicates(last)
			u.sql(last, "FLUSH BINARY LOGS")
			await.Until(t, func() bool { // MariaDB keeps a log until InnoDB has written what is in it
				r, err := last.Query(t.Context(), "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY; SHOW BINARY LOGS")
				return err == nil && len(r[len(r)-1].Rows) == 1
			}, "%s to have its last log alone", last.Name)
			c := u.carrier()
			c.Limits.Drain = 5 * time.Second
			j, err := c.Failover(t.Context(), a)
			if err != nil || j.New != last.Name || j.Receipt.Verdict == failover.Lost {
				t.Fatalf("got %+v, %v; want that %s follows, and nothing is lost", j, err, last.Name)
			}
			if !u.write(last, time.Minute) {
				t.Errorf("%s takes no write", last.Name)
			}
		})
	}
}
