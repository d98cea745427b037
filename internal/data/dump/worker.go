package dump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/snapshot"
)

// worker reads with one session.
type worker struct {
	job    *job
	st     *mysql.Stream
	sink   *sink
	locked bool // it reads tables without transactions, outside of any transaction
	alone  bool // it reads a table alone
	small  int  // tables read since their metadata locks were let go
}

func newWorker(j *job, st *mysql.Stream) (*worker, error) {
	keeper, err := j.repo.NewKeeper()
	if err != nil {
		return nil, err
	}
	second, err := j.repo.NewKeeper()
	if err != nil {
		return nil, err
	}
	keeper.Plain, second.Plain = j.NoCompression, j.NoCompression
	return &worker{job: j, st: st, sink: newSink(j, keeper, second), locked: st == j.snap.Locked, alone: st == j.snap.Locked || st == j.snap.Reserve()}, nil
}

func (w *worker) close() { w.sink.close() }

// run works until there is nothing left. A session that is lost gives its work back: the others see the same moment.
func (w *worker) run(ctx context.Context) error {
	if err := w.st.Exec(ctx, "SAVEPOINT /* risso: lets go of tables that are read */ risso"); err != nil {
		return err
	}
	for {
		p, infos := w.job.queue.take(w.job.Threads)
		var err error
		switch {
		case p != nil:
			err = w.part(ctx, p)
		case len(infos) == 1:
			err = w.table(ctx, infos[0])
		case len(infos) > 1:
			err = w.tables(ctx, infos)
		default:
			return ctx.Err()
		}
		w.job.queue.done()
		if errors.Is(err, errLost) {
			w.job.note(fmt.Sprintf("A session was lost (%v); the others took over its work.", err))
			return nil
		}
		if err != nil {
			return err
		}
		if err := w.letGo(ctx, len(infos)); err != nil {
			return err
		}
	}
}

// errLost says that the session is gone and its work is back in the queue.
var errLost = errors.New("session lost")

// letGo ends the metadata locks on tables that are read, so that no session has to wait for them until the end. The snapshot stays.
func (w *worker) letGo(ctx context.Context, tables int) error {
	const many = takeMost                                                                         // a statement each would cost more than the small tables themselves
	if w.small += max(1, tables); w.small < many && w.sink.last < 1<<20 && !w.job.queue.empty() { // who waits for work holds nothing
		return nil
	}
	w.small = 0
	return w.st.Exec(ctx, "ROLLBACK /* risso: lets go of tables that are read */ TO SAVEPOINT risso")
}

// table begins a table: it plans its parts, and reads the only or the first one.
func (w *worker) table(ctx context.Context, info define.TableInfo) error {
	w.job.snap.Reading(info.TableName)
	create, err := define.CreateTable(ctx, w.st, info.TableName)
	if err != nil && w.mayLose(err) {
		w.job.queue.back([]define.TableInfo{info})
		return fmt.Errorf("%w: %w", errLost, err)
	}
	if err != nil {
		return w.refused(info, err)
	}
	t, err := w.defined(info, create)
	if err != nil {
		return err
	}
	return w.rows(ctx, t)
}

// defined is a table with its definition.
func (w *worker) defined(info define.TableInfo, create string) (t *table, err error) {
	t = &table{info: info, plain: w.locked}
	if t.Table, err = define.ParseTable(info.Schema, create); err != nil {
		return nil, err
	}
	if t.Versioned {
		w.history(t)
	}
	t.key, _ = chunk.KeyOf(t.Table)
	return t, nil
}

// definitionOnly reports whether none of a table's rows are wanted, or available.
func (w *worker) definitionOnly(t *table) bool {
	return w.job.NoRows || mysql.Elsewhere(t.info.Engine) || len(chunk.Columns(t.Table)) == 0
}

// rows plans the parts of a table, and reads the only or the first one.
func (w *worker) rows(ctx context.Context, t *table) (err error) {
	info := t.info
	if len(chunk.Columns(t.Table)) == 0 && !w.job.NoRows {
		w.job.note(fmt.Sprintf("Rows of %s are not in the backup: all its columns are computed, so only their number matters.", info.TableName))
	}
	if w.definitionOnly(t) {
		return w.finish(t)
	}
	ranges := w.job.old.cutsOf(t.Table, t.key)
	known := ranges != nil
	if !known && !w.alone {
		if ranges, err = w.split(ctx, t); err != nil && !w.toHand(err) {
			return w.refused(info, err)
		}
	}
	if ranges == nil {
		ranges = []chunk.Range{{}}
	}
	parts := divide(t, ranges, w.job.Threads, known)
	t.open = len(parts)
	if w.alone { // these tables stay with the session that has locked them, or keeps them from being altered
		for i, p := range parts {
			err := w.part(ctx, p)
			if errors.Is(err, errLost) {
				w.job.queue.add(parts[i+1:]...)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	w.job.queue.add(parts[1:]...)
	return w.part(ctx, parts[0])
}

// history makes rows of the past part of a table, if they can be put back.
func (w *worker) history(t *table) {
	why := "--no-history"
	if w.job.NoRows {
		return
	}
	if !w.job.NoHistory {
		with, ok := t.WithHistory()
		switch {
		case !ok:
			why = "they are versioned by transaction, and transaction numbers mean nothing elsewhere"
		case !w.job.snap.Server.KeepsHistory():
			why = "this server could not restore them: MariaDB 10.11 is the first that can"
		default:
			t.Table = with
			return
		}
	}
	w.job.note(fmt.Sprintf("Historical rows of %s are not in the backup: %s.", t.info.TableName, why))
}

// divide gives each part several neighbouring ranges.
func divide(t *table, ranges []chunk.Range, threads int, known bool) []*part {
	n := len(ranges)
	if known {
		n = min(n, 4*threads)
	}
	parts := make([]*part, 0, n)
	for i := range n {
		parts = append(parts, &part{table: t, number: i, ranges: ranges[i*len(ranges)/n : (i+1)*len(ranges)/n], known: known})
	}
	return parts
}

// Tables are read by several workers when they have this many times the aim of a chunk.
const splitFrom = 8

// split cuts a large table that is new, so that several workers read it. nil: it is not cut.
func (w *worker) split(ctx context.Context, t *table) ([]chunk.Range, error) {
	aim := splitFrom * w.job.ChunkAim
	if w.job.Threads < 2 || t.key.Cuts == 0 || t.info.Bytes < 2*aim || !w.job.queue.outweighs(t.info, w.job.Threads) {
		return nil, nil
	}
	parts := min(max(int(t.info.Bytes/(256<<20)), 4*w.job.Threads), int(t.info.Bytes/aim))
	bounds, err := chunk.Split(ctx, w.st, t.Table, t.key, parts, "backup")
	if err != nil {
		return nil, err
	}
	if bounds == nil {
		if bounds, err = w.walk(ctx, t, parts); err != nil {
			return nil, err
		}
	}
	var out []chunk.Range
	var lower chunk.Bound
	for _, b := range bounds {
		out = append(out, chunk.Range{Lower: lower, Upper: b})
		lower = b
	}
	return append(out, chunk.Range{Lower: lower}), nil
}

// walk finds bounds of a key that chunk.Split cannot measure, by going through the index, which InnoDB's rows are part of.
func (w *worker) walk(ctx context.Context, t *table, parts int) ([]chunk.Bound, error) {
	var bounds []chunk.Bound
	rows := max(t.info.Rows/int64(parts), 1)
	var lower chunk.Bound
	for len(bounds) < 4*parts {
		var b chunk.Bound
		err := w.st.Query(ctx, chunk.Next(t.Table, t.key, chunk.Range{Lower: lower}, rows, "backup"), func(row [][]byte) (err error) {
			b, err = t.key.Literals(row)
			return err
		})
		if err != nil {
			return nil, err
		}
		if b == nil {
			break
		}
		bounds, lower = append(bounds, b), b
	}
	return bounds, nil
}

// part reads a part of a table.
func (w *worker) part(ctx context.Context, p *part) error {
	for len(p.ranges) > 0 {
		r := p.ranges[0]
		w.sink.begin(ctx, p, r)
		to, gather := w.gather(p.table)
		err := chunk.Read(ctx, w.st, p.table.Table, p.table.key, r, "backup", to)
		if err == nil {
			err = w.sink.end()
		}
		gather() // also of what a lost session read: that is not read again
		if err != nil && w.setAside(ctx, p, err) {
			return nil
		}
		if err != nil {
			return w.lost(p, err)
		}
		p.ranges = p.ranges[1:]
	}
	if err := w.sink.drain(); err != nil {
		return err
	}
	t := p.table
	t.mu.Lock()
	t.open--
	whole := t.open == 0
	t.mu.Unlock()
	if !whole {
		return nil
	}
	if err := w.types(ctx, t); err != nil {
		if w.mayLose(err) { // another one asks again
			t.open++
			w.job.queue.add(p)
			return fmt.Errorf("%w: %w", errLost, err)
		}
		return fmt.Errorf("types in the JSON of %s: %w", t.info.TableName, err)
	}
	return w.finish(t)
}

// toHand says that somebody waits to alter a table, so that only the session in reserve gets at it.
func (w *worker) toHand(err error) bool {
	return mysql.LockRefused(err) && !w.alone && w.job.snap.Reserve() != nil
}

// setAside puts away a part that is not available now: for the session in reserve, or if that is lost for later, as long as
// any lock is waited for.
func (w *worker) setAside(ctx context.Context, p *part, err error) bool {
	if !w.toHand(err) {
		return false
	}
	if w.job.snap.Lost() == nil {
		if !w.sink.resume(p) {
			return false
		}
		w.job.queue.hand(p)
		w.job.snap.Poke()
		return true
	}
	if p.waits.IsZero() {
		p.waits = time.Now()
	}
	if time.Since(p.waits) > cmp.Or(w.job.Snapshot.LockWait, snapshot.DefaultLockWait) || ctx.Err() != nil || !w.sink.resume(p) {
		return false
	}
	w.job.queue.add(p)
	return true
}

// reserve reads what another session waits to alter, with the session that keeps it from being altered until then. When that is lost,
// the others read all: what was altered in the meantime is found.
func (j *job) reserve(ctx context.Context) error {
	var w *worker // its buffers are large, and mostly nothing is altered
	defer func() {
		if w != nil {
			w.close()
		}
	}()
	said := false
	for {
		wanted, more, err := j.snap.Next(ctx)
		if err != nil || !more {
			return err
		}
		if lost := j.snap.Lost(); lost != nil {
			if !said {
				j.note(fmt.Sprintf("Schema changes were not blocked until the end: %v.", lost))
			}
			said = true
			j.queue.takeBack()
			continue
		}
		if w == nil {
			if w, err = newWorker(j, j.snap.Reserve()); err != nil {
				return err
			}
			w.sink.ungated = true
		}
		err = w.wanted(ctx, wanted)
		if errors.Is(err, errLost) {
			j.snap.Poke() // Next sees it, too
			continue
		}
		if err != nil {
			return err
		}
	}
}

// wanted reads what was put away for the session in reserve, and tables that others want to alter.
func (w *worker) wanted(ctx context.Context, tables []mysql.TableName) error {
	q := w.job.queue
	for p := q.takeHanded(); p != nil; p = q.takeHanded() {
		err := w.part(ctx, p)
		q.done()
		if err != nil {
			return err
		}
	}
	for _, name := range tables {
		info := q.claim(name)
		if info == nil {
			continue
		}
		err := w.table(ctx, *info)
		q.done()
		if err != nil {
			return err
		}
	}
	return nil
}

// mayLose reports whether others go on with what this session was doing: it is gone, and they see the same moment.
func (w *worker) mayLose(err error) bool {
	others := len(w.job.snap.Sessions)
	if w.st != w.job.snap.Reserve() {
		others--
	}
	if w.st.Broken() == nil || w.locked || others < 1 {
		return false
	}
	class := mysql.ClassOf(err)
	return class == mysql.ClassDropped || class == mysql.ClassTimeout
}

// lost gives back what is left of a part when the session is gone.
func (w *worker) lost(p *part, err error) error {
	if !w.mayLose(err) || !w.sink.resume(p) {
		return w.refused(p.table.info, err)
	}
	w.job.queue.add(p)
	return fmt.Errorf("%w: %w", errLost, err)
}

// refused says what a server's refusal to read a table means.
func (w *worker) refused(info define.TableInfo, err error) error {
	switch {
	case mysql.DefinitionChanged(err):
		err = fmt.Errorf("table %s was altered, truncated or recreated after the snapshot, which can no longer read it: %w", info.TableName, ErrChanged)
	case mysql.Gone(err):
		err = fmt.Errorf("table %s was dropped or renamed after the snapshot: %w", info.TableName, ErrChanged)
	case mysql.LockRefused(err):
		err = fmt.Errorf("table %s cannot be locked because it is being changed: %w: %w", info.TableName, snapshot.ErrLocks, err)
	default:
		err = fmt.Errorf("read %s: %w", info.TableName, err)
	}
	if lost := w.job.snap.Lost(); lost != nil {
		return fmt.Errorf("%w; %w", err, lost)
	}
	return err
}

// finish writes a table's line.
func (w *worker) finish(t *table) error {
	w.job.readable("table "+t.info.TableName.String(), t.Create)
	line := &repo.Table{Schema: t.Schema, Name: t.Name, Create: t.Create, Engine: t.info.Engine, Transactional: !t.plain, Elsewhere: mysql.Elsewhere(t.info.Engine), History: t.Past, Key: t.key.Columns()}
	for _, c := range chunk.Columns(t.Table) {
		line.Columns = append(line.Columns, repo.Column{Name: c.Name, Type: c.Type, Charset: c.Charset})
	}
	slices.SortFunc(t.chunks, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.number, b.number))
	})
	var sum chunk.Sum
	for _, c := range t.chunks {
		line.Chunks = append(line.Chunks, c.chunk)
		line.Rows += c.chunk.Rows
		line.Bytes += c.chunk.Bytes
		sum.Add(c.sum)
	}
	line.Sum, line.Typed = sum.String(), t.typed
	w.job.report(func(p *Progress) { p.Tables++ })
	w.job.snap.Read(t.info.TableName)
	return w.job.draft.Add(repo.Line{Table: line})
}
