package route

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
)

// take accepts the clients of a door until ctx ends. life is that of their connections.
func (r *Router) take(ctx, life context.Context, door int) {
	wait := time.Duration(0)
	for {
		c, err := r.o.Doors[door].Listener.Accept()
		if err == nil {
			wait = 0
			r.enter(ctx, life, door, c)
			continue
		}
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return
		}
		// Such as too many open files: those that wait stay in the kernel.
		if wait == 0 {
			r.say("accept: %v", err)
		}
		wait = min(max(2*wait, 5*time.Millisecond), time.Second)
		if delay.For(ctx, wait) != nil {
			return
		}
	}
}

// enter lets a client in, if there is room.
func (r *Router) enter(ctx, life context.Context, door int, c net.Conn) {
	r.mu.Lock()
	r.doors[door].taken++
	full := r.open >= r.most
	if full {
		r.doors[door].refused++
	} else {
		r.open++
	}
	r.mu.Unlock()
	if full {
		// A new socket's buffer takes it without waiting.
		_ = c.SetWriteDeadline(time.Now().Add(time.Millisecond))
		_, _ = c.Write(refusal(errTooMany, fmt.Sprintf("risso route has %s already, as many as its limit of open files allows", digits.Counted(r.most, "client"))))
		_ = c.Close()
		return
	}
	r.everyone.Go(func() {
		if !r.lead(ctx, life, door, c) {
			_ = c.Close()
			r.mu.Lock()
			r.open--
			r.mu.Unlock()
		}
	})
}

// lead brings a client to a server. It is false if that is over without one.
func (r *Router) lead(ctx, life context.Context, door int, c net.Conn) bool {
	from, to := addrPort(c.RemoteAddr()), addrPort(c.LocalAddr())
	if slices.ContainsFunc(r.o.Trusted, func(p netip.Prefix) bool { return p.Contains(from.Addr()) }) {
		_ = c.SetReadDeadline(time.Now().Add(headerTime))
		said, err := readHeader(c)
		if err != nil {
			r.refuse(door, c, &refused{errNoPlace, "a connection from this address begins with a PROXY header, as --accept-proxy says, and none came"})
			return false
		}
		_ = c.SetReadDeadline(time.Time{})
		if said.IsValid() {
			from = said
		}
	}
	w := waiter{r: r, door: door, c: c}
	defer w.leave()
	end := time.Now().Add(r.o.Hold)
	var last error
	for {
		dctx, cancel := context.WithCancel(life)
		s, choice, changed, ended := r.choose(door, cancel)
		why := choice.Words
		var err error
		switch {
		case ended:
			err = &refused{errNoPlace, "the router ends"}
		case s != nil:
			var done bool
			if done, err = r.attempt(dctx, life, s, c, from, to, changed, end, &w); done {
				cancel()
				return true
			}
		case choice.Refuse:
			err = &refused{errNoPlace, why}
		default:
			_, err = w.waitFor(life, changed, nil, end)
		}
		cancel()
		no := (*refused)(nil)
		switch {
		case errors.Is(err, errGone):
			return false
		case errors.Is(err, errFull):
			no = &refused{errTooMany, fmt.Sprintf("%s wait for a server already", digits.Counted(r.o.MostHeld, "client"))}
		case errors.As(err, &no):
		case err != nil:
			last = err
		}
		if no == nil && !time.Now().Before(end) {
			if why == "" {
				why = "no server took the connection"
				if last != nil {
					why = last.Error()
				}
			}
			no = &refused{errNoPlace, why + "; waited " + digits.Duration(r.o.Hold)}
		}
		if no != nil {
			if w.leave() {
				return false
			}
			r.refuse(door, c, no)
			return false
		}
	}
}

// refused is what a client is told.
type refused struct {
	number uint16
	text   string
}

func (f *refused) Error() string { return f.text }

// Why a client waits no longer.
var (
	errGone = errors.New("the client is gone")
	errFull = errors.New("too many clients wait")
)

// attempt connects a client to a server. Without an error and not done it is to be tried again.
func (r *Router) attempt(ctx, life context.Context, s *setup, c net.Conn, from, to netip.AddrPort, changed <-chan struct{}, end time.Time, w *waiter) (done bool, err error) {
	slots := s.server.slots
	select {
	case slots <- struct{}{}:
	default: // many are on their way there
		got := false
		got, err = w.waitFor(life, changed, slots, end)
		if !got {
			r.failed(life, s, nil)
			return false, err
		}
	}
	free := sync.OnceFunc(func() { <-slots })
	defer free()
	if w.leave() {
		r.failed(life, s, nil)
		return false, errGone
	}
	b, err := r.connect(ctx, s.server.address, r.o.Doors[s.door].Header.write(from, to))
	free()
	switch {
	case err == nil:
		if done, err = r.made(s, from, c, b); err != nil && !errors.Is(err, errGone) {
			_ = delay.For(ctx, ourPause)
		}
		return done, err
	case ctx.Err() != nil: // the view has changed
		r.failed(life, s, nil)
		return false, nil
	case ours(err):
		r.failed(life, s, nil)
		_ = delay.For(ctx, ourPause)
	default:
		r.failed(life, s, err)
		err = fmt.Errorf("%s (%s): %w", s.server.name, s.server.address, err)
	}
	return false, err
}

// ours says that a connection failed by no fault of the server.
func ours(err error) bool {
	return slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM}, func(e error) bool { return errors.Is(err, e) })
}

// connect connects to a server, and returns when it has begun to greet: one that is frozen, or starts, takes connections and says nothing.
func (r *Router) connect(ctx context.Context, address string, header []byte) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Connect)
	defer cancel()
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err = c.Write(header); err == nil {
		err = greeted(c)
	}
	if err != nil || !stop() {
		_ = c.Close()
		if ctx.Err() != nil {
			err = fmt.Errorf("it did not greet within %s", digits.Duration(r.o.Connect))
		}
		return nil, err
	}
	return c, nil
}

// greeted waits for the first byte of a server, and leaves it there.
func greeted(c net.Conn) error {
	n, err := peek(c)
	if err == nil && n == 0 {
		return errors.New("it closed the connection instead of greeting")
	}
	return err
}

// peek waits until there is something to read, and leaves it there; 0: the other side has closed.
func peek(c net.Conn) (n int, err error) {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var b [1]byte
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		n, _, failed = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR)
	})
	return n, errors.Join(err, failed)
}

// detach takes a socket's descriptor out of Go's own epoll set, and bounds how long it may stall.
func detach(c net.Conn) (fd int, err error) {
	defer c.Close()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var dup error
	err = raw.Control(func(own uintptr) { fd, dup = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, dup); err != nil {
		return 0, err
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(stalls/time.Millisecond)) // without it, the kernel's patience
	return fd, nil
}

// refuse tells a client why it gets no server. What it sent is read: else closing would take the packet back.
func (r *Router) refuse(door int, c net.Conn, no *refused) {
	r.count(door, func(d *doorState) { d.refused++ })
	_ = c.SetDeadline(time.Now().Add(refusalTime))
	if _, err := c.Write(refusal(no.number, "risso: "+no.text)); err != nil {
		return
	}
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
	var b [512]byte
	for range 64 { // until it closes, or has said too much
		if _, err := c.Read(b[:]); err != nil {
			return
		}
	}
}

func (r *Router) count(door int, f func(*doorState)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.doors[door])
}

func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		p := t.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return netip.AddrPort{}
}

// waiter is a client that may have to wait.
type waiter struct {
	r    *Router
	door int
	c    net.Conn
	gone chan struct{} // nil: it is not held; closed by the watch
	left bool          // it is gone, or it talks, which no client of MySQL does; known when gone is closed
	was  bool          // it was held before
}

// waitFor waits until something has changed, until end, or for room in slots, which it then has.
func (w *waiter) waitFor(ctx context.Context, changed <-chan struct{}, slots chan<- struct{}, end time.Time) (got bool, err error) {
	if !w.enter() {
		return false, errFull
	}
	t := time.NewTimer(time.Until(end))
	defer t.Stop()
	select {
	case slots <- struct{}{}:
		return true, nil
	case <-changed:
	case <-t.C:
	case <-ctx.Done():
	case <-w.gone:
		w.r.count(w.door, func(d *doorState) { d.gone++ })
		return false, errGone
	}
	return false, nil
}

// enter counts it among those that are held, and begins to watch whether it is still there.
func (w *waiter) enter() bool {
	if w.gone != nil {
		return true
	}
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	if w.r.held >= w.r.o.MostHeld {
		return false
	}
	d := &w.r.doors[w.door]
	w.r.held++
	d.held++
	if !w.was {
		w.was = true
		d.waited++
	}
	w.gone = make(chan struct{})
	go w.watch()
	return true
}

// watch ends when the client does something, or when leave stops it by a deadline.
func (w *waiter) watch() {
	_, err := peek(w.c)
	w.left = !errors.Is(err, os.ErrDeadlineExceeded)
	close(w.gone)
}

// leave ends the wait, if there is one. It is true if the client is gone.
func (w *waiter) leave() (gone bool) {
	if w.gone == nil {
		return false
	}
	_ = w.c.SetReadDeadline(time.Unix(1, 0))
	<-w.gone
	_ = w.c.SetReadDeadline(time.Time{})
	w.gone = nil
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	w.r.held--
	w.r.doors[w.door].held--
	return w.left
}
