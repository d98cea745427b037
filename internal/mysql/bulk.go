package mysql

import (
	"context"
	"fmt"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/mysql/wire"
)

// Bulk is an INSERT that is prepared on the server and gets many rows at a time: the server neither parses them nor looks for their
// ends. MariaDB has that since 10.2.4. It ends with its session or by Close.
type Bulk struct {
	s    *Stream
	st   *wire.Statement
	head []byte // of each execution
}

// HasBulk reports whether the server takes rows by Bulk in this session.
func (s *Stream) HasBulk() bool { return s.conn.HasBulk() }

// PrepareBulk prepares an INSERT with a ? for each of the values of a row.
func (s *Stream) PrepareBulk(ctx context.Context, statement string) (*Bulk, error) {
	st, err := s.prepareInsert(ctx, statement)
	if err != nil {
		return nil, err
	}
	return &Bulk{s: s, st: st, head: st.BulkHead()}, nil
}

func (s *Stream) prepareInsert(ctx context.Context, statement string) (st *wire.Statement, err error) {
	err = s.run(ctx, func() error {
		if st, err = s.conn.Prepare(statement); err == nil && len(st.Columns) > 0 {
			err = fmt.Errorf("%w: an INSERT that has columns", driver.ErrMalformPkt)
		}
		return err
	})
	return st, err
}

// Head is how many bytes an execution has besides its rows: together they have to be below max_allowed_packet.
func (b *Bulk) Head() int { return len(b.head) }

// Insert inserts rows: of each, value by value, wire.BulkValue and a length-encoded string, or wire.BulkNull. It tells how many
// warnings the server has.
func (b *Bulk) Insert(ctx context.Context, rows []byte) (warnings int, err error) {
	err = b.s.run(ctx, func() error {
		r, err := b.s.conn.Bulk(b.head, rows)
		warnings = r.Warnings
		return err
	})
	return warnings, err
}

// Close lets the server forget the statement.
func (b *Bulk) Close() { b.s.forget(b.st) }

func (s *Stream) forget(st *wire.Statement) {
	if s.broken == nil {
		s.conn.CloseStatement(st)
	}
}

// RowInsert is an INSERT that is prepared on the server and gets one row at a time, whose long values go there in pieces: neither
// side holds the row more than once, and the server does not look for its ends. It ends with its session or by Close.
type RowInsert struct {
	s  *Stream
	st *wire.Statement
}

// PrepareRow prepares an INSERT with a ? for each of the values of a row.
func (s *Stream) PrepareRow(ctx context.Context, statement string) (*RowInsert, error) {
	st, err := s.prepareInsert(ctx, statement)
	if err != nil {
		return nil, err
	}
	return &RowInsert{s: s, st: st}, nil
}

// RowWriter takes the values of a row, in their order.
type RowWriter struct {
	insert *RowInsert
	param  int
	nulls  []byte
	inline []byte
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
	param := w.param
	if last {
		w.param++
	}
	return w.insert.s.conn.SendPiece(w.insert.st, param, b)
}

// Insert inserts the row that f writes. It tells how many warnings the server has.
func (r *RowInsert) Insert(ctx context.Context, f func(w *RowWriter) error) (warnings int, err error) {
	err = r.s.run(ctx, func() error {
		w := &RowWriter{insert: r, nulls: make([]byte, (r.st.Params+7)/8)}
		if err := f(w); err != nil {
			return err
		}
		if w.param != r.st.Params {
			return fmt.Errorf("%w: %d values for %d", driver.ErrMalformPkt, w.param, r.st.Params)
		}
		result, err := r.s.conn.ExecuteStrings(r.st, w.nulls, w.inline)
		warnings = result.Warnings
		return err
	})
	return warnings, err
}

// Close lets the server forget the statement.
func (r *RowInsert) Close() { r.s.forget(r.st) }
