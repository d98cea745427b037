package sandbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// portHold keeps a TCP port of 127.0.0.1 for a server that is about to start.
//
// The socket is bound but never listens, and says SO_REUSEADDR. Linux then lets
// a server that says so too (all of them do) bind and listen on the same port,
// while the kernel gives the port to no one that asks for any free one. So there
// is no moment in which a second up could take it.
type portHold struct {
	fd   int
	Port int
}

// Free ports are looked for between lowestPort and the range that the kernel gives to outgoing connections.
// From that range another program could borrow the port of a node while it is stopped.
const (
	lowestPort = 16384
	portTries  = 64
)

// freePort holds a port that is free now, and that no outgoing connection takes later.
func freePort() (*portHold, error) {
	var low, high int
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err == nil {
		_, err = fmt.Sscan(string(b), &low, &high)
	}
	if err != nil || low <= lowestPort+portTries {
		return holdPort(0)
	}
	for range portTries {
		if h, err := holdNew(lowestPort + rand.IntN(low-lowestPort)); err == nil {
			return h, nil
		}
	}
	return holdPort(0)
}

// holdPort takes the given port again, or one of the kernel's choice for 0.
func holdPort(port int) (*portHold, error) {
	// A process that was killed counts as gone when its first thread is; its last one closes the sockets, some moments later.
	const patience = 3 * time.Second
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		h, err := hold(port, port != 0)
		if port == 0 || !errors.Is(err, unix.EADDRINUSE) || time.Since(began) > patience {
			return h, err
		}
	}
}

// holdNew takes the given port if it is free.
func holdNew(port int) (*portHold, error) { return hold(port, false) }

// hold binds a port. again allows one on which old connections have not died yet.
func hold(port int, again bool) (*portHold, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	h := &portHold{fd: fd}
	if again {
		// Only for a port that is ours: with SO_REUSEADDR it may be one that
		// another hold has already.
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
