package series

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// Records are the unit of the frames file and of the write-ahead log:
//
//	marker(4) type(1) length(4) crc32c(4) payload
//
// The checksum covers type, length and payload. The marker lets a reader go on after damage.
const (
	recordSchema = 1 // a packed schema; frames after it may refer to it
	recordFrame  = 2 // one minute of one instance
	recordDefine = 3 // write-ahead log: descriptions of further series
	recordTick   = 4 // write-ahead log: the values of one second

	recordHead = 13
	maxRecord  = 32 << 20
)

var recordMarker = []byte{0xF1, 'R', 's', 0x9E}

// appendRecord adds a record with the given payload.
func appendRecord(b []byte, kind byte, payload []byte) []byte {
	at := len(b)
	b = beginRecord(b, kind)
	b = append(b, payload...)
	return endRecord(b, at)
}

// beginRecord and endRecord write a record whose payload is appended between them.
func beginRecord(b []byte, kind byte) []byte {
	b = append(b, recordMarker...)
	return append(b, kind, 0, 0, 0, 0, 0, 0, 0, 0)
}

func endRecord(b []byte, at int) []byte {
	binary.LittleEndian.PutUint32(b[at+5:], uint32(len(b)-at-recordHead))
	binary.LittleEndian.PutUint32(b[at+9:], recordSum(b[at:]))
	return b
}

func recordSum(r []byte) uint32 {
	return crc32.Update(checksum(r[4:9]), castagnoli, r[recordHead:])
}

// record is one that was read and whose checksum is right. Payload points into the scanned bytes.
type record struct {
	kind    byte
	off     int // where the record starts, in the bytes scanned
	payload []byte
}

func (r record) size() int { return recordHead + len(r.payload) }

// scanned is what is in a sequence of records.
type scanned struct {
	records []record
	end     int  // end of the last good record
	bad     bool // bytes in the middle, or a whole record at the end, fail their checksum
	torn    int  // bytes at the end that begin a record and were never finished
}

// scanRecords reads as many good records as there are; after a bad one it looks for the next marker.
func scanRecords(b []byte) scanned {
	var s scanned
	at := 0
	for at < len(b) {
		if r, ok := recordAt(b, at); ok {
			s.records = append(s.records, r)
			at += r.size()
			s.end = at
			continue
		}
		next := nextRecord(b, at+1)
		if next < 0 {
			if unfinished(b[at:]) {
				s.torn = len(b) - at
			} else {
				s.bad = true
			}
			return s
		}
		s.bad = true
		at = next
	}
	return s
}

func recordAt(b []byte, at int) (record, bool) {
	r := b[at:]
	if len(r) < recordHead || !bytes.Equal(r[:4], recordMarker) {
		return record{}, false
	}
	n := binary.LittleEndian.Uint32(r[5:])
	if n > maxRecord || int(n) > len(r)-recordHead {
		return record{}, false
	}
	r = r[:recordHead+int(n)]
	if recordSum(r) != binary.LittleEndian.Uint32(r[9:]) {
		return record{}, false
	}
	return record{kind: r[4], off: at, payload: r[recordHead:]}, true
}

func nextRecord(b []byte, at int) int {
	for at < len(b) {
		i := bytes.Index(b[at:], recordMarker)
		if i < 0 {
			return -1
		}
		if _, ok := recordAt(b, at+i); ok {
			return at + i
		}
		at += i + 1
	}
	return -1
}

// unfinished tells a record that was cut off, as a crash leaves one, from one that was changed.
func unfinished(tail []byte) bool {
	if len(tail) < recordHead {
		return bytes.HasPrefix(recordMarker, tail) || bytes.HasPrefix(tail, recordMarker)
	}
	if !bytes.HasPrefix(tail, recordMarker) {
		return false
	}
	n := binary.LittleEndian.Uint32(tail[5:])
	return n <= maxRecord && int(n) > len(tail)-recordHead
}
