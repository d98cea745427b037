package mysql

import (
	"net"
	"testing"
)

// TestInside: a connection to an address of this machine comes from that same address, or goes to a loopback one.
func TestInside(t *testing.T) {
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 3306} }
	for _, c := range []struct {
		what       string
		local, far net.Addr
		want       bool
	}{
		{"a socket", &net.UnixAddr{Name: "@"}, &net.UnixAddr{Name: "/run/mysqld.sock"}, true},
		{"loopback", tcp("127.0.0.1"), tcp("127.0.0.2"), true},
		{"loopback of IPv6", tcp("::1"), tcp("::1"), true},
		{"an address of its own", tcp("10.0.0.1"), tcp("10.0.0.1"), true},
		{"another machine", tcp("10.0.0.1"), tcp("10.0.0.2"), false},
		{"not known", nil, nil, false},
	} {
		if got := inside(c.local, c.far); got != c.want {
			t.Errorf("%s: got %t", c.what, got)
		}
	}
}
