package mysql

import (
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// This file answers what the rooms above ask of a server, so that none of them asks for its flavour: what it is able to do, what its
// things are called, and the statements in its words. Of makes a Server of whatever tells flavour and version.

// StartReplica is the statement that starts a replication channel; "" is the only one.
func (s Server) StartReplica(channel string) string {
	quoted, word := "'"+strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(channel)+"'", "START SLAVE"
	if s.atLeast(80022) {
		word = "START REPLICA"
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
// each: a server has one of them, or the older one beside it.
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

// ResizesRedo says whether innodb_log_file_size can be set while the server runs: MariaDB since 10.9.
func (s Server) ResizesRedo() bool { return s.AtLeast(fleet.Never, 100900) }

// CountsAllDeadlocks says whether the counter of deadlocks leaves none out. MySQL 5.7 leaves out those that it ends by sending away the
// transaction that came last, which it does when the others have done as much (check_and_resolve in its lock0lock.cc; seen on 5.7.22).
func (s Server) CountsAllDeadlocks() bool { return s.AtLeast(80000, 0) }

// RecordsMetadataLocks says whether performance_schema, where it is on, tells who holds metadata locks without being told to.
func (s Server) RecordsMetadataLocks() bool { return s.atLeast(80001) }

// MetadataLockPlugin makes information_schema.METADATA_LOCK_INFO tell who holds metadata locks; "" where there is none.
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
