package health

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Responder answers the HTTP requests of load balancers about one server, each over a connection of its own that it then closes, as
// clustercheck does. One thread does it all by epoll: of the time of a request, nine parts of ten are the kernel's own for the
// connection, and net/http and goroutines add half as much to it; see DESIGN.md for the figures.
type Responder struct {
	prober *Prober
	base   Question

	ep, listener int
	asked        map[string]request // requests that were read before
	conns        map[int]*pending   // those whose request is not whole, by descriptor
	queue        []*pending         // these, the oldest first, among some that are closed
	most         int                // of these
	swept        time.Time
	buffer       [maxRequest]byte
	out          []byte
}

// request is what a request line asks for.
type request struct {
	q    Question
	err  error
	head bool
	bad  bool // no method that is answered
}

// pending is a connection whose request is not whole.
type pending struct {
	fd    int
	since time.Time
	have  []byte
}

// Bounds of what strangers may take.
const (
	maxRequest  = 8192            // bytes of a request
	maxPending  = 10000           // connections that have not asked yet
	spare       = 64              // descriptors that these leave for what else the process has open, such as connections to the server
	maxAsked    = 256             // different requests that are remembered
	requestTime = 5 * time.Second // a request must be whole by then
	sweepEvery  = 500 * time.Millisecond
	atOnce      = 64 // connections taken before those that wait are looked at
	deferAccept = 1  // seconds in which the kernel keeps a connection on which nothing came
	backlog     = 4096
)

// NewResponder makes a responder; Serve starts it.
func NewResponder(p *Prober, base Question) *Responder {
	return &Responder{prober: p, base: base, asked: map[string]request{}, conns: map[int]*pending{}, most: mostPending()}
}

// mostPending is how many connections may wait: fewer than maxPending where the process may have few descriptors.
func mostPending() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || l.Cur >= maxPending+spare {
		return maxPending
	}
	return max(int(l.Cur)-spare, int(l.Cur)/2, 1)
}

// Serve answers until ctx ends; it closes the listener.
func (r *Responder) Serve(ctx context.Context, ln *net.TCPListener) (err error) {
	if r.listener, err = detach(ln); err != nil {
		return err
	}
	defer unix.Close(r.listener)
	// Both only spare work.
	_ = unix.SetsockoptInt(r.listener, unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, deferAccept)
	_ = unix.Listen(r.listener, backlog)
	if r.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	defer unix.Close(r.ep)
	defer func() {
		for fd := range r.conns {
			unix.Close(fd)
		}
	}()
	if err := r.watch(r.listener, unix.EPOLLIN); err != nil {
		return err
	}
	wake, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	end := os.NewFile(uintptr(wake), "end")
	defer end.Close()
	if err := r.watch(wake, unix.EPOLLIN); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _, _ = end.Write([]byte{1, 0, 0, 0, 0, 0, 0, 0}) })()
	return r.loop(ctx)
}

// detach takes a listener's descriptor out of Go's own epoll set, which else would wake a thread for each connection, for nothing.
func detach(ln *net.TCPListener) (fd int, err error) {
	defer ln.Close()
	raw, err := ln.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("take the listener: %w", err)
	}
	var dup error
	if err := raw.Control(func(own uintptr) { fd, dup = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return 0, fmt.Errorf("take the listener: %w", err)
	}
	if dup != nil {
		return 0, fmt.Errorf("take the listener: %w", dup)
	}
	return fd, nil // non-blocking, as Go's are
}

func (r *Responder) watch(fd int, events uint32) error {
	if err := unix.EpollCtl(r.ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

func (r *Responder) loop(ctx context.Context) error {
	events := make([]unix.EpollEvent, 256)
	for ctx.Err() == nil {
		wait := -1
		if len(r.conns) > 0 {
			wait = int(sweepEvery / time.Millisecond)
		}
		n, err := unix.EpollWait(r.ep, events, wait)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("epoll: %w", err)
		}
		now := time.Now()
		for _, e := range events[:max(n, 0)] {
			switch fd := int(e.Fd); {
			case fd == r.listener:
				if err := r.accept(now); err != nil {
					return err
				}
			case r.conns[fd] != nil:
				r.read(fd, now)
			}
		}
		r.sweep(now)
	}
	return nil
}

// accept takes new connections; on most of them the request is there already.
func (r *Responder) accept(now time.Time) error {
	for range atOnce {
		fd, _, err := unix.Accept4(r.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ECONNABORTED), errors.Is(err, unix.EINTR):
			return nil
		case (errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)) && r.closeOldest():
			continue
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM):
			time.Sleep(time.Millisecond) // what is open ends soon; the others wait in the kernel
			return nil
		case err != nil:
			return fmt.Errorf("accept: %w", err)
		}
		r.read(fd, now)
		if len(r.conns) > r.most {
			r.closeOldest()
		}
	}
	return nil
}

// read takes what came, and answers a request that is whole.
func (r *Responder) read(fd int, now time.Time) {
	n, err := unix.Read(fd, r.buffer[:])
	p := r.conns[fd]
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		if p == nil {
			r.keep(fd, nil, now)
		}
		return
	case err != nil || n == 0:
		r.close(fd)
		return
	}
	have := r.buffer[:n]
	if p != nil {
		p.have = append(p.have, have...)
		have = p.have
	}
	end := headEnd(have)
	switch {
	case end < 0 && len(have) >= maxRequest:
		r.close(fd)
	case end < 0 && p == nil:
		r.keep(fd, bytes.Clone(have), now)
	case end >= 0:
		_, _ = unix.Write(fd, r.answer(have[:end], now)) // it fits the socket's buffer; a client that is gone needs none
		r.close(fd)
	}
}

// headEnd is where the head of a request ends, before the line break of its last line; -1: it is not whole. As RFC 9112 allows, a line may end with LF alone.
func headEnd(b []byte) int {
	crlf, lf := bytes.Index(b, []byte("\n\r\n")), bytes.Index(b, []byte("\n\n"))
	if crlf < 0 || lf >= 0 && lf < crlf {
		return lf
	}
	return crlf
}

func (r *Responder) keep(fd int, have []byte, now time.Time) {
	if err := r.watch(fd, unix.EPOLLIN|unix.EPOLLRDHUP); err != nil {
		unix.Close(fd)
		return
	}
	p := &pending{fd, now, have}
	r.conns[fd], r.queue = p, append(r.queue, p)
}

func (r *Responder) close(fd int) {
	delete(r.conns, fd)
	unix.Close(fd)
}

// sweep closes connections that take too long to ask.
func (r *Responder) sweep(now time.Time) {
	if now.Sub(r.swept) < sweepEvery {
		return
	}
	r.swept = now
	for p := r.oldest(); p != nil && now.Sub(p.since) > requestTime; p = r.oldest() {
		r.close(p.fd)
	}
}

// oldest is the connection that has waited longest for the rest of its request; nil: there is none.
func (r *Responder) oldest() *pending {
	for len(r.queue) > 0 && r.conns[r.queue[0].fd] != r.queue[0] {
		r.queue[0], r.queue = nil, r.queue[1:]
	}
	if len(r.queue) == 0 {
		return nil
	}
	return r.queue[0]
}

// closeOldest makes room for a connection: who is slow to ask keeps nobody out.
func (r *Responder) closeOldest() bool {
	p := r.oldest()
	if p != nil {
		r.close(p.fd)
	}
	return p != nil
}

// answer is what a request is told; it is valid until the next.
func (r *Responder) answer(head []byte, now time.Time) []byte {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	ask, known := r.asked[string(line)]
	if !known {
		ask = readRequest(string(line), r.base)
		if len(r.asked) >= maxAsked {
			clear(r.asked)
		}
		r.asked[string(line)] = ask
	}
	var a Answer
	switch {
	case ask.bad:
		a = Answer{Status: http.StatusMethodNotAllowed, Reason: "Ask by GET, HEAD or OPTIONS.", Age: -1}
	case ask.err != nil:
		a = Answer{Status: http.StatusBadRequest, Reason: notAnswered(ask.err), Age: -1}
	default:
		a = r.prober.Judge(ask.q, now)
	}
	r.out = a.appendTo(r.out[:0], ask)
	return r.out
}

func readRequest(line string, base Question) request {
	f := bytes.Fields([]byte(line))
	if len(f) != 3 || !bytes.HasPrefix(f[2], []byte("HTTP/1.")) {
		return request{err: errors.New("this is no request of HTTP/1")}
	}
	method := string(f[0])
	ask := request{head: method == http.MethodHead, bad: !answered(method)}
	ask.q, ask.err = Ask(origin(string(f[1])), base)
	return ask
}

// origin is the path and the query of a target that may be written with its host: http://db1:9200/up, as proxies ask.
func origin(target string) string {
	scheme, rest, absolute := strings.Cut(target, "://")
	if !absolute || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return target
	}
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		return rest[i:]
	}
	return "/"
}

// appendTo writes an answer as clustercheck's: the same headers in the same order, with what was seen when behind them.
func (a Answer) appendTo(b []byte, ask request) []byte {
	text, kind := a.body(ask.q)
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(a.Status), 10)
	b = append(append(append(b, ' '), http.StatusText(a.Status)...), "\r\nContent-Type: "...)
	b = append(append(b, kind...), "\r\nConnection: close\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(text)), 10)
	b = append(b, "\r\nCache-Control: no-store"...)
	if ask.bad {
		b = append(b, "\r\nAllow: "+allowed...)
	}
	if a.Age >= 0 {
		b = append(append(b, "\r\nAge: "...), a.ageSeconds()...)
		b = a.appendAge(append(b, "\r\nRisso-Age: "...))
	}
	b = append(b, "\r\n\r\n"...)
	if ask.head {
		return b
	}
	return append(b, text...)
}
