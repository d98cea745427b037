package carry

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestNamed: members replicate by channels that have a name, as other tools give them. A MariaDB takes a statement without one for another channel, which it may not have.
func TestNamed(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{Rejoin: true})
			first, second, third := u.box.Nodes[0], u.box.Nodes[1], u.box.Nodes[2]
			if !u.write(first, time.Minute) {
				t.Fatal("the primary takes no writes")
			}
			for _, n := range []*sandbox.Node{second, third} {
				u.replicates(n)
				u.named(n, first)
			}
			c := u.carrier()
			if _, err := c.Switchover(t.Context(), Asked{Group: "g", To: second.Name, By: "test"}); err != nil {
				t.Fatal(err)
			}
			followed := func() {
				t.Helper()
				_, p := u.primary()
				if !u.write(p, time.Minute) {
					t.Fatalf("%s takes no writes", p.Name)
				}
				for _, n := range []*sandbox.Node{first, third} {
					if n != p {
						u.replicates(n)
					}
					got := u.channels(n)
					if n == p && len(got) > 0 || n != p && (len(got) != 1 || got[0].SourcePort != p.Port || !got[0].SQLRunning) {
						t.Errorf("%s replicates so: %+v", n.Name, got)
					}
				}
			}
			followed()
			if got := u.channels(third); got[0].Name != "belair" {
				t.Errorf("%s has another channel: %+v", third.Name, got)
			}

			// Nobody is promoted: who received does so again.
			if _, err := u.room.Change(t.Context(), "g", func(g *group.Group) error { g.Members[g.Find(third.Name)].Rule = group.Never; return nil }); err != nil {
				t.Fatal(err)
			}
			if err := second.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			j, err := c.Failover(t.Context(), Asked{Group: "g", By: "test", To: third.Name})
			if err == nil {
				t.Fatal("a member was promoted that never is to be")
			}
			if strings.Contains(err.Error(), "receive") {
				t.Errorf("refused as receivers went on: %v, %+v", err, j)
			}
			for _, n := range []*sandbox.Node{first, third} {
				if got := u.channels(n); len(got) != 1 || got[0].Status.IORunning == "No" {
					t.Errorf("%s does not receive again: %+v", n.Name, got)
				}
			}
			if _, err := c.Failover(t.Context(), Asked{Group: "g", By: "test", To: first.Name}); err != nil {
				t.Fatal(err)
			}
			followed()
		})
	}
}

// named gives the channel of a node a name.
func (u *trio) named(n, from *sandbox.Node) {
	u.Helper()
	c := sandboxtest.Connect(u, n)
	s := c.Server
	c.Close()
	password, err := u.box.Password()
	if err != nil {
		u.Fatal(err)
	}
	follow := s.Follow(mysql.Following{Host: "127.0.0.1", Port: from.Port, User: u.box.User, Password: password})
	if s.MariaDB() {
		follow = strings.Replace(follow, "CHANGE MASTER TO", "CHANGE MASTER 'belair' TO", 1)
	} else {
		follow += " FOR CHANNEL 'belair'"
	}
	u.sql(n, append(s.StopAll(), follow, s.StartReplica("belair"))...)
	u.receives(n)
}
