package carry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// lives says why a primary that could not be asked lives nevertheless: it answers with an error, or members go on to hear from it. "": nothing says that it does.
func (c *Carrier) lives(ctx context.Context, g *group.Group, t *topology.Topology, old string, targets map[string]mysql.Target, access keep.Access) string {
	i := t.Find(old)
	if i < 0 || t.Nodes[i].Seen {
		return ""
	}
	if f := t.Nodes[i].Unseen; f != nil && failover.Lives(f.Kind) {
		return "it lives, but cannot be asked: " + f.Words()
	}
	var mu sync.Mutex
	var hear []string
	var names []string
	for _, m := range g.Members {
		if j := t.Find(m.Name); m.Name != old && j >= 0 && t.Nodes[j].Seen && len(t.Nodes[j].Channels) == 1 && t.Nodes[j].Channels[0].Receiving() && !below(g, t, j, old) {
			names = append(names, m.Name)
		}
	}
	each(names, func(name string) error {
		if hears(ctx, name, targets[name]) {
			mu.Lock()
			defer mu.Unlock()
			hear = append(hear, name)
		}
		return nil
	})
	if len(hear) == 0 {
		return c.livesBeside(ctx, g, old, access)
	}
	slices.Sort(hear)
	return "it does not answer here, but what it sends arrives at " + strings.Join(hear, ", ")
}

// writtenLately is how long ago a primary has to have taken a transaction, as its agent sees, if it is to live.
const writtenLately = time.Second

// livesBeside says that a primary that neither this process nor its replicas hear goes on to take transactions, as its agent sees; "": it has none that says so. What was under way when it was
// cut off has come to its end when it is asked a second time.
func (c *Carrier) livesBeside(ctx context.Context, g *group.Group, old string, access keep.Access) string {
	for range 2 {
		bctx, stop := context.WithTimeout(ctx, agentTime)
		t, ok := Beside(bctx, g, access, old)
		stop()
		if !ok || !t.Lives || t.At.Sub(t.Wrote) > writtenLately || delay.For(ctx, writtenLately) != nil {
			return ""
		}
	}
	return "it does not answer here, nor do replicas hear it, but its agent sees it take transactions"
}

// below reports whether a node replicates from a member that is not the primary: what arrives there comes from that one.
func below(g *group.Group, t *topology.Topology, node int, primary string) bool {
	for _, m := range g.Members {
		if i := t.Find(m.Name); i >= 0 && i != node && m.Name != primary && followsNode(&t.Nodes[node], m.Address, &t.Nodes[i]) {
			return true
		}
	}
	return false
}

// mostSilent is how long it is waited for a source to say something.
const mostSilent = 3 * time.Second

// hears reports whether something comes to a member from its source: an event, or that the source lives.
func hears(ctx context.Context, name string, t mysql.Target) bool {
	n, err := connect(ctx, name, t, mostSilent)
	if err != nil {
		return false
	}
	defer n.close()
	mark := func() (string, time.Duration) {
		list, err := read.OuterChannels(ctx, n.c)
		if err != nil || len(list) != 1 || !list[0].IORunning {
			return "", 0
		}
		ch := list[0]
		return fmt.Sprint(ch.SourceLog, ch.SourcePos, ch.Received, ch.Beats), time.Duration(ch.BeatEvery * float64(time.Second))
	}
	first, beat := mark()
	if first == "" {
		return false
	}
	for end := time.Now().Add(min(mostSilent, 2*beat+500*time.Millisecond)); time.Now().Before(end); {
		if delay.For(ctx, 100*time.Millisecond) != nil {
			return false
		}
		if now, _ := mark(); now != first {
			return now != ""
		}
	}
	return false
}
