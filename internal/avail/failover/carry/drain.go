package carry

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/lag"
	"github.com/rissodb/risso/internal/avail/lag/ask"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// This file says for how long a failover or a switchover waits until the one that follows has applied what it has to.

// drainLook is for how long appliers are looked at, to see how fast they are.
const drainLook = time.Second

// appliers are the members that have something to apply, as they were looked at.
type appliers struct {
	facts  map[string]lag.Facts
	failed map[string]error
	has    mysql.GTIDSet // what the primary has, if it answers
}

// drains adds how long candidates take to apply what they received, and the winner what it lacks of a member, and of a primary that answers. Who has nothing to apply is not looked at; the primary is
// not asked again, as it may hang.
func (c *Carrier) drains(ctx context.Context, ch *failover.Choice, t *topology.Topology, targets map[string]mysql.Target, old string) {
	a := appliers{facts: map[string]lag.Facts{}}
	o := t.Find(old)
	alive := o >= 0 && t.Nodes[o].Seen && t.Nodes[o].Unseen == nil
	if alive {
		a.has, _ = mysql.ParseGTIDSet(t.Nodes[o].GTID.Executed) // one that cannot be read is no candidate's either
	}
	var names []string
	for i := range ch.Candidates {
		k := &ch.Candidates[i]
		n := t.Find(k.Name)
		if n < 0 || !t.Nodes[n].Seen || len(t.Nodes[n].Channels) != 1 {
			continue
		}
		if k.Waiting > 0 || k.Name == ch.Winner && (ch.From != "" || a.lacks(k) > 0) {
			names = append(names, k.Name)
		}
	}
	var mu sync.Mutex
	a.failed = each(names, func(name string) error {
		list, err := ask.Replica(ctx, ask.Options{Target: targets[name], Alone: true, For: drainLook, Grace: 2 * c.Limits.Look})
		if err == nil && len(list) != 1 {
			err = fmt.Errorf("it replicates from %d servers", len(list))
		}
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		a.facts[name] = list[0]
		return nil
	})
	for i := range ch.Candidates {
		k := &ch.Candidates[i]
		if n := t.Find(k.Name); n >= 0 && t.Nodes[n].Seen {
			d := a.drain(k, 0)
			k.Drain = &d
		}
	}
	if w := ch.Candidate(ch.Winner); w != nil && w.Drain != nil {
		ch.Drain = joined(ch, w, a.drain(w, int64(w.Lacks)))
		if alive {
			d := a.drain(w, a.lacks(w))
			ch.Handover = &d
		}
	}
}

// lacks is how many transactions of the primary a candidate has not received.
func (a *appliers) lacks(k *failover.Candidate) int64 {
	received, err := mysql.ParseGTIDSet(k.Received)
	if err != nil {
		return 0
	}
	if f, ok := a.facts[k.Name]; ok { // it goes on to receive
		received = received.Union(f.After.Received)
	}
	return int64(a.has.Ahead(received))
}

// drain is how long a candidate takes for what it received, and more.
func (a *appliers) drain(k *failover.Candidate, more int64) lag.Drain {
	f, seen := a.facts[k.Name]
	left := int64(k.Waiting) + more
	switch err := a.failed[k.Name]; {
	case seen:
		return f.Drain(more)
	case err != nil:
		return lag.DrainUnknown(left, err.Error())
	case left > 0:
		return lag.DrainUnknown(left, "its applier was not looked at")
	}
	return lag.Drained()
}

// joined is how long the winner takes for all that it, and the member from which it gets what it lacks, received: all, once it has that. That one applies what it has to meanwhile.
func joined(ch *failover.Choice, w *failover.Candidate, all lag.Drain) *lag.Drain {
	from := ch.Candidate(ch.From)
	if from == nil || from.Drain == nil {
		return w.Drain
	}
	switch {
	case from.Drain.Seconds == nil:
		all = *from.Drain
		all.Words = from.Name + ": " + all.Words
	case w.Drain.Seconds != nil:
		all = all.Then(max(0, *from.Drain.Seconds-*w.Drain.Seconds))
	}
	return &all
}

// drainNotes says for how long a failover would wait for more than the winner received, and when it would give it up.
func drainNotes(c *failover.Choice, limit time.Duration) (notes []string) {
	d := c.Drain
	if d == nil {
		return nil
	}
	if c.From != "" {
		notes = append(notes, fmt.Sprintf("until %s has applied what it and %s received: %s", c.Winner, c.From, d.Words))
	}
	if d.Seconds != nil && !d.AtMost && *d.Seconds > limit.Seconds() {
		notes = append(notes, fmt.Sprintf("a failover waits %s for that, and gives %s up then: --drain lets it wait longer", digits.Span(limit), c.Winner))
	}
	return notes
}

// handoverNotes says for how long writes would stand still in a switchover.
func handoverNotes(c *failover.Choice, t *topology.Topology, old string) []string {
	d := c.Handover
	switch {
	case d == nil || d.Transactions != nil && *d.Transactions == 0:
		return nil
	case delayOf(t, c.Winner) > 0:
		return []string{fmt.Sprintf("in a switchover %s would first catch up, while writes go on: %s", c.Winner, d.Words)}
	case d.Transactions == nil:
		return []string{fmt.Sprintf("in a switchover writes would stand still until %s has applied what %s has: %s", c.Winner, old, d.Words)}
	}
	return []string{fmt.Sprintf("in a switchover writes would stand still until %s has applied %s of %s: %s", c.Winner, digits.Counted(*d.Transactions, "transaction"), old, d.Words)}
}
