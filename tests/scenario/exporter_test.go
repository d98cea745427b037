package scenario_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/lack"
)

// TestExporterNames: every series of mysqld_exporter about status, variables and InnoDB metrics is there too, under the same name and labels.
func TestExporterNames(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("prometheus-mysqld-exporter")
	if err != nil {
		if path, err = exec.LookPath("mysqld_exporter"); err != nil {
			lack.Of(t, "prometheus-mysqld-exporter is not installed: run script/setup")
		}
	}
	eachKind(t, []string{"mariadb", "mysql-8.0"}, func(t *testing.T, kind string) {
		n := single(t, kind, "innodb_monitor_enable=all")
		r := serve(t, dataDir(t), "--no-host", "--dsn", "db="+n.DSN)
		r.awaitTicks(t, "db", 2)
		known := map[string]bool{}
		var list struct {
			Metrics []struct{ Key string }
		}
		r.get(t, "/api/metrics", map[string][]string{"instance": {"db"}}, &list)
		for _, m := range list.Metrics {
			known[m.Key] = true
		}
		checked := 0
		for _, key := range exporterKeys(t, path, n.Socket) {
			checked++
			if !known[key] {
				t.Errorf("the exporter gives %s, Risso does not", key)
			}
		}
		if checked < 500 {
			t.Errorf("the exporter gave only %d series, want at least 500", checked)
		}
	})
}

// exporterKeys asks the exporter once and lists what it returns.
func exporterKeys(t *testing.T, path, socket string) (keys []string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close() // the exporter cannot take a listener over
	dir := tempDir(t)
	conf := filepath.Join(dir, "my.cnf")
	if err := os.WriteFile(conf, []byte("[client]\nuser=root\nsocket="+socket+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--web.listen-address="+addr, "--config.my-cnf="+conf, "--collect.global_status", "--collect.global_variables",
		"--collect.info_schema.innodb_metrics", "--no-collect.slave_status")
	cmd.Env = append(environment(dir), "DATA_SOURCE_NAME=root@unix("+socket+")/")
	log := &buffer{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var body string
	await(t, "an answer of the exporter", func() bool {
		resp, err := http.Get(fmt.Sprintf("http://%s/metrics", addr))
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		body = string(b)
		return err == nil && strings.Contains(body, "mysql_global_status_uptime")
	})
	for sc := bufio.NewScanner(strings.NewReader(body)); sc.Scan(); {
		l := sc.Text()
		for _, p := range []string{"mysql_global_status_", "mysql_global_variables_", "mysql_info_schema_innodb_metrics_"} {
			// The exporter takes a counter that is negative for a gauge, and names it so until it is not.
			if strings.HasPrefix(l, p) && !strings.Contains(l, " -") {
				keys = append(keys, l[:strings.LastIndexByte(l, ' ')])
			}
		}
	}
	if len(keys) == 0 {
		t.Fatalf("the exporter said: %s, want len(keys) not 0", log)
	}
	return keys
}
