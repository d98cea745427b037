package names

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/delay"
)

// What bounds connections over TCP.
const (
	mostConns = 64
	connTime  = 10 * time.Second // for a question to come whole, and an answer to go
)

// Serve answers questions that come by packets and over connections, until ctx ends. It closes both.
func (s *Server) Serve(ctx context.Context, packets net.PacketConn, conns net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		<-ctx.Done()
		packets.Close()
		conns.Close()
	})
	var failed error
	wg.Go(func() {
		defer cancel()
		failed = s.byPackets(ctx, packets)
	})
	err := s.byConns(ctx, conns)
	cancel()
	wg.Wait()
	if err = errors.Join(failed, err); errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (s *Server) byPackets(ctx context.Context, c net.PacketConn) error {
	buf := make([]byte, tcpSize)
	for {
		n, from, err := c.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return net.ErrClosed
		}
		if err != nil { // such as that an earlier answer came to nobody
			if err := delay.For(ctx, time.Millisecond); err != nil {
				return net.ErrClosed
			}
			continue
		}
		if out := s.Answer(buf[:n], false); out != nil {
			_, _ = c.WriteTo(out, from) // who does not get it asks again
		}
	}
}

func (s *Server) byConns(ctx context.Context, ln net.Listener) error {
	places := make(chan struct{}, mostConns)
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		c, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return net.ErrClosed
		}
		if err != nil { // no descriptors
			if err := delay.For(ctx, 10*time.Millisecond); err != nil {
				return net.ErrClosed
			}
			continue
		}
		select {
		case places <- struct{}{}:
		default:
			c.Close()
			continue
		}
		wg.Go(func() {
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer func() { stop(); c.Close(); <-places }()
			for s.byConn(c) == nil {
			}
		})
	}
}

// byConn answers one question of a connection.
func (s *Server) byConn(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(connTime)); err != nil {
		return err
	}
	var length [2]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return err
	}
	packet := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(c, packet); err != nil {
		return err
	}
	out := s.Answer(packet, true)
	if out == nil {
		return errNoQuestion
	}
	_, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
	return err
}
