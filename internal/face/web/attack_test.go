package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/serve/config"
)

// TestWaitersHoldNoPacker: a packer that has worked holds more than half a megabyte. Only who is worked on has one, however
// many wait.
func TestWaitersHoldNoPacker(t *testing.T) {
	g := newGate(withDefaults(config.Limits{AtOnce: 1, Wait: time.Minute}))
	s := &server{gate: g}
	work := make(chan struct{})
	h := s.question(g.queries, writeError, func(_ *http.Request, a *answer) error {
		<-work
		_, err := a.Write(bytes.Repeat([]byte("x"), 100_000))
		return err
	})
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	queue := func() *sync.WaitGroup {
		var wg sync.WaitGroup
		for range mostWaiting {
			wg.Go(func() {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				r.Header.Set("Accept-Encoding", "gzip")
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != http.StatusOK || w.Header().Get("Content-Encoding") != "gzip" {
					t.Errorf("got %d %v; want w.Code http.StatusOK, Get(\"Content-Encoding\") \"gzip\"", w.Code, w.Header())
				}
			})
		}
		await.Until(t, func() bool { return len(g.queries.places) >= 1 && g.queries.waiting.Load() >= mostWaiting-1 }, "all to wait")
		return &wg
	}
	before := heap()
	first := queue() // with them all have been used once
	for range mostWaiting {
		work <- struct{}{}
	}
	first.Wait()
	second := queue()
	held := heap() - before
	for range mostWaiting {
		work <- struct{}{}
	}
	second.Wait()
	if each := held / mostWaiting; each > 50_000 {
		t.Errorf("each of %d that wait holds %d bytes, want at most 50_000", mostWaiting, each)
	}
}

// TestOddQuestions: times, steps and numbers that make no sense are answered or refused immediately, never with a failure.
func TestOddQuestions(t *testing.T) {
	s := newSite(t, true)
	odd := []string{"NaN", "-NaN", "Inf", "-Inf", "1e308", "1e12", "-1e12", "99999999999", "-99999999999", "0", "-1", "0.0000001", "1e-320", "9223372036854775807",
		"18446744073709551616", "0x7fffffffffffffff", "1_000", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "292y", "1000000000000w", "0.1ms", "\x00", "１", strings.Repeat("9", 5000)}
	ask := func(path string, form url.Values, ended bool) {
		code, body := s.get(t, path+"?"+form.Encode())
		if (code >= 500 || strings.Contains(body, "runtime error")) && !ended || !json.Valid([]byte(body)) {
			t.Errorf("%s?%.200s: %d %.300s", path, form.Encode(), code, body)
		}
	}
	at, end := fmt.Sprint(s.from+20), fmt.Sprint(s.from+21)
	for _, a := range odd {
		for path, names := range map[string][]string{"/api/v1/query": {"time", "timeout", "lookback_delta"}, "/api/v1/series": {"start", "end"}, "/api/v1/labels": {"start", "end"}, "/api/v1/metadata": {"limit"},
			"/api/v1/query_range": {"step", "timeout", "lookback_delta"}, "/api/chart": {"step", "points"}, "/api/events": {"limit"}, "/api/variables": {"at"}, "/api/benchmarks": {"limit"}} {
			for _, name := range names {
				form := url.Values{"query": {questions}, "match[]": {questions}, "start": {at}, "end": {end}, "step": {"1"}, "instance": {"db1"}, "key": {questions}, "from": {at}, "to": {end}}
				form.Set(name, a)
				ask(path, form, name == "timeout") // without time there is no answer
			}
		}
		for _, b := range odd {
			for _, path := range []string{"/api/chart", "/api/events", "/api/queries"} {
				ask(path, url.Values{"instance": {"db1"}, "key": {questions}, "from": {a}, "to": {b}}, false)
			}
			ask("/api/v1/query_range", url.Values{"query": {questions}, "start": {a}, "end": {b}, "step": {"1e6"}}, false)
			ask("/api/v1/series", url.Values{"match[]": {questions}, "start": {a}, "end": {b}}, false)
		}
	}
	for _, step := range []string{"0.0009", "0.000001", "1e-300"} { // the engine knows milliseconds
		ask("/api/v1/query_range", url.Values{"query": {"time()"}, "start": {at}, "end": {at + ".0005"}, "step": {step}}, false)
	}
	if code, body := s.get(t, "/api/v1/query_range?query=1&start=-60000000000&end=250000000000&step=1e6"); code != http.StatusBadRequest || !strings.Contains(body, "11,000 points") {
		t.Errorf("310,000 points over ten thousand years: got %d %.200s; want code http.StatusBadRequest, \"11,000 points\" in it", code, body)
	}
}

// TestEndlessWorkIsRefused: the engine looks at the clock between two series only; what would keep it busy with one for
// minutes or hours is never begun, no matter how it is wrapped.
func TestEndlessWorkIsRefused(t *testing.T) {
	s := newSite(t, true)
	ask := func(query, end string) (int, string) {
		return s.post(t, "/api/v1/query_range", url.Values{"query": {query}, "start": {"1"}, "end": {end}, "step": {"1"}})
	}
	for _, query := range []string{
		`sum_over_time(sum_over_time(vector(1)[1y:1m])[1y:1m])`, `count_over_time(up[200y:1ms])`, `quantile_over_time(0.5, vector(time())[30d:1s])`,
		`1 + -(max_over_time(stddev_over_time(vector(1)[60d:1m])[60d:1m]))`, `topk(1, changes(changes(up[1y:1m])[1y:1m]))`, `sum_over_time(sum_over_time(up[1y:1m] @ 5)[1y:1m]) + sum_over_time(rate(up[1y])[1y:1m])`,
		`quantile_over_time(0.5, up[300d])`,
	} {
		if code, body := ask(query, "200"); code != http.StatusUnprocessableEntity || !strings.Contains(body, "costly") {
			t.Errorf("%s: got %d %.300s; want code http.StatusUnprocessableEntity, \"costly\" in it", query, code, body)
		}
	}
	for _, query := range []string{ // what dashboards ask
		`max_over_time(rate(up[5m])[1d:1m])`, `avg_over_time(up[30d])`, `sum_over_time(up[1h:])`, `quantile_over_time(0.99, up[1h])`, `rate(up[1d])`, `sum_over_time(up[1y:1m] @ 100)`,
	} {
		if code, body := ask(query, "500"); code != http.StatusOK {
			t.Errorf("%s: got %d %.300s, want http.StatusOK", query, code, body)
		}
	}
}

// TestRudeClients: clients that send without end are disconnected, and others are answered meanwhile.
func TestRudeClients(t *testing.T) {
	s := newSiteOf(t, true, func(o *Options) {
		o.Limits = config.Limits{Body: 300 * time.Millisecond, Write: 300 * time.Millisecond, Time: time.Second, Wait: time.Second}
	})
	get := "GET /api/fleet HTTP/1.1\r\nHost: localhost\r\n"
	endless := func(piece string) io.Reader { return &repeated{piece: piece} }
	for name, send := range map[string]io.Reader{
		"a line without end":      io.MultiReader(strings.NewReader("GET /"), endless("x")),
		"fields without end":      io.MultiReader(strings.NewReader(get), endless("X-A: b\r\n")),
		"one field without end":   io.MultiReader(strings.NewReader(get+"X-A: "), endless("b")),
		"chunks without end":      io.MultiReader(strings.NewReader("POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n"), endless("1\r\nx\r\n")),
		"a chunk's extension":     io.MultiReader(strings.NewReader("POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n1;"), endless("y")),
		"a trailer without end":   io.MultiReader(strings.NewReader("POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"), endless("X-A: b\r\n")),
		"a form in parts":         io.MultiReader(strings.NewReader("POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\nTransfer-Encoding: chunked\r\n\r\n"), endless("5\r\n--x\r\n\r\n")),
		"requests, never reading": endless(get + "\r\n"),
		"a body to a GET":         io.MultiReader(strings.NewReader("GET /api/fleet HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"), endless("1\r\nx\r\n")),
		"a length and chunks":     io.MultiReader(strings.NewReader("POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"), endless("0\r\n\r\n")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := s.dial(t)
			if n, err := io.Copy(c, send); err == nil || strings.Contains(err.Error(), "timeout") {
				t.Errorf("after %d bytes the connection is still open: %v; want an error, no \"timeout\" in the error", n, err)
			}
		})
	}
	t.Run("others", func(t *testing.T) {
		t.Parallel()
		for range 20 {
			if code, body := s.get(t, "/api/fleet"); code != http.StatusOK {
				t.Errorf("got %d %s, want http.StatusOK", code, body)
			}
		}
	})
}

// repeated is the same piece again and again.
type repeated struct {
	piece string
	at    int
}

// Read never ends.
func (r *repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.piece[r.at]
		r.at = (r.at + 1) % len(r.piece)
	}
	return len(p), nil
}

// TestManyQuestionsAtOnce: of hundreds that come at the same time each is answered, or told to come again.
func TestManyQuestionsAtOnce(t *testing.T) {
	s := newSite(t, true)
	var wg sync.WaitGroup
	for i := range 500 {
		path := []string{"/api/v1/query_range?query=" + questions + "&start=" + fmt.Sprint(s.from) + "&end=" + fmt.Sprint(s.from+120) + "&step=1", "/api/chart?instance=db1&key=" + questions, "/api/events", "/api/fleet"}[i%4]
		wg.Go(func() {
			if code, body := s.get(t, path, "Accept-Encoding", "gzip"); code != http.StatusOK && code != http.StatusServiceUnavailable {
				t.Errorf("%s: %d %.200s", path, code, body)
			}
		})
	}
	wg.Wait()
}
