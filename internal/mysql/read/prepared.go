package read

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// PreparedKey tells one prepared statement of a session from all others as long as the server process lives.
type PreparedKey struct{ Object, Statement, Thread, Event uint64 }

// Prepared is a statement that a client prepared by the binary protocol and has not closed, with what its executions cost so far.
// Of Cost only the counters are set.
type Prepared struct {
	Key  PreparedKey
	Text string // with ? for its parameters
	Cut  bool   // the server kept only its beginning
	Cost fleet.Cost
}

// PreparedCounting says where a server counts executions of prepared statements by the binary protocol.
type PreparedCounting struct {
	Digests       bool // in the table of digests, as EXECUTE SELECT …: there is nothing to add
	Instances     bool // in performance_schema.prepared_statements_instances, and not in the table of digests
	fleet.Trouble      // why neither counts them, and how to fix it
}

// preparedTextLimit is how many bytes of a prepared statement servers keep (COL_INFO_SIZE in storage/perfschema), seen on MySQL
// 5.7, 8.0, 9.7 and MariaDB 10.11.
const preparedTextLimit = 1024

// preparedTable has named rows for PREPARE by the text protocol; their executions are statements with their own digest. The
// name is compared by an expression: MySQL 8.0.15 finds nothing for IS NULL, for which it takes the table's index.
const preparedTable = "performance_schema.prepared_statements_instances"

// hasPreparedInstances reports whether there is that table (MySQL 5.7.4; MariaDB 10.5.2).
func hasPreparedInstances(s mysql.Server) bool {
	return s.PerformanceSchema && (s.MariaDB() && s.Number >= 100502 || s.AtLeast(50704, fleet.Never))
}

// CountsPrepared finds out where the server counts executions of prepared statements: it runs one and checks whether the table of
// digests shows it. MySQL 9.7 counts them there; MySQL 5.7 and 8.0.15 and MariaDB 10.11 do not.
func CountsPrepared(ctx context.Context, c *mysql.Conn) (PreparedCounting, error) {
	on, err := executeOne(ctx, c)
	if err != nil {
		return PreparedCounting{}, err
	}
	seen, full := 0.0, 0.0
	err = c.Query(ctx, "SELECT /* risso: are executions of prepared statements among the classes? */ COALESCE(SUM(DIGEST_TEXT LIKE 'EXECUTE SELECT %' OR DIGEST_TEXT LIKE 'EXECUTE INSERT %' OR DIGEST_TEXT LIKE 'EXECUTE UPDATE %'), 0), COALESCE(SUM(DIGEST IS NULL AND COUNT_STAR > 0), 0) FROM "+digestTable, func(row []sqldriver.Value) error {
		seen, _ = number(row[0])
		full, _ = number(row[1])
		return nil
	})
	switch {
	case err != nil:
		return PreparedCounting{}, err
	case seen > 0 || c.Server.AtLeast(90000, fleet.Never) && (full > 0 || !on): // the one that was run found no room, or could not be run
		return PreparedCounting{Digests: true}, nil
	case !hasPreparedInstances(c.Server):
		return PreparedCounting{Trouble: fleet.Trouble{Why: "this server does not count executions of prepared statements; MySQL 5.7.4 and MariaDB 10.5.2 and newer do"}}, nil
	}
	off := false
	err = c.Query(ctx, "SELECT /* risso: are prepared statements counted? */ NAME FROM performance_schema.setup_consumers WHERE NAME = 'events_statements_current' AND ENABLED = 'NO'", func([]sqldriver.Value) error {
		off = true
		return nil
	})
	if off {
		return PreparedCounting{Trouble: fleet.Trouble{Why: "this server counts executions of prepared statements only while the consumer events_statements_current of performance_schema is on",
			Remedy: "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME = 'events_statements_current'"}}, err
	}
	return PreparedCounting{Instances: err == nil}, err
}

// executeOne runs a prepared statement; false when the server has no room for it (max_prepared_stmt_count).
func executeOne(ctx context.Context, c *mysql.Conn) (bool, error) {
	const statement = "SELECT /* risso: is this execution counted? */ ? AS risso_prepared"
	for _, s := range []string{statement, "PREPARE " + statement, "EXECUTE " + statement, "DEALLOCATE " + statement} { // as servers tell it
		c.Traffic().Note(s)
	}
	prepared, err := c.ExecutePrepared(ctx, statement, 1)
	if !prepared {
		switch mysql.ClassOf(err) {
		case mysql.ClassDropped, mysql.ClassTimeout, mysql.ClassRefused:
			return false, err
		}
		return false, nil
	}
	return true, err
}

// PreparedStatements reads what statements cost that clients prepared by the binary protocol, have executed, and not closed: at most
// limit, the heaviest, when ranked is set, else any; cut says that there are more. p is valid during the call only. 10,000 of them
// cost the server 13 ms (MariaDB 10.11, MySQL 8.0) or 19 ms (MySQL 5.7) of processor time, 20 to 29 ms when they are ranked.
func PreparedStatements(ctx context.Context, c *mysql.Conn, limit int, ranked bool, f func(p *Prepared) error) (cut bool, err error) {
	order := ""
	if ranked {
		order = " ORDER BY SUM_TIMER_EXECUTE DESC"
	}
	var p Prepared
	n := 0
	err = c.Query(ctx, `SELECT /* risso: what prepared statements cost */ OBJECT_INSTANCE_BEGIN, STATEMENT_ID, OWNER_THREAD_ID, OWNER_EVENT_ID, SQL_TEXT, COUNT_EXECUTE, SUM_TIMER_EXECUTE, MAX_TIMER_EXECUTE, SUM_LOCK_TIME,
 SUM_ERRORS, SUM_WARNINGS, SUM_ROWS_AFFECTED, SUM_ROWS_SENT, SUM_ROWS_EXAMINED, SUM_CREATED_TMP_DISK_TABLES, SUM_CREATED_TMP_TABLES, SUM_SORT_ROWS, SUM_NO_INDEX_USED
 FROM `+preparedTable+` WHERE COALESCE(STATEMENT_NAME, '') = '' AND COUNT_EXECUTE > 0`+order+fmt.Sprintf(" LIMIT %d", limit+1), func(row []sqldriver.Value) error {
		if n++; n > limit {
			cut = true
			return nil
		}
		p = Prepared{Text: mysql.Text(row[4])}
		p.Cut = len(p.Text) >= preparedTextLimit
		for i, into := range []*uint64{&p.Key.Object, &p.Key.Statement, &p.Key.Thread, &p.Key.Event} {
			*into, _ = strconv.ParseUint(mysql.Text(row[i]), 10, 64) // an absent one is 0
		}
		d := &p.Cost
		for i, into := range []*int64{5: &d.Calls, 9: &d.Errors, 10: &d.Warnings, 11: &d.RowsAffected, 12: &d.RowsSent, 13: &d.RowsExamined, 14: &d.TmpDiskTables, 15: &d.TmpTables, 16: &d.SortRows, 17: &d.NoIndex} {
			if into != nil {
				*into = whole(row[i])
			}
		}
		for i, into := range []*float64{6: &d.Seconds, 7: &d.MaxSeconds, 8: &d.LockSeconds} {
			if into != nil {
				v, _ := number(row[i])
				*into = v * picosecond
			}
		}
		return f(&p)
	})
	return cut, err
}

// PreparedExecutions reads how many statements were executed by the binary protocol since the server started or the table was
// emptied, whatever their outcome (MySQL manual, "Statement Summary Tables"; MariaDB's bulk executions are apart).
func PreparedExecutions(ctx context.Context, c *mysql.Conn) (n int64, err error) {
	err = c.Query(ctx, "SELECT /* risso: executions of prepared statements */ COALESCE(SUM(COUNT_STAR), 0) FROM performance_schema.events_statements_summary_global_by_event_name WHERE EVENT_NAME IN ('statement/com/Execute', 'statement/com/Bulk_execute')", func(row []sqldriver.Value) error {
		n = whole(row[0])
		return nil
	})
	return n, err
}

// PreparedRoom is how much room a server has for prepared statements.
type PreparedRoom struct {
	Lost      int64 // statements that found no room in prepared_statements_instances, since the server started
	Open, Max int64 // prepared statements now, and max_prepared_stmt_count
}

// PreparedRoomOf reads it.
func PreparedRoomOf(ctx context.Context, c *mysql.Conn) (r PreparedRoom, err error) {
	err = c.Query(ctx, "SHOW /* risso: room for prepared statements */ GLOBAL STATUS WHERE Variable_name IN ('Performance_schema_prepared_statements_lost', 'Prepared_stmt_count')", func(row []sqldriver.Value) error {
		v := whole(row[1])
		if strings.EqualFold(mysql.Text(row[0]), "Prepared_stmt_count") {
			r.Open = v
		} else {
			r.Lost = v
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	err = c.Query(ctx, "SELECT /* risso: room for prepared statements */ @@GLOBAL.max_prepared_stmt_count", func(row []sqldriver.Value) error {
		r.Max = whole(row[0])
		return nil
	})
	return r, err
}

// Owner is the session of a thread.
type Owner struct{ User, Host, Schema string }

// Owners reads the sessions of threads, by THREAD_ID; Schema is the default schema that the session has now.
func Owners(ctx context.Context, c *mysql.Conn) (map[uint64]Owner, error) {
	out := map[uint64]Owner{}
	err := c.Query(ctx, "SELECT /* risso: who prepared statements */ THREAD_ID, PROCESSLIST_USER, PROCESSLIST_HOST, PROCESSLIST_DB FROM performance_schema.threads WHERE TYPE = 'FOREGROUND' AND PROCESSLIST_USER IS NOT NULL", func(row []sqldriver.Value) error {
		id, err := strconv.ParseUint(mysql.Text(row[0]), 10, 64)
		out[id] = Owner{User: mysql.Text(row[1]), Host: mysql.Text(row[2]), Schema: mysql.Text(row[3])}
		return err
	})
	return out, err
}
