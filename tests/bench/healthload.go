package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
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

// askAll lets n clients ask an address over connections of their own for d, by one thread.
func askAll(to netip.AddrPort, request string, n int, d time.Duration) (c balanced, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return c, fmt.Errorf("epoll: %w", err)
	}
	defer unix.Close(ep)
	l := &checkLoad{ep: ep, to: &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}, request: []byte(request), clients: make([]checker, n),
		took: hdrhistogram.New(1, (2 * checkPatience).Microseconds(), 3)}
	defer func() {
		for i := range l.clients {
			unix.Close(l.clients[i].fd)
		}
	}()
	for i := range l.clients {
		l.clients[i].fd = -1
		if err := l.connect(i); err != nil {
			return c, err
		}
	}
	begin := time.Now()
	if err := l.run(begin.Add(d)); err != nil {
		return c, err
	}
	c = l.balanced
	c.Rate = float64(c.Answers+c.Others) / time.Since(begin).Seconds()
	c.P50 = time.Duration(l.took.ValueAtQuantile(50)) * time.Microsecond
	c.P99 = time.Duration(l.took.ValueAtQuantile(99)) * time.Microsecond
	c.Max = time.Duration(l.took.Max()) * time.Microsecond
	return c, nil
}

// statusBytes is the length of HTTP/1.1 200.
const statusBytes = 12

type checkLoad struct {
	balanced
	ep      int
	to      *unix.SockaddrInet4
	request []byte
	clients []checker
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
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 1, byte(1 + i%checkSources)}}); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	if err := unix.Connect(fd, l.to); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return fmt.Errorf("connect: %w", err)
	}
	return unix.EpollCtl(l.ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | edge, Fd: int32(i)})
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
			if err := l.step(int(e.Fd)); err != nil {
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

// step goes on with a client as far as it can.
func (l *checkLoad) step(i int) error {
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
			if bytes.HasSuffix(c.status, []byte(" 200")) {
				l.Answers++
			} else {
				l.Others++
			}
			if err := l.took.RecordValue(time.Since(c.began).Microseconds()); err != nil {
				return err
			}
			return l.again(i)
		case len(c.status) < statusBytes:
			c.status = append(c.status, l.buffer[:min(n, statusBytes-len(c.status))]...)
		}
	}
}

func (l *checkLoad) again(i int) error {
	unix.Close(l.clients[i].fd)
	return l.connect(i)
}
