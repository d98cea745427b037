package own_test

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/own"
)

// house is a store of numbers with rules over it, and what they said.
type house struct {
	t      *testing.T
	dir    string
	store  *series.Store
	rules  *own.Rules
	kept   map[string]state.RuleAlert
	firing []own.Firing
	events []fleet.Event
	writer map[string]*series.Writer
	files  []string
}

func newHouse(t *testing.T, texts ...string) *house {
	h := &house{t: t, dir: t.TempDir(), kept: map[string]state.RuleAlert{}}
	for i, text := range texts {
		h.files = append(h.files, file(t, fmt.Sprintf("%d.yml", i), text))
	}
	h.open()
	return h
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (h *house) open() {
	h.t.Helper()
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	store, err := series.Open(series.Options{Dir: h.dir, Logger: logger, OnEvent: func(fleet.Event) {}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.store, h.writer = store, map[string]*series.Writer{}
	recent := series.NewRecent(store)
	o := own.Options{Source: recent, Update: recent.Update, Samples: 1e6, Time: time.Minute, Logger: logger, Event: func(e fleet.Event) { h.events = append(h.events, e) },
		Writer: func() (own.Writer, error) { return store.Writer(series.Recorded) },
		Found:  func(_ time.Time, firing []own.Firing) { h.firing = firing },
		Keep: func(put []state.RuleAlert, gone []string) {
			for _, a := range put {
				h.kept[a.Key] = a
			}
			for _, key := range gone {
				delete(h.kept, key)
			}
		}}
	for _, a := range h.kept {
		o.Held = append(o.Held, a)
	}
	if t, _ := store.Last(series.Recorded); t > 0 {
		o.Seen = time.Unix(t, 0)
	}
	h.rules = own.New(o)
	if _, err := h.rules.Replace(h.files); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(h.close)
}

func (h *house) close() {
	if h.store == nil {
		return
	}
	if err := h.rules.Close(); err != nil {
		h.t.Error(err)
	}
	for _, w := range h.writer {
		w.Close()
	}
	h.store.Close()
	h.store = nil
}

// second writes what servers read in a second, and evaluates the rules.
func (h *house) second(at time.Time, running map[string]float64) {
	h.t.Helper()
	for id, v := range running {
		w := h.writer[id]
		if w == nil {
			var err error
			if w, err = h.store.Writer(id); err != nil {
				h.t.Fatal(err)
			}
			w.Define(series.Desc{Name: "mysql_global_status_threads_running"})
			h.writer[id] = w
		}
		if err := w.Append(at.Unix(), []float64{v}, false); err != nil {
			h.t.Fatal(err)
		}
	}
	h.rules.Tick(h.t.Context(), at)
}

// told is what fires: "db1 rule.busy critical many threads since 10:00:03".
func (h *house) told() (list []string) {
	for _, f := range h.firing {
		list = append(list, fmt.Sprintf("%s %s %s %s since %s", f.Labels.Get("instance"), f.Finding.ID, f.Finding.Severity, f.Finding.What, f.Finding.Since.UTC().Format("05")))
	}
	slices.Sort(list)
	return list
}

// ask is the answer to an expression at a moment.
func (h *house) ask(expr string, at time.Time) string {
	h.t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1000, Timeout: time.Minute})
	v, err := rules.EngineQueryFunc(engine, h.store.Queryable())(h.t.Context(), expr, at)
	if err != nil {
		h.t.Fatal(err)
	}
	return v.String()
}

const busy = `
groups:
  - name: threads
    rules:
      - record: server:running:double
        expr: 2 * mysql_global_status_threads_running
      - alert: Busy
        expr: server:running:double > 100
        for: 5s
        labels: {severity: critical}
        annotations: {summary: 'many threads on {{ $labels.instance }}', description: 'there are {{ $value }}', remedy: 'SHOW PROCESSLIST'}
`

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// TestRules: a rule records series of the servers that they are about, and an alert fires after its time, with its words, and ends.
func TestRules(t *testing.T) {
	t.Parallel()
	h := newHouse(t, busy)
	for s := range 20 {
		v := 60.0
		if s >= 14 {
			v = 1
		}
		at := noon.Add(time.Duration(s) * time.Second)
		h.second(at, map[string]float64{"db1": v, "db2": 3})
		if s == 10 {
			for expr, want := range map[string]string{
				`server:running:double`:                      "{__name__=\"server:running:double\", instance=\"db1\"} => 120 @[1795521610000]\n{__name__=\"server:running:double\", instance=\"db2\"} => 6 @[1795521610000]",
				`server:running:double{instance="db2"}`:      `{__name__="server:running:double", instance="db2"} => 6 @[1795521610000]`,
				`server:running:double{instance=~"db[3-9]"}`: "",
				`ALERTS{alertstate="firing"}`:                `{__name__="ALERTS", alertname="Busy", alertstate="firing", instance="db1", severity="critical"} => 1 @[1795521610000]`,
				`server:running:double - on(instance) 2 * mysql_global_status_threads_running{instance="db1"}`: `{instance="db1"} => 0 @[1795521610000]`,
			} {
				if got := h.ask(expr, at); got != want {
					t.Errorf("%s: got %s, want %s", expr, got, want)
				}
			}
		}
		// A rule sees what others record a second later: 60 threads of second 0 are seen in second 1, and fire in second 6.
		var want []string
		if s >= 6 && s < 15 {
			want = []string{"db1 rule.busy critical many threads on db1 since 01"}
		}
		if got := h.told(); !slices.Equal(got, want) {
			t.Errorf("second %d: got %q, want %q", s, got, want)
		}
		if s == 10 && len(h.firing) == 1 {
			f := h.firing[0].Finding
			if f.Why != "there are 120" || f.Remedy != "SHOW PROCESSLIST" || f.Value != 120 || f.Subject != "" {
				t.Errorf("got %+v, want why, remedy and value as the rule says", f)
			}
		}
	}
	if len(h.kept) > 0 {
		t.Errorf("%v is kept as pending or firing, want nothing", h.kept)
	}
}

// TestRulesRestart: what is pending or fires goes on after a restart, with the same begin. The time in which nobody looked does not count for
// what is pending.
func TestRulesRestart(t *testing.T) {
	t.Parallel()
	h := newHouse(t, busy)
	for s := range 11 {
		v := map[string]float64{"db1": 60, "db2": 1}
		if s >= 8 {
			v["db2"] = 60 // seen at 9, pending for 2 seconds at 10
		}
		h.second(noon.Add(time.Duration(s)*time.Second), v)
	}
	want := []string{"db1 rule.busy critical many threads on db1 since 01"}
	if got := h.told(); !slices.Equal(got, want) {
		t.Fatalf("before: got %q, want %q", got, want)
	}
	h.close()
	h.open()
	for s := 30; s < 40; s++ { // the first seconds after a start have no readings
		var v map[string]float64
		if s >= 32 {
			v = map[string]float64{"db1": 60, "db2": 60}
		}
		h.second(noon.Add(time.Duration(s)*time.Second), v)
		switch got := h.told(); {
		case s < 32 && len(h.kept) != 2:
			t.Errorf("second %d: %v is kept, want both", s, h.kept)
		case s == 34 && !slices.Equal(got, want): // db2 is pending for 1 s of before, and for 1 s
			t.Errorf("second %d: got %q, want %q", s, got, want)
		case s == 38 && len(got) != 2:
			t.Errorf("second %d: got %q, want both", s, got)
		}
	}
	for s := 40; s < 100; s++ {
		h.second(noon.Add(time.Duration(s)*time.Second), map[string]float64{"db1": 1, "db2": 1})
	}
	if len(h.kept)+len(h.firing) > 0 {
		t.Errorf("%v is kept and %v fires, want nothing", h.kept, h.firing)
	}
}

// TestKeepFiringRestart: keep_firing_for is held over a restart. What the rule no longer found fires on for as long as was left; what it found
// fires on until it is found again, or for as long as the rule says.
func TestKeepFiringRestart(t *testing.T) {
	t.Parallel()
	h := newHouse(t, `
groups:
  - name: threads
    rules:
      - {alert: Busy, expr: 'mysql_global_status_threads_running > 50', keep_firing_for: 10s, labels: {severity: critical}, annotations: {summary: '{{ $value }} on {{ $labels.instance }}'}}
      - {alert: Busy, expr: 'mysql_global_status_threads_running > 1000', keep_firing_for: 10s, labels: {severity: warning}}
      - {alert: Loose, expr: 'mysql_global_status_threads_running > 50'}
`)
	second := func(s int, v map[string]float64) { h.second(noon.Add(time.Duration(s)*time.Second), v) }
	fires := func() (list []string) {
		for _, f := range h.told() {
			if strings.Contains(f, "rule.busy") {
				list = append(list, f)
			}
		}
		return list
	}
	for s := range 11 {
		ended := 60.0
		if s >= 8 {
			ended = 1
		}
		second(s, map[string]float64{"ended": ended, "goes": 70, "ends": 80})
	}
	before := []string{"ended rule.busy critical 60 on ended since 00", "ends rule.busy critical 80 on ends since 00", "goes rule.busy critical 70 on goes since 00"}
	if got := fires(); !slices.Equal(got, before) {
		t.Fatalf("before: got %q, want %q", got, before)
	}
	h.close()
	h.open()
	for s := 30; s < 45; s++ { // the first seconds after a start have no readings
		var v map[string]float64
		if s >= 32 {
			v = map[string]float64{"ended": 1, "goes": 70, "ends": 1}
		}
		second(s, v)
		want := before[2:]
		if s < 40 { // 10 s after the start
			want = before[1:]
		}
		if s < 38 { // it lapsed at 8, Risso ended at 10
			want = before
		}
		if got := fires(); !slices.Equal(got, want) {
			t.Errorf("second %d: got %q, want %q", s, got, want)
		}
		if got, want := len(h.told())-len(fires()), 0; s < 32 && got != want {
			t.Errorf("second %d: %d alerts of a rule without keep_firing_for fire unseen, want %d", s, got, want)
		}
	}
	h.close()
	h.open()
	for s := 50; s < 130; s++ {
		second(s, map[string]float64{"goes": 1})
	}
	if len(h.kept)+len(h.firing) > 0 {
		t.Errorf("%v is kept and %v fires, want nothing", h.kept, h.firing)
	}
}

// TestRulesReplace: a file with a mistake leaves the rules of before in force; a new text of an alert does not begin it anew.
func TestRulesReplace(t *testing.T) {
	t.Parallel()
	h := newHouse(t, busy)
	at := noon
	run := func(seconds int) {
		for range seconds {
			h.second(at, map[string]float64{"db1": 60})
			at = at.Add(time.Second)
		}
	}
	run(8)
	for _, c := range []struct{ text, want string }{
		{"groups:\n  - name: a\n    rules:\n      - alert: B\n        expr: sum(\n", ":5:15: "},
		{"groups:\n  - name: a\n    rules:\n      - alert: B\n        expr: up\n        fore: 5s\n", ":6: field fore not found"},
		{"groups: [", ":1: did not find"},
		{"groups: []\n---\ngroups: []\n", "content after a line of ---"},
		{"groups:\n  - {name: a, interval: 1500ms, rules: []}\n", "whole seconds"},
	} {
		path := file(t, "bad.yml", c.text)
		_, err := h.rules.Replace([]string{path})
		if err == nil || !strings.Contains(err.Error(), path+c.want) && !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q for\n%s", err, c.want, c.text)
		}
	}
	if _, err := h.rules.Replace([]string{"/nowhere/rules.yml"}); err == nil {
		t.Error("a file that is not there is no error")
	}
	if changed, err := h.rules.Replace(h.files); err != nil || changed {
		t.Errorf("the same files: got %t, %v, want no change", changed, err)
	}
	if err := os.WriteFile(h.files[0], []byte(strings.Replace(busy, "many threads", "too many", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := h.rules.Replace(h.files); err != nil || !changed {
		t.Errorf("another text: got %t, %v, want a change", changed, err)
	}
	run(1)
	if got, want := h.told(), []string{"db1 rule.busy critical too many on db1 since 01"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := h.rules.Replace(nil); err != nil {
		t.Fatal(err)
	}
	run(1)
	if len(h.firing)+len(h.kept) > 0 {
		t.Errorf("%v fires and %v is kept without rules", h.firing, h.kept)
	}
}

// TestRuleFails: a rule that cannot be evaluated is a finding, and what it records ends.
func TestRuleFails(t *testing.T) {
	t.Parallel()
	h := newHouse(t, `
groups:
  - name: g
    rules:
      - {record: a, expr: 'mysql_global_status_threads_running + ignoring(instance) mysql_global_status_threads_running'}
      - {alert: Low, expr: 'mysql_global_status_threads_running < 10', labels: {severity: info}}
`)
	h.second(noon, map[string]float64{"db1": 1})
	want := []string{"db1 rule.low info rule Low fires: 1 since 00"}
	if got := h.told(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if h.firing[0].Finding.Value != 0 {
		t.Errorf("got the value %g, want none: the lower, the worse", h.firing[0].Finding.Value)
	}
	h.second(noon.Add(time.Second), map[string]float64{"db1": 1, "db2": 50})
	if got := h.told(); len(got) != 2 || !strings.Contains(got[0], "rules.failing warning the rule a of group g is not evaluated: ") {
		t.Errorf("got %q, want the rule that fails, and the other", got)
	}
}

// TestOwnNames: a rule cannot record what Risso itself makes.
func TestOwnNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.yml")
	if err := os.WriteFile(path, []byte("groups:\n- name: g\n  rules:\n  - {record: up, expr: '1'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := own.Read([]string{path}); err == nil || !strings.Contains(err.Error(), "Risso itself makes that series") {
		t.Errorf("got %v, want a rule that records up to be a mistake", err)
	}
}
