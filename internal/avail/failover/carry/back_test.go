package carry

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/serve/lost"
)

// TestTookWrites: an old primary that waited for replicas until it died has a transaction that nobody was told of, which is no loss. If it is then started so that it takes writes, before anybody
// keeps it from that, these were acknowledged by it alone: they are lost, and the receipt says so.
func TestTookWrites(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		for _, writes := range []bool{false, true} {
			t.Run(spec+map[bool]string{true: "/writes"}[writes], func(t *testing.T) {
				t.Parallel()
				u := newTrio(t, spec, group.Policy{Automatic: true, SemiSync: true})
				_, p := u.primary()
				if !u.write(p, time.Minute) {
					t.Fatal("the primary takes no writes")
				}
				known := u.known()
				for _, n := range u.box.Nodes[1:] {
					c := sandboxtest.Connect(t, n)
					if err := c.Exec(t.Context(), c.Server.StopThread("", mysql.Receiver)); err != nil {
						t.Fatal(err)
					}
				}
				before := u.last
				if u.write(p, 2*time.Second) {
					t.Fatal("a write was acknowledged that no replica has")
				}
				u.last = before + 10 // it may be there
				if err := p.Kill(syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				<-p.Ended()
				c := u.carrier()
				c.Contents = lost.FromMember
				j, err := c.Failover(t.Context(), Asked{Group: "g", By: "test", Known: known})
				if err != nil || j.Receipt.Verdict != failover.NothingLost {
					t.Fatalf("the failover: %v, %+v", err, j)
				}
				time.Sleep(time.Until(j.Opened.Add(1500 * time.Millisecond))) // a server is not up again sooner
				source, replica := "rpl_semi_sync_source", "rpl_semi_sync_replica"
				if spec == "mariadb" {
					source, replica = "rpl_semi_sync_master", "rpl_semi_sync_slave"
				}
				args := []string{"--loose-" + source + "_enabled=OFF", "--loose-" + replica + "_enabled=OFF", "--read-only=ON"}
				if writes {
					args[2] = "--read-only=OFF"
				}
				if err := p.Start(t.Context(), args...); err != nil {
					t.Fatal(err)
				}
				rows := 0
				if writes {
					rows = 3
				}
				for range rows {
					if !u.write(p, time.Minute) {
						t.Fatal("it takes no writes")
					}
				}
				var r *failover.Receipt
				await.Until(t, func() bool {
					if _, _, err := c.Tend(t.Context(), "g", Tends); err != nil {
						t.Fatal(err)
					}
					list, err := u.room.Journals(context.WithoutCancel(t.Context()), "g")
					if err != nil {
						t.Fatal(err)
					}
					r = list[len(list)-1].Receipt
					return r.Contents != nil
				}, "what it has to be read")
				t.Logf("%s: %s; %d of them were read", r.Verdict, r.Words, len(r.Contents.Transactions))
				if !writes {
					if r.Verdict != failover.NothingLost || !strings.Contains(r.Words, "1 transaction that was never acknowledged") {
						t.Errorf("%s: %s", r.Verdict, r.Words)
					}
					return
				}
				if r.Verdict != failover.Lost || r.Count != uint64(rows) || !strings.Contains(r.Words, "3 transactions lost: "+p.Name+" was started again and took writes, from ") {
					t.Errorf("%s, %d: %s", r.Verdict, r.Count, r.Words)
				}
			})
		}
	}
}
