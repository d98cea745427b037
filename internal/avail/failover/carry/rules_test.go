package carry

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestRulesDecide: a failover promotes who is preferred, and nobody who must never be promoted, though that one comes first otherwise. Before, a switchover says of a replica that takes writes that it
// does, and its words let it take none.
func TestRulesDecide(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{Rejoin: true})
			old, first, second := u.box.Nodes[0], u.box.Nodes[1], u.box.Nodes[2]
			rule := func(member string, r group.Rule) {
				t.Helper()
				if _, err := u.room.Change(t.Context(), "g", func(g *group.Group) error { g.Members[g.Find(member)].Rule = r; return nil }); err != nil {
					t.Fatal(err)
				}
			}
			notes := func() string {
				t.Helper()
				p, err := u.carrier().Plan(t.Context(), Asked{Group: "g"})
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(p.Notes, func(n string) bool { return strings.Contains(n, second.Name+" is a replica, and takes writes") })
				if i < 0 {
					return ""
				}
				return p.Notes[i]
			}
			server := sandboxtest.Connect(t, second).Server
			if got := notes(); got != "" {
				t.Errorf("%s takes no writes: got the note %q", second.Name, got)
			}
			u.sql(second, server.Open()...)
			if got := notes(); !strings.Contains(got, server.Shut()) {
				t.Errorf("%s takes writes: got the note %q, want one with %q", second.Name, got, server.Shut())
			}
			u.sql(second, server.Shut())
			if got := notes(); got != "" {
				t.Errorf("%s takes no writes again: got the note %q", second.Name, got)
			}

			fail := func(rules map[string]group.Rule, want string) {
				t.Helper()
				for member, r := range rules {
					rule(member, r)
				}
				_, now := u.primary()
				if !u.write(now, time.Minute) {
					t.Fatalf("%s takes no write", now.Name)
				}
				known := u.known()
				if err := now.Kill(syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				<-now.Ended()
				j, err := u.carrier().Failover(t.Context(), Asked{Group: "g", By: "test", Known: known})
				if err != nil || j.New != want {
					t.Fatalf("rules %v: got %+v, %v; want that %s follows", rules, j, err, want)
				}
				if err := now.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				u.tended()
				u.complete()
			}
			fail(map[string]group.Rule{second.Name: group.Prefer}, second.Name)
			fail(map[string]group.Rule{old.Name: group.Prefer, first.Name: group.Never}, old.Name)
			fail(map[string]group.Rule{first.Name: group.Avoid, second.Name: group.Neutral}, second.Name)
		})
	}
}
