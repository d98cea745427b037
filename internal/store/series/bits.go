package series

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// errShort says that encoded bytes end before what they promise.
var errShort = errors.New("encoded data is too short")

// castagnoli is the table of CRC32C, which processors compute themselves.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// zigzag folds the sign into the lowest bit, so that small magnitudes are small numbers.
func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

func appendZigzag(b []byte, v int64) []byte { return binary.AppendUvarint(b, zigzag(v)) }

// input reads encoded bytes; after the first failure everything it returns is zero
// and err says why, so that callers check once at the end.
type input struct {
	b   []byte
	err error
}

func (in *input) fail(err error) {
	if in.err == nil {
		in.err = err
	}
	in.b = nil
}

func (in *input) uvarint() uint64 {
	if len(in.b) > 0 && in.b[0] < 0x80 {
		v := uint64(in.b[0])
		in.b = in.b[1:]
		return v
	}
	v, n := binary.Uvarint(in.b)
	if n <= 0 {
		in.fail(errShort)
		return 0
	}
	in.b = in.b[n:]
	return v
}

func (in *input) varint() int64 { return unzigzag(in.uvarint()) }

// length reads a number that may not exceed limit.
func (in *input) length(limit int) int {
	v := in.uvarint()
	if v > uint64(limit) {
		in.fail(errShort)
		return 0
	}
	return int(v)
}

func (in *input) bytes(n int) []byte {
	if n < 0 || n > len(in.b) {
		in.fail(errShort)
		return nil
	}
	v := in.b[:n]
	in.b = in.b[n:]
	return v
}

func (in *input) byte() byte {
	if len(in.b) == 0 {
		in.fail(errShort)
		return 0
	}
	v := in.b[0]
	in.b = in.b[1:]
	return v
}

func (in *input) u32() uint32 {
	if b := in.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (in *input) u64() uint64 {
	if b := in.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// bitWriter packs bits, lowest first.
type bitWriter struct {
	out  []byte
	acc  uint64
	fill uint
}

func (w *bitWriter) write(v uint64, n uint) {
	if n > 32 {
		w.write(v&(1<<32-1), 32)
		v >>= 32
		n -= 32
	}
	w.acc |= v << w.fill
	w.fill += n
	for w.fill >= 8 {
		w.out = append(w.out, byte(w.acc))
		w.acc >>= 8
		w.fill -= 8
	}
}

func (w *bitWriter) finish() []byte {
	if w.fill > 0 {
		w.out = append(w.out, byte(w.acc))
		w.acc, w.fill = 0, 0
	}
	return w.out
}

// bitReader reads what bitWriter packed. Past the end it reads zeros; over tells.
type bitReader struct {
	b   []byte
	pos uint
}

func (r *bitReader) read(n uint) uint64 {
	if n > 56 {
		low := r.read(32)
		return low | r.read(n-32)<<32
	}
	at := r.pos >> 3
	shift := r.pos & 7
	r.pos += n
	if at+8 <= uint(len(r.b)) {
		return binary.LittleEndian.Uint64(r.b[at:]) >> shift & (1<<n - 1)
	}
	var w uint64
	for i := uint(0); i < 8 && at+i < uint(len(r.b)); i++ {
		w |= uint64(r.b[at+i]) << (8 * i)
	}
	return w >> shift & (1<<n - 1)
}

func (r *bitReader) over() bool { return r.pos > uint(len(r.b))*8 }
