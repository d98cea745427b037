package carry

import (
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/await"
)

// TestSaidFaulty: a member that a person made FAULTY stays so while the group is looked after, however well it is, until a person says otherwise; one that Risso made so comes back.
func TestSaidFaulty(t *testing.T) {
	t.Parallel()
	u := newTrio(t, "mariadb", group.Policy{Rejoin: true})
	said, judged := u.box.Nodes[1], u.box.Nodes[2]
	change := func(f func(g *group.Group) error) {
		t.Helper()
		if _, err := u.room.Change(t.Context(), "g", f); err != nil {
			t.Fatal(err)
		}
	}
	set := func(status group.Status) {
		t.Helper()
		change(func(g *group.Group) error { return g.Set(said.Name, status, group.SaidSo, time.Now().UTC()) })
	}
	is := func(name string) group.Member {
		t.Helper()
		g, _ := u.primary()
		return g.Members[g.Find(name)]
	}
	tend := func() {
		t.Helper()
		if _, _, err := u.carrier().Tend(t.Context(), "g", Tends); err != nil {
			t.Fatal(err)
		}
	}
	u.tended()
	set(group.Faulty)
	change(func(g *group.Group) error {
		g.KeepOut(judged.Name, "it was a test", time.Now().UTC())
		return nil
	})
	await.Until(t, func() bool { tend(); return is(judged.Name).Status == group.Secondary }, "%s, which Risso made FAULTY, to come back", judged.Name)
	if m := is(said.Name); m.Status != group.Faulty || m.Fault != group.SaidSo {
		t.Errorf("a person made %s FAULTY, and it is %s: %q", said.Name, m.Status, m.Fault)
	}
	// What Risso finds out about it changes nothing of that.
	u.sql(said, "SET GLOBAL gtid_domain_id = 7", "CREATE TABLE test.own (id INT)")
	await.Until(t, func() bool { tend(); return is(said.Name).Errant != "" }, "its own transaction to be found")
	u.sql(said, "SET GLOBAL read_only = 1")
	if m := is(said.Name); !m.ByHand || m.Fault != group.SaidSo+"; it has transactions that the primary has not" {
		t.Errorf("with a transaction of its own: %+v", m)
	}
	change(func(g *group.Group) error { g.Members[g.Find(said.Name)].Errant = ""; return nil })
	set(group.Spare)
	if m := is(said.Name); m.ByHand || m.Fault != "" {
		t.Errorf("a person made it SPARE: %+v", m)
	}
}

// TestReturnedByHand: a member that a person made FAULTY while serve rebuilt it stays out afterwards; where a person asked for the rebuild, it comes back.
func TestReturnedByHand(t *testing.T) {
	for asked, want := range map[bool]group.Status{false: group.Faulty, true: group.Spare} {
		g := &group.Group{Name: "g", Members: []group.Member{{Name: "a", Status: group.Faulty, Errant: "0-2-7", Fault: "it died; " + group.SaidSo, ByHand: true, Rebuild: &group.Rebuild{}}}}
		if err := Returned(g, "a", asked, time.Now()); err != nil {
			t.Fatal(err)
		}
		if m := g.Members[0]; m.Status != want || m.ByHand == asked || m.Back != asked || m.Errant != "" || m.Rebuild != nil {
			t.Errorf("asked for: %t: %+v", asked, m)
		}
	}
}
