package read

import (
	"context"
	sqldriver "database/sql/driver"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

const picosecond = 1e-12 // performance_schema's timers count picoseconds

// latencyReader reads how long statements take, where performance_schema tells.
type latencyReader struct {
	buckets []bucket // as they were at the last read
}

type bucket struct {
	upper float64 // seconds
	count float64 // since the server started
}

var latencyMetrics = struct{ count, seconds fleet.Metric }{
	count:   fleet.Metric{Name: "risso_statements_total", Counter: true, Help: "SQL statements finished", Source: "performance_schema.events_statements_summary_global_by_event_name"},
	seconds: fleet.Metric{Name: "risso_statement_seconds_total", Counter: true, Unit: "seconds", Help: "time spent in finished SQL statements", Source: "performance_schema.events_statements_summary_global_by_event_name"},
}

// readTotals reads how many statements finished and how long they took in all: a few hundred rows on the server, one on the wire.
func (r *latencyReader) readTotals(ctx context.Context, c *mysql.Conn, s *fleet.Sample) error {
	return c.Query(ctx, `SELECT /* risso: statements finished and their time */ SUM(COUNT_STAR), SUM(SUM_TIMER_WAIT)
 FROM performance_schema.events_statements_summary_global_by_event_name WHERE COUNT_STAR > 0 AND EVENT_NAME LIKE 'statement/sql/%'`, func(row []sqldriver.Value) error {
		if n, ok := number(row[0]); ok {
			s.Values[s.Position(latencyMetrics.count)] = n
		}
		if ps, ok := number(row[1]); ok {
			s.Values[s.Position(latencyMetrics.seconds)] = ps * picosecond
		}
		return nil
	})
}

// readQuantiles reads MySQL's histogram of all statements and gives the quantiles of those finished since the last read.
func (r *latencyReader) readQuantiles(ctx context.Context, c *mysql.Conn, s *fleet.Sample) error {
	var now []bucket
	err := c.Query(ctx, `SELECT /* risso: latency histogram */ BUCKET_TIMER_HIGH, COUNT_BUCKET FROM performance_schema.events_statements_histogram_global ORDER BY BUCKET_NUMBER`,
		func(row []sqldriver.Value) error {
			upper, _ := number(row[0])
			count, _ := number(row[1])
			now = append(now, bucket{upper: upper * picosecond, count: count})
			return nil
		})
	if err != nil {
		return err
	}
	before := r.buckets
	r.buckets = now
	if len(before) != len(now) {
		return nil
	}
	for _, q := range []struct {
		q     float64
		label string
	}{{0.5, "0.5"}, {0.95, "0.95"}, {0.99, "0.99"}} {
		if v, ok := quantile(before, now, q.q); ok {
			s.Values[s.Position(fleet.Metric{
				Name: "risso_statement_latency_seconds", Labels: []fleet.Label{{Name: "quantile", Value: q.label}}, Unit: "seconds",
				Help: "latency not exceeded by this share of the statements of the last 10 seconds", Source: "performance_schema.events_statements_histogram_global",
			})] = v
		}
	}
	return nil
}

// quantile is the upper bound of the bucket that holds quantile q of what was added between two reads; a reset gives none.
func quantile(before, now []bucket, q float64) (float64, bool) {
	total := 0.0
	for i := range now {
		d := now[i].count - before[i].count
		if d < 0 {
			return 0, false
		}
		total += d
	}
	if total == 0 {
		return 0, false
	}
	sum := 0.0
	for i := range now {
		sum += now[i].count - before[i].count
		if sum >= q*total {
			return now[i].upper, true
		}
	}
	return 0, false
}

// hasStatementHistogram reports whether performance_schema keeps a latency histogram of all statements (MySQL 8.0.3).
func hasStatementHistogram(_ *Reader, s mysql.Server) bool {
	return s.PerformanceSchema && s.AtLeast(80003, fleet.Never)
}
