package wire

import (
	"fmt"
	"io"

	driver "github.com/go-sql-driver/mysql"
)

// packets reads a server's packets through one buffer. It never allocates more than what has come, whatever length a
// packet claims to have.
type packets struct {
	from     io.Reader
	buf      []byte
	r, w     int  // what of buf is read and not yet used
	sequence byte // the number that the next packet has to have
	anyOrder bool // the numbers are not looked at
	joined   []byte
}

// fill reads more, which makes room first. It gets at least one byte.
func (p *packets) fill() error {
	if p.r == p.w {
		p.r, p.w = 0, 0
	} else if p.w == len(p.buf) {
		p.w = copy(p.buf, p.buf[p.r:p.w])
		p.r = 0
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
	if err := p.whole(4); err != nil {
		return 0, err
	}
	h := p.buf[p.r : p.r+4]
	size, number := int(h[0])|int(h[1])<<8|int(h[2])<<16, h[3]
	p.r += 4
	if number != p.sequence && !p.anyOrder {
		if err := p.outOfOrder(size, number); err != nil {
			return 0, err
		}
	}
	p.sequence = number + 1
	return size, nil
}

// outOfOrder refuses a packet whose number is wrong, unless it is an error: a server that ends a session says so at any time,
// and then counts from 0.
func (p *packets) outOfOrder(size int, number byte) error {
	for size > 0 && p.r == p.w {
		if err := p.fill(); err != nil {
			return err
		}
	}
	if size > 0 && p.buf[p.r] == headerError {
		return nil
	}
	return fmt.Errorf("%w: packet %d instead of %d", driver.ErrPktSync, number, p.sequence)
}

// whole makes size bytes lie in the buffer, which they fit.
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

// next reads a packet as a whole, joined where it was split. It is valid until the next read and never empty. One of most
// bytes or more is malformed.
func (p *packets) next(most int) ([]byte, error) {
	size, err := p.header()
	switch {
	case err != nil:
		return nil, err
	case size == 0 || size >= most:
		return nil, malformed(fmt.Sprintf("a packet of %d bytes", size))
	case size <= len(p.buf) && size < maxPacket:
		if err := p.whole(size); err != nil {
			return nil, err
		}
		p.r += size
		return p.buf[p.r-size : p.r], nil
	}
	return p.join(size, most)
}

// join reads a packet that does not lie in the buffer as a whole. size is that of its first part.
func (p *packets) join(size, most int) ([]byte, error) {
	if p.joined = p.joined[:0]; cap(p.joined) > 2*maxPacket { // one long packet does not hold memory for good
		p.joined = nil
	}
	err := p.pieces(size, func(b []byte, _ bool) error {
		if p.joined = append(p.joined, b...); len(p.joined) >= most {
			return malformed("a packet that does not end")
		}
		return nil
	})
	return p.joined, err
}

// pieces hands on a packet as it comes. size is that of its first part.
func (p *packets) pieces(size int, to func(b []byte, last bool) error) error {
	for {
		for left := size; left > 0; {
			if p.r == p.w {
				if err := p.fill(); err != nil {
					return err
				}
			}
			n := min(left, p.w-p.r)
			left -= n
			p.r += n
			if err := to(p.buf[p.r-n:p.r], left == 0 && size < maxPacket); err != nil {
				return err
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
			return to(nil, true)
		}
	}
}

// RowSink takes rows. Piece gets the next bytes of the row that is being read, and last says that the row ends with them: a
// row within the buffer comes in one piece, a larger one in several. The bytes are valid during the call only. An error ends
// the statement.
type RowSink interface {
	Piece(b []byte, last bool) error
}

// SinkError is an error of the taker of rows or giver of data, not of the connection, on which the rest of an answer is still to
// come.
type SinkError struct{ Err error }

func (e *SinkError) Error() string { return e.Err.Error() }

// Unwrap returns the error as the sink returned it.
func (e *SinkError) Unwrap() error { return e.Err }

func hand(to RowSink, b []byte, last bool) error {
	if to != nil {
		if err := to.Piece(b, last); err != nil {
			return &SinkError{err}
		}
	}
	return nil
}

// rows hands rows on until their end. It returns their number and the packet that ends them.
func (p *packets) rows(to RowSink, deprecateEOF bool) (n int64, end []byte, err error) {
	for ; ; n++ {
		size, err := p.header()
		if err != nil {
			return n, nil, err
		}
		if size == 0 {
			return n, nil, malformed("a row")
		}
		if size > len(p.buf)/2 {
			if err := p.whole(1); err != nil {
				return n, nil, err
			}
			if p.buf[p.r] == headerError {
				b, err := p.join(size, maxPacket)
				if err == nil {
					err = errorPacket(b)
				}
				return n, nil, err
			}
			if err := p.pieces(size, func(b []byte, last bool) error { return hand(to, b, last) }); err != nil {
				return n, nil, err
			}
			continue
		}
		if err := p.whole(size); err != nil { // the usual row: in one piece
			return n, nil, err
		}
		b := p.buf[p.r : p.r+size]
		p.r += size
		switch {
		case b[0] == headerError:
			return n, nil, errorPacket(b)
		case b[0] == headerEOF && (deprecateEOF || size <= 5): // a value's length of 8 bytes begins the same way, but in a full packet only
			return n, b, nil
		}
		if err := hand(to, b, true); err != nil {
			return n, nil, err
		}
	}
}
