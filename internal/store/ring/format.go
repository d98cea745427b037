package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/rissodb/risso/internal/squeeze"
)

// What files begin with, and how they are called.
const (
	segmentMagic  = "RISSORNG1\n"
	segmentSuffix = ".moments"
	tailName      = "newest"
	blockHead     = 4 + 4 + 4 + 8 + 8 // sum, length, length before packing, first, last
	tailHead      = 4 + 4 + 8         // sum, length, second
	maxBlock      = 64 << 20          // a length beyond is none
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged means that bytes are not what was written.
var errDamaged = errors.New("the checksum does not fit")

// tailRecord is a record as it stands in the tail.
func tailRecord(at int64, payload []byte) []byte {
	b := make([]byte, tailHead, tailHead+len(payload))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(payload)))
	binary.LittleEndian.PutUint64(b[8:], uint64(at))
	b = append(b, payload...)
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b
}

// readTail reads the whole records of a tail; cut is how many bytes follow that are none.
func readTail(f io.Reader) (list []Record, cut int, err error) {
	raw, err := io.ReadAll(io.LimitReader(f, maxBlock))
	if err != nil {
		return nil, 0, err
	}
	list, rest := records(raw)
	return list, len(rest), nil
}

// records reads records until the end, or until one that is not whole; rest is what follows.
func records(b []byte) (list []Record, rest []byte) {
	for len(b) >= tailHead {
		n := int(binary.LittleEndian.Uint32(b[4:]))
		if n > len(b)-tailHead || crc32.Checksum(b[4:tailHead+n], castagnoli) != binary.LittleEndian.Uint32(b) {
			return list, b
		}
		list = append(list, Record{int64(binary.LittleEndian.Uint64(b[8:])), b[tailHead : tailHead+n : tailHead+n]})
		b = b[tailHead+n:]
	}
	return list, b
}

// packBlock makes a block of records.
func packBlock(enc *squeeze.Encoder, list []Record) ([]byte, error) {
	var raw []byte
	for _, r := range list {
		raw = append(raw, tailRecord(r.At, r.Payload)...)
	}
	b, err := enc.Append(make([]byte, blockHead), raw)
	if err != nil {
		return nil, fmt.Errorf("pack moments: %w", err)
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-blockHead))
	binary.LittleEndian.PutUint32(b[8:], uint32(len(raw)))
	binary.LittleEndian.PutUint64(b[12:], uint64(list[0].At))
	binary.LittleEndian.PutUint64(b[20:], uint64(list[len(list)-1].At))
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b, nil
}

// readSegment finds the blocks of a segment, and how many bytes at its end are none. Only the last block's bytes are checked: the others
// are, when they are read.
func readSegment(path string) (s *segment, cut int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	s = &segment{path: path}
	head := make([]byte, blockHead)
	if n, err := f.ReadAt(head[:len(segmentMagic)], 0); n < len(segmentMagic) || string(head[:n]) != segmentMagic {
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		return s, info.Size(), nil
	}
	s.size = int64(len(segmentMagic))
	for s.size+blockHead <= info.Size() {
		if _, err := f.ReadAt(head, s.size); err != nil {
			return nil, 0, err
		}
		n := int64(binary.LittleEndian.Uint32(head[4:])) + blockHead
		b := block{int64(binary.LittleEndian.Uint64(head[12:])), int64(binary.LittleEndian.Uint64(head[20:])), s.size, int(n)}
		s.torn = b.first
		if n > maxBlock || s.size+n > info.Size() || b.first > b.last {
			break
		}
		if s.size+n == info.Size() {
			if _, err := readBlock(path, b); err != nil {
				break
			}
		}
		s.blocks, s.size, s.torn = append(s.blocks, b), s.size+n, 0
	}
	return s, info.Size() - s.size, nil
}

// readBlock reads the records of a block.
func readBlock(path string, b block) ([]Record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw := make([]byte, b.length)
	if _, err := f.ReadAt(raw, b.offset); err != nil {
		return nil, err
	}
	if crc32.Checksum(raw[4:], castagnoli) != binary.LittleEndian.Uint32(raw) {
		return nil, errDamaged
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	plain, err := z.DecodeAll(raw[blockHead:], make([]byte, 0, min(binary.LittleEndian.Uint32(raw[8:]), maxBlock)))
	if err != nil {
		return nil, err
	}
	list, rest := records(plain)
	if len(rest) > 0 {
		return nil, errDamaged
	}
	return list, nil
}

// appendTo writes bytes at a place of a file, and waits until they are on disk.
func appendTo(path string, offset int64, b []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.WriteAt(b, offset); err != nil {
		return err
	}
	return f.Sync()
}
