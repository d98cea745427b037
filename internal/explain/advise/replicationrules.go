package advise

import (
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/wsrep"
)

// replicationRules are about replicas that differ, or fall behind, and nobody notices.
func replicationRules() settings {
	return settings{Check{"repl.config", "replication that lets replicas differ, breaks at a crash, or falls behind", "pt-variable-advisor: slave_skip_errors, slave_net_timeout, relay_log_space_limit, max_relay_log_size, auto_increment"}, []rule{
		{names: []string{"slave_skip_errors", "replica_skip_errors"}, bad: isNot("OFF", ""), start: true, want: "OFF", severity: fleet.SeverityCritical,
			what: "a replica passes over these errors", why: "each of them leaves rows that differ from the source's, and nobody is told", risk: "replicas differ", advice: "compare its rows by risso checksum"},
		{names: []string{"replica_exec_mode", "slave_exec_mode"}, bad: is("IDEMPOTENT"), want: "STRICT", severity: fleet.SeverityWarning,
			what: "a replica passes over rows that are missing, or there already", why: "rows that differ from the source's are not noticed", risk: "replicas differ", advice: "compare its rows by risso checksum"},
		{names: []string{"binlog_format"}, bad: is("STATEMENT"), if_: logs, want: "ROW", sessions: true, severity: fleet.SeverityWarning,
			what: "the binary log has statements instead of rows", why: "a statement may do something else on a replica: one with LIMIT, UUID() or a trigger; and a restore to a point in time does the same", risk: "replicas differ",
			doubt: "rows take more room in the binary log"},
		{names: []string{"binlog_format"}, bad: is("MIXED"), if_: logs, want: "ROW", sessions: true, severity: fleet.SeverityInfo,
			what: "the binary log has statements where the server takes them for safe", why: "rows are what was done, whatever a replica is like, and can be undone", risk: "replicas differ", doubt: "rows take more room in the binary log"},
		{names: []string{"binlog_row_image"}, bad: is("MINIMAL", "NOBLOB"), if_: logs, want: "FULL", sessions: true, severity: fleet.SeverityInfo,
			what: "the binary log has rows in part", why: "what was written cannot be undone from it, and readers of changes do not get whole rows", doubt: "it saves room, and may be meant so"},
		{names: []string{"binlog_checksum"}, bad: is("NONE"), if_: logs, want: "CRC32", severity: fleet.SeverityInfo,
			what: "events of the binary log have no checksum", why: "damage on its way to replicas and backups is not noticed", risk: "damage is not noticed", effect: "at once; the log is rotated", doubt: "old Group Replication, and very old replicas, need it so"},
		{names: []string{"relay_log_recovery"}, bad: is("OFF"), if_: func(s *Server) bool { return replica(s) && (s.NeedsRelayRecovery() || !allGTID(s)) }, want: "ON", start: true, severity: fleet.SeverityWarning,
			what: "a replica goes on with its relay logs after a crash of its machine", why: "they may lack what was received last, or have a part of it: the replica stops, or misses transactions", risk: "the replica breaks at a crash"},
		{names: []string{"master_info_repository"}, bad: is("FILE"), if_: replica, want: "TABLE", severity: fleet.SeverityWarning,
			what: "where the replica is in the source's log is kept in a file", why: "after a crash it is not what was applied: transactions are applied twice, or not", risk: "the replica breaks at a crash", effect: "only while replication is stopped; at once"},
		{names: []string{"relay_log_info_repository"}, bad: is("FILE"), if_: replica, want: "TABLE", severity: fleet.SeverityWarning,
			what: "what the replica has applied is kept in a file", why: "after a crash it is not what was applied: transactions are applied twice, or not", risk: "the replica breaks at a crash", effect: "only while replication is stopped; at once"},
		{names: []string{"gtid_mode"}, bad: isNot("ON"), if_: func(s *Server) bool { return s.logs() }, severity: fleet.SeverityInfo,
			what: "transactions have no global IDs", why: "a replica cannot be given another source without somebody finding the position, and what one server has and another has not cannot be told",
			advice: "it goes ON in steps, on all servers of a group: OFF_PERMISSIVE, ON_PERMISSIVE, ON, after enforce_gtid_consistency"},
		{names: []string{"gtid_strict_mode"}, bad: is("OFF"), if_: func(s *Server) bool { return s.logs() && (replica(s) || s.Replicas > 0) }, want: "ON", severity: fleet.SeverityInfo,
			what: "a replica may write transactions of its own between those of its source", why: "its binary log is then no copy of the source's, and it cannot take the source's place", risk: "failover breaks replicas"},
		{names: []string{"server_id"}, bad: is("0"), want: "", severity: fleet.SeverityWarning,
			what: "the server has no number of its own", why: "it can be neither source nor replica", advice: "set server_id to a number that no other server of the group has"},
		{names: []string{"log_replica_updates", "log_slave_updates"}, bad: is("OFF"), if_: func(s *Server) bool { return replica(s) && s.logs() }, want: "ON", start: true, severity: fleet.SeverityInfo,
			what: "what the replica applies is not in its own binary log", why: "it cannot take its source's place with other replicas behind it, and a restore of it ends with the backup", risk: "failover is not possible"},
		{names: []string{"replica_net_timeout", "slave_net_timeout"}, bad: above(60), if_: replica, want: "60", severity: fleet.SeverityInfo,
			what: "so many seconds pass before a replica notices that its source is silent", why: "until then it says that all is well, and is behind"},
		{names: []string{"replica_parallel_workers", "slave_parallel_workers", "slave_parallel_threads"}, bad: below(2), if_: replica, want: "4", severity: fleet.SeverityInfo,
			what: "the replica applies with one thread", why: "the source writes with many: the replica falls behind when they are busy", risk: "replicas fall behind", effect: "only while its SQL threads are stopped; then at once", doubt: "a source that writes little needs no more"},
		{names: []string{"replica_preserve_commit_order", "slave_preserve_commit_order"}, bad: is("OFF"), if_: func(s *Server) bool { return replica(s) && parallel(s) }, want: "ON", severity: fleet.SeverityWarning,
			what: "transactions are committed in another order than on the source", why: "readers see what the source never was like, and after a crash there are gaps", risk: "readers see what never was", effect: "only while replication is stopped; MySQL 5.7 needs log_slave_updates = ON"},
		{names: []string{"relay_log_space_limit"}, bad: above(0), if_: replica, want: "0", start: true, severity: fleet.SeverityInfo,
			what: "a replica stops receiving when so many bytes wait", why: "if the source is lost then, so is what was not received", risk: "transactions are lost with the source"},
		{names: []string{"max_relay_log_size"}, bad: func(v string) bool { return above(0)(v) && below(16*mega)(v) }, if_: replica, want: "0", severity: fleet.SeverityInfo,
			what: "relay logs are very small", why: "the replica makes and removes many files"},
		{names: []string{"max_binlog_size"}, bad: below(16 * mega), if_: logs, want: "1073741824", severity: fleet.SeverityInfo,
			what: "binary logs are very small", why: "each new one stops commits for a moment, and there are many files"},
		{names: []string{"auto_increment_increment"}, bad: above(1), if_: func(s *Server) bool { return !s.galera() && s.text("group_replication_group_name") == "" }, want: "1", sessions: true, severity: fleet.SeverityInfo,
			what: "AUTO_INCREMENT leaves numbers out", why: "it is for several servers that are written to and replicate each other: rows written on two of them at a time differ for good", doubt: "it may be meant so"},
		{names: []string{"relay_log_purge"}, bad: is("OFF"), if_: replica, want: "ON", severity: fleet.SeverityInfo,
			what: "relay logs that were applied stay", why: "they fill the disk", doubt: "a failover manager may want them"},
		{names: []string{"log_bin_trust_function_creators"}, bad: is("ON"), if_: logs, want: "OFF", severity: fleet.SeverityInfo,
			what: "functions may be made that do something else on a replica", why: "with binary logs in statements they make replicas differ", doubt: "with binlog_format = ROW it hurts little"},
		{names: []string{"replica_type_conversions", "slave_type_conversions"}, bad: has("ALL_LOSSY"), want: "", severity: fleet.SeverityWarning,
			what: "a replica cuts values that do not fit", why: "rows differ from the source's, and nobody is told", risk: "replicas differ"},
		{names: []string{"innodb_locks_unsafe_for_binlog"}, bad: is("ON"), if_: logs, want: "OFF", start: true, severity: fleet.SeverityWarning,
			what: "gaps are not locked", why: "a binary log of statements is then not what was done", risk: "replicas differ"},
		{names: []string{"innodb_autoinc_lock_mode"}, bad: is("2"), if_: func(s *Server) bool { return s.logs() && is("STATEMENT")(s.text("binlog_format")) }, want: "1", start: true, severity: fleet.SeverityWarning,
			what: "with binary logs in statements, AUTO_INCREMENT differs on replicas", why: "INSERT … SELECT of several sessions mix their numbers", risk: "replicas differ"},
	}}
}

func allGTID(s *Server) bool {
	for _, c := range s.Channels {
		if !c.GTID {
			return false
		}
	}
	return true
}

// writable finds replicas that accept writes of others than their source.
func writable(s *Server) []Finding {
	if len(s.Channels) == 0 {
		return nil
	}
	name := s.ReadOnlyVariable()
	if v, ok := s.Variables[name]; !ok || v != "OFF" && v != "0" {
		return nil
	}
	f := Finding{Object: name, Severity: fleet.SeverityWarning, What: "the replica accepts writes: " + name + " is OFF", Since: s.started(),
		Why:      "what is written here is not on the source: rows differ, and the replica stops when the source changes the same ones",
		Evidence: []string{name + " = OFF", "replicates from " + s.Channels[0].Source, "read_only = " + s.text("read_only")},
		Effect:   "at once; it waits for transactions that hold locks; whoever writes here gets an error", Cost: Cost{Risk: "replicas differ"}, Sure: Likely, Doubt: "a server of a ring, or one with tables of its own, is written to on purpose"}
	if s.on("read_only") {
		f.Severity, f.What = fleet.SeverityInfo, "the replica accepts writes of accounts with SUPER or CONNECTION_ADMIN: super_read_only is OFF"
	}
	change(&f, s, name, "OFF", "ON", false)
	return []Finding{f}
}

// defaultRecovery is how far back a restore has to be able to roll forward where nobody says it: a backup a day, and one that fails.
const defaultRecovery = 48 * time.Hour

// retention looks for how long binary logs stay.
func retention(s *Server) []Finding {
	if !s.logs() {
		return nil
	}
	name, keep := "binlog_expire_logs_seconds", 0.0
	seconds, hasSeconds := s.number(name)
	days, hasDays := s.number("expire_logs_days")
	switch {
	case !hasSeconds && !hasDays:
		return nil
	case !hasSeconds:
		name = "expire_logs_days"
	}
	if keep = seconds; keep == 0 {
		keep = days * 86400
	}
	if s.text("binlog_expire_logs_auto_purge") == "OFF" {
		keep = 0
	}
	window := s.Recovery
	if window == 0 {
		window = defaultRecovery
	}
	old, week := s.text(name), "604800"
	if name == "expire_logs_days" {
		week = "7"
	}
	f := Finding{Object: name, Severity: fleet.SeverityWarning, Since: s.started(), Evidence: []string{name + " = " + old}}
	limit, _ := s.number("max_binlog_total_size")
	if space, ok := s.number("binlog_space_limit"); ok && space > 0 {
		limit = space
	}
	switch {
	case keep == 0 && s.text("binlog_expire_logs_auto_purge") == "OFF":
		f.Object, f.What, f.Cost.Risk = "binlog_expire_logs_auto_purge", "binary logs are never removed: binlog_expire_logs_auto_purge is OFF", "the disk fills up"
		f.Why = "they fill the disk"
		change(&f, s, f.Object, "OFF", "ON", false)
	case keep == 0 && limit > 0:
		return nil // removed by their size
	case keep == 0:
		f.What, f.Cost.Risk = "binary logs are never removed", "the disk fills up"
		f.Why = "they fill the disk, and then nothing can be written any more"
		f.Sure, f.Doubt = Likely, "something else may remove them, such as PURGE BINARY LOGS in a script; a replica that is further behind than that has to be made anew"
		change(&f, s, name, old, week, false)
	case time.Duration(keep)*time.Second < window:
		f.What = fmt.Sprintf("binary logs stay for %s, less than the %s that a restore may have to roll forward", digits.Seconds(keep), digits.Span(window))
		f.Why, f.Cost.Risk = "a backup older than that cannot be rolled forward, and a replica that was away for longer has to be made anew", "a restore loses what was written"
		f.Sure, f.Doubt = Likely, "the logs may be kept elsewhere, such as by risso binlog mirror"
		if week == "7" && window > 7*24*time.Hour || week != "7" && window > 7*24*time.Hour {
			week = integer(window.Seconds())
			if name == "expire_logs_days" {
				week = integer(window.Hours()/24 + 1)
			}
		}
		change(&f, s, name, old, week, false)
	default:
		return nil
	}
	f.Effect = "at once; what is older is removed at the next rotation or start, and stays removed"
	return []Finding{f}
}

// galeraRules are about members of a Galera cluster.
func galeraRules() settings {
	c := settings{Check: Check{"galera.config", "settings that a Galera cluster cannot work with", ""}}
	for _, w := range wsrep.Settings() {
		c.rules = append(c.rules, rule{names: w.Names, bad: w.Bad, if_: cluster, want: w.Want, start: w.Start, sessions: w.Sessions, severity: w.Severity, what: w.What, why: w.Means, risk: w.Risk, doubt: w.Doubt})
	}
	return c
}

// flowControl finds a cluster whose writes paused, since its counters began.
func flowControl(s *Server) []Finding {
	paused := s.status("wsrep_flow_control_paused")
	if !s.galera() || paused < wsrep.PausedSoFar {
		return nil
	}
	return []Finding{{Object: "wsrep_flow_control_paused", Severity: fleet.SeverityWarning, What: "writes of the cluster were paused " + digits.Percent(paused) + " of the time since its counters began",
		Why: "a member that cannot apply fast enough lets all others wait", Since: s.started(), Evidence: []string{"wsrep_flow_control_paused = " + digits.Three(paused), "wsrep_flow_control_sent = " + digits.Count(s.status("wsrep_flow_control_sent")), "wsrep_slave_threads = " + s.text("wsrep_slave_threads")},
		Advice: "the member with the largest wsrep_flow_control_sent is the slow one: give it threads (wsrep_slave_threads), and split large transactions", Cost: Cost{Risk: "writes pause", Seconds: paused}}}
}
