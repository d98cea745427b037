package carry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/fence"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/semisync/turn"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Prepared is what makes a group ready to be failed over, as a plan.
type Prepared struct {
	Plan change.Plan
	// Lines are what has to stand in option files, by server, as their servers do not keep settings themselves.
	Lines []turn.Lines
	Notes []string
	close []func()
}

// Close ends the connections of the plan.
func (p *Prepared) Close() {
	for _, f := range p.close {
		f()
	}
}

// lines adds what has to stand in the option file of a member.
func (p *Prepared) lines(member string, lines []string) {
	i := slices.IndexFunc(p.Lines, func(l turn.Lines) bool { return l.Server == member })
	if i < 0 {
		i = len(p.Lines)
		p.Lines = append(p.Lines, turn.Lines{Server: member})
	}
	p.Lines[i].Lines = append(p.Lines[i].Lines, lines...)
}

// slowBeat is how seldom a primary may say that it lives before that is changed: a frozen one is noticed only after two of these.
const slowBeat = time.Second

// longTries is for how long a receiver tries to connect at least before that is changed, and seldomRetry how seldom.
const (
	longTries   = time.Hour
	seldomRetry = 10 * time.Second
)

// shortSilence is how early a receiver may connect anew before that is changed, and silenceTime to what: a frozen primary is replaced before.
const (
	shortSilence = 8 * time.Second
	silenceTime  = 10 * time.Second
)

// Prepare plans what makes a group ready to be failed over: replicas hear from the primary often enough, no member takes writes when it starts, and commits wait for
// replicas if the group wants that. Nothing is changed. dir is where journals of semi-sync are kept.
func (c *Carrier) Prepare(ctx context.Context, name, dir string) (*Prepared, error) {
	g, err := c.Room.Group(ctx, name)
	if err != nil {
		return nil, err
	}
	targets, access, err := c.targets(ctx, g)
	if err != nil {
		return nil, err
	}
	t, err := lookAt(ctx, g, targets, c.Limits.Look)
	if err != nil {
		return nil, err
	}
	if i := g.Primary(); i >= 0 {
		if n := &t.Nodes[t.Find(g.Members[i].Name)]; !n.Seen {
			return nil, fault.New(fault.Failed, "risso failover --group "+name, fmt.Errorf("prepare %s: %w: %s, the primary, does not answer: %s", name, ErrRefused, n.Name, n.Unseen.Text))
		}
	}
	p, cut, once := &Prepared{}, "", ": risso group prepare "+name+" once more does"
	for _, m := range g.Members {
		n := &t.Nodes[t.Find(m.Name)]
		if !n.Seen {
			p.Notes = append(p.Notes, m.Name+" does not answer ("+n.Unseen.Text+"), and is left as it is; when it does, risso group prepare "+name+" once more looks at it")
			continue
		}
		refused := len(n.Channels) == 1 && m.Status != group.Faulty && mysql.LoginRefused(n.Channels[0].Channel, n.Channels[0].Tries)
		given := keep.Account{}
		if i := g.Primary(); refused && i >= 0 && followsNode(n, g.Members[i].Address, &t.Nodes[t.Find(g.Members[i].Name)]) && lets(ctx, g, g.Members[i].Name, targets, access.Replication, c.Limits.Look) {
			given = access.Replication
		}
		switch ch := n.Channels; {
		case m.Pointing && len(ch) == 1 && !ch[0].Receiving():
			cut = "the receiver of " + m.Name + " stands, as a change of it was cut off, and is started"
		case given.User != "":
			cut = "the primary does not let " + m.Name + " in, which gets the account of the group"
		case refused:
			p.Notes = append(p.Notes, "the primary does not let "+m.Name+" in, nor, as seen from here, the account of the group: "+setsAccess(name))
		}
		if err := c.prepareMember(ctx, p, g, m, targets, n, given); err != nil {
			p.Close()
			return nil, err
		}
	}
	if g.Policy.SemiSync && cut != "" {
		p.Notes = append(p.Notes, cut+"; whether commits wait for replicas is not looked at before that"+once)
	} else if g.Policy.SemiSync {
		if err := c.prepareSemiSync(ctx, p, g, targets, t, dir); err != nil {
			p.Close()
			return nil, err
		}
	}
	return p, nil
}

// prepareMember plans what one member of a group needs, also by which account it is to log in; without a name: as it does.
func (c *Carrier) prepareMember(ctx context.Context, p *Prepared, g *group.Group, m group.Member, targets map[string]mysql.Target, n *topology.Node, given keep.Account) error {
	secret := map[string]string{} // statements that are shown in other words, as they have a password in them
	exec := func(ctx context.Context, list ...string) error {
		at, err := connect(ctx, m.Name, targets[m.Name], c.Limits.Drain)
		if err != nil {
			return err
		}
		defer at.close()
		for _, what := range list {
			if err := at.c.QuietQuery(ctx, cmp.Or(secret[what], what), nil); err != nil {
				return fmt.Errorf("%s on %s: %w", what, m.Name, err)
			}
		}
		return nil
	}
	statement := func(what, why string) {
		p.Plan = append(p.Plan, change.Step{What: what, Where: "on " + m.Name, Why: why, Do: func(ctx context.Context) error { return exec(ctx, what) }})
	}
	nc, err := connect(ctx, m.Name, targets[m.Name], c.Limits.Look)
	if err != nil {
		return err
	}
	defer nc.close()
	receiver := len(p.Plan)
	if may, err := c.mayPause(ctx, g, targets, nc, n); err != nil {
		return err
	} else if !may {
		p.Notes = append(p.Notes, "how "+m.Name+" receives is left as it is: it has received what it has not applied, would throw that away if it were stopped, and its source's logs do not go back so far; "+
			"risso group prepare "+g.Name+" once more, when it has applied it, looks at that")
	} else if err := prepareReceiver(ctx, p, m, nc, n, given, secret, statement); err != nil {
		return err
	}
	c.atOnce(p.Plan[receiver:], g.Name, m.Name, exec)
	boot, err := fence.Boots(ctx, nc.c)
	if err != nil {
		return fmt.Errorf("ask whether %s would come up writable: %w", m.Name, err)
	}
	if boot.Writable == "no" {
		return nil
	}
	for _, set := range boot.Statements {
		statement(set, "it would take writes when it starts, whoever is the primary then")
	}
	if len(boot.Lines) > 0 {
		p.lines(m.Name, boot.Lines)
	}
	return nil
}

// atOnce lets the last of some steps do all of them, as one that nobody interrupts: a member whose receiver was stopped does not stay so. One that was killed is gone on with by who looks
// after the group, and by the next who prepares it.
func (c *Carrier) atOnce(steps change.Plan, name, member string, exec func(ctx context.Context, list ...string) error) {
	var list []string
	for i := range steps {
		list = append(list, steps[i].What)
		steps[i].Do = func(context.Context) error { return nil }
	}
	if len(steps) == 0 {
		return
	}
	steps[len(steps)-1].Do = func(ctx context.Context) error {
		return c.held(ctx, name, func(ctx, lasting context.Context, g *group.Group) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			lasting, stop := context.WithTimeout(lasting, c.Limits.Drain)
			defer stop()
			pointing := func(is bool) error {
				_, err := c.Room.Change(lasting, name, func(g *group.Group) error {
					if i := g.Find(member); i >= 0 {
						g.Members[i].Pointing = is
					}
					return nil
				})
				return err
			}
			if err := pointing(true); err != nil {
				return err
			}
			if err := exec(lasting, list...); err != nil {
				return err
			}
			return pointing(false)
		})
	}
}

// mayPause reports whether a member loses nothing if its replication is stopped and started: where both threads stand, a MariaDB throws away what it has received and not applied,
// and fetches it again.
func (c *Carrier) mayPause(ctx context.Context, g *group.Group, targets map[string]mysql.Target, nc *node, n *topology.Node) (bool, error) {
	p := g.Primary()
	if nc.c.Server.PointsWhileApplying() || len(n.Channels) != 1 || p < 0 || !n.Unapplied(&n.Channels[0]) {
		return true, nil
	}
	name := g.Members[p].Name
	primary, err := connect(ctx, name, targets[name], c.Limits.Look)
	if err != nil {
		return false, err
	}
	defer primary.close()
	return reachBack(ctx, primary, nc)
}

// prepareReceiver plans that a member hears from its source often, and that it can be stopped at once when it hears nothing any more.
func prepareReceiver(ctx context.Context, p *Prepared, m group.Member, nc *node, n *topology.Node, given keep.Account, secret map[string]string, statement func(what, why string)) error {
	s := nc.c.Server
	ch, err := onlyChannel(ctx, nc.c)
	if err != nil {
		return err
	}
	silence, err := nc.c.Text(ctx, "SELECT /* risso: when does it connect anew? */ @@GLOBAL."+s.Silence())
	if err != nil {
		return err
	}
	seconds, err := strconv.Atoi(silence)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", s.Silence(), m.Name, err)
	}
	whys := receiverNeeds(ch)
	if given.User != "" {
		whys = append(whys, "the primary refuses the account by which it replicates: "+n.Channels[0].IO.Words())
	}
	short := time.Duration(seconds)*time.Second < shortSilence
	stop, start := "", ""
	if len(n.Channels) > 0 && (len(whys) > 0 || short || m.Pointing) {
		stop, start = s.AroundPointing(n.Channels[0].Name)
		statement(stop, "")
	}
	if len(whys) > 0 {
		to := mysql.Pointing{User: given.User, Password: given.Password, Beat: heartbeat, Lasting: true}
		shown := s.Point(n.Channels[0].Name, to.Shown())
		secret[shown] = s.Point(n.Channels[0].Name, to)
		statement(shown, strings.Join(whys, "; "))
	}
	if short {
		value := strconv.Itoa(int(silenceTime.Seconds()))
		statement(s.SetLasting(s.Silence(), value), fmt.Sprintf("it connects anew after %s of silence: while it does that with a primary that is frozen, stopping it takes 2 s", digits.Span(time.Duration(seconds)*time.Second)))
		if !s.KeepsSettings() {
			p.lines(m.Name, []string{s.Silence() + " = " + value})
		}
	}
	if start != "" {
		why := ""
		if m.Pointing {
			why = "it was stopped by somebody who was cut off"
		}
		statement(start, why)
	}
	return nil
}

// receiverNeeds says what is wrong with how a channel receives.
func receiverNeeds(ch *read.ReplicaChannel) (whys []string) {
	if ch == nil {
		return nil
	}
	beat := time.Duration(ch.BeatEvery * float64(time.Second))
	if beat > slowBeat {
		whys = append(whys, fmt.Sprintf("it hears from the primary each %s only: a frozen primary would be noticed after twice that", digits.Span(beat)))
	}
	switch lasts := time.Duration(ch.Tries) * ch.Retry; {
	case ch.Tries > 0 && lasts < longTries:
		whys = append(whys, fmt.Sprintf("it gives up after %d tries to connect, one each %s: when the primary was away for longer, it would not replicate again", ch.Tries, digits.Span(ch.Retry)))
	case ch.Retry > seldomRetry:
		whys = append(whys, fmt.Sprintf("it tries to connect each %s only: when the primary is started again, commits wait for it so long", digits.Span(ch.Retry)))
	}
	return whys
}

// prepareSemiSync plans that commits wait.
func (c *Carrier) prepareSemiSync(ctx context.Context, p *Prepared, g *group.Group, targets map[string]mysql.Target, t *topology.Topology, dir string) error {
	i := g.Primary()
	if i < 0 {
		return fmt.Errorf("prepare %s: %w: it has no primary", g.Name, ErrRefused)
	}
	primary := &t.Nodes[t.Find(g.Members[i].Name)]
	o := turn.Options{Primary: targets[primary.Name], State: dir, Moves: true}
	for _, m := range g.Members {
		switch n := &t.Nodes[t.Find(m.Name)]; {
		case m.Status != group.Secondary && m.Status != group.Spare || !n.Seen:
		case !followsNode(n, g.Members[i].Address, primary) || !n.Channels[0].Receiving():
			p.Notes = append(p.Notes, m.Name+" does not receive from the primary, and is left out of what is done so that commits wait: risso lag says why it does not")
		default:
			o.Replicas = append(o.Replicas, targets[m.Name])
		}
	}
	if need := max(1, primary.SemiSync.WaitFor); len(o.Replicas) < need {
		words := fmt.Sprintf("%s from %s, and %d needed", digits.Plural(len(o.Replicas), "member receives", "members receive"), primary.Name, need)
		words += silentMembers(g, t, primary)
		remedy := acknowledging(g, t, primary)
		switch {
		case remedy != prepares(g):
		case slices.ContainsFunc(t.Nodes, func(n topology.Node) bool {
			return len(n.Channels) == 1 && mysql.LoginRefused(n.Channels[0].Channel, n.Channels[0].Tries)
		}):
			remedy = setsAccess(g.Name)
		default:
			remedy = "risso lag says why they do not"
		}
		if len(p.Plan) == 0 {
			return fault.New(fault.Failed, remedy, fmt.Errorf("prepare %s: %w: %s", g.Name, ErrRefused, words))
		}
		p.Notes = append(p.Notes, "that commits wait for replicas is not seen to: "+words+" ("+remedy+")")
		return nil
	}
	sg, err := turn.Look(ctx, o)
	if err != nil {
		return err
	}
	p.close = append(p.close, sg.Close)
	on, err := sg.On()
	if err != nil {
		return err
	}
	for _, l := range on.Lines {
		for _, m := range g.Members {
			if t := targets[m.Name]; l.Server == cmp.Or(t.Socket(), t.Address()) {
				l.Server = m.Name
			}
		}
		p.lines(l.Server, l.Lines)
	}
	p.Notes = append(p.Notes, on.Notes...)
	for k, s := range on.Plan {
		s.Do = func(context.Context) error { return nil }
		if k == len(on.Plan)-1 { // it keeps its own journal, and goes back as a whole
			s.Do = func(ctx context.Context) error { _, err := on.Run(ctx); return err }
		}
		p.Plan = append(p.Plan, s)
	}
	return nil
}

// Adopt adds a member to a group: it has to replicate from its primary already.
func (c *Carrier) Adopt(ctx context.Context, name, member string, t mysql.Target) (*group.Group, error) {
	g, err := c.Room.Group(ctx, name)
	if err != nil {
		return nil, err
	}
	if g.Find(member) >= 0 {
		return nil, fault.Usagef("%s is a member of %s already", member, name)
	}
	targets, access, err := c.targets(ctx, g)
	if err != nil {
		return nil, err
	}
	targets[member] = t
	wider := *g
	wider.Members = append(append([]group.Member{}, g.Members...), group.Member{Name: member, Address: t.Address()})
	top, err := lookAt(ctx, &wider, targets, c.Limits.Look)
	if err != nil {
		return nil, err
	}
	if no := failover.Twice(top, addresses(&wider, targets)); len(no) > 0 {
		return nil, refused("add "+member+" to "+name, no)
	}
	list, no := failover.Members(top, time.Now().UTC())
	for _, m := range list {
		if m.Name != member {
			continue
		}
		if len(no) == 0 {
			no = CheckReplication(ctx, &group.Group{Members: []group.Member{m}}, targets, access.Replication, c.Limits.Look, member)
		}
		if len(no) > 0 || m.Status == group.Primary {
			break
		}
		if err := c.Room.Elsewhere(ctx, &group.Group{Name: name, Members: []group.Member{m}}); err != nil {
			return nil, err
		}
		access.Members[member] = t.Secret()
		if err := c.Room.SetAccess(ctx, name, access); err != nil {
			return nil, err
		}
		return c.Room.Change(ctx, name, func(g *group.Group) error {
			g.Members = append(g.Members, m)
			g.Sort()
			return nil
		})
	}
	if len(no) == 0 {
		no = []failover.Refusal{failover.NewRefusal("no_replica", "", "%s does not replicate from the primary of %s", member, name)}
	}
	return nil, refused("add "+member+" to "+name, no)
}

// addresses are those at which members are asked, by name.
func addresses(g *group.Group, targets map[string]mysql.Target) map[string]string {
	out := map[string]string{}
	for _, m := range g.Members {
		out[m.Name] = targets[m.Name].Address()
	}
	return out
}
