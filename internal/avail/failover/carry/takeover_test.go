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
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// sql runs statements on a node; the result is the first column of the last one's only row.
func (u *trio) sql(n *sandbox.Node, statements ...string) (value string) {
	u.Helper()
	c := sandboxtest.Connect(u, n)
	defer c.Close()
	for _, s := range statements {
		var err error
		if value, err = c.Text(u.Context(), s); err != nil {
			u.Fatalf("%s on %s: %v", s, n.Name, err)
		}
	}
	return value
}

// events checks that a node, and no other, runs the event test.tick, and nobody test.idle; both are as they were made.
func (u *trio) events(runs *sandbox.Node, without ...string) {
	u.Helper()
	said := ""
	await.Until(u, func() bool {
		said = ""
		for _, n := range u.box.Nodes {
			if slices.Contains(without, n.Name) {
				continue
			}
			c := sandboxtest.Connect(u, n)
			list, err := mysql.Events(u.Context(), c)
			c.Close()
			if err != nil {
				u.Fatal(err)
			}
			for _, e := range list {
				said += fmt.Sprintf("%s: %s %s by %s; ", n.Name, e.Name, e.Status, e.Definer)
			}
			if len(list) != 2 || list[0].Enabled() || list[1].Enabled() != (n == runs) || list[1].Definer != "app@%" {
				return false
			}
		}
		return true
	}, "%s alone to run the event tick: %v", runs.Name, &said)
	u.sql(runs, "DELETE FROM test.ticks")
	await.Until(u, func() bool {
		return u.sql(runs, "SELECT COUNT(*) FROM test.ticks WHERE server = @@port") != "0"
	}, "the event to run on %s", runs.Name)
	if alien := u.sql(runs, "SELECT COUNT(*) FROM test.ticks WHERE server <> @@port OR mode NOT LIKE '%ANSI_QUOTES%' OR zone <> '+03:00'"); alien != "0" {
		u.Errorf("%s rows come from another server, or from another sql_mode or time zone: %s", alien, u.sql(runs, "SELECT GROUP_CONCAT(DISTINCT server, ' ', zone, ' ', mode) FROM test.ticks"))
	}
}

// verified checks that a change of the primary was verified, and where the row arrived.
func (u *trio) verified(j *failover.Journal, at int) {
	u.Helper()
	v := j.Receipt.Verified
	if v == nil || !v.Written || len(v.Arrived) != at || len(v.Missing) != 0 {
		u.Fatalf("not verified: %+v", v)
	}
	_, p := u.primary()
	if epoch := u.sql(p, mysql.PrimaryRowQuery("g")); epoch != fmt.Sprint(j.Epoch) {
		u.Errorf("the row has epoch %s, not %d", epoch, j.Epoch)
	}
}

// TestTakeOver: a new primary runs the events of the old one, waits for as many replicas, and is verified by a write; what is planned is what is done.
func TestTakeOver(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{SemiSync: true, Rejoin: true})
			first := u.box.Nodes[0]
			several := u.sql(first, "SELECT VERSION()")[0] != '1' // MariaDB waits for one
			u.sql(first, "CREATE TABLE test.ticks (id INT AUTO_INCREMENT PRIMARY KEY, server INT, mode TEXT, zone VARCHAR(64))",
				"SET GLOBAL event_scheduler = ON", "SET SESSION sql_mode = 'ANSI_QUOTES,STRICT_TRANS_TABLES', time_zone = '+03:00'",
				`CREATE DEFINER = app@'%' EVENT test.tick ON SCHEDULE EVERY 1 SECOND ON COMPLETION PRESERVE DO INSERT INTO test.ticks (server, mode, zone) VALUES (@@port, @@sql_mode, @@time_zone)`,
				`CREATE DEFINER = app@'%' EVENT test.idle ON SCHEDULE EVERY 1 SECOND DISABLE DO INSERT INTO test.ticks (server) VALUES (-1)`)
			for _, n := range u.box.Nodes[1:] {
				u.sql(n, "SET GLOBAL event_scheduler = OFF")
			}
			if several {
				u.sql(first, "SET GLOBAL rpl_semi_sync_source_wait_for_replica_count = 2")
			}
			u.events(first)
			u.diskRoom(first, !several)

			u.sql(u.box.Nodes[1], "SET GLOBAL max_connections = 77")
			c := u.carrier()
			p, err := c.Plan(t.Context(), Asked{Group: "g"})
			if err != nil {
				t.Fatal(err)
			}
			plan := strings.Join(p.Plan.Words(), "\n")
			for _, want := range []string{"event_scheduler = ON", "EVENT `test`.`tick` ENABLE", "_enabled = ON", "INSERT INTO risso.primaries"} {
				if !strings.Contains(plan, want) {
					t.Errorf("the plan has no %q:\n%s", want, plan)
				}
			}
			if !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "max_connections is 77") }) {
				t.Errorf("it is not said that the new primary takes fewer connections: %q", p.Notes)
			}
			if strings.Contains(plan, "idle") || several && !strings.Contains(plan, "wait_for_replica_count = 2") {
				t.Errorf("the plan:\n%s", plan)
			}
			j, err := c.Switchover(t.Context(), Asked{Group: "g", By: "test"})
			if err != nil {
				t.Fatal(err)
			}
			var done []string
			for _, s := range j.Steps {
				done = append(done, s.What)
			}
			for _, s := range append(p.events, plannedWaits(p)...) {
				if !slices.Contains(done, s) {
					t.Errorf("planned, and not done: %s", s)
				}
			}
			_, second := u.primary()
			u.verified(j, 2)
			u.events(second)
			count := "SELECT @@GLOBAL.rpl_semi_sync_source_wait_for_replica_count"
			if several && u.sql(second, count) != "2" {
				t.Error("the new primary does not wait for 2 replicas")
			}
			if !slices.ContainsFunc(j.Receipt.Notes, func(n string) bool {
				return strings.Contains(n, "event_scheduler = ON holds until it is started again")
			}) {
				t.Errorf("it is not said that the scheduler is not on for good: %q", j.Receipt.Notes)
			}

			// Nothing is written where the policy says so; a second time there is nothing left to do on the way back.
			u.policy(func(p *group.Policy) { p.Unwritten = true })
			if j, err = c.Switchover(t.Context(), Asked{Group: "g", To: first.Name, By: "test"}); err != nil {
				t.Fatal(err)
			}
			if v := j.Receipt.Verified; v.Written || len(v.Arrived) != 2 || !strings.Contains(v.Words(), "not verified by a write") {
				t.Errorf("it was not to write: %s", v.Words())
			}
			u.events(first)
			u.policy(func(p *group.Policy) { p.Unwritten = false })

			u.granted(first)
			u.limited(first)

			// The primary dies: what it ran is known from before. With one replica less nobody waits for two.
			if _, _, err := c.Tend(t.Context(), "g", Tends); err != nil {
				t.Fatal(err)
			}
			known := u.known()
			if err := first.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			f, err := c.Forecast(t.Context(), Asked{Group: "g"}) // who asks knows nothing: it was written down
			if err != nil || !strings.Contains(strings.Join(f.Plan.Words(), "\n"), "EVENT `test`.`tick` ENABLE") {
				t.Fatalf("the forecast: %v\n%s", err, strings.Join(f.Plan.Words(), "\n"))
			}
			if words := strings.Join(f.Words(), "\n"); f.Known.Name != known.Name || !f.Known.Lossless || !strings.Contains(words, "no acknowledged transaction would be lost") {
				t.Errorf("the forecast: %s\n%+v", words, f.Known)
			}
			if j, err = c.Failover(t.Context(), Asked{Group: "g", By: "test", Known: f.Known}); err != nil {
				t.Fatal(err)
			}
			if j.Receipt.Verdict != failover.NothingLost {
				t.Errorf("the receipt: %s", j.Receipt.Words)
			}
			_, third := u.primary()
			u.verified(j, 1)
			u.events(third, first.Name)
			if fewer := slices.ContainsFunc(j.Receipt.Notes, func(n string) bool { return strings.Contains(n, "and not for 2") }); fewer != several || several && u.sql(third, count) != "1" {
				t.Errorf("for how many a commit waits: %q", j.Receipt.Notes)
			}
			if err := first.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			u.tended()
			u.events(third)
			if several {
				u.raised(third, count)
			}
			u.closes(third)
		})
	}
}

// raised waits until commits wait for two replicas again, as two acknowledge. What somebody sets stays.
func (u *trio) raised(p *sandbox.Node, count string) {
	u.Helper()
	await.Until(u, func() bool {
		if _, _, err := u.carrier().Tend(u.Context(), "g", Tends); err != nil {
			u.Fatal(err)
		}
		return u.sql(p, count) == "2"
	}, "commits to wait for two replicas again")
	if g, _ := u.primary(); g.Acks != nil {
		u.Errorf("it waits for as many as it is to, and %+v is kept", g.Acks)
	}
	if _, err := u.room.Change(u.Context(), "g", func(g *group.Group) error { g.Acks = &group.Acks{Want: 2, Set: 3}; return nil }); err != nil {
		u.Fatal(err)
	}
	u.sql(p, "SET GLOBAL rpl_semi_sync_source_wait_for_replica_count = 1") // after it was lowered to 3, as it seems
	if _, _, err := u.carrier().Tend(u.Context(), "g", Tends); err != nil {
		u.Fatal(err)
	}
	if g, _ := u.primary(); g.Acks != nil || u.sql(p, count) != "1" {
		u.Errorf("commits wait for %s replicas, and %+v is kept, though somebody set 1", u.sql(p, count), g.Acks)
	}
}

// granted switches over, and back, as an account that has what risso grants --for failover prints, and no more: nothing is left undone.
func (u *trio) granted(first *sandbox.Node) {
	u.Helper()
	c := sandboxtest.Connect(u, first)
	defer c.Close()
	u.sql(first, "CREATE USER granted@'%' IDENTIFIED BY 'granted'")
	u.sql(first, c.Server.Grants("'granted'@'%'", "", mysql.JobFailover)...)
	u.ran(first, "granted", func() {
		for _, to := range []*sandbox.Node{u.box.Nodes[1], first} {
			j, err := u.carrier().Switchover(u.Context(), Asked{Group: "g", To: to.Name, By: "test"})
			if err != nil {
				u.Fatal(err)
			}
			u.verified(j, 2)
			for _, n := range j.Receipt.Notes {
				if !strings.Contains(n, "max_connections is") { // it is
					u.Errorf("not all was done: %s", n)
				}
			}
			u.events(to)
		}
	})
}

// ran runs f while the group's members are reached by an account that all of them have; its password is its name.
func (u *trio) ran(first *sandbox.Node, account string, f func()) {
	u.Helper()
	access, err := u.room.Access(u.Context(), "g")
	if err != nil {
		u.Fatal(err)
	}
	full, less := access.Members, map[string]string{}
	for _, n := range u.box.Nodes {
		less[n.Name] = fmt.Sprintf("%s:%s@tcp(127.0.0.1:%d)/", account, account, n.Port)
		c := sandboxtest.Connect(u, n)
		await.Until(u, func() bool {
			text, err := c.Text(u.Context(), "SELECT COUNT(*) FROM mysql.user WHERE User = '"+account+"'")
			return err == nil && text == "1"
		}, "%s to have the account", n.Name)
		c.Close()
	}
	as := func(members map[string]string) {
		access.Members = members
		if err := u.room.SetAccess(u.Context(), "g", access); err != nil {
			u.Fatal(err)
		}
	}
	as(less)
	f()
	as(full)
}

// limited switches over, and back, as an account that sees no events and may write no row: it says so, and switches over nevertheless.
func (u *trio) limited(first *sandbox.Node) {
	u.Helper()
	u.sql(first, "CREATE USER limited@'%' IDENTIFIED BY 'limited'", "GRANT ALL PRIVILEGES ON *.* TO limited@'%'", "REVOKE EVENT, INSERT ON *.* FROM limited@'%'")
	u.ran(first, "limited", func() {
		j, err := u.carrier().Switchover(u.Context(), Asked{Group: "g", By: "test"})
		if err != nil {
			u.Fatal(err)
		}
		if v := j.Receipt.Verified; v.Written || len(v.Arrived) != 2 || !strings.Contains(v.Not, "INSERT") {
			u.Errorf("an account that may not write: %+v", v)
		}
		if !slices.ContainsFunc(j.Receipt.Notes, func(n string) bool { return strings.Contains(n, "GRANT EVENT") }) {
			u.Errorf("it is not said that events may not run: %q", j.Receipt.Notes)
		}
	})
	_, p := u.primary()
	u.sql(p, "SET SESSION sql_mode = 'ANSI_QUOTES,STRICT_TRANS_TABLES', time_zone = '+03:00'", "ALTER DEFINER = app@'%' EVENT test.tick ENABLE", "SET GLOBAL event_scheduler = ON")
	if _, err := u.carrier().Switchover(u.Context(), Asked{Group: "g", To: first.Name, By: "test"}); err != nil {
		u.Fatal(err)
	}
	u.events(first)
}

// diskRoom checks that it is known how much room the members have, by this machine, and of MariaDB by the server.
func (u *trio) diskRoom(n *sandbox.Node, maria bool) {
	u.Helper()
	g, _ := u.primary()
	targets, access, err := u.carrier().targets(u.Context(), g)
	if err != nil {
		u.Fatal(err)
	}
	top, err := lookAt(u.Context(), g, targets, 5*time.Second)
	if err != nil {
		u.Fatal(err)
	}
	seen := rooms(u.Context(), g, top, targets, access)
	if len(seen) != 3 || seen[n.Name].Free == 0 {
		u.Errorf("the room of three servers on this machine: %v", seen)
	}
	for i := range top.Nodes { // as if they were elsewhere
		top.Nodes[i].Here = false
	}
	if far := rooms(u.Context(), g, top, targets, access); len(far) != 0 {
		u.Errorf("the room of servers elsewhere, which do not tell: %v", far)
	}
	if !maria {
		return
	}
	u.sql(n, "INSTALL SONAME 'disks'")
	c := sandboxtest.Connect(u, n)
	defer c.Close()
	free, ok, err := mysql.DiskFree(u.Context(), c, top.Nodes[top.Find(n.Name)].DataDir)
	if near := seen[n.Name].Free; err != nil || !ok || free > near*2 || free < near/2 {
		u.Errorf("the server tells of %d bytes, %v, %v; this machine sees %d", free, ok, err, near)
	}
}

// plannedWaits are the statements of a plan by which commits wait.
func plannedWaits(p *Planned) (list []string) {
	for _, s := range p.Plan {
		if strings.Contains(s.What, "commits wait for replicas") {
			list = append(list, s.What)
		}
	}
	return list
}

// policy changes the policy of the group.
func (u *trio) policy(f func(p *group.Policy)) {
	u.Helper()
	if _, err := u.room.Change(u.Context(), "g", func(g *group.Group) error { f(&g.Policy); return nil }); err != nil {
		u.Fatal(err)
	}
}

// TestWaitFor: no more are waited for than there are.
func TestWaitFor(t *testing.T) {
	for _, c := range []struct {
		want  int
		there []string
		count int
		words string
	}{{0, nil, 1, "none that answers could"}, {1, nil, 1, "none that answers could"}, {1, []string{"b", "c"}, 1, ""}, {2, []string{"b", "c"}, 2, ""}, {2, []string{"b"}, 1, "1 replica, and not for 2"}, {3, []string{"b", "c"}, 2, "2 replicas, and not for 3"}, {2, nil, 1, "none that answers could"}} {
		count, words := waitFor(failover.Known{Name: "a", WaitFor: c.want}, c.there)
		if count != c.count || (words == "") != (c.words == "") || !strings.Contains(words, c.words) {
			t.Errorf("%d of %v: %d, %q", c.want, c.there, count, words)
		}
	}
}
