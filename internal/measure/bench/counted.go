package bench

import (
	"context"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// Counter is one of the counters that a server keeps for all its clients together.
type Counter struct{ Name, What, Unit string }

// Counters are those that a result has, if the server has them: what explains most comes first.
func Counters() []Counter {
	return []Counter{
		// SHOW GLOBAL STATUS of MySQL and MariaDB.
		{"Innodb_os_log_fsyncs", "flushes of the redo log", ""},
		{"Innodb_data_fsyncs", "flushes of files", ""},
		{"Binlog_commits", "commits to the binary log", ""},
		{"Binlog_group_commits", "groups of commits to the binary log", ""},
		{"Innodb_row_lock_waits", "waits for row locks", ""},
		{"Innodb_row_lock_time", "time waited for row locks", "ms"},
		{"Innodb_deadlocks", "deadlocks", ""},
		{"Innodb_buffer_pool_reads", "pages read from disk", ""},
		{"Innodb_pages_written", "pages written", ""},
		{"Innodb_dblwr_pages_written", "pages written twice", ""},
		{"Innodb_os_log_written", "bytes of redo log", ""},
		{"Innodb_data_written", "bytes written to files", ""},
		{"Innodb_buffer_pool_wait_free", "waits for a free page", ""},
		{"Innodb_log_waits", "waits for the log buffer", ""},
		{"Innodb_buffer_pool_read_requests", "pages looked at", ""},
		{"Handler_read_rnd_next", "rows read in order", ""},
		{"Handler_read_next", "rows read along an index", ""},
		{"Handler_read_key", "rows found by an index", ""},
		{"Created_tmp_tables", "temporary tables", ""},
		{"Created_tmp_disk_tables", "temporary tables on disk", ""},
		{"Sort_merge_passes", "merges of sorted files", ""},
		{"Qcache_hits", "answers from the query cache", ""},
		{"Opened_tables", "tables opened", ""},
		{"Table_locks_waited", "waits for table locks", ""},
		{"Binlog_cache_disk_use", "transactions too large for the binary log's cache", ""},
		{"Threads_created", "threads created", ""},
		{"Bytes_sent", "bytes sent to clients", ""},
		// PostgreSQL.
		{"wal_sync", "flushes of the write-ahead log", ""},
		{"wal_bytes", "bytes of write-ahead log", ""},
		{"blks_read", "blocks read from disk or its cache", ""},
		{"blks_hit", "blocks found in shared buffers", ""},
		{"temp_bytes", "bytes of temporary files", ""},
		{"deadlocks", "deadlocks", ""},
	}
}

// counter asks a server for its counters on a separate session, while the sessions of the run work. It is asked rarely, and
// never waited for long: a server that hangs is no reason for the run to do so.
type counter struct {
	ask  chan bool // false: start over; true: that was it
	done chan map[string]int64
}

// counterPatience is how long the last answer is waited for, and each question may take.
const counterPatience = 2 * time.Second

// startCounter opens the session; nil when that fails: a run needs no counters.
func (r *run) startCounter(ctx context.Context) *counter {
	s, err := r.targets[r.current.Load()].Open(ctx, &r.stop)
	if err != nil {
		return nil
	}
	s.SetPatience(counterPatience)
	c := &counter{ask: make(chan bool, 1), done: make(chan map[string]int64, 1)}
	go func() {
		defer s.Close()
		var first map[string]int64
		for last := range c.ask {
			now := counters(s)
			if !last {
				first = now
				continue
			}
			c.done <- grown(first, now)
			return
		}
		c.done <- nil
	}()
	return c
}

// begin notes the counters as they are now, if the session is free.
func (c *counter) begin() {
	if c == nil {
		return
	}
	select {
	case c.ask <- false:
	default:
	}
}

// end returns by how much each counter grew since begin; nil if that is not known in time.
func (c *counter) end() map[string]int64 {
	if c == nil {
		return nil
	}
	last := time.NewTimer(counterPatience)
	defer last.Stop()
	select {
	case c.ask <- true:
	case <-last.C:
		close(c.ask)
		return nil
	}
	select {
	case out := <-c.done:
		return out
	case <-last.C:
		close(c.ask)
		return nil
	}
}

const (
	countersMySQL    = "SHOW /* risso: what did the server do? */ GLOBAL STATUS"
	countersPostgres = `SELECT /* risso: what did the server do? */ name, value::text FROM (
 SELECT 'blks_read' AS name, sum(blks_read) AS value FROM pg_stat_database UNION ALL SELECT 'blks_hit', sum(blks_hit) FROM pg_stat_database
 UNION ALL SELECT 'temp_bytes', sum(temp_bytes) FROM pg_stat_database UNION ALL SELECT 'deadlocks', sum(deadlocks) FROM pg_stat_database) c`
	countersWAL = "SELECT /* risso: what did the server do? */ 'wal_sync', wal_sync::text FROM pg_stat_wal UNION ALL SELECT 'wal_bytes', wal_bytes::text FROM pg_stat_wal"
)

// counters asks once; empty where the server does not answer.
func counters(s drive.Session) map[string]int64 {
	out := map[string]int64{}
	questions := []string{countersMySQL}
	if s.Dialect() == drive.Postgres {
		questions = []string{countersPostgres, countersWAL}
	}
	for _, q := range questions {
		rows, err := workload.Ask(s, q)
		if err != nil {
			continue // what one version does not have another does
		}
		for _, row := range rows {
			if len(row) != 2 {
				continue
			}
			if n, err := strconv.ParseInt(string(row[1].Text), 10, 64); err == nil {
				out[string(row[0].Text)] = n
			}
		}
	}
	return out
}

// grown are the known counters that both have.
func grown(first, last map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for _, c := range Counters() {
		a, ok1 := first[c.Name]
		b, ok2 := last[c.Name]
		if ok1 && ok2 && b >= a {
			out[c.Name] = b - a
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
