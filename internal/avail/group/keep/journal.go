package keep

import (
	"context"
	"fmt"

	"github.com/rissodb/risso/internal/avail/failover"
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

// Journals reads those of a group, the oldest first; "" those of all.
func (r *Room) Journals(ctx context.Context, group string) (list []*Journal, err error) {
	docs, err := r.Docs.Documents(ctx, kindJournal)
	if err != nil {
		return nil, err
	}
	for _, d := range docs {
		j := &Journal{room: r, version: d.Version}
		if err := d.Decode(&j.Journal); err != nil {
			return nil, err
		}
		if group == "" || j.Group == group {
			list = append(list, j)
		}
	}
	return list, nil
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
