package trace

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// lockPause is how long to wait between two looks at the lock tables, while a statement stands still: longer than the copies that
// servers make of them last (mysql.Conn.LockWaits).
const lockPause = 250 * time.Millisecond

// LockWait is a lock that the connection was seen waiting for, and for whom.
type LockWait struct {
	mysql.LockWait
	From float64 `json:"from"` // seconds since the trace began at which it was seen first
	To   float64 `json:"to"`   // and last
	// Behind is what the blocker waits for itself, when it does.
	Behind *mysql.LockWait `json:"behind,omitempty"`
}

// same says whether two looks saw one wait.
func (w *LockWait) same(o *mysql.LockWait) bool {
	return w.Kind == o.Kind && w.Type == o.Type && w.Schema == o.Schema && w.Name == o.Name && w.Index == o.Index && w.Data == o.Data && w.Blocker.ID == o.Blocker.ID
}

// lockLooks counts how often an event was looked at while it stood still, and how often the connection waited for a lock then.
type lockLooks struct{ waiting, all int }

// lockWatch looks at the lock tables while the traced connection stands still.
type lockWatch struct {
	waits []LockWait
	gaps  []fleet.Gap
	looks map[uint64]*lockLooks // by the innermost event that had not ended
	last  time.Time
}

// look asks whom the connection waits for. open are its events that have not ended.
func (l *lockWatch) look(ctx context.Context, c *mysql.Conn, id int64, began time.Time, open map[uint64]bool) error {
	if time.Since(l.last) < lockPause {
		return nil
	}
	at := time.Since(began).Seconds()
	qctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	list, gaps, err := c.LockWaits(qctx, id)
	l.last = time.Now()
	if err != nil {
		return fmt.Errorf("look for the lock that the connection waits for: %w", err)
	}
	for _, g := range gaps {
		if !slices.ContainsFunc(l.gaps, func(o fleet.Gap) bool { return o.What == g.What && o.Remedy == g.Remedy }) {
			l.gaps = append(l.gaps, g)
		}
	}
	if len(open) > 0 {
		innermost := uint64(0)
		for e := range open {
			innermost = max(innermost, e)
		}
		if l.looks == nil {
			l.looks = map[uint64]*lockLooks{}
		}
		n := l.looks[innermost]
		if n == nil {
			n = &lockLooks{}
			l.looks[innermost] = n
		}
		if n.all++; len(list) > 0 {
			n.waiting++
		}
	}
	for i := range list {
		if err := l.saw(qctx, c, &list[i], at); err != nil {
			return err
		}
	}
	return nil
}

// saw notes a wait.
func (l *lockWatch) saw(ctx context.Context, c *mysql.Conn, w *mysql.LockWait, at float64) error {
	w.Blocker.Statement = guard(strings.ToValidUTF8(w.Blocker.Statement, "\uFFFD"))
	i := slices.IndexFunc(l.waits, func(o LockWait) bool { return o.same(w) })
	if i >= 0 {
		l.waits[i].LockWait, l.waits[i].To = *w, at
		return nil
	}
	seen := LockWait{LockWait: *w, From: at, To: at}
	if w.Blocker.ID > 0 && !w.Blocker.Idle() {
		behind, _, err := c.LockWaits(ctx, w.Blocker.ID)
		if err != nil {
			return fmt.Errorf("look for the lock that the blocking connection waits for: %w", err)
		}
		if len(behind) > 0 {
			behind[0].Blocker.Statement = guard(strings.ToValidUTF8(behind[0].Blocker.Statement, "\uFFFD"))
			seen.Behind = &behind[0]
		}
	}
	l.waits = append(l.waits, seen)
	return nil
}

// shares is which part of the own time of an event was spent waiting for a lock, by the event's number.
func (l *lockWatch) shares() map[uint64]float64 {
	out := map[uint64]float64{}
	for id, n := range l.looks {
		if n.waiting > 0 {
			out[id] = float64(n.waiting) / float64(n.all)
		}
	}
	return out
}

// lockWords say for what the connection waited, and for whom: the longest first.
func (t *Trace) lockWords() (out []string) {
	list := slices.Clone(t.LockWaits)
	slices.SortStableFunc(list, func(a, b LockWait) int {
		switch x, y := a.To-a.From, b.To-b.From; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	for _, w := range list[:min(len(list), 5)] {
		out = append(out, w.words())
	}
	if n := len(list) - 5; n > 0 {
		out = append(out, counted(n, "more wait")+" for locks: see the JSON.")
	}
	return out
}

func (w *LockWait) words() string {
	long := "was seen waiting"
	if d := w.To - w.From; d > 0 {
		long = "waited at least " + human(uint64(d*1e12))
	}
	s := fmt.Sprintf("It %s for %s", long, whichLock(&w.LockWait))
	b := &w.Blocker
	switch {
	case b.ID == 0:
		return s + ", which a transaction without a connection holds: XA RECOVER lists those that are prepared; XA COMMIT or XA ROLLBACK ends them."
	case w.Maybe:
		s += fmt.Sprintf(". The server does not tell who holds it; it may be connection %d%s", b.ID, account(b))
	case w.Queued:
		s += fmt.Sprintf(", behind connection %d%s, which wants it before%s", b.ID, account(b), mode(w.Held))
	default:
		s += fmt.Sprintf(", which connection %d%s holds%s", b.ID, account(b), mode(w.Held))
	}
	s += ": " + doing(b)
	if w.Behind != nil {
		s += fmt.Sprintf(". That one waits for %s of connection %d%s: %s", whichLock(w.Behind), w.Behind.Blocker.ID, account(&w.Behind.Blocker), doing(&w.Behind.Blocker))
	}
	return s + "."
}

// globalLocks are what performance_schema calls the locks of the whole server; MariaDB has BACKUP for all of them.
var globalLocks = map[string]string{"GLOBAL": "the global read lock", "COMMIT": "the global read lock, which holds up commits", "BACKUP LOCK": "the backup lock"}

// whichLock says which lock it is.
func whichLock(w *mysql.LockWait) string {
	table := w.Name
	if w.Schema != "" {
		table = strings.TrimSuffix(w.Schema+"."+w.Name, ".")
	}
	table = oneLine(table)
	switch {
	case w.Kind == mysql.LockRow && w.Type == "TABLE":
		return "an InnoDB lock on the whole table " + table + mode(w.Mode)
	case w.Kind == mysql.LockRow:
		s := "a row lock in the index " + oneLine(w.Index) + " of " + table
		if w.Data != "" {
			s += ", record " + cutRunes(oneLine(w.Data), 60)
		}
		return s + mode(w.Mode)
	case w.Kind == mysql.LockUser:
		return "the user lock '" + oneLine(w.Name) + "'"
	case w.Kind == mysql.LockGlobal:
		return cmp.Or(globalLocks[w.Type], "the global read lock or a backup lock") + mode(w.Mode)
	case w.Name == "" && w.Schema == "":
		return "a metadata lock"
	}
	return "a metadata lock on the " + strings.ToLower(w.Type) + " " + table + mode(w.Mode)
}

func mode(m string) string {
	if m == "" {
		return ""
	}
	return " (" + oneLine(m) + ")"
}

func account(b *mysql.Blocker) string {
	if b.User == "" {
		return ""
	}
	return " (" + oneLine(b.User+at(b.Host)) + ")"
}

// doing says what a blocker does.
func doing(b *mysql.Blocker) string {
	long := human(uint64(b.Seconds * 1e12))
	var s string
	switch {
	case b.Command == "":
		s = "what it does is not told"
	case b.Idle():
		s = "idle for " + long
	default:
		s = "busy for " + long
	}
	if b.Open > 0 {
		s += fmt.Sprintf(", in a transaction that began %s ago", human(uint64(b.Open*1e12)))
	}
	switch {
	case b.Statement == "":
		return s
	case b.Idle():
		return s + "; its last statement: " + cutRunes(oneLine(b.Statement), 100)
	}
	return s + "; it runs " + cutRunes(oneLine(b.Statement), 100)
}
