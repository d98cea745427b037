package carry

import (
	"context"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/fence"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
)

// Demoted is the demotion of a primary that was judged, as a plan.
type Demoted struct {
	Group *group.Group
	Old   string
	Plan  change.Plan
}

// PlanDemote judges a demotion and makes its plan. Nothing is changed.
func (c *Carrier) PlanDemote(ctx context.Context, name string) (*Demoted, error) {
	g, err := c.Room.Group(ctx, name)
	if err != nil {
		return nil, err
	}
	was, err := demotable(g)
	if err != nil {
		return nil, err
	}
	if err := c.CutOff(ctx, g); err != nil {
		return nil, err
	}
	r, err := c.run(ctx, g)
	if err != nil {
		return nil, err
	}
	defer r.close()
	t, err := lookAt(ctx, g, r.targets, c.Limits.Look)
	if err != nil {
		return nil, err
	}
	i := t.Find(was)
	if i < 0 || !t.Nodes[i].Seen {
		why := ""
		if i >= 0 && t.Nodes[i].Unseen != nil {
			why = ": " + t.Nodes[i].Unseen.Words()
		}
		return nil, fault.New(fault.Failed, "risso failover --group "+name, fmt.Errorf("demote %s: %w: it does not answer%s", was, ErrRefused, why))
	}
	if err := c.others(ctx, r, t, was); err != nil {
		return nil, err
	}
	return &Demoted{Group: g, Old: was, Plan: change.Plan{
		{What: mysql.Of(t.Nodes[i].Server).Shut(), Where: "on " + was, Why: "nobody takes writes from here; what clients do there is ended"},
		{What: "tell clients", Where: "that " + name + " has no primary"},
	}}, nil
}

// demotable is the primary of a group, which may be demoted.
func demotable(g *group.Group) (string, error) {
	i := g.Primary()
	if i < 0 {
		return "", fault.New(fault.Failed, "risso group promote "+g.Name, fmt.Errorf("demote: %w: %s has no primary", ErrRefused, g.Name))
	}
	return g.Members[i].Name, nil
}

// Demote lets a group have no primary: the one that it has takes no writes any more, until one is promoted. It says how certain that is.
func (c *Carrier) Demote(ctx context.Context, name string) (words string, err error) {
	err = c.leased(ctx, name, func(ctx context.Context, g *group.Group) error {
		was, err := demotable(g)
		if err != nil {
			return err
		}
		if err := c.waits(ctx, name); err != nil {
			return err
		}
		r, err := c.run(ctx, g)
		if err != nil {
			return err
		}
		defer r.close()
		t, err := lookAt(ctx, g, r.targets, c.Limits.Look)
		if err != nil {
			return err
		}
		if err := c.others(ctx, r, t, was); err != nil {
			return err
		}
		if err := c.keepSeen(ctx, g, t, true); err != nil { // who is promoted next cannot ask it
			return err
		}
		r.j = &keep.Journal{Journal: failover.Journal{Group: name, Epoch: g.Lease.Epoch, Old: was}}
		res, err := r.shut(ctx, was, fence.Options{Limit: c.Limits.Stop, Grace: grace})
		if err != nil {
			return err
		}
		_, err = c.Room.Change(ctx, name, func(g *group.Group) error {
			if g.Lease.Holder != c.Holder {
				return ErrLost
			}
			if i := g.Find(was); i >= 0 {
				g.Members[i].Status, g.Members[i].Since = group.Secondary, time.Now().UTC()
			}
			g.Epoch, g.Since = g.Lease.Epoch, time.Now().UTC()
			return nil
		})
		words = res.Words()
		return err
	})
	return words, err
}

// others refuses to demote a primary where nobody else could be promoted then: nobody would take writes.
func (c *Carrier) others(ctx context.Context, r *run, t *topology.Topology, was string) error {
	if i := t.Find(was); i < 0 || !t.Nodes[i].Seen {
		return nil // it is refused by what it does not answer
	}
	choice := failover.Choose(failover.Question{Group: r.g, Topology: t, Old: was, Known: KnownOf(r.g, t, was), Room: rooms(ctx, r.g, t, r.targets, r.access)})
	if choice.Winner == "" {
		return refused("demote "+was+": no other member could be promoted then", choice.Refused)
	}
	if choice.Deaf != nil { // what it has they would not get
		return refused("demote "+was, []failover.Refusal{*choice.Deaf})
	}
	return nil
}
