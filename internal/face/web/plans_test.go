//go:build cgo

package web

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/events"
	"github.com/rissodb/risso/internal/watch/live"
)

// TestPlansAreDrawn draws what is a plan and leaves what is none.
func TestPlansAreDrawn(t *testing.T) {
	got := drawn([]events.Plan{
		{ID: "a", Text: `{"query_block":{"select_id":1,"cost_info":{"query_cost":"7.25"},"table":{"table_name":"orders","access_type":"ref","key":"customer","rows_examined_per_scan":12}}}`},
		{ID: "b", Text: "<not a plan>"},
	}, []events.Sample{{Instance: "db1", Text: "select * from orders where customer = 5"}})
	if !strings.Contains(got[0].Tree, "orders") || !strings.Contains(got[0].Tree, "customer") || strings.Contains(got[0].Tree, "{") {
		t.Errorf("drawn as %q; want \"orders\" in it, \"customer\" in it, no \"{\" in it", got[0].Tree)
	}
	if got[1].Tree != "" || got[1].Text != "<not a plan>" {
		t.Errorf("got %+v; want Tree \"\", Text \"<not a plan>\"", got[1])
	}
}

// TestSchemas lists schemas and narrows to one.
func TestSchemas(t *testing.T) {
	s, now := statementSite(t)
	span := fmt.Sprintf("instance=db1&from=%d&to=%d", now-3600, now)
	a := s.object(t, "/api/queries/schemas?"+span)
	expect(t, a, "shop", "schemas", 0, "value")
	expect(t, a, "crm", "schemas", 1, "value")
	expect(t, a, 360.0, "schemas", 1, "calls")
	expect(t, a, nil, "schemas", 2)
	expect(t, s.object(t, "/api/queries?schema=shop&"+span), class(2), "classes", 0, "id")
	expect(t, s.object(t, "/api/queries?schema=crm&"+span), 360.0, "classes", 0, "calls")
	a = s.object(t, "/api/queries?schema=nowhere&"+span)
	expect(t, a, nil, "classes", 0)
	expect(t, a, 3.0, "count")
	a = s.object(t, fmt.Sprintf("/api/queries/compare?schema=nowhere&from=%d&to=%d&from2=%d&to2=%d", now-7200, now-3600, now-3600, now))
	expect(t, a, 0.0, "count")
	if status, _ := s.get(t, "/api/queries/schemas?from=5&to=1"); status != 400 {
		t.Errorf("a range that ends before it begins: got %d, want 400", status)
	}
}

// planned is a Risso that keeps two plans of one class, whose names are not to be trusted, and some minutes with a hole.
func planned(t *testing.T) (s *site, now int64) {
	t.Helper()
	store, err := events.OpenEmbedded(t.Context(), t.TempDir()+"/statements.duckdb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	now = time.Now().Unix() / 60 * 60
	for id, text := range map[string]string{
		"p1": `{"query_block":{"select_id":1,"cost_info":{"query_cost":"7.25"},"table":{"table_name":"<script>alert(1)</script>","access_type":"ALL","rows_examined_per_scan":120000}}}`,
		"p2": "<not a plan>"} {
		if _, err := store.AddPlan(t.Context(), events.Plan{Instance: "db1", Class: class(1), ID: id, LastSeen: now, Origin: "explain", Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.AddClasses(t.Context(), events.Class{Instance: "db1", ID: class(1), Fingerprint: "select", FirstSeen: now - 600, LastSeen: now}); err != nil {
		t.Fatal(err)
	}
	for _, ago := range []int64{10, 9, 8, 4, 3, 2, 1} {
		m := events.Minute{Instance: "db1", Time: now - ago*60}
		if ago != 9 { // a minute that was read, and in which nothing ran
			m.Rows = []events.Row{{Class: class(1), Cost: fleet.Cost{Calls: 6, Seconds: 0.5}}}
		}
		if _, err := store.AddMinutes(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Facts: emptyFacts(t), Live: live.New(func() live.Self { return live.Self{} }), Open: true, Logger: slog.New(slog.DiscardHandler), Statements: Statements{Store: store}}
	s = &site{Server: httptest.NewServer(New(o))}
	t.Cleanup(s.Close)
	return s, now
}

// TestPlanImage draws a plan as an image that can do nothing but be seen.
func TestPlanImage(t *testing.T) {
	s, _ := planned(t)
	resp, err := http.Get(s.URL + "/api/plan?class=" + class(1) + "&id=p1&theme=dark&bare=1")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("got %d %v; want 200", resp.StatusCode, err)
	}
	csp := resp.Header.Get("Content-Security-Policy")
	for name, ok := range map[string]bool{
		"type": resp.Header.Get("Content-Type") == "image/svg+xml", "nosniff": resp.Header.Get("X-Content-Type-Options") == "nosniff",
		"sandbox": strings.Contains(csp, "sandbox") && !strings.Contains(csp, "allow-"), "no source": strings.HasPrefix(csp, "default-src 'none';"), "no script": !strings.Contains(string(body), "<script"),
		"name": strings.Contains(string(body), "&lt;script&gt;"), "dark only": !strings.Contains(string(body), "prefers-color-scheme")} {
		if !ok {
			t.Errorf("%s: got %v %s, want ok true", name, resp.Header, body)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(string(body))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if _, follows := s.get(t, "/api/plan?class="+class(1)+"&id=p1"); !strings.Contains(follows, "prefers-color-scheme") {
		t.Error("without a theme it does not follow the system")
	}
	for query, want := range map[string]int{"class=" + class(1) + "&id=p2": 404, "class=" + class(1) + "&id=p3": 404, "class=" + class(1) + "&id=p1&instance=db9": 404,
		"class=x&id=p1": 400, "": 400, "class=" + class(1) + "&id=p1&theme=pink": 400} {
		if status, body := s.get(t, "/api/plan?"+query); status != want || !strings.Contains(body, `"error"`) {
			t.Errorf("%s: got %d %s; want status %d, \"\\\"error\\\"\" in it", query, status, body, want)
		}
	}
	if status, _ := newSite(t, false).get(t, "/api/plan?class="+class(1)+"&id=p1"); status != 401 {
		t.Errorf("without a token: got %d, want 401", status)
	}
	if status, _ := newSite(t, true).get(t, "/api/plan?class="+class(1)+"&id=p1"); status != 404 {
		t.Errorf("without a store: got %d, want 404", status)
	}
}

// TestCovered reports which minutes were read, in the list and of one class.
func TestCovered(t *testing.T) {
	s, now := planned(t)
	for _, path := range []string{"/api/queries?", "/api/query?id=" + class(1) + "&"} {
		a := s.object(t, fmt.Sprintf("%sfrom=%d&to=%d&points=20", path, now-15*60, now))
		expect(t, a, "db1", "covered", 0, "instance")
		expect(t, a, nil, "covered", 1)
		for i, want := range []int64{now - 600, now - 420, now - 240, now} {
			if got, _ := dig(a, "covered", 0, "spans", i/2, i%2).(float64); int64(got) != want {
				t.Errorf("%s: end %d is %v, want %d", path, i, got, want)
			}
		}
		expect(t, a, nil, "covered", 0, "spans", 2)
	}
	a := s.object(t, fmt.Sprintf("/api/queries?instance=db2&from=%d&to=%d", now-900, now))
	if l, ok := a["covered"].([]any); !ok || len(l) != 0 {
		t.Errorf("of a server that was never read: %v; want ok true, no l", a["covered"])
	}
}
