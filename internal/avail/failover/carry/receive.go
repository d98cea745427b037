package carry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// This file stops receiving: what members have received is final before one of them is chosen.

// stopReceivers stops receiving on all members at once, and nothing else: what was received is applied on. Those that do not answer are left.
func (r *run) stopReceivers(ctx context.Context) {
	var names []string
	for _, m := range r.g.Members {
		if m.Name != r.j.Old {
			names = append(names, m.Name)
		}
	}
	failed := each(names, func(name string) error {
		cctx, stop := context.WithTimeout(ctx, r.Limits.Stop)
		defer stop()
		n, err := connect(cctx, name, r.targets[name], r.Limits.Drain+r.Limits.Stop)
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.nodes[name] = n
		r.mu.Unlock()
		if goes, err := goesOn(cctx, n); err != nil {
			return err
		} else if goes {
			return errGoesOn
		}
		return r.stopReceiver(cctx, n)
	})
	for name, err := range failed {
		if errors.Is(err, errGoesOn) {
			r.words(name, "%v", err)
			r.going = append(r.going, name)
			continue
		}
		r.words(name, "it was not stopped: %v", err)
		if n := r.nodes[name]; n != nil && ctx.Err() == nil {
			n.close()
			delete(r.nodes, name)
		}
	}
}

// lookAtStopped looks at the members until all that stopped receiving have said what they received: one that answers late may be the one that acknowledged what the others
// have not. One that does not answer for long, or at which nothing listens any more, is left out.
func (r *run) lookAtStopped(ctx context.Context) (*topology.Topology, error) {
	for began, said := time.Now(), false; ; {
		t, err := lookAt(ctx, r.g, r.targets, r.Limits.Look, r.j.Old)
		late := ""
		r.mu.Lock()
		for name, w := range r.j.Before {
			i := t.Find(name)
			gone := i >= 0 && t.Nodes[i].Unseen != nil && t.Nodes[i].Unseen.Kind == "refused"
			if w.Stopped && name != r.j.Old && !gone && (i < 0 || !t.Nodes[i].Seen) {
				late = name
			}
		}
		r.mu.Unlock()
		if late == "" || err != nil || time.Since(began) > 2*r.Limits.Stop {
			return t, err
		}
		if !said {
			said = true
			r.words(late, "it stopped receiving, and does not say yet what it received")
		}
	}
}

// errGoesOn says that a member was not told to stop receiving.
var errGoesOn = errors.New("it does not apply, and goes on receiving until somebody can follow: if both threads stood, starting one of them would throw away what it received")

// goesOn reports whether what a member received and has not applied would be thrown away by whoever starts it again, if it stood.
func goesOn(ctx context.Context, n *node) (bool, error) {
	if !n.c.Server.GTIDsByDomain() {
		return false, nil
	}
	list, err := read.ReplicaChannels(ctx, n.c)
	return err == nil && len(list) == 1 && onlyReceives(n.c.Server, list[0].Status), err
}

// onlyReceives reports whether a channel of a MariaDB that replicates by GTID receives, or tries to, and does not apply.
func onlyReceives(s mysql.Server, ch fleet.Channel) bool {
	return s.GTIDsByDomain() && ch.GTID && ch.SQLRunning == "No" && ch.IORunning != "No"
}

// stopRest stops those that went on receiving, as somebody can follow now: an old primary that lives must get no acknowledgement any more. It reports whether there were any.
func (r *run) stopRest(ctx context.Context) bool {
	going := r.going
	r.going = nil
	for name, err := range each(going, func(name string) error {
		cctx, stop := context.WithTimeout(ctx, r.Limits.Stop)
		defer stop()
		return r.stopReceiver(cctx, r.nodes[name])
	}) {
		r.words(name, "it was not stopped: %v", err)
	}
	return len(going) > 0
}

// stopReceiver stops receiving on a member, and does not let it wait for a source that is silent.
func (r *run) stopReceiver(ctx context.Context, n *node) error {
	list, err := read.ReplicaChannels(ctx, n.c)
	if err != nil {
		return err
	}
	if err := r.noteReceives(ctx, n, list); err != nil {
		return err
	}
	if err := r.shorten(ctx, n); err != nil { // it only takes longer then
		r.words(n.name, "it may take 2 s to stop receiving: %v", err)
	}
	for _, channel := range r.inside(list) {
		if err := r.do(ctx, n, n.c.Server.StopThread(channel, mysql.Receiver)); err != nil {
			return err
		}
	}
	if err := r.giveBack(ctx, n); err != nil { // it is in the journal
		r.words(n.name, "%v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.j.Before[n.name]
	r.j.Before[n.name] = failover.Was{Receives: w.Receives, Stopped: true, Final: true, Farewell: w.Farewell, Delay: w.Delay}
	return nil
}

// inside are the channels by which a member replicates from within the group: its only one, or, of several, those that lead to members.
func (r *run) inside(list []read.ReplicaChannel) (names []string) {
	if len(list) < 2 {
		return []string{channelName(list)}
	}
	for _, ch := range list {
		if slices.ContainsFunc(r.g.Members, func(m group.Member) bool { return strings.EqualFold(m.Address, ch.Status.Source) }) {
			names = append(names, ch.Name)
		}
	}
	return names
}

// noteReceives writes down that a member receives, before that is stopped: one that somebody had stopped is not started if nobody follows. What a process that was cut off wrote counts on.
func (r *run) noteReceives(ctx context.Context, n *node, list []read.ReplicaChannel) error {
	receives := slices.ContainsFunc(list, func(ch read.ReplicaChannel) bool {
		return ch.Status.IORunning != "No" || mysql.GaveUp(ch.Status, ch.Tries)
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.j.Before[n.name]
	if w.Receives || !receives {
		return nil
	}
	w.Receives = true
	r.j.Before[n.name] = w
	return unwritten(r.j.Save(ctx))
}

// shorten lends a value of mysql.Server.Farewell from a server. What it was is on disk before.
func (r *run) shorten(ctx context.Context, n *node) error {
	const seconds = "1"
	name := n.c.Server.Farewell()
	if name == "" {
		return nil
	}
	rows, err := n.c.Maps(ctx, "SHOW /* risso: how long may stopping take? */ GLOBAL VARIABLES LIKE "+mysql.Literal(name))
	if err != nil || len(rows) == 0 {
		return err
	}
	was := rows[0]["Value"]
	r.mu.Lock()
	w := r.j.Before[n.name]
	if w.Farewell != "" { // lent before, by a process that was cut off
		was = w.Farewell
	}
	same := was == seconds && w.Farewell == ""
	if !same {
		w.Farewell = was
		r.j.Before[n.name] = w
		err = r.j.Save(ctx)
	}
	r.mu.Unlock()
	if same || err != nil {
		return err
	}
	return r.do(ctx, n, n.c.Server.SetFarewell(seconds))
}

// receiveAllAgain lets the members receive again that did before this, or a process that was cut off, stopped them. Its errors are of those that were stopped, by name.
func (r *run) receiveAllAgain(ctx context.Context) map[string]error {
	var names []string
	for name, w := range r.j.Before {
		if name != r.j.Old && w.Receives {
			names = append(names, name)
		}
	}
	failed := each(names, func(name string) error {
		n, err := connect(ctx, name, r.targets[name], r.Limits.Stop)
		if err != nil {
			return err
		}
		defer n.close()
		return r.receiveAgain(ctx, n)
	})
	for name, err := range failed {
		r.words(name, "it does not receive again: %v", err)
		if r.nodes[name] == nil && !r.j.Before[name].Stopped { // it did not answer when it was to be stopped
			delete(failed, name)
		}
	}
	return failed
}

// receiveAgain starts receiving on a member. One that would throw away what it received, and has not applied, is left as it is: nobody else may have that.
func (r *run) receiveAgain(ctx context.Context, n *node) error {
	list, err := read.ReplicaChannels(ctx, n.c)
	if err == nil && len(list) > 0 {
		err = keeps(ctx, n, list)
	}
	if errors.Is(err, errDrops) {
		r.words(n.name, "it does not receive again: %v", err)
		return nil
	}
	if err != nil || len(list) == 0 {
		return err
	}
	for _, channel := range r.inside(list) {
		if err := r.do(ctx, n, n.c.Server.StartThread(channel, mysql.Receiver)); err != nil {
			return err
		}
	}
	return nil
}

// errDrops says that START throws away what a member received.
var errDrops = errors.New("START throws away what it received")

// keeps is errDrops if a START on a member, whose channels these are, would throw away what it received and has not applied.
func keeps(ctx context.Context, n *node, list []read.ReplicaChannel) error {
	for _, ch := range list {
		if !n.c.Server.StartDrops(ch.Status) {
			continue
		}
		if done, err := mysql.ReceivedAll(ctx, n.c, ch.Received); err != nil || done {
			return err
		}
		return fmt.Errorf("it does not apply (%s), and %w; %s applies that", cmp.Or(ch.Status.SQL.Words(), "without an error"), errDrops, n.c.Server.ApplyReceived(ch.Name, ch.RelayLog, ch.RelayPos))
	}
	return nil
}

// giveBack gives a member back what was lent from it.
func (r *run) giveBack(ctx context.Context, n *node) error {
	r.mu.Lock()
	was := r.j.Before[n.name].Farewell
	r.mu.Unlock()
	if was == "" {
		return nil
	}
	if err := r.do(ctx, n, n.c.Server.SetFarewell(was)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.j.Before[n.name]
	w.Farewell = ""
	r.j.Before[n.name] = w
	return nil
}

// giveAllBack gives all members back what a process that was cut off had lent from them.
func (r *run) giveAllBack(ctx context.Context) {
	for name, w := range r.j.Before {
		if w.Farewell == "" {
			continue
		}
		cctx, stop := context.WithTimeout(ctx, r.Limits.Stop)
		n, err := connect(cctx, name, r.targets[name], r.Limits.Stop)
		if err == nil {
			err = r.giveBack(cctx, n)
			n.close()
		}
		stop()
		if err != nil {
			r.words(name, "it does not have back what was lent from it: %v", err)
		}
	}
}
