package read

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// Session is a session that runs a statement, as it was seen at one moment.
type Session struct {
	ID                 int64 // connection ID
	User, Host, Schema string
	Text               string // the statement as the server shows it, at most maxActivityText bytes
	DigestText         string // the server's normalised text; empty if the server does not show it while a statement runs
	Prepared           bool   // a prepared statement is executed
	Run                int64  // tells this run of a statement from the next one in the same session; 0: the server does not say (MySQL 5.7)
	Seconds            float64
	State              string // as the server names it
	Wait               string // one of StatementWaits
	BlockerID          int64  // connection ID of the session that it waits for; 0: none, or not known
	BlockerText        string // what that session runs, or ran last; normalised or not; empty: not known

	level int64
}

// StatementWaits are the classes of what a statement can be found doing: WaitClasses, and tmp_disk_table.
var StatementWaits = append([]string{waitTmpDisk}, WaitClasses...)

const (
	waitTmpDisk  = "tmp_disk_table"
	waitRowLock  = "row_lock"
	waitMetadata = "metadata_lock"
	waitRunning  = "running"
)

// Limits of one reading.
const (
	maxSessions     = 1000
	maxActivityText = 16384
	maxLockPairs    = 1000
)

// ActivityReader reads which sessions run a statement, and what they wait for. It is made for one connection.
type ActivityReader struct {
	c         *mysql.Conn
	statement string
	info      bool           // the process list is read, not performance_schema
	whole     int            // readings until it is looked at in brief again
	refused   map[string]int // questions that the server refused, and for how many readings they are left out
	gaps      map[string]fleet.Trouble
}

// refusedFor is how many readings a refused question is left out.
const refusedFor = 600

// NewActivityReader finds out how the server tells what its sessions do.
func NewActivityReader(ctx context.Context, c *mysql.Conn) (*ActivityReader, error) {
	r := &ActivityReader{c: c, refused: map[string]int{}, gaps: map[string]fleet.Trouble{}, info: c.Server.MariaDB() || !c.Server.PerformanceSchema}
	for _, set := range c.Server.BoundStatements(activityLimit) {
		if err := c.Query(ctx, set, mysql.IgnoreRow); err != nil {
			return nil, err
		}
	}
	if r.info {
		r.statement = processListStatement(c.Server, maxActivityText)
		return r, nil
	}
	waits, statements := false, false
	err := c.Query(ctx, "SELECT /* risso: are statements and waits of threads shown? */ NAME FROM performance_schema.setup_consumers WHERE NAME IN ('events_statements_current', 'events_waits_current') AND ENABLED = 'YES'", func(row []sqldriver.Value) error {
		waits = waits || mysql.Text(row[0]) == "events_waits_current"
		statements = statements || mysql.Text(row[0]) == "events_statements_current"
		return nil
	})
	r.statement = threadsStatement(waits, c.Server.AtLeast(80000, fleet.Never), maxActivityText)
	if err == nil && !statements {
		r.gaps["statements"] = fleet.Trouble{What: "the last statement of a blocking session", Why: "the consumer events_statements_current of performance_schema is off",
			Remedy: "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME = 'events_statements_current'"}
	}
	return r, err
}

// activityLimit is how long the server may work on one question of a reading.
const activityLimit = 2 * time.Second

// threadsStatement is the question for the active sessions. performance_schema.threads takes no lock that sessions need
// (MySQL manual, "The threads Table"); events_statements_current is found by the thread's number. The innermost statement of a
// stored program is the one that waits. MySQL 5.7 has no index there, so that a join with 500 sessions costs it 26 ms, and tells no
// digest while a statement runs: there the thread's row has to do.
func threadsStatement(waits, statements bool, text int) string {
	event, join := "NULL", ""
	if waits {
		event = "w.EVENT_NAME"
		join = " LEFT JOIN performance_schema.events_waits_current w ON w.THREAD_ID = t.THREAD_ID AND w.END_EVENT_ID IS NULL"
	}
	const where = `
 WHERE t.TYPE = 'FOREGROUND' AND t.PROCESSLIST_COMMAND IN ('Query', 'Execute', 'Prepare', 'Fetch') AND t.PROCESSLIST_ID <> CONNECTION_ID() LIMIT %d`
	if !statements {
		return fmt.Sprintf(`SELECT /* risso: what sessions run and wait for */ t.PROCESSLIST_ID, t.PROCESSLIST_USER, t.PROCESSLIST_HOST, t.PROCESSLIST_DB, t.PROCESSLIST_COMMAND, t.PROCESSLIST_STATE,
 LEFT(t.PROCESSLIST_INFO, %d), NULL, 0, t.PROCESSLIST_TIME, NULL, 0, NULL, %s FROM performance_schema.threads t%s`+where, text, event, join, maxSessions+1)
	}
	return fmt.Sprintf(`SELECT /* risso: what sessions run and wait for */ t.PROCESSLIST_ID, t.PROCESSLIST_USER, t.PROCESSLIST_HOST, t.PROCESSLIST_DB, t.PROCESSLIST_COMMAND, t.PROCESSLIST_STATE,
 LEFT(COALESCE(t.PROCESSLIST_INFO, s.SQL_TEXT), %d), s.DIGEST_TEXT, s.EVENT_ID, COALESCE(s.TIMER_WAIT / 1e12, t.PROCESSLIST_TIME), s.EVENT_NAME, s.NESTING_EVENT_LEVEL, s.SQL_TEXT, %s
 FROM performance_schema.threads t LEFT JOIN performance_schema.events_statements_current s ON s.THREAD_ID = t.THREAD_ID AND s.END_EVENT_ID IS NULL%s`+where, text, event, join, maxSessions+1)
}

// processListStatement is the same where performance_schema tells less or is off: MariaDB has the process list's time in
// milliseconds and the number of each statement (https://mariadb.com/kb/en/information-schema-processlist-table/).
func processListStatement(s mysql.Server, text int) string {
	run, seconds := "0", "TIME"
	if s.MariaDB() {
		run, seconds = "QUERY_ID", "TIME_MS / 1000"
	}
	return fmt.Sprintf(`SELECT /* risso: what sessions run and wait for */ ID, USER, HOST, DB, COMMAND, STATE, LEFT(INFO, %d), NULL, %s, %s, NULL, 0, NULL, NULL
 FROM information_schema.PROCESSLIST WHERE COMMAND IN ('Query', 'Execute', 'Prepare', 'Fetch') AND ID <> CONNECTION_ID() AND INFO IS NOT NULL LIMIT %d`, text, run, seconds, maxSessions+1)
}

// Read returns the sessions that run a statement; those of Risso are left out. more reports whether there were others for which there
// was no room.
func (r *ActivityReader) Read(ctx context.Context) (list []Session, more bool, err error) {
	var brief []Session
	if r.info {
		if r.whole--; r.whole < 0 {
			if brief, err = r.brief(ctx); err != nil {
				return nil, false, err
			}
			if len(brief) == 0 {
				r.c.Traffic().NoteDoing(nil, nil)
				return nil, false, nil
			}
		}
	}
	if list, more, err = r.running(ctx); err != nil {
		return nil, more, err
	}
	list = withBrief(list, brief)
	if len(list) > 0 || len(brief) > 0 {
		r.whole = wholeFor
	}
	if len(list) > 0 {
		if err := r.blockers(ctx, list); err != nil {
			return nil, more, err
		}
	}
	if !more {
		noteDoing(r.c.Traffic(), list)
	}
	return list, more, nil
}

// noteDoing remembers what was found, so that the reader of numbers does not ask for the same.
func noteDoing(t *mysql.Traffic, list []Session) {
	counts := make(map[string]float64, 4)
	for i := range list {
		counts[countedAs(list[i].Wait)]++
	}
	t.NoteDoing(counts, slices.Clone(list))
}

// wholeFor is how many readings after one that found a session ask for everything together: what takes less time than
// there is between two queries would else be found by both, or by neither.
const wholeFor = 30

// brief returns the sessions that run a statement, with the beginning of the statement, if mostly none does. A table of
// information_schema is filled with a row for each connection before its WHERE drops them, which costs MariaDB 3.4
// milliseconds for a thousand that sleep; SHOW PROCESSLIST costs 0.3 (10.11, 1,000 connections; the client 0.2 for their rows).
func (r *ActivityReader) brief(ctx context.Context) (list []Session, err error) {
	atEnd := commitsAtQueryEnd(r.c.Server)
	rows := 0
	err = r.c.Query(ctx, "SHOW /* risso: does any session run a statement? */ PROCESSLIST", func(row []sqldriver.Value) error {
		rows++
		command, info := row[4], mysql.Text(row[7])
		if info == "" || isOwnText(info) || !runs(mysql.Text(command)) {
			return nil
		}
		// Columns: Id, User, Host, db, Command, Time, State, Info.
		list = append(list, sessionOf([]sqldriver.Value{row[0], row[1], row[2], row[3], command, row[6], row[7], nil, int64(0), row[5], nil, int64(0), nil, nil}, atEnd))
		return nil
	})
	if rows > briefMost {
		r.whole = wholeFor
	}
	return list, err
}

// Limits of a brief look.
const (
	briefText = 96   // bytes: SHOW PROCESSLIST cuts a statement at 100, maybe within a character (MySQL manual, "SHOW PROCESSLIST Statement")
	briefMost = 4000 // connections; of more the rows would be a burden to the network
)

// runs reports whether a session's command is a statement.
func runs(command string) bool {
	switch command {
	case "Query", "Execute", "Prepare", "Fetch":
		return true
	}
	return false
}

// withBrief adds the sessions of a brief look whose statements were over a moment later; those of which only a part is known
// are left out.
func withBrief(list, brief []Session) []Session {
	for _, b := range brief {
		if len(b.Text) <= briefText && !slices.ContainsFunc(list, func(s Session) bool { return s.ID == b.ID }) {
			list = append(list, b)
		}
	}
	return list
}

// running asks for the sessions that run a statement, with all that the server tells of them but who blocks them.
func (r *ActivityReader) running(ctx context.Context) (list []Session, more bool, err error) {
	return runningSessions(ctx, r.c, r.statement)
}

func runningSessions(ctx context.Context, c *mysql.Conn, statement string) (list []Session, more bool, err error) {
	at := map[int64]int{}
	rows := 0
	atEnd := commitsAtQueryEnd(c.Server)
	err = c.Query(ctx, statement, func(row []sqldriver.Value) error {
		if rows++; rows > maxSessions {
			more = true
			return nil
		}
		s := sessionOf(row, atEnd)
		if s.Text == "" || isOwnText(s.Text) || isOwnText(mysql.Text(row[12])) {
			return nil
		}
		i, seen := at[s.ID]
		switch {
		case !seen:
			at[s.ID] = len(list)
			list = append(list, s)
		case s.level > list[i].level || s.level == list[i].level && list[i].Wait == waitRunning: // a deeper statement, or another wait of the same
			list[i] = s
		}
		return nil
	})
	return list, more, err
}

// isOwnText reports whether a statement is one that Risso sent: all of them carry its mark.
func isOwnText(s string) bool { return strings.Contains(s[:min(len(s), 200)], "/* risso") }

func sessionOf(row []sqldriver.Value, commitAtQueryEnd bool) Session {
	s := Session{ID: whole(row[0]), User: mysql.Text(row[1]), Host: mysql.Text(row[2]), Schema: mysql.Text(row[3]), State: mysql.Text(row[5]), Text: mysql.Text(row[6]), DigestText: mysql.Text(row[7]), Run: whole(row[8]), level: whole(row[11])}
	s.Seconds, _ = number(row[9])
	command, event := mysql.Text(row[4]), mysql.Text(row[10])
	s.Prepared = command == "Execute" || event == "statement/sql/execute_sql"
	if inner := mysql.Text(row[12]); s.level > 0 && inner != "" { // the process list shows the outermost statement
		s.Text = inner
	}
	if host, _, err := net.SplitHostPort(s.Host); err == nil {
		s.Host = host
	}
	s.Wait = statementWait(s.State, mysql.Text(row[13]), commitAtQueryEnd)
	return s
}

// statementWait tells the class of a thread's state, and where the state says nothing that of its wait event.
// (https://dev.mysql.com/doc/refman/9.4/en/general-thread-states.html, "Performance Schema Wait Event Tables")
func statementWait(state, event string, commitAtQueryEnd bool) string {
	low := strings.ToLower(state)
	for _, w := range tmpDiskStates {
		if strings.Contains(low, w) {
			return waitTmpDisk
		}
	}
	class := classOfState(state, commitAtQueryEnd)
	if class != waitRunning {
		return class
	}
	for _, e := range classOfEvent {
		if strings.HasPrefix(event, e.prefix) {
			return e.class
		}
	}
	return class
}

// tmpDiskStates are the states in which a statement moves or copies an internal temporary table on disk.
var tmpDiskStates = []string{"converting heap to ", "copying to tmp table on disk"}

// classOfEvent returns the class of a wait event. Waits for a table's handler include all that the engine does.
var classOfEvent = []struct{ prefix, class string }{
	{"wait/io/file/", "io"},
	{"wait/io/socket/", "network"},
	{"wait/io/redo_log_flush", "commit"},
	{"wait/lock/metadata/", waitMetadata},
	{"wait/lock/table/", "table_lock"},
}

// lockPair is a session that waits and one that holds what it waits for, by connection.
type lockPair struct{ waits, holds int64 }

// blockers finds who waits for row locks, which no state shows, and who blocks whom.
func (r *ActivityReader) blockers(ctx context.Context, list []Session) error {
	pairs, err := r.rowLockPairs(ctx, list)
	if err != nil {
		return err
	}
	block(list, pairs, waitRowLock)
	if slices.ContainsFunc(list, waitsForServerLock) && hasMetadataLocks(r.c.Server) { // MySQL 5.7 and MariaDB have the instrument off by default: then the answer is empty
		var held, queued []lockPair
		err := r.refusable(ctx, "metadata locks", metadataLockPairs(r.c.Server), func(row []sqldriver.Value) error {
			if w, ok := lockPairOf(row); ok && w.Queued {
				queued = append(queued, lockPair{w.Waiter, w.Blocker.ID})
			} else if ok {
				held = append(held, lockPair{w.Waiter, w.Blocker.ID})
			}
			return nil
		})
		if err != nil {
			return err
		}
		block(list, append(held, queued...), waitMetadata)
	}
	return r.lastStatements(ctx, list)
}

// rowLockPairs are those who wait for row locks, with whom they wait for. MySQL 8.0 and newer tell at once who waits; elsewhere InnoDB's
// counter of current waits is asked before.
func (r *ActivityReader) rowLockPairs(ctx context.Context, list []Session) (pairs []lockPair, err error) {
	const what = "row locks"
	if tellsDataLocks(r.c.Server) {
		return r.dataLockPairs(ctx, what)
	}
	locks := 0.0
	err = r.optional(ctx, what, "the account needs PROCESS", r.c.Server.Grant("PROCESS"), "SELECT /* risso: do sessions wait for row locks? */ COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'lock_row_lock_current_waits'", func(row []sqldriver.Value) error {
		locks, _ = number(row[0])
		return nil
	})
	if err != nil || locks == 0 && !slices.ContainsFunc(list, mayWaitUnseen) {
		return nil, err
	}
	err = r.refusable(ctx, what, rowLockPairs(r.c.Server), func(row []sqldriver.Value) error {
		pairs = append(pairs, lockPair{whole(row[0]), whole(row[1])})
		return nil
	})
	return pairs, err
}

// dataLockPairs asks which transactions wait for which, and if some do, whose they are: a join of both is made of INNODB_TRX twice.
func (r *ActivityReader) dataLockPairs(ctx context.Context, what string) (pairs []lockPair, err error) {
	var waits [][2]string
	err = r.refusable(ctx, what, fmt.Sprintf("SELECT /* risso: which transactions wait for which? */ DISTINCT REQUESTING_ENGINE_TRANSACTION_ID, BLOCKING_ENGINE_TRANSACTION_ID FROM performance_schema.data_lock_waits LIMIT %d", maxLockPairs), func(row []sqldriver.Value) error {
		waits = append(waits, [2]string{mysql.Text(row[0]), mysql.Text(row[1])})
		return nil
	})
	if err != nil || len(waits) == 0 {
		return nil, err
	}
	owner := map[string]int64{}
	err = r.refusable(ctx, what, "SELECT /* risso: whose are transactions? */ trx_id, trx_mysql_thread_id FROM information_schema.INNODB_TRX", func(row []sqldriver.Value) error {
		owner[mysql.Text(row[0])] = whole(row[1])
		return nil
	})
	for _, w := range waits {
		waiter, known := owner[w[0]]
		holder, alsoKnown := owner[w[1]]
		if known && alsoKnown { // else it has just ended
			pairs = append(pairs, lockPair{waiter, holder})
		}
	}
	return pairs, err
}

// mayWaitUnseen reports whether a session may wait for InnoDB's lock of a table or of its AUTO_INCREMENT value, which no state shows and
// InnoDB does not count among current waits: what writes and makes no progress.
func mayWaitUnseen(s Session) bool {
	if s.Wait != waitRunning || s.Seconds < 1 {
		return false
	}
	first, _ := sqltext.NamesIn(s.Text[:min(len(s.Text), 200)])
	return !slices.Contains([]string{"select", "with", "show", "explain", "analyze", "do", "set"}, first)
}

// waitsForServerLock reports whether the state of a session shows a wait for a lock that is not InnoDB's.
func waitsForServerLock(s Session) bool {
	return s.Wait == waitMetadata || slices.ContainsFunc(stuckStates, func(k stuckState) bool { return k.like == s.State })
}

// block notes for each session that waits the one it waits for: one that does not wait itself before one that does. The class of the
// wait is that of the state, where that tells one.
func block(list []Session, pairs []lockPair, class string) {
	at, waiting := make(map[int64]*Session, len(list)), map[int64]bool{}
	for i := range list {
		at[list[i].ID] = &list[i]
	}
	for _, p := range pairs {
		waiting[p.waits] = true
	}
	done := map[int64]bool{}
	for _, p := range pairs {
		s := at[p.waits]
		if s == nil || done[p.waits] || waiting[p.holds] && s.BlockerID != 0 {
			continue
		}
		if class == waitRowLock || s.Wait == waitRunning {
			s.Wait = class
		}
		done[p.waits] = !waiting[p.holds]
		s.BlockerID, s.BlockerText = p.holds, ""
		if b := at[p.holds]; b != nil {
			if s.BlockerText = b.DigestText; s.BlockerText == "" {
				s.BlockerText = b.Text
			}
		}
	}
}

// refusable asks who waits for whom.
func (r *ActivityReader) refusable(ctx context.Context, what, statement string, f func(row []sqldriver.Value) error) error {
	return r.optional(ctx, what, "the account may not see who blocks whom", r.c.Server.Grant("PROCESS")+"; "+r.c.Server.GrantPerformanceSchema(), statement, f)
}

// optional asks what may be refused; then it is left out for a while, and Gaps says so.
func (r *ActivityReader) optional(ctx context.Context, what, reason, remedy, statement string, f func(row []sqldriver.Value) error) error {
	if r.refused[what] > 0 {
		r.refused[what]--
		return nil
	}
	err := r.c.Query(ctx, statement, f)
	if err == nil {
		delete(r.gaps, what)
		return nil
	}
	switch mysql.ClassOf(err) {
	case mysql.ClassPrivilege, mysql.ClassMissing:
		r.refused[what] = refusedFor
		r.gaps[what] = fleet.Trouble{What: "who waits for " + what, Why: reason, Remedy: remedy}
		return nil
	}
	return err
}

// Gaps are what the reader could not find out.
func (r *ActivityReader) Gaps() []fleet.Trouble {
	list := []fleet.Trouble{}
	for _, what := range []string{"row locks", "metadata locks", "statements"} {
		if g, ok := r.gaps[what]; ok {
			list = append(list, g)
		}
	}
	return list
}

// lastStatements reads what blocking sessions ran last that run nothing now.
func (r *ActivityReader) lastStatements(ctx context.Context, list []Session) error {
	var ids []string
	for i := range list {
		if id := strconv.FormatInt(list[i].BlockerID, 10); list[i].BlockerID != 0 && list[i].BlockerText == "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 || !r.c.Server.PerformanceSchema {
		return nil
	}
	found := map[int64]string{}
	statement := func(in string) string {
		return `SELECT /* risso: what blocking sessions ran last */ t.PROCESSLIST_ID, COALESCE(s.DIGEST_TEXT, s.SQL_TEXT) FROM performance_schema.threads t
 LEFT JOIN performance_schema.events_statements_current s ON s.THREAD_ID = t.THREAD_ID WHERE t.PROCESSLIST_ID IN (` + in + `)`
	}
	r.c.Traffic().Note(statement("0")) // its classes, without the numbers
	r.c.Traffic().Note(statement("0, 0"))
	err := r.c.QuietQuery(ctx, statement(strings.Join(ids, ", ")), func(row []sqldriver.Value) error {
		if last := mysql.Text(row[1]); !isOwnText(last) {
			found[whole(row[0])] = last
		}
		return nil
	})
	for i := range list {
		s := &list[i]
		if last, ok := found[s.BlockerID]; ok && s.BlockerText == "" {
			s.BlockerText = last
		}
	}
	return err
}

// StillRuns reports whether a session still runs what it ran when it was seen.
func (r *ActivityReader) StillRuns(ctx context.Context, s Session) (bool, error) {
	q := `SELECT /* risso: does it still run? */ s.EVENT_ID FROM performance_schema.threads t JOIN performance_schema.events_statements_current s ON s.THREAD_ID = t.THREAD_ID
 WHERE s.END_EVENT_ID IS NULL AND t.PROCESSLIST_ID = `
	if r.info {
		if !r.c.Server.MariaDB() {
			return false, nil
		}
		q = "SELECT /* risso: does it still run? */ QUERY_ID FROM information_schema.PROCESSLIST WHERE ID = "
	}
	same := false
	r.c.Traffic().Note(q + "0")
	err := r.c.QuietQuery(ctx, q+strconv.FormatInt(s.ID, 10), func(row []sqldriver.Value) error {
		same = same || whole(row[0]) == s.Run
		return nil
	})
	return same && s.Run != 0, err
}
