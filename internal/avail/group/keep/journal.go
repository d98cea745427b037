package keep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/store/state"
)

const kindJournal = "takeover"

// Journal is the journal of a change of the primary, as it is kept.
type Journal struct {
	failover.Journal
	room    *Room
	version int64
}

// key sorts journals by group and epoch.
func key(group string, epoch uint64) string { return fmt.Sprintf("%s/%020d", group, epoch) }

// Begin begins a journal.
func (r *Room) Begin(ctx context.Context, j failover.Journal) (*Journal, error) {
	out := &Journal{Journal: j, room: r}
	return out, out.Save(ctx)
}

// Save writes it down: it is on disk, and agreed on, when Save returns.
func (j *Journal) Save(ctx context.Context) error {
	if err := j.room.write(ctx, kindJournal, key(j.Group, j.Epoch), j.version, j.Journal); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	j.version++
	return nil
}

// Journal reads the one of a change of a group; the error wraps state.ErrNotFound if there is none.
func (r *Room) Journal(ctx context.Context, group string, epoch uint64) (*Journal, error) {
	j := &Journal{room: r}
	var err error
	j.version, err = state.ReadBody(ctx, r.Docs, kindJournal, key(group, epoch), &j.Journal)
	return j, err
}

// Journals reads those of a group, the oldest first; "" those of all.
func (r *Room) Journals(ctx context.Context, group string) (list []*Journal, err error) {
	prefix := ""
	if group != "" {
		prefix = group + "/"
	}
	docs, err := r.Docs.DocumentsUnder(ctx, kindJournal, prefix)
	if err != nil {
		return nil, err
	}
	for _, d := range docs {
		j := &Journal{room: r, version: d.Version}
		if err := d.Decode(&j.Journal); err != nil {
			return nil, err
		}
		list = append(list, j)
	}
	return list, nil
}

// undoneKept is how many changes of a group that changed nothing are kept, of each kind: a failover that is refused is tried again and again while its group has no primary.
const undoneKept = 50

// Prune drops the oldest changes of a group that changed nothing, beyond those that are kept. One with a receipt stays.
func (r *Room) Prune(ctx context.Context, group string) error {
	list, err := r.Journals(ctx, group)
	if err != nil {
		return err
	}
	undone := map[failover.Kind]int{}
	for _, j := range slices.Backward(list) {
		if j.Stage != failover.Undone || j.Receipt != nil || j.Ended.IsZero() {
			continue
		}
		if undone[j.Kind]++; undone[j.Kind] <= undoneKept {
			continue
		}
		if err := r.Docs.DropDocument(ctx, kindJournal, key(group, j.Epoch), j.version); err != nil && !errors.Is(err, state.ErrConflict) {
			return err
		}
	}
	return nil
}

// Unfinished is the journal of a group that was not brought to its end; nil: there is none.
func (r *Room) Unfinished(ctx context.Context, group string) (*Journal, error) {
	list, err := r.Journals(ctx, group)
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Ended.IsZero() {
			return list[i], err
		}
	}
	return nil, err
}

// Amend changes a receipt of a change that is over: f is called with it as it is now, and again with a fresh one if somebody else changed it meanwhile. It
// reports whether there is something to keep.
func (r *Room) Amend(ctx context.Context, j *Journal, f func(*failover.Receipt) bool) error {
	var last error
	for range tries {
		if j.Receipt == nil || !f(j.Receipt) {
			return nil
		}
		if last = j.Save(ctx); !errors.Is(last, state.ErrConflict) {
			return last
		}
		d, err := r.Docs.Document(ctx, kindJournal, key(j.Group, j.Epoch))
		if err != nil {
			return err
		}
		j.Journal, j.version = failover.Journal{}, d.Version
		if err := json.Unmarshal(d.Body, &j.Journal); err != nil {
			return fmt.Errorf("read journal %s: %w", d.Key, err)
		}
	}
	return last
}
