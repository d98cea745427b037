package mysql

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

// Guard watches a request for a lock that others would queue behind: it is withdrawn rather than stall the server.
type Guard struct {
	KillLong  bool             // end the statements that the lock would wait for
	LongQuery time.Duration    // from when on a statement is long; 0: a second
	Said      func(GuardEvent) // may be nil; called from one goroutine at a time

	target  Target
	wait    time.Duration
	handled map[int64]bool // sessions whose statements were said or ended
}

// GuardAction is what a guard did or saw.
type GuardAction string

// What guards do.
const (
	GuardWaits     GuardAction = "waits"     // the lock will wait for this statement; KillLong would end it
	GuardKilled    GuardAction = "killed"    // this statement was ended
	GuardWithdrawn GuardAction = "withdrawn" // our own request was taken back: others queued behind it, or its time was over
)

// GuardEvent is what a guard did or saw.
type GuardEvent struct {
	Action  GuardAction   `json:"action"`
	Session int64         `json:"session,omitempty"` // of the statement
	User    string        `json:"user,omitempty"`
	Host    string        `json:"host,omitempty"`
	Running time.Duration `json:"running,omitempty"`
	Text    string        `json:"text,omitempty"` // may hold values
	Queued  int           `json:"queued,omitempty"`
}

// How a guard looks: every guardTick; others may queue behind the request for guardStall, which is shorter than what most
// applications wait for a connection.
const (
	guardTick  = 50 * time.Millisecond
	guardStall = time.Second
)

func (g *Guard) say(e GuardEvent) {
	if g.Said != nil {
		g.Said(e)
	}
}

// ask runs a statement that asks for a lock. It gives ErrLocks when it was withdrawn. flushes: the statement marks tables as
// old, which lasts beyond its own end and keeps everybody out of a table until those who use it have finished: it is not run
// at all while a long statement runs.
func (g *Guard) ask(ctx context.Context, st *Stream, statement string, flushes bool) error {
	watcher, err := Connect(ctx, g.target, nil)
	if err != nil {
		return fmt.Errorf("watch over a lock: %w", err)
	}
	defer watcher.Close()
	list, err := g.clear(ctx, watcher, st, flushes)
	if err != nil {
		return err
	}
	wctx, stop := context.WithCancel(ctx)
	withdrawn := make(chan error, 1)
	go func() { withdrawn <- g.watch(wctx, watcher, st, waitingOf(list)) }()
	err = st.Exec(ctx, statement)
	stop()
	werr := <-withdrawn
	if werr != nil && err == nil {
		_ = st.Exec(ctx, "DO /* risso: takes the kill that came too late */ 0")
		return nil
	}
	var refused *driver.MySQLError
	if errors.As(err, &refused) && refused.Number == errQueryInterrupted && werr != nil {
		return werr
	}
	return err
}

// clear looks what runs for long already. It says so, or ends it, and where it has to waits until nothing does.
func (g *Guard) clear(ctx context.Context, c *Conn, st *Stream, wait bool) ([]process, error) {
	for deadline := time.Now().Add(g.wait); ; {
		list, err := c.processes(ctx)
		if err != nil {
			return nil, err
		}
		long := 0
		for _, p := range list {
			if !g.isLong(p, st) {
				continue
			}
			long++
			if err := g.handle(ctx, c, p); err != nil {
				return nil, err
			}
		}
		if long == 0 || !wait && !g.KillLong {
			return list, nil
		}
		if time.Now().After(deadline) {
			if !wait {
				return list, nil
			}
			return nil, fmt.Errorf("%w: %d statements run for longer than %s", ErrLocks, long, g.long())
		}
		if err := pause(ctx, guardTick); err != nil {
			return nil, err
		}
	}
}

func (g *Guard) long() time.Duration {
	if g.LongQuery <= 0 {
		return time.Second
	}
	return g.LongQuery
}

func (g *Guard) isLong(p process, st *Stream) bool {
	return (p.Command == "Query" || p.Command == "Execute") && p.Time >= g.long() && p.User != "system user" && p.ID != int64(st.ID()) && !strings.Contains(p.Info, "/* risso") &&
		!queuesBehindLock(p.State) // it is no cause, but a victim
}

// handle says or ends a long statement, once.
func (g *Guard) handle(ctx context.Context, c *Conn, p process) error {
	if g.handled[p.ID] {
		return nil
	}
	if g.handled == nil {
		g.handled = map[int64]bool{}
	}
	g.handled[p.ID] = true
	e := GuardEvent{Action: GuardWaits, Session: p.ID, User: p.User, Host: p.Host, Running: p.Time, Text: p.Info}
	if g.KillLong {
		err := c.quietQuery(ctx, fmt.Sprintf("KILL /* risso: a backup's lock waits for it */ QUERY %d", p.ID), ignoreRow)
		switch {
		case err == nil:
			e.Action = GuardKilled
		case ClassOf(err) == ClassDropped:
			return err
		}
	}
	g.say(e)
	return nil
}

// watch looks who queues behind the statement, and withdraws it in time.
// before are those who waited already.
func (g *Guard) watch(ctx context.Context, c *Conn, st *Stream, before map[int64]bool) error {
	began := time.Now()
	var queuedSince time.Time
	t := time.NewTicker(guardTick)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		list, err := c.processes(ctx)
		if err != nil {
			return nil // the server's own time-out for locks remains
		}
		queued := 0
		for _, p := range list {
			if p.ID != int64(st.ID()) && !before[p.ID] && queuesBehindLock(p.State) {
				queued++
			}
		}
		if queued == 0 {
			queuedSince = time.Time{}
		} else if queuedSince.IsZero() {
			queuedSince = time.Now()
		}
		stalled := queued > 0 && time.Since(queuedSince) >= min(guardStall, g.wait)
		if !stalled && time.Since(began) < g.wait+2*guardTick {
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		// The killed statement ends ctx before this one is answered.
		kctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
		err = c.quietQuery(kctx, fmt.Sprintf("KILL /* risso: own request for a lock withdrawn */ QUERY %d", st.ID()), ignoreRow)
		cancel()
		if err != nil {
			return nil
		}
		g.say(GuardEvent{Action: GuardWithdrawn, Queued: queued, Running: time.Since(began)})
		return fmt.Errorf("%w: withdrawn after %s, %d sessions waited behind it", ErrLocks, time.Since(began).Round(time.Millisecond), queued)
	}
}

// waitingOf are the sessions that wait for a lock.
func waitingOf(list []process) map[int64]bool {
	out := map[int64]bool{}
	for _, p := range list {
		if queuesBehindLock(p.State) {
			out[p.ID] = true
		}
	}
	return out
}

// queuesBehindLock knows the states of who waits for a lock of the kinds that backups ask for. Source: both servers' manuals,
// "General Thread States" and "Metadata Lock".
func queuesBehindLock(state string) bool {
	switch state {
	case "Waiting for table flush", "Waiting for global read lock", "Waiting for commit lock", "Waiting for backup lock", "Waiting for table metadata lock",
		"Waiting for schema metadata lock", "Waiting for table level lock", "Waiting for stored procedure metadata lock":
		return true
	}
	return false
}

// process is a row of the processlist.
type process struct {
	ID                               int64
	User, Host, Command, State, Info string
	Time                             time.Duration
}

func (c *Conn) processes(ctx context.Context) ([]process, error) {
	rows, err := c.Maps(ctx, "SHOW /* risso: who waits? */ FULL PROCESSLIST")
	if err != nil {
		return nil, fmt.Errorf("read the list of sessions: %w", err)
	}
	out := make([]process, 0, len(rows))
	for _, r := range rows {
		p := process{User: r["User"], Host: r["Host"], Command: r["Command"], State: r["State"], Info: r["Info"]}
		p.ID, _ = strconv.ParseInt(r["Id"], 10, 64)
		seconds, _ := strconv.ParseInt(r["Time"], 10, 64)
		p.Time = time.Duration(seconds) * time.Second
		out = append(out, p)
	}
	return out, nil
}
