package script

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/measure/workload/crew"
)

const (
	perCommit = 1000             // rows of setup between two commits
	undoLimit = 10 * time.Minute // for taking away what was made
)

// Prepare runs the statements under setup, repeated ones by several sessions, and marks the tables that they make. When it
// fails, or is interrupted, it drops these again; rows in tables that were there before stay.
func (w *script) Prepare(ctx context.Context, o workload.PrepareOptions) error {
	if len(w.setup) == 0 {
		return fmt.Errorf("%w: %s has no setup: there is nothing to prepare", workload.ErrUsage, w.path)
	}
	if !o.Yes {
		return fmt.Errorf("%w: prepare runs the %s under setup of %s on %s: allow it with --yes", workload.ErrUsage, digits.Counted(len(w.setup), "statement"), w.path, o.Target)
	}
	var total int64
	for _, st := range w.setup {
		total += int64(st.repeat)
	}
	var done atomic.Int64
	progress := func(n int64) {
		if now := done.Add(n); o.Progress != nil {
			o.Progress(now, total)
		}
	}
	// Sessions block their threads without telling the runtime.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(o.Threads, 1) + 2))
	c, err := crew.Hire(ctx, o.Target, o.Threads)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := w.mayChange(c.Session(), w.setup); err != nil {
		return err
	}
	var made []string
	for i, st := range w.setup {
		table, err := w.make(ctx, c, st, uint64(i), progress)
		if table != "" {
			made = append(made, table)
		}
		if err != nil {
			return w.undo(ctx, c, made, err)
		}
	}
	return nil
}

// make runs one statement of setup. It returns the table that the statement made, also when it only may have made it.
func (w *script) make(ctx context.Context, c *crew.Crew, st statement, number uint64, progress func(int64)) (table string, err error) {
	name := createdBy(st, c.Session().Dialect())
	if name != "" {
		is, err := lookAt(c.Session(), name)
		if err != nil {
			return "", w.at(st, err)
		}
		if is.there {
			name = "" // CREATE TABLE IF NOT EXISTS, or an error
		}
	}
	err = w.fill(ctx, c, st, number, progress)
	var server *drive.ServerError
	switch {
	case name == "" || errors.As(err, &server):
		return "", err
	case err != nil:
		return name, err
	}
	return name, w.mark(c.Session(), st, name)
}

// undo drops the tables that were made, the last first.
func (w *script) undo(ctx context.Context, c *crew.Crew, made []string, err error) error {
	if len(made) == 0 {
		return err
	}
	left := c.Undo(ctx, undoLimit, func(s drive.Session) error {
		for len(made) > 0 {
			if _, err := s.Exec(drive.Other, "DROP TABLE IF EXISTS "+made[len(made)-1]); err != nil {
				return err
			}
			made = made[:len(made)-1]
		}
		return nil
	})
	if left != nil {
		return fmt.Errorf("%w; %s left behind, such as %s, because of %q", err, digits.Plural(len(made), "table is", "tables are"), made[len(made)-1], left.Error())
	}
	return fmt.Errorf("%w; the tables that were created have been removed", err)
}

// fill runs one statement of setup or teardown, each time with other values; these depend on the row alone, not on the session that runs
// it.
func (w *script) fill(ctx context.Context, c *crew.Crew, st statement, number uint64, progress func(int64)) error {
	jobs := (st.repeat + perCommit - 1) / perCommit
	return c.Work(ctx, jobs, func(s drive.Session, job int) error {
		p, err := w.prepare(s, st)
		if isUnpreparable(err) {
			p, err = nil, nil
		}
		if err != nil {
			return err
		}
		first := int64(job) * perCommit
		last := min(first+perCommit, int64(st.repeat))
		c := &client{script: w, session: s, drawn: make([]bool, len(w.values)), values: make([]value, len(w.values))}
		c.source = source{rng: rand.New(rand.NewPCG(number, uint64(first))), counters: make([]int64, w.sequences)}
		if err := c.rows(&st, p, first, last); err != nil {
			return w.at(st, err)
		}
		progress(last - first)
		return nil
	})
}

// rows runs a statement of setup for some rows, in one transaction if there are several.
func (c *client) rows(st *statement, p *drive.Stmt, first, last int64) error {
	if last-first > 1 {
		if _, err := c.session.Exec(drive.Other, "START TRANSACTION"); err != nil {
			return err
		}
	}
	for c.source.row = first; c.source.row < last; c.source.row++ {
		clear(c.drawn)
		if _, err := c.do(st, p); err != nil {
			return err
		}
	}
	if last-first > 1 {
		_, err := c.session.Exec(drive.Other, "COMMIT")
		return err
	}
	return nil
}

// isUnpreparable recognizes a statement that the server runs as text only. Source: ER_UNSUPPORTED_PS.
func isUnpreparable(err error) bool {
	var server *drive.ServerError
	return errors.As(err, &server) && server.Code == 1295
}

// Cleanup runs the statements under teardown, all of them, also where one fails. It runs none where one would drop or change
// a table that Prepare did not make. A file without teardown loses the tables that its setup made.
func (w *script) Cleanup(ctx context.Context, o workload.PrepareOptions) error {
	if len(w.teardown) == 0 {
		return w.dropMade(ctx, o)
	}
	if !o.Yes {
		return fmt.Errorf("%w: cleanup runs the %s under teardown of %s on %s: allow it with --yes", workload.ErrUsage, digits.Counted(len(w.teardown), "statement"), w.path, o.Target)
	}
	var failed error
	for i, st := range w.teardown {
		c, err := crew.Hire(ctx, o.Target, 1)
		if err != nil {
			return errors.Join(failed, err)
		}
		if i == 0 {
			err = w.mayChange(c.Session(), w.teardown)
		}
		if err == nil {
			err = w.fill(ctx, c, st, uint64(i), func(int64) {})
		} else {
			c.Close()
			return err
		}
		c.Close()
		if err == nil && o.Progress != nil {
			o.Progress(int64(i+1), int64(len(w.teardown)))
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// dropMade drops the tables under setup that carry the mark, the last first, and names one that does not.
func (w *script) dropMade(ctx context.Context, o workload.PrepareOptions) error {
	var names []string
	for _, st := range slices.Backward(w.setup) {
		if name := createdBy(st, o.Target.Dialect()); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("%w: %s has no teardown, and its setup creates no tables: there is nothing to clean up", workload.ErrUsage, w.path)
	}
	c, err := crew.Hire(ctx, o.Target, 1)
	if err != nil {
		return err
	}
	defer c.Close()
	var kept string
	var dropped atomic.Int64
	err = c.Work(ctx, len(names), func(s drive.Session, job int) error {
		is, err := lookAt(s, names[job])
		switch {
		case err != nil || !is.there:
			return err
		case !is.marked:
			kept = names[job]
			return nil
		}
		if _, err := s.Exec(drive.Other, "DROP TABLE "+names[job]); err != nil {
			return err
		}
		if n := dropped.Add(1); o.Progress != nil {
			o.Progress(n, int64(len(names)))
		}
		return nil
	})
	if err == nil && kept != "" {
		return fmt.Errorf("%s was not created by prepare, and is kept: its comment is not %q", kept, workload.Mark)
	}
	return err
}
