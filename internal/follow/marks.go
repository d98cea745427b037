package follow

import (
	"net"
	"strings"
)

// The ends of the host names that Risso gives to a channel's source to keep the channel from it: no name that ends so leads anywhere (RFC 2606), and before it stands
// where the channel led.
const (
	DetachedSuffix   = ".detached.invalid"   // by risso replica detach
	RebuildingSuffix = ".rebuilding.invalid" // while risso replica rebuild is at work: what the replica has is no copy of anything then
)

// Unmarked is the address, host:port, that a channel's source had before a suffix was put behind its host name; ok is false if that is not there.
func Unmarked(source, suffix string) (address string, ok bool) {
	host, port, err := net.SplitHostPort(source)
	if err != nil {
		return "", false
	}
	host, ok = strings.CutSuffix(host, suffix)
	return net.JoinHostPort(host, port), ok
}

// Marked reports whether Risso keeps a channel from its source, and the address that it had: one of a rebuilt replica may be of a host called "source".
func Marked(source string) (address string, is bool) {
	for _, suffix := range []string{DetachedSuffix, RebuildingSuffix} {
		if address, is = Unmarked(source, suffix); is {
			return address, true
		}
	}
	return "", false
}
