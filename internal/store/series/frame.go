package series

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/klauspost/compress/zstd"
)

const (
	frameVersion = 1
	maxFrameBody = 16 << 20
)

// Kinds of a column within a frame or an hour.
const (
	columnAbsent   = 0 // no value
	columnConstant = 1 // one value, again and again
	columnVarying  = 2
)

var errFrame = errors.New("frame content does not match its header")

// ErrUnknownSchema says that a frame refers to names that were never sent. The sender
// has to put the schema record before the frame.
var ErrUnknownSchema = errors.New("the frame refers to a schema this store does not have; send it with its schema")

// minute is a minute of an instance in memory, a row of values per second, in the writer's order.
type minute struct {
	start int64
	ticks uint64 // bit s: there is a row for start+s
	late  uint64 // bit s: that row was collected late
	rows  [minuteSeconds][]float64
}

// value is what series pos had at a second of the minute; NaN when nothing.
func (m *minute) value(pos, second int) float64 {
	if r := m.rows[second]; pos < len(r) {
		return r[pos]
	}
	return math.NaN()
}

// frameHead is what a frame says about itself before its columns.
type frameHead struct {
	instance string
	start    int64
	schema   schemaHash
	ticks    uint64
	late     uint64
	packed   []byte
}

// frameMaker encodes frames; it is used by one goroutine at a time.
type frameMaker struct {
	body []byte
	vals []float64
	ints []int64
	enc  *zstd.Encoder
}

// encode makes the payload of a frame record. positions[i] is where the rows keep series i of the schema.
func (fm *frameMaker) encode(instance string, s *schema, positions []int, m *minute) []byte {
	fm.body = fm.body[:0]
	for _, pos := range positions {
		fm.column(pos, m)
	}
	b := []byte{frameVersion}
	b = appendText(b, instance)
	b = appendZigzag(b, m.start/minuteSeconds)
	b = append(b, s.hash[:]...)
	b = binary.LittleEndian.AppendUint64(b, m.ticks)
	b = binary.LittleEndian.AppendUint64(b, m.late)
	return fm.enc.EncodeAll(fm.body, b)
}

func (fm *frameMaker) column(pos int, m *minute) {
	var present uint64
	v := fm.vals[:0]
	for t := m.ticks; t != 0; t &= t - 1 {
		s := bits.TrailingZeros64(t)
		if x := m.value(pos, s); !math.IsNaN(x) {
			v = append(v, x)
			present |= 1 << s
		}
	}
	fm.vals = v
	if len(v) == 0 {
		fm.body = append(fm.body, columnAbsent)
		return
	}
	x, scale := toInts(fm.ints[:0], v)
	fm.ints = x
	kind := byte(columnConstant)
	for _, y := range x {
		if y != x[0] {
			kind = columnVarying
			break
		}
	}
	head := kind | scale<<4
	if present != m.ticks {
		head |= 4
	}
	fm.body = append(fm.body, head)
	if present != m.ticks {
		fm.body = binary.AppendUvarint(fm.body, present)
	}
	if kind == columnConstant {
		fm.body = appendZigzag(fm.body, x[0])
		return
	}
	at := len(fm.body)
	fm.body = append(fm.body, 0, 0)
	fm.body = appendZigzag(fm.body, x[0])
	for i := 1; i < len(x); i++ {
		fm.body = appendZigzag(fm.body, x[i]-x[i-1])
	}
	binary.LittleEndian.PutUint16(fm.body[at:], uint16(len(fm.body)-at-2))
}

// readFrameHead reads all but the columns.
func readFrameHead(payload []byte) (frameHead, error) {
	in := input{b: payload}
	var h frameHead
	if v := in.byte(); v != frameVersion && in.err == nil {
		return h, fmt.Errorf("frame of version %d, but this program reads up to %d: %w", v, frameVersion, errFrame)
	}
	h.instance = in.text()
	start := in.varint()
	copy(h.schema[:], in.bytes(len(h.schema)))
	h.ticks, h.late = in.u64(), in.u64()
	if in.err != nil {
		return h, fmt.Errorf("frame head: %w", in.err)
	}
	if h.ticks>>minuteSeconds != 0 || h.late&^h.ticks != 0 || h.ticks == 0 || start > math.MaxInt32 || start < -math.MaxInt32 {
		return h, errFrame
	}
	h.start = start * minuteSeconds
	h.packed = in.b
	return h, nil
}

// frame is a decompressed frame; columns are decoded on demand.
type frame struct {
	start  int64
	ticks  uint64
	late   uint64
	schema *schema
	body   []byte
	offs   []uint32 // where each column starts in body
}

// size is about how many bytes of memory it holds.
func (f *frame) size() int { return len(f.body) + 4*len(f.offs) + 128 }

// openFrame decompresses a frame and checks that every column is whole.
func openFrame(h frameHead, s *schema, dec *zstd.Decoder) (*frame, error) {
	body, err := unzip(dec, h.packed, nil, maxFrameBody)
	if err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	f := &frame{start: h.start, ticks: h.ticks, late: h.late, schema: s, body: slices.Clip(body)}
	if len(body) < len(s.series) {
		return nil, errFrame
	}
	f.offs = make([]uint32, len(s.series))
	in := input{b: body}
	for i := range f.offs {
		f.offs[i] = uint32(len(body) - len(in.b))
		f.skip(&in)
	}
	if in.err != nil || len(in.b) != 0 {
		return nil, errFrame
	}
	return f, nil
}

func (f *frame) skip(in *input) {
	head := in.byte()
	switch kind := head & 3; {
	case kind == columnAbsent:
		return
	case kind > columnVarying, head>>4 > maxScale && head>>4 != floatScale:
		in.fail(errFrame)
	}
	if head&4 != 0 {
		if p := in.uvarint(); p == 0 || p&^f.ticks != 0 {
			in.fail(errFrame)
		}
	}
	if head&3 == columnConstant {
		in.uvarint()
	} else if n := in.bytes(2); n != nil {
		in.bytes(int(binary.LittleEndian.Uint16(n)))
	}
}

// has reports whether column i has any value.
func (f *frame) has(i int) bool { return f.body[f.offs[i]]&3 != columnAbsent }

// column writes the values of column i to dst[base+second], where dst has none yet.
func (f *frame) column(i int, dst []float64, base int) error {
	in := input{b: f.body[f.offs[i]:]}
	head := in.byte()
	kind, scale := head&3, head>>4
	if kind == columnAbsent {
		return nil
	}
	present := f.ticks
	if head&4 != 0 {
		present = in.uvarint()
	}
	if kind == columnVarying {
		in.bytes(2)
	}
	x := in.varint()
	for first := true; present != 0; present &= present - 1 {
		if kind == columnVarying && !first {
			x += in.varint()
		}
		first = false
		if at := base + bits.TrailingZeros64(present); math.IsNaN(dst[at]) {
			dst[at] = toFloat(x, scale)
		}
	}
	if in.err != nil {
		return errFrame
	}
	return nil
}
