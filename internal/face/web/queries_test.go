//go:build cgo

package web

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/history"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/events"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/live"
)

// statementSite is a Risso with two days of a class that runs in every minute, one that began today and one that
// became slower an hour ago.
func statementSite(t *testing.T) (s *site, now int64) {
	t.Helper()
	store, err := events.OpenEmbedded(t.Context(), t.TempDir()+"/statements.duckdb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	now = time.Now().Unix() / 60 * 60
	var list []events.Minute
	for at := now - 2*86400; at < now; at += 60 {
		rows := []events.Row{{Class: class(1), Schema: "shop", Cost: fleet.Cost{Calls: 60, Seconds: 6, RowsSent: 60, RowsExamined: 6000}, Latency: []events.Bucket{{Number: 200, Calls: 60}}}}
		slow := events.Row{Class: class(2), Schema: "shop", Cost: fleet.Cost{Calls: 60, Seconds: 0.6}}
		if at >= now-3600 {
			slow.Seconds = 12
			rows = append(rows, events.Row{Class: class(3), Schema: "crm", Cost: fleet.Cost{Calls: 6, Seconds: 0.6, Errors: 1}})
		}
		list = append(list, events.Minute{Instance: "db1", Time: at, Rows: append(rows, slow)})
	}
	if _, err := store.AddMinutes(t.Context(), list...); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 3; i++ {
		first := now - 2*86400
		if i == 3 {
			first = now - 3600
		}
		if err := store.AddClasses(t.Context(), events.Class{Instance: "db1", ID: class(i), Digest: "d", Fingerprint: fmt.Sprintf("select %d from t%d", i, i), Verb: "SELECT", Tables: "t", FirstSeen: first, LastSeen: now}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.AddSamples(t.Context(), events.Sample{Instance: "db1", Class: class(1), Time: now - 60, Text: "select 1 from t1", User: "app"}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.AddActivity(t.Context(), events.ActivityMinute{Instance: "db1", Time: now - 120, Rows: []events.Activity{
		{Class: class(1), Wait: "row_lock", User: "app", Host: "web1", Schema: "shop", Blocker: class(2), Calls: 3, Seconds: 6},
		{Class: class(1), Wait: "running", User: "batch", Host: "web2", Schema: "shop", Calls: 2, Seconds: 2}}}); err != nil {
		t.Fatal(err)
	}
	if err := store.AddSamples(t.Context(), events.Sample{Instance: "db1", Class: class(3), Time: now - 60, Text: "select 3 from t3 where a = ?"}); err != nil {
		t.Fatal(err)
	}
	o := Options{Facts: emptyFacts(t), Live: live.New(func() live.Self { return live.Self{} }), Open: true, Logger: slog.New(slog.DiscardHandler)}
	o.Statements = Statements{Store: store, Sources: func() []history.Status {
		return []history.Status{{Instance: "db1", Working: true, PlanNote: history.NotCaught}, {Instance: "db2"}}
	}}
	s = &site{Server: httptest.NewServer(New(o))}
	t.Cleanup(s.Close)
	return s, now
}

// emptyFacts knows no token.
func emptyFacts(t *testing.T) *state.Store {
	t.Helper()
	facts, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { facts.Close() })
	return facts
}

func class(n int) string { return fmt.Sprintf("%016X%016X", n*7919, n) }

func (s *site) object(t *testing.T, path string) map[string]any {
	t.Helper()
	status, body := s.get(t, path)
	var out map[string]any
	if err := json.Unmarshal([]byte(body), &out); err != nil || status != 200 {
		t.Fatalf("%s: got %d %s %v; want 200", path, status, body, err)
	}
	return out
}

// dig follows names and numbers into a JSON value.
func dig(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func expect(t *testing.T, v any, want any, path ...any) {
	t.Helper()
	if got := dig(v, path...); fmt.Sprintf("%.6v", got) != fmt.Sprintf("%.6v", want) {
		t.Errorf("%v is %v, want %v", path, got, want)
	}
}

// TestQueries asks for the top of an hour.
func TestQueries(t *testing.T) {
	s, now := statementSite(t)
	a := s.object(t, fmt.Sprintf("/api/queries?instance=db1&from=%d&to=%d&points=30", now-3600, now))
	expect(t, a, true, "available")
	expect(t, a, 3.0, "count")
	expect(t, a, (60+60+6)*60.0, "total", "calls")
	expect(t, a, class(2), "classes", 0, "id")
	expect(t, a, 0.2, "classes", 0, "load")
	expect(t, a, 0.2, "classes", 0, "avg")
	expect(t, a, 12/18.6, "classes", 0, "share")
	expect(t, a, nil, "classes", 0, "latency")
	expect(t, a, false, "classes", 0, "new")
	expect(t, a, 100.0, "classes", 1, "rows_examined_per_sent")
	expect(t, a, nil, "classes", 0, "wait")
	expect(t, a, "row_lock", "classes", 1, "wait", "value")
	expect(t, a, 6.0, "classes", 1, "wait", "seconds")
	expect(t, a, events.UpperBound(200), "classes", 1, "latency", "p95")
	expect(t, a, 0.1, "classes", 1, "spark", 5)
	expect(t, a, true, "classes", 2, "new")
	expect(t, a, 60.0, "classes", 2, "errors")
	expect(t, a, nil, "classes", 2, "rows_examined_per_sent")
	expect(t, a, "db1", "sources", 0, "instance")
	expect(t, a, nil, "sources", 1)
	a = s.object(t, fmt.Sprintf("/api/queries?from=%d&to=%d&order=calls&limit=1&search=T1", now-2*86400, now))
	expect(t, a, class(1), "classes", 0, "id")
	expect(t, a, 2*1440*60.0, "classes", 0, "calls")
}

// TestQuery asks for one class.
func TestQuery(t *testing.T) {
	s, now := statementSite(t)
	a := s.object(t, fmt.Sprintf("/api/query?id=%s&from=%d&to=%d&points=60", class(2), now-7200, now))
	expect(t, a, "select 2 from t2", "fingerprint")
	series, _ := a["series"].(map[string]any)
	times, _ := series["time"].([]any)
	step, _ := a["step"].(float64)
	if len(times) == 0 || len(times) > 62 || step < 60 {
		t.Fatalf("got %d points of %v s; want len(times) not 0, len(times) at most 62, step at least 60", len(times), step)
	}
	calls := 0.0
	for name, v := range series {
		if l, _ := v.([]any); len(l) != len(times) {
			t.Errorf("%s has %d values, time %d", name, len(l), len(times))
		}
	}
	for i := range times {
		v, _ := dig(series, "calls_per_second", i).(float64)
		calls += v * step
	}
	if calls < 7199 || calls > 7201 {
		t.Errorf("%v calls in all, want 7200", calls)
	}
	expect(t, series, 0.2, "avg", len(times)-3)
	expect(t, series, 0.01, "avg", 3)
	expect(t, a, "shop", "by_schema", 0, "value")
	a = s.object(t, fmt.Sprintf("/api/query?id=%s&from=%d&to=%d", class(1), now-7200, now))
	expect(t, a, "select 1 from t1", "samples", 0, "text")
	expect(t, a, "app", "by_user", 0, "value")
	expect(t, a, "activity", "by_user_from")
	expect(t, a, 6.0, "by_user", 0, "seconds")
	expect(t, a, "row_lock", "waits", 0, "value")
	expect(t, a, 3.0, "waits", 0, "calls")
	expect(t, a, "web2", "by_host", 1, "value")
	expect(t, a, class(2), "blocked_by", 0, "id")
	expect(t, a, "select 2 from t2", "blocked_by", 0, "fingerprint")
	expect(t, a, nil, "blocked_by", 1)
	expect(t, a, 8.0, "activity", "seconds")
	expect(t, a, "", "plan_note")
	expect(t, s.object(t, fmt.Sprintf("/api/query?id=%s&from=%d&to=%d", class(3), now-7200, now)), history.NotCaught, "plan_note")
	if id, _ := a["pt_id"].(string); len(id) != 32 {
		t.Errorf("pt_id %q, want length 32", id)
	}
	if plans, ok := a["plans"].([]any); !ok || len(plans) != 0 {
		t.Errorf("plans %v; want ok true, no plans", a["plans"])
	}
	if status, body := s.get(t, "/api/query?id=xyz"); status != 400 || !strings.Contains(body, "hex") {
		t.Errorf("got %d %s; want status 400, \"hex\" in it", status, body)
	}
	if status, _ := s.get(t, "/api/query?id="+class(99)); status != 404 {
		t.Errorf("an unknown class: got %d, want 404", status)
	}
}

// TestCompare asks what changed an hour ago.
func TestCompare(t *testing.T) {
	s, now := statementSite(t)
	a := s.object(t, fmt.Sprintf("/api/queries/compare?from=%d&to=%d&from2=%d&to2=%d", now-7200, now-3600, now-3600, now))
	expect(t, a, "slower", "changes", 0, "kind")
	expect(t, a, class(2), "changes", 0, "id")
	expect(t, a, 20.0, "changes", 0, "avg_factor")
	expect(t, a, 1.0, "changes", 0, "rate_factor")
	expect(t, a, 0.19, "changes", 0, "delta")
	expect(t, a, 0.19/0.2, "changes", 0, "share")
	expect(t, a, "new", "changes", 1, "kind")
	expect(t, a, "same", "changes", 2, "kind")
	expect(t, a, 0.11, "a", "load")
	if status, body := s.get(t, "/api/queries/compare?from=1&to=2"); status != 400 || !strings.Contains(body, "from2") {
		t.Errorf("got %d %s; want status 400, \"from2\" in it", status, body)
	}
}

// TestNoStatements says in each answer why there is nothing.
func TestNoStatements(t *testing.T) {
	s := newSite(t, true)
	for _, path := range []string{"/api/queries", "/api/query", "/api/queries/compare"} {
		a := s.object(t, path)
		expect(t, a, false, "available")
		if why, _ := a["why"].(string); why == "" {
			t.Errorf("%s: got %v, want why not \"\"", path, a)
		}
	}
	guarded := newSite(t, false)
	if status, _ := guarded.get(t, "/api/queries"); status != 401 {
		t.Errorf("without a token: got %d, want 401", status)
	}
}
