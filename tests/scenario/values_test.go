package scenario_test

import (
	"context"
	"errors"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// row is one row that the client shows.
type row struct {
	name, text string
	v          float64
	number     bool
}

// show runs a statement in the mariadb or mysql client and returns name and value of each row.
func show(t *testing.T, n *sandbox.Node, statement string) []row {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	args := []string{"--batch", "--raw", "--skip-column-names", "-e", statement}
	if n.Program.Family == sandbox.FamilyMariaDB {
		args = append(args, "--skip-ssl") // since 11.4 it is on over a socket, too, and Ssl_server_not_after is the session's
	}
	cmd, err := n.Client(ctx, args)
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	var rows []row
	for l := range strings.Lines(string(out)) {
		name, text, ok := strings.Cut(strings.TrimSuffix(l, "\n"), "\t")
		if !ok {
			continue // a further line of a value that has several
		}
		v, number := numeric(text)
		rows = append(rows, row{name, text, v, number})
	}
	return rows
}

// numeric reads a value as mysqld_exporter does: numbers, words that mean yes and no, dates, and the numbers of logs.
func numeric(s string) (float64, bool) {
	if v, err := strconv.ParseFloat(s, 64); err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) && !strings.ContainsAny(s, "xX_") {
		return v, true
	}
	switch strings.ToLower(s) {
	case "yes", "on", "primary", "true":
		return 1, true
	case "false", "no", "off", "disabled", "connecting", "non-primary", "disconnected":
		return 0, true
	}
	for _, form := range []string{time.DateTime, "Jan _2 15:04:05 2006 MST"} {
		if d, err := time.Parse(form, s); err == nil {
			return float64(d.Unix()), true
		}
	}
	if m := regexp.MustCompile(`^[^ ]+\.(\d{6,})$`).FindStringSubmatch(s); m != nil { // a binary log's name
		v, err := strconv.ParseFloat(m[1], 64)
		return v, err == nil
	}
	return 0, false
}

// statusKey is the name of a status variable in mysqld_exporter's words.
func statusKey(variable string) string {
	low := strings.ToLower(variable)
	const p = "mysql_global_status_"
	for _, rule := range []struct{ form, name string }{
		{`^com_(.+)$`, `commands_total{command="$1"}`},
		{`^handler_(.+)$`, `handlers_total{handler="$1"}`},
		{`^connection_errors_(.+)$`, `connection_errors_total{error="$1"}`},
		{`^innodb_buffer_pool_pages_(data|free|misc|old)$`, `buffer_pool_pages{state="$1"}`},
		{`^innodb_buffer_pool_pages_dirty$`, `buffer_pool_dirty_pages`},
		{`^innodb_buffer_pool_pages_total$`, `innodb_buffer_pool_pages_total`},
		{`^innodb_buffer_pool_pages_(.+)$`, `buffer_pool_page_changes_total{operation="$1"}`},
		{`^innodb_rows_(.+)$`, `innodb_row_ops_total{operation="$1"}`},
		{`^performance_schema_(.+)$`, `performance_schema_lost_total{instrumentation="$1"}`},
	} {
		if re := regexp.MustCompile(rule.form); re.MatchString(low) {
			return p + re.ReplaceAllString(low, rule.name)
		}
	}
	return p + regexp.MustCompile(`[^a-z0-9_]`).ReplaceAllString(low, "_")
}

// moving are the values that go up and down between two looks, or that a look itself changes: those of the session
// that looks, of what runs at the moment, of work in the background, and of the processor time between two looks at it. The oldest change in the pool is 0 while no page is dirty; an interval is a mean of the last ones.
var moving = regexp.MustCompile(`^mysql_global_status_(ssl_(default_timeout|verify_.*)|max_used_connections_time|threads_(connected|running|cached)|open_(files|tables|streams|table_definitions)|memory_used|` +
	`last_query_.*|innodb_(mem_.*|checkpoint_(age|max_age)|history_list_length|master_thread_.*|adaptive_hash_.*|num_open_files|data_pending_.*|os_log_pending_.*|buffer_pool_bytes_.*|ibuf_.*|redo_log_.*)|` +
	`buffer_pool_(pages|dirty_pages).*|global_connection_memory|key_blocks_.*|max_used_connections.*|table_open_cache.*|delayed_.*|error_log_.*|` +
	`wsrep_(.*_avg|cert_.*|apply_.*|commit_.*|flow_control_paused|evs_.*|local_(recv|send)_queue.*|open_.*))|` +
	`^mysql_info_schema_innodb_metrics_(buffer_pool_(pages|dirty_pages)|buffer_buffer_pool_(bytes|pages)_|log_log_(lsn_buf_pool_oldest|write_to_file_requests_interval)_|cpu_cpu_[us]time_|os_os_pending_)`)

// between fails where a collected value does not lie between what the client showed before and after.
func between(t *testing.T, key string, v float64, before, after row) {
	t.Helper()
	if moving.MatchString(key) {
		return
	}
	lo, hi := math.Min(before.v, after.v), math.Max(before.v, after.v)
	if v < lo || v > hi {
		t.Errorf("%s is %v; the client showed %s before and %s after; want from %v to %v", key, v, before.text, after.text, lo, hi)
	}
}

// compare fails where a row of the client is not collected, or something is that the client does not show.
func compare(t *testing.T, got map[string]float64, before, after []row, key func(row) string) {
	t.Helper()
	later := map[string]row{}
	for _, a := range after {
		later[a.name] = a
	}
	wanted := map[string]bool{}
	for _, b := range before {
		a, ok := later[b.name]
		if !ok || !b.number || !a.number {
			continue
		}
		k := key(b)
		wanted[k] = true
		v, ok := got[k]
		if !ok {
			t.Errorf("%s is missing: the client shows %s = %s", k, b.name, b.text)
			continue
		}
		between(t, k, v, b, a)
	}
	if len(wanted) < 50 {
		t.Errorf("the client showed only %d numbers, want at least 50", len(wanted))
	}
	for k := range got {
		if !wanted[k] {
			t.Errorf("%s = %v is collected; the client shows no such number", k, got[k])
		}
	}
}

// now reads all values of a family at one second.
func (r *risso) now(t *testing.T, family string, second int64) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, l := range r.at(t, `{__name__=~"`+family+`.*",instance="db"}`, second) {
		out[l.key()] = l.points[0].v
	}
	return out
}

// TestValues: each value that Risso collects is the one that the client shows, under mysqld_exporter's name.
func TestValues(t *testing.T) {
	t.Parallel()
	eachKind(t, kinds, func(t *testing.T, kind string) {
		n := single(t, kind, "performance_schema=ON", "innodb_monitor_enable=all")
		execSQL(t, n, "CREATE DATABASE v; CREATE TABLE v.t (a INT PRIMARY KEY, b TEXT); INSERT INTO v.t VALUES (1,'x'),(2,'y'); SELECT * FROM v.t; DELETE FROM v.t WHERE a = 1")
		checkValues(t, n)
	})
}

// checkValues compares everything that is collected of a server with the client.
func checkValues(t *testing.T, n *sandbox.Node) *risso {
	t.Helper()
	r := serve(t, dataDir(t), "--no-host", "--dsn", "db="+n.DSN)
	r.awaitTicks(t, "db", 1)
	innodb := "SELECT CONCAT(NAME, ' ', SUBSYSTEM, ' ', TYPE), `COUNT` FROM information_schema.INNODB_METRICS WHERE STATUS = 'enabled'"
	if n.Program.Family == sandbox.FamilyMariaDB {
		innodb = strings.Replace(innodb, "STATUS = 'enabled'", "ENABLED = 1", 1)
	}
	status, metrics := show(t, n, "SHOW GLOBAL STATUS"), show(t, n, innodb)
	second := r.awaitTicks(t, "db", 1) // was begun after the first look, ended before the second
	status2, metrics2 := show(t, n, "SHOW GLOBAL STATUS"), show(t, n, innodb)

	compare(t, r.now(t, "mysql_global_status_", second), status, status2, func(b row) string { return statusKey(b.name) })
	compare(t, r.now(t, "mysql_info_schema_innodb_metrics_", second), metrics, metrics2, innodbKey)
	if got := r.at(t, of("mysql_up", "db"), second); len(got) != 1 || got[0].points[0].v != 1 {
		t.Errorf("mysql_up is %v; want len(got) 1, got[0].points[0].v 1", got)
	}
	checkVariables(t, r, n)
	return r
}

// innodbKey is mysqld_exporter's name of an InnoDB metric.
func innodbKey(b row) string {
	f := strings.Fields(b.name)
	name, subsystem, counter := f[0], f[1], f[2] == "counter" || f[2] == "status_counter"
	const p = "mysql_info_schema_innodb_metrics_"
	if m := regexp.MustCompile(`^buffer_page_(read|written)_(.+)$`).FindStringSubmatch(name); m != nil && subsystem == "buffer_page_io" {
		return p + "buffer_page_" + m[1] + `_total{type="` + m[2] + `"}`
	}
	if state, ok := strings.CutPrefix(name, "buffer_pool_pages_"); ok && subsystem == "buffer" {
		switch state {
		case "dirty":
			return p + "buffer_pool_dirty_pages"
		case "total":
			return p + "buffer_pool_pages_total"
		}
		return p + `buffer_pool_pages{state="` + state + `"}`
	}
	if counter {
		return p + subsystem + "_" + name + "_total"
	}
	return p + subsystem + "_" + name
}

// checkVariables compares the numbers and the texts of all global variables.
func checkVariables(t *testing.T, r *risso, n *sandbox.Node) {
	t.Helper()
	rows := show(t, n, "SHOW GLOBAL VARIABLES")
	now := time.Now().Unix()
	got := map[string]float64{}
	for _, l := range r.prom(t, "query", url.Values{"query": {`last_over_time({__name__=~"mysql_global_variables_.+",instance="db"}[2m])`}, "time": {strconv.FormatInt(now, 10)}}) {
		got[l.labels["__name__"]] = l.points[0].v
	}
	if len(got) == 0 { // last_over_time drops names, depending on the engine
		for _, l := range r.prom(t, "query", url.Values{"query": {`{__name__=~"mysql_global_variables_.+",instance="db"}`}}) {
			got[l.key()] = l.points[0].v
		}
	}
	var list struct {
		Variables []struct{ Name, Value string }
	}
	r.get(t, "/api/variables", url.Values{"instance": {"db"}}, &list)
	texts := map[string]string{}
	for _, v := range list.Variables {
		texts[v.Name] = v.Value
	}
	wanted := map[string]bool{}
	for _, b := range rows {
		name := strings.ToLower(b.name)
		key := "mysql_global_variables_" + strings.NewReplacer(".", "_", "-", "_").Replace(name)
		wanted[key] = true
		if strings.HasPrefix(name, "gtid_") || name == "timestamp" || name == "rand_seed1" || name == "rand_seed2" || name == "pseudo_thread_id" || name == "error_count" || name == "warning_count" {
			continue // they move by themselves
		}
		if v, ok := got[key]; b.number && (!ok || v != b.v) {
			t.Errorf("%s is %v (%v); the client shows %s", key, v, ok, b.text)
		}
		if text, ok := texts[name]; !ok || (text != strings.TrimSpace(b.text) && text != b.text && text != "(hidden)" && !strings.HasPrefix(text, b.text)) {
			t.Errorf("the variable %s is %q (%v); the client shows %q", name, text, ok, b.text)
		}
	}
	for k := range got {
		if !wanted[k] {
			t.Errorf("%s is collected; the client shows no such variable", k)
		}
	}
}

// TestReplication: roles, status under the old words on all servers, and a stopped thread is reported.
func TestReplication(t *testing.T) {
	t.Parallel()
	eachKind(t, kinds, func(t *testing.T, kind string) {
		s := up(t, sandbox.Options{Name: "s", Servers: []string{kind}, Topology: sandbox.TopologyReplication, Replicas: 1})
		primary, replica := s.Nodes[0], s.Nodes[1]
		r := serve(t, dataDir(t), "--no-host", "--dsn", "p="+primary.DSN, "--dsn", "r="+replica.DSN)
		await(t, "the roles are known", func() bool {
			return r.instance(t, "p").Role == "primary" && r.instance(t, "r").Role == "replica"
		})
		at := r.awaitTicks(t, "r", 2)
		for _, name := range []string{"seconds_behind_master", "slave_io_running", "slave_sql_running", "read_master_log_pos", "exec_master_log_pos", "relay_log_space"} {
			lines := r.at(t, of("mysql_slave_status_"+name, "r"), at)
			if len(lines) != 1 {
				t.Errorf("mysql_slave_status_%s has %d series, want 1", name, len(lines))
				continue
			}
			if host := lines[0].labels["master_host"]; host != primary.Host {
				t.Errorf("mysql_slave_status_%s has master_host %q, not %s", name, host, primary.Host)
			}
		}
		if d := r.instance(t, "r"); d.Lag == nil || *d.Lag != 0 || len(d.Findings) > 0 && slices.ContainsFunc(d.Findings, isReplication) {
			t.Errorf("a replica that follows: lag %v, findings %+v", d.Lag, d.Findings)
		}
		stop, start := "STOP SLAVE SQL_THREAD", "START SLAVE SQL_THREAD"
		if kind == "mysql-9.7" {
			stop, start = "STOP REPLICA SQL_THREAD", "START REPLICA SQL_THREAD"
		}
		execSQL(t, replica, stop)
		await(t, "a finding about the stopped thread", func() bool {
			return slices.ContainsFunc(r.instance(t, "r").Findings, isReplication)
		})
		at = r.awaitTicks(t, "r", 1)
		if got := r.at(t, of("mysql_slave_status_slave_sql_running", "r"), at); len(got) != 1 || got[0].points[0].v != 0 {
			t.Errorf("slave_sql_running is %v while it is stopped; want len(got) 1, got[0].points[0].v 0", got)
		}
		if got := r.at(t, of("mysql_slave_status_seconds_behind_master", "r"), at); len(got) != 0 {
			t.Errorf("seconds_behind_master is %v while the thread is stopped; the server says NULL; want none", got)
		}
		execSQL(t, replica, start)
		await(t, "the finding is gone", func() bool {
			return !slices.ContainsFunc(r.instance(t, "r").Findings, isReplication)
		})
		if role := r.instance(t, "p").Role; role != "primary" {
			t.Errorf("the primary is %q, want \"primary\"", role)
		}
	})
}

// TestGalera: the cluster's numbers and roles.
func TestGalera(t *testing.T) {
	t.Parallel()
	sandboxtest.Need(t, "mariadb")
	s, err := galera(t)
	if err != nil {
		if errors.Is(err, sandbox.ErrNoGalera) {
			lack.Of(t, err.Error())
		}
		t.Fatal(err)
	}
	args := []string{"--no-host"}
	for _, n := range s.Nodes {
		args = append(args, "--dsn", n.Name+"="+n.DSN)
	}
	r := serve(t, dataDir(t), args...)
	for _, n := range s.Nodes {
		at := r.awaitTicks(t, n.Name, 1)
		await(t, n.Name+" is known as a member", func() bool { return r.instance(t, n.Name).Role == "galera" })
		for name, want := range map[string]float64{"wsrep_cluster_size": 3, "wsrep_ready": 1, "wsrep_connected": 1, "wsrep_local_state": 4, "wsrep_cluster_status": 1} {
			if got := r.at(t, of("mysql_global_status_"+name, n.Name), at); len(got) != 1 || got[0].points[0].v != want {
				t.Errorf("%s of %s is %v, not %v; want len(got) 1, got[0].points[0].v %v", name, n.Name, got, want, want)
			}
		}
	}
	checkValues(t, s.Nodes[0])
}

func galera(t *testing.T) (*sandbox.Sandbox, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s, err := sandbox.Up(ctx, sandbox.Options{Dir: tempDir(t), Name: "g", Servers: []string{"mariadb"}, Topology: sandbox.TopologyGalera, StartTimeout: 2 * time.Minute})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Down(ctx); err != nil {
			t.Errorf("down: %v", err)
		}
	})
	return s, nil
}
