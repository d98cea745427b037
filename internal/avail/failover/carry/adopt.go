package carry

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// lacking is a member with transactions that a rival of the primary has not.
type lacking struct {
	name   string
	errant mysql.Errant
}

// supplant judges whether a rival can be taken for the primary: it takes writes, and nobody else does. lacks are those who have what it has not; they are not asked for what they
// get from it. Its error has a remedy.
func supplant(g *group.Group, t *topology.Topology, rival string) (lacks []lacking, err error) {
	no := func(remedy, format string, args ...any) error {
		return fault.New(fault.Failed, remedy, fmt.Errorf("take %s for the primary of %s: %w: %w", rival, g.Name, ErrRefused, fmt.Errorf(format, args...)))
	}
	i, p := g.Find(rival), g.Primary()
	if i < 0 || p < 0 || i == p {
		return nil, no("risso group show "+g.Name, "it is not a member besides the primary")
	}
	m, r := g.Members[i], t.Find(rival)
	switch {
	case r < 0 || !t.Nodes[r].Seen:
		return nil, no("", "it does not answer")
	case !t.Nodes[r].Writes.Open():
		return nil, no("", "it takes no writes")
	case len(t.Nodes[r].Channels) > 0:
		return nil, no(strings.Join(mysql.Of(t.Nodes[r].Server).StopAll(), "; ")+" on "+rival+", if it is to be the primary", "it replicates from %s", t.Nodes[r].Channels[0].Source)
	case m.Status == group.Faulty:
		return nil, no("risso group set-status "+g.Name+" "+fleet.ShellWord(rival)+" SPARE, if it is to be the primary", "it is FAULTY: %s", m.Fault)
	}
	node := &t.Nodes[r]
	for _, o := range g.Members {
		n := t.Find(o.Name)
		if o.Name == rival || n < 0 || !t.Nodes[n].Seen {
			continue
		}
		other := &t.Nodes[n]
		if other.Writes.Open() {
			return nil, no("let one of the two take no writes: the one to which no clients write", "%s takes writes, too", o.Name)
		}
		if o.Name == g.Members[p].Name && len(other.Channels) > 0 && !followsNode(other, m.Address, node) {
			return nil, no(unchained(g, other), "%s, the primary by what Risso knows, replicates from %s", o.Name, other.Channels[0].Source)
		}
		if o.Status == group.Faulty || other.Untold() != nil {
			continue
		}
		errant := extra(other, node)
		if followsNode(other, m.Address, node) { // it was asked a moment later
			errant = foreign(other, node)
		}
		if !errant.Empty() {
			lacks = append(lacks, lacking{o.Name, errant})
		}
	}
	if n := t.Find(g.Members[p].Name); n < 0 || !t.Nodes[n].Seen { // it may take writes
		return nil, no("risso failover --group "+g.Name+" --to "+fleet.ShellWord(rival), "%s, the primary by what Risso knows, does not answer", g.Members[p].Name)
	}
	return lacks, nil
}

// supplants is the command by which a rival is taken for the primary, or what has to be done before.
func supplants(g *group.Group, t *topology.Topology, rival string) string {
	lacks, err := supplant(g, t, rival)
	if err != nil {
		return fleet.RemedyOf(err)
	}
	accept := ""
	if len(lacks) > 0 {
		accept = " --accept-loss"
	}
	return opens(g, rival) + accept + ", if clients are to write there; else let it take no writes"
}

// supplanting is supplant for somebody who accepts that what the rival lacks stays out, or does not.
func supplanting(g *group.Group, t *topology.Topology, rival string, accept bool) ([]lacking, error) {
	lacks, err := supplant(g, t, rival)
	if err == nil && len(lacks) > 0 && !accept {
		l := lacks[0]
		return nil, fault.New(fault.Failed, opens(g, rival)+" --accept-loss takes it all the same: "+l.name+" stays out then; risso gtid errant, with --dsn of "+l.name+" and --source of "+rival+", shows what they changed",
			fmt.Errorf("take %s for the primary of %s: %w: %s has %s, which %s has not", rival, g.Name, ErrRefused, l.name, l.errant, rival))
	}
	return lacks, err
}

// PlanSupplant judges whether a member that somebody made the primary without Risso can be taken for it, and says what is done for that. Nothing is changed, and on servers nothing is then.
func (c *Carrier) PlanSupplant(ctx context.Context, a Asked) (change.Plan, error) {
	g, _, t, err := c.looked(ctx, a.Group)
	if err != nil {
		return nil, err
	}
	lacks, err := supplanting(g, t, a.To, a.AcceptLoss)
	if err != nil {
		return nil, err
	}
	plan := change.Plan{{What: "tell clients", Where: "that " + a.To + " is the primary"}}
	for _, l := range lacks {
		plan = append(plan, change.Step{What: "keep out", Where: l.name, Why: "only it has " + l.errant.String()})
	}
	return plan, nil
}

// Supplant takes a member for the primary that somebody made it without Risso, as long as nobody else takes writes. Those who have what it has not stay out.
func (c *Carrier) Supplant(ctx context.Context, a Asked) (words string, err error) {
	err = c.leased(ctx, a.Group, func(ctx context.Context, g *group.Group) error {
		if err := c.waits(ctx, a.Group); err != nil {
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
		lacks, err := supplanting(g, t, a.To, a.AcceptLoss)
		if err != nil {
			return err
		}
		old := g.Members[g.Primary()].Name
		r.j = &keep.Journal{Journal: failover.Journal{Group: g.Name, Epoch: g.Epoch, New: a.To}}
		if err := r.adopt(ctx, a.To, lacks, time.Now().UTC()); err != nil {
			return err
		}
		words = fmt.Sprintf("%s is the primary of %s, and not by Risso: it takes writes, and %s takes none", a.To, g.Name, old)
		for _, l := range lacks {
			words += fmt.Sprintf("; %s stays out: only it has %s", l.name, l.errant)
		}
		return nil
	})
	return words, err
}

// adopt takes a member for the primary that somebody made it without Risso.
func (r *run) adopt(ctx context.Context, member string, lacks []lacking, now time.Time) error {
	g, err := r.Room.Change(ctx, r.g.Name, func(g *group.Group) error {
		if !r.mine(g) {
			return ErrLost
		}
		if err := g.Promoted(member, group.Secondary, "", g.Lease.Epoch, now); err != nil {
			return err
		}
		for _, l := range lacks {
			g.KeepOut(l.name, "it has transactions that the primary has not", now)
			g.Members[g.Find(l.name)].Errant = l.errant.String()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if r.g = g; r.Published != nil {
		r.Published(g)
	}
	return nil
}
