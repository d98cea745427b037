package carry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/fence"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Resume brings a change that was cut off to its end, or takes it back: its stage is Undone then. A nil journal: there is none.
func (c *Carrier) Resume(ctx context.Context, a Asked) (*failover.Journal, error) {
	var out *failover.Journal
	err := c.held(ctx, a.Group, func(ctx, lasting context.Context, g *group.Group) error {
		j, err := c.Room.Unfinished(ctx, a.Group)
		if err != nil || j == nil {
			return err
		}
		r, err := c.run(ctx, g)
		if err != nil {
			return err
		}
		defer r.close()
		out, r.j, r.lasting = &j.Journal, j, lasting
		r.words("", "%s goes on with it", c.Holder)
		return r.resume(ctx)
	})
	return out, err
}

// Resuming is what would be done to a change that was cut off.
type Resuming struct {
	Journal *failover.Journal
	Words   string // what becomes of it
	Plan    change.Plan
	Notes   []string
}

// PlanResume says what Resume would do, and changes nothing; nil: nothing was cut off.
func (c *Carrier) PlanResume(ctx context.Context, a Asked) (*Resuming, error) {
	g, err := c.Room.Group(ctx, a.Group)
	if err != nil {
		return nil, err
	}
	j, err := c.Room.Unfinished(ctx, a.Group)
	if err != nil || j == nil {
		return nil, err
	}
	out := &Resuming{Journal: &j.Journal}
	if g.Lease.Holder != "" {
		out.Notes = append(out.Notes, HolderWords(g.Lease.Holder)+" may be at work on it: it is awaited whether that one lives")
	}
	targets, access, err := c.targets(ctx, g)
	if err != nil {
		return nil, err
	}
	t, err := lookAt(ctx, g, targets, c.Limits.Look)
	if err != nil {
		return nil, err
	}
	what, to, i := changeOf(j)+" and was cut off", t.Find(j.New), g.Primary()
	known, published := to >= 0 && t.Nodes[to].Seen, i >= 0 && g.Members[i].Name == j.New
	switch {
	case j.Stage == failover.Published || j.Stage == failover.Pointing || j.Stage == failover.Promoting && (published || known):
		out.Words = what + " is brought to its end"
		if j.Stage == failover.Promoting && !published {
			out.promoteAgain(j.New, mysql.Of(t.Nodes[to].Server))
		}
		out.conclude(g, j)
	case j.Stage == failover.Promoting && j.Kind == failover.Switchover:
		return nil, fault.New(fault.Failed, "start it, and ask again", fmt.Errorf("%w: %s may be the primary already, and cannot be asked", ErrRefused, j.New))
	case j.Kind == failover.Switchover:
		out.Words = what + " is taken back"
		out.takeBack(g, j, t)
	default:
		why, err := c.returned(ctx, g, j, targets, access)
		if err != nil {
			return nil, err
		}
		if why != "" {
			out.Words = fmt.Sprintf("%s is taken back: nobody was promoted, and of %s it is known that %s", what, j.Old, why)
			return out, nil
		}
		out.Words = what + " is done again"
		return out, c.planAgain(ctx, out, g, j)
	}
	return out, nil
}

// step adds steps on a server.
func (p *Resuming) step(where, why string, what ...string) {
	for _, w := range what {
		p.Plan = append(p.Plan, change.Step{What: w, Where: "on " + where, Why: why})
	}
}

// promoteAgain are the steps of a promotion that may have been begun.
func (p *Resuming) promoteAgain(name string, s mysql.Server) {
	p.step(name, "", s.StopAll()...)
	p.step(name, "writes go on from here", s.Open()...)
	p.Plan = append(p.Plan, change.Step{What: "tell clients", Where: "that " + name + " is the primary"})
}

// conclude are the steps after clients were told.
func (p *Resuming) conclude(g *group.Group, j *keep.Journal) {
	if i := g.Find(j.New); i >= 0 {
		for _, m := range g.Members {
			if m.Name != j.New && m.Status != group.Faulty && (m.Name != j.Old || j.Kind == failover.Switchover) {
				p.step(m.Name, "", "replicate from "+g.Members[i].Address)
			}
		}
	}
	p.Plan = append(p.Plan, verifying(g, j.New)...)
}

// takeBack are the steps by which the old primary takes writes again.
func (p *Resuming) takeBack(g *group.Group, j *keep.Journal, t *topology.Topology) {
	seen := func(name string) (mysql.Server, bool) {
		i := t.Find(name)
		if i < 0 || !t.Nodes[i].Seen {
			p.Notes = append(p.Notes, name+" does not answer")
			return mysql.Server{}, false
		}
		return mysql.Of(t.Nodes[i].Server), true
	}
	n, answers := seen(j.New)
	if answers {
		p.step(j.New, "never two take writes", n.Shut())
	}
	i := g.Find(j.Old)
	if i >= 0 && len(g.Members[i].Fenced) > 0 {
		p.step(j.Old, "", "set back what it had before it was kept from writes")
	}
	if old, ok := seen(j.Old); ok {
		p.step(j.Old, "writes go on from here, as before", old.Open()...)
	}
	if answers && i >= 0 {
		p.step(j.New, "", "replicate from "+g.Members[i].Address)
	}
}

// planAgain adds the steps of a failover that is done again.
func (c *Carrier) planAgain(ctx context.Context, p *Resuming, g *group.Group, j *keep.Journal) error {
	a := Asked{Group: j.Group, Known: j.Known, AcceptLoss: j.AcceptLoss}
	if !j.Automatic && j.Stage != failover.Promoting && g.Find(j.New) >= 0 {
		a.To = j.New
	}
	f, err := c.Forecast(ctx, a)
	if err != nil {
		return err
	}
	f.cutOff = nil // it is the one that is gone on with
	p.Plan, p.Notes = f.Plan, append(p.Notes, f.Words()...)
	return f.Refused()
}

// Ended is a change that another process ended, while this one waited for the lease that it needs to go on with it; one that is at work is waited for, for as long as
// a lease holds. nil: nobody ended it.
func (c *Carrier) Ended(ctx context.Context, group string, epoch uint64) (*failover.Journal, error) {
	for end := time.Now().Add(c.Limits.Lease); ; {
		j, err := c.Room.Journal(ctx, group, epoch)
		if err != nil {
			return nil, err
		}
		if j.Final() {
			return &j.Journal, nil
		}
		if time.Now().After(end) {
			return nil, nil
		}
		if err := delay.For(ctx, leaseLook); err != nil {
			return nil, err
		}
	}
}

// EndWords says how a change of the primary ended, and who ended it. primary is who is it now; "": nobody.
func EndWords(j *failover.Journal, primary string) string {
	change, now := string(j.Kind), "the group has no primary"
	if j.New != "" {
		change += " to " + j.New
	}
	if primary != "" {
		now = primary + " is the primary of " + j.Group
	}
	by := HolderWords(j.EndedBy)
	switch j.Stage {
	case failover.Done:
		return fmt.Sprintf("%s brought the %s that was cut off to its end meanwhile: %s", by, change, now)
	case failover.Undone:
		if primary == j.Old && primary != "" {
			now += " as before"
		}
		return fmt.Sprintf("%s took the %s that was cut off back meanwhile: %s", by, change, now)
	}
	return fmt.Sprintf("%s could neither finish the %s that was cut off nor take it back: %s; %s", by, change, j.Problem, now)
}

// resume goes on with a journal.
func (r *run) resume(ctx context.Context) error {
	r.giveAllBack(ctx)
	switch r.j.Stage {
	case failover.Published, failover.Pointing:
		ctx, done := r.past(ctx)
		defer done()
		defer r.guard()()
		return r.conclude(ctx)
	case failover.Promoting:
		return r.promoteAgain(ctx)
	}
	if r.j.Kind == failover.Switchover {
		r.words("", "it was cut off before it promoted anybody, and is taken back")
		return r.takeBack(ctx, fmt.Errorf("%w: it was cut off", ErrSurprise))
	}
	return r.failoverAgain(ctx)
}

// returned says why a failover that was cut off, and had promoted nobody, is not done again: the old primary answers by now, and may have taken writes since. "": it does not, or
// it is to be replaced although it answers.
func (c *Carrier) returned(ctx context.Context, g *group.Group, j *keep.Journal, targets map[string]mysql.Target, access keep.Access) (string, error) {
	if j.AcceptLoss || j.Doubtful != "" || g.Find(j.Old) < 0 {
		return "", nil
	}
	t, err := lookAt(ctx, g, targets, c.Limits.Look)
	if err != nil {
		return "", err
	}
	if i := t.Find(j.Old); i < 0 || !t.Nodes[i].Seen {
		return c.lives(ctx, g, t, j.Old, targets, access), ctx.Err()
	}
	if c.full(ctx, g, t, targets) != "" {
		return "", nil
	}
	if closed := c.closed(ctx, g, t, targets); closed != nil && closed.ahead != "" { // it lost what members have
		return "", nil
	}
	return "it answers again", nil
}

// takeFailoverBack ends a failover that was cut off, and had promoted nobody.
func (r *run) takeFailoverBack(ctx context.Context, why string) error {
	bctx, stop := context.WithTimeout(context.WithoutCancel(ctx), r.Limits.Point)
	defer stop()
	r.words(r.j.Old, "%s, and nobody was promoted: the failover is taken back", why)
	failed, err := r.putBack(bctx)
	if failed || err != nil {
		return r.finish(bctx, failover.Failed, errors.Join(fmt.Errorf("%w: it was cut off, and not all is as before", ErrSurprise), err))
	}
	return r.end(bctx, failover.Undone, "it was cut off before it promoted anybody, and "+r.j.Old+" is the primary as before: "+why)
}

// failoverAgain does a failover again that had not promoted anybody, unless the old primary is back. One who was named stays named.
func (r *run) failoverAgain(ctx context.Context) error {
	why, err := r.returned(ctx, r.g, r.j, r.targets, r.access)
	if err != nil {
		return r.giveUp(ctx, err)
	}
	if why != "" {
		return r.takeFailoverBack(ctx, why)
	}
	a := Asked{Group: r.g.Name, By: r.j.By, Automatic: r.j.Automatic, Because: r.j.Because, Known: r.j.Known, AcceptLoss: r.j.AcceptLoss}
	if !r.j.Automatic && r.j.Stage != failover.Promoting && r.g.Find(r.j.New) >= 0 {
		a.To = r.j.New
	}
	for name, w := range r.j.Before {
		if w.Applying && name != r.j.Old {
			if err := r.applies(ctx, name); err != nil {
				r.words(name, "it may not apply: %v", err)
			}
		}
	}
	return r.failover(ctx, a, time.Now())
}

// applies lets a member apply again that did before: it may have been cut off while it was pointed at the one from which it was to get what it lacked.
func (r *run) applies(ctx context.Context, name string) error {
	ctx, stop := context.WithTimeout(ctx, r.Limits.Stop)
	defer stop()
	n, err := connect(ctx, name, r.targets[name], r.Limits.Stop)
	if err != nil {
		return err
	}
	defer n.close()
	list, err := read.ReplicaChannels(ctx, n.c)
	if err != nil || len(list) != 1 || list[0].SQLRunning || list[0].Status.SQL.Text != "" {
		return err
	}
	if err := keeps(ctx, n, list); err != nil {
		return err
	}
	return r.do(ctx, n, n.c.Server.StartThread(list[0].Name, mysql.Applier))
}

// promoteAgain brings a promotion to its end that may, or may not, have begun. Of a switchover the old primary stays shut: it was applied whole before.
func (r *run) promoteAgain(ctx context.Context) error {
	status, why := group.Secondary, ""
	if r.j.Kind == failover.Failover {
		status, why = group.Faulty, cmp.Or(r.j.Because, "it did not answer")
	}
	if i := r.g.Primary(); i >= 0 && r.g.Members[i].Name == r.j.New { // it was published
		ctx, done := r.past(ctx)
		defer done()
		return r.conclude(ctx)
	}
	n, closed, list, err := r.standing(ctx, r.j.New)
	if err != nil {
		if r.j.Kind == failover.Switchover { // it may take writes: until it is known, nobody else does, and the journal stays as it is
			return fmt.Errorf("%w: %s may be the primary already, and cannot be asked: %w", ErrSurprise, r.j.New, err)
		}
		r.j.Doubtful = r.j.New
		r.words(r.j.New, "it may take writes already, and cannot be asked: another one follows, and it is kept from writes")
		return r.failoverAgain(ctx)
	}
	switch back, err := r.shutAgain(ctx, n, closed, list); {
	case back:
		return r.takeBack(ctx, fmt.Errorf("%w: it was cut off, and %s has taken writes since", ErrSurprise, r.j.Old))
	case err != nil && r.j.Kind == failover.Switchover:
		return r.takeBack(ctx, err)
	case err != nil:
		return r.giveUp(ctx, err)
	}
	defer r.guard()()
	return r.promoted(ctx, n, status, why)
}

// standing is a member, whether it takes no writes, and what it replicates.
func (r *run) standing(ctx context.Context, name string) (n *node, closed bool, list []read.ReplicaChannel, err error) {
	if n, err = r.node(ctx, name); err != nil {
		return nil, false, nil, err
	}
	if closed, err = isClosed(ctx, n); err != nil {
		return nil, false, nil, err
	}
	list, err = read.OuterChannels(ctx, n.c)
	return n, closed, list, err
}

// shutAgain keeps the old primary from writes before a promotion that was cut off goes on: it may have been started since, or its lock ended with the process that had it, and take writes. Where
// the new one takes none yet, it applies first what it has received since. back: the old primary handed over, and has taken writes since that the new one has not: it stays the primary. Its error
// is of what keeps the new one from being promoted.
func (r *run) shutAgain(ctx context.Context, n *node, closed bool, list []read.ReplicaChannel) (back bool, err error) {
	var res *fence.Result
	if r.j.Kind == failover.Switchover {
		if res, err = r.shut(ctx, r.j.Old, fence.Options{Limit: r.Limits.Stop}); err != nil {
			r.words(r.j.Old, "it could not be kept from writes: %v", err)
		}
	} else if r.j.Old != "" || closed {
		if err := r.fence(ctx); err != nil && closed && len(list) > 0 { // else it is too late
			return false, err
		}
	}
	if !closed {
		return false, nil
	}
	if len(list) == 1 {
		if list[0].Status.IORunning != "No" {
			if err := r.do(ctx, n, n.c.Server.StopThread(list[0].Name, mysql.Receiver)); err != nil {
				return false, err
			}
		}
		received, err := receivedBy(ctx, n)
		if err == nil {
			err = r.drain(ctx, n, received)
		}
		if err != nil {
			return false, err
		}
	}
	if res == nil {
		return false, nil
	}
	old, err := r.node(ctx, r.j.Old)
	if err != nil { // it is kept from writes: who looks after it sees what it has
		r.words(r.j.Old, "it is not known whether it took writes: %v", err)
		return false, nil
	}
	more, err := r.beyond(ctx, old, n)
	return err == nil && more != "", err
}
