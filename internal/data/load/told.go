package load

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// told is one thing that a restore found out while it changed the target, as its journal keeps it: what is not done again by the next run
// must still be reported by it. One field is set, or a schema and its collation.
type told struct {
	Otherwise *Finding `json:"otherwise,omitempty"`
	Missing   *Finding `json:"missing,omitempty"`
	All       int64    `json:"all,omitempty"` // how much is missing, also of what is not reported one by one
	Note      string   `json:"note,omitempty"`
	Kept      string   `json:"kept,omitempty"`     // an account
	LeftOut   string   `json:"left_out,omitempty"` // a key of run.leftOut
	Objects   int64    `json:"objects,omitempty"`  // how many are made
	Rolled    *Rolled  `json:"rolled,omitempty"`

	Schema    string `json:"schema,omitempty"`    // has another collation for a while
	Collation string `json:"collation,omitempty"` // its own
	Behind    bool   `json:"behind,omitempty"`    // the binary logs, which may have changed it
}

// say takes what was found out into the result.
func (r *run) say(x told) {
	switch {
	case x.Otherwise != nil:
		r.otherwise(*x.Otherwise)
	case x.Missing != nil:
		r.leave(*x.Missing)
	case x.Note != "":
		r.notef("%s", x.Note)
	case x.Kept != "":
		if !slices.Contains(r.kept, x.Kept) {
			r.kept = append(r.kept, x.Kept)
		}
	case x.LeftOut != "":
		r.mu.Lock()
		r.leftOut[x.LeftOut] = true
		r.mu.Unlock()
	case x.All > 0:
		r.missingAll = max(r.missingAll, x.All)
	case x.Objects > 0:
		r.made.Store(x.Objects)
	case x.Rolled != nil:
		r.result.Rolled = x.Rolled
	}
}

// tell reports about a table what the next run would not find out again, and notes it in the journal.
func (r *run) tell(ctx context.Context, s *session, t *table, x told) error {
	r.say(x)
	return keepTold(ctx, s, t, x)
}

// keepTold notes in the journal what was found out about a table, or about what takes its place there.
func keepTold(ctx context.Context, s *session, t *table, x told) error {
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return s.Exec(ctx, "INSERT INTO "+repo.JournalSchema+".told (id, said) VALUES ("+t.id+", "+mysql.Literal(string(b))+")")
}

// dropTold takes back what the journal has of it, up to a number.
func dropTold(ctx context.Context, s *session, t *table, upTo int64) error {
	return s.Exec(ctx, fmt.Sprintf("DELETE FROM %s.told WHERE id = %s AND number <= %d", repo.JournalSchema, t.id, upTo))
}

// otherwise notes, while rows go in, what is there in another form.
func (r *run) otherwise(f Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.later, f) {
		return
	}
	switch n := len(r.later); {
	case n < maxFindings:
		r.later = append(r.later, f)
	case n == maxFindings:
		r.later = append(r.later, moreFindings)
	}
}

// earlier is what the journal says about the runs before this one, by ids in it.
type earlier struct {
	begun map[string]bool // that were claimed, or got further
	told  map[string][]told
	last  int64 // number of the last finding
}

// readEarlier reads what an earlier run did. Journals of versions that recorded nothing have no such table.
func (r *run) readEarlier(ctx context.Context, s *session) error {
	e := earlier{begun: map[string]bool{}, told: map[string][]told{}}
	err := s.Query(ctx, "SELECT /* risso: what did it do? */ LOWER(HEX(id)) FROM "+repo.JournalSchema+".tables WHERE state > 0", func(row [][]byte) error {
		e.begun["x'"+string(row[0])+"'"] = true
		return nil
	})
	if err == nil {
		err = s.Query(ctx, "SELECT /* risso: what did it find out? */ LOWER(HEX(id)), number, said FROM "+repo.JournalSchema+".told ORDER BY number", func(row [][]byte) error {
			var x told
			if err := json.Unmarshal(row[2], &x); err != nil {
				return fmt.Errorf("the journal of the interrupted restore: %w", err)
			}
			id := "x'" + string(row[0]) + "'"
			e.told[id] = append(e.told[id], x)
			_, err := fmt.Sscan(string(row[1]), &e.last)
			return err
		})
	}
	if n := mysql.ErrorNumber(err); err != nil && n != errno.NoSuchTable {
		return err
	}
	r.earlier = e
	return nil
}

// stageMark represents in the journal what is made in one stage, after all that comes before.
func stageMark(kind repo.ObjectKind) *table { return &table{id: tableID("", "stage "+string(kind))} }

// ours reports whether what has a name on the target is of an earlier run of this restore: a table that it began, or something of a kind
// whose turn had come.
func (r *run) ours(kind repo.ObjectKind, schema, name string) bool {
	switch {
	case !r.resumed:
		return false
	case r.earlier.begun[rolling.id]:
		return true
	case kind == kindTable:
		return r.earlier.begun[tableID(schema, name)]
	}
	return r.earlier.begun[stageMark(kind).id]
}

// takeUp goes on with a table of which the journal knows a state, if it still exists: somebody may have dropped or emptied it since. What
// was found out about it is reported again, or dropped if it is made from scratch.
func (r *run) takeUp(ctx context.Context, s *session, t *table, st *state) error {
	if !r.resumed || *st == absent {
		return nil
	}
	if *st > claimed {
		there, err := r.stillThere(ctx, s, t, *st)
		if err != nil {
			return err
		}
		if !there {
			*st = claimed
		}
	}
	r.mu.Lock()
	list := r.earlier.told[t.id]
	r.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	if *st > claimed {
		for _, x := range list {
			r.say(x)
		}
	} else if err := dropTold(ctx, s, t, r.earlier.last); err != nil {
		return err
	}
	r.mu.Lock()
	delete(r.earlier.told, t.id)
	r.mu.Unlock()
	return nil
}

// stillThere reports whether a table that an earlier run made is there, and has rows if it loaded some.
func (r *run) stillThere(ctx context.Context, s *session, t *table, st state) (there bool, err error) {
	rows := false
	err = s.Query(ctx, "SELECT /* risso: is it still there? */ 1 FROM "+t.quoted()+" LIMIT 1", func([][]byte) error {
		rows = true
		return nil
	})
	switch n := mysql.ErrorNumber(err); {
	case n == errno.NoSuchTable || n == errno.UnknownDatabase:
		return false, nil
	case err != nil && (n == 0 || passes(err)):
		return false, err
	case err != nil || t.Elsewhere: // such as a MERGE table over what is not there yet
		return true, nil
	}
	return rows || st < loaded || t.Rows == 0 || len(t.Columns) == 0, nil
}

// takeUpAll prepares a run that continues another one: rolls says that the other had reached the binary logs, and so had made and compared
// all that comes before.
func (r *run) takeUpAll(ctx context.Context, s **session) (rolls bool, err error) {
	err = r.again(ctx, s, func(s *session) error {
		for _, st := range journalTables { // an older version may not have all of them
			if err := s.Exec(ctx, st); err != nil {
				return err
			}
		}
		st, err := r.readState(ctx, s, rolling)
		if err != nil {
			return err
		}
		rolls = st > absent
		left, err := r.lentCollations(ctx, s, rolls)
		if err != nil {
			return err
		}
		return giveBack(ctx, s, left)
	})
	if err != nil || !rolls {
		return rolls, err
	}
	for _, x := range r.earlier.told[rolling.id] {
		r.say(x)
	}
	for _, at := range r.tables {
		l, err := r.spool.get(at)
		if err != nil {
			return rolls, err
		}
		if r.leftOut[leftTable(l.Table.Schema, l.Table.Name)] {
			continue
		}
		t, err := r.newTable(ctx, l.Table)
		if err != nil {
			return rolls, err
		}
		r.bytes.Add(2 * t.Bytes)
		r.report(t.result(chunk.Rows{}, true))
	}
	return rolls, nil
}

// rolling represents the roll forward in the journal. Journals of versions that recorded nothing have it claimed while it goes on.
var rolling = &table{id: tableID("", "roll forward")}

// How far it is.
const (
	rollReady = created // all that comes before is done; what the server has noted of a roll forward is of an earlier restore
	rollBegun = loaded
	rollDone  = indexed
)

// beginRolling notes, unless an earlier run did, that from here on binary logs change what was made, with all that was found out until now;
// and returns how far the roll forward is.
func (r *run) beginRolling(ctx context.Context, s **session) (st state, err error) {
	var all []told
	for i := range r.later {
		all = append(all, told{Otherwise: &r.later[i]})
	}
	for i := range r.missing {
		all = append(all, told{Missing: &r.missing[i]})
	}
	for _, n := range r.notes {
		all = append(all, told{Note: n})
	}
	for _, a := range r.kept {
		all = append(all, told{Kept: a})
	}
	for key := range r.leftOut {
		all = append(all, told{LeftOut: key})
	}
	all = append(all, told{All: r.missingAll}, told{Objects: r.made.Load()})
	err = r.again(ctx, s, func(s *session) error {
		if st, err = r.readState(ctx, s, rolling); err != nil || st > absent {
			return err
		}
		if err := s.Exec(ctx, "DELETE FROM "+repo.JournalSchema+".told WHERE id = "+rolling.id); err != nil {
			return err
		}
		st = rollReady
		return keepAll(ctx, s, st, all)
	})
	return st, err
}

// endRolling takes what the roll forward did into the result, and notes it.
func (r *run) endRolling(ctx context.Context, s **session, done Rolled) error {
	all := []told{{Rolled: &done}}
	for _, n := range done.Notes {
		all = append(all, told{Note: "rolling forward: " + n})
	}
	for _, x := range all {
		r.say(x)
	}
	return r.again(ctx, s, func(s *session) error { return keepAll(ctx, s, rollDone, all) })
}

// keepAll notes how far the roll forward is, with what was found out.
func keepAll(ctx context.Context, s *session, st state, all []told) error {
	if err := s.Exec(ctx, "START TRANSACTION"); err != nil {
		return err
	}
	for _, x := range all {
		if err := keepTold(ctx, s, rolling, x); err != nil {
			return err
		}
	}
	if err := setState(ctx, s, st, rolling); err != nil {
		return err
	}
	return s.Exec(ctx, "COMMIT")
}

// toldOfRolling adds to that, and is reported again by a run that goes on after the binary logs.
func (r *run) toldOfRolling(ctx context.Context, s *session, x told) error {
	if r.o.Until.IsZero() {
		return nil
	}
	return keepTold(ctx, s, rolling, x)
}
