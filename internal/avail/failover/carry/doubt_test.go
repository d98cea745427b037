package carry

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestDoubtful: a failover is cut off when a member has been opened and nobody was told so, and that member hangs. Another one is promoted; the first is kept from writes as
// an old primary is, and stays out when it goes on.
func TestDoubtful(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{Automatic: true, SemiSync: true, Rejoin: true})
			g, old := u.primary()
			await.Until(t, func() bool { return u.write(old, time.Minute) }, "the primary %s to take a write", old.Name)
			known := u.known()
			if err := old.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			first := u.box.Nodes[1]
			c := sandboxtest.Connect(t, first)
			defer c.Close()
			for _, q := range append(c.Server.StopAll(), c.Server.Open()...) {
				if err := c.Exec(t.Context(), q); err != nil {
					t.Fatalf("%s: %v", q, err)
				}
			}
			if _, err := u.room.Begin(t.Context(), failover.Journal{Group: "g", Epoch: g.Epoch + 1, Kind: failover.Failover, Stage: failover.Promoting, Automatic: true, Old: old.Name, New: first.Name,
				Began: time.Now().UTC(), Known: known, Before: map[string]failover.Was{}}); err != nil {
				t.Fatal(err)
			}
			if err := first.Kill(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = first.Kill(syscall.SIGCONT) })
			next := u.carrier()
			next.Limits.Point = 3 * time.Second // for the one that hangs
			j, err := next.Resume(t.Context(), Asked{Group: "g", By: "test"})
			if err != nil || j == nil || j.New != u.box.Nodes[2].Name || j.Doubtful != first.Name {
				t.Fatalf("got %+v, %v; want that %s is promoted, and %s doubtful", j, err, u.box.Nodes[2].Name, first.Name)
			}
			if !slices.ContainsFunc(j.Steps, func(e failover.Entry) bool {
				return e.Where == first.Name && strings.HasPrefix(e.What, "it could not be kept from writes")
			}) {
				t.Errorf("nobody tried to keep %s from writes: %+v", first.Name, j.Steps)
			}
			if err := first.Kill(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if err := old.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			u.tended()
			c = sandboxtest.Connect(t, first) // the other one was ended
			defer c.Close()
			if now, err := c.Text(t.Context(), "SELECT @@GLOBAL.read_only"); err != nil || now != "1" {
				t.Errorf("%s, which went on: read_only %s, %v", first.Name, now, err)
			}
			u.complete()
		})
	}
}
