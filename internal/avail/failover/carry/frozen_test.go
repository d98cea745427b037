package carry

import (
	"context"
	"errors"
	"reflect"
	"slices"
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
)

// TestFrozenSource holds how receivers of a frozen primary are stopped: without waiting for it where the server has a setting for that, which it has back afterwards, also if
// who shortened it was killed; and that what they received is final then, and the primary that thaws takes no writes.
func TestFrozenSource(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{SemiSync: true})
			g, old := u.primary()
			replica := u.box.Nodes[1]
			c := sandboxtest.Connect(u, replica)
			defer c.Close()
			was := u.farewell(c)
			u.cutOff(g, replica, c, was)

			await.Until(u, func() bool { return u.write(old, time.Minute) }, "the primary %s to take a write", old.Name)
			known := u.known()
			if err := old.Kill(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = old.Kill(syscall.SIGCONT) })
			u.hurries()
			j, err := u.carrier().Failover(t.Context(), Asked{Group: "g", By: "test", Because: "it is frozen", Known: known})
			if err != nil {
				t.Fatal(err)
			}
			var did []string
			for _, e := range j.Steps {
				if e.Where == replica.Name && e.Failed == "" && (strings.HasPrefix(e.What, "SET GLOBAL /* risso: stop") || strings.HasSuffix(e.What, string(mysql.Receiver))) {
					did = append(did, e.What)
				}
			}
			want := []string{c.Server.StopThread("", mysql.Receiver)}
			if was != "" {
				want = []string{c.Server.SetFarewell("1"), want[0], c.Server.SetFarewell(was)}
			}
			if !slices.Equal(did, want) {
				t.Errorf("receiving was stopped by %q, want %q", did, want)
			}
			if now := u.farewell(c); now != was || j.Before[replica.Name].Farewell != "" {
				t.Errorf("%s is %q, and was %q; the journal has %q", c.Server.Farewell(), now, was, j.Before[replica.Name].Farewell)
			}
			_, p := u.primary()
			if p == old || !u.write(p, time.Minute) {
				t.Fatalf("%s does not take writes", p.Name)
			}
		})
	}
}

// hurries holds that nobody waits for a look at a primary that hangs when something has to be done, and that nothing is concluded from it.
func (u *trio) hurries() {
	u.Helper()
	hurry := make(chan struct{})
	c := u.carrier()
	c.Hurry, c.Limits.Look = hurry, time.Hour
	time.AfterFunc(500*time.Millisecond, func() { close(hurry) })
	before, err := u.room.Known(u.Context(), "g")
	if err != nil {
		u.Fatal(err)
	}
	did, seen, err := c.Tend(u.Context(), "g", Tends)
	if !errors.Is(err, context.Canceled) || seen != nil || len(did) > 0 {
		u.Errorf("a look that was cut off says %+v, %q, %v", seen, did, err)
	}
	if now, err := u.room.Known(u.Context(), "g"); err != nil || !reflect.DeepEqual(now, before) {
		u.Errorf("a look that was cut off changed what is known of the primary: %+v (%v), was %+v", now, err, before)
	}
}

// farewell is how long a replica says goodbye to its source; "" where it does not.
func (u *trio) farewell(c *mysql.Conn) string {
	u.Helper()
	if c.Server.Farewell() == "" {
		return ""
	}
	text, err := c.Text(u.Context(), "SELECT @@GLOBAL."+c.Server.Farewell())
	if err != nil {
		u.Fatal(err)
	}
	return text
}

// cutOff lets a process be cut off after it had shortened that: the next one finds in the journal what it was.
func (u *trio) cutOff(g *group.Group, n *sandbox.Node, c *mysql.Conn, was string) {
	u.Helper()
	ctx := u.Context()
	targets, access, err := u.carrier().targets(ctx, g)
	if err != nil {
		u.Fatal(err)
	}
	j, err := u.room.Begin(ctx, failover.Journal{Group: "g", Kind: failover.Failover, Stage: failover.Stopping, Began: time.Now().UTC(), Before: map[string]failover.Was{}})
	if err != nil {
		u.Fatal(err)
	}
	r := &run{Carrier: u.carrier(), g: g, targets: targets, access: access, j: j, nodes: map[string]*node{}}
	defer r.close()
	at, err := r.node(ctx, n.Name)
	if err != nil {
		u.Fatal(err)
	}
	if err := r.shorten(ctx, at); err != nil {
		u.Fatal(err)
	}
	if now := u.farewell(c); was != "" && now != "1" {
		u.Errorf("it was to be shortened to 1, and is %q", now)
	}
	left, err := u.room.Unfinished(ctx, "g")
	if err != nil || left == nil || left.Before[n.Name].Farewell != was {
		u.Fatalf("the journal says %+v (%v), want %q", left, err, was)
	}
	next := &run{Carrier: u.carrier(), g: g, targets: targets, access: access, j: left, nodes: map[string]*node{}}
	next.giveAllBack(ctx)
	if now := u.farewell(c); now != was {
		u.Errorf("it is %q afterwards, and was %q", now, was)
	}
	if err := next.finish(ctx, failover.Undone, ErrSurprise); err == nil {
		u.Error("the end of one that was cut off is no error")
	}
}
