package repo

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
)

// plainBlock is the most that a block of a zstd frame holds.
const plainBlock = 128 << 10

// plainFrame returns the pieces of a zstd frame whose blocks hold the bytes uncompressed, between them the blocks' headers. Source:
// RFC 8878, 3.1.1: the magic number, a descriptor that says "the size follows in 8 bytes and is the window", blocks of at most
// 128 KiB of type Raw.
func plainFrame(raw []byte) (pieces [][]byte) {
	const magic, descriptor = 0xFD2FB528, 0xE0
	n := max(1, (len(raw)+plainBlock-1)/plainBlock)
	pieces = make([][]byte, 0, 2*n+1)
	heads := make([]byte, 0, 13+3*n)
	heads = binary.LittleEndian.AppendUint32(heads, magic)
	heads = append(heads, descriptor)
	heads = binary.LittleEndian.AppendUint64(heads, uint64(len(raw)))
	for from := 0; ; {
		n := min(len(raw), plainBlock)
		head := uint32(n) << 3
		if n == len(raw) {
			head |= 1 // the last one
		}
		heads = append(heads, byte(head), byte(head>>8), byte(head>>16))
		pieces = append(pieces, heads[from:], raw[:n])
		from = len(heads)
		if raw = raw[n:]; len(raw) == 0 {
			return pieces
		}
	}
}

// appendPlainFrame appends the pieces of plainFrame.
func appendPlainFrame(to, raw []byte) []byte {
	for _, p := range plainFrame(raw) {
		to = append(to, p...)
	}
	return to
}

// plainObject is an object of bytes that are neither compressed nor encrypted. It is not put together in memory: it is read
// from where the bytes are.
type plainObject struct {
	pieces [][]byte
	size   int64
	at     int64 // where Read goes on
}

func newPlainObject(raw []byte) *plainObject {
	o := &plainObject{pieces: plainFrame(raw)}
	sum := sha256.New()
	for _, p := range o.pieces {
		sum.Write(p)
		o.size += int64(len(p))
	}
	seal := sealOf(sum)
	o.pieces = append(o.pieces, seal)
	o.size += int64(len(seal))
	return o
}

// Size is how many bytes it has.
func (o *plainObject) Size() int64 { return o.size }

// ReadAt implements io.ReaderAt.
func (o *plainObject) ReadAt(b []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("an object has no byte %d", off)
	}
	for _, p := range o.pieces {
		if off >= int64(len(p)) {
			off -= int64(len(p))
			continue
		}
		n += copy(b[n:], p[off:])
		if off = 0; n == len(b) {
			return n, nil
		}
	}
	return n, io.EOF
}

// Read implements io.Reader.
func (o *plainObject) Read(b []byte) (int, error) {
	n, err := o.ReadAt(b, o.at)
	o.at += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// WriteTo implements io.WriterTo.
func (o *plainObject) WriteTo(w io.Writer) (written int64, err error) {
	skip := o.at
	for _, p := range o.pieces {
		if skip >= int64(len(p)) {
			skip -= int64(len(p))
			continue
		}
		n, err := w.Write(p[skip:])
		skip = 0
		written += int64(n)
		o.at += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
