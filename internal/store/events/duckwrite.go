//go:build cgo

package events

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"
)

// AddMinutes stores minutes, all in one transaction.
func (s *embedded) AddMinutes(ctx context.Context, minutes ...Minute) (stored int, err error) {
	list, err := checkMinutes(minutes)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	err = s.change(ctx, func(ctx context.Context, c *sql.Conn) error {
		fresh, err := s.fresh(ctx, c, list)
		if err != nil {
			return err
		}
		if err := appendMinutes(c, fresh); err != nil {
			return err
		}
		stored = len(fresh)
		return s.roll(ctx, c, fresh)
	})
	if err != nil {
		return 0, fmt.Errorf("store minutes of statements: %w", err)
	}
	return stored, nil
}

type minuteID struct {
	instance string
	time     int64
}

// fresh leaves out the minutes that are there.
func (s *embedded) fresh(ctx context.Context, c *sql.Conn, list []Minute) ([]Minute, error) {
	r := Range{list[0].Time, list[0].Time}
	for _, m := range list {
		r.From, r.To = min(r.From, m.Time), max(r.To, m.Time)
	}
	rows, err := c.QueryContext(ctx, "SELECT DISTINCT instance, time FROM risso_minutes WHERE time >= ? AND time <= ?", r.From, r.To)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	there := map[minuteID]bool{}
	for rows.Next() {
		var id minuteID
		if err := rows.Scan(&id.instance, &id.time); err != nil {
			return nil, err
		}
		there[id] = true
	}
	out := make([]Minute, 0, len(list))
	for _, m := range list {
		if id := (minuteID{m.Instance, m.Time}); !there[id] {
			there[id] = true
			out = append(out, m)
		}
	}
	return out, rows.Err()
}

func appendMinutes(c *sql.Conn, list []Minute) error {
	return c.Raw(func(raw any) error {
		conn, ok := raw.(driver.Conn)
		if !ok {
			return errors.New("the driver gives no connection")
		}
		a, err := duckdb.NewAppenderFromConn(conn, "", "risso_minutes")
		if err != nil {
			return err
		}
		for _, m := range list {
			for i := range m.Rows {
				if err := appendRow(a, m, &m.Rows[i]); err != nil {
					return errors.Join(err, a.Close())
				}
			}
		}
		return a.Close()
	})
}

func appendRow(a *duckdb.Appender, m Minute, r *Row) error {
	k, err := key(r.Class)
	if err != nil {
		return err
	}
	var number, calls driver.Value
	if len(r.Latency) > 0 {
		n, c := make([]int16, len(r.Latency)), make([]int64, len(r.Latency))
		for i, b := range r.Latency {
			n[i], c[i] = b.Number, b.Calls
		}
		number, calls = n, c
	}
	return a.AppendRow(m.Instance, m.Time, k, r.Schema, r.User, r.Calls, r.Seconds, r.LockSeconds, r.RowsSent, r.RowsExamined, r.RowsAffected, r.Errors, r.Warnings,
		r.TmpTables, r.TmpDiskTables, r.NoIndex, r.SortRows, r.MaxSeconds, number, calls)
}

// roll brings risso_hours up to date: hours that are over are added, hours that a late minute belongs to are made anew.
func (s *embedded) roll(ctx context.Context, c *sql.Conn, fresh []Minute) error {
	if len(fresh) == 0 {
		return nil
	}
	newest := fresh[0].Time
	late := map[minuteID]bool{}
	if s.until == 0 { // the first minutes ever
		s.until = fresh[0].Time / hour * hour
		for _, m := range fresh {
			s.until = min(s.until, m.Time/hour*hour)
		}
	}
	for _, m := range fresh {
		newest = max(newest, m.Time)
		if m.Time < s.until {
			late[minuteID{m.Instance, m.Time / hour * hour}] = true
		}
	}
	for h := range late {
		if _, err := c.ExecContext(ctx, "DELETE FROM risso_hours WHERE instance = ? AND time = ?", h.instance, h.time); err != nil {
			return err
		}
		if err := rollHours(ctx, c, "time >= ? AND time < ? AND instance = ?", h.time, h.time+hour, h.instance); err != nil {
			return err
		}
	}
	// A day at a time: sums of one are small enough for any memory.
	for end := (newest - rollupPatience) / hour * hour; s.until < end; {
		to := min(end, s.until+24*hour)
		if err := rollHours(ctx, c, "time >= ? AND time < ?", s.until, to); err != nil {
			return err
		}
		s.until = to
	}
	_, err := c.ExecContext(ctx, "UPDATE risso_meta SET value = ? WHERE name = 'rolled' AND value <> ?", s.until, s.until)
	return err
}

func rollHours(ctx context.Context, c *sql.Conn, where string, args ...any) error {
	sums := make([]string, len(minuteSums))
	for i, m := range minuteSums {
		sums[i] = "sum(" + m + ")"
	}
	keys := "instance, time // 3600 * 3600 AS hour, class, db, account"
	_, err := c.ExecContext(ctx, `INSERT INTO risso_hours
SELECT t.*, l.bucket, l.bucket_calls FROM
 (SELECT `+keys+`, `+strings.Join(sums, ", ")+`, max(max_seconds) FROM risso_minutes WHERE `+where+` GROUP BY ALL) AS t
 LEFT JOIN (SELECT instance, hour, class, db, account, list(bucket ORDER BY bucket) AS bucket, list(calls ORDER BY bucket) AS bucket_calls FROM
  (SELECT instance, hour, class, db, account, bucket, CAST(sum(calls) AS BIGINT) AS calls FROM
   (SELECT `+keys+`, unnest(bucket) AS bucket, unnest(bucket_calls) AS calls FROM risso_minutes WHERE bucket IS NOT NULL AND `+where+`)
   GROUP BY ALL)
  GROUP BY instance, hour, class, db, account) AS l
 USING (instance, hour, class, db, account)
ORDER BY t.hour, t.instance, t.class`, append(append([]any{}, args...), args...)...)
	return err
}

// rowsAtOnce is how many rows one statement inserts: a statement costs a millisecond, a row next to nothing.
const rowsAtOnce = 200

// AddClasses notes classes.
func (s *embedded) AddClasses(ctx context.Context, classes ...Class) error {
	if len(classes) == 0 {
		return nil
	}
	type place struct {
		instance, digest string
		class            int64
	}
	// A statement may not touch a row twice.
	named, seen := map[int64][]any{}, map[place][2]int64{}
	for _, c := range classes {
		k, err := key(c.ID)
		if err != nil {
			return err
		}
		if c.Fingerprint != "" { // else it is known, and only seen again
			named[k] = []any{k, c.ID, c.PtID, c.Fingerprint, c.Verb, c.Tables}
		}
		p := place{c.Instance, c.Digest, k}
		times, there := seen[p]
		if !there {
			times = [2]int64{c.FirstSeen, c.LastSeen}
		}
		seen[p] = [2]int64{min(times[0], c.FirstSeen), max(times[1], c.LastSeen)}
	}
	var names, places [][]any
	for _, n := range named {
		names = append(names, n)
	}
	for p, t := range seen {
		places = append(places, []any{p.instance, p.class, p.digest, t[0], t[1]})
	}
	err := s.change(ctx, func(ctx context.Context, c *sql.Conn) error {
		if err := insertRows(ctx, c, "risso_classes", names, "ON CONFLICT DO NOTHING"); err != nil {
			return err
		}
		return insertRows(ctx, c, "risso_seen", places, "ON CONFLICT DO UPDATE SET first_seen = least(first_seen, excluded.first_seen), last_seen = greatest(last_seen, excluded.last_seen)")
	})
	return wrap("note classes", err)
}

func insertRows(ctx context.Context, c *sql.Conn, table string, rows [][]any, conflict string) error {
	for len(rows) > 0 {
		n := min(len(rows), rowsAtOnce)
		one := "(" + strings.TrimSuffix(strings.Repeat("?, ", len(rows[0])), ", ") + ")"
		var args []any
		for _, r := range rows[:n] {
			args = append(args, r...)
		}
		if _, err := c.ExecContext(ctx, "INSERT INTO "+table+" VALUES "+strings.TrimSuffix(strings.Repeat(one+", ", n), ", ")+" "+conflict, args...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// AddSamples stores samples.
func (s *embedded) AddSamples(ctx context.Context, samples ...Sample) error {
	if len(samples) == 0 {
		return nil
	}
	err := s.change(ctx, func(ctx context.Context, c *sql.Conn) error {
		for _, p := range samples {
			k, err := key(p.Class)
			if err != nil {
				return err
			}
			if _, err := c.ExecContext(ctx, `INSERT INTO risso_samples VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
				p.Instance, k, p.Time, p.Text, p.Seconds, p.Schema, p.User, p.Host); err != nil {
				return err
			}
		}
		return nil
	})
	return wrap("store samples", err)
}

// AddPlan notes that a class was seen with a plan.
func (s *embedded) AddPlan(ctx context.Context, p Plan) (flip *Flip, err error) {
	k, err := key(p.Class)
	if err != nil {
		return nil, err
	}
	if p.FirstSeen == 0 {
		p.FirstSeen = p.LastSeen
	}
	err = s.change(ctx, func(ctx context.Context, c *sql.Conn) error {
		var old string
		var last int64
		err := c.QueryRowContext(ctx, "SELECT plan, last_seen FROM risso_plans WHERE instance = ? AND class = ? AND db = ? ORDER BY last_seen DESC, plan LIMIT 1", p.Instance, k, p.Schema).Scan(&old, &last)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if old != "" && old != p.ID && last < p.LastSeen {
			flip = &Flip{Instance: p.Instance, Class: p.Class, Schema: p.Schema, Time: p.LastSeen, Old: old, New: p.ID}
			if _, err := c.ExecContext(ctx, "INSERT INTO risso_flips VALUES (?, ?, ?, ?, ?, ?)", p.Instance, k, p.Schema, p.LastSeen, old, p.ID); err != nil {
				return err
			}
		}
		_, err = c.ExecContext(ctx, `INSERT INTO risso_plans VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
 first_seen = least(first_seen, excluded.first_seen), last_seen = greatest(last_seen, excluded.last_seen), text = excluded.text, origin = excluded.origin`,
			p.Instance, k, p.Schema, p.ID, p.FirstSeen, p.LastSeen, p.Origin, p.Text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("note a plan: %w", err)
	}
	return flip, nil
}

// Prune deletes what is older than it is kept.
func (s *embedded) Prune(ctx context.Context, minutes, everything time.Time) error {
	err := s.change(ctx, func(ctx context.Context, c *sql.Conn) error {
		// What is not rolled up yet stays.
		upTo := min(minutes.Unix()/hour*hour, s.until)
		for _, d := range []struct {
			statement string
			before    int64
		}{
			{"DELETE FROM risso_minutes WHERE time < ?", upTo},
			{"DELETE FROM risso_samples WHERE time < ?", minutes.Unix()},
			{"DELETE FROM risso_hours WHERE time < ?", everything.Unix()},
			{"DELETE FROM risso_minutes WHERE time < ?", everything.Unix()},
			{"DELETE FROM risso_plans WHERE last_seen < ?", everything.Unix()},
			{"DELETE FROM risso_flips WHERE time < ?", everything.Unix()},
			{"DELETE FROM risso_seen WHERE last_seen < ?", everything.Unix()},
			{"UPDATE risso_meta SET value = greatest(value, ?) WHERE name = 'pruned'", upTo},
		} {
			if _, err := c.ExecContext(ctx, d.statement, d.before); err != nil {
				return err
			}
		}
		_, err := c.ExecContext(ctx, "DELETE FROM risso_classes WHERE class NOT IN (SELECT class FROM risso_seen)")
		if err == nil && upTo > s.pruned.Load() {
			s.pruned.Store(upTo)
		}
		return err
	})
	return wrap("delete old statements", err)
}
