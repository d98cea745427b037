package read

import (
	"context"
	sqldriver "database/sql/driver"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// ClockSkew is the metric of by how many seconds a server's clock is ahead of this machine's.
const ClockSkew = "risso_clock_skew_seconds"

// clockRoundTrip is how long an answer may take to say something about a clock.
const clockRoundTrip = time.Second

// readClock compares the server's clock with this machine's. The server looked at its clock some time between question and answer; what lies
// within that is no difference.
func (r *Reader) readClock(ctx context.Context, c *mysql.Conn) error {
	var theirs time.Time
	asked := time.Now()
	err := c.Query(ctx, "SELECT /* risso: what time is it? */ TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))", func(row []sqldriver.Value) error {
		theirs = time.UnixMicro(whole(row[0]))
		return nil
	})
	told := time.Now()
	if err != nil || told.Sub(asked) > clockRoundTrip {
		return err
	}
	skew := 0.0
	switch {
	case theirs.Before(asked):
		skew = theirs.Sub(asked.Round(0)).Seconds()
	case theirs.After(told):
		skew = theirs.Sub(told.Round(0)).Seconds()
	}
	r.Sample.Values[r.Sample.Position(fleet.Metric{Name: ClockSkew, Unit: "seconds", Help: "by how much the server's clock is ahead of that of Risso's machine, at the least", Source: "UTC_TIMESTAMP(6)"})] = skew
	return nil
}
