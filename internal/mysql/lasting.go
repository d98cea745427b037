package mysql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// KeepsSettings reports whether the server itself can write down what a setting is to be after a restart: SET PERSIST. Source: MySQL manual,
// "Persisted System Variables".
func (s Server) KeepsSettings() bool { return s.atLeast(80000) }

// SetLasting gives a global variable a value, for good where the server keeps its settings; else until it is started again.
func (s Server) SetLasting(name, value string) string {
	verb := "SET GLOBAL "
	if s.KeepsSettings() {
		verb = "SET PERSIST "
	}
	return verb + name + " = " + SettingText(value)
}

// SetForStart writes down what a global variable is to be from the next start on, where KeepsSettings; the running server is not touched.
func (s Server) SetForStart(name, value string) string {
	return "SET PERSIST_ONLY " + name + " = " + SettingText(value)
}

// ForgetForStart takes back what SetForStart wrote down.
func (s Server) ForgetForStart(name string) string { return "RESET PERSIST IF EXISTS " + name }

// SettingText is the value of a variable as SHOW VARIABLES says it, as SET takes it: numbers and words such as ON as they are.
func SettingText(value string) string {
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return value
	}
	switch strings.ToUpper(value) {
	case "ON", "OFF", "DEFAULT":
		return value
	}
	return Literal(value)
}

// RedoLimit is the variable that says how large the redo log can become, and how many bytes its value v means; several files of MySQL before
// 8.0.30 and MariaDB before 10.5 make it together. Sources: MySQL manual, "Redo Log"; MariaDB documentation, "innodb_log_file_size".
func (s Server) RedoLimit(variable func(name string) string) (name string, bytes float64) {
	name = "innodb_log_file_size"
	if v := variable("innodb_redo_log_capacity"); v != "" {
		name = "innodb_redo_log_capacity"
	}
	bytes, _ = strconv.ParseFloat(variable(name), 64)
	if files, err := strconv.ParseFloat(variable("innodb_log_files_in_group"), 64); err == nil && name == "innodb_log_file_size" && files > 1 {
		bytes *= files
	}
	return name, bytes
}

// RedoGrows reports whether the size of the redo log can be set while the server runs.
func (s Server) RedoGrows() bool { return s.AtLeast(80030, 100900) }

// NeedsRelayRecovery reports whether a replica that follows by GTID needs relay_log_recovery to survive a crash of its machine. MariaDB
// throws its relay logs away when it is started, if it follows by GTID. Sources: MySQL manual, "Making Replication Resilient to an
// Unexpected Halt of a Replica"; MariaDB documentation, "Global Transaction ID".
func (s Server) NeedsRelayRecovery() bool { return !s.MariaDB() }

// WithoutForeignKeyChecks is a statement that runs without foreign keys being checked, where the server can do that for one statement; else
// the statement itself.
func (s Server) WithoutForeignKeyChecks(statement string) string {
	if s.MariaDB() {
		return "SET STATEMENT foreign_key_checks = 0 FOR " + statement
	}
	return statement
}

// ForeignKeysStatement lists the columns of all foreign keys that the account may see, in their order: schema, table, name, column, then schema,
// table and column that it refers to.
func (s Server) ForeignKeysStatement() string {
	return "SELECT /* risso: foreign keys */ TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME" +
		" FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL ORDER BY TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION"
}

// HiddenIndexColumn is the column of information_schema.STATISTICS that tells whether an index is kept and not used, and the value that says so;
// "" if there is none.
func (s Server) HiddenIndexColumn() (column, hidden string) {
	switch {
	case s.atLeast(80000):
		return "IS_VISIBLE", "NO"
	case s.AtLeast(fleet.Never, 100600):
		return "IGNORED", "YES"
	}
	return "", ""
}

// InnoDBForeignKeys asks InnoDB for all foreign keys of the server, where looking for them in information_schema opens every table; both are "" if
// that is cheap. keys tells for each its ID, schema and table, then schema and table that it refers to, and columns the ID, a column and the one
// that it refers to, in their order. InnoDB keeps names of tables as their files are called. It needs PROCESS, and sees tables that the account may
// not see.
func (s Server) InnoDBForeignKeys() (keys, columns string) {
	if s.Dictionary() {
		return "", ""
	}
	return "SELECT /* risso: foreign keys */ ID, " + s.decoded("FOR_NAME") + ", " + s.decoded("REF_NAME") + " FROM information_schema.INNODB_SYS_FOREIGN WHERE FOR_NAME NOT LIKE '%/#sql%'",
		"SELECT /* risso: columns of foreign keys */ ID, FOR_COL_NAME, REF_COL_NAME FROM information_schema.INNODB_SYS_FOREIGN_COLS ORDER BY ID, POS"
}

// decoded are schema and table of a column that has them as their files are called; as they are, if the server does not read those.
func (s Server) decoded(column string) string {
	part := "SUBSTRING_INDEX(%s, '/', %d)"
	if s.ReadsFileNames() {
		part = "CONVERT(CONVERT(CAST(SUBSTRING_INDEX(%s, '/', %d) AS BINARY) USING filename) USING utf8mb4)"
	}
	return fmt.Sprintf(part+", "+part, column, 1, column, -1)
}

// ReadsFileNames reports whether statements can read the names that files of tables have: MariaDB. Else InnoDBForeignKeys and InnoDBTables tell a
// name that has other signs than letters and digits as that of the file, with an @.
func (s Server) ReadsFileNames() bool { return s.MariaDB() }

// InnoDBTables asks InnoDB for schema and name of its tables, where information_schema opens a file to tell whether a name is that of a table; ""
// if that is cheap. It needs PROCESS.
func (s Server) InnoDBTables() string {
	if s.Dictionary() {
		return ""
	}
	return "SELECT /* risso: tables of InnoDB */ " + s.decoded("NAME") + " FROM information_schema.INNODB_SYS_TABLES WHERE NAME LIKE '%/%'"
}

// Dictionary reports whether information_schema is views of a dictionary that is kept in tables, MySQL since 8.0: reading it opens no table, it
// tells all of an index, and several schemas are asked for as cheaply as one (MySQL manual, "Data Dictionary Usage Differences").
func (s Server) Dictionary() bool { return s.atLeast(80000) }

// HideIndex is the part of ALTER TABLE that keeps an index from being used, or lets it be used again; "" if the server cannot hide indexes.
func (s Server) HideIndex(name string, hide bool) string {
	word := map[bool]string{true: "INVISIBLE", false: "VISIBLE"}
	switch s.HiddenKey() {
	case "":
		return ""
	case mariadbHiddenKey:
		word = map[bool]string{true: "IGNORED", false: "NOT IGNORED"}
	default:
		if !s.atLeast(80000) {
			return ""
		}
	}
	return "ALTER INDEX " + Quote(name) + " " + word[hide]
}

// RefusesZeroDates reports whether a sql_mode refuses an ALTER TABLE of a table that has 0000-00-00, or a date whose month or day is 0, as a
// column's default: MySQL only in strict mode (seen on MySQL 5.7, 8.0, 9.7 and MariaDB 10.11).
func (s Server) RefusesZeroDates(mode string) (zero, within bool) {
	modes := strings.Split(mode, ",")
	if !s.MariaDB() && !slices.Contains(modes, "STRICT_TRANS_TABLES") && !slices.Contains(modes, "STRICT_ALL_TABLES") {
		return false, false
	}
	return slices.Contains(modes, "NO_ZERO_DATE"), slices.Contains(modes, "NO_ZERO_IN_DATE")
}

// GrowsLogBuffer reports whether innodb_log_buffer_size can be set while the server runs: MySQL since 8.0.11.
func (s Server) GrowsLogBuffer() bool { return s.atLeast(80011) }

// GivesKeys reports whether the server can give tables without a primary key one of its own accord: sql_generate_invisible_primary_key.
func (s Server) GivesKeys() bool { return s.AtLeast(80030, fleet.Never) }

// HitsAreSelects reports whether Com_select counts SELECTs that the query cache answered. It does not, where there is one: MySQL manual 5.7,
// "Query Cache Status and Maintenance"; MariaDB since 10.1 documents the same.
func (s Server) HitsAreSelects() bool { return s.MariaDB() }

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
