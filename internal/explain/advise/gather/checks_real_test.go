package gather_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// wrongSettings are values that are wrong on any server that has the setting and takes it while it runs, and the finding that says so.
var wrongSettings = []struct{ id, name, value string }{
	{"durability.weak", "innodb_flush_log_at_trx_commit", "2"},
	{"durability.weak", "sync_binlog", "0"},
	{"durability.weak", "innodb_fast_shutdown", "2"},
	{"durability.weak", "delay_key_write", "'ALL'"},
	{"durability.weak", "binlog_error_action", "'IGNORE_ERROR'"},
	{"durability.weak", "innodb_log_checksums", "OFF"},
	{"repl.config", "binlog_row_image", "'MINIMAL'"},
	{"repl.config", "binlog_checksum", "'NONE'"},
	{"repl.config", "log_bin_trust_function_creators", "ON"},
	{"repl.config", "replica_exec_mode", "'IDEMPOTENT'"},
	{"repl.config", "slave_exec_mode", "'IDEMPOTENT'"},
	{"repl.config", "auto_increment_increment", "2"},
	{"repl.config", "max_binlog_size", "4194304"},
	{"binlog.retention", "binlog_expire_logs_seconds", "3600"},
	{"binlog.retention", "expire_logs_days", "1"},
	{"sql.mode", "innodb_strict_mode", "OFF"},
	{"sql.session", "autocommit", "OFF"},
	{"sql.session", "foreign_key_checks", "OFF"},
	{"sql.session", "unique_checks", "OFF"},
	{"sql.session", "check_constraint_checks", "OFF"},
	{"sql.session", "transaction_isolation", "'READ-UNCOMMITTED'"},
	{"sql.session", "tx_isolation", "'READ-UNCOMMITTED'"},
	{"sql.session", "low_priority_updates", "ON"},
	{"sql.session", "sql_notes", "OFF"},
	{"sql.session", "completion_type", "'CHAIN'"},
	{"sql.session", "default_storage_engine", "'MyISAM'"},
	{"sql.session", "optimizer_prune_level", "0"},
	{"sql.session", "sql_select_limit", "1000"},
	{"charset.server", "character_set_server", "'latin1'"},
	{"sec.local_infile", "local_infile", "ON"},
	{"log.general", "general_log", "ON"},
	{"log.slow", "log_output", "'TABLE'"},
	{"log.slow", "long_query_time", "20"},
	{"log.errors", "log_error_verbosity", "1"},
	{"log.errors", "log_warnings", "0"},
	{"stats.settings", "innodb_stats_persistent", "OFF"},
	{"stats.settings", "innodb_stats_auto_recalc", "OFF"},
	{"stats.settings", "innodb_stats_on_metadata", "ON"},
	{"innodb.files", "innodb_file_per_table", "OFF"},
	{"innodb.io", "innodb_max_dirty_pages_pct", "20"},
	{"innodb.io", "innodb_lock_wait_timeout", "500"},
	{"innodb.io", "innodb_deadlock_detect", "OFF"},
	{"innodb.io", "flush", "ON"},
	{"conn.limits", "connect_timeout", "100"},
	{"mem.session_buffers", "sort_buffer_size", "33554432"},
	{"mem.session_buffers", "read_buffer_size", "33554432"},
	{"mem.session_buffers", "read_rnd_buffer_size", "33554432"},
	{"mem.session_buffers", "join_buffer_size", "33554432"},
	{"qcache.verdict", "query_cache_size", "209715200"},
}

// settingsOf finds what is wrong with a server's settings.
func settingsOf(t *testing.T, target mysql.Target) []advise.Finding {
	t.Helper()
	a, err := gather.Look(t.Context(), target, gather.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a.Findings
}

// TestSettings: what is set wrong is found; its statement mends it; its undo brings it back; and the server before it had none of it.
func TestSettings(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind)
			c, target := sandboxtest.Connect(t, node), sandboxtest.Target(t, node)
			if err := c.Exec(t.Context(), "SET GLOBAL slow_query_log = ON"); err != nil { // else its rules say nothing
				t.Fatal(err)
			}
			if s := c.Server; !s.KeepsSettings() {
				_ = c.Exec(t.Context(), "SET GLOBAL query_cache_type = ON") // refused where the server was started without
			}
			was := map[string]string{}
			rows, err := c.Maps(t.Context(), "SHOW GLOBAL VARIABLES")
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				was[r["Variable_name"]] = r["Value"]
			}
			before := settingsOf(t, target)
			var want []string
			set := map[string]bool{}
			for _, w := range wrongSettings {
				key := w.id + " " + w.name
				if _, ok := was[w.name]; !ok || slices.ContainsFunc(before, func(f advise.Finding) bool { return f.ID == w.id && f.Object == w.name && w.id != "binlog.retention" }) {
					continue
				}
				if w.name == "slave_exec_mode" && set["replica_exec_mode"] || w.name == "log_warnings" && was["log_error_verbosity"] != "" || w.name == "expire_logs_days" && set["binlog_expire_logs_seconds"] || w.name == "tx_isolation" && set["transaction_isolation"] || w.id == "qcache.verdict" && was["query_cache_type"] == "OFF" {
					continue
				}
				if err := c.Exec(t.Context(), "SET GLOBAL "+w.name+" = "+w.value); err != nil {
					t.Logf("%s cannot be set here: %v", w.name, err)
					continue
				}
				set[w.name] = true
				want = append(want, key)
			}
			if len(want) < 30 {
				t.Errorf("only %d settings were set wrong, want 30 or more", len(want))
			}
			list := wanted(settingsOf(t, target), want)
			if got := keysOf(list); !slices.Equal(got, sorted(want)) {
				t.Errorf("found %q,\nwant %q", got, sorted(want))
			}
			for _, f := range list {
				if err := c.Exec(t.Context(), f.Statement); err != nil {
					t.Errorf("%s %s: %s: %v", f.ID, f.Object, f.Statement, err)
				}
			}
			for _, f := range wanted(settingsOf(t, target), want) {
				t.Errorf("after its statement %s: %s %s", f.Statement, f.ID, f.What)
			}
			for _, f := range list {
				if err := c.Exec(t.Context(), f.Undo); err != nil {
					t.Errorf("%s %s: %s: %v", f.ID, f.Object, f.Undo, err)
				}
			}
			if got := keysOf(wanted(settingsOf(t, target), want)); !slices.Equal(got, sorted(want)) {
				t.Errorf("after the undo %q,\nwant %q", got, sorted(want))
			}
			if c.Server.KeepsSettings() {
				if err := c.Exec(t.Context(), "RESET PERSIST"); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// wanted are the findings with one of some keys.
func wanted(list []advise.Finding, keys []string) []advise.Finding {
	return slices.DeleteFunc(list, func(f advise.Finding) bool { return !slices.Contains(keys, f.ID+" "+f.Object) })
}

func keysOf(list []advise.Finding) (keys []string) {
	for _, f := range list {
		keys = append(keys, f.ID+" "+f.Object)
	}
	return sorted(keys)
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// TestStartedWrong: settings that only a start can change are found, and the advice names the line and the restart.
func TestStartedWrong(t *testing.T) {
	settings := []string{"innodb_doublewrite=OFF", "skip-log-bin", "max_connections=1200"}
	for _, kind := range kinds[:2] {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			node := sandboxtest.Lend(t, kind, settings...)
			list := settingsOf(t, sandboxtest.Target(t, node))
			for _, want := range []string{"durability.weak innodb_doublewrite", "durability.weak log_bin"} {
				got := wanted(slices.Clone(list), []string{want})
				if len(got) != 1 || got[0].Statement != "" || !strings.Contains(got[0].Advice, "restart") {
					t.Errorf("%s: got %+v; want one finding without a statement whose advice is a restart", want, got)
				}
			}
		})
	}
}

// TestSoundServer: a server that is set well is not accused of anything worse than info.
func TestSoundServer(t *testing.T) {
	for _, kind := range kinds[:2] {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind)
			c := sandboxtest.Connect(t, node)
			for _, s := range []string{"SET GLOBAL binlog_expire_logs_seconds = 604800", "SET GLOBAL local_infile = OFF"} {
				if err := c.Exec(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			for _, f := range settingsOf(t, sandboxtest.Target(t, node)) {
				if f.Severity > 0 && f.ID != "config.drift" { // a server that is lent was set while it ran
					t.Errorf("%s %s: %s", f.ID, f.Object, f.What)
				}
			}
		})
	}
}
