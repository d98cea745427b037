package trace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/journal"
	"github.com/rissodb/risso/internal/mysql"
)

// journalKind names the journals of traces.
const journalKind = "trace"

// writeJournal keeps what was there before. It wraps ErrBusy when there is a journal of this server.
func writeJournal(dir string, s mysql.Server, started int64, old Old) (*journal.File, error) {
	j, err := journal.Write(dir, journalKind, s, started, old)
	if errors.Is(err, journal.ErrExists) {
		return nil, fmt.Errorf("%w, or was killed: %w; run risso trace --restore", ErrBusy, err)
	}
	return j, err
}

// openJournal takes the journal that a killed trace of this server left: nil when there is none. It wraps ErrBusy when that
// trace lives.
func openJournal(dir string, s mysql.Server) (*journal.File, journal.Content[Old], error) {
	j, c, err := journal.Take[Old](dir, journalKind, s)
	if errors.Is(err, journal.ErrHeld) {
		err = ErrBusy
	}
	return j, c, err
}

// Left says what a killed trace left switched on, on a server: nil when nothing.
type Left struct {
	Since      time.Time // when it was switched on
	Restarted  bool      // the server has been restarted since: nothing is left to put back
	Statements []string  // that put it back
	Words      string
}

// Restore puts back what a killed trace left switched on; with dryRun it only says what it would run. It gives nil when there
// is nothing to put back.
func Restore(ctx context.Context, target mysql.Target, stateDir string, dryRun bool) (*Left, error) {
	cctx, cancel := context.WithTimeout(ctx, queryTimeout)
	c, err := mysql.Connect(cctx, target, nil)
	cancel()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	j, content, err := openJournal(stateDir, c.Server)
	if err != nil || j == nil {
		return nil, err
	}
	defer j.Release()
	started, err := c.Started(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask since when the server runs: %w", err)
	}
	left := &Left{Since: content.Time, Restarted: !journal.SameStart(started, content.Started), Words: content.Old.words()}
	if !left.Restarted {
		left.Statements = content.Old.restore()
	}
	if dryRun {
		return left, nil
	}
	if !left.Restarted {
		// The server may not have noticed yet that the killed one is gone.
		if err := takeLock(ctx, c, 5); err != nil {
			return left, err
		}
		if err := putBack(ctx, c, content.Old); err != nil {
			return left, fmt.Errorf("%w: %w", ErrNotRestored, err)
		}
	}
	return left, j.Remove()
}
