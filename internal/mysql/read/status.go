package read

import (
	"context"
	sqldriver "database/sql/driver"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// statusReader reads SHOW GLOBAL STATUS. The server gives the rows in the same order each time, so a row is found by its place
// and its name is only compared; if rows come or go, a map finds them.
type statusReader struct {
	rows   []statusRow
	byName map[string]int // index into rows
	Texts  map[string]string
}

type statusRow struct {
	name string
	pos  int // in the sample; -1 until the value was a number once
}

const statusSource = "SHOW GLOBAL STATUS"

func (r *statusReader) read(ctx context.Context, c *mysql.Conn, s *fleet.Sample) error {
	i := 0
	return c.Query(ctx, "SHOW /* risso */ GLOBAL STATUS", func(row []sqldriver.Value) error {
		name, ok := row[0].([]byte)
		if !ok {
			return nil
		}
		if i >= len(r.rows) || r.rows[i].name != string(name) {
			i = r.find(string(name))
		}
		at := &r.rows[i]
		i++
		v, ok := number(row[1])
		if !ok {
			r.setText(at.name, row[1])
			return nil
		}
		if at.pos < 0 {
			at.pos = s.Position(StatusMetric(at.name))
		}
		s.Values[at.pos] = v
		return nil
	})
}

func (r *statusReader) find(name string) int {
	if i, ok := r.byName[name]; ok {
		return i
	}
	if r.byName == nil {
		r.byName, r.Texts = make(map[string]int), make(map[string]string)
	}
	r.rows = append(r.rows, statusRow{name: name, pos: -1})
	r.byName[name] = len(r.rows) - 1
	return len(r.rows) - 1
}

func (r *statusReader) setText(name string, v sqldriver.Value) {
	b, _ := v.([]byte)
	if old := r.Texts[name]; old != string(b) {
		r.Texts[name] = string(b)
	}
}

// StatusMetric names a variable of SHOW GLOBAL STATUS as mysqld_exporter does, so that its dashboards and rules work.
func StatusMetric(variable string) fleet.Metric {
	low := strings.ToLower(variable)
	m := fleet.Metric{Name: "mysql_global_status_" + metricWord(low), Counter: !isStatusGauge(low), Source: statusSource, Help: variable, Unit: statusUnit(low)}
	prefix, rest, _ := strings.Cut(low, "_")
	switch {
	case prefix == "com" && rest != "":
		return labelled(m, "commands_total", "command", rest)
	case prefix == "handler" && rest != "":
		return labelled(m, "handlers_total", "handler", rest)
	case strings.HasPrefix(low, "connection_errors_"):
		return labelled(m, "connection_errors_total", "error", low[len("connection_errors_"):])
	case strings.HasPrefix(low, "performance_schema_"):
		return labelled(m, "performance_schema_lost_total", "instrumentation", low[len("performance_schema_"):])
	case strings.HasPrefix(low, "innodb_rows_"):
		return labelled(m, "innodb_row_ops_total", "operation", low[len("innodb_rows_"):])
	case strings.HasPrefix(low, "innodb_buffer_pool_pages_"):
		return bufferPoolMetric(m, low[len("innodb_buffer_pool_pages_"):])
	}
	return m
}

func labelled(m fleet.Metric, name, label, value string) fleet.Metric {
	m.Name = "mysql_global_status_" + name
	m.Labels = []fleet.Label{{Name: label, Value: value}}
	return m
}

func bufferPoolMetric(m fleet.Metric, state string) fleet.Metric {
	switch state {
	case "data", "free", "misc", "old":
		m.Counter = false
		return labelled(m, "buffer_pool_pages", "state", state)
	case "dirty":
		m.Counter = false
		m.Name = "mysql_global_status_buffer_pool_dirty_pages"
		return m
	case "total":
		m.Counter = false
		return m
	}
	m.Counter = true
	return labelled(m, "buffer_pool_page_changes_total", "operation", state)
}

// isStatusGauge says which variables are gauges; all others are counters. The list
// follows the server status variable reference of MySQL 9 and MariaDB 11.
func isStatusGauge(low string) bool {
	if gauge, listed := statusGauges[low]; listed {
		return gauge
	}
	if strings.HasPrefix(low, "com_") || strings.HasPrefix(low, "handler_") {
		return false
	}
	for _, p := range statusGaugePrefixes {
		if strings.HasPrefix(low, p) {
			return true
		}
	}
	for _, s := range statusGaugeSuffixes {
		if strings.HasSuffix(low, s) {
			return true
		}
	}
	return false
}

var statusGaugePrefixes = []string{
	"acl_", "threads_r", "threads_con", "threads_ca", "threadpool_", "open_", "innodb_have_", "innodb_mem_", "innodb_num_", "innodb_buffer_pool_bytes_",
	"innodb_data_pending_", "innodb_os_log_pending_", "qcache_free_", "qcache_total_", "qcache_queries_in", "memory_used", "max_used_connections", "ssl_ctx_", "ssl_verify_",
	"ssl_default_", "ssl_session_cache_size", "ssl_session_cache_timeout", "ssl_server_not_", "current_tls_", "tls_", "rpl_semi_sync_master_net_avg", "rpl_semi_sync_source_net_avg",
	"rpl_semi_sync_master_tx_avg", "rpl_semi_sync_source_tx_avg", "wsrep_cert_index_size", "wsrep_local_recv_queue", "wsrep_local_send_queue", "wsrep_flow_control_paused", "wsrep_cluster_",
	"innodb_ibuf_s", "innodb_ibuf_free", "innodb_history", "innodb_checkpoint_", "innodb_lsn_", "innodb_available_", "innodb_onlineddl_", "innodb_undo_tablespaces", "innodb_redo_log_",
	"mysqlx_worker", "aria_pagecache_blocks_", "key_blocks_", "tc_log_", "global_connection_memory", "gtid_", "slave_open_", "slave_heartbeat", "slaves_", "delayed_insert_threads", "not_flushed_",
}

var statusGaugeSuffixes = []string{"_status", "_avg", "_max", "_ratio", "_clients", "_sessions", "_current_waits", "_running", "_index", "_connected", "_ready", "_size", "_count_current", "_pct"}

var statusGauges = map[string]bool{
	"uptime": true, "uptime_since_flush_status": true, "compression": true, "last_query_cost": true, "last_query_partial_plans": true, "prepared_stmt_count": true,
	"innodb_page_size": true, "innodb_row_lock_current_waits": true, "innodb_max_trx_id": true, "innodb_defragment_count": true, "innodb_encryption_rotation_estimated_iops": true,
	"wsrep": true, "wsrep_applier_thread_count": true, "wsrep_thread_count": true, "wsrep_rollbacker_thread_count": true, "wsrep_cert_deps_distance": true, "wsrep_cert_interval": true,
	"wsrep_commit_window": true, "wsrep_apply_window": true, "wsrep_commit_oooe": true, "wsrep_commit_oool": true, "wsrep_apply_oooe": true, "wsrep_apply_oool": true,
	"wsrep_apply_waits": false, "wsrep_flow_control_paused_ns": false, "wsrep_local_state": true, "wsrep_local_cached_downto": true, "wsrep_last_committed": true, "wsrep_protocol_version": true, "wsrep_open_transactions": true,
	"wsrep_open_connections": true, "wsrep_cluster_conf_id": true, "wsrep_flow_control_active": true, "wsrep_flow_control_requested": true, "wsrep_desync_count": true,
	"binlog_snapshot_file": true, "binlog_snapshot_position": true, "table_open_cache_active_instances": true, "max_statement_time": true, "stack_usage": true,
	"innodb_buffer_pool_load_incomplete": true, "slave_running": true, "ongoing_anonymous_transaction_count": true, "ongoing_anonymous_gtid_violating_transaction_count": true,
	"ongoing_automatic_gtid_violating_transaction_count": true, "performance_schema_session_connect_attrs_longest_seen": true, "resource_group_supported": true,
	"secondary_engine_execution_count": false, "validate_password.dictionary_file_words_count": true, "innodb_redo_log_enabled": true, "error_log_buffered_bytes": true,
	"error_log_buffered_events": true, "error_log_latest_write": true, "caching_sha2_password_rsa_public_key": true, "mysqlx_port": true, "mysqlx_sessions": true,
	"count_hit_query_past_global_connection_memory_limit": false, "tp_threads": true, "replica_open_temp_tables": true, "deprecated_use_i_s_processlist_last_timestamp": true,
}

// statusUnit is "bytes" or "seconds" if the name says.
func statusUnit(low string) string {
	switch {
	case strings.HasPrefix(low, "bytes_"), strings.Contains(low, "_bytes"), strings.HasSuffix(low, "_written") && strings.Contains(low, "log"),
		low == "innodb_data_read", low == "innodb_data_written", strings.HasPrefix(low, "memory_used"), strings.HasPrefix(low, "innodb_mem_"),
		strings.HasPrefix(low, "innodb_checkpoint_"), strings.HasPrefix(low, "innodb_lsn_"), low == "innodb_page_size", low == "qcache_free_memory",
		low == "wsrep_received_bytes", low == "wsrep_replicated_bytes":
		return "bytes"
	case strings.HasPrefix(low, "uptime"), low == "busy_time", low == "cpu_time", low == "query_time", low == "slave_heartbeat_period":
		return "seconds"
	case strings.HasPrefix(low, "innodb_row_lock_time"):
		return "milliseconds"
	case low == "wsrep_flow_control_paused_ns":
		return "nanoseconds"
	case strings.HasSuffix(low, "_wait_time"):
		return "microseconds"
	}
	return ""
}
