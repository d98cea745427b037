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

// readClock compares the server's clock with this machine's.
func (r *Reader) readClock(ctx context.Context, c *mysql.Conn) error {
	skew, known, err := skewOf(ctx, c)
	if err != nil || !known {
		return err
	}
	r.Sample.Values[r.Sample.Position(fleet.Metric{Name: ClockSkew, Unit: "seconds", Help: "by how much the server's clock is ahead of that of Risso's machine, at the least", Source: "UTC_TIMESTAMP(6)"})] = skew.Seconds()
	return nil
}

// Skew is by how much the server's clock is ahead of this machine's, at the least; 0 if the answer took too long to say so.
func Skew(ctx context.Context, c *mysql.Conn) (time.Duration, error) {
	skew, _, err := skewOf(ctx, c)
	return skew, err
}

// skewOf compares clocks. The server looked at its clock some time between question and answer; what lies within that is no difference.
func skewOf(ctx context.Context, c *mysql.Conn) (skew time.Duration, known bool, err error) {
	var theirs time.Time
	asked := time.Now()
	err = c.Query(ctx, "SELECT /* risso: what time is it? */ TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))", func(row []sqldriver.Value) error {
		theirs = time.UnixMicro(whole(row[0]))
		return nil
	})
	told := time.Now()
	switch {
	case err != nil || told.Sub(asked) > clockRoundTrip:
		return 0, false, err
	case theirs.Before(asked):
		skew = theirs.Sub(asked.Round(0))
	case theirs.After(told):
		skew = theirs.Sub(told.Round(0))
	}
	return skew, true, nil
}
