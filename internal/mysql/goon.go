package mysql

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// This file has the statements that let a replica go on after an error, each for the mysql client as it is, separated by "; ".

// SkipTransaction passes over the transaction at which a channel's applier stopped: an empty one takes its GTID, or the applier is told to
// leave one out. numbered: the server gives each transaction a GTID, so that MySQL refuses to count. "" if the transaction is not known.
// Sources: MySQL manual, "Skipping Transactions"; MariaDB documentation, "SET GLOBAL SQL_SLAVE_SKIP_COUNTER".
func (s Server) SkipTransaction(ch fleet.Channel, numbered bool) string {
	return strings.Join(s.SkipSteps(ch, numbered), "; ")
}

// SkipSteps are the statements of SkipTransaction one by one; the last one starts the channel.
func (s Server) SkipSteps(ch fleet.Channel, numbered bool) []string {
	start := s.StartReplica(ch.Name)
	switch {
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
	stop, start, suffix := s.StopReplica(ch.Name), s.StartReplica(ch.Name), ""
	change, word := "CHANGE MASTER TO ", "MASTER"
	switch {
	case s.MariaDB() && ch.Name != "":
		change = "CHANGE MASTER " + Literal(ch.Name) + " TO "
	case ch.Name != "":
		suffix = " FOR CHANNEL " + Literal(ch.Name)
	}
	if s.atLeast(80023) {
		change, word = "CHANGE REPLICATION SOURCE TO ", "SOURCE"
	}
	switch {
	case ch.GTID && s.MariaDB(): // a start purges the relay logs when both threads were stopped
		return stop + "; " + start
	case ch.GTID && s.atLeast(80022):
		return stop + "; RESET REPLICA" + suffix + "; " + start
	case ch.GTID:
		return stop + "; RESET SLAVE" + suffix + "; " + start
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
