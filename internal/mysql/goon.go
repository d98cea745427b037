package mysql

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// This file has the statements that let a replica go on after an error, each for the mysql client as it is, separated by "; ".

// SkipTransaction passes over the transaction at which a channel's applier stopped: an empty one takes its GTID, or the applier is told to
// leave one out. "" if the transaction is not known.
// Sources: MySQL manual, "Skipping Transactions"; MariaDB documentation, "SET GLOBAL SQL_SLAVE_SKIP_COUNTER".
func (s Server) SkipTransaction(ch fleet.Channel, set ReplicaSettings) string {
	return strings.Join(s.SkipSteps(ch, set), "; ")
}

// SkipSteps are the statements of SkipTransaction one by one; the last one starts the channel.
func (s Server) SkipSteps(ch fleet.Channel, set ReplicaSettings) []string {
	start := s.StartReplica(ch.Name)
	numbered := s.NumbersAll(set.GTIDMode) // MySQL refuses to count then
	switch {
	case s.CannotCount(ch, set):
		return nil
	case s.MariaDB() && ch.Name != "":
		return []string{"SET @@SESSION.default_master_connection = " + Literal(ch.Name), "SET GLOBAL sql_slave_skip_counter = 1", start}
	case s.MariaDB():
		return []string{"SET GLOBAL sql_slave_skip_counter = 1", start}
	case ch.SQL.GTID != "":
		return []string{"SET GTID_NEXT = " + Literal(ch.SQL.GTID), "BEGIN", "COMMIT", "SET GTID_NEXT = 'AUTOMATIC'", start}
	case ch.GTID || numbered:
		return nil
	case s.atLeast(80026):
		return []string{"SET GLOBAL sql_replica_skip_counter = 1", start}
	}
	return []string{"SET GLOBAL sql_slave_skip_counter = 1", start}
}

// CannotCount reports whether a MariaDB refuses to count what it passes over (error 1966), because it applies with several threads what has several domains. Its
// place in the relay log does not tell either at which transaction it stands: it begins anew there. Source: sql/sys_vars.cc, update_slave_skip_counter.
func (s Server) CannotCount(ch fleet.Channel, set ReplicaSettings) bool {
	return s.MariaDB() && ch.GTID && set.Threads > 0 && (set.Position == "" || strings.Contains(set.Position, ","))
}

// ApplyAlone lets a channel of a MariaDB apply with one thread, so that it stops where it can count.
func (s Server) ApplyAlone(channel string) string {
	return s.StopReplica(channel) + "; SET GLOBAL slave_parallel_threads = 0; " + s.StartReplica(channel)
}

// OverwriteRows lets a channel apply the transaction at which it stopped with the rows as they are: those that are there already are
// overwritten, those that are missing are passed over. Then errors stop it again. "" if the transaction is not known, because nothing says
// then when it is over. Sources: MySQL manual, "replica_exec_mode"; MariaDB documentation, "slave_exec_mode".
func (s Server) OverwriteRows(ch fleet.Channel) string {
	if ch.SQL.GTID == "" {
		return ""
	}
	const seconds = 60
	wait := fmt.Sprintf("SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, %d)", Literal(ch.SQL.GTID), seconds)
	if s.MariaDB() {
		if !ch.GTID {
			return "" // gtid_slave_pos is not what it waits for, and may be beyond
		}
		wait = fmt.Sprintf("SELECT MASTER_GTID_WAIT(%s, %d)", Literal(ch.SQL.GTID), seconds)
	}
	mode := s.ApplyModeVariable()
	return fmt.Sprintf("SET GLOBAL %[1]s = 'IDEMPOTENT'; %[2]s; %[3]s; SET GLOBAL %[1]s = 'STRICT'", mode, s.StartReplica(ch.Name), wait)
}

// FetchAgain throws away what a channel has received and not applied, and lets it receive that again.
func (s Server) FetchAgain(ch fleet.Channel) string {
	stop, start := s.StopReplica(ch.Name), s.StartReplica(ch.Name)
	change, suffix, word := s.changeSource(ch.Name)
	reset := suffix
	if ch.Name == "" && s.AtLeast(50706, fleet.Never) { // else all channels are reset; source: MySQL manual, "RESET REPLICA Statement"
		reset = " FOR CHANNEL ''"
	}
	switch {
	case ch.GTID && s.MariaDB(): // a start purges the relay logs when both threads were stopped
		return stop + "; " + start
	case ch.GTID && s.atLeast(80022):
		return stop + "; RESET REPLICA" + reset + "; " + start
	case ch.GTID:
		return stop + "; RESET SLAVE" + reset + "; " + start
	case ch.Log == "" || ch.Pos <= 0:
		return ""
	}
	return fmt.Sprintf("%s; %s%s_LOG_FILE = %s, %s_LOG_POS = %d%s; %s", stop, change, word, Literal(ch.Log), word, ch.Pos, suffix, start)
}

// FetchKey lets a channel log in by caching_sha2_password without TLS: it asks the source for its public key. Source: MySQL manual,
// "GET_SOURCE_PUBLIC_KEY". "" if the server does not know that.
func (s Server) FetchKey(channel string) string {
	suffix := ""
	if channel != "" {
		suffix = " FOR CHANNEL " + Literal(channel)
	}
	option := "MASTER TO GET_MASTER_PUBLIC_KEY"
	switch {
	case !s.atLeast(80004):
		return ""
	case s.atLeast(80023):
		option = "REPLICATION SOURCE TO GET_SOURCE_PUBLIC_KEY"
	}
	return s.StopReplica(channel) + "; CHANGE " + option + " = 1" + suffix + "; " + s.StartReplica(channel)
}

// What skipping leaves behind.
const (
	lostRows  = "; the remedy passes over this transaction, whose rows then are not as on the source: repair them by risso checksum --mend"
	alone     = "; with several threads and several domains MariaDB does not count what it passes over (error 1966): with one it stops here again, and then risso replica skip passes over this transaction; all other channels must have stopped applying while slave_parallel_threads is set"
	sameThing = "; the remedy passes over this statement; nothing is lost if the object is as on the source: compare it"
	unnamed   = "; the server does not say which transaction it is, and only by its GTID can it be passed over: look for it where the source's log stops being applied, or rebuild this replica"
	rebuild   = "; what it needs is gone from the source's logs: rebuild this replica from a backup or a copy of the source"
)

// Stop is what keeps a channel from going on.
type Stop struct {
	// Kind of the error, in a word: duplicate_row, row_missing, object_missing, object_exists, lock_wait, disk, relay_log, out_of_order, other of one that
	// applying stopped at; server_id, server_uuid, purged, source_log, login, blocked, full, cannot_connect, receive of one that receiving did.
	Kind       string
	Statements string // "": something has to be done elsewhere
	Advice     string // what to know of them, as the end of a sentence
}

// ReplicaSettings are the settings of a replica by which GoOn decides.
type ReplicaSettings struct {
	GTIDMode  string
	ApplyMode string // as ApplyModeVariable has it
	ServerID  int64  // 0: not known
	Threads   int    // slave_parallel_threads of MariaDB
	Position  string // and gtid_slave_pos; "": not known
}

// GoOn is how a channel that an error stopped goes on. Starting it alone is a remedy only where the error may be over by itself.
func (s Server) GoOn(ch fleet.Channel, set ReplicaSettings) Stop {
	if ch.SQL.Text == "" {
		return s.receiveAgain(ch, set)
	}
	skip := s.SkipTransaction(ch, set)
	rows, same := lostRows, sameThing
	switch {
	case s.CannotCount(ch, set):
		skip, rows, same = s.ApplyAlone(ch.Name), alone, alone
	case skip == "":
		rows, same = unnamed, unnamed
	}
	switch n := ch.SQL.Number; n {
	case errno.KeyNotFound, errno.DuplicateEntry, errno.DuplicateEntryOf:
		kind := "duplicate_row"
		if n == errno.KeyNotFound {
			kind = "row_missing"
		}
		// A row event names its table; what is IDEMPOTENT already and stops is no row event.
		overwrite := s.OverwriteRows(ch)
		if overwrite != "" && strings.Contains(ch.SQL.Text, "_rows") && !strings.EqualFold(set.ApplyMode, "IDEMPOTENT") {
			return Stop{kind, overwrite, "; the remedy applies this transaction over the rows as they are: those that are missing here stay so, until risso checksum --mend repairs them"}
		}
		return Stop{kind, skip, rows}
	case errno.TableExists, errno.DatabaseExists, errno.NoDatabaseToDrop, errno.NoTableToDrop, errno.NothingToDrop, errno.ColumnExists, errno.KeyExists, errno.AccountFailed:
		return Stop{"object_exists", skip, same}
	case errno.NoSuchTable, errno.UnknownDatabase, errno.UnknownColumn:
		return Stop{"object_missing", skip, rows + "; it stops again at the next one until the table is here as on the source"}
	case errno.LockWaitTimeout, errno.Deadlock:
		return Stop{"lock_wait", s.StartReplica(ch.Name), "; it tried as often as it may: what held the lock must be gone"}
	case errno.TableFull, errno.DiskFull:
		return Stop{"disk", s.StartReplica(ch.Name), "; there must be room first"}
	case errno.RelayLogUnreadable, errno.RelayLogUnreadableServer, errno.ReplicaRepository:
		if again := s.FetchAgain(ch); again != "" {
			return Stop{"relay_log", again, "; the remedy throws the relay log away and fetches it again from the source"}
		}
		return Stop{"relay_log", "", "; the relay log has to be fetched again, but the server does not say from where in the source's log"}
	case errno.GTIDOutOfOrder:
		return Stop{"out_of_order", "", "; this replica has transactions of its own, after whose numbers nothing older is taken: risso gtid errant says which, and risso gtid repair takes them away, or says that only a rebuild helps"}
	}
	return Stop{"other", skip, rows}
}

// receiveAgain is GoOn for a channel that does not receive.
func (s Server) receiveAgain(ch fleet.Channel, set ReplicaSettings) Stop {
	e := ch.IO
	low := strings.ToLower(e.Text)
	switch {
	case strings.Contains(low, "server ids") || strings.Contains(low, "server_id") && strings.Contains(low, "equal"):
		if set.ServerID == 0 {
			return Stop{"server_id", "", "; give it another server_id, also in its option file"}
		}
		const apart = 100_000 // far from numbers that are counted up by hand
		return Stop{"server_id", fmt.Sprintf("SET GLOBAL server_id = %d; %s", set.ServerID+apart, s.StartReplica(ch.Name)), "; the number must be free, and must stand in its option file as well"}
	case strings.Contains(low, "server uuids"):
		return Stop{"server_uuid", "", "; its data directory is a copy: stop it, remove auto.cnf there, and start it"}
	case strings.Contains(low, "same server_uuid"), strings.Contains(low, "same server_id"):
		kind := "server_id"
		if strings.Contains(low, "same server_uuid") {
			kind = "server_uuid"
		}
		return Stop{kind, "", "; another replica of this source has the same server_id or server_uuid: give one of them another"}
	case (e.Number == errno.BinlogUnreadable || e.Number == errno.SourceLogUnreadable) && gone(low):
		return Stop{"purged", "", rebuild}
	case e.Number == errno.AccessDenied:
		return Stop{"login", "", "; the source refuses the account or its password: set it right on the source, or by CHANGE on this replica"}
	case e.Number == errno.HostNotPrivileged, e.Number == errno.HostBlocked:
		kind := "login"
		if e.Number == errno.HostBlocked {
			kind = "blocked"
		}
		return Stop{kind, "", "; the source has no account for this host, or blocks it"}
	case e.Number == errno.NeedsSecureLogin:
		if fetch := s.FetchKey(ch.Name); fetch != "" {
			return Stop{"login", fetch, "; or let the channel use TLS"}
		}
		return Stop{"login", "", "; let the channel use TLS"}
	case strings.EqualFold(ch.IORunning, "Connecting"): // it tries by itself
		if e.Number == errno.TooManyConnections || e.Number == errno.TooManyUserConnections {
			return Stop{"full", "", ""}
		}
		return Stop{"cannot_connect", "", ""}
	}
	kind, advice := "receive", "; once what the error names is set right"
	switch e.Number {
	case errno.BinlogUnreadable, errno.SourceLogUnreadable:
		kind = "source_log"
	case errno.TooManyConnections, errno.TooManyUserConnections:
		kind = "full"
	case errno.CannotConnect, errno.CannotConnectSocket, errno.UnknownHost, errno.ConnectionGone, errno.ConnectionLost:
		kind, advice = "cannot_connect", "; it does not try any more by itself: start it once its source answers"
	}
	return Stop{kind, s.StartReplica(ch.Name), advice}
}

// gone reports whether an error of reading the source's log says that it does not have what is asked for.
func gone(text string) bool {
	for _, words := range []string{"purged", "could not find", "not in the master's binlog", "more gtids than", "errant"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// FollowGTID lets a channel that follows by file and position follow by GTID.
func (s Server) FollowGTID(channel string) string {
	change, suffix := "CHANGE MASTER TO MASTER_AUTO_POSITION = 1", ""
	switch {
	case s.MariaDB() && channel != "":
		change = "CHANGE MASTER " + Literal(channel) + " TO MASTER_USE_GTID = slave_pos"
	case s.MariaDB():
		change = "CHANGE MASTER TO MASTER_USE_GTID = slave_pos"
	case channel != "":
		suffix = " FOR CHANNEL " + Literal(channel)
	}
	if s.atLeast(80023) {
		change = "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1"
	}
	return s.StopReplica(channel) + "; " + change + suffix + "; " + s.StartReplica(channel)
}

// Thread is a statement about one of a channel's threads, IO_THREAD or SQL_THREAD: Thread("STOP", "IO_THREAD", "").
func (s Server) Thread(verb, thread, channel string) string {
	statement := s.replica(verb, channel)
	for _, word := range []string{"REPLICA", "SLAVE"} {
		head := verb + " " + word
		if rest, ok := strings.CutPrefix(statement, head); ok {
			if s.MariaDB() && rest != "" { // STOP SLAVE 'name' IO_THREAD
				return statement + " " + thread
			}
			return head + " " + thread + rest
		}
	}
	return statement
}

// ReplicaVariable is the name of a variable about replicas: ReplicaVariable("skip_errors") is slave_skip_errors, or replica_skip_errors since MySQL 8.0.26.
func (s Server) ReplicaVariable(name string) string {
	if s.atLeast(80026) {
		return "replica_" + name
	}
	return "slave_" + name
}

// MayReorder reports whether a replica that applies with several threads may commit in another order than its source, as a setting says. MariaDB never does
// within a domain.
func (s Server) MayReorder() bool { return !s.MariaDB() }

// UpgradeStep is which of MySQL's steps a version belongs to: a server is upgraded, and follows a source, over one of them at most. 0: there are no such
// steps. Source: MySQL manual, "Upgrade Paths" and "Replication Compatibility Between MySQL Versions".
func (s Server) UpgradeStep() int {
	switch {
	case s.MariaDB() || s.Number < 50700:
		return 0
	case s.Number < 80000:
		return 1
	case s.Number < 80100:
		return 2
	case s.Number < 90000:
		return 3
	}
	return 4
}
