package names

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/publish"
)

// known is a server that knows some groups.
func known(t testing.TB) (*Server, *publish.Board) {
	t.Helper()
	now := time.Now()
	b := publish.NewBoard()
	replica := func(name, address string) group.Server { return group.Server{Name: name, Address: address, Weight: 1} }
	for _, v := range []group.View{
		{Group: "shop", Epoch: 7, Seen: now, Since: now, Primary: &group.Server{Name: "db1", Address: "10.0.0.1:3306"}, Replicas: []group.Server{replica("db2", "10.0.0.2:3307"), {Name: "db3", Address: "[fd00::3]:3306", Weight: 3}}},
		{Group: "named.eu", Epoch: 2, Seen: now, Primary: &group.Server{Name: "a", Address: "Db1.example.com:3306"}, Replicas: []group.Server{replica("b", "db2.example.com:3306"), replica("c", "db3.example.com:3306")}},
		{Group: "none", Epoch: 3, Seen: now, NoPrimary: "a failover is under way"},
		{Group: "old", Epoch: 3, Seen: now.Add(-time.Hour), Primary: &group.Server{Name: "a", Address: "10.0.0.1:3306"}},
	} {
		b.Tell(v, []group.Member{{Name: "spare.x", Address: "10.0.0.9:3306"}})
	}
	many := group.View{Group: "many", Seen: now}
	for i := range 100 {
		many.Replicas = append(many.Replicas, replica("db-with-a-long-name-"+strings.Repeat("x", 30)+string(rune('a'+i%26))+string(rune('a'+i/26)), "10.1.0."+string(rune('1'+i%9))+":3306"))
	}
	b.Tell(many, nil)
	s, err := New("DB.example.com.", []string{"risso1.example.com"}, b, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return s, b
}

// question is a packet; with size, it has EDNS.
func question(t testing.TB, name string, kind dnsmessage.Type, size int) []byte {
	t.Helper()
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: 4711, RecursionDesired: true})
	err := b.StartQuestions()
	if err == nil {
		err = b.Question(dnsmessage.Question{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET})
	}
	if err == nil && size > 0 {
		if err = b.StartAdditionals(); err == nil {
			var h dnsmessage.ResourceHeader
			_ = h.SetEDNS0(size, 0, false)
			err = b.OPTResource(h, dnsmessage.OPTResource{})
		}
	}
	out, err2 := b.Finish()
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	return out
}

// told is an answer, read.
func told(t testing.TB, out []byte) (m dnsmessage.Message) {
	t.Helper()
	if err := m.Unpack(out); err != nil {
		t.Fatalf("%v: %x", err, out)
	}
	return m
}

// TestAnswer: which answer a question gets, by its code and records.
func TestAnswer(t *testing.T) {
	s, _ := known(t)
	const a, aaaa, srv, txt, any = dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypeSRV, dnsmessage.TypeTXT, dnsmessage.TypeALL
	for _, c := range []struct {
		name string
		kind dnsmessage.Type
		code dnsmessage.RCode
		want string // a part of the answers as Go shows them; "": there is none
	}{
		{"primary.shop.db.example.com.", a, 0, "A: [4]byte{10, 0, 0, 1}"},
		{"PRIMARY.Shop.dB.example.com.", a, 0, "PRIMARY.Shop.dB.example.com."}, // as it was asked
		{"primary.shop.db.example.com.", aaaa, 0, ""},
		{"primary.shop.db.example.com.", txt, 0, ""},
		{"primary.shop.db.example.com.", any, 0, "HINFO"},
		{"replicas.shop.db.example.com.", a, 0, "A: [4]byte{10, 0, 0, 2}"},
		{"replicas.shop.db.example.com.", aaaa, 0, "AAAA: [16]byte{253, 0, 0,"},
		{"_mysql._tcp.primary.shop.db.example.com.", srv, 0, `Priority: 10, Weight: 0, Port: 3306, Target: dnsmessage.MustNewName("db1.servers.shop.db.example.com.")`},
		{"_mysql._tcp.replicas.shop.db.example.com.", srv, 0, `Weight: 333, Port: 3307`},
		{"_mysql._tcp.primary.shop.db.example.com.", a, 0, ""},
		{"_tcp.primary.shop.db.example.com.", a, 0, ""},
		{"_mysql._tcp.nosuch.db.example.com.", srv, 3, ""},
		{"db3.servers.shop.db.example.com.", aaaa, 0, "AAAA: [16]byte{253"},
		{"spare.x.servers.shop.db.example.com.", a, 0, "A: [4]byte{10, 0, 0, 9}"},
		{"x.servers.shop.db.example.com.", a, 0, ""},
		{"servers.shop.db.example.com.", a, 0, ""},
		{"db9.servers.shop.db.example.com.", a, 3, ""},
		{"shop.db.example.com.", txt, 0, `"epoch=7", "primary=db1", "since=`},
		{"none.db.example.com.", txt, 0, `TXT: []string{"epoch=3"}`},
		{"old.db.example.com.", txt, 2, ""},
		{"shop.db.example.com.", a, 0, ""},
		{"primary.named.eu.db.example.com.", a, 0, `CNAME: dnsmessage.MustNewName("Db1.example.com.")`},
		{"primary.named.eu.db.example.com.", dnsmessage.TypeCNAME, 0, `CNAME: dnsmessage.MustNewName("Db1.example.com.")`},
		{"_mysql._tcp.primary.named.eu.db.example.com.", srv, 0, `Target: dnsmessage.MustNewName("Db1.example.com.")`},
		{"eu.db.example.com.", a, 0, ""},
		{"primary.none.db.example.com.", a, 0, ""},
		{"replicas.none.db.example.com.", a, 0, ""},
		{"primary.old.db.example.com.", a, 2, ""},
		{"_mysql._tcp.replicas.old.db.example.com.", srv, 2, ""},
		{"primary.nosuch.db.example.com.", a, 3, ""},
		{"db.example.com.", dnsmessage.TypeSOA, 0, "MinTTL: 1"},
		{"db.example.com.", dnsmessage.TypeNS, 0, `"risso1.example.com."`},
		{"db.example.com.", a, 0, ""},
		{"db.example.com.", any, 0, "HINFO"},
		{"db.example.com.", dnsmessage.TypeAXFR, 5, ""},
		{"example.com.", a, 5, ""},
		{"xdb.example.com.", a, 5, ""},
		{".", dnsmessage.TypeNS, 5, ""},
	} {
		m := told(t, s.Answer(question(t, c.name, c.kind, 0), false))
		text := ""
		for _, r := range m.Answers {
			text += strings.ReplaceAll(r.GoString(), `\x3d`, "=")
			if r.Header.TTL != 1 {
				t.Errorf("%s %s: TTL %d", c.name, c.kind, r.Header.TTL)
			}
		}
		if m.RCode != c.code || !strings.Contains(text, c.want) || (c.want == "") != (text == "") {
			t.Errorf("%s %s: got %s %q, want %s %q", c.name, c.kind, m.RCode, text, c.code, c.want)
		}
		known := c.code == 0 || c.code == dnsmessage.RCodeNameError
		negative := len(m.Authorities) == 1 && strings.Contains(m.Authorities[0].GoString(), "MinTTL: 1")
		if !m.Response || m.ID != 4711 || !m.RecursionDesired || m.RecursionAvailable || m.Authoritative != known || negative != (known && c.want == "") {
			t.Errorf("%s %s: %+v, authorities %+v", c.name, c.kind, m.Header, m.Authorities)
		}
	}
}

// TestSizes: an answer over UDP has the size that the client takes, with the bit that says so where it does not fit; packets that are no questions get the right
// code, or nothing.
func TestSizes(t *testing.T) {
	s, _ := known(t)
	const many = "_mysql._tcp.replicas.many.db.example.com."
	plain := s.Answer(question(t, many, dnsmessage.TypeSRV, 0), false)
	if m := told(t, plain); len(plain) > plainSize || !m.Truncated || len(m.Answers) > 0 {
		t.Errorf("without EDNS: %d bytes, %+v", len(plain), m.Header)
	}
	edns := s.Answer(question(t, many, dnsmessage.TypeSRV, 65000), false)
	if m := told(t, edns); len(edns) > ednsSize || m.Truncated || len(m.Answers) != mostReplicas || len(m.Additionals) != 1 || m.Additionals[0].Header.Class != ednsSize {
		t.Errorf("with EDNS: %d bytes, %d answers, %+v", len(edns), len(m.Answers), m.Additionals)
	}
	if m := told(t, s.Answer(question(t, many, dnsmessage.TypeSRV, 0), true)); m.Truncated || len(m.Answers) != mostReplicas {
		t.Errorf("over TCP: %+v", m.Header)
	}
	version := question(t, many, dnsmessage.TypeSRV, 1232)
	version[len(version)-5] = 1
	if m := told(t, s.Answer(version, false)); m.RCode != 0 || m.Additionals[0].Header.TTL>>24 != badVersion || len(m.Answers) > 0 {
		t.Errorf("EDNS 1: %+v %+v", m.Header, m.Additionals)
	}
	q := question(t, "shop.db.example.com.", dnsmessage.TypeTXT, 0)
	changed := func(f func(p []byte)) []byte {
		p := slices.Clone(q)
		f(p)
		return p
	}
	for name, c := range map[string]struct {
		packet []byte
		code   int // -1: no answer
	}{
		"nothing":       {nil, -1},
		"short":         {q[:11], -1},
		"an answer":     {changed(func(p []byte) { p[2] |= 0x80 }), -1},
		"an update":     {changed(func(p []byte) { p[2] |= 5 << 3 }), int(dnsmessage.RCodeNotImplemented)},
		"two questions": {changed(func(p []byte) { p[5] = 2 }), int(dnsmessage.RCodeFormatError)},
		"none":          {changed(func(p []byte) { p[5] = 0 }), int(dnsmessage.RCodeFormatError)},
		"cut":           {q[:20], int(dnsmessage.RCodeFormatError)},
		"another class": {changed(func(p []byte) { p[len(p)-1] = 3 }), int(dnsmessage.RCodeRefused)},
	} {
		out := s.Answer(c.packet, false)
		if (out == nil) != (c.code < 0) || out != nil && int(told(t, out).RCode) != c.code {
			t.Errorf("%s: got %x, want code %d", name, out, c.code)
		}
	}
	first := map[string]bool{}
	for range 20 {
		first[told(t, s.Answer(question(t, "replicas.many.db.example.com.", dnsmessage.TypeA, 0), false)).Answers[0].GoString()] = true
	}
	if len(first) < 3 {
		t.Errorf("only %d replicas come first", len(first))
	}
	for _, zone := range []string{"", ".", "a..b", strings.Repeat("x", 64) + ".com", "a b"} {
		if _, err := New(zone, nil, nil, 0); err == nil {
			t.Errorf("zone %q is taken", zone)
		}
	}
}

// FuzzAnswer: whatever comes, there is no answer, or a short one that can be read, to that packet.
func FuzzAnswer(f *testing.F) {
	s, _ := known(f)
	for _, name := range []string{"primary.shop.db.example.com.", "_mysql._tcp.replicas.many.db.example.com.", "db.example.com."} {
		f.Add(question(f, name, dnsmessage.TypeSRV, 0))
		f.Add(question(f, name, dnsmessage.TypeALL, 4096))
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		out := s.Answer(packet, false)
		if out == nil {
			return
		}
		if m := told(t, out); len(out) > ednsSize || !m.Response || m.ID != binary.BigEndian.Uint16(packet) {
			t.Errorf("%d bytes, %+v", len(out), m.Header)
		}
	})
}

// TestResolver: Go's own resolver finds servers, over UDP and TCP, and follows a change at once.
func TestResolver(t *testing.T) {
	s, b := known(t)
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, packets, ln) }()
	to := map[string]string{"udp": packets.LocalAddr().String(), "tcp": ln.Addr().String()}
	for _, network := range []string{"udp", "tcp"} {
		var d net.Dialer
		r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, asked, _ string) (net.Conn, error) {
			if network == "tcp" || asked == "tcp" {
				return d.DialContext(ctx, "tcp", to["tcp"])
			}
			return d.DialContext(ctx, "udp", to["udp"])
		}}
		if got, err := r.LookupHost(t.Context(), "primary.shop.db.example.com."); err != nil || !slices.Equal(got, []string{"10.0.0.1"}) {
			t.Errorf("%s: %q, %v", network, got, err)
		}
		if got, err := r.LookupHost(t.Context(), "replicas.shop.db.example.com."); err != nil || len(got) != 2 {
			t.Errorf("%s: %q, %v", network, got, err)
		}
		if _, list, err := r.LookupSRV(t.Context(), "mysql", "tcp", "replicas.shop.db.example.com."); err != nil || len(list) != 2 || !strings.HasSuffix(list[0].Target, ".servers.shop.db.example.com.") {
			t.Errorf("%s: %+v, %v", network, list, err)
		}
		if _, list, err := r.LookupSRV(t.Context(), "mysql", "tcp", "replicas.many.db.example.com."); err != nil || len(list) != mostReplicas { // too long for UDP without EDNS
			t.Errorf("%s: %d, %v", network, len(list), err)
		}
		if got, err := r.LookupTXT(t.Context(), "shop.db.example.com."); err != nil || len(got) != 1 || !strings.HasPrefix(got[0], "epoch=") {
			t.Errorf("%s: %q, %v", network, got, err)
		}
		_, err := r.LookupHost(t.Context(), "primary.none.db.example.com.")
		if e, ok := err.(*net.DNSError); !ok || !e.IsNotFound || e.IsTemporary {
			t.Errorf("%s, during a failover: %v", network, err)
		}
		_, err = r.LookupHost(t.Context(), "primary.old.db.example.com.")
		if e, ok := err.(*net.DNSError); !ok || !e.IsTemporary {
			t.Errorf("%s, what nobody knows: %v", network, err)
		}
	}
	v, _ := b.View("shop")
	v.Epoch, v.Primary = 8, &group.Server{Name: "db2", Address: "10.0.0.2:3306"}
	b.Tell(v, nil)
	// Two questions over one connection, in pieces.
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		p := question(t, "primary.shop.db.example.com.", dnsmessage.TypeA, 0)
		for _, piece := range [][]byte{{0}, {byte(len(p))}, p[:5], p[5:]} {
			if _, err := c.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			t.Fatal(err)
		}
		out := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(c, out); err != nil || !strings.Contains(told(t, out).Answers[0].GoString(), "10, 0, 0, 2") {
			t.Errorf("%x, %v", out, err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
