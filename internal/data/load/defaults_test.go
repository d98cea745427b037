package load_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// oddDefaults are what new sessions may inherit from a server, and change what a statement means or whether it is taken at all.
var oddDefaults = []string{
	"sql_select_limit = 1", "max_join_size = 1", "sql_big_selects = 0", "sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,HIGH_NOT_PRECEDENCE,IGNORE_SPACE,PAD_CHAR_TO_FULL_LENGTH,REAL_AS_FLOAT,STRICT_ALL_TABLES'",
	"autocommit = 0", "completion_type = 2", "sql_safe_updates = 1", "sql_auto_is_null = 1", "transaction_isolation = 'READ-UNCOMMITTED'", "tx_isolation = 'READ-UNCOMMITTED'",
	"max_sort_length = 64", "group_concat_max_len = 4", "lc_time_names = 'ja_JP'", "lc_messages = 'ja_JP'", "div_precision_increment = 0",
	"foreign_key_checks = 0", "unique_checks = 0", "low_priority_updates = 1", "default_week_format = 3", "time_zone = '+11:30'", "character_set_client = latin1", "character_set_connection = ucs2", "character_set_results = latin1",
	"character_set_server = latin1", "collation_server = latin1_german1_ci", "character_set_database = latin1", "max_statement_time = 0.5", "max_execution_time = 500", "idle_transaction_timeout = 1", "idle_readonly_transaction_timeout = 1",
	"wait_timeout = 3", "net_read_timeout = 1", "net_write_timeout = 1", "innodb_lock_wait_timeout = 1", "lock_wait_timeout = 1", "default_storage_engine = MyISAM", "default_tmp_storage_engine = MyISAM", "sql_quote_show_create = 0",
	"sql_require_primary_key = 1", "sql_generate_invisible_primary_key = 1", "explicit_defaults_for_timestamp = 0", "innodb_strict_mode = 0", "sql_notes = 0", "max_error_count = 0", "updatable_views_with_limit = 'NO'", "old_mode = ''", "sql_if_exists = 1",
	"show_create_table_verbosity = 1", "print_identified_with_as_hex = 1", "information_schema_stats_expiry = 86400", "default_collation_for_utf8mb4 = utf8mb4_general_ci", "binlog_format = 'STATEMENT'", "max_length_for_sort_data = 4", "optimizer_search_depth = 1",
	"eq_range_index_dive_limit = 1", "sort_buffer_size = 32768", "tmp_table_size = 1024", "max_heap_table_size = 16384", "big_tables = 1", "windowing_use_high_precision = 0", "show_old_temporals = 1", "query_cache_type = 1",
}

// TestOddDefaults: no matter what sessions inherit from a server, a backup of it is complete, and a restore into it restores everything.
func TestOddDefaults(t *testing.T) {
	for _, spec := range servers {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			sandboxtest.Need(t, spec)
			node := sandboxtest.Up(t, spec, "local_infile=1", "log_bin_trust_function_creators=1", "event_scheduler=OFF")
			exec(t, stream(t, node), rental...)
			want := rentalSays(t, node)
			before := setDefaults(t, node, oddDefaults)
			r, _ := emptyRepo(t)
			if _, err := dump.Run(t.Context(), r, dump.Options{Target: target(t, node), Threads: 2, Select: dump.Selection{Schemas: []string{"rental"}}}); err != nil {
				t.Fatal(err)
			}
			s := stream(t, node)
			if strings.HasPrefix(spec, "mariadb") {
				exec(t, s, "SET SESSION max_statement_time = 0") // half of a second would leave the programs there on a busy machine
			}
			exec(t, s, "DROP DATABASE rental", "COMMIT")
			res, err := restore(t, load.Options{Repo: r, Into: target(t, node)})
			if err != nil || len(res.Different) > 0 || len(res.LeftOut) > 0 {
				t.Errorf("%v: got %+v, %+v; want no res.Different, no res.LeftOut", err, res.Different, res.LeftOut)
			}
			setDefaults(t, node, before)
			if got := rentalSays(t, node); got != want {
				t.Error(differ(want, got))
			}
		})
	}
}

// rentalSays is what a server answers about the schema rental.
func rentalSays(t *testing.T, node *sandbox.Node) string {
	t.Helper()
	s := stream(t, node)
	exec(t, s, "SET NAMES utf8mb4", "SET time_zone = '+00:00'", "USE rental")
	var b strings.Builder
	for _, q := range rentalAnswers {
		fmt.Fprintf(&b, "%s:\n%s", q, ask(t, s, q))
	}
	return b.String()
}

// setDefaults sets global variables, not all of which a server knows, and returns what they were.
func setDefaults(t *testing.T, node *sandbox.Node, sets []string) (before []string) {
	t.Helper()
	s := stream(t, node)
	for _, set := range sets {
		name, _, _ := strings.Cut(set, " = ")
		was := ""
		err := s.Query(t.Context(), "SELECT QUOTE(@@GLOBAL."+name+"), @@GLOBAL."+name+" REGEXP '^[0-9.]+$'", func(row [][]byte) error {
			if was = string(row[0]); string(row[1]) == "1" {
				was = strings.Trim(was, "'")
			}
			return nil
		})
		if err == nil {
			err = s.Exec(t.Context(), "SET GLOBAL "+set)
		}
		if err != nil { // not every server has it
			t.Logf("%s: %v", set, err)
			continue
		}
		before = append(before, name+" = "+was)
	}
	return before
}
