package carry

import (
	"errors"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestStoppedStays: a failover that nobody follows starts the receivers that it stopped, also by way of a process that was cut off, and neither one that somebody had stopped nor that of a member
// that has no channel.
func TestStoppedStays(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{Automatic: true})
			g, old := u.primary()
			stopped, receives := u.box.Nodes[1], u.box.Nodes[2]
			server := sandboxtest.Connect(t, old).Server
			u.receives(receives)
			u.sql(stopped, server.StopThread("", mysql.Receiver))
			await.Until(t, func() bool { return u.channel(stopped).Status.IORunning == "No" }, "%s to receive no more", stopped.Name)
			as := func(j *failover.Journal, err error) {
				t.Helper()
				if !errors.Is(err, ErrRefused) || j == nil || j.Stage != failover.Undone {
					t.Fatalf("a failover to one that is no member: %v, %+v", err, j)
				}
				u.receives(receives)
			}
			stays := func() {
				t.Helper()
				if io := u.channel(stopped).Status.IORunning; io != "No" {
					t.Fatalf("%s, which somebody had stopped, receives: %s", stopped.Name, io)
				}
			}
			as(u.carrier().Failover(t.Context(), Asked{Group: "g", By: "test", To: "nobody", Known: u.known()}))
			stays()

			targets, access, err := u.carrier().targets(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			for epoch, hooked := range []bool{false, true} { // with the second nobody looks whether the old primary is back
				j, err := u.room.Begin(t.Context(), failover.Journal{AcceptLoss: hooked, Group: "g", Epoch: uint64(1<<20 + epoch), Kind: failover.Failover, Stage: failover.Stopping, Old: old.Name, New: "nobody", Began: time.Now().UTC(), Before: map[string]failover.Was{}})
				if err != nil {
					t.Fatal(err)
				}
				killed := &run{Carrier: u.carrier(), g: g, targets: targets, access: access, j: j, nodes: map[string]*node{}}
				killed.stopReceivers(t.Context())
				killed.close()
				if io := u.channel(receives).Status.IORunning; io != "No" {
					t.Fatalf("%s receives still: %s", receives.Name, io)
				}
				c := u.carrier()
				if hooked {
					c.Hooks = &publish.Hooks{Docs: u.room.Docs, Now: time.Now, List: []publish.Hook{{Name: "veto", At: []publish.Moment{publish.BeforeFailover}, Command: []string{"/bin/false"}, Timeout: time.Minute, Required: true}}}
				}
				if j, err := c.Resume(t.Context(), Asked{Group: "g", By: "test"}); hooked {
					as(j, err)
				} else if err != nil || j == nil || j.Stage != failover.Undone {
					t.Fatalf("a failover that was cut off, of a primary that lives: %v, %+v", err, j)
				}
				stays()
			}

			u.sql(stopped, server.StopAll()...)
			as(u.carrier().Failover(t.Context(), Asked{Group: "g", By: "test", To: "nobody", Known: u.known()}))
		})
	}
}
