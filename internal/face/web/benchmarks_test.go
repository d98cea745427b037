package web

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/store/state"
)

func (s *site) send(t *testing.T, method, path, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
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

const aRun = `{"workload":"point_select","server":"root@db1:3306","began":"2026-11-21T10:00:00Z","threads":4,"warmup_seconds":5,"seconds":10,"transactions":50,"transactions_per_second":5,
 "latency":{"percentiles":[{"percentile":95,"seconds":0.25}]},"errors":[{"label":"1205","message":"<b>","count":7}],"timeline":[{"second":0,"transactions":5}],"use":{"cpus":2,"client":0.5,"foreign":1},"surprise":"dropped"}`

func TestBenchmarkIsKept(t *testing.T) {
	s := newSite(t, true)
	code, body := s.send(t, http.MethodPost, "/api/benchmarks?instance=db1", aRun)
	if code != http.StatusOK || !strings.Contains(body, `"id":1,"instance":"db1","new":true`) {
		t.Fatalf("got %v, %v; want code http.StatusOK, \"\\\"id\\\":1,\\\"instance\\\":\\\"db1\\\",\\\"new\\\":true\" in it", code, body)
	}
	if code, body := s.send(t, http.MethodPost, "/api/benchmarks?instance=db1", aRun); code != http.StatusOK || !strings.Contains(body, `"id":1`) || !strings.Contains(body, `"new":false`) {
		t.Errorf("got %v, %v; want code http.StatusOK, \"\\\"id\\\":1\" in it, \"\\\"new\\\":false\" in it", code, body)
	}
	var list struct {
		Benchmarks []struct {
			ID       int
			Workload string
			P95      float64
			Errors   int
		}
	}
	s.decode(t, "/api/benchmarks?instance=db1", &list)
	if len(list.Benchmarks) != 1 || list.Benchmarks[0].P95 != 0.25 || list.Benchmarks[0].Errors != 7 {
		t.Errorf("got %+v; want len(Benchmarks) 1, Benchmarks[0].P95 0.25, Benchmarks[0].Errors 7", list)
	}
	s.decode(t, "/api/benchmarks?instance=db2", &list)
	if len(list.Benchmarks) != 0 {
		t.Errorf("got %+v, want none", list)
	}
	var one struct {
		Instance string
		From, To float64
		Machine  string
		Result   map[string]any
	}
	s.decode(t, "/api/benchmark?id=1", &one)
	if one.Instance != "db1" || one.To-one.From != 15 || one.Result["workload"] != "point_select" || one.Result["surprise"] != nil || !strings.HasPrefix(one.Machine, "DISTURBED by other programs: client 0.5,") {
		t.Errorf("got %+v; want Instance \"db1\", To - one.From 15, Result[\"workload\"] \"point_select\", Result[\"surprise\"] nil, \"DISTURBED by other programs: client 0.5,\" at the beginning of Machine",
			one)
	}
	if code, _ := s.send(t, http.MethodDelete, "/api/benchmark?id=1", ""); code != http.StatusOK {
		t.Errorf("got %v, want http.StatusOK", code)
	}
	if code, body := s.get(t, "/api/benchmark?id=1"); code != http.StatusNotFound {
		t.Errorf("got %v, %v; want http.StatusNotFound", code, body)
	}
}

func TestBenchmarkOfUnwatchedServer(t *testing.T) {
	s := newSite(t, true)
	if code, body := s.send(t, http.MethodPost, "/api/benchmarks", aRun); code != http.StatusOK || !strings.Contains(body, `"instance":""`) {
		t.Errorf("got %v, %v; want code http.StatusOK, \"\\\"instance\\\":\\\"\\\"\" in it", code, body)
	}
}

func TestBenchmarkRefused(t *testing.T) {
	s := newSite(t, true)
	for body, want := range map[string]int{
		"":                http.StatusBadRequest,
		"{}":              http.StatusBadRequest,
		"[]":              http.StatusBadRequest,
		aRun + aRun:       http.StatusBadRequest,
		"\x1f\x8bgarbage": http.StatusBadRequest,
		`{"workload":"` + strings.Repeat("x", maxBenchmarkBody) + `"}`: http.StatusRequestEntityTooLarge,
		strings.Replace(aRun, `"threads":4`, `"threads":-4`, 1):        http.StatusBadRequest,
		strings.Replace(aRun, `"seconds":10`, `"seconds":"10"`, 1):     http.StatusBadRequest,
	} {
		if code, said := s.send(t, http.MethodPost, "/api/benchmarks", body); code != want || !strings.Contains(said, `"error"`) {
			t.Errorf("got %.60q: %d %s; want code %d, \"\\\"error\\\"\" in it", body, code, said, want)
		}
	}
	if code, said := s.send(t, http.MethodPost, "/api/benchmarks?instance=nobody", aRun); code != http.StatusBadRequest {
		t.Errorf("got %v, %v; want http.StatusBadRequest", code, said)
	}
	for _, path := range []string{"/api/benchmark", "/api/benchmark?id=x", "/api/benchmark?id=-1", "/api/benchmarks?limit=0", "/api/benchmarks?limit=x"} {
		if code, said := s.get(t, path); code != http.StatusBadRequest {
			t.Errorf("got %v, %v, %v; want http.StatusBadRequest", path, code, said)
		}
	}
	for path, want := range map[string]string{"/api/events?limit=1;x=2": "%3B", "/api/events?limit=%zz": "%25"} {
		if code, said := s.get(t, path); code != http.StatusBadRequest || !strings.Contains(said, want) || strings.Contains(said, "body") {
			t.Errorf("GET %s: %d %s, want 400 that tells of %s", path, code, said, want)
		}
	}
	// A page elsewhere may not write, either.
	if code, _ := s.send(t, http.MethodPost, "/api/benchmarks", aRun, "Origin", "http://evil.example"); code != http.StatusForbidden {
		t.Errorf("got %v, want http.StatusForbidden", code)
	}
}

func TestBenchmarkNeedsToken(t *testing.T) {
	s := newSite(t, false)
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		if code, _ := s.send(t, method, "/api/benchmarks", aRun); code != http.StatusUnauthorized {
			t.Errorf("got %v, %v; want http.StatusUnauthorized", method, code)
		}
	}
	if code, _ := s.send(t, http.MethodDelete, "/api/benchmark?id=1", ""); code != http.StatusUnauthorized {
		t.Errorf("got %v, want http.StatusUnauthorized", code)
	}
	_, secret, err := s.facts.CreateToken(t.Context(), "bench", state.RoleChange)
	if err != nil {
		t.Fatal(err)
	}
	if code, body := s.send(t, http.MethodPost, "/api/benchmarks", aRun, "Authorization", fmt.Sprint("Bearer ", secret)); code != http.StatusOK {
		t.Errorf("got %v, %v; want http.StatusOK", code, body)
	}
}
