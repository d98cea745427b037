package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// Guard watches a request for a lock that others would wait behind: it is withdrawn rather than stall the server.
type Guard struct {
	KillLong  bool             // end the statements that the lock would wait for
	LongQuery time.Duration    // from when on a statement is long; 0: a second
	Said      func(GuardEvent) // may be nil; called from one goroutine at a time

	target  mysql.Target
	wait    time.Duration
	handled map[int64]bool // sessions whose statements were reported or ended
	saying  *sync.Mutex    // a snapshot's guard and the watch over tables that are held speak in turn
}

// GuardAction is something a guard did or observed.
type GuardAction string

// What guards do.
const (
	GuardWaits     GuardAction = "waits"     // the lock will wait for this statement; KillLong would end it
	GuardKilled    GuardAction = "killed"    // this statement was ended
	GuardWithdrawn GuardAction = "withdrawn" // our own request was taken back: others waited behind it, or its time was over
	GuardGaveWay   GuardAction = "gave way"  // tables are no longer kept from being altered: this statement waited, or others behind it
)

// GuardEvent is something a guard did or observed.
type GuardEvent struct {
	Action  GuardAction   `json:"action"`
	Session int64         `json:"session,omitempty"` // session of the statement
	User    string        `json:"user,omitempty"`
	Host    string        `json:"host,omitempty"`
	Running time.Duration `json:"running,omitempty"`
	Text    string        `json:"text,omitempty"` // the statement; may contain literal values
	Queued  int           `json:"queued,omitempty"`
}

// How a guard looks: every guardTick; others may wait behind the request for guardStall, which is shorter than what most
// applications wait for a connection.
const (
	guardTick  = 50 * time.Millisecond
	guardStall = time.Second
)

func (g *Guard) say(e GuardEvent) {
	if g.Said != nil {
		if g.saying != nil {
			g.saying.Lock()
			defer g.saying.Unlock()
		}
		g.Said(e)
	}
}

// request is a session with the statement that asks for its lock.
type request struct {
	st        *mysql.Stream
	statement string
}

// requests are asked for together, and had together or not at all.
type requests struct {
	list    []request
	flushes bool          // see Guard.ask
	stall   time.Duration // how long others may wait behind them; 0 is guardStall

	mu      sync.Mutex
	waiting map[uint64]bool // sessions that have no answer yet
}

// own reports whether a session is one of those that ask.
func (r *requests) own(id int64) bool {
	return slices.ContainsFunc(r.list, func(q request) bool { return int64(q.st.ID()) == id })
}

// run asks in all sessions at the same time and returns the first error.
func (r *requests) run(ctx context.Context) error {
	r.mu.Lock()
	r.waiting = map[uint64]bool{}
	for _, q := range r.list {
		r.waiting[q.st.ID()] = true
	}
	r.mu.Unlock()
	var g errgroup.Group
	for _, q := range r.list {
		g.Go(func() error {
			err := q.st.Exec(ctx, q.statement)
			r.mu.Lock()
			delete(r.waiting, q.st.ID())
			r.mu.Unlock()
			return err
		})
	}
	return g.Wait()
}

// left are the sessions that have no answer yet.
func (r *requests) left() []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.waiting))
}

// takeKills lets a kill that came too late hit a statement that does nothing.
func (r *requests) takeKills(ctx context.Context) {
	for _, q := range r.list {
		_ = q.st.Exec(ctx, "DO /* risso: takes the kill that came too late */ 0")
	}
}

// ask runs statements that ask for locks, and says when it sent them. It returns ErrLocks if they were withdrawn: some of the
// sessions may have theirs then. Requests that flush mark tables as old, which lasts beyond their own end and keeps all others
// out of a table until its current users have finished: they are not run at all while a long statement runs.
func (g *Guard) ask(ctx context.Context, r *requests) (sent time.Time, err error) {
	watcher, err := mysql.Connect(ctx, g.target, nil)
	if err != nil {
		return sent, fmt.Errorf("watch over a lock: %w", err)
	}
	defer watcher.Close()
	list, err := g.clear(ctx, watcher, r)
	if err != nil {
		return sent, err
	}
	wctx, stop := context.WithCancel(ctx)
	withdrawn := make(chan error, 1)
	go func() { withdrawn <- g.watch(wctx, watcher, r, waitingOf(list)) }()
	sent = time.Now()
	err = r.run(ctx)
	stop()
	werr := <-withdrawn
	if werr != nil {
		r.takeKills(ctx)
	}
	if err == nil {
		return sent, nil
	}
	var refused *driver.MySQLError
	if errors.As(err, &refused) && refused.Number == errno.QueryInterrupted && werr != nil {
		return sent, werr
	}
	return sent, err
}

// clear looks what runs for long already. It says so, or ends it, and where it has to waits until nothing does.
func (g *Guard) clear(ctx context.Context, c *mysql.Conn, r *requests) ([]process, error) {
	for deadline := time.Now().Add(g.wait); ; {
		list, err := processes(ctx, c)
		if err != nil {
			return nil, err
		}
		long := 0
		for _, p := range list {
			if !g.isLong(p, r) {
				continue
			}
			long++
			if err := g.handle(ctx, c, p); err != nil {
				return nil, err
			}
		}
		if long == 0 || !r.flushes && !g.KillLong {
			return list, nil
		}
		if time.Now().After(deadline) {
			if !r.flushes {
				return list, nil
			}
			return nil, fmt.Errorf("%w: %s for longer than %s", ErrLocks, digits.Plural(long, "statement runs", "statements run"), g.long())
		}
		if err := delay.For(ctx, guardTick); err != nil {
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

func (g *Guard) isLong(p process, r *requests) bool {
	return (p.Command == "Query" || p.Command == "Execute") && p.Time >= g.long() && p.User != "system user" && !r.own(p.ID) && !strings.Contains(p.Info, "/* risso") &&
		!queuesBehindLock(p.State) // it is no cause, but a victim
}

// handle says or ends a long statement, once.
func (g *Guard) handle(ctx context.Context, c *mysql.Conn, p process) error {
	if g.handled[p.ID] {
		return nil
	}
	if g.handled == nil {
		g.handled = map[int64]bool{}
	}
	g.handled[p.ID] = true
	e := GuardEvent{Action: GuardWaits, Session: p.ID, User: p.User, Host: p.Host, Running: p.Time, Text: p.Info}
	if g.KillLong {
		err := c.QuietQuery(ctx, fmt.Sprintf("KILL /* risso: a backup's lock waits for it */ QUERY %d", p.ID), mysql.IgnoreRow)
		switch {
		case err == nil:
			e.Action = GuardKilled
		case mysql.Lost(err):
			return err
		}
	}
	g.say(e)
	return nil
}

// watch checks who waits behind the requests, and withdraws them in time.
// before are those that waited already.
func (g *Guard) watch(ctx context.Context, c *mysql.Conn, r *requests, before map[int64]bool) error {
	began := time.Now()
	stall := min(guardStall, g.wait)
	if r.stall > 0 {
		stall = min(r.stall, g.wait)
	}
	var queuedSince time.Time
	t := time.NewTicker(guardTick)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		list, err := processes(ctx, c)
		if err != nil {
			return nil // the server's own time-out for locks remains
		}
		queued := 0
		for _, p := range list {
			if !r.own(p.ID) && !before[p.ID] && queuesBehindLock(p.State) {
				queued++
			}
		}
		if queued == 0 {
			queuedSince = time.Time{}
		} else if queuedSince.IsZero() {
			queuedSince = time.Now()
		}
		stalled := queued > 0 && time.Since(queuedSince) >= stall
		if !stalled && time.Since(began) < g.wait+2*guardTick {
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		// The killed statement ends ctx before this one is answered.
		kctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mysql.KillTime)
		for _, id := range r.left() {
			err = errors.Join(err, c.QuietQuery(kctx, fmt.Sprintf("KILL /* risso: own request for a lock withdrawn */ QUERY %d", id), mysql.IgnoreRow))
		}
		cancel()
		if err != nil {
			return nil
		}
		g.say(GuardEvent{Action: GuardWithdrawn, Queued: queued, Running: time.Since(began)})
		return fmt.Errorf("%w: withdrawn after %s, %s waited for it", ErrLocks, digits.Span(time.Since(began)), digits.Counted(queued, "session"))
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

// queuesBehindLock knows the states of sessions that wait for a lock of the kinds that backups ask for. Source: both servers' manuals,
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

func processes(ctx context.Context, c *mysql.Conn) ([]process, error) {
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
