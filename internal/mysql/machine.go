package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"net"
	"os"
	"strconv"
	"strings"
)

// Local reports whether the server runs on this machine, as far as the address shows: a socket, or an address of ours.
func (t Target) Local() bool {
	if t.Socket() != "" {
		return true
	}
	host, _, err := net.SplitHostPort(t.Address())
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	if ip == nil {
		return false
	}
	if ip.IsLoopback() {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
			return true
		}
	}
	return false
}

// Inside reports whether the connection does not leave this machine, as its addresses show: it goes over a socket, or to an address of this machine. That may be the end of a tunnel: SameMachine
// knows more.
func (c *Conn) Inside() bool { return inside(c.local, c.far) }

func inside(local, far net.Addr) bool {
	if _, socket := far.(*net.UnixAddr); socket {
		return true
	}
	l, _ := local.(*net.TCPAddr)
	f, _ := far.(*net.TCPAddr)
	return l != nil && f != nil && (f.IP.IsLoopback() || f.IP.Equal(l.IP)) // to an address of its own a machine connects from that same one
}

// SameMachine reports whether the server runs on this machine and not behind a tunnel or in a container with its own files;
// if not, why. The address alone does not show that: an SSH tunnel ends on a local port.
func (c *Conn) SameMachine(ctx context.Context, t Target) (yes bool, why string, err error) {
	here, err := os.Hostname()
	if err != nil {
		return false, "", err
	}
	if here != c.Server.Hostname {
		return false, "the server runs on " + c.Server.Hostname + ", Risso on " + here, nil
	}
	if t.Socket() != "" {
		return true, "", nil
	}
	if !t.Local() {
		return false, "the server's address " + t.Address() + " is not one of this machine", nil
	}
	// The server sees the very port that this connection has here, unless there is something in between.
	local, ok := c.local.(*net.TCPAddr)
	if !ok {
		return false, "", nil
	}
	seen := ""
	err = c.Query(ctx, "SHOW /* risso: from where does the server see Risso? */ PROCESSLIST", func(row []sqldriver.Value) error {
		if Text(row[0]) == strconv.FormatInt(c.Server.ConnectionID, 10) {
			seen = Text(row[2])
		}
		return nil
	})
	if err != nil {
		return false, "", err
	}
	if !strings.HasSuffix(seen, ":"+strconv.Itoa(local.Port)) {
		return false, "the connection to the server goes through a tunnel or a proxy", nil
	}
	return true, "", nil
}
