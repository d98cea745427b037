package carry

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
)

// kept keeps a copy of the data of a node, which is stopped for that; what it returns kills the node, and puts the copy back: its last commits are lost, as in a crash of its machine.
func (u *trio) kept(n *sandbox.Node) (crash func()) {
	u.Helper()
	run := func(args ...string) {
		u.Helper()
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			u.Fatalf("%s: %v: %s", args, err, out)
		}
	}
	copied := n.Datadir + ".kept"
	if err := n.Stop(u.Context()); err != nil {
		u.Fatal(err)
	}
	run("cp", "-a", n.Datadir, copied)
	if err := n.Start(u.Context()); err != nil {
		u.Fatal(err)
	}
	return func() {
		u.Helper()
		if err := n.Kill(syscall.SIGKILL); err != nil {
			u.Fatal(err)
		}
		<-n.Ended()
		run("rm", "-rf", n.Datadir)
		run("mv", copied, n.Datadir)
		if err := n.Start(u.Context(), "--read-only=ON"); err != nil {
			u.Fatal(err)
		}
	}
}

// TestCameBackBehind: a primary lost its last commits in a crash, and came up read-only; its replicas have them. It is not opened, neither by who looks after the group nor by hand, and the
// command that is named lets a replica follow, with all rows.
func TestCameBackBehind(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{Rejoin: true})
			_, old := u.primary()
			if !u.write(old, time.Minute) {
				t.Fatal("the primary takes no write")
			}
			u.complete()
			crash := u.kept(old)
			for _, n := range u.box.Nodes[1:] {
				u.receives(n)
			}
			for range 3 {
				await.Until(t, func() bool { return u.write(old, time.Minute) }, "the primary to take a write")
			}
			u.complete()
			crash()

			for _, care := range []Care{Opens, Tends} {
				did, seen, err := u.carrier().Tend(t.Context(), "g", care)
				if err != nil || len(did) > 0 || seen.Closed == nil || seen.Closed.Opens || !strings.Contains(seen.Closed.Why, "it has lost transactions") {
					t.Fatalf("looked after: did %q, %+v, %v; want that it stays closed", did, seen, err)
				}
			}
			_, err := u.carrier().Open(t.Context(), "g")
			remedy, to, named := strings.Cut(fleet.RemedyOf(err), " --to ")
			if err == nil || remedy != "risso failover --group g" || !named {
				t.Fatalf("opened by hand: %v (%s); want that it is refused", err, fleet.RemedyOf(err))
			}
			f, err := u.carrier().Forecast(t.Context(), Asked{Group: "g", By: "test"})
			if err != nil || fleet.RemedyOf(f.Refused()) != remedy+" --to "+to {
				t.Errorf("a failover to nobody that is named: %v, %v", f.Refused(), err)
			}
			a := Asked{Group: "g", By: "test", To: to}
			if f, err = u.carrier().Forecast(t.Context(), a); err != nil || f.Refused() != nil {
				t.Fatalf("as the remedy says: %v, %v", err, f.Refused())
			}
			a.Known, a.Because = f.Known, f.Because
			c := u.carrier()
			c.Hooks = &publish.Hooks{Docs: u.room.Docs, Now: time.Now, List: []publish.Hook{{Name: "slow", At: []publish.Moment{publish.BeforeFailover}, Command: []string{"/bin/sleep", "3"}, Timeout: time.Minute}}}
			j, err := c.Failover(t.Context(), a)
			if err != nil || j.New != to || j.Receipt.Lost != "" {
				t.Fatalf("as the remedy says: %+v, %v", j, err)
			}
			for range 3 { // it would not get from another server what it wrote itself
				if _, _, err := u.carrier().Tend(t.Context(), "g", Tends); err != nil {
					t.Fatal(err)
				}
				g, _ := u.primary()
				if m := g.Members[g.Find(old.Name)]; m.Status != group.Faulty || !strings.Contains(m.Fault, "risso group rebuild g "+old.Name) {
					t.Fatalf("%s, which lost transactions of its own: got %+v; want that it stays out", old.Name, m)
				}
			}
			u.complete(old.Name)
		})
	}
}
