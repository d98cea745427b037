package channels

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// What skipping leaves behind.
const (
	lostRows  = "; the remedy passes over this transaction, whose rows then are not as on the source: repair them by risso checksum --mend"
	sameThing = "; the remedy passes over this statement; nothing is lost if the object is as on the source: compare it"
	unnamed   = "; the server does not say which transaction it is, and only by its GTID can it be passed over: look for it where the source's log stops being applied, or rebuild this replica"
	rebuild   = "; what it needs is gone from the source's logs: rebuild this replica from a backup or a copy of the source"
)

// GoOn is how a channel that an error stopped goes on, as statements, and what to know of them, as the end of a sentence. Without
// statements, something has to be done elsewhere. Starting it alone is a remedy only where the error may be over by itself.
// setting is a global variable of the replica, "" where it is not known.
func GoOn(server mysql.Server, ch fleet.Channel, setting func(name string) string) (remedy, advice string) {
	if ch.SQL.Text == "" {
		return receiving(server, ch, setting)
	}
	n := ch.SQL.Number
	skip := server.SkipTransaction(ch, strings.HasPrefix(strings.ToUpper(setting("gtid_mode")), "ON"))
	rows, same := lostRows, sameThing
	if skip == "" {
		rows, same = unnamed, unnamed
	}
	switch n {
	case errno.KeyNotFound, errno.DuplicateEntry, errno.DuplicateEntryOf:
		// A row event names its table; what is IDEMPOTENT already and stops is no row event.
		overwrite := server.OverwriteRows(ch)
		if overwrite != "" && strings.Contains(ch.SQL.Text, "_rows") && !strings.EqualFold(setting(server.ApplyModeVariable()), "IDEMPOTENT") {
			return overwrite, "; the remedy applies this transaction over the rows as they are: those that are missing here stay so, until risso checksum --mend repairs them"
		}
		return skip, rows
	case errno.TableExists, errno.DatabaseExists, errno.NoDatabaseToDrop, errno.NoTableToDrop, errno.NothingToDrop, errno.ColumnExists, errno.KeyExists, errno.AccountFailed:
		return skip, same
	case errno.NoSuchTable, errno.UnknownDatabase, errno.UnknownColumn:
		return skip, rows + "; it stops again at the next one until the table is here as on the source"
	case errno.LockWaitTimeout, errno.Deadlock:
		return server.StartReplica(ch.Name), "; it tried as often as it may: what held the lock must be gone"
	case errno.TableFull, errno.DiskFull:
		return server.StartReplica(ch.Name), "; there must be room first"
	case errno.RelayLogUnreadable, errno.RelayLogUnreadableServer, errno.ReplicaRepository:
		if again := server.FetchAgain(ch); again != "" {
			return again, "; the remedy throws the relay log away and fetches it again from the source"
		}
		return "", "; the relay log has to be fetched again, but the server does not say from where in the source's log"
	case errno.GTIDOutOfOrder:
		return "SET GLOBAL gtid_strict_mode = OFF; " + server.StartReplica(ch.Name),
			"; this replica has transactions of its own: compare it with risso checksum, and rebuild it if it differs"
	}
	return skip, rows
}

// receiving is GoOn for a channel that does not receive.
func receiving(server mysql.Server, ch fleet.Channel, setting func(name string) string) (remedy, advice string) {
	e := ch.IO
	low := strings.ToLower(e.Text)
	switch {
	case strings.Contains(low, "server ids") || strings.Contains(low, "server_id") && strings.Contains(low, "equal"):
		id, err := strconv.ParseInt(setting("server_id"), 10, 64)
		if err != nil {
			return "", "; give it another server_id, also in its option file"
		}
		const apart = 100_000 // far from numbers that are counted up by hand
		return fmt.Sprintf("SET GLOBAL server_id = %d; %s", id+apart, server.StartReplica(ch.Name)), "; the number must be free, and must stand in its option file as well"
	case strings.Contains(low, "server uuids"):
		return "", "; its data directory is a copy: stop it, remove auto.cnf there, and start it"
	case strings.Contains(low, "same server_uuid"), strings.Contains(low, "same server_id"):
		return "", "; another replica of this source has the same server_id or server_uuid: give one of them another"
	case (e.Number == errno.BinlogUnreadable || e.Number == errno.SourceLogUnreadable) && gone(low):
		return "", rebuild
	case e.Number == errno.AccessDenied:
		return "", "; the source refuses the account or its password: set it right on the source, or by CHANGE on this replica"
	case e.Number == errno.HostNotPrivileged, e.Number == errno.HostBlocked:
		return "", "; the source has no account for this host, or blocks it"
	case e.Number == errno.NeedsSecureLogin:
		if fetch := server.FetchKey(ch.Name); fetch != "" {
			return fetch, "; or let the channel use TLS"
		}
		return "", "; let the channel use TLS"
	case strings.EqualFold(ch.IORunning, "Connecting"):
		return "", "" // it tries by itself
	}
	return server.StartReplica(ch.Name), "; once what the error names is set right"
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
