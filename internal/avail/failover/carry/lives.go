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
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// lives says why a primary that could not be asked lives nevertheless: it answers with an error, or members go on to hear from it. "": nothing says that it does.
func (c *Carrier) lives(ctx context.Context, g *group.Group, t *topology.Topology, old string, targets map[string]mysql.Target) string {
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
	at := g.Members[g.Find(old)].Address
	for _, m := range g.Members { // one below another member hears from that one
		if j := t.Find(m.Name); m.Name != old && j >= 0 && t.Nodes[j].Seen && followsNode(&t.Nodes[j], at, &t.Nodes[i]) && t.Nodes[j].Channels[0].Receiving() {
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
		return ""
	}
	slices.Sort(hear)
	return "it does not answer here, but what it sends arrives at " + strings.Join(hear, ", ")
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
