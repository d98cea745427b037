package differ

// oldDefaults are the compiled-in values of variables of MySQL 5.7, which does not tell what was set, as far as later versions have another
// one. Source: MySQL 5.7 manual, "Server System Variables", "InnoDB Startup Options"; TestOldDefaults holds them against a 5.7.
var oldDefaults = map[string]string{
	"innodb_autoinc_lock_mode": "1", "max_allowed_packet": "4194304", "slave_preserve_commit_order": "OFF", "character_set_server": "latin1",
	"collation_server": "latin1_swedish_ci", "event_scheduler": "OFF", "gtid_executed_compression_period": "1000", "innodb_undo_log_truncate": "OFF", "local_infile": "ON",
	"log_error_verbosity": "3", "max_error_count": "64", "max_length_for_sort_data": "1024", "innodb_flush_method": "", "innodb_flush_neighbors": "1",
	"innodb_max_dirty_pages_pct": "75", "innodb_max_dirty_pages_pct_lwm": "0", "optimizer_trace_max_mem_size": "16384", "slave_allow_batching": "OFF",
	"slave_parallel_workers": "0", "slave_pending_jobs_size_max": "16777216", "table_open_cache": "2000", "innodb_adaptive_hash_index": "ON",
	"innodb_change_buffer_max_size": "25", "innodb_io_capacity": "200", "innodb_io_capacity_max": "2000", "innodb_log_buffer_size": "16777216", "innodb_purge_threads": "4",
	"binlog_transaction_dependency_history_size": "25000", "innodb_numa_interleave": "OFF", "explicit_defaults_for_timestamp": "OFF", "log_bin_trust_function_creators": "OFF",
	"performance_schema_max_cond_classes": "80", "performance_schema_max_memory_classes": "320", "performance_schema_max_mutex_classes": "210", "performance_schema_max_rwlock_classes": "40",
	"performance_schema_max_stage_classes": "150", "performance_schema_max_statement_classes": "193", "performance_schema_max_thread_classes": "50", "thread_stack": "262144",
	"sql_mode": "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION",
	"log_bin":  "OFF", "binlog_format": "ROW", "log_slave_updates": "OFF", "gtid_mode": "OFF", "expire_logs_days": "0", "master_info_repository": "FILE", "relay_log_info_repository": "FILE",
	"query_cache_type": "OFF", "eq_range_index_dive_limit": "200", "group_concat_max_len": "1024", "tx_isolation": "REPEATABLE-READ", "innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1",
	"default_authentication_plugin": "mysql_native_password", "default_storage_engine": "InnoDB", "innodb_strict_mode": "ON", "innodb_large_prefix": "ON",
}
