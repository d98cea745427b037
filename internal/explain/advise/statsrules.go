package advise

import "github.com/rissodb/risso/internal/fleet"

// innodbRules are about how InnoDB keeps its files and statistics.
func innodbRules() []settings {
	return []settings{
		{Check{"stats.settings", "statistics that plans are made from, and that do not stay right", ""}, []rule{
			{names: []string{"innodb_stats_persistent"}, bad: is("OFF"), want: "ON", severity: fleet.SeverityWarning, what: "statistics are thrown away when a table is closed", why: "plans change with each restart, by samples of few pages", risk: "plans change by themselves"},
			{names: []string{"innodb_stats_auto_recalc"}, bad: is("OFF"), want: "ON", severity: fleet.SeverityInfo, what: "statistics stay as they were however much is written", why: "plans are made for what tables were like long ago", doubt: "something may run ANALYZE TABLE"},
			{names: []string{"innodb_stats_on_metadata"}, bad: is("ON"), want: "OFF", severity: fleet.SeverityInfo, what: "looking into information_schema samples all tables anew", why: "it is slow, and plans change by it"},
			{names: []string{"information_schema_stats_expiry"}, bad: above(7 * 86400), want: "86400", sessions: true, severity: fleet.SeverityInfo, what: "information_schema says what sizes were so many seconds ago", why: "whoever watches sizes and AUTO_INCREMENT there learns of it too late"},
		}},
		{Check{"innodb.files", "files that only grow", "pt-variable-advisor: innodb_data_file_path"}, []rule{
			{names: []string{"innodb_file_per_table"}, bad: is("OFF"), want: "ON", severity: fleet.SeverityWarning, what: "new tables lie in one file that never shrinks", why: "a table that is dropped gives no room back to the disk", risk: "disk", effect: "at once, for tables that are made from then on"},
			{names: []string{"innodb_undo_log_truncate"}, bad: is("OFF"), if_: func(s *Server) bool { return above(1)(s.text("innodb_undo_tablespaces")) }, want: "ON", severity: fleet.SeverityInfo, what: "undo files never shrink", why: "one long transaction leaves them large for ever", risk: "disk"},
		}},
		{Check{"innodb.io", "writes that go to the disk twice, or too late", "pt-variable-advisor: innodb_flush_method, innodb_max_dirty_pages_pct, flush, flush_time"}, []rule{
			{names: []string{"innodb_flush_method"}, bad: is("fsync", "O_DSYNC", "littlesync"), start: true, want: "O_DIRECT", severity: fleet.SeverityInfo, what: "pages go through the kernel's cache", why: "they are in memory twice, and the kernel writes them when it likes", doubt: "some file systems and old disks are faster without"},
			{names: []string{"innodb_flush_method"}, bad: is("nosync"), start: true, want: "O_DIRECT", severity: fleet.SeverityCritical, what: "nothing is synced", why: "a crash of the machine damages the data", risk: "the data are damaged by a crash"},
			{names: []string{"innodb_max_dirty_pages_pct"}, bad: below(50), want: "90", severity: fleet.SeverityInfo, what: "pages are written long before they have to be", why: "a page that changes often is written again and again", doubt: "it makes shutdowns faster"},
			{names: []string{"flush"}, bad: is("ON"), want: "OFF", severity: fleet.SeverityWarning, what: "the server syncs MyISAM tables after each statement", why: "it is slow, and no table is safer by it"},
			{names: []string{"flush_time"}, bad: above(0), want: "0", severity: fleet.SeverityWarning, what: "all tables are closed every so many seconds", why: "statements wait meanwhile"},
			{names: []string{"innodb_io_capacity"}, bad: func(v string) bool { return below(201)(v) }, if_: dirtyPilesUp, want: "2000", severity: fleet.SeverityInfo, what: "InnoDB writes as much in the background as a disk of the past could", why: "pages that changed pile up, and statements have to write them", doubt: "a slow disk can do no more",
				more: func(s *Server) []string { return []string{dirtyEvidence(s)} }},
			{names: []string{"innodb_lock_wait_timeout"}, bad: above(50), sessions: true, want: "50", severity: fleet.SeverityInfo, what: "statements wait for a lock of a row for so many seconds", why: "sessions pile up behind one that forgot to commit", doubt: "long batches may need it"},
			{names: []string{"innodb_deadlock_detect"}, bad: is("OFF"), want: "ON", severity: fleet.SeverityInfo, what: "deadlocks are not looked for", why: "both sides of one wait for innodb_lock_wait_timeout", doubt: "with very many sessions on the same rows it can be faster"},
			{names: []string{"innodb_change_buffering"}, bad: isNot("none", "all", "inserts"), severity: fleet.SeverityInfo, want: "none", what: "changes of secondary indexes are put off", why: "on disks without moving parts it gains nothing, and MariaDB removed it for data that it damaged (MDEV-29694)", if_: func(s *Server) bool { return s.Server.AtLeast(fleet.Never, 100500) }},
		}},
	}
}

// dirtyPilesUp reports whether pages that changed fill most of what they may, or statements had to wait for a free page.
func dirtyPilesUp(s *Server) bool {
	total, most := s.status("innodb_buffer_pool_pages_total"), 90.0
	if v, ok := s.number("innodb_max_dirty_pages_pct"); ok {
		most = v
	}
	return s.status("innodb_buffer_pool_wait_free") > 0 || total > 0 && 100*s.status("innodb_buffer_pool_pages_dirty")/total > 0.8*most
}
