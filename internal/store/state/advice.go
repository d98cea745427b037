package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// AdviceRow is something that a look at a server found, and that holds or held.
type AdviceRow struct {
	Instance string
	ID       string // of the check: schema.no_pk
	Object   string // schema.table, user@host and the like; empty: the server
	Severity fleet.Severity
	First    time.Time       // when it was first seen
	Since    time.Time       // since when it is so, as far as the facts say; zero: they do not
	Seen     time.Time       // when it was last seen
	Ended    time.Time       // when a look no longer found it; zero: it holds
	Blind    []string        // what could not be read when it was last seen
	Body     json.RawMessage // the finding
}

// AdviceLook is how the last look at a server went.
type AdviceLook struct {
	Instance string
	Looked   time.Time // when the last whole look ended; zero: none did
	Tried    time.Time // when the last one ended, whole or not
	Body     json.RawMessage
}

// KeepAdvice writes what follows from a look, all of it or none: how it went, what was found, what was gone, and their events.
func (s *Store) KeepAdvice(ctx context.Context, l AdviceLook, put []AdviceRow, events []fleet.Event) error {
	return s.change(ctx, "keep advice about "+l.Instance, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO advice_looks (instance, looked, tried, body) VALUES (?,?,?,?)", l.Instance, stamp(l.Looked), stamp(l.Tried), string(l.Body))
		if err != nil {
			return err
		}
		keep, err := tx.PrepareContext(ctx, "INSERT OR REPLACE INTO advice (instance, finding, object, severity, first, since, seen, ended, blind, body) VALUES (?,?,?,?,?,?,?,?,?,?)")
		if err != nil {
			return err
		}
		defer keep.Close()
		for _, r := range put {
			blind, err := json.Marshal(r.Blind)
			if err != nil {
				return err
			}
			if _, err := keep.ExecContext(ctx, r.Instance, r.ID, r.Object, int(r.Severity), stamp(r.First), stamp(r.Since), stamp(r.Seen), stamp(r.Ended), string(blind), string(r.Body)); err != nil {
				return err
			}
		}
		for _, e := range events {
			if _, err := addEvent(ctx, tx, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// AdviceQuery picks what was found. What is left zero does not narrow.
type AdviceQuery struct {
	Instances []string
	Severity  fleet.Severity // at least that
	Open      bool           // only what holds
}

// Advice returns what looks found, by instance, finding and object.
func (s *Store) Advice(ctx context.Context, q AdviceQuery) (list []AdviceRow, err error) {
	where, args := []string{"severity >= ?"}, []any{int(q.Severity)}
	if n := len(q.Instances); n > 0 {
		where = append(where, "instance IN (?"+strings.Repeat(",?", n-1)+")")
		for _, i := range q.Instances {
			args = append(args, i)
		}
	}
	if q.Open {
		where = append(where, "ended = 0")
	}
	err = s.each(ctx, "list advice", func(rows *sql.Rows) error {
		var r AdviceRow
		var severity int
		var first, since, seen, ended int64
		var blind, body string
		if err := rows.Scan(&r.Instance, &r.ID, &r.Object, &severity, &first, &since, &seen, &ended, &blind, &body); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(blind), &r.Blind); err != nil {
			return fmt.Errorf("%s of %s on %s: %w", r.ID, r.Object, r.Instance, err)
		}
		r.Severity, r.First, r.Since, r.Seen, r.Ended, r.Body = fleet.Severity(severity), fromStamp(first), fromStamp(since), fromStamp(seen), fromStamp(ended), json.RawMessage(body)
		list = append(list, r)
		return nil
	}, "SELECT instance, finding, object, severity, first, since, seen, ended, blind, body FROM advice WHERE "+strings.Join(where, " AND ")+" ORDER BY instance, finding, object", args...)
	return list, err
}

// AdviceLooks returns how the last look at each server went, by instance.
func (s *Store) AdviceLooks(ctx context.Context) (list []AdviceLook, err error) {
	err = s.each(ctx, "list looks of advice", func(rows *sql.Rows) error {
		var l AdviceLook
		var looked, tried int64
		var body string
		err := rows.Scan(&l.Instance, &looked, &tried, &body)
		l.Looked, l.Tried, l.Body = fromStamp(looked), fromStamp(tried), json.RawMessage(body)
		list = append(list, l)
		return err
	}, "SELECT instance, looked, tried, body FROM advice_looks ORDER BY instance")
	return list, err
}

// PruneAdvice takes away what ended before a moment.
func (s *Store) PruneAdvice(ctx context.Context, before time.Time) error {
	return s.change(ctx, "prune advice", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM advice WHERE ended != 0 AND ended < ?", stamp(before))
		return err
	})
}

// The kinds of AdviceDecision.
const (
	AdviceAccepted  = "accepted"  // it is known, and stays as it is, until it gets worse
	AdvicePostponed = "postponed" // the same, until a moment
	AdviceSilenced  = "silenced"  // what fits is not to be told, whatever its severity
)

// AdviceDecision is what somebody decided about what looks find.
type AdviceDecision struct {
	ID       int64          `json:"number"`           // by which it is taken back
	Kind     string         `json:"kind"`             // accepted, postponed or silenced
	Server   string         `json:"server,omitempty"` // ID of an instance; where it is silenced a pattern of names; empty: all servers
	Finding  string         `json:"finding"`          // such as schema.no_pk; where it is silenced a pattern
	Object   string         `json:"object,omitempty"` // the same; empty: the server, and all where it is silenced
	Severity fleet.Severity `json:"severity"`         // that it had: what gets worse is told again
	Until    time.Time      `json:"until,omitzero"`   // zero: without end
	At       time.Time      `json:"at"`               // when it was decided
	Who      string         `json:"who,omitempty"`    // who did
	Reason   string         `json:"reason"`
}

// DecideAdvice keeps decisions, each instead of the one that is about the same.
func (s *Store) DecideAdvice(ctx context.Context, list ...AdviceDecision) error {
	return s.change(ctx, "keep a decision", func(ctx context.Context, tx *sql.Tx) error {
		for _, d := range list {
			_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO advice_decisions (kind, server, finding, object, severity, until, at, who, reason) VALUES (?,?,?,?,?,?,?,?,?)",
				d.Kind, d.Server, d.Finding, d.Object, int(d.Severity), stamp(d.Until), stamp(d.At), d.Who, d.Reason)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// UndoAdvice takes decisions back; ErrNotFound: there is none of these numbers.
func (s *Store) UndoAdvice(ctx context.Context, numbers ...int64) error {
	return s.change(ctx, "take a decision back", func(ctx context.Context, tx *sql.Tx) error {
		var undone int64
		for _, id := range slices.Compact(slices.Sorted(slices.Values(numbers))) {
			res, err := tx.ExecContext(ctx, "DELETE FROM advice_decisions WHERE id = ?", id)
			if err != nil {
				return err
			}
			n, err := res.RowsAffected()
			if err != nil {
				return err
			}
			undone += n
		}
		if undone == 0 {
			return ErrNotFound
		}
		return nil
	})
}

// AdviceDecisions returns what was decided, the newest first.
func (s *Store) AdviceDecisions(ctx context.Context) (list []AdviceDecision, err error) {
	err = s.each(ctx, "list decisions", func(rows *sql.Rows) error {
		var d AdviceDecision
		var severity int
		var until, at int64
		err := rows.Scan(&d.ID, &d.Kind, &d.Server, &d.Finding, &d.Object, &severity, &until, &at, &d.Who, &d.Reason)
		d.Severity, d.Until, d.At = fleet.Severity(severity), fromStamp(until), fromStamp(at)
		list = append(list, d)
		return err
	}, "SELECT id, kind, server, finding, object, severity, until, at, who, reason FROM advice_decisions ORDER BY id DESC")
	return list, err
}
