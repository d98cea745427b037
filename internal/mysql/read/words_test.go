package read

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

func TestStatusMetricNames(t *testing.T) {
	for _, c := range []struct {
		variable, key string
		counter       bool
	}{
		{"Questions", "mysql_global_status_questions", true},
		{"Com_select", `mysql_global_status_commands_total{command="select"}`, true},
		{"Com_show_slave_status", `mysql_global_status_commands_total{command="show_slave_status"}`, true},
		{"Handler_read_rnd_next", `mysql_global_status_handlers_total{handler="read_rnd_next"}`, true},
		{"Threads_running", "mysql_global_status_threads_running", false},
		{"Threads_created", "mysql_global_status_threads_created", true},
		{"Innodb_buffer_pool_pages_free", `mysql_global_status_buffer_pool_pages{state="free"}`, false},
		{"Innodb_buffer_pool_pages_dirty", "mysql_global_status_buffer_pool_dirty_pages", false},
		{"Innodb_buffer_pool_pages_flushed", `mysql_global_status_buffer_pool_page_changes_total{operation="flushed"}`, true},
		{"Innodb_rows_read", `mysql_global_status_innodb_row_ops_total{operation="read"}`, true},
		{"Innodb_row_lock_current_waits", "mysql_global_status_innodb_row_lock_current_waits", false},
		{"Innodb_row_lock_time", "mysql_global_status_innodb_row_lock_time", true},
		{"Connection_errors_max_connections", `mysql_global_status_connection_errors_total{error="max_connections"}`, true},
		{"Performance_schema_digest_lost", `mysql_global_status_performance_schema_lost_total{instrumentation="digest_lost"}`, true},
		{"Open_tables", "mysql_global_status_open_tables", false},
		{"Opened_tables", "mysql_global_status_opened_tables", true},
		{"wsrep_flow_control_paused", "mysql_global_status_wsrep_flow_control_paused", false},
		{"wsrep_flow_control_paused_ns", "mysql_global_status_wsrep_flow_control_paused_ns", true},
		{"wsrep_local_recv_queue_avg", "mysql_global_status_wsrep_local_recv_queue_avg", false},
		{"Max_used_connections", "mysql_global_status_max_used_connections", false},
		{"option_tracker_usage:Binary Log", "mysql_global_status_option_tracker_usage_binary_log", true},
	} {
		m := StatusMetric(c.variable)
		if m.Key() != c.key || m.Counter != c.counter {
			t.Errorf("%s: got %s counter=%v, want %s counter=%v", c.variable, m.Key(), m.Counter, c.key, c.counter)
		}
	}
}

func TestNumberOf(t *testing.T) {
	for _, c := range []struct {
		in   string
		want float64
		ok   bool
	}{
		{"0", 0, true}, {"123456789012345678", 123456789012345678, true}, {"18446744073709551615", 18446744073709551615, true},
		{"-3", -3, true}, {"0.25", 0.25, true}, {"1e3", 1000, true}, {"ON", 1, true}, {"no", 0, true}, {"Yes", 1, true},
		{"Connecting", 0, true}, {"Primary", 1, true}, {"non-Primary", 0, true}, {"mysql-bin.000017", 17, true},
		{"", 0, false}, {"AUTH_MASTER", 0, false}, {"10.11.19-MariaDB", 0, false}, {"nan", 0, false}, {"inf", 0, false},
		{"Buffer pool(s) load completed at 261121  9:17:03", 0, false},
	} {
		got, ok := numberOf([]byte(c.in))
		if got != c.want || ok != c.ok {
			t.Errorf("%q: got %v, %v; want %v, %v", c.in, got, ok, c.want, c.ok)
		}
	}
	if v, ok := numberOf([]byte("Jun  2 07:03:04 2027 GMT")); !ok || v != 1811919784 {
		t.Errorf("a certificate's date: got %v, %v; want ok true, v 1811919784", v, ok)
	}
}

func TestClassOfState(t *testing.T) {
	for state, want := range map[string]string{
		"Waiting for table metadata lock": "metadata_lock", "waiting for handler commit": "commit", "Commit": "commit", "query end": "commit",
		"Waiting for semi-sync ACK from replica": "semisync", "Sending to client": "network", "Sending data": "running", "": "running",
		"Waiting for table level lock": "table_lock", "updating": "running", "Waiting for prior transaction to commit": "commit", "Writing to net": "network",
	} {
		if got := classOfState(state, true); got != want {
			t.Errorf("%q: got %s, want %s", state, got, want)
		}
	}
	if got := classOfState("query end", false); got != "running" {
		t.Errorf("query end on MySQL 8: got %s, want \"running\"", got)
	}
}

func TestStatementWait(t *testing.T) {
	for _, c := range []struct{ state, event, want string }{
		{"converting HEAP to ondisk", "", "tmp_disk_table"}, {"converting HEAP to Aria", "", "tmp_disk_table"}, {"Copying to tmp table on disk", "", "tmp_disk_table"}, {"Copying to tmp table", "", "running"},
		{"executing", "wait/io/file/innodb/innodb_data_file", "io"}, {"executing", "wait/io/table/sql/handler", "running"}, {"executing", "wait/io/socket/sql/client_connection", "network"},
		{"Waiting for table metadata lock", "wait/io/file/sql/FRM", "metadata_lock"}, {"User sleep", "", "other"}, {"Waiting for GTID to be committed", "", "replication"},
		{"User lock", "", "table_lock"}, {"Waiting for preceding transaction to commit", "", "commit"}, {"Waiting for disk space", "", "other"}, {"", "", "running"},
	} {
		if got := statementWait(c.state, c.event, false); got != c.want {
			t.Errorf("%q, %q: got %s, want %s", c.state, c.event, got, c.want)
		}
	}
}

func TestQuantile(t *testing.T) {
	before := []bucket{{0.001, 5}, {0.01, 5}, {0.1, 5}}
	now := []bucket{{0.001, 95}, {0.01, 10}, {0.1, 10}}
	for q, want := range map[float64]float64{0.5: 0.001, 0.95: 0.01, 0.99: 0.1} {
		if got, ok := quantile(before, now, q); !ok || got != want {
			t.Errorf("q%v: got %v, %v; want %v", q, got, ok, want)
		}
	}
	if _, ok := quantile(now, before, 0.5); ok {
		t.Error("a histogram that was set back gave a quantile")
	}
	if _, ok := quantile(now, now, 0.5); ok {
		t.Error("no statements gave a quantile")
	}
}

func TestInnodbMetricNames(t *testing.T) {
	for _, c := range []struct{ name, subsystem, typ, key string }{
		{"lock_deadlocks", "lock", "counter", "mysql_info_schema_innodb_metrics_lock_lock_deadlocks_total"},
		{"buffer_pool_size", "server", "value", "mysql_info_schema_innodb_metrics_server_buffer_pool_size"},
		{"buffer_pool_pages_free", "buffer", "value", `mysql_info_schema_innodb_metrics_buffer_pool_pages{state="free"}`},
		{"buffer_page_read_index_leaf", "buffer_page_io", "counter", `mysql_info_schema_innodb_metrics_buffer_page_read_total{type="index_leaf"}`},
	} {
		m, ok := innodbMetric(c.name, c.subsystem, c.typ, "")
		if !ok || m.Key() != c.key {
			t.Errorf("%s: got %s; want ok true, m.Key() %s", c.name, m.Key(), c.key)
		}
	}
}

func TestTraceable(t *testing.T) {
	for _, c := range []struct {
		s    mysql.Server
		want string // "" for yes
	}{
		{mysql.Server{Server: fleet.Server{Flavour: fleet.FlavourMySQL, Version: "5.7.22", Number: 50722}, PerformanceSchema: true}, ""},
		{mysql.Server{Server: fleet.Server{Flavour: fleet.FlavourMariaDB, Version: "10.11.19-MariaDB", Number: 101119}, PerformanceSchema: true}, ""},
		{mysql.Server{Server: fleet.Server{Flavour: fleet.FlavourMariaDB, Version: "10.11.19-MariaDB", Number: 101119}}, "performance_schema=ON under [mariadb]"},
		{mysql.Server{Server: fleet.Server{Flavour: fleet.FlavourPercona, Version: "8.0.36", Number: 80036}}, "performance_schema=ON under [mysqld]"},
		{mysql.Server{Server: fleet.Server{Flavour: fleet.FlavourMariaDB, Version: "10.4.1-MariaDB", Number: 100401}, PerformanceSchema: true}, "10.5"},
		{mysql.Server{Server: fleet.Server{Flavour: fleet.FlavourMySQL, Version: "5.6.40", Number: 50640}, PerformanceSchema: true}, "5.7.8"},
	} {
		err := Traceable(c.s)
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, ErrNoInstruments) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, not %q", c.s.Version, err, c.want)
		}
	}
}

// TestWithBrief: what was over when all was queried is there as far as it is known, and nothing is there twice.
func TestWithBrief(t *testing.T) {
	whole := []Session{{ID: 1, Text: "SELECT 1 FROM a", Run: 7}}
	long := strings.Repeat("x", 97)
	got := withBrief(whole, []Session{{ID: 1, Text: "SELECT 1 FR"}, {ID: 2, Text: "COMMIT", User: "app"}, {ID: 3, Text: long}, {ID: 4, Text: long[1:]}})
	want := []Session{whole[0], {ID: 2, Text: "COMMIT", User: "app"}, {ID: 4, Text: long[1:]}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
