package compare

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/journal"
	"github.com/rissodb/risso/internal/mysql"
)

// journalKind names the journals of comparisons.
const journalKind = "settings"

// writeJournal keeps the values to put back. It wraps ErrLeft when there is a journal of this server.
func writeJournal(dir string, s mysql.Server, started int64, old []Setting) (*journal.File, error) {
	j, err := journal.Write(dir, journalKind, s, started, old)
	if errors.Is(err, journal.ErrExists) {
		return nil, fmt.Errorf("%w: %w; run risso bench compare --restore", ErrLeft, err)
	}
	return j, err
}

// CheckLeft says, by an error that wraps ErrLeft, that a compare left its settings on a server, or is at work on it: whatever was
// measured there would be measured with them. A server that began anew since has its own settings again.
func CheckLeft(ctx context.Context, target mysql.Target, dir string) error {
	if !journal.Any(dir, journalKind) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, putBackWithin)
	defer cancel()
	c, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	j, content, err := journal.Take[[]Setting](dir, journalKind, c.Server)
	switch {
	case errors.Is(err, journal.ErrHeld):
		return fmt.Errorf("%w: %w", ErrLeft, err)
	case err != nil || j == nil:
		return err
	}
	defer j.Release()
	started, err := c.Started(ctx)
	if err != nil {
		return fmt.Errorf("ask since when the server runs: %w", err)
	}
	if !journal.SameStart(started, content.Started) {
		return nil
	}
	return fmt.Errorf("%w: %s; run risso bench compare --restore", ErrLeft, j.Path())
}

// Left says what a killed compare left on a server.
type Left struct {
	Since      time.Time
	Restarted  bool // since then: nothing is left to put back
	Statements []string
}

// Restore puts back what a killed compare left on a server; with dryRun it only says what it would run. It gives nil when there
// is nothing.
func Restore(ctx context.Context, target mysql.Target, dir string, dryRun bool) (*Left, error) {
	ctx, cancel := context.WithTimeout(ctx, putBackWithin)
	defer cancel()
	c, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	j, content, err := journal.Take[[]Setting](dir, journalKind, c.Server)
	switch {
	case errors.Is(err, journal.ErrHeld):
		return nil, fmt.Errorf("%w: %w", ErrLeft, err)
	case err != nil || j == nil:
		return nil, err
	}
	defer j.Release()
	for _, s := range content.Old {
		if settingForm().FindString(s.Name+"=") == "" { // the names go into statements
			return nil, fmt.Errorf("the journal %s names a variable %q: look at it", j.Path(), s.Name)
		}
	}
	started, err := c.Started(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask since when the server runs: %w", err)
	}
	left := &Left{Since: content.Time, Restarted: !journal.SameStart(started, content.Started)}
	if !left.Restarted {
		left.Statements = sqlOf(content.Old)
	}
	if dryRun {
		return left, nil
	}
	if err := putBack(ctx, target, content.Started, content.Old); err != nil {
		return left, fmt.Errorf("%w: %w", ErrNotRestored, err)
	}
	return left, j.Remove()
}
