package series

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// Kinds of a changed value in a tick record, the two low bits of its first number.
const (
	walDelta  = 0 // integer, distance to the value before
	walAbsent = 1 // no value any more
	walFloat  = 2 // eight bytes
	walWhole  = 3 // integer
)

const (
	tickLate = 1
	tickFull = 2 // says all there is; needs no record before it
)

var (
	walMagic    = fileMagic("RSWL", 1)
	framesMagic = fileMagic("RSFR", 1)
	errMagic    = errors.New("it does not begin like a file of its kind")
	errWAL      = errors.New("write-ahead log content does not match its header")
)

// fileMagic is how a file of records begins: a name, a version and a checksum of both, so that a newer version is distinguished from damage.
func fileMagic(name string, version byte) (m [8]byte) {
	copy(m[:], name)
	m[4] = version
	sum := checksum(m[:5])
	m[5], m[6], m[7] = byte(sum), byte(sum>>8), byte(sum>>16)
	return m
}

// checkMagic reports whether b begins with the magic; torn is true when it ends within it.
func checkMagic(b []byte, want [8]byte) (torn bool, err error) {
	if len(b) < len(want) {
		if string(want[:len(b)]) == string(b) {
			return true, nil
		}
		return false, errMagic
	}
	m := [8]byte(b[:8])
	switch {
	case m == want:
		return false, nil
	case m == fileMagic(string(want[:4]), m[4]):
		return false, fmt.Errorf("version %d: %w", m[4], errVersion)
	default:
		return false, errMagic
	}
}

// walFile is the log being written. It belongs to one writer; its lock is the writer's.
type walFile struct {
	f       *os.File
	path    string
	size    int64
	defined int // descriptions written
	seq     uint64
	minute  int64 // of the newest tick
	prev    []float64
	buf     []byte
}

// startWAL makes a new log that begins with the given descriptions.
func startWAL(path string, descs []*seriesID, z *zstd.Encoder) (*walFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return nil, fmt.Errorf("start write-ahead log: %w", err)
	}
	w := &walFile{f: f, path: path, minute: math.MinInt64}
	w.buf = append(w.buf, walMagic[:]...)
	w.define(descs, z)
	if err := w.write(); err != nil {
		f.Close()
		os.Remove(path)
		return nil, err
	}
	return w, nil
}

// define puts descriptions not yet written into the buffer.
func (w *walFile) define(descs []*seriesID, z *zstd.Encoder) {
	raw := binary.AppendUvarint(nil, uint64(w.defined))
	raw = appendSchema(raw, descs[w.defined:])
	w.buf = appendRecord(w.buf, recordDefine, z.EncodeAll(raw, nil))
	w.defined = len(descs)
}

// tick puts one second into the buffer: what changed since the tick before, or everything in the first of a minute,
// so that damage costs at most a minute.
func (w *walFile) tick(t int64, values []float64, late bool) {
	flags := byte(0)
	if late {
		flags |= tickLate
	}
	if m := floorTo(t, minuteSeconds); m != w.minute {
		w.minute = m
		flags |= tickFull
		w.prev = w.prev[:0]
	}
	for len(w.prev) < len(values) {
		w.prev = append(w.prev, math.NaN())
	}
	at := len(w.buf)
	w.buf = beginRecord(w.buf, recordTick)
	w.buf = binary.AppendUvarint(w.buf, w.seq)
	w.buf = appendZigzag(w.buf, t)
	w.buf = append(w.buf, flags)
	w.buf = binary.AppendUvarint(w.buf, uint64(len(values)))
	w.buf = appendChanges(w.buf, w.prev, values)
	w.buf = endRecord(w.buf, at)
	w.seq++
}

// appendChanges writes what differs between prev and values and makes prev equal to values.
func appendChanges(b []byte, prev, values []float64) []byte {
	const whole = 1 << 53
	gap := uint64(0)
	for i := range prev {
		v := math.NaN()
		if i < len(values) {
			v = values[i]
		}
		p := prev[i]
		if math.Float64bits(v) == math.Float64bits(p) || (v != v && p != p) {
			gap++
			continue
		}
		prev[i] = v
		k := int64(v)
		switch {
		case v != v:
			b = binary.AppendUvarint(b, gap<<2|walAbsent)
		case v <= -whole || v >= whole || float64(k) != v || math.Float64bits(float64(k)) != math.Float64bits(v):
			b = binary.AppendUvarint(b, gap<<2|walFloat)
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		case p > -whole && p < whole && float64(int64(p)) == p:
			b = binary.AppendUvarint(b, gap<<2|walDelta)
			b = appendZigzag(b, k-int64(p))
		default:
			b = binary.AppendUvarint(b, gap<<2|walWhole)
			b = appendZigzag(b, k)
		}
		gap = 0
	}
	return b
}

// write hands the buffer to the system in one call. After an error the file ends where it ended before.
func (w *walFile) write() error {
	n, err := w.f.WriteAt(w.buf, w.size)
	if err != nil {
		w.f.Truncate(w.size) // best effort: a torn tail is cut when the log is read, too
		w.buf = w.buf[:0]
		return fmt.Errorf("write-ahead log: %w", err)
	}
	w.size += int64(n)
	w.buf = w.buf[:0]
	return nil
}

// walTick is one second read back.
type walTick struct {
	t      int64
	late   bool
	values []float64 // valid until the next tick
}

// replayWAL reads a log and calls tick for every second in it. It never fails: what cannot be read is left out, and the
// returned scan says so. descs grows with the log's definitions.
func replayWAL(b []byte, cat *catalog, tick func(descs []*seriesID, t walTick)) (scanned, error) {
	if torn, err := checkMagic(b, walMagic); err != nil {
		return scanned{bad: true}, err
	} else if torn {
		return scanned{torn: len(b)}, nil
	}
	s := scanRecords(b[len(walMagic):])
	var (
		descs  []*seriesID
		prev   []float64
		seq    uint64
		broken = true // until a full tick
	)
	for _, r := range s.records {
		switch r.kind {
		case recordDefine:
			list, err := parseDefine(r.payload, len(descs), cat)
			if err != nil {
				// Ticks with more values than names are left out below.
				s.bad = true
				continue
			}
			descs = append(descs, list...)
		case recordTick:
			in := input{b: r.payload}
			n, t, flags := in.uvarint(), in.varint(), in.byte()
			if n != seq {
				broken = true
			}
			seq = n + 1
			if flags&tickFull != 0 {
				broken, prev = false, prev[:0]
			}
			k := in.length(len(descs))
			if in.err != nil || t < 0 || t > maxTime {
				broken, s.bad = true, true
			}
			if broken {
				continue
			}
			for len(prev) < k {
				prev = append(prev, math.NaN())
			}
			if !in.changes(prev) {
				broken, s.bad = true, true
				continue
			}
			tick(descs, walTick{t: t, late: flags&tickLate != 0, values: prev[:k]})
		}
	}
	return s, nil
}

func parseDefine(packed []byte, have int, cat *catalog) ([]*seriesID, error) {
	raw, err := unzip(cat.dec, packed, nil, maxSchemaRaw)
	if err != nil {
		return nil, err
	}
	in := input{b: raw}
	if in.uvarint() != uint64(have) || in.err != nil {
		return nil, errWAL
	}
	descs, err := parseSchema(in.b)
	if err != nil {
		return nil, err
	}
	if have+len(descs) > maxSeries {
		return nil, errWAL
	}
	list := make([]*seriesID, len(descs))
	for i, d := range descs {
		list[i] = cat.intern(d)
	}
	return list, nil
}

// changes applies what appendChanges wrote.
func (in *input) changes(prev []float64) bool {
	i := uint64(0)
	for len(in.b) > 0 {
		head := in.uvarint()
		i += head >> 2
		if in.err != nil || i >= uint64(len(prev)) {
			return false
		}
		switch head & 3 {
		case walDelta:
			prev[i] = float64(int64(prev[i]) + in.varint())
		case walAbsent:
			prev[i] = math.NaN()
		case walFloat:
			prev[i] = math.Float64frombits(in.u64())
		case walWhole:
			prev[i] = float64(in.varint())
		}
		i++
	}
	return in.err == nil
}

func walPath(dir string, n int) string {
	return filepath.Join(dir, fmt.Sprintf("wal-%08d.rsw", n))
}
