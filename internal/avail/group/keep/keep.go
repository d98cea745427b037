// Package keep is groups as processes and controllers agree on them: read and changed in documents of which each change says from which version it comes, so
// that of two that change a group at once one is told so and looks again.
package keep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/store/state"
)

// Documents is where they are kept.
type Documents = state.Documents

// The kinds of documents.
const (
	kindGroup  = "group"
	kindAccess = "group_access"
	kindKnown  = "group_known" // what was last seen of the primary
	kindEpoch  = "group_epoch" // the highest one that a group had which was removed: one of the same name goes on from there
)

// Errors of this package.
var (
	ErrNone      = errors.New("there is no such group")
	ErrElsewhere = errors.New("a server is in one group only")
	ErrExists    = errors.New("there is a group of that name already")
)

// Room is where groups are kept.
type Room struct {
	Docs Documents
	Who  string // who changes them: a person at a command, or the controller
}

// Access is how the servers of a group are reached, and as whom one replicates from another. It holds passwords: it is read only by what connects.
type Access struct {
	Members     map[string]string `json:"members"` // DSN by name
	Replication Account           `json:"replication"`
	// Agents is the token that agents share with the controllers; "": there are none that take orders.
	Agents string `json:"agents,omitempty"`
}

// Account is a name and a password.
type Account struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

// Target is how a member is reached.
func (a Access) Target(name string) (mysql.Target, error) {
	dsn, ok := a.Members[name]
	if !ok {
		return mysql.Target{}, fmt.Errorf("%s: %w", name, group.ErrNone)
	}
	return mysql.ParseTarget(dsn)
}

// Group reads one.
func (r *Room) Group(ctx context.Context, name string) (*group.Group, error) {
	g := new(group.Group)
	_, err := r.read(ctx, kindGroup, name, g)
	return g, err
}

// Only is the group of a name, or, without one, the only group.
func (r *Room) Only(ctx context.Context, name string) (*group.Group, error) {
	if name != "" {
		return r.Group(ctx, name)
	}
	list, err := r.Groups(ctx)
	switch {
	case err != nil:
		return nil, err
	case len(list) == 1:
		return &list[0], nil
	case len(list) == 0:
		return nil, fault.New(fault.Usage, "risso group create makes one", ErrNone)
	}
	return nil, fault.Usagef("there are %d groups: name one with --group", len(list))
}

// Groups reads all, by name.
func (r *Room) Groups(ctx context.Context) ([]group.Group, error) {
	return state.ReadBodies[group.Group](ctx, r.Docs, kindGroup)
}

// Add stores a new group. Its epoch is higher than those of a group that had its name before, as clients that remember a higher one would not follow it.
func (r *Room) Add(ctx context.Context, g *group.Group, a Access) error {
	var last uint64
	if _, err := state.ReadBody(ctx, r.Docs, kindEpoch, g.Name, &last); err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	journals, err := r.Journals(ctx, g.Name)
	if err != nil {
		return err
	}
	for _, j := range journals {
		last = max(last, j.Epoch)
	}
	if last > 0 {
		g.Epoch = max(g.Epoch, last+1)
	}
	if err := r.Elsewhere(ctx, g); err != nil {
		return err
	}
	if err := r.write(ctx, kindGroup, g.Name, 0, g); errors.Is(err, state.ErrConflict) {
		return fault.New(fault.Failed, "risso group remove takes it away", fmt.Errorf("%s: %w", g.Name, ErrExists))
	} else if err != nil {
		return err
	}
	return r.SetAccess(ctx, g.Name, a)
}

// tries is how often a change is made again because somebody else was faster.
const tries = 20

// Change changes a group: f is called with it as it is now, and again with a fresh one if somebody else changed it meanwhile.
func (r *Room) Change(ctx context.Context, name string, f func(*group.Group) error) (*group.Group, error) {
	var last error
	for range tries {
		g := new(group.Group)
		version, err := r.read(ctx, kindGroup, name, g)
		if err != nil {
			return nil, err
		}
		if err := f(g); err != nil {
			return nil, err
		}
		if last = r.write(ctx, kindGroup, name, version, g); !errors.Is(last, state.ErrConflict) {
			return g, last
		}
	}
	return nil, last
}

// Remove takes a group away, with how its servers are reached. Journals and receipts stay.
func (r *Room) Remove(ctx context.Context, name string) error {
	if err := r.remember(ctx, name); err != nil {
		return err
	}
	for _, kind := range []string{kindGroup, kindAccess, kindKnown} {
		d, err := r.Docs.Document(ctx, kind, name)
		if errors.Is(err, state.ErrNotFound) && kind != kindGroup {
			continue
		}
		if err != nil {
			return none(err)
		}
		if err := r.Docs.DropDocument(ctx, kind, name, d.Version); err != nil {
			return err
		}
	}
	return nil
}

// remember keeps the highest epoch of a group that is to be removed.
func (r *Room) remember(ctx context.Context, name string) error {
	g, err := r.Group(ctx, name)
	if err != nil {
		return err
	}
	d, err := r.Docs.Document(ctx, kindEpoch, name)
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	return r.write(ctx, kindEpoch, name, d.Version, max(g.Epoch, g.Lease.Epoch))
}

// Resume lets the epochs of all groups go on from the time of day, in seconds, after an older state was restored: clients and agents may have heard of higher ones than
// it has, and would believe no change of the primary. The present ones stay, as another server may be the primary by now.
func (r *Room) Resume(ctx context.Context, now time.Time) error {
	list, err := r.Groups(ctx)
	if err != nil {
		return err
	}
	for _, g := range list {
		_, err := r.Change(ctx, g.Name, func(g *group.Group) error {
			g.Lease.Epoch = max(g.Lease.Epoch, uint64(max(0, now.Unix())))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Access reads how the servers of a group are reached.
func (r *Room) Access(ctx context.Context, name string) (a Access, err error) {
	_, err = r.read(ctx, kindAccess, name, &a)
	return a, err
}

// SetAccess stores it.
func (r *Room) SetAccess(ctx context.Context, name string, a Access) error {
	for {
		d, err := r.Docs.Document(ctx, kindAccess, name)
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
		if err := r.write(ctx, kindAccess, name, d.Version, a); !errors.Is(err, state.ErrConflict) {
			return err
		}
	}
}

func none(err error) error {
	if errors.Is(err, state.ErrNotFound) {
		return fault.New(fault.Failed, "risso group list shows those that there are", fmt.Errorf("%w: %w", ErrNone, err))
	}
	return err
}

// read reads a document into v.
func (r *Room) read(ctx context.Context, kind, key string, v any) (version int64, err error) {
	version, err = state.ReadBody(ctx, r.Docs, kind, key, v)
	return version, none(err)
}

// write writes v over a version.
func (r *Room) write(ctx context.Context, kind, key string, version int64, v any) error {
	_, err := state.WriteBody(ctx, r.Docs, r.Who, kind, key, version, v)
	return err
}

// Known is what was last seen of a group's primary, whichever it was; a zero one if nothing was.
func (r *Room) Known(ctx context.Context, name string) (k failover.Known, err error) {
	if _, err = state.ReadBody(ctx, r.Docs, kindKnown, name, &k); errors.Is(err, state.ErrNotFound) {
		err = nil
	}
	return k, err
}

// SetKnown stores it.
func (r *Room) SetKnown(ctx context.Context, name string, k failover.Known) error {
	for range tries {
		d, err := r.Docs.Document(ctx, kindKnown, name)
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
		if err := r.write(ctx, kindKnown, name, d.Version, k); !errors.Is(err, state.ErrConflict) {
			return err
		}
	}
	return nil // somebody else stores it, too
}
