package read

import (
	"context"
	sqldriver "database/sql/driver"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

const innodbSource = "information_schema.INNODB_METRICS"

// innodbReader reads every InnoDB metric that is switched on. Their descriptions are read once; each second, only names and
// counts are.
type innodbReader struct {
	rows   []statusRow
	byName map[string]int
}

func (r *innodbReader) read(ctx context.Context, c *mysql.Conn, s *fleet.Sample) error {
	if r.byName == nil {
		if err := r.describe(ctx, c, s); err != nil {
			return err
		}
	}
	i, unknown := 0, false
	err := c.Query(ctx, "SELECT /* risso */ NAME, `COUNT` FROM information_schema.INNODB_METRICS WHERE "+innodbEnabled(c.Server), func(row []sqldriver.Value) error {
		name, ok := row[0].([]byte)
		if !ok {
			return nil
		}
		if i >= len(r.rows) || r.rows[i].name != string(name) {
			at, known := r.byName[string(name)]
			if !known { // somebody switched it on since
				unknown = true
				return nil
			}
			i = at
		}
		at := r.rows[i]
		i++
		if v, ok := number(row[1]); ok && at.pos >= 0 {
			s.Values[at.pos] = v
		}
		return nil
	})
	if unknown {
		r.byName = nil
	}
	return err
}

func (r *innodbReader) describe(ctx context.Context, c *mysql.Conn, s *fleet.Sample) error {
	r.rows, r.byName = r.rows[:0], make(map[string]int)
	return c.Query(ctx, "SELECT /* risso: what the metrics are */ NAME, SUBSYSTEM, TYPE, COMMENT FROM information_schema.INNODB_METRICS WHERE "+
		innodbEnabled(c.Server), func(row []sqldriver.Value) error {
		name := mysql.Text(row[0])
		pos := -1
		if m, ok := innodbMetric(name, mysql.Text(row[1]), mysql.Text(row[2]), mysql.Text(row[3])); ok {
			pos = s.Position(m)
		}
		r.byName[name] = len(r.rows)
		r.rows = append(r.rows, statusRow{name: name, pos: pos})
		return nil
	})
}

// innodbMetric names a metric as mysqld_exporter's info_schema.innodb_metrics collector does.
func innodbMetric(name, subsystem, typ, comment string) (fleet.Metric, bool) {
	const prefix = "mysql_info_schema_innodb_metrics_"
	m := fleet.Metric{Source: innodbSource, Help: comment, Counter: typ == "counter" || typ == "status_counter"}
	if strings.Contains(name, "bytes") || strings.HasSuffix(name, "_age") || strings.HasSuffix(name, "size") {
		m.Unit = "bytes"
	}
	switch {
	case subsystem == "buffer_page_io":
		rest, ok := strings.CutPrefix(name, "buffer_page_")
		way, kind, ok2 := strings.Cut(rest, "_")
		if !ok || !ok2 {
			return m, false
		}
		m.Name, m.Counter = prefix+"buffer_page_"+way+"_total", true
		m.Labels = []fleet.Label{{Name: "type", Value: kind}}
		return m, true
	case subsystem == "buffer" && strings.HasPrefix(name, "buffer_pool_pages_"):
		state := strings.TrimPrefix(name, "buffer_pool_pages_")
		m.Counter = false
		switch state {
		case "dirty":
			m.Name = prefix + "buffer_pool_dirty_pages"
		case "total":
			m.Name = prefix + "buffer_pool_pages_total"
		default:
			m.Name = prefix + "buffer_pool_pages"
			m.Labels = []fleet.Label{{Name: "state", Value: state}}
		}
		return m, true
	}
	m.Name = prefix + subsystem + "_" + name
	if m.Counter {
		m.Name += "_total"
	}
	return m, true
}

// innodbEnabled is the condition for metrics that are switched on: MariaDB has ENABLED since 10.5 where MySQL has STATUS.
func innodbEnabled(s mysql.Server) string {
	if s.MariaDB() && s.Number >= 100500 {
		return "ENABLED = 1"
	}
	return "STATUS = 'enabled'"
}
