package carry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/agent"
	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/state"
)

// agentToken is what agents share with the controllers.
const agentToken = "shared"

// beside answers for an agent, and returns a group with the one member db1 that it stands beside.
func beside(t *testing.T, a *agent.Agent, address string, policy group.Policy) *group.Group {
	t.Helper()
	h := httptest.NewServer(a.Handler())
	t.Cleanup(h.Close)
	policy.AgentPort = h.Listener.Addr().(*net.TCPAddr).Port
	return &group.Group{Name: "g", Policy: policy, Members: []group.Member{{Name: "db1", Address: address, Status: group.Primary}}}
}

// TestOrderAgent: an agent obeys a controller, whether it was started with the name of its member or with the address.
func TestOrderAgent(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb")
	address := fmt.Sprintf("127.0.0.1:%d", n.Port)
	st, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	room := &keep.Room{Docs: st, Who: "test"}
	for i, known := range []string{"db1", address} {
		a := agent.New(agent.Options{Target: sandboxtest.Target(t, n), Group: "g", Member: known, Token: agentToken, Fence: agent.FenceNever, State: t.TempDir(), Tell: func(line string) { t.Log(line) }})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		j, err := room.Begin(t.Context(), failover.Journal{Group: "g", Epoch: uint64(i) + 5})
		if err != nil {
			t.Fatal(err)
		}
		r := &run{Carrier: &Carrier{}, g: beside(t, a, address, group.Policy{}), access: keep.Access{Agents: agentToken}, j: j}
		if !r.orderAgent(t.Context(), "db1") {
			t.Errorf("the agent of %s did not obey: %+v", known, j.Steps)
		}
		if was, err := room.Journal(t.Context(), "g", j.Epoch); err != nil || !was.Ordered {
			t.Errorf("the order is not written down: %+v, %v", was, err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// guarded lets an agent stand beside the primary, which hears from a controller how the group is.
func (u *trio) guarded(p *sandbox.Node) *agent.Agent {
	u.Helper()
	controller := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g, err := u.room.Group(r.Context(), "g")
		if err != nil || g.Primary() < 0 {
			http.Error(w, fmt.Sprint(err), http.StatusServiceUnavailable)
			return
		}
		m := g.Members[g.Primary()]
		_ = json.NewEncoder(w).Encode(group.View{Group: "g", Epoch: g.Epoch, Primary: &group.Server{Name: m.Name, Address: m.Address}})
	}))
	u.Cleanup(controller.Close)
	a := agent.New(agent.Options{Target: sandboxtest.Target(u, p), Group: "g", Member: p.Name, Controllers: []string{controller.URL}, Token: agentToken, TTL: 2 * time.Second,
		Fence: agent.FenceLost, State: u.TempDir(), Tell: func(line string) { u.Log("  agent:", line) }})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	u.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			u.Error(err)
		}
	})
	h := httptest.NewServer(a.Handler())
	u.Cleanup(h.Close)
	access, err := u.room.Access(u.Context(), "g")
	if err != nil {
		u.Fatal(err)
	}
	access.Agents = agentToken
	if err := u.room.SetAccess(u.Context(), "g", access); err != nil {
		u.Fatal(err)
	}
	u.changed(func(g *group.Group) { g.Policy.AgentPort = h.Listener.Addr().(*net.TCPAddr).Port })
	return a
}

// changed changes the group.
func (u *trio) changed(f func(g *group.Group)) {
	u.Helper()
	if _, err := u.room.Change(u.Context(), "g", func(g *group.Group) error { f(g); return nil }); err != nil {
		u.Fatal(err)
	}
}

// stays makes sure that the primary takes writes, as its agent hears that it is it, and goes on to after the agent's TTL.
func (u *trio) stays(a *agent.Agent, p *sandbox.Node) {
	u.Helper()
	var s agent.Standing
	await.Until(u, func() bool { s = a.Standing(); return s.Valid && !s.Fenced && u.write(p, time.Second) }, "the primary to be open: %+v", &s)
	time.Sleep(3 * time.Second)
	if s = a.Standing(); s.Fenced || !u.write(p, time.Minute) {
		u.Fatalf("the primary was open, and takes no writes any more: %+v", s)
	}
}

// TestCountermand: an agent that was ordered to keep a primary from writes lets it take them again when nobody was promoted in its place, or somebody opens it; so does one that heard of
// newer epochs than a state has that was restored.
func TestCountermand(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{})
			_, p := u.primary()
			a := u.guarded(p)
			u.stays(a, p)
			known := u.known()
			goOn := sandboxtest.Pause(t, p)
			j, err := u.carrier().Failover(t.Context(), Asked{Group: "g", By: "test", To: "nobody", Known: known})
			goOn()
			if !errors.Is(err, ErrRefused) || j == nil || j.Stage != failover.Undone || !j.Ordered {
				t.Fatalf("a failover to one that is no member: %v, %+v", err, j)
			}
			u.stays(a, p)

			g, _ := u.primary()
			ordered := g.Epoch + 5
			fenced := func() bool { return a.Standing().Fenced }
			u.changed(func(g *group.Group) { g.Lease.Epoch = ordered })
			if _, err := agent.Order(t.Context(), http.DefaultClient, agentURL(g, p.Name), agentToken, "g", group.Server{Name: p.Name}, ordered); err != nil {
				t.Fatal(err)
			}
			await.Until(t, fenced, "the agent to obey")
			if _, err := u.carrier().Open(t.Context(), "g"); err != nil {
				t.Fatal(err)
			}
			u.stays(a, p)

			g, _ = u.primary()
			u.changed(func(g *group.Group) { g.Epoch += 5 })
			await.Until(t, func() bool { return a.Standing().Epoch == g.Epoch+5 }, "the agent to hear of a newer epoch")
			u.changed(func(now *group.Group) { *now = *g })
			if err := u.room.Resume(t.Context(), time.Now()); err != nil {
				t.Fatal(err)
			}
			await.Until(t, fenced, "the agent to fence what nobody confirms")
			if _, err := u.carrier().Open(t.Context(), "g"); err != nil {
				t.Fatal(err)
			}
			u.stays(a, p)
		})
	}
}

// TestEarly: an agent that would fence only after another server is promoted is told, with what to do, unless it does not fence by that time, or nobody waits for it.
func TestEarly(t *testing.T) {
	const told = "its --ttl is 10 s and the --agent-ttl of the group 3 s: another server would be promoted before it fences; start it with --ttl 3s, or let controllers wait longer: risso group set-policy g --agent-ttl 10s"
	for _, is := range []struct {
		ttl, waits time.Duration
		fence      string
		want       string
	}{
		{10 * time.Second, 3 * time.Second, agent.FenceLost, told},
		{3 * time.Second, 3 * time.Second, agent.FenceLost, ""},
		{2 * time.Second, 3 * time.Second, agent.FenceLost, ""},
		{10 * time.Second, 0, agent.FenceLost, ""},
		{10 * time.Second, 3 * time.Second, agent.FenceDeposed, ""},
	} {
		a := agent.New(agent.Options{Group: "g", Member: "db1", Token: agentToken, Fence: is.fence, TTL: is.ttl})
		list := AskAgents(t.Context(), beside(t, a, "127.0.0.1:3306", group.Policy{Agents: is.waits}), keep.Access{Agents: agentToken})
		if len(list) != 1 || list[0].Report == nil || list[0].Report.TTL != is.ttl || list[0].Error != is.want {
			t.Errorf("%+v: got %+v", is, list)
		}
	}
}

// TestTestifies: an agent's last look at a server that died since says nothing of it, nor does one of an older agent, which does not say when that was.
func TestTestifies(t *testing.T) {
	asked, now := time.Now(), time.Now().Add(time.Hour) // the agent's clock is ahead
	before := func(d time.Duration) time.Time { return now.Add(-d) }
	alive, frozen, gone := &agent.Process{Alive: true}, &agent.Process{Alive: true, Frozen: true}, &agent.Process{}
	for _, c := range []struct {
		what        string
		sight       agent.Sight
		lives, dead bool
		at          time.Duration // before it was asked
	}{
		{"it answers", agent.Sight{Asked: before(200 * time.Millisecond), Answers: true, Process: alive}, true, false, 200 * time.Millisecond},
		{"it is full", agent.Sight{Asked: before(0), Full: true, Process: alive}, true, false, 0},
		{"elsewhere", agent.Sight{Asked: before(0), Answers: true}, true, false, 0},
		{"an older agent", agent.Sight{Answers: true, Process: alive}, false, false, 0},
		{"it answered, and was killed since", agent.Sight{Asked: before(100 * time.Millisecond), Answers: true, Process: gone}, false, false, 0},
		{"it answered, and was frozen since", agent.Sight{Asked: before(100 * time.Millisecond), Answers: true, Process: frozen}, false, false, 0},
		{"killed", agent.Sight{Asked: before(0), Since: before(100 * time.Millisecond), Process: gone}, false, true, 0},
		{"frozen for a moment", agent.Sight{Asked: before(0), Since: before(2 * time.Second), Process: frozen}, false, false, 0},
		{"frozen", agent.Sight{Asked: before(0), Since: before(4 * time.Second), Process: frozen}, false, true, 0},
		{"hangs", agent.Sight{Asked: before(0), Since: before(4 * time.Second), Process: alive, Hangs: true}, false, true, 0},
		{"refuses logins", agent.Sight{Asked: before(0), Since: before(4 * time.Second), Process: alive}, false, false, 0},
		{"not seen from elsewhere", agent.Sight{Asked: before(0), Since: before(time.Hour)}, false, false, 0},
	} {
		c.sight.Written = before(time.Minute)
		x := testifies(agent.Report{Time: now, Server: c.sight}, "db1", asked)
		if x.Lives != c.lives || x.Gone != c.dead || !x.At.Equal(asked.Add(-c.at)) || !x.Wrote.Equal(asked.Add(-time.Minute)) || !x.Beside || x.Gone == (x.Words == "") && !x.Lives {
			t.Errorf("%s: %+v", c.what, x)
		}
	}
}
