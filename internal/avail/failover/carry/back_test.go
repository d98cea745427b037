package carry

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/await"
)

// cut leaves a change behind that was cut off when the members receive no more.
func (u *trio) cut(kind failover.Kind, epoch uint64, to string) {
	u.Helper()
	g, old := u.primary()
	targets, access, err := u.carrier().targets(u.Context(), g)
	if err != nil {
		u.Fatal(err)
	}
	j, err := u.room.Begin(u.Context(), failover.Journal{Group: "g", Epoch: g.Epoch + epoch, Kind: kind, Stage: failover.Draining, By: "test", Old: old.Name, New: to, Began: time.Now().UTC(), Before: map[string]failover.Was{}, Known: u.known()})
	if err != nil {
		u.Fatal(err)
	}
	killed := &run{Carrier: u.carrier(), g: g, targets: targets, access: access, j: j, nodes: map[string]*node{}}
	defer killed.close()
	if kind == failover.Failover {
		killed.stopReceivers(u.Context())
	}
}

// TestTakenBack: a failover that was cut off before it promoted anybody is taken back when the old primary is there again, which may have taken writes since: none of them is lost. Where
// it is not, the failover is done again, also if who was chosen was taken out of the group meanwhile.
func TestTakenBack(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{Rejoin: true})
			_, old := u.primary()
			first, second := u.box.Nodes[1], u.box.Nodes[2]
			u.cut(failover.Failover, 1, first.Name)
			if err := old.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			<-old.Ended()
			if err := old.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			u.sql(old, "SET GLOBAL read_only = OFF", "CREATE DATABASE IF NOT EXISTS back", "CREATE TABLE back.t (id INT PRIMARY KEY)", "INSERT INTO back.t VALUES (1)")
			p, err := u.carrier().PlanResume(t.Context(), Asked{Group: "g"})
			if err != nil || !strings.Contains(p.Words, "is taken back: nobody was promoted, and of "+old.Name+" it is known that it answers again") || len(p.Plan) > 0 {
				t.Errorf("the plan: %+v, %v", p, err)
			}
			j, err := u.carrier().Resume(t.Context(), Asked{Group: "g", By: "test"})
			if err != nil || j == nil || j.Stage != failover.Undone {
				t.Fatalf("the old primary is back: %+v, %v; want that it is taken back", j, err)
			}
			u.receives(first)
			await.Until(t, func() bool { return u.has(first, old) && u.has(second, old) }, "the replicas to have what the old primary took")

			u.cut(failover.Failover, 2, first.Name)
			if err := old.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			<-old.Ended()
			u.takenOut(first.Name)
			j, err = u.carrier().Resume(t.Context(), Asked{Group: "g", By: "test"})
			if err != nil || j == nil || j.New != second.Name {
				t.Fatalf("who was chosen is gone: %+v, %v; want that %s is promoted", j, err, second.Name)
			}
			if !u.write(second, time.Minute) {
				t.Errorf("%s takes no write", second.Name)
			}
			u.cut(failover.Switchover, 1, first.Name) // to one that is no member
			j, err = u.carrier().Resume(t.Context(), Asked{Group: "g", By: "test"})
			if err != nil || j == nil || j.Stage != failover.Undone {
				t.Fatalf("a switchover to one that is gone: %+v, %v; want that it is taken back", j, err)
			}
		})
	}
}

// takenOut takes a member out of the group, as an older version did while a change waited.
func (u *trio) takenOut(name string) {
	u.Helper()
	if _, err := u.room.Change(u.Context(), "g", func(g *group.Group) error { return g.Without(name) }); err != nil {
		u.Fatal(err)
	}
}
