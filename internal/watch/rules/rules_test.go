package rules

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
)

// world is an instance in a test: its numbers are set, and time passes by hand.
type world struct {
	snap          Snapshot
	values, rates map[string]float64
	texts         map[string]string
	host          *world
	j             *Judge
}

var begin = time.Date(2026, 11, 21, 10, 30, 0, 0, time.UTC)

func newWorld(kind fleet.Kind) *world {
	w := &world{values: map[string]float64{}, rates: map[string]float64{}, texts: map[string]string{}, j: &Judge{}}
	w.snap = Snapshot{Now: begin, Up: true, Instance: fleet.Instance{ID: "db2", Kind: kind},
		Value: func(k string) (float64, bool) { v, ok := w.values[k]; return v, ok },
		Rate:  func(k string) (float64, bool) { v, ok := w.rates[k]; return v, ok },
		Text:  func(k string) string { return w.texts[k] },
		Keys: func(name string) []string {
			var out []string
			for _, m := range []map[string]float64{w.values, w.rates} {
				for k := range m {
					if k == name || strings.HasPrefix(k, name+"{") {
						out = append(out, k)
					}
				}
			}
			return out
		},
	}
	return w
}

// server is a healthy server of a flavour on a healthy host.
func server(flavour fleet.Flavour, version string) *world {
	w := newWorld(fleet.KindServer)
	w.snap.Instance.Flavour, w.snap.Instance.Version = flavour, version
	maps.Copy(w.values, map[string]float64{
		statusPrefix + "threads_running": 3, statusPrefix + "threads_connected": 40, variablePrefix + "max_connections": 200,
		statusPrefix + "innodb_row_lock_current_waits": 0, statusPrefix + "innodb_history_list_length": 300,
		statusPrefix + "innodb_checkpoint_age": 10 << 20, statusPrefix + "innodb_checkpoint_max_age": 80 << 20,
		variablePrefix + "innodb_log_file_size": 96 << 20, variablePrefix + "innodb_buffer_pool_size": 1 << 30,
	})
	maps.Copy(w.rates, map[string]float64{
		statusPrefix + "questions": 1203, "risso_collect_queries_total": 3, statusPrefix + "innodb_deadlocks": 0,
		statusPrefix + "innodb_buffer_pool_wait_free": 0, statusPrefix + "innodb_buffer_pool_reads": 10, statusPrefix + "innodb_buffer_pool_read_requests": 50000,
		statusPrefix + `connection_errors_total{error="max_connections"}`: 0,
	})
	for _, wait := range waits {
		w.values[wait.key] = 0
	}
	w.host = host()
	w.snap.Host = &w.host.snap
	return w
}

// host is a healthy host with two processors.
func host() *world {
	w := newWorld(fleet.KindHost)
	w.cpu(0.3, 1.5, 0.2, 0)
	fs := `{device="/dev/vda",fstype="ext4",mountpoint="/var/lib/mysql data"}`
	maps.Copy(w.values, map[string]float64{
		"node_procs_running": 2, "node_memory_MemAvailable_bytes": 8 << 30,
		sizeMetric + fs: 100 << 30, availMetric + fs: 60 << 30, filesMetric + fs: 1e6, freeMetric + fs: 9e5, readonlyMetric + fs: 0,
	})
	maps.Copy(w.rates, map[string]float64{
		"node_pressure_io_stalled_seconds_total": 0.01, "node_pressure_io_waiting_seconds_total": 0.02,
		"node_pressure_memory_stalled_seconds_total": 0, "node_vmstat_pswpin": 0, "node_vmstat_pswpout": 0, "node_vmstat_oom_kill": 0,
	})
	w.disk(100, 0.0011, 50, 0.002, 100, 0.001)
	return w
}

func (w *world) cpu(busy, idle, iowait, steal float64) {
	for mode, v := range map[string]float64{"user": busy, "nice": 0, "system": 0, "idle": idle, "iowait": iowait, "irq": 0, "softirq": 0, "steal": steal} {
		w.rates[cpuMetric+`{mode="`+mode+`"}`] = v
	}
}

// disk sets rates and latencies of flushes, reads and writes.
func (w *world) disk(flushes, flushLatency, reads, readLatency, writes, writeLatency float64) {
	d := `{device="vda"}`
	maps.Copy(w.rates, map[string]float64{
		flushCount + d: flushes, flushTime + d: flushes * flushLatency,
		"node_disk_reads_completed_total" + d: reads, "node_disk_read_time_seconds_total" + d: reads * readLatency,
		"node_disk_writes_completed_total" + d: writes, "node_disk_write_time_seconds_total" + d: writes * writeLatency,
	})
}

func (w *world) waiting(class string, n float64) {
	w.values[`risso_threads_waiting{class="`+class+`"}`] = n
}

// tick lets a second pass and looks.
func (w *world) tick() Verdict {
	w.snap.Now = w.snap.Now.Add(time.Second)
	if w.host != nil {
		w.host.snap.Now = w.snap.Now
	}
	return w.j.Judge(&w.snap)
}

func find(v Verdict, id string) *fleet.Finding {
	for i := range v.Findings {
		if v.Findings[i].ID == id {
			return &v.Findings[i]
		}
	}
	return nil
}

func mariadb() *world { return server(fleet.FlavourMariaDB, "10.11.9-MariaDB-log") }
func mysql97() *world { return server(fleet.FlavourMySQL, "9.7.0") }
func mysql57() *world { return server(fleet.FlavourPercona, "5.7.22-log") }

func replica(w *world) *world {
	w.snap.Instance.Role = fleet.RoleReplica
	w.snap.Channels = []fleet.Channel{{Source: "db1", IORunning: "Yes", SQLRunning: "Yes"}}
	w.values[lagMetric+`{channel_name="",connection_name="",master_host="db1",master_uuid=""}`] = 0
	w.texts["read_only"] = "ON"
	return w
}

func (w *world) lag(v float64) {
	w.values[lagMetric+`{channel_name="",connection_name="",master_host="db1",master_uuid=""}`] = v
}

func (w *world) fs(metric string, v float64) {
	w.values[metric+`{device="/dev/vda",fstype="ext4",mountpoint="/var/lib/mysql data"}`] = v
}

func galera(w *world) *world {
	w.snap.Instance.Role = fleet.RoleGalera
	w.values[statusPrefix+"wsrep_cluster_size"], w.values[statusPrefix+"wsrep_local_state"] = 3, 4
	w.values[variablePrefix+"wsrep_slave_threads"] = 1
	w.rates[statusPrefix+"wsrep_flow_control_paused_ns"] = 0
	w.texts["wsrep_cluster_status"], w.texts["wsrep_local_state_comment"] = "Primary", "Synced"
	return w
}

func TestOOMKill(t *testing.T) {
	w := host()
	w.tick()
	w.rates["node_vmstat_oom_kill"] = 1
	v := w.tick()
	f := find(v, "host.oom")
	if f == nil || f.Severity != fleet.SeverityCritical || v.State != StateCritical {
		t.Fatalf("got %+v; want f not nil, f.Severity fleet.SeverityCritical, State StateCritical", v)
	}
	w.rates["node_vmstat_oom_kill"] = 0
	for range 200 {
		v = w.tick()
	}
	if f := find(v, "host.oom"); f == nil || !strings.Contains(f.What, "since 10:30:02") {
		t.Errorf("over soon, and must not be missed: got %+v; want f not nil, \"since 10:30:02\" in f.What", v)
	}
	for range 200 {
		v = w.tick()
	}
	if find(v, "host.oom") != nil {
		t.Errorf("it does not end: got %+v, want find(v, \"host.oom\") nil", v)
	}
}

func TestDown(t *testing.T) {
	w := mariadb()
	w.snap.Up = false
	if v := w.tick(); v.State != StateNew || len(v.Findings) > 0 {
		t.Errorf("not reached yet: got %+v; want State StateNew, no v.Findings", v)
	}
	w.snap.Up = true
	w.tick()
	for _, c := range []struct{ reason, words string }{
		{"refuses connections", "the server refuses connections since 10:20:00"},
		{"", "the server does not answer since 10:20:00"},
		{"Error 1045 (28000): Access denied for user 'risso'@'h'.", "the server cannot be read since 10:20:00: Error 1045 (28000): Access denied for user 'risso'@'h'"},
		{"dial tcp: lookup nowhere: no such host", "the server cannot be read since 10:20:00: dial tcp: lookup nowhere: no such host"},
	} {
		w.snap.Up, w.snap.DownSince, w.snap.Down = false, begin.Add(-10*time.Minute), fleet.Trouble{Why: c.reason, Remedy: "look"}
		v := w.tick() // immediately
		if v.State != StateDown || v.Words != c.words+"; look" || v.Findings[0].ID != "server.down" || v.Findings[0].Remedy != "" || !v.Since.Equal(w.snap.DownSince) {
			t.Errorf("got %+v; want State StateDown, Words %v, Findings[0].ID \"server.down\", Findings[0].Remedy \"look\", Since.Equal(w.snap.DownSince) true",
				v, c.words)
		}
	}
	w.snap.Up = true
	if v := w.tick(); v.State != StateOK || v.Since != w.snap.Now {
		t.Errorf("back: got %+v; want State StateOK, Since %v", v, w.snap.Now)
	}
	w.snap.Up, w.snap.DownSince = false, begin.Add(-30*time.Hour)
	if v := w.tick(); !strings.HasSuffix(v.Findings[0].What, "since 2026-11-20 04:30: dial tcp: lookup nowhere: no such host; look") {
		t.Errorf("another day: got %s, want \"since 2026-11-20 04:30: dial tcp: lookup nowhere: no such host; look\" at its end", v.Findings[0].What)
	}
}

func TestHealthyLine(t *testing.T) {
	w := mariadb()
	w.values[statusPrefix+"threads_running"] = 2
	if v := w.tick(); v.Words != "healthy: 1.2 k questions/s, 2 threads running, disk flushes in 1.1 ms" || v.State != StateOK {
		t.Errorf("got %s; want v.Words \"healthy: 1.2 k questions/s, 2 threads running, disk flushes in 1.1 ms\", v.State StateOK", v.Words)
	}
	w.snap.Gaps = []fleet.Trouble{{What: "x"}}
	replica(w)
	if v := w.tick(); v.Words != "healthy: 1.2 k questions/s, 2 threads running, 0 s behind db1, disk flushes in 1.1 ms, 1 thing cannot be read" {
		t.Errorf("got %s, want \"healthy: 1.2 k questions/s, 2 threads running, 0 s behind db1, disk flushes in 1.1 ms, 1 thing cannot be read\"",
			v.Words)
	}
	if v := host().tick(); v.Words != "healthy: 15 % of 2 processors busy, 8 GiB memory available, disk flushes in 1.1 ms" {
		t.Errorf("got %s, want \"healthy: 15 %% of 2 processors busy, 8 GiB memory available, disk flushes in 1.1 ms\"", v.Words)
	}
	bare := newWorld(fleet.KindServer)
	bare.snap.Value, bare.snap.Rate, bare.snap.Keys, bare.snap.Text = nil, nil, nil, nil
	if v := bare.tick(); v.Words != "healthy" {
		t.Errorf("nothing known: got %+v, want Words \"healthy\"", v)
	}
}

// A condition that comes and goes within three seconds is never reported.
func TestFlicker(t *testing.T) {
	w := mysql97()
	for n := range 60 {
		w.values[statusPrefix+"threads_connected"] = 40
		if n%4 != 0 {
			w.values[statusPrefix+"threads_connected"] = 190
		}
		if v := w.tick(); len(v.Findings) > 0 {
			t.Fatalf("second %d: got %+v, want none", n, v)
		}
	}
}

// A MariaDB that is in no cluster says Disconnected, and nothing is wrong with it.
func TestNoGalera(t *testing.T) {
	w := mariadb()
	w.texts["wsrep_cluster_status"], w.texts["wsrep_on"] = "Disconnected", "OFF"
	w.values[statusPrefix+"wsrep_cluster_size"], w.values[statusPrefix+"wsrep_local_state"] = 0, 0
	for range 10 {
		if v := w.tick(); v.State != StateOK {
			t.Fatalf("got %+v, want State StateOK", v)
		}
	}
}

// What sways around a limit is reported at its worst.
func TestSeverityDoesNotFlicker(t *testing.T) {
	w := mysql97()
	changes, last := 0, fleet.SeverityInfo
	for n := range 60 {
		w.values[statusPrefix+"threads_connected"] = 188
		if n%5 == 0 {
			w.values[statusPrefix+"threads_connected"] = 192
		}
		if f := find(w.tick(), "conn.saturation"); f != nil && f.Severity != last {
			changes, last = changes+1, f.Severity
		}
	}
	if changes != 1 || last != fleet.SeverityCritical {
		t.Errorf("got %d changes, %v at last; want changes 1, last fleet.SeverityCritical", changes, last)
	}
	w.values[statusPrefix+"threads_connected"] = 188
	var v Verdict
	for range 11 {
		v = w.tick()
	}
	if f := find(v, "conn.saturation"); f == nil || f.Severity != fleet.SeverityWarning {
		t.Errorf("it got better: %+v; want f not nil, f.Severity fleet.SeverityWarning", v)
	}
}

func TestWorstFirstAndClockSetBack(t *testing.T) {
	w := replica(mysql97())
	w.values[statusPrefix+"threads_connected"] = 180
	w.texts["read_only"] = "OFF"
	for range 3 {
		w.tick()
	}
	w.snap.Channels[0] = fleet.Channel{Source: "db1", IORunning: "Yes", SQLRunning: "No", SQL: fleet.ReplicaError{Number: 1062, Text: "broken"}}
	var v Verdict
	for range 5 {
		v = w.tick()
	}
	var ids []string
	for _, f := range v.Findings {
		ids = append(ids, f.ID)
	}
	if got := fmt.Sprint(ids); got != "[repl.stopped conn.saturation repl.writable]" {
		t.Errorf("order %s, want \"[repl.stopped conn.saturation repl.writable]\"", got)
	}
	if !strings.HasSuffix(v.Words, "; and 2 more findings") || !strings.Contains(v.Words, "error 1062: broken; the remedy") || v.State != StateCritical {
		t.Errorf("%s: got %s; want \"error 1062: broken; the remedy\" in it, \"; and 2 more findings\" at its end, v.State StateCritical", v.State, v.Words)
	}
	w.snap.Now = w.snap.Now.Add(-time.Hour)
	if v := w.tick(); len(v.Findings) != 0 {
		t.Errorf("a clock set back begins anew: got %+v, want none", v)
	}
}

func TestCompare(t *testing.T) {
	f := make([]fleet.Finding, 3)
	order := []Verdict{
		{State: StateDown, Findings: f[:1]}, {State: StateCritical, Findings: f[:2]}, {State: StateCritical, Findings: f[:1], Since: begin.Add(time.Minute)},
		{State: StateCritical, Findings: f[:1], Since: begin}, {State: StateWarning, Findings: f}, {State: StateNew}, {State: StateOK},
	}
	for i := range order {
		for k := range order {
			want := 0
			if i < k {
				want = -1
			} else if i > k {
				want = 1
			}
			if got := Compare(order[i], order[k]); got != want {
				t.Errorf("Compare(%d, %d) = %d; want %d", i, k, got, want)
			}
		}
	}
}

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		label(`m{a="x\"y",device="sd a"}`, "device"): "sd a", label(`m{a="x\"y"}`, "a"): `x"y`, label("m", "a"): "", label(`m{ba="1"}`, "a"): "",
		cut("  a\n b. ", 10): "a b", cut("abcdefgh", 5): "abcd…", latencyBeside(0.002, 0.038): "2", latencyBeside(0.02, 1.5): "20 ms",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The README lists every id that the code knows, and no other; each is tried above.
func TestReadmeListsTheRules(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)`").FindAllStringSubmatch(string(readme), -1) {
		listed[m[1]] = !slices.Contains(fromTopology, m[1])
	}
	maps.DeleteFunc(listed, func(_ string, own bool) bool { return !own })
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{"server.down": true, "server.hung": true, "host.oom": true, "disk.trend": true, "observer.disk": true, "observer.lost": true, "observer.state": true, "observer.silent": true, "observer.controller": true}
	for _, s := range scenarios(t) {
		tried[s.id] = true
	}
	found := map[string]bool{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`(?:id|ID)(?::| =) "([a-z_.]+)"`).FindAllStringSubmatch(string(text), -1) {
			if found[m[1]] = true; !listed[m[1]] || !tried[m[1]] {
				t.Errorf("%s: listed %v, tried %v; want both", m[1], listed[m[1]], tried[m[1]])
			}
		}
	}
	if len(found) != len(listed) {
		t.Errorf("%d ids in the code, %d in the README", len(found), len(listed))
	}
}

func BenchmarkJudge(b *testing.B) {
	w := replica(mariadb())
	b.ReportAllocs()
	for b.Loop() {
		w.tick()
	}
}

// What a rule has to distinguish besides its numbers.
func TestRemedies(t *testing.T) {
	const key = `{channel_name="",connection_name="",master_host="db1",master_uuid=""}`
	for _, c := range []struct {
		name, on, id string
		set          []string
		remedy       string
	}{
		{"the server counts its connections up to the next 50", "mysql-9.7", "conn.saturation", []string{"value variable.max_connections 34", "value status.threads_connected 34"}, "SET GLOBAL max_connections = 100"},
		{"MariaDB 10.8 cannot change its log while it runs", "mariadb", "redo.pressure", []string{"version 10.8.8-MariaDB", "value status.innodb_checkpoint_age 70M"}, ""},
		{"MariaDB 10.9 can", "mariadb", "redo.pressure", []string{"version 10.9.0-MariaDB", "value status.innodb_checkpoint_age 70M"}, "SET GLOBAL innodb_log_file_size = 201326592"},
		{"a newer MariaDB can, too", "mariadb", "redo.pressure", []string{"version 11.4.2-MariaDB", "value status.innodb_checkpoint_age 70M"}, "SET GLOBAL innodb_log_file_size = 201326592"},
		{"an older major version with a larger minor one cannot", "mariadb", "redo.pressure", []string{"version 5.10.9-MariaDB", "value status.innodb_checkpoint_age 70M"}, ""},
		{"the log is never smaller than its buffer", "mariadb", "redo.pressure", []string{"value variable.innodb_log_buffer_size 256M", "value status.innodb_checkpoint_age 70M"}, "SET GLOBAL innodb_log_file_size = 268435456"},
		{"a buffer pool grows by half, in steps of 128 MB", "mysql-9.7", "bp.starved", []string{"value variable.innodb_buffer_pool_size 1100M", "rate status.innodb_buffer_pool_wait_free 40"}, "SET GLOBAL innodb_buffer_pool_size = 1824522240"},
		{"a buffer pool does not grow into memory that is not there", "mysql-9.7", "bp.starved", []string{"host value node_memory_MemAvailable_bytes 768M", "rate status.innodb_buffer_pool_wait_free 40"}, ""},
		{"it grows where half as much again is there", "mysql-9.7", "bp.starved", []string{"host value node_memory_MemAvailable_bytes 769M", "rate status.innodb_buffer_pool_wait_free 40"}, "SET GLOBAL innodb_buffer_pool_size = 1610612736"},
		{"it grows where nobody knows what is there", "mysql-9.7", "bp.starved", []string{"host none node_memory_MemAvailable_bytes", "rate status.innodb_buffer_pool_wait_free 40"}, "SET GLOBAL innodb_buffer_pool_size = 1610612736"},
		{"a small buffer pool is not what fills the memory", "mariadb", "mem.overcommit", []string{"value risso_cgroup_memory_current_bytes 2G", "value risso_cgroup_memory_max_bytes 2G"}, ""},
		{"a large one shrinks", "mariadb", "mem.overcommit", []string{"value risso_cgroup_memory_current_bytes 2047M", "value risso_cgroup_memory_max_bytes 2047M"}, "SET GLOBAL innodb_buffer_pool_size = 805306368"},
		{"MariaDB applies with one thread", "mariadb, replica", "repl.lag", []string{"value variable.slave_parallel_threads 1", "lag 95"}, "STOP SLAVE SQL_THREAD; SET GLOBAL slave_parallel_threads = 4; START SLAVE SQL_THREAD"},
		{"MariaDB applies with two", "mariadb, replica", "repl.lag", []string{"value variable.slave_parallel_threads 2", "lag 95"}, ""},
		{"MySQL applies with one thread", "mysql-9.7, replica", "repl.lag", []string{"value variable.replica_parallel_workers 1", "lag 95"}, "STOP REPLICA SQL_THREAD; SET GLOBAL replica_parallel_workers = 4; START REPLICA SQL_THREAD"},
		{"MySQL applies with two", "mysql-9.7, replica", "repl.lag", []string{"value variable.replica_parallel_workers 2", "lag 95"}, ""},
		{"MySQL 5.7 applies with none beside", "percona-5.7, replica", "repl.lag", []string{"value variable.slave_parallel_workers 0", "lag 95"}, "STOP SLAVE SQL_THREAD; SET GLOBAL slave_parallel_workers = 4; START SLAVE SQL_THREAD"},
		{"a named connection of MariaDB", "mariadb, replica", "repl.stopped", []string{`channel a\b: db7 Yes No`}, `START SLAVE 'a\\b'`},
		{"detached by risso", "mysql-9.7, replica", "repl.stopped", []string{"channel db1.detached.invalid:3306 No No"}, ""},
		{"MySQL 8.0.21 knows no replicas", "mysql-9.7, replica", "repl.stopped", []string{"version 8.0.21", "channel db1 No No"}, "START SLAVE"},
		{"MySQL 8.0.22 does", "mysql-9.7, replica", "repl.stopped", []string{"version 8.0.22", "channel db1 No No"}, "START REPLICA"},
		{"a version that nobody knows is a new one", "mysql-9.7, replica", "repl.stopped", []string{"version ", "channel db1 No No"}, "START REPLICA"},
		{"MySQL 8.0.25 counts without GTIDs", "mysql-9.7, replica", "repl.stopped", []string{"version 8.0.25", "channel db1 Yes No 1032 no row"}, "SET GLOBAL sql_slave_skip_counter = 1; START REPLICA"},
		{"MySQL 8.0.26 does, in new words", "mysql-9.7, replica", "repl.stopped", []string{"version 8.0.26", "channel db1 Yes No 1032 no row"}, "SET GLOBAL sql_replica_skip_counter = 1; START REPLICA"},
		{"it does not count with GTIDs", "mysql-9.7, replica", "repl.stopped", []string{"text gtid_mode ON", "channel db1 Yes No 1032 no row"}, ""},
		{"rows as they are", "mysql-9.7, replica", "repl.stopped", []string{"channel db1 Yes No 1032 Worker 1 failed executing transaction '3e11fa47-71ca-11e1-9e33-c80aa9429562:7' at source log b.2, end_log_pos 9; Could not execute Delete_rows event on table a.b; no row"},
			"SET GLOBAL replica_exec_mode = 'IDEMPOTENT'; START REPLICA; SELECT WAIT_FOR_EXECUTED_GTID_SET('3e11fa47-71ca-11e1-9e33-c80aa9429562:7', 60); SET GLOBAL replica_exec_mode = 'STRICT'"},
		{"they are so already", "mysql-9.7, replica", "repl.stopped", []string{"text replica_exec_mode idempotent", "channel db1 Yes No 1062 Worker 1 failed executing transaction '3e11fa47-71ca-11e1-9e33-c80aa9429562:7'; Write_rows"},
			"SET GTID_NEXT = '3e11fa47-71ca-11e1-9e33-c80aa9429562:7'; BEGIN; COMMIT; SET GTID_NEXT = 'AUTOMATIC'; START REPLICA"},
		{"an object that is there", "percona-5.7, replica", "repl.stopped", []string{"channel o'hara: db1 Yes No 1050 Error 'Table 'u' already exists' on query"}, `SET GLOBAL sql_slave_skip_counter = 1; START SLAVE FOR CHANNEL 'o''hara'`},
		{"a connection of MariaDB", "mariadb, replica", "repl.stopped", []string{"channel east: db1 Yes No 1050 Error 'Table 'u' already exists' on query"}, "SET @@SESSION.default_master_connection = 'east'; SET GLOBAL sql_slave_skip_counter = 1; START SLAVE 'east'"},
		{"a lock that was not given", "mysql-9.7, replica", "repl.stopped", []string{"channel db1 Yes No 1205 Lock wait timeout"}, "START REPLICA"},
		{"a relay log that cannot be read, and no position", "mysql-9.7, replica", "repl.stopped", []string{"channel db1 Yes No 13121 Relay log read failure"}, ""},
		{"GTIDs out of order", "mariadb, replica", "repl.stopped", []string{"channel db1 Yes No 1950 out-of-order"}, ""},
		{"logs that are gone", "mysql-9.7, replica", "repl.stopped", []string{"channel db1 No Yes 13114 Got fatal error 1236 from source: the source has purged required GTIDs"}, ""},
		{"a login over no TLS", "mysql-9.7, replica", "repl.stopped", []string{"channel db1 Connecting Yes 2061 Authentication requires secure connection"}, "STOP REPLICA; CHANGE REPLICATION SOURCE TO GET_SOURCE_PUBLIC_KEY = 1; START REPLICA"},
		{"a password", "mysql-9.7, replica", "repl.stopped", []string{"channel db1 Connecting Yes 1045 Access denied"}, ""},
		{"Galera applies with one thread", "mariadb, galera", "galera.flow_control", []string{"value variable.wsrep_slave_threads 2", "rate status.wsrep_flow_control_paused_ns 4e8"}, "SHOW GLOBAL STATUS LIKE 'wsrep_local_recv_queue%'"},
		{"MySQL 8.0.0 has no data_locks", "mysql-9.7", "lock.blocker", []string{"version 8.0.0", "waiting row_lock 5"}, "SELECT wait_age, locked_table, waiting_pid, waiting_query, blocking_pid, blocking_query, sql_kill_blocking_connection FROM sys.innodb_lock_waits"},
		{"MySQL 8.0.1 has, in performance_schema", "mysql-9.7", "lock.blocker", []string{"version 8.0.1", "waiting row_lock 5"}, "SELECT trx_mysql_thread_id AS id, trx_state, trx_started, trx_rows_locked, LEFT(trx_query, 100) AS query FROM information_schema.INNODB_TRX ORDER BY trx_state = 'LOCK WAIT', trx_started"},
		{"who holds metadata is told by threads in 5.7", "percona-5.7", "mdl.blocker", []string{"text performance_schema ON", "waiting metadata_lock 1"}, "SELECT t.PROCESSLIST_ID"},
		{"and by locks in 9.7", "mysql-9.7", "mdl.blocker", []string{"text performance_schema ON", "waiting metadata_lock 1"}, "h.LOCK_TYPE AS holds"},
		{"MariaDB names its plugin", "mariadb", "mdl.blocker", []string{"text performance_schema ON", "waiting metadata_lock 1"}, "SELECT t.PROCESSLIST_ID"},
		{"read_only as a number", "mysql-9.7, replica", "repl.writable", []string{"text read_only 0"}, "SET GLOBAL super_read_only = ON"},
		{"a delay that is not wanted", "mysql-9.7, replica", "repl.lag", []string{"value mysql_slave_status_sql_delay" + key + " 65", "lag 95"}, ""},
	} {
		w, err := worldOf(c.on)
		if err != nil {
			t.Fatal(err)
		}
		for range 120 {
			w.tick()
		}
		for _, line := range c.set {
			if err := w.set(line); err != nil {
				t.Fatal(err)
			}
		}
		var f *fleet.Finding
		for range 12 {
			f = find(w.tick(), c.id)
		}
		if f == nil {
			t.Errorf("%s: got nothing, want %s", c.name, c.id)
		} else if f.Remedy != c.remedy && (c.remedy == "" || !strings.Contains(f.Remedy, c.remedy)) {
			t.Errorf("%s: got %q, want %q", c.name, f.Remedy, c.remedy)
		}
		if f != nil {
			runnable(t, w.snap.Instance.Kind, *f)
		}
	}
}

// The words in which findings say what goes with the number.
func TestTails(t *testing.T) {
	for _, c := range []struct {
		name, on, id string
		set          []string
		words        string
	}{
		{"a source without a name", "mariadb, replica", "repl.stopped", []string{"channel  No No"}, "replication from its source is stopped since"},
		{"a number of an error is left out where there is none", "mariadb, replica", "repl.stopped", []string{"channel db1 Yes No 0 odd"}, ": odd"},
		{"connecting without an error is no command", "mariadb, replica", "repl.stopped", []string{"channel db1 Connecting Yes"}, "replication cannot connect to db1 since 10:32:01"},
		{"detached", "mysql-9.7, replica", "repl.stopped", []string{"channel db1.detached.invalid:3306 No No"}, ": it is detached by risso from db1:3306; risso replica attach lets it replicate again"},
		{"both threads are down, one still tries", "mariadb, replica", "repl.stopped", []string{"channel db1 Connecting No"}, "replication from db1 is stopped since"},
		{"MySQL 5.7 does not count all deadlocks", "percona-5.7", "deadlock.rate", []string{"rate status.innodb_deadlocks 3"}, "at least about 3"},
		{"MySQL 8.0 does", "mysql-9.7", "deadlock.rate", []string{"version 8.0.0", "rate status.innodb_deadlocks 3"}, "about 3"},
		{"an unknown version does", "mysql-9.7", "deadlock.rate", []string{"version ", "rate status.innodb_deadlocks 3"}, "about 3"},
		{"most threads wait for the last of the classes", "mysql-9.7", "threads.pileup", []string{"value status.threads_running 40", "waiting commit 2", "waiting replication 3"}, "; 3 wait for replication"},
		{"less than one waits", "mysql-9.7", "threads.pileup", []string{"value status.threads_running 40", "waiting io 0.9"}, "with 85 % to spare"},
		{"the state of a member without a comment", "mariadb, galera", "galera.not_synced", []string{`text wsrep_local_state_comment ""`, "value status.wsrep_local_state 0"}, "not synced (Undefined)"},
		{"the state of a member without a comment", "mariadb, galera", "galera.not_synced", []string{`text wsrep_local_state_comment ""`, "value status.wsrep_local_state 1"}, "not synced (Joining)"},
		{"the state of a member without a comment", "mariadb, galera", "galera.not_synced", []string{`text wsrep_local_state_comment ""`, "value status.wsrep_local_state 3"}, "not synced (Joined)"},
		{"the state of a member without a comment", "mariadb, galera", "galera.not_synced", []string{`text wsrep_local_state_comment ""`, "value status.wsrep_local_state 5"}, "not synced (Error)"},
		{"the state of a member without a comment", "mariadb, galera", "galera.not_synced", []string{`text wsrep_local_state_comment ""`, "value status.wsrep_local_state 6"}, "not synced (Max)"},
		{"a member whose data differ", "mariadb, galera", "galera.non_primary", []string{"text wsrep_cluster_status Disconnected", "value status.wsrep_local_state 5"}, "found that its data differ from theirs"},
		{"a member alone", "mariadb, galera", "galera.non_primary", []string{"text wsrep_cluster_status Disconnected", "value status.wsrep_cluster_size 1"}, "; it sees 1 member"},
		{"flow control for all of the time, and more", "mariadb, galera", "galera.flow_control", []string{"rate status.wsrep_flow_control_paused_ns 5e9"}, "writes 100 % of the time"},
		{"all tasks, and more", "host", "host.pressure_io", []string{"rate node_pressure_io_stalled_seconds_total 9"}, "for disks 100 % of the time since 10:32:01, some in 100 %"},
		{"all tasks, and more", "host", "host.pressure_memory", []string{"rate node_pressure_memory_stalled_seconds_total 9"}, "for memory 100 % of the time"},
		{"MariaDB 10.8 cannot change its log while it runs", "mariadb", "redo.pressure", []string{"version 10.8.8-MariaDB", "value status.innodb_checkpoint_age 70M"}, "; a larger one needs innodb_log_file_size = 201326592 in the option file"},
		{"redo beyond its limit", "mariadb", "redo.pressure", []string{"value status.innodb_checkpoint_age 90M"}, "is 100 % full since"},
		{"redo that is not written", "mariadb", "redo.pressure", []string{"rate status.innodb_os_log_written 0.9", "value status.innodb_checkpoint_age 90M"}, "of 80 MiB): when"},
		{"redo that is hardly written", "mariadb", "redo.pressure", []string{"rate status.innodb_os_log_written 1", "value status.innodb_checkpoint_age 90M"}, "of 80 MiB), and 1 B more are written per second"},
		{"a disk takes no more than twice its usual time", "mysql-9.7", "commit.wait", []string{"waiting commit 10", "host disk flushes 100,0.0021"}, "as usual"},
		{"a disk takes more than twice its usual time", "mysql-9.7", "commit.wait", []string{"waiting commit 10", "host disk flushes 100,0.003"}, "the disk flushes in 2.97 ms instead of 1.11"},
	} {
		w, err := worldOf(c.on)
		if err != nil {
			t.Fatal(err)
		}
		for range 120 {
			w.tick()
		}
		for _, line := range c.set {
			if err := w.set(line); err != nil {
				t.Fatal(err)
			}
		}
		var f *fleet.Finding
		for range 12 {
			f = find(w.tick(), c.id)
		}
		if f == nil {
			t.Errorf("%s: got nothing, want %s", c.name, c.id)
		} else if !strings.Contains(f.What, c.words) {
			t.Errorf("%s: got %q, want %q in it", c.name, f.What, c.words)
		}
	}
}

// A replica that comes nearer says when it will be there.
func TestLagThatShrinks(t *testing.T) {
	w := replica(mariadb())
	for lag, n := 1000.0, 0; n < 60; n++ {
		w.lag(lag)
		v := w.tick()
		lag -= 5
		if n > 30 {
			want := fmt.Sprintf("now %s; it catches up in about %s", digits.Age(lag+5), digits.Age((lag+5)/5))
			if f := find(v, "repl.lag"); f == nil || !strings.Contains(f.What, want) {
				t.Fatalf("got %+v, want %q", f, want)
			}
		}
	}
	for range 60 { // and stays as it is
		w.tick()
	}
	if f := find(w.tick(), "repl.lag"); f == nil || strings.Contains(f.What, ";") {
		t.Errorf("got %+v, want no word of where it goes", f)
	}
}

// Before a minute has passed nothing is usual, and the limits are wider.
func TestNothingIsUsualYet(t *testing.T) {
	for _, c := range []struct {
		name    string
		running float64
		host    bool
		told    fleet.Severity
	}{
		{"15 threads beside 2 processors", 16, true, fleet.SeverityInfo},
		{"16 threads beside 2 processors", 17, true, fleet.SeverityWarning},
		{"64 threads beside 2 processors", 65, true, fleet.SeverityCritical},
		{"31 threads, and nobody knows beside how many processors", 32, false, fleet.SeverityInfo},
		{"32 threads, and nobody knows beside how many processors", 33, false, fleet.SeverityWarning},
	} {
		w := mysql97()
		if !c.host {
			w.host, w.snap.Host = nil, nil
		}
		w.values[statusPrefix+"threads_running"] = c.running
		var v Verdict
		for range 10 {
			v = w.tick()
		}
		got := fleet.SeverityInfo
		if f := find(v, "threads.pileup"); f != nil {
			got = f.Severity
		}
		if got != c.told {
			t.Errorf("%s: got %v, want %v", c.name, got, c.told)
		}
	}
	for running, want := range map[float64]bool{4: false, 5: true} { // no statement begins
		w := mariadb()
		w.rates[statusPrefix+"questions"], w.values[statusPrefix+"threads_running"] = 3, running
		var v Verdict
		for range 10 {
			v = w.tick()
		}
		if got := find(v, "server.stall") != nil; got != want {
			t.Errorf("%v threads run and no statement begins: got a stall %v, want %v", running, got, want)
		}
	}
	w := mysql97()
	w.waiting("commit", 10)
	var v Verdict
	for range 10 {
		v = w.tick()
	}
	if f := find(v, "commit.wait"); f == nil || !strings.HasSuffix(f.What, "; the disk flushes in 1.1 ms") {
		t.Errorf("got %+v, want the disk's time and nothing usual beside it", f)
	}
}

// A look that comes late counts for ten seconds at most, and a clock that goes back by less than a minute is let pass.
func TestTimeThatJumps(t *testing.T) {
	w := mysql97()
	for range 5 {
		w.tick()
	}
	w.rates[statusPrefix+`connection_errors_total{error="max_connections"}`] = 0.05
	w.snap.Now = w.snap.Now.Add(time.Hour) // 10 s of 0.05 a second are less than one
	if v := w.tick(); len(v.Findings) > 0 || w.j.counts["refused connections"] > 0.51 || w.j.counts["refused connections"] < 0.49 {
		t.Errorf("got %v refused, want 0.5", w.j.counts["refused connections"])
	}
	w = mysql97()
	w.values[statusPrefix+"threads_connected"] = 190
	for range 10 {
		w.tick()
	}
	w.snap.Now = w.snap.Now.Add(-50 * time.Second)
	if v := w.tick(); find(v, "conn.saturation") == nil {
		t.Errorf("a clock set back by less than a minute: got %+v, want what was told before", v)
	}
	w.snap.Now = w.snap.Now.Add(-62 * time.Second)
	if v := w.tick(); find(v, "conn.saturation") != nil {
		t.Errorf("a clock set back by more: got %+v, want a new beginning", v)
	}
}

// What was pending or reported is forgotten with the server.
func TestDownForgets(t *testing.T) {
	w := mysql97()
	w.values[statusPrefix+"threads_connected"] = 190
	for range 10 {
		w.tick()
	}
	w.snap.Up, w.snap.DownSince = false, begin.Add(time.Minute)
	v := w.tick()
	if f := v.Findings[0]; f.Severity != fleet.SeverityCritical || f.Chart == "" {
		t.Errorf("got %+v, want a critical finding with a chart", f)
	}
	w.snap.Up = true
	if v = w.tick(); len(v.Findings) != 0 || v.State != StateOK {
		t.Errorf("just back: got %+v, want nothing told yet", v)
	}
	for range 3 {
		v = w.tick()
	}
	if f := find(v, "conn.saturation"); f == nil || !v.Since.Equal(f.Since) {
		t.Errorf("got %+v, want it told again, and the state since then", v)
	}
	h := host()
	h.snap.Up, h.snap.DownSince, h.snap.Down.Why = false, begin, "zone is odd"
	if v := h.tick(); v.Words != "the host zone is odd since 10:30:00" {
		t.Errorf("got %q, want \"the host zone is odd since 10:30:00\"", v.Words)
	}
	h.snap.Down.Why = "a" + strings.Repeat("b", 300) + ":"
	if v := h.tick(); len([]rune(v.Words)) != len("the host cannot be read since 10:30:00: ")+200 {
		t.Errorf("got %d characters of %q, want 200 of the reason", len([]rune(v.Words)), v.Words)
	}
}

// The disk that flushes most is the one that commits wait for.
func TestBusiestFlush(t *testing.T) {
	w := mariadb()
	h := w.host
	h.rates[flushCount+`{device="vdb"}`], h.rates[flushTime+`{device="vdb"}`] = 200, 200*0.004
	h.rates[flushCount+`{device="vdc"}`] = 900 // it is unknown how long these take
	if v := w.tick(); !strings.Contains(v.Words, "disk flushes in 4 ms") {
		t.Errorf("got %q, want the 4 ms of vdb", v.Words)
	}
	for rate, want := range map[float64]bool{0.9: false, 1: true} {
		w := host()
		w.disk(rate, 0.005, 50, 0.002, 100, 0.001)
		if v := w.tick(); strings.Contains(v.Words, "disk flushes in 5 ms") != want {
			t.Errorf("%v flushes a second: got %q, want their time told: %v", rate, v.Words, want)
		}
	}
}

// What has been exactly at a limit since the beginning, so that no mean over some seconds differs from it.
func TestAtTheLimit(t *testing.T) {
	const channel = `{channel_name="c",connection_name="",master_host="",master_uuid=""}`
	for _, c := range []struct{ on, set, id, want string }{
		{"host", "cpu 1.9,0.05,0.05,0", "host.cpu", "quiet"}, {"host", "value node_procs_running 3; cpu 2,0,0,0", "host.cpu", "warning"}, {"host", "value node_procs_running 16; cpu 2,0,0,0", "host.cpu", "critical"},
		{"host", "value node_procs_running 1.5; cpu 0.3,0,0,0", "host.cpu", "warning"}, {"host", "cpu 0.8,1,0,0.2", "host.steal", "warning"}, {"host", "cpu 0.2,1,0,0.8", "host.steal", "critical"},
		{"host", "rate node_pressure_io_stalled_seconds_total 0.25", "host.pressure_io", "warning"}, {"host", "rate node_pressure_io_stalled_seconds_total 0.7", "host.pressure_io", "critical"},
		{"host", "rate node_pressure_memory_stalled_seconds_total 0.05", "host.pressure_memory", "warning"}, {"host", "rate node_pressure_memory_stalled_seconds_total 0.2", "host.pressure_memory", "critical"},
		{"host", "rate node_vmstat_pswpin 50", "host.swap", "warning"}, {"host", "rate node_vmstat_pswpout 50", "host.swap", "warning"}, {"host", "rate node_vmstat_pswpin 1000", "host.swap", "critical"},
		{"host", "disk flushes 100,0.02", "host.io_slow", "warning"}, {"host", "disk flushes 100,0.2", "host.io_slow", "critical"}, {"host", "none node_filesystem_size_bytes" + `{device="/dev/vda",fstype="ext4",mountpoint="/var/lib/mysql data"}; space 1`, "disk.full", "quiet"},
		{"host", `value node_filesystem_files{device="/dev/vda",fstype="ext4",mountpoint="/var/lib/mysql data"} 0; nodes 0`, "disk.full", "quiet"}, {"host", `value node_filesystem_size_bytes{device="/dev/vda",fstype="ext4",mountpoint="/var/lib/mysql data"} 0; space 0`, "disk.full", "quiet"},
		{"host", `value node_filesystem_size_bytes{device="/dev/vda",fstype="ext4",mountpoint="/var/lib/mysql data"} 40G; space 2G`, "disk.full", "warning"},
		{"mysql-9.7", "rate status.innodb_buffer_pool_wait_free 1", "bp.starved", "warning"}, {"mysql-9.7", "waiting commit 4", "commit.wait", "warning"}, {"mysql-9.7", "waiting commit 32", "commit.wait", "critical"}, {"mysql-9.7", "waiting semisync 4", "commit.semisync", "warning"},
		{"mysql-9.7", "rate risso_cgroup_cpu_periods_total 10; rate risso_cgroup_cpu_throttled_periods_total 1; value risso_cgroup_cpu_periods_total 1", "host.throttled", "warning"}, {"mysql-9.7", "rate risso_cgroup_cpu_periods_total 10; rate risso_cgroup_cpu_throttled_periods_total 5; value risso_cgroup_cpu_periods_total 1", "host.throttled", "critical"},
		{"mysql-9.7", "rate risso_cgroup_cpu_periods_total 0; rate risso_cgroup_cpu_throttled_periods_total 1; value risso_cgroup_cpu_periods_total 1", "host.throttled", "quiet"}, {"mysql-9.7", "rate risso_cgroup_cpu_throttled_periods_total 1; value risso_cgroup_cpu_periods_total 1", "host.throttled", "quiet"},
		{"mysql-9.7", "value risso_cgroup_memory_current_bytes 92; value risso_cgroup_memory_max_bytes 100", "mem.overcommit", "warning"}, {"mysql-9.7", "value risso_cgroup_memory_current_bytes 98; value risso_cgroup_memory_max_bytes 100", "mem.overcommit", "critical"}, {"mysql-9.7", "value risso_cgroup_memory_current_bytes 98", "mem.overcommit", "quiet"},
		{"mariadb, galera", "rate status.wsrep_flow_control_paused_ns 1e8", "galera.flow_control", "warning"}, {"mariadb, galera", "rate status.wsrep_flow_control_paused_ns 5e8", "galera.flow_control", "critical"},
		{"mariadb", "text wsrep_on OFF; text wsrep_cluster_status non-Primary; value status.wsrep_cluster_size 1", "galera.non_primary", "critical"}, {"mariadb", "text wsrep_on ON; text wsrep_cluster_status non-Primary", "galera.non_primary", "critical"}, {"mariadb", "value status.wsrep_cluster_status 0", "galera.non_primary", "quiet"},
		{"mysql-9.7", "waiting row_lock 4", "lock.blocker", "warning"}, {"mysql-9.7", "none status.innodb_row_lock_current_waits; waiting row_lock 4", "lock.blocker", "warning"}, {"mysql-9.7", "none status.questions; value status.threads_running 20", "server.stall", "quiet"}, {"mysql-9.7", "none variable.max_connections; value status.threads_connected 20", "conn.saturation", "quiet"},
		{"mysql-9.7, replica", "value mysql_slave_status_seconds_behind_master" + channel + " 40", "repl.lag", "channel c: the replica is more than 30 s behind its source since 10:30:01, now 40 s"}, {"mysql-9.7, replica", "lag 50; value mysql_slave_status_seconds_behind_master" + channel + " 40", "repl.lag", "the replica is more than 30 s behind db1 since 10:30:01, now 50 s"},
		{"percona-5.7", "none status.innodb_checkpoint_max_age; none variable.innodb_log_files_in_group; value status.innodb_checkpoint_age 77M", "redo.pressure", "warning"}, {"percona-5.7", "none status.innodb_checkpoint_max_age; value variable.innodb_log_files_in_group 1; value status.innodb_checkpoint_age 77M", "redo.pressure", "warning"},
		{"mysql-9.7", "none status.innodb_checkpoint_max_age; none variable.innodb_log_file_size; value variable.innodb_redo_log_capacity 0; value status.innodb_checkpoint_age 77M", "redo.pressure", "quiet"}, {"mysql-9.7", "none status.innodb_checkpoint_max_age; value variable.innodb_log_file_size 0; value status.innodb_checkpoint_age 77M", "redo.pressure", "quiet"},
		{"mysql-9.7", "none status.innodb_checkpoint_age; value status.innodb_redo_log_current_lsn 900G", "redo.pressure", "quiet"},
	} {
		w, err := worldOf(c.on)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(c.set, "; ") {
			if err := w.set(line); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		var f *fleet.Finding
		for range 10 {
			f = find(w.tick(), c.id)
		}
		got := "quiet"
		if f != nil {
			if got = f.Severity.String(); strings.Contains(c.want, " ") {
				got = f.What
			}
		}
		if got != c.want {
			t.Errorf("%s: got %s %s, want %s", c.set, c.id, got, c.want)
		}
	}
}

// What a server does is reported as such, and what an error says as its words.
func TestReasons(t *testing.T) {
	for reason, words := range map[string]string{
		"answers late": "the server answers late since 10:30:00", "zigzags": "the server zigzags since 10:30:00", "{odd": "the server cannot be read since 10:30:00: {odd", "`odd": "the server cannot be read since 10:30:00: `odd",
		"Odd": "the server cannot be read since 10:30:00: Odd", "odd (7)": "the server cannot be read since 10:30:00: odd (7)", "odd: 7": "the server cannot be read since 10:30:00: odd: 7",
	} {
		w := mariadb()
		w.snap.Up, w.snap.DownSince, w.snap.Down.Why = false, begin, reason
		if v := w.tick(); v.Words != words {
			t.Errorf("%q: got %q, want %q", reason, v.Words, words)
		}
	}
}

// The kernel's kill is reported for five minutes and no longer, with the second in which it was seen.
func TestOOMKillEnds(t *testing.T) {
	w := host()
	w.rates["node_vmstat_oom_kill"] = 1
	f := find(w.tick(), "host.oom")
	if f == nil || !f.Since.Equal(begin.Add(time.Second)) {
		t.Fatalf("got %+v, want it since the second in which it was seen", f)
	}
	w.rates["node_vmstat_oom_kill"] = 0
	for n := 1; n <= 302; n++ {
		if got, want := find(w.tick(), "host.oom") != nil, n <= 300; got != want {
			t.Fatalf("after %d s: got told %v, want %v", n, got, want)
		}
	}
}

// What is usual follows slowly: a change of the work is half learned in minutes, and in trouble it takes ten times as long.
func TestUsual(t *testing.T) {
	for _, c := range []struct {
		name    string
		seconds int
		wrong   bool
		want    float64
	}{{"a minute of a hundred times as much, of which three times the mean count", 60, false, 12.208}, {"ten minutes of it", 600, false, 73.52}, {"ten minutes of it in trouble", 600, true, 12.213}} {
		j := &Judge{}
		j.begin(begin)
		r := &round{j: j, dt: time.Second}
		for range 600 {
			r.see("x", 10, false)
		}
		if _, known := r.usual("x"); !known {
			t.Error("after ten minutes nothing is usual, want it known")
		}
		for range c.seconds {
			r.see("x", 1000, c.wrong)
		}
		if got, _ := r.usual("x"); math.Abs(got-c.want) > 0.01 {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	j := &Judge{}
	j.begin(begin)
	r := &round{j: j, dt: time.Second}
	for n := range 60 { // at first a plain mean of all that was seen, and not spoken of for a minute
		if _, known := r.usual("x"); known {
			t.Fatalf("after %d s: got it known, want it in a minute", n)
		}
		r.see("x", float64(10+n%2*10), false)
	}
	if got, known := r.usual("x"); !known || math.Abs(got-15) > 0.5 {
		t.Errorf("10 and 20 in turns: got %v, %v; want 15", got, known)
	}
}
