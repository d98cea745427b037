package series

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// The tests of this file hold the bytes that FORMAT.md tells, written by hand, and what a reader refuses.

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFormatNumbers: varints and zigzag with the examples of protocol buffers' documentation; CRC32C with its check value (RFC 3720).
func TestFormatNumbers(t *testing.T) {
	if got := checksum([]byte("123456789")); got != 0xE3069283 {
		t.Errorf("got %#x, want the check value", got)
	}
	for v, want := range map[int64]uint64{0: 0, -1: 1, 1: 2, -2: 3, math.MaxInt32: 0xfffffffe, math.MinInt32: 0xffffffff, math.MaxInt64: math.MaxUint64 - 1, math.MinInt64: math.MaxUint64} {
		if got := zigzag(v); got != want || unzigzag(want) != v {
			t.Errorf("%d: got %d and back %d, want %d", v, got, unzigzag(want), want)
		}
	}
	uvarint := func(in *input) any { return in.uvarint() }
	length := func(limit int) func(*input) any { return func(in *input) any { return in.length(limit) } }
	part := func(n int) func(*input) any { return func(in *input) any { return fmt.Sprintf("%x", in.bytes(n)) } }
	for _, c := range []struct {
		bytes string
		read  func(*input) any
		want  any
		left  int // -1: it fails
	}{
		{"01", uvarint, uint64(1), 0}, {"7f ff", uvarint, uint64(127), 1}, {"80 01", uvarint, uint64(128), 0}, {"96 01 05", uvarint, uint64(150), 1}, {"ff ff ff ff ff ff ff ff ff 01", uvarint, uint64(math.MaxUint64), 0},
		{"", uvarint, uint64(0), -1}, {"80", uvarint, uint64(0), -1}, {"ff ff ff ff ff ff ff ff ff 02", uvarint, uint64(0), -1},
		{"03", func(in *input) any { return in.varint() }, int64(-2), 0}, {"fe ff ff ff 0f", func(in *input) any { return in.varint() }, int64(math.MaxInt32), 0},
		{"03", length(3), 3, 0}, {"04 01", length(3), 0, -1}, {"00", length(0), 0, 0}, {"ff ff ff ff ff ff ff ff ff 01", length(9), 0, -1},
		{"01 02 03", part(2), "0102", 1}, {"01 02", part(2), "0102", 0}, {"01 02", part(3), "", -1}, {"01 02", part(-1), "", -1}, {"", part(0), "", 0},
		{"05 06", func(in *input) any { return in.byte() }, byte(5), 1}, {"", func(in *input) any { return in.byte() }, byte(0), -1},
		{"78 56 34 12 00", func(in *input) any { return in.u32() }, uint32(0x12345678), 1}, {"78 56 34", func(in *input) any { return in.u32() }, uint32(0), -1},
		{"08 07 06 05 04 03 02 01", func(in *input) any { return in.u64() }, uint64(0x0102030405060708), 0}, {"08 07 06 05 04 03 02", func(in *input) any { return in.u64() }, uint64(0), -1},
	} {
		in := input{b: unhex(t, c.bytes)}
		if got := c.read(&in); got != c.want || (in.err != nil) != (c.left < 0) || in.err == nil && len(in.b) != c.left || in.err != nil && in.b != nil {
			t.Errorf("%s: got %v, %v, %d bytes left; want %v, %d left", c.bytes, got, in.err, len(in.b), c.want, c.left)
		}
	}
	in := input{b: []byte{1}}
	in.bytes(2)
	if in.fail(errRuns); !errors.Is(in.err, errShort) {
		t.Errorf("got %v, want the first failure", in.err)
	}
}

// TestBits compares with bits that are kept one by one: every width, at every place within a byte, at the end and before other bytes.
func TestBits(t *testing.T) {
	const pattern = 0xA5C3_96F0_1E2D_4B87
	for width := uint(1); width <= 64; width++ {
		for skip := uint(0); skip < 8; skip++ {
			for _, v := range []uint64{math.MaxUint64, pattern, 1} {
				v &= math.MaxUint64 >> (64 - width)
				var w bitWriter
				w.write(1<<skip-1, skip)
				w.write(v, width)
				w.write(1, 1)
				w.finish()
				w.out = w.out[:0] // nothing of it stays
				w.write(1<<skip-1, skip)
				w.write(v, width)
				w.write(1, 1)
				got := w.finish()
				want := make([]byte, (skip+width+8)/8)
				for i := range skip + width + 1 {
					if i < skip || i == skip+width || v>>(i-skip)&1 == 1 && i < skip+width {
						want[i/8] |= 1 << (i % 8)
					}
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("%d bits after %d: got %x, want %x", width, skip, got, want)
				}
				for _, b := range [][]byte{got, append(bytes.Clone(got), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)} {
					r := bitReader{b: b}
					if first, x, last := r.read(skip), r.read(width), r.read(1); first != 1<<skip-1 || x != v || last != 1 || r.over() {
						t.Fatalf("%d bits after %d of %x: got %x, %x, %x; want %x", width, skip, b, first, x, last, v)
					}
					left := uint(len(b))*8 - skip - width - 1
					if r.read(left); r.over() {
						t.Fatalf("%d bits after %d: over at the end", width, skip)
					}
					if got := r.read(1); got != 0 || !r.over() {
						t.Fatalf("%d bits after %d: got %d, %t past the end", width, skip, got, r.over())
					}
				}
			}
		}
	}
}

// TestFormatRuns: runs as bytes, and what is said of them, compared with a set of seconds.
func TestFormatRuns(t *testing.T) {
	for text, r := range map[string]runs{"00": nil, "01 00 3c": {{0, 60}}, "02 0a 05 05 01": {{10, 5}, {20, 1}}, "01 00 90 1c": {{0, 3600}}, "01 8f 1c 01": {{3599, 1}}, "02 00 01 01 01": {{0, 1}, {2, 1}}} {
		if got := appendRuns(nil, r); !bytes.Equal(got, unhex(t, text)) {
			t.Errorf("%v: got %x, want %s", r, got, text)
		}
		in := input{b: unhex(t, text)}
		if got := in.runs(); !slices.Equal(got, r) || in.err != nil || len(in.b) > 0 {
			t.Errorf("%s: got %v, %v; want %v", text, got, in.err, r)
		}
		var built runs
		seconds, pairs := 0, 0
		for s := range hourSeconds + 1 {
			in := slices.ContainsFunc(r, func(x run) bool { return s >= int(x.from) && s < int(x.from+x.n) })
			if r.has(s) != in {
				t.Errorf("%v: %d is in it: got %t, want %t", r, s, !in, in)
			}
			if in {
				built = built.add(s)
				if seconds++; r.has(s - 1) {
					pairs++
				}
			}
		}
		if !built.equal(r) || r.count() != seconds || r.pairs() != pairs {
			t.Errorf("%v: got %v, %d and %d; want %d seconds, %d pairs", r, built, r.count(), r.pairs(), seconds, pairs)
		}
		if r.equal(append(slices.Clone(r), run{3600, 1})) || len(r) > 0 && (r.equal(r[1:]) || r.equal(append(slices.Clone(r[:len(r)-1]), run{r[len(r)-1].from, 3600 + 1}))) {
			t.Errorf("%v is equal to other runs", r)
		}
	}
	for _, text := range []string{"01 00 00", "02 00 01 00 01", "01 01 90 1c", "01 00 91 1c", "01 91 1c 01", "91 1c", "02 00 01", "01 00", "", "02 00 90 1c 01 01"} {
		in := input{b: unhex(t, text)}
		if got := in.runs(); in.err == nil || got != nil {
			t.Errorf("%s: got %v, want an error", text, got)
		}
	}
	for _, c := range []struct{ t, span, want int64 }{{0, 60, 0}, {59, 60, 0}, {60, 60, 60}, {7199, 3600, 3600}, {-1, 60, -60}, {-60, 60, -60}, {-61, 60, -120}} {
		if got := floorTo(c.t, c.span); got != c.want {
			t.Errorf("%d of %d: got %d, want %d", c.t, c.span, got, c.want)
		}
	}
}

// TestFormatRecords: a record byte by byte, and what is read of files that end or are damaged anywhere.
func TestFormatRecords(t *testing.T) {
	made := func(kind byte, payload string) []byte {
		head := binary.LittleEndian.AppendUint32([]byte{kind}, uint32(len(payload)))
		b := append([]byte{0xF1, 0x52, 0x73, 0x9E}, head...)
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(append(head, payload...), crc32.MakeTable(crc32.Castagnoli)))
		return append(b, payload...)
	}
	a, b, none := made(1, "hello"), made(4, strings.Repeat("x", 300)), made(3, "")
	for want, got := range map[string][]byte{string(a): appendRecord(nil, 1, []byte("hello")), "zz" + string(b): appendRecord([]byte("zz"), 4, bytes.Repeat([]byte("x"), 300)), string(none): appendRecord(nil, 3, nil)} {
		if string(got) != want {
			t.Errorf("got %x, want %x", got, want)
		}
	}
	long := bytes.Clone(b[:20])
	binary.LittleEndian.PutUint32(long[5:], maxRecord)
	tooLong := bytes.Clone(long)
	binary.LittleEndian.PutUint32(tooLong[5:], maxRecord+1)
	flipped := bytes.Clone(a)
	flipped[len(a)-1] ^= 1
	join := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	for name, c := range map[string]struct {
		b     []byte
		offs  []int
		end   int
		bad   bool
		torn  int
		kinds string
	}{
		"nothing":                  {nil, nil, 0, false, 0, ""},
		"three":                    {join(a, none, b), []int{0, 18, 31}, 344, false, 0, "134"},
		"an empty one at the end":  {join(a, none), []int{0, 18}, 31, false, 0, "13"},
		"cut in the payload":       {join(a, b[:312]), []int{0}, 18, false, 312, "1"},
		"cut after the head":       {join(a, b[:13]), []int{0}, 18, false, 13, "1"},
		"cut in the head":          {join(a, b[:12]), []int{0}, 18, false, 12, "1"},
		"cut in the marker":        {join(a, b[:1]), []int{0}, 18, false, 1, "1"},
		"no marker at the end":     {join(a, []byte{0xF1, 0x52, 0x74}), []int{0}, 18, true, 0, "1"},
		"a long tail of no record": {join(a, bytes.Repeat([]byte{7}, 40)), []int{0}, 18, true, 0, "1"},
		"whole, but flipped":       {join(a, flipped), []int{0}, 18, true, 0, "1"},
		"a whole empty one, bad":   {join(a, []byte{0xF1, 0x52, 0x73, 0x9E, 3, 0, 0, 0, 0, 9, 9, 9, 9}), []int{0}, 18, true, 0, "1"},
		"flipped in between":       {join(flipped, b, a), []int{18, 331}, 349, true, 0, "41"},
		"rubbish in between":       {join(a, []byte{0xF1, 0xF1, 0x52, 0x73, 0x9E, 1}, a), []int{0, 24}, 42, true, 0, "11"},
		"cut, then another":        {join(b[:100], a), []int{100}, 118, true, 0, "1"},
		"rubbish, then cut":        {join([]byte{9}, a, b[:50]), []int{1}, 19, true, 50, "1"},
		"as long as may be":        {long, nil, 0, false, 20, ""},
		"longer than may be":       {tooLong, nil, 0, true, 0, ""},
	} {
		s := scanRecords(slices.Clip(c.b))
		var offs []int
		kinds := ""
		for _, r := range s.records {
			offs, kinds = append(offs, r.off), kinds+fmt.Sprint(r.kind)
		}
		if !slices.Equal(offs, c.offs) || kinds != c.kinds || s.end != c.end || s.bad != c.bad || s.torn != c.torn {
			t.Errorf("%s: got records %s at %v to %d, bad %t, torn %d; want %s at %v to %d, %t, %d", name, kinds, offs, s.end, s.bad, s.torn, c.kinds, c.offs, c.end, c.bad, c.torn)
		}
	}
	for n, want := range map[int]int{maxRecord: 1, maxRecord + 1: 0} {
		if s := scanRecords(appendRecord(nil, 2, make([]byte, n))); len(s.records) != want || s.bad != (want == 0) {
			t.Errorf("%d bytes: got %d records, bad %t; want %d", n, len(s.records), s.bad, want)
		}
	}
	if r := scanRecords(a).records[0]; string(r.payload) != "hello" || r.size() != 18 {
		t.Errorf("got %q of %d bytes, want hello", r.payload, r.size())
	}
}

// zipped is one Zstandard frame that states its content size.
func zipped(t testing.TB, b []byte) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(true))
	if err != nil {
		t.Fatal(err)
	}
	return enc.EncodeAll(b, nil)
}

// TestFormatSchema: descriptions as bytes, in their order; the name of a schema; what is refused.
func TestFormatSchema(t *testing.T) {
	cat, dec := fuzzTools(t)
	up := cat.intern(Desc{Name: "up"})
	labels := []Label{{Name: "c", Value: "de"}, {Name: "a", Value: "b"}}
	ab := cat.intern(Desc{Name: "x", Type: Counter, Labels: labels})
	if labels[0].Name != "c" {
		t.Error("labels were put in order where they were given")
	}
	raw := unhex(t, "02  00 02 7570 00  01 01 78 02 0161 0162 0163 02 6465")
	sum := sha256.Sum256(raw)
	s := cat.of([]*seriesID{ab, up})
	if got, err := dec.DecodeAll(s.packed, nil); err != nil || !bytes.Equal(got, raw) || !bytes.Equal(s.hash[:], sum[:16]) {
		t.Errorf("got %x, %v, hash %x; want %x, %x", got, err, s.hash, raw, sum[:16])
	}
	if s.find("up") != 0 || s.find(`x{a="b",c="de"}`) != 1 || s.find("x") != -1 || s.find("zz") != -1 {
		t.Errorf("got %d, %d, %d, %d; want the positions", s.find("up"), s.find(ab.key), s.find("x"), s.find("zz"))
	}
	given := []*seriesID{ab, up}
	if again := cat.of(given); again != s || given[0] != ab || cat.lookup(s.hash) != s {
		t.Errorf("the same series have another schema, or were put in order where they were given")
	}
	if cat.intern(Desc{Name: "up"}) != up || cat.intern(Desc{Name: "up", Type: Counter}) == up {
		t.Error("series are shared by key and type")
	}
	other, _ := fuzzTools(t)
	read, err := other.parse(s.packed)
	if err != nil || read.hash != s.hash || len(read.series) != 2 || !reflect.DeepEqual(read.series[1].Desc, ab.Desc) || other.lookup(s.hash) != read {
		t.Errorf("got %+v, %v; want the same schema", read, err)
	}
	if again, err := other.parse(s.packed); err != nil || again != read {
		t.Errorf("got %p, %v; want what is known", again, err)
	}
	for name, text := range map[string]string{
		"no order": "02  00 01 79 00  00 01 78 00", "a key twice": "02  00 01 78 00  01 01 78 00", "no such type": "01  02 01 78 00", "labels in no order": "01  00 01 78 02 0162 0161 0161 0162",
		"more than it says": "01  00 01 78 00  00", "fewer than it says": "02  00 01 78 00", "more labels than bytes": "01  00 01 78 05 0161 0162", "nothing": "",
	} {
		if got, err := other.parse(zipped(t, unhex(t, text))); err == nil {
			t.Errorf("%s: got %d series, want an error", name, len(got.series))
		}
	}
	if got, err := other.parse(zipped(t, unhex(t, "01  01 01 78 02 00 00 00 00"))); err != nil || got.series[0].Type != Counter || len(got.series[0].Labels) != 2 {
		t.Errorf("labels without name and value: got %v, want a counter", err)
	}
	up2 := cat.intern(Desc{Name: "up", Type: Counter})
	for name, c := range map[string]struct {
		list []*schema
		want []*seriesID
	}{
		"one": {[]*schema{s}, []*seriesID{up, ab}}, "the same twice": {[]*schema{s, s}, []*seriesID{up, ab}}, "the last type counts": {[]*schema{s, cat.of([]*seriesID{up2})}, []*seriesID{up2, ab}},
		"the other way round": {[]*schema{cat.of([]*seriesID{up2}), s}, []*seriesID{up, ab}}, "not the same at last": {[]*schema{s, s, cat.of([]*seriesID{cat.intern(Desc{Name: "a"})})}, []*seriesID{cat.intern(Desc{Name: "a"}), up, ab}},
	} {
		if got := cat.union(c.list); !slices.Equal(got.series, c.want) {
			t.Errorf("%s: got %d series, want %d", name, len(got.series), len(c.want))
		}
	}
	if cat.union([]*schema{s, s}) != s {
		t.Error("the union of one schema with itself is another one")
	}
	for i := len(other.schemas); i <= keptSchemas; i++ {
		if len(other.schemas) != i {
			t.Fatalf("%d schemas of %d are known", len(other.schemas), i)
		}
		other.of([]*seriesID{other.intern(Desc{Name: fmt.Sprint("many", i)})})
	}
	if n := len(other.schemas); n != keptSchemas/2 {
		t.Errorf("of one more than are kept %d are known, want half as many", n)
	}
}

// TestUnzip: only what says beforehand that it is not too large.
func TestUnzip(t *testing.T) {
	_, dec := fuzzTools(t)
	b := zipped(t, make([]byte, 1000))
	if got, err := unzip(dec, b, []byte{}, 1000); err != nil || len(got) != 1000 {
		t.Errorf("got %d bytes, %v; want 1000", len(got), err)
	}
	if _, err := unzip(dec, b, nil, 999); err == nil {
		t.Error("more was unpacked than is allowed")
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	enc.Reset(&out)
	enc.Write(make([]byte, 1000))
	enc.Flush()
	enc.Close()
	for name, b := range map[string][]byte{"a size that is not told": out.Bytes(), "nothing": nil, "rubbish": []byte("rubbish, and more of it")} {
		if _, err := unzip(dec, b, nil, 5000); err == nil {
			t.Errorf("%s was unpacked", name)
		}
	}
}
