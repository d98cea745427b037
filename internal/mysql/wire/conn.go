package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"
)

// Conn is a connection on which a client is logged in. It belongs to one goroutine; only Close may come from another.
//
// Errors of a command: a *MySQLError of the driver is a refusal by the server, after which the next command may follow. After
// a *SinkError rows of the answer are still on their way, and after any other error nothing is known: the connection must be
// closed.
type Conn struct {
	raw        net.Conn // the socket
	conn       net.Conn // raw, or TLS over it
	timed      timed
	link       io.Writer
	zip        *inflater // nil: no compression
	in         packets
	body, out  []byte // reused: a command, a packet of it
	session    uint32
	flags, ext uint32 // agreed capabilities
	columns    []Column
	severally  bool // the server takes several statements in a packet
}

// timed is a connection each of whose reads and writes has a limit; 0: none.
type timed struct {
	net.Conn          // raw or TLS
	raw      net.Conn // whose limits are set: closing it never waits
	read     time.Duration
	write    time.Duration
}

func within(d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}

func (t *timed) Read(b []byte) (int, error) {
	if err := t.raw.SetReadDeadline(within(t.read)); err != nil {
		return 0, err
	}
	return t.Conn.Read(b)
}

func (t *timed) Write(b []byte) (int, error) {
	if err := t.raw.SetWriteDeadline(within(t.write)); err != nil {
		return 0, err
	}
	return t.Conn.Write(b)
}

// SetPatience sets how long the server may be silent in the middle of an answer, and how long it may accept none of what is
// sent. A link that was exchanged has its own limits.
func (c *Conn) SetPatience(d time.Duration) { c.timed.read, c.timed.write = d, d }

// Session is the server's number for the connection, of which the handshake has the lower 32 bits.
func (c *Conn) Session() int64 { return int64(c.session) }

// Encrypted reports whether the connection uses TLS.
func (c *Conn) Encrypted() bool { return c.flags&capSSL != 0 }

// NetConn is what carries the packets: the socket, or TLS over it.
func (c *Conn) NetConn() net.Conn { return c.conn }

// Over exchanges what carries the packets. Nothing may be on its way.
func (c *Conn) Over(link io.ReadWriter) {
	if c.zip != nil {
		c.zip.link = link
		return
	}
	c.in.from, c.link = link, link
}

// File returns the socket under a new descriptor, in blocking mode, and closes the one that this process's poller knows.
// The connection is usable only with another link. TLS cannot be given away.
func (c *Conn) File() (*os.File, error) {
	sock, ok := c.conn.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, fmt.Errorf("a %T has no descriptor", c.conn)
	}
	f, err := sock.File()
	if err != nil {
		return nil, err
	}
	f.Fd() // sets it to blocking
	return f, c.raw.Close()
}

// Quit tells the server that the client goes, which it would notice anyway.
func (c *Conn) Quit() {
	_ = c.send([]byte{comQuit}, nil)
}

// Close closes the socket. It never waits.
func (c *Conn) Close() error {
	if err := c.raw.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// send sends a command that is in two pieces; the first is small.
func (c *Conn) send(head, payload []byte) error {
	c.in.sequence = 0
	if c.zip != nil {
		c.zip.sequence = 0
	}
	for {
		n := min(len(payload), maxPacket-len(head))
		if err := c.sendPacket(head, payload[:n]); err != nil {
			return err
		}
		full := len(head)+n == maxPacket
		if head, payload = nil, payload[n:]; !full {
			return nil
		}
	}
}

// sendPacket sends one packet with the next number.
func (c *Conn) sendPacket(head, p []byte) error {
	size := len(head) + len(p)
	c.out = slices.Grow(c.out[:0], 4+size)
	c.out = append(c.out, byte(size), byte(size>>8), byte(size>>16), c.in.sequence)
	c.out = append(append(c.out, head...), p...)
	c.in.sequence++
	_, err := c.link.Write(c.out)
	return err
}

// packet reads one that is not split.
func (c *Conn) packet() ([]byte, error) { return c.in.next(maxPacket) }

// ok reads an answer that is either OK or an error.
func (c *Conn) ok() (Result, error) {
	p, err := c.packet()
	switch {
	case err != nil:
		return Result{}, err
	case p[0] == headerError:
		return Result{}, errorPacket(p)
	case p[0] != headerOK:
		return Result{}, malformed("an answer")
	}
	return okPacket(p)
}

// Result is how a statement ended.
type Result struct {
	Affected, InsertID uint64
	Warnings           int
	Columns            int   // 0: a statement without rows
	Rows               int64 // that came
	More               bool  // the answer to a further statement follows, for Next
}

// Query runs a statement as text and hands its rows on; a nil sink has them counted only, and then Columns is empty. data is
// what a LOAD DATA LOCAL gets, whatever file it names; nil refuses to send any. If reading data fails the server only sees
// its end, so that the caller must roll back.
func (c *Conn) Query(statement string, data io.Reader, to RowSink) (Result, error) {
	c.body = append(append(c.body[:0], comQuery), statement...)
	if err := c.send(nil, c.body); err != nil {
		return Result{}, err
	}
	return c.Next(data, to)
}

// Next reads the answer to a further statement of Query's.
func (c *Conn) Next(data io.Reader, to RowSink) (Result, error) {
	c.columns = c.columns[:0]
	return c.answer(&c.columns, data, to)
}

// Columns are those of the last statement that was sent as text.
func (c *Conn) Columns() []Column { return c.columns }

func (c *Conn) answer(columns *[]Column, data io.Reader, to RowSink) (Result, error) {
	first, err := c.packet()
	if err != nil {
		return Result{}, err
	}
	switch first[0] {
	case headerOK:
		return okPacket(first)
	case headerError:
		return Result{}, errorPacket(first)
	case headerLocal:
		return c.sendFile(data)
	}
	count, n := lenenc(first)
	if n == 0 {
		return Result{}, malformed("the number of columns")
	}
	if c.ext&extCacheMetadata == 0 || n >= len(first) || first[n] != 0 {
		if to == nil {
			columns = nil
		}
		err = c.definitions(count, columns)
	} else if c.flags&capDeprecateEOF == 0 {
		_, err = c.packet()
	}
	if err != nil {
		return Result{}, err
	}
	rows, end, err := c.in.rows(to, c.flags&capDeprecateEOF != 0)
	if err != nil {
		return Result{Columns: int(count), Rows: rows}, err
	}
	r := eofPacket(end)
	if c.flags&capDeprecateEOF != 0 {
		if r, err = okPacket(end); err != nil {
			return Result{}, err
		}
	}
	r.Columns, r.Rows = int(count), rows
	return r, nil
}

// definitions reads the definitions of columns or parameters, and what ends them. Without a place for them they are passed
// over.
func (c *Conn) definitions(count uint64, to *[]Column) error {
	if to != nil {
		*to = (*to)[:0]
	}
	for range count {
		p, err := c.packet()
		if err != nil {
			return err
		}
		if to == nil {
			continue
		}
		n := len(*to)
		*to = slices.Grow(*to, 1)[:n+1] // the name of an earlier answer may be there
		if err := (*to)[n].read(p); err != nil {
			return err
		}
	}
	if count == 0 || c.flags&capDeprecateEOF != 0 {
		return nil
	}
	p, err := c.packet()
	if err == nil && p[0] != headerEOF {
		err = malformed("the end of columns")
	}
	return err
}

// sendFile answers the server's wish for a local file.
func (c *Conn) sendFile(data io.Reader) (Result, error) {
	const size = 64 << 10
	var readErr error
	if data == nil {
		readErr = errors.New("the statement asks for a file of this machine: refused")
	} else {
		buf := make([]byte, size)
		for readErr == nil {
			n, err := io.ReadFull(data, buf)
			if err == io.ErrUnexpectedEOF {
				err = io.EOF
			}
			readErr = err
			if n > 0 {
				if err := c.sendPacket(nil, buf[:n]); err != nil {
					return Result{}, err
				}
			}
		}
	}
	if err := c.sendPacket(nil, nil); err != nil {
		return Result{}, err
	}
	r, err := c.ok()
	if readErr != nil && readErr != io.EOF {
		return r, &SinkError{fmt.Errorf("read what is to be loaded: %w", readErr)}
	}
	return r, err
}

// Severally allows several statements in one packet, separated by semicolons, or no longer. Source: MySQL's "COM_SET_OPTION".
func (c *Conn) Severally(yes bool) error {
	if c.severally == yes {
		return nil
	}
	option := byte(singleStatements)
	if yes {
		option = multiStatements
	}
	if err := c.send(nil, []byte{comSetOption, option, 0}); err != nil {
		return err
	}
	p, err := c.packet()
	if err == nil && p[0] == headerError {
		err = errorPacket(p)
	}
	if err == nil {
		c.severally = yes
	}
	return err
}

// Each is a sink that passes the values of each row of the text protocol to f, nil for NULL; rows should be small. They are
// valid during the call.
func (c *Conn) Each(f func(row [][]byte) error) RowSink { return &splitter{conn: c, f: f} }

type splitter struct {
	conn *Conn
	f    func([][]byte) error
	buf  []byte
	row  [][]byte
}

func (p *splitter) Piece(b []byte, last bool) error {
	if !last || len(p.buf) > 0 {
		p.buf = append(p.buf, b...)
		b = p.buf
	}
	if !last {
		return nil
	}
	var err error
	if p.row, err = SplitRow(p.row[:0], b); err != nil {
		return err
	}
	if len(p.row) != len(p.conn.columns) {
		return malformed("a row")
	}
	p.buf = p.buf[:0]
	return p.f(p.row)
}

// Discard is a sink that drops rows; Columns tells of them nevertheless.
type Discard struct{}

// Piece drops what it gets.
func (Discard) Piece([]byte, bool) error { return nil }
