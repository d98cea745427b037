package checksum

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/mysql"
)

// Sizes of chunks, in rows and bytes.
const (
	firstRows  = 10_000
	firstBytes = 16 << 20
	mostRows   = 2_000_000
	growth     = 4 // at most, from one chunk to the next
	ahead      = 2 // chunks that the primary may be read ahead
)

// pace finds how many rows a chunk should have to take its time on the slowest server.
type pace struct {
	mu   sync.Mutex
	rows int64
}

// begin starts with a guess for a table.
func (p *pace) begin(j job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows = firstRows
	if j.width > 0 {
		p.rows = max(1, min(firstRows, firstBytes/j.width))
	}
}

func (p *pace) next() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rows
}

// note learns from a chunk of the current size; a faster server than the slowest changes nothing.
func (p *pace) note(rows int64, took, target time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rows < p.rows/2 || took <= 0 { // the end of a table, or a chunk from before the size was changed
		if took < target {
			return
		}
	}
	want := int64(float64(rows) * target.Seconds() / took.Seconds())
	p.rows = max(1, min(want, p.rows*growth, mostRows))
}

// span is a chunk as the primary has it.
type span struct {
	chunk.Range
	method Method
	sum    chunk.Sum
	mixed  string // of MethodServer
	rows   int64
	bytes  int64
	took   time.Duration
	last   bool
}

// scan reads a table on the primary, chunk by chunk, and behind it on the others.
func (w *worker) scan(ctx context.Context, p *plan, t *Table) error {
	if len(p.here.Columns) == 0 {
		t.Notes = append(t.Notes, "no column is on all servers")
		return nil
	}
	live := 0
	for _, e := range p.peers {
		if e.skip == "" {
			live++
		}
	}
	if live == 0 {
		return nil
	}
	w.pace.begin(p.job)
	g, ctx := errgroup.WithContext(ctx)
	feeds := make([]chan span, len(p.peers))
	from := w.state.resume(p, t)
	marks := newMarks(len(p.peers), t)
	for i := range p.peers {
		if p.peers[i].skip != "" {
			marks.leave(i)
			continue
		}
		feeds[i] = make(chan span, ahead)
		g.Go(func() error { return w.follow(ctx, p, i, t, feeds[i], marks) })
	}
	g.Go(func() error {
		defer func() {
			for _, f := range feeds {
				if f != nil {
					close(f)
				}
			}
		}()
		return w.lead(ctx, p, from, t, feeds)
	})
	return g.Wait()
}

// lead reads the primary.
func (w *worker) lead(ctx context.Context, p *plan, from chunk.Bound, t *Table, feeds []chan span) error {
	lower := from
	choice, cut := w.choice(p), newCutter(p)
	total := chunk.Sum{}
	summed := from == nil
	for {
		if w.Gate != nil {
			if err := w.Gate.Pass(ctx, 0); err != nil {
				return err
			}
		}
		s, err := w.read(ctx, p, cut, lower, choice.next())
		if err != nil && s.method == MethodServer && !lost(err) && ctx.Err() == nil {
			choice.refuse()
			s, err = w.read(ctx, p, cut, lower, MethodRows)
		}
		if err != nil {
			return err
		}
		choice.note(s)
		cut.note(s)
		w.pace.note(s.rows, s.took, w.Target)
		t.Chunks++
		t.Rows += s.rows
		t.Bytes += s.bytes
		t.Method = s.method
		total.Add(s.sum)
		summed = summed && s.method == MethodRows
		w.run.rows.Add(s.rows)
		w.run.bytes.Add(s.bytes)
		w.progress(p.schema + "." + p.name)
		if w.Gate != nil {
			if err := w.Gate.Pass(ctx, s.bytes); err != nil {
				return err
			}
		}
		for _, f := range feeds {
			if f == nil {
				continue
			}
			select {
			case f <- s:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if s.last {
			if summed && !p.text {
				t.Sum = total.String()
			}
			return nil
		}
		lower = s.Upper
	}
}

// read reads one chunk of the primary, behind a bound.
func (w *worker) read(ctx context.Context, p *plan, cut *cutter, lower chunk.Bound, method Method) (s span, err error) {
	err = w.primary.rows(ctx, func(st *mysql.Stream) error {
		s = span{Range: chunk.Range{Lower: lower}, method: method}
		began := time.Now()
		defer func() { s.took = time.Since(began) }()
		switch {
		case p.key.Cuts == 0:
			s.last = true
			return s.total(ctx, st, p, p.here, p.key, w.hash())
		case p.key.Whole() && method == MethodRows:
			return s.limited(ctx, st, p, w.pace.next(), &w.tail)
		}
		var err error
		if s.Upper, err = cut.cut(ctx, st, p, lower, w.pace.next()); err != nil {
			return err
		}
		s.last = s.Upper == nil
		return s.total(ctx, st, p, p.here, p.key, w.hash())
	})
	return s, err
}

// bound finds where the chunk of so many rows ends; nil: at the end of the range.
func bound(ctx context.Context, st *mysql.Stream, p *plan, r chunk.Range, rows int64) (b chunk.Bound, err error) {
	var inner error
	err = st.Query(ctx, chunk.Next(p.here, p.key, r, rows, "where to cut"), func(row [][]byte) error {
		b, inner = p.key.Literals(row)
		return nil
	})
	if err == nil {
		err = inner
	}
	return b, err
}

// total sums a range.
func (s *span) total(ctx context.Context, st *mysql.Stream, p *plan, t mysql.Table, k chunk.Key, hash hashWords) error {
	if s.method == MethodServer {
		return s.ask(ctx, st, p, t, k, hash)
	}
	var rows chunk.Rows
	err := st.Select(ctx, chunk.Select(t, k, s.Range, purpose), &rows)
	s.sum, s.rows, s.bytes = rows.Sum, rows.Count, rows.Bytes
	return err
}

// purpose stands in the statements.
const purpose = "checksum"

// limited sums the next rows of a range and cuts behind the last of them: no statement is needed to find the bound.
// tail is memory for that row, used again and again.
func (s *span) limited(ctx context.Context, st *mysql.Stream, p *plan, limit int64, memory *[]byte) error {
	tail := tailRows{keep: limit, row: (*memory)[:0]}
	defer func() { *memory = tail.row }()
	err := st.Select(ctx, chunk.Select(p.here, p.key, s.Range, purpose)+fmt.Sprintf(" LIMIT %d", limit), &tail)
	if err != nil {
		return err
	}
	s.sum, s.rows, s.bytes = tail.Sum, tail.Count, tail.Bytes
	if s.last = tail.Count < limit; s.last {
		s.Upper = nil
		return nil
	}
	if !tail.long {
		s.Upper, err = p.key.Bound(p.here, tail.row)
		return err
	}
	// The index alone tells the bound; the rows are read once more, up to it.
	if s.Upper, err = bound(ctx, st, p, s.Range, limit); err != nil {
		return err
	}
	s.last = s.Upper == nil
	return s.total(ctx, st, p, p.here, p.key, "")
}

// tailRows adds up rows and keeps the row that a cut is made behind.
type tailRows struct {
	chunk.Rows
	keep int64 // which one, from 1
	row  []byte
	long bool // it is too long to be kept
}

// maxTail bounds what is kept of the last row of a chunk.
const maxTail = 1 << 20

// Piece takes the next bytes of a row.
func (r *tailRows) Piece(b []byte, last bool) error {
	if r.Count == r.keep-1 {
		if r.long = r.long || len(r.row)+len(b) > maxTail; !r.long {
			r.row = append(r.row, b...)
		}
	}
	return r.Rows.Piece(b, last)
}

// follow reads what the primary has, on another server.
func (w *worker) follow(ctx context.Context, p *plan, i int, t *Table, feed <-chan span, marks *marks) error {
	pr, e, on := w.pairs[i], &p.peers[i], &t.On[i]
	v := &visit{worker: w, plan: p, pair: pr, peer: e, on: on}
	for s := range feed {
		if on.Problem != "" {
			continue // the primary is read on for the others
		}
		err := v.chunk(ctx, s)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			on.fail(err)
			marks.leave(i)
			continue
		}
		if b, n, ok := marks.pass(i, s, on.Verdict == Equal && len(v.late) == 0); ok {
			if err := w.state.at(p, b, n); err != nil {
				return err
			}
		}
	}
	if on.Problem != "" {
		return nil
	}
	if err := v.end(ctx); ctx.Err() != nil {
		return context.Cause(ctx)
	} else if err != nil {
		on.fail(err)
	}
	return nil
}

// visit is a table on one other server while it is compared.
type visit struct {
	*worker
	*plan
	*pair
	peer *peer
	on   *On
	late []span // chunks that could not be compared because the replica was late
}

// maxLate is how many chunks are kept to be looked at again at the end of the table.
const maxLate = 1000

// chunk compares one chunk.
func (v *visit) chunk(ctx context.Context, s span) error {
	if v.on.AtLeast && v.on.Verdict == Differs && v.key.Cuts == 0 {
		return nil
	}
	same, err := v.check(ctx, &s)
	if err != nil || same {
		return err
	}
	v.on.Again++
	return v.settle(ctx, s, len(v.late) >= maxLate)
}

// check sums a chunk on the other server.
func (v *visit) check(ctx context.Context, s *span) (same bool, err error) {
	err = v.far.rows(ctx, func(st *mysql.Stream) error {
		o := span{Range: s.Range, method: s.method}
		began := time.Now()
		if err := o.total(ctx, st, v.plan, v.peer.table, v.peer.key, v.hash()); err != nil {
			if s.method == MethodServer && !lost(err) && ctx.Err() == nil {
				return nil // it does not know the functions: the rows tell
			}
			return err
		}
		v.pace.note(s.rows, time.Since(began), v.Target)
		same = o.rows == s.rows && o.sum == s.sum && o.mixed == s.mixed
		return nil
	})
	return same, err
}

// end looks again at what was late.
func (v *visit) end(ctx context.Context) error {
	late := v.late
	v.late = nil
	for _, s := range late {
		if err := v.settle(ctx, s, true); err != nil {
			return err
		}
	}
	return nil
}
