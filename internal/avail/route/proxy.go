package route

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
)

// Header is which form of the PROXY protocol servers get the addresses of their clients by.
type Header string

// The forms.
const (
	NoHeader Header = "off"
	V1       Header = "v1"
	V2       Header = "v2"
)

var signature = []byte("\r\n\r\n\x00\r\nQUIT\n")

// errHeader is a PROXY header that cannot be read.
var errHeader = errors.New("no PROXY header")

// write is the header that says whose connection it is, and which address it came to.
func (h Header) write(from, to netip.AddrPort) []byte {
	a, b := from.Addr().Unmap(), to.Addr().Unmap()
	if a.Is4() != b.Is4() { // one is written as the other's kind
		a, b = netip.AddrFrom16(a.As16()), netip.AddrFrom16(b.As16())
	}
	a, b = a.WithZone(""), b.WithZone("")
	switch h {
	case V1:
		family := "TCP6"
		if a.Is4() {
			family = "TCP4"
		}
		return fmt.Appendf(nil, "PROXY %s %s %s %d %d\r\n", family, a, b, from.Port(), to.Port())
	case V2:
		family := byte(0x21) // TCP over IPv6
		if a.Is4() {
			family = 0x11
		}
		out := append(bytes.Clone(signature), 0x21, family)
		body := append(a.AsSlice(), b.AsSlice()...)
		body = binary.BigEndian.AppendUint16(body, from.Port())
		body = binary.BigEndian.AppendUint16(body, to.Port())
		out = binary.BigEndian.AppendUint16(out, uint16(len(body)))
		return append(out, body...)
	}
	return nil
}

// readHeader reads the header of a load balancer in front, of either form, and not a byte more. The address is not valid if the balancer speaks for itself,
// as its checks do.
func readHeader(r io.Reader) (from netip.AddrPort, err error) {
	head := make([]byte, 0, 108)
	next := func(n int) error {
		old := len(head)
		head = append(head, make([]byte, n)...)
		_, err := io.ReadFull(r, head[old:])
		return err
	}
	if err := next(len(signature)); err != nil {
		return from, err
	}
	if bytes.Equal(head, signature) {
		return readV2(r)
	}
	if !bytes.HasPrefix(head, []byte("PROXY ")) {
		return from, errHeader
	}
	for !bytes.HasSuffix(head, []byte("\r\n")) {
		if len(head) >= 107 { // the longest that there is
			return from, errHeader
		}
		if err := next(1); err != nil { // a byte at a time: what follows is the client's
			return from, err
		}
	}
	f := strings.Split(string(bytes.TrimSuffix(head, []byte("\r\n"))), " ")
	if len(f) >= 2 && f[1] == "UNKNOWN" {
		return from, nil
	}
	if len(f) != 6 {
		return from, errHeader
	}
	addr, err1 := netip.ParseAddr(f[2])
	_, err2 := netip.ParseAddr(f[3])
	port, err3 := strconv.ParseUint(f[4], 10, 16)
	_, err4 := strconv.ParseUint(f[5], 10, 16)
	if errors.Join(err1, err2, err3, err4) != nil || addr.Is4() != (f[1] == "TCP4") || !addr.Is4() && f[1] != "TCP6" {
		return from, errHeader
	}
	return netip.AddrPortFrom(addr, uint16(port)), nil
}

func readV2(r io.Reader) (from netip.AddrPort, err error) {
	var fixed [4]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return from, err
	}
	size := int(binary.BigEndian.Uint16(fixed[2:]))
	if fixed[0]>>4 != 2 || fixed[0]&15 > 1 || size > 4096 {
		return from, errHeader
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return from, err
	}
	if fixed[0]&15 == 0 { // LOCAL
		return from, nil
	}
	switch {
	case fixed[1]>>4 == 1 && size >= 12:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(body[:4])), binary.BigEndian.Uint16(body[8:])), nil
	case fixed[1]>>4 == 2 && size >= 36:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(body[:16])).Unmap(), binary.BigEndian.Uint16(body[32:])), nil
	case fixed[1]>>4 == 1 || fixed[1]>>4 == 2:
		return from, errHeader
	}
	return from, nil // another family: its address says nothing to a server
}
