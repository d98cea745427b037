package mysql

import (
	"bytes"
	"context"
	sqldriver "database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

// ErrEncrypted says that a connection uses TLS and so cannot be handed over as a file descriptor.
var ErrEncrypted = errors.New("the connection is encrypted")

// Raw is a connection on which the handshake is done and nothing else was said: who has it speaks the protocol himself.
type Raw struct {
	File *os.File // the socket, blocking
	// What both sides agreed to.
	DeprecateEOF  bool // an OK packet ends a result set instead of an EOF packet
	CacheMetadata bool // MariaDB: a first byte behind the number of columns says whether their definitions follow
	// Session is the server's number for the connection, of which the handshake has the lower 32 bits.
	Session int64
}

// Capability flags of the protocol. Source: MySQL's "Capabilities Flags" page, MariaDB's "Connection" page.
const (
	clientMySQL         = 1 << 0 // MariaDB calls it CLIENT_MYSQL: not set means that the extended flags are meant
	clientCompress      = 1 << 5
	clientDeprecateEOF  = 1 << 24
	clientCacheMetadata = 1 << 4 // bit 36: the fifth of the extended flags
	clientBulk          = 1 << 2 // MARIADB_CLIENT_STMT_BULK_OPERATIONS, bit 34

	clientQueryAttributes = 1 << 27
)

// ConnectRaw connects, logs in by the driver and takes the socket out of its hands. Errors are of type *Error.
func (t Target) ConnectRaw(ctx context.Context) (*Raw, error) {
	if t.cfg == nil {
		return nil, fmt.Errorf("%w: no address", ErrDSN)
	}
	if t.Encrypted() {
		return nil, ErrEncrypted
	}
	cfg := t.cfg.Clone()
	var hand *handover
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		d := net.Dialer{Timeout: cfg.Timeout}
		c, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		hand = &handover{Conn: c}
		return hand, nil
	}
	conn, err := connectDriver(ctx, t, cfg)
	if err != nil {
		return nil, err
	}
	defer conn.Close() // after detach: it ends the driver's watcher, the server hears nothing of it
	return hand.detach()
}

// ConnectDriver gives a connection of the driver itself, for who needs TLS. It has no time-outs of its own: the caller ends
// the contexts of his calls.
func (t Target) ConnectDriver(ctx context.Context) (sqldriver.Conn, error) {
	if t.cfg == nil {
		return nil, fmt.Errorf("%w: no address", ErrDSN)
	}
	cfg := t.cfg.Clone()
	cfg.ReadTimeout, cfg.WriteTimeout = 0, 0
	return connectDriver(ctx, t, cfg)
}

func connectDriver(ctx context.Context, t Target, cfg *driver.Config) (sqldriver.Conn, error) {
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return nil, classify(t, fmt.Errorf("%w: %s", ErrDSN, dsnProblem(err)))
	}
	conn, err := connector.Connect(ctx)
	if err != nil {
		return nil, classify(t, err)
	}
	return conn, nil
}

// Encrypted says whether connections to the target use TLS.
func (t Target) Encrypted() bool {
	return t.cfg.TLS != nil || t.cfg.TLSConfig != "" && t.cfg.TLSConfig != "false"
}

// Database is the default database, or "".
func (t Target) Database() string { return t.cfg.DBName }

// WithDatabase is the target with another default database.
func (t Target) WithDatabase(name string) Target {
	cfg := t.cfg.Clone()
	cfg.DBName = name
	return Target{cfg: cfg}
}

// handover is a connection that remembers what the client promised and can be taken away from the driver.
type handover struct {
	net.Conn
	wants    uint32      // extended flags that are promised beside the driver's, where the server offers them
	greeting []byte      // the server's first packet, as far as it was read
	hello    []byte      // the client's first packet
	detached atomic.Bool // what is written is dropped
	kept     atomic.Bool // closing it does nothing: the driver's end is not the connection's. Its watcher closes, too, when a context ends
}

// Read keeps what the server says first.
func (h *handover) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	if h.hello == nil {
		h.greeting = append(h.greeting, b[:n]...)
	}
	return n, err
}

// behindVersion is the server's first packet behind its version. Source: MariaDB's "Initial Handshake Packet": there stand the
// session's number (4 bytes) and salt (9), flags, collation, status, flags and the salt's size (8), filler (6), extended flags.
func (h *handover) behindVersion() []byte {
	const version = 4 + 1
	if len(h.greeting) < version {
		return nil
	}
	end := bytes.IndexByte(h.greeting[version:], 0)
	if end < 0 {
		return nil
	}
	return h.greeting[version+end+1:]
}

// offer are the extended flags of the server.
func (h *handover) offer() uint32 {
	rest := h.behindVersion()
	if len(rest) < 13+8+6+4 || rest[13]&clientMySQL != 0 {
		return 0
	}
	return binary.LittleEndian.Uint32(rest[13+8+6:])
}

// session is the number of the session; 0: not known.
func (h *handover) session() int64 {
	rest := h.behindVersion()
	if len(rest) < 4 {
		return 0
	}
	return int64(binary.LittleEndian.Uint32(rest))
}

func (h *handover) Close() error {
	if h.kept.Load() {
		return nil
	}
	return h.Conn.Close()
}

func (h *handover) Write(b []byte) (int, error) {
	if h.detached.Load() {
		return len(b), nil
	}
	if h.hello == nil {
		h.hello = append([]byte{}, b...)
		if len(b) >= helloExtended+4 && !h.has(clientMySQL) {
			flags := h.hello[helloExtended:]
			binary.LittleEndian.PutUint32(flags, binary.LittleEndian.Uint32(flags)|h.wants&h.offer())
		}
		return h.Conn.Write(h.hello)
	}
	return h.Conn.Write(b)
}

// detach gives the socket under a descriptor of its own and closes the driver's.
func (h *handover) detach() (*Raw, error) {
	if len(h.hello) < helloExtended+4 {
		return nil, errNoHello
	}
	sock, ok := h.Conn.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, fmt.Errorf("a %T has no descriptor", h.Conn)
	}
	f, err := sock.File()
	if err != nil {
		return nil, err
	}
	f.Fd() // sets it to blocking
	h.detached.Store(true)
	r := &Raw{File: f, Session: h.session()}
	r.DeprecateEOF = h.has(clientDeprecateEOF)
	r.CacheMetadata = h.cacheMetadata()
	return r, nil
}

// Where the client's first packet has its flags: behind the packet's header the flags, then size, collation and filler.
const helloFlags, helloExtended = 4, 4 + 4 + 4 + 1 + 19

var errNoHello = errors.New("the handshake has no capability flags")

// has says whether the client promised a capability. It promises what the server offers, no more.
func (h *handover) has(flag uint32) bool {
	return binary.LittleEndian.Uint32(h.hello[helloFlags:])&flag != 0
}

func (h *handover) hasExtended(flag uint32) bool {
	return !h.has(clientMySQL) && binary.LittleEndian.Uint32(h.hello[helloExtended:])&flag != 0
}

func (h *handover) cacheMetadata() bool { return h.hasExtended(clientCacheMetadata) }

func (h *handover) bulk() bool { return h.hasExtended(clientBulk) }

// Patience is how long an answer is waited for.
func (t Target) Patience() time.Duration { return t.cfg.ReadTimeout }
