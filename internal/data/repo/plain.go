package repo

import "encoding/binary"

// appendPlainFrame appends a zstd frame whose blocks hold the bytes as they are. Source: RFC 8878, 3.1.1: the magic number, a
// descriptor that says "the size follows in 8 bytes and is the window", blocks of at most 128 KiB of type Raw.
func appendPlainFrame(to, raw []byte) []byte {
	const magic, descriptor, block = 0xFD2FB528, 0xE0, 128 << 10
	to = binary.LittleEndian.AppendUint32(to, magic)
	to = append(to, descriptor)
	to = binary.LittleEndian.AppendUint64(to, uint64(len(raw)))
	for {
		n := min(len(raw), block)
		head := uint32(n) << 3
		if n == len(raw) {
			head |= 1 // the last one
		}
		to = append(to, byte(head), byte(head>>8), byte(head>>16))
		to = append(to, raw[:n]...)
		if raw = raw[n:]; len(raw) == 0 {
			return to
		}
	}
}
