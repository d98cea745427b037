package carry

import (
	"context"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// This file sees that a primary came back without transactions that its replicas got from it, as after a crash of its machine while sync_binlog was not 1.

// behind is the member that received the most transactions which a primary that takes no writes had, and has not any more; "": none did. It goes on to take none: it would number
// others in the same way. What it seems to lack it is asked for once more, as a commit that waits for a replica is seen there first. One that cannot be asked is not known to have it.
func (c *Carrier) behind(ctx context.Context, g *group.Group, t *topology.Topology, primary *topology.Node, target mysql.Target) (member string, e mysql.Errant) {
	if member, e = leads(g, t, primary, primary.GTID.Newest()); member == "" {
		return "", e
	}
	n, err := connect(ctx, primary.Name, target, c.Limits.Look)
	if err != nil {
		return member, e
	}
	defer n.close()
	v, err := read.Variables(ctx, n.c, []string{n.c.Server.ExecutedTransactions(), "gtid_owned"})
	if err != nil {
		return member, e
	}
	owned, err := mysql.ParseOwned(v["gtid_owned"])
	if err != nil {
		return member, e
	}
	return leads(g, t, primary, failover.Received(v[n.c.Server.ExecutedTransactions()], owned.String()))
}

// leads is the member that received the most of the primary's transactions which are not among those that it has now. Where it has none at all all are its own.
func leads(g *group.Group, t *topology.Topology, primary *topology.Node, has string) (member string, most mysql.Errant) {
	for _, m := range g.Members {
		i := t.Find(m.Name)
		if i < 0 || !t.Nodes[i].Seen || m.Name == primary.Name || m.Status == group.Faulty {
			continue
		}
		n := &t.Nodes[i]
		mine := []string{n.GTID.All()}
		for _, ch := range n.Channels {
			mine = append(mine, ch.Received)
		}
		compare := func(mine string) (mysql.Errant, error) { return mysql.ErrantTransactions(mine, has) }
		if has == "" {
			compare = mysql.AllErrant
		}
		e, err := compare(failover.Received(mine...))
		if err != nil {
			continue
		}
		if e = e.Forgotten(primary.GTID.Applied, n.ServerID); has != "" {
			e, _ = e.Split(wrote(primary))
		}
		if !e.Empty() && (member == "" || e.Count() > most.Count()) {
			member, most = m.Name, e
		}
	}
	return member, most
}

// wrote tells transactions that came from a server itself.
func wrote(n *topology.Node) func(uuid string, server uint32) bool {
	return func(uuid string, server uint32) bool {
		return uuid != "" && strings.EqualFold(uuid, n.UUID) || uuid == "" && fmt.Sprint(server) == n.ServerID
	}
}

// lostOwn are the transactions of a member's own that the primary has, and the member has not any more. It would not get them: a server passes over what it wrote itself when that comes from
// another one. A MariaDB that acknowledges, and is strict, does not: it lets go of its own tail when it is started (MDEV-21117).
func lostOwn(n, primary *topology.Node) mysql.Errant {
	if n.GTID.ByDomain && n.GTID.Strict && n.SemiSync.ReplicaEnabled && n.Number >= 100600 {
		return mysql.Errant{}
	}
	e, err := mysql.ErrantTransactions(primary.GTID.Newest(), n.GTID.All())
	if err != nil {
		return mysql.Errant{}
	}
	own, _ := e.Forgotten(n.GTID.Applied, "").Split(wrote(n)) // one that was filled with a copy has them, and no log of them
	return own
}

// lostWords is why a member stays out that lost transactions of its own.
func lostWords(group, member string, lost mysql.Errant) string {
	return fmt.Sprintf("it has lost transactions of its own that the primary has (%s), and gets them from no other server: %s", lost, Rebuilds(group, member))
}

// Rebuilds is the command that makes a member a copy of the primary.
func Rebuilds(group, member string) string {
	return "risso group rebuild " + group + " " + fleet.ShellWord(member)
}
