package binlogevent

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

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

// Table is what a table map event says about a table.
type Table struct {
	ID           uint64
	Schema, Name string
	Columns      []Column
	Named        bool // the log names the columns and the primary key (binlog_row_metadata=FULL)
	json         int  // columns of type JSON
	widths       []width
}

// width says how to pass over a value: prefix bytes hold its length, or it is fixed.
type width struct {
	fixed  int16
	prefix uint8
}

// Column is a column of a Table. What is not in the log is zero, for the caller to fill in.
type Column struct {
	Name      string
	Key       bool   // part of the primary key
	Known     bool   // Unsigned is known
	Unsigned  bool   // of a number
	Collation uint32 // of a text; 0: not known
	Binary    bool   // a string of bytes, not of characters
	Declared  string // its type as the server declares it, in lower case, such as uuid; "" from a log alone
	Generated bool   // computed by the server: may not be written

	typ     byte // the real type of a CHAR, ENUM or SET
	a, b    int  // metadata: length, precision and scale, fraction
	fixed   int  // bytes of a value; -1: prefix bytes hold the length
	prefix  int
	charset bool // counted among the columns with a character set
	numeric bool // counted among those with a sign
}

// JSON reports whether the column is MySQL's type JSON.
func (c Column) JSON() bool { return c.typ == typeJSON }

// Temporal reports whether it is a TIMESTAMP or DATETIME, which the server may set by itself.
func (c Column) Temporal() bool {
	switch c.typ {
	case typeTimestamp, typeTimestamp2, typeDatetime, typeDatetime2:
		return true
	}
	return false
}

// Fits reports whether a column of a type that a server declares (DATA_TYPE of INFORMATION_SCHEMA.COLUMNS) is logged as this one
// was. A type that is not known here fits.
func (c Column) Fits(declared string) bool {
	types, ok := loggedAs[strings.ToLower(declared)]
	return !ok || bytes.IndexByte(types, c.typ) >= 0
}

// loggedAs are the types by which columns are logged.
var loggedAs = map[string][]byte{
	"tinyint": {typeTiny}, "smallint": {typeShort}, "mediumint": {typeInt24}, "int": {typeLong}, "bigint": {typeLongLong},
	"float": {typeFloat}, "double": {typeDouble}, "decimal": {typeNewDecimal}, "bit": {typeBit}, "year": {typeYear},
	"date": {typeDate, typeNewDate}, "time": {typeTime, typeTime2}, "datetime": {typeDatetime, typeDatetime2}, "timestamp": {typeTimestamp, typeTimestamp2},
	"char": {typeString, typeVarString}, "binary": {typeString}, "varchar": {typeVarchar, typeVarString, typeVarcharZip}, "varbinary": {typeVarchar, typeVarString, typeVarcharZip},
	"enum": {typeEnum}, "set": {typeSet}, "json": {typeJSON, typeBlob},
	"tinytext": blobTypes, "text": blobTypes, "mediumtext": blobTypes, "longtext": blobTypes, "tinyblob": blobTypes, "blob": blobTypes, "mediumblob": blobTypes, "longblob": blobTypes,
}

var blobTypes = []byte{typeBlob, typeTinyBlob, typeMediumBlob, typeLongBlob, typeBlobZip}

// Approximate reports whether it is a FLOAT or DOUBLE.
func (c Column) Approximate() bool { return c.typ == typeFloat || c.typ == typeDouble }

// ParseTable reads a table map event.
func ParseTable(f Format, body []byte) (Table, error) {
	c := cursor{b: body}
	t := Table{ID: c.uint(idLen(f))}
	c.take(2)
	t.Schema = string(c.take(int(c.uint(1))))
	c.take(1)
	t.Name = string(c.take(int(c.packed() & 0xffff)))
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
	t.Columns, t.widths = make([]Column, n), make([]width, n)
	for i, typ := range types {
		col, ok := columnOf(typ, &meta)
		if !ok || meta.bad {
			return t, fmt.Errorf("column %d of %s.%s has the unknown type %d", i+1, t.Schema, t.Name, typ)
		}
		t.Columns[i] = col
		if t.widths[i] = (width{fixed: int16(col.fixed)}); col.fixed < 0 {
			t.widths[i] = width{prefix: uint8(col.prefix)}
		}
		if col.typ == typeJSON {
			t.json++
		}
	}
	c.take((int(n) + 7) / 8) // which may be NULL
	if c.bad {
		return t, errShort
	}
	t.optional(f, c)
	return t, nil
}

func idLen(f Format) int {
	if f.tableIDLen == 4 {
		return 4
	}
	return 6
}

// columnOf reads a column's metadata (libs/mysql/binlog/event/rows_event.h, Table_map_event, says what each type has).
func columnOf(typ byte, meta *cursor) (Column, bool) {
	col := Column{typ: typ, fixed: -1}
	switch typ {
	case typeTiny, typeYear:
		col.fixed = 1
	case typeShort:
		col.fixed = 2
	case typeInt24, typeDate, typeNewDate, typeTime:
		col.fixed = 3
	case typeLong, typeTimestamp:
		col.fixed = 4
	case typeLongLong, typeDatetime:
		col.fixed = 8
	case typeNull:
		col.fixed = 0
	case typeFloat, typeDouble:
		col.fixed = int(meta.uint(1))
	case typeTimestamp2, typeDatetime2, typeTime2:
		col.a = int(meta.uint(1))
		col.fixed = map[byte]int{typeTimestamp2: 4, typeDatetime2: 5, typeTime2: 3}[typ] + (col.a+1)/2
	case typeBit:
		m := int(meta.uint(2))
		col.a = m>>8*8 + m&0xff
		col.fixed = (col.a + 7) / 8
	case typeNewDecimal:
		col.a = int(meta.uint(1))
		col.b = int(meta.uint(1))
		col.fixed = decimalBytes(col.a, col.b)
	case typeVarchar, typeVarString, typeVarcharZip:
		col.charset = typ != typeVarcharZip
		if col.a, col.prefix = int(meta.uint(2)), 1; col.a > 255 {
			col.prefix = 2
		}
	case typeBlob, typeTinyBlob, typeMediumBlob, typeLongBlob, typeJSON, typeGeometry, typeVector, typeBlobZip:
		col.prefix = int(meta.uint(1))
		col.charset = typ == typeBlob
		if col.prefix < 1 || col.prefix > 4 {
			return col, false
		}
	case typeString, typeEnum, typeSet:
		stringColumn(&col, int(meta.uint(1)), int(meta.uint(1)))
	default:
		return col, false
	}
	switch typ {
	case typeTiny, typeShort, typeInt24, typeLong, typeLongLong, typeNewDecimal, typeFloat, typeDouble:
		col.numeric = true
	}
	return col, true
}

// stringColumn reads the two bytes of a CHAR, ENUM or SET: the real type, and a length of which two bits are hidden in
// the type, inverted.
func stringColumn(col *Column, a, b int) {
	typ, length := a, b
	if a&0x30 != 0x30 {
		typ, length = a|0x30, b|(a&0x30^0x30)<<4
	}
	col.typ, col.a = byte(typ), length
	switch {
	case typ == typeEnum || typ == typeSet:
		col.fixed = length
	case length > 255:
		col.charset, col.prefix = true, 2
	default:
		col.charset, col.prefix = true, 1
	}
}

// decimalBytes is the length of a DECIMAL: four bytes per nine digits, fewer for the rest, before and after the point
// (strings/decimal.cc, decimal_bin_size).
func decimalBytes(precision, scale int) int {
	whole := max(precision-scale, 0)
	return whole/9*4 + digitBytes[whole%9] + scale/9*4 + digitBytes[scale%9]
}

var digitBytes = [10]int{0, 1, 1, 2, 2, 3, 3, 4, 4, 4}

// optional reads the optional metadata (Table_map_event::Optional_metadata_field_type).
func (t *Table) optional(f Format, c cursor) {
	for len(c.b) > 0 && !c.bad {
		kind := c.uint(1)
		v := cursor{b: c.take(int(c.packed()))}
		switch kind {
		case 1: // which numbers have no sign
			t.signs(f, v.b)
		case 2: // the collation of most, then pairs of number and collation
			t.collations(f, uint32(v.packed()), v)
		case 3: // one collation each
			for j := range t.Columns {
				if t.hasCharset(f, j) && len(v.b) > 0 {
					t.setCollation(j, uint32(v.packed()))
				}
			}
		case 4:
			for j := range t.Columns {
				t.Columns[j].Name = string(v.take(int(v.packed())))
			}
			t.Named = !v.bad
		case 8: // numbers of the columns of the primary key
			for len(v.b) > 0 {
				t.key(int(v.packed()))
			}
		case 9: // the same with the length of a prefix
			for len(v.b) > 0 {
				t.key(int(v.packed()))
				v.packed()
			}
		}
	}
}

// signs reads which numbers have no sign: a bit each, the highest first. MariaDB and MySQL 9.7 count YEAR among the numbers,
// MySQL 8.0.15 does not (both found out by asking them). Between those two versions, what the two readings do not agree
// on is not known.
func (t *Table) signs(f Format, bitmap []byte) {
	read := func(years bool) []bool {
		out := make([]bool, len(t.Columns))
		i := 0
		for j, c := range t.Columns {
			if c.numeric || years && c.typ == typeYear {
				out[j] = i/8 < len(bitmap) && bitmap[i/8]&(0x80>>(i%8)) != 0
				i++
			}
		}
		return out
	}
	with, without := read(true), read(false)
	for j := range t.Columns {
		c := &t.Columns[j]
		switch {
		case f.server.AtLeast(90700, 0):
			c.Known, c.Unsigned = true, with[j]
		case f.server.Number <= 80015:
			c.Known, c.Unsigned = true, without[j]
		default:
			c.Known, c.Unsigned = with[j] == without[j], with[j] && without[j]
		}
	}
}

func (t *Table) key(i int) {
	if i >= 0 && i < len(t.Columns) {
		t.Columns[i].Key = true
	}
}

// hasCharset reports whether a column is counted among those with a character set; MariaDB counts geometries.
func (t *Table) hasCharset(f Format, i int) bool {
	return t.Columns[i].charset || f.server.MariaDB() && t.Columns[i].typ == typeGeometry
}

func (t *Table) setCollation(i int, id uint32) {
	t.Columns[i].Collation = id
	t.Columns[i].Binary = id == collationBinary
}

// collationBinary is the number of the collation binary.
const collationBinary = 63

func (t *Table) collations(f Format, most uint32, pairs cursor) {
	other := map[int]uint32{}
	for len(pairs.b) > 0 && !pairs.bad {
		i := int(pairs.packed())
		other[i] = uint32(pairs.packed())
	}
	i := 0
	for j := range t.Columns {
		if !t.hasCharset(f, j) {
			continue
		}
		id, ok := other[i]
		if !ok {
			id = most
		}
		t.setCollation(j, id)
		i++
	}
}

// Kind is what a rows event did.
type Kind uint8

// The kinds of changes.
const (
	Insert Kind = iota
	Update
	Delete
)

// String is the kind as statements name it.
func (k Kind) String() string { return [...]string{"INSERT", "UPDATE", "DELETE"}[k] }

// IsRows reports whether an event is one of rows.
func (t Type) IsRows() bool {
	return t >= TypeWriteRowsV1 && t <= TypeDeleteRowsV1 || t >= TypeWriteRows && t <= TypeDeleteRows || t == TypePartialUpdateRows ||
		t >= TypeWriteRowsZipV1 && t <= TypeDeleteRowsZip
}

// Kind is what a rows event does.
func (t Type) Kind() Kind {
	switch t {
	case TypeWriteRows, TypeWriteRowsV1, TypeWriteRowsZip, TypeWriteRowsZipV1:
		return Insert
	case TypeDeleteRows, TypeDeleteRowsV1, TypeDeleteRowsZip, TypeDeleteRowsZipV1:
		return Delete
	}
	return Update
}

// zipped reports whether a rows event is compressed by MariaDB (log_bin_compress).
func (t Type) zipped() bool { return t >= TypeWriteRowsZipV1 && t <= TypeDeleteRowsZip }

// second reports whether a rows event is of the second version, with extra data.
func (t Type) second() bool {
	return t >= TypeWriteRows && t <= TypeDeleteRows || t == TypePartialUpdateRows || t >= TypeWriteRowsZip && t <= TypeDeleteRowsZip
}

// Flags of a rows event.
const (
	RowsStatementEnd  = 1 // the last of its statement
	RowsNoForeignKeys = 2 // foreign_key_checks was 0
)

// RowsHead reads which table a rows event changes, and its flags.
func RowsHead(f Format, e Event) (table uint64, flags uint16, err error) {
	c := cursor{b: e.Body}
	table, flags = c.uint(idLen(f)), uint16(c.uint(2))
	return table, flags, c.err()
}

// SetRowsFlags sets a rows event's flags in its bytes, whose checksum is then no longer right.
func SetRowsFlags(f Format, raw []byte, flags uint16) {
	at := HeaderLen + idLen(f)
	raw[at], raw[at+1] = byte(flags), byte(flags>>8)
}

// Dummy is the number of the table whose rows event ends a statement without rows.
const Dummy = 1<<24 - 1

var errColumns = errors.New("the rows and their table have different columns")
