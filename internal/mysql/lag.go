package mysql

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Lag is how far a replica is behind, beyond the delay that it is told to keep: the most of its channels, and negative when one
// of them does not run. known is false where the server replicates from nobody.
func (c *Conn) Lag(ctx context.Context) (lag time.Duration, known bool, err error) {
	rows, err := c.Maps(ctx, c.Server.ReplicaStatusStatement())
	if err != nil {
		return 0, false, fmt.Errorf("ask how far the replica is: %w", err)
	}
	for _, row := range rows {
		text, there := row["Seconds_Behind_Master"]
		if !there {
			text, there = row["Seconds_Behind_Source"]
		}
		if !there {
			return -1, true, nil // NULL: a thread of it does not run
		}
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, false, fmt.Errorf("%q is not a lag", text)
		}
		delay, _ := strconv.ParseInt(row["SQL_Delay"], 10, 64)
		lag = max(lag, time.Duration(seconds-delay)*time.Second)
	}
	return lag, len(rows) > 0, nil
}
