package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/serve/config"
)

// dial opens a connection to the site; the patience of the test bounds what is read and written.
func (s *site) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

// ended waits until the server has closed the connection, and returns what came before.
func ended(t *testing.T, c net.Conn) string {
	t.Helper()
	b, err := io.ReadAll(c)
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		t.Errorf("the connection stays open; until now came %d bytes: %.200q", len(b), b)
	}
	return string(b)
}

// TestSlowBodiesEnd: a client that sends a body slowly, or not at all, gets an error and is disconnected, whatever it asked and
// however the body is counted.
func TestSlowBodiesEnd(t *testing.T) {
	s := newSiteOf(t, true, func(o *Options) { o.Limits = config.Limits{Body: 300 * time.Millisecond} })
	for name, head := range map[string]string{
		"form":          "POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\nquery=1",
		"chunked":       "POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nque\r\n",
		"benchmark":     "POST /api/benchmarks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{",
		"login":         "POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		"nothing there": "POST /api/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		"the page":      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		"get":           "GET /api/fleet HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		"old":           "POST /api/v1/query HTTP/1.0\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nquery=1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := s.dial(t)
			if _, err := io.WriteString(c, head); err != nil {
				t.Fatal(err)
			}
			ended(t, c)
		})
	}
}

// TestLargeBodiesAreRefused: what is announced or comes is not kept beyond its bound, and packed bodies are not unpacked.
func TestLargeBodiesAreRefused(t *testing.T) {
	s := newSite(t, true)
	for _, c := range []struct {
		path, kind, encoding string
		size                 int64
		code                 int
	}{
		{"/api/v1/query", "application/x-www-form-urlencoded", "", 1 << 30, http.StatusRequestEntityTooLarge},
		{"/api/benchmarks", "application/json", "", 1 << 30, http.StatusRequestEntityTooLarge},
		{"/api/login", "application/json", "", 1 << 30, http.StatusRequestEntityTooLarge},
		{"/api/v1/query", "application/x-www-form-urlencoded", "gzip", 100, http.StatusUnsupportedMediaType},
	} {
		conn := s.dial(t)
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n", c.path, c.kind, c.encoding, c.size)
		go func() { // ends with the connection
			for piece := []byte("query=" + strings.Repeat("x", 1<<16)); ; {
				if _, err := conn.Write(piece); err != nil {
					return
				}
			}
		}()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s %s: %v", c.path, c.encoding, err)
			continue
		}
		if resp.StatusCode != c.code {
			t.Errorf("%s %s: %d, not %d", c.path, c.encoding, resp.StatusCode, c.code)
		}
	}
}

// TestManyConnections: who opens connections and says nothing, or half of a header, does not keep others from being answered.
func TestManyConnections(t *testing.T) {
	const most = 20
	s := newSiteOf(t, true, func(o *Options) { o.Limits = config.Limits{Connections: most} })
	var idle []net.Conn
	for i := range 10 * most {
		c := s.dial(t)
		if i%2 == 0 {
			if _, err := io.WriteString(c, "GET /api/fleet HTTP/1.1\r\nHost: loc"); err != nil {
				t.Fatal(err)
			}
		}
		idle = append(idle, c)
		if i%10 == 0 {
			if code, body := s.get(t, "/api/fleet"); code != http.StatusOK {
				t.Fatalf("beside %d connections: got %d %s, want http.StatusOK", i, code, body)
			}
			http.DefaultClient.CloseIdleConnections()
		}
	}
	if code, _ := s.get(t, "/api/fleet"); code != http.StatusOK {
		t.Errorf("got %v, want http.StatusOK", code)
	}
	for _, c := range idle[:len(idle)-most] {
		ended(t, c)
	}
}

// TestSlowReadersEnd: a client that asks for something and does not read it is disconnected, and holds neither a place nor memory meanwhile.
func TestSlowReadersEnd(t *testing.T) {
	const limit = 300 * time.Millisecond
	s := newSiteOf(t, true, func(o *Options) { o.Limits = config.Limits{Write: limit, AtOnce: 1, Wait: time.Minute} })
	// 12 MB, more than the sockets take by themselves: a thousand series with long labels.
	long := `count_values("n",vector(time()))`
	for _, label := range []string{"x", "y", "z"} {
		long = `label_replace(` + long + `,"` + label + `","` + strings.Repeat(label, 4000) + `","","")`
	}
	query := "/api/v1/query_range?" + url.Values{"query": {long}, "start": {"0"}, "end": {"1000"}, "step": {"1"}}.Encode()
	var slow []net.Conn
	for range 5 {
		c := s.dial(t)
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", query)
		slow = append(slow, c)
	}
	if code, body := s.get(t, "/api/v1/query?query=1"); code != http.StatusOK { // one place, and it is free
		t.Errorf("beside slow readers: got %d %s, want http.StatusOK", code, body)
	}
	for _, c := range slow {
		// The first byte is sent after the time began.
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * limit)
	for _, c := range slow {
		if got := ended(t, c); len(got) > 10_000_000 {
			t.Errorf("all %d bytes were sent to who did not read them in time, want at most 10_000_000", len(got))
		}
	}
}

// TestQueueIsShort: a client that finds no place in time is told to come again, in the form of the API that was asked.
func TestQueueIsShort(t *testing.T) {
	g := newGate(withDefaults(config.Limits{AtOnce: 1, Wait: 10 * time.Millisecond}))
	s := &server{gate: g}
	hold := make(chan struct{})
	began := make(chan struct{})
	go func() {
		_ = s.gate.run(t.Context(), g.promql, func(context.Context) error { close(began); <-hold; return nil })
	}()
	<-began
	for _, fail := range []func(http.ResponseWriter, error){writeError, writePromError} {
		w := httptest.NewRecorder()
		s.question(g.promql, fail, func(*http.Request, *answer) error { t.Error("it was worked on"); return nil }).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "as many questions") {
			t.Errorf("got %d %v %s; want w.Code http.StatusServiceUnavailable, Get(\"Retry-After\") not \"\", \"as many questions\" in it",
				w.Code, w.Header(), w.Body)
		}
	}
	close(hold)
}
