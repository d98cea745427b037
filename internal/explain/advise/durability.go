package advise

import "github.com/rissodb/risso/internal/fleet"

// durabilityRules are about what survives a crash.
func durabilityRules() settings {
	return settings{Check{"durability.weak", "settings with which a crash loses transactions that were committed, or damages data", "pt-variable-advisor: innodb_flush_log_at_trx_commit, sync_binlog, innodb_doublewrite, innodb_support_xa, innodb_checksums, log_bin"}, []rule{
		{names: []string{"innodb_flush_log_at_trx_commit"}, bad: is("0"), want: "1", severity: fleet.SeverityWarning,
			what: "InnoDB writes and syncs its log once a second",
			why:  "transactions of about the last second are lost if the server or its machine crashes; 0 is hardly faster than 2, which survives a crash of the server",
			risk: "committed transactions are lost", effect: "at once; each commit then waits for the disk", doubt: "a replica that can be rebuilt, or a bulk load, may be meant to run like this"},
		{names: []string{"innodb_flush_log_at_trx_commit"}, bad: isNot("0", "1", "3"), want: "1", severity: fleet.SeverityWarning,
			what: "InnoDB writes its log with each commit, but syncs it once a second",
			why:  "transactions of about the last second are lost if the machine crashes or loses power",
			risk: "committed transactions are lost", effect: "at once; each commit then waits for the disk", doubt: "a replica that can be rebuilt, or a bulk load, may be meant to run like this"},
		{names: []string{"sync_binlog"}, bad: isNot("1"), if_: func(s *Server) bool { return s.logs() && !s.galera() }, want: "1", severity: fleet.SeverityWarning,
			what: "the binary log is not synced with each commit",
			why:  "after a crash of the machine it may lack transactions that InnoDB has: replicas and a restore to a point in time then lack them, too",
			risk: "replicas differ after a crash", effect: "at once; each group of commits then waits for the disk once more"},
		{names: []string{"innodb_doublewrite"}, bad: is("OFF", "0", "DETECT_ONLY"), severity: fleet.SeverityWarning, want: "ON", start: true,
			what: "pages are written without a copy",
			why:  "a page of which only a part was written when the machine crashed cannot be repaired, and InnoDB does not start",
			risk: "the data are damaged by a crash", doubt: "a file system that writes pages whole, such as ZFS, needs no copy"},
		{names: []string{"log_bin"}, bad: is("OFF"), if_: func(s *Server) bool { return !s.galera() }, severity: fleet.SeverityWarning, start: true, want: "binlog",
			what: "there is no binary log",
			why:  "a restore ends with the last backup: what was written since is lost; replicas are not possible",
			risk: "what was written since the last backup is lost", doubt: "data that can be made again need no log"},
		{names: []string{"innodb_checksum_algorithm"}, bad: is("none", "strict_none"), want: "crc32", severity: fleet.SeverityCritical,
			what: "pages have no checksum", why: "damage by disks and memory is not noticed, and gets into backups", risk: "damage is not noticed",
			effect: "at once, for pages that are written from then on"},
		{names: []string{"innodb_checksums"}, bad: is("OFF"), want: "ON", start: true, severity: fleet.SeverityCritical,
			what: "pages have no checksum", why: "damage by disks and memory is not noticed, and gets into backups", risk: "damage is not noticed"},
		{names: []string{"innodb_log_checksums"}, bad: is("OFF"), want: "ON", severity: fleet.SeverityWarning,
			what: "the redo log has no checksums", why: "recovery after a crash may apply what was written half", risk: "data are damaged by recovery"},
		{names: []string{"innodb_support_xa"}, bad: is("OFF"), if_: logs, want: "ON", severity: fleet.SeverityWarning,
			what: "InnoDB and the binary log do not agree on what was committed", why: "after a crash, transactions may be in one of them only, or in another order", risk: "replicas differ after a crash"},
		{names: []string{"innodb_force_recovery"}, bad: above(0), want: "0", start: true, severity: fleet.SeverityCritical,
			what: "InnoDB runs in recovery mode", why: "it is for saving data from damaged files: from 1 on damage is skipped, from 4 on writes can make it worse or are refused", risk: "damage gets worse",
			advice: "dump the data and load them into a new server if they were damaged"},
		{names: []string{"innodb_fast_shutdown"}, bad: is("2"), want: "1", severity: fleet.SeverityWarning,
			what: "a shutdown leaves InnoDB as a crash would", why: "the next start has to recover, and files cannot be taken over by another version", risk: "a long start"},
		{names: []string{"innodb_read_only"}, bad: is("ON"), want: "OFF", start: true, severity: fleet.SeverityInfo,
			what: "InnoDB refuses writes", why: "statements that write fail", doubt: "it may be meant so, for data on a medium that cannot be written"},
		{names: []string{"binlog_error_action"}, bad: is("IGNORE_ERROR"), if_: logs, want: "ABORT_SERVER", severity: fleet.SeverityWarning,
			what: "the server goes on without a binary log if it cannot write it", why: "replicas and a restore to a point in time then lack transactions, and nobody is told", risk: "replicas differ"},
		{names: []string{"innodb_flush_log_at_timeout"}, bad: above(1), if_: func(s *Server) bool { return !is("1", "3")(s.text("innodb_flush_log_at_trx_commit")) }, want: "1", severity: fleet.SeverityInfo,
			what: "InnoDB syncs its log even less often than once a second", why: "transactions of that many seconds are lost if the machine crashes", risk: "committed transactions are lost"},
		{names: []string{"sync_frm"}, bad: is("OFF"), want: "ON", severity: fleet.SeverityInfo,
			what: "definitions of tables are not synced to disk", why: "a table made just before the machine crashed may be without its definition", risk: "a table is lost"},
		{names: []string{"delay_key_write"}, bad: is("ALL"), want: "ON", severity: fleet.SeverityWarning,
			what: "indexes of MyISAM tables stay in memory until they are closed", why: "a crash leaves all of them to be repaired", risk: "MyISAM tables are damaged by a crash"},
		{names: []string{"myisam_recover_options"}, bad: is("OFF", "DEFAULT", ""), if_: hasMyISAM, start: true, want: "BACKUP,FORCE", severity: fleet.SeverityInfo,
			what: "a MyISAM table that a crash damaged is not repaired when it is opened", why: "statements fail until somebody repairs it", risk: "MyISAM tables cannot be used after a crash"},
		{names: []string{"concurrent_insert"}, bad: is("ALWAYS", "2"), if_: hasMyISAM, want: "AUTO", severity: fleet.SeverityInfo,
			what: "holes in MyISAM tables are not filled", why: "tables from which rows are deleted only grow", risk: "disk"},
	}}
}

// redoDisabled finds a MySQL whose redo log was switched off for a load (MySQL manual, "Redo Log", "Disabling Redo Logging").
func redoDisabled(s *Server) []Finding {
	if s.Texts["innodb_redo_log_enabled"] != "OFF" {
		return nil
	}
	return []Finding{{Object: "redo log", Severity: fleet.SeverityCritical, What: "the redo log is switched off",
		Why:       "a crash leaves files that cannot be used any more: it is for loading data into a server that is thrown away if that fails",
		Evidence:  []string{"Innodb_redo_log_enabled = OFF"},
		Statement: "ALTER INSTANCE ENABLE INNODB REDO_LOG", Undo: "ALTER INSTANCE DISABLE INNODB REDO_LOG",
		Effect: "InnoDB writes all pages that changed to disk first: it takes as long as that does; statements go on", Cost: Cost{Risk: "all data are lost by a crash"}}}
}
