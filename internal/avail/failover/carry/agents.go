package carry

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/avail/agent"
	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/digits"
)

// agentTime is how long an agent may take to answer.
const agentTime = 1500 * time.Millisecond

// agentURL is where the agent of a member is asked; "": it has none.
func agentURL(g *group.Group, name string) string {
	i := g.Find(name)
	if i < 0 || g.Policy.AgentPort == 0 {
		return ""
	}
	host, _, err := net.SplitHostPort(g.Members[i].Address)
	if err != nil {
		return ""
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(g.Policy.AgentPort))
}

// orderAgent lets the agent beside a member keep it from writes, as it may reach that where this process does not; true: it proved that it did.
func (r *run) orderAgent(ctx context.Context, name string) bool {
	at := agentURL(r.g, name)
	if at == "" || r.access.Agents == "" {
		return false
	}
	member := group.Server{Name: name, Address: r.g.Members[r.g.Find(name)].Address}
	if err := r.ordering(ctx); err != nil {
		r.words(name, "its agent is not asked to keep it from writes: %v", err)
		return false
	}
	ctx, stop := context.WithTimeout(ctx, agentTime)
	defer stop()
	res, err := agent.Order(ctx, http.DefaultClient, at, r.access.Agents, r.g.Name, member, r.j.Epoch)
	if err != nil {
		r.words(name, "its agent could not keep it from writes: %v", err)
		return false
	}
	r.words(name, "its agent: %s", res.Words())
	return res.Proven
}

// ordering writes down that an agent is given an order, before that is done: who takes the change back has to tell that agent of a newer epoch.
func (r *run) ordering(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.j.Ordered {
		return nil
	}
	r.j.Ordered = true
	return unwritten(r.j.Save(ctx))
}

// countermand tells the agent of the old primary, by a newer epoch, that its server is the primary as before. Where another member takes writes by now it stays closed.
func (r *run) countermand(ctx context.Context) error {
	if !r.j.Ordered || r.j.Old == "" {
		return nil
	}
	if err := r.alone(ctx, r.j.Old, false); err != nil {
		return err
	}
	return r.confirm(ctx, r.j.Old, r.j.Epoch+1)
}

// confirm lets a member be the primary, as it is, in a newer epoch: an agent that obeyed an order, or that heard of a newer epoch than the group has since an older state was
// restored, believes nothing else.
func (r *run) confirm(ctx context.Context, member string, epoch uint64) error {
	g, err := r.Room.Change(ctx, r.g.Name, func(g *group.Group) error {
		if !r.mine(g) {
			return ErrLost
		}
		if i := g.Primary(); i >= 0 && g.Members[i].Name == member {
			g.Epoch = max(g.Epoch, epoch)
		}
		return nil
	})
	if err == nil {
		r.g = g
	}
	return err
}

// AgentSaid is what the agent of a member tells.
type AgentSaid struct {
	Member string        `json:"member"`
	Report *agent.Report `json:"report,omitempty"`
	Error  string        `json:"error,omitempty"`
}

// early says that another server would be promoted before an agent has fenced the old primary; "": it would not, or nobody waits for agents. The times do not matter where that agent
// does not fence by them.
func early(g *group.Group, r agent.Report) string {
	ttl := g.Policy.Agents
	if ttl == 0 || r.TTL <= ttl || r.Standing.Fence != agent.FenceLost {
		return ""
	}
	return fmt.Sprintf("its --ttl is %s and the --agent-ttl of the group %s: another server would be promoted before it fences; start it with --ttl %s, or let controllers wait longer: risso group set-policy %s --agent-ttl %s",
		digits.Span(r.TTL), digits.Span(ttl), digits.Duration(ttl), g.Name, digits.Duration(r.TTL))
}

// Beside asks the agent of a member what it sees of its server; false: there is none, or it does not answer.
func Beside(ctx context.Context, g *group.Group, access keep.Access, name string) (failover.Testimony, bool) {
	at := agentURL(g, name)
	if at == "" || access.Agents == "" {
		return failover.Testimony{}, false
	}
	asked := time.Now()
	r, err := agent.Look(ctx, http.DefaultClient, at, access.Agents)
	if err != nil || r.Group != g.Name || r.Member != name && r.Member != g.Members[g.Find(name)].Address {
		return failover.Testimony{}, false
	}
	return testifies(r, name, asked), true
}

// stillFor is for how long a server answers nothing that is said to stand still.
const stillFor = 3 * time.Second

// testifies is what the report of an agent says of its server. Its clock is not this one's: only how long ago something was counts. That a server answered is from its last look, which
// may have been before the server died; its process is looked at as it is asked.
func testifies(r agent.Report, name string, asked time.Time) failover.Testimony {
	ago := func(t time.Time) time.Duration { return max(0, r.Time.Sub(t)) }
	s := r.Server
	works := s.Process == nil || s.Process.Alive && !s.Process.Frozen
	t := failover.Testimony{Who: "the agent of " + name, Beside: true, At: asked, Lives: (s.Answers || s.Full) && works && !s.Asked.IsZero()}
	if !s.Written.IsZero() {
		t.Wrote = asked.Add(-ago(s.Written))
	}
	switch {
	case t.Lives:
		t.At, t.Words = asked.Add(-ago(s.Asked)), "it answers there"
	case s.Process == nil || s.Answers: // it is not on the agent's machine; or its next look will tell
	case !s.Process.Alive:
		t.Gone, t.Words = true, "its process is gone"
	case ago(s.Since) < stillFor:
	case s.Process.Frozen:
		t.Gone, t.Words = true, "its process is stopped"
	case s.Hangs:
		t.Gone, t.Words = true, "it takes connections, and answers none for "+digits.Span(ago(s.Since).Round(100*time.Millisecond))
	}
	return t
}

// AskAgents asks the agents of a group what they see.
func AskAgents(ctx context.Context, g *group.Group, access keep.Access) (list []AgentSaid) {
	for _, m := range g.Members {
		at := agentURL(g, m.Name)
		if at == "" || access.Agents == "" {
			continue
		}
		actx, stop := context.WithTimeout(ctx, agentTime)
		said := AgentSaid{Member: m.Name}
		if r, err := agent.Look(actx, http.DefaultClient, at, access.Agents); err != nil {
			said.Error = err.Error()
		} else {
			said.Report, said.Error = &r, early(g, r)
		}
		stop()
		list = append(list, said)
	}
	return list
}
