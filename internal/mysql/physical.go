package mysql

import (
	"github.com/rissodb/risso/internal/fleet"
)

// CopyTool is a program, or a part of the server, that copies a server's files.
type CopyTool string

// The tools for physical backups.
const (
	ToolMariaDBBackup CopyTool = "mariadb-backup"
	ToolXtraBackup    CopyTool = "xtrabackup"
	ToolClone         CopyTool = "clone" // the CLONE plug-in
)

// CopyTools are the tools that can copy this server's files, the one to be preferred first.
// CLONE came with MySQL 8.0.17; MariaDB has no such thing, and mariadb-backup (10.1.23) reads MariaDB's files only.
func (s Server) CopyTools() []CopyTool {
	switch {
	case s.MariaDB():
		return []CopyTool{ToolMariaDBBackup}
	case s.Flavour == fleet.FlavourPercona && s.atLeast(80017):
		return []CopyTool{ToolXtraBackup, ToolClone}
	case s.atLeast(80017):
		return []CopyTool{ToolClone, ToolXtraBackup}
	}
	return []CopyTool{ToolXtraBackup}
}

// BackupLockStatements are the beginnings of the statements by which such tools take locks that hold up other sessions.
func (s Server) BackupLockStatements() []string {
	if s.MariaDB() {
		return []string{"BACKUP STAGE", "FLUSH TABLES WITH READ LOCK", "FLUSH NO_WRITE_TO_BINLOG TABLES"}
	}
	return []string{"LOCK INSTANCE FOR BACKUP", "LOCK TABLES FOR BACKUP", "FLUSH TABLES WITH READ LOCK", "FLUSH NO_WRITE_TO_BINLOG TABLES", "LOCK BINLOG FOR BACKUP"}
}

// SessionList is the statement that lists what sessions run, and for how many milliseconds (MS).
func (s Server) SessionList() string {
	if s.MariaDB() {
		return "SELECT /* risso: who waits? */ ID, TIME_MS AS MS, STATE, INFO FROM information_schema.PROCESSLIST WHERE COMMAND = 'Query' AND INFO IS NOT NULL"
	}
	// TIME counts whole seconds here.
	return "SELECT /* risso: who waits? */ ID, TIME * 1000 AS MS, STATE, INFO FROM information_schema.PROCESSLIST WHERE COMMAND = 'Query' AND INFO IS NOT NULL"
}

// CopyGrants is the statement that gives an account what the tool needs.
func (s Server) CopyGrants(tool CopyTool) string {
	return s.Grant(s.copyPrivileges(tool)...)
}

func (s Server) copyPrivileges(tool CopyTool) []string {
	switch {
	case tool == ToolClone:
		return []string{"BACKUP_ADMIN", "SELECT", s.LogsPrivilege()} // to see which tables CLONE leaves empty, and what the binary logs leave out
	case !s.MariaDB():
		return []string{"BACKUP_ADMIN", "PROCESS", "RELOAD", "LOCK TABLES", "REPLICATION CLIENT"}
	}
	return []string{"RELOAD", "PROCESS", "LOCK TABLES", s.LogsPrivilege()}
}

// FilesVariables are the variables without which a server does not start, or starts wrongly, on copied files.
func (s Server) FilesVariables() []string {
	names := []string{"lower_case_table_names", "innodb_page_size", "innodb_data_file_path", "innodb_undo_tablespaces", "innodb_checksum_algorithm", "default_storage_engine", "character_set_server",
		"collation_server", "sql_mode", "explicit_defaults_for_timestamp"}
	if !s.MariaDB() {
		names = append(names, "default_authentication_plugin", "authentication_policy", "innodb_redo_log_capacity")
	}
	return names
}
