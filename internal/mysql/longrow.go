package mysql

import (
	"context"
	"encoding/binary"
	"fmt"

	driver "github.com/go-sql-driver/mysql"
)

// RowInsert is an INSERT that is prepared on the server and gets one row at a time, whose long values go there in pieces: neither
// side holds the row more than once, and the server does not look for its ends. It ends with its session or by Close. Source: MySQL's
// "COM_STMT_SEND_LONG_DATA", "COM_STMT_EXECUTE".
type RowInsert struct {
	s      *Stream
	id     []byte
	params int
}

// Commands of prepared statements.
const (
	comStmtExecute  = 0x17
	comStmtLongData = 0x18
)

// PrepareRow prepares an INSERT with a ? for each of the values of a row.
func (s *Stream) PrepareRow(ctx context.Context, statement string) (*RowInsert, error) {
	b := &Bulk{s: s}
	r := &RowInsert{s: s}
	err := s.run(ctx, func() error { return b.prepare(statement) })
	if err != nil {
		return nil, err
	}
	r.id, r.params = b.head[1:5], (len(b.head)-7)/2
	return r, nil
}

// RowWriter takes the values of a row, in their order.
type RowWriter struct {
	insert *RowInsert
	param  int
	nulls  []byte
	inline []byte
	buf    []byte
}

// Null takes a NULL.
func (w *RowWriter) Null() {
	w.nulls[w.param/8] |= 1 << (w.param % 8)
	w.param++
}

// Value takes a value as a whole, as a length-encoded string.
func (w *RowWriter) Value(encoded []byte) {
	w.inline = append(w.inline, encoded...)
	w.param++
}

// Piece sends a piece of a value that is long; with the last one the value is whole.
func (w *RowWriter) Piece(b []byte, last bool) error {
	w.buf = append(append(append(w.buf[:0], comStmtLongData), w.insert.id...), byte(w.param), byte(w.param>>8))
	if last {
		w.param++
	}
	return w.insert.s.send2(w.buf, b) // there is no answer; trouble shows when the statement is executed
}

// Insert inserts the row that f writes. It tells how many warnings the server has.
func (r *RowInsert) Insert(ctx context.Context, f func(w *RowWriter) error) (warnings int, err error) {
	err = r.s.run(ctx, func() error {
		w := &RowWriter{insert: r, nulls: make([]byte, (r.params+7)/8)}
		if err := f(w); err != nil {
			return err
		}
		if w.param != r.params {
			return fmt.Errorf("%w: %d values for %d", driver.ErrMalformPkt, w.param, r.params)
		}
		const once, newTypes = 1, 1
		p := append(append([]byte{comStmtExecute}, r.id...), 0)
		p = binary.LittleEndian.AppendUint32(p, once)
		p = append(append(p, w.nulls...), newTypes)
		for range r.params {
			p = append(p, bulkTypeString, 0)
		}
		if err := r.s.send2(p, w.inline); err != nil {
			return err
		}
		warnings, err = r.s.okWarnings()
		return err
	})
	return warnings, err
}

// Close lets the server forget the statement.
func (r *RowInsert) Close() {
	if r.s.broken == nil {
		_ = r.s.send(append([]byte{comStmtClose}, r.id...)) // there is no answer; trouble shows in the next statement
	}
}
