package mysql

import (
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// This file answers what the packages above ask about a server, so that none of them asks for its flavour: what it is able to do, what its
// things are called, and the statements in its words. Of makes a Server from its flavour and version.

// StartReplica is the statement that starts a replication channel; "" is the only one.
func (s Server) StartReplica(channel string) string { return s.replica("START", channel) }

// StopReplica is the statement that stops a replication channel.
func (s Server) StopReplica(channel string) string { return s.replica("STOP", channel) }

func (s Server) replica(verb, channel string) string {
	quoted, word := Literal(channel), verb+" SLAVE"
	if s.atLeast(80022) {
		word = verb + " REPLICA"
	}
	switch {
	case channel == "":
		return word
	case s.MariaDB():
		return word + " " + quoted
	}
	return word + " FOR CHANNEL " + quoted
}

// ApplyModeVariable is the variable that tells replicas to pass over, or overwrite, rows that are not as an event expects them.
func (s Server) ApplyModeVariable() string {
	if s.atLeast(80026) {
		return "replica_exec_mode"
	}
	return "slave_exec_mode"
}

// Appliers are the variables that say with how many threads a replica applies, and the word for a replica in statements that goes with
// each: a server has one of them, or the older one as well.
func (s Server) Appliers() []struct{ Variable, Word string } {
	if s.MariaDB() {
		return []struct{ Variable, Word string }{{"slave_parallel_threads", "SLAVE"}}
	}
	return []struct{ Variable, Word string }{{"replica_parallel_workers", "REPLICA"}, {"slave_parallel_workers", "SLAVE"}}
}

// ReadOnlyVariable is the variable that keeps everybody from writing whom one can: super_read_only sets read_only too.
func (s Server) ReadOnlyVariable() string {
	if s.MariaDB() {
		return "read_only"
	}
	return "super_read_only"
}

// OldJSONTypes reports whether its JSON documents have the types of MySQL 5.7: later ones show DOUBLE with a point, and have numbers and
// VARCHAR in place of YEAR and VAR_STRING.
func (s Server) OldJSONTypes() bool { return s.TypesJSON() && !s.atLeast(80000) }

// ResizesRedo reports whether innodb_log_file_size can be set while the server runs: MariaDB since 10.9.
func (s Server) ResizesRedo() bool { return s.AtLeast(fleet.Never, 100900) }

// CountsAllDeadlocks reports whether the counter of deadlocks leaves none out. MySQL 5.7 leaves out those that it ends by sending away the
// transaction that came last, which it does when the others have done as much (check_and_resolve in its lock0lock.cc; seen on 5.7.22).
func (s Server) CountsAllDeadlocks() bool { return s.AtLeast(80000, 0) }

// RecordsMetadataLocks reports whether performance_schema, if it is on, shows who holds metadata locks by default.
func (s Server) RecordsMetadataLocks() bool { return s.atLeast(80001) }

// MetadataLockPlugin makes information_schema.METADATA_LOCK_INFO tell who holds metadata locks; "" if there is none.
func (s Server) MetadataLockPlugin() string {
	if s.MariaDB() {
		return "metadata_lock_info"
	}
	return ""
}

// RowLockStatement lists transactions that wait for a lock of InnoDB, and those that hold it. instrumented: performance_schema is on. Where
// only that tells locks and it is off, it lists what transactions there are: one of those that do not wait holds what others want,
// often the oldest.
func (s Server) RowLockStatement(instrumented bool) string {
	switch {
	case s.MariaDB():
		return "SELECT w.trx_mysql_thread_id AS waits, LEFT(w.trx_query, 100) AS query, b.trx_mysql_thread_id AS holds, b.trx_started FROM information_schema.INNODB_LOCK_WAITS l JOIN information_schema.INNODB_TRX w ON w.trx_id = l.requesting_trx_id JOIN information_schema.INNODB_TRX b ON b.trx_id = l.blocking_trx_id"
	case !instrumented && s.atLeast(80001):
		return "SELECT trx_mysql_thread_id AS id, trx_state, trx_started, trx_rows_locked, LEFT(trx_query, 100) AS query FROM information_schema.INNODB_TRX ORDER BY trx_state = 'LOCK WAIT', trx_started"
	}
	return "SELECT wait_age, locked_table, waiting_pid, waiting_query, blocking_pid, blocking_query, sql_kill_blocking_connection FROM sys.innodb_lock_waits"
}

// TimesTransactions reports whether performance_schema tells when the transactions that a replica applies were committed first.
func (s Server) TimesTransactions() bool { return s.atLeast(80001) && s.PerformanceSchema }

// GTIDsByDomain reports whether GTIDs are domain-server-number: a set of them is how far each domain has come, and numbers may have holes. The
// others are uuid:number, and a set has each of them.
func (s Server) GTIDsByDomain() bool { return s.MariaDB() }

// CountsUnwritten reports whether a transaction has its GTID, and counts as executed, before it is written to the binary log, also where that then fails. MySQL adds it to gtid_executed
// afterwards.
func (s Server) CountsUnwritten() bool { return s.MariaDB() }

// SetGTIDs are the statements that make a server record that it has all transactions of a set: after a restore it can
// then follow the server that the backup is of. MySQL before 8.0 takes a set only if it has none of its own, so what it
// wrote is forgotten first. So it is on MariaDB, which with gtid_strict_mode refuses a position after its own transactions in the
// same domain (error 1947), and without it could follow, but not be followed any more. Sources: MySQL manual, "gtid_purged" and "RESET MASTER Statement"; MariaDB documentation,
// "gtid_slave_pos".
func (s Server) SetGTIDs(set string) []string {
	switch {
	case s.MariaDB():
		return []string{"RESET MASTER /* risso: position of a backup */", "SET GLOBAL /* risso: position of a backup */ gtid_slave_pos = " + Literal(set)}
	case s.atLeast(80400):
		return []string{"RESET BINARY LOGS AND GTIDS /* risso: position of a backup */", "SET GLOBAL gtid_purged = " + Literal(set)}
	default:
		return []string{"RESET MASTER /* risso: position of a backup */", "SET GLOBAL gtid_purged = " + Literal(set)}
	}
}

// TakesPosition are statements by which a server without its own GTIDs takes a set for what it has applied.
func (s Server) TakesPosition(set GTIDSet) string {
	if s.GTIDsByDomain() {
		return "RESET MASTER; SET GLOBAL gtid_binlog_state = '" + set.String() + "' on a server without replicas"
	}
	return "SET GLOBAL gtid_purged = '" + set.String() + "' on a server that has no GTIDs yet"
}

// LogsFilledTables reports whether the binary log has the CREATE TABLE of a CREATE TABLE … SELECT and its rows as one transaction, and the
// statement as it is. MySQL logs two, or marks the one (8.0.21).
func (s Server) LogsFilledTables() bool { return s.MariaDB() }

// LogsDefaults reports whether statements in the binary log come with default_collation_for_utf8mb4, sql_require_primary_key,
// default_table_encryption and explicit_defaults_for_timestamp.
func (s Server) LogsDefaults() bool { return !s.MariaDB() }

// HasSequences reports whether there are sequences, and packages of programs.
func (s Server) HasSequences() bool { return s.MariaDB() }

// HasHistory reports whether tables can keep rows of the past (WITH SYSTEM VERSIONING). Temporary ones cannot.
func (s Server) HasHistory() bool { return s.MariaDB() }

// HasTablespaces reports whether tables can lie in general tablespaces.
func (s Server) HasTablespaces() bool { return !s.MariaDB() }

// RolesAreAccounts reports whether a role is an account that is locked, with a host in its name.
func (s Server) RolesAreAccounts() bool { return !s.MariaDB() }

// SeveralLogins reports whether an account can have several ways to log in, of which one does.
func (s Server) SeveralLogins() bool { return s.MariaDB() }

// IdentifiedBy are the words of CREATE USER for a way to log in; what follows them is its secret, without which the last word goes.
func (s Server) IdentifiedBy(plugin string) string {
	if s.MariaDB() {
		return " IDENTIFIED VIA " + plugin + " USING "
	}
	return " IDENTIFIED WITH '" + plugin + "' AS "
}

// RevokesPartially reports whether partial_revokes may make names of schemas in a GRANT, which are patterns else, mean what they say.
func (s Server) RevokesPartially() bool { return s.atLeast(80016) }

// ChecksBySchema reports whether the name of a CHECK is there once in a schema, and not once in a table; that of a foreign key is everywhere.
// Sources: MySQL manual, "CHECK Constraints" and "FOREIGN KEY Constraints"; MariaDB documentation, "CONSTRAINT".
func (s Server) ChecksBySchema() bool { return s.atLeast(80016) }

// AlwaysChecks reports whether a CHECK holds for every session. MariaDB lets a session switch checks off, MySQL before 8.0.16 has none.
func (s Server) AlwaysChecks() bool { return s.atLeast(80016) }

// RefusesOldNames reports whether no name may begin with #mysql50#, the sign of one that MySQL 5.0 wrote.
func (s Server) RefusesOldNames() bool { return !s.MariaDB() && !s.atLeast(80000) }

// HiddenKey are the words for a key that is kept and not used; "" if there are none.
func (s Server) HiddenKey() string {
	switch {
	case !s.MariaDB():
		return mysqlHiddenKey
	case s.Number >= 100600:
		return mariadbHiddenKey
	}
	return ""
}

// InvisibleColumn is the word of a column's definition that leaves it out of SELECT * and of an INSERT without a list of columns; "" if there
// is none. Sources: MySQL manual, "Invisible Columns"; MariaDB documentation, "Invisible Columns".
func (s Server) InvisibleColumn() string {
	if s.AtLeast(80023, 100303) {
		return " INVISIBLE"
	}
	return ""
}

// HiddenKeys are the words of any server for a key that is kept and not used.
func HiddenKeys() []string { return []string{mysqlHiddenKey, mariadbHiddenKey} }

const (
	mysqlHiddenKey   = " /*!80000 INVISIBLE */"
	mariadbHiddenKey = " IGNORED"
)

// TextDefaultsPlain reports whether the default of a TEXT or BLOB is written without parentheses. Source: MySQL manual, "Data Type Default
// Values".
func (s Server) TextDefaultsPlain() bool { return s.MariaDB() }

// CompressesColumns reports whether a column can be compressed by itself; the others ignore the comment that says so.
func (s Server) CompressesColumns() bool { return s.MariaDB() }

// PartitionsAnyEngine reports whether an engine need not know of partitions to have them. Source: MySQL manual, "Partitioning Limitations
// Relating to Storage Engines".
func (s Server) PartitionsAnyEngine() bool { return !s.atLeast(80000) }

// CommentsSchemas reports whether a schema can have a COMMENT.
func (s Server) CommentsSchemas() bool { return s.MariaDB() }

// TypesJSON reports whether values in JSON documents have types that their text does not show. On MariaDB JSON is text.
func (s Server) TypesJSON() bool { return !s.MariaDB() }

// GrowsRows reports whether LOAD DATA reads a row into a buffer that grows a little at a time and is copied each time: 15 seconds for a row
// of 16 MB (8.0.15), minutes for 60 MB.
func (s Server) GrowsRows() bool { return !s.MariaDB() }

// NamesUTF8MB4 reports whether default_collation_for_utf8mb4 lets a session say which collation utf8mb4 alone means.
func (s Server) NamesUTF8MB4() bool { return !s.MariaDB() }

// NewUTF8MB4 reports whether utf8mb4's collation is one that older servers do not have, and is always named.
func (s Server) NewUTF8MB4() bool { return s.atLeast(80000) }

// HasComponents reports whether what extends the server can be a component, listed in mysql.component: MySQL since 8.0.
func (s Server) HasComponents() bool { return s.atLeast(80000) }

// OldTemporals reports whether tables may have times in the form from before 5.6.4, and InnoDB a list of tables of its own that can differ
// from the server's: MySQL before 8.0.
func (s Server) OldTemporals() bool { return !s.MariaDB() && !s.atLeast(80000) }

// SystemTable reports whether the server itself has a table of this name in the schema mysql, among those that matter: MySQL 5.7 has these,
// and 8.0 all that it needs, which it protects.
func (s Server) SystemTable(name string) bool {
	return !s.OldTemporals() || strings.Contains(" columns_priv db engine_cost event func general_log gtid_executed help_category help_keyword help_relation help_topic innodb_index_stats innodb_table_stats ndb_binlog_index plugin proc procs_priv proxies_priv server_cost servers slave_master_info slave_relay_log_info slave_worker_info slow_log tables_priv time_zone time_zone_leap_second time_zone_name time_zone_transition time_zone_transition_type user ", " "+name+" ")
}

// HasUUID reports whether the server has a unique ID.
func (s Server) HasUUID() bool { return !s.MariaDB() }

// KnowsCRC32C reports whether the server has CRC32C() in addition to CRC32(): MariaDB since 10.8.
func (s Server) KnowsCRC32C() bool { return s.MariaDB() && s.Number >= 100800 }

// CombinesBinary reports whether BIT_XOR() takes binary strings of any length: MySQL since 8.0. MariaDB's takes numbers only.
func (s Server) CombinesBinary() bool { return s.atLeast(80000) }

// ReloadCertificate makes the server read the files of its certificate anew, as it is; "" if only a restart does. Sources: MySQL manual,
// "ALTER INSTANCE Statement"; MariaDB documentation, "FLUSH".
func (s Server) ReloadCertificate() string {
	switch {
	case s.AtLeast(fleet.Never, 100401):
		return "FLUSH SSL"
	case s.atLeast(80016):
		return "ALTER INSTANCE RELOAD TLS"
	}
	return ""
}

// ShowsCertificate reports whether only those who connect over TLS see the server's certificate. Others have when it ends in their status.
func (s Server) ShowsCertificate() bool { return s.MariaDB() }

// Bounded is a SELECT that the server itself ends after a time, with an error. Its mark comes first: MySQL sees a hint only right after the
// SELECT, and what is in a mark's way hides it from those who leave out Risso's statements. Sources: MySQL manual, "Optimizer Hints",
// MAX_EXECUTION_TIME; MariaDB documentation, "SET STATEMENT".
func (s Server) Bounded(d time.Duration, query string) string {
	mark := ""
	if from := strings.Index(query, "/* risso"); from >= 0 {
		if n := strings.Index(query[from:], "*/ "); n >= 0 {
			mark, query = query[from:from+n+3], query[:from]+query[from+n+3:]
		}
	}
	if s.MariaDB() {
		return mark + "SET STATEMENT max_statement_time = " + strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " FOR " + query
	}
	return mark + strings.Replace(query, "SELECT ", "SELECT /*+ MAX_EXECUTION_TIME("+strconv.FormatInt(max(1, d.Milliseconds()), 10)+") */ ", 1)
}
