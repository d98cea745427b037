package web

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/publish"
)

// TestClientsWithoutToken: checks of load balancers are answered without a token and a Host header, addresses without a token to names that Risso has;
// all members of a group are told with a token only.
func TestClientsWithoutToken(t *testing.T) {
	b := publish.NewBoard()
	now := time.Now()
	b.Tell(group.View{Group: "shop", Epoch: 3, Primary: &group.Server{Name: "db1", Address: "10.0.0.1:3306"}, Since: now, Seen: now}, []group.Member{{Name: "db1"}, {Name: "db2"}})
	s := newSiteOf(t, false, func(o *Options) {
		o.Hosts = []string{"risso.example"}
		o.Clients, o.Views = publish.NewDesk(b, time.Hour), b
	})
	for _, c := range []struct{ request, want, says string }{
		{"GET /primary/db1 HTTP/1.0\r\n", "200 OK", "db1 is the primary of shop"},
		{"OPTIONS /primary/db2 HTTP/1.0\r\n", "409 ", "is not the primary"},
		{"GET /group/shop HTTP/1.0\r\n", "200 OK", "known"},
		{"GET /primary HTTP/1.0\r\n", "403 ", "does not answer to that name"},
		{"GET /primary HTTP/1.1\r\nHost: rebound.example\r\n", "403 ", "does not answer to that name"},
		{"GET /primary HTTP/1.1\r\nHost: risso.example\r\n", "200 OK", `"address":"10.0.0.1:3306"`},
		{"OPTIONS /primary HTTP/1.1\r\nHost: 10.0.0.9:8306\r\n", "200 OK", `"epoch":3`},
		{"GET /api/view?group=shop HTTP/1.1\r\nHost: risso.example\r\n", "200 OK", `"epoch":3`},
		{"GET /replicas HTTP/1.1\r\nHost: risso.example\r\n", "503 ", "no replica of shop"},
		{"POST /primary HTTP/1.1\r\nHost: risso.example\r\nContent-Length: 0\r\n", "405 ", "ask by GET"},
		{"GET /api/clients?group=shop HTTP/1.1\r\nHost: risso.example\r\n", "401 ", ""},
		{"GET /primary/../api/fleet HTTP/1.0\r\n", "", ""},
	} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, c.request+"Connection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		conn.Close()
		if !strings.HasPrefix(resp.Status, c.want) || !strings.Contains(string(body), c.says) || strings.Contains(string(body), "instances") {
			t.Errorf("%q: got %s %q, want %s with %q", c.request, resp.Status, body, c.want, c.says)
		}
	}
}
