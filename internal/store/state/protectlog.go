package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// RunProgress is how far a run is. It is kept so that one that was cut short still says how far it had come.
type RunProgress struct {
	Run   int64     `json:"run"`
	Time  time.Time `json:"time"`  // when it was so far
	Stage string    `json:"stage"` // what it does now, such as "read tables"
	Done  int64     `json:"done"`
	Total int64     `json:"total"` // 0: unknown
	Unit  string    `json:"unit"`  // of done and total: bytes, rows, tables; empty: a plain count
}

// RunLine is a line of a run's log.
type RunLine struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// mostLines is how many lines of one run are kept, the newest.
const mostLines = 1000

// NoteRun keeps how far a run is, and adds lines to its log.
func (s *Store) NoteRun(ctx context.Context, p RunProgress, lines ...RunLine) error {
	if p.Time.IsZero() {
		p.Time = time.Now()
	}
	return s.change(ctx, "note a run's progress", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO protect_progress (run, time, stage, done, total, unit) VALUES (?,?,?,?,?,?)`,
			p.Run, stamp(p.Time), p.Stage, p.Done, p.Total, p.Unit); err != nil {
			return err
		}
		for _, l := range lines {
			if _, err := tx.ExecContext(ctx, `INSERT INTO protect_log (run, time, text) VALUES (?,?,?)`, p.Run, stamp(l.Time), l.Text); err != nil {
				return err
			}
		}
		if len(lines) == 0 {
			return nil
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM protect_log WHERE run = ?1 AND id <= (SELECT id FROM protect_log WHERE run = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)`, p.Run, mostLines)
		return err
	})
}

// Run returns one run; ErrNotFound when there is none of that id.
func (s *Store) Run(ctx context.Context, id int64) (Run, error) {
	var out *Run
	err := s.each(ctx, "read a run", func(r *sql.Rows) error {
		run, err := scanRun(r)
		out = &run
		return err
	}, `SELECT `+runColumns+` FROM protect_runs WHERE id = ?`, id)
	if err == nil && out == nil {
		err = fmt.Errorf("run %d: %w", id, ErrNotFound)
	}
	if err != nil {
		return Run{}, err
	}
	return *out, nil
}

// RunNotes returns how far a run came, as it was noted last, and its log, the oldest line first. Nothing noted is no error.
func (s *Store) RunNotes(ctx context.Context, run int64) (RunProgress, []RunLine, error) {
	p := RunProgress{Run: run}
	err := s.each(ctx, "read a run's progress", func(r *sql.Rows) error {
		var at int64
		err := r.Scan(&at, &p.Stage, &p.Done, &p.Total, &p.Unit)
		p.Time = fromStamp(at)
		return err
	}, `SELECT time, stage, done, total, unit FROM protect_progress WHERE run = ?`, run)
	lines := []RunLine{}
	err = errors.Join(err, s.each(ctx, "read a run's log", func(r *sql.Rows) error {
		var l RunLine
		var at int64
		err := r.Scan(&at, &l.Text)
		l.Time = fromStamp(at)
		lines = append(lines, l)
		return err
	}, `SELECT time, text FROM protect_log WHERE run = ? ORDER BY id`, run))
	return p, lines, err
}
