package drive

import (
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// glance is how often a waiting session looks whether it is to stop.
const glance = 100 * time.Millisecond

// socket is a connected socket that blocks its thread. The runtime is not told of the waits (RawSyscall): handing the
// processor over and back costs more than a point select. So GOMAXPROCS has to be above the number of sessions.
type socket struct {
	file     *os.File // owns fd
	fd       uintptr
	poll     bool // wait by poll before reading: faster on Unix sockets, slower on TCP (notes of the bench, DESIGN.md)
	stop     *Stop
	patience time.Duration
}

func newSocket(f *os.File, unixSocket bool, stop *Stop, patience time.Duration) (*socket, error) {
	s := &socket{file: f, fd: f.Fd(), poll: unixSocket, stop: stop, patience: patience}
	// A read gives up now and then, so that it can be stopped and so that a stop-the-world need not wait for a server.
	tv := unix.NsecToTimeval(int64(glance))
	if err := unix.SetsockoptTimeval(int(s.fd), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return nil, fmt.Errorf("set the time-out of a socket: %w", err)
	}
	if err := unix.SetsockoptTimeval(int(s.fd), unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv); err != nil {
		return nil, fmt.Errorf("set the time-out of a socket: %w", err)
	}
	return s, nil
}

// write sends all of b.
func (s *socket) write(b []byte) error {
	var began time.Time
	for len(b) > 0 {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, s.fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), syscall.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			b = b[n:]
		default:
			if err := s.again(errno, &began); err != nil {
				return err
			}
		}
	}
	return nil
}

// read waits for bytes and puts what is there into b.
func (s *socket) read(b []byte) (int, error) {
	var began time.Time
	for {
		if s.poll {
			p := pollfd{fd: int32(s.fd), events: unix.POLLIN}
			n, _, errno := syscall.RawSyscall(syscall.SYS_POLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(glance/time.Millisecond))
			if errno == 0 && n == 0 {
				errno = syscall.EAGAIN
			}
			if errno != 0 {
				if err := s.again(errno, &began); err != nil {
					return 0, err
				}
				continue
			}
		}
		n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, s.fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0)
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

// again says whether a call that gave errno is to be tried once more: nil, or the error to give up with.
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

func (s *socket) close() error { return s.file.Close() }

// pollfd is the kernel's struct pollfd.
type pollfd struct {
	fd      int32
	events  int16
	revents int16
}
