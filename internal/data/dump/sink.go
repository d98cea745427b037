package dump

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/data/repo"
)

// sink cuts the rows of a range into chunks. One chunk fills while another is hashed and compressed, and one waits for the place's
// disk. It is a wire.RowSink.
type sink struct {
	job    *job
	keeper *repo.Keeper

	ungated bool // somebody waits for what it reads

	ctx   context.Context
	part  *part
	rng   chunk.Range
	limit int

	buf     []byte
	row     int // where the row begins that is not complete
	lastRow int // where the last complete one begins
	sum     chunk.Rows
	lower   chunk.Bound
	pending chunk.Bound // the chunk is full: it ends with the rows that share this beginning of the key
	big     *bigRow
	last    int64 // bytes of the part so far
	spare   [][]byte
	storing []chan stored // results of the chunks under way, the oldest first
	idle    []*repo.Keeper
}

// storedAtOnce is how many chunks of a session are on their way into the repository.
const storedAtOnce = 2

// stored is a chunk on its way into the repository.
type stored struct {
	buf    []byte
	keeper *repo.Keeper
	err    error
}

// A row that is larger than this many times the limit of a chunk passes through a file.
const bigFactor = 2

func newSink(j *job, k, second *repo.Keeper) *sink {
	return &sink{job: j, keeper: k, idle: []*repo.Keeper{k, second}}
}

// begin prepares for the rows of a range.
func (s *sink) begin(ctx context.Context, p *part, r chunk.Range) {
	if s.part != p {
		s.last = 0
	}
	s.ctx, s.part, s.rng, s.lower = ctx, p, r, r.Lower
	s.limit = int(s.job.ChunkAim)
	if p.known {
		s.limit *= 2 // ranges that grew over twice the aim are cut again
	}
	s.reset()
	s.makeRoom()
}

// makeRoom makes a buffer as large as the rows of a large table need, which else would be made and left seven times.
func (s *sink) makeRoom() {
	if bytes := s.part.table.info.Bytes; bytes > int64(s.limit) && cap(s.buf) < s.limit {
		s.buf = make([]byte, 0, s.limit+s.limit/8)
	}
}

func (s *sink) reset() {
	s.buf, s.row, s.lastRow, s.pending = s.buf[:0], 0, 0, nil
	s.sum = chunk.Rows{}
}

// Piece takes bytes of a row.
func (s *sink) Piece(b []byte, last bool) error {
	if s.big != nil {
		return s.bigPiece(b, last)
	}
	if !last && len(s.buf)-s.row+len(b) > bigFactor*s.limit {
		return s.beginBig(b)
	}
	s.buf = append(s.buf, b...)
	if !last {
		return nil
	}
	if s.pending != nil {
		if err := s.endPending(); err != nil {
			return err
		}
	}
	if err := s.sum.Piece(s.buf[s.row:], true); err != nil {
		return err
	}
	s.lastRow, s.row = s.row, len(s.buf)
	if len(s.buf) < s.limit || s.pending != nil {
		return nil
	}
	upper, err := s.bound()
	if err != nil {
		return err
	}
	if upper != nil && !s.part.table.key.Whole() {
		s.pending = upper
		return nil
	}
	return s.flush(upper)
}

// bound is the one after the last complete row, nil if the table cannot be cut.
func (s *sink) bound() (chunk.Bound, error) {
	t := s.part.table
	if t.key.Cuts == 0 {
		return nil, nil
	}
	return t.key.Bound(t.Table, s.buf[s.lastRow:s.row])
}

// endPending ends a full chunk before the row that was just completed, when that one begins a new value of the key.
func (s *sink) endPending() error {
	t := s.part.table
	b, err := t.key.Bound(t.Table, s.buf[s.row:])
	if err != nil || slices.Equal(b, s.pending) {
		return err
	}
	next := slices.Clone(s.buf[s.row:])
	s.buf = s.buf[:s.row]
	if err := s.flush(s.pending); err != nil {
		return err
	}
	s.buf = append(s.buf, next...)
	return nil
}

// end takes what is left of a range.
func (s *sink) end() error {
	if len(s.buf) == 0 {
		return nil
	}
	return s.flush(s.rng.Upper)
}

// flush hands a full chunk on and begins the next.
func (s *sink) flush(upper chunk.Bound) error {
	if len(s.storing) == storedAtOnce {
		if err := s.oldest(); err != nil {
			return err
		}
	}
	c := placed{part: s.part.number, number: s.part.first, sum: s.sum.Sum,
		chunk: repo.Chunk{Lower: s.lower, Upper: upper, Rows: s.sum.Count, Bytes: s.sum.Bytes, Sum: s.sum.Sum.String()}}
	s.part.first++
	s.lower = upper
	s.last += s.sum.Bytes
	buf, t := s.buf, s.part.table
	s.buf = nil
	if n := len(s.spare); n > 0 {
		s.buf, s.spare = s.spare[n-1][:0], s.spare[:n-1]
	}
	s.reset()
	s.makeRoom()
	if s.job.Gate != nil && !s.ungated {
		if err := s.job.Gate.Pass(s.ctx, c.chunk.Bytes); err != nil {
			return err
		}
	}
	k := s.idle[len(s.idle)-1]
	if len(buf) < 64<<10 { // hashing it is not worth a goroutine; only the place's disk is waited for elsewhere
		s.spare = append(s.spare, buf)
		kept, put, err := k.KeepLater(s.ctx, t.Schema, t.Name, buf)
		if err != nil {
			return err
		}
		if put != nil {
			if err := s.job.later(s.ctx, put); err != nil {
				return err
			}
		}
		s.took(t, c, kept)
		return nil
	}
	s.idle = s.idle[:len(s.idle)-1]
	done := make(chan stored, 1)
	s.storing = append(s.storing, done)
	go func() { done <- stored{buf, k, s.keep(k, t, c, buf)} }()
	return nil
}

// oldest waits for the chunk that has been on its way the longest.
func (s *sink) oldest() error {
	r := <-s.storing[0]
	s.storing, s.spare, s.idle = s.storing[1:], append(s.spare, r.buf), append(s.idle, r.keeper)
	return r.err
}

// drain waits for the chunks that are being stored.
func (s *sink) drain() (err error) {
	for len(s.storing) > 0 {
		if one := s.oldest(); err == nil {
			err = one
		}
	}
	return err
}

// close waits for what is under way: no goroutine outlives its worker.
func (s *sink) close() {
	s.abortBig()
	_ = s.drain()
}

func (s *sink) keep(k *repo.Keeper, t *table, c placed, raw []byte) error {
	kept, err := k.Keep(s.ctx, t.Schema, t.Name, raw)
	if err != nil {
		return err
	}
	s.took(t, c, kept)
	return nil
}

// took notes a chunk that is in the repository.
func (s *sink) took(t *table, c placed, kept repo.Kept) {
	c.chunk.Hash, c.chunk.Stored = kept.Hash, kept.Stored
	t.mu.Lock()
	t.chunks = append(t.chunks, c)
	t.mu.Unlock()
	s.job.mu.Lock()
	s.job.chunks++
	if kept.New {
		s.job.fresh++
	}
	s.job.mu.Unlock()
	s.job.report(func(p *Progress) {
		p.Bytes += c.chunk.Bytes
		p.Rows += c.chunk.Rows
		if kept.New {
			p.Stored += kept.Stored
		}
	})
}

// resume prepares a part for another session, after this one was lost: what is stored stays. It says whether that is possible.
func (s *sink) resume(p *part) bool {
	s.abortBig()
	if s.drain() != nil || s.part != p {
		return false
	}
	if p.table.key.Cuts > 0 {
		p.ranges[0].Lower = s.lower
		return true
	}
	// Without a key there is no going on: the part is read again.
	t := p.table
	t.mu.Lock()
	defer t.mu.Unlock()
	t.chunks = slices.DeleteFunc(t.chunks, func(c placed) bool { return c.part == p.number })
	return true
}

// bigRow is a row that is too large for memory, on its way into the repository.
type bigRow struct {
	pw   *io.PipeWriter
	done chan error
	kept repo.Kept
	keys picker
}

// beginBig stores the rows before it and lets the row pass through.
func (s *sink) beginBig(b []byte) error {
	head := slices.Clone(s.buf[s.row:])
	if s.row > 0 {
		s.buf = s.buf[:s.row]
		upper, err := s.bound()
		if err != nil {
			return err
		}
		if upper != nil && !s.part.table.key.Whole() {
			return fmt.Errorf("a row of %s has more than %d bytes, and others share the beginning of its key", s.part.table.info.TableName, bigFactor*s.limit)
		}
		if err := s.flush(upper); err != nil {
			return err
		}
	}
	if err := s.drain(); err != nil {
		return err
	}
	s.reset()
	pr, pw := io.Pipe()
	t := s.part.table
	big := &bigRow{pw: pw, done: make(chan error, 1), keys: newPicker(t)}
	go func() { // ends when the pipe is closed, which abortBig and bigPiece do
		var err error
		big.kept, err = s.keeper.KeepStream(s.ctx, t.Schema, t.Name, func(w io.Writer) error {
			_, err := io.Copy(w, pr)
			return err
		})
		pr.CloseWithError(err)
		big.done <- err
	}()
	s.big = big
	if err := s.bigPiece(head, false); err != nil {
		return err
	}
	return s.bigPiece(b, false)
}

func (s *sink) bigPiece(b []byte, last bool) error {
	big := s.big
	big.keys.feed(b)
	if err := s.sum.Piece(b, last); err != nil {
		return err
	}
	if _, err := big.pw.Write(b); err != nil {
		return fmt.Errorf("store a large row: %w", err)
	}
	if s.job.Gate != nil && !s.ungated {
		if err := s.job.Gate.Pass(s.ctx, int64(len(b))); err != nil {
			return err
		}
	}
	if !last {
		return nil
	}
	s.big = nil
	big.pw.Close()
	if err := <-big.done; err != nil {
		return err
	}
	t := s.part.table
	var upper chunk.Bound
	if t.key.Cuts > 0 {
		var err error
		if upper, err = t.key.Literals(big.keys.got); err != nil {
			return err
		}
	}
	c := placed{part: s.part.number, number: s.part.first, sum: s.sum.Sum,
		chunk: repo.Chunk{Lower: s.lower, Upper: upper, Rows: 1, Bytes: s.sum.Bytes, Sum: s.sum.Sum.String(), Big: true}}
	s.part.first++
	s.lower = upper
	s.last += s.sum.Bytes
	s.took(t, c, big.kept)
	s.reset()
	return nil
}

func (s *sink) abortBig() {
	if s.big == nil {
		return
	}
	s.big.pw.CloseWithError(io.ErrUnexpectedEOF)
	<-s.big.done
	s.big = nil
}

// picker takes the values of a key's columns out of a row that comes in pieces.
type picker struct {
	want map[int]int // column → place in the key
	got  [][]byte
	col  int
	head []byte // of a length that is not complete
	left uint64 // bytes of the value that are to come
}

func newPicker(t *table) picker {
	p := picker{want: map[int]int{}, got: make([][]byte, t.key.Cuts)}
	for i, c := range chunk.Columns(t.Table) {
		for j, k := range t.key.Order[:t.key.Cuts] {
			if c.Name == k.Name {
				p.want[i] = j
			}
		}
	}
	return p
}

// feed takes the next bytes of the row.
func (p *picker) feed(b []byte) {
	for len(b) > 0 {
		if p.left > 0 {
			n := int(min(p.left, uint64(len(b))))
			if j, ok := p.want[p.col]; ok {
				p.got[j] = append(p.got[j], b[:n]...)
			}
			b = b[n:]
			if p.left -= uint64(n); p.left == 0 {
				p.col++
			}
			continue
		}
		p.head = append(p.head, b[0])
		b = b[1:]
		size := 1
		switch p.head[0] {
		case 0xfb: // NULL
			p.col++
			p.head = p.head[:0]
			continue
		case 0xfc:
			size = 3
		case 0xfd:
			size = 4
		case 0xfe:
			size = 9
		}
		if len(p.head) < size {
			continue
		}
		if p.left = uint64(p.head[0]); size > 1 {
			p.left = 0
			for i := size - 1; i > 0; i-- {
				p.left = p.left<<8 | uint64(p.head[i])
			}
		}
		p.head = p.head[:0]
		if j, ok := p.want[p.col]; ok {
			p.got[j] = []byte{}
		}
		if p.left == 0 {
			p.col++
		}
	}
}
