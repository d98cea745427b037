package carry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/fence"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// This file makes the statements of a plan, by what makes those that are executed.

// shutting are the statements by which a primary that hands over takes no writes.
func shutting(old *topology.Node) []change.Step {
	s := mysql.Of(old.Server)
	list := fence.Statements(s, fence.Options{Hold: true})
	if strings.EqualFold(old.Settings[scheduler], "ON") {
		list = append(list, fence.NoEvents)
	}
	var steps []change.Step
	for i, what := range list {
		step := change.Step{What: what, Where: "on " + old.Name}
		switch {
		case i == 0:
			step.Why = "writes stand still from here"
		case strings.HasPrefix(what, "KILL"):
			step.Why = "whose statement goes on for longer than " + grace.String()
		case what == fence.Lock:
			step.Why = "also those whom read_only does not keep from writes; until clients know who is the primary, and then the sessions that wait are ended"
		}
		steps = append(steps, step)
	}
	return steps
}

// reopening are the statements by which a member gets back what it had when it was kept from writes.
func reopening(g *group.Group, n *topology.Node) []string {
	i := g.Find(n.Name)
	if i < 0 || len(g.Members[i].Fenced) == 0 {
		return nil
	}
	was, err := fencedState(&g.Members[i], g.Policy.SemiSync)
	if err != nil {
		return nil // promoting says so
	}
	return fence.UndoStatements(mysql.Of(n.Server), was)
}

// fencedState is what a member had before it was kept from writes; without how its commits waited for replicas, where that is set anew.
func fencedState(m *group.Member, waits bool) (was fence.State, err error) {
	if err := json.Unmarshal(m.Fenced, &was); err != nil {
		return was, fmt.Errorf("read how %s was before it was kept from writes: %w", m.Name, err)
	}
	if waits {
		was.SemiSync = ""
	}
	return was, nil
}

// waitsForNone lets commits of a server wait for no replica, by the variable that switches that on.
func waitsForNone(enabled string) string {
	return "SET GLOBAL /* risso: nobody replicates from it */ " + enabled + " = OFF"
}

// letsAcknowledge lets a server acknowledge what it receives, likewise.
func letsAcknowledge(enabled string) string {
	return "SET GLOBAL /* risso: it acknowledges what it receives */ " + enabled + " = ON"
}

// pointingTo points a channel at a server.
func pointingTo(host string, port int) mysql.Pointing {
	return mysql.Pointing{Host: host, Port: port, Beat: heartbeat, Lasting: true}
}

// following plans that a member follows the winner of a plan. It connects to the member, and to the winner as replicas do.
func (c *Carrier) following(ctx context.Context, p *Planned, targets map[string]mysql.Target, access keep.Access, name string) (steps []change.Step) {
	step := func(why, what string) {
		steps = append(steps, change.Step{What: what, Where: "on " + name, Why: why})
	}
	i := p.topology.Find(name)
	to := p.Group.Members[p.Group.Find(p.Choice.Winner)].Address
	host, text, err := net.SplitHostPort(to)
	port, perr := strconv.Atoi(text)
	if i < 0 || !p.topology.Nodes[i].Seen || err != nil || perr != nil {
		step("it does not answer: it is pointed there when it does", "replicate from "+to)
		return steps
	}
	n := &p.topology.Nodes[i]
	s, semi := mysql.Of(n.Server), &n.SemiSync
	var list []read.ReplicaChannel
	at, err := connect(ctx, name, targets[name], c.Limits.Look)
	if err == nil {
		defer at.close()
		list, err = read.ReplicaChannels(ctx, at.c)
	}
	if err != nil || len(list) > 1 {
		step("how it replicates cannot be asked", "replicate from "+to)
		return steps
	}
	if name != p.Old && n.Writes.Open() {
		step("it is a replica", s.Shut())
	}
	fenced := name == p.Old || len(p.Group.Members[p.Group.Find(name)].Fenced) > 0 // by then
	if semi.SourceEnabled && (p.Group.Policy.SemiSync || fenced) {
		step("", waitsForNone(semi.SourceSetting))
	}
	r := &run{Carrier: c, g: p.Group, targets: targets, access: access, j: &keep.Journal{Journal: failover.Journal{Old: p.Old, New: p.Choice.Winner}}}
	channel := ""
	switch {
	case len(list) == 1 && list[0].GTID && list[0].User != "":
		channel = list[0].Name
		step("when it has applied what it received", s.StopReplica(channel))
		to := pointingTo(host, port)
		if r.known(ctx, &list[0]) {
			to.User, to.Password = access.Replication.User, access.Replication.Password
		}
		step("", s.Point(channel, to.Shown()))
	default:
		if len(list) == 1 {
			step("when it has applied what it received", s.StopReplica(list[0].Name))
		} else if demote := s.Demote(); demote != "" {
			step("", demote)
		}
		step("", s.Follow(mysql.Following{Host: host, Port: port, User: access.Replication.User, Password: "…", Heartbeat: heartbeat, TLS: r.secure(ctx, name)}))
	}
	if p.Group.Policy.SemiSync && semi.ReplicaSetting != "" && !semi.ReplicaEnabled {
		step("", letsAcknowledge(semi.ReplicaSetting))
	}
	step("", s.StartReplica(channel))
	steps[0].Why = cmp.Or(steps[0].Why, "it replicates from "+p.Choice.Winner+" from here")
	return steps
}

// steps are the plan, as it is printed.
func (c *Carrier) steps(ctx context.Context, p *Planned, targets map[string]mysql.Target, access keep.Access) {
	step := func(where, why string, what ...string) {
		for _, w := range what {
			p.Plan = append(p.Plan, change.Step{What: w, Where: "on " + where, Why: why})
		}
	}
	t, outs := p.topology, failover.Outs(p.Choice.Out)
	old, winner := &t.Nodes[t.Find(p.Old)], &t.Nodes[t.Find(p.Choice.Winner)]
	s := mysql.Of(winner.Server)
	if seconds := delayOf(t, winner.Name); seconds > 0 {
		step(winner.Name, "it stays "+digits.Span(time.Duration(seconds)*time.Second)+" behind no more; writes go on", strings.Split(s.SetReplicaDelay(winner.Channels[0].Name, 0), "; ")...)
		step(winner.Name, "until it has caught up, "+digits.Span(catchUps*c.Limits.Drain)+" at most; else it has its delay back, and nothing else is changed", "wait")
	}
	p.Plan = append(p.Plan, shutting(old)...)
	step(winner.Name, "until it has applied all of "+old.Name, "wait")
	step(winner.Name, "", s.StopAll()...)
	waiting, words := planWaits(p.Group, t, KnownOf(p.Group, t, p.Old), winner.Name, outs...)
	step(winner.Name, "before it takes writes", waiting...)
	if words != "" {
		p.Notes = append(p.Notes, words)
	}
	back := reopening(p.Group, winner)
	step(winner.Name, "as it was before it was kept from writes", back...)
	step(winner.Name, "writes go on from here", s.Open()...)
	p.Plan = append(p.Plan, change.Step{What: "tell clients", Where: "that " + winner.Name + " is the primary"})
	events := slices.DeleteFunc(slices.Clone(p.events), func(what string) bool { // it was done by then
		return what == mysql.SetScheduler("ON") && slices.ContainsFunc(back, func(s string) bool { return strings.Contains(s, scheduler) })
	})
	step(winner.Name, "events run there from here", events...)
	for _, m := range p.Group.Members {
		if m.Name != p.Choice.Winner && m.Status != group.Faulty && !slices.Contains(outs, m.Name) {
			p.Plan = append(p.Plan, c.following(ctx, p, targets, access, m.Name)...)
		}
	}
	stepsOut(step, p.Choice.Out)
	p.Plan = append(p.Plan, verifying(p.Group, winner.Name)...)
}
