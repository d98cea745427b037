package mysql

import (
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// AlterAlgorithms are the words for ALGORITHM= of this server's ALTER TABLE, the cheapest first. Sources: MySQL manual, "Online DDL
// Operations"; MariaDB documentation, "InnoDB Online DDL Overview": INSTANT came with MySQL 8.0.12 and, beside NOCOPY, MariaDB 10.3.7.
func (s Server) AlterAlgorithms() []string {
	switch {
	case s.AtLeast(fleet.Never, 100307):
		return []string{"INSTANT", "NOCOPY", "INPLACE", "COPY"}
	case s.atLeast(80012):
		return []string{"INSTANT", "INPLACE", "COPY"}
	}
	return []string{"INPLACE", "COPY"}
}

// AlterTakesLock reports whether LOCK= may stand beside an ALGORITHM. MySQL refuses any but DEFAULT beside INSTANT (error 1221).
func (s Server) AlterTakesLock(algorithm string) bool { return s.MariaDB() || algorithm != "INSTANT" }

// AltersAs reports whether what another server does with an ALTER TABLE holds for this one: it is of the same series, and no version lies
// between them in which the answers changed. Sources: MySQL manual, release notes of 8.0.12 (INSTANT), 8.0.28 (RENAME COLUMN), 8.0.29 (columns
// at any place, DROP COLUMN, row versions) and 9.1 (255 of those); MariaDB documentation, "InnoDB Online DDL Overview", which names series only.
func (s Server) AltersAs(other fleet.Server) bool {
	o := Of(other)
	if s.MariaDB() != o.MariaDB() || s.Number/100 != o.Number/100 {
		return false
	}
	for _, change := range []fleet.Version{80012, 80016, 80028, 80029} {
		if !s.MariaDB() && (s.Number < change) != (o.Number < change) {
			return false
		}
	}
	return true
}

// MaxRowVersions is after how many instant changes of its columns a table has to be rebuilt before the next; 0: there is no such limit.
// Source: MySQL manual, "Online DDL Operations", TOTAL_ROW_VERSIONS: 64 since 8.0.29, 255 since 9.1.
func (s Server) MaxRowVersions() int {
	switch {
	case s.atLeast(90100):
		return 255
	case s.atLeast(80029):
		return 64
	}
	return 0
}

// InnoDBTableIDs lists the tables of InnoDB, a partition each, as NAME and TABLE_ID. A table that was written anew has another one.
func (s Server) InnoDBTableIDs() string {
	return "SELECT /* risso: was the table written anew */ NAME, TABLE_ID FROM information_schema." + s.innodbTable("TABLES")
}

// InnoDBIndexIDs lists the indexes of InnoDB as the NAME of the table, INDEX_ID and the NAME of the index. One that was built anew has another.
func (s Server) InnoDBIndexIDs() string {
	return "SELECT /* risso: was the index built anew */ t.NAME, i.INDEX_ID, i.NAME FROM information_schema." + s.innodbTable("INDEXES") + " i JOIN information_schema." + s.innodbTable("TABLES") + " t ON t.TABLE_ID = i.TABLE_ID"
}

// RowVersions asks for TOTAL_ROW_VERSIONS of a table by the name that InnoDB has for it, its first partition if it has some; "" where there
// are no row versions.
func (s Server) RowVersions(innodbName string) string {
	if s.MaxRowVersions() == 0 {
		return ""
	}
	like := strings.NewReplacer(`\`, `\\`, `_`, `\_`, `%`, `\%`).Replace(innodbName)
	return "SELECT /* risso: how many instant changes had the table */ MAX(TOTAL_ROW_VERSIONS) FROM information_schema.INNODB_TABLES WHERE NAME = " + Literal(innodbName) + " OR NAME LIKE " + Literal(like+"#p#%")
}

// InnoDBFiles asks for the bytes that a table's files have and hold on disk, by the name that InnoDB has for it.
func (s Server) InnoDBFiles(innodbName string) string {
	table := "INNODB_SYS_TABLESPACES"
	if s.atLeast(80000) || s.AtLeast(fleet.Never, 100600) && s.Number >= 100700 {
		table = "INNODB_TABLESPACES"
	}
	if s.MariaDB() {
		table = "INNODB_SYS_TABLESPACES"
	}
	like := strings.NewReplacer(`\`, `\\`, `_`, `\_`, `%`, `\%`).Replace(innodbName)
	return "SELECT /* risso: how large are the table's files */ SUM(FILE_SIZE), SUM(ALLOCATED_SIZE) FROM information_schema." + table + " WHERE NAME = " + Literal(innodbName) + " OR NAME LIKE " + Literal(like+"#p#%") + " OR NAME LIKE " + Literal(like+"#P#%")
}

func (s Server) innodbTable(what string) string {
	if s.atLeast(80000) {
		return "INNODB_" + what
	}
	return "INNODB_SYS_" + what
}

// AlterVariables are the variables that decide how a server does an ALTER TABLE, or whether it takes it: a session's, and those that only hold
// for the whole server.
func (s Server) AlterVariables() (session, global []string) {
	session = []string{"sql_mode", "foreign_key_checks", "unique_checks", "innodb_strict_mode", "old_alter_table", "default_storage_engine", "explicit_defaults_for_timestamp"}
	global = []string{"innodb_default_row_format"}
	if s.MariaDB() {
		return append(session, "alter_algorithm", "system_versioning_alter_history", "check_constraint_checks"), append(global, "innodb_instant_alter_column_allowed")
	}
	return append(session, "sql_require_primary_key", "sql_generate_invisible_primary_key", "default_collation_for_utf8mb4", "default_table_encryption", "innodb_ddl_buffer_size", "innodb_ddl_threads", "innodb_parallel_read_threads"), append(global, "innodb_file_format", "innodb_large_prefix")
}

// AlterStartVariables are those, of the whole server, with which a sandbox is started that answers for it: how names compare, and how much
// memory and disk an ALTER TABLE has.
func (s Server) AlterStartVariables() []string {
	return []string{"lower_case_table_names", "innodb_page_size", "innodb_file_per_table", "innodb_sort_buffer_size", "innodb_online_alter_log_max_size", "innodb_fill_factor",
		"innodb_flush_method", "innodb_doublewrite", "innodb_flush_log_at_trx_commit", "innodb_io_capacity", "innodb_io_capacity_max", "innodb_use_native_aio", "innodb_read_io_threads", "innodb_write_io_threads",
		"innodb_flush_neighbors", "innodb_flush_sync", "innodb_page_cleaners", "innodb_max_dirty_pages_pct", "innodb_max_dirty_pages_pct_lwm", "innodb_adaptive_flushing", "innodb_log_buffer_size",
		"innodb_change_buffering", "innodb_adaptive_hash_index", "innodb_checksum_algorithm", "innodb_disable_sort_file_cache", "innodb_read_ahead_threshold", "innodb_random_read_ahead", "innodb_log_file_buffering", "innodb_data_file_buffering",
		"innodb_data_file_write_through", "innodb_log_file_write_through", "innodb_use_fdatasync"}
}

// RedoVariable is the variable with the size of the redo log, and how many files of that size there are.
func (s Server) RedoVariable() (name string, files int) {
	switch {
	case s.atLeast(80030):
		return "innodb_redo_log_capacity", 1
	case s.AtLeast(fleet.Never, 100500):
		return "innodb_log_file_size", 1
	}
	return "innodb_log_file_size", 2
}

// RedoReserve is how much of the redo log InnoDB keeps free, about, whatever its size: with a log of 8 MB an ALTER TABLE by copying took MySQL 9.7.4 2.1
// times as long for each row as with 16, with 100 MB 0.7 times. Elsewhere less depends on it.
func (s Server) RedoReserve() int64 {
	if s.atLeast(80030) {
		return 9 << 20
	}
	return 0
}

// AlterProgress asks how far the ALTER TABLE of a connection is, as work done and work in all, with the name of the stage; "" if the server cannot
// tell. MySQL tells it if performance_schema records stages of InnoDB's ALTER TABLE.
func (s Server) AlterProgress(connection int64) string {
	id := strconv.FormatInt(connection, 10)
	switch {
	case s.MariaDB():
		return "SELECT /* risso: how far is it */ (GREATEST(STAGE, 1) - 1) * 100 + PROGRESS, GREATEST(MAX_STAGE, 1) * 100, COALESCE(STATE, '') FROM information_schema.PROCESSLIST WHERE ID = " + id
	case s.PerformanceSchema:
		return "SELECT /* risso: how far is it */ s.WORK_COMPLETED, s.WORK_ESTIMATED, s.EVENT_NAME FROM performance_schema.events_stages_current s JOIN performance_schema.threads t ON t.THREAD_ID = s.THREAD_ID WHERE t.PROCESSLIST_ID = " + id
	}
	return ""
}

// BoundLocks bounds how long this session's statements wait for metadata locks, and for rows, before the server ends them with error 1205.
func (s Server) BoundLocks(d time.Duration) string {
	seconds := strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
	return "SET SESSION /* risso: do not wait for a lock for long */ lock_wait_timeout = " + seconds + ", innodb_lock_wait_timeout = " + seconds
}

// NotLogged keeps this session's changes out of the binary log.
func (s Server) NotLogged() string {
	return "SET SESSION /* risso: on this server only */ sql_log_bin = 0"
}

// AltersReplicasFirst reports whether a replica can begin with an ALTER TABLE when its primary does: MariaDB since 10.8 with binlog_alter_two_phase.
func (s Server) AltersReplicasFirst() string {
	if s.AtLeast(fleet.Never, 100801) {
		return "binlog_alter_two_phase"
	}
	return ""
}

// InnoDBName is what InnoDB calls a table, schema/table, as the names of files are encoded; ok is false for letters whose code is not known here.
// Source: MySQL manual, "Mapping of Identifiers to File Names".
func InnoDBName(t TableName) (name string, ok bool) {
	schema, ok1 := fileName(t.Schema)
	table, ok2 := fileName(t.Name)
	return schema + "/" + table, ok1 && ok2
}

func fileName(name string) (string, bool) {
	var b strings.Builder
	for _, c := range name {
		switch {
		case c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z':
			b.WriteRune(c)
		case inRanges(c, encodedLetters):
			return "", false
		default:
			b.WriteString("@" + strings.ToLower(strconv.FormatInt(0x10000+int64(c), 16)[1:]))
		}
	}
	return b.String(), true
}

// NoGhost says why gh-ost (1.1.6) does not work with this server; "" it does. Tried on MySQL 5.7.22, where it does, 8.0.15 and 9.7, and on MariaDB
// 10.11 and 11.8.
func (s Server) NoGhost() string {
	switch {
	case s.MariaDB() && s.Number < 110101:
		return "gh-ost up to 1.1.6 asks for transaction_isolation, which MariaDB has since 11.1"
	case s.MariaDB():
		return "gh-ost up to 1.1.6 never sees its own heartbeat in MariaDB's binary log"
	case s.atLeast(80400):
		return "gh-ost up to 1.1.6 asks SHOW MASTER STATUS, which MySQL 8.4 removed"
	case s.atLeast(80000) && s.Number <= 80015:
		return "gh-ost does not get through its last step: the server's DROP TABLE under LOCK TABLES waits for itself (seen on 8.0.15)"
	}
	return ""
}

// NoPtOSC says why pt-online-schema-change (3.2.1) does not work with this server; "" it does. Source: the program, for MySQL bug 96145.
func (s Server) NoPtOSC() string {
	if s.atLeast(80014) && s.Number <= 80017 {
		return "it refuses MySQL 8.0.14 to 8.0.17 for bug 96145: they may crash when a table is renamed"
	}
	return ""
}

// OneTriggerOfAKind reports whether a table can have only one trigger for an event and a time: MySQL before 5.7.2, MariaDB before 10.2.3.
func (s Server) OneTriggerOfAKind() bool { return !s.AtLeast(50702, 100203) }

// KnowsSlaveWords reports whether statements with the words master and slave are understood: MySQL 8.4 removed them.
func (s Server) KnowsSlaveWords() bool { return !s.atLeast(80400) }

// AlterOperation is one of the changes that an ALTER TABLE makes, as the manuals list them.
type AlterOperation int

// The operations that DocumentedAlter knows.
const (
	AlterOther AlterOperation = iota
	AlterAddColumn
	AlterAddColumnAt // FIRST or AFTER
	AlterDropColumn
	AlterRenameColumn
	AlterDefault
	AlterAddIndex
	AlterAddSpecialIndex // FULLTEXT or SPATIAL
	AlterDropIndex       // or rename one
	AlterAddPrimary
	AlterRename
	AlterRebuild // FORCE, ENGINE=InnoDB, ROW_FORMAT
	AlterConvert // CONVERT TO CHARACTER SET
)

// DocumentedAlter is how the manuals say that this server makes a change to a table of InnoDB: by which algorithm, whether it writes all rows anew or
// builds an index, and under which lock; "" if they depend on more than the words. Sources: MySQL manual 5.7, 8.0, 8.4, "Online DDL Operations"; MariaDB
// documentation, "InnoDB Online DDL Operations with the INPLACE Alter Algorithm" and the pages for NOCOPY and INSTANT.
func (s Server) DocumentedAlter(op AlterOperation) (algorithm string, rebuilds, builds bool, lock string) {
	instant := func(mysql, mariadb fleet.Version, elseRebuilds bool) (string, bool, bool, string) {
		if s.AtLeast(mysql, mariadb) {
			return "INSTANT", false, false, "NONE"
		}
		return "INPLACE", elseRebuilds, false, "NONE"
	}
	noCopy := "INPLACE"
	if s.AtLeast(fleet.Never, 100307) {
		noCopy = "NOCOPY"
	}
	switch op {
	case AlterAddColumn:
		return instant(80012, 100307, true)
	case AlterAddColumnAt, AlterDropColumn:
		return instant(80029, 100400, true)
	case AlterRenameColumn:
		return instant(80028, 100307, false)
	case AlterDefault, AlterRename:
		return instant(80012, 100307, false)
	case AlterAddIndex:
		return noCopy, false, true, "NONE"
	case AlterAddSpecialIndex:
		return noCopy, false, true, "SHARED"
	case AlterDropIndex:
		return instant(fleet.Never, 100307, false)
	case AlterAddPrimary, AlterRebuild:
		return "INPLACE", true, false, "NONE"
	case AlterConvert:
		return "COPY", true, false, "SHARED"
	}
	return "", false, false, ""
}
