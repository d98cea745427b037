package carry

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestUpgrade: replicas are upgraded before their primary. None is promoted by itself, whether the primary lives or is dead, and the forecast says the same as the failover does.
// One that is named follows; the old primary stays out, and is not pointed at what it cannot replicate from.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	u := newTrio(t, "mysql-5.7,mysql-8.0", group.Policy{Automatic: true, Rejoin: true})
	old, next := u.box.Nodes[0], u.box.Nodes[1]
	if !u.write(old, time.Minute) {
		t.Fatal("no write")
	}
	u.complete()
	c := u.carrier()
	refuses := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), old.Name+" could not replicate from it: a replica must not be older than its source") || !strings.Contains(fleet.RemedyOf(err), "name it with --to ") {
			t.Errorf("%s: %v (%s)", what, err, fleet.RemedyOf(err))
		}
	}
	f, err := c.Forecast(t.Context(), Asked{Group: "g"})
	if err != nil {
		t.Fatal(err)
	}
	refuses("the forecast", f.Unwell())
	_, err = c.Plan(t.Context(), Asked{Group: "g"})
	refuses("a switchover", err)
	_, err = c.Demote(t.Context(), "g")
	refuses("a demotion", err)
	if u.sql(old, "SELECT @@GLOBAL.read_only") != "0" {
		t.Fatalf("%s takes no writes any more", old.Name)
	}

	// A group that was left without a primary has its old one again.
	if _, err := u.room.Change(t.Context(), "g", func(g *group.Group) error { g.Members[g.Primary()].Status = group.Secondary; return nil }); err != nil {
		t.Fatal(err)
	}
	u.sql(old, "SET GLOBAL super_read_only = ON")
	if _, err = c.Failover(t.Context(), Asked{Group: "g", By: "test", To: old.Name}); err != nil {
		t.Fatal(err)
	}
	if _, now := u.primary(); now != old || !u.write(old, time.Minute) {
		t.Fatalf("%s is the primary, or %s takes no writes", now.Name, old.Name)
	}
	u.complete()

	known := u.known()
	if err := old.Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if f, err = c.Forecast(t.Context(), Asked{Group: "g", Known: known}); err != nil {
		t.Fatal(err)
	}
	refuses("the forecast, as it is dead", f.Unwell())
	_, err = c.Failover(t.Context(), Asked{Group: "g", By: "test", Automatic: true, Known: known})
	refuses("a failover", err)
	if f, err = c.Forecast(t.Context(), Asked{Group: "g", To: next.Name, Known: known}); err != nil || f.Refused() != nil || !strings.Contains(strings.Join(f.Words(), "; "), old.Name+" cannot replicate from it and stays out, FAULTY") {
		t.Errorf("one that is named: %v, %v: %q", err, f.Refused(), f.Words())
	}
	if err := old.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	u.tended() // it is opened
	u.receives(next)
	await.Until(t, func() bool { return u.write(old, time.Minute) }, "a write")

	p, err := c.Plan(t.Context(), Asked{Group: "g", To: next.Name})
	if err != nil {
		t.Fatal(err)
	}
	if words := strings.Join(append(p.Plan.Words(), p.Notes...), "\n"); !strings.Contains(words, "stay out, as FAULTY, and take no writes on "+old.Name) || !strings.Contains(words, "there is no way back to an older version") ||
		strings.Contains(words, "on "+old.Name+": replicate") {
		t.Errorf("the plan: %s", words)
	}
	j, err := c.Switchover(t.Context(), Asked{Group: "g", To: next.Name, By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	u.out(old.Name, "it cannot replicate from "+next.Name)
	if did, _, err := c.Tend(t.Context(), "g", Tends); err != nil || len(did) > 0 {
		t.Errorf("looked after: %v, %v", did, err)
	}
	n := sandboxtest.Connect(t, old)
	defer n.Close()
	if list, err := read.ReplicaChannels(t.Context(), n); err != nil || len(list) > 0 || u.sql(old, "SELECT @@GLOBAL.read_only") != "1" {
		t.Errorf("%s, which is older, replicates: %+v, %v", old.Name, list, err)
	}
	if v := j.Receipt.Verified; v == nil || len(v.Arrived) != 1 || len(v.Missing) > 0 {
		t.Errorf("verified: %+v", v)
	}
	u.complete(old.Name)
}

// out checks that a member is FAULTY, and why.
func (u *trio) out(name, why string) {
	u.Helper()
	g, _ := u.primary()
	if m := g.Members[g.Find(name)]; m.Status != group.Faulty || !strings.Contains(m.Fault, why) || m.Replaced {
		u.Errorf("%+v, want that it stays out: %s", m, why)
	}
}
