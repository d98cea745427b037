package fence

import (
	"io"
	"net"
	"testing"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestConnect: connections that are dropped while they are being made, as by another process that fences the server, are made again; but not for ever.
func TestConnect(t *testing.T) {
	n := sandboxtest.Lend(t, "mariadb")
	for _, c := range []struct {
		name  string
		drops int
	}{{"some", 3}, {"all", 10 * connectTries}} {
		t.Run(c.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan int)
			go func() { ended <- relay(l, n.Socket, c.drops) }()
			target, err := mysql.ParseTarget("root@tcp(" + l.Addr().String() + ")/")
			if err != nil {
				t.Fatal(err)
			}
			r, err := Fence(t.Context(), target, Options{Epoch: 1, Limit: plenty})
			if c.drops > connectTries {
				if mysql.ClassOf(err) != mysql.ClassDropped {
					t.Errorf("got %v, want that the connection was dropped", err)
				}
			} else if err != nil || !r.Closed {
				t.Errorf("got %+v, %v, want that it is closed", r, err)
			}
			_ = l.Close()
			if dropped := <-ended; dropped != min(c.drops, connectTries) {
				t.Errorf("%d connections were dropped, want %d", dropped, min(c.drops, connectTries))
			}
		})
	}
}

// relay drops the first connections, and passes the others to a socket, until l is closed.
func relay(l net.Listener, socket string, drops int) (dropped int) {
	for {
		client, err := l.Accept()
		if err != nil {
			return dropped
		}
		if dropped < drops {
			dropped++
			_ = client.Close()
			continue
		}
		server, err := net.Dial("unix", socket)
		if err != nil {
			_ = client.Close()
			continue
		}
		go pass(client, server)
		go pass(server, client)
	}
}

func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
}
