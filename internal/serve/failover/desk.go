// Package failover keeps groups of servers under observation while risso serve runs: it tells clients where they go, fails over a group whose primary is dead if
// that was asked for, brings changes that were cut off to their end, and looks after members that come back. Of several controllers only the leader acts; all watch.
package failover

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/fleet"
)

// Options are what a Desk needs.
type Options struct {
	Room   *keep.Room
	Auto   bool        // groups whose policy says so are failed over; else it is only told
	Leader func() bool // this controller may act
	Event  func(fleet.Event)
	Found  func(group string, members map[string]string, findings []fleet.Finding) // takes what is wrong with a group, and the addresses of its members by name
	Logger *slog.Logger
}

// Desk watches all groups. One goroutine per group owns what is known of it.
type Desk struct {
	Options
	holder string

	mu    sync.Mutex
	views map[string]group.View
	moved chan struct{} // is closed when a view changed
	count uint64        // changes of views
	tags  map[string]uint64
	run   map[string]*watcher
}

// New makes a desk.
func New(o Options) *Desk {
	return &Desk{Options: o, holder: carry.NewHolder("serve"), views: map[string]group.View{}, tags: map[string]uint64{}, moved: make(chan struct{}), run: map[string]*watcher{}}
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
		list, err := d.Room.Groups(ctx)
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			d.Logger.Warn("groups cannot be read", "err", err)
		}
		if err == nil {
			said = ""
			d.follow(wctx, &all, list)
		}
		if delay.For(ctx, lookEvery) != nil {
			return nil
		}
	}
}

// follow lets each group have its watcher, with what it is now.
func (d *Desk) follow(ctx context.Context, all *sync.WaitGroup, list []group.Group) {
	seen := map[string]bool{}
	for i := range list {
		g := &list[i]
		if !g.Active {
			continue
		}
		seen[g.Name] = true
		w := d.run[g.Name]
		if w == nil {
			wctx, cancel := context.WithCancel(ctx)
			w = newWatcher(d, g, cancel)
			d.run[g.Name] = w
			all.Go(func() { w.watch(wctx) })
			continue
		}
		w.changed(g)
	}
	for name, w := range d.run {
		if !seen[name] {
			w.cancel()
			delete(d.run, name)
			d.mu.Lock()
			delete(d.views, name)
			d.bump(name)
			d.mu.Unlock()
		}
	}
}

// bump says that a view changed. The lock is held.
func (d *Desk) bump(name string) {
	d.count++
	d.tags[name] = d.count
	close(d.moved)
	d.moved = make(chan struct{})
}

// show takes the view of a group.
func (d *Desk) show(v group.View) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old, had := d.views[v.Group]
	d.views[v.Group] = v
	if !had || !alike(old, v) {
		d.bump(v.Group)
	}
}

// alike reports whether two views send clients to the same servers.
func alike(a, b group.View) bool {
	a.Seen, b.Seen = time.Time{}, time.Time{}
	strip := func(v *group.View) {
		v.Replicas = slices.Clone(v.Replicas)
		for i := range v.Replicas {
			if l := v.Replicas[i].Lag; l != nil { // of lags only whole seconds are news
				s := l.Truncate(time.Second)
				v.Replicas[i].Lag = &s
			}
		}
	}
	strip(&a)
	strip(&b)
	x, _ := json.Marshal(a) // of strings and numbers
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// View is where the clients of a group go.
func (d *Desk) View(name string) (group.View, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, ok := d.views[name]
	return v, ok
}

// Wait waits until the view of a group is another one than that of a tag, which came with it, or until ctx ends.
func (d *Desk) Wait(ctx context.Context, name, tag string) (group.View, string, bool) {
	for {
		d.mu.Lock()
		v, ok := d.views[name]
		now, moved := fmt.Sprintf("%s-%d", strings.ReplaceAll(d.holder, "\"", ""), d.tags[name]), d.moved
		d.mu.Unlock()
		if now != tag {
			return v, now, ok
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return v, now, ok
		}
	}
}

// Groups are the names of those that are watched.
func (d *Desk) Groups() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.views))
}
