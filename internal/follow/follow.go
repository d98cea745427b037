// Package follow says which of several servers a replication channel comes from. A replica knows its source by an address, which may be another
// than the one under which people know that server, and by the source's server_uuid or server_id, which copies of a data directory share.
package follow

import (
	"net"
	"strconv"
	"strings"
)

// Server is a server as replication knows it. What is unknown is empty.
type Server struct {
	UUID      string   // server_uuid
	NoUUID    bool     // it is of a kind that has none, as MariaDB is
	ID        string   // server_id
	Hostname  string   // as it calls itself
	Port      int      // that it listens on
	Addresses []string // host:port, or the path of a socket, by which it is reached; first the one that people use
	Reported  string   // report_host:report_port, under which it wants to be known
	Machine   string   // tells machines apart where their names are not known
	Other     bool     // it is no database server, and nobody's source
}

// Channel is one source of a server, as it tells of it. What is unknown is empty.
type Channel struct {
	Source     string // host:port
	SourceUUID string // "" if it never answered, and where the source has none
	SourceID   string // server_id; "" or "0" if it never answered
	Elsewhere  bool   // its address was asked, so that a server which does not answer there is another one
}

// Source is the index of the server that servers[i] replicates from by a channel: the one with that UUID; or else, as it never answered, has none,
// or several have the same, the one to which the address leads; or else, if nobody asked at the address, the one with that server_id, unless that is the default,
// and port. It is -1 if there is none, or nobody knows which of two it is.
func Source(servers []Server, i int, ch Channel) int {
	if ch.SourceUUID != "" {
		if s := only(servers, i, func(s Server) bool { return strings.EqualFold(s.UUID, ch.SourceUUID) }); s >= 0 {
			return s
		}
	}
	known := ch.SourceID != "" && ch.SourceID != "0"
	other := func(s Server) bool { // it is known to be another one
		return ch.SourceUUID != "" && s.UUID != "" && !s.NoUUID && !strings.EqualFold(s.UUID, ch.SourceUUID) || known && s.ID != "" && s.ID != ch.SourceID
	}
	fits := false
	s := only(servers, i, func(s Server) bool {
		is := !other(s) && servers[i].reaches(s, ch.Source)
		fits = fits || is
		return is
	})
	if s >= 0 || fits || !known || ch.Elsewhere || ch.SourceID == defaultID || ch.SourceUUID != "" {
		return s
	}
	_, port, _ := net.SplitHostPort(ch.Source)
	return only(servers, i, func(s Server) bool { return s.ID == ch.SourceID && port == strconv.Itoa(s.Port) })
}

// defaultID is the server_id of servers for which nobody set one.
const defaultID = "1"

// only is the one server but i for which f holds, or -1.
func only(servers []Server, i int, f func(Server) bool) int {
	found := -1
	for j, s := range servers {
		if j == i || s.Other || !f(s) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = j
	}
	return found
}

// reaches reports whether a replica that uses an address comes to a server by it.
func (r Server) reaches(s Server, address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	own := strconv.Itoa(s.Port)
	if Loopback(host) {
		if !r.SameMachine(s) {
			return false
		}
		if port == own {
			return true
		}
		for _, a := range s.Addresses { // as it is seen through a tunnel, the port may be another
			if _, p, err := net.SplitHostPort(a); err == nil && p == port {
				return true
			}
		}
		return false
	}
	if s.Reported != "" && strings.EqualFold(address, s.Reported) {
		return true
	}
	for _, a := range s.Addresses {
		if h, _, err := net.SplitHostPort(a); err == nil && !Loopback(h) && strings.EqualFold(address, a) {
			return true
		}
	}
	return SameHost(host, s.Hostname) && port == own
}

// SameMachine reports whether two servers are known to run on one machine.
func (r Server) SameMachine(s Server) bool {
	switch {
	case r.Hostname != "" && s.Hostname != "":
		return strings.EqualFold(r.Hostname, s.Hostname)
	case r.Machine != "" && s.Machine != "":
		return r.Machine == s.Machine
	}
	return r.here() && s.here()
}

// here reports whether a server is reached on the machine where Risso runs.
func (r Server) here() bool {
	for _, a := range r.Addresses {
		host, _, err := net.SplitHostPort(a)
		if err != nil && strings.HasPrefix(a, "/") || err == nil && Loopback(host) {
			return true
		}
	}
	return false
}

// Loopback reports whether a host is the machine itself, whoever says it.
func Loopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// SameHost compares names of hosts, of which one may be without its domain.
func SameHost(a, b string) bool {
	if a == "" || b == "" || net.ParseIP(a) != nil {
		return a != "" && a == b
	}
	a, b = strings.ToLower(a), strings.ToLower(b)
	short := func(s string) string { s, _, _ = strings.Cut(s, "."); return s }
	return a == b || short(a) == short(b) && (!strings.Contains(a, ".") || !strings.Contains(b, "."))
}
