package carry

import (
	"bytes"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/state"
)

// TestHurry: a group is looked after when its primary freezes: as its members are looked at once more, or as one is pointed at it. When the primary is taken for dead that ends at once, and
// whoever fails over finds the lease free.
func TestHurry(t *testing.T) {
	for _, c := range []struct{ spec, at string }{
		{"mysql-9.7", `"holder":"`},
		{"mysql-9.7", `"pointing":true`},
		{"mariadb", `"pointing":true`},
	} {
		t.Run(c.spec+" "+c.at, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, c.spec, group.Policy{Automatic: true, Rejoin: true})
			_, p := u.primary()
			lost := u.box.Nodes[2]
			u.complete()
			conn := sandboxtest.Connect(t, lost)
			u.sql(lost, conn.Server.StopAll()...) // it is to be pointed at the primary again
			hurry, frozen := make(chan struct{}), make(chan func(), 1)
			carrier := u.carrier()
			carrier.Hurry = hurry
			carrier.Limits.Look, carrier.Limits.Point = time.Minute, time.Minute
			carrier.Room = &keep.Room{Docs: spy{u.room.Docs, func(d state.Document) {
				if bytes.Contains(d.Body, []byte(c.at)) && len(frozen) == 0 {
					frozen <- sandboxtest.Pause(t, p)
				}
			}}, Who: "test"}
			ended := make(chan error, 1)
			go func() {
				_, _, err := carrier.Tend(t.Context(), "g", Tends)
				ended <- err
			}()
			await.Until(t, func() bool { return len(frozen) == 1 || len(ended) == 1 }, "the primary to be frozen")
			select {
			case err := <-ended:
				t.Fatalf("it ended before the primary was taken for dead: %v", err)
			case <-time.After(2 * time.Second):
			}
			begun := time.Now()
			close(hurry)
			if err := <-ended; err != nil {
				t.Errorf("what was cut short is no failure: %v", err)
			}
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("it went on for %s", took)
			}
			g, err := u.room.Group(t.Context(), "g")
			if err != nil || g.Lease.Holder != "" {
				t.Errorf("the lease is not free: %+v, %v", g.Lease, err)
			}
			(<-frozen)()
			u.tended()
			u.complete()
		})
	}
}
