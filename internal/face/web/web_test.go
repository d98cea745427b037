package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/series/mapped"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/live"
)

const questions = "mysql_global_status_questions"

// site is a Risso with two minutes of a made-up server in its stores: a counter that grows by 10 a second,
// does not change in one second and has a gap of five.
type site struct {
	*httptest.Server
	facts  *state.Store
	writer *series.Writer // of the server
	from   int64
}

func newSite(t *testing.T, open bool) *site {
	t.Helper()
	return newSiteOf(t, open, func(*Options) {})
}

// newSiteOf is the same with further options.
func newSiteOf(t *testing.T, open bool, more func(*Options)) *site {
	t.Helper()
	dir := t.TempDir()
	logger := slog.New(slog.DiscardHandler)
	numbers, err := series.Open(series.Options{Dir: filepath.Join(dir, "series"), Logger: logger, OnEvent: func(fleet.Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { numbers.Close() })
	facts, err := state.Open(t.Context(), filepath.Join(dir, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { facts.Close() })
	s := &site{facts: facts, from: time.Now().Unix()/60*60 - 300}
	w, err := numbers.Writer("db1")
	if err != nil {
		t.Fatal(err)
	}
	w.Define(series.Desc{Name: questions, Type: series.Counter})
	w.Define(series.Desc{Name: "mysql_global_status_threads_running"})
	s.writer = w
	total := 1000.0
	for i := range int64(120) {
		if i != 70 {
			total += 10
		}
		if i >= 40 && i < 45 {
			continue
		}
		if err := w.Append(s.from+i, []float64{total, 3}, false); err != nil {
			t.Fatal(err)
		}
	}
	page := fstest.MapFS{"index.html": {Data: []byte("<title>Risso</title>")}, "app.js": {Data: []byte("1")}}
	board := live.New(func() live.Self { return live.Self{} })
	board.Add(fleet.Instance{ID: "db1", Name: "db1", Kind: fleet.KindServer})
	names := mapped.New(numbers, func() map[string][]mapped.Label {
		return mapped.Rules{}.Labels([]fleet.Instance{{ID: "db1", Name: "db1", Kind: fleet.KindServer, Address: "db1.example.com:3306"}}, "here")
	})
	o := Options{Numbers: numbers, PromQL: names, Facts: facts, Live: board, Page: page, Version: "test", Open: open, Logger: logger}
	more(&o)
	s.Server = httptest.NewUnstartedServer(nil)
	s.serve(t, New(o), o.Limits)
	return s
}

// serve answers as risso serve does.
func (s *site) serve(t *testing.T, h http.Handler, l config.Limits) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	s.URL = "http://" + s.Listener.Addr().String()
	go func() { done <- Serve(ctx, s.Listener, h, l, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (s *site) get(t *testing.T, path string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func (s *site) decode(t *testing.T, path string, into any) {
	t.Helper()
	code, body := s.get(t, path)
	if code != http.StatusOK {
		t.Fatalf("%s: got %d %s, want http.StatusOK", path, code, body)
	}
	if err := json.Unmarshal([]byte(body), into); err != nil {
		t.Fatalf("%s: %v in %s", path, err, body)
	}
}

func TestChartShowsStallAndGap(t *testing.T) {
	s := newSite(t, true)
	var c struct {
		From, To, Step int64
		Series         []struct {
			Key, Type     string
			Avg, Min, Max []*float64
			N             []int
		}
	}
	s.decode(t, fmt.Sprintf("/api/chart?instance=db1&from=%d&to=%d&points=200&key=%s", s.from, s.from+120, questions), &c)
	avg := c.Series[0].Avg
	if c.Step != 1 || len(avg) != 120 || c.Series[0].Type != "counter" {
		t.Fatalf("step %d, %d points, %s; want c.Step 1, len(avg) 120, c.Series[0].Type \"counter\"", c.Step, len(avg), c.Series[0].Type)
	}
	for i, v := range avg {
		switch {
		case i == 0 || i >= 40 && i <= 45: // no rate without a second before it
			if v != nil {
				t.Errorf("second %d: %v was invented, want v nil", i, *v)
			}
		case v == nil:
			t.Errorf("second %d is missing, want v not nil", i)
		case i == 70 && *v != 0, i != 70 && *v != 10:
			t.Errorf("second %d: %v", i, *v)
		}
	}
	s.decode(t, fmt.Sprintf("/api/chart?instance=db1&from=%d&to=%d&step=60&key=%s", s.from, s.from+120, questions), &c)
	if l := c.Series[0]; *l.Min[1] != 0 || *l.Max[1] != 10 || l.N[0] != 53 {
		t.Errorf("minutes: min %v max %v n %v: the stall of one second must show; want *l.Min[1] 0, *l.Max[1] 10, l.N[0] 53", *l.Min[1], *l.Max[1], l.N)
	}
}

func TestChartRefusesNonsense(t *testing.T) {
	s := newSite(t, true)
	for _, q := range []string{"", "?instance=db1", "?instance=db1&key=x&from=9&to=3", "?instance=db1&key=x&from=abc", "?instance=db1&key=x&step=1&from=0", "?instance=db1&key=x&from=NaN"} {
		if code, body := s.get(t, "/api/chart"+q); code != http.StatusBadRequest || !strings.Contains(body, `"error"`) {
			t.Errorf("%s: got %d %s; want code http.StatusBadRequest, \"\\\"error\\\"\" in it", q, code, body)
		}
	}
	if code, _ := s.get(t, "/api/nothing"); code != http.StatusNotFound {
		t.Errorf("an unknown path: got %d, want http.StatusNotFound", code)
	}
}

func TestPrometheusAnswers(t *testing.T) {
	s := newSite(t, true)
	var r struct {
		Status string
		Data   struct {
			ResultType string
			Result     []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	q := url.QueryEscape(`rate(` + questions + `{instance="db1"}[10s])`)
	s.decode(t, fmt.Sprintf("/api/v1/query_range?query=%s&start=%d&end=%d&step=1", q, s.from+20, s.from+29), &r)
	if r.Status != "success" || r.Data.ResultType != "matrix" || len(r.Data.Result) != 1 || len(r.Data.Result[0].Values) != 10 {
		t.Fatalf("got %+v; want Status \"success\", Data.ResultType \"matrix\", len(Data.Result) 1, len(Data.Result[0].Values) 10", r)
	}
	if v := r.Data.Result[0].Values[0]; v[1] != "10" || r.Data.Result[0].Metric["instance"] != "db1" {
		t.Errorf("got %v of %v; want v[1] \"10\", r.Data.Result[0].Metric[\"instance\"] \"db1\"", v, r.Data.Result[0].Metric)
	}
	var names struct{ Data []string }
	s.decode(t, "/api/v1/label/__name__/values", &names)
	if want := []string{questions, "mysql_global_status_threads_running", "up"}; !slices.Equal(names.Data, want) {
		t.Errorf("names: got %v, want %v", names.Data, want)
	}
	if code, body := s.get(t, "/api/v1/query?query=rate("); code != http.StatusBadRequest || !strings.Contains(body, `"errorType":"bad_data"`) {
		t.Errorf("a broken query: got %d %s; want code http.StatusBadRequest, \"\\\"errorType\\\":\\\"bad_data\\\"\" in it", code, body)
	}
	if code, body := s.get(t, "/api/v1/query?query=limitk(1,up)"); code != http.StatusBadRequest || !strings.Contains(body, "is experimental and is not served by Risso") {
		t.Errorf("an experimental function: got %d %s; want code http.StatusBadRequest, \"is experimental and is not served by Risso\" in it", code, body)
	}
	if code, body := s.get(t, "/api/v1/query_range?query=up&start=1&end=900000000&step=1"); code != http.StatusBadRequest || !strings.Contains(body, "11,000") {
		t.Errorf("too many steps: got %d %s; want code http.StatusBadRequest, \"11,000\" in it", code, body)
	}
}

// TestGapIsAGapInPromQL asks for every second around the gap of seconds 40 to 44 and around the newest value: none is repeated.
func TestGapIsAGapInPromQL(t *testing.T) {
	s := newSite(t, true)
	var r struct {
		Data struct{ Result []struct{ Values [][2]any } }
	}
	at := func(query string) map[int64]bool {
		s.decode(t, fmt.Sprintf("/api/v1/query_range?query=%s&start=%d&end=%d&step=1", url.QueryEscape(query), s.from, s.from+200), &r)
		seen := map[int64]bool{}
		for _, series := range r.Data.Result {
			for _, v := range series.Values {
				seen[int64(v[0].(float64))-s.from] = true
			}
		}
		return seen
	}
	for _, query := range []string{questions, "mysql_global_status_threads_running", "sum by (instance) (" + questions + ")"} {
		seen := at(query)
		for i := range int64(200) {
			want := i < 40 || i >= 45 && i < 120
			if seen[i] != want {
				t.Errorf("%s at second %d: there is a value: %v, want %v", query, i, seen[i], want)
			}
		}
	}
	// A range that ends within the gap must not take the gap for the newest second, whose successor is under way.
	s.decode(t, fmt.Sprintf("/api/v1/query_range?query=%s&start=%d&end=%d&step=1", questions, s.from+41, s.from+43), &r)
	if len(r.Data.Result) != 0 {
		t.Errorf("a range within the gap has values: %v, want none", r.Data.Result)
	}
	if seen := at("rate(" + questions + "[10s])"); !seen[42] || seen[140] {
		t.Errorf("a rate over the gap: %v, long behind the end: %v", seen[42], seen[140])
	}
}

func TestLoopbackAnswersOnlyToLocalNames(t *testing.T) {
	s := newSite(t, true)
	for host, want := range map[string]int{"127.0.0.1:8306": 200, "localhost": 200, "[::1]:8306": 200, "evil.example": 403, "127.0.0.1.evil.example": 403} {
		if code, _ := s.get(t, "/api/fleet", "Host", host); code != want {
			t.Errorf("Host %s: %d, want %d", host, code, want)
		}
	}
	if code, _ := s.get(t, "/api/fleet", "Origin", "https://evil.example"); code != http.StatusForbidden {
		t.Errorf("a foreign page: got %d, want http.StatusForbidden", code)
	}
}

func TestTokenIsRequired(t *testing.T) {
	s := newSite(t, false)
	_, secret, err := s.facts.CreateToken(t.Context(), "me", state.RoleLook)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/fleet", "/api/self", "/api/v1/labels", "/api/chart?instance=db1&key=" + questions, "/api/nothing"} {
		if code, _ := s.get(t, path); code != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d, want http.StatusUnauthorized", path, code)
		}
	}
	if code, _ := s.get(t, "/api/fleet", "Authorization", "Bearer "+secret); code != http.StatusOK {
		t.Errorf("with a token: got %d, want http.StatusOK", code)
	}
	if code, _ := s.get(t, "/api/fleet", "Authorization", "Bearer "+secret+"x"); code != http.StatusUnauthorized {
		t.Errorf("with a wrong token: got %d, want http.StatusUnauthorized", code)
	}
	if code, _ := s.get(t, "/"); code != http.StatusOK {
		t.Errorf("the page itself, which has the form: %d; want http.StatusOK", code)
	}
	resp, err := http.Post(s.URL+"/api/login", "application/json", strings.NewReader(`{"token":"`+secret+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	cookies := resp.Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
		t.Fatalf("cookies: got %v; want len(cookies) 1, cookies[0].HttpOnly true, cookies[0].SameSite http.SameSiteStrictMode", cookies)
	}
	if code, _ := s.get(t, "/api/fleet", "Cookie", cookies[0].Name+"="+cookies[0].Value); code != http.StatusOK {
		t.Errorf("with the cookie: got %d, want http.StatusOK", code)
	}
}

func TestPageIsServedForItsPaths(t *testing.T) {
	s := newSite(t, true)
	for path, want := range map[string]int{"/": 200, "/server/db1": 200, "/server/10.0.0.1-3306": 200, "/app.js": 200, "/nothing.js": 404, "/../../etc/passwd": 200} {
		code, body := s.get(t, path)
		if code != want || strings.Contains(body, "root:") {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
}

func TestNumbersInJSON(t *testing.T) {
	b, err := json.Marshal(nums{1, 0.25, math.NaN(), math.Inf(1), -3e20})
	if err != nil || string(b) != "[1,0.25,null,null,-3e+20]" {
		t.Errorf("got %s, %v; want \"[1,0.25,null,null,-3e+20]\"", b, err)
	}
}
