package environ

import (
	"fmt"
	"net"

	"github.com/rissodb/risso/internal/host"
)

// ownAddress reports whether an address is one of this network namespace.
func ownAddress(address string) bool {
	ip := net.ParseIP(address)
	if ip == nil {
		return false
	}
	if ip.IsLoopback() {
		return true
	}
	return interfaceWith(ip) != ""
}

// interfaceWith names the interface that has an address.
func interfaceWith(ip net.IP) string {
	list, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, i := range list {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
				return i.Name
			}
		}
	}
	return ""
}

// network says how client and server are connected, as far as it shows.
func network(h *host.Host, e *Environment) string {
	words := way(h, e)
	if e.ServerHost == nil {
		return words
	}
	ours, theirs := h.NetworkNamespace(0), h.NetworkNamespace(e.ServerHost.PID)
	switch {
	case ours == "" || theirs == "":
		return words
	case ours == theirs:
		return words + ", same network namespace"
	default:
		return words + ", the server has another network namespace"
	}
}

// way says over which interface the server is reached. No packet is sent: to connect a UDP socket only picks the route.
func way(h *host.Host, e *Environment) string {
	if e.Connection.Kind == "socket" {
		return "unix socket"
	}
	c, err := net.Dial("udp", e.Connection.Address)
	if err != nil {
		return "not known"
	}
	defer c.Close()
	local, ok1 := c.LocalAddr().(*net.UDPAddr)
	remote, ok2 := c.RemoteAddr().(*net.UDPAddr)
	if !ok1 || !ok2 {
		return "not known"
	}
	if remote.IP.IsLoopback() {
		return "loopback"
	}
	name := interfaceWith(local.IP)
	if local.IP.Equal(remote.IP) {
		return fmt.Sprintf("the host's own address on %s, over the loopback", name)
	}
	if name == "" {
		return "not known"
	}
	return fmt.Sprintf("%s (%s)", name, h.InterfaceKind(name))
}
