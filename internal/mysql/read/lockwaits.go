package read

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// LockKind is the kind of lock that a session waits for.
type LockKind string

// The kinds of lock.
const (
	LockRow      LockKind = "row_lock"      // of InnoDB: a record, a gap, a table, the AUTO_INCREMENT value of a table
	LockMetadata LockKind = "metadata_lock" // of a table, schema, program
	LockGlobal   LockKind = "global_lock"   // FLUSH TABLES WITH READ LOCK, BACKUP STAGE, LOCK INSTANCE FOR BACKUP
	LockUser     LockKind = "user_lock"     // GET_LOCK
	LockFlush    LockKind = "table_flush"   // no lock: a table that must be closed, but that others still use
)

// LockWait is a session that waits for a lock, and a session that blocks it.
type LockWait struct {
	Waiter int64    `json:"waiter"` // connection
	Kind   LockKind `json:"kind"`
	Type   string   `json:"type,omitempty"` // RECORD or TABLE for row locks, otherwise the type of the locked object as performance_schema names it
	Schema string   `json:"schema,omitempty"`
	Name   string   `json:"name,omitempty"` // a table's, or a user lock's
	Index  string   `json:"index,omitempty"`
	Data   string   `json:"data,omitempty"` // the record's key, as the server writes it
	Mode   string   `json:"mode,omitempty"` // mode that the waiter wants
	Held   string   `json:"held,omitempty"` // mode that the blocker has, or wants before the waiter
	// Queued says that the blocker does not hold the lock, but is ahead of the waiter in the queue.
	Queued bool `json:"queued,omitempty"`
	// Maybe says that the server does not say who holds the lock: the blocker has an open transaction and may be the one.
	Maybe   bool    `json:"maybe,omitempty"`
	Sign    string  `json:"sign,omitempty"` // with Maybe: what speaks for it
	Blocker Blocker `json:"blocker"`        // ID 0: no connection holds it, as with prepared XA transactions; with Maybe: nothing is known of it
}

// HideKey leaves out what the waiter and the blocker chose themselves: the key of the locked record, the name of a user lock. supremum is no key.
func (w *LockWait) HideKey() {
	hide := func(s *string) {
		if *s != "" && *s != "supremum pseudo-record" {
			*s = "?"
		}
	}
	if hide(&w.Data); w.Kind == LockUser {
		hide(&w.Name)
	}
}

// Blocker is a session that others wait for.
type Blocker struct {
	ID        int64   `json:"id"`
	User      string  `json:"user,omitempty"`
	Host      string  `json:"host,omitempty"`
	Command   string  `json:"command,omitempty"` // Sleep: it is idle
	State     string  `json:"state,omitempty"`
	Seconds   float64 `json:"seconds"`               // since it entered its current state, or became idle
	Statement string  `json:"statement,omitempty"`   // the statement it runs, or ran last; empty: the server does not say
	Open      float64 `json:"transaction,omitempty"` // seconds since its transaction began; 0: none, or not known
}

// Client reports whether the session is one of a client, and no thread of replication, which a KILL would stop, or of the server itself.
func (b Blocker) Client() bool {
	return b.User != systemUser && slices.Contains([]string{"Sleep", "Query", "Execute", "Prepare", "Fetch"}, b.Command)
}

// Idle reports whether the session waits for its client.
func (b Blocker) Idle() bool { return b.Command == "Sleep" }

// LockWaits returns who waits for which lock, and for whom; waiter is a connection, or 0 for all. gaps are what the server does not show,
// and how to fix that. Row locks come from data_lock_waits from MySQL 8.0.1 on and by INNODB_LOCK_WAITS elsewhere; all
// others by performance_schema.metadata_locks, MariaDB's plugin metadata_lock_info, and IS_USED_LOCK.
//
// MySQL 5.7 and MariaDB copy what they show of row locks, and refresh the copy only if it was not read for 0.1 s (Source:
// CACHE_MIN_IDLE_TIME in storage/innobase/trx/trx0i_s.cc): asking more often than that returns the old state.
func LockWaits(ctx context.Context, c *mysql.Conn, waiter int64) (list []LockWait, gaps []fleet.Trouble, err error) {
	open, refused, err := transactionsNow(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	list, gaps, err = lockWaits(ctx, c, waiter, open, nil)
	return list, append(refused, gaps...), err
}

// lockWaits is LockWaits where the open transactions were just read, for one who has seen which sessions locked the whole server.
func lockWaits(ctx context.Context, c *mysql.Conn, waiter int64, open []Transaction, ran map[int64]locked) (list []LockWait, gaps []fleet.Trouble, err error) {
	rows, gap, err := rowLockWaits(ctx, c, waiter, open)
	if err != nil {
		return nil, nil, err
	}
	gaps = append(gaps, gap...)
	look := sessionLook{c: c}
	sessions, gap, err := look.stuckSessions(ctx, waiter)
	if err != nil {
		return nil, nil, err
	}
	gaps = append(gaps, gap...)
	list = slices.DeleteFunc(rows, func(w LockWait) bool { // a copy may be old: no session waits for two locks
		return slices.ContainsFunc(sessions, func(s stuck) bool { return s.id == w.Waiter })
	})
	if len(sessions) > 0 {
		others, gap, err := otherLockWaits(ctx, c, sessions, ran)
		if err != nil {
			return nil, nil, err
		}
		list, gaps = append(list, others...), append(gaps, gap...)
	}
	if len(list) == 0 {
		return nil, gaps, nil
	}
	gap, err = look.describeBlockers(ctx, list, open)
	return list, append(gaps, gap...), err
}

// allowed runs a question that the server may refuse; then it is a gap.
func allowed(ctx context.Context, c *mysql.Conn, what, remedy, statement string, f func(row []sqldriver.Value) error) ([]fleet.Trouble, error) {
	err := c.QuietQuery(ctx, statement, f)
	switch mysql.ClassOf(err) {
	case "":
		return nil, nil
	case mysql.ClassPrivilege, mysql.ClassMissing:
		return []fleet.Trouble{{What: what, Why: err.Error(), Remedy: remedy}}, nil
	}
	return nil, err
}

// tellsDataLocks reports whether performance_schema tells InnoDB's locks.
func tellsDataLocks(s mysql.Server) bool { return s.AtLeast(80001, fleet.Never) && s.PerformanceSchema }

// rowLockTables are the tables that tell who (rt) waits for whom (bt). The owner of a lock is that of its transaction: the thread of a
// lock is the one that made it, and an implicit lock is made by the one that waits for it.
func rowLockTables(s mysql.Server) string {
	if tellsDataLocks(s) {
		return `performance_schema.data_lock_waits w
 JOIN information_schema.INNODB_TRX rt ON rt.trx_id = w.REQUESTING_ENGINE_TRANSACTION_ID
 JOIN information_schema.INNODB_TRX bt ON bt.trx_id = w.BLOCKING_ENGINE_TRANSACTION_ID`
	}
	return `information_schema.INNODB_LOCK_WAITS w
 JOIN information_schema.INNODB_TRX rt ON rt.trx_id = w.requesting_trx_id
 JOIN information_schema.INNODB_TRX bt ON bt.trx_id = w.blocking_trx_id`
}

// openSeconds is how long a transaction of INNODB_TRX is open. Servers show its begin in the system's time zone, regardless of that of the
// session is (field_store_time_t in their i_s.cc).
func openSeconds(trx string) string {
	return "TIMESTAMPDIFF(SECOND, " + trx + ".trx_started, CONVERT_TZ(NOW(), @@SESSION.time_zone, 'SYSTEM'))"
}

// rowLockDetails asks who waits for whose row locks, and which.
func rowLockDetails(s mysql.Server) string {
	if tellsDataLocks(s) {
		return `SELECT /* risso: who waits for which row */ rt.trx_mysql_thread_id, bt.trx_mysql_thread_id, ` + dataLockColumns + `,
 ` + openSeconds("bt") + `
 FROM ` + rowLockTables(s) + dataLockJoins
	}
	return `SELECT /* risso: who waits for which row */ rt.trx_mysql_thread_id, bt.trx_mysql_thread_id, r.lock_type, NULL, r.lock_table, r.lock_index, r.lock_data, r.lock_mode, b.lock_mode, IF(bt.trx_requested_lock_id = w.blocking_lock_id, 'WAITING', 'GRANTED'),
 ` + openSeconds("bt") + `
 FROM ` + rowLockTables(s) + `
 JOIN information_schema.INNODB_LOCKS r ON r.lock_id = w.requested_lock_id
 JOIN information_schema.INNODB_LOCKS b ON b.lock_id = w.blocking_lock_id`
}

const (
	dataLockColumns = "r.LOCK_TYPE, r.OBJECT_SCHEMA, r.OBJECT_NAME, r.INDEX_NAME, r.LOCK_DATA, r.LOCK_MODE, b.LOCK_MODE, b.LOCK_STATUS"
	dataLockJoins   = `
 JOIN performance_schema.data_locks r ON r.ENGINE = w.ENGINE AND r.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID
 JOIN performance_schema.data_locks b ON b.ENGINE = w.ENGINE AND b.ENGINE_LOCK_ID = w.BLOCKING_ENGINE_LOCK_ID`
)

// knownLockDetails is rowLockDetails with the numbers of transactions instead of their sessions: to join INNODB_TRX twice costs MySQL 9.7
// more than all the rest.
const knownLockDetails = `SELECT /* risso: who waits for which row */ w.REQUESTING_ENGINE_TRANSACTION_ID, w.BLOCKING_ENGINE_TRANSACTION_ID, ` + dataLockColumns + `, 0
 FROM performance_schema.data_lock_waits w` + dataLockJoins

// lockTime is how long a server may work on listing its locks: with 500 sessions in one queue a MariaDB takes seconds to find the pairs.
const lockTime = time.Second

// rowLockPairs asks for less: who waits for whom, of servers that have no data_lock_waits.
func rowLockPairs(s mysql.Server) string {
	return fmt.Sprintf("SELECT /* risso: who blocks whom */ DISTINCT rt.trx_mysql_thread_id, bt.trx_mysql_thread_id FROM %s LIMIT %d", rowLockTables(s), maxLockPairs)
}

// rowLockWaits returns who waits for a lock of InnoDB. Whether somebody does comes from the transactions: the server's counters of
// current waits leave out those for locks of tables and for AUTO_INCREMENT.
func rowLockWaits(ctx context.Context, c *mysql.Conn, waiter int64, open []Transaction) (list []LockWait, gaps []fleet.Trouble, err error) {
	whole := len(open) < maxTransactions // else there are more
	if whole && !slices.ContainsFunc(open, func(t Transaction) bool {
		return t.State == lockWait && (waiter == 0 || t.Session == waiter)
	}) {
		return nil, nil, nil
	}
	const what = "who holds a row lock"
	remedy := c.Server.Grant("PROCESS")
	if c.Server.AtLeast(80001, fleet.Never) {
		remedy += "; " + c.Server.GrantPerformanceSchema()
	}
	limit := fmt.Sprintf(" LIMIT %d", maxLockPairs)
	if whole && tellsDataLocks(c.Server) {
		byNumber, unknown := map[string]Transaction{}, false
		for _, t := range open {
			byNumber[t.Trx] = t
		}
		c.Traffic().Note(c.Server.Bounded(lockTime, knownLockDetails+limit))
		gaps, err = allowed(ctx, c, what, remedy, c.Server.Bounded(lockTime, knownLockDetails+limit), func(row []sqldriver.Value) error {
			waits, waitsKnown := byNumber[mysql.Text(row[0])]
			holds, holdsKnown := byNumber[mysql.Text(row[1])]
			if unknown = unknown || !waitsKnown || !holdsKnown; unknown || waiter != 0 && waits.Session != waiter {
				return nil
			}
			w := rowLockWaitOf(row)
			w.Waiter, w.Blocker = waits.Session, Blocker{ID: holds.Session, Open: holds.Seconds}
			list = append(list, w)
			return nil
		})
		if err != nil || !unknown {
			return list, gaps, err
		}
		list = nil // a transaction began meanwhile, or has another number since it writes
	}
	one := ""
	if waiter != 0 {
		one = fmt.Sprintf(" AND rt.trx_mysql_thread_id = %d", waiter)
	}
	c.Traffic().Note(c.Server.Bounded(lockTime, rowLockDetails(c.Server)+" WHERE 1"+limit))
	gaps, err = allowed(ctx, c, what, remedy, c.Server.Bounded(lockTime, rowLockDetails(c.Server)+" WHERE 1"+one+limit), func(row []sqldriver.Value) error {
		list = append(list, rowLockWaitOf(row))
		return nil
	})
	return list, gaps, err
}

// rowLockWaitOf reads a row of rowLockDetails.
func rowLockWaitOf(row []sqldriver.Value) LockWait {
	open, _ := number(row[10])
	w := LockWait{Waiter: whole(row[0]), Kind: LockRow, Type: mysql.Text(row[2]), Schema: mysql.Text(row[3]), Name: mysql.Text(row[4]), Index: mysql.Text(row[5]), Data: mysql.Text(row[6]), Mode: mysql.Text(row[7]), Held: mysql.Text(row[8]),
		Queued: mysql.Text(row[9]) == "WAITING", Blocker: Blocker{ID: whole(row[1]), Open: open}}
	if row[3] == nil { // `shop`.`orders`, and of a part of a table /* Partition `p0` */ after it
		name, _, _ := strings.Cut(w.Name, " /*")
		if parts := strings.SplitN(strings.Trim(name, "`"), "`.`", 2); len(parts) == 2 {
			w.Schema, w.Name = strings.ReplaceAll(parts[0], "``", "`"), strings.ReplaceAll(parts[1], "``", "`")
		}
	}
	return w
}

// stuck is a session that shows a state in which it waits for a lock of the server.
type stuck struct {
	id          int64
	state, text string
	kind        LockKind
}

type stuckState struct {
	like string
	kind LockKind
}

// stuckStates are the states of waits for locks that are not InnoDB's.
// (https://dev.mysql.com/doc/refman/9.4/en/general-thread-states.html, https://mariadb.com/kb/en/general-thread-states/)
var stuckStates = []stuckState{
	{"User lock", LockUser}, {"Waiting for global read lock", LockGlobal}, {"Waiting for commit lock", LockGlobal}, {"Waiting for backup lock", LockGlobal},
	{"Waiting for table flush", LockFlush}, {"Waiting for %metadata lock", LockMetadata},
}

// stuckSessions finds the sessions whose state says that they wait for a lock of the server.
func (l *sessionLook) stuckSessions(ctx context.Context, waiter int64) (list []stuck, gaps []fleet.Trouble, err error) {
	if !l.c.Server.PerformanceSchema {
		list, err = l.stuckInList(ctx, waiter)
		return list, nil, err
	}
	var like []string
	for _, s := range stuckStates {
		like = append(like, "PROCESSLIST_STATE LIKE '"+s.like+"'")
	}
	statement := "SELECT /* risso: who waits for a lock of the server */ PROCESSLIST_ID, PROCESSLIST_STATE, LEFT(PROCESSLIST_INFO, 4096) FROM performance_schema.threads WHERE (" + strings.Join(like, " OR ") + ")"
	l.c.Traffic().Note(statement + fmt.Sprintf(" LIMIT %d", maxLockPairs))
	if waiter != 0 {
		statement += fmt.Sprintf(" AND PROCESSLIST_ID = %d", waiter)
	}
	gaps, err = allowed(ctx, l.c, "who waits for a metadata lock", l.c.Server.GrantPerformanceSchema(), statement+fmt.Sprintf(" LIMIT %d", maxLockPairs), func(row []sqldriver.Value) error {
		if kind, ok := kindOfState(mysql.Text(row[1])); ok {
			list = append(list, stuck{id: whole(row[0]), state: mysql.Text(row[1]), text: mysql.Text(row[2]), kind: kind})
		}
		return nil
	})
	return list, gaps, err
}

// stuckInList is stuckSessions by the process list.
func (l *sessionLook) stuckInList(ctx context.Context, waiter int64) (list []stuck, err error) {
	if err := l.read(ctx); err != nil {
		return nil, err
	}
	var ids []int64
	for _, b := range l.list {
		if _, ok := kindOfState(b.State); ok && (waiter == 0 || b.ID == waiter) && len(ids) < maxLockPairs {
			ids = append(ids, b.ID)
		}
	}
	if err := l.wholeTexts(ctx, ids); err != nil {
		return nil, err
	}
	for _, id := range ids {
		b := l.list[id]
		kind, _ := kindOfState(b.State)
		list = append(list, stuck{id: id, state: b.State, text: b.Statement, kind: kind})
	}
	return list, nil
}

// kindOfState is the kind of lock that a session waits for which shows a state; ok: it is one of stuckStates.
func kindOfState(state string) (kind LockKind, ok bool) {
	low := strings.ToLower(state) // as LIKE compares
	for _, k := range stuckStates {
		first, last, wild := strings.Cut(strings.ToLower(k.like), "%")
		if low == first && !wild || wild && len(low) >= len(first)+len(last) && strings.HasPrefix(low, first) && strings.HasSuffix(low, last) {
			return k.kind, true
		}
	}
	return "", false
}

// otherLockWaits finds who blocks sessions that wait for locks of the server.
func otherLockWaits(ctx context.Context, c *mysql.Conn, sessions []stuck, ran map[int64]locked) (list []LockWait, gaps []fleet.Trouble, err error) {
	if hasMetadataLocks(c.Server) {
		if list, gaps, err = metadataLockWaits(ctx, c); err != nil {
			return nil, nil, err
		}
		list = slices.DeleteFunc(list, func(w LockWait) bool {
			return !slices.ContainsFunc(sessions, func(s stuck) bool { return s.id == w.Waiter })
		})
	}
	var global []stuck // they are asked about together
	for _, s := range sessions {
		if slices.ContainsFunc(list, func(w LockWait) bool { return w.Waiter == s.id }) {
			continue
		}
		more, gap, known, err := lockWaitOf(ctx, c, s)
		if err != nil {
			return nil, nil, err
		}
		if list, gaps = append(list, more...), append(gaps, gap...); !known {
			global = append(global, s)
		}
	}
	more, gap, err := globalWaits(ctx, c, global, ran)
	return append(list, more...), append(gaps, gap...), err
}

// hasMetadataLocks reports whether performance_schema can tell metadata locks.
func hasMetadataLocks(s mysql.Server) bool {
	return s.PerformanceSchema && !(s.MariaDB() && s.Number < 100502)
}

// weakLocks never keep one another waiting, whatever the object: a queue of hundreds has tens of thousands of such pairs.
const weakLocks = "('SHARED_HIGH_PRIO', 'SHARED_READ', 'SHARED_WRITE', 'SHARED_WRITE_LOW_PRIO', 'INTENTION_EXCLUSIVE')"

// metadataLockPairs asks for the locks that sessions want, each with those of others on the same thing, had or wanted. A prepared XA
// transaction keeps its locks when its session has ended; they belong to no thread then.
func metadataLockPairs(s mysql.Server) string {
	return fmt.Sprintf(`SELECT /* risso: who waits for which metadata lock */ pt.PROCESSLIST_ID, COALESCE(gt.PROCESSLIST_ID, 0), p.OBJECT_TYPE, p.OBJECT_SCHEMA, p.OBJECT_NAME, p.LOCK_TYPE, g.LOCK_TYPE, g.LOCK_STATUS
 FROM performance_schema.metadata_locks p
 JOIN performance_schema.metadata_locks g ON g.OBJECT_TYPE = p.OBJECT_TYPE AND g.OBJECT_SCHEMA <=> p.OBJECT_SCHEMA AND g.OBJECT_NAME <=> p.OBJECT_NAME AND g.LOCK_STATUS IN ('GRANTED', 'PENDING')
 JOIN performance_schema.threads pt ON pt.THREAD_ID = p.OWNER_THREAD_ID LEFT JOIN performance_schema.threads gt ON gt.THREAD_ID = g.OWNER_THREAD_ID
 WHERE p.LOCK_STATUS = 'PENDING' AND NOT g.OWNER_THREAD_ID <=> p.OWNER_THREAD_ID
  AND NOT (p.LOCK_TYPE IN `+weakLocks+` AND g.LOCK_TYPE IN `+weakLocks+`) LIMIT %d`, 4*maxLockPairs)
}

// metadataLockWaits returns who waits for whose metadata, global and user locks, as far as performance_schema records them: those who
// hold a lock incompatible with the wanted one; if there is none, those who want such a lock, too, and are ahead.
func metadataLockWaits(ctx context.Context, c *mysql.Conn) (list []LockWait, gaps []fleet.Trouble, err error) {
	var queued []LockWait
	gaps, err = allowed(ctx, c, "who holds a metadata lock", c.Server.GrantPerformanceSchema(), c.Server.Bounded(lockTime, metadataLockPairs(c.Server)), func(row []sqldriver.Value) error {
		w, ok := lockPairOf(row)
		if ok && !w.Queued {
			list = append(list, w)
		} else if ok {
			queued = append(queued, w)
		}
		return nil
	})
	blocked := map[int64]bool{}
	for _, w := range list {
		blocked[w.Waiter] = true
	}
	for _, w := range queued {
		if !blocked[w.Waiter] {
			list = append(list, w)
		}
	}
	return list, gaps, err
}

// lockPairOf reads a row of metadataLockPairs; ok says whether the one lock keeps the other waiting.
func lockPairOf(row []sqldriver.Value) (w LockWait, ok bool) {
	w = LockWait{Waiter: whole(row[0]), Kind: kindOfObject(mysql.Text(row[2])), Type: mysql.Text(row[2]), Schema: mysql.Text(row[3]), Name: mysql.Text(row[4]), Mode: mysql.Text(row[5]), Held: mysql.Text(row[6]),
		Queued: mysql.Text(row[7]) == "PENDING", Blocker: Blocker{ID: whole(row[1])}}
	return w, locksCollide(w.Type, w.Mode, w.Held, w.Queued)
}

func kindOfObject(object string) LockKind {
	switch object {
	case "GLOBAL", "COMMIT", "BACKUP LOCK", "BACKUP":
		return LockGlobal
	case "USER LEVEL LOCK", "USER_LEVEL_LOCK", "USER LOCK":
		return LockUser
	}
	return LockMetadata
}

// lockWaitOf finds out in other ways whom a session waits for, where performance_schema does not say. Not ok: it is for globalWaits.
func lockWaitOf(ctx context.Context, c *mysql.Conn, s stuck) (list []LockWait, gaps []fleet.Trouble, ok bool, err error) {
	switch {
	case s.kind == LockUser:
		list, gaps, err = userLockWait(ctx, c, s)
		return list, gaps, true, err
	case s.kind == LockFlush && hasMetadataLocks(c.Server):
		if list, gaps, err = flushWait(ctx, c, s); err != nil || len(list) > 0 {
			return list, gaps, true, err
		}
	}
	if c.Server.MariaDB() {
		list, known, err := pluginLockWaits(ctx, c, s)
		if err != nil || known {
			return list, nil, true, err
		}
	}
	if s.kind == LockGlobal {
		return nil, nil, false, nil
	}
	list, err = openTransactions(ctx, c, s)
	if len(list) == 0 {
		list = []LockWait{{Waiter: s.id, Kind: s.kind, Maybe: true}}
	}
	return list, []fleet.Trouble{unnamed(c, s)}, true, err
}

// unnamed says why nobody is named as the holder of the lock that a session waits for, and how that is mended.
func unnamed(c *mysql.Conn, s stuck) fleet.Trouble {
	gap := fleet.Trouble{What: "who holds the lock that connection " + strconv.FormatInt(s.id, 10) + " waits for", Why: "the server was not recording metadata locks when it was acquired",
		Remedy: "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES' WHERE NAME = 'wait/lock/metadata/sql/mdl' records those that are taken from then on"}
	switch {
	case c.Server.MariaDB() && s.kind == LockGlobal:
		gap.Remedy = "INSTALL SONAME 'metadata_lock_info' shows such locks; installing it has to wait for them"
	case c.Server.MariaDB():
		gap.Remedy = "INSTALL SONAME 'metadata_lock_info' shows it, even for locks that are already held"
	}
	return gap
}

// flushWait tells who uses tables that a session waits to be closed. The server does not say which tables those are: the ones that its
// statement names, or where it names none, all that are in use. A session uses tables while it runs a statement, or has locked them by
// LOCK TABLES; those that wait for the same are no hindrance.
func flushWait(ctx context.Context, c *mysql.Conn, s stuck) (list []LockWait, gaps []fleet.Trouble, err error) {
	gaps, err = allowed(ctx, c, "who uses a table that is to be closed", c.Server.GrantPerformanceSchema(), fmt.Sprintf(`SELECT /* risso: who uses tables */ DISTINCT t.PROCESSLIST_ID, l.OBJECT_SCHEMA, l.OBJECT_NAME
 FROM performance_schema.metadata_locks l JOIN performance_schema.threads t ON t.THREAD_ID = l.OWNER_THREAD_ID
 WHERE l.OBJECT_TYPE = 'TABLE' AND l.LOCK_STATUS = 'GRANTED' AND t.PROCESSLIST_ID NOT IN (%d, CONNECTION_ID()) AND NOT t.PROCESSLIST_STATE <=> 'Waiting for table flush'
  AND (t.PROCESSLIST_COMMAND <> 'Sleep' OR l.LOCK_TYPE IN ('SHARED_READ_ONLY', 'SHARED_NO_READ_WRITE')) LIMIT %d`, s.id, maxLockPairs), func(row []sqldriver.Value) error {
		list = append(list, LockWait{Waiter: s.id, Kind: LockFlush, Type: "TABLE", Schema: mysql.Text(row[1]), Name: mysql.Text(row[2]), Maybe: true, Blocker: Blocker{ID: whole(row[0])}})
		return nil
	})
	return namedTables(list, s.text), gaps, err
}

// namedTables are those waits for a table that the statement names; if there is none, all.
func namedTables(list []LockWait, statement string) (named []LockWait) {
	_, names := sqltext.NamesIn(statement)
	for _, w := range list {
		if names[strings.ToLower(w.Name)] {
			named = append(named, w)
		}
	}
	if len(named) > 0 {
		return named
	}
	return list
}

// userLockWait asks for the owner of the lock that the text of GET_LOCK names.
func userLockWait(ctx context.Context, c *mysql.Conn, s stuck) (list []LockWait, gaps []fleet.Trouble, err error) {
	name, ok := userLockName(s.text)
	if !ok {
		return nil, []fleet.Trouble{{What: "who holds the lock that connection " + strconv.FormatInt(s.id, 10) + " waits for", Why: "the text of the statement does not show the lock's name", Remedy: c.Server.GrantPerformanceSchema()}}, nil
	}
	err = c.QuietQuery(ctx, fmt.Sprintf("SELECT /* risso: who has a user lock */ IS_USED_LOCK(_utf8mb4 X'%X')", name), func(row []sqldriver.Value) error {
		if n, known := number(row[0]); known && n > 0 {
			list = append(list, LockWait{Waiter: s.id, Kind: LockUser, Type: "USER LEVEL LOCK", Name: name, Mode: "EXCLUSIVE", Held: "EXCLUSIVE", Blocker: Blocker{ID: int64(n)}})
		}
		return nil
	})
	return list, nil, err
}

// userLockName is the name in GET_LOCK('name', …), where it is written out.
func userLockName(statement string) (string, bool) {
	i := strings.Index(strings.ToUpper(statement), "GET_LOCK")
	if i < 0 || i+len("GET_LOCK") > len(statement) {
		return "", false
	}
	rest := strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(statement[i+len("GET_LOCK"):], " \t\n"), "("), " \t\n")
	if rest == "" || rest[0] != '\'' && rest[0] != '"' {
		return "", false
	}
	name, _, ok := strings.Cut(rest[1:], rest[:1])
	return name, ok && !strings.Contains(name, `\`)
}

// pluginLockWaits asks MariaDB's plugin metadata_lock_info, which lists the locks that are held, and by whom; known says that it is
// there (https://mariadb.com/kb/en/metadata-lock-info-plugin/). Its state and its text show which of them the session waits for.
func pluginLockWaits(ctx context.Context, c *mysql.Conn, s stuck) (list []LockWait, known bool, err error) {
	first, names := sqltext.NamesIn(s.text)
	gaps, err := allowed(ctx, c, "", "", fmt.Sprintf("SELECT /* risso: who holds metadata locks */ THREAD_ID, LOCK_MODE, LOCK_TYPE, TABLE_SCHEMA, TABLE_NAME FROM information_schema.METADATA_LOCK_INFO WHERE THREAD_ID NOT IN (%d, CONNECTION_ID())", s.id), func(row []sqldriver.Value) error {
		w := LockWait{Waiter: s.id, Kind: s.kind, Held: strings.TrimPrefix(mysql.Text(row[1]), "MDL_"), Schema: mysql.Text(row[3]), Name: mysql.Text(row[4]), Blocker: Blocker{ID: whole(row[0])}}
		strong := strings.Contains(w.Held, "EXCLUSIVE") && w.Held != "INTENTION_EXCLUSIVE" || strings.Contains(w.Held, "NO_READ_WRITE") || strings.Contains(w.Held, "NO_WRITE") || w.Held == "SHARED_READ_ONLY"
		switch mysql.Text(row[2]) {
		case "Table metadata lock":
			w.Type = "TABLE"
			changes := slices.Contains([]string{"alter", "drop", "rename", "truncate", "create", "optimize", "repair", "lock", "analyze", "flush"}, first)
			switch {
			case s.kind == LockMetadata && names[strings.ToLower(w.Name)] && (changes || strong):
				list = append(list, w)
			case s.kind == LockFlush:
				w.Maybe, w.Held = true, ""
				list = append(list, w)
			}
		case "Global read lock", "Commit lock", "Backup lock":
			w.Type, w.Schema, w.Name = "BACKUP", "", ""
			if s.kind == LockGlobal && (backupBlocks(w.Held) || first == "flush" || first == "backup") {
				list = append(list, w)
			}
		}
		return nil
	})
	if s.kind == LockFlush {
		list = namedTables(list, s.text)
	}
	return list, len(gaps) == 0 && len(list) > 0, err
}

// openTransactions are the sessions of which one may hold a metadata lock, because all locks of a transaction are held to its end.
func openTransactions(ctx context.Context, c *mysql.Conn, s stuck) (list []LockWait, err error) {
	_, err = allowed(ctx, c, "", "", fmt.Sprintf(`SELECT /* risso: who may hold a metadata lock */ t.trx_mysql_thread_id, `+openSeconds("t")+` FROM information_schema.INNODB_TRX t
 WHERE trx_mysql_thread_id NOT IN (0, %d, CONNECTION_ID()) ORDER BY trx_started LIMIT 5`, s.id), func(row []sqldriver.Value) error {
		open, _ := number(row[1])
		list = append(list, LockWait{Waiter: s.id, Kind: s.kind, Maybe: true, Blocker: Blocker{ID: whole(row[0]), Open: open}})
		return nil
	})
	return list, err
}
