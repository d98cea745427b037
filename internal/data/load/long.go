package load

import (
	"context"
	"errors"
	"io"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
)

// If LOAD DATA is slow with long rows (mysql.Server.GrowsRows), rows from longRow on go in by a prepared INSERT, in pieces; a chunk that is
// larger than chunks are cut ends with a row that is large, and goes in by INSERT.
const (
	longRow   = 256 << 10
	longChunk = 10 << 20
	inlineMax = 64 << 10 // values up to this go with the execution
)

// senderOf chooses how the rows of a chunk go in.
func (r *run) senderOf(s *session, t *table, c repo.Chunk) func(context.Context, *session, *table, *feed) error {
	slow := r.server.GrowsRows()
	switch {
	case t.large.Load():
		return r.loadRows
	case r.bulk && s.HasBulk() && c.Bytes >= r.o.BulkBytes:
		return r.bulkRows
	case slow && c.Rows > 0 && c.Bytes/c.Rows >= longRow:
		return r.longRows
	case slow && c.Bytes >= longChunk, !r.localFiles, t.inserts.Load():
		return r.insertRows
	}
	return r.loadRows
}

// longRows sends the rows of a batch one at a time.
func (r *run) longRows(ctx context.Context, s *session, t *table, f *feed) error {
	return r.asBytes(ctx, s, func() error {
		insert, err := s.PrepareRow(ctx, t.bulk)
		if err != nil {
			return err
		}
		defer insert.Close()
		for f.rows == 0 || f.raw < f.limit {
			if more, err := f.more(); err != nil || !more {
				return err
			}
			var read error // the row ends here, not the session
			warnings, err := insert.Insert(ctx, func(w *mysql.RowWriter) error {
				read = r.longRow(f, w)
				return read
			})
			if read != nil {
				return read
			}
			if err != nil {
				return err
			}
			f.rows++
			if warnings == 0 {
				continue
			}
			if err := s.complaints(ctx, t); err != nil {
				return err
			}
		}
		return nil
	})
}

// more reports whether the source has another row.
func (f *feed) more() (bool, error) {
	err := f.need(1)
	if err == nil {
		return true, nil
	}
	if errors.Is(err, errTornRow) {
		return false, err
	}
	if errors.Is(err, io.EOF) {
		f.ended = true
		return false, nil
	}
	return false, err
}

// longRow writes a row.
func (r *run) longRow(f *feed, w *mysql.RowWriter) error {
	var short []byte
	for range f.columns {
		if err := f.need(1); err != nil {
			return torn(err)
		}
		n, null, err := lengthSize(f.win[f.r])
		if err != nil {
			return err
		}
		if null {
			w.Null()
			f.took(1)
			continue
		}
		if err := f.need(n); err != nil {
			return torn(err)
		}
		short = append(short[:0], f.win[f.r:f.r+n]...)
		f.left = lengthOf(short)
		f.took(n)
		if f.left > uint64(max(0, r.maxPacket-1024)) {
			return errTooLarge
		}
		inline := f.left <= inlineMax
		for f.left > 0 {
			if err := f.need(1); err != nil {
				return torn(err)
			}
			k := min(f.w-f.r, 1<<20)
			if uint64(k) > f.left {
				k = int(f.left)
			}
			piece := f.win[f.r : f.r+k]
			f.left -= uint64(k)
			if inline {
				short = append(short, piece...)
			} else if err := w.Piece(piece, f.left == 0); err != nil {
				return err
			}
			f.took(k)
		}
		if inline {
			w.Value(short)
		}
	}
	f.state, f.col = atValue, 0
	return nil
}
