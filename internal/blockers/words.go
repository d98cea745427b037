// Package blockers says who keeps whom waiting for a lock: which sessions are at the root of the waits that a server reports, what they
// hold and do, and what ends the wait. It does no input or output.
package blockers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/pattern"
)

// InTheWay says who keeps a session waiting, and what that one does.
func InTheWay(w *read.LockWait) string {
	b := &w.Blocker
	who := Session(b)
	switch {
	case b.ID == 0 && w.Maybe:
		return ". The server does not say who holds it"
	case b.ID == 0:
		return ", held by a transaction without a connection: XA RECOVER lists prepared transactions; XA COMMIT or XA ROLLBACK ends them"
	case w.Maybe && w.Kind == read.LockFlush:
		who = ". The server does not say who uses it; it may be " + who
	case w.Maybe && w.Sign != "":
		who = ". The server does not say who holds it; it may be " + who + ", for " + oneline.Of(w.Sign)
	case w.Maybe:
		who = ". The server does not say who holds it; it may be " + who
	case w.Queued:
		who = ", behind " + who + ", which is ahead of it in the queue" + mode(w.Held)
	case w.Kind == read.LockGlobal && slices.Contains(statementLocks, w.Held):
		who = ", which " + who + " blocks by what it does" + mode(w.Held)
	default:
		who = ", which " + who + " holds" + mode(w.Held)
	}
	return who + ": " + Doing(b)
}

// Session names a blocker: "connection 812 (app@web3)".
func Session(b *read.Blocker) string {
	if b.ID == 0 {
		return "a prepared XA transaction without a connection"
	}
	return fmt.Sprintf("connection %d%s", b.ID, account(b))
}

// statementLocks are what statements that change something have of the locks of the whole server: INTENTION_EXCLUSIVE of each, and on
// MariaDB those of BACKUP.
var statementLocks = []string{"INTENTION_EXCLUSIVE", "BACKUP_DML", "BACKUP_TRANS_DML", "BACKUP_SYS_DML", "BACKUP_DDL", "BACKUP_ALTER_COPY", "BACKUP_COMMIT"}

// Untouchable says why a session is not to be killed; it is empty if it may be: those of replication, of the server itself and of Risso
// are not.
func Untouchable(p read.Process) string {
	command := strings.ToLower(p.Command)
	switch {
	case p.Own:
		return "it is one of Risso's own connections"
	case p.ID <= 0:
		return "it has no connection"
	case slices.ContainsFunc([]string{"binlog dump", "slave_", "register slave", "group replication", "table dump"}, func(s string) bool { return strings.HasPrefix(command, s) }):
		return "it belongs to replication: a KILL would stop that"
	case p.User == "system user", p.User == "event_scheduler", command == "daemon":
		return "it is a thread of the server: replication, or another one of its own"
	case command == "connect", p.User == "unauthenticated user":
		return "it is still logging in, or a thread of replication"
	}
	return ""
}

// xaPrepare begins the statement after which a transaction outlives its session.
const xaPrepare = "XA PREPARE"

// Kill is the statement that removes the blocker, if one does and the server says for sure who it is. Of a prepared transaction without
// a connection it is the one that lists them.
func Kill(w *read.LockWait) string {
	b := &w.Blocker
	if b.ID == 0 {
		return "XA RECOVER"
	}
	if w.Maybe || !b.Client() || strings.HasPrefix(strings.ToUpper(oneline.Of(b.Statement)), xaPrepare) {
		return ""
	}
	return fmt.Sprintf("KILL %d", b.ID)
}

// Remedy says in a sentence what removes the blocker; it is empty if that is unknown. KILL ends a session with its
// locks, but not a transaction that is prepared.
func Remedy(w *read.LockWait) string {
	b := &w.Blocker
	switch last := strings.ToUpper(oneline.Of(b.Statement)); {
	case w.Maybe || !b.Client():
		return ""
	case strings.HasPrefix(last, xaPrepare):
		return fmt.Sprintf("Only XA COMMIT or XA ROLLBACK in connection %d releases it: its transaction is prepared, and would stay so after a KILL.", b.ID)
	case w.Queued:
		return fmt.Sprintf("KILL %d takes that one out of the queue.", b.ID)
	case b.Open > 0 && last == "":
		return fmt.Sprintf("KILL %d makes it let go, and rolls its transaction back unless that is prepared (XA).", b.ID)
	case b.Open > 0:
		return fmt.Sprintf("KILL %d makes it let go, and rolls its transaction back.", b.ID)
	}
	return fmt.Sprintf("KILL %d makes it let go.", b.ID)
}

// globalLocks are what performance_schema calls the locks of the whole server; MariaDB has BACKUP for all of them.
var globalLocks = map[string]string{"GLOBAL": "the global read lock", "COMMIT": "the global read lock, which blocks commits", "BACKUP LOCK": "the backup lock"}

// Lock says which lock it is.
func Lock(w *read.LockWait) string {
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

// Keeps says how many a root keeps waiting, and for what; who is what to call it.
func (r Root) Keeps(who string) string {
	others := digits.Plural(len(r.Waiters), "other", "others")
	if r.Alike < len(r.Waiters) { // the rest waits for these
		return fmt.Sprintf("%s keeps %s waiting, %d of them for %s", who, others, r.Alike, Lock(&r.Wait))
	}
	return who + " keeps " + others + " waiting for " + Lock(&r.Wait)
}

// What Lock says of values: the key of a record, the name of a user lock.
var (
	recordKey = pattern.Lazy(`( of \S+, record ).*?( \([A-Z_,]+\)|$)`)
	lockName  = pattern.Lazy(`(the user lock )'.*?'`)
)

// WithoutKeys is a text that holds what Lock says, without the values in it.
func WithoutKeys(text string) string {
	return lockName().ReplaceAllString(recordKey().ReplaceAllString(text, "${1}?$2"), "${1}?")
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
	return " (" + oneline.Of(strings.TrimSuffix(b.User+"@"+b.Host, "@")) + ")"
}

// Doing says what a blocker does.
func Doing(b *read.Blocker) string {
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
