package load

import (
	"context"
	"errors"
	"io"

	"github.com/rissodb/risso/internal/mysql/wire"
)

// bulkBytes is the default of Options.BulkBytes: to prepare a statement for less is not worth it.
const bulkBytes = 64 << 10

// bulkRow is the largest row that is held to be sent so: LOAD DATA holds none, if the server allows it.
const bulkRow = 8 << 20

// binds turns the raw rows of a feed into what mysql.Bulk takes: their values are length-encoded already.
type binds struct {
	f     *feed
	size  int    // aim of an execution
	most  int    // what the server takes (max_allowed_packet), less the execution's head
	buf   []byte // of one execution
	carry []byte // a row that is read and did not go into the execution before
}

// next returns the next rows of the batch; none at the end of it.
func (b *binds) next() (rows []byte, err error) {
	b.buf = append(b.buf[:0], b.carry...)
	b.carry = b.carry[:0]
	for len(b.buf) < b.size && (b.f.rows == 0 || b.f.raw < b.f.limit) {
		begin := len(b.buf)
		err := b.row()
		if errors.Is(err, io.EOF) {
			b.f.ended = true
			break
		}
		if err != nil {
			return nil, err
		}
		b.f.rows++
		if begin > 0 && len(b.buf) > b.most { // by itself it goes
			b.carry = append(b.carry, b.buf[begin:]...)
			b.buf = b.buf[:begin]
			break
		}
	}
	return b.buf, nil
}

func (b *binds) row() error {
	begin := len(b.buf)
	for col := range b.f.columns {
		if err := b.f.need(1); err != nil {
			if errors.Is(err, io.EOF) && col == 0 {
				return err
			}
			return torn(err)
		}
		n, null, err := lengthSize(b.f.win[b.f.r])
		if err != nil {
			return err
		}
		if null {
			b.buf = append(b.buf, wire.BulkNull)
			b.f.took(1)
			continue
		}
		if err := b.f.need(n); err != nil {
			return torn(err)
		}
		length := b.f.win[b.f.r : b.f.r+n]
		b.f.left = lengthOf(length)
		b.buf = append(append(b.buf, wire.BulkValue), length...)
		b.f.took(n)
		if b.f.left > uint64(max(0, b.most-(len(b.buf)-begin))) {
			return errTooLarge
		}
		if err := b.value(); err != nil {
			return err
		}
	}
	b.f.state, b.f.col = atValue, 0
	return nil
}

// value appends the bytes of a value.
func (b *binds) value() error {
	for b.f.left > 0 {
		if err := b.f.need(1); err != nil {
			return torn(err)
		}
		k := b.f.w - b.f.r
		if uint64(k) > b.f.left {
			k = int(b.f.left)
		}
		b.buf = append(b.buf, b.f.win[b.f.r:b.f.r+k]...)
		b.f.took(k)
		b.f.left -= uint64(k)
	}
	return nil
}

// bulkRows sends the rows of a batch to a prepared INSERT.
func (r *run) bulkRows(ctx context.Context, s *session, t *table, f *feed) error {
	return r.asBytes(ctx, s, func() error {
		insert, err := s.PrepareBulk(ctx, t.bulk)
		if err != nil {
			return err
		}
		defer insert.Close()
		most := r.maxPacket - insert.Head() - 1024
		if r.localFiles {
			most = min(most, bulkRow)
		}
		b := binds{f: f, size: min(1<<20, r.maxPacket/2), most: most}
		for {
			rows, err := b.next()
			if err != nil || len(rows) == 0 {
				return err
			}
			warnings, err := insert.Insert(ctx, rows)
			if err != nil {
				return err
			}
			if warnings == 0 {
				continue
			}
			if err := s.complaints(ctx, t); err != nil {
				return err
			}
		}
	})
}

// asBytes has the server take all strings for bytes while f runs.
func (r *run) asBytes(ctx context.Context, s *session, f func() error) (err error) {
	if err := s.Exec(ctx, "SET NAMES binary"); err != nil {
		return err
	}
	defer func() {
		if s.Broken() == nil {
			if nerr := s.Exec(ctx, r.names); err == nil {
				err = nerr
			}
		}
	}()
	return f()
}
