// Package failover keeps groups of servers under observation while risso serve runs: it tells clients where they go, fails over a group whose primary is dead if
// that was asked for, brings changes that were cut off to their end, and looks after members that come back. Of several controllers only the leader acts; all watch.
package failover

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/agree"
)

// Options are what a Desk needs.
type Options struct {
	Room  *keep.Room
	Board *publish.Board // where clients go
	Auto  bool           // groups whose policy says so are failed over; else it is only told
	Lead  agree.Leadership
	Peers Peers          // the other controllers; nil: there are none
	Hooks *publish.Hooks // run when something happens; nil: there are none
	// Rebuilds is the folder of the journals of members that are rebuilt, and of copies; "": none is.
	Rebuilds string
	Event    func(fleet.Event)
	// Found takes what is wrong with a group, and the address of its primary; nil: nobody does.
	Found  func(address, group string, findings []fleet.Finding)
	Logger *slog.Logger
}

// Desk watches all groups. One goroutine per group owns what is known of it.
type Desk struct {
	Options
	holder   string
	patience failover.Patience
	crowd    crowd
	turns    chan struct{} // to look after a group

	mu  sync.Mutex
	run map[string]*watcher // written by Run alone
}

// New makes a desk.
func New(o Options) *Desk {
	d := &Desk{Options: o, holder: carry.NewHolder("serve"), patience: failover.DefaultPatience(), turns: make(chan struct{}, tendAtOnce), run: map[string]*watcher{}}
	if d.Peers != nil {
		d.Peers.Answer(d.sights)
	}
	return d
}

// lookEvery is how often the groups themselves are read: a command may have changed them.
const lookEvery = 250 * time.Millisecond

// Run watches until ctx ends.
func (d *Desk) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	wctx, stop := context.WithCancel(ctx)
	defer stop()
	said := ""
	for {
		heard := d.Lead.Heard() // before: what is read then is from then, or later
		list, err := d.Room.Groups(ctx)
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			d.Logger.Warn("groups cannot be read", "err", err)
		}
		if err == nil {
			said = ""
			d.follow(wctx, &all, list, heard)
			if !heard.IsZero() { // of several controllers one that starts may have missed a group
				d.Board.Names(slices.Sorted(maps.Keys(d.run)))
			}
		}
		if delay.For(ctx, lookEvery) != nil {
			return nil
		}
	}
}

// errGone ends the watcher of a group that was removed.
var errGone = errors.New("the group is gone")

// apart is how long after each other groups are begun to be watched: all at once, as when many are there at a start, no connection would be there in time, and each look would begin another.
const apart = 25 * time.Millisecond

// follow lets each group have its watcher, with what it is now. heard is up to when this controller knew what was agreed on when the groups were read.
func (d *Desk) follow(ctx context.Context, all *sync.WaitGroup, list []group.Group, heard time.Time) {
	seen, begun := map[string]bool{}, time.Duration(0)
	for i := range list {
		g := &list[i]
		seen[g.Name] = true
		w := d.run[g.Name]
		if w == nil {
			wctx, cancel := context.WithCancelCause(ctx)
			w = newWatcher(d, reading{g, heard}, begun*apart, cancel)
			begun++
			d.mu.Lock()
			d.run[g.Name] = w
			d.mu.Unlock()
			all.Go(func() { w.watch(wctx) })
			continue
		}
		w.changed(reading{g, heard})
	}
	d.crowd.size(len(list))
	for name, w := range d.run {
		if !seen[name] {
			w.cancel(errGone)
			d.mu.Lock()
			delete(d.run, name)
			d.mu.Unlock()
			d.Board.Forget(name)
		}
	}
}
