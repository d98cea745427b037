package watch

import (
	"fmt"

	"github.com/rissodb/risso/internal/digits"
)

// innodbFigures are what the view of InnoDB shows, by what they are about.
var innodbFigures = []struct {
	label, key string
	rate       bool
	show       func(float64) string
}{
	{"buffer pool", "mysql_global_variables_innodb_buffer_pool_size", false, digits.Bytes[float64]},
	{"data pages", `mysql_global_status_buffer_pool_pages{state="data"}`, false, digits.Number},
	{"free pages", `mysql_global_status_buffer_pool_pages{state="free"}`, false, digits.Number},
	{"dirty pages", "mysql_global_status_buffer_pool_dirty_pages", false, digits.Number},
	{"pool reads/s", "mysql_global_status_innodb_buffer_pool_reads", true, digits.Number},
	{"read requests/s", "mysql_global_status_innodb_buffer_pool_read_requests", true, digits.Number},
	{"waits for free/s", "mysql_global_status_innodb_buffer_pool_wait_free", true, digits.Number},
	{"data read/s", "mysql_global_status_innodb_data_read", true, digits.Bytes[float64]},
	{"data written/s", "mysql_global_status_innodb_data_written", true, digits.Bytes[float64]},
	{"fsyncs/s", "mysql_global_status_innodb_data_fsyncs", true, digits.Number},
	{"redo written/s", "mysql_global_status_innodb_os_log_written", true, digits.Bytes[float64]},
	{"waits for redo/s", "mysql_global_status_innodb_log_waits", true, digits.Number},
	{"rows read/s", `mysql_global_status_innodb_row_ops_total{operation="read"}`, true, digits.Number},
	{"rows inserted/s", `mysql_global_status_innodb_row_ops_total{operation="inserted"}`, true, digits.Number},
	{"rows updated/s", `mysql_global_status_innodb_row_ops_total{operation="updated"}`, true, digits.Number},
	{"rows deleted/s", `mysql_global_status_innodb_row_ops_total{operation="deleted"}`, true, digits.Number},
	{"lock waits now", "mysql_global_status_innodb_row_lock_current_waits", false, digits.Number},
	{"lock waits/s", "mysql_global_status_innodb_row_lock_waits", true, digits.Number},
	{"waited for locks", "mysql_global_status_innodb_row_lock_time", true, func(msPerSecond float64) string { return digits.Seconds(msPerSecond/1000) + "/s" }},
	{"history list", "mysql_info_schema_innodb_metrics_transaction_trx_rseg_history_len", false, digits.Number},
	{"deadlocks/s", "mysql_global_status_innodb_deadlocks", true, digits.Number},
}

// innodbLines are InnoDB's numbers, as the collector read them last.
func (u *ui) innodbLines() []line {
	u.rows, u.selected = nil, 0
	if u.past != nil {
		return u.past.numbers()
	}
	facts, ok := u.fleet.board.Facts(u.servers[u.server].Instance.ID)
	if !ok {
		return []line{{"Nothing has been read yet.", plain}}
	}
	var cells []string
	for _, f := range innodbFigures {
		get := facts.Value
		if f.rate {
			get = facts.Rate
		}
		if v, ok := get(f.key); ok {
			cells = append(cells, fmt.Sprintf("%-17s %14s", f.label, f.show(v)))
		}
	}
	return columns(cells)
}

// columns puts cells next to each other, two in a line.
func columns(cells []string) (out []line) {
	for i := 0; i < len(cells); i += 2 {
		text := cells[i]
		if i+1 < len(cells) {
			text += "     " + cells[i+1]
		}
		out = append(out, line{text, plain})
	}
	return out
}
