package scenario_test

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// grafanaSource is the file of a data source, with the keys that Grafana reads (version 1 of its provisioning).
type grafanaSource struct {
	APIVersion  int `yaml:"apiVersion"`
	Datasources []struct {
		Name          string `yaml:"name"`
		Type          string `yaml:"type"`
		Access        string `yaml:"access"` // proxy or direct
		URL           string `yaml:"url"`
		BasicAuth     bool   `yaml:"basicAuth"`
		BasicAuthUser string `yaml:"basicAuthUser"`
		JSON          struct {
			Interval string `yaml:"timeInterval"`
			Method   string `yaml:"httpMethod"`
		} `yaml:"jsonData"`
		Secret struct {
			Password string `yaml:"basicAuthPassword"`
		} `yaml:"secureJsonData"`
	} `yaml:"datasources"`
}

// TestGrafanaSource: the data source of docs/prometheus.md has no key that Grafana does not know, and a Risso that asks for tokens answers, with what stands
// in it, each question of Grafana's Prometheus data source. Grafana itself is not run: no registry that these tests may use has it.
func TestGrafanaSource(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/prometheus.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(apiVersion: .*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("the page has no data source")
	}
	var source grafanaSource
	read := yaml.NewDecoder(strings.NewReader(string(block[1])))
	read.KnownFields(true)
	if err := read.Decode(&source); err != nil {
		t.Fatal(err)
	}
	d := source.Datasources[0]
	if source.APIVersion != 1 || d.Type != "prometheus" || d.Access != "proxy" || !d.BasicAuth || d.BasicAuthUser == "" || d.JSON.Interval != "1s" || d.JSON.Method != http.MethodPost || d.Secret.Password != "$RISSO_TOKEN" {
		t.Fatalf("got %+v, want a source of type prometheus that logs in", source)
	}
	data, env := dataDir(t), environment(tempDir(t))
	create := exec.Command(binary, "token", "create", "grafana", "--data", data)
	create.Env = env
	token, err := create.Output()
	if err != nil {
		t.Fatal(err)
	}
	r := serveEnv(t, env, data, "--host-only")
	login := func(q *http.Request) { q.SetBasicAuth(d.BasicAuthUser, strings.TrimSpace(string(token))) }
	if status, b, _ := r.request(t, http.MethodPost, "/api/v1/query", url.Values{"query": {"1+1"}}, nil); status != http.StatusUnauthorized {
		t.Errorf("without the token: got %d %s, want 401", status, b)
	}
	await(t, "values of the host", func() bool {
		_, b, _ := r.request(t, http.MethodPost, "/api/v1/query", url.Values{"query": {"node_load1"}}, login)
		return strings.Contains(string(b), `"value"`)
	})
	span := url.Values{"start": {"1790000000"}, "end": {"1790000060"}}
	with := func(name, value string) url.Values {
		form := url.Values{name: {value}}
		for k, v := range span {
			form[k] = v
		}
		return form
	}
	for _, q := range []struct {
		method, path string
		form         url.Values
	}{
		{d.JSON.Method, "query", url.Values{"query": {"1+1"}, "time": {"1790000000"}}}, // save & test
		{d.JSON.Method, "query_range", url.Values{"query": {"node_load1"}, "start": {"1790000000"}, "end": {"1790000060"}, "step": {"15"}}},
		{d.JSON.Method, "query_exemplars", with("query", "test")},
		{d.JSON.Method, "labels", span},
		{d.JSON.Method, "series", with("match[]", "node_load1")},
		{http.MethodGet, "label/__name__/values", span},
		{http.MethodGet, "metadata", url.Values{"limit": {"5"}}},
		{http.MethodGet, "rules", url.Values{}},
		{http.MethodGet, "status/buildinfo", url.Values{}},
	} {
		status, b, _ := r.request(t, q.method, "/api/v1/"+q.path, q.form, login)
		if status != http.StatusOK || !strings.Contains(string(b), `"status":"success"`) {
			t.Errorf("%s %s: got %d %.200s, want an answer", q.method, q.path, status, b)
		}
	}
}
