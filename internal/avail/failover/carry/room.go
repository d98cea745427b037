package carry

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/avail/agent"
	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/mysql"
)

// roomTime is how long it may take to learn how much room members have: a failover waits for it.
const roomTime = 500 * time.Millisecond

// rooms asks how much room members have: this machine, their agents, or the servers themselves. What none of them says is not known.
func rooms(ctx context.Context, g *group.Group, t *topology.Topology, targets map[string]mysql.Target, access keep.Access) map[string]failover.Room {
	ctx, stop := context.WithTimeout(ctx, roomTime)
	defer stop()
	out := map[string]failover.Room{}
	var mu sync.Mutex
	var asked sync.WaitGroup
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if !n.Seen {
			continue
		}
		asked.Go(func() {
			if r, ok := roomOf(ctx, g, n, targets[n.Name], access); ok {
				mu.Lock()
				defer mu.Unlock()
				out[n.Name] = r
			}
		})
	}
	asked.Wait()
	return out
}

func roomOf(ctx context.Context, g *group.Group, n *topology.Node, t mysql.Target, access keep.Access) (failover.Room, bool) {
	var fs unix.Statfs_t
	if n.Here && n.DataDir != "" && unix.Statfs(n.DataDir, &fs) == nil {
		return failover.Room{Free: fs.Bavail * uint64(fs.Bsize), By: "seen on this machine"}, true
	}
	if at := agentURL(g, n.Name); at != "" && access.Agents != "" {
		if r, err := agent.Look(ctx, http.DefaultClient, at, access.Agents); err == nil && r.Server.Disk != nil {
			return failover.Room{Free: r.Server.Disk.Free, By: "says its agent"}, true
		}
	}
	if !mysql.Of(n.Server).TellsDisks() {
		return failover.Room{}, false
	}
	c, err := connect(ctx, n.Name, t, roomTime)
	if err != nil {
		return failover.Room{}, false
	}
	defer c.close()
	free, ok, err := mysql.DiskFree(ctx, c.c, n.DataDir)
	return failover.Room{Free: free, By: "says its server"}, ok && err == nil
}
