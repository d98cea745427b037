package snapshot

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// waiter is a session that waits for a metadata lock.
type waiter struct {
	process
	schema string          // its own
	names  map[string]bool // the names in its statement, in lower case
}

// waiters are those who wait: changers want a table for themselves, and the others queue.
func waiters(ctx context.Context, c *mysql.Conn) (changers []waiter, queued int, err error) {
	rows, err := c.Maps(ctx, `SELECT /* risso: who waits? */ ID AS i, USER AS u, HOST AS h, TIME AS t, DB AS d, LEFT(INFO, 8192) AS q FROM information_schema.PROCESSLIST
 WHERE STATE IN ('Waiting for table metadata lock', 'Waiting for table flush')`)
	if err != nil {
		return nil, 0, err
	}
	for _, r := range rows {
		w := waiter{process: process{User: r["u"], Host: r["h"], Info: r["q"]}, schema: r["d"]}
		seconds, _ := strconv.ParseInt(r["t"], 10, 64)
		w.Time = time.Duration(seconds) * time.Second
		w.ID, _ = strconv.ParseInt(r["i"], 10, 64)
		if strings.Contains(w.Info, "/* risso") {
			continue
		}
		first, names := sqltext.NamesIn(w.Info)
		switch first {
		case "alter", "drop", "rename", "truncate", "create", "optimize", "repair", "lock", "analyze", "set", "": // set statement … for
			w.names = names
			changers = append(changers, w)
		case "flush":
		default:
			queued++
		}
	}
	return changers, queued, nil
}

// concerns reports whether a statement names a table, or drops its schema.
func (w waiter) concerns(t mysql.TableName) bool {
	schema := strings.EqualFold(w.schema, t.Schema) || w.names[strings.ToLower(t.Schema)]
	switch {
	case len(w.names) == 0:
		return true // it is not to be seen
	case w.names["database"] || w.names["schema"]:
		return w.names[strings.ToLower(t.Schema)]
	}
	return schema && w.names[strings.ToLower(t.Name)]
}

// watch looks who waits for tables that are held or read, until its context ends.
func (h *hold) watch(ctx context.Context, c *mysql.Conn) {
	var queuedSince time.Time
	t := time.NewTicker(holdTick)
	defer t.Stop()
	for looks := 1; ; looks++ {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if looks%holdPing == 0 {
			h.wake()
		}
		changers, queued, err := waiters(ctx, c)
		if err != nil && ctx.Err() == nil {
			if c.Close(); h.reconnect(ctx, &c) {
				continue
			}
		}
		if err != nil {
			return
		}
		now := time.Now()
		switch {
		case queued == 0 || len(changers) == 0:
			queuedSince = time.Time{}
		case queuedSince.IsZero():
			queuedSince = now
		}
		for _, w := range changers {
			concerned, ours := h.judge(w)
			if !ours || queuedSince.IsZero() || now.Sub(queuedSince) < h.o.LockWait {
				continue
			}
			h.o.Guard.say(GuardEvent{Action: GuardGaveWay, Session: w.ID, User: w.User, Host: w.Host, Running: w.Time, Text: w.Info, Queued: queued})
			if h.o.Stalled != nil {
				h.o.Stalled(fmt.Errorf("%w: session %d of %s wants to change %s, and %s queued behind it for %s", ErrStalls, w.ID, w.User, concerned, digits.Plural(queued, "session has", "sessions have"), digits.Span(now.Sub(queuedSince))))
			}
			return
		}
	}
}

// reconnect tries once: when the server is gone the backup is, too, and when only this session was ended another may do.
func (h *hold) reconnect(ctx context.Context, c **mysql.Conn) bool {
	again, err := mysql.Connect(ctx, h.o.Guard.target, nil)
	if err != nil {
		if h.o.Stalled != nil && ctx.Err() == nil {
			h.o.Stalled(fmt.Errorf("%w, maybe: it can no longer be checked: %w", ErrStalls, err))
		}
		return false
	}
	*c = again
	return true
}

// judge sees what a session that wants to change something has to do with us: tables that no session reads yet are wanted, tables
// that have been read can be released.
func (h *hold) judge(w waiter) (concerned mysql.TableName, ours bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	todo := false
	for i, t := range h.tables {
		if h.free[i] || i < h.stepStart() || !w.concerns(t) {
			continue
		}
		concerned, ours = t, true
		switch {
		case h.read[i]:
			h.aside, todo = append(h.aside, i), true
		case h.reading[t] == 0:
			h.wanted, todo = append(h.wanted, t), true
		}
	}
	if todo {
		h.wake()
	}
	return concerned, ours
}

// stepStart is the first place that is not let go.
func (h *hold) stepStart() int {
	if h.step >= len(h.steps) {
		return len(h.tables)
	}
	return h.steps[h.step]
}
