//go:build cgo

package events

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"
)

// AddMinutes stores minutes, all in one transaction.
func (s *embedded) AddMinutes(ctx context.Context, minutes ...Minute) (stored int, err error) {
	list, err := checkMinutes(minutes, s.pruned.Load())
	if err != nil || len(minutes) == 0 {
		return 0, err
	}
	err = s.change(ctx, func(ctx context.Context, c *sql.Conn) error {
		if err := noteReadings(ctx, c, minutes); err != nil || len(list) == 0 {
			return err
		}
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

// roll brings risso_hours and risso_days up to date: hours and days that are over are added, those that a late minute belongs
// to are rebuilt. It is one transaction with the minutes; how far it got is visible to queries after the commit.
func (s *embedded) roll(ctx context.Context, c *sql.Conn, fresh []Minute) error {
	if len(fresh) == 0 {
		return nil
	}
	hours, days := s.rolled()
	if hours == 0 { // the first minutes ever
		hours = fresh[0].Time
		for _, m := range fresh {
			hours = min(hours, m.Time)
		}
		hours, days = hours/hour*hour, hours/day*day
	}
	newest := fresh[0].Time
	lateHours, lateDays := map[minuteID]bool{}, map[minuteID]bool{}
	for _, m := range fresh {
		newest = max(newest, m.Time)
		if m.Time < hours {
			lateHours[minuteID{m.Instance, m.Time / hour * hour}] = true
		}
		if m.Time < days {
			lateDays[minuteID{m.Instance, m.Time / day * day}] = true
		}
	}
	for h := range lateHours {
		if err := rollAgain(ctx, c, "risso_minutes", "risso_hours", hour, h); err != nil {
			return err
		}
	}
	for d := range lateDays {
		if err := rollAgain(ctx, c, "risso_hours", "risso_days", day, d); err != nil {
			return err
		}
	}
	// A day at a time: sums of one are small enough for any memory.
	for end := (newest - rollupPatience) / hour * hour; hours < end; {
		to := min(end, hours/day*day+day)
		if err := rollUp(ctx, c, "risso_minutes", "risso_hours", hour, "time >= ? AND time < ?", hours, to); err != nil {
			return err
		}
		if hours = to; hours%day == 0 {
			if err := rollUp(ctx, c, "risso_hours", "risso_days", day, "time >= ? AND time < ?", days, hours); err != nil {
				return err
			}
			days = hours
		}
	}
	if oldHours, oldDays := s.rolled(); hours == oldHours && days == oldDays {
		return nil
	}
	s.next = [2]int64{hours, days}
	for name, value := range map[string]int64{"hours": hours, "days": days} {
		if _, err := c.ExecContext(ctx, "UPDATE risso_meta SET value = ? WHERE name = ?", value, name); err != nil {
			return err
		}
	}
	return nil
}

// rollAgain rebuilds the hour or day of one instance.
func rollAgain(ctx context.Context, c *sql.Conn, from, to string, width int64, id minuteID) error {
	if _, err := c.ExecContext(ctx, "DELETE FROM "+to+" WHERE instance = ? AND time = ?", id.instance, id.time); err != nil {
		return err
	}
	return rollUp(ctx, c, from, to, width, "time >= ? AND time < ? AND instance = ?", id.time, id.time+width, id.instance)
}

// rollUp adds rows up to spans of width seconds.
func rollUp(ctx context.Context, c *sql.Conn, from, to string, width int64, where string, args ...any) error {
	list := make([]string, len(minuteSums))
	for i, m := range minuteSums {
		list[i] = "sum(" + m + ")"
	}
	keys := fmt.Sprintf("instance, time // %[1]d * %[1]d AS span, class, db, account", width)
	_, err := c.ExecContext(ctx, `INSERT INTO `+to+`
SELECT t.*, l.bucket, l.bucket_calls FROM
 (SELECT `+keys+`, `+strings.Join(list, ", ")+`, max(max_seconds) FROM `+from+` WHERE `+where+` GROUP BY ALL) AS t
 LEFT JOIN (SELECT instance, span, class, db, account, list(bucket ORDER BY bucket) AS bucket, list(calls ORDER BY bucket) AS bucket_calls FROM
  (SELECT instance, span, class, db, account, bucket, CAST(sum(calls) AS BIGINT) AS calls FROM
   (SELECT `+keys+`, unnest(bucket) AS bucket, unnest(bucket_calls) AS calls FROM `+from+` WHERE bucket IS NOT NULL AND `+where+`)
   GROUP BY ALL)
  GROUP BY instance, span, class, db, account) AS l
 USING (instance, span, class, db, account)
ORDER BY t.span, t.class, t.instance`, append(append([]any{}, args...), args...)...)
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
	named, seen, told := map[int64][]any{}, map[place][2]int64{}, map[int64]string{}
	for _, c := range classes {
		k, err := key(c.ID)
		if err != nil {
			return err
		}
		if c.Fingerprint != "" { // else it is known, and only seen again
			named[k] = []any{k, c.ID, c.PtID, c.Fingerprint, c.Verb, c.Tables}
		}
		if c.PtID != "" {
			told[k] = c.PtID
		}
		p := place{c.Instance, c.Digest, k}
		if p.digest == "" {
			p.digest = c.ID // see digestOf
		}
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
		if err := tellPtIDs(ctx, c, told); err != nil {
			return err
		}
		return insertRows(ctx, c, "risso_seen", places, "ON CONFLICT DO UPDATE SET first_seen = least(first_seen, excluded.first_seen), last_seen = greatest(last_seen, excluded.last_seen)")
	})
	return wrap("note classes", err)
}

// tellPtIDs notes pt-query-digest's IDs of classes that had none.
func tellPtIDs(ctx context.Context, c *sql.Conn, told map[int64]string) error {
	const one = "(?::BIGINT, ?::VARCHAR)"
	for batch := range slices.Chunk(slices.Collect(maps.Keys(told)), rowsAtOnce) {
		var args []any
		for _, k := range batch {
			args = append(args, k, told[k])
		}
		if _, err := c.ExecContext(ctx, "UPDATE risso_classes SET pt_id = told.pt_id FROM (VALUES "+strings.TrimSuffix(strings.Repeat(one+", ", len(batch)), ", ")+
			") AS told (class, pt_id) WHERE risso_classes.class = told.class AND risso_classes.pt_id = ''", args...); err != nil {
			return err
		}
	}
	return nil
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
		err := c.QueryRowContext(ctx, "SELECT plan, last_seen FROM risso_plans WHERE instance = ? AND class = ? AND db = ? AND origin = ? ORDER BY last_seen DESC, plan LIMIT 1", p.Instance, k, p.Schema, p.Origin).Scan(&old, &last)
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
		// What is not rolled up yet stays; of all else whole days go, so that hours and days tell the same.
		hours, _ := s.rolled()
		upTo := min(minutes.Unix()/hour*hour, hours)
		old := everything.Unix() / day * day
		for _, d := range []struct {
			statement string
			before    int64
		}{
			{"DELETE FROM risso_minutes WHERE time < ?", max(upTo, old)},
			{"DELETE FROM risso_samples WHERE time < ?", max(minutes.Unix(), old)},
			{"DELETE FROM risso_activity WHERE time < ?", max(minutes.Unix(), old)},
			{"DELETE FROM risso_hours WHERE time < ?", old},
			{"DELETE FROM risso_days WHERE time < ?", old},
			{"DELETE FROM risso_readings WHERE time < ?", old},
			{"DELETE FROM risso_plans WHERE last_seen < ?", old},
			{"DELETE FROM risso_flips WHERE time < ?", old},
			{"DELETE FROM risso_seen WHERE last_seen < ?", old},
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
