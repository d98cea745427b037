package failover

import (
	"context"
	"time"

	"github.com/rissodb/risso/internal/avail/failover/carry"
)

// tendEvery is how often a group whose primary lives is looked after.
const tendEvery = 2 * time.Second

// standing is what the watcher remembers of what it did.
type standing struct {
	tried    time.Time       // when a failover was tried last
	refilled time.Time       // when a rebuild was tried last
	seen     *carry.Forecast // what would happen if the primary died; nil: nobody looked yet
}

// tend looks after a group: what was cut off is brought to its end, members that came back replicate again, the primary takes writes.
func (w *watcher) tend(ctx context.Context) result {
	r := result{what: "look after " + w.g.Name}
	c := w.carrier()
	j, err := c.Room.Unfinished(ctx, w.g.Name)
	if err == nil && j != nil {
		_, err = c.Resume(ctx, carry.Asked{Group: w.g.Name, By: "risso serve", Automatic: true})
		r.err, r.what = err, "bring a change of "+w.g.Name+" that was cut off to its end"
		return r
	}
	if err != nil {
		r.err = err
		return r
	}
	did, seen, err := c.Tend(ctx, w.g.Name, w.d.Auto && w.g.Policy.Automatic)
	r.err = err
	r.tell = func() {
		for _, text := range did {
			w.event(0, text)
		}
		if seen == nil || seen.Old != w.primary {
			return
		}
		if seen.Alive && seen.Known.Executed != "" {
			w.known = seen.Known
		}
		w.state.seen = seen
		w.find()
	}
	return r
}
