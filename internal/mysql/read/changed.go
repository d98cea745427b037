package read

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Changed is a global variable that does not have its compiled-in value.
type Changed struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source,omitempty"` // where the value came from, in the server's words: EXPLICIT, COMMAND-LINE, CONFIG, SQL
}

// identityVariables name this server and its files; they differ between any two servers and make neither faster. What kind
// of disk is behind a path is the host's to say.
var identityVariables = map[string]bool{
	"datadir": true, "port": true, "socket": true, "pid_file": true, "server_id": true, "server_uuid": true, "server_uid": true, "hostname": true, "report_host": true,
	"report_port": true, "log_error": true, "general_log_file": true, "slow_query_log_file": true, "tmpdir": true, "slave_load_tmpdir": true,
	"replica_load_tmpdir": true, "basedir": true, "plugin_dir": true, "character_sets_dir": true, "lc_messages_dir": true, "innodb_data_home_dir": true,
	"innodb_log_group_home_dir": true, "innodb_undo_directory": true, "log_bin_basename": true, "log_bin_index": true, "relay_log": true,
	"relay_log_basename": true, "relay_log_index": true, "relay_log_info_file": true, "mysqlx_port": true, "mysqlx_socket": true, "admin_port": true,
	"admin_address": true, "bind_address": true, "mysqlx_bind_address": true, "secure_file_priv": true, "gtid_domain_id": true, "wsrep_node_name": true, "wsrep_node_address": true,
	"wsrep_node_incoming_address": true, "wsrep_cluster_address": true, "wsrep_data_home_dir": true, "ssl_ca": true, "ssl_cert": true, "ssl_key": true,
	"mysqlx_ssl_ca": true, "mysqlx_ssl_cert": true, "mysqlx_ssl_key": true, "admin_ssl_ca": true, "admin_ssl_cert": true, "admin_ssl_key": true,
	"innodb_directories": true, "innodb_temp_tablespaces_dir": true, "system_time_zone": true, "license": true, "user": true,
	"init_file": true, "innodb_buffer_pool_filename": true, "log_slow_query_file": true, "log_basename": true, "ssl_capath": true, "caching_sha2_password_private_key_path": true, "caching_sha2_password_public_key_path": true,
	"sha256_password_private_key_path": true, "sha256_password_public_key_path": true, "build_id": true,
}

// IdentityVariable reports whether a variable names a server or its files, and so says nothing about how fast it is.
func IdentityVariable(name string) bool { return identityVariables[name] }

// changedStatement asks for the variables that do not have their compiled-in value. all says that this server does not show
// which, so that all of them are returned. If the session has its own value, variables_info is about that: ours has some from
// connecting, and of foreign_key_checks from the server's start. Where a session set one, MySQL says so to all (seen on 9.7).
// These count only if the global value is not the default.
// The table exists since MySQL 8.0, SYSTEM_VARIABLES.GLOBAL_VALUE_ORIGIN since MariaDB 10.1.
func changedStatement(s mysql.Server) (query string, all bool) {
	switch {
	case s.MariaDB() && s.Number >= 100100:
		return `SELECT /* risso: what is set here? */ VARIABLE_NAME, GLOBAL_VALUE, GLOBAL_VALUE_ORIGIN FROM information_schema.SYSTEM_VARIABLES
  WHERE GLOBAL_VALUE_ORIGIN NOT IN ('COMPILE-TIME') AND NOT (GLOBAL_VALUE_ORIGIN IN ('CONFIG', 'COMMAND-LINE', 'SQL', 'AUTO') AND GLOBAL_VALUE <=> DEFAULT_VALUE) ORDER BY VARIABLE_NAME`, false
	case s.AtLeast(80000, fleet.Never):
		return `SELECT /* risso: what is set here? */ i.VARIABLE_NAME, g.VARIABLE_VALUE, i.VARIABLE_SOURCE
  FROM performance_schema.variables_info i JOIN performance_schema.global_variables g ON g.VARIABLE_NAME = i.VARIABLE_NAME
  WHERE i.VARIABLE_SOURCE <> 'COMPILED'
    AND NOT (i.VARIABLE_SOURCE = 'DYNAMIC' AND (i.VARIABLE_NAME, g.VARIABLE_VALUE) IN (('long_query_time', '10.000000'), ('min_examined_row_limit', '0'), ('foreign_key_checks', 'ON'),
      ('max_execution_time', '0'), ('print_identified_with_as_hex', 'OFF'), ('show_create_table_verbosity', 'OFF'), ('show_gipk_in_create_table_and_information_schema', 'ON'), ('information_schema_stats_expiry', '86400')))
  ORDER BY i.VARIABLE_NAME`, false
	default:
		return "SHOW /* risso: what is set here? */ GLOBAL VARIABLES", true
	}
}

// ChangedVariables returns the global variables that do not have their compiled-in value, in the server's order of names; all says
// that this server does not show which those are, so that every variable is returned. Secrets are hidden, and variables that
// change by themselves are left out.
func ChangedVariables(ctx context.Context, c *mysql.Conn) (list []Changed, all bool, err error) {
	query, all := changedStatement(c.Server)
	err = c.Query(ctx, query, func(row []sqldriver.Value) error {
		v := Changed{Name: strings.ToLower(mysql.Text(row[0]))}
		v.Value = shown(v.Name, mysql.Text(row[1]))
		if len(row) > 2 {
			v.Source = mysql.Text(row[2])
		}
		if !Moving(v.Name) {
			list = append(list, v)
		}
		return nil
	})
	if err != nil {
		return nil, all, fmt.Errorf("ask which variables were changed: %w", err)
	}
	return list, all, nil
}
