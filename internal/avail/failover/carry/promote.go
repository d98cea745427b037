package carry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/fence"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// drain waits until a member has applied a set.
func (r *run) drain(ctx context.Context, n *node, set mysql.GTIDSet) error {
	return r.drainFor(ctx, n, set, r.Limits.Drain)
}

func (r *run) drainFor(ctx context.Context, n *node, set mysql.GTIDSet, limit time.Duration) error {
	at, said := time.Now(), false
	for {
		ok, err := mysql.WaitApplied(ctx, n.c, set, min(time.Second, limit))
		if err != nil {
			return fmt.Errorf("wait until %s has applied all: %w", n.name, err)
		}
		if ok {
			r.note(failover.Entry{At: at.UTC(), Where: n.name, What: "it has applied all that it received", Took: time.Since(at)})
			return nil
		}
		list, err := read.ReplicaChannels(ctx, n.c)
		if err != nil {
			return err
		}
		for _, ch := range list {
			if ch.Status.SQL.Text != "" {
				return fmt.Errorf("%w: %s stopped applying: %s", ErrSurprise, n.name, ch.Status.SQL.Words())
			}
			if !ch.SQLRunning {
				return fmt.Errorf("%w: %s does not apply", ErrSurprise, n.name)
			}
		}
		if time.Since(at) > limit {
			return fmt.Errorf("%w: %s has not applied all that it received within %s", ErrSurprise, n.name, limit)
		}
		if !said {
			said = true
			r.say("%s: applies what it received, for %s at most", n.name, digits.Span(limit))
		}
	}
}

// promote makes a member the primary: it replicates no longer, waits for acknowledgements if the group wants that, and takes writes. It may be done again.
func (r *run) promote(ctx context.Context, n *node) error {
	if err := r.holds(ctx); err != nil {
		return err
	}
	for _, s := range n.c.Server.StopAll() {
		if err := r.do(ctx, n, s); err != nil {
			return err
		}
	}
	if r.g.Policy.SemiSync {
		if err := r.waitForAcks(ctx, n); err != nil {
			return err
		}
	}
	if err := r.holds(ctx); err != nil {
		return err
	}
	if err := r.open(ctx, n, r.g.Policy.SemiSync); err != nil {
		return err
	}
	r.mu.Lock()
	r.j.Opened = time.Now().UTC()
	r.mu.Unlock()
	return nil
}

// open lets a member take writes. One that was kept from them gets back all that it had before, but for how its commits wait for replicas, where that was set anew.
func (r *run) open(ctx context.Context, n *node, waits bool) error {
	if i := r.g.Find(n.name); i >= 0 && len(r.g.Members[i].Fenced) > 0 {
		was, err := fencedState(&r.g.Members[i], waits)
		if err != nil {
			return err
		}
		if err := fence.Back(ctx, n.c, was); err != nil {
			return fmt.Errorf("give %s back what it had before it was kept from writes: %w", n.name, err)
		}
		r.words(n.name, "it has back what it had before it was kept from writes")
	}
	for _, s := range n.c.Server.Open() {
		if err := r.do(ctx, n, s); err != nil {
			return err
		}
	}
	return nil
}

// shut lets a member, mostly the old primary, take no writes, and keeps with the group what it had before.
func (r *run) shut(ctx context.Context, name string, o fence.Options) (*fence.Result, error) {
	o.Epoch = r.j.Epoch
	o.Note = func(_ mysql.Server, was fence.State) error { return r.keepFenced(ctx, name, was) }
	res, err := fence.Fence(ctx, r.targets[name], o)
	if err != nil {
		return nil, err
	}
	for _, s := range res.Steps {
		r.note(failover.Entry{At: time.Now().UTC(), Where: name, What: s.What, Took: s.Took, Failed: s.Error})
	}
	return res, nil
}

// keepFenced writes down what a member had. What it had when it was kept from writes before, and did not get back, stays.
func (r *run) keepFenced(ctx context.Context, name string, was fence.State) error {
	body, err := json.Marshal(was)
	if err != nil {
		return err
	}
	_, err = r.Room.Change(ctx, r.j.Group, func(g *group.Group) error { // and not r.g, which guard runs beside
		if i := g.Find(name); i >= 0 && len(g.Members[i].Fenced) == 0 {
			g.Members[i].Fenced = body
		}
		return nil
	})
	return err
}

// publish writes down who is the primary, so that clients go there. From then on there is no way back.
func (r *run) publish(ctx context.Context, old group.Status, why string) error {
	g, err := r.Room.Change(ctx, r.g.Name, func(g *group.Group) error {
		if !r.mine(g) {
			return ErrLost
		}
		if r.j.Automatic {
			g.Failed = time.Now().UTC()
		}
		if g.Policy.SemiSync && r.j.WaitFor > 0 {
			g.Acks = lowered(wanted(g, r.j.Known.WaitFor), r.j.WaitFor)
		}
		now := time.Now().UTC()
		epoch := r.j.Epoch
		if g.Epoch >= epoch { // an agent was told since that the old primary is it: nobody goes back to an older epoch
			epoch = g.Epoch + 1
		}
		if err := g.Promoted(r.j.New, old, why, epoch, now); err != nil {
			return err
		}
		if i := g.Find(r.j.New); r.j.TLS != nil {
			g.Members[i].TLS = r.j.TLS
		}
		if i := g.Find(r.j.Old); i >= 0 && old == group.Faulty && !r.j.Known.Unlogged.IsZero() {
			g.Members[i].Unlogged = true
			g.KeepOut(r.j.Old, isUnlogged, now)
		}
		for _, o := range r.j.Out {
			g.KeepOut(o.Name, "it cannot replicate from "+r.j.New+": "+o.Why, now)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write down that %s is the primary: %w", r.j.New, unwritten(err))
	}
	r.g = g
	if r.Published != nil {
		r.Published(g)
	}
	return r.stage(ctx, failover.Published)
}

// point lets a member follow the new primary, which has all that it has. What it received and did not apply it gets again from there.
func (r *run) point(ctx context.Context, name string) error {
	n, err := connect(ctx, name, r.targets[name], r.Limits.Point)
	if err != nil {
		return err
	}
	defer n.close()
	to := r.g.Members[r.g.Find(r.j.New)]
	return r.follow(ctx, n, to.Address)
}

// follow lets a member follow a server. One that replicates keeps its TLS settings, and its account, whose password it gets anew where it is known; where that is refused, it gets
// the account of the group. One that does not is encrypted as secure says.
func (r *run) follow(ctx context.Context, n *node, address string) error {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("the address of the new primary: %w", err)
	}
	port, _ := strconv.Atoi(text)
	s := n.c.Server
	if shut, err := n.c.Text(ctx, "SELECT /* risso: does it take no writes? */ @@GLOBAL."+s.ReadOnlyVariable()); err != nil {
		return fmt.Errorf("ask %s whether it takes writes: %w", n.name, err)
	} else if shut != "1" && shut != "ON" { // else it would wait for whoever locks tables
		if err := r.do(ctx, n, s.Shut()); err != nil {
			return err
		}
	}
	if err := r.waitsForNobody(ctx, n); err != nil {
		return err
	}
	list, err := read.ReplicaChannels(ctx, n.c)
	if err != nil {
		return fmt.Errorf("ask %s what it replicates: %w", n.name, err)
	}
	refused := len(list) == 1 && mysql.LoginRefused(list[0].Status, list[0].Tries)
	if len(list) == 1 && list[0].Status.Source == address && list[0].GTID && list[0].SQLRunning && list[0].Status.IORunning != "No" && !refused {
		return nil // it was done before
	}
	if outer, err := read.OuterChannels(ctx, n.c); err != nil || len(outer) > 1 { // the others are somebody's own
		return errors.Join(err, fault.New(fault.Failed, "point the channel of the group there by hand, or end the others", fmt.Errorf("%w: %s replicates by %s", ErrSurprise, n.name, digits.Plural(len(outer), "channel", "channels"))))
	}
	if len(list) > 0 {
		if err := r.unhitch(ctx, n, address, channelName(list)); err != nil {
			return err
		}
	} else if demote := s.Demote(); demote != "" {
		if err := r.do(ctx, n, demote); err != nil {
			return err
		}
	}
	p, with, name := pointingTo(host, port), true, ""
	if len(list) == 1 && list[0].GTID && list[0].User != "" {
		name = list[0].Name
		with = r.known(ctx, &list[0])
		err = r.rechannel(ctx, n, list[0].Name, p, with)
	} else {
		err = r.channel(ctx, n, host, port)
	}
	if err != nil {
		return err
	}
	if err := r.acknowledges(ctx, n); err != nil {
		return err
	}
	if err := r.do(ctx, n, s.StartReplica(name)); err != nil {
		return err
	}
	if with || r.access.Replication.User == "" {
		return r.receives(ctx, n)
	}
	err = r.receives(ctx, n)
	if errors.Is(err, errLogin) {
		if err = r.logIn(ctx, n, p); err == nil {
			err = r.receives(ctx, n)
		}
	}
	return err
}

// errLogin says that the source of a member does not let it in.
var errLogin = errors.New("it cannot log in")

// heartbeat is how often a primary that has nothing to send says that it lives: what a failover waits for counts in it.
const heartbeat = 500 * time.Millisecond

// unhitch stops replication on a member, so that it can be pointed at the server at an address, once it has applied what it received. What it has not applied it keeps, if it
// applies on meanwhile, or gets again from there. Its error is a keptError if the server there does not have that.
func (r *run) unhitch(ctx context.Context, n *node, address, channel string) error {
	settled, err := r.settle(ctx, n)
	if err != nil {
		return err
	}
	if settled.applied {
		return r.do(ctx, n, n.c.Server.StopReplica(channel))
	}
	applies := settled.applies && n.c.Server.PointsWhileApplying()
	if err := r.covered(ctx, n, address, applies); err != nil {
		return err
	}
	stop := n.c.Server.StopReplica(channel)
	if applies {
		stop = n.c.Server.StopThread(channel, mysql.Receiver)
	}
	if err := r.do(ctx, n, stop); err != nil {
		return err
	}
	if err := r.covered(ctx, n, address, applies); err != nil { // something came meanwhile
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if w, ok := r.j.Before[n.name]; ok {
		w.Compared = true
		r.j.Before[n.name] = w
	}
	return nil
}

// settled is how a member stands that was to apply what it received.
type settled struct {
	applied bool // all of it
	applies bool // it goes on with it
}

// settle waits until a member has applied what it received, as long as it applies, and reports whether it has.
func (r *run) settle(ctx context.Context, n *node) (settled, error) {
	at := time.Now()
	for {
		list, err := read.ReplicaChannels(ctx, n.c)
		if err != nil {
			return settled{}, err
		}
		now, ends := settled{true, true}, true
		for _, ch := range list {
			done, err := mysql.ReceivedAll(ctx, n.c, ch.Received)
			if err != nil {
				return settled{}, err
			}
			now.applied, now.applies = now.applied && done, now.applies && ch.SQLRunning
			ends = ends && (done || !ch.SQLRunning || ch.Delay > 0)
		}
		if ends || time.Since(at) > r.Limits.Drain {
			return now, nil
		}
		if err := delay.For(ctx, 20*time.Millisecond); err != nil {
			return settled{}, err
		}
	}
}

// keptError says that a member is not pointed at the primary, as that would throw away what only it has.
type keptError struct {
	primary string
	errant  mysql.Errant // was received, and not applied
	applies string       // the statements by which it is applied, where START throws it away
}

func (e *keptError) Error() string {
	words := fmt.Sprintf("it has received %s, which %s has not, and not applied it: to replicate from there would throw that away", e.errant, e.primary)
	if e.applies != "" {
		words += ", and so would START; " + e.applies + " applies it"
	}
	return words
}

// covered is a keptError if a member received what the primary, at that address, has not: it may have been acknowledged. What the primary has can be received again from there,
// as long as its logs have it; that is left out where the member keeps what it has received.
func (r *run) covered(ctx context.Context, n *node, address string, keeps bool) error {
	list, err := read.ReplicaChannels(ctx, n.c)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(r.g.Members, func(m group.Member) bool { return m.Address == address })
	if i < 0 {
		return fmt.Errorf("%w: no member of %s has the address %s", ErrSurprise, r.g.Name, address)
	}
	name := r.g.Members[i].Name
	p, err := connect(ctx, name, r.targets[name], r.Limits.Stop)
	if err != nil {
		return err
	}
	defer p.close()
	v, err := read.Variables(ctx, p.c, []string{p.c.Server.ExecutedTransactions(), "gtid_slave_pos"})
	if err != nil {
		return fmt.Errorf("ask %s which transactions it has: %w", name, err)
	}
	for _, ch := range list {
		e, err := mysql.ErrantTransactions(ch.Received, v[p.c.Server.ExecutedTransactions()])
		if err != nil {
			return err
		}
		if e = e.Forgotten(v["gtid_slave_pos"], ""); !e.Empty() {
			kept := &keptError{primary: name, errant: e}
			if n.c.Server.StartDrops(ch.Status) {
				kept.applies = n.c.Server.ApplyReceived(ch.Name, ch.RelayLog, ch.RelayPos)
			}
			return kept
		}
	}
	if keeps {
		return nil
	}
	reach, err := reachBack(ctx, p, n)
	if err == nil && !reach {
		err = fmt.Errorf("%w: %s has received what it has not applied, and to point it at %s would throw that away, whose logs do not go back so far: it is left until it has applied it", ErrSurprise, n.name, name)
	}
	return err
}

// reachBack reports whether the logs of a source have all that a replica has not applied.
func reachBack(ctx context.Context, source, replica *node) (bool, error) {
	text, err := mysql.GoneGTIDs(ctx, source.c)
	if err != nil {
		return false, fmt.Errorf("ask %s what its logs have: %w", source.name, err)
	}
	gone, err := mysql.ParseGTIDSet(text)
	if err != nil {
		return false, err
	}
	have, err := mysql.AppliedGTIDs(ctx, replica.c)
	return err == nil && have.ContainsSet(gone), err
}

// setAside lets a member stay out that a keptError is about.
func setAside(g *group.Group, member string, e *keptError, now time.Time) {
	i := g.Find(member)
	if i < 0 || g.Members[i].Errant == e.errant.String() {
		return
	}
	g.KeepOut(member, e.Error(), now)
	g.Members[i].Errant, g.Members[i].Pointing = e.errant.String(), false
}

// staleFor is how long a channel that was started may still show that it was refused before.
const staleFor = 200 * time.Millisecond

// receives waits until a member receives from its source.
func (r *run) receives(ctx context.Context, n *node) error {
	at := time.Now()
	for {
		list, err := read.ReplicaChannels(ctx, n.c)
		if err != nil {
			return err
		}
		if len(list) == 1 {
			switch ch := list[0]; {
			case ch.IORunning && ch.SQLRunning:
				return nil
			case ch.Status.SQL.Text != "":
				return fmt.Errorf("%w: %s does not apply: %s", ErrSurprise, n.name, ch.Status.SQL.Words())
			case mysql.LoginRefused(ch.Status, ch.Tries) && time.Since(at) > staleFor:
				return fmt.Errorf("%w: %s does not receive: %w: %s", ErrSurprise, n.name, errLogin, ch.Status.IO.Words())
			case ch.Status.IO.Text != "" && time.Since(at) > time.Second:
				return fmt.Errorf("%w: %s does not receive: %s", ErrSurprise, n.name, ch.Status.IO.Words())
			}
		}
		if time.Since(at) > r.Limits.Point {
			return fmt.Errorf("%w: %s does not receive within %s", ErrSurprise, n.name, r.Limits.Point)
		}
		select {
		case <-r.Hurry: // of a source that is dead by now nobody receives
			return fmt.Errorf("%w: %s does not receive yet", ErrSurprise, n.name)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// others are the members that are to follow the new primary, by name.
func (r *run) others(without ...string) (names []string) {
	for _, m := range r.g.Members {
		if m.Name != r.j.New && m.Status != group.Faulty && !slices.Contains(without, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
}

// broken ends a promotion that did not succeed. One that was cut off, that could not be written down, or that is somebody else's by now, stays as it is: whoever has the lease
// next brings it to its end.
func (r *run) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, ErrUnwritten) {
		return err
	}
	if herr := r.holds(ctx); herr != nil {
		return errors.Join(err, herr)
	}
	return r.finish(ctx, failover.Failed, err)
}

// finish ends a journal, whatever became of ctx.
func (r *run) finish(ctx context.Context, s failover.Stage, err error) error {
	return errors.Join(err, r.end(ctx, s, problem(err)))
}

// end is finish, with what was wrong in words.
func (r *run) end(ctx context.Context, s failover.Stage, problem string) error {
	if s != failover.Done {
		r.mu.Lock()
		r.j.Problem = problem
		r.mu.Unlock()
		_, _ = r.happens(context.WithoutCancel(ctx), publish.Failed) // it is in the journal
	}
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), r.Limits.Stop)
	defer stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.j.Stage, r.j.Ended, r.j.EndedBy, r.j.Problem = s, time.Now().UTC(), r.Holder, problem
	err := r.j.Save(end)
	if err == nil && s == failover.Undone {
		err = r.Room.Prune(end, r.j.Group)
	}
	return err
}

// problem is an error in words.
func problem(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimSpace(err.Error())
}
