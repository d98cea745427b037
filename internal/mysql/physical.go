package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// OptionFile is the text of an option file by which a program of the server's own logs in as the target. It holds the
// password: it must be readable by nobody else. (https://dev.mysql.com/doc/refman/9.4/en/option-files.html)
func (t Target) OptionFile(group string, options ...string) (string, error) {
	if t.cfg == nil {
		return "", fmt.Errorf("%w: no address", ErrDSN)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[%s]\n", group)
	set := func(name, value string) { fmt.Fprintf(&b, "%s=\"%s\"\n", name, optionEscape.Replace(value)) }
	set("user", t.cfg.User)
	if t.cfg.Passwd != "" {
		set("password", t.cfg.Passwd)
	}
	if t.cfg.Net == "unix" {
		set("socket", t.cfg.Addr)
	} else {
		host, port, err := net.SplitHostPort(t.cfg.Addr)
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrDSN, errors.New("the address has no port"))
		}
		if host == "localhost" {
			host = "127.0.0.1" // to these programs that name means the socket
		}
		set("host", host)
		set("port", port)
		set("protocol", "tcp")
	}
	for _, o := range options {
		b.WriteString(o + "\n")
	}
	return b.String(), nil
}

// optionEscape writes what would end a value or begin an escape sequence.
var optionEscape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

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

// BackupLockStatements are the beginnings of the statements by which such a tool asks for locks that others wait behind.
func (s Server) BackupLockStatements() []string {
	if s.MariaDB() {
		return []string{"BACKUP STAGE", "FLUSH TABLES WITH READ LOCK", "FLUSH NO_WRITE_TO_BINLOG TABLES"}
	}
	return []string{"LOCK INSTANCE FOR BACKUP", "LOCK TABLES FOR BACKUP", "FLUSH TABLES WITH READ LOCK", "FLUSH NO_WRITE_TO_BINLOG TABLES", "LOCK BINLOG FOR BACKUP"}
}

// SessionList reads what sessions of users run, and for how many milliseconds (MS).
func (s Server) SessionList() string {
	if s.MariaDB() {
		return "SELECT /* risso: who waits? */ ID, TIME_MS AS MS, STATE, INFO FROM information_schema.PROCESSLIST WHERE COMMAND = 'Query' AND INFO IS NOT NULL"
	}
	// TIME counts whole seconds here.
	return "SELECT /* risso: who waits? */ ID, TIME * 1000 AS MS, STATE, INFO FROM information_schema.PROCESSLIST WHERE COMMAND = 'Query' AND INFO IS NOT NULL"
}

// CopyGrants is the statement that gives an account what the tool needs.
func (s Server) CopyGrants(tool CopyTool) string {
	return "GRANT " + strings.Join(s.copyPrivileges(tool), ", ") + " ON *.* TO " + s.QuotedAccount()
}

func (s Server) copyPrivileges(tool CopyTool) []string {
	switch {
	case tool == ToolClone:
		return []string{"BACKUP_ADMIN", "SELECT", s.logsPrivilege()} // to see which tables CLONE leaves empty, and what the binary logs leave out
	case !s.MariaDB():
		return []string{"BACKUP_ADMIN", "PROCESS", "RELOAD", "LOCK TABLES", "REPLICATION CLIENT"}
	}
	return []string{"RELOAD", "PROCESS", "LOCK TABLES", s.logsPrivilege()}
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

// Variables reads some global variables; those that the server does not have are left out.
func (c *Conn) Variables(ctx context.Context, names []string) (map[string]string, error) {
	out := make(map[string]string, len(names))
	err := c.Query(ctx, "SHOW /* risso: what a restored server has to be told */ GLOBAL VARIABLES WHERE Variable_name IN ('"+strings.Join(names, "','")+"')", func(row []sqldriver.Value) error {
		out[text(row[0])] = text(row[1])
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read variables: %w", err)
	}
	return out, nil
}

// Text runs a query and gives the first value of its first row; "" where there is none.
func (c *Conn) Text(ctx context.Context, query string) (string, error) {
	var out string
	first := true
	err := c.Query(ctx, query, func(row []sqldriver.Value) error {
		if first && len(row) > 0 {
			out, first = text(row[0]), false
		}
		return nil
	})
	return out, err
}

// PluginState is the state of a plug-in: ACTIVE, INACTIVE, DISABLED, or "" where it is not installed.
func (c *Conn) PluginState(ctx context.Context, name string) (string, error) {
	state, err := c.Text(ctx, "SELECT /* risso: is the plug-in there? */ PLUGIN_STATUS FROM information_schema.PLUGINS WHERE PLUGIN_NAME = '"+name+"'")
	if err != nil {
		return "", fmt.Errorf("read the list of plug-ins: %w", err)
	}
	return state, nil
}

// IsReplica says whether the server is told to replicate from another.
func (c *Conn) IsReplica(ctx context.Context) (bool, error) {
	rows, err := c.Maps(ctx, c.Server.ReplicaStatusStatement())
	return len(rows) > 0, err
}

// ReplicaPrivilege is the privilege that IsReplica needs.
func (s Server) ReplicaPrivilege() string { return s.replicaPrivilege() }

// SeesAllTables says whether the account may read every table, so that information_schema shows it all of them.
func (c *Conn) SeesAllTables(ctx context.Context) (bool, error) {
	r, err := c.Rights(ctx)
	return r.Have("", "", "SELECT"), err
}
