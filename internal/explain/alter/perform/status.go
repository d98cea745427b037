package perform

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/explain/alter"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// State is what became of an ALTER TABLE whose process was killed.
type State string

// The states.
const (
	StateNone    State = "none"     // no journal: nothing was left
	StateBusy    State = "busy"     // its process lives
	StateRuns    State = "runs"     // the server still does it
	StateDone    State = "done"     // the table is as it was to be
	StateUndone  State = "not done" // the table is as before: the server has taken it back, or never began
	StateUnknown State = "unknown"  // the table is another
)

// Status is that of a server.
type Status struct {
	State State     `json:"state"`
	Since time.Time `json:"since,omitzero"`
	Left  *Left     `json:"left,omitempty"`
	What  string    `json:"what"`              // in words
	Path  string    `json:"journal,omitempty"` // of the run that was killed
}

// Look says what became of the ALTER TABLE that a killed process left on a server. What is over is forgotten then, if settle is set.
func Look(ctx context.Context, target mysql.Target, dir string, settle bool) (Status, error) {
	l, err := kind().Restore(ctx, target, dir, true)
	switch {
	case errors.Is(err, ErrBusy):
		return Status{State: StateBusy, What: "a risso alter run of this machine is at work on the server"}, nil
	case err != nil:
		return Status{}, err
	case l == nil:
		return Status{State: StateNone, What: "nothing: no risso alter run was killed on this machine while it worked on the server"}, nil
	}
	s := Status{Since: l.Since, Left: &l.Old, Path: l.Path}
	c, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return s, err
	}
	defer c.Close()
	if s.State, s.What, err = became(ctx, c, l.Old, l.Restarted); err != nil {
		return s, err
	}
	if settle && s.State != StateRuns {
		if _, err := kind().Restore(ctx, target, dir, false); err != nil && !errors.Is(err, ErrBusy) {
			return s, fmt.Errorf("forget what is over: %w", err)
		}
	}
	return s, nil
}

// became finds out what became of it.
func became(ctx context.Context, c *mysql.Conn, l Left, restarted bool) (State, string, error) {
	if !restarted {
		state, err := read.SessionStateOf(ctx, c, l.Connection)
		if err != nil {
			return "", "", err
		}
		if runs, err := running(ctx, c, l); err != nil {
			return "", "", err
		} else if runs {
			what := fmt.Sprintf("the server still does it, in connection %d", l.Connection)
			if state.Waits {
				what += ", which waits for a lock; others wait behind it"
			}
			return StateRuns, what + fmt.Sprintf("; KILL %d ends it, and the server takes it back", l.Connection), nil
		}
	}
	after := l.Table
	if l.RenamedTo != nil {
		after = *l.RenamedTo
	}
	now, err := definition(ctx, c, mysql.TableName(after))
	if err == nil && l.After != "" && alter.SameTable(now, l.After) {
		what := "the server has done it: " + after.String() + " is as it was to be"
		if l.NotLogged {
			what += ", on this server only"
		}
		return StateDone, what, nil
	}
	if l.RenamedTo != nil {
		now, err = definition(ctx, c, mysql.TableName(l.Table))
	}
	switch {
	case mysql.Gone(err):
		return StateUnknown, "there is no " + l.Table.String() + " any more", nil
	case err != nil:
		return "", "", err
	case alter.SameTable(now, l.Before):
		return StateUndone, l.Table.String() + " is as before: the server never began, or has taken it back", nil
	}
	return StateUnknown, l.Table.String() + " is neither as before nor as it was to be: somebody else changed it", nil
}

// ErrLeft says that something was left that has to be looked at first.
var ErrLeft = errors.New("an earlier risso alter run was killed, and the server still does what it began")

// Free makes sure that nothing of a killed process still runs on a server; what is over is forgotten, and said.
func Free(ctx context.Context, target mysql.Target, dir string, say func(string)) error {
	s, err := Look(ctx, target, dir, true)
	switch {
	case err != nil:
		return err
	case s.State == StateBusy:
		return fault.New(fault.Failed, "wait until it has ended", fmt.Errorf("%w: %s", ErrBusy, target))
	case s.State == StateRuns:
		return fault.New(fault.Failed, "wait until it has ended: risso alter status", fmt.Errorf("%w: %s", ErrLeft, s.What))
	case s.State != StateNone && say != nil:
		say(fmt.Sprintf("a risso alter run of %s that began at %s was killed: %s", s.Left.Table, s.Since.Local().Format(time.DateTime), s.What))
	}
	return nil
}
