// Package keep is maps of shards, and journals of moves of their rows, as processes and controllers agree on them: of two that change one at once, one is
// told so.
package keep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/store/state"
)

// Documents is where they are kept.
type Documents = state.Documents

// The kinds of documents.
const (
	kindMap  = "shard_map"
	kindMove = "shard_move"
	// kindEpoch is the highest epoch of a map that was removed; that of every is a floor for all new ones.
	kindEpoch = "shard_epoch"
	every     = "*"
)

// Errors of this package.
var (
	ErrNone   = errors.New("there is no such map of shards")
	ErrExists = errors.New("there is a map of shards of that name already")
	ErrOther  = errors.New("another process changed it in the meantime")
	ErrMoving = errors.New("rows of the map are being moved")
	ErrUnsure = errors.New("it is that of a restored backup, and nobody has confirmed that its rows are where it says")
)

// Room is where maps are kept.
type Room struct {
	Docs Documents
	Who  string // who changes them
}

// Map reads one.
func (r *Room) Map(ctx context.Context, name string) (*shard.Map, error) {
	m, _, err := r.Read(ctx, name)
	return m, err
}

// Read reads one, with the version by which Switch knows it again.
func (r *Room) Read(ctx context.Context, name string) (*shard.Map, int64, error) {
	m := new(shard.Map)
	version, err := state.ReadBody(ctx, r.Docs, kindMap, name, m)
	if errors.Is(err, state.ErrNotFound) {
		err = fault.New(fault.Failed, "risso shard list shows those that there are", fmt.Errorf("%s: %w", name, ErrNone))
	}
	return m, version, err
}

// Maps reads all, by name.
func (r *Room) Maps(ctx context.Context) ([]shard.Map, error) {
	return state.ReadBodies[shard.Map](ctx, r.Docs, kindMap)
}

// Using are the maps of which a group has shards, by name, with these shards.
func (r *Room) Using(ctx context.Context, group string) (maps []string, shards map[string][]string, err error) {
	list, err := r.Maps(ctx)
	if err != nil {
		return nil, nil, err
	}
	shards = map[string][]string{}
	for _, m := range list {
		for _, s := range m.Shards {
			if s.Group == group {
				shards[m.Name] = append(shards[m.Name], s.Name)
			}
		}
		if len(shards[m.Name]) > 0 {
			maps = append(maps, m.Name)
		}
	}
	return maps, shards, nil
}

// Moving are the maps of which rows are being moved from a group or to it, by name.
func (r *Room) Moving(ctx context.Context, group string) (maps []string, err error) {
	moves, err := state.ReadBodies[shard.Move](ctx, r.Docs, kindMove)
	for _, m := range moves {
		if m.Ended.IsZero() && (m.From == group || m.Asked.To == group) {
			maps = append(maps, m.Map)
		}
	}
	return maps, err
}

// Sure refuses a map that was restored and not confirmed: clients would write to groups that do not have the rows, and a move would take the only copy of them
// for one that is in the way.
func Sure(m *shard.Map) error {
	if m.Restored.IsZero() {
		return nil
	}
	return fault.New(fault.Failed, "risso shard confirm "+m.Name+" looks where they are", fmt.Errorf("map %s: %w", m.Name, ErrUnsure))
}

// Restored is called when an older state was restored: other epochs may have been told since, and rows may have moved. All maps go on from the time of day, in
// seconds, and are to be confirmed. Of moves that were under way nobody knows how they went on. It returns the names of the maps.
func (r *Room) Restored(ctx context.Context, now time.Time) (names []string, err error) {
	floor := uint64(max(0, now.Unix()))
	if err := r.remember(ctx, every, floor); err != nil {
		return nil, err
	}
	moves, err := r.Docs.Documents(ctx, kindMove)
	if err != nil {
		return nil, err
	}
	for _, d := range moves {
		j := &Journal{room: r, version: d.Version}
		if err := d.Decode(&j.Move); err != nil {
			return nil, err
		}
		if j.Ended.IsZero() {
			j.Stage, j.Ended = shard.Unknown, now.UTC()
			if err := j.Save(ctx); err != nil {
				return nil, err
			}
		}
	}
	list, err := r.Maps(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list {
		m, version, err := r.Read(ctx, list[i].Name)
		if err != nil {
			return nil, err
		}
		m.Epoch, m.Changed, m.Move, m.Restored = max(m.Epoch+1, floor), now.UTC(), "", now.UTC()
		if _, err := r.write(ctx, kindMap, m.Name, version, m); err != nil {
			return nil, err
		}
		names = append(names, m.Name)
	}
	return names, nil
}

// Confirm says that a map of an epoch is right, though it was restored.
func (r *Room) Confirm(ctx context.Context, name string, epoch uint64) (*shard.Map, error) {
	m, version, err := r.Read(ctx, name)
	if err != nil {
		return nil, err
	}
	if m.Epoch != epoch {
		return nil, fmt.Errorf("map %s has epoch %d, and not %d: %w", name, m.Epoch, epoch, ErrOther)
	}
	m.Restored = time.Time{}
	_, err = r.write(ctx, kindMap, name, version, m)
	return m, err
}

// remember keeps the highest epoch of a map that is to be removed.
func (r *Room) remember(ctx context.Context, name string, epoch uint64) error {
	var last uint64
	version, err := state.ReadBody(ctx, r.Docs, kindEpoch, name, &last)
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	_, err = r.write(ctx, kindEpoch, name, version, max(last, epoch))
	return err
}

// Add stores a new map. Its epoch is higher than those of a map that had its name before, as clients that remember a higher one would not believe it.
func (r *Room) Add(ctx context.Context, m *shard.Map) error {
	for _, key := range []string{m.Name, every} {
		var last uint64
		if _, err := state.ReadBody(ctx, r.Docs, kindEpoch, key, &last); err == nil {
			m.Epoch = max(m.Epoch, last+1)
		} else if !errors.Is(err, state.ErrNotFound) {
			return err
		}
	}
	_, err := r.write(ctx, kindMap, m.Name, 0, m)
	if errors.Is(err, ErrOther) {
		return fault.New(fault.Failed, "risso shard remove "+m.Name+" takes it away", fmt.Errorf("%s: %w", m.Name, ErrExists))
	}
	return err
}

// Change changes a map of which no rows are being moved.
func (r *Room) Change(ctx context.Context, name string, f func(*shard.Map) error) (*shard.Map, error) {
	m, version, err := r.Read(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := r.Still(ctx, name); err != nil {
		return nil, err
	}
	if err := Sure(m); err != nil {
		return nil, err
	}
	if err := f(m); err != nil {
		return nil, err
	}
	_, err = r.write(ctx, kindMap, name, version, m)
	return m, err
}

// Switch puts a map in the place of the one that was read with a version, if nobody has written it since.
func (r *Room) Switch(ctx context.Context, after *shard.Map, version int64) error {
	_, err := r.write(ctx, kindMap, after.Name, version, after)
	return err
}

// Remove takes a map away. Rows stay where they are.
func (r *Room) Remove(ctx context.Context, name string) error {
	m, version, err := r.Read(ctx, name)
	if err != nil {
		return err
	}
	if err := r.Still(ctx, name); err != nil {
		return err
	}
	if err := r.remember(ctx, name, m.Epoch); err != nil {
		return err
	}
	return r.Docs.DropDocument(ctx, kindMap, name, version)
}

// Still refuses while rows of the map are being moved.
func (r *Room) Still(ctx context.Context, name string) error {
	j, err := r.Last(ctx, name)
	if err == nil && j != nil && j.Ended.IsZero() {
		err = fault.New(fault.Failed, "risso shard resume "+name+" brings that to its end, risso shard undo "+name+" takes it back", fmt.Errorf("map %s: %w", name, ErrMoving))
	}
	return err
}

// write writes v over a version. It wraps ErrOther if another one is there.
func (r *Room) write(ctx context.Context, kind, key string, version int64, v any) (int64, error) {
	version, err := state.WriteBody(ctx, r.Docs, r.Who, kind, key, version, v)
	if errors.Is(err, state.ErrConflict) {
		err = fmt.Errorf("%s: %w", key, errors.Join(ErrOther, err))
	}
	return version, err
}

// Journal is the journal of a move, as it is kept: one for each map, the last one.
type Journal struct {
	shard.Move
	room    *Room
	version int64
	doubt   bool // a write failed that may have been made
}

// Begin begins the journal of a move, unless one is under way, or the map is another one than it was planned by.
func (r *Room) Begin(ctx context.Context, m shard.Move) (*Journal, error) {
	if err := r.Still(ctx, m.Map); err != nil {
		return nil, err
	}
	j := &Journal{Move: m, room: r}
	if d, err := r.Docs.Document(ctx, kindMove, m.Map); err == nil {
		j.version = d.Version
	} else if !errors.Is(err, state.ErrNotFound) {
		return nil, err
	}
	if err := j.Save(ctx); err != nil {
		return nil, err
	}
	// Who changes the map from now on sees the journal; who read the map before is refused, as it has another version then.
	mp, err := r.Renew(ctx, m.Map)
	if err == nil && mp.Epoch+1 != m.After.Epoch {
		err = fmt.Errorf("map %s has epoch %d, and not %d: %w", m.Map, mp.Epoch, m.After.Epoch-1, ErrOther)
	}
	if err != nil { // nothing was begun
		j.Stage, j.Ended = shard.Undone, time.Now().UTC()
		return nil, errors.Join(err, j.Save(ctx))
	}
	return j, nil
}

// Renew writes a map as it is: who read it before can change it no more.
func (r *Room) Renew(ctx context.Context, name string) (*shard.Map, error) {
	for {
		m, version, err := r.Read(ctx, name)
		if err != nil {
			return nil, err
		}
		if _, err = r.write(ctx, kindMap, name, version, m); err == nil || !errors.Is(err, ErrOther) {
			return m, err
		}
	}
}

// Last is the journal of the last move of a map; nil: there is none.
func (r *Room) Last(ctx context.Context, name string) (*Journal, error) {
	d, err := r.Docs.Document(ctx, kindMove, name)
	if errors.Is(err, state.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	j := &Journal{room: r, version: d.Version}
	return j, d.Decode(&j.Move)
}

// Save writes it down: it is on disk, and agreed on, when Save returns. Another process that went on with the move makes it fail.
func (j *Journal) Save(ctx context.Context) error {
	version, err := j.room.write(ctx, kindMove, j.Map, j.version, j.Move)
	if err != nil {
		j.doubt = j.doubt || !errors.Is(err, ErrOther)
		return fmt.Errorf("write the journal: %w", err)
	}
	j.version = version
	return nil
}

// Followed reports whether another process has written the journal since: it has taken the move over.
func (j *Journal) Followed(ctx context.Context) bool {
	if j.doubt { // it may have been this one
		return false
	}
	d, err := j.room.Docs.Document(ctx, kindMove, j.Map)
	return err == nil && d.Version > j.version
}
