package mysql

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	driver "github.com/go-sql-driver/mysql"
	"github.com/klauspost/compress/zlib"
)

// packets reads a server's packets through one buffer.
type packets struct {
	from     io.Reader
	patience func() error // called before each read
	buf      []byte
	r, w     int  // what of buf is read and not yet used
	sequence byte // the number that the next packet has to have
	more     bool // behind the result that was just read comes that of a further statement
	joined   []byte
}

// fill reads more, which makes room first. It gives at least one byte.
func (p *packets) fill() error {
	if p.r == p.w {
		p.r, p.w = 0, 0
	} else if p.w == len(p.buf) {
		p.w = copy(p.buf, p.buf[p.r:p.w])
		p.r = 0
	}
	if err := p.patience(); err != nil {
		return err
	}
	n, err := p.from.Read(p.buf[p.w:])
	p.w += n
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// header reads the header of the next packet and gives its size.
func (p *packets) header() (int, error) {
	for p.w-p.r < 4 {
		if err := p.fill(); err != nil {
			return 0, err
		}
	}
	h := p.buf[p.r : p.r+4]
	p.r += 4
	// Under compression the numbers may differ: servers do not check them there either.
	if _, squeezed := p.from.(*inflater); h[3] != p.sequence && !squeezed {
		return 0, fmt.Errorf("%w: packet %d came where %d was due", driver.ErrPktSync, h[3], p.sequence)
	}
	p.sequence = h[3] + 1
	return int(h[0]) | int(h[1])<<8 | int(h[2])<<16, nil
}

// whole makes size bytes of the current packet lie in the buffer, which they fit.
func (p *packets) whole(size int) error {
	if len(p.buf)-p.r < size {
		p.w = copy(p.buf, p.buf[p.r:p.w])
		p.r = 0
	}
	for p.w-p.r < size {
		if err := p.fill(); err != nil {
			return err
		}
	}
	return nil
}

// small reads a packet that is no row. It is valid until the next read and never empty.
func (p *packets) small() ([]byte, error) {
	size, err := p.header()
	if err != nil {
		return nil, err
	}
	if size == 0 || size == maxPacket {
		return nil, driver.ErrMalformPkt
	}
	if size <= len(p.buf) {
		if err := p.whole(size); err != nil {
			return nil, err
		}
		b := p.buf[p.r : p.r+size]
		p.r += size
		return b, nil
	}
	p.joined = p.joined[:0]
	for left := size; left > 0; {
		if p.r == p.w {
			if err := p.fill(); err != nil {
				return nil, err
			}
		}
		n := min(left, p.w-p.r)
		p.joined = append(p.joined, p.buf[p.r:p.r+n]...)
		p.r += n
		left -= n
	}
	return p.joined, nil
}

// rows hands rows on until the result ends.
func (p *packets) rows(to RowSink, deprecateEOF bool) error {
	for {
		size, err := p.header()
		if err != nil {
			return err
		}
		if size <= len(p.buf)/2 { // the usual row: in one piece
			if err := p.whole(size); err != nil {
				return err
			}
			b := p.buf[p.r : p.r+size]
			p.r += size
			if size == 0 {
				return driver.ErrMalformPkt
			}
			switch {
			case b[0] == headerError:
				return errorPacket(b)
			case b[0] == headerEOF && (deprecateEOF || size <= 5): // a value's length of 8 bytes begins likewise, but in a full packet only
				p.more = moreResults(b, deprecateEOF)
				return nil
			}
			if err := to.Piece(b, true); err != nil {
				return &sinkError{err}
			}
			continue
		}
		if err := p.large(size, to); err != nil {
			return err
		}
	}
}

// large hands on a row in pieces. size is that of its first packet.
func (p *packets) large(size int, to RowSink) error {
	for {
		for left := size; left > 0; {
			if p.r == p.w {
				if err := p.fill(); err != nil {
					return err
				}
			}
			n := min(left, p.w-p.r)
			left -= n
			b := p.buf[p.r : p.r+n]
			p.r += n
			if err := to.Piece(b, left == 0 && size < maxPacket); err != nil {
				return &sinkError{err}
			}
		}
		if size < maxPacket {
			return nil
		}
		var err error
		if size, err = p.header(); err != nil {
			return err
		}
		if size == 0 {
			if err := to.Piece(nil, true); err != nil {
				return &sinkError{err}
			}
			return nil
		}
	}
}

// moreResults reads in the packet that ends a result whether a further one follows. ok: it is an OK packet. Sources: MySQL's
// "OK_Packet" and "EOF_Packet"; SERVER_MORE_RESULTS_EXISTS.
func moreResults(p []byte, ok bool) bool {
	const exists = 0x08
	at := 3 // behind the number of warnings
	if ok {
		at = 1
		for range 2 { // affected rows, last number given
			_, n := lenenc(p[min(at, len(p)):])
			at += n
		}
	}
	return at < len(p) && p[at]&exists != 0
}

// errorPacket reads a server's refusal.
func errorPacket(p []byte) error {
	if len(p) < 3 {
		return driver.ErrMalformPkt
	}
	e := &driver.MySQLError{Number: binary.LittleEndian.Uint16(p[1:])}
	p = p[3:]
	if len(p) >= 6 && p[0] == '#' {
		copy(e.SQLState[:], p[1:6])
		p = p[6:]
	}
	e.Message = string(p)
	return e
}

// lenenc reads a length-encoded number and says how many bytes it took; 0: it is none.
func lenenc(b []byte) (v uint64, n int) {
	if len(b) == 0 {
		return 0, 0
	}
	switch b[0] {
	default:
		return uint64(b[0]), 1
	case 0xfb, 0xff: // NULL, and what begins an error
		return 0, 0
	case 0xfc:
		n = 3
	case 0xfd:
		n = 4
	case 0xfe:
		n = 9
	}
	if len(b) < n {
		return 0, 0
	}
	for i := n - 1; i > 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v, n
}

// value reads a length-encoded string, nil for NULL, and says how many bytes it took.
func value(b []byte) (v []byte, n int, ok bool) {
	if len(b) > 0 && b[0] == 0xfb {
		return nil, 1, true
	}
	size, n := lenenc(b)
	if n == 0 || size > uint64(len(b)-n) {
		return nil, 0, false
	}
	end := n + int(size)
	return b[n:end:end], end, true
}

// inflater undoes the compression of the protocol. Source: MySQL's "Compressed Packet".
type inflater struct {
	from     io.Reader
	sequence byte
	head     [7]byte
	body     bytes.Reader
	squeezed []byte
	plain    []byte
	z        io.ReadCloser
}

// Read gives what the compressed packets hold.
func (f *inflater) Read(b []byte) (int, error) {
	for f.body.Len() == 0 {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	return f.body.Read(b)
}

func (f *inflater) next() error {
	if _, err := io.ReadFull(f.from, f.head[:]); err != nil {
		return err
	}
	h := f.head
	size, full := int(h[0])|int(h[1])<<8|int(h[2])<<16, int(h[4])|int(h[5])<<8|int(h[6])<<16
	f.sequence = h[3] + 1
	if cap(f.squeezed) < size {
		f.squeezed = make([]byte, size)
	}
	b := f.squeezed[:size]
	if _, err := io.ReadFull(f.from, b); err != nil {
		return err
	}
	if full == 0 { // too small to be worth it
		f.body.Reset(b)
		return nil
	}
	if err := f.inflate(b, full); err != nil {
		return fmt.Errorf("%w: %w", driver.ErrMalformPkt, err)
	}
	f.body.Reset(f.plain)
	return nil
}

func (f *inflater) inflate(b []byte, full int) error {
	var err error
	if f.z == nil {
		f.z, err = zlib.NewReader(bytes.NewReader(b))
	} else {
		err = f.z.(zlib.Resetter).Reset(bytes.NewReader(b), nil)
	}
	if err != nil {
		return err
	}
	if cap(f.plain) < full {
		f.plain = make([]byte, full)
	}
	f.plain = f.plain[:full]
	if _, err := io.ReadFull(f.z, f.plain); err != nil {
		return err
	}
	if n, err := f.z.Read(f.head[:1]); n > 0 || !errors.Is(err, io.EOF) {
		return errors.New("a compressed packet is longer than it says")
	}
	return nil
}

// write sends a packet, framed and not compressed: what Risso sends is small or data of its own making.
func (f *inflater) write(to net.Conn, packet []byte) error {
	for len(packet) > 0 {
		n := min(len(packet), maxPacket)
		frame := make([]byte, 7, 7+n)
		frame[0], frame[1], frame[2], frame[3] = byte(n), byte(n>>8), byte(n>>16), f.sequence
		f.sequence++
		if _, err := to.Write(append(frame, packet[:n]...)); err != nil {
			return err
		}
		packet = packet[n:]
	}
	return nil
}
