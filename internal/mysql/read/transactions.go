package read

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Transaction is an open transaction of InnoDB.
type Transaction struct {
	Session      int64   `json:"session"`                 // connection; 0: none has it, as with prepared XA transactions
	Trx          string  `json:"trx"`                     // number of the transaction
	Seconds      float64 `json:"seconds"`                 // since it began
	State        string  `json:"state"`                   // RUNNING, LOCK WAIT, ROLLING BACK, COMMITTING
	RowsLocked   int64   `json:"rows_locked,omitempty"`   // as InnoDB counts them
	RowsModified int64   `json:"rows_modified,omitempty"` // changes of rows that are undone if it is rolled back
	Tables       int64   `json:"tables,omitempty"`        // that it has locks in; only in process lists
	Isolation    string  `json:"isolation,omitempty"`     // only there
	Statement    string  `json:"statement,omitempty"`     // only there

	// Of the session, where it runs nothing and the transaction has been open for a second: who it is, and what it ran last.
	Idle *Blocker `json:"-"`
}

// transactionReader reads the open transactions, and who those are that are idle in one.
type transactionReader struct {
	rest time.Time         // they are not asked for before
	read bool              // they were read at this tick
	last []Transaction     // as they were read last
	idle map[int64]Blocker // that were described
	at   int               // readings until they are described anew
}

// Limits of a reading of transactions.
const (
	maxTransactions = 500
	maxIdle         = 50 // sessions that are described
	idleEvery       = 5  // readings between two descriptions of the same sessions
)

func (r *transactionReader) forget() { *r = transactionReader{} }

// transactionsDue holds back the question for a while where it was dear: InnoDB holds a latch for a part of it.
func (r *Reader) transactionsDue(mysql.Server) bool {
	r.Transactions, r.open.read = nil, false
	return !time.Now().Before(r.open.rest)
}

// lockWait is the state of a transaction that waits for a lock.
const lockWait = "LOCK WAIT"

// transactionsStatement asks for the open transactions, the oldest first.
func transactionsStatement() string {
	return fmt.Sprintf("SELECT /* risso: open transactions */ t.trx_mysql_thread_id, t.trx_id, %s, t.trx_state, t.trx_rows_locked, t.trx_rows_modified FROM information_schema.INNODB_TRX t ORDER BY t.trx_started LIMIT %d", openSeconds("t"), maxTransactions)
}

func transactionOf(row []sqldriver.Value) Transaction {
	t := Transaction{Session: whole(row[0]), Trx: mysql.Text(row[1]), State: mysql.Text(row[3]), RowsLocked: whole(row[4]), RowsModified: whole(row[5])}
	t.Seconds, _ = number(row[2])
	return t
}

// transactionsNow reads the open transactions, as far as the account may.
func transactionsNow(ctx context.Context, c *mysql.Conn) (list []Transaction, gaps []fleet.Trouble, err error) {
	gaps, err = allowed(ctx, c, "who holds a row lock", c.Server.Grant("PROCESS"), transactionsStatement(), func(row []sqldriver.Value) error {
		list = append(list, transactionOf(row))
		return nil
	})
	return list, gaps, err
}

func (r *Reader) readTransactions(ctx context.Context, c *mysql.Conn) error {
	asked := time.Now()
	err := c.Query(ctx, transactionsStatement(), func(row []sqldriver.Value) error {
		r.Transactions = append(r.Transactions, transactionOf(row))
		return nil
	})
	r.open.read = err == nil
	if took := time.Since(asked); took > time.Second/lockShare {
		r.open.rest = asked.Add(took * lockShare)
	}
	if err == nil && len(r.Transactions) > 0 {
		err = r.describeIdle(ctx, c)
	}
	r.open.last = r.Transactions
	return err
}

// describeIdle says who the sessions are that run nothing and have had a transaction open for a second. What is known of them is asked for
// again every few seconds: where performance_schema is off, the server makes a row for each connection to tell it.
func (r *Reader) describeIdle(ctx context.Context, c *mysql.Conn) error {
	running, o := r.waits.sessions, &r.open
	var ids []int64
	unknown := false
	for _, t := range r.Transactions {
		if t.Session > 0 && t.Seconds >= 1 && len(ids) < maxIdle && !slices.ContainsFunc(running, func(s Session) bool { return s.ID == t.Session }) {
			_, known := o.idle[t.Session]
			unknown = unknown || !known
			ids = append(ids, t.Session)
		}
	}
	if len(ids) == 0 {
		o.idle = nil
		return nil
	}
	if o.at--; unknown || o.at <= 0 {
		look := sessionLook{c: c}
		found, _, err := look.doing(ctx, ids)
		if err != nil {
			return err
		}
		o.idle, o.at = found, idleEvery
		for _, id := range ids { // one that is gone by now is not asked for each second
			if o.idle[id].ID == 0 {
				o.idle[id] = Blocker{}
			}
		}
	}
	for i := range r.Transactions {
		if b, ok := o.idle[r.Transactions[i].Session]; ok && b.ID != 0 {
			b.Open = r.Transactions[i].Seconds
			r.Transactions[i].Idle = &b
		}
	}
	return nil
}

// engineDue says whether InnoDB's own report is to be read: somebody wants it, or there was a deadlock since the last reading.
func (r *Reader) engineDue(mysql.Server) bool {
	n, ok := r.countedDeadlocks()
	r.Deadlocked = ok && r.deadlocks >= 0 && n > r.deadlocks
	if ok {
		r.deadlocks = n
	}
	due := r.WantEngine || r.Deadlocked
	r.WantEngine = false
	return due
}

// countedDeadlocks is how many deadlocks the server has counted.
func (r *Reader) countedDeadlocks() (float64, bool) {
	for _, key := range []string{"mysql_global_status_innodb_deadlocks", lockDeadlocks} {
		if v, ok := r.Sample.Value(key); ok {
			return v, true
		}
	}
	return 0, false
}

// lockDeadlocks is InnoDB's own counter.
const lockDeadlocks = "mysql_info_schema_innodb_metrics_lock_lock_deadlocks_total"

// maxEngine bounds what is read of InnoDB's report.
const maxEngine = 1 << 20

func (r *Reader) readEngine(ctx context.Context, c *mysql.Conn) error {
	return c.Query(ctx, "SHOW /* risso: the latest deadlock */ ENGINE INNODB STATUS", func(row []sqldriver.Value) error {
		text := mysql.Text(row[2])
		r.Engine = strings.Clone(text[:min(len(text), maxEngine)])
		return nil
	})
}
