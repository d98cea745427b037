package scenario_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPrometheusReadsRisso: a real Prometheus evaluates rules over what Risso keeps, by remote read and by federation, as
// docs/prometheus.md says. An alert that should fire does, one that should not does not, and a server that stops is seen as down.
func TestPrometheusReadsRisso(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	r := serve(t, dataDir(t), "--no-host", "--dsn", "db="+n.DSN)
	r.awaitTicks(t, "db", 3)
	rules := filepath.Join(tempDir(t), "rules.yml")
	if err := os.WriteFile(rules, []byte(`groups:
- name: far
  interval: 1s
  rules:
  - {record: 'far:questions:rate', expr: 'sum by (service_name, job) (rate(mysql_global_status_questions{job="mysql"}[10s]))'}
  - {alert: Asked, expr: 'rate(mysql_global_status_questions{job="mysql",service_name="db"}[10s]) > 0', for: 1s, labels: {severity: page}}
  - {alert: Down, expr: 'mysql_up{job="mysql"} == 0'}
  - {alert: Federated, expr: 'up{job="mysql",fed="yes"} == 0'}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(r.base, "http://")
	prom := prometheus(t, fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
remote_read:
- {url: '%s/api/v1/read', read_recent: true}
scrape_configs:
- job_name: risso
  honor_labels: true
  metrics_path: /federate
  params: {'match[]': ['{job="mysql",__name__=~"up|mysql_up|mysql_global_status_threads_.*"}']}
  static_configs: [{targets: ['%s'], labels: {fed: 'yes'}}]
`, rules, r.base, host))
	firing := func(name string) string {
		resp, err := http.Get(prom + "/api/v1/alerts")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var a struct {
			Data struct {
				Alerts []struct {
					Labels map[string]string
					State  string
				}
			}
		}
		if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
			t.Fatal(err)
		}
		for _, x := range a.Data.Alerts {
			if x.Labels["alertname"] == name && x.State == "firing" {
				delete(x.Labels, "alertname")
				return fmt.Sprint(x.Labels)
			}
		}
		return ""
	}
	await(t, "an alert over remote read", func() bool { return firing("Asked") != "" })
	if got := firing("Asked"); !strings.Contains(got, "cluster:default instance:db job:mysql") || !strings.Contains(got, "service_name:db") || !strings.Contains(got, "severity:page") {
		t.Errorf("its labels: got %s, want those of Risso's series", got)
	}
	now := func() float64 { return float64(time.Now().Unix()) }
	await(t, "a recorded rate", func() bool {
		return len(vector(t, prom, `far:questions:rate{service_name="db",job="mysql"} > 0`, now())) == 1
	})
	await(t, "federated series", func() bool {
		return len(vector(t, prom, `up{job="mysql",instance="db",fed="yes"} == 1`, now())) == 1 &&
			len(vector(t, prom, `mysql_global_status_threads_running{fed="yes",service_name="db"}`, now())) == 1
	})
	for _, name := range []string{"Down", "Federated"} {
		if got := firing(name); got != "" {
			t.Errorf("%s fires while the server runs: %s", name, got)
		}
	}
	if err := n.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, "alerts that the server is down", func() bool { return firing("Down") != "" && firing("Federated") != "" })
}
