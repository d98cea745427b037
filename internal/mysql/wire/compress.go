package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	driver "github.com/go-sql-driver/mysql"
	"github.com/klauspost/compress/zlib"
)

// inflater is a link under compression. What Risso sends is framed and not compressed: it is small, or generated data.
// Source: MySQL's "Compressed Packet".
type inflater struct {
	link     io.ReadWriter
	sequence byte
	head     [7]byte
	body     bytes.Reader
	squeezed []byte
	plain    []byte
	z        io.ReadCloser
}

// Read returns what the compressed packets hold.
func (f *inflater) Read(b []byte) (int, error) {
	for f.body.Len() == 0 {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	return f.body.Read(b)
}

func (f *inflater) next() error {
	if _, err := io.ReadFull(f.link, f.head[:]); err != nil {
		return err
	}
	h := f.head
	size, full := int(h[0])|int(h[1])<<8|int(h[2])<<16, int(h[4])|int(h[5])<<8|int(h[6])<<16
	f.sequence = h[3] + 1
	if cap(f.squeezed) < size {
		f.squeezed = make([]byte, size)
	}
	b := f.squeezed[:size]
	if _, err := io.ReadFull(f.link, b); err != nil {
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
		return errors.New("a compressed packet is longer than announced")
	}
	return nil
}

// Write frames a packet.
func (f *inflater) Write(packet []byte) (int, error) {
	total := len(packet)
	for len(packet) > 0 {
		n := min(len(packet), maxPacket)
		frame := make([]byte, 7, 7+n)
		frame[0], frame[1], frame[2], frame[3] = byte(n), byte(n>>8), byte(n>>16), f.sequence
		f.sequence++
		if _, err := f.link.Write(append(frame, packet[:n]...)); err != nil {
			return total - len(packet), err
		}
		packet = packet[n:]
	}
	return total, nil
}
