package carry

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
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
				u, p, c, j := lone(t, spec)
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

// lone fails a group over from a primary that has a transaction which nobody else has, and which it acknowledged to nobody.
func lone(t *testing.T, spec string) (u *trio, p *sandbox.Node, c *Carrier, j *failover.Journal) {
	u = newTrio(t, spec, group.Policy{Automatic: true, SemiSync: true})
	_, p = u.primary()
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
	c = u.carrier()
	c.Contents = lost.FromMember
	j, err := c.Failover(t.Context(), Asked{Group: "g", By: "test", Known: known})
	if err != nil || j.Receipt.Verdict != failover.NothingLost {
		t.Fatalf("the failover: %v, %+v", err, j)
	}
	return u, p, c, j
}

// TestReadAgain: binary logs of the old primary that could not be read when it came back are read later.
func TestReadAgain(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			u, p, c, _ := lone(t, spec)
			if err := p.Start(t.Context(), "--loose-rpl_semi_sync_source_enabled=OFF", "--loose-rpl_semi_sync_master_enabled=OFF", "--read-only=ON"); err != nil {
				t.Fatal(err)
			}
			logs := sandboxtest.Connect(t, p)
			list, err := mysql.Logs(t.Context(), logs)
			if err != nil || len(list) < 2 {
				t.Fatalf("%v, %v", list, err)
			}
			name := filepath.Join(p.Datadir, list[len(list)-2].Name) // the one that it wrote when it died
			if err := os.Rename(name, name+".away"); err != nil {
				t.Fatal(err)
			}
			receipt := func() *failover.Receipt {
				list, err := u.room.Journals(t.Context(), "g")
				if err != nil {
					t.Fatal(err)
				}
				return list[len(list)-1].Receipt
			}
			told := func() []string {
				did, _, err := c.Tend(t.Context(), "g", Tends)
				if err != nil {
					t.Fatal(err)
				}
				return did
			}
			await.Until(t, func() bool { told(); return receipt().Contents != nil }, "its logs to be tried")
			r := receipt()
			if !r.Contents.Missed() || r.Verdict == failover.Lost {
				t.Fatalf("%s: %s; %+v", r.Verdict, r.Words, r.Contents)
			}
			t.Log(r.Contents.Unseen)
			if err := os.Rename(name+".away", name); err != nil {
				t.Fatal(err)
			}
			if did := told(); len(did) > 0 || !receipt().Contents.Missed() {
				t.Errorf("they were tried again at once: %v", did)
			}
			if _, err := u.room.Change(t.Context(), "g", func(g *group.Group) error { // a minute later
				m := &g.Members[g.Find(p.Name)]
				if m.Unread.IsZero() {
					return errors.New("it is not noted that they could not be read")
				}
				m.Unread = m.Unread.Add(-unreadAgain)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			did := told()
			if r := receipt(); len(did) != 1 || !strings.Contains(did[0], "could be read now: risso receipt --group g shows") || len(r.Contents.Transactions) != 1 || r.Verdict != failover.NothingLost {
				t.Errorf("%v; %s: %s; %+v", did, r.Verdict, r.Words, r.Contents)
			}
			if did := told(); len(did) > 0 {
				t.Errorf("once more: %v", did)
			}
		})
	}
}
