package carry

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Aim closes a FAULTY member, and points it at the primary without letting it replicate: what it has is to be replaced before. It says which statements it ran.
func (c *Carrier) Aim(ctx context.Context, name, member string) (did []string, err error) {
	err = c.leased(ctx, name, func(ctx context.Context, g *group.Group) error {
		i, p := g.Find(member), g.Primary()
		if i < 0 || p < 0 || g.Members[i].Status != group.Faulty {
			return fault.New(fault.Failed, "risso group show "+name, fmt.Errorf("%w: %s is not FAULTY in %s, or there is no primary", ErrRefused, member, name))
		}
		targets, access, err := c.targets(ctx, g)
		if err != nil {
			return err
		}
		r := &run{Carrier: c, g: g, targets: targets, access: access, nodes: map[string]*node{}, j: &keep.Journal{Journal: failover.Journal{Group: name, Epoch: g.Epoch, New: g.Members[p].Name}}}
		defer r.close()
		n, err := r.node(ctx, member)
		if err != nil {
			return err
		}
		err = r.aim(ctx, n, g.Members[p].Address)
		for _, e := range r.j.Steps {
			did = append(did, e.What)
		}
		return err
	})
	return did, err
}

// aim is Aim on one member.
func (r *run) aim(ctx context.Context, n *node, address string) error {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("the address of the primary: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("the address of the primary: %w", err)
	}
	s := n.c.Server
	if err := r.do(ctx, n, s.Shut()); err != nil {
		return err
	}
	if err := r.waitsForNobody(ctx, n); err != nil {
		return err
	}
	list, err := read.ReplicaChannels(ctx, n.c)
	if err != nil {
		return fmt.Errorf("ask %s what it replicates: %w", n.name, err)
	}
	if len(list) > 1 {
		return fault.New(fault.Failed, "", fmt.Errorf("%w: %s replicates from %d sources", ErrRefused, n.name, len(list)))
	}
	if len(list) == 1 {
		if err := r.do(ctx, n, s.StopReplica(list[0].Name)); err != nil {
			return err
		}
		if list[0].GTID && list[0].User != "" {
			return r.rechannel(ctx, n, list[0].Name, mysql.Pointing{Host: host, Port: port, Beat: heartbeat, Lasting: true}, r.known(ctx, &list[0]))
		}
	}
	return r.channel(ctx, n, host, port)
}

// Aimed reports whether a member that was looked at has the channel that Aim gives it.
func Aimed(g *group.Group, n *topology.Node) bool {
	p := g.Primary()
	return p >= 0 && len(n.Channels) == 1 && n.Channels[0].Source == g.Members[p].Address && n.Channels[0].GTID && n.Channels[0].IORunning == "No" && !n.Channels[0].Applying()
}

// Returned lets a FAULTY member that was rebuilt come back: as SPARE, and as SECONDARY once it has caught up. One that somebody made FAULTY comes back only if a person asked for the
// rebuild.
func Returned(g *group.Group, member string, asked bool, now time.Time) error {
	i := g.Find(member)
	if i < 0 || g.Members[i].Status != group.Faulty {
		return fmt.Errorf("%w: %s is not FAULTY any more", ErrSurprise, member)
	}
	m := &g.Members[i]
	if m.ByHand && !asked { // it was while it was rebuilt
		m.Fault, m.Errant, m.Replaced, m.Unlogged, m.Rebuild = group.SaidSo, "", false, false, nil
		return nil
	}
	m.Status, m.Since, m.Fault, m.Errant, m.Replaced, m.Unlogged, m.ByHand, m.Back, m.Rebuild = group.Spare, now, "", "", false, false, false, true, nil
	return nil
}

// Extra are the transactions that a member has and the primary, which was asked later, has not.
func Extra(n, primary *topology.Node) mysql.Errant { return extra(n, primary) }
