package tpcc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// patience is how long one statement of a load or a check may take: indexes of a large table take hours.
const patience = 24 * time.Hour

// tidying is how long the clean-up after a failed load may take.
const tidying = time.Minute

// errNeedsKey is MySQL's number for a table without a primary key where the server asks for one.
const errNeedsKey = 3750

// loader fills the tables.
type loader struct {
	p    workload.Params
	o    workload.PrepareOptions
	done atomic.Int64 // rows
	made []string     // tables
}

// session opens one and runs f on it; waits end when ctx does.
func (l *loader) session(ctx context.Context, f func(s drive.Session) error) error {
	var stop drive.Stop
	defer context.AfterFunc(ctx, stop.Set)()
	s, err := drive.WithPatience(l.o.Target, patience).Open(ctx, &stop)
	if err != nil {
		return err
	}
	defer s.Close()
	err = f(s)
	if errors.Is(err, drive.ErrStopped) {
		return ctx.Err()
	}
	return err
}

// Prepare makes the tables, fills them by clause 4.3.3 and adds the indexes. When it fails or ctx ends, it takes away
// what it made.
func (w *tpcc) Prepare(ctx context.Context, o workload.PrepareOptions) error {
	l := &loader{p: w.p, o: o}
	l.p.Warehouses = max(l.p.Warehouses, 1)
	l.o.Threads = max(o.Threads, 1)
	// Sessions hold their processors while they wait; the rest of the program needs some, too.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), l.o.Threads+2)))
	err := l.session(ctx, l.create)
	if err == nil {
		err = l.fill(ctx)
	}
	if err == nil {
		err = l.index(ctx)
	}
	if err == nil || len(l.made) == 0 {
		return err
	}
	tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidying)
	defer cancel()
	if derr := l.session(tidy, func(s drive.Session) error { return drop(s, l.made) }); derr != nil {
		return errors.Join(err, fmt.Errorf("take away what was made (risso bench cleanup tpcc does it later): %w", derr))
	}
	return err
}

// create makes the empty tables.
func (l *loader) create(s drive.Session) error {
	st, err := readState(s)
	if err != nil {
		return err
	}
	if err := st.refuse(s); err != nil {
		return err
	}
	all := tables()
	for i := len(all) - 1; i >= 0; i-- {
		t := all[i]
		_, err := s.Exec(drive.Other, t.create(s.Dialect(), l.p, false))
		var server *drive.ServerError
		if errors.As(err, &server) && server.Code == errNeedsKey {
			_, err = s.Exec(drive.Other, t.create(s.Dialect(), l.p, true))
		}
		if err != nil {
			return fmt.Errorf("make table %s: %w", t.name, err)
		}
		l.made = append(l.made, t.name)
	}
	return nil
}

// job is a part of the data that one session writes. Its random numbers depend on the seed and on which part it is, not
// on the threads: the same seed gives the same data.
type job struct {
	warehouse int64 // 0: items
	part      int64
	write     func(b *batch, rng *rand.Rand, j job) error
}

// chunk is how many items or rows of stock are one job.
const chunk = 10000

// jobs are all parts of the data, warehouse by warehouse, so that a warehouse is complete before the last has begun.
func (l *loader) jobs(each func(j job) bool) {
	for i := range int64(items / chunk) {
		if !each(job{0, i, writeItems}) {
			return
		}
	}
	for w := int64(1); w <= int64(l.p.Warehouses); w++ {
		for i := range int64(items / chunk) {
			if !each(job{w, i, writeStock}) {
				return
			}
		}
		for d := range int64(districts) {
			if !each(job{w, 100 + d, writeCustomers}) || !each(job{w, 200 + d, writeOrders}) {
				return
			}
		}
	}
}

// jobsOfWarehouse is how many jobs there are for each warehouse.
const jobsOfWarehouse = items/chunk + 2*districts

// rows is about how many rows there will be: the number of order lines is drawn.
func (l *loader) rows() int64 {
	lines := int64(fewestLines+mostLines) / 2
	return items + int64(l.p.Warehouses)*(1+districts+items+districts*(2*customers+firstOrders*(1+lines)+firstUnsent))
}

// fill writes the data with all threads.
func (l *loader) fill(ctx context.Context) error {
	group, gctx := errgroup.WithContext(ctx)
	queue := make(chan job)
	group.Go(func() error {
		defer close(queue)
		l.jobs(func(j job) bool {
			select {
			case queue <- j:
				return true
			case <-gctx.Done():
				return false
			}
		})
		return gctx.Err()
	})
	left := make([]atomic.Int32, l.p.Warehouses+1)
	for range l.o.Threads {
		group.Go(func() error {
			return l.session(gctx, func(s drive.Session) error { return l.work(s, queue, left) })
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && l.o.Progress != nil {
		l.o.Progress(l.done.Load(), l.done.Load())
	}
	return err
}

// work writes jobs until there are no more. Who ends the last job of a warehouse writes the warehouse's own row, so that
// the table of warehouses tells which are complete.
func (l *loader) work(s drive.Session, queue <-chan job, left []atomic.Int32) error {
	b := &batch{session: s, loader: l}
	for j := range queue {
		rng := rand.New(rand.NewPCG(l.p.Seed, uint64(j.warehouse)<<32|uint64(j.part)))
		if err := j.write(b, rng, j); err != nil {
			return err
		}
		if j.warehouse == 0 || left[j.warehouse].Add(1) < jobsOfWarehouse {
			continue
		}
		rng = rand.New(rand.NewPCG(l.p.Seed, uint64(j.warehouse)<<32|300))
		if err := writeWarehouse(b, rng, j); err != nil {
			return err
		}
	}
	return nil
}

// index makes the secondary indexes and the foreign keys, several tables at a time.
func (l *loader) index(ctx context.Context) error {
	plain, keys := indexes(l.p.ForeignKeys)
	mysql := l.o.Target.Dialect() == drive.MySQL
	byTable := map[string][]string{}
	var order []string
	for _, x := range plain {
		if byTable[x.table] == nil {
			order = append(order, x.table)
		}
		name, columns, _ := strings.Cut(x.definition, " ")
		sql := "CREATE INDEX " + name + " ON " + x.table + " " + columns
		if mysql {
			sql = "ADD INDEX " + x.definition
		}
		byTable[x.table] = append(byTable[x.table], sql)
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(l.o.Threads)
	for _, name := range order {
		sql := strings.Join(byTable[name], "; ")
		if mysql {
			sql = "ALTER TABLE " + name + " " + strings.Join(byTable[name], ", ")
		}
		group.Go(func() error { return l.alter(gctx, name, sql) })
	}
	if err := group.Wait(); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	for _, x := range keys { // one after another: each locks two tables
		if err := l.alter(ctx, x.table, "ALTER TABLE "+x.table+" ADD CONSTRAINT "+x.definition); err != nil {
			return err
		}
	}
	return l.statistics(ctx)
}

func (l *loader) alter(ctx context.Context, name, sql string) error {
	return l.session(ctx, func(s drive.Session) error {
		if _, err := s.Exec(drive.Other, sql); err != nil {
			return fmt.Errorf("index %s: %w", name, err)
		}
		return nil
	})
}

// statistics has the server look at the tables, so that the first transactions do not run on guesses.
func (l *loader) statistics(ctx context.Context) error {
	return l.session(ctx, func(s drive.Session) error {
		for _, t := range tables() {
			sql := "ANALYZE TABLE " + t.name
			if s.Dialect() == drive.Postgres {
				sql = "VACUUM ANALYZE " + t.name
			}
			if _, err := s.Exec(drive.Other, sql); err != nil {
				return fmt.Errorf("gather statistics of %s: %w", t.name, err)
			}
		}
		return nil
	})
}

// batchBytes is how long an INSERT gets; a server takes at least 1 MB.
const batchBytes = 512 << 10

// batch gathers rows of one table into a long INSERT.
type batch struct {
	session drive.Session
	loader  *loader
	sql     []byte
	head    int // length of what stands before the rows
	rows    int64
}

// begin starts the statement of a table.
func (b *batch) begin(table string) {
	b.sql = append(append(append(b.sql[:0], "INSERT INTO "...), table...), " VALUES "...)
	b.head, b.rows = len(b.sql), 0
}

// row starts a row.
func (b *batch) row() {
	if b.rows > 0 {
		b.sql = append(b.sql, ',')
	}
	b.rows++
	b.sql = append(b.sql, '(')
}

// end ends a row, and sends the statement when it is long enough.
func (b *batch) end() error {
	b.sql[len(b.sql)-1] = ')' // the comma after the last value
	if len(b.sql) < batchBytes {
		return nil
	}
	return b.send()
}

// send runs the statement with the rows that it has.
func (b *batch) send() error {
	if b.rows == 0 {
		return nil
	}
	// Not copied: garbage would let the collector stop the world, and that waits for all sessions' answers.
	if _, err := b.session.Exec(drive.Write, unsafe.String(unsafe.SliceData(b.sql), len(b.sql))); err != nil {
		return fmt.Errorf("%s: %w", b.sql[:b.head-len(" VALUES ")], err)
	}
	done := b.loader.done.Add(b.rows)
	if b.loader.o.Progress != nil {
		b.loader.o.Progress(done, max(done, b.loader.rows()))
	}
	b.sql, b.rows = b.sql[:b.head], 0
	return nil
}

// number, decimal, text, raw and null add one value and a comma.
func (b *batch) number(n int64) { b.sql = append(strconv.AppendInt(b.sql, n, 10), ',') }

func (b *batch) decimal(n int64, digits int) { b.sql = append(appendDecimal(b.sql, n, digits), ',') }

// text puts what f adds between quotes; it never holds a character that would have to be escaped.
func (b *batch) text(f func(dst []byte) []byte) {
	b.sql = append(f(append(b.sql, '\'')), '\'', ',')
}

func (b *batch) raw(s string) { b.sql = append(append(b.sql, s...), ',') }

func (b *batch) null() { b.raw("NULL") }
