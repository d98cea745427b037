package scenario_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// answer is Prometheus' frame around each answer.
type answer struct {
	Status, ErrorType, Error string
	Data                     json.RawMessage
}

// ask sends a form with GET and with POST, as Grafana may, and returns the answer, which must be the same.
func (r *risso) ask(t *testing.T, path string, form url.Values, want int) answer {
	t.Helper()
	var first answer
	for i, method := range []string{http.MethodGet, http.MethodPost} {
		status, b, h := r.request(t, method, "/api/v1/"+path, form, nil)
		if status != want {
			t.Errorf("%s %s %v: status %d, not %d: %s", method, path, form, status, want, b)
		}
		if ct := h.Get("Content-Type"); !strings.HasPrefix(ct, "application/json") {
			t.Errorf("%s %s: content type %q, want \"application/json\" at its beginning", method, path, ct)
		}
		var a answer
		if err := json.Unmarshal(b, &a); err != nil {
			t.Fatalf("%s %s %v: %v in %.300s", method, path, form, err, b)
		}
		if i == 0 {
			first = a
		} else if string(a.Data) != string(first.Data) || a.Status != first.Status {
			t.Errorf("%s %v: GET and POST differ: %.200s and %.200s; want string(a.Data) %v, a.Status %v",
				path, form, first.Data, a.Data, string(first.Data), first.Status)
		}
	}
	if ok := first.Status == "success"; ok != (want == 200) || ok == (first.Error != "") {
		t.Errorf("got %s %v: %+v; want ok %v, ok not %v", path, form, first, want == 200, first.Error != "")
	}
	return first
}

func (a answer) into(t *testing.T, out any) {
	t.Helper()
	if err := json.Unmarshal(a.Data, out); err != nil {
		t.Fatalf("%v in %.300s", err, a.Data)
	}
}

// TestPrometheusAPI: the questions that Grafana asks a Prometheus, and the errors that it shows to people.
func TestPrometheusAPI(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb")
	r := serve(t, dataDir(t), "--dsn", "db="+n.DSN, "--dsn", "zwei="+n.DSN)
	r.awaitTicks(t, "zwei", 2)
	end := r.awaitTicks(t, "db", 3)
	// An instant query takes the newest value there is: it no longer changes once both have their sample of that second.
	await(t, fmt.Sprintf("second %d of zwei", end), func() bool { return r.newest(t, questions, "zwei") >= end })
	t.Run("query", func(t *testing.T) { checkQuery(t, r, end) })
	t.Run("series and labels", func(t *testing.T) { checkLabels(t, r, end) })
	t.Run("errors", func(t *testing.T) { checkErrors(t, r, end) })
}

func sec(s int64) string { return strconv.FormatInt(s, 10) }

// q is a form of names and values.
func q(kv ...string) url.Values {
	form := url.Values{}
	for i := 0; i < len(kv); i += 2 {
		form.Add(kv[i], kv[i+1])
	}
	return form
}

// minute is a form with the minute before end.
func minute(end int64, kv ...string) url.Values {
	return q(append(kv, "start", sec(end-60), "end", sec(end))...)
}

// checkQuery asks for values as Grafana does.
func checkQuery(t *testing.T, r *risso, end int64) {
	// Grafana's test of a data source.
	var vector struct {
		ResultType string
		Result     []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	r.ask(t, "query", q("query", "1+1", "time", sec(end)), 200).into(t, &struct{}{})
	a := r.ask(t, "query", q("query", questions, "time", sec(end)), 200)
	a.into(t, &vector)
	if vector.ResultType != "vector" || len(vector.Result) != 2 || vector.Result[0].Metric["__name__"] != questions {
		t.Errorf("an instant query gives %s; want vector.ResultType \"vector\", len(vector.Result) 2, vector.Result[0].Metric[\"__name__\"] %v",
			a.Data, questions)
	}
	for _, at := range []string{time.Unix(end, 0).UTC().Format(time.RFC3339), sec(end) + ".000"} {
		if b := r.ask(t, "query", q("query", questions, "time", at), 200); string(b.Data) != string(a.Data) {
			t.Errorf("at %s it gives %s, not %s", at, b.Data, a.Data)
		}
	}
	var scalar struct {
		ResultType string
		Result     [2]any
	}
	r.ask(t, "query", q("query", "scalar(vector(3))", "time", sec(end)), 200).into(t, &scalar)
	if scalar.ResultType != "scalar" || scalar.Result[1] != "3" {
		t.Errorf("a scalar is %+v; want ResultType \"scalar\", Result[1] \"3\"", scalar)
	}
	if got := r.prom(t, "query", q("query", fmt.Sprintf("sum(rate(%s[5s])) by (instance)", questions), "time", sec(end))); len(got) != 2 || got[0].points[0].v <= 0 {
		t.Errorf("a rate is %v; want len(got) 2, got[0].points[0].v more than 0", got)
	}

	var matrix struct {
		ResultType string
		Result     []struct {
			Metric map[string]string
			Values [][2]any
		}
	}
	r.ask(t, "query_range", q("query", of(questions, "db"), "start", sec(end-2), "end", sec(end), "step", "1s"), 200).into(t, &matrix)
	if matrix.ResultType != "matrix" || len(matrix.Result) != 1 || len(matrix.Result[0].Values) != 3 {
		t.Errorf("a range of 3 s in steps of 1 s: got %+v; want ResultType \"matrix\", len(Result) 1, len(Result[0].Values) 3", matrix)
	}

	// What is read less often than every second is there at every second nevertheless.
	for _, name := range []string{"node_filesystem_avail_bytes", "mysql_global_variables_max_connections", "risso_replicas_connected"} {
		if len(r.prom(t, "query", q("query", name, "time", sec(end)))) == 0 {
			t.Errorf("at %d there is no %s, want len(r.prom(t, \"query\", q(\"query\", name, \"time\", sec(end)))) not 0", end, name)
		}
	}
}

// ownLabels are those that each series of a server has.
var ownLabels = []string{"__name__", "cluster", "instance", "job", "node_name", "node_type", "service_name"}

// checkLabels asks for names, as Grafana does for its menus.
func checkLabels(t *testing.T, r *risso, end int64) {
	var series []map[string]string
	r.ask(t, "series", minute(end, "match[]", of(questions, "db"), "match[]", `mysql_up`), 200).into(t, &series)
	if len(series) != 3 {
		t.Errorf("series: got %v, want length 3", series)
	}
	contains := func(what string, form url.Values, want ...string) []string {
		t.Helper()
		var list []string
		r.ask(t, what, form, 200).into(t, &list)
		if !slices.IsSorted(list) {
			t.Errorf("%s is not sorted", what)
		}
		for _, w := range want {
			if !slices.Contains(list, w) {
				t.Errorf("%s %v has no %s", what, form, w)
			}
		}
		return list
	}
	contains("labels", minute(end), "__name__", "instance", "command", "mode", "device")
	if got := contains("labels", minute(end, "match[]", questions)); !slices.Equal(got, ownLabels) {
		t.Errorf("labels of %s: got %v, want %v", questions, got, ownLabels)
	}
	names := contains("label/__name__/values", minute(end), questions, "mysql_up", "node_load1", "mysql_global_variables_max_connections", "process_cpu_seconds_total")
	if len(names) < 800 {
		t.Errorf("only %d names, want at least 800", len(names))
	}
	for _, n := range names {
		if strings.Trim(n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:") != "" {
			t.Errorf("%q is no name for PromQL", n)
		}
	}
	if got := contains("label/instance/values", minute(end, "match[]", "mysql_up")); !slices.Equal(got, []string{"db", "zwei"}) {
		t.Errorf("instances with mysql_up: got %v, want []string{\"db\", \"zwei\"}", got)
	}
	contains("label/command/values", minute(end, "match[]", `mysql_global_status_commands_total{instance="db"}`), "select", "insert")
	if got := contains("label/instance/values", q("start", sec(end-7200), "end", sec(end-3600))); len(got) != 0 {
		t.Errorf("an hour before there was %v, want none", got)
	}
	var meta map[string][]struct{ Type, Help, Unit string }
	r.ask(t, "metadata", q("metric", questions), 200).into(t, &meta)
	if m := meta[questions]; len(meta) != 1 || len(m) != 1 || m[0].Type != "counter" || m[0].Help == "" {
		t.Errorf("metadata: got %v; want len(meta) 1, len(m) 1, m[0].Type \"counter\", m[0].Help not \"\"", meta)
	}
	var build map[string]string
	r.ask(t, "status/buildinfo", q(), 200).into(t, &build)
	if build["version"] == "" {
		t.Error("no version for Grafana")
	}

}

// checkErrors asks what cannot be answered.
func checkErrors(t *testing.T, r *risso, end int64) {
	for _, c := range []struct {
		path string
		form url.Values
		code int
		kind string
	}{
		{"query", q("query", "sum("), 400, "bad_data"},
		{"query", q(), 400, "bad_data"},
		{"query", q("query", "up", "time", "yesterday"), 400, "bad_data"},
		{"query", q("query", "up", "timeout", "soon"), 400, "bad_data"},
		{"query", q("query", questions+" + on() group_left() "+questions, "time", sec(end)), 422, "execution"},
		{"query_range", q("query", "up"), 400, "bad_data"},
		{"query_range", minute(end, "query", "up", "step", "0"), 400, "bad_data"},
		{"query_range", minute(end, "query", "up", "step", "x"), 400, "bad_data"},
		{"query_range", q("query", "up", "step", "1", "start", sec(end), "end", sec(end-1)), 400, "bad_data"},
		{"query_range", q("query", "up", "step", "1", "start", sec(end-20000), "end", sec(end)), 400, "bad_data"},
		{"query_range", minute(end, "query", "up[5s]", "step", "1"), 400, "bad_data"},
		{"series", minute(end), 400, "bad_data"},
		{"series", minute(end, "match[]", "{{"), 400, "bad_data"},
		{"labels", minute(end, "match[]", "a b"), 400, "bad_data"},
		{"label/instance/values", minute(end, "match[]", "a b"), 400, "bad_data"},
	} {
		if a := r.ask(t, c.path, c.form, c.code); a.ErrorType != c.kind {
			t.Errorf("%s %v: error type %q, not %q: %s", c.path, c.form, a.ErrorType, c.kind, a.Error)
		}
	}
}
