package read

import (
	"context"
	sqldriver "database/sql/driver"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Applied is the transaction that an applier finished last.
type Applied struct {
	Session     int64
	Transaction string
	Seconds     float64 // from its beginning until it was committed, waiting for those before it included
	Retries     int64   // how often it was rolled back and tried again
}

// LastApplied reads what each applier finished last. Only MySQL 8.0.13 and later tell it; of others there is nothing.
func LastApplied(ctx context.Context, c *mysql.Conn) (list []Applied, gaps []fleet.Trouble, err error) {
	if !c.Server.TimesTransactions() || !c.Server.AtLeast(80013, fleet.Never) {
		return nil, nil, nil
	}
	gaps, err = allowed(ctx, c, "what appliers finished last", c.Server.GrantPerformanceSchema(), `SELECT /* risso: how long did the appliers take? */ t.PROCESSLIST_ID, w.LAST_APPLIED_TRANSACTION,
  TIMESTAMPDIFF(MICROSECOND, w.LAST_APPLIED_TRANSACTION_START_APPLY_TIMESTAMP, w.LAST_APPLIED_TRANSACTION_END_APPLY_TIMESTAMP) / 1e6, w.LAST_APPLIED_TRANSACTION_RETRIES_COUNT
  FROM performance_schema.replication_applier_status_by_worker w JOIN performance_schema.threads t ON t.THREAD_ID = w.THREAD_ID WHERE w.LAST_APPLIED_TRANSACTION <> ''`, func(row []sqldriver.Value) error {
		a := Applied{Session: whole(row[0]), Transaction: mysql.Text(row[1]), Retries: whole(row[3])}
		a.Seconds, _ = number(row[2])
		list = append(list, a)
		return nil
	})
	return list, gaps, err
}
