// Package keep is maps of shards, and journals of moves of their rows, as processes and controllers agree on them: of two that change one at once, one is
// told so.
package keep

import (
	"context"
	"errors"
	"fmt"

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
)

// Errors of this package.
var (
	ErrNone   = errors.New("there is no such map of shards")
	ErrExists = errors.New("there is a map of shards of that name already")
	ErrOther  = errors.New("another process changed it in the meantime")
	ErrMoving = errors.New("rows of the map are being moved")
)

// Room is where maps are kept.
type Room struct {
	Docs Documents
	Who  string // who changes them
}

// Map reads one.
func (r *Room) Map(ctx context.Context, name string) (*shard.Map, error) {
	m, _, err := r.read(ctx, name)
	return m, err
}

func (r *Room) read(ctx context.Context, name string) (*shard.Map, int64, error) {
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

// Add stores a new map.
func (r *Room) Add(ctx context.Context, m *shard.Map) error {
	_, err := r.write(ctx, kindMap, m.Name, 0, m)
	if errors.Is(err, ErrOther) {
		return fault.New(fault.Failed, "risso shard remove "+m.Name+" takes it away", fmt.Errorf("%s: %w", m.Name, ErrExists))
	}
	return err
}

// Change changes a map of which no rows are being moved.
func (r *Room) Change(ctx context.Context, name string, f func(*shard.Map) error) (*shard.Map, error) {
	m, version, err := r.read(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := r.Still(ctx, name); err != nil {
		return nil, err
	}
	if err := f(m); err != nil {
		return nil, err
	}
	_, err = r.write(ctx, kindMap, name, version, m)
	return m, err
}

// Switch puts a map in the place of the one with the epoch before.
func (r *Room) Switch(ctx context.Context, after *shard.Map) error {
	m, version, err := r.read(ctx, after.Name)
	if err != nil {
		return err
	}
	if m.Epoch+1 != after.Epoch {
		return fmt.Errorf("map %s has epoch %d, and not %d: %w", m.Name, m.Epoch, after.Epoch-1, ErrOther)
	}
	_, err = r.write(ctx, kindMap, after.Name, version, after)
	return err
}

// Remove takes a map away. Rows stay where they are.
func (r *Room) Remove(ctx context.Context, name string) error {
	_, version, err := r.read(ctx, name)
	if err != nil {
		return err
	}
	if err := r.Still(ctx, name); err != nil {
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
}

// Begin begins the journal of a move, unless one is under way.
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
	return j, j.Save(ctx)
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
		return fmt.Errorf("write the journal: %w", err)
	}
	j.version = version
	return nil
}
