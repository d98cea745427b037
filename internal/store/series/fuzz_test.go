package series

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// fuzzTools are what readers need.
func fuzzTools(t testing.TB) (*catalog, *zstd.Decoder) {
	t.Helper()
	dec, err := newDecompressor()
	if err != nil {
		t.Fatal(err)
	}
	cat, err := newCatalog(dec)
	if err != nil {
		t.Fatal(err)
	}
	return cat, dec
}

// seedFiles makes real files of every kind.
func seedFiles(f *testing.F) (blocks, frames, wals [][]byte) {
	f.Helper()
	dir := f.TempDir()
	s := openStore(f, dir)
	small(f, s, "db", t0+hourSeconds-100, t0+hourSeconds+130)
	read := func(pattern string) (list [][]byte) {
		names, _ := filepath.Glob(filepath.Join(dir, "instances/db", pattern))
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			list = append(list, b)
		}
		return list
	}
	wals = read("wal-*")
	if err := s.Compact(context.Background(), time.Unix(t0+hourSeconds+100, 0)); err != nil {
		f.Fatal(err)
	}
	frames = read("*.rsf")
	blocks = read("*.rsb")
	s.Close()
	s = openStore(f, dir)
	if err := s.Compact(context.Background(), time.Unix(t0+3*daySeconds, 0)); err != nil {
		f.Fatal(err)
	}
	return append(blocks, read("*.rsb")...), frames, wals
}

// reseal makes the checksums of a block right again where it can, so that the fuzzer gets past them.
func reseal(b []byte) {
	if len(b) < blockHead+blockFoot {
		return
	}
	sum := func(at, end uint64) {
		if at <= end && end+4 <= uint64(len(b)) {
			binary.LittleEndian.PutUint32(b[end:], checksum(b[at:end]))
		}
	}
	sum(0, blockHead-4)
	h, err := decodeBlockHeader(b)
	if err != nil || h.total() != uint64(len(b)) {
		return
	}
	at := h.tail
	for _, n := range []uint32{h.schemaLen, h.hoursLen, h.dirLen} {
		sum(at, at+uint64(n))
		at += uint64(n) + 4
	}
	copy(b[at:], blockFooter(h.total()))
	dir := input{b: b[at-4-uint64(h.dirLen) : at-4]}
	for seg := uint64(blockHead); len(dir.b) > 0; {
		n := dir.uvarint()
		if n == 0 || seg+n > h.tail || n > h.tail {
			seg += n
			continue
		}
		resealSegment(b[seg:seg+n], h)
		seg += n
	}
}

func resealSegment(s []byte, h blockHeader) {
	in := input{b: s}
	head := in.bytes(in.length(len(s)))
	at := len(s) - len(in.b)
	if in.err != nil || at+4 > len(s) {
		return
	}
	binary.LittleEndian.PutUint32(s[at:], checksum(s[:at]))
	entries, err := decodeEntries(head, h.hours, h.series)
	if err != nil {
		return
	}
	at += 4
	for _, e := range entries {
		if e.size > 0 && at+e.size+4 <= len(s) {
			binary.LittleEndian.PutUint32(s[at+e.size:], checksum(s[at:at+e.size]))
			at += e.size + 4
		}
	}
}

func FuzzBlock(f *testing.F) {
	blocks, _, _ := seedFiles(f)
	for _, b := range blocks {
		f.Add(b, true)
		f.Add(b[:len(b)/2], false)
	}
	cat, dec := fuzzTools(f)
	dst := make([]float64, hourSeconds)
	f.Fuzz(func(t *testing.T, b []byte, fix bool) {
		if b = bytes.Clone(b); fix {
			reseal(b)
		}
		file, err := readBlock("fuzz", bytes.NewReader(b), int64(len(b)), cat, dec)
		if err != nil {
			return
		}
		sc := new(scratch)
		var seg segment
		for i := range file.series {
			if file.readSegment(&seg, i, false) != nil || file.readSegment(&seg, i, true) != nil {
				continue
			}
			for h := range file.hours {
				if file.values(sc, &seg, h, dst, h%2 == 0) == nil {
					seg.entries[h].rollup()
				}
			}
		}
	})
}

func FuzzChunk(f *testing.F) {
	e, err := newEncoder()
	if err != nil {
		f.Fatal(err)
	}
	for k := range 6 {
		x := make([]int64, 500)
		for i := range x {
			x[i] = int64(float64(i*i*k) + 1000*math.Sin(float64(i*k)))
		}
		x[7]++
		f.Add(bytes.Clone(e.chunk(x)), uint16(len(x)))
	}
	_, dec := fuzzTools(f)
	f.Fuzz(func(t *testing.T, b []byte, n uint16) {
		var d decoder
		x := make([]int64, n%(hourSeconds+1))
		d.chunk(dec, b, x)
	})
}

func FuzzFrame(f *testing.F) {
	_, frames, _ := seedFiles(f)
	cat, dec := fuzzTools(f)
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(true))
	if err != nil {
		f.Fatal(err)
	}
	var sch *schema
	for _, b := range frames {
		f.Add(b, uint8(0))
		sc, err := scanFrames(b, "db", cat)
		if err != nil {
			f.Fatal(err)
		}
		for _, r := range sc.refs[:1] {
			payload := b[r.off : r.off+int64(r.n)]
			f.Add(payload, uint8(1))
			h, err := readFrameHead(payload)
			if err != nil {
				f.Fatal(err)
			}
			body, err := dec.DecodeAll(h.packed, nil)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(body, uint8(2))
			sch = r.schema
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		var h frameHead
		switch kind % 3 {
		case 0: // a file
			b = bytes.Clone(b)
			resealRecords(b, len(framesMagic))
			scanFrames(b, "db", cat)
			return
		case 1: // a payload
			var err error
			if h, err = readFrameHead(b); err != nil {
				return
			}
		case 2: // the columns
			h = frameHead{start: t0, ticks: 1<<60 - 1, packed: enc.EncodeAll(b, nil)}
		}
		fr, err := openFrame(h, sch, dec)
		if err != nil {
			return
		}
		dst := make([]float64, hourSeconds)
		for i := range sch.series {
			nan(dst)
			fr.has(i)
			fr.column(i, dst, 0)
		}
	})
}

// resealRecords makes the checksums of records right again.
func resealRecords(b []byte, at int) {
	for at+recordHead <= len(b) {
		n := int(binary.LittleEndian.Uint32(b[at+5:]))
		if n > len(b)-at-recordHead {
			return
		}
		copy(b[at:], recordMarker)
		end := at + recordHead + n
		binary.LittleEndian.PutUint32(b[at+9:], recordSum(b[at:end]))
		at = end
	}
}

func FuzzWAL(f *testing.F) {
	_, _, wals := seedFiles(f)
	for _, b := range wals {
		f.Add(b, true)
		f.Add(b[:min(len(b), 3000)], true)
		f.Add(b[:len(b)/2+1], false)
	}
	cat, _ := fuzzTools(f)
	f.Fuzz(func(t *testing.T, b []byte, fix bool) {
		if b = bytes.Clone(b); fix {
			resealRecords(b, len(walMagic))
		}
		replayWAL(b, cat, func(descs []*seriesID, tick walTick) {
			if len(tick.values) > len(descs) || tick.t < 0 || tick.t > maxTime {
				t.Fatal("a tick that nobody could append")
			}
		})
	})
}
