package carry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// This file lets the one that was chosen in a failover get what it lacks from the member that received it.

// unfed says that nobody can get from a member what it received: the one that was chosen is not why.
type unfed struct {
	from string
	err  error
}

func (e *unfed) Error() string {
	return "what it lacks it cannot get from " + e.from + ": " + e.err.Error()
}

// Unwrap returns why.
func (e *unfed) Unwrap() error { return e.err }

// feed lets a member that applied all that it received get the rest from another one. Its error is an unfed if that one is why it does not.
func (r *run) feed(ctx context.Context, n *node, from string) error {
	all, err := r.feeder(ctx, from)
	if err != nil {
		return &unfed{from, err}
	}
	if err = r.follow(ctx, n, r.g.Members[r.g.Find(from)].Address); err == nil {
		err = r.drain(ctx, n, all)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	list, lerr := read.ReplicaChannels(ctx, n.c)
	if lerr != nil || len(list) != 1 || !list[0].SQLRunning || list[0].Status.SQL.Text != "" {
		return err
	}
	received, rerr := mysql.ParseGTIDSet(list[0].Received)
	applied, aerr := mysql.AppliedGTIDs(ctx, n.c)
	if rerr != nil || aerr != nil || received.Union(applied).ContainsSet(all) {
		return err // it has all, and does not apply it
	}
	if serr := r.do(ctx, n, n.c.Server.StopThread(list[0].Name, mysql.Receiver)); serr != nil { // what it has is final again
		return errors.Join(err, serr)
	}
	return &unfed{from, err}
}

// feeder lets a member apply all that it received, so that its own log has it, and returns that.
func (r *run) feeder(ctx context.Context, name string) (mysql.GTIDSet, error) {
	n, err := r.node(ctx, name)
	if err != nil {
		return mysql.GTIDSet{}, err
	}
	if err := r.hurryFeeder(ctx, n); err != nil {
		return mysql.GTIDSet{}, err
	}
	all, err := receivedBy(ctx, n)
	if err != nil {
		return mysql.GTIDSet{}, err
	}
	return all, r.drain(ctx, n, all)
}

// hurryFeeder lets a member that stays behind on purpose apply at once what it received. It has its delay back at the end. One whose server would throw that away is not waited for longer than
// others are.
func (r *run) hurryFeeder(ctx context.Context, n *node) error {
	list, err := read.ReplicaChannels(ctx, n.c)
	if err != nil || len(list) != 1 || list[0].Delay == 0 {
		return err
	}
	ch := list[0]
	if done, err := mysql.ReceivedAll(ctx, n.c, ch.Received); err != nil || done {
		return err
	}
	if !n.c.Server.DelaysWhileReceiving() {
		if wait := time.Duration(ch.Delay) * time.Second; wait > r.Limits.Drain {
			return fmt.Errorf("%w: it stays %s behind on purpose, and applies what it received no sooner", ErrSurprise, digits.Span(wait))
		}
		return nil
	}
	stands := ch.Status.IORunning == "No"
	if stands { // to change its delay where both threads stand throws away what it received
		if err := r.do(ctx, n, n.c.Server.StartThread(ch.Name, mysql.Receiver)); err != nil {
			return err
		}
	}
	err = r.hurry(ctx, n, ch.Name, ch.Delay)
	if !stands {
		return err
	}
	if serr := r.do(ctx, n, n.c.Server.StopThread(ch.Name, mysql.Receiver)); serr != nil {
		r.mu.Lock()
		w := r.j.Before[n.name]
		w.Final = false // what it has is not
		r.j.Before[n.name] = w
		r.mu.Unlock()
		err = errors.Join(err, serr)
	}
	return err
}

// feeds looks at the member from which the one that would follow gets what it lacks, if that stays behind on purpose, for a forecast of a failover.
func (f *Forecast) feeds(t *topology.Topology, drain time.Duration) {
	from := f.Choice.From
	wait := time.Duration(delayOf(t, from)) * time.Second
	if from == "" || wait == 0 {
		return
	}
	n := &t.Nodes[t.Find(from)]
	if s, ch := mysql.Of(n.Server), &n.Channels[0]; s.DelaysWhileReceiving() {
		f.feed = append([]string{s.StartThread(ch.Name, mysql.Receiver)}, strings.Split(s.SetReplicaDelay(ch.Name, 0), "; ")...)
		f.feed = append(f.feed, s.StopThread(ch.Name, mysql.Receiver))
	} else if wait > drain {
		f.Notes = append(f.Notes, fmt.Sprintf("%s stays %s behind on purpose, and applies what it received no sooner: what only it received, and has not applied, would be lost", from, digits.Span(wait)))
	}
}

// cannotFeed adds to why nobody is promoted from whom what the others lack could not be had.
func cannotFeed(refusal error, failed []error) error {
	if len(failed) == 0 {
		return refusal
	}
	return fmt.Errorf("%w; %w", refusal, errors.Join(failed...))
}
