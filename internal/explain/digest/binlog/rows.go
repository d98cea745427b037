package binlog

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// errShort is an event whose content ends before it should.
var errShort = errors.New("the event is shorter than it says")

// cursor reads the fields of an event. After an error all it gives is zero.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.b) {
		c.b, c.bad = nil, true
		return nil
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

// uint reads an integer of n bytes, at most 8, little-endian.
func (c *cursor) uint(n int) (v uint64) {
	for i, x := range c.take(n) {
		v |= uint64(x) << (8 * i)
	}
	return v
}

// packed reads MySQL's integer of variable length
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_dt_integers.html).
func (c *cursor) packed() uint64 {
	switch first := c.uint(1); first {
	case 0xfc:
		return c.uint(2)
	case 0xfd:
		return c.uint(3)
	case 0xfe:
		return c.uint(8)
	default:
		return first
	}
}

// Column types, as table map events number them
// (https://dev.mysql.com/doc/dev/mysql-server/latest/field__types_8h.html; MariaDB's from 140 on).
const (
	typeTiny       = 1
	typeShort      = 2
	typeLong       = 3
	typeFloat      = 4
	typeDouble     = 5
	typeNull       = 6
	typeTimestamp  = 7
	typeLongLong   = 8
	typeInt24      = 9
	typeDate       = 10
	typeTime       = 11
	typeDatetime   = 12
	typeYear       = 13
	typeNewDate    = 14
	typeVarchar    = 15
	typeBit        = 16
	typeTimestamp2 = 17
	typeDatetime2  = 18
	typeTime2      = 19
	typeBlobZip    = 140
	typeVarcharZip = 141
	typeVector     = 242
	typeJSON       = 245
	typeNewDecimal = 246
	typeEnum       = 247
	typeSet        = 248
	typeTinyBlob   = 249
	typeMediumBlob = 250
	typeLongBlob   = 251
	typeBlob       = 252
	typeVarString  = 253
	typeString     = 254
	typeGeometry   = 255
)

// table is what a table map event says: names, and how long values are.
type table struct {
	schema, name string
	columns      []column
	json         int // columns of type JSON
}

// column says how to pass over a value: a fixed length, or a length in front of the value.
type column struct {
	fixed  int // bytes; -1: prefix bytes hold the length
	prefix int
}

// readTable reads the body of a table map event behind its id and flags.
func readTable(c *cursor) (table, error) {
	var t table
	t.schema = string(c.take(int(c.uint(1))))
	c.take(1)
	t.name = string(c.take(int(c.packed() & 0xffff)))
	c.take(1)
	n := c.packed()
	if c.bad || n > uint64(len(c.b)) {
		return t, errShort
	}
	types := c.take(int(n))
	size := c.packed()
	if size > uint64(len(c.b)) {
		return t, errShort
	}
	meta := cursor{b: c.take(int(size))}
	t.columns = make([]column, n)
	for i, typ := range types {
		col, ok := columnOf(typ, &meta)
		if !ok || meta.bad {
			return t, errors.New("a column of an unknown type")
		}
		t.columns[i] = col
		if typ == typeJSON {
			t.json++
		}
	}
	return t, nil
}

// columnOf reads a column's metadata (libs/mysql/binlog/event/rows_event.h, Table_map_event, tells what each type has).
func columnOf(typ byte, meta *cursor) (column, bool) {
	fixed := func(n int) (column, bool) { return column{fixed: n}, true }
	prefixed := func(n int) (column, bool) { return column{fixed: -1, prefix: n}, n >= 1 && n <= 4 }
	switch typ {
	case typeTiny, typeYear:
		return fixed(1)
	case typeShort:
		return fixed(2)
	case typeInt24, typeDate, typeNewDate, typeTime:
		return fixed(3)
	case typeLong, typeTimestamp:
		return fixed(4)
	case typeLongLong, typeDatetime:
		return fixed(8)
	case typeNull:
		return fixed(0)
	case typeFloat, typeDouble:
		return fixed(int(meta.uint(1)))
	case typeTimestamp2:
		return fixed(4 + int(meta.uint(1)+1)/2)
	case typeDatetime2:
		return fixed(5 + int(meta.uint(1)+1)/2)
	case typeTime2:
		return fixed(3 + int(meta.uint(1)+1)/2)
	case typeBit:
		m := meta.uint(2)
		return fixed(int(m>>8) + int(m&0xff+7)/8)
	case typeNewDecimal:
		precision := int(meta.uint(1))
		return fixed(decimalBytes(precision, int(meta.uint(1))))
	case typeVarchar, typeVarString, typeVarcharZip:
		if meta.uint(2) > 255 {
			return prefixed(2)
		}
		return prefixed(1)
	case typeBlob, typeTinyBlob, typeMediumBlob, typeLongBlob, typeJSON, typeGeometry, typeVector, typeBlobZip:
		return prefixed(int(meta.uint(1)))
	case typeString, typeEnum, typeSet:
		return stringColumn(int(meta.uint(1)), int(meta.uint(1)))
	}
	return column{}, false
}

// stringColumn reads the two bytes of a CHAR, ENUM or SET: the real type, and a length of which two bits are hidden in
// the type, inverted.
func stringColumn(a, b int) (column, bool) {
	typ, length := a, b
	if a&0x30 != 0x30 {
		typ, length = a|0x30, b|(a&0x30^0x30)<<4
	}
	switch {
	case typ == typeEnum || typ == typeSet:
		return column{fixed: length}, true
	case length > 255:
		return column{fixed: -1, prefix: 2}, true
	default:
		return column{fixed: -1, prefix: 1}, true
	}
}

// decimalBytes is the length of a DECIMAL: four bytes per nine digits, fewer for the rest, before and behind the point
// (strings/decimal.cc, decimal_bin_size).
func decimalBytes(precision, scale int) int {
	left := [10]int{0, 1, 1, 2, 2, 3, 3, 4, 4, 4}
	whole := max(precision-scale, 0)
	return whole/9*4 + left[whole%9] + scale/9*4 + left[scale%9]
}

// rowKind is what a rows event did.
type rowKind uint8

const (
	rowInsert rowKind = iota
	rowUpdate
	rowDelete
)

// countRows walks over the rows of an event: body begins at the number of columns. unpack decompresses what follows the
// bitmaps; nil where that is plain. partial is MySQL's PARTIAL_UPDATE_ROWS_EVENT.
func countRows(body []byte, t *table, kind rowKind, partial bool, unpack func([]byte) ([]byte, error)) (int64, error) {
	c := cursor{b: body}
	n := c.packed()
	if n != uint64(len(t.columns)) {
		return 0, errors.New("the event and its table have different columns")
	}
	width := (len(t.columns) + 7) / 8
	images := []image{{present: c.take(width)}}
	if kind == rowUpdate {
		images = append(images, image{present: c.take(width), partial: partial})
	}
	if c.bad {
		return 0, errShort
	}
	for i := range images {
		for _, b := range images[i].present {
			images[i].columns += bits.OnesCount8(b)
		}
	}
	rest := c.b
	if unpack != nil {
		var err error
		if rest, err = unpack(rest); err != nil {
			return 0, err
		}
	}
	rows := int64(0)
	for c = (cursor{b: rest}); len(c.b) > 0; rows++ {
		before := len(c.b)
		for i := range images {
			if err := images[i].skip(&c, t); err != nil {
				return rows, err
			}
		}
		if len(c.b) == before { // a table without columns in the image: rows have no bytes
			return rows, errors.New("rows without columns")
		}
	}
	return rows, nil
}

// image is one picture of a row: which columns it has.
type image struct {
	present []byte
	columns int
	partial bool
}

// skip passes over the image of one row.
func (m *image) skip(c *cursor, t *table) error {
	if m.partial && c.packed()&1 != 0 {
		c.take((t.json + 7) / 8) // which JSON values are differences; they have their length like others
	}
	nulls := c.take((m.columns + 7) / 8)
	if c.bad {
		return errShort
	}
	at := 0
	for i, col := range t.columns {
		if m.present[i/8]&(1<<(i%8)) == 0 {
			continue
		}
		null := nulls[at/8]&(1<<(at%8)) != 0
		at++
		switch {
		case null:
		case col.fixed >= 0:
			c.take(col.fixed)
		default:
			c.take(int(c.uint(col.prefix)))
		}
		if c.bad {
			return errShort
		}
	}
	return nil
}

// be reads a big-endian integer of up to 8 bytes.
func be(b []byte) uint64 {
	var full [8]byte
	if len(b) > 8 {
		return 0
	}
	copy(full[8-len(b):], b)
	return binary.BigEndian.Uint64(full[:])
}
