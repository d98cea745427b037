package serve

import (
	"slices"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/watch/alert"
	"github.com/rissodb/risso/internal/watch/rules"
)

// TestChart: a message shows the series that its finding is about, from a quarter of an hour before it began, and no value where none was read.
func TestChart(t *testing.T) {
	t.Parallel()
	numbers, err := series.Open(series.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer numbers.Close()
	w, err := numbers.Writer("db1")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Second)
	began := now.Add(-5 * time.Minute)
	w.Define(series.Desc{Name: "mysql_global_status_threads_running", Type: series.Gauge})
	w.Define(series.Desc{Name: "mysql_global_status_questions", Type: series.Counter})
	asked := 0.0
	for at := now.Add(-10 * time.Minute); at.Before(now); at = at.Add(time.Second) {
		running, rate := 2.0, 100.0
		if !at.Before(began) {
			running, rate = 90, 0
		}
		asked += rate
		if err := w.Append(at.Unix(), []float64{running, asked}, false); err != nil {
			t.Fatal(err)
		}
	}
	defer w.Close()
	get := func(finding string, began time.Time) *alert.Chart {
		return chart(t.Context(), numbers, &alert.Alert{Instance: "db1", Finding: finding, Began: began}, now)
	}
	c := get("server.stall", began)
	if c == nil || c.Title != "threads running" || c.Step != 10 || len(c.Values) != 120 || !c.From.Equal(began.Add(-chartBefore)) || !c.Mark.Equal(began) {
		t.Fatalf("got %+v, want threads running from 15 minutes before it began", c)
	}
	for i, want := range map[int]float64{0: -1, 50: -1, 70: 2, 88: 2, 92: 90, 119: 90} {
		if v := c.Values[i]; (v == nil) != (want < 0) || v != nil && *v != want {
			t.Errorf("value %d: got %v, want %v", i, v, want)
		}
	}
	if c := get("repl.writable", began); c == nil || c.Title != "questions" || *c.Values[80] != 100 || *c.Values[110] != 0 {
		t.Errorf("got %+v, want questions, 100 a second and then none", c)
	}
	if c := get("server.down", now.Add(-48*time.Hour)); c == nil || !c.From.Equal(now.Add(-chartMost)) || !c.Mark.IsZero() {
		t.Errorf("it began long ago: got %+v, want the last hour without a mark", c)
	}
	for _, finding := range []string{"repl.lag", "protect.stale"} {
		if c := get(finding, began); c != nil {
			t.Errorf("%s: got %+v, want none: there are no numbers of it", finding, c)
		}
	}
}

// TestDrawnFind: counters of several labels are added, and a disk's chart is of that disk.
func TestDrawnFind(t *testing.T) {
	label := func(name string, pairs ...string) series.Desc {
		d := series.Desc{Name: name}
		for i := 0; i < len(pairs); i += 2 {
			d.Labels = append(d.Labels, series.Label{Name: pairs[i], Value: pairs[i+1]})
		}
		return d
	}
	list := []series.Desc{label("node_filesystem_avail_bytes", "device", "a", "mountpoint", "/"), label("node_filesystem_avail_bytes", "device", "b", "mountpoint", "/data"),
		label("risso_host_cpu_seconds_total", "mode", "idle"), label("risso_host_cpu_seconds_total", "mode", "system"), label("risso_host_cpu_seconds_total", "mode", "user")}
	for finding, want := range map[string][]string{
		"disk.full": {`node_filesystem_avail_bytes{device="b",mountpoint="/data"}`}, "host.cpu": {`risso_host_cpu_seconds_total{mode="user"}`, `risso_host_cpu_seconds_total{mode="system"}`},
	} {
		if got := drawnOf(finding).find(list, "/data"); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", finding, got, want)
		}
	}
	for _, k := range rules.Kinds() {
		if d := drawnOf(k.ID); (len(d.keys) > 0) != (d.title != "") {
			t.Errorf("%s: got %+v, want a title if there are series", k.ID, d)
		}
	}
}
