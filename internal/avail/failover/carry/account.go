package carry

import (
	"context"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
)

// CheckReplication says of which members it is known that others cannot replicate from them, as the group's account is not let in, or may not. An account that is
// let in only from the members' hosts is tried from here in vain: that proves nothing.
func CheckReplication(ctx context.Context, g *group.Group, targets map[string]mysql.Target, account keep.Account, patience time.Duration, names ...string) (list []failover.Refusal) {
	for _, name := range names {
		i := g.Find(name)
		if i < 0 {
			continue
		}
		m := g.Members[i]
		ctx, stop := context.WithTimeout(ctx, patience)
		if r, ok := checkAccount(ctx, g, m, targets[name], account); ok {
			list = append(list, r)
		}
		stop()
	}
	return list
}

func checkAccount(ctx context.Context, g *group.Group, m group.Member, t mysql.Target, account keep.Account) (failover.Refusal, bool) {
	_, c, err := asReplica(ctx, t.WithAddress(m.Address), account)
	if err == nil {
		defer c.Close()
		rights, err := c.Rights(ctx)
		if err == nil && !rights.Have("", "", "REPLICATION SLAVE") {
			return failover.NewRefusal("replication_account", c.Server.Grant("REPLICATION SLAVE"), "the account %s may not replicate from %s", account.User, m.Name), true
		}
		return failover.Refusal{}, false
	}
	if mysql.ClassOf(err) != mysql.ClassLogin {
		return failover.Refusal{}, false
	}
	own, oerr := mysql.Connect(ctx, t, nil)
	if oerr != nil {
		return failover.Refusal{}, false
	}
	defer own.Close()
	rows, oerr := own.Maps(ctx, own.Server.ReplicationAccounts(account.User))
	if oerr != nil {
		return failover.Refusal{}, false
	}
	anywhere := len(rows) == 0
	for _, row := range rows {
		anywhere = anywhere || row["Host"] == "%" && row["ssl_type"] != "X509" && row["ssl_type"] != "SPECIFIED"
	}
	remedy := "give an account that the members let in by --replication-user, of risso group create or risso group set-access " + g.Name
	return failover.NewRefusal("replication_account", remedy, "%s does not let in the account %s, by which others would replicate from it", m.Name, account.User), anywhere
}

// asReplica logs in as replicas do: over TLS, too, if the account is let in only so.
func asReplica(ctx context.Context, t mysql.Target, account keep.Account) (mysql.Target, *mysql.Conn, error) {
	t = t.WithAccount(account.User, account.Password)
	c, err := mysql.Connect(ctx, t, nil)
	if mysql.ClassOf(err) != mysql.ClassLogin && mysql.ErrorNumber(err) != errno.SecureTransportRequired {
		return t, c, err
	}
	if c, tlsErr := mysql.Connect(ctx, t.Encrypted(), nil); tlsErr == nil {
		return t.Encrypted(), c, nil
	}
	return t, nil, err
}

// lets reports whether it is seen from here that the primary lets the group's account replicate.
func lets(ctx context.Context, g *group.Group, primary string, targets map[string]mysql.Target, account keep.Account, patience time.Duration) bool {
	i := g.Find(primary)
	if i < 0 || account.User == "" {
		return false
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	_, c, err := asReplica(ctx, targets[primary].WithAddress(g.Members[i].Address), account)
	if err != nil {
		return false
	}
	defer c.Close()
	rights, err := c.Rights(ctx)
	return err == nil && rights.Have("", "", "REPLICATION SLAVE")
}

// letsPatience is how long a member that is to follow waits at most until it is known that its password still is the right one.
const letsPatience = time.Second

// known reports whether a channel gets the group's account when it is pointed at the primary: the source refused the one that it has; or it is the same, whose password may
// have been changed since, and lets this process in. Another account that works stays: the group's may be let in from here only.
func (r *run) known(ctx context.Context, ch *read.ReplicaChannel) bool {
	a := r.access.Replication
	switch {
	case a.User == "":
		return false
	case mysql.LoginRefused(ch.Status, ch.Tries):
		return true
	}
	return ch.User == a.User && lets(ctx, r.g, r.j.New, r.targets, a, letsPatience)
}

// rechannel points a channel that replicates by GTID, and whose receiver stands, at a server; with says that it logs in by the group's account from then on.
func (r *run) rechannel(ctx context.Context, n *node, channel string, p mysql.Pointing, with bool) error {
	if with {
		p.User, p.Password = r.access.Replication.User, r.access.Replication.Password
	}
	return r.doShown(ctx, n, n.c.Server.Point(channel, p), n.c.Server.Point(channel, p.Shown()))
}

// logIn lets a member that was pointed at the primary with the account that it had, and is refused there, log in by the group's.
func (r *run) logIn(ctx context.Context, n *node, p mysql.Pointing) error {
	list, err := read.ReplicaChannels(ctx, n.c)
	if err != nil || len(list) != 1 {
		return err
	}
	r.words(n.name, "the primary does not let in the account by which it replicated (%s): it gets that of the group", list[0].Status.IO.Words())
	stop, start := n.c.Server.AroundPointing(list[0].Name)
	if err := r.do(ctx, n, stop); err != nil {
		return err
	}
	if err := r.rechannel(ctx, n, list[0].Name, p, true); err != nil {
		return err
	}
	return r.do(ctx, n, start)
}

// channelName is by which name statements mean the channel of a member. A MariaDB that is told none means the one without a name, whether it has that or not.
func channelName(list []read.ReplicaChannel) string {
	if len(list) == 1 {
		return list[0].Name
	}
	return ""
}

// onlyChannel is the channel by which a member replicates; nil: it does not, or by several.
func onlyChannel(ctx context.Context, c *mysql.Conn) (*read.ReplicaChannel, error) {
	list, err := read.OuterChannels(ctx, c)
	if err != nil || len(list) != 1 {
		return nil, err
	}
	return &list[0], nil
}

// Lacking are, by member, the statements that give the account by which Risso reaches it what a change of the primary needs. Members that do not answer are left out.
func Lacking(ctx context.Context, g *group.Group, targets map[string]mysql.Target, patience time.Duration) map[string][]string {
	var mu sync.Mutex
	out := map[string][]string{}
	var names []string
	for _, m := range g.Members {
		names = append(names, m.Name)
	}
	each(names, func(name string) error {
		ctx, stop := context.WithTimeout(ctx, patience)
		defer stop()
		n, err := connect(ctx, name, targets[name], patience)
		if err != nil {
			return err
		}
		defer n.close()
		rights, err := n.c.Rights(ctx)
		if err != nil {
			return err
		}
		if list := n.c.Server.Missing(rights, "", mysql.JobFailover); len(list) > 0 {
			mu.Lock()
			defer mu.Unlock()
			out[name] = list
		}
		return nil
	})
	return out
}

// Lacking are the same statements for the members of a group.
func (c *Carrier) Lacking(ctx context.Context, g *group.Group) (map[string][]string, error) {
	targets, _, err := c.targets(ctx, g)
	if err != nil {
		return nil, err
	}
	return Lacking(ctx, g, targets, c.Limits.Look), nil
}
