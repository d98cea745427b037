package drive

import (
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// glance is how often a waiting session checks whether it must stop.
const glance = 100 * time.Millisecond

// socket is a connected socket that blocks its thread. The runtime does not know of the waits (RawSyscall): handing the
// processor over and back costs more than a point select. So GOMAXPROCS must be no less than the number of sessions.
type socket struct {
	fd       uintptr
	closed   bool
	hits     int  // how often a look found an answer lately, in 256ths; see eager
	unlooked int  // reads since the last look
	poll     bool // wait by poll before reading: faster on Unix sockets, slower on TCP (notes of the bench, DESIGN.md)
	stop     *Stop
	patience time.Duration
}

// newSocket takes f over. The socket gets a descriptor that the runtime does not know: f is in the runtime's poller,
// which would wake a thread for every answer, at three times the cost of the answer itself.
func newSocket(f *os.File, unixSocket bool, stop *Stop, patience time.Duration) (*socket, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("take over a socket: %w", err)
	}
	s := &socket{fd: uintptr(fd), poll: unixSocket, stop: stop, patience: patience}
	if err := s.configure(); err != nil {
		_ = s.close()
		return nil, err
	}
	return s, nil
}

func (s *socket) configure() error {
	if err := unix.SetNonblock(int(s.fd), false); err != nil {
		return fmt.Errorf("make a socket block: %w", err)
	}
	// A read gives up now and then, so that it can be stopped and so that a stop-the-world need not wait for a server.
	tv := unix.NsecToTimeval(int64(glance))
	if err := unix.SetsockoptTimeval(int(s.fd), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return fmt.Errorf("set the time-out of a socket: %w", err)
	}
	if err := unix.SetsockoptTimeval(int(s.fd), unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv); err != nil {
		return fmt.Errorf("set the time-out of a socket: %w", err)
	}
	return nil
}

// Write sends all of b.
func (s *socket) Write(b []byte) (int, error) {
	if s.closed { // the descriptor may be another one's by now
		return 0, ErrLost
	}
	total := len(b)
	var began time.Time
	for len(b) > 0 {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, s.fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), syscall.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			b = b[n:]
		default:
			if err := s.again(errno, &began); err != nil {
				return total - len(b), err
			}
		}
	}
	return total, nil
}

// Read waits for bytes and puts what is there into b.
func (s *socket) Read(b []byte) (int, error) {
	var began time.Time
	for {
		n, errno := uintptr(0), syscall.EAGAIN
		switch {
		case !s.poll:
			n, errno = s.receive(b, 0)
		case s.eager():
			n, errno = s.receive(b, syscall.MSG_DONTWAIT)
			s.learn(errno == 0)
			if errno == syscall.EAGAIN {
				n, errno = s.pollAndReceive(b)
			}
		default:
			n, errno = s.pollAndReceive(b)
		}
		switch {
		case errno == 0 && n == 0:
			return 0, fmt.Errorf("%w: the server closed it", ErrLost)
		case errno == 0:
			return int(n), nil
		}
		if err := s.again(errno, &began); err != nil {
			return 0, err
		}
	}
}

// With many sessions the answer often is there already when the thread gets to run again; a look without waiting then saves
// the poll. With few it hardly ever is. So a session looks while a fair part of its looks succeed, and else now and then.
const (
	fairPart  = 64 // of 256: a look in vain costs a third of the poll that one with success saves
	lookEvery = 32
)

// eager reports whether to look before waiting.
func (s *socket) eager() bool {
	if s.unlooked++; s.hits < fairPart && s.unlooked < lookEvery {
		return false
	}
	s.unlooked = 0
	return true
}

// learn takes how a look ended: it counts for an eighth. One that succeeds after many that did not is believed immediately.
func (s *socket) learn(found bool) {
	if found {
		s.hits = max(s.hits+(256-s.hits)/8, fairPart+fairPart/2)
		return
	}
	s.hits -= (s.hits + 7) / 8
}

func (s *socket) receive(b []byte, flags uintptr) (uintptr, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, s.fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), flags, 0, 0)
	return n, errno
}

// pollAndReceive waits by poll. A blocking receive on a Unix socket would also be woken when the server takes the question
// out of the socket, only to sleep again.
func (s *socket) pollAndReceive(b []byte) (uintptr, syscall.Errno) {
	p := pollfd{fd: int32(s.fd), events: unix.POLLIN}
	n, _, errno := syscall.RawSyscall(syscall.SYS_POLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(glance/time.Millisecond))
	switch {
	case errno != 0:
		return 0, errno
	case n == 0:
		return 0, syscall.EAGAIN
	}
	return s.receive(b, 0)
}

// again says whether a call that returned errno should be tried once more: nil, or the error to give up with.
func (s *socket) again(errno syscall.Errno, began *time.Time) error {
	if errno != syscall.EAGAIN && errno != syscall.EINTR {
		return fmt.Errorf("%w: %w", ErrLost, errno)
	}
	if s.stop.IsSet() {
		return ErrStopped
	}
	switch {
	case began.IsZero():
		*began = time.Now()
	case time.Since(*began) > s.patience:
		return fmt.Errorf("%w: no answer for %v", ErrLost, s.patience)
	}
	return nil
}

func (s *socket) close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	return unix.Close(int(s.fd))
}

// pollfd is the kernel's struct pollfd.
type pollfd struct {
	fd      int32
	events  int16
	revents int16
}

// SetPatience sets how long the server may take to answer.
func (s *socket) SetPatience(d time.Duration) { s.patience = d }
