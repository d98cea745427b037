package names

import (
	"errors"

	"golang.org/x/net/dns/dnsmessage"
)

// asked is a question as it came.
type asked struct {
	header   dnsmessage.Header
	question dnsmessage.Question
	one      bool // there is exactly one question
	edns     bool
	version  uint8
	size     int // of an answer over UDP that the client takes
}

var errNoQuestion = errors.New("this is no question")

// read reads a packet. Its error means that it gets no answer at all.
func read(packet []byte) (a asked, err error) {
	var p dnsmessage.Parser
	if a.header, err = p.Start(packet); err != nil {
		return a, err
	}
	if a.header.Response { // an answer to an answer could go to and fro for ever
		return a, errNoQuestion
	}
	a.size = plainSize
	list, err := p.AllQuestions()
	if err != nil {
		return a, nil // told that it is malformed
	}
	if len(list) == 1 {
		a.one, a.question = true, list[0]
	}
	if p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return a, nil
	}
	for {
		h, err := p.AdditionalHeader()
		if err != nil {
			return a, nil
		}
		if h.Type == dnsmessage.TypeOPT && !a.edns {
			a.edns, a.version = true, uint8(h.TTL>>16)
			a.size = min(ednsSize, max(plainSize, int(h.Class)))
		}
		if p.SkipAdditional() != nil {
			return a, nil
		}
	}
}

// badVersion is the extended code for a version of EDNS that is not known: 16, whose low four bits are 0.
const badVersion = 1

// Answer answers a packet; nil: it gets none. tcp says that the answer may be of any size.
func (s *Server) Answer(packet []byte, tcp bool) []byte {
	a, err := read(packet)
	if err != nil {
		return nil
	}
	f, extended := found{code: dnsmessage.RCodeFormatError}, uint8(0)
	switch {
	case a.header.OpCode != 0:
		f.code = dnsmessage.RCodeNotImplemented
	case !a.one:
	case a.edns && a.version > 0:
		f, extended = nothing, badVersion
	default:
		f = s.find(a.question)
	}
	size := a.size
	if tcp {
		size = tcpSize
	}
	out, err := s.build(a, f, extended, false)
	if err == nil && len(out) > size {
		out, err = s.build(a, found{code: f.code}, extended, true)
	}
	if err != nil {
		return nil
	}
	return out
}

// build writes an answer.
func (s *Server) build(a asked, f found, extended uint8, truncated bool) ([]byte, error) {
	known := f.code == dnsmessage.RCodeSuccess || f.code == dnsmessage.RCodeNameError
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: a.header.ID, Response: true, OpCode: a.header.OpCode, Authoritative: known && extended == 0 && a.one, Truncated: truncated,
		RecursionDesired: a.header.RecursionDesired, RCode: f.code})
	b.EnableCompression()
	if err := b.StartQuestions(); err != nil {
		return nil, err
	}
	if a.one {
		if err := b.Question(a.question); err != nil {
			return nil, err
		}
	}
	if err := b.StartAnswers(); err != nil {
		return nil, err
	}
	for _, r := range f.records {
		if err := add(&b, r); err != nil {
			return nil, err
		}
	}
	if err := b.StartAuthorities(); err != nil {
		return nil, err
	}
	if known && len(f.records) == 0 && !truncated && extended == 0 {
		if err := add(&b, s.soa()); err != nil {
			return nil, err
		}
	}
	if err := b.StartAdditionals(); err != nil {
		return nil, err
	}
	if a.edns {
		var h dnsmessage.ResourceHeader
		if err := h.SetEDNS0(ednsSize, f.code, false); err != nil {
			return nil, err
		}
		h.TTL = uint32(extended) << 24
		if err := b.OPTResource(h, dnsmessage.OPTResource{}); err != nil {
			return nil, err
		}
	}
	return b.Finish()
}

// add adds one record.
func add(b *dnsmessage.Builder, r dnsmessage.Resource) error {
	switch body := r.Body.(type) {
	case *dnsmessage.AResource:
		return b.AResource(r.Header, *body)
	case *dnsmessage.AAAAResource:
		return b.AAAAResource(r.Header, *body)
	case *dnsmessage.CNAMEResource:
		return b.CNAMEResource(r.Header, *body)
	case *dnsmessage.NSResource:
		return b.NSResource(r.Header, *body)
	case *dnsmessage.SOAResource:
		return b.SOAResource(r.Header, *body)
	case *dnsmessage.SRVResource:
		return b.SRVResource(r.Header, *body)
	case *dnsmessage.TXTResource:
		return b.TXTResource(r.Header, *body)
	case *dnsmessage.UnknownResource:
		return b.UnknownResource(r.Header, *body)
	}
	return errors.New("a record of another kind")
}
