package drive

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// The ways in which a session's bytes reach its server. Figures of one are not comparable with those of the other: Go's
// network poller costs the client about twice the processor time.
const (
	TransportRaw     = "raw"     // plain system calls
	TransportLibrary = "library" // Go's network library; for TLS
)

// Transport reports how a session reaches its server.
func Transport(s Session) string {
	if l, ok := s.(interface{ transport() string }); ok {
		return l.transport()
	}
	return TransportRaw
}

// link carries the bytes of a session. Its errors are ErrLost and ErrStopped.
type link interface {
	io.ReadWriter // a write sends all it gets
	close() error
	SetPatience(d time.Duration)
	transport() string
}

func (s *socket) transport() string { return TransportRaw }

// netLink is a connection of Go's net package, for TLS.
type netLink struct {
	conn     net.Conn
	stop     *Stop
	patience time.Duration
}

func (w *netLink) transport() string           { return TransportLibrary }
func (w *netLink) SetPatience(d time.Duration) { w.patience = d }
func (w *netLink) close() error                { return w.conn.Close() }

// Write sends all of b. A write of TLS that timed out cannot be tried again.
func (w *netLink) Write(b []byte) (int, error) {
	err := w.conn.SetWriteDeadline(time.Now().Add(w.patience))
	n := 0
	if err == nil {
		n, err = w.conn.Write(b)
	}
	if err != nil {
		return n, fmt.Errorf("%w: %w", ErrLost, err)
	}
	return n, nil
}

func (w *netLink) Read(b []byte) (int, error) {
	helper := socket{stop: w.stop, patience: w.patience}
	var began time.Time
	for {
		err := w.conn.SetReadDeadline(time.Now().Add(glance))
		n := 0
		if err == nil {
			n, err = w.conn.Read(b)
		}
		switch {
		case n > 0:
			return n, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			if err := helper.again(syscall.EAGAIN, &began); err != nil {
				return 0, err
			}
		case err != nil:
			return 0, fmt.Errorf("%w: %w", ErrLost, err)
		}
	}
}
