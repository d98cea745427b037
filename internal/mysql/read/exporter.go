package read

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// What follows is read because dashboards and rules made for mysqld_exporter ask for it. It is read seldom, and the seldomer the longer
// the server takes: groups have a pace.

// mostStates bounds how many states of threads are remembered, mostTables the tables of which sizes are kept, the largest ones.
const (
	mostStates = 200
	mostTables = 200
)

// tablesLimit is how long a server may work on the sizes of its tables: meanwhile its other numbers wait.
const tablesLimit = 100 * time.Millisecond

func put(s *fleet.Sample, m fleet.Metric, v float64) { s.Values[s.Position(m)] = v }

// readThreads counts threads by command and state.
func (r *Reader) readThreads(ctx context.Context, c *mysql.Conn) error {
	type kind struct{ command, state string }
	counts, seconds := map[kind]float64{}, map[kind]float64{}
	// information_schema's process list locks out who connects; newer servers have the same without that.
	source := "information_schema.PROCESSLIST"
	if c.Server.PerformanceSchema && c.Server.AtLeast(80022, fleet.Never) {
		source = "performance_schema.processlist"
	}
	err := c.Query(ctx, "SELECT /* risso: threads by state */ COMMAND, STATE, COUNT(*), SUM(TIME) FROM "+source+" WHERE ID <> CONNECTION_ID() GROUP BY COMMAND, STATE LIMIT "+strconv.Itoa(mostStates), func(row []sqldriver.Value) error {
		k := kind{stateWord(mysql.Text(row[0])), stateWord(mysql.Text(row[1]))}
		n, _ := number(row[2])
		t, _ := number(row[3])
		counts[k] += n
		seconds[k] += t
		return nil
	})
	if err != nil {
		return err
	}
	for k, n := range counts {
		if r.states == nil {
			r.states = map[string]bool{}
		}
		if key := k.command + " " + k.state; !r.states[key] {
			if len(r.states) >= mostStates {
				continue
			}
			r.states[key] = true
		}
		labels := []fleet.Label{{Name: "command", Value: k.command}, {Name: "state", Value: k.state}}
		put(&r.Sample, fleet.Metric{Name: "mysql_info_schema_processlist_threads", Labels: labels, Source: source, Help: "threads in this state"}, n)
		put(&r.Sample, fleet.Metric{Name: "mysql_info_schema_processlist_seconds", Labels: labels, Unit: "seconds", Source: source, Help: "how long they have been in it, together"}, seconds[k])
	}
	return nil
}

var stateSigns = strings.NewReplacer(";", "", ",", "", ":", "", ".", "", "(", "", ")", "", " ", "_", "-", "_")

// stateWord writes a command or state as mysqld_exporter does.
func stateWord(s string) string {
	if s == "" {
		return "unknown"
	}
	return stateSigns.Replace(strings.ToLower(s))
}

// readFileEvents reads how often and how long files were used. Kinds of files that never were are left out.
func (r *Reader) readFileEvents(ctx context.Context, c *mysql.Conn) error {
	const source = "performance_schema.file_summary_by_event_name"
	return c.Query(ctx, `SELECT /* risso: uses of files */ EVENT_NAME, COUNT_READ, SUM_TIMER_READ, SUM_NUMBER_OF_BYTES_READ, COUNT_WRITE, SUM_TIMER_WRITE, SUM_NUMBER_OF_BYTES_WRITE,
 COUNT_MISC, SUM_TIMER_MISC FROM performance_schema.file_summary_by_event_name WHERE COUNT_STAR > 0`, func(row []sqldriver.Value) error {
		event := mysql.Text(row[0])
		for i, mode := range []string{"read", "write", "misc"} {
			labels := []fleet.Label{{Name: "event_name", Value: event}, {Name: "mode", Value: mode}}
			n, _ := number(row[1+3*i])
			t, _ := number(row[2+3*i])
			put(&r.Sample, fleet.Metric{Name: "mysql_perf_schema_file_events_total", Labels: labels, Counter: true, Source: source, Help: "uses of files"}, n)
			put(&r.Sample, fleet.Metric{Name: "mysql_perf_schema_file_events_seconds_total", Labels: labels, Counter: true, Unit: "seconds", Source: source, Help: "time that files were used"}, t*picosecond)
			if mode != "misc" {
				b, _ := number(row[3+3*i])
				put(&r.Sample, fleet.Metric{Name: "mysql_perf_schema_file_events_bytes_total", Labels: labels, Counter: true, Unit: "bytes", Source: source, Help: "bytes read and written"}, b)
			}
		}
		return nil
	})
}

// readEventWaits reads how often and how long was waited for what. What nobody waited for is left out.
func (r *Reader) readEventWaits(ctx context.Context, c *mysql.Conn) error {
	const source = "performance_schema.events_waits_summary_global_by_event_name"
	return c.Query(ctx, `SELECT /* risso: waits by event */ EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT FROM performance_schema.events_waits_summary_global_by_event_name WHERE COUNT_STAR > 0`, func(row []sqldriver.Value) error {
		labels := []fleet.Label{{Name: "event_name", Value: mysql.Text(row[0])}}
		n, _ := number(row[1])
		t, _ := number(row[2])
		put(&r.Sample, fleet.Metric{Name: "mysql_perf_schema_events_waits_total", Labels: labels, Counter: true, Source: source, Help: "waits"}, n)
		put(&r.Sample, fleet.Metric{Name: "mysql_perf_schema_events_waits_seconds_total", Labels: labels, Counter: true, Unit: "seconds", Source: source, Help: "time waited"}, t*picosecond)
		return nil
	})
}

// readCompression reads how InnoDB compressed pages, by their size.
func (r *Reader) readCompression(ctx context.Context, c *mysql.Conn) error {
	const source = "information_schema.INNODB_CMP"
	err := c.Query(ctx, "SELECT /* risso: compressed pages */ page_size, compress_ops, compress_ops_ok, compress_time, uncompress_ops, uncompress_time FROM information_schema.INNODB_CMP", func(row []sqldriver.Value) error {
		labels := []fleet.Label{{Name: "page_size", Value: strconv.FormatInt(whole(row[0]), 10)}}
		for i, name := range []string{"compress_ops", "compress_ops_ok", "compress_time_seconds", "uncompress_ops", "uncompress_time_seconds"} {
			v, _ := number(row[1+i])
			put(&r.Sample, fleet.Metric{Name: "mysql_info_schema_innodb_cmp_" + name + "_total", Labels: labels, Counter: true, Source: source, Help: "pages of this size"}, v)
		}
		return nil
	})
	if err != nil {
		return err
	}
	const memory = "information_schema.INNODB_CMPMEM"
	return c.Query(ctx, "SELECT /* risso: compressed pages in memory */ page_size, buffer_pool_instance, pages_used, pages_free, relocation_ops, relocation_time / 1000 FROM information_schema.INNODB_CMPMEM", func(row []sqldriver.Value) error {
		labels := []fleet.Label{{Name: "buffer_pool", Value: strconv.FormatInt(whole(row[1]), 10)}, {Name: "page_size", Value: strconv.FormatInt(whole(row[0]), 10)}}
		for i, name := range []string{"pages_used", "pages_free", "relocation_ops", "relocation_time_seconds"} {
			v, _ := number(row[2+i])
			put(&r.Sample, fleet.Metric{Name: "mysql_info_schema_innodb_cmpmem_" + name + "_total", Labels: labels, Counter: i > 1, Source: memory, Help: "blocks of this size"}, v)
		}
		return nil
	})
}

// readBinlogs adds up the binary logs.
func (r *Reader) readBinlogs(ctx context.Context, c *mysql.Conn) error {
	const source = "SHOW BINARY LOGS"
	var size, files, last float64
	err := c.UnlessLogHeld(ctx, func() error {
		return c.Query(ctx, "SHOW /* risso: size of the binary logs */ BINARY LOGS", func(row []sqldriver.Value) error {
			n, _ := number(row[1])
			size += n
			files++
			last, _ = number(row[0])
			return nil
		})
	})
	if errors.Is(err, mysql.ErrLogHeld) {
		return nil // until the next time
	}
	if err != nil {
		return err
	}
	put(&r.Sample, fleet.Metric{Name: "mysql_binlog_size_bytes", Unit: "bytes", Source: source, Help: "size of all binary logs"}, size)
	put(&r.Sample, fleet.Metric{Name: "mysql_binlog_files", Source: source, Help: "binary logs"}, files)
	put(&r.Sample, fleet.Metric{Name: "mysql_binlog_file_number", Source: source, Help: "number of the newest binary log"}, last)
	return nil
}

// readTables reads the sizes of the largest tables, as far as the account may see them. A server that takes too long ends it.
func (r *Reader) readTables(ctx context.Context, c *mysql.Conn) error {
	const source = "information_schema.TABLES"
	return c.Query(ctx, c.Server.Bounded(tablesLimit, `SELECT /* risso: sizes of tables */ TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, IFNULL(ENGINE, 'NONE'), IFNULL(VERSION, 0), IFNULL(ROW_FORMAT, 'NONE'),
 IFNULL(TABLE_ROWS, 0), IFNULL(DATA_LENGTH, 0), IFNULL(INDEX_LENGTH, 0), IFNULL(DATA_FREE, 0), IFNULL(CREATE_OPTIONS, 'NONE') FROM information_schema.TABLES
 WHERE TABLE_SCHEMA NOT IN ('mysql', 'performance_schema', 'information_schema', 'sys') AND TABLE_TYPE = 'BASE TABLE' ORDER BY DATA_LENGTH + INDEX_LENGTH DESC LIMIT `+strconv.Itoa(mostTables)), func(row []sqldriver.Value) error {
		labels := func(more ...fleet.Label) []fleet.Label {
			return append(more, fleet.Label{Name: "schema", Value: mysql.Text(row[0])}, fleet.Label{Name: "table", Value: mysql.Text(row[1])})
		}
		v, _ := number(row[4])
		put(&r.Sample, fleet.Metric{Name: "mysql_info_schema_table_version", Source: source, Help: "version of the table's format", Labels: append(labels(fleet.Label{Name: "create_options", Value: mysql.Text(row[10])},
			fleet.Label{Name: "engine", Value: mysql.Text(row[3])}, fleet.Label{Name: "row_format", Value: mysql.Text(row[5])}), fleet.Label{Name: "type", Value: mysql.Text(row[2])})}, v)
		n, _ := number(row[6])
		put(&r.Sample, fleet.Metric{Name: "mysql_info_schema_table_rows", Source: source, Help: "rows, as the server estimates", Labels: labels()}, n)
		for i, component := range []string{"data_length", "index_length", "data_free"} {
			b, _ := number(row[7+i])
			put(&r.Sample, fleet.Metric{Name: "mysql_info_schema_table_size", Unit: "bytes", Source: source, Help: "size of a part of the table", Labels: labels(fleet.Label{Name: "component", Value: component})}, b)
		}
		return nil
	})
}

// keepsLog reports whether the server writes binary logs.
func (r *Reader) keepsLog(mysql.Server) bool { return strings.EqualFold(r.Variables["log_bin"], "ON") }

func instrumented(_ *Reader, s mysql.Server) bool { return s.PerformanceSchema }
