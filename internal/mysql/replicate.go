package mysql

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/mysql/errno"
)

// Log is one of a server's binary logs.
type Log struct {
	Name      string
	Size      int64 // bytes of the log, without what an encrypted file has in front of it
	Encrypted bool  // said by MySQL only
}

// encryptedHead is the length of what stands in front of an encrypted log in MySQL's file: Rpl_encryption_header::HEADER_SIZE,
// sql/rpl_log_encryption.h. The size in SHOW BINARY LOGS counts it.
const encryptedHead = 512

// Logs lists the binary logs of a server, the oldest first. There are none when log_bin is off: the error says so.
func Logs(ctx context.Context, c *Conn) ([]Log, error) {
	rows, err := c.Maps(ctx, "SHOW /* risso: which binary logs are there? */ BINARY LOGS")
	if err != nil {
		return nil, fmt.Errorf("list the binary logs: %w", err)
	}
	list := make([]Log, 0, len(rows))
	for _, r := range rows {
		size, _ := strconv.ParseInt(r["File_size"], 10, 64)
		l := Log{Name: r["Log_name"], Size: size, Encrypted: strings.EqualFold(r["Encrypted"], "yes")}
		if l.Encrypted {
			l.Size = max(0, l.Size-encryptedHead)
		}
		list = append(list, l)
	}
	return list, nil
}

// LogPosition is where a server writes its binary log now: file and byte.
func LogPosition(ctx context.Context, c *Conn) (file string, pos int64, err error) {
	statement := "SHOW /* risso: binary log position */ MASTER STATUS"
	if c.Server.atLeast(80200) { // the old words were removed in 8.4
		statement = "SHOW /* risso: binary log position */ BINARY LOG STATUS"
	}
	rows, err := c.Maps(ctx, statement)
	if err != nil {
		return "", 0, fmt.Errorf("ask for the binary log position: %w", err)
	}
	if len(rows) == 0 {
		return "", 0, errors.New("the server writes no binary log (log_bin is off)")
	}
	pos, _ = strconv.ParseInt(rows[0]["Position"], 10, 64)
	return rows[0]["File"], pos, nil
}

// ExecutedGTIDs is the set of transactions that a server has: gtid_executed of MySQL, gtid_current_pos of MariaDB (what it
// has written itself and what it has applied as a replica).
func ExecutedGTIDs(ctx context.Context, c *Conn) (GTIDSet, error) {
	statement := "SELECT /* risso: which transactions? */ @@GLOBAL.gtid_executed AS g"
	if c.Server.MariaDB() {
		statement = "SELECT /* risso: which transactions? */ @@GLOBAL.gtid_current_pos AS g"
	}
	rows, err := c.Maps(ctx, statement)
	if err != nil {
		return GTIDSet{}, fmt.Errorf("ask for the executed GTIDs: %w", err)
	}
	if len(rows) == 0 {
		return GTIDSet{}, nil
	}
	return ParseGTIDSet(rows[0]["g"])
}

// LoggedGTIDs is what a server's own binary log holds by GTID, those with a new binary log before it included: gtid_executed
// of MySQL, gtid_binlog_pos of MariaDB.
func LoggedGTIDs(ctx context.Context, c *Conn) (GTIDSet, error) {
	if !c.Server.MariaDB() {
		return ExecutedGTIDs(ctx, c)
	}
	rows, err := c.Maps(ctx, "SELECT /* risso: which transactions? */ @@GLOBAL.gtid_binlog_pos AS g")
	if err != nil || len(rows) == 0 {
		return GTIDSet{}, err
	}
	return ParseGTIDSet(rows[0]["g"])
}

// DumpOptions say what a server is to send of its binary logs.
type DumpOptions struct {
	Identity  string // of the server that is meant, as fleet.Seat has it; "": any. Behind one address may be several, and a failover moves it.
	File      string
	Pos       int64         // at least 4
	ServerID  uint32        // of the replica that we claim to be; 0: one is drawn. No two replicas may have the same.
	Wait      bool          // at the end wait for more; else the server ends the stream
	SemiSync  bool          // ask the server to wait for our acknowledgements
	Heartbeat time.Duration // how often the server says that it lives while nothing is written
}

// Dump is a stream of binary log events from a server, as a replica gets it.
type Dump struct {
	conn     net.Conn
	in       *packetReader
	SemiSync bool // the server takes acknowledgements
	stop     func() bool
	once     sync.Once
}

// Dump asks a server for its binary logs from a position on. The account needs REPLICATION SLAVE. When ctx ends the stream
// breaks. Errors are of type *Error.
func (t Target) Dump(ctx context.Context, o DumpOptions) (*Dump, error) {
	c, err := Connect(ctx, t, nil) // what server it is, and whether it can acknowledge
	if err != nil {
		return nil, err
	}
	server := c.Server
	semi := o.SemiSync && semiSyncSource(ctx, c)
	c.Close()
	conn, err := t.connectStream(ctx)
	if err != nil {
		return nil, err
	}
	d := &Dump{conn: conn, in: newPacketReader(conn), SemiSync: semi}
	d.stop = context.AfterFunc(ctx, func() { d.conn.Close() })
	if err := d.begin(server, o); err != nil {
		d.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, classify(t, err)
	}
	return d, nil
}

// semiSyncSource says whether the server's side of semi-synchronous replication is on; its plugin has three names.
func semiSyncSource(ctx context.Context, c *Conn) bool {
	rows, _ := c.Maps(ctx, "SHOW /* risso: semi-sync? */ GLOBAL VARIABLES WHERE Variable_name IN ('rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled')")
	for _, r := range rows {
		if r["Value"] == "ON" {
			return true
		}
	}
	return false
}

// ErrOtherServer says that another server answers at the address than the one that was meant.
var ErrOtherServer = errors.New("another server answers at this address")

// same makes sure that it is the server that is meant: asked on this very connection.
func (d *Dump) same(server Server, want string) error {
	got, err := d.value(server.ownID())
	if err == nil && got != want {
		err = fmt.Errorf("%w: %s, not %s", ErrOtherServer, got, want)
	}
	return err
}

// value runs a statement whose result is one short value.
func (d *Dump) value(statement string) (string, error) {
	d.conn.SetDeadline(time.Now().Add(defaultIOTimeout))
	defer d.conn.SetDeadline(time.Time{})
	if err := d.in.write(d.conn, 0, append([]byte{3}, statement...)); err != nil {
		return "", err
	}
	var row string
	// The number of columns, the column, EOF from servers and sessions that still have it, the row, EOF or OK.
	for n := 0; ; n++ {
		b, err := d.in.packet()
		switch {
		case err != nil:
			return "", err
		case len(b) == 0:
			return "", driver.ErrMalformPkt
		case b[0] == headerError:
			return "", serverError(b)
		case n < 2:
		case b[0] == headerEOF && len(b) < 9 && n > 2:
			return row, nil
		case b[0] == headerEOF && len(b) < 9: // behind the columns
		default:
			v, _, ok := value(b)
			if !ok {
				return "", driver.ErrMalformPkt
			}
			row = string(v)
		}
	}
}

// begin sets up the session, registers as a replica and asks for the logs.
func (d *Dump) begin(server Server, o DumpOptions) error {
	// With checksums as in the file. @master_… are the names of all servers until MySQL 8.0.26, which knows both.
	sets := []string{
		"SET /* risso: mirror the binary log */ @master_binlog_checksum = @@GLOBAL.binlog_checksum, @source_binlog_checksum = @@GLOBAL.binlog_checksum",
	}
	if o.Heartbeat > 0 {
		sets = append(sets, fmt.Sprintf("SET @master_heartbeat_period = %d, @source_heartbeat_period = %d", o.Heartbeat.Nanoseconds(), o.Heartbeat.Nanoseconds()))
	}
	if server.MariaDB() {
		sets = append(sets, "SET @mariadb_slave_capability = 4") // we know all events of MariaDB 10.0 and later
	} else {
		// A server ends the stream of a replica that comes back with the same UUID.
		uuid := newUUID()
		sets = append(sets, "SET @slave_uuid = '"+uuid+"', @replica_uuid = '"+uuid+"'")
	}
	if d.SemiSync {
		sets = append(sets, "SET @rpl_semi_sync_slave = 1, @rpl_semi_sync_replica = 1")
	}
	if o.Identity != "" {
		if err := d.same(server, o.Identity); err != nil {
			return err
		}
	}
	for _, s := range sets {
		if err := d.command(append([]byte{3}, s...)); err != nil {
			return err
		}
	}
	id := o.ServerID
	if id == 0 {
		var b [4]byte
		rand.Read(b[:])
		id = binary.LittleEndian.Uint32(b[:])>>1 | 1<<30 // far from numbers that people give
	}
	// COM_REGISTER_REPLICA: shows us in SHOW REPLICAS.
	reg := binary.LittleEndian.AppendUint32([]byte{0x15}, id)
	reg = append(reg, 5)
	reg = append(reg, "risso"...)
	reg = append(reg, make([]byte, 2+2+4+4)...) // no user, no password, no port, rank, source
	if err := d.command(reg); err != nil {
		return err
	}
	// COM_BINLOG_DUMP. Flag 1: do not wait at the end. Flag 2: MariaDB sends annotate events, which are in the file.
	flags := uint16(0)
	if !o.Wait {
		flags |= 1
	}
	if server.MariaDB() {
		flags |= 2
	}
	dump := binary.LittleEndian.AppendUint32([]byte{0x12}, uint32(o.Pos))
	dump = binary.LittleEndian.AppendUint16(dump, flags)
	dump = binary.LittleEndian.AppendUint32(dump, id)
	dump = append(dump, o.File...)
	return d.in.write(d.conn, 0, dump)
}

// command sends a command and reads its OK.
func (d *Dump) command(payload []byte) error {
	d.conn.SetDeadline(time.Now().Add(defaultIOTimeout))
	defer d.conn.SetDeadline(time.Time{})
	if err := d.in.write(d.conn, 0, payload); err != nil {
		return err
	}
	b, err := d.in.packet()
	if err != nil {
		return err
	}
	if len(b) > 0 && b[0] == 0xff {
		return serverError(b)
	}
	return nil
}

// ErrEndOfLogs says that the server has no more, of a Dump that does not wait.
var ErrEndOfLogs = errors.New("end of the binary logs")

// LogRefused says that a server could not read its log from where it was asked to: ER_MASTER_FATAL_ERROR_READING_BINLOG.
func LogRefused(err error) bool {
	var e *driver.MySQLError
	return errors.As(err, &e) && e.Number == errno.BinlogUnreadable
}

// Next gives the next event; its bytes are valid until the next call. ack says that the server waits for an acknowledgement
// of it. patience is how long it is waited for; the server's heartbeats count as life.
func (d *Dump) Next(patience time.Duration) (event []byte, ack bool, err error) {
	b, ok := d.in.here()
	if !ok { // what is here needs no time; a deadline of before may be over
		d.conn.SetReadDeadline(time.Now().Add(patience))
		if b, err = d.in.packet(); err != nil {
			return nil, false, err
		}
	}
	switch {
	case len(b) == 0:
		return nil, false, errors.New("an empty packet instead of an event")
	case b[0] == 0xff:
		return nil, false, serverError(b)
	case b[0] == 0xfe && len(b) < 9:
		return nil, false, ErrEndOfLogs
	case b[0] != 0:
		return nil, false, fmt.Errorf("packet %#x instead of an event", b[0])
	}
	b = b[1:]
	if d.SemiSync && len(b) >= 2 && b[0] == 0xef {
		ack, b = b[1]&1 != 0, b[2:]
	}
	return b, ack, nil
}

// Ready waits until something came that Next did not give out yet, but no longer than wait.
func (d *Dump) Ready(wait time.Duration) (bool, error) {
	if d.in.buffered() > 0 {
		return true, nil
	}
	d.conn.SetReadDeadline(time.Now().Add(wait))
	err := d.in.fill(1)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return false, nil
	}
	return err == nil, err
}

// Buffered says how many bytes came already and were not yet given out.
func (d *Dump) Buffered() int { return d.in.buffered() }

// Ack tells the server that everything up to a position of a file is on disk here.
func (d *Dump) Ack(file string, pos int64) error {
	b := binary.LittleEndian.AppendUint64([]byte{0xef}, uint64(pos))
	d.conn.SetWriteDeadline(time.Now().Add(defaultIOTimeout))
	return d.in.write(d.conn, 0, append(b, file...))
}

// Close ends the stream.
func (d *Dump) Close() {
	d.once.Do(func() {
		d.stop()
		d.conn.Close()
	})
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// serverError reads an ERR packet.
func serverError(b []byte) error {
	if len(b) < 3 {
		return errors.New("an error packet that is cut off")
	}
	e := &driver.MySQLError{Number: binary.LittleEndian.Uint16(b[1:])}
	msg := b[3:]
	if len(msg) >= 6 && msg[0] == '#' {
		copy(e.SQLState[:], msg[1:6])
		msg = msg[6:]
	}
	e.Message = string(msg)
	return e
}

// packetReader reads packets of the protocol through one buffer; those that fit are given out without a copy.
type packetReader struct {
	in       io.Reader
	buf      []byte
	from, to int
	joined   []byte
}

const packetBuffer = 1 << 20

func newPacketReader(in io.Reader) *packetReader {
	return &packetReader{in: in, buf: make([]byte, packetBuffer)}
}

func (p *packetReader) buffered() int { return p.to - p.from }

// here gives the next packet if it is whole in the buffer.
func (p *packetReader) here() ([]byte, bool) {
	b := p.buf[p.from:p.to]
	if len(b) < 4 {
		return nil, false
	}
	n := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
	if n == maxPacket || len(b)-4 < n {
		return nil, false
	}
	p.from += 4 + n
	return b[4 : 4+n], true
}

// fill makes sure that n bytes are in the buffer.
func (p *packetReader) fill(n int) error {
	if p.to-p.from >= n {
		return nil
	}
	if p.from > 0 && p.from+n > len(p.buf) || p.from == p.to {
		p.to = copy(p.buf, p.buf[p.from:p.to])
		p.from = 0
	}
	if n > len(p.buf) {
		grown := make([]byte, n)
		p.to = copy(grown, p.buf[p.from:p.to])
		p.buf, p.from = grown, 0
	}
	for p.to-p.from < n {
		m, err := p.in.Read(p.buf[p.to:])
		p.to += m
		if p.to-p.from >= n {
			return nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) && p.to > p.from {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// packet reads one packet, joined where it was split.
func (p *packetReader) packet() ([]byte, error) {
	p.joined = p.joined[:0]
	if cap(p.joined) > 2*maxPacket {
		p.joined = nil
	}
	for {
		if len(p.buf) > packetBuffer && p.from == p.to { // one long packet shall not hold memory for good
			p.buf, p.from, p.to = make([]byte, packetBuffer), 0, 0
		}
		if err := p.fill(4); err != nil {
			return nil, err
		}
		n := int(p.buf[p.from]) | int(p.buf[p.from+1])<<8 | int(p.buf[p.from+2])<<16
		p.from += 4
		if err := p.fill(n); err != nil {
			return nil, err
		}
		b := p.buf[p.from : p.from+n]
		p.from += n
		if n < maxPacket && len(p.joined) == 0 {
			return b, nil
		}
		p.joined = append(p.joined, b...)
		if n < maxPacket {
			return p.joined, nil
		}
	}
}

// write sends a packet.
func (p *packetReader) write(w io.Writer, seq byte, payload []byte) error {
	head := []byte{byte(len(payload)), byte(len(payload) >> 8), byte(len(payload) >> 16), seq}
	_, err := w.Write(append(head, payload...))
	return err
}

// connectStream connects and logs in by the driver, and takes the connection out of its hands, encrypted or not: who has
// it speaks the protocol himself.
func (t Target) connectStream(ctx context.Context) (net.Conn, error) {
	if t.cfg == nil {
		return nil, fmt.Errorf("%w: no address", ErrDSN)
	}
	cfg := t.cfg.Clone()
	if err := cfg.Apply(driver.EnableCompression(false)); err != nil { // compress=true of the DSN: the stream is read without the driver
		return nil, err
	}
	network := cfg.Net
	var s *streamConn
	secure, err := t.tlsConfig()
	if err != nil {
		return nil, err
	}
	if secure != nil {
		// The driver is to take the connection for one that nobody listens to, as a socket: the encryption is ours.
		cfg.Net, cfg.TLS, cfg.TLSConfig, cfg.AllowFallbackToPlaintext = "unix", nil, "", false
	}
	cfg.DialFunc = func(ctx context.Context, _, addr string) (net.Conn, error) {
		d := net.Dialer{Timeout: cfg.Timeout, KeepAlive: 15 * time.Second}
		c, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		s = &streamConn{Conn: c, raw: c, ctx: ctx, secure: secure, optional: t.cfg.AllowFallbackToPlaintext}
		return s, nil
	}
	conn, err := connectDriver(ctx, t, cfg)
	if err != nil {
		return nil, err
	}
	s.detached.Store(true)
	conn.Close() // ends the driver's watcher; the server hears nothing of it
	s.Conn.SetDeadline(time.Time{})
	return s.Conn, nil
}

// tlsConfig is the encryption that the DSN asks for; nil: none.
func (t Target) tlsConfig() (*tls.Config, error) {
	if !t.Encrypted() {
		return nil, nil
	}
	cfg := t.cfg.Clone()
	if cfg.TLS == nil {
		// The driver finds the configuration by its name when it makes a connector.
		parsed, err := driver.ParseDSN(cfg.FormatDSN())
		if err != nil {
			return nil, fmt.Errorf("%w: %s", ErrDSN, dsnProblem(err))
		}
		cfg = parsed
	}
	if cfg.TLS == nil {
		return nil, fmt.Errorf("%w: its tls parameter is unknown", ErrDSN)
	}
	return cfg.TLS.Clone(), nil
}

// streamConn is a connection that can be taken away from the driver. With secure it asks the server for encryption behind
// the driver's back: an SSLRequest packet in front of the client's answer moves the numbers of the packets of the handshake
// by one.
type streamConn struct {
	net.Conn
	ctx      context.Context
	secure   *tls.Config
	optional bool     // go on without encryption where the server has none
	raw      net.Conn // the socket. Conn becomes another one behind it, while the driver's watcher may close
	detached atomic.Bool
	shift    byte   // of the numbers of packets, while the handshake lasts
	packet   []byte // what was read of the handshake and not yet given out
	done     bool   // the handshake is over
}

const clientSSL = 1 << 11

func (s *streamConn) Read(b []byte) (int, error) {
	if s.secure == nil || s.done && len(s.packet) == 0 {
		return s.Conn.Read(b)
	}
	if len(s.packet) == 0 {
		head := make([]byte, 4)
		if _, err := io.ReadFull(s.Conn, head); err != nil {
			return 0, err
		}
		body := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
		if _, err := io.ReadFull(s.Conn, body); err != nil {
			return 0, err
		}
		if s.shift == 0 && !s.optional && !offersTLS(body) {
			return 0, driver.ErrNoTLS
		}
		if s.shift == 0 && !offersTLS(body) {
			s.secure = nil
		}
		head[3] -= s.shift
		// OK or an error: the next packet answers a command and counts from 0.
		s.done = s.shift > 0 && len(body) > 0 && (body[0] == 0 || body[0] == 0xff)
		s.packet = append(head, body...)
	}
	n := copy(b, s.packet)
	s.packet = s.packet[n:]
	return n, nil
}

// offersTLS reads the server's greeting: behind the version, the connection's number and eight bytes of the challenge come
// the lower capability flags.
func offersTLS(greeting []byte) bool {
	i := bytes.IndexByte(greeting, 0)
	if len(greeting) > 0 && greeting[0] == 0xff {
		return true // an error: let the driver tell it
	}
	at := i + 1 + 4 + 8 + 1
	return i > 0 && at+2 <= len(greeting) && binary.LittleEndian.Uint16(greeting[at:])&clientSSL != 0
}

func (s *streamConn) Write(b []byte) (int, error) {
	switch {
	case s.detached.Load():
		return len(b), nil
	case s.secure == nil || s.done:
		return s.Conn.Write(b)
	}
	out := bytes.Clone(b)
	if s.shift == 0 {
		const answer = 4 + 32 // header, capabilities, size, collation, filler
		if len(out) < answer {
			return 0, errors.New("the handshake has no capability flags")
		}
		binary.LittleEndian.PutUint32(out[4:], binary.LittleEndian.Uint32(out[4:])|clientSSL)
		request := append([]byte{32, 0, 0, out[3]}, out[4:answer]...)
		if _, err := s.Conn.Write(request); err != nil {
			return 0, err
		}
		if s.secure.ServerName == "" && !s.secure.InsecureSkipVerify {
			host, _, _ := net.SplitHostPort(s.Conn.RemoteAddr().String())
			s.secure.ServerName = host
		}
		secured := tls.Client(s.Conn, s.secure)
		if err := secured.HandshakeContext(s.ctx); err != nil {
			return 0, err
		}
		s.Conn, s.shift = secured, 1
	}
	out[3] += s.shift
	if _, err := s.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close does nothing once the connection was taken away.
func (s *streamConn) Close() error {
	if s.detached.Load() {
		return nil
	}
	return s.raw.Close()
}
