package rules

import (
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/blockers"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sqltext"
)

// mostBlockers is how many sessions that keep others waiting are named at a time.
const mostBlockers = 5

// blockedBy names the sessions that keep others waiting, where the server says which they are.
func blockedBy(r *round) {
	global := map[int64]bool{} // who waits for the whole server
	known := false
	for i, root := range blockers.Roots(r.Locks) {
		if root.Wait.Kind == read.LockGlobal {
			for _, w := range root.Waiters {
				global[w] = true
			}
		}
		if !root.Wait.Maybe && i < mostBlockers {
			known = known || root.Wait.Kind == read.LockGlobal
			r.add(blockerOf(root))
		}
	}
	if len(global) > 0 && !known {
		r.add(globalLock(r, float64(len(global))))
	}
}

// globalLock is the finding of a lock of the whole server of which the server does not say who holds it.
func globalLock(r *round, waiting float64) candidate {
	c := candidate{id: "lock.global", severity: fleet.SeverityWarning, value: waiting, chart: "waits", hold: -1, remedy: metadataHolders(r.Snapshot),
		head: plural(waiting, "session waits", "sessions wait") + " for the global read lock or a backup lock", tail: ": FLUSH TABLES WITH READ LOCK or a backup of another session; the server does not say whose" + probably(r.Locks) + plugin(r.Snapshot)}
	if waiting >= 10 {
		c.severity = fleet.SeverityCritical
	}
	return c
}

// probably names, as the end of a sentence, the sessions that may hold a lock of the whole server, and what speaks for that.
func probably(list []read.LockWait) string {
	var named []int64
	var words []string
	for i := range list {
		w := &list[i]
		if w.Kind != read.LockGlobal || w.Sign == "" || slices.Contains(named, w.Blocker.ID) {
			continue
		}
		named = append(named, w.Blocker.ID)
		words = append(words, blockers.Session(&w.Blocker)+", for "+w.Sign)
		if len(words) == 1 && w.Sign == read.IdleBefore {
			words[0] = "perhaps " + words[0]
		}
	}
	switch len(words) {
	case 0:
		return ""
	case 1:
		if strings.HasPrefix(words[0], "perhaps ") {
			return ", " + words[0]
		}
		return ", probably " + words[0]
	}
	return ", perhaps " + strings.TrimPrefix(strings.Join(words, "; or "), "perhaps ")
}

func blockerOf(root blockers.Root) candidate {
	w := root.Wait
	w.Blocker.Statement = string(sqltext.Redact(nil, []byte(w.Blocker.Statement))) // a finding is kept, and sent
	who, doing := blockers.Session(&w.Blocker), ": "+blockers.Doing(&w.Blocker)
	switch {
	case w.Blocker.ID == 0:
		doing = ""
	case w.Blocker.Command != "" && !w.Blocker.Client():
		doing += "; it is no session of a client, but a thread of replication or of the server: a KILL would stop that"
	}
	c := candidate{id: "mdl.blocker", subject: who, severity: fleet.SeverityWarning, value: float64(len(root.Waiters)), chart: "waits", remedy: blockers.Kill(&w),
		head: root.Keeps(who), tail: doing}
	if len(root.Waiters) >= 10 {
		c.severity = fleet.SeverityCritical
	}
	switch w.Kind {
	case read.LockRow:
		c.id = "lock.blocker"
	case read.LockUser:
		c.id = "lock.user"
	case read.LockGlobal:
		c.id = "lock.global"
		c.hold = -1 // every write waits
	}
	return c
}

// named says whether blockedBy names who keeps those waiting that wait for a lock of InnoDB, or for another.
func (r *round) named(rows bool) bool {
	told := map[int64]bool{}
	for _, root := range blockers.Roots(r.Locks) {
		for _, w := range root.Waiters {
			told[w] = told[w] || !root.Wait.Maybe || root.Wait.Kind == read.LockGlobal
		}
	}
	return slices.ContainsFunc(r.Locks, func(w read.LockWait) bool { return told[w.Waiter] && (w.Kind == read.LockRow) == rows })
}

// metadataLocks finds statements held up by a session that still uses their table, or has locked it or the whole server.
func metadataLocks(r *round) {
	n, ok := r.value(waitKey("metadata_lock"))
	if !ok || n < 1 || r.named(false) {
		return
	}
	c := candidate{id: "mdl.blocker", severity: fleet.SeverityWarning, value: n, chart: "waits",
		head: plural(n, "thread waits for a metadata lock", "threads wait for a metadata lock"), tail: ": an open transaction, a long statement, LOCK TABLES, FLUSH or a backup of another session is in the way" + plugin(r.Snapshot),
		remedy: metadataHolders(r.Snapshot)}
	if n >= 10 {
		c.severity = fleet.SeverityCritical
	}
	r.add(c)
}

// metadataHolders is a statement that lists sessions that may hold what others wait for, most likely first. sys.schema_table_lock_waits
// shows that for tables only: not for FLUSH TABLES WITH READ LOCK, backups, schemas and programs, nor for tables that must be closed.
func metadataHolders(s *Snapshot) string {
	switch {
	case s.text("performance_schema") != "ON":
		return processHolders(s)
	case !s.server().RecordsMetadataLocks():
		// Metadata locks are not recorded there, as these servers come: what a session ran last has to do. On MariaDB that wants the
		// consumer events_statements_current.
		return "SELECT t.PROCESSLIST_ID AS id, t.PROCESSLIST_USER AS user, t.PROCESSLIST_HOST AS host, t.PROCESSLIST_COMMAND AS command, t.PROCESSLIST_TIME AS seconds, x.trx_started, LEFT(s.SQL_TEXT, 100) AS ran" +
			" FROM performance_schema.threads t LEFT JOIN performance_schema.events_statements_current s ON s.THREAD_ID = t.THREAD_ID LEFT JOIN information_schema.INNODB_TRX x ON x.trx_mysql_thread_id = t.PROCESSLIST_ID" +
			" WHERE t.PROCESSLIST_COMMAND IN ('Sleep', 'Query', 'Execute') AND t.PROCESSLIST_ID <> CONNECTION_ID() AND COALESCE(t.PROCESSLIST_STATE, '') NOT LIKE 'Waiting for%'" +
			" ORDER BY s.SQL_TEXT RLIKE 'LOCK|FLUSH|BACKUP' DESC, x.trx_started IS NULL, x.trx_started, t.PROCESSLIST_TIME DESC LIMIT 50"
	}
	const weak = "('SHARED_READ', 'SHARED_WRITE', 'INTENTION_EXCLUSIVE')" // these go with each other
	return "SELECT t.PROCESSLIST_ID AS id, t.PROCESSLIST_USER AS user, t.PROCESSLIST_HOST AS host, t.PROCESSLIST_TIME AS seconds, h.LOCK_TYPE AS holds, h.OBJECT_TYPE, h.OBJECT_SCHEMA, h.OBJECT_NAME," +
		" (SELECT COUNT(*) FROM performance_schema.metadata_locks w WHERE w.LOCK_STATUS = 'PENDING' AND w.OBJECT_TYPE = h.OBJECT_TYPE AND w.OBJECT_SCHEMA <=> h.OBJECT_SCHEMA AND w.OBJECT_NAME <=> h.OBJECT_NAME" +
		" AND NOT (w.LOCK_TYPE IN " + weak + " AND h.LOCK_TYPE IN " + weak + ")) AS waiting" +
		" FROM performance_schema.metadata_locks h LEFT JOIN performance_schema.threads t ON t.THREAD_ID = h.OWNER_THREAD_ID" +
		" WHERE h.LOCK_STATUS = 'GRANTED' AND NOT t.PROCESSLIST_ID <=> CONNECTION_ID() AND COALESCE(t.PROCESSLIST_STATE, '') NOT LIKE 'Waiting for%' ORDER BY waiting DESC, seconds DESC LIMIT 20"
}

// processHolders is metadataHolders if performance_schema is off: nothing shows locks there, but it lists who has an open
// transaction, and who is idle for how long.
func processHolders(s *Snapshot) string {
	return "SELECT p.id, p.user, p.host, p.command, p.time, x.trx_started, LEFT(p.info, 100) AS runs FROM information_schema.PROCESSLIST p LEFT JOIN information_schema.INNODB_TRX x ON x.trx_mysql_thread_id = p.id" +
		" WHERE p.command IN ('Sleep', 'Query', 'Execute') AND p.id <> CONNECTION_ID() AND COALESCE(p.state, '') NOT LIKE 'Waiting for%' ORDER BY x.trx_started IS NULL, x.trx_started, p.time DESC LIMIT 50"
}

// plugin names, as the end of a sentence, what makes MariaDB tell metadata locks. It is no part of the remedy: it cannot be installed while
// the whole server is locked.
func plugin(s *Snapshot) string {
	name := s.server().MetadataLockPlugin()
	if name == "" {
		return ""
	}
	return "; the plugin " + name + " would name it"
}

// rowLocks finds transactions that wait for a lock of InnoDB. One or two at a time are normal; they are reported when they last.
// The server's counter leaves out waits for its locks of tables and of AUTO_INCREMENT; the reader of statements sees those, too.
func rowLocks(r *round) {
	n, ok := r.value(statusPrefix + "innodb_row_lock_current_waits")
	if !ok {
		n = 0
	}
	lock, chart := "a row lock", "row_lock_now"
	if seen, found := r.value(waitKey("row_lock")); found && seen > n {
		n, ok, lock, chart = seen, true, "a lock of InnoDB (of a row, a table or AUTO_INCREMENT)", "waits"
	}
	if !ok || n < 1 || r.named(true) {
		return
	}
	c := candidate{id: "lock.blocker", severity: fleet.SeverityWarning, value: n, chart: chart,
		head:   plural(n, "transaction waits for "+lock, "transactions wait for "+lock),
		remedy: r.server().RowLockStatement(r.text("performance_schema") == "ON")}
	const lasts = 30 * time.Second
	switch {
	case n >= 20:
		c.severity = fleet.SeverityCritical
	case n < 4:
		c.hold = lasts
	}
	r.add(c)
}
