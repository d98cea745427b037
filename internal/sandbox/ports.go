package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// portHold keeps a TCP port of 127.0.0.1 for a server that is about to start.
//
// The socket is bound but never listens, and says SO_REUSEADDR. Linux then lets
// a server that says so too (all of them do) bind and listen on the same port,
// while the kernel gives the port to nobody who asks for any free one. So there
// is no moment in which a second up could take it.
type portHold struct {
	fd   int
	Port int
}

// holdPort takes the given port, or one of the kernel's choice for 0.
func holdPort(port int) (*portHold, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	h := &portHold{fd: fd}
	if port != 0 {
		// Only a port of choice: with SO_REUSEADDR the kernel could choose one
		// that another hold has already.
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	var sa unix.Sockaddr
	if err == nil {
		sa, err = unix.Getsockname(fd)
	}
	if err != nil {
		h.release()
		return nil, fmt.Errorf("take a port on 127.0.0.1: %w", err)
	}
	h.Port = sa.(*unix.SockaddrInet4).Port
	return h, nil
}

// release gives the port up; the server that listens on it keeps it.
func (h *portHold) release() {
	if h != nil && h.fd >= 0 {
		_ = unix.Close(h.fd) // nothing was written to it
		h.fd = -1
	}
}
