package advise_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/sqltext"
)

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// server makes a server of a version with variables and counters: "name = value" and "counter: number".
func server(version, comment string, facts ...string) *advise.Server {
	s := &advise.Server{Server: mysql.Of(fleet.ServerOf(version, comment)), Now: now, Variables: map[string]string{}, Status: map[string]float64{}, Texts: map[string]string{}, TimeZones: -1}
	for _, f := range facts {
		if name, value, ok := strings.Cut(f, " = "); ok {
			s.Variables[name] = value
			continue
		}
		name, value, _ := strings.Cut(f, ": ")
		var v float64
		if _, err := fmt.Sscan(value, &v); err != nil {
			s.Texts[name] = value
		} else {
			s.Status[name] = v
		}
	}
	return s
}

const (
	mysql97 = "9.7.4"
	maria   = "10.11.19-MariaDB-log"
	gb      = 1 << 30
)

// TestServerChecks: what is found of facts, and that it is not found of facts that are nearly the same.
func TestServerChecks(t *testing.T) {
	replica := func(s *advise.Server) { s.Channels = []advise.Channel{{Source: "db1:3306"}} }
	for _, c := range []struct {
		name, version string
		facts         []string
		set           func(*advise.Server)
		want          string // "ID object severity"; "" none of that ID is found
		not           string // an ID that must not be there
		statement     string
	}{
		{name: "memory", version: mysql97, facts: []string{"innodb_buffer_pool_size = 8589934592"}, set: func(s *advise.Server) { s.Memory = 8 * gb }, want: "mem.overcommit memory critical", statement: "SET PERSIST innodb_buffer_pool_size = 5905580032"},
		{name: "memory by sessions", version: mysql97, facts: []string{"innodb_buffer_pool_size = 4294967296", "sort_buffer_size = 16777216", "max_used_connections: 300"}, set: func(s *advise.Server) { s.Memory = 8 * gb }, want: "mem.overcommit memory warning"},
		{name: "memory enough", version: mysql97, facts: []string{"innodb_buffer_pool_size = 4294967296", "max_used_connections: 300"}, set: func(s *advise.Server) { s.Memory = 8 * gb }, not: "mem.overcommit"},
		{name: "memory unknown", version: mysql97, facts: []string{"innodb_buffer_pool_size = 42949672960"}, not: "mem.overcommit"},
		{name: "pool misses", version: maria, facts: []string{"innodb_buffer_pool_size = 134217728", "innodb_buffer_pool_reads: 500000", "innodb_buffer_pool_read_requests: 9000000"}, want: "bp.starved innodb_buffer_pool_size warning", statement: "SET GLOBAL innodb_buffer_pool_size = 268435456"},
		{name: "pool waits", version: maria, facts: []string{"innodb_buffer_pool_size = 134217728", "innodb_buffer_pool_wait_free: 3"}, set: func(s *advise.Server) { s.Memory = 200 << 20 }, want: "bp.starved innodb_buffer_pool_size warning"},
		{name: "pool fits", version: maria, facts: []string{"innodb_buffer_pool_size = 134217728", "innodb_buffer_pool_reads: 5000", "innodb_buffer_pool_read_requests: 9000000"}, not: "bp.starved"},
		{name: "pool unchosen", version: maria, facts: []string{"innodb_buffer_pool_size = 134217728"}, set: func(s *advise.Server) { s.Whole, s.Tables.Data, s.Memory = true, 9*gb, 16*gb }, want: "bp.starved innodb_buffer_pool_size warning", statement: "SET GLOBAL innodb_buffer_pool_size = 1073741824"},
		{name: "redo", version: mysql97, facts: []string{"innodb_redo_log_capacity = 104857600", "innodb_os_log_written: 20000000000", "uptime: 36000"}, want: "redo.small innodb_redo_log_capacity warning", statement: "SET PERSIST innodb_redo_log_capacity = 2147483648"},
		{name: "redo of files", version: "5.7.44", facts: []string{"innodb_log_file_size = 50331648", "innodb_log_files_in_group = 2", "innodb_os_log_written: 20000000000", "uptime: 36000"}, want: "redo.small innodb_log_file_size warning"},
		{name: "redo of an idle server", version: mysql97, facts: []string{"innodb_redo_log_capacity = 104857600", "innodb_os_log_written: 20000000", "uptime: 36000"}, not: "redo.small"},
		{name: "log buffer", version: mysql97, facts: []string{"innodb_redo_log_capacity = 104857600", "innodb_log_waits: 7", "innodb_log_buffer_size = 1048576"}, want: "redo.small innodb_log_buffer_size info", statement: "SET PERSIST innodb_log_buffer_size = 67108864"},
		{name: "tables on disk", version: maria, facts: []string{"created_tmp_disk_tables: 9000", "created_tmp_tables: 12000", "uptime: 3600", "tmp_table_size = 16777216"}, want: "tmp.disk tmp_table_size info"},
		{name: "table cache", version: maria, facts: []string{"table_open_cache = 400", "open_tables: 400", "table_open_cache_misses: 9000", "table_open_cache_hits: 9000", "table_open_cache_overflows: 8000"}, want: "cache.tables table_open_cache info", statement: "SET GLOBAL table_open_cache = 800"},
		{name: "open files", version: maria, facts: []string{"open_files_limit = 1000", "open_files: 900"}, want: "cache.tables open_files_limit warning"},
		{name: "keys", version: maria, facts: []string{"key_buffer_size = 1048576", "key_reads: 100000", "key_read_requests: 2000000"}, set: func(s *advise.Server) { s.Tables.Engines = map[string]int{"MYISAM": 3} }, want: "cache.keys key_buffer_size info", statement: "SET GLOBAL key_buffer_size = 2097152"},
		{name: "keys of nobody", version: maria, facts: []string{"key_buffer_size = 1048576", "key_reads: 100000", "key_read_requests: 2000000"}, not: "cache.keys"},
		{name: "query cache in vain", version: maria, facts: []string{"query_cache_type = ON", "query_cache_size = 16777216", "qcache_hits: 1000", "com_select: 100000"}, want: "qcache.verdict query_cache_type warning", statement: "SET GLOBAL query_cache_type = OFF"},
		{name: "query cache with many sessions", version: maria, facts: []string{"query_cache_type = ON", "query_cache_size = 16777216", "qcache_hits: 60000", "com_select: 100000", "threads_running: 20"}, want: "qcache.verdict query_cache_type warning"},
		{name: "query cache waited for", version: maria, facts: []string{"query_cache_type = ON", "query_cache_size = 16777216", "qcache_hits: 99000", "com_select: 100000", "qcache_lock_waits: 4"}, want: "qcache.verdict query_cache_type warning"},
		{name: "query cache too large", version: maria, facts: []string{"query_cache_type = ON", "query_cache_size = 1073741824", "qcache_hits: 90000", "com_select: 100000"}, want: "qcache.verdict query_cache_size info", statement: "SET GLOBAL query_cache_size = 67108864"},
		{name: "query cache kept", version: maria, facts: []string{"query_cache_type = ON", "query_cache_size = 16777216", "qcache_hits: 90000", "com_select: 100000", "threads_running: 2"}, want: "qcache.verdict query_cache_size info", statement: ""},
		{name: "query cache off", version: maria, facts: []string{"query_cache_type = OFF", "query_cache_size = 16777216"}, not: "qcache.verdict"},
		{name: "connections", version: mysql97, facts: []string{"max_connections = 100", "max_used_connections: 90"}, want: "conn.saturation max_connections warning", statement: "SET PERSIST max_connections = 150"},
		{name: "connections refused", version: maria, facts: []string{"max_connections = 100", "max_used_connections: 101", "connection_errors_max_connections: 5"}, want: "conn.saturation max_connections critical"},
		{name: "flow control", version: maria, facts: []string{"wsrep_on = ON", "wsrep_provider = /usr/lib/libgalera_smm.so", "wsrep_flow_control_paused: 0.2"}, want: "galera.flow_control wsrep_flow_control_paused warning"},
		{name: "galera", version: maria, facts: []string{"wsrep_on = ON", "wsrep_provider = /usr/lib/libgalera_smm.so", "innodb_autoinc_lock_mode = 1"}, want: "galera.config innodb_autoinc_lock_mode warning"},
		{name: "end of life", version: "5.7.44", want: "ver.eol version critical"},
		{name: "end of life, lately", version: "8.0.44", want: "ver.eol version warning"},
		{name: "end of life of MariaDB", version: "10.5.29-MariaDB", want: "ver.eol version critical"},
		{name: "maintained", version: maria, not: "ver.eol"},
		{name: "maintained MySQL", version: "8.4.9", not: "ver.eol"},
		{name: "debug", version: "8.4.9-debug", want: "ver.debug version warning"},
		{name: "certificate", version: mysql97, set: func(s *advise.Server) { s.Certificate = now.Add(48 * time.Hour) }, want: "sec.tls certificate critical", statement: "ALTER INSTANCE RELOAD TLS"},
		{name: "certificate ended", version: maria, set: func(s *advise.Server) { s.Certificate = now.Add(-48 * time.Hour) }, want: "sec.tls certificate critical", statement: "FLUSH SSL"},
		{name: "certificate of years", version: maria, set: func(s *advise.Server) { s.Certificate = now.Add(9000 * time.Hour) }, not: "sec.tls"},
		{name: "logs for ever", version: maria, facts: []string{"log_bin = ON", "binlog_expire_logs_seconds = 0", "expire_logs_days = 0.000000"}, want: "binlog.retention binlog_expire_logs_seconds warning", statement: "SET GLOBAL binlog_expire_logs_seconds = 604800"},
		{name: "logs by days", version: "5.7.44", facts: []string{"log_bin = ON", "expire_logs_days = 0"}, want: "binlog.retention expire_logs_days warning", statement: "SET GLOBAL expire_logs_days = 7"},
		{name: "logs for hours", version: mysql97, facts: []string{"log_bin = ON", "binlog_expire_logs_seconds = 7200"}, want: "binlog.retention binlog_expire_logs_seconds warning"},
		{name: "logs for a window", version: mysql97, facts: []string{"log_bin = ON", "binlog_expire_logs_seconds = 604800"}, set: func(s *advise.Server) { s.Recovery = 20 * 24 * time.Hour }, want: "binlog.retention binlog_expire_logs_seconds warning", statement: "SET PERSIST binlog_expire_logs_seconds = 1728000"},
		{name: "logs by their size", version: maria, facts: []string{"log_bin = ON", "binlog_expire_logs_seconds = 0", "max_binlog_total_size = 1073741824"}, not: "binlog.retention"},
		{name: "logs that nobody purges", version: mysql97, facts: []string{"log_bin = ON", "binlog_expire_logs_seconds = 604800", "binlog_expire_logs_auto_purge = OFF"}, want: "binlog.retention binlog_expire_logs_auto_purge warning"},
		{name: "logs that do", version: mysql97, facts: []string{"log_bin = ON", "binlog_expire_logs_seconds = 2592000", "binlog_expire_logs_auto_purge = ON"}, not: "binlog.retention"},
		{name: "writable", version: mysql97, facts: []string{"super_read_only = OFF", "read_only = OFF"}, set: replica, want: "repl.writable super_read_only warning", statement: "SET PERSIST super_read_only = ON"},
		{name: "writable by some", version: mysql97, facts: []string{"super_read_only = OFF", "read_only = ON"}, set: replica, want: "repl.writable super_read_only info"},
		{name: "writable source", version: maria, facts: []string{"read_only = OFF"}, not: "repl.writable"},
		{name: "relay logs", version: mysql97, facts: []string{"relay_log_recovery = OFF"}, set: replica, want: "repl.config relay_log_recovery warning"},
		{name: "relay logs of MariaDB by GTID", version: maria, facts: []string{"relay_log_recovery = OFF"}, set: func(s *advise.Server) { s.Channels = []advise.Channel{{GTID: true}} }, not: "repl.config"},
		{name: "skipped errors", version: mysql97, facts: []string{"replica_skip_errors = 1062"}, want: "repl.config replica_skip_errors critical"},
		{name: "repository in a file", version: "5.7.44", facts: []string{"relay_log_info_repository = FILE"}, set: replica, want: "repl.config relay_log_info_repository warning"},
		{name: "one applier", version: maria, facts: []string{"slave_parallel_threads = 0"}, set: replica, want: "repl.config slave_parallel_threads info", statement: "SET GLOBAL slave_parallel_threads = 4"},
		{name: "own log of a replica", version: maria, facts: []string{"log_bin = ON", "log_slave_updates = OFF", "binlog_expire_logs_seconds = 604800"}, set: replica, want: "repl.config log_slave_updates info"},
		{name: "statements", version: maria, facts: []string{"log_bin = ON", "binlog_format = STATEMENT"}, want: "repl.config binlog_format warning", statement: "SET GLOBAL binlog_format = 'ROW'"},
		{name: "redo switched off", version: mysql97, facts: []string{"innodb_redo_log_enabled: OFF"}, want: "durability.weak redo log critical", statement: "ALTER INSTANCE ENABLE INNODB REDO_LOG"},
		{name: "no binary log", version: mysql97, facts: []string{"log_bin = OFF"}, want: "durability.weak log_bin warning"},
		{name: "forced recovery", version: mysql97, facts: []string{"innodb_force_recovery = 3"}, want: "durability.weak innodb_force_recovery critical"},
		{name: "time zones", version: maria, set: func(s *advise.Server) { s.TimeZones = 0 }, want: "time.zones mysql.time_zone_name info"},
		{name: "time zones known", version: maria, set: func(s *advise.Server) { s.TimeZones = 600 }, not: "time.zones"},
		{name: "scheduler", version: maria, facts: []string{"event_scheduler = OFF"}, set: func(s *advise.Server) { s.Programs = []advise.Program{{Kind: "event", Schema: "d", Name: "e"}} }, want: "event.disabled event_scheduler warning", statement: "SET GLOBAL event_scheduler = ON"},
		{name: "event of the source", version: maria, facts: []string{"event_scheduler = ON"}, set: func(s *advise.Server) {
			s.Programs = []advise.Program{{Kind: "event", Schema: "d", Name: "e", Disabled: "SLAVESIDE_DISABLED"}}
		}, want: "event.disabled d.e warning", statement: "ALTER EVENT `d`.`e` ENABLE"},
		{name: "event on a replica", version: maria, facts: []string{"event_scheduler = OFF"}, set: func(s *advise.Server) {
			replica(s)
			s.Programs = []advise.Program{{Kind: "event", Schema: "d", Name: "e", Disabled: "SLAVESIDE_DISABLED"}}
		}, not: "event.disabled"},
		{name: "orphan", version: maria, set: func(s *advise.Server) {
			s.Programs = []advise.Program{{Kind: "procedure", Schema: "gone", Name: "p", Orphan: true}}
		}, want: "object.orphaned gone.p info"},
		{name: "old protocols", version: "5.7.44", facts: []string{"tls_version = TLSv1,TLSv1.1,TLSv1.2"}, want: "sec.tls tls_version warning"},
		{name: "plain connections", version: mysql97, facts: []string{"require_secure_transport = OFF", "bind_address = *"}, want: "sec.tls require_secure_transport info", statement: "SET PERSIST require_secure_transport = ON"},
		{name: "plain connections at home", version: mysql97, facts: []string{"require_secure_transport = OFF", "bind_address = 127.0.0.1"}, not: "sec.tls"},
		{name: "no privileges", version: maria, facts: []string{"skip_grant_tables = ON"}, want: "sec.no_privileges skip_grant_tables critical"},
		{name: "old passwords", version: maria, facts: []string{"old_passwords = ON"}, want: "sec.old_passwords old_passwords warning"},
		{name: "case", version: mysql97, facts: []string{"lower_case_file_system = ON", "lower_case_table_names = 0"}, want: "names.case lower_case_file_system critical"},
		{name: "not strict", version: mysql97, facts: []string{"sql_mode = NO_ENGINE_SUBSTITUTION"}, want: "sql.mode sql_mode warning"},
		{name: "strict", version: mysql97, facts: []string{"sql_mode = STRICT_ALL_TABLES"}, not: "sql.mode"},
		{name: "capacity", version: mysql97, facts: []string{"innodb_io_capacity = 200", "innodb_buffer_pool_pages_dirty: 900", "innodb_buffer_pool_pages_total: 1000"}, want: "innodb.io innodb_io_capacity info"},
		{name: "errors of hosts", version: mysql97, facts: []string{"max_connect_errors = 100", "skip_name_resolve = OFF"}, want: "conn.limits max_connect_errors info"},
		{name: "errors of hosts without names", version: mysql97, facts: []string{"max_connect_errors = 100", "skip_name_resolve = ON"}, not: "conn.limits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := server(c.version, "", c.facts...)
			if c.set != nil {
				c.set(s)
			}
			var got []string
			for _, f := range advise.OfServer(s) {
				key := fmt.Sprintf("%s %s %s", f.ID, f.Object, f.Severity)
				got = append(got, key)
				if c.not != "" && f.ID == c.not {
					t.Errorf("found %s: %s", key, f.What)
				}
				if key == c.want && c.statement != "" && f.Statement != c.statement {
					t.Errorf("got statement %q, want %q", f.Statement, c.statement)
				}
				if len(f.Evidence) == 0 || f.What == "" || f.Why == "" || f.Statement == "" && f.Advice == "" && f.Doubt == "" && f.Severity > 0 {
					t.Errorf("%s: evidence %q, what %q, why %q, statement %q, advice %q: something is missing", key, f.Evidence, f.What, f.Why, f.Statement, f.Advice)
				}
			}
			if c.want != "" && !slices.Contains(got, c.want) {
				t.Errorf("got %q, want %q among them", got, c.want)
			}
		})
	}
}

func TestHintedIndexes(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT * FROM t FORCE INDEX (`k``a`, b) WHERE a = 1":             "b k`a",
		"select 1 from t use key for order by (PRIMARY) ignore index (x)": "primary x",
		"SELECT /*+ INDEX(t k1, k2) NO_MERGE(t) BKA(x) */ 1 FROM t":       "k1 k2",
		"SELECT /*+ NO_INDEX_MERGE(t@qb k) */ 'FORCE INDEX (no)' FROM t":  "k",
		"SELECT index_name FROM t -- force index (no)\n":                  "",
		"SELECT * FROM t FORCE INDEX (":                                   "",
	} {
		if got := strings.Join(advise.HintedIndexes(sqltext.Dialect{}, text), " "); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestFoundIsBounded(t *testing.T) {
	var k advise.Found
	for i := range 5000 {
		k.Add(advise.Finding{ID: "x", Object: fmt.Sprint(i), Cost: advise.Cost{Bytes: float64(i)}})
	}
	k.Add(advise.Finding{ID: "y"})
	list, more := k.Ranked()
	if len(list) != advise.MostOfOne+1 || list[0].Cost.Bytes != 4999 || len(more) != 1 || more[0].Count != 5000-advise.MostOfOne || more[0].Bytes != 3999*4000/2 {
		t.Errorf("got %d findings, the first %+v, more %+v", len(list), list[0], more)
	}
}

func TestSameIDs(t *testing.T) {
	got := advise.SameIDs([]string{"a", "b", "c", "d"}, []string{"1", "2", "1", ""})
	if len(got) != 1 || !slices.Equal(got[0].Servers, []string{"a", "c"}) {
		t.Errorf("got %+v, want one finding of a and c", got)
	}
}

// TestOrphanedKeys: a foreign key to a table that is not there is found.
func TestOrphanedKeys(t *testing.T) {
	to := mysql.TableName{Schema: "d", Name: "gone"}
	s := &advise.Server{References: map[mysql.TableName][]advise.Reference{to: {{ForeignKey: define.ForeignKey{Name: "f", Columns: []string{"x"}}, Table: mysql.TableName{Schema: "d", Name: "t"}}}}}
	for _, there := range []bool{true, false} {
		if got := advise.OfReferences(s, func(mysql.TableName) bool { return there }); len(got) == 0 != there {
			t.Errorf("the table is there: %v; got %+v", there, got)
		}
	}
}

// TestMeasuredTables: checks that need many rows.
func TestMeasuredTables(t *testing.T) {
	tab := table(t, "`id` int NOT NULL,`a` int,`c` varchar(90),PRIMARY KEY (`id`),KEY `ka` (`a`),KEY `kc` (`c`(2))")
	tab.Rows, tab.Different, tab.Unmeasured = 1e6, map[string]float64{"PRIMARY": 1e6, "ka": 3, "kc": 600}, true
	if got := strings.Join(found(advise.OfTable(&advise.Server{}, tab)), "; "); got != "index.unselective d.t.ka likely; index.unselective d.t.kc likely; schema.stats d.t certain" {
		t.Error(got)
	}
	keys := "`id` int NOT NULL,PRIMARY KEY (`id`)"
	for i := range 60 {
		keys = fmt.Sprintf("`c%d` int,", i) + keys + fmt.Sprintf(",KEY `k%d` (`c%d`)", i, i)
	}
	list := advise.OfTable(&advise.Server{}, table(t, keys))
	if len(list) != 1 || list[0].ID != "index.many" || list[0].Severity != fleet.SeverityWarning {
		t.Errorf("got %+v, want index.many as a warning", list)
	}
}
