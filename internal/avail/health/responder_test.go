package health

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// serving is the address of a responder for a prober, until the test ends.
func serving(t *testing.T, p *Prober, base Question) string {
	t.Helper()
	return servingBy(t, NewResponder(p, base))
}

func servingBy(t *testing.T, r *Responder) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Serve(ctx, ln.(*net.TCPListener)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the responder ended: %v", err)
		}
	})
	return ln.Addr().String()
}

// fresh is a prober that has just seen a synced node, and looks no more.
func fresh() *Prober {
	p := NewProber(mysql.Target{}, time.Minute, time.Hour, nil)
	p.seen.Store(&Seen{Began: time.Now(), Health: read.Health{Galera: &read.GaleraHealth{State: 4, Primary: true, Ready: true, On: true}}})
	p.channels.Store(&Channels{Began: time.Now()})
	return p
}

// raw sends pieces of a request with a pause between, and returns all that comes back.
func raw(t *testing.T, address string, pieces ...string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, p := range pieces {
		if i > 0 {
			time.Sleep(20 * time.Millisecond)
		}
		if _, err := io.WriteString(c, p); err != nil {
			break // closed already: what it said is read
		}
	}
	got, _ := io.ReadAll(c) // a reset after the answer is none of our business
	return string(got)
}

// TestResponder: requests as load balancers send them, whole and in pieces, and answers as clustercheck writes them.
func TestResponder(t *testing.T) {
	address := serving(t, fresh(), Question{})
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: 40\r\n"
	const body = "\r\n\r\nPercona XtraDB Cluster Node is synced.\r\n"
	for _, c := range []struct {
		name        string
		pieces      []string
		begin, ends string
	}{
		{"HAProxy 1.x and 2.x", []string{"OPTIONS / HTTP/1.0\r\n\r\n"}, ok, body},
		{"HTTP/1.1", []string{"GET / HTTP/1.1\r\nHost: db1\r\nUser-Agent: x\r\n\r\n"}, ok, body},
		{"any asterisk", []string{"OPTIONS * HTTP/1.1\r\nHost: db1\r\n\r\n"}, ok, body},
		{"HEAD", []string{"HEAD / HTTP/1.1\r\nHost: db1\r\n\r\n"}, ok, "ms\r\n\r\n"},
		{"in pieces", []string{"OPT", "IONS / HTTP/1.0\r", "\n\r", "\n"}, ok, body},
		{"LF alone", []string{"GET / HTTP/1.0\n\n"}, ok, body},
		{"LF alone, in pieces", []string{"GET / HTTP/1.1\nHost: db1\n", "\n"}, ok, body},
		{"both", []string{"GET / HTTP/1.1\r\nHost: db1\n\r\n"}, ok, body},
		{"with the host", []string{"GET http://db1:9200/galera HTTP/1.1\r\nHost: db1\r\n\r\n"}, ok, body},
		{"with the host alone", []string{"GET HTTP://db1 HTTP/1.1\r\nHost: db1\r\n\r\n"}, ok, body},
		{"with the host and a query", []string{"GET http://db1?available-when-donor=1 HTTP/1.1\r\n\r\n"}, ok, body},
		{"another scheme", []string{"GET ftp://db1/ HTTP/1.1\r\n\r\n"}, "HTTP/1.1 400 Bad Request\r\n", ".\r\n"},
		{"an unknown option", []string{"GET /replica?maxlag=5 HTTP/1.0\r\n\r\n"}, "HTTP/1.1 400 Bad Request\r\n", "max-lag and output.\r\n"},
		{"a replica", []string{"GET /replica HTTP/1.0\r\n\r\n"}, "HTTP/1.1 503 Service Unavailable\r\n", "The server is no replica.\r\n"},
		{"POST", []string{"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\n"}, "HTTP/1.1 405 Method Not Allowed\r\n", "OPTIONS.\r\n"},
		{"an unknown question", []string{"GET /nosuch HTTP/1.0\r\n\r\n"}, "HTTP/1.1 400 Bad Request\r\n", ".\r\n"},
		{"no HTTP", []string{"\x16\x03\x01\r\n\r\n"}, "HTTP/1.1 400 Bad Request\r\n", ".\r\n"},
		{"JSON", []string{"GET /up?output=json HTTP/1.0\r\n\r\n"}, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n", "}\n"},
		{"a request that never ends", []string{"GET / HTTP/1.0\r\nX: " + strings.Repeat("x", maxRequest)}, "", ""},
	} {
		got := raw(t, address, c.pieces...)
		if !strings.HasPrefix(got, c.begin) || !strings.HasSuffix(got, c.ends) || c.begin == "" && got != "" {
			t.Errorf("%s: got %q, want %q … %q", c.name, got, c.begin, c.ends)
		}
	}
	if got := raw(t, address, "GET / HTTP/1.0\r\n\r\n"); !strings.Contains(got, "\r\nAge: 0\r\n") || !strings.Contains(got, "\r\nRisso-Age: ") {
		t.Errorf("got %q, want its age", got)
	}
}

// TestManyDifferent: strangers who ask for ever other things fill no memory.
func TestManyDifferent(t *testing.T) {
	r := NewResponder(fresh(), Question{})
	for i := range 10 * maxAsked {
		line := "GET /" + strings.Repeat("x", i%100) + strings.Repeat("y", i/100) + " HTTP/1.0"
		if got := r.answer([]byte(line), time.Now()); !bytes.HasPrefix(got, []byte("HTTP/1.1 ")) {
			t.Fatalf("%s: got %q", line, got)
		}
	}
	if len(r.asked) > maxAsked {
		t.Errorf("%d requests are remembered, want at most %d", len(r.asked), maxAsked)
	}
}

// TestSilent: connections that ask nothing are closed, and keep nobody from an answer.
func TestSilent(t *testing.T) {
	address := serving(t, fresh(), Question{})
	var silent []net.Conn
	for range 100 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET"); err != nil { // the kernel hands it over
			t.Fatal(err)
		}
		silent = append(silent, c)
	}
	if got := raw(t, address, "GET / HTTP/1.0\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("beside 100 silent connections: got %q, want 200", got)
	}
	for _, c := range silent {
		if got, _ := io.ReadAll(c); len(got) > 0 {
			t.Fatalf("a silent connection was told %q, want nothing", got)
		}
	}
}

// TestCrowded: where no more connections may wait, the oldest makes room, and whoever asks is answered.
func TestCrowded(t *testing.T) {
	r := NewResponder(fresh(), Question{})
	r.most = 3
	address := servingBy(t, r)
	var slow []net.Conn
	for range 10 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET / HTTP/1.0\r\n"); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, c)
		if got := raw(t, address, "GET / HTTP/1.0\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200") {
			t.Fatalf("beside %d slow clients: got %q, want 200", len(slow), got)
		}
	}
	for i, c := range slow {
		_, _ = io.WriteString(c, "\r\n") // one that is closed refuses it
		got, _ := io.ReadAll(c)
		if want := i >= len(slow)-r.most; strings.HasPrefix(string(got), "HTTP/1.1 200") != want {
			t.Errorf("slow client %d of %d: got %q; want an answer: %v", i+1, len(slow), got, want)
		}
	}
}

// TestHandler: net/http gives the same answers.
func TestHandler(t *testing.T) {
	p := fresh()
	address := serving(t, p, Question{})
	h := Handler(Question{}, func(r *http.Request) (*Prober, string) {
		if r.Host == "other" {
			return nil, ""
		}
		return p, r.URL.RequestURI()
	})
	for _, target := range []string{"/", "/up", "/primary", "/replica", "/nosuch", "/?output=xml"} {
		for _, method := range []string{"GET", "OPTIONS", "HEAD", "POST"} {
			r := httptest.NewRecorder()
			h.ServeHTTP(r, httptest.NewRequest(method, target, nil))
			own, err := http.NewRequest(method, "http://"+address+target, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := http.DefaultClient.Do(own)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(got.Body)
			got.Body.Close()
			if got.StatusCode != r.Code || string(text) != r.Body.String() || got.Header.Get("Content-Type") != r.Header().Get("Content-Type") || got.Header.Get("Allow") != r.Header().Get("Allow") {
				t.Errorf("%s %s: the responder says %d %q, the handler %d %q", method, target, got.StatusCode, text, r.Code, r.Body)
			}
		}
	}
	r := httptest.NewRecorder()
	req := httptest.NewRequest("GET", "/", nil)
	req.Host = "other"
	h.ServeHTTP(r, req)
	if r.Code != http.StatusNotFound {
		t.Errorf("a server that is not there: got %d, want 404", r.Code)
	}
}
