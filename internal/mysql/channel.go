package mysql

import "fmt"

// This file has statements that change how a channel of replication goes.

// changeSource begins a statement that changes a channel, ends it, and is the word that its options begin with.
func (s Server) changeSource(channel string) (begin, end, word string) {
	begin, word = "CHANGE MASTER TO ", "MASTER"
	switch {
	case s.MariaDB() && channel != "":
		begin = "CHANGE MASTER " + Literal(channel) + " TO "
	case channel != "":
		end = " FOR CHANNEL " + Literal(channel)
	}
	if s.atLeast(80023) {
		begin, word = "CHANGE REPLICATION SOURCE TO ", "SOURCE"
	}
	return begin, end, word
}

// SetReplicaDelay are the statements that let a channel stay so many seconds behind, separated by "; ". MySQL needs only the thread that applies
// to stand; MariaDB needs both, and fetches again what it had received. Sources: MySQL manual, "Delayed Replication"; MariaDB documentation,
// "Delayed Replication".
func (s Server) SetReplicaDelay(channel string, seconds int) string {
	begin, end, word := s.changeSource(channel)
	change := fmt.Sprintf("%s%s_DELAY = %d%s", begin, word, seconds, end)
	if s.MariaDB() {
		return s.StopReplica(channel) + "; " + change + "; " + s.StartReplica(channel)
	}
	return s.replicaPart("STOP", "SQL_THREAD", channel) + "; " + change + "; " + s.replicaPart("START", "SQL_THREAD", channel)
}

// CompressChannel are the statements that let a channel compress what it receives, separated by "; ". Sources: MySQL manual,
// "SOURCE_COMPRESSION_ALGORITHMS"; MariaDB documentation, "slave_compressed_protocol".
func (s Server) CompressChannel(channel string) string {
	stop, start := s.replicaPart("STOP", "IO_THREAD", channel), s.replicaPart("START", "IO_THREAD", channel)
	if s.atLeast(80018) {
		begin, end, word := s.changeSource(channel)
		return stop + "; " + begin + word + "_COMPRESSION_ALGORITHMS = 'zstd'" + end + "; " + start
	}
	return "SET GLOBAL slave_compressed_protocol = ON; " + stop + "; " + start
}

// replicaPart starts or stops one thread of a channel, IO_THREAD or SQL_THREAD.
func (s Server) replicaPart(verb, thread, channel string) string {
	switch {
	case s.MariaDB() && channel != "":
		return verb + " SLAVE " + Literal(channel) + " " + thread
	case channel != "":
		return s.replica(verb, "") + " " + thread + " FOR CHANNEL " + Literal(channel)
	}
	return s.replica(verb, "") + " " + thread
}

// RestartReceiver are the statements that let a channel connect anew, separated by "; ": what was received stays, as the thread that applies
// goes on.
func (s Server) RestartReceiver(channel string) string {
	return s.replicaPart("STOP", "IO_THREAD", channel) + "; " + s.replicaPart("START", "IO_THREAD", channel)
}
