package trace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/blockers"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// lockPause is how long to wait between two looks at the lock tables, while a statement makes no progress: longer than the copies that
// servers make of them last (read.LockWaits).
const lockPause = 250 * time.Millisecond

// LockWait is a lock that the connection was observed waiting for, and who held it.
type LockWait struct {
	read.LockWait
	From float64 `json:"from"` // when it was first observed, in seconds since the trace began
	To   float64 `json:"to"`   // when it was last observed
	// Behind is what the blocker itself waits for, if anything.
	Behind *read.LockWait `json:"behind,omitempty"`

	statement uint64 // the innermost that had not ended, by its event; 0: none
	look      int    // the last one that saw it
}

// same reports whether two looks saw one lock and one blocker.
func (w *LockWait) same(o *read.LockWait) bool {
	return w.Kind == o.Kind && w.Type == o.Type && w.Schema == o.Schema && w.Name == o.Name && w.Index == o.Index && w.Data == o.Data && w.Blocker.ID == o.Blocker.ID
}

// lockLooks counts how often an event was looked at while it made no progress, and how often the connection waited for a lock then.
type lockLooks struct{ waiting, all int }

// lockWatch looks at the lock tables while the traced connection makes no progress.
type lockWatch struct {
	waits []LockWait
	gaps  []fleet.Trouble
	looks map[uint64]*lockLooks // by the innermost event that had not ended
	count int                   // of looks
	last  time.Time
}

// look asks whom the connection waits for. open are its events that have not ended.
func (l *lockWatch) look(ctx context.Context, c *mysql.Conn, id int64, began time.Time, open map[uint64]Kind) error {
	if time.Since(l.last) < lockPause {
		return nil
	}
	at := time.Since(began).Seconds()
	qctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	list, gaps, err := read.LockWaits(qctx, c, id)
	l.last = time.Now()
	if err != nil {
		return fmt.Errorf("find the lock that the connection waits for: %w", err)
	}
	for _, g := range gaps {
		if !slices.ContainsFunc(l.gaps, func(o fleet.Trouble) bool { return o.What == g.What && o.Remedy == g.Remedy }) {
			l.gaps = append(l.gaps, g)
		}
	}
	innermost, statement := uint64(0), uint64(0)
	for e, kind := range open {
		if kind == KindTransaction { // it lies across statements
			continue
		}
		if innermost = max(innermost, e); kind == KindStatement {
			statement = max(statement, e)
		}
	}
	l.count++
	if len(open) > 0 {
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
		seen := l.saw(&list[i], at, statement)
		if b := &list[i].Blocker; !seen || b.ID == 0 || b.Idle() {
			continue
		}
		behind, _, err := read.LockWaits(qctx, c, list[i].Blocker.ID)
		if err != nil {
			return fmt.Errorf("find the lock that the blocking connection waits for: %w", err)
		}
		if len(behind) > 0 {
			guardBlocker(&behind[0])
			l.waits[len(l.waits)-1].Behind = &behind[0]
		}
	}
	return nil
}

// joined is how many seconds two looks that see one wait may lie apart: they are made while nothing begins or ends.
const joined = 2

// saw notes a wait, and reports whether it differs from those seen before: one that started again does, even if it is for the
// same lock.
func (l *lockWatch) saw(w *read.LockWait, at float64, statement uint64) bool {
	guardBlocker(w)
	for i := range l.waits {
		if o := &l.waits[i]; o.statement == statement && o.look >= l.count-1 && at-o.To < joined && o.same(w) {
			o.LockWait, o.To, o.look = *w, at, l.count
			return false
		}
	}
	l.waits = append(l.waits, LockWait{LockWait: *w, From: at, To: at, statement: statement, look: l.count})
	return true
}

func guardBlocker(w *read.LockWait) {
	w.Blocker.Statement = guard(strings.ToValidUTF8(w.Blocker.Statement, "\uFFFD"))
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
		out = append(out, digits.Counted(n, "more wait")+" for locks: see the JSON.")
	}
	return out
}

func (w *LockWait) words() string {
	long := "was seen waiting"
	if d := w.To - w.From; d > 0 {
		long = "waited at least " + digits.Seconds(d)
	}
	s := fmt.Sprintf("It %s for %s", long, blockers.Lock(&w.LockWait)+blockers.InTheWay(&w.LockWait))
	if w.Behind != nil {
		s += ". That one waits for " + blockers.Lock(w.Behind) + blockers.InTheWay(w.Behind)
	}
	if remedy := blockers.Remedy(&w.LockWait); remedy != "" {
		return s + ". " + remedy
	}
	return s + "."
}
