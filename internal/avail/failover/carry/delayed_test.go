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
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// delay lets a node stay behind on purpose.
func (u *trio) delay(n *sandbox.Node, seconds int) {
	u.Helper()
	c := sandboxtest.Connect(u, n)
	defer c.Close()
	for s := range strings.SplitSeq(c.Server.SetReplicaDelay("", seconds), "; ") {
		u.sql(n, s)
	}
	u.receives(n)
}

// receives waits until a node receives.
func (u *trio) receives(n *sandbox.Node) {
	u.Helper()
	c := sandboxtest.Connect(u, n)
	defer c.Close()
	await.Until(u, func() bool {
		list, err := read.ReplicaChannels(u.Context(), c)
		return err == nil && len(list) == 1 && list[0].IORunning
	}, "%s to receive", n.Name)
}

// delayed is by how much a node stays behind, and what it received.
func (u *trio) delayed(n *sandbox.Node) (seconds int, received string) {
	u.Helper()
	c := sandboxtest.Connect(u, n)
	defer c.Close()
	list, err := read.ReplicaChannels(u.Context(), c)
	if err != nil || len(list) != 1 {
		u.Fatalf("%s replicates by %d channels: %v", n.Name, len(list), err)
	}
	return list[0].Delay, list[0].Received
}

// TestDelayed: one that stays an hour behind, and is named, catches up before writes are stopped; when it does not, it is as it was, and nothing else was touched.
// In a failover it applies at once what it received, where its server can; else that is refused before anything is done.
func TestDelayed(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			const hour = 3600
			u := newTrio(t, spec, group.Policy{})
			first, late := u.box.Nodes[0], u.box.Nodes[1]
			u.demoted(first)
			u.delay(late, hour)
			if !u.write(first, time.Minute) {
				t.Fatal("no write")
			}
			c := u.carrier()
			p, err := c.Plan(t.Context(), Asked{Group: "g", To: late.Name})
			if err != nil {
				t.Fatal(err)
			}
			words := p.Plan.Words()
			at := func(text string) int {
				return slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, text) })
			}
			if i := at("_DELAY = 0"); i < 0 || i > at("until it has caught up") || at("until it has caught up") > at("writes stand still from here") {
				t.Errorf("the plan: %q", words)
			}
			if p, err := c.Plan(t.Context(), Asked{Group: "g"}); err != nil || p.Choice.Winner == late.Name {
				t.Errorf("unless it is named, it is passed over: %+v, %v", p, err)
			}

			// It cannot apply.
			holder := sandboxtest.Connect(t, late)
			if err := holder.Exec(t.Context(), "LOCK TABLES test.ledger READ"); err != nil {
				t.Fatal(err)
			}
			short := u.carrier()
			short.Limits.Drain = 100 * time.Millisecond
			stops := 0
			short.Say = func(text string) {
				if t.Log("   ", text); strings.Contains(text, ": STOP ") {
					if stops++; stops == 2 { // it is given up, and what stops the applier waits for that
						holder.Close()
					}
				}
			}
			j, err := short.Switchover(t.Context(), Asked{Group: "g", To: late.Name, By: "test"})
			if seconds, _ := u.delayed(late); err == nil || j.Stage != failover.Undone || seconds != hour || !j.Blocked.IsZero() {
				t.Errorf("one that cannot apply: %v, stage %s, %d s behind on purpose, writes stopped at %s", err, j.Stage, seconds, j.Blocked)
			}

			u.receives(late)
			if j, err = c.Switchover(t.Context(), Asked{Group: "g", To: late.Name, By: "test"}); err != nil {
				t.Fatal(err)
			}
			if stood := j.Opened.Sub(j.Blocked); stood > 10*time.Second {
				t.Errorf("nobody took writes for %s", stood)
			}
			u.complete()
			if _, err := c.Switchover(t.Context(), Asked{Group: "g", To: first.Name, By: "test"}); err != nil {
				t.Fatal(err)
			}

			u.delay(late, hour)
			await.Until(t, func() bool { return u.write(first, time.Minute) }, "a write")
			known := u.known()
			await.Until(t, func() bool { return u.has(late, first) }, "%s to have received it", late.Name)
			if err := first.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			a := Asked{Group: "g", To: late.Name, By: "test", Known: known}
			f, err := c.Forecast(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			if spec == "mariadb" {
				if err := f.Refused(); err == nil || !strings.Contains(err.Error(), "applies what it received no sooner") {
					t.Errorf("the forecast of one that is an hour behind: %v", err)
				}
				j, err := c.Failover(t.Context(), a)
				if seconds, _ := u.delayed(late); err == nil || j.Stage != failover.Undone || seconds != hour {
					t.Errorf("a failover to it: %v, %+v", err, j)
				}
				c.Limits.Drain = (hour + 60) * time.Second // as the refusal says
				if f, err = c.Forecast(t.Context(), a); err != nil || f.Refused() != nil {
					t.Errorf("with --drain: %v, %v", err, f.Refused())
				}
				return
			}
			if f.Refused() != nil || !strings.Contains(strings.Join(f.Plan.Words(), "\n"), "_DELAY = 0") {
				t.Errorf("the forecast: %v: %q", f.Refused(), f.Plan.Words())
			}
			if _, err = c.Failover(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			if _, now := u.primary(); now != late {
				t.Errorf("%s is the primary", now.Name)
			}
			u.complete(first.Name)
		})
	}
}

// demoted leaves the group without a primary, and makes the one that was it the primary again.
func (u *trio) demoted(n *sandbox.Node) {
	u.Helper()
	c := u.carrier()
	if _, err := c.Demote(u.Context(), "g"); err != nil {
		u.Fatal(err)
	}
	if closed := u.sql(n, "SELECT @@GLOBAL.read_only"); closed != "1" {
		u.Errorf("%s was demoted, and read_only is %s", n.Name, closed)
	}
	if f, err := c.Forecast(u.Context(), Asked{Group: "g", To: n.Name}); err != nil || f.Refused() != nil || f.Choice.Winner != n.Name {
		u.Errorf("the forecast of one that was demoted: %v, %v", err, f.Refused())
	}
	if _, err := c.Failover(u.Context(), Asked{Group: "g", By: "test", To: n.Name}); err != nil {
		u.Fatal(err)
	}
	if _, now := u.primary(); now != n {
		u.Errorf("%s is the primary", now.Name)
	}
	u.tended()
}

// has reports whether a replica has received what another node has.
func (u *trio) has(n, source *sandbox.Node) bool {
	_, received := u.delayed(n)
	if strings.Contains(received, ":") {
		return u.sql(n, fmt.Sprintf("SELECT GTID_SUBSET('%s', CONCAT('%s,', @@GLOBAL.gtid_executed))", u.sql(source, "SELECT @@GLOBAL.gtid_executed"), received)) == "1"
	}
	return u.sql(source, "SELECT VERSION() LIKE '%MariaDB%'") == "1" && received == u.sql(source, "SELECT @@GLOBAL.gtid_binlog_pos")
}

// TestDelayedFollows: one that stays behind on purpose has received what it has not applied, and the logs of who follows the primary do not go back so far. It is not made to throw
// that away: a MySQL goes on to apply it while it is pointed elsewhere, and a MariaDB, which cannot, is pointed once it has applied it.
func TestDelayedFollows(t *testing.T) {
	for _, c := range []struct {
		spec  string
		delay int // seconds
	}{{"mariadb", 12}, {"mysql-9.7", 3600}, {"mysql-5.7", 3600}} {
		t.Run(c.spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, c.spec, group.Policy{Automatic: true})
			old, first, late := u.box.Nodes[0], u.box.Nodes[1], u.box.Nodes[2]
			u.complete()
			u.delay(late, c.delay)
			for range 3 {
				if !u.write(old, time.Minute) {
					t.Fatal("no write")
				}
			}
			u.complete(late.Name)
			server := sandboxtest.Connect(t, first).Server
			all, err := mysql.LoggedGTIDs(t.Context(), sandboxtest.Connect(t, old))
			if err != nil {
				t.Fatal(err)
			}
			await.Until(t, func() bool {
				_, text := u.delayed(late)
				has, err := mysql.ParseGTIDSet(text)
				return err == nil && has.ContainsSet(all)
			}, "%s to receive what it does not apply yet", late.Name)
			for _, n := range []*sandbox.Node{old, first} {
				u.sql(n, "FLUSH LOGS")
				file, _ := sandboxtest.LogPosition(t, sandboxtest.Connect(t, n))
				await.Until(t, func() bool { // a log that is still sent to somebody stays
					u.sql(n, "PURGE BINARY LOGS TO "+mysql.Literal(file))
					logs, err := mysql.Logs(t.Context(), sandboxtest.Connect(t, n))
					return err == nil && len(logs) == 1
				}, "%s to have one log", n.Name)
			}
			u.sql(late, "SET GLOBAL slave_net_timeout = 3")
			p, err := u.carrier().Prepare(t.Context(), "g", t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			kept := slices.ContainsFunc(p.Notes, func(note string) bool { return strings.Contains(note, "how "+late.Name+" receives is left as it is") })
			if stops := slices.ContainsFunc(p.Plan.Words(), func(w string) bool { return strings.Contains(w, "STOP") && strings.Contains(w, late.Name) }); kept != server.MariaDB() || stops == kept {
				t.Errorf("the group is to be prepared: got %q and %q", p.Plan.Words(), p.Notes)
			}
			p.Close()
			_, has := u.delayed(late)
			known := u.known()
			if err := old.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			j, err := u.carrier().Failover(t.Context(), Asked{Group: "g", By: "test", Known: known})
			if err != nil || j.New != first.Name {
				t.Fatalf("got %+v, %v; want that %s follows", j, err, first.Name)
			}
			if server.MariaDB() {
				g, _ := u.primary()
				if m := g.Members[g.Find(late.Name)]; m.Status != group.Secondary || !m.Pointing {
					t.Errorf("%s: got %+v, want that it is to be pointed", late.Name, m)
				}
				if n := u.sql(late, "SELECT COUNT(*) FROM test.ledger"); n != "0" {
					t.Errorf("%s has %s rows already: the test came too late to show anything", late.Name, n)
				}
			} else {
				seconds, received := u.delayed(late)
				all, err := mysql.ParseGTIDSet(received)
				before, berr := mysql.ParseGTIDSet(has)
				if err != nil || berr != nil || seconds != c.delay || !all.ContainsSet(before) {
					t.Errorf("%s: got %d s, and that it received %s; want %s", late.Name, seconds, received, has)
				}
				u.delay(late, 0)
			}
			u.complete(old.Name)
			await.Until(t, func() bool {
				if _, _, err := u.carrier().Tend(t.Context(), "g", Tends); err != nil {
					t.Log(err)
				}
				return u.one(old.Name) == nil
			}, "%s to follow %s", late.Name, first.Name)
		})
	}
}
