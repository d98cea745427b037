package web

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/serve/config"
)

// Serve answers on a listener, with bounds on connections, headers and pauses, until ctx ends. handler is what New made of
// the same limits.
func Serve(ctx context.Context, ln net.Listener, handler http.Handler, limits config.Limits, logger *slog.Logger) error {
	limits = withDefaults(limits)
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		ErrorLog:    slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(newBoundListener(ln, limits.Connections)) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	err := srv.Shutdown(sctx)
	if err != nil { // a client that does not let go must not hold us
		err = srv.Close()
	}
	<-done
	return err
}

// connKey is where the context of a request has its connection.
type connKey struct{}

// boundListener keeps the number of open connections within a bound. When there is one too many, the one that has waited
// longest without a request at work goes: slow senders and sleepers make room for clients with requests.
type boundListener struct {
	net.Listener
	most int

	mu    sync.Mutex
	conns map[*boundConn]struct{}
}

func newBoundListener(ln net.Listener, most int) *boundListener {
	return &boundListener{Listener: ln, most: most, conns: map[*boundConn]struct{}{}}
}

// boundConn is a connection that may be closed for another one's sake.
type boundConn struct {
	net.Conn
	l     *boundListener
	since time.Time // it waits for a request
	busy  int       // requests at work; those on HTTP/1 are one at a time
}

// refused is the answer to a client that comes when all connections are at work.
const refused = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: " + retryAfter + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

// Accept implements net.Listener.
func (l *boundListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		b := &boundConn{Conn: c, l: l, since: time.Now()}
		victim, ok := l.enter(b)
		if victim != nil {
			_ = victim.Close() // it is useless now, whatever Close returns
		}
		if ok {
			return b, nil
		}
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(c, refused) // fits into the empty buffer of the socket
		_ = c.Close()
	}
}

// enter notes a connection, and names the one that has to go for it; false when none can.
func (l *boundListener) enter(b *boundConn) (victim *boundConn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) >= l.most {
		for c := range l.conns {
			if c.busy == 0 && (victim == nil || c.since.Before(victim.since)) {
				victim = c
			}
		}
		if victim == nil {
			return nil, false
		}
		delete(l.conns, victim)
	}
	l.conns[b] = struct{}{}
	return victim, true
}

// Close implements net.Conn.
func (c *boundConn) Close() error {
	c.l.mu.Lock()
	delete(c.l.conns, c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// serving notes that a request is at work until the function that it returns is called.
func (c *boundConn) serving() (done func()) {
	note := func(n int) {
		c.l.mu.Lock()
		defer c.l.mu.Unlock()
		c.busy += n
		c.since = time.Now()
	}
	note(1)
	return func() { note(-1) }
}
