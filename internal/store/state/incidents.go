package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// IncidentRow is an incident, of which the rest is in a file.
type IncidentRow struct {
	ID       string
	Instance string
	Began    time.Time
	Ended    time.Time       // zero: it goes on
	Body     json.RawMessage // what lists show of it
}

// SaveIncident notes an incident, or how it is now. began is its event, which is stored with the first note of it.
func (s *Store) SaveIncident(ctx context.Context, r IncidentRow, began fleet.Event) error {
	return s.change(ctx, "keep incident "+r.ID, func(ctx context.Context, tx *sql.Tx) error {
		var known bool
		err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM incidents WHERE id = ?)", r.ID).Scan(&known)
		if err == nil && !known {
			_, err = addEvent(ctx, tx, began)
		}
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO incidents (id, instance, began, ended, body) VALUES (?,?,?,?,?)", r.ID, r.Instance, stamp(r.Began), stamp(r.Ended), string(r.Body))
		return err
	})
}

// IncidentIDs are those of all incidents.
func (s *Store) IncidentIDs(ctx context.Context) (map[string]bool, error) {
	all := map[string]bool{}
	err := s.each(ctx, "list incidents", func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		all[id] = true
		return err
	}, "SELECT id FROM incidents")
	return all, err
}

// IncidentQuery picks incidents. What is left zero does not narrow.
type IncidentQuery struct {
	ID       string
	Instance string
	From, To time.Time // those that went on at some moment from From on, and before To
	Open     bool      // only those whose seconds are still gathered: they may have ended a moment ago
	Limit    int       // the newest so many; 0: 100, at most 1,000
}

// Incidents returns the newest incidents that fit.
func (s *Store) Incidents(ctx context.Context, q IncidentQuery) (out []IncidentRow, err error) {
	where, args := []string{"1"}, []any{}
	add := func(cond string, arg ...any) { where, args = append(where, cond), append(args, arg...) }
	if q.ID != "" {
		add("id = ?", q.ID)
	}
	if q.Instance != "" {
		add("instance = ?", q.Instance)
	}
	if !q.From.IsZero() {
		add("(ended = 0 OR ended >= ?)", stamp(q.From))
	}
	if !q.To.IsZero() {
		add("began < ?", stamp(q.To))
	}
	if q.Open {
		add("json_extract(body, '$.open')")
	}
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	err = s.each(ctx, "list incidents", func(rows *sql.Rows) error {
		var r IncidentRow
		var began, ended int64
		var body string
		if err := rows.Scan(&r.ID, &r.Instance, &began, &ended, &body); err != nil {
			return err
		}
		r.Began, r.Ended, r.Body = fromStamp(began), fromStamp(ended), json.RawMessage(body)
		out = append(out, r)
		return nil
	}, "SELECT id, instance, began, ended, body FROM incidents WHERE "+strings.Join(where, " AND ")+fmt.Sprintf(" ORDER BY began DESC, id DESC LIMIT %d", min(limit, 1000)), args...)
	return out, err
}
