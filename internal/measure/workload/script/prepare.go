package script

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

const (
	perCommit = 1000          // rows of setup between two commits
	patience  = 6 * time.Hour // for one statement of setup or teardown: an index of a large table takes its time
)

// Prepare runs the statements under setup, repeated ones by several sessions. What it cannot finish stays: only the file
// knows how it is undone, which is what its teardown is for.
func (w *script) Prepare(ctx context.Context, o workload.PrepareOptions) error {
	if len(w.setup) == 0 {
		return fmt.Errorf("%w: %s has no setup: there is nothing to prepare", workload.ErrUsage, w.path)
	}
	if !o.Yes {
		return fmt.Errorf("%w: prepare runs the %d statements under setup of %s on %s: allow it with --yes", workload.ErrUsage, len(w.setup), w.path, o.Target)
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
	for i, st := range w.setup {
		if err := w.fill(ctx, o, st, uint64(i), progress); err != nil {
			return err
		}
	}
	return nil
}

// fill runs one statement of setup, each time with other values; these depend on the row alone, not on who runs it.
func (w *script) fill(ctx context.Context, o workload.PrepareOptions, st statement, number uint64, progress func(int64)) error {
	threads := min(max(o.Threads, 1), (st.repeat+perCommit-1)/perCommit)
	// Sessions block their threads without telling the runtime.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads + 2))
	var stop drive.Stop
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, stop.Set)()
	var next atomic.Int64
	for id := range threads {
		group.Go(func() error {
			s, err := o.Target.Open(ctx, &stop)
			if err != nil {
				return err
			}
			defer s.Close()
			drive.Wait(s, patience)
			p, err := w.prepare(s, st)
			if isUnpreparable(err) {
				p, err = nil, nil
			}
			if err != nil {
				return err
			}
			c := &client{script: w, session: s, drawn: make([]bool, len(w.values)), values: make([]value, len(w.values))}
			for first := next.Add(perCommit) - perCommit; first < int64(st.repeat); first = next.Add(perCommit) - perCommit {
				last := min(first+perCommit, int64(st.repeat))
				c.source = source{rng: rand.New(rand.NewPCG(number, uint64(first))), session: id, counters: make([]int64, w.sequences)}
				if err := c.rows(&st, p, first, last); err != nil {
					return w.at(st, errors.Join(ctx.Err(), err))
				}
				progress(last - first)
			}
			return nil
		})
	}
	return group.Wait()
}

// rows runs a statement of setup for some rows, in one transaction where there are several.
func (c *client) rows(st *statement, p *drive.Stmt, first, last int64) error {
	if last-first > 1 {
		if _, err := c.session.Exec(drive.Other, "BEGIN"); err != nil {
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

// isUnpreparable tells a statement that the server runs as text only. Source: ER_UNSUPPORTED_PS.
func isUnpreparable(err error) bool {
	var server *drive.ServerError
	return errors.As(err, &server) && server.Code == 1295
}

// Cleanup runs the statements under teardown, all of them, also where one fails.
func (w *script) Cleanup(ctx context.Context, o workload.PrepareOptions) error {
	if len(w.teardown) == 0 {
		return fmt.Errorf("%w: %s has no teardown: there is nothing to clean up", workload.ErrUsage, w.path)
	}
	if !o.Yes {
		return fmt.Errorf("%w: cleanup runs the %d statements under teardown of %s on %s: allow it with --yes", workload.ErrUsage, len(w.teardown), w.path, o.Target)
	}
	var failed error
	for i, st := range w.teardown {
		err := w.fill(ctx, o, st, uint64(i), func(int64) {})
		if err == nil && o.Progress != nil {
			o.Progress(int64(i+1), int64(len(w.teardown)))
		}
		failed = errors.Join(failed, err)
	}
	return failed
}
