package read

import (
	"context"
	sqldriver "database/sql/driver"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// sessionLook is one look at who sessions are and what they do. Without performance_schema it is SHOW PROCESSLIST, read once for all that
// is asked of it: information_schema.PROCESSLIST costs a MariaDB five times as much.
type sessionLook struct {
	c     *mysql.Conn
	list  map[int64]Blocker // of the process list; their statements are cut
	whole map[int64]bool    // those whose statements are not
}

// read reads the process list, unless that was done.
func (l *sessionLook) read(ctx context.Context) error {
	if l.list != nil {
		return nil
	}
	l.list, l.whole = map[int64]Blocker{}, map[int64]bool{}
	return l.c.Query(ctx, "SHOW /* risso: who waits, and who is in the way? */ PROCESSLIST", func(row []sqldriver.Value) error {
		// Columns: Id, User, Host, db, Command, Time, State, Info.
		b := Blocker{ID: whole(row[0]), User: mysql.Text(row[1]), Host: mysql.Text(row[2]), Command: mysql.Text(row[4]), State: mysql.Text(row[6]), Statement: mysql.Text(row[7])}
		b.Seconds, _ = number(row[5])
		l.list[b.ID] = b
		return nil
	})
}

// wholeTexts asks for the statements that the list has cut.
func (l *sessionLook) wholeTexts(ctx context.Context, ids []int64) error {
	var cut []string
	for _, id := range ids {
		if len(l.list[id].Statement) > briefText && !l.whole[id] {
			cut, l.whole[id] = append(cut, strconv.FormatInt(id, 10)), true
		}
	}
	if len(cut) == 0 {
		return nil
	}
	statement := func(in string) string {
		return "SELECT /* risso: their whole statements */ ID, LEFT(INFO, 4096) FROM information_schema.PROCESSLIST WHERE ID IN (" + in + ")"
	}
	l.note(statement)
	return l.c.QuietQuery(ctx, statement(strings.Join(cut, ", ")), func(row []sqldriver.Value) error {
		b := l.list[whole(row[0])]
		if text := mysql.Text(row[1]); strings.HasPrefix(text, b.Statement[:briefText]) { // else it is another one by now
			b.Statement = text
			l.list[b.ID] = b
		}
		return nil
	})
}

// systemUser is what process lists call the threads of the server itself: those of replication, and Galera's.
const systemUser = "system user"

// replicationThread tells by a thread's name in performance_schema that it belongs to replication. There MySQL gives an applier the account of
// the transaction that it applies, and the command Query: by these alone it is a client.
const replicationThread = "t.NAME RLIKE '^thread/(sql/(slave|replica|rpl|wsrep)|group_rpl/)'"

// doing says who sessions are, what they run, or ran last, and since when.
func (l *sessionLook) doing(ctx context.Context, ids []int64) (found map[int64]Blocker, gaps []fleet.Trouble, err error) {
	found = map[int64]Blocker{}
	if !l.c.Server.PerformanceSchema {
		if err := l.read(ctx); err != nil {
			return nil, nil, err
		}
		if err := l.wholeTexts(ctx, ids); err != nil {
			return nil, nil, err
		}
		for _, id := range ids {
			if b, ok := l.list[id]; ok {
				found[id] = b
			}
		}
		return found, nil, nil
	}
	var in []string
	for _, id := range ids {
		in = append(in, strconv.FormatInt(id, 10))
	}
	statement := func(in string) string { // the outermost statement comes last
		return `SELECT /* risso: what blocking sessions do */ t.PROCESSLIST_ID, IF(` + replicationThread + `, '` + systemUser + `', t.PROCESSLIST_USER), IF(` + replicationThread + `, NULL, t.PROCESSLIST_HOST), t.PROCESSLIST_COMMAND, t.PROCESSLIST_STATE, t.PROCESSLIST_TIME, LEFT(COALESCE(t.PROCESSLIST_INFO, s.SQL_TEXT), 4096)
 FROM performance_schema.threads t LEFT JOIN performance_schema.events_statements_current s ON s.THREAD_ID = t.THREAD_ID WHERE t.PROCESSLIST_ID IN (` + in + `) ORDER BY s.NESTING_EVENT_LEVEL DESC`
	}
	l.note(statement)
	gaps, err = allowed(ctx, l.c, "what the blocking session does", l.c.Server.GrantPerformanceSchema(), statement(strings.Join(in, ", ")), func(row []sqldriver.Value) error {
		b := Blocker{ID: whole(row[0]), User: mysql.Text(row[1]), Host: mysql.Text(row[2]), Command: mysql.Text(row[3]), State: mysql.Text(row[4]), Statement: mysql.Text(row[6])}
		b.Seconds, _ = number(row[5])
		found[b.ID] = b
		return nil
	})
	return found, gaps, err
}

// note remembers the classes of a statement about some sessions, without their numbers.
func (l *sessionLook) note(statement func(in string) string) {
	l.c.Traffic().Note(statement("0"))
	l.c.Traffic().Note(statement("0, 0"))
}

// describeBlockers fills in who the blockers are, what they do or did last, and how long their transactions are open.
func (l *sessionLook) describeBlockers(ctx context.Context, list []LockWait, open []Transaction) (gaps []fleet.Trouble, err error) {
	var ids []int64
	for _, w := range list {
		if w.Blocker.ID > 0 && !slices.Contains(ids, w.Blocker.ID) {
			ids = append(ids, w.Blocker.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	found, gaps, err := l.doing(ctx, ids)
	if err != nil {
		return gaps, err
	}
	seconds := map[int64]float64{}
	for _, t := range open {
		seconds[t.Session] = t.Seconds
	}
	for i := range list {
		b := &list[i].Blocker
		since := max(b.Open, seconds[b.ID])
		if f, ok := found[b.ID]; ok {
			*b = f
		}
		b.Open = since
	}
	return gaps, nil
}
