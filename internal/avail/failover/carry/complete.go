package carry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/mysql"
)

// Complete writes into the last receipt of each old primary of a group that answers by now which transactions only it has. It changes nothing on servers.
func (c *Carrier) Complete(ctx context.Context, name string) error {
	list, err := c.Room.Journals(ctx, name)
	if err != nil {
		return err
	}
	g, err := c.Room.Group(ctx, name)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	var open []*keep.Journal
	for i := len(list) - 1; i >= 0; i-- {
		j := list[i]
		if j.Kind != failover.Failover || j.Receipt == nil || seen[j.Old] {
			continue
		}
		seen[j.Old] = true
		if g.Find(j.Old) >= 0 {
			open = append(open, j)
		}
	}
	if len(open) == 0 || g.Primary() < 0 {
		return nil
	}
	t, err := c.Look(ctx, g)
	if err != nil {
		return err
	}
	p := t.Find(g.Members[g.Primary()].Name)
	if p < 0 || !t.Nodes[p].Seen {
		return nil
	}
	var failed error
	for _, j := range open {
		o := t.Find(j.Old)
		if o < 0 || o == p || !t.Nodes[o].Seen {
			continue
		}
		m, e := &g.Members[g.Find(j.Old)], extra(&t.Nodes[o], &t.Nodes[p])
		switch {
		case !m.Replaced: // it came back, or its data were replaced: what it has now is not what it had
		case !e.Empty():
			failed = errors.Join(failed, c.Room.Amend(ctx, j, func(r *failover.Receipt) bool { return failover.Amend(r, e, returned(j, &t.Nodes[o])) }))
		case len(t.Nodes[o].Channels) == 0:
			failed = errors.Join(failed, c.Room.Amend(ctx, j, func(r *failover.Receipt) bool { return failover.Cleared(r, j.Known, &t.Nodes[o]) }))
		}
	}
	return failed
}

// returned is what became of the old primary of a failover, which answers.
func returned(j *keep.Journal, n *topology.Node) (back failover.Returned) {
	if n.Started.After(j.Known.At.Add(-time.Second)) { // which is known within a second
		back = failover.Returned{Started: n.Started, Skew: n.Skew}
	}
	return back
}

// Note writes into a receipt that a transaction was applied to the primary.
func (c *Carrier) Note(ctx context.Context, j *keep.Journal, g mysql.GTID, to, by string, unchecked bool) error {
	err := c.Room.Amend(ctx, j, func(r *failover.Receipt) bool {
		r.Applied = append(r.Applied, failover.Applied{GTID: g.String(), At: time.Now().UTC(), By: by, To: to, Unchecked: unchecked})
		return true
	})
	if err != nil {
		return fmt.Errorf("%s was applied; write that into the receipt: %w", g, err)
	}
	return nil
}
