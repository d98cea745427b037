package repoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Stopped is what a journal says of a server whose replication stands still for a while.
type Stopped struct {
	Server   string  `json:"server"`
	Channel  string  `json:"channel"`
	Receives bool    `json:"receives"` // before
	Applies  bool    `json:"applies"`
	Refetch  bool    `json:"refetch,omitempty"` // what it received and did not apply may be thrown away: its source still has it
	Delay    *Delays `json:"delay,omitempty"`   // its delay is changed meanwhile; that stays as it is
}

// Delays are for how long a channel stayed behind on purpose, and for how long it is to.
type Delays struct {
	Was int `json:"was"` // seconds
	To  int `json:"to"`
}

// Pointed is what a journal says of a channel that is pointed elsewhere.
type Pointed struct {
	Server  string `json:"server"`
	Channel string `json:"channel"`
	From    string `json:"from"` // where it replicated from, as the replica reaches that
	To      string `json:"to"`
	GTID    bool   `json:"gtid"`
	Log     string `json:"log,omitempty"` // without GTIDs: up to where it had applied what From wrote
	Pos     int64  `json:"pos,omitempty"`
	ToLog   string `json:"to_log,omitempty"` // from where in the other one's log it is to go on
	ToPos   int64  `json:"to_pos,omitempty"`
}

// backCommand gives back what a process left that was killed.
func (r *Repointer) backCommand() string { return "risso replica back" + r.Flags }

// within is how long it is tried to set a counter back.
const within = 30 * time.Second

// final reports whether an error is an answer, which trying again does not change.
func final(err error) bool { return errors.Is(err, ErrSurprise) || mysql.Answered(err) }

// stopped is the journal of threads that stand still. kept says that they are to be left as they are.
func (r *Repointer) stopped(kept func() bool) change.Kind[Stopped] {
	return change.Kind[Stopped]{
		Name: "replica-stopped", Command: r.backCommand(), Busy: ErrBusy, Within: stopTime, Stays: true, Final: final,
		Back: func(ctx context.Context, c *mysql.Conn, old Stopped) error {
			if kept() {
				return nil
			}
			return r.startAgain(ctx, &server{name: old.Server, c: c}, old)
		},
		Statements: func(old Stopped) (list []string) {
			if old.Receives {
				list = append(list, "start receiving on "+old.Server)
			}
			if old.Applies {
				list = append(list, "start applying on "+old.Server)
			}
			if d := old.Delay; d != nil {
				list = append(list, fmt.Sprintf("leave the delay of %s as it is: it was %s, and was to become %s", old.Server, seconds(d.Was), seconds(d.To)))
			}
			return list
		},
	}
}

// startAgain starts what ran before, and makes sure that it runs. A thread is told to start though it runs: a STOP of a connection that ended goes on in the server, and
// would stop it later.
func (r *Repointer) startAgain(ctx context.Context, s *server, old Stopped) error {
	if err := s.stops(ctx); err != nil {
		return err
	}
	ch, err := s.channel(ctx, old.Channel)
	if err == nil && !old.Refetch {
		err = s.purges(ctx, ch)
	}
	if err == nil && old.Receives {
		err = s.do(ctx, s.words(old.Channel).start(mysql.Receiver))
	}
	if err == nil && old.Applies {
		err = s.do(ctx, s.words(old.Channel).start(mysql.Applier))
	}
	if err != nil {
		return err
	}
	for began := time.Now(); ; {
		if ch, err = s.channel(ctx, old.Channel); err != nil {
			return err
		}
		receives, applies := !old.Receives || ch.Status.IORunning != "No", !old.Applies || ch.SQLRunning
		switch st := ch.Status; {
		case (receives || st.IO.Text != "") && (applies || st.SQL.Text != ""): // what stops by its own error was started
			if old.Delay != nil && r.Say != nil {
				r.Say(fmt.Sprintf("%s stays %s behind now; it was %s before", s.name, seconds(ch.Delay), seconds(old.Delay.Was)))
			}
			return nil
		case time.Since(began) > startTime:
			return fmt.Errorf("%w: %s was started, and does not run", ErrSurprise, s.name)
		}
		if err := delay.For(ctx, pause); err != nil {
			return err
		}
	}
}

// startTime is how long a thread may take to run after START.
const startTime = 10 * time.Second

// stops waits until no STOP of ours runs any more: it outlives the connection that asked for it, and only after it one sees what stands.
func (s *server) stops(ctx context.Context) error {
	for {
		rows, err := s.c.Maps(ctx, "SHOW /* risso: does a STOP still run? */ PROCESSLIST")
		if err != nil {
			return fmt.Errorf("ask %s what runs: %w", s.name, err)
		}
		if !slices.ContainsFunc(rows, func(row map[string]string) bool {
			return strings.HasPrefix(row["Info"], "STOP SLAVE") || strings.HasPrefix(row["Info"], "STOP REPLICA")
		}) {
			return nil
		}
		if err := delay.For(ctx, pause); err != nil {
			return err
		}
	}
}

// purges is an error where any START would throw away what was received and not applied.
func (s *server) purges(ctx context.Context, ch read.ReplicaChannel) error {
	if !s.c.Server.StartDrops(ch.Status) {
		return nil
	}
	done, err := s.applied(ctx, ch)
	if err != nil || done {
		return err
	}
	return fmt.Errorf("%w: %s stands and has received what it has not applied%s; a START throws that away and fetches it again: make sure that %s still has it, and start it then", ErrSurprise, s.name, because(ch.Status.SQL), ch.Status.Source)
}

// pointed is the journal of a channel that points elsewhere. kept says that it is to be left as it is.
func (r *Repointer) pointed(kept func() bool) change.Kind[Pointed] {
	return change.Kind[Pointed]{
		Name: "replica-pointed", Command: r.backCommand(), Busy: ErrBusy, Within: r.Wait + stopTime, Stays: true, Final: final,
		Back: func(ctx context.Context, c *mysql.Conn, old Pointed) error {
			if kept() {
				return nil
			}
			return r.pointBack(ctx, &server{name: old.Server, c: c}, old)
		},
		Statements: func(old Pointed) []string {
			return []string{"point " + old.Server + " at " + old.From + " again, unless it applies what it gets from " + old.To}
		},
	}
}

// pointBack lets a channel replicate from where it did before, unless it was never pointed elsewhere, or applies what it gets there: then it is done. What it received
// there and did not apply is thrown away: its own source has that too, or it is errant there.
func (r *Repointer) pointBack(ctx context.Context, s *server, old Pointed) error {
	if err := s.stops(ctx); err != nil {
		return err
	}
	ch, err := s.channel(ctx, old.Channel)
	if err != nil || ch.Status.Source != old.To || ch.SQLRunning && (ch.IORunning || old.GTID) {
		return err
	}
	if !old.GTID && (ch.Status.Log != old.ToLog || ch.Status.Pos != old.ToPos) {
		return fmt.Errorf("%w: %s has applied what %s wrote, and its position in the log of %s is not known any more: it stays", ErrSurprise, s.name, old.To, old.From)
	}
	if err := s.do(ctx, s.words(old.Channel).stopBoth()); err != nil {
		return err
	}
	host, port := split(old.From)
	return s.do(ctx, s.wordsOf(ch).point(mysql.Pointing{Host: host, Port: port, Log: old.Log, Pos: old.Pos}))
}

// Returned is what Back found of a process that was killed, and gave back.
type Returned struct {
	Since   time.Time `json:"since"`
	Steps   []string  `json:"steps"`   // in words
	Journal string    `json:"journal"` // file that said so
}

// recorded runs a change between two lines of a file that says what is to be done, and how it ended; path becomes the file's, end is asked when it has ended.
func (r *Repointer) recorded(path *string, begin map[string]any, end func() map[string]any, run func() error) error {
	diary, err := change.NewDiary(r.Dir, "replica")
	if err != nil {
		return err
	}
	defer diary.Close()
	*path = diary.Path()
	begin["time"] = time.Now().UTC()
	if err := diary.Note(begin); err != nil {
		return err
	}
	err = run()
	ended := end()
	if ended["time"], ended["done"] = time.Now().UTC(), err == nil; err != nil {
		ended["failed"] = errno.WithoutValues(err.Error())
	}
	return errors.Join(err, diary.Note(ended))
}

// Back gives back what a killed process left on a server; with dryRun it only says what it would do.
func (r *Repointer) Back(ctx context.Context, target mysql.Target, dryRun bool) (out []Returned, err error) {
	never := func() bool { return false }
	target = target.WithPatience(r.Wait + stopTime)
	p, err := r.pointed(never).Restore(ctx, target, r.Dir, dryRun)
	if err != nil {
		return nil, err
	}
	if p != nil {
		out = append(out, Returned{p.Since, p.Statements, p.Path})
	}
	s, err := r.stopped(never).Restore(ctx, target, r.Dir, dryRun)
	if err == nil && s != nil {
		out = append(out, Returned{s.Since, s.Statements, s.Path})
	}
	if err != nil {
		return out, err
	}
	b, err := r.rebuilding().Restore(ctx, target, r.Dir, true)
	switch {
	case err != nil || b == nil:
		return out, err
	case b.Old.Cleared: // only another run brings its data
		if r.Say != nil {
			r.Say(b.Old.Server + " is being rebuilt: risso replica rebuild " + b.Old.Server + r.Flags + " goes on")
		}
		return out, nil
	case !dryRun:
		_, err = r.rebuilding().Restore(ctx, target, r.Dir, false)
	}
	return append(out, Returned{b.Since, []string{"let " + b.Old.Server + " replicate from " + b.Old.Source + " as before it was to be rebuilt"}, b.Path}), err
}

// Left says, by an error that wraps ErrBusy, that something was not given back to a server.
func (r *Repointer) Left(ctx context.Context, target mysql.Target) error {
	return errors.Join(r.unmoved(ctx, target), r.rebuilding().Waits(ctx, target, r.Dir))
}

// unmoved is Left but for rebuilds.
func (r *Repointer) unmoved(ctx context.Context, target mysql.Target) error {
	never := func() bool { return false }
	return errors.Join(r.pointed(never).Waits(ctx, target, r.Dir), r.stopped(never).Waits(ctx, target, r.Dir))
}
