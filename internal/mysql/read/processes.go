package read

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"net"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Process is a session of the process list, asleep or not, and its transaction.
type Process struct {
	ID          int64        `json:"id"`
	User        string       `json:"user"`
	Host        string       `json:"host,omitempty"`
	Schema      string       `json:"schema,omitempty"`
	Command     string       `json:"command"` // Sleep: it is idle
	Seconds     float64      `json:"seconds"` // since it entered its current state, or became idle
	State       string       `json:"state,omitempty"`
	Statement   string       `json:"statement,omitempty"`
	Own         bool         `json:"own,omitempty"` // one of Risso's, as far as the server tells
	Transaction *Transaction `json:"transaction,omitempty"`
}

// Limits of a process list.
const (
	maxProcesses     = 20000
	maxProcessText   = 65536
	transactionsMost = 2000
)

// Processes reads all sessions of the server and the open transactions of InnoDB, the oldest first. more reports whether there were
// others for which there was no room. gaps are what the account may not see.
func Processes(ctx context.Context, c *mysql.Conn) (list []Process, open []Transaction, more bool, gaps []fleet.Trouble, err error) {
	own, err := ownSessions(ctx, c)
	if err != nil {
		return nil, nil, false, nil, err
	}
	// Columns: Id, User, Host, db, Command, Time, State, Info, and some more.
	err = c.Query(ctx, "SHOW /* risso: who is there */ FULL PROCESSLIST", func(row []sqldriver.Value) error {
		if len(list) == maxProcesses {
			more = true
			return nil
		}
		p := Process{ID: whole(row[0]), User: mysql.Text(row[1]), Host: mysql.Text(row[2]), Schema: mysql.Text(row[3]), Command: mysql.Text(row[4]), State: mysql.Text(row[6]), Statement: mysql.Text(row[7])}
		p.Seconds, _ = number(row[5])
		p.Own = own[p.ID] || isOwnText(p.Statement)
		p.Statement = p.Statement[:min(len(p.Statement), maxProcessText)]
		if host, _, err := net.SplitHostPort(p.Host); err == nil {
			p.Host = host
		}
		list = append(list, p)
		return nil
	})
	if err != nil {
		return nil, nil, false, nil, err
	}
	gaps, err = allowed(ctx, c, "open transactions", c.Server.Grant("PROCESS"), fmt.Sprintf(`SELECT /* risso: open transactions */ trx_id, trx_mysql_thread_id, `+openSeconds("t")+`, trx_state, trx_rows_modified, trx_rows_locked, trx_tables_locked, trx_isolation_level, LEFT(trx_query, 1024)
 FROM information_schema.INNODB_TRX t ORDER BY trx_started LIMIT %d`, transactionsMost), func(row []sqldriver.Value) error {
		t := Transaction{Trx: mysql.Text(row[0]), Session: whole(row[1]), State: mysql.Text(row[3]), RowsModified: whole(row[4]), RowsLocked: whole(row[5]), Tables: whole(row[6]), Isolation: mysql.Text(row[7]), Statement: mysql.Text(row[8])}
		t.Seconds, _ = number(row[2])
		open = append(open, t)
		return nil
	})
	if err != nil {
		return nil, nil, false, nil, err
	}
	at := make(map[int64]*Transaction, len(open))
	for i := range open {
		at[open[i].Session] = &open[i]
	}
	for i := range list {
		list[i].Transaction = at[list[i].ID]
	}
	return list, open, more, gaps, nil
}

// ownSessions are the connections that say of themselves that they are Risso's, and this one. Without performance_schema it is only
// this one.
func ownSessions(ctx context.Context, c *mysql.Conn) (map[int64]bool, error) {
	own := map[int64]bool{}
	add := func(row []sqldriver.Value) error {
		own[whole(row[0])] = true
		return nil
	}
	if err := c.Query(ctx, "SELECT /* risso: which session is this? */ CONNECTION_ID()", add); err != nil {
		return nil, err
	}
	if !c.Server.PerformanceSchema {
		return own, nil
	}
	_, err := allowed(ctx, c, "sessions of Risso", c.Server.GrantPerformanceSchema(), `SELECT /* risso: which sessions are Risso's? */ PROCESSLIST_ID FROM performance_schema.session_connect_attrs
 WHERE ATTR_NAME = 'program_name' AND ATTR_VALUE = 'risso'`, add)
	return own, err
}
