package checksum

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/mysql"
)

// sweep is one table while it is compared, by one lane or by several that share its chunks.
type sweep struct {
	*plan
	from   chunk.Bound // where an earlier run was
	pace   *pace
	choice *choice
	cut    *cutter
	marks  *marks

	mu  sync.Mutex
	sum chunk.Sum // of all rows
	odd bool      // some of them were not summed here
}

// lane reads chunks of a table on the primary and, after it, on the others.
type lane struct {
	*worker
	*sweep
	part *Table // what it found
}

// task is a chunk to be read.
type task struct {
	chunk.Range
	index int64
	open  bool // its end is still to be found
}

// A table with this many rows or bytes is shared by sessions that have nothing else to do.
const (
	shareRows  = 50_000
	shareBytes = 32 << 20
)

// shared reports whether a table is read by several lanes.
func (w *worker) shared(p *plan) bool {
	return w.Threads > 1 && p.key.Cuts > 0 && (p.rows >= shareRows || p.rows*p.width >= shareBytes)
}

// scan reads a table on the primary, chunk by chunk, and after it on the others.
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
	lanes := 1
	if w.shared(p) {
		lanes = w.Threads
	}
	sw := &sweep{plan: p, pace: newPace(p, lanes), choice: w.newChoice(p), cut: newCutter(p), from: w.state.resume(p, t)}
	sw.odd = sw.from != nil || p.text
	sw.marks = newMarks(len(p.peers), t)
	for i, e := range p.peers {
		if e.skip != "" {
			sw.marks.leave(i, e.skip == Filtered)
		}
	}
	parts, err := w.lanes(ctx, sw, lanes)
	for _, part := range parts {
		t.add(part, w.MaxRows)
	}
	if err == nil && !sw.odd {
		t.Sum = sw.sum.String()
	}
	return err
}

// lanes runs one lane with the worker's own sessions, and more as workers have nothing to do.
func (w *worker) lanes(ctx context.Context, sw *sweep, n int) (parts []*Table, err error) {
	for range n {
		parts = append(parts, sw.empty(w))
	}
	g, ctx := errgroup.WithContext(ctx)
	if n == 1 {
		return parts, (&lane{w, sw, parts[0]}).run(ctx, nil)
	}
	tasks, dealt := make(chan task), make(chan struct{})
	g.Go(func() error {
		defer close(dealt)
		defer close(tasks)
		return w.deal(ctx, sw, tasks)
	})
	g.Go(func() error { return (&lane{w, sw, parts[0]}).run(ctx, tasks) })
	for _, part := range parts[1:] {
		g.Go(func() error {
			select {
			case w.slots <- struct{}{}:
				defer func() { <-w.slots }()
			case <-dealt:
				return nil
			case <-ctx.Done():
				return nil
			}
			o := w.borrow()
			defer w.giveBack(o)
			l := &lane{o, sw, part}
			if err := l.prepare(ctx); err != nil {
				return err
			}
			return l.run(ctx, tasks)
		})
	}
	return parts, g.Wait()
}

// empty is where a lane notes what it finds.
func (sw *sweep) empty(w *worker) *Table {
	t := &Table{On: make([]On, len(sw.peers))}
	for i := range t.On {
		t.On[i].Verdict = Equal
	}
	return t
}

// add adds what a lane found.
func (t *Table) add(part *Table, maxRows int) {
	t.Rows += part.Rows
	t.Bytes += part.Bytes
	t.Chunks += part.Chunks
	if part.Method != "" {
		t.Method = part.Method
	}
	for i := range part.On {
		o, p := &t.On[i], &part.On[i]
		o.Verdict = worse(o.Verdict, p.Verdict)
		o.Missing += p.Missing
		o.Extra += p.Extra
		o.Different += p.Different
		o.AtLeast = o.AtLeast || p.AtLeast
		o.Changing += p.Changing
		o.Behind += p.Behind
		o.Again += p.Again
		o.Settled += p.Settled
		o.Written += p.Written
		o.Rows = append(o.Rows, p.Rows[:min(len(p.Rows), max(0, maxRows-len(o.Rows)))]...)
		o.Notes = append(o.Notes, p.Notes...)
		if o.Why == "" {
			o.Trouble = p.Trouble
		}
	}
}

// borrow takes a worker that has nothing to do, and giveBack returns it.
func (r *run) borrow() *worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.spare); n > 0 {
		w := r.spare[n-1]
		r.spare = r.spare[:n-1]
		return w
	}
	return r.worker()
}

func (r *run) giveBack(w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spare = append(r.spare, w)
}

// prepare makes a borrowed worker's sessions return text as the table needs it.
func (l *lane) prepare(ctx context.Context) error {
	if err := l.primary.text(ctx, l.plan.text); err != nil {
		return err
	}
	for i, pr := range l.pairs {
		if l.peers[i].skip != "" {
			continue
		}
		err := pr.near.text(ctx, l.plan.text)
		if err == nil {
			err = pr.far.text(ctx, l.plan.text)
		}
		if err != nil {
			l.part.On[i].fail(err)
			l.marks.leave(i, false)
		}
	}
	return nil
}

// deal cuts the table and hands its chunks to the lanes.
func (w *worker) deal(ctx context.Context, sw *sweep, tasks chan<- task) error {
	l := w.link(w.run.primary)
	defer l.close()
	t := task{Range: chunk.Range{Lower: sw.from}}
	for ; ; t.index++ {
		err := l.rows(ctx, func(st *mysql.Stream) (err error) {
			t.Upper, err = sw.cut.cut(ctx, st, sw.plan, t.Lower, sw.pace.next())
			return err
		})
		if err != nil {
			return err
		}
		select {
		case tasks <- t:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if t.Upper == nil {
			return nil
		}
		t.Lower = t.Upper
	}
}

// run reads the chunks of a channel, or the whole table if there is none.
func (l *lane) run(ctx context.Context, tasks <-chan task) error {
	g, ctx := errgroup.WithContext(ctx)
	feeds := make([]chan span, len(l.peers))
	for i := range l.peers {
		if l.peers[i].skip == "" {
			feeds[i] = make(chan span, ahead)
			g.Go(func() error { return l.follow(ctx, i, feeds[i]) })
		}
	}
	g.Go(func() error {
		defer func() {
			for _, f := range feeds {
				if f != nil {
					close(f)
				}
			}
		}()
		return l.lead(ctx, tasks, feeds)
	})
	return g.Wait()
}

// lead reads the primary.
func (l *lane) lead(ctx context.Context, tasks <-chan task, feeds []chan span) error {
	next := task{Range: chunk.Range{Lower: l.from}, open: true}
	for {
		if tasks != nil {
			t, ok := <-tasks
			if !ok {
				return nil
			}
			next = t
		}
		s, err := l.one(ctx, next)
		if err != nil {
			return err
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
		if tasks == nil && s.last {
			return nil
		}
		next.Lower, next.index = s.Upper, s.index+1
	}
}

// one reads one chunk of the primary and notes what it shows.
func (l *lane) one(ctx context.Context, t task) (s span, err error) {
	if l.Gate != nil {
		if err := l.Gate.Pass(ctx, 0); err != nil {
			return s, err
		}
	}
	s, err = l.read(ctx, t, l.choice.next())
	if err != nil && s.method == MethodServer && !lost(err) && ctx.Err() == nil {
		l.choice.refuse()
		s, err = l.read(ctx, t, MethodRows)
	}
	if err != nil {
		return s, err
	}
	l.choice.note(s)
	l.cut.note(s)
	l.pace.read(s.rows)
	l.pace.note(s.rows, s.took, l.Target)
	l.part.Chunks++
	l.part.Rows += s.rows
	l.part.Bytes += s.bytes
	l.part.Method = s.method
	l.note(s)
	l.worker.run.rows.Add(s.rows)
	l.worker.run.bytes.Add(s.bytes)
	l.progress(l.schema + "." + l.name)
	if l.Gate != nil {
		err = l.Gate.Pass(ctx, l.burden(s))
	}
	return s, err
}

// plainWidth is how long rows are taken for where the server has no idea.
const plainWidth = 100

// burden is how many bytes a chunk made a server read: what came of it, or where the server adds up and nothing comes, its rows
// times what the server says of their length.
func (p *plan) burden(s span) int64 {
	if s.method != MethodServer {
		return s.bytes
	}
	width := p.width
	if width <= 0 {
		width = plainWidth
	}
	return s.rows * width
}

// note adds a chunk to the sum of the table.
func (sw *sweep) note(s span) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	sw.sum.Add(s.sum)
	sw.odd = sw.odd || s.method != MethodRows
}

// read reads one chunk of the primary.
func (l *lane) read(ctx context.Context, t task, method Method) (s span, err error) {
	p := l.plan
	err = l.primary.rows(ctx, func(st *mysql.Stream) error {
		s = span{Range: t.Range, index: t.index, method: method}
		began := time.Now()
		defer func() { s.took = time.Since(began) }()
		switch {
		case !t.open:
		case p.key.Cuts == 0:
			s.last = true
		case p.key.Whole() && method == MethodRows:
			return s.limited(ctx, st, p, l.pace.next(), &l.tail)
		default:
			var err error
			if s.Upper, err = l.cut.cut(ctx, st, p, s.Lower, l.pace.next()); err != nil {
				return err
			}
			s.last = s.Upper == nil
		}
		return s.total(ctx, st, p, p.here, p.key, l.hash())
	})
	return s, err
}
