package state

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/fleet"
)

// The errors of a file that several controllers share.
var (
	// ErrStale says that something else was agreed on first. It is in the file now: do it again.
	ErrStale = errors.New("something else was agreed on first")
	// ErrNoLeader says that no controller leads now; nothing was changed.
	ErrNoLeader = errors.New("no controller leads now: more than half of them must run and reach each other")
	// ErrUnsure says that nobody knows yet whether a change will be made.
	ErrUnsure = errors.New("it is not known whether the change was made")
	// ErrRejected says that controllers agreed that a change cannot be made.
	ErrRejected = errors.New("the change does not fit what is stored")
)

// Sharing is how controllers agree on changes of the tables that they share.
type Sharing interface {
	// Propose has a change agreed on. When it returns nil, the change is in this file; with ErrStale, what came first is; with ErrNoLeader,
	// ErrRejected and ErrShut, nothing was changed. After any other error the change may still be made.
	Propose(ctx context.Context, c Change) error
	// Level returns when this file has all that was agreed on before the call.
	Level(ctx context.Context) error
}

// families says for every table whether controllers share it, and which tables are kept consistent with each other: a change of one of them
// waits for changes of the others. A table without a family is local: it holds what this controller saw and did.
// DESIGN.md says why each is where it is.
var families = map[string]string{
	"documents":        "documents",
	"tokens":           "access",
	"access":           "access",
	"users":            "access",
	"sessions":         "access",
	"devices":          "access",
	"silences":         "silences",
	"acks":             "silences",
	"thresholds":       "thresholds",
	"advice_decisions": "decisions",
	"instances":        "inventory",
	"protect_jobs":     "protect",
	"protect_runs":     "protect",
	"protect_backups":  "protect",
	"protect_drills":   "protect",
	"protect_mirrors":  "protect",
	"protect_progress": "protect",
	"protect_log":      "protect",
	"benchmarks":       "benchmarks",

	"events":           "",
	"actions":          "",
	"marks":            "",
	"variables":        "",
	"variable_changes": "",
	"findings":         "",
	"alerting":         "",
	"alerts":           "",
	"messages":         "",
	"rule_alerts":      "",
	"incidents":        "",
	"advice":           "",
	"advice_looks":     "",
	"topologies":       "",

	"agreed":          positions,
	"agreed_changes":  positions,
	"agreed_families": positions,
}

// positions is the family of the tables that say how far the file is; no change may touch them.
const positions = "positions"

// share is what a Store has in addition where its file is shared.
type share struct {
	with     Sharing
	turn     chan struct{} // held by who tries again
	recorder recorder
	shapes   map[string]shape
	quiet    time.Time // until when no note is tried
}

// Identity is as what a shared file takes part.
type Identity struct {
	Cluster string // of the controllers that share it
	Node    string // this one's name
	Applied uint64 // the number of the last change that was agreed on and is in the file
}

// Identity says as what the file takes part; false where it is not shared.
func (s *Store) Identity(ctx context.Context) (i Identity, shared bool, err error) {
	err = s.each(ctx, "find out whether the state is shared", func(r *sql.Rows) error {
		shared = true
		return r.Scan(&i.Cluster, &i.Node, &i.Applied)
	}, `SELECT cluster, node, applied FROM agreed`)
	return i, shared, err
}

// BeginSharing marks the file as shared. From the next Open on, its shared tables change only by agreement. Applied is 0 where others bring what is
// shared; else it is the number of the change that brought what is in the file.
func (s *Store) BeginSharing(ctx context.Context, i Identity) error {
	return s.alone(ctx, "share the state", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM agreed; DELETE FROM agreed_changes; DELETE FROM agreed_families`); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO agreed (cluster, node, applied) VALUES (?,?,?)`, i.Cluster, i.Node, i.Applied); err != nil {
			return err
		}
		if i.Applied == 0 {
			return nil
		}
		for _, family := range families { // what is here already is a change to those that do not have it yet
			if family == "" || family == positions {
				continue
			}
			if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO agreed_families (family, at) VALUES (?,?)`, family, i.Applied); err != nil {
				return err
			}
		}
		return nil
	})
}

// EndSharing makes the file one controller's own again.
func (s *Store) EndSharing(ctx context.Context) error {
	return s.alone(ctx, "stop sharing the state", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM agreed; DELETE FROM agreed_changes; DELETE FROM agreed_families`)
		return err
	})
}

// Share sets how changes of a shared file are agreed on; without it, Open's own way is taken: by the risso serve of this machine.
func (s *Store) Share(with Sharing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared != nil {
		s.shared.with = with
	}
}

// Level returns when the file has all that controllers agreed on before the call; where it is not shared, at once.
func (s *Store) Level(ctx context.Context) error {
	if s.shared == nil {
		return nil
	}
	ctx, cancel := limit(ctx)
	defer cancel()
	return s.sharing().Level(ctx)
}

func (s *Store) sharing() Sharing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shared.with
}

// draft is a change that was tried, and what came of it.
type draft struct {
	Change
	done bool // it needs no agreement, or was agreed on before
}

// agree runs f until what it changes is agreed on. f may run several times; what it did the last time is what counts.
func (s *Store) agree(ctx context.Context, f func(context.Context, *sql.Tx) error) error {
	var mine []string            // what was proposed, and may have been made
	touched := map[string]bool{} // the families of all that was proposed
	for try := 0; ; try++ {
		if try == 1 { // one of this process at a time from now on, so that they do not hinder each other
			select {
			case s.shared.turn <- struct{}{}:
				defer func() { <-s.shared.turn }()
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		d, err := s.try(ctx, f, mine, touched)
		if err != nil || d.done {
			return err
		}
		err = s.sharing().Propose(ctx, d.Change)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrStale):
		case errors.Is(err, ErrNoLeader), errors.Is(err, ErrRejected), errors.Is(err, ErrShut):
			return err
		default: // perhaps it was made: look when everything that was agreed on so far is here
			mine = append(mine, d.ID)
			for family := range d.Bases {
				touched[family] = true
			}
			if err := s.settle(ctx, err); err != nil {
				return err
			}
		}
	}
}

// settleWait is between two tries to learn what became of a change.
const settleWait = 50 * time.Millisecond

// settle waits until it can be known what became of a change whose proposal failed with an error.
func (s *Store) settle(ctx context.Context, failed error) error {
	for {
		err := s.sharing().Level(ctx)
		if err == nil {
			return nil
		}
		if delay.For(ctx, settleWait) == nil {
			continue
		}
		if !errors.Is(failed, ErrUnsure) {
			failed = fmt.Errorf("%w: %w", ErrUnsure, failed)
		}
		return fleet.WithRemedy(failed, "risso controller list shows which controllers answer; look whether it was made when one leads, and ask again if not")
	}
}

// try runs f in a transaction. If it changed shared tables, the transaction is taken back, and the change is what is to be agreed on.
func (s *Store) try(ctx context.Context, f func(context.Context, *sql.Tx) error, mine []string, touched map[string]bool) (d draft, err error) {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return d, err
	}
	defer tx.Rollback() // of no effect after Commit
	for _, id := range mine {
		var made bool
		if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM agreed_changes WHERE id = ?)`, id).Scan(&made); err != nil {
			return d, err
		}
		if made {
			d.done = true
			return d, nil
		}
	}
	s.shared.recorder.begin()
	err = f(ctx, tx)
	rows, local, broken := s.shared.recorder.end()
	if err = errors.Join(err, broken); err != nil {
		return d, err
	}
	if len(rows) == 0 {
		d.done = true
		return d, tx.Commit()
	}
	if local != "" {
		return d, fmt.Errorf("%s is shared between controllers and %s is not: one transaction cannot change both", rows[0].Table, local)
	}
	d.Change = Change{ID: rand.Text(), Schema: len(migrations), Bases: map[string]uint64{}, Columns: map[string][]string{}, Rows: rows}
	for _, r := range rows {
		d.Bases[families[r.Table]] = 0
		d.Columns[r.Table] = s.shared.shapes[r.Table].columns
	}
	for family := range touched {
		d.Bases[family] = 0
	}
	for _, family := range slices.Collect(maps.Keys(d.Bases)) {
		if d.Bases[family], err = baseOf(ctx, tx, family); err != nil {
			return d, err
		}
	}
	return d, nil
}

// baseOf is the number of the last change of a family.
func baseOf(ctx context.Context, tx *sql.Tx, family string) (at uint64, err error) {
	err = tx.QueryRowContext(ctx, `SELECT coalesce(max(at), 0) FROM agreed_families WHERE family = ?`, family).Scan(&at)
	return at, err
}

// joinIn finds out whether the file is shared, and has its changes recorded then.
func (s *Store) joinIn(ctx context.Context) error {
	_, shared, err := s.Identity(ctx)
	if err != nil || !shared {
		return err
	}
	shapes, err := shapesOf(ctx, s.read)
	if err != nil {
		return fmt.Errorf("open state %s: %w", s.path, explain(err))
	}
	s.shared = &share{with: doorOf(s.path), turn: make(chan struct{}, 1), shapes: shapes}
	s.shared.recorder.shapes = shapes
	if err := s.write.Close(); err != nil {
		return fmt.Errorf("open state %s: %w", s.path, explain(err))
	}
	s.write, err = connect(s.path, 1, writing, &s.shared.recorder)
	return err
}

// SharedRows counts what would be lost if the shared tables were replaced, by table; the inventory, which follows from what is watched, is left out.
func (s *Store) SharedRows(ctx context.Context) (map[string]int, error) {
	count := map[string]int{}
	for table, family := range families {
		if family == "" || family == positions || table == "instances" || table == "access" {
			continue
		}
		n := 0
		if err := s.each(ctx, "count shared rows", func(r *sql.Rows) error { return r.Scan(&n) }, "SELECT count(*) FROM "+table); err != nil {
			return nil, err
		}
		if n > 0 {
			count[table] = n
		}
	}
	return count, nil
}
