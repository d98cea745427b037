package mapped_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/series/mapped"
)

// instances are two servers, one of them on the host that is watched, the host, and Risso.
var instances = []fleet.Instance{
	{ID: "db1", Name: "DB1", Kind: fleet.KindServer, Address: "/run/db.sock", HostID: "box"},
	{ID: "db.2", Name: "db.2", Kind: fleet.KindServer, Address: "far:3306"},
	{ID: "box", Name: "Box", Kind: fleet.KindHost, Address: "Box"},
	{ID: "risso"},
}

const t0 = 1_700_000_040

// open makes a store with ten seconds of each instance, and of one that nobody knows. db.2 does not answer.
func open(t *testing.T, r mapped.Rules) *mapped.Store {
	t.Helper()
	s, err := series.Open(series.Options{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), OnEvent: func(fleet.Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for id, list := range map[string][]struct {
		d series.Desc
		v float64
	}{
		"db1": {{series.Desc{Name: "mysql_up"}, 1}, {series.Desc{Name: "threads"}, 7},
			{series.Desc{Name: "locks", Labels: []series.Label{{Name: "cluster", Value: "row"}, {Name: "kind", Value: "x"}}}, 3}},
		"db.2":   {{series.Desc{Name: "mysql_up"}, 0}, {series.Desc{Name: "threads"}, 8}},
		"dbx2":   {{series.Desc{Name: "threads"}, 9}},
		"box":    {{series.Desc{Name: "node_load1"}, 0.5}},
		"risso":  {{series.Desc{Name: "risso_store_samples_total", Type: series.Counter}, 100}},
		"silent": nil,
	} {
		w, err := s.Writer(id)
		if err != nil {
			t.Fatal(err)
		}
		var values []float64
		for _, l := range list {
			w.Define(l.d)
			values = append(values, l.v)
		}
		for i := range int64(10) {
			if err := w.Append(t0+i, values, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	made := r.Labels(instances, "here")
	return mapped.New(s, func() map[string][]mapped.Label { return made })
}

// ask evaluates an expression at the last second, and lists the series without what most of them have, and their values.
func ask(t *testing.T, s *mapped.Store, expr string) []string {
	t.Helper()
	p := parser.NewParser(parser.Options{})
	e := promql.NewEngine(promql.EngineOpts{MaxSamples: 1000, Timeout: time.Minute, Parser: p})
	parsed, err := p.ParseExpr(expr)
	if err != nil {
		t.Fatal(err)
	}
	q, err := e.NewInstantQuery(t.Context(), s.QueryableFor(parsed), nil, expr, time.Unix(t0+9, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	v, err := q.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	list := []string{}
	for _, s := range v {
		list = append(list, fmt.Sprint(s.Metric, "=", s.F))
	}
	slices.Sort(list)
	return list
}

func TestSelect(t *testing.T) {
	t.Parallel()
	s := open(t, mapped.Rules{One: map[string]map[string]string{"db.2": {"cluster": "shop", "team": "x"}}})
	const (
		db1  = `cluster="default", instance="db1", job="mysql", node_name="Box", node_type="generic", service_name="DB1"`
		db2  = `cluster="shop", instance="db.2", job="mysql", node_name="far", node_type="generic", service_name="db.2", team="x"`
		lock = `{__name__="locks", cluster="default", exported_cluster="row", instance="db1", job="mysql", kind="x", node_name="Box", node_type="generic", service_name="DB1"}=3`
	)
	one, two := `{__name__="threads", `+db1+`}=7`, `{__name__="threads", `+db2+`}=8`
	alien := `{__name__="threads", instance="dbx2"}=9`
	upBox := `{__name__="up", cluster="default", instance="box", job="node", node_name="Box", node_type="generic"}=1`
	upRisso := `{__name__="up", cluster="default", instance="risso", job="risso", node_name="here", node_type="generic"}=1`
	upOne, upTwo := `{__name__="up", `+db1+`}=1`, `{__name__="up", `+db2+`}=0`
	for expr, want := range map[string][]string{
		`threads`:                                  {one, two, alien},
		`threads{job="mysql"}`:                     {one, two},
		`threads{job=~".+", instance=~".+"}`:       {one, two},
		`threads{job=""}`:                          {alien},
		`threads{job!="mysql"}`:                    {alien},
		`threads{service_name="DB1"}`:              {one},
		`threads{service_name!~"DB1|x"}`:           {two, alien},
		`threads{instance="db.2"}`:                 {two},
		`threads{instance=~"db.2", cluster=~""}`:   {alien},
		`threads{node_name="Box",cluster!=""}`:     {one},
		`threads{team="x"}`:                        {two},
		`threads{team=""}`:                         {one, alien},
		`threads{team="y"}`:                        {},
		`locks{exported_cluster="row"}`:            {lock},
		`locks{exported_cluster="table"}`:          {},
		`locks{cluster="row"}`:                     {},
		`locks{cluster="default",kind="x"}`:        {lock},
		`up`:                                       {upBox, upOne, upRisso, upTwo},
		`up{job=~"mysql|node"}`:                    {upBox, upOne, upTwo},
		`up{job="mysql"} == 0`:                     {upTwo},
		`{__name__=~"u.",instance="db1"}`:          {upOne},
		`{job="node"}`:                             {strings.Replace(strings.Replace(upBox, `"up"`, `"node_load1"`, 1), "=1", "=0.5", 1), upBox},
		`{__name__!="up",job="node"}`:              {strings.Replace(strings.Replace(upBox, `"up"`, `"node_load1"`, 1), "=1", "=0.5", 1)},
		`avg_over_time(up{job="node"}[5s])`:        {strings.Replace(upBox, `__name__="up", `, ``, 1)},
		`sum by (cluster, job) (threads{job!=""})`: {`{cluster="default", job="mysql"}=7`, `{cluster="shop", job="mysql"}=8`},
		`node_load1 * on(node_name) group_left(service_name) mysql_up`: {`{cluster="default", instance="box", job="node", node_name="Box", node_type="generic", service_name="DB1"}=0.5`},
	} {
		slices.Sort(want)
		if got := ask(t, s, expr); !slices.Equal(got, want) {
			t.Errorf("%s gives\n%s\nwant\n%s", expr, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestNamesAndValues(t *testing.T) {
	t.Parallel()
	s := open(t, mapped.Rules{One: map[string]map[string]string{"db.2": {"cluster": "shop", "team": "x"}}})
	q, err := s.Queryable().Querier(t0*1000, (t0+9)*1000)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	for _, c := range []struct{ label, match, want string }{
		{"job", ``, "mysql node risso"},
		{"job", `{__name__="threads"}`, "mysql"},
		{"job", `{__name__="up"}`, "mysql node risso"},
		{"instance", `{__name__="mysql_up"}`, "db.2 db1"},
		{"instance", `{job="mysql"}`, "db.2 db1"},
		{"instance", `{__name__="threads"}`, "db.2 db1 dbx2"},
		{"instance", `{__name__="nothing"}`, ""},
		{"service_name", `{cluster="shop"}`, "db.2"},
		{"cluster", `{__name__="threads"}`, "default shop"},
		{"cluster", `{__name__="up",job="mysql"}`, "default shop"},
		{"team", ``, "x"},
		{"exported_cluster", `{__name__="locks"}`, "row"},
		{"kind", ``, "x"},
		{"kind", `{cluster="shop"}`, ""},
		{"__name__", `{job="node"}`, "node_load1 up"},
		{"__name__", `{service_name="DB1"}`, "locks mysql_up threads up"},
	} {
		var m []*labels.Matcher
		if c.match != "" {
			if m, err = parser.NewParser(parser.Options{}).ParseMetricSelector(c.match); err != nil {
				t.Fatal(err)
			}
		}
		got, _, err := q.LabelValues(context.Background(), c.label, nil, m...)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("values of %s with %s: got %v (%v), want %s", c.label, c.match, got, err, c.want)
		}
	}
	if got, _, err := q.LabelNames(context.Background(), nil, labels.MustNewMatcher(labels.MatchEqual, "__name__", "locks")); err != nil || !slices.Contains(got, "exported_cluster") {
		t.Errorf("names of labels of locks: got %v (%v), want exported_cluster among them", got, err)
	}
	m := []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, "__name__", "threads"), labels.MustNewMatcher(labels.MatchEqual, "job", "mysql")}
	got, _, err := q.LabelNames(context.Background(), nil, m...)
	if want := "__name__ cluster instance job node_name node_type service_name team"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("names of labels: got %v (%v), want %s", got, err, want)
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	r := mapped.Rules{All: map[string]string{"cluster": "", "environment": "prod"}, Servers: map[string]string{"instance": "{address}", "job": "mysqld"},
		Hosts: map[string]string{"instance": "{node}:9100"}, One: map[string]map[string]string{"db.2": {"job": "other", "where": "{id} on {host}"}}}
	made := r.Labels(instances, "here")
	for id, want := range map[string]string{
		"db1":   "[{environment prod} {instance /run/db.sock} {job mysqld} {node_name Box} {node_type generic} {service_name DB1}]",
		"db.2":  "[{environment prod} {instance far:3306} {job other} {node_name far} {node_type generic} {service_name db.2} {where db.2 on far}]",
		"box":   "[{environment prod} {instance here:9100} {job node} {node_name Box} {node_type generic}]",
		"risso": "[{environment prod} {instance risso} {job risso} {node_name here} {node_type generic}]",
	} {
		if got := fmt.Sprint(made[id]); got != want {
			t.Errorf("labels of %s: got %s, want %s", id, got, want)
		}
	}
	for _, bad := range []map[string]string{{"a-b": "x"}, {"__name__": "x"}, {"": "x"}, {"a": "{nam}"}, {"a": "x}"}} {
		if mapped.Check(bad) == nil {
			t.Errorf("%v is taken for good labels", bad)
		}
	}
}

// TestRecordedSeries: what rules record has the labels that it was recorded with, once, whether it is of one instance or over several.
func TestRecordedSeries(t *testing.T) {
	s, err := series.Open(series.Options{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), OnEvent: func(fleet.Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	made := mapped.Rules{}.Labels(instances, "here")
	m := mapped.New(s, func() map[string][]mapped.Label { return made })
	of := append([]series.Label{}, made["db1"]...)
	for id, desc := range map[string][]series.Desc{
		"db1": {{Name: "threads"}},
		series.Recorded: {{Name: "r:one", Labels: of}, {Name: "r:other", Labels: append(slices.DeleteFunc(slices.Clone(of), func(l series.Label) bool { return l.Name == "job" }), series.Label{Name: "job", Value: "mine"})},
			{Name: "r:job", Labels: []series.Label{{Name: "job", Value: "mysql"}}}, {Name: "r:all"}},
	} {
		w, err := s.Writer(id)
		if err != nil {
			t.Fatal(err)
		}
		for i := range desc {
			w.Define(desc[i])
		}
		for i := range int64(10) {
			if err := w.Append(t0+i, []float64{1, 2, 3, 4}[:len(desc)], false); err != nil {
				t.Fatal(err)
			}
		}
	}
	for expr, want := range map[string]int{`{__name__=~"r:.*"}`: 4, `r:one{job="mysql"}`: 1, `r:one{instance="db1"}`: 1, `r:job{job="mysql"}`: 1, `r:job{job="x"}`: 0, `r:all`: 1, `r:all{job=""}`: 1, `{__name__=~"r:one|threads"}`: 2,
		`r:other{exported_job="mine"}`: 1, `{__name__=~"r:o.*",exported_job="mysql"}`: 0, `{__name__=~"r:o.*",exported_job=""}`: 1, `r:one{exported_job=~"|x"}`: 1, `r:one{exported_job!="mysql"}`: 1,
		`r:one{exported_job!~"m.*"}`: 1, `r:other{exported_job!~"m.*"}`: 0, `r:other{exported_job=~"m.*"}`: 1, `r:one{exported_job=~".+"}`: 0, `r:one{exported_job!~"m.*",exported_cluster=""}`: 1, `r:one{exported_job!~"m.*",exported_cluster="default"}`: 0, `r:other{exported_job!=""}`: 1, `r:other{job="mysql"}`: 1, `count without () (r:one) == 1`: 1} {
		if got := ask(t, m, expr); len(got) != want {
			t.Errorf("%s: got %v, want %d series", expr, got, want)
		}
	}
	q, err := m.Queryable().Querier(t0*1000, (t0+9)*1000)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	for metric, want := range map[string]string{"r:one": "", "r:other": "mine"} {
		of := labels.MustNewMatcher(labels.MatchEqual, "__name__", metric)
		values, _, err := q.LabelValues(t.Context(), "exported_job", nil, of)
		if err != nil || strings.Join(values, " ") != want {
			t.Errorf("values of exported_job of %s: got %v (%v), want %q", metric, values, err, want)
		}
		names, _, err := q.LabelNames(t.Context(), nil, of)
		if err != nil || slices.Contains(names, "exported_job") != (want != "") || !slices.Contains(names, "job") {
			t.Errorf("names of labels of %s: got %v (%v)", metric, names, err)
		}
	}
}
