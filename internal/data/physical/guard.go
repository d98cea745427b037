package physical

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// guard watches the tool's lock requests: one that waits keeps every later statement waiting too. After LockWait it ends
// what the request waits for, if that was asked for, and after as long again, or else immediately, the tool's own session.
type guard struct {
	job    *job
	conn   *mysql.Conn
	stop   context.CancelFunc
	done   sync.WaitGroup
	mu     sync.Mutex
	why    error
	closed bool
}

// guardEvery is how often the list of sessions is read. The request may wait that much longer than LockWait.
const guardEvery = 250 * time.Millisecond

func newGuard(ctx context.Context, j *job) (*guard, error) {
	conn, err := mysql.Connect(ctx, j.Target, nil)
	if err != nil {
		return nil, err
	}
	g := &guard{job: j, conn: conn}
	ctx, g.stop = context.WithCancel(ctx)
	g.done.Go(func() { g.watch(ctx) })
	return g, nil
}

// close ends the guard and returns why it withdrew the tool's request; nil if it did not. It may be called again.
func (g *guard) close() error {
	g.mu.Lock()
	first := !g.closed
	g.closed = true
	g.mu.Unlock()
	if first {
		g.stop()
		g.done.Wait()
		g.conn.Close()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.why
}

func (g *guard) watch(ctx context.Context) {
	t := time.NewTicker(guardEvery)
	defer t.Stop()
	var killed time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		waiting, blockers, err := g.look(ctx)
		if err != nil || waiting == nil || waiting.age < g.job.LockWait {
			continue // a list that cannot be read now can be in a moment; a lock request in force is bounded by the tool
		}
		if g.job.KillLongQueries && killed.IsZero() {
			killed = time.Now()
			g.kill(ctx, blockers)
			continue
		}
		if !killed.IsZero() && time.Since(killed) < g.job.LockWait {
			continue
		}
		g.withdraw(ctx, *waiting)
		return
	}
}

// waiter is a session of the list.
type waiter struct {
	id   int64
	age  time.Duration
	text string
}

// look finds the tool's lock request, when one waits, and the statements that are older than it.
func (g *guard) look(ctx context.Context) (waiting *waiter, older []waiter, err error) {
	rows, err := g.conn.Maps(ctx, g.job.server.SessionList())
	if err != nil {
		return nil, nil, err
	}
	var all []waiter
	for _, r := range rows {
		ms, _ := strconv.ParseFloat(r["MS"], 64)
		id, _ := strconv.ParseInt(r["ID"], 10, 64)
		w := waiter{id: id, age: time.Duration(ms * float64(time.Millisecond)), text: r["INFO"]}
		if id == g.conn.Server.ConnectionID || id == g.job.conn.Server.ConnectionID {
			continue
		}
		if g.isLock(w.text) {
			// It may also be at work, such as closing tables: then no session waits for it yet.
			if !strings.HasPrefix(r["STATE"], "Waiting") {
				continue
			}
			if waiting == nil || w.age > waiting.age {
				waiting = &w
			}
			continue
		}
		all = append(all, w)
	}
	if waiting == nil {
		return nil, nil, nil
	}
	for _, w := range all {
		if w.age > waiting.age {
			older = append(older, w)
		}
	}
	return waiting, older, nil
}

// isLock reports whether a statement is one of the tool's that others wait for.
func (g *guard) isLock(text string) bool {
	up := strings.ToUpper(strings.TrimSpace(text))
	for _, s := range g.job.server.BackupLockStatements() {
		if strings.HasPrefix(up, s) {
			return true
		}
	}
	return false
}

// kill ends the statements that the request waits for.
func (g *guard) kill(ctx context.Context, list []waiter) {
	for _, w := range list {
		// One that has ended in the meantime is no problem; the next check shows whether it helped.
		if err := g.conn.Exec(ctx, "KILL /* risso: --kill-long-queries: a backup waits for it */ QUERY "+strconv.FormatInt(w.id, 10)); err == nil {
			g.job.note(fmt.Sprintf("ended a statement of session %d that had run for %s: %.80s", w.id, digits.Span(w.age), w.text))
		}
	}
}

// withdraw ends the tool's session, and with it the backup.
func (g *guard) withdraw(ctx context.Context, w waiter) {
	if err := g.conn.Exec(ctx, "KILL /* risso: our own lock request keeps others waiting */ CONNECTION "+strconv.FormatInt(w.id, 10)); err != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.why = mended("end long-running statements or changes of tables, take it at a quieter time, raise --lock-wait, or let Risso end them: --kill-long-queries",
		"withdrew %q after %s: others waited behind it", strings.TrimSpace(w.text), digits.Span(w.age))
}

// note adds a sentence to the backup's header.
func (j *job) note(s string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.header.Notes = append(j.header.Notes, s)
}
