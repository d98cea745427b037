package series

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// A block file holds one or more hours of one instance:
//
//	header | segment of every series | schema | hours | directory | the same three again | header again | footer
//
// What all columns need is stored twice, so that no single damage takes more than one column with it. Files of version 1 have it
// once, and no header at the end.
const (
	blockVersion  = 2
	blockOnce     = 1 // the version that has everything once
	blockHead     = 64
	blockFoot     = 16
	maxBlockHours = 24
	maxHoursRaw   = 16 << 20
	maxPresences  = 1 << 16
)

var (
	blockMagic     = [4]byte{'R', 'S', 'B', 'K'}
	blockFootMagic = [4]byte{'K', 'B', 'S', 'R'}
	errBlock       = errors.New("block content does not match its header")
	errSum         = errors.New("checksum does not match")
	errVersion     = errors.New("file has a version that this program does not read")
)

// blockHeader is the fixed start of a block file.
type blockHeader struct {
	version   uint8
	start     int64 // first second, a multiple of an hour
	hours     int
	series    int
	schema    schemaHash
	tail      uint64 // where the sections after the segments begin
	schemaLen uint32 // lengths of the sections, without their checksums
	hoursLen  uint32
	dirLen    uint32
}

// sections is the length of schema, hours and directory with their checksums.
func (h blockHeader) sections() uint64 {
	return uint64(h.schemaLen) + uint64(h.hoursLen) + uint64(h.dirLen) + 12
}

func (h blockHeader) total() uint64 {
	if h.version == blockOnce {
		return h.tail + h.sections() + blockFoot
	}
	return h.tail + 2*h.sections() + blockHead + blockFoot
}

func (h blockHeader) encode() []byte {
	b := make([]byte, 0, blockHead)
	b = append(b, blockMagic[:]...)
	b = append(b, h.version, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.start))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.hours))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.series))
	b = append(b, h.schema[:]...)
	b = binary.LittleEndian.AppendUint64(b, h.tail)
	b = binary.LittleEndian.AppendUint32(b, h.schemaLen)
	b = binary.LittleEndian.AppendUint32(b, h.hoursLen)
	b = binary.LittleEndian.AppendUint32(b, h.dirLen)
	return binary.LittleEndian.AppendUint32(b, checksum(b))
}

func decodeBlockHeader(b []byte) (h blockHeader, err error) {
	if len(b) < blockHead || [4]byte(b[:4]) != blockMagic {
		return h, fmt.Errorf("header: %w", errBlock)
	}
	if checksum(b[:blockHead-4]) != binary.LittleEndian.Uint32(b[blockHead-4:]) {
		return h, fmt.Errorf("header: %w", errSum)
	}
	if h.version = b[4]; h.version != blockVersion && h.version != blockOnce {
		return h, fmt.Errorf("version %d: %w", b[4], errVersion)
	}
	in := input{b: b[8:blockHead]}
	h.start = int64(in.u64())
	hours, series := in.u32(), in.u32()
	copy(h.schema[:], in.bytes(len(h.schema)))
	h.tail = in.u64()
	h.schemaLen, h.hoursLen, h.dirLen = in.u32(), in.u32(), in.u32()
	if hours == 0 || hours > maxBlockHours || series > maxSeries || h.start%hourSeconds != 0 || h.tail < blockHead ||
		h.tail > math.MaxUint32 || h.start > math.MaxInt32*minuteSeconds || h.start < -math.MaxInt32*minuteSeconds {
		return h, fmt.Errorf("header: %w", errBlock)
	}
	h.hours, h.series = int(hours), int(series)
	return h, nil
}

func blockFooter(total uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, total)
	b = binary.LittleEndian.AppendUint32(b, checksum(b))
	return append(b, blockFootMagic[:]...)
}

// hourInfo says which seconds of an hour have ticks, which were late, and the presences that columns refer to.
type hourInfo struct {
	ticks runs
	late  runs
	pres  []runs
}

// presence returns the seconds an entry has values for: 0 is every tick.
func (h *hourInfo) presence(id int) (runs, error) {
	if id == 0 {
		return h.ticks, nil
	}
	if id > len(h.pres) {
		return nil, errBlock
	}
	return h.pres[id-1], nil
}

func appendHours(b []byte, hours []hourInfo) []byte {
	for _, h := range hours {
		b = appendRuns(b, h.ticks)
		b = appendRuns(b, h.late)
		b = binary.AppendUvarint(b, uint64(len(h.pres)))
		for _, p := range h.pres {
			b = appendRuns(b, p)
		}
	}
	return b
}

func decodeHours(raw []byte, n int) ([]hourInfo, error) {
	in := input{b: raw}
	hours := make([]hourInfo, n)
	for i := range hours {
		h := &hours[i]
		h.ticks, h.late = in.runs(), in.runs()
		k := in.length(min(maxPresences, len(in.b)))
		for range k {
			p := in.runs()
			if len(p) == 0 {
				in.fail(errRuns)
			}
			h.pres = append(h.pres, p)
		}
	}
	if in.err != nil || len(in.b) != 0 {
		return nil, fmt.Errorf("hours: %w", errBlock)
	}
	return hours, nil
}

// entry describes what a series has in one hour of a block.
type entry struct {
	kind  uint8 // columnAbsent, columnConstant, columnVarying
	scale uint8
	wide  bool // the rollup is in floats
	pres  int  // presence in the hour's table; 0 is every tick
	first int64
	last  int64
	gcd   int64 // x[i] = first + gcd*y[i] + mul*(k[i]-k[0]); y is what the chunk holds
	ref   int   // k: the series, in this file's numbering, whose same hour is added; -1 for none
	mul   int64
	size  int    // bytes of the chunk, without its checksum; 0 when y is all zero
	unit  rollup // in integers of the scale, or as it is when wide
}

const (
	entryRef  = 4
	entryWide = 8
)

// appendEntries writes the head of a segment: an entry per hour. Hours that repeat the one before cost nothing more.
func appendEntries(b []byte, entries []entry) []byte {
	prev := int64(0)
	for i := 0; i < len(entries); i++ {
		e := &entries[i]
		head := e.kind | e.scale<<4
		if e.kind == columnVarying && e.ref >= 0 {
			head |= entryRef
		}
		if e.wide {
			head |= entryWide
		}
		b = append(b, head)
		if e.kind != columnAbsent {
			b = binary.AppendUvarint(b, uint64(e.pres))
			b = appendZigzag(b, e.first-prev)
			prev = e.first
		}
		if e.kind != columnVarying {
			n := 0
			for i+1 < len(entries) && sameFlat(e, &entries[i+1]) {
				n, i = n+1, i+1
			}
			b = binary.AppendUvarint(b, uint64(n))
			continue
		}
		prev = e.last
		b = appendZigzag(b, e.last-e.first)
		b = binary.AppendUvarint(b, uint64(e.gcd))
		if e.ref >= 0 {
			b = binary.AppendUvarint(b, uint64(e.ref))
			b = appendZigzag(b, e.mul)
		}
		b = binary.AppendUvarint(b, uint64(e.size))
		b = appendRollup(b, e.unit, e.wide)
	}
	return b
}

func sameFlat(a, b *entry) bool {
	return a.kind == b.kind && a.scale == b.scale && a.pres == b.pres && a.first == b.first
}

// decodeEntries reads the head of a segment.
func decodeEntries(raw []byte, hours, series int) ([]entry, error) {
	in := input{b: raw}
	entries := make([]entry, hours)
	prev := int64(0)
	for i := 0; i < hours; i++ {
		e := &entries[i]
		head := in.byte()
		e.kind, e.scale, e.wide, e.ref = head&3, head>>4, head&entryWide != 0, -1
		if e.kind > columnVarying || (e.scale > maxScale && e.scale != floatScale) {
			in.fail(errBlock)
		}
		if e.kind != columnAbsent {
			e.pres = in.length(maxPresences)
			prev += in.varint()
			e.first, e.last = prev, prev
		}
		if e.kind != columnVarying {
			for range in.length(hours - 1 - i) {
				entries[i+1] = *e
				i++
			}
			continue
		}
		prev += in.varint()
		e.last = prev
		e.gcd = int64(in.uvarint())
		if head&entryRef != 0 {
			e.ref = in.length(series - 1)
			e.mul = in.varint()
		}
		e.size = in.length(maxRecord)
		e.unit = in.rollup(e.wide)
		if in.err != nil {
			break
		}
	}
	if in.err != nil || len(in.b) != 0 {
		return nil, fmt.Errorf("segment: %w", errBlock)
	}
	return entries, nil
}
