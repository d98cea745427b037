package carry

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/diagnose"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestGaveUp: a replica whose primary was away for longer than it tries to connect stands until somebody starts it: it is told so, and who looks after the group does it. One that somebody
// stopped meanwhile stays stopped. Who is prepared tries for a day.
func TestGaveUp(t *testing.T) {
	for _, spec := range []string{"mysql-9.7", "mysql-8.0"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{Automatic: true})
			g, p := u.primary()
			if !u.write(p, time.Minute) {
				t.Fatal("the primary takes no write")
			}
			gives, stopped := u.box.Nodes[1], u.box.Nodes[2]
			u.tries(gives, "1", "2")
			if err := p.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			<-p.Ended()
			var top *topology.Topology
			targets, _, err := u.carrier().targets(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			channel := func(n *sandbox.Node) *topology.Channel {
				top, _ = lookAt(t.Context(), g, targets, DefaultLimits().Look)
				list := top.Nodes[top.Find(n.Name)].Channels
				if len(list) != 1 {
					return &topology.Channel{}
				}
				return &list[0]
			}
			gaveUp := func(n *sandbox.Node) bool { ch := channel(n); return mysql.GaveUp(ch.Channel, ch.Tries) }
			await.Until(t, func() bool { return gaveUp(gives) }, "%s to give up", gives.Name)
			await.Until(t, func() bool { return channel(stopped).IO.Text != "" }, "%s to fail to connect", stopped.Name)
			server := sandboxtest.Connect(t, stopped).Server
			u.sql(stopped, server.StopThread("", mysql.Receiver))
			if gaveUp(stopped) {
				t.Errorf("somebody stopped %s: %+v", stopped.Name, channel(stopped).IO)
			}
			if err := p.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			await.Until(t, func() bool { channel(gives); return top.Nodes[top.Find(p.Name)].Seen }, "the primary to answer")
			if !gaveUp(gives) {
				t.Fatalf("%s goes on by itself: there is nothing to mend", gives.Name)
			}
			list := diagnose.Diagnose(top)
			if i := slices.IndexFunc(list, func(d diagnose.Diagnosis) bool {
				return d.Nodes[0] == gives.Name && d.Code == "repl.stopped:cannot_connect"
			}); i < 0 ||
				!strings.Contains(list[i].Next, "it does not try any more by itself") || list[i].Statements != server.StartReplica("") {
				t.Errorf("it is diagnosed: %+v", list)
			}
			did, _, err := u.carrier().Tend(t.Context(), "g", Tends)
			if err != nil || !slices.ContainsFunc(did, func(s string) bool {
				return strings.HasPrefix(s, gives.Name+" had given up to connect to the primary of g")
			}) {
				t.Errorf("it was not started: %q, %v", did, err)
			}
			u.receives(gives)
			if got := u.tried(gives); got.Tries != 86400 || got.Retry != time.Second {
				t.Errorf("%s tries %d times, each %s", gives.Name, got.Tries, got.Retry)
			}
			if channel(stopped).IORunning != "No" {
				t.Errorf("%s was started, which somebody had stopped", stopped.Name)
			}
		})
	}
}

// TestTriesForLong: a preparation lets a receiver that would soon give up, or that tries seldom, try for long, and does nothing to the others.
func TestTriesForLong(t *testing.T) {
	for _, spec := range []string{"mysql-9.7", "mariadb"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{Automatic: true})
			seldom, n := "commits wait for it so long", u.box.Nodes[1]
			u.tries(n, "60", "10")
			if spec != "mariadb" {
				seldom = "it gives up after 10 tries to connect, one each 60 s"
			}
			prepare := func() string {
				p, err := u.carrier().Prepare(t.Context(), "g", t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				for _, step := range p.Plan {
					if err := step.Do(t.Context()); err != nil {
						t.Fatalf("%s: %v", step.What, err)
					}
				}
				return strings.Join(p.Plan.Words(), "\n")
			}
			if plan := prepare(); !strings.Contains(plan, seldom) {
				t.Errorf("the plan: want %q\n%s", seldom, plan)
			}
			for _, n := range u.box.Nodes[1:] {
				u.receives(n)
				if got := u.tried(n); got.Retry != time.Second || spec != "mariadb" && got.Tries != 86400 {
					t.Errorf("%s tries %d times, each %s", n.Name, got.Tries, got.Retry)
				}
			}
			if plan := prepare(); strings.Contains(plan, "CHANGE") {
				t.Errorf("once more:\n%s", plan)
			}
		})
	}
}

// tries lets a node try to connect each so many seconds, and a MySQL give up after so many times.
func (u *trio) tries(n *sandbox.Node, every, count string) {
	u.Helper()
	c := sandboxtest.Connect(u, n)
	defer c.Close()
	stop, start := c.Server.AroundPointing("")
	u.sql(n, stop, strings.NewReplacer("RETRY = 1", "RETRY = "+every, "86400", count).Replace(c.Server.Point("", mysql.Pointing{Lasting: true})), start)
	u.receives(n)
}

// tried is how a channel of a node tries to connect.
func (u *trio) tried(n *sandbox.Node) read.ReplicaChannel {
	u.Helper()
	c := sandboxtest.Connect(u, n)
	defer c.Close()
	ch, err := onlyChannel(u.Context(), c)
	if err != nil || ch == nil {
		u.Fatalf("%s replicates by no channel: %v", n.Name, err)
	}
	return *ch
}
