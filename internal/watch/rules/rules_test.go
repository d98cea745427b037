package rules

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

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

// scenario is a rule on trial.
type scenario struct {
	id       string
	name     string
	make     func() *world
	near     func(*world) // bad, but not bad enough
	bad      func(*world)
	severity fleet.Severity
	words    string // a pattern
	remedy   string // a part of it
	within   int    // seconds until it is told; 0 means holdToBegin
	ends     int    // seconds until it has ended; 0 means holdToEnd
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

func (w *world) channel(io, sql, err string) {
	w.snap.Channels = []fleet.Channel{{Source: "db1", IORunning: io, SQLRunning: sql, LastError: err}}
	if err != "" {
		w.snap.Channels[0].LastErrno = 1062
	}
}

func (w *world) fs(metric string, v float64) {
	w.values[metric+`{device="/dev/vda",fstype="ext4",mountpoint="/var/lib/mysql data"}`] = v
}

func galera() *world {
	w := mariadb()
	w.snap.Instance.Role = fleet.RoleGalera
	w.values[statusPrefix+"wsrep_cluster_size"], w.values[statusPrefix+"wsrep_local_state"] = 3, 4
	w.values[variablePrefix+"wsrep_slave_threads"] = 1
	w.rates[statusPrefix+"wsrep_flow_control_paused_ns"] = 0
	w.texts["wsrep_cluster_status"], w.texts["wsrep_local_state_comment"] = "Primary", "Synced"
	return w
}

// Each rule is tried on a world that is healthy for two minutes, then bad but not
// bad enough, then bad, then healthy again.
func TestRules(t *testing.T) {
	for _, s := range append(serverScenarios(), append(replicationScenarios(), hostScenarios()...)...) {
		t.Run(s.id+"/"+s.name, func(t *testing.T) { s.run(t) })
	}
}

func (s scenario) run(t *testing.T) {
	w := s.make()
	for range 120 {
		if v := w.tick(); v.State != StateOK || !strings.HasPrefix(v.Words, "healthy: ") || len(v.Findings) > 0 {
			t.Fatalf("a healthy world: %+v", v)
		}
	}
	base := s.make()
	restore := func() {
		maps.Copy(w.values, base.values)
		maps.Copy(w.rates, base.rates)
		maps.Copy(w.texts, base.texts)
		w.snap.Channels, w.snap.Late = base.snap.Channels, false
		if w.host != nil {
			maps.Copy(w.host.values, base.host.values)
			maps.Copy(w.host.rates, base.host.rates)
		}
	}
	if s.near != nil {
		s.near(w)
		for range 20 {
			if v := w.tick(); find(v, s.id) != nil {
				t.Fatalf("not bad enough, and yet: %+v", v)
			}
		}
		restore()
		for range 40 {
			w.tick()
		}
	}
	s.bad(w)
	start := w.snap.Now.Add(time.Second)
	within := s.within
	if within == 0 {
		within = 4 // the tick it is first seen at, and three seconds more
	}
	var f *fleet.Finding
	var v Verdict
	for n := 1; n <= within && f == nil; n++ {
		v = w.tick()
		if f = find(v, s.id); f != nil && n < 4 {
			t.Errorf("told after %d ticks: %+v", n, f)
		}
	}
	if f == nil {
		t.Fatalf("not told within %d s: %+v", within, v)
	}
	if f.Severity != s.severity || !regexp.MustCompile(s.words).MatchString(f.Words) || !strings.Contains(f.Remedy, s.remedy) || s.remedy == "" && f.Remedy != "" {
		t.Errorf("%v: %q\nremedy: %q", f.Severity, f.Words, f.Remedy)
	}
	if f.Since.Before(start) || f.Since.After(start.Add(time.Duration(within)*time.Second)) {
		t.Errorf("since %v, bad since %v", f.Since, start)
	}
	if want := map[fleet.Severity]State{fleet.SeverityWarning: StateWarning, fleet.SeverityCritical: StateCritical}[f.Severity]; v.State.rank() < want.rank() {
		t.Errorf("state %s", v.State)
	}
	if f.Chart == "" {
		t.Error("no chart shows it")
	}
	restore()
	for n := range 9 {
		if v = w.tick(); find(v, s.id) == nil {
			t.Fatalf("it ended after %d s already", n+1)
		}
	}
	ends := s.ends
	if ends == 0 {
		ends = 4
	}
	for range ends {
		v = w.tick()
	}
	if f := find(v, s.id); f != nil {
		t.Errorf("it does not end: %+v", f)
	}
}

func serverScenarios() []scenario {
	return []scenario{
		{id: "server.stall", make: mariadb, severity: fleet.SeverityCritical,
			near:  func(w *world) { w.rates[statusPrefix+"questions"] = 3; w.values[statusPrefix+"threads_running"] = 1 },
			bad:   func(w *world) { w.rates[statusPrefix+"questions"] = 3; w.values[statusPrefix+"threads_running"] = 9 },
			words: `^stall: no statement has begun since 10:33:01, while 8 threads run$`, remedy: "PROCESSLIST"},
		{id: "server.stall", name: "one client waits", make: mariadb, severity: fleet.SeverityCritical,
			near: func(w *world) { w.rates[statusPrefix+"questions"] = 3; w.values[statusPrefix+"threads_running"] = 2 }, // a report runs alone
			bad: func(w *world) {
				w.rates[statusPrefix+"questions"] = 3
				w.values[statusPrefix+"threads_running"] = 2
				w.waiting("commit", 1)
			},
			words: `while 1 thread runs; 1 waits for commit$`, remedy: "PROCESSLIST"},
		{id: "conn.saturation", make: mysql97, severity: fleet.SeverityWarning,
			near:  func(w *world) { w.values[statusPrefix+"threads_connected"] = 160 },
			bad:   func(w *world) { w.values[statusPrefix+"threads_connected"] = 180 },
			words: `^180 of 200 connections are taken since 10:33:01$`, remedy: "SET GLOBAL max_connections = 300"},
		{id: "conn.saturation", name: "refusing", make: mysql97, severity: fleet.SeverityCritical, ends: 40,
			bad: func(w *world) {
				w.values[statusPrefix+"threads_connected"] = 200
				w.rates[statusPrefix+`connection_errors_total{error="max_connections"}`] = 12
			},
			words: `^clients are refused since .*: 200 of 200 connections are taken, \d+ refused`, remedy: "SET GLOBAL max_connections"},
		{id: "threads.pileup", make: mysql97, severity: fleet.SeverityWarning,
			near: func(w *world) { w.values[statusPrefix+"threads_running"] = 12 },
			bad: func(w *world) {
				w.values[statusPrefix+"threads_running"] = 40
				w.waiting("row_lock", 30)
				w.waiting("io", 2)
			},
			words: `^39 threads run since 10:33:01 instead of [23], on 2 processors with 85 % to spare; 30 wait for a row lock$`, remedy: "PROCESSLIST"},
		{id: "commit.wait", make: mariadb, severity: fleet.SeverityCritical, within: 12,
			near:  func(w *world) { w.waiting("commit", 3); w.host.disk(100, 0.038, 50, 0.002, 100, 0.001) },
			bad:   func(w *world) { w.waiting("commit", 120); w.host.disk(100, 0.38, 50, 0.002, 100, 0.001) },
			words: `^\d+ threads wait for commit since 10:3\d:\d\d; the disk flushes in [\d.]+ ms instead of \d`, remedy: "pidstat", ends: 25},
		{id: "commit.wait", name: "disk as usual", make: mysql97, severity: fleet.SeverityWarning, within: 12, ends: 25,
			bad:   func(w *world) { w.waiting("commit", 10) },
			words: `threads wait for commit since .*; the disk flushes in 1.1 ms as usual$`},
		{id: "mdl.blocker", make: mysql97, severity: fleet.SeverityWarning,
			near: func(w *world) { w.waiting("metadata_lock", 0) }, bad: func(w *world) { w.waiting("metadata_lock", 1) },
			words: `^1 thread waits for a metadata lock since`, remedy: "PROCESSLIST p LEFT JOIN"},
		{id: "mdl.blocker", name: "with performance_schema", make: mysql97, severity: fleet.SeverityWarning,
			bad:   func(w *world) { w.waiting("metadata_lock", 1); w.texts["performance_schema"] = "ON" },
			words: `^1 thread waits for a metadata lock since`, remedy: "performance_schema.metadata_locks"},
		{id: "mdl.blocker", name: "many on MariaDB", make: mariadb, severity: fleet.SeverityCritical,
			bad:   func(w *world) { w.waiting("metadata_lock", 25) },
			words: `^25 threads wait`, remedy: "METADATA_LOCK_INFO"},
		{id: "lock.blocker", make: mariadb, severity: fleet.SeverityWarning,
			near:  func(w *world) { w.values[statusPrefix+"innodb_row_lock_current_waits"] = 2 }, // 20 s of it
			bad:   func(w *world) { w.values[statusPrefix+"innodb_row_lock_current_waits"] = 7 },
			words: `^7 transactions wait for a row lock since`, remedy: "INNODB_LOCK_WAITS"},
		{id: "lock.blocker", name: "one that lasts", make: mysql97, severity: fleet.SeverityWarning, within: 32,
			bad:   func(w *world) { w.values[statusPrefix+"innodb_row_lock_current_waits"] = 1 },
			words: `^1 transaction waits for a row lock since 10:32:01$`, remedy: "FROM information_schema.INNODB_TRX ORDER BY"},
		{id: "lock.blocker", name: "of a table, which the counter leaves out", make: mysql97, severity: fleet.SeverityCritical,
			bad:   func(w *world) { w.waiting("row_lock", 25); w.texts["performance_schema"] = "ON" },
			words: `^25 transactions wait for a lock of InnoDB \(of a row, a table or AUTO_INCREMENT\) since`, remedy: "sys.innodb_lock_waits"},
		{id: "commit.semisync", make: mysql97, severity: fleet.SeverityWarning, within: 12, ends: 25,
			near: func(w *world) { w.waiting("semisync", 2) }, bad: func(w *world) { w.waiting("semisync", 15) },
			words: `threads wait for a replica to confirm`, remedy: "rpl_semi_sync"},
		{id: "redo.pressure", make: mariadb, severity: fleet.SeverityWarning,
			near: func(w *world) { // as a burst leaves it
				w.values[statusPrefix+"innodb_checkpoint_age"] = 70 << 20
				w.rates[statusPrefix+"innodb_os_log_written"] = 10 << 10
			},
			bad: func(w *world) {
				w.values[statusPrefix+"innodb_checkpoint_age"] = 70 << 20
				w.rates[statusPrefix+"innodb_os_log_written"] = 1 << 20
			},
			words: `^the redo log is 88 % full since .* \(70 MiB of 80 MiB\), and .* more are written a second: when`, remedy: "SET GLOBAL innodb_log_file_size = 201326592"},
		{id: "redo.pressure", name: "MySQL 9.7", make: func() *world {
			w := mysql97()
			delete(w.values, statusPrefix+"innodb_checkpoint_age")
			delete(w.values, statusPrefix+"innodb_checkpoint_max_age")
			w.values[statusPrefix+"innodb_redo_log_current_lsn"], w.values[statusPrefix+"innodb_redo_log_checkpoint_lsn"] = 9<<30, 9<<30
			w.values[variablePrefix+"innodb_redo_log_capacity"] = 100 << 20
			return w
		}, severity: fleet.SeverityCritical,
			bad:   func(w *world) { w.values[statusPrefix+"innodb_redo_log_current_lsn"] = 9<<30 + 81<<20 }, // as far as such a server comes
			words: `^the redo log is 98 % full since .* \(81 MiB of 83 MiB\)`, remedy: "SET GLOBAL innodb_redo_log_capacity = 209715200"},
		{id: "redo.pressure", name: "5.7", make: func() *world {
			w := mysql57()
			delete(w.values, statusPrefix+"innodb_checkpoint_max_age")
			w.values[variablePrefix+"innodb_log_files_in_group"] = 2
			return w
		}, severity: fleet.SeverityWarning,
			bad:   func(w *world) { w.values[statusPrefix+"innodb_checkpoint_age"] = 160 << 20 },
			words: `\(160 MiB of 192 MiB\)`, remedy: "in the option file"},
		{id: "undo.history", make: mariadb, severity: fleet.SeverityWarning,
			near:  func(w *world) { w.values[statusPrefix+"innodb_history_list_length"] = 150000 },
			bad:   func(w *world) { w.values[statusPrefix+"innodb_history_list_length"] = 450000 },
			words: `^more than 200 k old transactions wait for purge since .*, now 450 k`, remedy: "INNODB_TRX"},
		{id: "bp.starved", make: mysql97, severity: fleet.SeverityWarning, within: 8, ends: 30,
			near:  func(w *world) { w.rates[statusPrefix+"innodb_buffer_pool_reads"] = 2000 },
			bad:   func(w *world) { w.rates[statusPrefix+"innodb_buffer_pool_wait_free"] = 40 },
			words: `^threads wait for a free page in the buffer pool [\d.]+ times a second since .*; it has 1 GiB$`, remedy: "SET GLOBAL innodb_buffer_pool_size = 1610612736"},
		{id: "bp.starved", name: "misses", make: mysql97, severity: fleet.SeverityWarning,
			bad:   func(w *world) { w.rates[statusPrefix+"innodb_buffer_pool_reads"] = 20000 },
			words: `^40 % of page reads miss the buffer pool since .*, 20 k a second`, remedy: "innodb_buffer_pool_size"},
		{id: "deadlock.rate", make: mariadb, severity: fleet.SeverityWarning, within: 12, ends: 120,
			near:  func(w *world) { w.rates[statusPrefix+"innodb_deadlocks"] = 0.05 },
			bad:   func(w *world) { w.rates[statusPrefix+"innodb_deadlocks"] = 1 },
			words: `^about \d+ deadlocks a minute since`, remedy: "innodb_print_all_deadlocks"},
		{id: "observer.late", make: mariadb, severity: fleet.SeverityWarning, within: 12, ends: 120,
			bad: func(w *world) { w.snap.Late = true }, words: `^Risso reads slowly: about \d+ of the last 60 readings`},
		{id: "host.throttled", make: func() *world {
			w := mariadb()
			w.rates["risso_cgroup_cpu_periods_total"], w.rates["risso_cgroup_cpu_throttled_periods_total"] = 10, 0
			w.values["risso_cgroup_cpu_periods_total"], w.values["risso_cgroup_cpu_limit_cores"] = 1e4, 1.5
			return w
		}, severity: fleet.SeverityWarning, within: 8, ends: 30,
			near:  func(w *world) { w.rates["risso_cgroup_cpu_throttled_periods_total"] = 0.5 },
			bad:   func(w *world) { w.rates["risso_cgroup_cpu_throttled_periods_total"] = 4 },
			words: `stopped in \d+ % of all periods .*its limit is 1.5 processors`, remedy: "CPUQuota=225%"},
		{id: "mem.overcommit", make: func() *world {
			w := mariadb()
			w.values["risso_cgroup_memory_current_bytes"], w.values["risso_cgroup_memory_max_bytes"] = 1<<30, 1536<<20
			w.values["risso_cgroup_memory_inactive_file_bytes"] = 100 << 20
			return w
		}, severity: fleet.SeverityWarning,
			near:  func(w *world) { w.values["risso_cgroup_memory_current_bytes"] = 1500 << 20 }, // 100 MB of it are cache
			bad:   func(w *world) { w.values["risso_cgroup_memory_current_bytes"] = 1530 << 20 },
			words: `^93 % of the server's memory limit of 1.5 GiB is used`, remedy: "SET GLOBAL innodb_buffer_pool_size = 805306368"},
	}
}

func replicationScenarios() []scenario {
	return []scenario{
		{id: "repl.stopped", make: func() *world { return replica(mariadb()) }, severity: fleet.SeverityCritical,
			bad: func(w *world) {
				w.channel("Yes", "No", "Could not execute Write_rows_v1 event on table a.b; Duplicate entry '1' for key 'PRIMARY', Error_code: 1062.")
			},
			words: `^replication from db1 applies nothing: the SQL thread is stopped since 10:32:01: error 1062: Could not execute .* 1062$`, remedy: "SET GLOBAL slave_exec_mode = 'IDEMPOTENT'; START SLAVE    -- rows that are not as the primary had them are passed over or overwritten, where it logs rows; when the replica has caught up: SET GLOBAL slave_exec_mode = 'STRICT', and make them equal by risso checksum --dsn PRIMARY --replica THIS --mend"},
		{id: "repl.stopped", name: "by hand", make: func() *world { return replica(mysql97()) }, severity: fleet.SeverityWarning,
			bad:   func(w *world) { w.channel("No", "No", "") },
			words: `^replication from db1 is stopped since 10:32:01, without an error`, remedy: "START REPLICA"},
		{id: "repl.stopped", name: "connecting", make: func() *world { return replica(mysql57()) }, severity: fleet.SeverityCritical,
			bad:   func(w *world) { w.channel("Connecting", "Yes", "error connecting to master 'repl@db1:3306'") },
			words: `^replication cannot connect to db1 since`},
		{id: "repl.stopped", name: "a channel of 5.7", make: func() *world { return replica(mysql57()) }, severity: fleet.SeverityCritical,
			bad: func(w *world) {
				w.snap.Channels = append(w.snap.Channels, fleet.Channel{Name: "o'hara", Source: "db7", IORunning: "No", SQLRunning: "Yes", LastError: "Got fatal error 1236", LastErrno: 1236})
			},
			words: `^channel o'hara: replication from db7 receives nothing`, remedy: `START SLAVE FOR CHANNEL 'o\'hara'    -- when what the error names is mended: before that it stops again at the same place`},
		{id: "repl.lag", make: func() *world {
			w := replica(mariadb())
			w.values[variablePrefix+"slave_parallel_threads"] = 0
			return w
		}, severity: fleet.SeverityWarning,
			near: func(w *world) { w.lag(25) }, bad: func(w *world) { w.lag(95) },
			words: `^the replica is more than 30 s behind db1 since 10:33:01, now 95 s`, remedy: "SET GLOBAL slave_parallel_threads = 4"},
		{id: "repl.lag", name: "delay that is wanted", make: func() *world {
			w := replica(mysql97())
			w.values[`mysql_slave_status_sql_delay{channel_name="",connection_name="",master_host="db1",master_uuid=""}`] = 3600
			w.values[variablePrefix+"replica_parallel_workers"] = 8
			return w
		}, severity: fleet.SeverityCritical,
			near: func(w *world) { w.lag(3610) }, bad: func(w *world) { w.lag(3600 + 7200) },
			words: `, now 2 h`},
		{id: "repl.writable", make: func() *world { return replica(mysql97()) }, severity: fleet.SeverityWarning,
			bad: func(w *world) { w.texts["read_only"] = "OFF" }, words: `read_only is off`, remedy: "super_read_only"},
		{id: "repl.writable", name: "MariaDB, by number", make: func() *world {
			w := replica(mariadb())
			w.texts["read_only"] = ""
			w.values[variablePrefix+"read_only"] = 1
			return w
		}, severity: fleet.SeverityWarning,
			bad: func(w *world) { w.values[variablePrefix+"read_only"] = 0 }, words: `read_only is off`, remedy: "SET GLOBAL read_only = ON"},
		{id: "galera.non_primary", make: galera, severity: fleet.SeverityCritical,
			bad: func(w *world) {
				w.texts["wsrep_cluster_status"] = "non-Primary"
				w.values[statusPrefix+"wsrep_cluster_size"] = 1
			},
			words: `lost the majority .*\(non-Primary\) since .*; it sees 1 member$`, remedy: "pc.bootstrap=YES"},
		{id: "galera.non_primary", name: "cut off, by number", make: func() *world {
			w := galera()
			w.snap.Instance.Role = fleet.RoleStandalone // as no size is told
			w.texts["wsrep_cluster_status"], w.texts["wsrep_on"] = "", "ON"
			w.values[statusPrefix+"wsrep_cluster_status"] = 1
			return w
		}, severity: fleet.SeverityCritical,
			bad:   func(w *world) { w.values[statusPrefix+"wsrep_cluster_status"] = 0 },
			words: `lost the majority`, remedy: "pc.bootstrap"},
		{id: "galera.not_synced", make: galera, severity: fleet.SeverityWarning,
			bad: func(w *world) {
				w.values[statusPrefix+"wsrep_local_state"] = 2
				w.texts["wsrep_local_state_comment"] = ""
			},
			words: `not synced \(Donor/Desynced\)`, remedy: "wsrep_local_"},
		{id: "galera.flow_control", make: galera, severity: fleet.SeverityCritical, within: 12, ends: 30,
			near:  func(w *world) { w.rates[statusPrefix+"wsrep_flow_control_paused_ns"] = 5e7 },
			bad:   func(w *world) { w.rates[statusPrefix+"wsrep_flow_control_paused_ns"] = 1e9 },
			words: `pauses writes for \d+ % of the time`, remedy: "wsrep_slave_threads = 4"},
	}
}

func hostScenarios() []scenario {
	return []scenario{
		{id: "host.cpu", make: host, severity: fleet.SeverityWarning, within: 20, ends: 30,
			near:  func(w *world) { w.cpu(1, 0, 1, 0); w.values["node_procs_running"] = 9 }, // iowait is head-room
			bad:   func(w *world) { w.cpu(1.99, 0.005, 0.005, 0); w.values["node_procs_running"] = 9 },
			words: `^2 processors are used up: \d(\.\d)? % could still be had since .*, [4-9] threads want to run$`, remedy: "top"},
		{id: "host.steal", make: host, severity: fleet.SeverityWarning, within: 8, ends: 30,
			near:  func(w *world) { w.cpu(0.9, 1, 0, 0.1) },
			bad:   func(w *world) { w.cpu(0.4, 1, 0, 0.6) },
			words: `^the hypervisor keeps \d+ % of the processor time`},
		{id: "host.pressure_io", make: host, severity: fleet.SeverityWarning, within: 10, ends: 30,
			near: func(w *world) { w.rates["node_pressure_io_stalled_seconds_total"] = 0.2 },
			bad: func(w *world) {
				w.rates["node_pressure_io_stalled_seconds_total"] = 0.5
				w.rates["node_pressure_io_waiting_seconds_total"] = 0.8
			},
			words: `^all tasks wait for disks in \d+ % of the time since .*, some in 80 %`, remedy: "pidstat"},
		{id: "host.pressure_memory", make: host, severity: fleet.SeverityWarning, within: 10, ends: 30,
			near:  func(w *world) { w.rates["node_pressure_memory_stalled_seconds_total"] = 0.02 },
			bad:   func(w *world) { w.rates["node_pressure_memory_stalled_seconds_total"] = 0.15 },
			words: `^all tasks wait for memory in \d+ % of the time since .*8 GiB are available`, remedy: "rss"},
		{id: "host.swap", make: host, severity: fleet.SeverityWarning, within: 10, ends: 40,
			near:  func(w *world) { w.rates["node_vmstat_pswpout"] = 20 },
			bad:   func(w *world) { w.rates["node_vmstat_pswpout"] = 300 },
			words: `^the host swaps: 0 pages a second in, \d+ out since`, remedy: "swappiness"},
		{id: "host.io_slow", make: host, severity: fleet.SeverityWarning, within: 10, ends: 40,
			near:  func(w *world) { w.disk(100, 0.015, 50, 0.002, 100, 0.001) },
			bad:   func(w *world) { w.disk(100, 0.06, 50, 0.002, 100, 0.001) },
			words: `^disk vda flushes in [\d.]+ ms instead of \d`, remedy: "iostat -x 1 5 vda"},
		{id: "host.io_slow", name: "reads", make: host, severity: fleet.SeverityWarning, within: 10, ends: 60,
			bad:   func(w *world) { w.disk(100, 0.0011, 50, 0.3, 100, 0.001) },
			words: `^disk vda reads in [\d.]+ ms instead of 2`, remedy: "iostat"},
		{id: "disk.full", make: host, severity: fleet.SeverityWarning,
			near: func(w *world) { w.fs(availMetric, 11<<30) }, bad: func(w *world) { w.fs(availMetric, 7<<30) },
			words: `^/var/lib/mysql data is nearly full: 7 GiB of 100 GiB left since`, remedy: "du -xh --max-depth=2 '/var/lib/mysql data'"},
		{id: "disk.full", name: "critical", make: host, severity: fleet.SeverityCritical,
			bad: func(w *world) { w.fs(availMetric, 1<<30) }, words: `1 GiB of 100 GiB left`, remedy: "du"},
		{id: "disk.full", name: "file nodes", make: host, severity: fleet.SeverityWarning,
			bad: func(w *world) { w.fs(freeMetric, 2000) }, words: `nearly no file nodes left: 2 k of 1 M`, remedy: "df -i"},
		{id: "disk.readonly", make: host, severity: fleet.SeverityCritical,
			bad: func(w *world) { w.fs(readonlyMetric, 1) }, words: `^/var/lib/mysql data has become read-only since`, remedy: "dmesg"},
	}
}

func TestOOMKill(t *testing.T) {
	w := host()
	w.tick()
	w.rates["node_vmstat_oom_kill"] = 1
	v := w.tick()
	f := find(v, "host.oom")
	if f == nil || f.Severity != fleet.SeverityCritical || v.State != StateCritical {
		t.Fatalf("%+v", v)
	}
	w.rates["node_vmstat_oom_kill"] = 0
	for range 200 {
		v = w.tick()
	}
	if f := find(v, "host.oom"); f == nil || !strings.Contains(f.Words, "since 10:30:02") {
		t.Errorf("over soon, and must not be missed: %+v", v)
	}
	for range 200 {
		v = w.tick()
	}
	if find(v, "host.oom") != nil {
		t.Errorf("it does not end: %+v", v)
	}
}

func TestDown(t *testing.T) {
	w := mariadb()
	w.snap.Up = false
	if v := w.tick(); v.State != StateNew || len(v.Findings) > 0 {
		t.Errorf("not reached yet: %+v", v)
	}
	w.snap.Up = true
	w.tick()
	for _, c := range []struct{ reason, words string }{
		{"refuses connections", "the server refuses connections since 10:20:00"},
		{"", "the server does not answer since 10:20:00"},
		{"Error 1045 (28000): Access denied for user 'risso'@'h'.", "the server cannot be read since 10:20:00: Error 1045 (28000): Access denied for user 'risso'@'h'"},
		{"dial tcp: lookup nowhere: no such host", "the server cannot be read since 10:20:00: dial tcp: lookup nowhere: no such host"},
	} {
		w.snap.Up, w.snap.DownSince, w.snap.Reason, w.snap.Hint = false, begin.Add(-10*time.Minute), c.reason, "look"
		v := w.tick() // at once
		if v.State != StateDown || v.Words != c.words || v.Findings[0].ID != "server.down" || v.Findings[0].Remedy != "look" || !v.Since.Equal(w.snap.DownSince) {
			t.Errorf("%+v", v)
		}
	}
	w.snap.Up = true
	if v := w.tick(); v.State != StateOK || v.Since != w.snap.Now {
		t.Errorf("back: %+v", v)
	}
	w.snap.Up, w.snap.DownSince = false, begin.Add(-30*time.Hour)
	if v := w.tick(); !strings.HasSuffix(v.Findings[0].Words, "since 2026-11-20 04:30: dial tcp: lookup nowhere: no such host") {
		t.Errorf("another day: %s", v.Findings[0].Words)
	}
}

func TestHealthyLine(t *testing.T) {
	w := mariadb()
	w.values[statusPrefix+"threads_running"] = 2
	if v := w.tick(); v.Words != "healthy: 1.2 k questions/s, 2 threads running, disk flushes in 1.1 ms" || v.State != StateOK {
		t.Errorf("%s", v.Words)
	}
	w.snap.Gaps = []fleet.Gap{{What: "x"}}
	replica(w)
	if v := w.tick(); v.Words != "healthy: 1.2 k questions/s, 2 threads running, 0 s behind db1, disk flushes in 1.1 ms, 1 thing cannot be read" {
		t.Errorf("%s", v.Words)
	}
	if v := host().tick(); v.Words != "healthy: 15 % of 2 processors busy, 8 GiB memory available, disk flushes in 1.1 ms" {
		t.Errorf("%s", v.Words)
	}
	bare := newWorld(fleet.KindServer)
	bare.snap.Value, bare.snap.Rate, bare.snap.Keys, bare.snap.Text = nil, nil, nil, nil
	if v := bare.tick(); v.Words != "healthy" {
		t.Errorf("nothing known: %+v", v)
	}
}

// A condition that comes and goes within three seconds is never told.
func TestFlicker(t *testing.T) {
	w := mysql97()
	for n := range 60 {
		w.values[statusPrefix+"threads_connected"] = 40
		if n%4 != 0 {
			w.values[statusPrefix+"threads_connected"] = 190
		}
		if v := w.tick(); len(v.Findings) > 0 {
			t.Fatalf("second %d: %+v", n, v)
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
			t.Fatalf("%+v", v)
		}
	}
}

// What sways around a limit is told at its worst.
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
		t.Errorf("%d changes, %v at last", changes, last)
	}
	w.values[statusPrefix+"threads_connected"] = 188
	var v Verdict
	for range 11 {
		v = w.tick()
	}
	if f := find(v, "conn.saturation"); f == nil || f.Severity != fleet.SeverityWarning {
		t.Errorf("it got better: %+v", v)
	}
}

func TestWorstFirstAndClockSetBack(t *testing.T) {
	w := replica(mysql97())
	w.values[statusPrefix+"threads_connected"] = 180
	w.texts["read_only"] = "OFF"
	for range 3 {
		w.tick()
	}
	w.channel("Yes", "No", "broken")
	var v Verdict
	for range 5 {
		v = w.tick()
	}
	var ids []string
	for _, f := range v.Findings {
		ids = append(ids, f.ID)
	}
	if got := fmt.Sprint(ids); got != "[repl.stopped conn.saturation repl.writable]" {
		t.Errorf("order %s", got)
	}
	if !strings.HasSuffix(v.Words, ": broken; and 2 more findings") || v.State != StateCritical {
		t.Errorf("%s: %s", v.State, v.Words)
	}
	w.snap.Now = w.snap.Now.Add(-time.Hour)
	if v := w.tick(); len(v.Findings) != 0 {
		t.Errorf("a clock set back begins anew: %+v", v)
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
				t.Errorf("Compare(%d, %d) = %d", i, k, got)
			}
		}
	}
}

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		label(`m{a="x\"y",device="sd a"}`, "device"): "sd a", label(`m{a="x\"y"}`, "a"): `x"y`, label("m", "a"): "", label(`m{ba="1"}`, "a"): "",
		cut("  a\n b. ", 10): "a b", cut("abcdefgh", 5): "abcd…", latencyBeside(0.002, 0.038): "2", latencyBeside(0.02, 1.5): "20 ms",
		shellQuote("/a/b"): "/a/b", shellQuote("it's"): `'it'\''s'`,
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
		listed[m[1]] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{"server.down": true, "host.oom": true}
	for _, s := range append(serverScenarios(), append(replicationScenarios(), hostScenarios()...)...) {
		tried[s.id] = true
	}
	found := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`(?:id|ID): "([a-z_.]+)"`).FindAllStringSubmatch(string(text), -1) {
			if found++; !listed[m[1]] || !tried[m[1]] {
				t.Errorf("%s: listed %v, tried %v", m[1], listed[m[1]], tried[m[1]])
			}
		}
	}
	if found != len(listed) {
		t.Errorf("%d ids in the code, %d in the README", found, len(listed))
	}
}

func BenchmarkJudge(b *testing.B) {
	w := replica(mariadb())
	b.ReportAllocs()
	for b.Loop() {
		w.tick()
	}
}
