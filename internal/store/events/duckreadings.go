//go:build cgo

package events

import (
	"context"
	"database/sql"
	"strings"
)

// createReadings is also for files that were made before this table: it is created if it is missing. It has no key, which
// DuckDB would hold in memory.
const createReadings = `CREATE TABLE IF NOT EXISTS risso_readings (instance VARCHAR NOT NULL, time BIGINT NOT NULL)`

// noteReadings notes which minutes were read; those that are noted stay.
func noteReadings(ctx context.Context, c *sql.Conn, minutes []Minute) error {
	list, first, last := readingsOf(minutes)
	for len(list) > 0 {
		n := min(len(list), rowsAtOnce)
		args := make([]any, 0, 2*n+2)
		for _, r := range list[:n] {
			args = append(args, r.instance, r.time)
		}
		_, err := c.ExecContext(ctx, "INSERT INTO risso_readings SELECT v.instance, v.time FROM (VALUES "+strings.TrimSuffix(strings.Repeat("(?, CAST(? AS BIGINT)), ", n), ", ")+
			") AS v(instance, time) WHERE NOT EXISTS (SELECT 1 FROM risso_readings AS r WHERE r.time BETWEEN ? AND ? AND r.instance = v.instance AND r.time = v.time)", append(args, first, last)...)
		if err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// prepareReadings makes the table where a file was made before it: minutes that hold rows were read.
func (s *embedded) prepareReadings(ctx context.Context) error {
	if _, err := s.db.ExecContext(ctx, createReadings); err != nil {
		return err
	}
	var one int
	if err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 FROM risso_readings LIMIT 1)").Scan(&one); err != nil || one > 0 {
		return err
	}
	_, err := s.db.ExecContext(ctx, "INSERT INTO risso_readings "+readingsOfRows)
	return err
}
