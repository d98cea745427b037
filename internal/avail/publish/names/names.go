// Package names answers DNS questions about groups: primary.GROUP.ZONE, replicas.GROUP.ZONE and their SRV records, with a time to live of one second. It is a
// small authoritative server for one zone: nothing is asked elsewhere, and nothing outside of the zone is answered. See docs/clients.md for its names.
package names

import (
	"cmp"
	"errors"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/fault"
)

// Server answers about the groups of views.
type Server struct {
	zone   string // lower case, with the dot at its end
	ns     []dnsmessage.Name
	views  publish.Views
	maxAge time.Duration
	now    func() time.Time
	turn   atomic.Uint32 // which replica comes first
}

// TTL of all answers, in seconds, the negative ones too.
const ttl = 1

// What answers over UDP may have: without EDNS, and with it (no IP fragments).
const (
	plainSize = 512
	ednsSize  = 1232
	tcpSize   = 65535
)

// mostReplicas is how many replicas an answer lists: a forged question brings its victim a few times its own size at most.
const mostReplicas = 8

// New makes a server for a zone. nameservers are the host names of the servers of that zone, for its NS records; none: ns.ZONE. maxAge is as for publish.NewDesk.
func New(zone string, nameservers []string, views publish.Views, maxAge time.Duration) (*Server, error) {
	s := &Server{zone: strings.ToLower(strings.Trim(zone, ".")) + ".", views: views, maxAge: cmp.Or(maxAge, publish.DefaultMaxAge), now: time.Now}
	if s.zone == "." {
		return nil, fault.Usagef("a zone is needed, such as db.example.com")
	}
	if len(nameservers) == 0 {
		nameservers = []string{"ns." + s.zone}
	}
	for _, n := range append([]string{s.zone}, nameservers...) {
		name, err := nameOf(n)
		if err != nil {
			return nil, fault.Usagef("%q: %w", n, err)
		}
		s.ns = append(s.ns, name)
	}
	s.ns = s.ns[1:]
	return s, nil
}

// nameOf makes a name of a text; it must have labels that DNS can carry.
func nameOf(text string) (dnsmessage.Name, error) {
	text = strings.TrimSuffix(text, ".")
	for label := range strings.SplitSeq(text, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }) {
			return dnsmessage.Name{}, errors.New("this is no name of DNS")
		}
	}
	if len(text) > 253 {
		return dnsmessage.Name{}, errors.New("this is too long for a name of DNS")
	}
	return dnsmessage.NewName(text + ".")
}

// found is what is at a name.
type found struct {
	code    dnsmessage.RCode
	records []dnsmessage.Resource
}

var (
	nowhere = found{code: dnsmessage.RCodeNameError}     // there is no such name
	nothing = found{code: dnsmessage.RCodeSuccess}       // there is, without such a record
	unknown = found{code: dnsmessage.RCodeServerFailure} // nobody knows: ask another server
	refused = found{code: dnsmessage.RCodeRefused}
)

// find finds the answer to a question.
func (s *Server) find(q dnsmessage.Question) found {
	name := strings.ToLower(q.Name.String())
	below, ok := strings.CutSuffix(name, "."+s.zone)
	switch {
	case q.Class != dnsmessage.ClassINET, q.Type == dnsmessage.TypeAXFR, q.Type == 251, !ok && name != s.zone: // 251: IXFR
		return refused
	case name == s.zone:
		return s.apex(q)
	case !s.views.Sure(): // that a name does not exist would be remembered
		return unknown
	}
	srv := false
	rest := below
	if after, ok := strings.CutPrefix(rest, "_mysql._tcp."); ok {
		srv, rest = true, after
	} else if after, ok := strings.CutPrefix(rest, "_tcp."); ok && (strings.HasPrefix(after, "primary.") || strings.HasPrefix(after, "replicas.")) {
		if _, ok := s.group(after[strings.IndexByte(after, '.')+1:]); ok {
			return nothing
		}
	}
	if of, ok := strings.CutPrefix(rest, "primary."); ok {
		if g, ok := s.group(of); ok {
			return s.servers(q, g, true, srv)
		}
	}
	if of, ok := strings.CutPrefix(rest, "replicas."); ok {
		if g, ok := s.group(of); ok {
			return s.servers(q, g, false, srv)
		}
	}
	if srv {
		return nowhere
	}
	if of, ok := strings.CutPrefix(rest, "servers."); ok {
		if _, ok := s.group(of); ok {
			return nothing
		}
	}
	if member, of, ok := strings.Cut(rest, ".servers."); ok {
		if g, ok := s.group(of); ok {
			return s.member(q, g, member)
		}
	}
	if g, ok := s.group(rest); ok {
		return s.about(q, g)
	}
	return s.within(rest)
}

// within is what is at a name that has no records: nothing, if names of groups end with it; else it does not exist.
func (s *Server) within(rest string) found {
	if rest == "ns" {
		return nothing
	}
	for _, g := range s.views.Groups() {
		if strings.HasSuffix(strings.ToLower(g), "."+rest) {
			return nothing
		}
	}
	return nowhere
}

// group finds a group by its name in DNS, which does not tell cases apart.
func (s *Server) group(name string) (group.View, bool) {
	for _, g := range s.views.Groups() {
		if strings.EqualFold(g, name) {
			return s.views.View(g)
		}
	}
	return group.View{}, false
}

// record is one at the name that was asked for.
func record(q dnsmessage.Question, body dnsmessage.ResourceBody) dnsmessage.Resource {
	return dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: ttl}, Body: body}
}

// minimal answers questions for any record (RFC 8482).
func minimal(q dnsmessage.Question) found {
	return found{records: []dnsmessage.Resource{record(q, &dnsmessage.UnknownResource{Type: dnsmessage.TypeHINFO, Data: []byte("\x07RFC8482\x00")})}}
}

// apex is what is at the name of the zone itself.
func (s *Server) apex(q dnsmessage.Question) found {
	switch q.Type {
	case dnsmessage.TypeSOA:
		return found{records: []dnsmessage.Resource{s.soa()}}
	case dnsmessage.TypeNS:
		var f found
		for _, n := range s.ns {
			f.records = append(f.records, record(q, &dnsmessage.NSResource{NS: n}))
		}
		return f
	case dnsmessage.TypeALL:
		return minimal(q)
	}
	return nothing
}

// soa is the record of the zone, which bounds how long it is remembered that a name is not there. Its serial is the sum of the groups' epochs.
func (s *Server) soa() dnsmessage.Resource {
	zone, _ := nameOf(s.zone) // checked
	mbox, err := nameOf("hostmaster." + s.zone)
	if err != nil { // too long
		mbox = zone
	}
	var serial uint32
	for _, g := range s.views.Groups() {
		v, _ := s.views.View(g)
		serial += uint32(v.Epoch) // serials wrap
	}
	return dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: zone, Class: dnsmessage.ClassINET, TTL: ttl},
		Body: &dnsmessage.SOAResource{NS: s.ns[0], MBox: mbox, Serial: serial, Refresh: 3600, Retry: 600, Expire: 86400, MinTTL: ttl}}
}

// about is what is at the name of a group: its epoch.
func (s *Server) about(q dnsmessage.Question, v group.View) found {
	if q.Type != dnsmessage.TypeTXT && q.Type != dnsmessage.TypeALL {
		return nothing
	}
	text := []string{"epoch=" + strconv.FormatUint(v.Epoch, 10)}
	p, err := publish.PrimaryOf(v, s.now(), s.maxAge)
	if r := (*publish.Refusal)(nil); errors.As(err, &r) && r.Stale {
		return unknown
	}
	if err == nil {
		text = append(text, "primary="+p.Name, "since="+v.Since.UTC().Format(time.RFC3339))
	}
	return found{records: []dnsmessage.Resource{record(q, &dnsmessage.TXTResource{TXT: text})}}
}

// servers is the primary of a group, or its replicas. That nobody is the primary now is no failure: a resolver that may give out old answers where it meets
// failures must not give out the old primary.
func (s *Server) servers(q dnsmessage.Question, v group.View, primary, srv bool) found {
	var list []group.Server
	p, err := publish.PrimaryOf(v, s.now(), s.maxAge)
	if list = []group.Server{p}; !primary {
		list, err = publish.ReplicasOf(v, s.now(), s.maxAge, 0)
	}
	if r := (*publish.Refusal)(nil); errors.As(err, &r) && r.Stale {
		return unknown
	}
	if err != nil {
		return nothing
	}
	if !primary && len(list) > 1 { // each in turn is the first
		at := int(s.turn.Add(1) % uint32(len(list)))
		list = append(slices.Clone(list[at:]), list[:at]...)
	}
	list = list[:min(len(list), mostReplicas)]
	if srv {
		return s.services(q, v, list)
	}
	return addresses(q, list)
}

// addresses are the A, AAAA or CNAME records of servers. A name may have one CNAME only: that of the first.
func addresses(q dnsmessage.Question, list []group.Server) found {
	if q.Type == dnsmessage.TypeALL {
		return minimal(q)
	}
	var f found
	for i, s := range list {
		host, _, err := net.SplitHostPort(s.Address)
		if err != nil {
			continue
		}
		ip, err := netip.ParseAddr(host)
		switch {
		case err != nil && i == 0:
			name, err := nameOf(host)
			if err != nil {
				return unknown
			}
			return found{records: []dnsmessage.Resource{record(q, &dnsmessage.CNAMEResource{CNAME: name})}}
		case err != nil:
		case ip.Unmap().Is4() && q.Type == dnsmessage.TypeA:
			f.records = append(f.records, record(q, &dnsmessage.AResource{A: ip.Unmap().As4()}))
		case ip.Unmap().Is6() && q.Type == dnsmessage.TypeAAAA:
			f.records = append(f.records, record(q, &dnsmessage.AAAAResource{AAAA: ip.As16()}))
		}
	}
	return f
}

// services are SRV records, whose targets have addresses.
func (s *Server) services(q dnsmessage.Question, v group.View, list []group.Server) found {
	if q.Type == dnsmessage.TypeALL {
		return minimal(q)
	}
	if q.Type != dnsmessage.TypeSRV {
		return nothing
	}
	most := 1.0
	for _, m := range list {
		most = max(most, m.Weight)
	}
	var f found
	for _, m := range list {
		host, text, err := net.SplitHostPort(m.Address)
		if err != nil {
			continue
		}
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			continue
		}
		target := host
		if _, err := netip.ParseAddr(host); err == nil {
			target = m.Name + ".servers." + v.Group + "." + s.zone
		}
		name, err := nameOf(target)
		if err != nil {
			continue
		}
		f.records = append(f.records, record(q, &dnsmessage.SRVResource{Priority: 10, Weight: uint16(math.Round(1000 * max(0, m.Weight) / most)), Port: uint16(port), Target: name}))
	}
	return f
}

// member is the address of one server that takes clients.
func (s *Server) member(q dnsmessage.Question, v group.View, name string) found {
	list := slices.Clone(v.Replicas)
	if v.Primary != nil {
		list = append(list, *v.Primary)
	}
	for _, m := range s.views.Members(v.Group) {
		list = append(list, group.Server{Name: m.Name, Address: m.Address})
	}
	for _, m := range list {
		if strings.EqualFold(m.Name, name) {
			return addresses(q, []group.Server{m})
		}
	}
	if slices.ContainsFunc(list, func(m group.Server) bool { return strings.HasSuffix(strings.ToLower(m.Name), "."+name) }) {
		return nothing // names have dots
	}
	return nowhere
}
