// Package publish tells others where the clients of groups go, and never tells an old view for a new one: answers over HTTP, configurations for HAProxy and
// ProxySQL, Consul, and hooks. The name server is in the package names below it. What is told is a group.View; who makes it is not known here.
package publish

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
)

// Views is who knows where the clients of groups go.
type Views interface {
	// Groups are the names of all groups, sorted.
	Groups() []string
	// View is the newest view of a group; false: there is no such group.
	View(name string) (group.View, bool)
	// Wait returns the view as soon as its tag is another one than seen, and at the latest when ctx ends. A group that is not there, or goes, has the tag "".
	Wait(ctx context.Context, name, seen string) (v group.View, tag string)
	// Sure reports whether Groups are all that there are: a process that starts does not know them yet, and tells nobody that a group does not exist.
	Sure() bool
	// Since is since when, by this process's clock, the primary of the newest view is told here; zero: there is none. The view's own Since is by another machine's.
	Since(name string) time.Time
	// Members are all members of a group, whatever their status: each of them may become the primary.
	Members(name string) []group.Member
}

// Known is what is known of a group: what the configuration of a proxy needs.
type Known struct {
	View    group.View     `json:"view"`
	Members []group.Member `json:"members"` // all of them: each may become the primary
}

// lagStep is how much a lag has to change before a view is another one.
const lagStep = time.Second

// coarse is a view without what changes all the time: when it was last seen to be so, and small changes of lags.
func coarse(v group.View) group.View {
	v.Seen = time.Time{}
	v.Replicas = slices.Clone(v.Replicas)
	for i, r := range v.Replicas {
		if r.Lag != nil {
			steps := r.Lag.Truncate(lagStep)
			v.Replicas[i].Lag = &steps
		}
	}
	return v
}

// tagOf tells views apart that are coarse.
func tagOf(v group.View) string {
	text, err := json.Marshal(v)
	if err != nil { // a weight that is no number
		text = []byte(err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Board is Views of what it was told.
type Board struct {
	now    func() time.Time
	mu     sync.Mutex
	unsure bool
	groups map[string]*posted
	come   chan struct{} // closed when there is a new group
}

// StartingBoard is one of a process that does not know yet which groups there are.
func StartingBoard() *Board {
	b := NewBoard()
	b.unsure = true
	return b
}

// Names says which groups there are. Those of which nothing was told yet have a view that says so.
func (b *Board) Names(list []string) {
	for _, name := range list {
		if _, ok := b.View(name); !ok {
			b.Tell(group.View{Group: name}, nil)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unsure = false
}

// Sure is of Views.
func (b *Board) Sure() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.unsure
}

// posted is one group on the board.
type posted struct {
	view    group.View
	members []group.Member
	told    group.View // as the tag has it
	tag     string
	changed chan struct{} // closed with the next change
	first   group.View    // the first one of this epoch that had this primary
	since   time.Time     // when that was put up
}

// NewBoard is a board without groups.
func NewBoard() *Board {
	return &Board{now: time.Now, groups: map[string]*posted{}, come: make(chan struct{})}
}

// Tell puts up a view and the members of its group. It reports false, and does nothing, where a newer one is there.
func (b *Board) Tell(v group.View, members []group.Member) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.groups[v.Group]
	if p == nil {
		p = &posted{changed: make(chan struct{})}
		b.groups[v.Group] = p
		close(b.come)
		b.come = make(chan struct{})
	}
	if v.Epoch < p.view.Epoch || v.Epoch == p.view.Epoch && v.Seen.Before(p.view.Seen) {
		return false
	}
	p.view, p.members = v, slices.Clone(members)
	if f := p.first; v.Primary != nil && (f.Primary == nil || f.Epoch != v.Epoch || f.Primary.Name != v.Primary.Name) {
		p.first, p.since = v, b.now()
	}
	if told := coarse(v); !reflect.DeepEqual(told, p.told) {
		p.told = told
		if tag := tagOf(told); tag != p.tag {
			p.tag = tag
			close(p.changed)
			p.changed = make(chan struct{})
		}
	}
	return true
}

// Forget takes a group down.
func (b *Board) Forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.groups[name]; p != nil {
		delete(b.groups, name)
		close(p.changed)
	}
}

// Groups is of Views.
func (b *Board) Groups() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	names := make([]string, 0, len(b.groups))
	for name := range b.groups {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// View is of Views.
func (b *Board) View(name string) (group.View, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.groups[name]; p != nil {
		return p.view, true
	}
	return group.View{}, false
}

// Since is of Views.
func (b *Board) Since(name string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.groups[name]; p != nil && p.view.Primary != nil {
		return p.since
	}
	return time.Time{}
}

// Members is of Views.
func (b *Board) Members(name string) []group.Member {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.groups[name]; p != nil {
		return slices.Clone(p.members)
	}
	return nil
}

// Wait is of Views.
func (b *Board) Wait(ctx context.Context, name, seen string) (group.View, string) {
	for {
		b.mu.Lock()
		p, changed := b.groups[name], b.come
		var v group.View
		var tag string
		if p != nil {
			v, tag, changed = p.view, p.tag, p.changed
		}
		b.mu.Unlock()
		if tag != seen {
			return v, tag
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return v, tag
		}
	}
}

// DefaultMaxAge is how old a view may be that is told.
const DefaultMaxAge = 5 * time.Second

// ageOf is how long ago a view was known to be so. One from the future is as unsure as an old one: some clock is wrong by that much.
func ageOf(v group.View, now time.Time) time.Duration { return now.Sub(v.Seen).Abs() }

// byName is the order in which replicas are told.
func byName(a, b group.Server) int { return cmp.Compare(a.Name, b.Name) }
