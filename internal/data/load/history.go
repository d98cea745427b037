package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// now is when rows end that are so still, with and without MariaDB 11.5's longer time. Source: MariaDB documentation,
// "System-Versioned Tables"; TIMESTAMP in "MariaDB 11.5 Changes".
var now = []string{"2038-01-19 03:14:07.999999", "2106-02-07 06:28:15.999999"}

// dropsHistory reports whether of a table with rows of the past those of now come back only.
func (r *run) dropsHistory(t *repo.Table) bool {
	return t.History && (!r.server.HasHistory() || r.strangeHistory(t) != "")
}

// chunkOf reads a chunk's rows, of a table whose past stays away those of now.
func (r *run) chunkOf(ctx context.Context, t *table, hash string) (io.ReadCloser, error) {
	rc, err := r.o.Repo.Chunk(ctx, t.Schema, t.Name, hash)
	if err != nil || t.past == nil {
		return rc, err
	}
	return &present{src: bufio.NewReaderSize(rc, window), rc: rc, past: t.past}, nil
}

// pastColumns are the columns of a raw row with the times from and to which it was so.
type pastColumns struct {
	all  int
	out  []bool // columns that are of the past only
	ends int
}

// forgetPast makes a table one without history: its chunks are read through, to know how many rows of now they hold.
func (r *run) forgetPast(ctx context.Context, t *table) error {
	if !r.dropsHistory(&t.Table) {
		return nil
	}
	shape, err := define.ParseTable(t.Schema, t.Create)
	if err != nil {
		return err
	}
	with, ok := shape.WithHistory()
	if !ok {
		return fmt.Errorf("%s: historical rows without their times: %w", t.quoted(), repo.ErrDamaged)
	}
	past := &pastColumns{all: len(t.Columns), ends: -1}
	for i, c := range t.Columns {
		col, _ := with.Column(c.Name)
		past.out = append(past.out, col.Period != "")
		if col.Period == "END" {
			past.ends = i
		}
	}
	if past.ends < 0 {
		return fmt.Errorf("%s: historical rows without their times: %w", t.quoted(), repo.ErrDamaged)
	}
	t.past = past
	t.Columns = slices.DeleteFunc(slices.Clone(t.Columns), func(c repo.Column) bool {
		col, _ := with.Column(c.Name)
		return col.Period != ""
	})
	def, err := parseTable(t.Create)
	if err != nil {
		return err
	}
	if shape, err = define.ParseTable(t.Schema, def.unversioned().statement(mysql.Quote(t.Name))); err != nil {
		return err
	}
	shape.Schema, shape.Name = t.schema, t.name
	t.shape = shape
	t.key, _ = chunk.KeyOf(shape)
	t.Chunks = slices.Clone(t.Chunks)
	var sum chunk.Sum
	t.Rows, t.Bytes = 0, 0
	for i := range t.Chunks {
		c := &t.Chunks[i]
		var rows chunk.Rows
		err := r.patient(ctx, func() error {
			rows = chunk.Rows{}
			rc, err := r.chunkOf(ctx, t, c.Hash)
			if err != nil {
				return err
			}
			defer rc.Close()
			return rc.(*present).each(func(row []byte) error { return rows.Piece(row, true) })
		})
		if err != nil {
			return err
		}
		c.Rows, c.Bytes, c.Sum = rows.Count, rows.Bytes, rows.Sum.String()
		c.Lower, c.Upper = nil, nil // they name the end of a row's time
		t.Rows, t.Bytes = t.Rows+rows.Count, t.Bytes+rows.Bytes
		sum.Add(rows.Sum)
	}
	t.Chunks = slices.DeleteFunc(t.Chunks, func(c repo.Chunk) bool { return c.Rows == 0 })
	t.Sum = sum.String()
	return nil
}

// present reads raw rows and returns the current ones, without the times.
type present struct {
	src  *bufio.Reader
	rc   io.Closer
	past *pastColumns
	row  []byte
	left []byte // of it, not read yet
}

// Close ends it.
func (p *present) Close() error { return p.rc.Close() }

// Read returns raw rows.
func (p *present) Read(b []byte) (int, error) {
	for len(p.left) == 0 {
		if err := p.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.left)
	p.left = p.left[n:]
	return n, nil
}

// each hands each row to f.
func (p *present) each(f func(row []byte) error) error {
	for {
		err := p.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && len(p.left) > 0 {
			err = f(p.left)
		}
		if err != nil {
			return err
		}
	}
}

// next reads a row; one of the past leaves nothing.
func (p *present) next() error {
	p.row, p.left = p.row[:0], nil
	stays := false
	for i := range p.past.all {
		begin := len(p.row)
		first, err := p.src.ReadByte()
		if errors.Is(err, io.EOF) && i == 0 {
			return io.EOF
		}
		if err != nil {
			return torn(err)
		}
		n, null, err := lengthSize(first)
		if err != nil {
			return err
		}
		p.row = append(p.row, first)
		if !null {
			if err := p.take(n - 1); err != nil {
				return err
			}
			value := len(p.row)
			if err := p.take(int(lengthOf(p.row[begin:value]))); err != nil {
				return err
			}
			if i == p.past.ends {
				stays = slices.ContainsFunc(now, func(s string) bool { return strings.HasPrefix(s, string(p.row[value:])) })
			}
		}
		if p.past.out[i] {
			p.row = p.row[:begin]
		}
	}
	if stays {
		p.left = p.row
	}
	return nil
}

// take appends bytes of the source to the row.
func (p *present) take(n int) error {
	begin := len(p.row)
	p.row = slices.Grow(p.row, n)[:begin+n]
	if _, err := io.ReadFull(p.src, p.row[begin:]); err != nil {
		return errTornRow
	}
	return nil
}
