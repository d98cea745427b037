package mysql

import (
	"context"
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

// KeptSetting is what a server that KeepsSettings has written down of a global variable; ok is false if it has nothing, or keeps none. Source: MySQL manual, "The
// persisted_variables Table".
func KeptSetting(ctx context.Context, c *Conn, name string) (value string, ok bool, err error) {
	if !c.Server.KeepsSettings() {
		return "", false, nil
	}
	rows, err := c.Maps(ctx, "SELECT /* risso: what is kept for the next start? */ VARIABLE_VALUE AS v FROM performance_schema.persisted_variables WHERE VARIABLE_NAME = "+Literal(name))
	if err != nil || len(rows) == 0 {
		return "", false, err
	}
	return rows[0]["v"], true, nil
}

// TakeBack are the statements that take SetLasting back, separated by "; ": a global variable has its value again, and of what was written down of it is what was: kept,
// if was is true.
func (s Server) TakeBack(name, value, kept string, was bool) string {
	global := "SET GLOBAL " + name + " = " + SettingText(value)
	switch {
	case !s.KeepsSettings():
		return global
	case !was:
		return global + "; " + s.ForgetForStart(name)
	case kept == value:
		return s.SetLasting(name, value)
	}
	return global + "; " + s.SetForStart(name, kept)
}

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

// UnblockHosts lets hosts connect again that the server blocks because of many connection errors; "" if it is not known what the server is. Sources: MySQL
// manual, "FLUSH Statement" (FLUSH HOSTS went with 8.4) and "The host_cache Table"; MariaDB documentation, "FLUSH".
func (s Server) UnblockHosts() string {
	switch {
	case s.Number == 0:
		return ""
	case s.AtLeast(80023, fleet.Never):
		return "TRUNCATE TABLE performance_schema.host_cache"
	}
	return "FLUSH HOSTS"
}
