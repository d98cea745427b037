package carry

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/fence"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
)

// guardEvery is how often the old primary is looked for in a failover.
const guardEvery = 250 * time.Millisecond

// guard keeps the old primary from writes as soon as it answers and takes them, for as long as a failover goes on: it may have stood still, or be started meanwhile by who knows nothing of this, and
// to drain and to point others may take a minute. It does so also when the one who asked for the failover interrupts it too late. Before it is told to stop, nothing else opens that server. stop
// returns when it has ended, and may be called twice.
func (r *run) guard() (stop func()) {
	name, kind := r.j.Old, r.j.Kind
	target, ok := r.targets[name]
	if !ok || kind != failover.Failover {
		return func() {}
	}
	ctx, cancel := context.WithCancel(r.lasting)
	var beside sync.WaitGroup
	beside.Go(func() {
		for delay.For(ctx, guardEvery) == nil {
			if !takesWrites(ctx, name, target) {
				continue
			}
			res, err := r.shut(ctx, name, fence.Options{Limit: fenceTime})
			switch {
			case ctx.Err() != nil:
			case err != nil:
				r.words(name, "it answers again, and could not be kept from writes: %v", err)
			default:
				r.words(name, "it answers again: %s", res.Words())
			}
		}
	})
	return func() {
		cancel()
		beside.Wait()
	}
}

// takesWrites reports whether a server answers and takes writes.
func takesWrites(ctx context.Context, name string, target mysql.Target) bool {
	ctx, stop := context.WithTimeout(ctx, fenceTime)
	defer stop()
	n, err := connect(ctx, name, target, fenceTime)
	if err != nil {
		return false
	}
	defer n.close()
	closed, err := isClosed(ctx, n)
	return err == nil && !closed
}

// isClosed reports whether a member takes no writes.
func isClosed(ctx context.Context, n *node) (bool, error) {
	rows, err := n.c.Maps(ctx, n.c.Server.StandingQuery())
	if err != nil {
		return false, err
	}
	if len(rows) == 0 {
		return false, fmt.Errorf("%w: %s does not say whether it takes writes", ErrSurprise, n.name)
	}
	return strconv.ParseBool(rows[0]["closed"])
}
