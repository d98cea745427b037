package reshard

import (
	"context"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
)

// had are the transactions that the server of a side has had; "": it does not tell.
func (s *side) had(ctx context.Context) (string, error) {
	text, err := s.conn.Text(ctx, "SELECT /* risso: which transactions has it? */ @@GLOBAL."+s.conn.Server.ExecutedTransactions())
	if err != nil {
		return "", fmt.Errorf("ask group %s which transactions it has: %w", s.group, err)
	}
	return strings.ReplaceAll(text, "\n", ""), nil
}

// shown writes down with whom the rows were compared just now: the last copy is deleted by that.
func (r *run) shown(ctx context.Context) (err error) {
	r.j.Shown.Epoch = r.to.epoch
	if r.j.Shown.Had, err = r.to.had(ctx); err != nil {
		return err
	}
	return r.j.Save(ctx)
}

// arrived makes sure that the present primary of the new group has the rows, before the old ones are deleted: one that was promoted since may lack what was
// copied last. It has them if it is the one that was compared, or has had all transactions that one had; clients may have changed them since. Else all rows
// that the old group still has must be there as they are: of one that is another one nobody can tell whether a client changed it or the failover lost that.
func (r *run) arrived(ctx context.Context) error {
	r.to.close() // it is found anew: the wait was long
	if err := r.connect(ctx, r.to, r.j.ID); err != nil {
		return fmt.Errorf("group %s, which is to have the rows: %w", r.to.group, err)
	}
	if r.to.conn.Server.ID == r.j.Target && r.to.epoch == r.j.Shown.Epoch {
		return nil
	}
	has, err := r.to.had(ctx)
	if err != nil {
		return err
	}
	if has != "" && r.j.Shown.Had != "" {
		if lacks, err := mysql.ErrantTransactions(r.j.Shown.Had, has); err != nil {
			return fmt.Errorf("which transactions group %s lacks: %w", r.to.group, err)
		} else if lacks.Empty() {
			return nil
		}
	}
	r.say("the primary of group %s was changed since the rows were compared: looking whether it has them", r.to.group)
	for _, t := range r.tables {
		if err := r.arrivedOf(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// arrivedOf compares the rows of a table that the old group still has.
func (r *run) arrivedOf(ctx context.Context, t *table) error {
	var gone int64
	differ := false
	for after := ""; ; {
		keys, err := r.keys(ctx, r.from, t, behind(t, after))
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			break
		}
		after = keys[len(keys)-1]
		here, there, err := r.both(ctx, t, " AND "+keyColumns(t)+" IN ("+strings.Join(keys, ", ")+")")
		if err != nil {
			return err
		}
		gone += here.Count - there.Count
		differ = differ || here.Sum != there.Sum
	}
	what := "rows of " + t.full() + " are other ones in group " + r.to.group + ", by clients or as it lost changes"
	switch {
	case gone > 0:
		what = "group " + r.to.group + " lacks " + digits.Counted(gone, "row") + " of " + t.full() + ", which clients deleted, or it lost"
	case !differ:
		return nil
	}
	return fault.New(fault.Failed, "compare them, and bring into group "+r.to.group+" what it lost (risso receipt); then risso shard resume "+r.j.Map+" deletes the old rows if they are the same, risso shard resume "+
		r.j.Map+" --keep-rows leaves them", fmt.Errorf("%w: its primary was changed since they were compared: %s; the rows in group %s, and their triggers, stay", ErrLost, what, r.from.group))
}

// unchanged sees that the new group has the primary still that was asked for the rows.
func (r *run) unchanged(ctx context.Context) error {
	g, err := r.Groups.Group(ctx, r.to.group)
	if err != nil {
		return err
	}
	if g.Epoch != r.to.epoch || g.Primary() < 0 {
		return fault.New(fault.Failed, "risso shard resume "+r.j.Map+" looks whether the new one has the rows", fmt.Errorf("group %s has another primary, epoch %d: %w", r.to.group, g.Epoch, ErrLost))
	}
	return nil
}
