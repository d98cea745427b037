package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

// DefaultBuffer is how many bytes a connection reads at a time by default.
const DefaultBuffer = 32 << 10

// Connect dials, logs in and sets what the configuration sets: TLS, compression, character set, variables. buffer is how many
// bytes are read at a time; 0: DefaultBuffer. The session is as the driver's own for the same configuration. Its patience
// is the time-out for reading. Errors are those of the net and tls packages and of the driver.
func Connect(ctx context.Context, cfg *driver.Config, buffer int) (*Conn, error) {
	d := net.Dialer{Timeout: cfg.Timeout, KeepAlive: 15 * time.Second}
	raw, err := d.DialContext(ctx, cfg.Net, cfg.Addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	if buffer <= 0 {
		buffer = DefaultBuffer
	}
	c := &Conn{raw: raw, conn: raw}
	c.timed = timed{Conn: raw, raw: raw, read: cfg.ReadTimeout, write: cfg.WriteTimeout}
	c.in.buf = make([]byte, buffer)
	c.Over(&c.timed)
	err = c.login(ctx, cfg)
	if err == nil {
		err = c.begin(cfg)
	}
	if ended := !stop(); ended {
		err = context.Cause(ctx)
	}
	if err != nil {
		raw.Close()
		return nil, err
	}
	return c, raw.SetDeadline(time.Time{})
}

// login does the connection phase.
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase.html
func (c *Conn) login(ctx context.Context, cfg *driver.Config) error {
	p, err := c.packet()
	if err != nil {
		return err
	}
	g, err := readGreeting(p)
	if err != nil {
		return err
	}
	secure := cfg.TLS
	if secure != nil && g.flags&capSSL == 0 {
		if !cfg.AllowFallbackToPlaintext {
			return driver.ErrNoTLS
		}
		secure = nil
	}
	c.agree(cfg, g, secure != nil)
	head := c.helloHead()
	if secure != nil {
		if err := c.sendPacket(nil, head); err != nil { // "SSLRequest": the first part of what follows
			return err
		}
		if err := c.encrypt(ctx, cfg, secure); err != nil {
			return err
		}
	}
	a := auth{conn: c, cfg: cfg, safe: secure != nil}
	answer, err := a.first(g.plugin, g.salt)
	if err != nil {
		return err
	}
	if err := c.sendPacket(head, c.helloRest(cfg, a.plugin, answer)); err != nil {
		return err
	}
	if err := a.finish(); err != nil {
		return err
	}
	if c.flags&capCompress != 0 {
		c.zip = &inflater{link: &c.timed}
		// Under compression the numbers may differ: servers do not check them there either.
		c.in.from, c.link, c.in.anyOrder = c.zip, c.zip, true
	}
	return nil
}

// greeting is what a server says first.
type greeting struct {
	session    uint32
	salt       []byte
	flags, ext uint32
	plugin     string
}

// readGreeting reads "Protocol::HandshakeV10", or the refusal that comes in its place.
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_handshake_v10.html
func readGreeting(p []byte) (greeting, error) {
	var g greeting
	if p[0] == headerError {
		return g, errorPacket(p)
	}
	if p[0] != 10 {
		return g, fmt.Errorf("%w: version %d", driver.ErrOldProtocol, p[0])
	}
	// Behind the server's version: number of the session, salt and a zero; flags, collation, status, flags and the salt's
	// size; a filler, in which MariaDB has its extended flags; the rest of the salt, and the name of the plugin.
	const first, saltLen, fixed, more = 4, 8, 2 + 1 + 2 + 2 + 1, 6 + 4
	_, rest, ok := bytes.Cut(p[1:], []byte{0})
	if !ok || len(rest) < first+saltLen+1+fixed+more {
		return g, malformed("the server's greeting")
	}
	g.session = binary.LittleEndian.Uint32(rest)
	g.salt = slices.Clone(rest[first : first+saltLen])
	rest = rest[first+saltLen+1:]
	g.flags = uint32(binary.LittleEndian.Uint16(rest)) | uint32(binary.LittleEndian.Uint16(rest[5:]))<<16
	size := int(rest[7])
	if g.flags&capMySQL == 0 {
		g.ext = binary.LittleEndian.Uint32(rest[fixed+6:])
	}
	if g.flags&capProtocol41 == 0 {
		return g, driver.ErrOldProtocol
	}
	rest = rest[fixed+more:]
	second := max(13, size-saltLen) // followed by a zero
	if len(rest) < second {
		return g, malformed("the server's greeting")
	}
	g.salt = append(g.salt, rest[:second-1]...)
	name, _, _ := bytes.Cut(rest[second:], []byte{0})
	g.plugin = string(name)
	return g, nil
}

// agree settles what both sides can.
func (c *Conn) agree(cfg *driver.Config, g greeting, secure bool) {
	wants := uint32(capMySQL | capLongFlag | capProtocol41 | capSecure | capTransactions | capLenencAuth | capLocalFiles | capPluginAuth |
		capMultiResults | capAttributes | capDeprecateEOF)
	for flag, wanted := range map[uint32]bool{
		capFoundRows: cfg.ClientFoundRows, capCompress: parameter(cfg, "compress") == "true", capSSL: secure, capConnectWithDB: cfg.DBName != "",
	} {
		if wanted {
			wants |= flag
		}
	}
	c.session = g.session
	c.flags = wants & g.flags
	c.ext = (extBulk | extCacheMetadata) & g.ext
}

// parameter is one of those of a DSN that the driver keeps to itself.
func parameter(cfg *driver.Config, name string) string {
	dsn := cfg.FormatDSN()
	_, query, _ := strings.Cut(dsn[strings.LastIndexByte(dsn, '/')+1:], "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	return values.Get(name)
}

// helloHead is the fixed part of the client's first packet.
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_handshake_response.html
func (c *Conn) helloHead() []byte {
	const utf8mb4GeneralCI = 45
	head := binary.LittleEndian.AppendUint32(nil, c.flags)
	head = binary.LittleEndian.AppendUint32(head, 0) // no limit for packets
	head = append(head, utf8mb4GeneralCI)
	head = append(head, make([]byte, 19)...)
	return binary.LittleEndian.AppendUint32(head, c.ext)
}

// helloRest is what follows it: it has the password's answer and so is sent under TLS, if at all.
func (c *Conn) helloRest(cfg *driver.Config, plugin string, answer []byte) []byte {
	b := append([]byte(cfg.User), 0)
	b = appendString(b, answer)
	if c.flags&capConnectWithDB != 0 {
		b = append(append(b, cfg.DBName...), 0)
	}
	b = append(append(b, plugin...), 0)
	if c.flags&capAttributes != 0 {
		b = appendString(b, attributes(cfg))
	}
	return b
}

// attributes are what the server shows in performance_schema.session_connect_attrs.
func attributes(cfg *driver.Config) (list []byte) {
	host, _, _ := net.SplitHostPort(cfg.Addr)
	pairs := []string{"_client_name:risso", "_os:" + runtime.GOOS, "_platform:" + runtime.GOARCH, "_pid:" + strconv.Itoa(os.Getpid())}
	if host != "" {
		pairs = append(pairs, "_server_host:"+host)
	}
	for _, pair := range append(pairs, strings.Split(cfg.ConnectionAttributes, ",")...) {
		if name, v, ok := strings.Cut(pair, ":"); ok {
			list = appendString(appendString(list, name), v)
		}
	}
	return list
}

// encrypt puts TLS over the socket. What came after the greeting was not encrypted, and would be taken for what comes under TLS: anybody
// in between may have put it there (libpq had that fault: CVE-2021-23222).
func (c *Conn) encrypt(ctx context.Context, cfg *driver.Config, secure *tls.Config) error {
	if c.in.r != c.in.w {
		return fmt.Errorf("%w: data arrived before TLS began", driver.ErrMalformPkt)
	}
	secure = secure.Clone()
	if secure.ServerName == "" && !secure.InsecureSkipVerify {
		secure.ServerName, _, _ = net.SplitHostPort(cfg.Addr)
	}
	if err := c.raw.SetDeadline(within(cfg.ReadTimeout)); err != nil {
		return err
	}
	over := tls.Client(c.raw, secure)
	if err := over.HandshakeContext(ctx); err != nil {
		return err
	}
	c.conn, c.timed.Conn = over, over
	return nil
}

// begin sets what the configuration says of the session.
func (c *Conn) begin(cfg *driver.Config) error {
	if err := c.setNames(parameter(cfg, "charset"), cfg.Collation); err != nil {
		return err
	}
	if len(cfg.Params) == 0 {
		return nil
	}
	var sets []string
	for name, v := range cfg.Params {
		sets = append(sets, name+" = "+v)
	}
	_, err := c.Query("SET "+strings.Join(sets, ", "), nil, nil)
	return err
}

// setNames takes the first of some character sets that the server has.
func (c *Conn) setNames(charsets, collation string) error {
	if charsets == "" && collation == "" {
		return nil
	}
	if charsets == "" {
		charsets, _, _ = strings.Cut(collation, "_")
	}
	var err error
	for charset := range strings.SplitSeq(charsets, ",") {
		set := "SET NAMES " + charset
		if collation != "" {
			set += " COLLATE " + collation
		}
		var refused *driver.MySQLError
		if _, err = c.Query(set, nil, nil); err == nil || !errors.As(err, &refused) {
			break
		}
	}
	return err
}
