package carry

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/agent"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
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
	for i, known := range []string{"db1", address} {
		a := agent.New(agent.Options{Target: sandboxtest.Target(t, n), Group: "g", Member: known, Token: agentToken, Fence: agent.FenceNever, State: t.TempDir(), Tell: func(line string) { t.Log(line) }})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		j := &keep.Journal{}
		j.Epoch = uint64(i) + 5
		r := &run{Carrier: &Carrier{}, g: beside(t, a, address, group.Policy{}), access: keep.Access{Agents: agentToken}, j: j}
		if !r.orderAgent(t.Context(), "db1") {
			t.Errorf("the agent of %s did not obey: %+v", known, j.Steps)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
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
