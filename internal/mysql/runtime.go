package mysql

import "github.com/rissodb/risso/internal/fleet"

// This file says what servers tell of settings that were made while they run.

// RuntimeSettings lists the global variables that were set while the server ran, as far as it tells that:
// name, value, what SET PERSIST wrote down for the next start (NULL: nothing), who set it and when. "" if the server does not tell. On MySQL
// one that a session set for itself is listed, too (seen on 9.7), and one that was set to its compiled-in value: see SettingDefault.
func (s Server) RuntimeSettings() string {
	switch {
	case s.AtLeast(fleet.Never, 100100):
		return `SELECT /* risso: what does a restart undo? */ VARIABLE_NAME, GLOBAL_VALUE, NULL, '', ''
  FROM information_schema.SYSTEM_VARIABLES WHERE GLOBAL_VALUE_ORIGIN = 'SQL' AND NOT GLOBAL_VALUE <=> DEFAULT_VALUE`
	case s.KeepsSettings():
		return `SELECT /* risso: what does a restart undo? */ i.VARIABLE_NAME, g.VARIABLE_VALUE, p.VARIABLE_VALUE, CONCAT(i.SET_USER, '@', i.SET_HOST), i.SET_TIME
  FROM performance_schema.variables_info i JOIN performance_schema.global_variables g ON g.VARIABLE_NAME = i.VARIABLE_NAME
  LEFT JOIN performance_schema.persisted_variables p ON p.VARIABLE_NAME = i.VARIABLE_NAME WHERE i.VARIABLE_SOURCE = 'DYNAMIC'`
	}
	return ""
}

// settingDefaults are the compiled-in values of variables, the same in MySQL 8.0 to 9.7. Source: MySQL manual, "Server System Variables", "InnoDB
// Startup Options and System Variables", "Replication and Binary Logging Options and Variables".
var settingDefaults = map[string]string{
	"auto_increment_increment": "1", "auto_increment_offset": "1", "autocommit": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL", "character_set_server": "utf8mb4",
	"collation_server": "utf8mb4_0900_ai_ci", "completion_type": "NO_CHAIN", "default_storage_engine": "InnoDB", "explicit_defaults_for_timestamp": "ON", "foreign_key_checks": "ON",
	"group_concat_max_len": "1024", "innodb_lock_wait_timeout": "50", "innodb_strict_mode": "ON", "interactive_timeout": "28800", "lock_wait_timeout": "31536000",
	"long_query_time": "10.000000", "max_allowed_packet": "67108864", "max_execution_time": "0", "sql_require_primary_key": "OFF", "time_zone": "SYSTEM",
	"sql_mode":              "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
	"transaction_isolation": "REPEATABLE-READ", "unique_checks": "ON", "wait_timeout": "28800",
	// Those that only the whole server has.
	"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1", "binlog_checksum": "CRC32", "binlog_expire_logs_seconds": "2592000", "replica_exec_mode": "STRICT", "slave_exec_mode": "STRICT",
	"max_connections": "151", "max_connect_errors": "100", "local_infile": "OFF", "innodb_buffer_pool_size": "134217728", "read_only": "OFF", "super_read_only": "OFF", "general_log": "OFF",
	"slow_query_log": "OFF", "event_scheduler": "ON", "require_secure_transport": "OFF", "offline_mode": "OFF",
}

// ListsSessionSettings reports whether RuntimeSettings lists what a session set for itself as if it were set for all: MySQL.
func (s Server) ListsSessionSettings() bool { return !s.MariaDB() }

// SettingDefault is the compiled-in value of a variable, where that is known and RuntimeSettings lists variables that have it.
func (s Server) SettingDefault(name string) (value string, known bool) {
	if s.MariaDB() {
		return "", false
	}
	value, known = settingDefaults[name]
	return value, known
}
