package trace

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/oneline"
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
	s := fmt.Sprintf("It %s for %s", long, whichLock(&w.LockWait)+inTheWay(&w.LockWait))
	if w.Behind != nil {
		s += ". That one waits for " + whichLock(w.Behind) + inTheWay(w.Behind)
	}
	return s + "." + w.remedy()
}

// inTheWay says who keeps a session waiting, and what that one does.
func inTheWay(w *read.LockWait) string {
	b := &w.Blocker
	who := fmt.Sprintf("connection %d%s", b.ID, account(b))
	switch {
	case b.ID == 0:
		return ", held by a transaction without a connection: XA RECOVER lists prepared transactions; XA COMMIT or XA ROLLBACK ends them"
	case w.Maybe && w.Kind == read.LockFlush:
		who = ". The server does not say who uses it; it may be " + who
	case w.Maybe:
		who = ". The server does not say who holds it; it may be " + who
	case w.Queued:
		who = ", behind " + who + ", which is ahead of it in the queue" + mode(w.Held)
	case w.Kind == read.LockGlobal && slices.Contains(statementLocks, w.Held):
		who = ", which " + who + " blocks by what it does" + mode(w.Held)
	default:
		who = ", which " + who + " holds" + mode(w.Held)
	}
	return who + ": " + doing(b)
}

// statementLocks are what statements that change something have of the locks of the whole server: INTENTION_EXCLUSIVE of each, and on
// MariaDB those of BACKUP.
var statementLocks = []string{"INTENTION_EXCLUSIVE", "BACKUP_DML", "BACKUP_TRANS_DML", "BACKUP_SYS_DML", "BACKUP_DDL", "BACKUP_ALTER_COPY", "BACKUP_COMMIT"}

// remedy says in a sentence what removes the blocker; it is empty if that is unknown. KILL ends a session with its
// locks, but not a transaction that is prepared.
func (w *LockWait) remedy() string {
	b := &w.Blocker
	clients := []string{"Sleep", "Query", "Execute", "Prepare", "Fetch"} // and no thread of replication, which a KILL would stop
	switch last := strings.ToUpper(oneline.Of(b.Statement)); {
	case w.Maybe || !slices.Contains(clients, b.Command):
		return ""
	case strings.HasPrefix(last, "XA PREPARE"):
		return fmt.Sprintf(" Only XA COMMIT or XA ROLLBACK in connection %d releases it: its transaction is prepared, and would stay so after a KILL.", b.ID)
	case w.Queued:
		return fmt.Sprintf(" KILL %d takes that one out of the queue.", b.ID)
	case b.Open > 0 && last == "":
		return fmt.Sprintf(" KILL %d makes it let go, and rolls its transaction back unless that is prepared (XA).", b.ID)
	case b.Open > 0:
		return fmt.Sprintf(" KILL %d makes it let go, and rolls its transaction back.", b.ID)
	}
	return fmt.Sprintf(" KILL %d makes it let go.", b.ID)
}

// globalLocks are what performance_schema calls the locks of the whole server; MariaDB has BACKUP for all of them.
var globalLocks = map[string]string{"GLOBAL": "the global read lock", "COMMIT": "the global read lock, which blocks commits", "BACKUP LOCK": "the backup lock"}

// whichLock says which lock it is.
func whichLock(w *read.LockWait) string {
	table := w.Name
	if w.Schema != "" {
		table = strings.TrimSuffix(w.Schema+"."+w.Name, ".")
	}
	table = oneline.Of(table)
	switch {
	case w.Kind == read.LockRow && w.Type == "TABLE" && w.Mode == "AUTO_INC":
		return "the AUTO_INCREMENT lock of the table " + table
	case w.Kind == read.LockRow && w.Type == "TABLE":
		return "an InnoDB lock on the whole table " + table + mode(w.Mode)
	case w.Kind == read.LockRow:
		s := "a row lock in the index " + oneline.Of(w.Index) + " of " + table
		if w.Data != "" {
			s += ", record " + oneline.Cut(oneline.Of(w.Data), 60)
		}
		return s + mode(w.Mode)
	case w.Kind == read.LockUser:
		return "the user lock '" + oneline.Of(w.Name) + "'"
	case w.Kind == read.LockFlush && table == "":
		return "a table to be closed (table flush)"
	case w.Kind == read.LockFlush:
		return "the table " + table + " to be closed (table flush)"
	case w.Kind == read.LockGlobal:
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
	return " (" + oneline.Of(m) + ")"
}

func account(b *read.Blocker) string {
	if b.User == "" {
		return ""
	}
	return " (" + oneline.Of(b.User+at(b.Host)) + ")"
}

// doing says what a blocker does.
func doing(b *read.Blocker) string {
	long := digits.Seconds(max(b.Seconds, 0)) // a session that has set its timestamp may have begun in the future
	var s string
	switch {
	case b.Command == "":
		s = "what it does is unknown"
	case b.Idle():
		s = "idle for " + long
	default:
		s = "busy for " + long
	}
	if b.Open > 0 {
		s += fmt.Sprintf(", in a transaction that began %s ago", digits.Age(b.Open))
	}
	switch {
	case b.Statement == "":
		return s
	case b.Idle():
		return s + "; its last statement: " + oneline.Cut(oneline.Of(b.Statement), 100)
	}
	return s + "; it runs " + oneline.Cut(oneline.Of(b.Statement), 100)
}
