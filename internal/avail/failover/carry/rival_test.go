package carry

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestRival: the primary is dead, by what Risso knows, and another member takes writes: the state was restored, or somebody promoted it by hand while Risso was about to. Nobody is promoted
// beside it, and both remedies are so.
func TestRival(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{Rejoin: true})
			old, now, other := u.box.Nodes[0], u.box.Nodes[1], u.box.Nodes[2]
			c := u.carrier()
			if _, err := c.Switchover(t.Context(), Asked{Group: "g", To: now.Name, By: "test"}); err != nil {
				t.Fatal(err)
			}
			if _, err := u.room.Change(t.Context(), "g", func(g *group.Group) error {
				g.Members[g.Find(old.Name)].Status, g.Members[g.Find(now.Name)].Status = group.Primary, group.Secondary
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if err := old.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if !u.write(now, time.Minute) {
				t.Fatal("the one that is the primary takes no writes")
			}
			refusals := func(remedy string, a Asked) {
				t.Helper()
				f, err := c.Forecast(t.Context(), a)
				if err != nil {
					t.Fatal(err)
				}
				_, done := c.Failover(t.Context(), a)
				for what, err := range map[string]error{"the forecast": f.Refused(), "the failover": done} {
					if err == nil || !strings.Contains(err.Error(), now.Name+" takes writes") || !strings.HasPrefix(fleet.RemedyOf(err), remedy) {
						t.Errorf("%s: %v (%s)", what, err, fleet.RemedyOf(err))
					}
				}
				if !u.write(now, time.Minute) || u.sql(other, "SELECT @@read_only") != "1" {
					t.Fatal("it does not stand as it stood")
				}
			}
			named := "risso failover --group g --to " + now.Name
			refusals(named, Asked{Group: "g", By: "test"})
			refusals("let it take no writes", Asked{Group: "g", By: "test", To: other.Name, AcceptLoss: true})
			u.replicates(other)

			if _, err := c.Failover(t.Context(), Asked{Group: "g", By: "test", To: now.Name}); err != nil {
				t.Fatalf("%s: %v", named, err)
			}
			if g, p := u.primary(); p != now || g.Members[g.Find(old.Name)].Status != group.Faulty || !u.write(now, time.Minute) {
				t.Fatalf("%+v", g)
			}
			u.replicates(other)

			// Somebody begins to promote the only replica by hand, and thinks better of it.
			if err := now.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			conn := sandboxtest.Connect(t, other)
			s := conn.Server
			conn.Close()
			u.sql(other, append(s.StopAll(), s.Open()...)...)
			_, err := c.Failover(t.Context(), Asked{Group: "g", By: "test"})
			remedy := fleet.RemedyOf(err)
			if err == nil || !strings.HasPrefix(remedy, "risso failover --group g --to "+other.Name) {
				t.Fatalf("of one without replicas: %v (%s)", err, remedy)
			}
			if _, err := c.Failover(t.Context(), Asked{Group: "g", By: "test", To: other.Name}); err != nil || !u.write(other, time.Minute) {
				t.Fatalf("%s: %v", remedy, err)
			}
		})
	}
}

// replicates waits until a node has what was written last.
func (u *trio) replicates(n *sandbox.Node) {
	u.Helper()
	seen := ""
	await.Until(u, func() bool {
		seen = fmt.Sprintf("%+v", u.channels(n))
		return u.sql(n, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'test' AND table_name = 'ledger'") == "1" &&
			u.sql(n, fmt.Sprintf("SELECT COUNT(*) FROM test.ledger WHERE id = %d", u.last)) == "1"
	}, "%s to have what was written last: %s", n.Name, &seen)
}
