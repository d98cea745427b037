//go:build cgo

package events

import (
	"context"
	"database/sql"
	"fmt"
)

// createActivity makes the table that files of an older Risso have not. It is kept by minute: it is small, because a minute's
// rows are bounded, and is deleted with the minutes.
const createActivity = `CREATE TABLE IF NOT EXISTS risso_activity (instance VARCHAR NOT NULL, time BIGINT NOT NULL, class BIGINT NOT NULL, wait VARCHAR NOT NULL, db VARCHAR NOT NULL,
	account VARCHAR NOT NULL, host VARCHAR NOT NULL, blocker BIGINT NOT NULL, calls BIGINT NOT NULL, seconds DOUBLE NOT NULL)`

// AddActivity stores what sessions were found doing, all in one transaction.
func (s *embedded) AddActivity(ctx context.Context, minutes ...ActivityMinute) (stored int, err error) {
	list, err := checkActivity(minutes)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	err = s.change(ctx, func(ctx context.Context, c *sql.Conn) error {
		fresh, err := freshActivity(list, func(r Range, found func(string, int64)) error {
			rows, err := c.QueryContext(ctx, "SELECT DISTINCT instance, time FROM risso_activity WHERE time >= ? AND time < ?", r.From, r.To)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var instance string
				var time int64
				if err := rows.Scan(&instance, &time); err != nil {
					return err
				}
				found(instance, time)
			}
			return rows.Err()
		})
		if err != nil {
			return err
		}
		stored = len(fresh)
		var rows [][]any
		if err := eachActivity(fresh, func(values ...any) error {
			rows = append(rows, values)
			return nil
		}); err != nil {
			return err
		}
		return insertRows(ctx, c, "risso_activity", rows, "")
	})
	if err != nil {
		return 0, fmt.Errorf("store what sessions do: %w", err)
	}
	return stored, nil
}
