package scenario_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
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

// installed finds one of Debian's programs.
func installed(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	lack.Of(t, names[0]+" is not installed: run script/setup")
	return ""
}

// background runs a program until the test ends.
func background(t *testing.T, env []string, path string, args ...string) *buffer {
	t.Helper()
	cmd := exec.Command(path, args...)
	log := &buffer{}
	cmd.Env, cmd.Stdout, cmd.Stderr = append(environment(tempDir(t)), env...), log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return log
}

// prometheus runs a Prometheus with a configuration, and returns its address.
func prometheus(t *testing.T, config string) string {
	t.Helper()
	path, addr, dir := installed(t, "prometheus"), sandboxtest.FreeAddress(t), tempDir(t)
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	log := background(t, nil, path, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	await(t, "an answer of Prometheus", func() bool {
		resp, err := http.Get("http://" + addr + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Prometheus said: %s", log)
		}
	})
	return "http://" + addr
}

// exporterFlags are those of all collectors that the dashboards ask for.
var exporterFlags = []string{"--collect.global_status", "--collect.global_variables", "--collect.slave_status", "--collect.info_schema.innodb_metrics", "--collect.info_schema.processlist",
	"--collect.info_schema.tables", "--collect.info_schema.innodb_cmp", "--collect.info_schema.innodb_cmpmem", "--collect.perf_schema.file_events", "--collect.perf_schema.eventswaits",
	"--collect.perf_schema.tablelocks", "--collect.perf_schema.tableiowaits", "--collect.perf_schema.indexiowaits", "--collect.binlog_size", "--collect.auto_increment.columns",
	"--collect.info_schema.query_response_time", "--collect.info_schema.userstats", "--collect.info_schema.tablestats"}

// beside runs both exporters and a Prometheus that gives their series the labels that Risso gives its own.
func beside(t *testing.T, n *sandbox.Node, host string) string {
	t.Helper()
	my, node := sandboxtest.FreeAddress(t), sandboxtest.FreeAddress(t)
	background(t, []string{"DATA_SOURCE_NAME=root@unix(" + n.Socket + ")/"}, installed(t, "prometheus-mysqld-exporter", "mysqld_exporter"), append(exporterFlags, "--web.listen-address="+my)...)
	background(t, nil, installed(t, "prometheus-node-exporter", "node_exporter"), "--web.listen-address="+node)
	return prometheus(t, fmt.Sprintf(`global: {scrape_interval: 2s, scrape_timeout: 2s}
scrape_configs:
- job_name: mysql
  static_configs: [{targets: ['%s'], labels: {instance: db, service_name: db, node_name: %q, node_type: generic, cluster: default}}]
- job_name: node
  static_configs: [{targets: ['%s'], labels: {instance: %q, node_name: %q, node_type: generic, cluster: default}}]
`, my, host, node, strings.ToLower(host), host))
}

// selectors is one expression of a dashboard: the selectors in it.
type selectors struct {
	source string
	list   []string
}

func readSelectors(t *testing.T) (list []selectors) {
	t.Helper()
	f, err := os.Open("testdata/dashboards/selectors.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	source := ""
	for sc := bufio.NewScanner(f); sc.Scan(); {
		switch l := sc.Text(); {
		case strings.HasPrefix(l, "//"):
		case strings.HasPrefix(l, "# "):
			source = l[2:]
		default:
			list = append(list, selectors{source, strings.Split(l, " ; ")})
		}
	}
	if len(list) < 1000 {
		t.Fatalf("got %d expressions, want 1000 at least", len(list))
	}
	return list
}

var (
	variable  = regexp.MustCompile(`(\w+)(=~|=)"[^"]*\$[^"]*"`)
	overRange = []string{"rate", "irate", "increase", "delta", "idelta", "deriv", "changes", "resets", "avg_over_time", "max_over_time", "min_over_time", "sum_over_time", "last_over_time", "count_over_time"}
)

// promQL makes a query of a selector. Variables that choose several things are what Grafana puts for All.
func promQL(selector, host string) string {
	name := "db"
	if strings.Contains(selector, "node_") {
		name = strings.ToLower(host)
	}
	function, bare, ranged := strings.Cut(selector, " ")
	if !ranged || strings.ContainsAny(function, "{\"") {
		function, bare = "", selector
	}
	bare = variable.ReplaceAllStringFunc(bare, func(m string) string {
		p := variable.FindStringSubmatch(m)
		value, known := map[string]string{"service_name": "db", "node_name": host, "instance": name}[p[1]]
		if p[2] == "=" && known {
			return fmt.Sprintf("%s=%q", p[1], value)
		}
		return p[1] + `=~".+"`
	})
	switch {
	case function == "":
		return bare
	case !slices.Contains(overRange, function):
		function = "last_over_time"
	}
	if slow.MatchString(bare) {
		return function + "(" + bare + "[5m])"
	}
	return function + "(" + bare + "[30s])"
}

// slow are series that Risso reads once a minute, or less.
var slow = regexp.MustCompile(`mysql_(info_schema_table_|info_schema_innodb_cmp|binlog_|global_variables_|version_info)`)

// vector asks a Prometheus, or Risso, for values by their labels at a moment.
func vector(t *testing.T, base, query string, at float64) map[string]float64 {
	t.Helper()
	resp, err := http.PostForm(base+"/api/v1/query", url.Values{"query": {query}, "time": {strconv.FormatFloat(at, 'f', 3, 64)}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var a struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || a.Status != "success" {
		t.Fatalf("%s: %s: got %s %v, want success", base, query, a.Error, err)
	}
	out := map[string]float64{}
	for _, r := range a.Data.Result {
		labels, err := json.Marshal(r.Metric) // sorted by name
		if err != nil {
			t.Fatal(err)
		}
		v, err := strconv.ParseFloat(r.Value[1].(string), 64)
		if err != nil {
			t.Fatal(err)
		}
		out[string(labels)] = v
	}
	return out
}

// TestDashboards asks Risso, and Prometheus with both exporters, for all that public dashboards and rules ask, at the same moment: the
// same series, with the same labels, have to be there, with values that fit.
func TestDashboards(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	list := readSelectors(t)
	eachKind(t, []string{"mariadb", "mysql-8.0"}, func(t *testing.T, kind string) {
		n := single(t, kind, "innodb_monitor_enable=all", "performance_schema=ON", "log_bin=bin")
		execSQL(t, n, "CREATE DATABASE shop; CREATE TABLE shop.a (id INT PRIMARY KEY, b TEXT); INSERT INTO shop.a VALUES (1, 'x')")
		r := serve(t, dataDir(t), "--dsn", "db="+n.DSN)
		prom := beside(t, n, host)
		await(t, "half a minute of both", func() bool {
			now := float64(time.Now().Unix())
			for _, base := range []string{prom, r.base} {
				for _, name := range []string{"mysql_up", "node_load1"} {
					for _, v := range vector(t, base, "count_over_time("+name+"[31s]) and timestamp("+name+") > time() - 8", now) {
						if v < 12 || base == r.base && v < 24 {
							return false
						}
					}
				}
				if len(vector(t, base, "mysql_up == 1 and on() node_load1 offset 28s", now)) == 0 {
					return false
				}
			}
			return len(vector(t, r.base, "last_over_time(mysql_info_schema_table_rows[5m])", now)) > 0 // a busy server may not tell at once
		})
		c := &likeness{t: t, risso: r.base, prom: prom, host: host, reasons: map[string]string{}, silent: map[string]bool{}}
		c.compare(list)
	})
}

// likeness compares the answers of Risso with those of Prometheus.
type likeness struct {
	t                 *testing.T
	risso, prom, host string
	reasons           map[string]string // by query: why the answers are not alike; empty where they are
	silent            map[string]bool   // queries that Prometheus answers with nothing
}

// compare goes through all expressions, prints what is not alike, and fails when that is too much.
func (c *likeness) compare(list []selectors) {
	var queries []string
	for _, e := range list {
		for _, s := range e.list {
			queries = append(queries, promQL(s, c.host))
		}
	}
	slices.Sort(queries)
	c.look(slices.Compact(queries))
	// What is read seldom, or changed just then, is looked at again at another moment.
	for range 2 {
		var again []string
		for q, reason := range c.reasons {
			if reason != "" {
				again = append(again, q)
			}
		}
		time.Sleep(3 * time.Second) // for another moment, not for something to happen
		c.look(again)
	}
	type tally struct{ all, answered, alike int }
	total, bySource, rest := tally{}, map[string]*tally{}, map[string]int{}
	for _, e := range list {
		s := bySource[e.source]
		if s == nil {
			s = new(tally)
			bySource[e.source] = s
		}
		alike, answered := true, false
		for _, sel := range e.list {
			q := promQL(sel, c.host)
			if reason := c.reasons[q]; reason != "" {
				if alike {
					rest[reason]++
				}
				alike = false
			}
			answered = answered || !c.silent[q]
		}
		for _, x := range []*tally{&total, s} {
			x.all++
			if answered || !alike {
				x.answered++
				if alike {
					x.alike++
				}
			}
		}
	}
	for source, s := range bySource {
		c.t.Logf("%s: %d of %d alike; %d more are empty with both", source, s.alike, s.answered, s.all-s.answered)
	}
	for reason, n := range rest {
		c.t.Logf("not alike (%d expressions): %s", n, reason)
	}
	share := float64(total.alike) / float64(total.answered)
	c.t.Logf("all: %d of %d alike, %.1f %%; %d more are empty with both", total.alike, total.answered, 100*share, total.all-total.answered)
	if share < 0.95 || total.answered < 300 {
		c.t.Errorf("%.1f %% of %d expressions are answered alike, want 95 of 300 at least", 100*share, total.answered)
	}
}

// look asks each query of both, and notes why the answers are not alike.
func (c *likeness) look(queries []string) {
	now := float64(time.Now().Unix()) - 4 // both have that second
	for _, q := range queries {
		want, got := vector(c.t, c.prom, q, now), vector(c.t, c.risso, q, now)
		c.silent[q] = len(want) == 0
		c.reasons[q] = unlike(q, want, got)
		if c.reasons[q] == "" && !strings.Contains(q, "[") {
			c.reasons[q] = implausible(q, want, got, vector(c.t, c.prom, "min_over_time("+q+"[20s])", now+4), vector(c.t, c.prom, "max_over_time("+q+"[20s])", now+4))
		}
	}
}

var metricName = regexp.MustCompile(`\b(mysql|node|process)_\w+|\bup\b`)

// unlike says which series one has and the other has not.
func unlike(query string, want, got map[string]float64) string {
	name := metricName.FindString(query)
	for l, v := range want {
		if _, there := got[l]; !there && !leftOut(name, l, v) {
			if len(got) == 0 {
				return name + ": Risso has none"
			}
			return fmt.Sprintf("%s: Risso has no %s", name, l)
		}
	}
	for l := range got {
		if _, there := want[l]; !there && !more(name, l) {
			return fmt.Sprintf("%s: the exporter has no %s", name, l)
		}
	}
	return ""
}

// leftOut is what Risso leaves out on purpose: what performance_schema never counted, devices that never did anything, the views of
// sys, which newer exporters leave out as well; and states of threads last as long as a statement.
func leftOut(name, labels string, v float64) bool {
	return v == 0 && (strings.HasPrefix(name, "mysql_perf_schema_") || strings.Contains(labels, `"device":`)) ||
		strings.Contains(labels, `"schema":"sys"`) || fleeting(name, labels)
}

// more is what Risso has in addition: itself as a target, the loopback interface, which node_exporter 1.5 leaves out, and loop devices, which it leaves out
// also where a file system is on them, as while a test beside this one fills a disk of its own.
func more(name, labels string) bool {
	return strings.Contains(labels, `"job":"risso"`) || strings.Contains(labels, `"device":"lo"`) || strings.Contains(labels, `"device":"loop`) || fleeting(name, labels)
}

// fleeting are states of threads that run a statement.
func fleeting(name, labels string) bool {
	return strings.HasPrefix(name, "mysql_info_schema_processlist_") && !strings.Contains(labels, `"command":"sleep"`)
}

// implausible says which value is far from all that Prometheus saw in these seconds.
func implausible(query string, want, got, low, high map[string]float64) string {
	for l, v := range got {
		w, there := want[l]
		if !there || math.IsNaN(v) && math.IsNaN(w) {
			continue
		}
		key := unnamed(l)
		lo, hi := math.Min(low[key], w), math.Max(high[key], w)
		if room := math.Max((math.Abs(lo)+math.Abs(hi))/2, 50); v < lo-room || v > hi+room {
			return fmt.Sprintf("%s: Risso says %g, Prometheus %g to %g of %s", metricName.FindString(query), v, lo, hi, l)
		}
	}
	return ""
}

// unnamed takes the name out of labels: functions over a range do.
func unnamed(labels string) string {
	var m map[string]string
	if json.Unmarshal([]byte(labels), &m) != nil {
		return labels
	}
	delete(m, "__name__")
	b, err := json.Marshal(m)
	if err != nil {
		return labels
	}
	return string(b)
}
