package carry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// This file lets a member follow that stays behind on purpose, and was named. It catches up before writes are stopped: its delay would let them stand for as long.

// catchUps is how many times as long as the new primary may take to apply what it received a delayed one may take to catch up: writes go on meanwhile.
const catchUps = 10

// delayOf is by how many seconds a member stays behind on purpose.
func delayOf(t *topology.Topology, name string) int {
	if i := t.Find(name); i >= 0 && len(t.Nodes[i].Channels) == 1 {
		return t.Nodes[i].Channels[0].Delay
	}
	return 0
}

// mayHurry refuses a delayed member whose server throws away what it received when its delay is changed, if its source has not all of that any more.
func (c *Carrier) mayHurry(ctx context.Context, t *topology.Topology, old string, target mysql.Target, name string) (list []failover.Refusal) {
	n := &t.Nodes[t.Find(name)]
	if mysql.Of(n.Server).DelaysWhileReceiving() {
		return nil
	}
	no := func(format string, args ...any) []failover.Refusal {
		return []failover.Refusal{failover.NewRefusal("delayed", "risso replica delay "+name+" 0", "%s stays %s behind on purpose; without that it fetches again what it received, and "+format,
			append([]any{name, digits.Span(time.Duration(delayOf(t, name)) * time.Second)}, args...)...)}
	}
	at, err := connect(ctx, old, target, c.Limits.Look)
	if err != nil {
		return no("%s cannot be asked for it: %v", old, err)
	}
	defer at.close()
	text, err := mysql.GoneGTIDs(ctx, at.c)
	if err != nil {
		return no("whether %s still has that is not known: %v", old, err)
	}
	gone, err := mysql.ParseGTIDSet(text)
	has, herr := mysql.ParseGTIDSet(n.GTID.Applied)
	if missing := gone.Subtract(has); err != nil || herr != nil || !missing.Empty() {
		return no("%s has not all of that any more", old)
	}
	return nil
}

// hurry lets a delayed member apply at once what it has and gets. What its delay was is in the journal before.
func (r *run) hurry(ctx context.Context, n *node, channel string, seconds int) error {
	r.mu.Lock()
	w := r.j.Before[n.name]
	w.Delay = seconds
	r.j.Before[n.name] = w
	err := r.j.Save(ctx)
	r.mu.Unlock()
	if err != nil {
		return err
	}
	return r.setDelay(ctx, n, channel, 0)
}

// setDelay gives a channel a delay. Where that fails, what was stopped for it is started again.
func (r *run) setDelay(ctx context.Context, n *node, channel string, seconds int) error {
	list := strings.Split(n.c.Server.SetReplicaDelay(channel, seconds), "; ")
	for i, s := range list {
		if err := r.do(ctx, n, s); err != nil {
			if again, cerr := connect(ctx, n.name, r.targets[n.name], r.Limits.Stop); i < len(list)-1 && cerr == nil {
				defer again.close()
				err = errors.Join(err, r.do(ctx, again, list[len(list)-1]))
			}
			return err
		}
	}
	return nil
}

// catchUp lets the one that was named, which stays behind on purpose, be level with the primary while that goes on to take writes.
func (r *run) catchUp(ctx context.Context, old, n *node) error {
	list, err := read.ReplicaChannels(ctx, n.c)
	if err != nil || len(list) != 1 || list[0].Delay == 0 {
		return err
	}
	limit := catchUps * r.Limits.Drain
	if err := r.hurry(ctx, n, list[0].Name, list[0].Delay); err != nil {
		return err
	}
	for range 2 { // what came meanwhile is little
		all, err := mysql.LoggedGTIDs(ctx, old.c)
		if err != nil {
			return fmt.Errorf("ask %s for its last transaction: %w", old.name, err)
		}
		if err := r.drainFor(ctx, n, all, limit); err != nil {
			return err
		}
	}
	r.words(n.name, "it has caught up, and stays %ds behind no more", list[0].Delay)
	return nil
}

// hurryReceived lets one that was named in a failover, and stays behind on purpose, apply what it received. A server that would throw that away for it is refused, unless it is
// waited for as long.
func (r *run) hurryReceived(ctx context.Context, name string) error {
	if r.g.Find(name) < 0 {
		return nil // it is refused later
	}
	n, err := connect(ctx, name, r.targets[name], r.Limits.Drain+r.Limits.Stop)
	if err != nil {
		return nil
	}
	defer n.close()
	list, err := read.ReplicaChannels(ctx, n.c)
	if err != nil || len(list) != 1 || list[0].Delay == 0 {
		return err
	}
	ch := list[0]
	if n.c.Server.DelaysWhileReceiving() {
		if ch.Status.IORunning == "No" { // where both stand it throws away what it received
			if err := r.do(ctx, n, n.c.Server.StartThread(ch.Name, mysql.Receiver)); err != nil {
				return err
			}
		}
		return r.hurry(ctx, n, ch.Name, ch.Delay)
	}
	done, err := mysql.ReceivedAll(ctx, n.c, ch.Received)
	if err == nil && !done {
		err = tooDelayed(r.g.Name, name, ch.Delay, r.Limits.Drain)
	}
	return err
}

// tooDelayed refuses a member whose server applies what it received only after its delay, as it would throw that away without; nil: it is waited for as long.
func tooDelayed(group, name string, seconds int, drain time.Duration) error {
	wait := time.Duration(seconds) * time.Second
	if wait <= drain {
		return nil
	}
	return refused("failover of "+group, []failover.Refusal{delayedTooLong(name, wait, drain)})
}

func delayedTooLong(name string, wait, drain time.Duration) failover.Refusal {
	return failover.NewRefusal("delayed", fmt.Sprintf("--drain %ds waits for that; or name another one", int((wait+drain).Seconds())),
		"%s stays %s behind on purpose, and applies what it received no sooner: without the delay a MariaDB throws that away", name, digits.Span(wait))
}

// delayed looks at the one that was named and stays behind on purpose, for a forecast of a failover.
func (f *Forecast) delayed(t *topology.Topology, to string, drain time.Duration) {
	seconds := delayOf(t, to)
	if to == "" || f.Choice.Winner != to || seconds == 0 {
		return
	}
	wait := time.Duration(seconds) * time.Second
	n := &t.Nodes[t.Find(to)]
	switch s := mysql.Of(n.Server); {
	case s.DelaysWhileReceiving():
		f.hurries = strings.Split(s.SetReplicaDelay(n.Channels[0].Name, 0), "; ")
	case wait > drain && slices.ContainsFunc(f.Choice.Candidates, func(c failover.Candidate) bool { return c.Name == to && c.Waiting > 0 }):
		f.Choice.Refused, f.Choice.Winner, f.Choice.From = append(f.Choice.Refused, delayedTooLong(to, wait, drain)), "", ""
	}
}

// delayAgain gives members back that they stay behind on purpose, but for one that does not replicate any more. Its error says of which that is not so.
func (r *run) delayAgain(ctx context.Context) (failed error) {
	for name, w := range r.j.Before {
		if w.Delay == 0 {
			continue
		}
		n, err := connect(ctx, name, r.targets[name], r.Limits.Point)
		if err == nil {
			var list []read.ReplicaChannel
			if list, err = read.ReplicaChannels(ctx, n.c); err == nil && len(list) == 1 && list[0].Delay != w.Delay {
				if err = keepsDelayed(ctx, n, list[0]); err == nil {
					err = r.setDelay(ctx, n, list[0].Name, w.Delay)
				}
			}
			n.close()
		}
		if err != nil {
			r.words(name, "it does not stay %ds behind again: %v", w.Delay, err)
			failed = errors.Join(failed, fmt.Errorf("%s does not stay %ds behind again (risso replica delay %s %ds): %w", name, w.Delay, name, w.Delay, err))
		}
	}
	return failed
}

// keepsDelayed is an error if a member would throw away what it received, and has not applied, when its delay is changed: both of its threads stand then.
func keepsDelayed(ctx context.Context, n *node, ch read.ReplicaChannel) error {
	if ch.Status.IORunning != "No" {
		return nil
	}
	done, err := mysql.ReceivedAll(ctx, n.c, ch.Received)
	if err == nil && !done {
		err = errors.New("it does not receive, and would throw away what it has not applied")
	}
	return err
}
