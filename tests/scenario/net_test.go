package scenario_test

import (
	"context"
	"database/sql"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// proxy passes TCP connections on to a server that can be exchanged.
type proxy struct {
	addr string

	mu    sync.Mutex
	next  string
	conns []net.Conn    // the client's, and the server's, in turns
	late  time.Duration // how much later than the client's end the server hears of it
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: ln.Addr().String(), next: to}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return // the listener was closed
			}
			wg.Go(func() { p.pass(c) })
		}
	})
	t.Cleanup(func() { ln.Close(); p.to(""); wg.Wait() })
	return p
}

// to sends new connections to another server and cuts the old ones.
func (p *proxy) to(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = addr
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// hangUp cuts the connections of clients. The server hears of it later, and counts them until then.
func (p *proxy) hangUp(late time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = late
	for i := 0; i < len(p.conns); i += 2 {
		p.conns[i].Close()
	}
}

// lateness is how long the server does not hear of a client's end.
func (p *proxy) lateness() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.late
}

func (p *proxy) pass(c net.Conn) {
	defer c.Close()
	p.mu.Lock()
	addr := p.next
	p.mu.Unlock()
	s, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer s.Close()
	p.mu.Lock()
	if addr != p.next {
		p.mu.Unlock()
		return
	}
	p.conns = append(p.conns, c, s)
	p.mu.Unlock()
	done := make(chan struct{})
	go func() { defer close(done); io.Copy(s, c); time.Sleep(p.lateness()); s.Close() }()
	io.Copy(c, s)
	c.Close()
	<-done
}

// blackHole accepts connections and never says a word.
func blackHole(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var conns []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		<-done
		for _, c := range conns {
			c.Close()
		}
	})
	return ln.Addr().String()
}

// occupy keeps a statement running on a connection, until the function that it returns is called.
func occupy(t *testing.T, c *mysql.Config) (stop func()) {
	t.Helper()
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_, _ = db.ExecContext(ctx, "DO SLEEP(60)") // it ends with ctx, or with the server
		}
	}()
	return func() { cancel(); <-done; db.Close() }
}
