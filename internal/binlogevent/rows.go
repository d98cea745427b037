package binlogevent

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// Value is a column's value in an image of a row, in the bytes of the log.
type Value struct {
	Present bool // the image has the column
	Null    bool
	Partial bool // the bytes are differences to the image before (JSON, binlog_row_value_options=PARTIAL_JSON)
	Raw     []byte
}

// Rows reads the rows of one event.
type Rows struct {
	Table  *Table
	Kind   Kind
	Flags  uint16
	c      cursor
	images []image // of pictures
	// An update has two, the rest has one.
	pictures [2]image
	before   []Value
	after    []Value
}

// image is one picture of a row: which columns it has.
type image struct {
	present []byte
	columns int
	partial bool
}

// OpenRows begins to read a rows event of a table. f is the format of its log.
func OpenRows(f Format, e Event, t *Table) (*Rows, error) {
	r := &Rows{Table: t, Kind: e.Type.Kind()}
	return r, r.open(f, e, maxUnzipped)
}

// CountRows is the number of rows in a rows event. Those that MariaDB compressed to more than limit bytes are an error.
// With an error, the number is of the rows in front of what is wrong.
func CountRows(f Format, e Event, t *Table, limit int) (int64, error) {
	r := Rows{Table: t, Kind: e.Type.Kind()}
	if err := r.open(f, e, limit); err != nil {
		return 0, err
	}
	return r.Count()
}

func (r *Rows) open(f Format, e Event, limit int) error {
	c := cursor{b: e.Body}
	c.take(idLen(f))
	r.Flags = uint16(c.uint(2))
	if e.Type.second() {
		c.take(int(c.uint(2)) - 2)
	}
	n := c.packed()
	if c.bad {
		return errShort
	}
	if n != uint64(len(r.Table.Columns)) {
		return errColumns
	}
	width := (len(r.Table.Columns) + 7) / 8
	r.pictures[0] = image{present: c.take(width)}
	r.images = r.pictures[:1]
	if r.Kind == Update {
		r.pictures[1] = image{present: c.take(width), partial: e.Type == TypePartialUpdateRows}
		r.images = r.pictures[:2]
	}
	if c.bad {
		return errShort
	}
	for i := range r.images {
		for _, b := range r.images[i].present {
			r.images[i].columns += bits.OnesCount8(b)
		}
	}
	rest := c.b
	if e.Type.zipped() {
		var err error
		if rest, err = unzip(rest, limit); err != nil {
			return err
		}
	}
	r.c = cursor{b: rest}
	return nil
}

// Next returns the images before and after of the next row: an insert has no before, a delete no after. They are valid until
// the next call. more is false after the last row.
func (r *Rows) Next() (before, after []Value, more bool, err error) {
	if len(r.c.b) == 0 {
		return nil, nil, false, nil
	}
	if r.before == nil {
		r.before, r.after = make([]Value, len(r.Table.Columns)), make([]Value, len(r.Table.Columns))
	}
	left := len(r.c.b)
	first := r.before
	if r.Kind == Insert {
		first = r.after
	}
	if err := r.images[0].read(&r.c, r.Table, first); err != nil {
		return nil, nil, false, err
	}
	if r.Kind == Update {
		if err := r.images[1].read(&r.c, r.Table, r.after); err != nil {
			return nil, nil, false, err
		}
	}
	if len(r.c.b) == left {
		return nil, nil, false, errNoColumns
	}
	switch r.Kind {
	case Insert:
		return nil, r.after, true, nil
	case Delete:
		return r.before, nil, true, nil
	}
	return r.before, r.after, true, nil
}

// Has reports whether the images of the rows have a column: as it was, and as it became (binlog_row_image).
func (r *Rows) Has(column int) (before, after bool) {
	has := func(m *image) bool { return m.present[column/8]&(1<<(column%8)) != 0 }
	switch r.Kind {
	case Insert:
		return false, has(&r.images[0])
	case Delete:
		return has(&r.images[0]), false
	}
	return has(&r.images[0]), has(&r.images[1])
}

// Count is the number of rows that are left, without looking at their values.
func (r *Rows) Count() (n int64, err error) {
	for len(r.c.b) > 0 {
		if err := r.skip(); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// skip skips the next row.
func (r *Rows) skip() error {
	left := len(r.c.b)
	for i := range r.images {
		if !r.images[i].skip(&r.c, r.Table) {
			return errShort
		}
	}
	if len(r.c.b) == left {
		return errNoColumns
	}
	return nil
}

var errNoColumns = errors.New("rows without columns")

// skip skips the image of one row; false: it is shorter than it says.
func (m *image) skip(c *cursor, t *Table) bool {
	if m.partial && c.packed()&1 != 0 {
		c.take((t.json + 7) / 8)
	}
	nulls := c.take((m.columns + 7) / 8)
	if c.bad {
		return false
	}
	b, all := c.b, m.columns == len(t.widths)
	n, at := 0, 0
	for i, w := range t.widths {
		if !all && m.present[i/8]&(1<<(i%8)) == 0 {
			continue
		}
		null := nulls[at/8]&(1<<(at%8)) != 0
		at++
		if null {
			continue
		}
		switch w.prefix {
		case 0:
			n += int(w.fixed)
		case 1:
			if n >= len(b) {
				return false
			}
			n += 1 + int(b[n])
		case 2:
			if n+2 > len(b) {
				return false
			}
			n += 2 + int(binary.LittleEndian.Uint16(b[n:]))
		default:
			if n+int(w.prefix) > len(b) {
				return false
			}
			size := le(b[n : n+int(w.prefix)])
			if size > uint64(len(b)) {
				return false
			}
			n += int(w.prefix) + int(size)
		}
	}
	if n > len(b) {
		return false
	}
	c.b = b[n:]
	return true
}

// read reads the image of one row.
func (m *image) read(c *cursor, t *Table, out []Value) error {
	var partial []byte
	if m.partial && c.packed()&1 != 0 {
		partial = c.take((t.json + 7) / 8) // which JSON values are differences; they have their length like others
	}
	nulls := c.take((m.columns + 7) / 8)
	if c.bad {
		return errShort
	}
	at, json := 0, 0
	for i := range t.Columns {
		col := &t.Columns[i]
		differs := false
		if col.typ == typeJSON {
			differs = partial != nil && partial[json/8]&(1<<(json%8)) != 0
			json++
		}
		if m.present[i/8]&(1<<(i%8)) == 0 {
			out[i] = Value{}
			continue
		}
		null := nulls[at/8]&(1<<(at%8)) != 0
		at++
		var raw []byte
		switch {
		case null:
		case col.fixed >= 0:
			raw = c.take(col.fixed)
		default:
			raw = c.take(int(c.uint(col.prefix)))
		}
		if c.bad {
			return errShort
		}
		out[i] = Value{Present: true, Null: null, Partial: differs && !null, Raw: raw}
	}
	return nil
}

// Plain is a rows event without MariaDB's compression and without a checksum, as BINLOG statements take it. The result shares
// the event's memory if nothing has to change.
func Plain(f Format, e Event) ([]byte, error) {
	raw := e.Raw[:HeaderLen+len(e.Body)]
	if !e.Type.zipped() {
		return fixLength(raw, e.Type), nil
	}
	c := cursor{b: e.Body}
	c.take(idLen(f) + 2)
	typ := e.Type - TypeWriteRowsZipV1 + TypeWriteRowsV1
	if e.Type.second() {
		c.take(int(c.uint(2)) - 2)
		typ = e.Type - TypeWriteRowsZip + TypeWriteRows
	}
	width := (int(c.packed()) + 7) / 8
	c.take(width)
	if e.Type.Kind() == Update {
		c.take(width)
	}
	if c.bad {
		return nil, errShort
	}
	rows, err := unzip(c.b, maxUnzipped)
	if err != nil {
		return nil, err
	}
	head := raw[:len(raw)-len(c.b)]
	out := make([]byte, 0, len(head)+len(rows))
	out = append(append(out, head...), rows...)
	return fixLength(out, typ), nil
}

// fixLength writes the length and type that an event has now.
func fixLength(raw []byte, typ Type) []byte {
	raw[4] = byte(typ)
	binary.LittleEndian.PutUint32(raw[9:], uint32(len(raw)))
	return raw
}

// PlainEvent is any event without its checksum, its length set accordingly. The bytes are the event's own.
func PlainEvent(e Event) []byte { return fixLength(e.Raw[:HeaderLen+len(e.Body)], e.Type) }

// Split cuts a rows event without checksum into several of at most limit bytes each, if its rows are short enough. Every
// part is an event of its own.
func Split(f Format, raw []byte, t *Table, limit int) ([][]byte, error) {
	e := Event{Header: ParseHeader(raw), Body: raw[HeaderLen:]}
	r, err := OpenRows(f, e, t)
	if err != nil {
		return nil, err
	}
	head := raw[:len(raw)-len(r.c.b)]
	var parts [][]byte
	begin := r.c.b
	taken := 0
	cut := func() {
		part := append(append(make([]byte, 0, len(head)+taken), head...), begin[:taken]...)
		parts = append(parts, fixLength(part, e.Type))
		begin, taken = begin[taken:], 0
	}
	for len(r.c.b) > 0 {
		left := len(r.c.b)
		if err := r.skip(); err != nil {
			return nil, err
		}
		n := left - len(r.c.b)
		if taken > 0 && len(head)+taken+n > limit {
			cut()
		}
		taken += n
	}
	if taken > 0 {
		cut()
	}
	return parts, nil
}
