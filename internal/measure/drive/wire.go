package drive

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// wire carries the bytes of a session.
type wire interface {
	write(b []byte) error
	read(b []byte) (int, error)
	close() error
	SetPatience(d time.Duration)
	transport() string
}

func (s *socket) transport() string { return TransportRaw }

// netWire is a connection of Go's net package, for TLS.
type netWire struct {
	conn     net.Conn
	stop     *Stop
	patience time.Duration
}

func (w *netWire) transport() string           { return TransportLibrary }
func (w *netWire) SetPatience(d time.Duration) { w.patience = d }
func (w *netWire) close() error                { return w.conn.Close() }

// write sends all of b. A write of TLS that timed out cannot be tried again.
func (w *netWire) write(b []byte) error {
	err := w.conn.SetWriteDeadline(time.Now().Add(w.patience))
	if err == nil {
		_, err = w.conn.Write(b)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return nil
}

func (w *netWire) read(b []byte) (int, error) {
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
