package errant

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
)

// ErrBusy is what every error wraps that says that another repair of the replica goes on, or was killed.
var ErrBusy = errors.New("another risso gtid repair works on this server")

// Keeper gives back what a repair left that was killed, or that a surprise ended.
type Keeper struct {
	Dir     string // of its journals
	Command string // that gives it back, for people
}

// within is how long it is tried to give something back.
const within = 2 * time.Minute

// Standing is what a journal says of a replica whose replication stands still for a while.
type Standing struct {
	Server   string    `json:"server"`
	Channels []Threads `json:"channels"` // as they were before
	Session  Session   `json:"session"`  // of the repair
}

// Resetting is what a journal says of a server whose binary log begins anew.
type Resetting struct {
	Server   string  `json:"server"`
	Executed string  `json:"executed"`           // gtid_executed, gtid_binlog_state before
	Rest     string  `json:"rest"`               // what it is to be
	Position string  `json:"position,omitempty"` // MariaDB: gtid_slave_pos
	Log      string  `json:"log"`                // where its binary log ended before
	Session  Session `json:"session"`            // of the repair
}

// Session is one of a server, in one life of it: after a restart another one has its number.
type Session struct {
	ID      int64 `json:"id"`
	Started int64 `json:"started"` // when the server began, in Unix seconds
}

// final reports whether an error is an answer that trying again does not change.
func final(err error) bool {
	switch mysql.ErrorNumber(err) {
	case errno.TooManyConnections, errno.TooManyUserConnections, errno.UserLimitReached, errno.ServerShutdown, errno.LockWaitTimeout:
		return false
	case 0:
		return errors.Is(err, ErrSurprise)
	}
	return true
}

// standing is the journal of threads that stand still. hold is why they must not be started yet; nil: they may.
func (k Keeper) standing(hold func() error) change.Kind[Standing] {
	return change.Kind[Standing]{
		Name: "gtid-standing", Command: k.Command, Busy: ErrBusy, Within: within, Stays: true, Final: final,
		Back: func(ctx context.Context, c *mysql.Conn, old Standing) error {
			if err := hold(); err != nil {
				return fmt.Errorf("%w: replication is not started: %w", ErrSurprise, err)
			}
			if err := old.Session.ended(ctx, c); err != nil {
				return err
			}
			channels, err := read.ReplicaChannels(ctx, c)
			if err != nil {
				return err
			}
			for _, t := range old.Channels {
				for _, ch := range channels {
					if ch.Name != t.Channel || t.works(ch) {
						continue
					}
					if err := c.Exec(ctx, t.start(c.Server)); err != nil {
						return fmt.Errorf("start replication on %s: %w", old.Server, err)
					}
				}
			}
			return nil
		},
		Statements: func(old Standing) []string { return []string{"let " + old.Server + " replicate again"} },
	}
}

// resetting is the journal of a binary log that begins anew.
func (k Keeper) resetting() change.Kind[Resetting] {
	return change.Kind[Resetting]{
		Name: "gtid-resetting", Command: k.Command, Busy: ErrBusy, Within: within, Stays: true, Final: final,
		Back: func(ctx context.Context, c *mysql.Conn, old Resetting) error { return old.finish(ctx, c) },
		Statements: func(old Resetting) []string {
			return []string{"if the binary log of " + old.Server + " has begun anew, let it remember " + old.Rest}
		},
	}
}

// finish lets a server remember what it is to, if its binary log has begun anew and is empty. Else it had not begun anew, or remembers already.
func (r Resetting) finish(ctx context.Context, c *mysql.Conn) error {
	if err := r.Session.ended(ctx, c); err != nil {
		return err
	}
	for _, s := range c.Server.LockWrites(lockPatience) {
		if err := c.Exec(ctx, s); err != nil {
			return err
		}
	}
	err := r.remember(ctx, c)
	return errors.Join(err, c.Exec(ctx, "UNLOCK TABLES"))
}

func (r Resetting) remember(ctx context.Context, c *mysql.Conn) error {
	now, err := Read(ctx, r.Server, c)
	if err != nil {
		return err
	}
	all, none, err := c.Server.HasHad(now.Executed, r.Rest)
	switch {
	case err != nil || all:
		return err
	case !none:
		return fmt.Errorf("%w: the binary log of %s began anew, and before it could remember %s something wrote %s: it must not replicate like this; make it anew", ErrSurprise, r.Server, r.Rest, now.Executed)
	}
	if err := c.Exec(ctx, c.Server.RememberTransactions(r.Rest)); err != nil {
		return fmt.Errorf("let %s remember what it has had: %w", r.Server, err)
	}
	return nil
}

// ended is an error as long as a repair's own session lives: a server goes on with a STOP or a RESET whose client is gone, and what is read before its end is
// not how things will be. One that does nothing is ended.
func (s Session) ended(ctx context.Context, c *mysql.Conn) error {
	started, err := read.Started(ctx, c)
	if err != nil {
		return fmt.Errorf("ask since when the server runs: %w", err)
	}
	if d := started - s.Started; d > clocks || d < -clocks {
		return nil
	}
	list, err := c.Maps(ctx, "SHOW /* risso: does the session of the repair still work? */ PROCESSLIST")
	if err != nil {
		return fmt.Errorf("ask whether the session of the repair still works: %w", err)
	}
	for _, row := range list {
		if row["Id"] != fmt.Sprint(s.ID) || s.ID == c.Server.ConnectionID { // after a restart it may be this one
			continue
		}
		if row["Command"] == "Sleep" {
			err := c.Exec(ctx, fmt.Sprintf("KILL /* risso: left by a repair that was killed */ %d", s.ID))
			if err != nil && mysql.ErrorNumber(err) != errno.NoSuchThread {
				return fmt.Errorf("end the session of the repair: %w", err)
			}
		}
		return fmt.Errorf("session %d of the repair still works: %s", s.ID, row["Info"])
	}
	return nil
}

// clocks is by how many seconds two readings of one start of a server may differ.
const clocks = 2

// Returned is what Back found of a repair that was killed, and gave back.
type Returned struct {
	Since   time.Time `json:"since"`   // when it began
	Steps   []string  `json:"steps"`   // what was done about it, in words
	Journal string    `json:"journal"` // file that said so
}

// Back gives back what a repair left on a server; with dryRun it only says what it would do.
func (k Keeper) Back(ctx context.Context, target mysql.Target, dryRun bool) (out []Returned, err error) {
	r, err := k.resetting().Restore(ctx, target, k.Dir, dryRun)
	if err != nil {
		return nil, err
	}
	if r != nil {
		out = append(out, Returned{r.Since, r.Statements, r.Path})
	}
	s, err := k.standing(never).Restore(ctx, target, k.Dir, dryRun)
	if err == nil && s != nil {
		out = append(out, Returned{s.Since, s.Statements, s.Path})
	}
	return out, err
}

func never() error { return nil }

// Left says, by an error that wraps ErrBusy, that something was not given back to a server.
func (k Keeper) Left(ctx context.Context, target mysql.Target) error {
	return errors.Join(k.resetting().Waits(ctx, target, k.Dir), k.standing(never).Waits(ctx, target, k.Dir))
}
