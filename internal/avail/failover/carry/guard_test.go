package carry

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// startOpen starts a node, and lets it take writes, as one does of which nobody said that it must not.
func (u *trio) startOpen(n *sandbox.Node) {
	if err := n.Start(u.Context()); err != nil {
		u.Error(err)
		return
	}
	c, err := mysql.Connect(u.Context(), sandboxtest.Target(u, n), nil)
	if err != nil {
		u.Error(err)
		return
	}
	defer c.Close()
	for _, s := range c.Server.Open() {
		if err := c.Exec(u.Context(), s); err != nil {
			u.Errorf("%s: %v", s, err)
		}
	}
}

// killed lets the primary take a write that all members get, kills it, and returns what was known of it.
func (u *trio) killed(old *sandbox.Node) failover.Known {
	u.Helper()
	if !u.write(old, time.Minute) {
		u.Fatal("the primary takes no write")
	}
	u.complete()
	known := u.known()
	if err := old.Kill(syscall.SIGKILL); err != nil {
		u.Fatal(err)
	}
	<-old.Ended()
	return known
}

// TestComesBackAmid: the old primary comes back while another member is being promoted, and takes writes. It is kept from them before that one takes any, and clients are not told of it.
func TestComesBackAmid(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{Rejoin: true})
			_, old := u.primary()
			known := u.killed(old)
			c, moving, closed := u.carrier(), false, false
			c.step = func(where, statement string) {
				if moving || where == old.Name || !strings.HasPrefix(statement, "RESET ") {
					return
				}
				g, err := u.room.Group(t.Context(), "g")
				if err != nil {
					t.Error(err)
					return
				}
				moving = g.Moving
				u.startOpen(old)
				for end := time.Now().Add(20 * time.Second); !closed && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
					o, err := mysql.Connect(t.Context(), sandboxtest.Target(u, old), nil)
					if err != nil {
						continue
					}
					text, err := o.Text(t.Context(), "SELECT @@GLOBAL.read_only")
					closed = err == nil && text == "1"
					o.Close()
				}
			}
			j, err := c.Failover(t.Context(), Asked{Group: "g", By: "test", Known: known})
			if err != nil || j.New == old.Name {
				t.Fatalf("got %+v, %v; want that another one than %s follows", j, err, old.Name)
			}
			if !moving {
				t.Error("clients would be told of the old primary once it answers")
			}
			if !closed {
				t.Error("the old primary takes writes, while another one is promoted")
			}
			_, now := u.primary()
			if !u.write(now, time.Minute) {
				t.Errorf("%s takes no write", now.Name)
			}
			u.tended()
			u.complete()
		})
	}
}

// TestAnswersAfterHooks: the old primary answers again before anything is done, as a hook took its time: it stays the primary.
func TestAnswersAfterHooks(t *testing.T) {
	t.Parallel()
	u := newTrio(t, "mariadb", group.Policy{})
	_, old := u.primary()
	known := u.killed(old)
	c := u.carrier()
	c.Hooks = &publish.Hooks{Docs: u.room.Docs, Now: time.Now, List: []publish.Hook{{Name: "slow", At: []publish.Moment{publish.BeforeFailover}, Command: []string{"/bin/sleep", "6"}, Timeout: time.Minute}}}
	started := make(chan struct{})
	go func() {
		defer close(started)
		time.Sleep(time.Second) // Failover has looked
		u.startOpen(old)
	}()
	j, err := c.Failover(t.Context(), Asked{Group: "g", By: "test", Known: known})
	<-started
	if !errors.Is(err, ErrRefused) || j == nil || j.Stage != failover.Undone || !strings.Contains(err.Error(), "is not dead") {
		t.Fatalf("got %+v, %v; want a refusal, as it is not dead", j, err)
	}
	if _, p := u.primary(); p != old || !u.write(old, time.Minute) {
		t.Errorf("%s is the primary; want %s, which takes writes", p.Name, old.Name)
	}
	u.complete()
}

// TestEpochNeverGoesBack: a failover is brought to its end after the agent of the old primary was told of a newer epoch. The new primary has one that is newer still: nobody who heard of that would believe
// in it otherwise.
func TestEpochNeverGoesBack(t *testing.T) {
	t.Parallel()
	u := newTrio(t, "mariadb", group.Policy{})
	g, old := u.primary()
	known := u.killed(old)
	told := g.Epoch + 5
	if _, err := u.room.Begin(t.Context(), failover.Journal{Group: "g", Epoch: g.Epoch + 1, Kind: failover.Failover, Stage: failover.Stopping, Automatic: true, Old: old.Name,
		Began: time.Now().UTC(), Known: known, Before: map[string]failover.Was{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := u.room.Change(t.Context(), "g", func(g *group.Group) error { g.Epoch = told; return nil }); err != nil {
		t.Fatal(err)
	}
	j, err := u.carrier().Resume(t.Context(), Asked{Group: "g", By: "test"})
	if err != nil || j == nil || j.Stage != failover.Done {
		t.Fatalf("got %+v, %v; want that it is done", j, err)
	}
	if g, now := u.primary(); g.Epoch <= told || now == old {
		t.Errorf("%s is the primary in epoch %d; want another one than %s, in one after %d", now.Name, g.Epoch, old.Name, told)
	}
}
