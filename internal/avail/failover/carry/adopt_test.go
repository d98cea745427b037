package carry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/fence"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestSupplant: the state of Risso is restored, and names a primary that was replaced since, and that has a transaction of its own. What is asked names the one command that helps: it takes
// the member for the primary that is it.
func TestSupplant(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{Rejoin: true})
			old, now := u.box.Nodes[0], u.box.Nodes[1]
			if _, err := u.carrier().Switchover(t.Context(), Asked{Group: "g", To: now.Name, By: "test"}); err != nil {
				t.Fatal(err)
			}
			conn := sandboxtest.Connect(t, old)
			s := conn.Server
			conn.Close()
			u.sql(old, s.StopAll()...)
			if _, err := u.room.Change(t.Context(), "g", func(g *group.Group) error {
				g.Members[g.Find(old.Name)].Status, g.Members[g.Find(now.Name)].Status = group.Primary, group.Secondary
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			c := u.carrier()
			if plan, err := c.PlanSupplant(t.Context(), Asked{Group: "g", To: now.Name}); err != nil || len(plan) != 1 {
				t.Fatalf("of one that has all: %v, %v", plan, err)
			}
			u.sql(old, s.Open()...)
			if _, err := c.Supplant(t.Context(), Asked{Group: "g", To: now.Name, AcceptLoss: true}); err == nil || !strings.Contains(err.Error(), old.Name+" takes writes, too") {
				t.Fatalf("two that take writes: %v", err)
			}
			u.sql(old, "CREATE DATABASE astray", s.CloseWrites()[0])

			command := "risso group promote g " + now.Name + " --accept-loss"
			told := func(what string, err error) {
				t.Helper()
				if err == nil || !strings.HasPrefix(fleet.RemedyOf(err), command) {
					t.Errorf("%s: %v (%s)", what, err, fleet.RemedyOf(err))
				}
			}
			did, seen, err := c.Tend(t.Context(), "g", Tends)
			if err != nil || len(did) > 0 || seen.Rival != now.Name || !seen.Supplanted(now.Name) || !strings.HasPrefix(seen.RivalRemedy(), command) {
				t.Fatalf("looked after: %v, %+v, %v", did, seen, err)
			}
			told("the group's health", seen.Unwell())
			told("a failover", seen.Refused())
			_, err = c.Plan(t.Context(), Asked{Group: "g", To: now.Name})
			told("a switchover to it", err)
			_, err = c.PlanOpen(t.Context(), "g")
			told("opening the old one", err)
			_, err = c.Open(t.Context(), "g")
			told("opening the old one", err)
			_, err = c.Supplant(t.Context(), Asked{Group: "g", To: now.Name})
			told("taking it though it lacks something", err)

			before, _ := u.primary()
			if words, err := c.Supplant(t.Context(), Asked{Group: "g", To: now.Name, AcceptLoss: true}); err != nil || !strings.Contains(words, old.Name+" stays out") {
				t.Fatalf("%s, %v", words, err)
			}
			g, p := u.primary()
			if i := g.Find(old.Name); p != now || g.Epoch <= before.Epoch || g.Members[i].Status != group.Faulty || g.Members[i].Errant == "" || !u.write(now, time.Minute) {
				t.Fatalf("%+v", g)
			}
			if did, seen, err := c.Tend(t.Context(), "g", Tends); err != nil || len(did) > 0 || seen.Rival != "" || seen.Closed != nil {
				t.Errorf("looked after: %v, %+v, %v", did, seen, err)
			}
			if len(u.channels(old)) > 0 || len(u.channels(u.box.Nodes[2])) != 1 {
				t.Error("the others do not replicate as before")
			}
		})
	}
}

// TestAlone: no way back, and no opening, lets the old primary take writes beside another member that somebody made the primary meanwhile.
func TestAlone(t *testing.T) {
	t.Parallel()
	u := newTrio(t, "mariadb", group.Policy{Rejoin: true})
	old, chosen, other := u.box.Nodes[0], u.box.Nodes[1], u.box.Nodes[2]
	err := u.carrier().leased(t.Context(), "g", func(ctx context.Context, g *group.Group) error {
		r, err := u.carrier().run(ctx, g)
		if err != nil {
			return err
		}
		defer r.close()
		r.Holder = g.Lease.Holder
		r.j = &keep.Journal{Journal: failover.Journal{Group: "g", Kind: failover.Switchover, Stage: failover.Draining, Epoch: g.Lease.Epoch, Old: old.Name, New: chosen.Name}}
		if _, err := r.shut(ctx, old.Name, fence.Options{Limit: r.Limits.Stop}); err != nil {
			return err
		}
		if r.g, err = u.room.Group(ctx, "g"); err != nil {
			return err
		}
		u.sql(other, "STOP ALL SLAVES", "RESET SLAVE ALL", "SET GLOBAL read_only = 0")
		for what, back := range map[string]func(context.Context) error{
			"a switchover that is taken back": r.undo,
			"a failover that is given up":     r.unfence,
			"opening the primary": func(ctx context.Context) error {
				top, err := lookAt(ctx, r.g, r.targets, r.Limits.Look)
				return errors.Join(err, r.reopen(ctx, old.Name, top))
			},
		} {
			if err := back(ctx); err == nil || !strings.Contains(err.Error(), other.Name+" takes writes") {
				t.Errorf("%s: %v", what, err)
			}
			if shut := u.sql(old, "SELECT @@read_only"); shut != "1" {
				t.Fatalf("%s: %s takes writes beside %s", what, old.Name, other.Name)
			}
		}
		u.sql(other, "SET GLOBAL read_only = 1")
		if err := r.unfence(ctx); err != nil || !u.write(old, time.Minute) {
			t.Errorf("with nobody beside it: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
