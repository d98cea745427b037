package wire

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/edwards25519"
	driver "github.com/go-sql-driver/mysql"
)

const salt = "abcdefghijklmnopqrst"

// hello is a server's greeting.
func hello(flags uint32, plugin string) []byte {
	b := append([]byte{10}, "9.9-test\x00"...)
	b = binary.LittleEndian.AppendUint32(b, 77)
	b = append(append(b, salt[:8]...), 0)
	b = append(b, byte(flags), byte(flags>>8), 45, 2, 0, byte(flags>>16), byte(flags>>24), 21)
	b = append(b, 0, 0, 0, 0, 0, 0, extCacheMetadata|extBulk|1, 0, 0, 0)
	b = append(append(b, salt[8:]...), 0)
	return append(append(b, plugin...), 0)
}

const allFlags = 0xffffffff

var okay = []byte{0, 0, 0, 2, 0, 0, 0}

// TestGreeting reads one of both flavours, and refuses all that are cut short.
func TestGreeting(t *testing.T) {
	whole := hello(allFlags&^capMySQL, pluginCaching)
	g, err := readGreeting(whole)
	if err != nil || g.session != 77 || string(g.salt) != salt || g.plugin != pluginCaching || g.ext != extCacheMetadata|extBulk|1 || g.flags != allFlags&^capMySQL {
		t.Errorf("got %+v, %v; want session 77, string(g.salt) %v, plugin %v, ext %v, flags %v",
			g, err, salt, pluginCaching, extCacheMetadata|extBulk|1, allFlags&^capMySQL)
	}
	if g, err := readGreeting(hello(allFlags, "p")); err != nil || g.ext != 0 {
		t.Errorf("of MySQL: got extended flags %#x, %v, want 0", g.ext, err)
	}
	for n := 1; n < len(whole)-len(pluginCaching)-1; n++ {
		if g, err := readGreeting(whole[:n]); err == nil {
			t.Errorf("the first %d of %d bytes: got %+v", n, len(whole), g)
		}
	}
	lies := slices.Clone(whole)
	lies[len("x9.9-test\x00")+4+8+1+7] = 255 // the salt's length
	if _, err := readGreeting(lies); !errors.Is(err, driver.ErrMalformPkt) {
		t.Errorf("a salt longer than the packet: got %v, want driver.ErrMalformPkt", err)
	}
	if _, err := readGreeting(hello(0, "")); !errors.Is(err, driver.ErrOldProtocol) {
		t.Errorf("the protocol before 4.1: got %v, want driver.ErrOldProtocol", err)
	}
	var refused *driver.MySQLError
	if _, err := readGreeting([]byte("\xff\x10\x04Too many connections")); !errors.As(err, &refused) || refused.Number != 1040 || refused.Message != "Too many connections" {
		t.Errorf("a full server: %v", err)
	}
}

func FuzzGreeting(f *testing.F) {
	f.Add(hello(allFlags, pluginNative))
	f.Add([]byte{0xff, 1})
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) > 0 {
			_, _ = readGreeting(p)
		}
	})
}

// server answers logins on a socket, each by talk, and gives the configuration for it.
func server(t *testing.T, network string, talk func(*Conn)) *driver.Config {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s := &Conn{raw: c, conn: c}
			s.in.buf = make([]byte, 1<<12)
			s.Over(c)
			talk(s)
			c.Close()
		}
	}()
	cfg := driver.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr = "u", "geheim", network, l.Addr().String()
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = time.Minute, time.Minute, time.Minute
	return cfg
}

// say sends and hear reads a packet with the next number.
func say(c *Conn, b ...byte) { _ = c.sendPacket(nil, b) }

func hear(c *Conn) []byte {
	b, _ := c.packet()
	return slices.Clone(b)
}

// answerIn finds what the client's first packet proves itself with.
func answerIn(p []byte) []byte {
	if len(p) < 32 {
		return nil
	}
	_, rest, _ := bytes.Cut(p[32:], []byte{0})
	v, _, _ := value(rest)
	return v
}

// TestPlugins proves the client by each plugin to a server that checks.
func TestPlugins(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	unseal := func(b []byte) string {
		plain, err := rsa.DecryptOAEP(sha1.New(), nil, key, b, nil)
		if err != nil {
			return err.Error()
		}
		for i := range plain {
			plain[i] ^= salt[i%len(salt)]
		}
		return string(plain)
	}
	native := func(s *Conn) bool {
		say(s, hello(allFlags&^capSSL&^capCompress, pluginNative)...)
		got := answerIn(hear(s))
		stored := sha1.Sum(sum(sha1.Sum([]byte("geheim"))))
		mask := sha1.Sum(append([]byte(salt), stored[:]...))
		for i := range got {
			got[i] ^= mask[i]
		}
		return sha1.Sum(got) == stored
	}
	caching := func(s *Conn) bool {
		say(s, hello(allFlags&^capSSL&^capCompress, pluginCaching)...)
		got := answerIn(hear(s))
		stored := sha256.Sum256(sum(sha256.Sum256([]byte("geheim"))))
		mask := sha256.Sum256(append(stored[:], salt...))
		for i := range got {
			got[i] ^= mask[i]
		}
		return sha256.Sum256(got) == stored
	}
	for name, c := range map[string]struct {
		network string
		talk    func(s *Conn) bool
	}{
		"native":       {"tcp", native},
		"caching fast": {"tcp", func(s *Conn) bool { right := caching(s); say(s, headerMore, fastSuccess); return right }},
		"caching with key": {"tcp", func(s *Conn) bool {
			right := caching(s)
			say(s, headerMore, fullAnswer)
			asked := hear(s)
			say(s, append([]byte{headerMore}, public...)...)
			return right && bytes.Equal(asked, []byte{askKey}) && unseal(hear(s)) == "geheim\x00"
		}},
		"caching by socket": {"unix", func(s *Conn) bool {
			right := caching(s)
			say(s, headerMore, fullAnswer)
			return right && string(hear(s)) == "geheim\x00"
		}},
		"sha256": {"unix", func(s *Conn) bool {
			say(s, hello(allFlags&^capSSL&^capCompress, pluginSHA256)...)
			asked := answerIn(hear(s))
			say(s, append([]byte{headerMore}, public...)...)
			return bytes.Equal(asked, []byte{askKeySHA256}) && unseal(hear(s)) == "geheim\x00"
		}},
		"change to sha256": {"tcp", func(s *Conn) bool {
			right := native(s)
			say(s, append([]byte{headerEOF}, pluginSHA256+"\x00"+salt+"\x00"...)...)
			asked := hear(s)
			say(s, append([]byte{headerMore}, public...)...)
			return right && bytes.Equal(asked, []byte{askKeySHA256}) && unseal(hear(s)) == "geheim\x00"
		}},
		"change to ed25519": {"tcp", func(s *Conn) bool {
			right := native(s)
			nonce := append(bytes.Repeat([]byte{9}, 31), 0) // a zero at the end is one of the nonce
			say(s, append(append([]byte{headerEOF}, pluginEd25519+"\x00"...), nonce...)...)
			h := sha512.Sum512([]byte("geheim"))
			scalar, err := edwards25519.NewScalar().SetBytesWithClamping(h[:32])
			return err == nil && right && ed25519.Verify(new(edwards25519.Point).ScalarBaseMult(scalar).Bytes(), nonce, hear(s))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			right := make(chan bool, 1)
			cfg := server(t, c.network, func(s *Conn) { right <- c.talk(s); say(s, okay...); hear(s) })
			client, err := Connect(t.Context(), cfg, 0)
			if err != nil {
				t.Fatal(err)
			}
			client.Close()
			if !<-right {
				t.Error("the server would not have believed it")
			}
		})
	}
}

func sum[T [sha1.Size]byte | [sha256.Size]byte](b T) []byte {
	out := make([]byte, 0, len(b))
	for i := range len(b) {
		out = append(out, b[i])
	}
	return out
}

// TestHostile ends logins that a server makes go wrong: there is an error, soon, and the password never goes out in clear.
func TestHostile(t *testing.T) {
	begin := func(s *Conn, plugin string) { say(s, hello(allFlags&^capSSL&^capCompress, plugin)...); hear(s) }
	for name, talk := range map[string]func(s *Conn){
		"nothing":      func(*Conn) {},
		"empty":        func(s *Conn) { say(s) },
		"cut":          func(s *Conn) { say(s, hello(allFlags, "")[:30]...) },
		"too long":     func(s *Conn) { _, _ = s.conn.Write([]byte{0xff, 0xff, 0xff, 0, 10}) },
		"wrong number": func(s *Conn) { s.in.sequence = 5; say(s, hello(allFlags, "")...) },
		"no TLS":       func(s *Conn) { begin(s, pluginClear); say(s, append([]byte{headerEOF}, pluginClear+"\x00"...)...) },
		"unknown":      func(s *Conn) { begin(s, pluginNative); say(s, append([]byte{headerEOF}, "nonsense\x00"+salt...)...) },
		"old":          func(s *Conn) { begin(s, pluginNative); say(s, headerEOF) },
		"no name":      func(s *Conn) { begin(s, pluginNative); say(s, headerEOF, 'x') },
		"short salt":   func(s *Conn) { begin(s, pluginNative); say(s, append([]byte{headerEOF}, pluginNative+"\x00abc"...)...) },
		"short nonce": func(s *Conn) {
			begin(s, pluginNative)
			say(s, append([]byte{headerEOF}, pluginEd25519+"\x00abc"...)...)
		},
		"no salt": func(s *Conn) {
			begin(s, pluginNative)
			say(s, append([]byte{headerEOF}, pluginSHA256+"\x00"...)...)
			hear(s)
			say(s, headerMore, 'k')
		},
		"no key":          func(s *Conn) { begin(s, pluginSHA256); say(s, headerMore, 'k') },
		"more for native": func(s *Conn) { begin(s, pluginNative); say(s, headerMore, 1) },
		"more of nothing": func(s *Conn) { begin(s, pluginCaching); say(s, headerMore) },
		"on and on": func(s *Conn) {
			begin(s, pluginCaching)
			for range 100 {
				say(s, headerMore, fastSuccess)
			}
		},
		"changes for ever": func(s *Conn) {
			begin(s, pluginNative)
			for range 3 {
				say(s, append([]byte{headerEOF}, pluginNative+"\x00"+salt...)...)
				hear(s)
			}
		},
		"neither one":    func(s *Conn) { begin(s, pluginNative); say(s, 0x42) },
		"OK that is cut": func(s *Conn) { begin(s, pluginNative); say(s, 0, 0xfe) },
	} {
		t.Run(name, func(t *testing.T) {
			said := make(chan []byte, 1)
			cfg := server(t, "tcp", func(s *Conn) {
				talk(s)
				_ = s.raw.(*net.TCPConn).CloseWrite()
				all, _ := io.ReadAll(s.raw)
				said <- all
			})
			cfg.Params = map[string]string{"a": "1"} // so that a login that succeeds says more
			c, err := Connect(t.Context(), cfg, 0)
			if err == nil {
				c.Close()
				t.Error("logged in")
			} else if strings.Contains(err.Error(), "geheim") {
				t.Errorf("the error has the password: %v, want no \"geheim\" in it", err)
			}
			if all := <-said; bytes.Contains(all, []byte("geheim")) {
				t.Errorf("the password went out: got %q, want no []byte(\"geheim\") in it", all)
			}
		})
	}
}

// TestLoginEnds: a context and the time-outs end a login on a server that says nothing.
// TestBeforeTLS: what somebody in between puts after the greeting is not taken for the server's under TLS.
func TestBeforeTLS(t *testing.T) {
	cfg := server(t, "tcp", func(s *Conn) {
		greeting := hello(allFlags, pluginCaching)
		all := append([]byte{byte(len(greeting)), 0, 0, 0}, greeting...)
		_, _ = s.raw.Write(append(all, 1, 0, 0, 1, headerOK)) // in one piece
		_, _ = io.Copy(io.Discard, s.raw)
	})
	cfg.TLS = &tls.Config{InsecureSkipVerify: true}
	c, err := Connect(t.Context(), cfg, 0)
	if err == nil {
		c.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "before TLS") {
		t.Errorf("got %v, want a refusal of what came before TLS", err)
	}
}

func TestLoginEnds(t *testing.T) {
	cfg := server(t, "tcp", func(s *Conn) { hear(s) })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Connect(ctx, cfg, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a context that ends: got %v, want context.DeadlineExceeded", err)
	}
	cfg.ReadTimeout = 20 * time.Millisecond
	var timeout net.Error
	if _, err := Connect(t.Context(), cfg, 0); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("a server that says nothing: got %v", err)
	}
}

// TestHello: what the client promises is what both sides can, and what it says about itself.
func TestHello(t *testing.T) {
	heard := make(chan []byte, 2)
	cfg := server(t, "tcp", func(s *Conn) {
		say(s, hello(allFlags&^capMySQL&^capSSL&^capTransactions, pluginNative)...)
		heard <- hear(s)
		say(s, okay...)
		s.in.sequence = 0
		s.in.from, s.link = &inflater{link: s.conn}, &inflater{link: s.conn, sequence: 1}
		heard <- hear(s)
		say(s, okay...)
	})
	cfg.DBName, cfg.ClientFoundRows, cfg.Params, cfg.ConnectionAttributes = "d?b/", true, map[string]string{"sql_mode": "''"}, "program_name:risso,rest"
	if err := cfg.Apply(driver.EnableCompression(true)); err != nil {
		t.Fatal(err)
	}
	c, err := Connect(t.Context(), cfg, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	first, set := <-heard, <-heard
	flags := binary.LittleEndian.Uint32(first)
	const yes, no = capCompress | capConnectWithDB | capFoundRows | capDeprecateEOF | capPluginAuth, capMySQL | capSSL | capTransactions
	if flags&yes != yes || flags&no != 0 || !c.HasBulk() || c.Encrypted() || c.Session() != 77 {
		t.Errorf("flags %#x, bulk %v, encrypted %v, session %d; want flags & yes %v, flags & no 0, c.HasBulk() true, c.Encrypted() false, c.Session() 77",
			flags, c.HasBulk(), c.Encrypted(), c.Session(), yes)
	}
	if ext := binary.LittleEndian.Uint32(first[28:]); ext != extBulk|extCacheMetadata {
		t.Errorf("extended flags: got %#x, want %#x", ext, extBulk|extCacheMetadata)
	}
	for _, want := range []string{"d?b/\x00", "\x0cprogram_name\x05risso", "\x0c_server_host\x09127.0.0.1"} {
		if !bytes.Contains(first, []byte(want)) {
			t.Errorf("got %q, which lacks %q; want []byte(want) in it", first, want)
		}
	}
	if string(set) != "\x03SET sql_mode = ''" {
		t.Errorf("got %q, want \"\\x03SET sql_mode = ''\"", set)
	}
}

// TestPackets joins and splits what is 16 MB and more, and refuses what is out of order.
func TestPackets(t *testing.T) {
	for _, size := range []int{1, 100, maxPacket - 1, maxPacket, maxPacket + 1, 2 * maxPacket, 2*maxPacket + 7} {
		out, link := over(nil, 1, 64)
		body := bytes.Repeat([]byte("0123456789a"), size/11+1)[:size]
		if err := out.send(body[:1], body[1:]); err != nil {
			t.Fatal(err)
		}
		if want := size + 4*(size/maxPacket+1); len(link.sent) != want {
			t.Errorf("%d bytes in packets: got %d, want %d", size, len(link.sent), want)
		}
		for _, buffer := range []int{64, 1 << 20} {
			in, _ := over(link.sent, 1<<16, buffer)
			if got, err := in.in.next(1 << 30); err != nil || !bytes.Equal(got, body) {
				t.Errorf("%d bytes by a buffer of %d: got %d, %v", size, buffer, len(got), err)
			}
			in, _ = over(link.sent, 1<<16, buffer)
			if got, err := in.packet(); (err == nil) != (size < maxPacket) {
				t.Errorf("%d bytes as an answer: got %d, %v", size, len(got), err)
			}
		}
	}
	in, _ := over(framed(3, []byte("x")), 1, 64)
	if _, err := in.packet(); !errors.Is(err, driver.ErrPktSync) {
		t.Errorf("packet 3 as the first: got %v, want driver.ErrPktSync", err)
	}
	in, _ = over(framed(3, []byte("\xff\x87\x07gone")), 1, 64)
	if p, err := in.packet(); err != nil || p[0] != headerError {
		t.Errorf("an error at any time: got %q, %v; want p[0] %v", p, err, headerError)
	}
}

// TestRows hands on rows of all sizes, and an error that is longer than the buffer in their place.
func TestRows(t *testing.T) {
	refusal := append([]byte("\xff\x10\x04#08004"), bytes.Repeat([]byte("long "), 100)...)
	row := append([]byte{0xfc, 200, 0}, bytes.Repeat([]byte("r"), 200)...)
	said := framed(1, []byte{1}, aColumn(TypeVarString), []byte{0xfe, 0, 0, 2, 0}, row, []byte{1, 'x'}, []byte{0xfe, 1, 0, 8, 0})
	said = append(said, framed(7, []byte{1}, aColumn(TypeVarString), []byte{0xfe, 0, 0, 2, 0}, row, refusal)...)
	for _, buffer := range []int{64, 1 << 12} {
		c, _ := over(said, 7, buffer)
		var sizes []int
		each := c.Each(func(row [][]byte) error { sizes = append(sizes, len(row[0])); return nil })
		if r, err := c.Query("", nil, each); err != nil || r != (Result{Warnings: 1, Columns: 1, Rows: 2, More: true}) || !slices.Equal(sizes, []int{200, 1}) {
			t.Errorf("a buffer of %d: got %+v, %v, %v; want r Result{Warnings: 1, Columns: 1, Rows: 2, More: true}, sizes []int{200, 1}",
				buffer, r, sizes, err)
		}
		var refused *driver.MySQLError
		if r, err := c.Next(nil, each); !errors.As(err, &refused) || refused.Number != 1040 || len(refused.Message) != 500 || r.Rows != 1 {
			t.Errorf("a buffer of %d: got %+v, %v", buffer, r, err)
		}
		if _, err := c.packet(); err != io.EOF {
			t.Errorf("a buffer of %d: behind the error: got %v, want io.EOF", buffer, err)
		}
	}
	full := errors.New("full")
	c, _ := over(said, 7, 64)
	var own *SinkError
	if _, err := c.Query("", nil, c.Each(func([][]byte) error { return full })); !errors.As(err, &own) || !errors.Is(err, full) {
		t.Errorf("a sink that refuses: got %v", err)
	}
}

// TestNumbers reads and writes lengths of every form.
func TestNumbers(t *testing.T) {
	for _, n := range []int{0, 1, 0xfa, 0xfb, 0xffff, 0x10000, 0xffffff, 0x1000000} {
		b := appendString(nil, make([]byte, n))
		if v, size, ok := value(b); !ok || len(v) != n || size != len(b) {
			t.Errorf("%d: got %d bytes of %d, %v; want ok true, len(v) %d, size %d", n, len(v), size, ok, n, len(b))
		}
		if _, _, ok := value(b[:len(b)-1]); ok {
			t.Errorf("%d: one byte less is read, too", n)
		}
	}
	for _, wrong := range []string{"", "\xff", "\xfc\x01", "\xfd\x01\x01", "\xfe\xff\xff\xff\xff\xff\xff\xff\xff", "\xfe\x01\x00\x00\x00\x00\x00\x00"} {
		if v, _, ok := value([]byte(wrong)); ok {
			t.Errorf("%q: got %q, want ok false", wrong, v)
		}
	}
}

// TestValues reads a value of every type of the binary protocol, whole and cut short.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		kind     byte
		unsigned bool
		bytes    string // in hexadecimal digits
		text     string
		number   int64
	}{
		{TypeTiny, false, "ff", "", -1}, {TypeTiny, true, "ff", "", 255}, {TypeShort, false, "feff", "", -2}, {TypeYear, true, "ea07", "", 2026},
		{TypeLong, false, "ffffff7f", "", 1<<31 - 1}, {TypeInt24, false, "ffffffff", "", -1}, {TypeLonglong, false, "ffffffffffffffff", "", -1},
		{TypeFloat, false, "0000c03f", "1.5", 0}, {TypeDouble, false, "000000000000f83f", "1.5", 0}, {TypeVarString, false, "03616263", "abc", 0},
		{TypeDate, false, "04ea070b17", "2026-11-23", 0}, {TypeDate, false, "00", "0000-00-00", 0}, {TypeDatetime, false, "04ea070b17", "2026-11-23 00:00:00", 0},
		{TypeDatetime, false, "07ea070b170e0f10", "2026-11-23 14:15:16", 0}, {TypeTimestamp, false, "0bea070b170e0f1001000000", "2026-11-23 14:15:16.000001", 0},
		{TypeTime, false, "00", "00:00:00", 0}, {TypeTime, false, "080102000000010203", "-49:02:03", 0}, {TypeTime, false, "0c000000000001020304000000", "01:02:03.000004", 0},
	} {
		raw, err := hex.DecodeString(c.bytes)
		if err != nil {
			t.Fatal(err)
		}
		col := Column{Type: c.kind}
		if c.unsigned {
			col.Flags = FlagUnsigned
		}
		row := append([]byte{0, 0}, raw...)
		got, err := AppendRow(nil, []Column{col}, row)
		if err != nil || len(got) != 1 || string(got[0].Text) != c.text || got[0].Int != c.number || got[0].Null {
			t.Errorf("type %d, %s: got %+v, %v; want len(got) 1, string(got[0].Text) %v, got[0].Int %v, got[0].Null false",
				c.kind, c.bytes, got, err, c.text, c.number)
		}
		for n := range row {
			if got, err := AppendRow(nil, []Column{col}, row[:n]); err == nil {
				t.Errorf("type %d, %s, cut to %d bytes: got %+v", c.kind, c.bytes, n, got)
			}
		}
		if got, err := AppendRow(nil, []Column{col}, []byte{0, 1 << 2}); err != nil || !got[0].Null {
			t.Errorf("NULL of type %d: got %+v, %v", c.kind, got, err)
		}
	}
}
