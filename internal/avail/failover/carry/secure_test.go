package carry

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestSecure: members replicate by an account that is let in only over TLS, and compare the source's certificate. Whoever becomes a replica, as one that handed over, that died, or that lost its
// channel, replicates so, too; also where no other member is left that does.
func TestSecure(t *testing.T) {
	for _, spec := range []string{"mariadb", "mariadb-11.8", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			settings, _ := sandboxtest.TLS(t)
			u := newTrio(t, spec, group.Policy{Rejoin: true}, settings...)
			first, second, third := u.box.Nodes[0], u.box.Nodes[1], u.box.Nodes[2]
			ca := strings.TrimPrefix(settings[2], "ssl_ca=")
			u.sql(first, "CREATE USER secure@'%' IDENTIFIED BY 'Secret-1' REQUIRE SSL", "GRANT REPLICATION SLAVE ON *.* TO secure@'%'")
			a, err := u.room.Access(t.Context(), "g")
			if err != nil {
				t.Fatal(err)
			}
			a.Replication = keep.Account{User: "secure", Password: "Secret-1"}
			if err := u.room.SetAccess(t.Context(), "g", a); err != nil {
				t.Fatal(err)
			}
			if !u.write(first, time.Minute) {
				t.Fatal("the primary takes no writes")
			}
			for _, n := range []*sandbox.Node{second, third} {
				u.replicates(n) // the account, too
				u.encrypted(n, first, ca)
			}
			c := u.carrier()
			want := fleet.ChannelTLS{On: true, CA: ca, Verify: true}

			if _, err := c.Switchover(t.Context(), Asked{Group: "g", To: second.Name, By: "test"}); err != nil {
				t.Fatal(err)
			}
			u.secured(first, want)

			if err := second.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Failover(t.Context(), Asked{Group: "g", By: "test", To: third.Name}); err != nil {
				t.Fatal(err)
			}
			u.secured(first, want)
			// Nobody else replicates when the one that died comes back.
			conn := sandboxtest.Connect(t, first)
			s := conn.Server
			conn.Close()
			u.sql(first, s.StopAll()...)
			if err := second.Start(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
			for _, n := range []*sandbox.Node{first, second} {
				await.Until(t, func() bool {
					if _, _, err := c.Tend(t.Context(), "g", Tends); err != nil {
						t.Fatal(err)
					}
					return len(u.channels(n)) == 1
				}, "%s to replicate", n.Name)
				u.secured(n, want)
			}
		})
	}
}

// encrypted lets a node replicate from another one by TLS.
func (u *trio) encrypted(n, from *sandbox.Node, ca string) {
	u.Helper()
	c := sandboxtest.Connect(u, n)
	s := c.Server
	c.Close()
	f := mysql.Following{Host: "127.0.0.1", Port: from.Port, User: "secure", Password: "Secret-1", TLS: fleet.ChannelTLS{On: true, CA: ca, Verify: true}}
	u.sql(n, s.StopReplica(""), s.Follow(f), s.StartReplica(""))
	u.receives(n)
}

// secured waits until a node has what was written last, by a channel that is encrypted so.
func (u *trio) secured(n *sandbox.Node, want fleet.ChannelTLS) {
	u.Helper()
	_, p := u.primary()
	if !u.write(p, time.Minute) {
		u.Fatalf("%s takes no writes", p.Name)
	}
	u.replicates(n)
	if got := u.channels(n); len(got) != 1 || got[0].TLS != want || got[0].User != "secure" {
		u.Errorf("%s replicates so: %+v, want %+v", n.Name, got, want)
	}
}
