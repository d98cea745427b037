package upgrade

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/fleet"
)

// removal is when variables were removed, and what stands in their place.
type removal struct {
	mysql, mariadb fleet.Version
	names, instead string
}

// removals are variables that can stand in an option file. Sources: MySQL manual, "Server and Status Variables and Options Added, Deprecated,
// or Removed in MySQL 8.0", "… 8.4", "… 9.x"; MariaDB documentation, "System Variables Removed". A trial on the real server decides.
var removals = []removal{
	{80003, fleet.Never, "query_cache_limit query_cache_min_res_unit query_cache_size query_cache_type query_cache_wlock_invalidate", "there is no query cache any more"},
	{80000, fleet.Never, "innodb_file_format innodb_file_format_check innodb_file_format_max innodb_large_prefix", "every table has the newer form"},
	{80003, fleet.Never, "log_warnings", "log_error_verbosity"},
	{80003, fleet.Never, "tx_isolation", "transaction_isolation"},
	{80003, fleet.Never, "tx_read_only", "transaction_read_only"},
	{80000, fleet.Never, "sync_frm secure_auth old_passwords multi_range_count", "nothing"},
	{80011, fleet.Never, "log_builtin_as_identified_by_password max_tmp_tables ignore_builtin_innodb innodb_undo_logs innodb_stats_sample_pages innodb_locks_unsafe_for_binlog innodb_support_xa innodb_checksums date_format datetime_format time_format metadata_locks_cache_size metadata_locks_hash_instances ignore_db_dirs", "nothing, or a newer name: see the manual"},
	{80300, fleet.Never, "slave_rows_search_algorithms relay_log_info_file master_info_file log_bin_use_v1_row_events transaction_write_set_extraction", "nothing"},
	{80300, fleet.Never, "master_info_repository relay_log_info_repository", "positions are always in tables"},
	{80400, fleet.Never, "expire_logs_days", "binlog_expire_logs_seconds"},
	{80400, fleet.Never, "default_authentication_plugin", "authentication_policy"},
	{80400, fleet.Never, "binlog_transaction_dependency_tracking avoid_temporal_upgrade show_old_temporals old innodb_api_enable_binlog", "nothing"},
	{90300, fleet.Never, "replica_parallel_type slave_parallel_type", "replicas always apply by LOGICAL_CLOCK"},
	{fleet.Never, 100600, "innodb_adaptive_max_sleep_delay innodb_background_scrub_data_check_interval innodb_checksums innodb_commit_concurrency innodb_concurrency_tickets innodb_file_format innodb_large_prefix innodb_lock_schedule_algorithm innodb_log_checksums innodb_log_compressed_pages innodb_log_files_in_group innodb_log_optimize_ddl innodb_page_cleaners innodb_replication_delay innodb_rollback_segments innodb_scrub_log innodb_sync_array_size innodb_thread_concurrency innodb_thread_sleep_delay innodb_undo_logs innodb_buffer_pool_instances", "nothing"},
	{fleet.Never, 110000, "innodb_change_buffering innodb_change_buffer_max_size innodb_defragment", "nothing"},
	{fleet.Never, 110302, "date_format datetime_format time_format max_tmp_tables", "nothing"},
}

// variables finds removed ones that are set.
func (r *rules) variables() {
	for _, v := range removals {
		if !r.crosses(v.mysql, v.mariadb) {
			continue
		}
		for name := range strings.FieldsSeq(v.names) {
			value, has := r.d.Variables[name]
			if !has {
				continue
			}
			if set, known := r.set(name); set || !known && value != "" && value != "OFF" && value != "0" {
				r.add(RemovedVariable(name, value, v.instead))
			}
		}
	}
	if mode, ok := r.d.Variables["sql_mode"]; ok {
		if gone := r.goneModes(mode); len(gone) > 0 {
			if set, _ := r.set("sql_mode"); set {
				r.add(Problem{ID: "sql_mode.removed", Severity: Error, Object: "sql_mode",
					Trouble: fleet.Trouble{What: "it contains " + strings.Join(gone, ", "),
						Why:    "a server of the new version does not start with a mode that it does not know",
						Remedy: "leave it out of the option file: sql_mode=" + without(mode, gone)}})
			}
		}
	}
}

// RemovedVariable is the problem of a setting that the new version does not know.
func RemovedVariable(name, value, instead string) Problem {
	p := Problem{ID: "variable.removed", Severity: Error, Object: name,
		Trouble: fleet.Trouble{What: fmt.Sprintf("it is set to %q, and the new version has no such variable", value),
			Why: "the server does not start with it in the option file", Remedy: "remove it from the option file"}}
	if instead != "" && instead != "nothing" {
		p.Remedy += "; in its place: " + instead
	}
	return p
}

// Instead is what stands in a removed variable's place; "" if that is not known.
func Instead(name string) string {
	for _, v := range removals {
		if slices.Contains(strings.Fields(v.names), name) {
			return v.instead
		}
	}
	return ""
}

// goneModes are modes that the new version refuses. Source: MySQL manual, "Changes in MySQL 8.0", "Server SQL Modes".
func (r *rules) goneModes(mode string) (gone []string) {
	if !r.to.AtLeast(80011, fleet.Never) {
		return nil
	}
	for m := range strings.SplitSeq(mode, ",") {
		if removedModes[m] {
			gone = append(gone, m)
		}
	}
	return gone
}

var removedModes = setOf("NO_AUTO_CREATE_USER", "DB2", "MAXDB", "MSSQL", "MYSQL323", "MYSQL40", "ORACLE", "POSTGRESQL", "NO_FIELD_OPTIONS", "NO_KEY_OPTIONS", "NO_TABLE_OPTIONS",
	"EMPTY_STRING_IS_NULL", "SIMULTANEOUS_ASSIGNMENT", "TIME_ROUND_FRACTIONAL")

func without(mode string, gone []string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(mode, ","), func(m string) bool { return slices.Contains(gone, m) }), ",")
}

// noOption are variables that follow from others and cannot stand in an option file.
var noOption = setOf("collation_connection", "collation_database", "character_set_client", "character_set_connection", "character_set_database", "character_set_results", "innodb_undo_tablespaces", "version_ssl_library", "ignore_db_dirs")

// Defaults says which variables that were not set mean something else on the new server, which is described as it is when nothing is set but
// what own says: what is needed to try it.
func Defaults(d, fresh *differ.Description) (list []Problem) {
	for _, name := range slices.Sorted(maps.Keys(d.Variables)) {
		now, there := fresh.Variables[name]
		if !there || differ.SameValue(name, d.Variables[name], now) {
			continue
		}
		set, known := differ.WasSet(d, name)
		mine, _ := differ.WasSet(fresh, name)
		why, rank := differ.Meaning(name)
		if set || mine || rank == differ.RankNames || !known || noOption[name] || strings.HasPrefix(name, "have_") || strings.HasPrefix(now, "/") {
			continue
		}
		keep := d.Variables[name]
		if name == "sql_mode" {
			keep = without(keep, (&rules{d: d, to: fresh.Server}).goneModes(keep))
		}
		p := Problem{ID: "default.changed", Severity: Note, Object: name,
			Trouble: fleet.Trouble{What: fmt.Sprintf("it was never set, and its default goes from %q to %q", d.Variables[name], now),
				Why:    why,
				Remedy: fmt.Sprintf("to keep the old behaviour, where the new version still takes the value: %s=%s in the option file", name, keep)}, Tried: true,
		}
		if rank == differ.RankData || rank == differ.RankBehaviour {
			p.Severity = Warning
		}
		list = append(list, p)
	}
	return list
}
