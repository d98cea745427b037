package gather

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/differ/describe"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// uncounted is how long a transaction may take that replicas have, and that their source does not count yet as it is not committed.
const uncounted = 200 * time.Millisecond

// Together compares servers with each other, each by its name and the group of the config file, and returns what was found on each. A server that does not answer, or
// tells nothing of itself, is left out; why is by its place in troubles. wanted tells which findings anybody wants; nil: all.
func Together(ctx context.Context, targets []mysql.Target, names, groups []string, wanted func(id string) bool) (found [][]advise.Finding, troubles [][]fleet.Trouble, err error) {
	members, troubles := make([]advise.Member, len(targets)), make([][]fleet.Trouble, len(targets))
	note := func(i int, what string, err error) {
		if err != nil {
			troubles[i] = append(troubles[i], fleet.Trouble{What: what, Why: err.Error(), Remedy: fleet.RemedyOf(err)})
		}
	}
	for i, target := range targets {
		m, err := member(ctx, target, names[i], groups[i])
		note(i, "how it differs from the others of its group", err)
		members[i] = m
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
	}
	// After that of all was read: what a replica has, its source had before. A MySQL counts a transaction a moment after it sent it.
	if len(targets) > 1 && delay.For(ctx, uncounted) != nil {
		return nil, nil, context.Cause(ctx)
	}
	for i, target := range targets {
		if members[i].Executed == "" {
			continue
		}
		later, err := executed(ctx, target)
		note(i, "which transactions it has had", err)
		members[i].Later = later
	}
	found = advise.Together(members)
	for i := range found {
		found[i] = slices.DeleteFunc(found[i], func(f advise.Finding) bool { return wanted != nil && !wanted(f.ID) })
	}
	return found, troubles, nil
}

// member reads what a server is compared by.
func member(ctx context.Context, target mysql.Target, name, group string) (m advise.Member, err error) {
	m.Name, m.Group = name, group
	c, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return m, err
	}
	defer c.Close()
	m.Server = c.Server
	v, err := read.Variables(ctx, c, []string{"server_uuid", "server_id", "port", "group_replication_group_name", c.Server.ExecutedTransactions()})
	if err != nil {
		return m, err
	}
	m.UUID, m.ID, m.Port, m.Cluster, m.Executed = v["server_uuid"], v["server_id"], v["port"], v["group_replication_group_name"], v[c.Server.ExecutedTransactions()]
	rows, err := c.Maps(ctx, "SHOW /* risso: is it in a cluster? */ GLOBAL STATUS LIKE 'wsrep_cluster_state_uuid'")
	if err != nil {
		return m, fmt.Errorf("ask for its cluster: %w", err)
	}
	for _, r := range rows {
		m.Cluster = cmp.Or(m.Cluster, r["Value"])
	}
	channels, err := read.ReplicaChannels(ctx, c)
	if err != nil {
		return m, fmt.Errorf("ask for its source: %w", err)
	}
	m.Channels = channelsOf(channels)
	m.Settings, err = describe.Settings(ctx, c, name, time.Now())
	return m, err
}

// executed reads which transactions a server's binary log has had.
func executed(ctx context.Context, target mysql.Target) (string, error) {
	c, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return "", err
	}
	defer c.Close()
	name := c.Server.ExecutedTransactions()
	v, err := read.Variables(ctx, c, []string{name})
	return v[name], err
}
