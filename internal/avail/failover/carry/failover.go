package carry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/agent"
	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/fence"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Failover lets a replica follow a primary that is dead, or taken for it.
func (c *Carrier) Failover(ctx context.Context, a Asked) (*failover.Journal, error) {
	asked := time.Now()
	return c.begin(ctx, a, func(ctx context.Context, r *run, j *failover.Journal) error {
		if i := r.g.Primary(); i >= 0 {
			j.Old = r.g.Members[i].Name
		}
		if a.From != "" && a.From != j.Old { // another change came first
			return changedMeanwhile(r.g, failover.Failover, a.From)
		}
		var err error
		if a.Known, err = c.knownOf(ctx, r.g, a.Known); err != nil {
			return err
		}
		j.Kind, j.New, j.Before, j.Known, j.Events = failover.Failover, a.To, map[string]failover.Was{}, a.Known, r.g.Events
		switch silent := a.Known.Silent; {
		case !a.Since.IsZero():
			j.Blocked = a.Since.UTC()
		case a.Known.Name == j.Old && !silent.IsZero() && silent.Before(j.Began):
			j.Blocked = silent.UTC()
		default:
			j.Blocked, j.Longer = j.Began, true
		}
		return nil
	}, func(ctx context.Context, r *run) error { return r.failover(ctx, a, asked) })
}

// staleDeath is after how long it is looked once more whether the old primary is dead.
const staleDeath = 2 * time.Second

// failover does it. The old primary was taken for dead at a moment: hooks, or a store that is slow, may have taken their time since.
func (r *run) failover(ctx context.Context, a Asked, dead time.Time) error {
	if err := r.before(ctx); err != nil && len(r.j.Before) > 0 { // a process that was cut off had begun
		return r.giveUp(ctx, err)
	} else if err != nil {
		return untouched(r.finish(ctx, failover.Undone, err))
	}
	if time.Since(dead) > staleDeath && len(r.j.Before) == 0 {
		why, err := r.returned(ctx, r.g, r.j, r.targets, r.access)
		if err == nil && why != "" {
			err = fmt.Errorf("%w: %s, the old primary, is not dead: %s", ErrRefused, r.j.Old, why)
		}
		if err != nil {
			return untouched(r.finish(ctx, failover.Undone, err))
		}
	}
	if err := r.stage(ctx, failover.Stopping); err != nil {
		return untouched(r.finish(ctx, failover.Undone, err))
	}
	if a.To != "" {
		if err := r.hurryReceived(ctx, a.To); err != nil {
			return r.giveUp(ctx, err)
		}
	}
	fenced := make(chan error, 1)
	go func() { fenced <- r.fence(ctx) }()
	r.stopReceivers(ctx)
	if err := <-fenced; err != nil {
		return r.giveUp(ctx, err)
	}
	off := r.guard()
	defer off()
	choice, err := r.choose(ctx, a)
	if err != nil {
		off()
		return r.giveUp(ctx, err)
	}
	r.j.New = choice.Winner
	n := r.nodes[choice.Winner]
	if err := r.stage(ctx, failover.Promoting); err != nil {
		off()
		return r.giveUp(ctx, err)
	}
	return r.promoted(ctx, n, group.Faulty, cmp.Or(a.Because, "it did not answer"))
}

// promoted promotes a member, tells clients, and lets the others follow. The old primary gets a status.
func (r *run) promoted(ctx context.Context, n *node, old group.Status, why string) error {
	ctx, done := r.past(ctx)
	defer done()
	if err := r.promote(ctx, n); err != nil {
		return r.broken(ctx, err)
	}
	if err := r.publish(ctx, old, why); err != nil {
		return r.broken(ctx, err)
	}
	return r.conclude(ctx)
}

// choose chooses who follows and lets it apply all that it received; one that cannot is passed over, and so is one from which others cannot get what it received.
func (r *run) choose(ctx context.Context, a Asked) (failover.Choice, error) {
	var tried []string
	aside := map[string]string{} // of those, for whom one was passed over: who follows must not lose what that one has
	pass := func(name string) {
		tried = append(slices.DeleteFunc(tried, func(n string) bool { return aside[n] == name }), name)
	}
	var unfit []error
	known, covered := r.j.Known.Executed, r.j.Known.Covered
	for {
		t, err := r.lookAtStopped(ctx)
		if err != nil {
			return failover.Choice{}, err
		}
		receiving := r.compared(t)
		c := failover.Choose(failover.Question{Group: r.g, Topology: t, Old: r.j.Old, Known: r.j.Known, To: a.To, Lossless: r.g.Policy.Lossless && !a.AcceptLoss, Without: tried, Receiving: receiving, Room: rooms(ctx, r.g, t, r.targets, r.access)})
		if len(c.Refused) > 0 {
			return c, cannotFeed(nobody("failover of "+r.g.Name, c, t), unfit)
		}
		if r.stopRest(ctx) {
			continue // with what they have received by now
		}
		r.words(c.Winner, "it was chosen%s", from(c))
		if c.Lost != "" { // also what nobody knew of but a member that cannot pass it on
			r.j.Known.Executed, r.j.Missing = strings.Trim(known+","+c.Lost, ","), c.Count
			if covered != "" {
				r.j.Known.Covered = covered + "," + c.Lost
			}
		}
		if err := r.stage(ctx, failover.Draining); err != nil {
			return c, err
		}
		err = r.prepare(ctx, c)
		if err == nil {
			r.cautions(c)
			r.j.Out = c.Out
			r.toWait(t, c.Winner, append(failover.Outs(c.Out), r.j.Old)...)
			return c, nil
		}
		if u := (*unfed)(nil); ctx.Err() == nil && errors.As(err, &u) {
			r.words(c.Winner, "%v", u)
			unfit = append(unfit, u)
			if i := slices.IndexFunc(c.Candidates, func(k failover.Candidate) bool { return k.Name == u.from }); a.To == "" && i >= 0 && len(c.Candidates[i].Refused) == 0 {
				aside[c.Winner] = u.from
				pass(c.Winner)
				continue
			}
			pass(u.from)
			continue
		}
		if ctx.Err() != nil || a.To != "" {
			return c, err
		}
		r.words(c.Winner, "it does not do: %v", err)
		pass(c.Winner)
	}
}

// compared takes what the members said after they were stopped, and returns those whose receiving is not known to have ended: what they have is not final. Only who said it this time is
// compared with the one that is chosen: one that did before, and has fallen silent, may have what nobody else has, and what it said then is remembered.
func (r *run) compared(t *topology.Topology) (receiving []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, w := range r.j.Before {
		w.Compared = false
		r.j.Before[name] = w
	}
	for name, w := range before(t) {
		was, n := r.j.Before[name], &t.Nodes[t.Find(name)]
		final := was.Final && !slices.ContainsFunc(n.Channels, func(ch topology.Channel) bool { return ch.IORunning != "No" })
		if len(n.Channels) > 0 && !final {
			receiving = append(receiving, name)
		}
		w.Receives, w.Stopped, w.Final, w.Farewell, w.Delay = was.Receives, was.Stopped, was.Final, was.Farewell, was.Delay
		// A server that was started since may have thrown away what it had acknowledged, and not applied: MariaDB by GTID, MySQL with relay_log_recovery.
		w.Compared = final && len(n.Channels) < 2 && (n.Started.IsZero() || r.j.Known.At.IsZero() || n.Started.Before(r.j.Known.At))
		r.j.Before[name] = w
		if final {
			had := failover.Had{At: time.Now().UTC(), Received: failover.Received(r.j.Known.Had[name].Received, said(n))}
			r.j.Known.Had = failover.Remember(r.j.Known.Had, map[string]failover.Had{name: had})
		}
	}
	return receiving
}

// said is all that a member has, applied or not.
func said(n *topology.Node) string {
	sets := []string{n.GTID.Executed, n.GTID.State}
	for _, ch := range n.Channels {
		sets = append(sets, ch.Received)
	}
	return failover.Received(sets...)
}

func from(c failover.Choice) string {
	if c.From == "" {
		return ""
	}
	return "; what it lacks it gets from " + c.From
}

// prepare lets the one that was chosen apply all that it, or another one, received.
func (r *run) prepare(ctx context.Context, c failover.Choice) error {
	n, err := r.node(ctx, c.Winner)
	if err != nil {
		return err
	}
	if err := r.keepTLS(ctx, n); err != nil {
		return err
	}
	received, err := receivedBy(ctx, n)
	if err != nil {
		return err
	}
	if err := r.drain(ctx, n, received); err != nil {
		return err
	}
	if c.From == "" {
		return nil
	}
	return r.feed(ctx, n, c.From)
}

// receivedBy is all that a member has received by its channel, applied or not.
func receivedBy(ctx context.Context, n *node) (mysql.GTIDSet, error) {
	list, err := read.ReplicaChannels(ctx, n.c)
	if err != nil || len(list) == 0 {
		return mysql.GTIDSet{}, err
	}
	return mysql.ParseGTIDSet(list[0].Received)
}

// fence tries to let the old primary take no writes, should it be alive; where that is not proven, by hooks. One that was being promoted before, and does not answer any
// more, takes none either. Its error is that of a hook which is required.
func (r *run) fence(ctx context.Context) error {
	// A controller that reaches the old primary confirms it until it reads that it is replaced, and tells clients of it should it answer again meanwhile.
	if err := r.moves(ctx); err != nil {
		return err
	}
	doubted := true
	var both sync.WaitGroup
	if r.j.Doubtful != "" {
		both.Go(func() { doubted = r.fenceOne(ctx, r.j.Doubtful) })
	}
	proven, err := true, error(nil)
	if r.j.Old == "" {
		err = r.fenceAll(ctx)
	} else {
		proven = r.fenceOne(ctx, r.j.Old)
	}
	both.Wait()
	if err != nil {
		return err
	}
	if err := r.fencedByHooks(ctx, proven); err != nil || proven && doubted {
		return err
	}
	return r.awaitAgent(ctx)
}

// fenceOne tries it with one member; true: it is proven that it takes no writes.
func (r *run) fenceOne(ctx context.Context, name string) bool {
	res, err := r.shut(ctx, name, fence.Options{Limit: fenceTime})
	if err != nil {
		r.words(name, "it could not be kept from writes: %v", err)
	} else {
		r.words(name, "%s", res.Words())
	}
	// Where nothing listens, nothing writes: the host itself says so.
	return err == nil && res.Proven || mysql.ClassOf(err) == mysql.ClassRefused || r.orderAgent(ctx, name)
}

// fenceAll lets nobody take writes in a group that has no primary. Its error is that of a member which goes on to take them.
func (r *run) fenceAll(ctx context.Context) error {
	r.words("", "there is no old primary: no member may take writes")
	t, err := lookAt(ctx, r.g, r.targets, r.Limits.Look)
	if err != nil {
		return err
	}
	for _, m := range r.g.Members {
		i := t.Find(m.Name)
		switch {
		case i < 0 || !t.Nodes[i].Seen:
			r.words(m.Name, "it does not answer: it is not known whether it takes writes")
		case t.Nodes[i].Writes.Open():
			res, err := r.shut(ctx, m.Name, fence.Options{Limit: r.Limits.Stop})
			if err != nil {
				return fmt.Errorf("%w: %s takes writes, and could not be kept from them: %w", ErrSurprise, m.Name, err)
			}
			r.words(m.Name, "%s", res.Words())
		}
	}
	return nil
}

// awaitAgent waits until an agent beside an old primary that could not be kept from writes has fenced it, as it heard from no controller for so long.
func (r *run) awaitAgent(ctx context.Context) error {
	ttl := r.g.Policy.Agents
	if ttl == 0 {
		return nil
	}
	left := agent.Wait(ttl) // by this machine's clock: that of who wrote when it began may be wrong
	r.words(cmp.Or(r.j.Old, r.j.Doubtful), "its agent is given %s to keep it from writes", digits.Span(left))
	return delay.For(ctx, max(0, left))
}

// fenceTime is how long the old primary is asked to take no writes: one that hangs does not answer.
const fenceTime = time.Second

// giveUp lets the members receive again that did, and the old primary, if it lives, have back what it had.
func (r *run) giveUp(ctx context.Context, why error) error {
	bctx, stop := context.WithTimeout(context.WithoutCancel(ctx), r.Limits.Point)
	defer stop()
	if err := r.holds(bctx); err != nil { // who has the lease brings it to its end
		return errors.Join(why, err)
	}
	failed, err := r.putBack(bctx)
	if why = errors.Join(why, err); failed {
		if !errors.Is(why, ErrRefused) {
			why = errors.Join(why, fmt.Errorf("%w: not all members receive again", ErrSurprise))
		}
		return r.finish(bctx, failover.Failed, why)
	}
	return r.finish(bctx, failover.Undone, why)
}

// putBack lets all be as it was before a failover that promoted nobody. failed: there are members that do not receive again.
func (r *run) putBack(ctx context.Context) (failed bool, err error) {
	r.giveAllBack(ctx)
	if err := r.unfence(ctx); err != nil {
		r.words(r.j.Old, "it does not have back what it had: %v", err)
	}
	if err := r.countermand(ctx); err != nil {
		r.words(r.j.Old, "its agent, which was told that it is not the primary, is not told that it is: %v", err)
	}
	failed = len(r.receiveAllAgain(ctx)) > 0
	return failed, r.delayAgain(ctx)
}

// unfence gives the old primary back what it had before it was kept from writes, as nobody follows it.
func (r *run) unfence(ctx context.Context) error {
	g, err := r.Room.Group(ctx, r.g.Name)
	if err != nil {
		return err
	}
	i := g.Find(r.j.Old)
	if i < 0 || len(g.Members[i].Fenced) == 0 {
		return nil
	}
	var was fence.State
	if err := json.Unmarshal(g.Members[i].Fenced, &was); err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, r.Limits.Stop)
	defer stop()
	n, err := connect(ctx, r.j.Old, r.targets[r.j.Old], r.Limits.Stop)
	if err != nil {
		return err
	}
	defer n.close()
	if err := r.alone(ctx, r.j.Old, false); err != nil {
		return err
	}
	if err := fence.Back(ctx, n.c, was); err != nil {
		return err
	}
	r.words(r.j.Old, "it has back what it had before it was kept from writes")
	return r.unfenced(ctx, r.j.Old)
}

// receipt says what it cost.
func (r *run) receipt(ctx context.Context) {
	var without []string
	if r.j.Kind == failover.Failover {
		without = append(without, r.j.Old)
	}
	t, _ := lookAt(ctx, r.g, r.targets, r.Limits.Look, without...) // of a member that could not be asked in time the receipt says so
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := failover.NewReceipt(&r.j.Journal, t)
	r.j.Receipt = &rec
	r.j.Steps = append(r.j.Steps, failover.Entry{At: time.Now().UTC(), What: "receipt: " + rec.Words})
	if words := rec.OutageWords(); words != "" {
		r.say("%s", words)
	}
}
