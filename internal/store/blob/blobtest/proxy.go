package blobtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// HTTPProxy is a proxy before an HTTP server that lets a test disturb what passes.
type HTTPProxy struct {
	Addr string
	// Requests counts what passed, by "METHOD" and by "METHOD what" with what as in kind.
	mu       sync.Mutex
	counts   map[string]int
	headers  []http.Header
	disturb  func(w http.ResponseWriter, r *http.Request, pass http.Handler)
	Uploaded atomic.Int64 // bytes of bodies of requests that were passed on
}

// NewHTTPProxy starts one for a test.
func NewHTTPProxy(t testing.TB, target string) *HTTPProxy {
	p := &HTTPProxy{counts: map[string]int{}}
	back := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: target})
	back.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	back.Transport = &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 32}
	pass := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = &counted{r.Body, &p.Uploaded}
		back.ServeHTTP(w, r)
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.counts[Kind(r)]++
		p.headers = append(p.headers, r.Header.Clone())
		disturb := p.disturb
		p.mu.Unlock()
		if disturb != nil {
			disturb(w, r, pass)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = nil
	t.Cleanup(s.Close)
	p.Addr = strings.TrimPrefix(s.URL, "http://")
	return p
}

// Kind is what a request of S3 is about.
func Kind(r *http.Request) string {
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodPost && q.Has("uploads"):
		return "begin upload"
	case r.Method == http.MethodPost && q.Has("uploadId"):
		return "complete upload"
	case r.Method == http.MethodPut && q.Has("partNumber"):
		return "put part"
	case r.Method == http.MethodGet && q.Has("uploads"):
		return "list uploads"
	case r.Method == http.MethodGet && q.Has("uploadId"):
		return "list parts"
	case r.Method == http.MethodGet && q.Has("list-type"):
		return "list"
	case r.Method == http.MethodDelete && q.Has("uploadId"):
		return "abort upload"
	}
	return strings.ToLower(r.Method)
}

// Disturb sets what happens to requests from now on; nil: nothing. f calls pass to let one through.
func (p *HTTPProxy) Disturb(f func(w http.ResponseWriter, r *http.Request, pass http.Handler)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.disturb = f
}

// Count is how many requests of a kind came.
func (p *HTTPProxy) Count(kind string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[kind]
}

// Headers are those of all requests so far.
func (p *HTTPProxy) Headers() []http.Header {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.headers
}

// Times disturbs the first n requests of a kind and lets the others pass.
func Times(n int, kind string, disturb func(w http.ResponseWriter, r *http.Request, pass http.Handler)) func(http.ResponseWriter, *http.Request, http.Handler) {
	var seen atomic.Int64
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if Kind(r) == kind && seen.Add(1) <= int64(n) {
			disturb(w, r, pass)
			return
		}
		pass.ServeHTTP(w, r)
	}
}

// Cut passes the first n bytes of the answer's body and then breaks the connection.
func Cut(n int64) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		pass.ServeHTTP(&cutWriter{ResponseWriter: w, left: n}, r)
		panic(http.ErrAbortHandler)
	}
}

type cutWriter struct {
	http.ResponseWriter
	left int64
}

func (c *cutWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > c.left {
		n, _ := c.ResponseWriter.Write(p[:c.left])
		c.left = 0
		if f, ok := c.ResponseWriter.(http.Flusher); ok {
			f.Flush()
		}
		return n, errors.New("cut")
	}
	c.left -= int64(len(p))
	return c.ResponseWriter.Write(p)
}

// CutRequest reads n bytes of the request's body and then breaks the connection; nothing reaches the server.
func CutRequest(n int64) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = io.CopyN(io.Discard, r.Body, n)
		panic(http.ErrAbortHandler)
	}
}

// LoseAnswer lets the request through and breaks the connection instead of answering.
func LoseAnswer(_ http.ResponseWriter, r *http.Request, pass http.Handler) {
	pass.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// FlipRequest changes one bit of the request's body, at a byte.
func FlipRequest(at int64) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		r.Body = &flipper{ReadCloser: r.Body, at: at}
		pass.ServeHTTP(w, r)
	}
}

type flipper struct {
	io.ReadCloser
	at int64
}

func (f *flipper) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if f.at >= 0 && f.at < int64(n) {
		p[f.at] ^= 4
	}
	f.at -= int64(n)
	return n, err
}

// LosePart says that a part was stored, and does not pass it on.
func LosePart(w http.ResponseWriter, r *http.Request, _ http.Handler) {
	n, _ := io.Copy(io.Discard, r.Body)
	w.Header().Set("ETag", fmt.Sprintf(`"%032x"`, n))
	w.WriteHeader(http.StatusOK)
}

type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// TCPProxy is a proxy before any server that breaks connections on demand.
type TCPProxy struct {
	Addr     string
	CutAfter atomic.Int64 // a connection breaks when that many bytes passed from now on; 0: none does
	Cuts     atomic.Int64 // how many broke so
	Refuse   atomic.Bool  // new connections are closed immediately
	passed   atomic.Int64

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// NewTCPProxy starts one for a test.
func NewTCPProxy(t testing.TB, target string) *TCPProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &TCPProxy{Addr: l.Addr().String(), conns: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Add(1)
	go func() {
		defer all.Done()
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			if p.Refuse.Load() {
				in.Close()
				continue
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				in.Close()
				continue
			}
			p.mu.Lock()
			p.conns[in] = true
			p.mu.Unlock()
			all.Add(2)
			go func() { defer all.Done(); p.pump(in, out) }()
			go func() { defer all.Done(); p.pump(out, in) }()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		p.CutAll()
		all.Wait()
	})
	return p
}

// CutAll breaks all connections.
func (p *TCPProxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

func (p *TCPProxy) pump(dst, src net.Conn) {
	defer dst.Close()
	defer src.Close()
	buf := make([]byte, 16<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if limit := p.CutAfter.Load(); limit > 0 && p.passed.Add(int64(n)) > limit {
				p.passed.Store(0)
				p.Cuts.Add(1)
				return
			}
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
