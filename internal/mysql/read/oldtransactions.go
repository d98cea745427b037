package read

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/mysql"
)

// OldTransaction is one that has been open for long, whose it is, and what it holds.
type OldTransaction struct {
	Session  Blocker // its Open is the age in seconds
	Modified float64 // rows, whose old versions stay in the undo log
	Locked   float64 // rows, about
}

// mostTransactions is how many of the oldest transactions are read.
const mostTransactions = 5

// OldTransactions returns the oldest transactions of clients that have been open for a time, the oldest first.
func OldTransactions(ctx context.Context, c *mysql.Conn, age time.Duration) ([]OldTransaction, error) {
	var list []OldTransaction
	err := c.Query(ctx, fmt.Sprintf("SELECT /* risso: old transactions */ * FROM (SELECT t.trx_mysql_thread_id, %s AS age, t.trx_rows_modified, t.trx_rows_locked FROM information_schema.INNODB_TRX t WHERE t.trx_mysql_thread_id > 0) a"+
		" WHERE age >= %d ORDER BY age DESC LIMIT %d", openSeconds("t"), int64(age/time.Second), mostTransactions), func(row []sqldriver.Value) error {
		x := OldTransaction{Session: Blocker{ID: whole(row[0])}}
		x.Session.Open, _ = number(row[1])
		x.Modified, _ = number(row[2])
		x.Locked, _ = number(row[3])
		list = append(list, x)
		return nil
	})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	waits := make([]LockWait, len(list))
	for i, x := range list {
		waits[i].Blocker = x.Session
	}
	if _, err = describeBlockers(ctx, c, waits); err != nil {
		return nil, err
	}
	var out []OldTransaction
	for i, x := range list {
		x.Session = waits[i].Blocker
		if x.Session.Command != "" && x.Session.User != systemUser && !strings.HasPrefix(x.Session.Command, "Slave") { // it has a client, and is no applier
			out = append(out, x)
		}
	}
	return out, nil
}

// oldTransaction is from which age on transactions are kept at hand; the rules have their own limits above it.
const oldTransaction = time.Minute

func (r *Reader) readOld(ctx context.Context, c *mysql.Conn) (err error) {
	asked := time.Now()
	r.Old, err = OldTransactions(ctx, c, oldTransaction)
	if took := time.Since(asked); took > time.Second/lockShare {
		r.oldRest = asked.Add(took * lockShare)
	}
	return err
}

// oldDue says whether one of the transactions of this tick is old, and bounds what telling whose it is costs, as somebodyWaits does.
func (r *Reader) oldDue(mysql.Server) bool {
	r.Old = nil
	return slices.ContainsFunc(r.Transactions, func(t Transaction) bool { return t.Seconds >= oldTransaction.Seconds() }) && !time.Now().Before(r.oldRest)
}
