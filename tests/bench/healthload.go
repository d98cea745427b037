package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// balanced is what so many load balancers got from one address.
type balanced struct {
	Answers  int     // with status 200
	Others   int     // with another status
	Failed   int     // connections that broke
	TimedOut int     // no answer within checkPatience
	Rate     float64 // answers a second
	P50      time.Duration
	P99      time.Duration
	Max      time.Duration
}

const (
	checkPatience = 10 * time.Second // clustercheck's own
	checkSources  = 50               // addresses that the clients come from: one alone has too few ports for 20,000 connections a second
)

// checker is one client: it connects, asks, reads until the other side closes, and begins again at once.
type checker struct {
	fd     int
	began  time.Time
	asked  bool
	status []byte // the beginning of what came
}

// askAll lets n clients ask an address over connections of their own for d, by a thread for each processor.
func askAll(to netip.AddrPort, request string, n int, d time.Duration) (c balanced, err error) {
	threads := min(n, runtime.GOMAXPROCS(0))
	loads, failed := make([]*checkLoad, threads), make([]error, threads)
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range loads {
		loads[i] = &checkLoad{to: &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}, request: []byte(request), clients: make([]checker, n*(i+1)/threads-n*i/threads),
			first: n * i / threads, took: hdrhistogram.New(1, (2 * checkPatience).Microseconds(), 3)}
		wg.Go(func() { failed[i] = loads[i].ask(begin.Add(d)) })
	}
	wg.Wait()
	took := loads[0].took
	for i, l := range loads {
		c.Answers, c.Others, c.Failed, c.TimedOut = c.Answers+l.Answers, c.Others+l.Others, c.Failed+l.Failed, c.TimedOut+l.TimedOut
		if i > 0 {
			took.Merge(l.took)
		}
	}
	c.Rate = float64(c.Answers+c.Others) / time.Since(begin).Seconds()
	c.P50 = time.Duration(took.ValueAtQuantile(50)) * time.Microsecond
	c.P99 = time.Duration(took.ValueAtQuantile(99)) * time.Microsecond
	c.Max = time.Duration(took.Max()) * time.Microsecond
	return c, errors.Join(failed...)
}

// ask lets the clients of one thread ask.
func (l *checkLoad) ask(until time.Time) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if l.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	defer unix.Close(l.ep)
	for i := range l.clients {
		l.clients[i].fd = -1
	}
	defer func() {
		for i := range l.clients {
			unix.Close(l.clients[i].fd)
		}
	}()
	for i := range l.clients {
		if err := l.connect(i); err != nil {
			return err
		}
	}
	return l.run(until)
}

// statusBytes is the length of HTTP/1.1 200.
const statusBytes = 12

type checkLoad struct {
	balanced
	ep      int
	to      *unix.SockaddrInet4
	request []byte
	clients []checker
	first   int // what number among all the first client has
	took    *hdrhistogram.Histogram
	buffer  [4096]byte
}

func (l *checkLoad) connect(i int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	l.clients[i] = checker{fd: fd, began: time.Now(), status: l.clients[i].status[:0]}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1); err != nil {
		return fmt.Errorf("bind late: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 1, byte(1 + (l.first+i)%checkSources)}}); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	if err := unix.Connect(fd, l.to); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return fmt.Errorf("connect: %w", err)
	}
	events := uint32(unix.EPOLLIN | unix.EPOLLRDHUP | edge)
	if _, err := unix.Write(fd, l.request); err == nil { // on one machine a connection is there at once
		l.clients[i].asked = true
	} else {
		events |= unix.EPOLLOUT
	}
	return unix.EpollCtl(l.ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(i)})
}

// edge is EPOLLET, which x/sys has as a negative number.
const edge = 1 << 31

func (l *checkLoad) run(until time.Time) error {
	events := make([]unix.EpollEvent, 256)
	sweep := time.Now()
	for time.Now().Before(until) {
		n, err := unix.EpollWait(l.ep, events, 100)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("epoll: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			if err := l.step(int(e.Fd), e.Events&unix.EPOLLRDHUP != 0); err != nil {
				return err
			}
		}
		if now := time.Now(); now.Sub(sweep) > time.Second {
			sweep = now
			for i := range l.clients {
				if now.Sub(l.clients[i].began) > checkPatience {
					l.TimedOut++
					if err := l.again(i); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// step goes on with a client as far as it can; closed: the other side sends nothing after what is there.
func (l *checkLoad) step(i int, closed bool) error {
	c := &l.clients[i]
	if !c.asked {
		switch _, err := unix.Write(c.fd, l.request); {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOTCONN):
			return nil
		case err != nil:
			l.Failed++
			return l.again(i)
		}
		c.asked = true
	}
	for {
		n, err := unix.Read(c.fd, l.buffer[:])
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil && len(c.status) == 0 || err == nil && n == 0 && len(c.status) == 0:
			l.Failed++
			return l.again(i)
		case err != nil || n == 0: // xinetd resets a connection whose request nobody read; what came is an answer nevertheless
			return l.answered(i)
		case len(c.status) < statusBytes:
			c.status = append(c.status, l.buffer[:min(n, statusBytes-len(c.status))]...)
		}
		if closed && n < len(l.buffer) {
			return l.answered(i)
		}
	}
}

// answered counts the answer that a client has, and lets it ask again.
func (l *checkLoad) answered(i int) error {
	c := &l.clients[i]
	if bytes.HasSuffix(c.status, []byte(" 200")) {
		l.Answers++
	} else {
		l.Others++
	}
	if err := l.took.RecordValue(time.Since(c.began).Microseconds()); err != nil {
		return err
	}
	return l.again(i)
}

func (l *checkLoad) again(i int) error {
	unix.Close(l.clients[i].fd)
	return l.connect(i)
}
