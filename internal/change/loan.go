package change

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Kind is one kind of thing that Risso borrows of a server: what it changes there for a while.
type Kind[T any] struct {
	Name    string // its journals' names begin so
	Command string // gives back what a killed process left: "risso trace --restore"; "": the next borrower does
	Busy    error  // another process has borrowed the same of this server
	Kept    error  // it could not be given back; may be nil
	// Within is how long Return tries, also if the server goes away in the meantime.
	Within time.Duration
	// Back gives back what was there before, and makes sure of it by reading.
	Back func(ctx context.Context, c *mysql.Conn, old T) error
	// Final says that an error of Back is the server's answer: others are tried again, on a new connection.
	Final func(error) bool
	// Stays says that it outlives a restart of the server: then it is still given back.
	Stays bool
	// Check looks at what a journal says before it goes into statements; nil: Back takes whatever the file says.
	Check func(old T) error
	// Lock keeps others away while what a killed process left is given back; may be nil.
	Lock func(ctx context.Context, c *mysql.Conn) error
	// Statements are what Back would run, for people; may be nil.
	Statements func(old T) []string
}

// Loan is what this process has borrowed from a server, and has to give back.
type Loan[T any] struct {
	kind   Kind[T]
	target mysql.Target
	record record[T]
	file   *file
}

// Borrow notes what was there before. When it returns that is on disk, and the server may be changed. It wraps Busy when there is
// a journal of that server: somebody is at work on it, or was killed. started is since when the server runs, in unix seconds.
func (k Kind[T]) Borrow(dir string, target mysql.Target, s mysql.Server, started int64, old T) (*Loan[T], error) {
	f, err := write(dir, k.Name, s, started, old)
	if errors.Is(err, errExists) {
		return nil, k.left(err)
	} else if err != nil {
		return nil, err
	}
	return &Loan[T]{kind: k, target: target, record: newRecord(s, started, old), file: f}, nil
}

// left is the error of a journal that is in the way.
func (k Kind[T]) left(err error) error {
	if k.Command == "" {
		return fmt.Errorf("%w, or was killed: %w", k.Busy, err)
	}
	return fmt.Errorf("%w, or was killed: %w; run %s", k.Busy, err, k.Command)
}

// found takes what a killed process borrowed from a server and did not give back: nil when there is nothing. It wraps Busy when that
// process lives.
func (k Kind[T]) found(dir string, target mysql.Target, s mysql.Server) (*Loan[T], error) {
	f, r, err := take[T](dir, k.Name, s)
	if errors.Is(err, errHeld) {
		return nil, fmt.Errorf("%w: %w", k.Busy, err)
	} else if err != nil || f == nil {
		return nil, err
	}
	if k.Check != nil {
		if err := k.Check(r.Old); err != nil {
			f.release()
			return nil, fmt.Errorf("the journal %s: %w: look at it", f.path, err)
		}
	}
	return &Loan[T]{kind: k, target: target, record: r, file: f}, nil
}

// Take takes over what a process borrowed from a server that was killed, or left it, to go on with it: nil when there is nothing. It wraps
// Busy when that process lives.
func (k Kind[T]) Take(dir string, target mysql.Target, s mysql.Server) (*Loan[T], error) {
	return k.found(dir, target, s)
}

// Old is what the journal says.
func (l *Loan[T]) Old() T { return l.record.Old }

// Since is when it was borrowed.
func (l *Loan[T]) Since() time.Time { return l.record.Time }

// Started is since when the server ran, in unix seconds, in the life that the journal is of; 0: it is not known.
func (l *Loan[T]) Started() int64 { return l.record.Started }

// Path is where the journal is.
func (l *Loan[T]) Path() string { return l.file.path }

// Note replaces what the journal says, for work that goes on where it was cut off. It is on disk when Note returns.
func (l *Loan[T]) Note(old T) error {
	l.record.Old = old
	return l.file.replace(l.record)
}

// Restarted notes that the server runs since another moment, where what was borrowed Stays. It is on disk when Restarted returns.
func (l *Loan[T]) Restarted(started int64) error {
	l.record.Started = started
	return l.file.replace(l.record)
}

// Leave leaves the journal for whoever goes on.
func (l *Loan[T]) Leave() { l.file.release() }

// Done removes the journal: nothing is to be given back any more.
func (l *Loan[T]) Done() error { return l.file.remove() }

// Left is what a killed process left on a server.
type Left[T any] struct {
	Since      time.Time // when it was borrowed
	Restarted  bool      // the server has been restarted since: nothing is left to give back
	Statements []string  // that give it back
	Old        T         // what was there before
	Path       string    // of its journal
}

// Restore gives back what a killed process left on a server; with dryRun it only says what it would run. It returns nil if there is nothing.
func (k Kind[T]) Restore(ctx context.Context, target mysql.Target, dir string, dryRun bool) (*Left[T], error) {
	ctx, cancel := context.WithTimeout(ctx, k.Within)
	defer cancel()
	c, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	l, err := k.found(dir, target, c.Server)
	if err != nil || l == nil {
		return nil, err
	}
	defer l.file.release()
	ended, err := l.ended(ctx, c)
	if err != nil {
		return nil, err
	}
	left := &Left[T]{Since: l.record.Time, Restarted: ended, Old: l.record.Old, Path: l.file.path}
	if !ended && k.Statements != nil {
		left.Statements = k.Statements(left.Old)
	}
	switch {
	case dryRun:
		return left, nil
	case ended:
		return left, l.file.remove()
	}
	if k.Lock != nil {
		if err := k.Lock(ctx, c); err != nil {
			return left, err
		}
	}
	if err := k.Back(ctx, c, left.Old); err != nil {
		if k.Kept != nil {
			err = fmt.Errorf("%w: %w", k.Kept, err)
		}
		return left, err
	}
	return left, l.file.remove()
}

// Waits says, by an error that wraps Busy, that something borrowed was not given back to a server and affects all measurements there.
func (k Kind[T]) Waits(ctx context.Context, target mysql.Target, dir string) error {
	if !anyOf(dir, k.Name) {
		return nil
	}
	left, err := k.Restore(ctx, target, dir, true)
	if err != nil || left == nil || left.Restarted {
		return err
	}
	return k.left(errors.New(left.Path))
}

// ended says that the server has been restarted since, and so has nothing any more that was borrowed.
func (l *Loan[T]) ended(ctx context.Context, c *mysql.Conn) (bool, error) {
	if l.kind.Stays {
		return false, nil
	}
	now, err := read.Started(ctx, c)
	if err != nil {
		return false, fmt.Errorf("ask since when the server runs: %w", err)
	}
	return !sameStart(now, l.record.Started), nil
}

// Execute carries out a plan that changes what was borrowed. When it fails, everything is given back before it returns. c is nil, or a
// connection to the server.
func (l *Loan[T]) Execute(ctx context.Context, c *mysql.Conn, p Plan, log Log) error {
	_, err := Execute(ctx, p, log)
	if err == nil {
		return nil
	}
	back, rerr := l.Return(ctx, c)
	if back != nil && back != c {
		back.Close()
	}
	return errors.Join(err, rerr)
}

// retryAfter is how long Return waits before it reconnects.
const retryAfter = 300 * time.Millisecond

// Return gives back what was borrowed, regardless of ctx and of the connection, which may be nil. It returns the connection that works, or
// the last one. If it fails the journal stays, for Command or the next borrower.
func (l *Loan[T]) Return(ctx context.Context, c *mysql.Conn) (*mysql.Conn, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.kind.Within)
	defer cancel()
	var failed error
	for works := c != nil; ; {
		err := error(nil)
		if !works {
			fresh, cerr := mysql.Connect(ctx, l.target, nil)
			if err = cerr; err == nil {
				c, works = fresh, true
			}
		}
		if works {
			err = l.back(ctx, c)
		}
		if err == nil {
			return c, l.file.remove()
		}
		if failed == nil || ctx.Err() == nil { // else it says that the time is over
			failed = err
		}
		if !l.kind.Final(err) {
			_ = delay.For(ctx, retryAfter)
		}
		if l.kind.Final(err) || ctx.Err() != nil {
			l.file.release()
			return c, l.kept(failed)
		}
		if works {
			c.Close()
			works = false
		}
	}
}

func (l *Loan[T]) back(ctx context.Context, c *mysql.Conn) error {
	ended, err := l.ended(ctx, c)
	if err != nil || ended {
		return err
	}
	return l.kind.Back(ctx, c, l.record.Old)
}

// kept adds to why it could not be given back where it is noted.
func (l *Loan[T]) kept(err error) error {
	if l.kind.Kept == nil {
		return err
	}
	return fmt.Errorf("%w: %w; the previous values are in %s: run %s", l.kind.Kept, err, l.file.path, l.kind.Command)
}
