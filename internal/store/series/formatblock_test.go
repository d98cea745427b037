package series

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
)

// frameOf is a frame of two ticks and more, late ones among them, and its schema: four series with values as they are given.
func frameOf(t *testing.T, ticks, late uint64, rows map[int][]float64) ([]byte, *schema, []int) {
	t.Helper()
	cat, _ := fuzzTools(t)
	var list []*seriesID
	for _, name := range []string{"d", "c", "b", "a"} { // the rows are in the writer's order
		list = append(list, cat.intern(Desc{Name: name}))
	}
	m := &minute{start: t0, ticks: ticks, late: late}
	for s, row := range rows {
		m.rows[s] = row
	}
	s := cat.of(list)
	fm := frameMaker{enc: cat.enc}
	fm.encode("before", s, []int{0}, &minute{})
	return fm.encode("db", s, []int{3, 2, 1, 0}, m), s, []int{3, 2, 1, 0}
}

// TestFormatFrame: a frame byte by byte, and back.
func TestFormatFrame(t *testing.T) {
	none := math.NaN()
	payload, s, _ := frameOf(t, 1|1<<1|1<<59, 1<<59, map[int][]float64{0: {none, 1, none, 5}, 1: {3, none, none, 5}, 59: {none, 2.5, none, 5}})
	_, dec := fuzzTools(t)
	head := append([]byte{1, 2, 'd', 'b'}, binary.AppendUvarint(nil, 2*uint64(t0/60))...)
	head = append(head, s.hash[:]...)
	head = append(head, unhex(t, "03 00 00 00 00 00 00 08  00 00 00 00 00 00 00 08")...)
	if !bytes.HasPrefix(payload, head) {
		t.Fatalf("got %x, want %x", payload, head)
	}
	// Of a, b, c, d: constant at every tick, absent, varying at scale 1 in the seconds 0 and 59, constant in second 1.
	body := unhex(t, "01 0a  00  16 81 80 80 80 80 80 80 80 08 02 00 14 1e  05 02 06")
	if got, err := dec.DecodeAll(payload[len(head):], nil); err != nil || !bytes.Equal(got, body) {
		t.Errorf("got %x, %v; want %x", got, err, body)
	}
	h, err := readFrameHead(payload)
	if err != nil || h.instance != "db" || h.start != t0 || h.schema != s.hash || h.ticks != 1|1<<1|1<<59 || h.late != 1<<59 {
		t.Fatalf("got %+v, %v; want instance \"db\", start %v, schema %v, ticks 1 | 1<<1 | 1<<59, late 1 << 59", h, err, t0, s.hash)
	}
	f, err := openFrame(h, s, dec)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []map[int]float64{{0: 5, 1: 5, 59: 5}, {}, {0: 1, 59: 2.5}, {1: 3}} {
		dst := make([]float64, 70)
		nan(dst)
		if err := f.column(i, dst, 10); err != nil || f.has(i) != (len(want) > 0) {
			t.Errorf("column %d: got %v, has %t; want %t", i, err, f.has(i), len(want) > 0)
		}
		for at, v := range dst {
			if w, ok := want[at-10]; ok && v != w || !ok && v == v {
				t.Errorf("column %d at %d: got %v, want %v, %t", i, at-10, v, w, ok)
			}
		}
	}
	dst := []float64{7, none}
	if err := f.column(3, dst, 0); err != nil || dst[0] == dst[0] && dst[0] != 7 || dst[1] != 3 {
		t.Errorf("got %v, %v; want what was there, and 3", dst, err)
	}
	dst[1] = 9
	if err := f.column(3, dst, 0); err != nil || dst[1] != 9 {
		t.Errorf("got %v, %v; want that a value that is there stays", dst, err)
	}
	short, _, _ := frameOf(t, 1, 0, map[int][]float64{0: {7}})
	if got, err := dec.DecodeAll(short[len(head):], nil); err != nil || !bytes.Equal(got, unhex(t, "00 00 00 01 0e")) {
		t.Errorf("a tick before the other series were known: got %x; want unhex(t, \"00 00 00 01 0e\")", got)
	}
	for n := range head {
		if _, err := readFrameHead(payload[:n]); err == nil {
			t.Errorf("a head of %d bytes was read", n)
		}
	}
}

// TestFrameRefused: on both sides of what a frame may say.
func TestFrameRefused(t *testing.T) {
	_, s, _ := frameOf(t, 1, 0, map[int][]float64{0: {1, 2, 3, 4}})
	_, dec := fuzzTools(t)
	for _, c := range []struct {
		version     byte
		minute      int64
		ticks, late uint64
		want        bool
	}{
		{1, 0, 1, 1, true}, {2, 0, 1, 0, false}, {0, 0, 1, 0, false}, {1, 0, 0, 0, false}, {1, 0, 1, 2, false}, {1, 0, 3, 2, true}, {1, 0, 1 << 59, 0, true}, {1, 0, 1 << 60, 0, false},
		{1, math.MaxInt32, 1, 0, true}, {1, math.MaxInt32 + 1, 1, 0, false}, {1, -math.MaxInt32, 1, 0, true}, {1, -math.MaxInt32 - 1, 1, 0, false},
	} {
		b := appendZigzag([]byte{c.version, 2, 'd', 'b'}, c.minute)
		b = append(b, s.hash[:]...)
		b = binary.LittleEndian.AppendUint64(b, c.ticks)
		h, err := readFrameHead(binary.LittleEndian.AppendUint64(b, c.late))
		if (err == nil) != c.want || err == nil && h.start != c.minute*60 {
			t.Errorf("%+v: got %v, start %d", c, err, h.start)
		}
	}
	for body, want := range map[string]bool{
		"00 00 00 00": true, "00 00 00": false, "00 00 00 00 00": false, "00 00 00 03": false, "00 00 00 01 02": true, "00 00 00 01": false, "00 00 00 c1 02": true, "00 00 00 d1 02": false, "00 00 00 e1 02": false, "00 00 00 f1 02": true,
		"00 00 00 05 01 02": true, "00 00 00 05 00 02": false, "00 00 00 05 04 02": false, "00 00 00 05 03 02": true, "00 00 00 02 02 00 02 02": true, "00 00 00 02 03 00 02 02": false, "00 00 00 02 01 00 02 02": false, "00 00 00 02 02": false, "03 01 00 00 00": false, "00 00 00 03 01 00 02": false,
	} {
		f, err := openFrame(frameHead{start: t0, ticks: 3, packed: zipped(t, unhex(t, body))}, s, dec)
		if (err == nil) != want || err != nil && !errors.Is(err, errFrame) {
			t.Errorf("%s: got %v, want it to be read: %t", body, err, want)
		}
		if err == nil && f.size() < len(f.body)+4*len(s.series) {
			t.Errorf("%s: a size of %d", body, f.size())
		}
	}
	// Two ticks, and one value.
	f, err := openFrame(frameHead{start: t0, ticks: 3, packed: zipped(t, unhex(t, "00 00 00 02 01 00 02"))}, s, dec)
	if err != nil {
		t.Fatal(err)
	}
	dst := []float64{math.NaN(), math.NaN()}
	if err := f.column(3, dst, 0); !errors.Is(err, errFrame) {
		t.Errorf("got %v, %v; want an error", dst, err)
	}
}

// TestFormatBlockHeader: the table of FORMAT.md, and both sides of what a header may say.
func TestFormatBlockHeader(t *testing.T) {
	h := blockHeader{version: 2, start: t0, hours: 24, series: 0x010203 >> 4, schema: schemaHash([]byte("0123456789abcdef")), tail: 0x1122, schemaLen: 10, hoursLen: 20, dirLen: 30}
	b := h.encode()
	want := unhex(t, "5253424b 02 000000  00 fd 4e 68 00000000  18000000 20100000  30313233343536373839616263646566  2211000000000000  0a000000 14000000 1e000000")
	binary.LittleEndian.PutUint64(want[8:], uint64(t0))
	if !bytes.Equal(b[:60], want) || binary.LittleEndian.Uint32(b[60:]) != checksum(want) || len(b) != 64 {
		t.Errorf("got %x, want %x and its checksum", b, want)
	}
	if got, err := decodeBlockHeader(append(b, 9)); err != nil || got != h {
		t.Errorf("got %+v, %v; want %+v", got, err, h)
	}
	if got := h.sections(); got != 72 {
		t.Errorf("got sections of %d bytes, want 72", got)
	}
	h.tail = 100
	if got := h.total(); got != 100+2*72+64+16 {
		t.Errorf("got %d bytes, want 324", got)
	}
	if h.version = 1; h.total() != 100+72+16 {
		t.Errorf("version 1: got %d bytes, want 188", h.total())
	}
	if got, want := blockFooter(0x0102), unhex(t, "0201000000000000 00000000 4b425352"); !bytes.Equal(got[:8], want[:8]) || binary.LittleEndian.Uint32(got[8:]) != checksum(want[:8]) || !bytes.Equal(got[12:], want[12:]) {
		t.Errorf("got %x; want got[:8] want[:8], binary.LittleEndian.Uint32(got[8:]) checksum(want[:8]), got[12:] want[12:]", got)
	}
	const far = math.MaxInt32 / 60 * 3600 // the last hour whose minutes are numbers of 32 bits
	for name, c := range map[string]struct {
		change func(*blockHeader)
		want   error
	}{
		"version 1": {func(h *blockHeader) { h.version = 1 }, nil}, "version 3": {func(h *blockHeader) { h.version = 3 }, errVersion}, "version 0": {func(h *blockHeader) { h.version = 0 }, errVersion},
		"one hour": {func(h *blockHeader) { h.hours = 1 }, nil}, "no hour": {func(h *blockHeader) { h.hours = 0 }, errBlock}, "25 hours": {func(h *blockHeader) { h.hours = 25 }, errBlock},
		"no series": {func(h *blockHeader) { h.series = 0 }, nil}, "most series": {func(h *blockHeader) { h.series = 1 << 17 }, nil}, "too many series": {func(h *blockHeader) { h.series = 1<<17 + 1 }, errBlock},
		"within an hour": {func(h *blockHeader) { h.start += 60 }, errBlock}, "before 1970": {func(h *blockHeader) { h.start = -3600 }, nil},
		"the farthest": {func(h *blockHeader) { h.start = far }, nil}, "too far": {func(h *blockHeader) { h.start = far + 3600 }, errBlock}, "the earliest": {func(h *blockHeader) { h.start = -far }, nil}, "too early": {func(h *blockHeader) { h.start = -far - 3600 }, errBlock},
		"no segments": {func(h *blockHeader) { h.tail = 64 }, nil}, "in the header": {func(h *blockHeader) { h.tail = 63 }, errBlock}, "4 GiB": {func(h *blockHeader) { h.tail = math.MaxUint32 }, nil}, "more": {func(h *blockHeader) { h.tail = math.MaxUint32 + 1 }, errBlock},
	} {
		h := h
		h.version = 2
		c.change(&h)
		if got, err := decodeBlockHeader(h.encode()); !errors.Is(err, c.want) || err == nil && got != h {
			t.Errorf("%s: got %+v, %v; want %v", name, got, err, c.want)
		}
	}
	for at := range b {
		bad := bytes.Clone(b)
		bad[at] ^= 0x10
		if _, err := decodeBlockHeader(bad); err == nil || at >= 4 && !errors.Is(err, errSum) {
			t.Errorf("a flipped bit at %d: got %v", at, err)
		}
	}
	if _, err := decodeBlockHeader(b[:63]); !errors.Is(err, errBlock) {
		t.Errorf("a short one: got %v, want errBlock", err)
	}
}

// TestFormatHours: the seconds of each hour, as bytes.
func TestFormatHours(t *testing.T) {
	hours := []hourInfo{{ticks: runs{{0, 3600}}, late: runs{{5, 1}}, pres: []runs{{{0, 60}}, {{1, 2}}}}, {}}
	raw := unhex(t, "01 00 90 1c  01 05 01  02  01 00 3c  01 01 02   00 00 00")
	if got := appendHours(nil, hours); !bytes.Equal(got, raw) {
		t.Errorf("got %x, want %x", got, raw)
	}
	got, err := decodeHours(raw, 2)
	if err != nil || !reflect.DeepEqual(got, hours) {
		t.Fatalf("got %+v, %v; want %+v", got, err, hours)
	}
	for id, want := range map[int]runs{0: hours[0].ticks, 1: hours[0].pres[0], 2: hours[0].pres[1]} {
		if p, err := got[0].presence(id); err != nil || !p.equal(want) {
			t.Errorf("presence %d: got %v, %v; want %v", id, p, err, want)
		}
	}
	if _, err := got[0].presence(3); !errors.Is(err, errBlock) {
		t.Errorf("got %v, want an error", err)
	}
	for _, bad := range []string{"01 00 01 00 01 00", "01 00 01 00", "01 00 01 00 00 00", "01 00 01 00 05 01 00 01", ""} {
		if got, err := decodeHours(unhex(t, bad), 1); !errors.Is(err, errBlock) {
			t.Errorf("%s: got %v, %v; want an error", bad, got, err)
		}
	}
}

// TestFormatEntries: the head of a segment, as bytes.
func TestFormatEntries(t *testing.T) {
	flat := func(kind, scale uint8, pres int, v int64) entry {
		return entry{kind: kind, scale: scale, pres: pres, first: v, last: v, ref: -1}
	}
	absent := entry{ref: -1}
	five := rollup{n: 2, trusted: 2, sum: 20, band: [5]float64{5, 5, 6, 8, 12}}
	plain := entry{kind: columnVarying, pres: 1, first: 10, last: 30, gcd: 2, ref: -1, size: 3, unit: five}
	refers := entry{kind: columnVarying, scale: 2, first: 10, last: 4, gcd: 1, ref: 8, mul: -3, unit: rollup{n: 3, trusted: 1, sum: -6, band: [5]float64{-4, -4, -4, -4, -1}}}
	wide := entry{kind: columnVarying, scale: floatScale, wide: true, first: 1, last: 2, gcd: 1, ref: -1, size: 200, unit: rollup{n: 1, trusted: 1, sum: 1.5, band: [5]float64{-1, 0, 1, 2, 3}}}
	for text, list := range map[string][]entry{
		"00 02": {absent, absent, absent}, "01 00 0e 01": {flat(1, 0, 0, 7), flat(1, 0, 0, 7)}, "01 00 0e 00  01 00 02 00": {flat(1, 0, 0, 7), flat(1, 0, 0, 8)}, "01 00 0e 00  01 01 00 00": {flat(1, 0, 0, 7), flat(1, 0, 1, 7)}, "01 00 0e 00  11 00 00 00": {flat(1, 0, 0, 7), flat(1, 1, 0, 7)},
		"01 00 00 00  00 00  01 00 00 00":                                             {flat(1, 0, 0, 0), absent, flat(1, 0, 0, 0)},
		"01 00 0e 00  00 00  02 01 06 28 02 03  02 00 0a 14 00 01 02 04  01 00 03 00": {flat(1, 0, 0, 7), absent, plain, flat(1, 0, 0, 28)},
		"06 00 00 02 01 00 03 00  01 00 01 02 01 00 00 00":                            {{kind: columnVarying, last: 1, gcd: 1, mul: -2, unit: rollup{n: 1, trusted: 1, sum: 0, band: [5]float64{-1, 0, 0, 0, 0}}}},
		"26 00 14 0b 01 08 05 00  03 02 07 0c 00 00 00 03":                            {refers},
		"fa 00 02 02 01 c8 01  01 00 000000000000f83f 000000000000f0bf 0000000000000000 000000000000f03f 0000000000000040 0000000000000840": {wide},
	} {
		if got := appendEntries(nil, list); !bytes.Equal(got, unhex(t, text)) {
			t.Errorf("got %x, want %s", got, text)
		}
		if got, err := decodeEntries(unhex(t, text), len(list), 9); err != nil || !slices.Equal(got, list) {
			t.Errorf("%s: got %+v, %v; want %+v", text, got, err, list)
		}
	}
	for _, c := range []struct {
		text          string
		hours, series int
		want          bool
	}{
		{"03 00 0e 00", 1, 1, false}, {"00 02", 2, 1, false}, {"01 00 0e 00  00 01", 3, 1, true}, {"01 00 0e 00  00 02", 3, 1, false}, {"00 02", 4, 1, false}, {"00 00 00", 1, 1, false}, {"c1 00 0e 00", 1, 1, true}, {"d1 00 0e 00", 1, 1, false}, {"e1 00 0e 00", 1, 1, false}, {"f1 00 0e 00", 1, 1, true},
		{"01 80 80 04 0e 00", 1, 1, true}, {"01 81 80 04 0e 00", 1, 1, false}, {"26 00 14 0b 01 08 05 00  03 02 07 0c 00 00 00 03", 1, 8, false}, {"02 00 00 28 02 83 80 80 10  02 00 0a 14 00 01 02 04", 1, 1, false}, {"02 00 00 28 02 80 80 80 10  02 00 0a 14 00 01 02 04", 1, 1, true},
		{"02 00 00 28 02 03  02 03 0a 14 00 01 02 04", 1, 1, false}, {"02 00 00 28 02 03  91 1c 00 0a 14 00 01 02 04", 1, 1, false}, {"02 00 00 28 02 03  90 1c 90 1c 0a 14 00 01 02 04", 1, 1, true}, {"02 00 00 28 02 03  02 00 0a 14 00 01 02", 1, 1, false},
	} {
		if got, err := decodeEntries(unhex(t, c.text), c.hours, c.series); (err == nil) != c.want {
			t.Errorf("%s, %d hours, %d series: got %+v, %v", c.text, c.hours, c.series, got, err)
		}
	}
	for _, c := range []struct {
		e    entry
		want rollup
	}{
		{entry{scale: 1, unit: five}, rollup{n: 2, trusted: 2, sum: 2, band: [5]float64{.5, .5, .6, .8, 1.2}}}, {entry{unit: five}, five}, {entry{scale: 2, wide: true, unit: five}, five},
	} {
		if got := c.e.rollup(); got != c.want {
			t.Errorf("%s: got %v, want %v", fmt.Sprint(c.e.scale, c.e.wide), got, c.want)
		}
	}
}
