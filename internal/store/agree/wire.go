package agree

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rissodb/risso/internal/store/state"
)

// The protocols that controllers speak at one port, chosen when a connection is made.
const (
	protocolRaft = "risso-raft-1"
	protocolHTTP = "http/1.1"
)

// greetTime is how long a connection may take to say who is there.
const greetTime = 5 * time.Second

// Dialer connects to an address.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// wire takes connections of other controllers and makes connections to them. Both sides show a certificate of the controllers' authority.
type wire struct {
	net.Listener
	keys    keys
	address string
	removed func(fingerprint string) bool
	dialer  Dialer
	logger  *slog.Logger

	raft, http chan net.Conn
	done       chan struct{}
	end        sync.Once
}

func listen(f Folder, removed func(string) bool, dialer Dialer, logger *slog.Logger) (*wire, error) {
	k, err := f.keys()
	if err != nil {
		return nil, err
	}
	at := f.Listen
	if at == "" {
		at = f.Address
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, fmt.Errorf("listen for other controllers: %w", err)
	}
	w := &wire{Listener: l, keys: k, address: f.Address, removed: removed, dialer: dialer, logger: logger, raft: make(chan net.Conn), http: make(chan net.Conn), done: make(chan struct{})}
	go w.accept()
	return w, nil
}

// config is TLS as both sides want it. Its time stands still: clocks that are wrong separate no controllers.
func (w *wire) config(protocol ...string) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{w.keys.cert}, RootCAs: w.keys.pool, ClientCAs: w.keys.pool, ClientAuth: tls.RequireAndVerifyClientCert,
		ServerName: serverName, NextProtos: protocol, MinVersion: tls.VersionTLS13, Time: func() time.Time { return alwaysFrom.AddDate(1, 0, 0) },
		SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if w.removed(fingerprint(s.PeerCertificates[0].Raw)) {
				return fmt.Errorf("controller %s was removed", s.PeerCertificates[0].Subject.CommonName)
			}
			return nil
		}}
}

// accept hands connections to whom they are for, until the listener is closed.
func (w *wire) accept() {
	for {
		c, err := w.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(50 * time.Millisecond) // too many open files, and the like
			continue
		}
		go func() {
			t := tls.Server(c, w.config(protocolRaft, protocolHTTP))
			ctx, cancel := context.WithTimeout(context.Background(), greetTime)
			defer cancel()
			if err := t.HandshakeContext(ctx); err != nil {
				w.logger.Debug("a connection to the controllers' port was refused", "from", c.RemoteAddr(), "err", err)
				c.Close()
				return
			}
			to := w.http
			if t.ConnectionState().NegotiatedProtocol == protocolRaft {
				to = w.raft
			}
			select {
			case to <- t:
			case <-w.done:
				c.Close()
			case <-ctx.Done(): // nobody takes it yet
				c.Close()
			}
		}()
	}
}

// Close ends listening.
func (w *wire) Close() error {
	w.end.Do(func() { close(w.done) })
	return w.Listener.Close()
}

// dial connects to another controller.
func (w *wire) dial(ctx context.Context, address, protocol string) (net.Conn, error) {
	c, err := w.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	t := tls.Client(c, w.config(protocol))
	if err := t.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return t, nil
}

// stream is the part of a wire that Raft uses.
type stream struct{ *wire }

// Accept waits for a connection.
func (s stream) Accept() (net.Conn, error) { return take(s.wire.raft, s.done) }

// Addr is where others reach this controller.
func (s stream) Addr() net.Addr { return addr(s.address) }

// Dial connects to another controller.
func (s stream) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.dial(ctx, string(address), protocolRaft)
}

// questions is the part of a wire on which HTTP is spoken.
type questions struct{ *wire }

// Accept waits for a connection.
func (q questions) Accept() (net.Conn, error) { return take(q.wire.http, q.done) }

func take(c chan net.Conn, done chan struct{}) (net.Conn, error) {
	select {
	case conn := <-c:
		return conn, nil
	case <-done:
		return nil, net.ErrClosed
	}
}

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

// client asks other controllers over HTTP.
func (w *wire) client(dialTime time.Duration) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTime)
			defer cancel()
			c, err := w.dial(ctx, address, protocolHTTP)
			if err != nil { // whatever it was: nothing was asked yet
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
			}
			return c, nil
		}}}
}

// asker asks the controller at an address. Connections are TLS already, so that URLs say http.
func asker(c *http.Client, address string) state.Asker {
	return state.Asker{Client: c, Base: "http://" + address, Away: state.ErrNoLeader}
}
