package mysql

import (
	"fmt"

	"github.com/rissodb/risso/internal/fleet"
)

// This file has the settings of parallel appliers, and of sources that decide what can be applied at the same time.

// AlwaysWriteSets reports whether its binary log has the order of write sets whatever is set: MySQL 8.4 removed
// binlog_transaction_dependency_tracking. Source: MySQL manual, "What Is New in MySQL 8.4".
func (s Server) AlwaysWriteSets() bool { return s.atLeast(80400) }

// TrackWriteSets are the statements that make a source log the order of write sets; none if it does, or cannot. Sources: MySQL manual,
// "binlog_transaction_dependency_tracking" (5.7.22, 8.0.1), "transaction_write_set_extraction" (ON since 8.0.2).
func (s Server) TrackWriteSets() []string {
	const track = "SET GLOBAL binlog_transaction_dependency_tracking = 'WRITESET'"
	switch {
	case s.AlwaysWriteSets() || !s.atLeast(50722):
		return nil
	case !s.atLeast(80002):
		return []string{"SET GLOBAL transaction_write_set_extraction = 'XXHASH64'", track}
	}
	return []string{track}
}

// GroupCommits are the statements that make a source's commits wait a moment for others, so that more of them are one group, whose
// transactions can be applied at the same time. Sources: MySQL manual, "binlog_group_commit_sync_delay"; MariaDB documentation, "Group Commit for
// the Binary Log".
func (s Server) GroupCommits() []string {
	const micros, together = 1000, 8
	if s.MariaDB() {
		return []string{fmt.Sprintf("SET GLOBAL binlog_commit_wait_count = %d", together), fmt.Sprintf("SET GLOBAL binlog_commit_wait_usec = %d", micros)}
	}
	if !s.atLeast(50705) {
		return nil
	}
	return []string{fmt.Sprintf("SET GLOBAL binlog_group_commit_sync_delay = %d", micros)}
}

// ApplyWith are the statements that make a replica apply with a number of workers. mode is MariaDB's slave_parallel_mode; MySQL before 8.0.27
// has to be told to go by the log instead of by schemas.
func (s Server) ApplyWith(workers int, mode string) []string {
	list := s.Appliers()
	v := list[0]
	if len(list) > 1 && !s.atLeast(80026) {
		v = list[1]
	}
	out := []string{"STOP " + v.Word + " SQL_THREAD"}
	switch {
	case s.MariaDB():
		out = append(out, "SET GLOBAL slave_parallel_mode = "+Literal(mode))
	case !s.atLeast(80026):
		out = append(out, "SET GLOBAL slave_parallel_type = 'LOGICAL_CLOCK'")
	case !s.atLeast(80027):
		out = append(out, "SET GLOBAL replica_parallel_type = 'LOGICAL_CLOCK'")
	}
	return append(out, fmt.Sprintf("SET GLOBAL %s = %d", v.Variable, workers), "START "+v.Word+" SQL_THREAD")
}

// QueueForAppliers are the statements that let a replica read on while one worker has so many bytes to do; none if that has no limit of its own
// for each worker. Source: MariaDB documentation, "slave_parallel_max_queued".
func (s Server) QueueForAppliers(bytes int64) []string {
	if !s.MariaDB() {
		return nil
	}
	return []string{fmt.Sprintf("SET GLOBAL slave_parallel_max_queued = %d", bytes)}
}

// QueuedForAppliers is how many bytes that are by default; 0 where there is no such limit.
func (s Server) QueuedForAppliers() int64 {
	if s.MariaDB() {
		return 131072
	}
	return 0
}

// DefaultApplyMode is how its replicas decide what to apply at the same time if nothing is set: MariaDB 10.5.1 went from conservative to
// optimistic. MySQL has one way that the log decides about.
func (s Server) DefaultApplyMode() string {
	switch {
	case s.AtLeast(fleet.Never, 100501):
		return "optimistic"
	case s.MariaDB():
		return "conservative"
	}
	return ""
}
