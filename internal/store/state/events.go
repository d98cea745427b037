package state

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// AddEvents stores events, all of them or none, and returns them with their ids.
// Ids ascend in the order of storing. An event without a time happened now.
func (s *Store) AddEvents(ctx context.Context, events ...fleet.Event) ([]fleet.Event, error) {
	out := slices.Clone(events)
	err := s.change(ctx, "store events", func(ctx context.Context, tx *sql.Tx) error {
		for i := range out {
			e := &out[i]
			if e.Time.IsZero() {
				e.Time = time.Now()
			}
			var err error
			if e.ID, err = addEvent(ctx, tx, *e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// addEvent stores an event and returns its id.
func addEvent(ctx context.Context, tx *sql.Tx, e fleet.Event) (int64, error) {
	r, err := tx.ExecContext(ctx, `INSERT INTO events (time, instance, kind, severity, subject, old, new, text) VALUES (?,?,?,?,?,?,?,?)`,
		stamp(e.Time), e.Instance, string(e.Kind), int(e.Severity), e.Subject, e.Old, e.New, e.Text)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// EventQuery picks events. What is left zero does not narrow.
type EventQuery struct {
	Instances []string  // instance IDs; the empty one is Risso itself
	From, To  time.Time // From included, To not
	Kinds     []fleet.EventKind
	Severity  fleet.Severity // at least that
	AfterID   int64          // only newer ones, for polling
	Oldest    bool           // the oldest instead of the newest, if there are more than Limit
	Limit     int            // the newest so many; 0 means 1,000, at most 10,000
}

// Events returns the newest events that fit, by ascending id.
func (s *Store) Events(ctx context.Context, q EventQuery) ([]fleet.Event, error) {
	var where []string
	var args []any
	in := func(column string, n int, at func(int) any) {
		where = append(where, column+" IN (?"+strings.Repeat(",?", n-1)+")")
		for i := range n {
			args = append(args, at(i))
		}
	}
	if n := len(q.Instances); n > 0 {
		in("instance", n, func(i int) any { return q.Instances[i] })
	}
	if n := len(q.Kinds); n > 0 {
		in("kind", n, func(i int) any { return string(q.Kinds[i]) })
	}
	if !q.From.IsZero() {
		where, args = append(where, "time >= ?"), append(args, stamp(q.From))
	}
	if !q.To.IsZero() {
		where, args = append(where, "time < ?"), append(args, stamp(q.To))
	}
	if q.Severity > 0 {
		where, args = append(where, "severity >= ?"), append(args, int(q.Severity))
	}
	if q.AfterID > 0 {
		where, args = append(where, "id > ?"), append(args, q.AfterID)
	}
	query := "SELECT id, time, instance, kind, severity, subject, old, new, text FROM events"
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	n := q.Limit
	if n <= 0 {
		n = 1000
	}
	order := "DESC"
	if q.Oldest {
		order = "ASC"
	}
	query += fmt.Sprintf(" ORDER BY id %s LIMIT %d", order, min(n, 10000))
	var out []fleet.Event
	err := s.each(ctx, "query events", func(r *sql.Rows) error {
		var e fleet.Event
		var us int64
		var kind string
		var severity int
		if err := r.Scan(&e.ID, &us, &e.Instance, &kind, &severity, &e.Subject, &e.Old, &e.New, &e.Text); err != nil {
			return err
		}
		e.Time, e.Kind, e.Severity = fromStamp(us), fleet.EventKind(kind), fleet.Severity(severity)
		out = append(out, e)
		return nil
	}, query, args...)
	if !q.Oldest {
		slices.Reverse(out)
	}
	return out, err
}

// pruneBatch keeps each transaction of a prune short, so that no other writer waits long.
const pruneBatch = 2000

// PruneEvents deletes the events before a time and tells how many there were.
func (s *Store) PruneEvents(ctx context.Context, before time.Time) (int64, error) {
	var all int64
	for {
		var n int64
		err := s.change(ctx, "prune events", func(ctx context.Context, tx *sql.Tx) error {
			r, err := tx.ExecContext(ctx, `DELETE FROM events WHERE id IN (SELECT id FROM events WHERE time < ? LIMIT ?)`, stamp(before), pruneBatch)
			if err != nil {
				return err
			}
			if n, err = r.RowsAffected(); err != nil || n == 0 {
				return err
			}
			_, err = tx.ExecContext(ctx, `DELETE FROM marks WHERE NOT EXISTS (SELECT 1 FROM events WHERE id = marks.first)`) // what was sent again would be taken for them
			return err
		})
		if err != nil {
			return all, err
		}
		if all += n; n < pruneBatch {
			return all, nil
		}
	}
}
