package checksum

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define/alike"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
)

// side is one of the servers, as far as it does not change.
type side struct {
	target     mysql.Target
	name       string
	server     mysql.Server
	id         string // server_id
	channels   []read.ReplicaChannel
	delay      time.Duration    // the delay that is configured
	collations alike.Collations // the default collation of each character set
	notes      []string
	blind      bool         // the account does not see all views and programs
	dead       atomic.Bool  // it was lost and did not come back
	late       atomic.Int64 // how often in a row it did not reach the primary's place
}

// link is what one goroutine uses to talk to a server: a session for rows, and one for short queries. It connects when it
// is used, and again when a session breaks.
type link struct {
	*side
	silence time.Duration // how long it may be silent in an answer
	back    time.Duration // how long it is waited for when it was lost
	stream  *mysql.Stream
	conn    *mysql.Conn
	asText  bool // values come in utf8mb4, regardless of their columns' character sets
}

func (l *link) close() {
	if l.stream != nil {
		l.stream.Close()
		l.stream = nil
	}
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

// rows calls f with a session for rows; again with a new one if the session broke, so that f starts over each time.
func (l *link) rows(ctx context.Context, f func(*mysql.Stream) error) error {
	return l.again(ctx, func() error {
		if l.stream != nil && l.stream.Broken() != nil { // an answer was left in the middle
			l.stream.Close()
			l.stream = nil
		}
		if l.stream == nil {
			s, err := l.target.ConnectStream(ctx, mysql.StreamOptions{Patience: l.silence})
			if err != nil {
				return err
			}
			l.stream = s
			if err := s.ForRows(ctx, l.server); err != nil {
				return err
			}
			if err := l.setText(ctx); err != nil {
				return err
			}
			// A table that an ALTER holds fails alone, before the session counts as hung.
			if err := s.Exec(ctx, fmt.Sprintf("SET SESSION /* risso: wait no longer for a table */ lock_wait_timeout = %d", max(1, int(l.silence.Seconds()/2)))); err != nil {
				return err
			}
		}
		return f(l.stream)
	})
}

// setText makes the session return text as asText says.
func (l *link) setText(ctx context.Context) error {
	charset := "NULL"
	if l.asText {
		charset = "utf8mb4"
	}
	return l.stream.Exec(ctx, "SET /* risso: character set of values */ character_set_results = "+charset)
}

// text switches between values in their columns' character sets and in utf8mb4.
func (l *link) text(ctx context.Context, on bool) error {
	if l.asText == on {
		return nil
	}
	l.asText = on
	if l.stream == nil || l.stream.Broken() != nil {
		return nil
	}
	return l.rows(ctx, func(*mysql.Stream) error { return l.setText(ctx) })
}

// ask calls f with a session for questions, again when it broke.
func (l *link) ask(ctx context.Context, f func(*mysql.Conn) error) error {
	return l.again(ctx, func() error {
		if l.conn == nil {
			c, err := mysql.Connect(ctx, l.target, nil)
			if err != nil {
				return err
			}
			l.conn = c
		}
		return f(l.conn)
	})
}

// again repeats what failed for a lost connection, until the server is back or had its time.
func (l *link) again(ctx context.Context, f func() error) error {
	patience := l.back
	if l.dead.Load() {
		patience = 0
	}
	end := time.Now().Add(patience)
	pause := 100 * time.Millisecond
	for {
		err := f()
		if err == nil {
			l.dead.Store(false)
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !lost(err) {
			return err
		}
		l.close()
		if time.Now().After(end) {
			l.dead.Store(true)
			return err
		}
		if err := delay.For(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, 2*time.Second)
	}
}

// lost reports whether an error means that the server is not there, in contrast to one that it returned.
func lost(err error) bool {
	switch mysql.ClassOf(err) {
	case mysql.ClassRefused, mysql.ClassTimeout, mysql.ClassDropped, mysql.ClassUnreachable, mysql.ClassFull:
		return true
	}
	return false
}

// meet connects to a server and learns what does not change.
func meet(ctx context.Context, t mysql.Target, replica bool) (*side, error) {
	c, err := mysql.Connect(ctx, t, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	s := &side{target: t, name: t.String(), server: c.Server, collations: alike.Collations{}}
	if s.id, err = read.ServerID(ctx, c); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	rows, err := c.Maps(ctx, "SELECT /* risso: default collations */ CHARACTER_SET_NAME AS c, DEFAULT_COLLATE_NAME AS d FROM information_schema.CHARACTER_SETS")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	for _, r := range rows {
		s.collations[r["c"]] = r["d"]
	}
	if !replica {
		return s, nil
	}
	if s.channels, err = read.ReplicaChannels(ctx, c); err != nil {
		var e *mysql.Error
		if errors.As(err, &e) { // it can still be compared
			s.notes = append(s.notes, "whether it replicates, and what its filters leave out, cannot be determined: "+fault.Line(e.Reason(), fleet.RemedyOf(e)))
			return s, nil
		}
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	for _, ch := range s.channels {
		s.delay = max(s.delay, time.Duration(ch.Delay)*time.Second)
		s.notes = append(s.notes, channelNotes(ch)...)
	}
	if len(s.channels) == 0 {
		return nil, fmt.Errorf("%s: %w", s.name, ErrNotReplica)
	}
	return s, nil
}

// channelNotes says what of a channel a person should know.
func channelNotes(ch read.ReplicaChannel) (notes []string) {
	name := ""
	if ch.Name != "" {
		name = " of channel " + ch.Name
	}
	for _, t := range []struct {
		runs bool
		what string
	}{{ch.IORunning, "the thread that receives"}, {ch.SQLRunning, "the thread that applies"}} {
		if !t.runs {
			n := t.what + name + " is not running: rows changed since then cannot be compared"
			if ch.LastError != "" {
				n += " (" + ch.LastError + ")"
			}
			notes = append(notes, n)
		}
	}
	if ch.Delay > 0 {
		notes = append(notes, fmt.Sprintf("it is delayed by %s%s: rows changed in that time cannot be compared", digits.Seconds(float64(ch.Delay)), name))
	}
	if !ch.Filter.None() {
		notes = append(notes, "it does not replicate everything"+name+": "+ch.Filter.String())
	}
	return notes
}

// passes reports whether the side replicates a table.
func (s *side) passes(schema, table string) bool {
	for _, ch := range s.channels {
		if ch.Filter.Passes(schema, table) {
			return true
		}
	}
	return len(s.channels) == 0
}

// mark reads the primary's place; have is false if it writes no binary log.
func (l *link) mark(ctx context.Context) (m read.Mark, have bool, err error) {
	err = l.ask(ctx, func(c *mysql.Conn) (err error) {
		m, err = read.MarkOf(ctx, c)
		return err
	})
	if errors.Is(err, read.ErrNoMark) {
		return m, false, nil
	}
	return m, err == nil, err
}

// reach waits for a replica; for one that was late repeatedly, or has a longer delay configured, only briefly.
func (l *link) reach(ctx context.Context, m read.Mark, patience time.Duration) (reached bool, err error) {
	if l.late.Load() >= 2 || l.delay > patience {
		patience = min(patience, 200*time.Millisecond)
	}
	err = l.ask(ctx, func(c *mysql.Conn) (err error) {
		reached, err = read.Reach(ctx, c, m, patience)
		return err
	})
	if err == nil && reached {
		l.late.Store(0)
	} else if err == nil {
		l.late.Add(1)
	}
	return reached, err
}

// gone reports whether an error means that a table, or its schema, is not there.
func gone(err error) bool {
	return err != nil && (mysql.ClassOf(err) == mysql.ClassMissing || mysql.ErrorNumber(err) == errno.UnknownDatabase)
}
