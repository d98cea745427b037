package reshard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
)

// verify compares the copy of large tables while they are written, so that only what changed since has to be compared while writes are refused. The binary
// logs of both sides have what changes meanwhile: in the new group somebody may delete rows that seem to be in the way.
//
// It begins anew when a log has a change that does not say of which rows: in the end that costs a comparison of all rows while writes are refused.
func (r *run) verify(ctx context.Context) error {
	for range 3 {
		if err := r.verifyOnce(ctx); err != nil || !r.blind {
			return err
		}
	}
	return nil
}

func (r *run) verifyOnce(ctx context.Context) error {
	if err := r.drain(ctx); err != nil {
		return err
	}
	r.blind = false
	watched := false
	for _, t := range r.tables {
		if t.at.Rows <= r.Limits.Whole {
			continue
		}
		if !watched {
			if err := r.watch(ctx); err != nil {
				return err
			}
			watched = true
		}
		r.say("comparing %s of %s while they are written", digits.Counted(t.at.Rows, "row"), t.full())
		t.seen = map[string]bool{}
		for after := ""; ; {
			and := behind(t, after)
			keys, err := r.keys(ctx, r.from, t, and)
			if err != nil {
				return err
			}
			last := len(keys) < r.Limits.Rows
			if !last {
				after = keys[len(keys)-1]
				and += " AND " + keyColumns(t) + " <= " + after
			}
			if err := r.verifyRange(ctx, t, keys, and); err != nil {
				return err
			}
			if last {
				break
			}
		}
	}
	return r.drain(ctx)
}

// behind is the condition for rows behind one; "" of all.
func behind(t *table, after string) string {
	if after == "" {
		return ""
	}
	return " AND " + keyColumns(t) + " > " + after
}

// verifyRange compares the rows of a range. Those of one that is being written all the time are compared when nobody writes.
func (r *run) verifyRange(ctx context.Context, t *table, keys []string, and string) error {
	for range 3 {
		if err := r.drain(ctx); err != nil {
			return err
		}
		here, there, err := r.both(ctx, t, and)
		if err != nil {
			return err
		}
		if here.Count == there.Count && here.Sum == there.Sum {
			return nil
		}
	}
	there, err := r.keys(ctx, r.to, t, and) // one more row there is a difference, too
	for _, k := range slices.Concat(keys, there) {
		t.seen[k] = true
	}
	return err
}

// compareSeen compares the rows that changed since the table was compared, while nobody writes. A log does not tell what sessions did that do not log; so at
// least no row may be gone.
func (r *run) compareSeen(ctx context.Context, t *table) error {
	here, there, err := onBoth(r, func(s *side) (int64, error) { return r.countOf(ctx, s, t) })
	if err != nil {
		return err
	}
	if here != there {
		return r.differs(t, here, there)
	}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(t.seen)), r.Limits.Rows) {
		here, there, err := r.both(ctx, t, " AND "+keyColumns(t)+" IN ("+strings.Join(some, ", ")+")")
		if err != nil {
			return err
		}
		if here.Count != there.Count || here.Sum != there.Sum {
			return r.differs(t, here.Count, there.Count)
		}
	}
	t.at.Sum = ""
	return nil
}

// differs is the error of a copy that is not the same.
func (r *run) differs(t *table, here, there int64) error {
	return fault.New(fault.Failed, "risso shard undo "+r.j.Map+", and look who changes the rows in group "+r.to.group+", or without the binary log in group "+r.from.group,
		fmt.Errorf("%w: %s: %s in group %s, %s in group %s", ErrDiffers, t.full(), digits.Counted(here, "row"), r.from.group, digits.Counted(there, "row"), r.to.group))
}

// both counts and sums rows that move on both sides at once.
func (r *run) both(ctx context.Context, t *table, and string) (here, there chunk.Rows, err error) {
	return onBoth(r, func(s *side) (chunk.Rows, error) { return r.sum(ctx, s, t, and) })
}

// onBoth asks both sides at once.
func onBoth[T any](r *run, ask func(*side) (T, error)) (here, there T, err error) {
	ended := make(chan error, 1)
	go func() {
		var err error
		there, err = ask(r.to)
		ended <- err
	}()
	here, err = ask(r.from)
	if other := <-ended; err == nil {
		err = other
	}
	return here, there, err
}
