package carry

import (
	"context"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/mysql"
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
	c, err := mysql.Connect(ctx, t.WithAddress(m.Address).WithAccount(account.User, account.Password), nil)
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
		anywhere = anywhere || row["Host"] == "%"
	}
	remedy := "give an account that the members let in by --replication-user, of risso group create or risso group set-access " + g.Name
	return failover.NewRefusal("replication_account", remedy, "%s does not let in the account %s, by which others would replicate from it", m.Name, account.User), anywhere
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
