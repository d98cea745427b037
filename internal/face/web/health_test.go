package web

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestHealthWithoutToken: a load balancer comes without a token, and by HTTP/1.0 without a Host; nothing else opens for it.
func TestHealthWithoutToken(t *testing.T) {
	s := newSiteOf(t, false, func(o *Options) {
		o.Hosts = []string{"risso.example"}
		o.Health = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "asked "+r.URL.Path) })
	})
	for path, want := range map[string]string{"/health/db1/primary": "200 OK asked /health/db1/primary", "/healthz": "403 Forbidden", "/api/fleet": "403 Forbidden",
		"/health/../api/fleet": "", "/healthy/": "403 Forbidden"} {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET "+path+" HTTP/1.0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		c.Close()
		if got := resp.Status + " " + string(body); !strings.HasPrefix(got, want) || strings.Contains(got, "instances") {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
