package carry

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/state"
)

// closes makes the primary read-only, as somebody does and by a restart: what somebody closed is left alone, and told with the command that opens it; what came up so is
// opened, also in a group that is failed over by hand.
func (u *trio) closes(p *sandbox.Node) {
	u.Helper()
	ctx, c := u.Context(), u.carrier()
	conn := sandboxtest.Connect(u, p)
	shut, open := conn.Server.CloseWrites(), conn.Server.Open()
	conn.Close()
	u.interrupted(p)
	u.preparedInterrupted(p)
	u.sql(p, shut[0])
	did, seen, err := c.Tend(ctx, "g", Tends)
	if err != nil || len(did) != 0 || seen.Closed == nil || seen.Closed.Opens || !strings.Contains(seen.Closed.Why, "somebody made it read-only") {
		u.Fatalf("somebody closed the primary: did %q, %+v, %v", did, seen.Closed, err)
	}
	told := func(what string, err error, want string) {
		u.Helper()
		if err == nil || !strings.Contains(err.Error(), want) || fleet.RemedyOf(err) != "risso group promote g "+p.Name {
			u.Errorf("%s: %v (%s)", what, err, fleet.RemedyOf(err))
		}
	}
	_, err = c.Plan(ctx, Asked{Group: "g"})
	told("a switchover", err, "takes no writes: somebody made it read-only")
	f, err := c.Forecast(ctx, Asked{Group: "g"})
	if err != nil {
		u.Fatal(err)
	}
	told("a failover", f.Refused(), "answers, and takes no writes: somebody made it read-only")
	told("the group's health", f.Unwell(), "takes no writes: somebody made it read-only")
	if words := strings.Join(f.Words(), "\n"); !strings.Contains(words, p.Name+", the primary, takes no writes: somebody") {
		u.Errorf("the forecast: %s", words)
	}

	other := u.box.Nodes[2]
	u.sql(other, open...)
	if _, err := c.Open(ctx, "g"); err == nil || !strings.Contains(err.Error(), other.Name+" takes writes") {
		u.Errorf("opened beside another one that takes writes: %v", err)
	}
	u.sql(other, shut[0])
	if words, err := c.Open(ctx, "g"); err != nil || !strings.Contains(words, p.Name+", the primary of g, takes writes again") || !u.write(p, time.Minute) {
		u.Fatalf("opened by hand: %q, %v", words, err)
	}
	if _, err := c.Open(ctx, "g"); err == nil || !strings.Contains(err.Error(), p.Name+" takes writes") {
		u.Errorf("opened a second time: %v", err)
	}

	restart(u.T, p, "--read-only=ON")
	await.Until(u, func() bool {
		did, seen, err = c.Tend(ctx, "g", Opens)
		return err == nil && len(did) > 0
	}, "the primary to be opened: %v", &err)
	if len(did) != 1 || !strings.Contains(did[0], "came up read-only, and takes writes again") || !seen.Closed.Opens || !u.write(p, time.Minute) {
		u.Errorf("the primary came up read-only: did %q, %+v", did, seen.Closed)
	}
	u.tended()
}

// spy is documents of which each that is written is seen before.
type spy struct {
	documents
	see func(state.Document)
}

func (s spy) PutDocument(ctx context.Context, d state.Document) (state.Document, error) {
	s.see(d)
	return s.documents.PutDocument(ctx, d)
}

// interrupted interrupts switchovers: what became of the group is said, and is so. Where there is no way back it is brought to its end all the same.
func (u *trio) interrupted(p *sandbox.Node) {
	u.Helper()
	for _, c := range []struct{ at, says string }{
		{`"moving":true`, "interrupted; nothing was changed"},
		{`"stage":"draining"`, "interrupted; " + p.Name + " is the primary as before"},
		{"it is the primary", ""},
		{`"stage":"pointing"`, ""},
		{"START ", ""}, // before a member that was pointed at the new primary is started
	} {
		ctx, cancel := context.WithCancel(u.Context())
		carrier, opened := u.carrier(), new(atomic.Bool)
		carrier.Room = &keep.Room{Docs: spy{u.room.Docs, func(d state.Document) {
			if bytes.Contains(d.Body, []byte(c.at)) {
				cancel()
			}
		}}, Who: "test"}
		carrier.step = func(_, statement string) {
			if strings.Contains(statement, c.at) && (opened.Load() || !strings.HasPrefix(c.at, "START")) {
				cancel()
			}
			if strings.Contains(statement, "it is the primary") {
				opened.Store(true)
			}
		}
		j, err := carrier.Switchover(ctx, Asked{Group: "g", By: "test"})
		if ctx.Err() == nil {
			u.Fatalf("it was not interrupted at %s", c.at)
		}
		err = Interrupted(ctx, j, err)
		cancel()
		if err := u.one(); err != nil {
			u.Fatalf("interrupted at %s: %v", c.at, err)
		}
		if c.says != "" {
			if err == nil || err.Error() != c.says || fault.Code(err) != fault.Interrupted || !u.write(p, time.Minute) {
				u.Errorf("interrupted at %s: %v, want %q", c.at, err, c.says)
			}
			continue
		}
		if err != nil || j.Stage != failover.Done || len(j.Verified.Missing) > 0 {
			u.Errorf("interrupted at %s: %v, %s, %+v", c.at, err, j.Stage, j.Verified)
		}
		if _, now := u.primary(); now == p {
			u.Errorf("interrupted at %s: it is the primary still", c.at)
		}
		if _, err := u.carrier().Switchover(u.Context(), Asked{Group: "g", To: p.Name, By: "test"}); err != nil {
			u.Fatal(err)
		}
	}
}

// preparedInterrupted interrupts the preparation of members while the receiver of one is stopped: it is started all the same. One whose preparation was killed is started by who looks after the
// group, or by the next preparation.
func (u *trio) preparedInterrupted(p *sandbox.Node) {
	u.Helper()
	var replica *sandbox.Node
	for _, n := range u.box.Nodes {
		if n != p {
			replica = n
		}
	}
	conn := sandboxtest.Connect(u, replica)
	defer conn.Close()
	s := conn.Server
	stop, start := s.AroundPointing("")
	u.sql(replica, stop, s.Point("", mysql.Pointing{Beat: 30 * time.Second}), start)
	ctx, cancel := context.WithCancel(u.Context())
	defer cancel()
	c := u.carrier()
	c.Room = &keep.Room{Docs: spy{u.room.Docs, func(d state.Document) {
		if bytes.Contains(d.Body, []byte(`"pointing":true`)) {
			cancel()
		}
	}}, Who: "test"}
	plan, err := c.Prepare(u.Context(), "g", u.TempDir())
	if err != nil {
		u.Fatal(err)
	}
	defer plan.Close()
	for _, step := range plan.Plan {
		if ctx.Err() == nil {
			err = step.Do(ctx)
		}
	}
	if ctx.Err() == nil {
		u.Fatalf("it was not interrupted: %s", plan.Plan.Words())
	}
	await.Until(u, func() bool { err = u.one(); return err == nil }, "the receiver to be as before: %v", &err)
	pointing := func() bool {
		g, _ := u.primary()
		return g.Members[g.Find(replica.Name)].Pointing
	}
	if pointing() {
		u.Error("it is said to be pointed at the primary still")
	}

	for _, mend := range []func(){
		func() { u.tended() },
		func() {
			next, err := u.carrier().Prepare(u.Context(), "g", u.TempDir())
			if err != nil {
				u.Fatal(err)
			}
			defer next.Close()
			for _, step := range next.Plan {
				if err := step.Do(u.Context()); err != nil {
					u.Fatalf("%s: %v", step, err)
				}
			}
		},
	} {
		u.sql(replica, stop)
		if _, err := u.room.Change(u.Context(), "g", func(g *group.Group) error {
			g.Members[g.Find(replica.Name)].Pointing = true
			return nil
		}); err != nil {
			u.Fatal(err)
		}
		mend()
		await.Until(u, func() bool { err = u.one(); return err == nil }, "the receiver to be started: %v", &err)
		if pointing() {
			u.Error("it is said to be pointed at the primary still")
		}
	}
}

// restart kills a server, and starts it again.
func restart(t *testing.T, n *sandbox.Node, args ...string) {
	t.Helper()
	if err := n.Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-n.Ended()
	if err := n.Start(t.Context(), args...); err != nil {
		t.Fatal(err)
	}
}

// TestCameUp: of a server that does not tell whether it came up read-only it is known where it was seen to take writes before it was started.
func TestCameUp(t *testing.T) {
	t.Parallel()
	n := sandboxtest.Up(t, "mysql-5.7")
	c := &Carrier{Limits: DefaultLimits()}
	is := func(what string, came, tells bool) {
		t.Helper()
		if gotCame, gotTells, err := c.cameUp(t.Context(), sandboxtest.Target(t, n)); err != nil || gotCame != came || gotTells != tells {
			t.Errorf("%s: came up so %t, tells %t, %v", what, gotCame, gotTells, err)
		}
	}
	before := time.Now()
	restart(t, n, "--read-only=ON")
	is("nobody saw it open", false, false)
	c.Opened = before
	is("it was open before it was started", true, true)
	conn := sandboxtest.Connect(t, n)
	defer conn.Close()
	await.Until(t, func() bool { up, err := mysql.UpFor(t.Context(), conn); return err == nil && up > 2*time.Second }, "it to run for three seconds")
	c.Opened = time.Now()
	is("it was open since it was started", false, true)
}

// takenBack: a switchover that was cut off while writes stood still is told by all that is asked, with the command that goes on; that takes it back, and is no failure.
func (u *trio) takenBack(p *sandbox.Node) {
	u.Helper()
	ctx, c := u.Context(), u.carrier()
	for _, held := range []bool{true, false} {
		if !held {
			if _, err := u.room.Change(ctx, "g", func(g *group.Group) error { g.Lease.For, g.Lease.Until = time.Millisecond, time.Now(); return nil }); err != nil {
				u.Fatal(err)
			}
		}
		want := map[bool]string{true: "is under way, or was cut off", false: "was cut off"}[held]
		f, err := c.Forecast(ctx, Asked{Group: "g"})
		if err != nil {
			u.Fatal(err)
		}
		_, planned := c.Plan(ctx, Asked{Group: "g"})
		for what, err := range map[string]error{"a switchover": planned, "a failover": f.Refused(), "the group's health": f.Unwell()} {
			if err == nil || !strings.HasSuffix(err.Error(), want) || !strings.HasPrefix(fleet.RemedyOf(err), "risso failover resume --group g ") {
				u.Errorf("%s, amid a switchover, held %t: %v (%s)", what, held, err, fleet.RemedyOf(err))
			}
		}
	}
	j, err := c.Resume(ctx, Asked{Group: "g", By: "test"})
	if err != nil || j.Stage != failover.Undone || !strings.Contains(j.Problem, p.Name+" is the primary as before") || !u.write(p, time.Minute) {
		u.Errorf("taken back: %v, %+v", err, j)
	}
}
