// Package crew is a group of sessions that fill tables together and can be stopped at any time.
package crew

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// patience is how long one statement may take: the index of a large table is one.
const patience = 24 * time.Hour

// Crew is some sessions on one server.
type Crew struct {
	target   drive.Target
	stop     drive.Stop
	sessions []drive.Session
	ids      []int64 // by which the server knows the sessions
}

// Hire opens n sessions.
func Hire(ctx context.Context, t drive.Target, n int) (*Crew, error) {
	c := &Crew{target: t}
	defer context.AfterFunc(ctx, c.stop.Set)()
	sql := "SELECT /* risso: what to kill after Ctrl-C */ CONNECTION_ID()"
	if t.Dialect() == drive.Postgres {
		sql = "SELECT /* risso: what to kill after Ctrl-C */ pg_backend_pid()"
	}
	for range max(1, n) {
		s, err := t.Open(ctx, &c.stop)
		if err != nil {
			c.Close()
			return nil, err
		}
		c.sessions = append(c.sessions, s)
		s.SetPatience(patience)
		rows, err := workload.Ask(s, sql)
		if err != nil {
			c.Close()
			return nil, err
		}
		c.ids = append(c.ids, rows[0][0].Int)
	}
	return c, nil
}

// Session is the first of them, for what one can do alone.
func (c *Crew) Session() drive.Session { return c.sessions[0] }

// Size is their number.
func (c *Crew) Size() int { return len(c.sessions) }

// Close ends all sessions.
func (c *Crew) Close() {
	for _, s := range c.sessions {
		s.Close()
	}
}

// Work lets all sessions do jobs, from 0 to jobs-1, in that order. The first error, or the end of ctx, ends it: what the
// server does for the others is killed. If ctx ends, its error is returned.
func (c *Crew) Work(ctx context.Context, jobs int, do func(s drive.Session, job int) error) error {
	var group errgroup.Group
	defer context.AfterFunc(ctx, c.stop.Set)()
	var mu sync.Mutex
	next := 0
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, next <= jobs && !c.stop.IsSet()
	}
	for _, s := range c.sessions {
		group.Go(func() error {
			for job, ok := take(); ok; job, ok = take() {
				if err := do(s, job); err != nil {
					c.stop.Set()
					return err
				}
			}
			return ctx.Err()
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		return interrupted{ctx.Err()}
	}
	return err
}

// interrupted is an end of a context in a person's words.
type interrupted struct{ error }

func (interrupted) Error() string   { return "interrupted" }
func (i interrupted) Unwrap() error { return i.error }

// Undo runs f on a separate session, after the server was told to give up what the crew's sessions do. It is not ended
// by the end of ctx, but takes at most limit.
func (c *Crew) Undo(ctx context.Context, limit time.Duration, f func(s drive.Session) error) error {
	c.stop.Set()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	var stop drive.Stop
	defer context.AfterFunc(ctx, stop.Set)()
	s, err := c.reopen(ctx, &stop)
	if err != nil {
		return err
	}
	defer s.Close()
	s.SetPatience(limit)
	if err := drive.Kill(s, c.ids...); err != nil {
		return err
	}
	return f(s)
}

// backWithin is how long to wait for a server that went away: a full disk crashes PostgreSQL, which recovers by itself.
const backWithin = 10 * time.Second

// reopen opens a session to a server that may just be coming back.
func (c *Crew) reopen(ctx context.Context, stop *drive.Stop) (drive.Session, error) {
	for began := time.Now(); ; {
		s, err := c.target.Open(ctx, stop)
		if err == nil || time.Since(began) > backWithin {
			return s, err
		}
		if delay.For(ctx, 200*time.Millisecond) != nil {
			return nil, err
		}
	}
}
