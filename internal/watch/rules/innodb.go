package rules

import (
	"fmt"
	"math"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
)

// redoSize is how much redo the server can hold, and the statement that doubles it; or, where none does, advice as the end of a sentence.
func redoSize(s *Snapshot) (size float64, remedy, advice string, ok bool) {
	if v, there := s.value(variablePrefix + "innodb_redo_log_capacity"); there && v > 0 { // MySQL 8.0.30
		return v, fmt.Sprintf("SET GLOBAL innodb_redo_log_capacity = %.0f", 2*v), "", true
	}
	v, there := s.value(variablePrefix + "innodb_log_file_size")
	if !there || v <= 0 {
		return 0, "", "", false
	}
	if s.server().ResizesRedo() { // it can be changed while the server runs
		buffer, _ := s.value(variablePrefix + "innodb_log_buffer_size")
		return v, fmt.Sprintf("SET GLOBAL innodb_log_file_size = %.0f", max(2*v, buffer)), "", true // it refuses less than the buffer
	}
	n, there := s.value(variablePrefix + "innodb_log_files_in_group")
	if !there || n < 1 {
		n = 1 // MariaDB 10.5 on has one file
	}
	return n * v, "", fmt.Sprintf("; a larger one needs innodb_log_file_size = %.0f in the option file, and a restart", 2*v), true
}

// checkpointAge is how much redo a crash would have to replay: MariaDB and Percona
// Server tell it, MySQL from 8.0.30 on tells the two ends of it, and older ones
// have a metric that is off by default.
func checkpointAge(s *Snapshot) (float64, bool) {
	if v, ok := s.value(statusPrefix + "innodb_checkpoint_age"); ok {
		return v, true
	}
	head, ok := s.value(statusPrefix + "innodb_redo_log_current_lsn")
	tail, ok2 := s.value(statusPrefix + "innodb_redo_log_checkpoint_lsn")
	if ok && ok2 {
		return max(head-tail, 0), true
	}
	return s.first(innodbPrefix+"log_log_lsn_checkpoint_age", innodbPrefix+"recovery_log_lsn_checkpoint_age")
}

// redoWritten is how many bytes of redo are written a second.
func redoWritten(r *round) (float64, bool) {
	for _, counter := range []string{"innodb_os_log_written", "innodb_lsn_current", "innodb_redo_log_current_lsn"} {
		if v, ok := r.rate(statusPrefix + counter); ok {
			return r.smooth("redo written", v), true
		}
	}
	return 0, false
}

// redoUsable is the share of innodb_redo_log_capacity at whose age all writes wait for pages to be flushed. The rest is kept for files to
// come, and for what threads write meanwhile. MySQL 9.7 shows it as log_max_modified_age_sync, a metric that is off by default: 0.811 of
// 8 MB, 0.827 of 32 MB, 0.831 of 100 MB.
const redoUsable = 0.83

// The shares of the redo log at which it is spoken of, and how soon the rest has to be full at the rate of writing.
const (
	redoWarning  = 0.8
	redoCritical = 0.95
	redoSoon     = 60 // seconds
)

// redoPressure finds a redo log that is nearly full of pages not yet written, while so much is written that the rest would soon be full:
// InnoDB then stops all writes to flush pages. A log that stays nearly full while little is written is normal: MariaDB
// flushes eagerly only from seven eighths of the limit on (log_set_capacity in its log0log.cc: max_modified_age_async), and leaves
// the age of the checkpoint where the last burst left it.
func redoPressure(r *round) {
	age, ok := checkpointAge(r.Snapshot)
	if !ok {
		return
	}
	size, remedy, advice, known := redoSize(r.Snapshot)
	limit, exact := r.first(statusPrefix+"innodb_checkpoint_max_age", innodbPrefix+"log_log_max_modified_age_sync", innodbPrefix+"recovery_log_max_modified_age_sync")
	if !exact || limit <= 0 {
		if !known {
			return
		}
		limit = size
		if _, there := r.value(variablePrefix + "innodb_redo_log_capacity"); there {
			limit *= redoUsable
		}
	}
	share := age / limit
	written, told := redoWritten(r)
	if share < redoWarning {
		return
	}
	if told && share < redoCritical && written*redoSoon < limit-age {
		return
	}
	c := candidate{id: "redo.pressure", severity: fleet.SeverityWarning, value: percent(share), chart: "checkpoint", remedy: remedy,
		head: fmt.Sprintf("the redo log is %s full", digits.Percent(math.Min(share, 1))), tail: fmt.Sprintf(" (%s of %s): when it is full, all writes wait", digits.Bytes(age), digits.Bytes(limit))}
	if told && written >= 1 {
		c.tail = fmt.Sprintf(" (%s of %s), and %s more are written per second: when it is full, all writes wait", digits.Bytes(age), digits.Bytes(limit), digits.Bytes(written))
	}
	c.tail += advice
	if share >= redoCritical {
		c.severity = fleet.SeverityCritical
	}
	r.add(c)
}

// undoHistory finds old row versions that purge cannot remove, for an old
// transaction may still read them.
func undoHistory(r *round) {
	n, ok := r.first(statusPrefix+"innodb_history_list_length", innodbPrefix+"transaction_trx_rseg_history_len")
	const warning, critical = 200_000, 5_000_000
	if !ok || n < warning {
		return
	}
	c := candidate{id: "undo.history", severity: fleet.SeverityWarning, value: n, chart: "history",
		head:   "more than " + digits.Number(warning) + " old transactions wait for purge",
		tail:   ", now " + digits.Number(n) + ": reads get slower as long as an old transaction stays open",
		remedy: "SELECT trx_mysql_thread_id, trx_started, trx_rows_modified, LEFT(trx_query, 100) FROM information_schema.INNODB_TRX ORDER BY trx_started LIMIT 5"}
	if n >= critical {
		c.severity = fleet.SeverityCritical
	}
	r.add(c)
}

// bufferPoolStarved finds a buffer pool without free pages, or one that most reads miss.
func bufferPoolStarved(r *round) {
	waits, _ := r.rate(statusPrefix + "innodb_buffer_pool_wait_free")
	waits = r.smooth("wait free", waits)
	misses, _ := r.rate(statusPrefix + "innodb_buffer_pool_reads")
	requests, ok := r.rate(statusPrefix + "innodb_buffer_pool_read_requests")
	c := candidate{id: "bp.starved", severity: fleet.SeverityWarning, value: waits + misses, chart: "buffer_pool_reads"}
	const manyWaits, manyMisses, missShare = 1, 1000, 0.1
	switch {
	case waits >= manyWaits:
		c.head = fmt.Sprintf("threads wait for a free page in the buffer pool %s times per second", digits.Number(waits))
	case ok && misses >= manyMisses && misses >= missShare*requests:
		c.head = fmt.Sprintf("%s of page reads miss the buffer pool", digits.Percent(misses/requests))
		c.tail = fmt.Sprintf(", %s a second", digits.Number(misses))
	default:
		return
	}
	if pool, ok := r.value(variablePrefix + "innodb_buffer_pool_size"); ok {
		c.tail += "; it has " + digits.Bytes(pool)
		grow := math.Ceil(pool*0.5/(1<<27)) * (1 << 27) // chunks of 128 MB
		if free, ok := r.Host.value("node_memory_MemAvailable_bytes"); !ok || free > 1.5*grow {
			c.remedy = fmt.Sprintf("SET GLOBAL innodb_buffer_pool_size = %.0f", pool+grow)
		}
	}
	r.add(c)
}

// deadlocks finds transactions that are rolled back because they wait for each other.
func deadlocks(r *round) {
	rate, ok := r.rate(statusPrefix + "innodb_deadlocks")
	if !ok {
		rate, ok = r.rate(innodbPrefix + "lock_lock_deadlocks_total")
	}
	if !ok {
		return
	}
	n := r.within("deadlocks", rate, time.Minute)
	const few, many = 6, 120
	if n < few {
		return
	}
	c := candidate{id: "deadlock.rate", severity: fleet.SeverityWarning, value: n, chart: "row_locks",
		head: atLeastWord(r.Snapshot) + fmt.Sprintf("about %s deadlocks a minute", digits.Number(math.Round(n))), tail: ": each rolls back a transaction",
		remedy: "SET GLOBAL innodb_print_all_deadlocks = ON; SHOW ENGINE INNODB STATUS"}
	if n >= many {
		c.severity = fleet.SeverityCritical
	}
	r.add(c)
}

// atLeastWord precedes a number of deadlocks if not all are counted.
func atLeastWord(s *Snapshot) string {
	if !s.server().CountsAllDeadlocks() {
		return "at least "
	}
	return ""
}
