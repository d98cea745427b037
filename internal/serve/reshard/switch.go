package reshard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/avail/shard/keep"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// guards are the triggers by which a table refuses writes of the rows that move, by name. They are in the binary log: a replica that becomes the primary
// has them. What is written is looked at when it is: before, a key that the server makes is not known, as one of AUTO_INCREMENT, which is 0.
func (r *run) guards(t *table) (names, creates []string) {
	old, fresh := "OLD."+t.column.Quoted(), "NEW."+t.column.Quoted()
	for i, on := range []struct {
		event string
		parts []string
	}{{"AFTER INSERT", []string{fresh}}, {"AFTER UPDATE", []string{old, fresh}}, {"BEFORE DELETE", []string{old}}} {
		name := fmt.Sprintf("risso_shard_%s_%d_%d", r.j.ID, r.number(t), i)
		var or []string
		for _, p := range on.parts {
			or = append(or, r.j.Part.Where(p))
		}
		text := "moved to group " + r.j.Asked.To + ": look up map " + r.j.Map + " again, epoch " + fmt.Sprint(r.j.After.Epoch)
		names = append(names, mysql.Quote(t.Schema)+"."+mysql.Quote(name))
		creates = append(creates, "CREATE /* risso: refuse writes of rows that move */ TRIGGER "+mysql.Quote(t.Schema)+"."+mysql.Quote(name)+" "+on.event+" ON "+t.full()+
			" FOR EACH ROW IF ("+strings.Join(or, " OR ")+") AND COALESCE(@risso_shard, '') <> '"+r.j.ID+"' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = "+mysql.Literal(text[:min(len(text), 128)])+"; END IF")
	}
	return names, creates
}

// number is which of the tables one is.
func (r *run) number(t *table) int {
	for i := range r.tables {
		if r.tables[i] == t {
			return i
		}
	}
	return -1
}

// fence creates the guards. Each waits until the transactions that have written the table have ended: afterwards nobody has a change of the rows open.
func (r *run) fence(ctx context.Context) error {
	if r.j.Fenced.IsZero() {
		r.j.Fenced = time.Now().UTC()
		if err := r.j.Save(ctx); err != nil { // who goes on, or takes it back, drops them
			return err
		}
	}
	for _, t := range r.tables {
		names, creates := r.guards(t)
		for i := range names {
			err := retried(ctx, fenceTries, r.Limits.Lock, func() error {
				if err := r.from.rows.Exec(ctx, "DROP /* risso: there may be one from before a kill */ TRIGGER IF EXISTS "+names[i]); err != nil {
					return err
				}
				return r.from.rows.Exec(ctx, creates[i])
			})
			if err != nil {
				return fmt.Errorf("refuse writes of rows that move in %s: %w", t.full(), err)
			}
		}
	}
	return nil
}

// lift drops the guards.
func (r *run) lift(ctx context.Context) error {
	for _, t := range r.tables {
		names, _ := r.guards(t)
		for _, name := range names {
			if err := r.again(ctx, func() error {
				return r.from.rows.Exec(ctx, "DROP /* risso: the move is over */ TRIGGER IF EXISTS "+name)
			}); err != nil {
				return fmt.Errorf("drop %s in group %s: %w", name, r.from.group, err)
			}
		}
	}
	return nil
}

// switching refuses writes, takes what is left to the other side, compares, and switches the map. When it fails writes are taken as before.
func (r *run) switching(ctx context.Context) error {
	err := r.fence(ctx)
	if err == nil {
		err = r.settle(ctx)
	}
	var version int64
	if err == nil { // before the last entry into the journal: a process that follows after that makes the version an old one
		version, err = r.planned(ctx)
	}
	if err == nil {
		err = r.shown(ctx)
	}
	if err == nil {
		err = r.same(ctx)
	}
	if err == nil {
		now := time.Now().UTC()
		r.j.After.Changed = now
		if err = r.Maps.Switch(ctx, &r.j.After, version); err == nil {
			r.j.Stage, r.j.Switch, r.j.Blocked = shard.Cleaning, now, now.Sub(r.j.Fenced)
			r.say("map %s has epoch %d; writes of the rows were refused for %s", r.j.Map, r.j.After.Epoch, digits.Span(r.j.Blocked))
			return nil
		}
		not, why := r.notSwitched(ctx, err)
		if err = why; !not {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if lifted := r.reopen(ctx); lifted != nil {
		return fmt.Errorf("%w; and writes of the rows are refused still: %w", err, lifted)
	}
	return err
}

// notSwitched reports whether the map is surely not switched after a switch that failed with err, and why not: it may be, though the answer was lost, or may be
// later, which renewing it prevents. Where another process has followed that one finds out.
func (r *run) notSwitched(ctx context.Context, err error) (bool, error) {
	if saved := r.j.Save(ctx); saved != nil {
		return false, fmt.Errorf("%w; %w", err, saved)
	}
	mp, again := r.Maps.Renew(ctx, r.j.Map)
	switch {
	case errors.Is(again, keep.ErrNone):
		return true, again
	case again != nil || r.j.Made(mp):
		return false, err
	case mp.Epoch+1 != r.j.After.Epoch:
		return true, r.changed(mp.Epoch)
	case errors.Is(err, keep.ErrOther):
		return true, fault.New(fault.Failed, "risso shard resume "+r.j.Map+" goes on", fmt.Errorf("map %s was written amid the switch, and stays as it was", r.j.Map))
	}
	return true, err
}

// reopen takes writes of the rows again. The journal comes first: a process that another one has followed may drop nothing. Who goes on after this failed sees
// by Fenced that there may be guards.
func (r *run) reopen(ctx context.Context) error {
	r.j.Stage = shard.Copying
	if err := r.j.Save(ctx); err != nil {
		return err
	}
	if r.from.rows.Broken() != nil {
		r.from.close()
		if err := r.connect(ctx, r.from, r.j.ID); err != nil {
			return err
		}
	}
	if err := r.lift(ctx); err != nil {
		return err
	}
	r.j.Fenced = time.Time{}
	return r.j.Save(ctx)
}

// settle copies what changed last, and compares.
func (r *run) settle(ctx context.Context) error {
	for i := 0; ; i++ {
		if err := r.drain(ctx); err != nil {
			return err
		}
		if !r.left() {
			break
		}
		if i > tries {
			return fmt.Errorf("%w: some changed rows do not fit", ErrDiffers)
		}
	}
	for _, t := range r.tables {
		create, err := define.CreateTable(ctx, r.from.rows, mysql.TableName{Schema: t.Schema, Name: t.Name})
		if err != nil {
			return err
		}
		if plain(create) != plain(t.at.Create) {
			return refused("risso shard undo "+r.j.Map+", and begin again", "%s was altered during the move", t.full())
		}
		if t.seen != nil && !r.blind && t.at.Rows > r.Limits.Whole {
			if err := r.compareSeen(ctx, t); err != nil {
				return err
			}
			continue
		}
		here, there, err := r.both(ctx, t, "")
		if err != nil {
			return err
		}
		if here.Count != there.Count || here.Sum != there.Sum {
			return r.differs(t, here.Count, there.Count)
		}
		t.at.Rows, t.at.Sum = here.Count, here.Sum.String()
	}
	return nil
}

// left reports whether changed rows are not copied.
func (r *run) left() bool {
	for _, t := range r.tables {
		if len(t.dirty) > 0 {
			return true
		}
	}
	return false
}

// plain is a definition without what each INSERT changes.
func plain(create string) string {
	head, rest, ok := strings.Cut(create, " AUTO_INCREMENT=")
	if !ok {
		return create
	}
	return head + strings.TrimLeft(rest, "0123456789")
}

// cleaning deletes the old rows, and then drops the guards.
func (r *run) cleaning(ctx context.Context) error {
	if wait := time.Until(r.j.Switch.Add(r.j.Grace)); wait > 0 {
		r.say("group %s refuses the keys for another %s, so that clients look up the map again", r.from.group, digits.Span(wait))
		if err := delay.For(ctx, wait); err != nil {
			return err
		}
	}
	// Those of large tables are counted now: they are all there still, and nobody may write them.
	var all int64
	for _, t := range r.tables {
		if t.at.Sum == "" {
			rows, err := r.sum(ctx, r.from, t, "")
			if err != nil {
				return err
			}
			t.at.Rows, t.at.Sum = rows.Count, rows.Sum.String()
		}
		all += t.at.Rows
	}
	if err := r.j.Save(ctx); err != nil {
		return err
	}
	if !r.j.Keep {
		if err := r.arrived(ctx); err != nil {
			return err
		}
		if err := r.deleted(ctx, r.from); err != nil {
			return err
		}
		r.j.Deleted = all // with those of a process that was killed before it could say so
	}
	if err := r.lift(ctx); err != nil {
		return err
	}
	r.j.Stage, r.j.Ended = shard.Done, time.Now().UTC()
	return nil
}

// undoing deletes the copy, after writes are taken as before.
func (r *run) undoing(ctx context.Context) error {
	if err := r.lift(ctx); err != nil {
		return err
	}
	if r.j.Log.File != "" { // else nothing was copied: what is there is somebody's
		if err := r.deleted(ctx, r.to); err != nil {
			return err
		}
	}
	r.j.Stage, r.j.Ended = shard.Undone, time.Now().UTC()
	return nil
}

// deleted deletes the rows of the part on one side, few at a time.
func (r *run) deleted(ctx context.Context, s *side) error {
	for _, t := range r.tables {
		for after := ""; ; {
			keys, err := r.keys(ctx, s, t, behind(t, after))
			if err != nil {
				return err
			}
			if len(keys) == 0 {
				break
			}
			after = keys[len(keys)-1]
			if s == r.from { // a failover of the new group amid this may lose the rows there
				if err := r.unchanged(ctx); err != nil {
					return err
				}
			}
			err = r.again(ctx, func() error {
				return s.rows.Exec(ctx, "DELETE /* risso: rows that are in another group */ FROM "+t.full()+" WHERE "+keyColumns(t)+" IN ("+strings.Join(keys, ", ")+") AND "+r.where(t))
			})
			if err != nil {
				return fmt.Errorf("delete rows of %s in group %s: %w", t.full(), s.group, err)
			}
			r.j.Deleted += int64(len(keys))
			if err := r.j.Save(ctx); err != nil {
				return err
			}
			if err := delay.For(ctx, r.Limits.Pause); err != nil {
				return err
			}
		}
	}
	return nil
}
