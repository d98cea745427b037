package carry

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestStrange: what others do to a group without Risso, and what Risso must not make of it.
func TestStrange(t *testing.T) {
	t.Parallel()
	u := newTrio(t, "mariadb", group.Policy{Rejoin: true})
	first, second, third := u.box.Nodes[0], u.box.Nodes[1], u.box.Nodes[2]
	c := u.carrier()
	if !u.write(first, time.Minute) {
		t.Fatal("the primary takes no writes")
	}
	u.chained(first, second)
	u.byHand(first, second)
	u.halfAgreed(third)
	u.adopted(second, first)

	// It lives, and cannot be asked: by its error, or by what arrives at its replicas.
	account := fmt.Sprintf("'%s'@'%s'", u.box.User, u.sql(second, "SELECT MAX(host) FROM mysql.user WHERE user = '"+u.box.User+"'"))
	password, err := u.box.Password()
	if err != nil {
		t.Fatal(err)
	}
	u.sql(second, "SET SESSION sql_log_bin = 0", "SET PASSWORD FOR "+account+" = PASSWORD('rotated')")
	f, err := c.Forecast(t.Context(), Asked{Group: "g"})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Refused(); err == nil || f.Alive || !strings.Contains(err.Error(), "it lives, but cannot be asked") {
		t.Errorf("of a primary that refuses the login: %v", err)
	}
	if _, err := c.Plan(t.Context(), Asked{Group: "g"}); err == nil || strings.Contains(err.Error(), "risso failover --group") {
		t.Errorf("a switchover from one that refuses the login: %v", err)
	}
	if f, err = c.Forecast(t.Context(), Asked{Group: "g", AcceptLoss: true}); err != nil || f.Refused() != nil {
		t.Errorf("with --accept-loss: %v, %v", err, f.Refused())
	}
	u.sql(second, "SET SESSION sql_log_bin = 0", "SET PASSWORD FOR "+account+" = PASSWORD('"+password+"')")
	u.without(second)
}

// byHand makes another node the primary as people do: by SQL, and without Risso.
func (u *trio) byHand(from, to *sandbox.Node) {
	u.Helper()
	u.sql(from, "SET GLOBAL read_only = 1")
	caught := u.sql(from, "SELECT @@gtid_binlog_pos")
	if at := u.sql(to, "SELECT MASTER_GTID_WAIT('"+caught+"', 60)"); at != "0" {
		u.Fatalf("%s does not catch up: %s", to.Name, at)
	}
	u.sql(to, "STOP ALL SLAVES", "RESET SLAVE ALL", "SET GLOBAL read_only = 0")
	for range 3 { // nobody follows it yet
		did, seen, err := u.carrier().Tend(u.Context(), "g", Tends)
		if err != nil || len(did) != 0 || seen == nil || seen.Rival != to.Name || !strings.Contains(fmt.Sprint(seen.Unwell()), to.Name+" takes writes") {
			u.Fatalf("looked after while somebody makes %s the primary: %v, %+v, %v", to.Name, did, seen, err)
		}
	}
	if u.sql(to, "SELECT @@read_only") != "0" || u.sql(from, "SELECT @@read_only") != "1" {
		u.Fatal("Risso changed who takes writes")
	}
	u.pointed(from, to)
}

// chained: a primary that replicates from its own replica is told with a remedy, which makes it the primary again.
func (u *trio) chained(p, replica *sandbox.Node) {
	u.Helper()
	u.sql(p, "SET GLOBAL read_only = 1")
	u.pointed(p, replica)
	did, seen, err := u.carrier().Tend(u.Context(), "g", Tends)
	if err != nil || len(did) != 0 || seen == nil || seen.Closed == nil || !strings.Contains(seen.Closed.Why, "it replicates itself from") {
		u.Fatalf("looked after with a primary that replicates: %v, %+v, %v", did, seen, err)
	}
	if seen.Closed.Remedy != "STOP ALL SLAVES; RESET SLAVE ALL on "+p.Name+", then risso group promote g "+p.Name {
		u.Errorf("the remedy: %s", seen.Closed.Remedy)
	}
	for _, err := range []error{seen.Unwell(), func() error { _, err := u.carrier().Plan(u.Context(), Asked{Group: "g"}); return err }()} {
		if err == nil || !strings.Contains(err.Error(), "replicates itself") || fleet.RemedyOf(err) != seen.Closed.Remedy {
			u.Errorf("%v (%s)", err, fleet.RemedyOf(err))
		}
	}
	u.sql(p, "STOP ALL SLAVES", "RESET SLAVE ALL")
	if _, err := u.carrier().Open(u.Context(), "g"); err != nil || !u.write(p, time.Minute) {
		u.Fatalf("the remedy: %v", err)
	}
}

// pointed lets a node replicate from another one.
func (u *trio) pointed(n, at *sandbox.Node) {
	u.Helper()
	password, err := u.box.Password()
	if err != nil {
		u.Fatal(err)
	}
	u.sql(n, "STOP ALL SLAVES", fmt.Sprintf("CHANGE MASTER TO master_host='127.0.0.1', master_port=%d, master_user='%s', master_password='%s', master_use_gtid=current_pos", at.Port, u.box.User, password), "START SLAVE")
}

// halfAgreed: one member still replicates from the old primary. Nobody is shut, nothing is pointed anywhere, and the rival is named.
func (u *trio) halfAgreed(third *sandbox.Node) {
	u.Helper()
	_, old := u.primary()
	did, seen, err := u.carrier().Tend(u.Context(), "g", Tends)
	if err != nil || len(did) != 0 || seen == nil || seen.Rival != u.box.Nodes[1].Name {
		u.Fatalf("looked after with two that could be the primary: %v, %+v, %v", did, seen, err)
	}
	if u.sql(u.box.Nodes[1], "SELECT @@read_only") != "0" || u.sql(old, "SELECT @@read_only") != "1" {
		u.Error("Risso changed who takes writes")
	}
	u.pointed(third, u.box.Nodes[1])
}

// adopted: when all agree, the one that they replicate from is the primary, and goes on to take writes all the time.
func (u *trio) adopted(now, old *sandbox.Node) {
	u.Helper()
	before, _ := u.primary()
	var did []string
	await.Until(u, func() bool {
		var err error
		if did, _, err = u.carrier().Tend(u.Context(), "g", Tends); err != nil {
			u.Fatal(err)
		}
		return len(did) > 0
	}, "the new primary to be adopted")
	g, p := u.primary()
	if p != now || g.Epoch <= before.Epoch || !strings.Contains(did[0], "and not by Risso") {
		u.Fatalf("%s is the primary, epoch %d after %d: %v", p.Name, g.Epoch, before.Epoch, did)
	}
	if i := g.Find(old.Name); g.Members[i].Status != group.Secondary {
		u.Errorf("%s is %s", old.Name, g.Members[i].Status)
	}
	if !u.write(now, time.Minute) {
		u.Fatal("it takes no writes")
	}
	for _, n := range u.box.Nodes {
		u.replicates(n)
	}
}

// channels are those of a node.
func (u *trio) channels(n *sandbox.Node) []read.ReplicaChannel {
	u.Helper()
	c := sandboxtest.Connect(u, n)
	defer c.Close()
	list, err := read.ReplicaChannels(u.Context(), c)
	if err != nil {
		u.Fatal(err)
	}
	return list
}

// without: a group that was left without a primary is failed over without a second writer, whoever takes writes in it.
func (u *trio) without(open *sandbox.Node) {
	u.Helper()
	g, err := u.room.Change(u.Context(), "g", func(g *group.Group) error {
		if err := g.Set(open.Name, group.Faulty, "somebody said so", g.Since); err == nil {
			u.Error("the primary may be called FAULTY while it takes writes")
		}
		i := g.Find(open.Name)
		g.Members[i].Status = group.Spare
		return nil
	})
	if err != nil || g.Primary() >= 0 {
		u.Fatal(err)
	}
	if err := u.box.Nodes[2].Kill(syscall.SIGKILL); err != nil {
		u.Fatal(err)
	}
	j, err := u.carrier().Failover(u.Context(), Asked{Group: "g", By: "test", To: u.box.Nodes[0].Name})
	if err != nil {
		u.Fatal(err)
	}
	if u.sql(open, "SELECT @@read_only") == "0" {
		u.Errorf("%s takes writes beside the new primary", open.Name)
	}
	if r := j.Receipt; r.Outage != 0 || r.Verdict != failover.PerhapsLost || !strings.Contains(r.Words, u.box.Nodes[2].Name) {
		u.Errorf("a receipt of members one of which could not be asked: %+v", r)
	}
}
