package checksum

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// Sizes of chunks, in rows and bytes.
const (
	firstRows  = 10_000
	firstBytes = 16 << 20
	mostRows   = 2_000_000
	growth     = 4 // at most, from one chunk to the next
	ahead      = 2 // chunks that the primary may be read ahead
)

// pace finds how many rows a chunk should have to take its time on the slowest server, yet not so many that a table has but a
// few: a replica begins when the primary's first chunks are through, and ends as much later as the largest of them takes.
type pace struct {
	mu    sync.Mutex
	rows  int64
	table int64 // estimated rows of the table
	parts int64 // in how many chunks at least they are read
	seen  int64
	blind bool // a server has no index to read them by: it reads the whole table for each
}

// The least number of chunks a large table is read in: in all, which limits how far behind the replica is at the end to a fiftieth of
// the time, and by each of the sessions that share it.
const (
	fewest     = 48
	fewestEach = 12
)

// blindParts is in how many chunks a table is read that a server has no index for. Smaller ones take as long there, so that time
// says nothing: taken for a measure it would end with a scan of the table for each row.
const blindParts = 4

// newPace starts with a guess for a table that several share.
func newPace(p *plan, lanes int) *pace {
	blind := false
	for _, e := range p.peers {
		blind = blind || e.skip == "" && p.uniq && e.key.Name == ""
	}
	return paceOf(p.job, lanes, blind)
}

func paceOf(j job, lanes int, blind bool) *pace {
	p := &pace{rows: firstRows, table: j.rows, parts: int64(max(fewest, fewestEach*lanes)), blind: blind}
	if blind {
		p.rows = max(firstRows, j.rows/blindParts)
	} else if j.width > 0 {
		p.rows = max(1, min(firstRows, firstBytes/j.width))
	}
	return p
}

func (p *pace) next() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rows
}

// read notes that more rows were read.
func (p *pace) read(rows int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen += rows
}

// note learns from a chunk of the current size; a faster server than the slowest changes nothing.
func (p *pace) note(rows int64, took, target time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.blind {
		p.rows = max(firstRows, max(p.table, p.seen)/blindParts)
		return
	}
	if rows < p.rows/2 || took <= 0 { // the end of a table, or a chunk from before the size was changed
		if took < target {
			return
		}
	}
	want := int64(float64(rows) * target.Seconds() / took.Seconds())
	most := max(firstRows, max(p.table, p.seen)/p.parts)
	p.rows = max(1, min(want, p.rows*growth, mostRows, most))
}

// span is a chunk as the primary has it.
type span struct {
	chunk.Range
	index  int64 // from 0, in the order of the key
	method Method
	sum    chunk.Sum
	mixed  string // of MethodServer
	rows   int64
	bytes  int64
	took   time.Duration
	last   bool
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
func (s *span) total(ctx context.Context, st *mysql.Stream, p *plan, t define.Table, k chunk.Key, hash hashWords) error {
	if s.method == MethodServer {
		return s.ask(ctx, st, p, t, k, hash)
	}
	var rows chunk.Rows
	err := st.Select(ctx, chunk.Select(t, k, s.Range, purpose), &rows)
	s.sum, s.rows, s.bytes = rows.Sum, rows.Count, rows.Bytes
	return err
}

// purpose is a comment in the statements.
const purpose = "checksum"

// limited sums the next rows of a range and cuts after the last of them: no statement is needed to find the bound.
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
	// The index alone has the bound; the rows are read once more, up to it.
	if s.Upper, err = bound(ctx, st, p, s.Range, limit); err != nil {
		return err
	}
	s.last = s.Upper == nil
	return s.total(ctx, st, p, p.here, p.key, "")
}

// tailRows adds up rows and keeps the row that a cut is made after.
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
func (l *lane) follow(ctx context.Context, i int, feed <-chan span) error {
	on := &l.part.On[i]
	v := &visit{worker: l.worker, plan: l.plan, pair: l.pairs[i], sweep: l.sweep, peer: &l.peers[i], on: on}
	for s := range feed {
		if on.Why != "" {
			continue // the primary is read on for the others
		}
		err := v.chunk(ctx, s)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			on.fail(err)
			l.marks.leave(i, false)
			continue
		}
		if b, n, ok := l.marks.pass(i, s, on.Verdict == Equal && len(v.late) == 0); ok {
			if err := l.state.at(l.plan, b, n); err != nil {
				return err
			}
		}
	}
	if on.Why != "" {
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
	sweep *sweep
	peer  *peer
	on    *On
	late  []span // chunks that could not be compared because the replica was late
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
				return nil // it does not know the functions: compare the rows
			}
			return err
		}
		v.sweep.pace.note(s.rows, time.Since(began), v.Target)
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
