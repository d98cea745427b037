package failover

import (
	"context"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/agent"
	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// beside lets an agent stand beside the primary, and the group know of it.
func (s *stage) beside(p *sandbox.Node) {
	s.Helper()
	const token = "shared"
	a := agent.New(agent.Options{Target: sandboxtest.Target(s, p), Group: "g", Member: p.Name, Token: token, TTL: time.Minute, Fence: agent.FenceNever, State: s.TempDir(),
		Tell: func(line string) { s.Log("  agent:", line) }})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	h := httptest.NewServer(a.Handler())
	s.Cleanup(func() {
		h.Close()
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
	access, err := s.room.Access(s.Context(), "g")
	if err != nil {
		s.Fatal(err)
	}
	access.Agents = token
	if err := s.room.SetAccess(s.Context(), "g", access); err != nil {
		s.Fatal(err)
	}
	if _, err := s.room.Change(s.Context(), "g", func(g *group.Group) error {
		g.Policy.AgentPort = h.Listener.Addr().(*net.TCPAddr).Port
		return nil
	}); err != nil {
		s.Fatal(err)
	}
	await.Until(s, func() bool {
		sight := a.Report("").Server
		return sight.Answers && sight.Process != nil && sight.Process.Alive
	}, "the agent to see the process of %s", p.Name)
}

// TestAgentSays: of a primary whose replicas did not receive from it, nobody but its agent can say that it is dead: killed, or frozen. Nothing was written since they had all, so that one of them
// follows it by itself.
func TestAgentSays(t *testing.T) {
	for _, c := range []struct {
		spec   string
		frozen bool
		words  string
	}{{"mariadb", false, "its process is gone"}, {"mysql-9.7", true, "its process is stopped"}} {
		t.Run(c.spec, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, c.spec, 2, group.Policy{Automatic: true, Rejoin: true})
			old, one, two := s.box.Nodes[0], s.box.Nodes[1], s.box.Nodes[2]
			s.beside(old)
			s.watch(failover.DefaultPatience())
			s.rows(old, 2, one, two)
			s.deaf(one, two)
			s.seen(old, one, two)
			if c.frozen {
				defer sandboxtest.Pause(t, old)()
			} else {
				s.kill(old)
			}
			await.Until(t, func() bool { _, p := s.now(); return p != old }, "another primary")
			await.Until(t, func() bool { return s.said("the agent of " + old.Name + ": " + c.words) }, "it to be said what the agent saw")
			await.Until(t, func() bool {
				list, err := s.room.Journals(t.Context(), "g")
				return err == nil && len(list) > 0 && list[len(list)-1].Receipt != nil && strings.Contains(list[len(list)-1].Because, c.words)
			}, "a receipt of a failover for that reason")
		})
	}
}
