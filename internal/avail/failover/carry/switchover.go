package carry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/fence"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
)

// Asked is what somebody wants.
type Asked struct {
	Group      string
	To         string // the member that is to be the primary; "": the best
	From       string // the primary of the plan that was agreed to; "": whoever is
	By         string // who asks
	Automatic  bool   // nobody does
	Because    string // what was seen
	AcceptLoss bool   // a known loss does not refuse a failover
	Known      failover.Known
	Since      time.Time // since when nobody takes writes, as far as was seen; zero: from now on
	Drains     bool      // of a forecast or plan: also how long it takes to apply what is to be applied, which is looked at for a second
}

// Planned is a switchover that was judged, as a plan.
type Planned struct {
	Group  *group.Group
	Old    string
	Choice failover.Choice
	Plan   change.Plan // each statement, per server
	Notes  []string
	Events *group.Events // that the old primary runs; nil: not known

	topology *topology.Topology
	events   []string // the statements by which the new one runs them
}

// KnownOf is what a primary tells of itself, for the time when it does not any more.
func KnownOf(g *group.Group, t *topology.Topology, name string) failover.Known {
	i := t.Find(name)
	if i < 0 || !t.Nodes[i].Seen || t.Nodes[i].Unseen != nil {
		return failover.Known{Name: name} // one that told a part of it would seem not to wait for replicas
	}
	n := &t.Nodes[i]
	k := failover.Known{At: n.Facts.Asked.UTC(), Name: name, UUID: n.UUID, ServerID: n.ServerID, Server: n.Server, Told: true, Executed: n.GTID.All(), SemiSync: n.SemiSync.SourceActive, WaitFor: n.SemiSync.WaitFor, Settings: n.Settings}
	k.Lossless = k.SemiSync && n.SemiSync.Point == "AFTER_SYNC" && n.SemiSync.WaitNobody && n.SemiSync.Timeout >= time.Hour
	if n.Log.Closed {
		k.Unlogged, k.Lossless = k.At, false
	}
	k.Unacked = n.SemiSync.Unacknowledged
	for j := range t.Nodes {
		if m := &t.Nodes[j]; j != i && (m.SemiSync.ReplicaActive || !m.Seen) {
			k.Acks = append(k.Acks, m.Name)
		}
	}
	for len(k.Acks) < n.SemiSync.Replicas { // it counts more than those that were asked
		k.Acks = append(k.Acks, "a replica that is no member")
	}
	k.Had = had(g, t, name)
	return k
}

// had is what the members but the primary have. One that is not seen has nothing that was seen, and is known not to have been there beside the primary.
func had(g *group.Group, t *topology.Topology, primary string) map[string]failover.Had {
	out := map[string]failover.Had{}
	for _, m := range g.Members {
		if m.Name == primary {
			continue
		}
		var h failover.Had
		if i := t.Find(m.Name); i >= 0 && t.Nodes[i].Seen {
			n := &t.Nodes[i]
			h.At = n.Facts.Asked.UTC()
			parts := []string{n.GTID.Executed, n.GTID.State}
			if len(n.Channels) == 1 {
				parts = append(parts, n.Channels[0].Received)
			}
			h.Received = failover.Received(parts...)
		}
		out[m.Name] = h
	}
	return out
}

// Plan judges a switchover and makes its plan. Nothing is changed. It wraps ErrRefused if it cannot be done.
func (c *Carrier) Plan(ctx context.Context, a Asked) (*Planned, error) {
	g, err := c.Room.Group(ctx, a.Group)
	if err != nil {
		return nil, err
	}
	if err := c.CutOff(ctx, g); err != nil { // what it left behind would be taken for the reason
		return nil, err
	}
	targets, access, err := c.targets(ctx, g)
	if err != nil {
		return nil, err
	}
	p, err := c.plan(ctx, g, targets, access, a)
	if err != nil {
		return nil, err
	}
	c.steps(ctx, p, targets, access)
	if a.Drains {
		c.drains(ctx, &p.Choice, p.topology, targets, p.Old)
		p.Notes = append(p.Notes, handoverNotes(&p.Choice, p.topology, p.Old)...)
	}
	return p, nil
}

func (c *Carrier) plan(ctx context.Context, g *group.Group, targets map[string]mysql.Target, access keep.Access, a Asked) (*Planned, error) {
	t, err := lookAt(ctx, g, targets, c.Limits.Look)
	if err != nil {
		return nil, err
	}
	p := &Planned{Group: g, topology: t}
	i := g.Primary()
	if i < 0 {
		return nil, fault.New(fault.Failed, "risso failover --group "+g.Name, fmt.Errorf("%w: %s has no primary", ErrRefused, g.Name))
	}
	p.Old = g.Members[i].Name
	n := t.Find(p.Old)
	if n < 0 || !t.Nodes[n].Seen {
		why, hint := "", "risso failover --group "+g.Name
		if n >= 0 && t.Nodes[n].Unseen != nil {
			why = ": " + t.Nodes[n].Unseen.Words()
			if failover.Lives(t.Nodes[n].Unseen.Kind) {
				hint = "it lives: mend that, and ask again"
			}
		}
		return nil, fault.New(fault.Failed, hint, fmt.Errorf("%w: the primary %s does not answer%s", ErrRefused, p.Old, why))
	}
	known := KnownOf(g, t, p.Old)
	p.Choice = failover.Choose(failover.Question{Group: g, Topology: t, Old: p.Old, Alive: true, Known: known, To: a.To, Room: rooms(ctx, g, t, targets, access)})
	p.Notes = append(append(p.Notes, p.Choice.Cautions()...), openReplicas(g, t)...)
	var list []failover.Refusal
	closed := c.closed(ctx, g, t, targets)
	if closed == nil || closed.rival == "" { // else what stands against members is by a primary that is it no more
		list = append(list, p.Choice.Refused...)
	}
	list = append(list, c.ready(g, t, p, closed)...)
	if p.Choice.Winner != "" {
		if c.planEvents(ctx, p, targets); a.To == "" {
			list = append(list, schedulerOff(p)...)
		}
		if delayOf(t, p.Choice.Winner) > 0 {
			p.Notes = append(p.Notes, p.Choice.Winner+" stays behind on purpose no more, nor when it is a replica again: risso replica delay")
			list = append(list, c.mayHurry(ctx, t, p.Old, targets[p.Old], p.Choice.Winner)...)
		}
		list = append(list, CheckReplication(ctx, g, targets, access.Replication, c.Limits.Look, p.Choice.Winner)...)
	}
	if len(list) > 0 {
		return nil, refused("switchover of "+g.Name, list)
	}
	return p, nil
}

// openReplicas says which members take writes although they replicate.
func openReplicas(g *group.Group, t *topology.Topology) (notes []string) {
	for k, m := range g.Members {
		if i := t.Find(m.Name); k != g.Primary() && i >= 0 && t.Nodes[i].Seen && len(t.Nodes[i].Channels) > 0 && t.Nodes[i].Writes.Open() {
			notes = append(notes, fmt.Sprintf("%s is a replica, and takes writes, which no other member gets: %s there; risso group prepare %s lets it start so", m.Name, mysql.Of(t.Nodes[i].Server).Shut(), g.Name))
		}
	}
	return notes
}

// mostBehind is how many transactions the new primary may have to apply, while nobody can write.
const mostBehind = 10_000

// ready looks at what would make writes stand still for long, or not come back.
func (c *Carrier) ready(g *group.Group, t *topology.Topology, p *Planned, closed *Closed) (list []failover.Refusal) {
	add := func(code, remedy, format string, args ...any) {
		list = append(list, failover.NewRefusal(code, remedy, format, args...))
	}
	old := &t.Nodes[t.Find(p.Old)]
	if len(old.Channels) > 0 {
		add("replicates", unchained(g, old), "%s, the primary, replicates itself from %s", p.Old, old.Channels[0].Source)
	} else if old.Log.Closed {
		add("log_closed", "start it again; then compare its replicas with it (risso checksum), and rebuild those that differ", "%s, the primary, writes no binary log any more: no replica has what it took since", p.Old)
	} else if closed != nil {
		add("read_only", closed.Remedy, "%s, the primary, takes no writes: %s", p.Old, closed.Why)
	}
	for _, cand := range p.Choice.Candidates {
		if cand.Name != p.Choice.Winner {
			continue
		}
		if i := t.Find(cand.Name); g.Policy.SemiSync && i >= 0 && t.Nodes[i].SemiSync.SourceSetting == "" {
			add("no_semisync", "risso group prepare "+g.Name, "%s has no semi-sync, which the group wants", cand.Name)
		}
		executed, err := mysql.ParseGTIDSet(old.GTID.Executed)
		if i := t.Find(cand.Name); err == nil && i >= 0 {
			have, _ := mysql.ParseGTIDSet(t.Nodes[i].GTID.Executed) // it was read before
			if n := executed.Ahead(have); n > mostBehind && delayOf(t, cand.Name) == 0 {
				add("behind", "wait, or risso lag "+cand.Name+" says why", "%s has %s to apply: writes would stand still for as long", cand.Name, digits.Counted(int(n), "transaction"))
			}
			if ch := t.Nodes[i].Channels; len(ch) == 1 && !ch[0].Receiving() {
				add("not_receiving", "", "%s does not receive from %s", cand.Name, p.Old)
			}
		}
	}
	return list
}

// stepsOut are that members stay out.
func stepsOut(step func(where, why string, what ...string), list []failover.Out) {
	for _, o := range list {
		step(o.Name, "it cannot replicate from the new one: "+o.Why, "stay out, as FAULTY, and take no writes")
	}
}

// verifying are the steps that verify a promotion.
func verifying(g *group.Group, winner string) (steps []change.Step) {
	if g.Policy.Unwritten {
		return []change.Step{{What: "see that the others receive", Where: "from " + winner, Why: "the group's policy is that nothing is written"}}
	}
	for _, what := range mysql.RowTable() {
		steps = append(steps, change.Step{What: what, Where: "on " + winner, Why: notThere})
	}
	return append(steps, change.Step{What: mysql.PrimaryRow(g.Name, max(g.Epoch, g.Lease.Epoch)+1, winner), Where: "on " + winner, Why: "and see it arrive at the others"})
}

// notThere is said of steps that are only done once.
const notThere = "if it is not there yet"

// Switchover lets another member be the primary. When a step fails before that is so, the old one takes writes again.
func (c *Carrier) Switchover(ctx context.Context, a Asked) (*failover.Journal, error) {
	var p *Planned
	return c.begin(ctx, a, func(ctx context.Context, r *run, j *failover.Journal) (err error) {
		if i := r.g.Primary(); a.From != "" && i >= 0 && r.g.Members[i].Name != a.From { // another change came first
			return changedMeanwhile(r.g, failover.Switchover, a.From)
		}
		if p, err = c.plan(ctx, r.g, r.targets, r.access, a); err != nil {
			return err
		}
		j.Kind, j.Old, j.New, j.Out = failover.Switchover, p.Old, p.Choice.Winner, p.Choice.Out
		was, err := r.Room.Known(ctx, r.g.Name)
		if err != nil {
			return err
		}
		j.Before, j.Known, j.Events = before(p.topology), KnownOf(r.g, p.topology, p.Old).After(was), p.Events
		return nil
	}, func(ctx context.Context, r *run) error {
		r.cautions(p.Choice)
		r.toWait(p.topology, p.Choice.Winner, failover.Outs(p.Choice.Out)...)
		return r.switchover(ctx)
	})
}

// changedMeanwhile refuses a change of a member that is not the primary any more: what would be done now is not what somebody agreed to.
func changedMeanwhile(g *group.Group, kind failover.Kind, from string) error {
	now := "nobody is"
	if i := g.Primary(); i >= 0 {
		now = g.Members[i].Name + " is"
	}
	return fault.New(fault.Failed, fmt.Sprintf("risso %s --group %s --dry-run shows what would be done now", kind, g.Name),
		fmt.Errorf("%s of %s: %w: %s is not the primary any more, %s; nothing was changed", kind, g.Name, ErrRefused, from, now))
}

// begin begins a change: with the lease, and unless one waits that was cut off, made says what the journal begins with, and do does it.
func (c *Carrier) begin(ctx context.Context, a Asked, made func(context.Context, *run, *failover.Journal) error, do func(context.Context, *run) error) (out *failover.Journal, err error) {
	err = c.held(ctx, a.Group, func(ctx, lasting context.Context, g *group.Group) error {
		r, err := c.run(ctx, g)
		if err != nil {
			return err
		}
		defer r.close()
		r.lasting = lasting
		if err := c.waits(ctx, g.Name); err != nil {
			return err
		}
		j := failover.Journal{Group: g.Name, Epoch: g.Lease.Epoch, Stage: failover.Begun, By: a.By, Automatic: a.Automatic, Because: a.Because, AcceptLoss: a.AcceptLoss, Began: time.Now().UTC()}
		if err := made(ctx, r, &j); err != nil {
			return err
		}
		if r.j, err = c.Room.Begin(ctx, j); err != nil {
			return err
		}
		out = &r.j.Journal
		return do(ctx, r)
	})
	return out, err
}

// waits refuses while a change that was cut off is neither finished nor taken back.
func (c *Carrier) waits(ctx context.Context, name string) error {
	j, err := c.Room.Unfinished(ctx, name)
	if err != nil || j == nil {
		return err
	}
	return fault.New(fault.Failed, "risso failover resume --group "+name+" brings it to its end, or takes it back", waiting(changeOf(j)+" was cut off"))
}

// waiting says that a change waits, which comes before another one.
type waiting string

func (w waiting) Error() string { return string(w) }

// Unwrap lets it be a refusal.
func (w waiting) Unwrap() error { return ErrRefused }

// changeOf is a change of the primary in words.
func changeOf(j *keep.Journal) string {
	to := ""
	if j.New != "" {
		to = " to " + j.New
	}
	return fmt.Sprintf("a %s%s that began at %s", j.Kind, to, j.Began.Local().Format(time.TimeOnly))
}

// CutOff refuses while a change of a group is under way, or was cut off: nobody knows which as long as the lease holds of who did it.
func (c *Carrier) CutOff(ctx context.Context, g *group.Group) error {
	if g.Lease.Holder == "" || time.Now().After(g.Lease.Until) {
		return c.waits(ctx, g.Name)
	}
	j, err := c.Room.Unfinished(ctx, g.Name)
	if err != nil || j == nil {
		return err
	}
	return fault.New(fault.Failed, "risso failover resume --group "+g.Name+" waits until it is known which, and brings it to its end or takes it back",
		waiting(changeOf(j)+" is under way, or was cut off"))
}

// before is how the members are.
func before(t *topology.Topology) map[string]failover.Was {
	out := map[string]failover.Was{}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if !n.Seen {
			continue
		}
		w := failover.Was{ReadOnly: n.Writes.ReadOnly, Super: n.Writes.Super}
		if len(n.Channels) == 1 {
			w.Source, w.Applying = n.Channels[0].Source, n.Channels[0].Applying()
		}
		out[n.Name] = w
	}
	return out
}

// switchover does it.
func (r *run) switchover(ctx context.Context) error {
	if err := r.before(ctx); err != nil {
		return untouched(r.finish(ctx, failover.Undone, err))
	}
	old, err := r.node(ctx, r.j.Old)
	if err == nil {
		_, err = r.node(ctx, r.j.New)
	}
	if err != nil {
		return untouched(r.finish(ctx, failover.Undone, err))
	}
	n := r.nodes[r.j.New]
	if err := r.catchUp(ctx, old, n); err != nil {
		bctx, stop := context.WithTimeout(context.WithoutCancel(ctx), r.Limits.Point)
		defer stop()
		if herr := r.holds(bctx); herr != nil { // who has the lease takes it back
			return errors.Join(err, herr)
		}
		return r.finish(bctx, failover.Undone, errors.Join(err, r.delayAgain(bctx)))
	}
	if err := r.keepTLS(ctx, n); err != nil {
		return untouched(r.finish(ctx, failover.Undone, err))
	}
	if err := r.stage(ctx, failover.Stopping); err != nil {
		return untouched(r.finish(ctx, failover.Undone, err))
	}
	if err := r.announce(ctx); err != nil {
		return untouched(r.finish(ctx, failover.Undone, err))
	}
	res, err := r.handOver(ctx, old, n)
	if res != nil {
		defer res.Release()
	}
	if err != nil {
		if res != nil {
			res.Release() // who goes back needs it
		}
		return r.goBack(ctx, err)
	}
	ctx, done := r.past(ctx)
	defer done()
	if err := r.publish(ctx, group.Secondary, ""); err != nil {
		return r.broken(ctx, err)
	}
	if res.Holds() { // those that came since wait for the lock, and would write here when it is gone
		if _, err := fence.Fence(ctx, r.targets[r.j.Old], fence.Options{Epoch: r.j.Epoch, Limit: r.Limits.Stop}); err != nil {
			r.words(r.j.Old, "the sessions that wait there could not be ended: %v", err)
		}
		res.Release()
	}
	return r.conclude(ctx)
}

// announced is how long before the primary takes no more writes clients are told that it is handed over: new ones wait, and do not come to be sent away.
const announced = 300 * time.Millisecond

// announce tells clients that the primary is handed over.
func (r *run) announce(ctx context.Context) error {
	if err := r.moves(ctx); err != nil {
		return err
	}
	return delay.For(ctx, announced)
}

// moves writes down that the primary is being replaced: no controller confirms it any more.
func (r *run) moves(ctx context.Context) error {
	_, err := r.Room.Change(ctx, r.g.Name, func(g *group.Group) error {
		if !r.mine(g) {
			return ErrLost
		}
		g.Moving = true
		return nil
	})
	return err
}

// handOver lets the old primary take no more writes, the new one apply all of them, and take writes.
// Where the old one is kept from writes by a lock, the result holds it: accounts with special privileges would write there, and lose it.
func (r *run) handOver(ctx context.Context, old, n *node) (*fence.Result, error) {
	r.j.Blocked = time.Now().UTC()
	res, err := r.shut(ctx, old.name, fence.Options{Limit: r.Limits.Stop, Grace: grace, Hold: true, Keep: []int64{old.c.Server.ConnectionID}})
	if err != nil {
		return nil, err
	}
	if !res.Proven {
		return res, fmt.Errorf("%w: it is not certain that %s takes no writes: %s", ErrSurprise, old.name, res.By)
	}
	all, err := mysql.LoggedGTIDs(ctx, old.c)
	if err != nil {
		return res, fmt.Errorf("ask %s for its last transaction: %w", old.name, err)
	}
	if err := r.stage(ctx, failover.Draining); err != nil {
		return res, err
	}
	if err := r.drain(ctx, n, all); err != nil {
		return res, err
	}
	// Somebody with special privileges may have written in spite of that.
	again, err := mysql.LoggedGTIDs(ctx, old.c)
	if err != nil || !all.Equal(again) {
		return res, errors.Join(err, fmt.Errorf("%w: %s was written to though it is read-only, by an account with special privileges", ErrSurprise, old.name))
	}
	if err := r.stage(ctx, failover.Promoting); err != nil {
		return res, err
	}
	if err := ctx.Err(); err != nil {
		return res, err
	}
	ctx, done := r.past(ctx)
	defer done()
	return res, r.promote(ctx, n)
}

// grace is how long what is being written on the old primary may go on before its session is ended.
const grace = 300 * time.Millisecond

// goBack lets the old primary take writes again, and the other one follow it.
func (r *run) goBack(ctx context.Context, why error) error {
	r.words("", "it failed, and goes back: %v", why)
	if err := r.takeBack(ctx, why); err != nil {
		return err
	}
	return fmt.Errorf("%w; %s is the primary as before", why, r.j.Old)
}

// takeBack takes a switchover back that failed, or was cut off, and ends its journal.
func (r *run) takeBack(ctx context.Context, why error) error {
	bctx, stop := context.WithTimeout(context.WithoutCancel(ctx), r.Limits.Point)
	defer stop()
	if err := r.holds(bctx); err != nil { // who has the lease brings it to its end
		return errors.Join(why, err)
	}
	if err := r.undo(bctx); err != nil {
		return r.finish(bctx, failover.Failed, fmt.Errorf("%w; it could not be taken back: %w", why, err))
	}
	return r.end(bctx, failover.Undone, problem(why)+"; "+r.j.Old+" is the primary as before")
}

// undo puts a switchover back that did not get as far as to be published: first the one that was chosen is shut, so that there are never two. Nor is there one more that takes writes.
func (r *run) undo(ctx context.Context) error {
	n, err := connect(ctx, r.j.New, r.targets[r.j.New], r.Limits.Stop)
	if err == nil {
		defer n.close()
		err = r.do(ctx, n, n.c.Server.Shut())
	}
	if err != nil && (r.j.Stage == failover.Promoting) {
		return fmt.Errorf("it is not known whether %s takes writes: %w", r.j.New, err)
	}
	old, oerr := connect(ctx, r.j.Old, r.targets[r.j.Old], r.Limits.Stop)
	if oerr != nil {
		return oerr
	}
	defer old.close()
	if n != nil {
		wrote, werr := r.beyond(ctx, n, old)
		if werr != nil || wrote != "" {
			return errors.Join(werr, fmt.Errorf("%s has taken writes meanwhile: %s", r.j.New, wrote))
		}
	}
	g, err := r.Room.Group(ctx, r.g.Name)
	if err != nil {
		return err
	}
	r.g = g
	if err := r.alone(ctx, r.j.Old, false); err != nil {
		return err
	}
	if err := r.open(ctx, old, false); err != nil {
		return err
	}
	if err := r.unfenced(ctx, r.j.Old); err != nil {
		return err
	}
	if n != nil {
		i := r.g.Find(r.j.Old)
		return errors.Join(r.follow(ctx, n, r.g.Members[i].Address), r.delayAgain(ctx))
	}
	return nil
}

// unfenced writes down that a member got back what it had.
func (r *run) unfenced(ctx context.Context, name string) error {
	g, err := r.Room.Change(ctx, r.g.Name, func(g *group.Group) error {
		if i := g.Find(name); i >= 0 {
			g.Members[i].Fenced = nil
		}
		return nil
	})
	if err == nil {
		r.g = g
	}
	return err
}

// beyond are the transactions that one member has and another one has not.
func (r *run) beyond(ctx context.Context, n, than *node) (string, error) {
	mine, err := mysql.LoggedGTIDs(ctx, n.c)
	if err != nil {
		return "", err
	}
	theirs, err := mysql.LoggedGTIDs(ctx, than.c)
	if err != nil {
		return "", err
	}
	return mine.Subtract(theirs).String(), nil
}

// unpointed writes down which members do not follow the new primary: who looks after the group goes on with them.
func (r *run) unpointed(ctx context.Context, failed map[string]error) {
	for name, err := range failed {
		r.words(name, "it does not follow the new primary: %v", err)
	}
	if len(failed) == 0 {
		return
	}
	if err := r.change(ctx, func(g *group.Group) {
		for i := range g.Members {
			name := g.Members[i].Name
			if e := (*keptError)(nil); errors.As(failed[name], &e) {
				setAside(g, name, e, time.Now().UTC())
				continue
			}
			g.Members[i].Pointing = g.Members[i].Pointing || failed[name] != nil
		}
	}); err != nil {
		r.words("", "that they do not follow could not be written down: %v", err)
	}
}

// conclude lets the others follow, and ends the journal.
func (r *run) conclude(ctx context.Context) error {
	if err := r.stage(ctx, failover.Pointing); err != nil {
		return r.broken(ctx, err)
	}
	var told sync.WaitGroup // beside: a commit may wait until another member follows
	told.Go(func() { _, _ = r.happens(ctx, publish.AfterPromotion) })
	told.Go(func() { r.runEvents(ctx) })
	failed := each(r.others(), func(name string) error {
		err := r.point(ctx, name)
		r.mu.Lock()
		defer r.mu.Unlock()
		if w, ok := r.j.Before[name]; ok && err == nil {
			w.Repointed = true
			r.j.Before[name] = w
		}
		return err
	})
	r.giveAllBack(ctx)
	r.verify(ctx, failed)
	told.Wait()
	r.unpointed(ctx, failed) // it changes the group, which those who were told read
	if err := r.delayAgain(ctx); err != nil {
		r.caution("%v", err)
	}
	r.receipt(ctx)
	r.wellFor(ctx)
	if ctx.Err() != nil { // whoever has the lease by now brings it to its end
		return context.Cause(ctx)
	}
	return r.finish(ctx, failover.Done, nil)
}
