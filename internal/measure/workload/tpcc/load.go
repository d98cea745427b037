package tpcc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/measure/workload/crew"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// tidying is how long the clean-up after a failed load may take.
const tidying = 2 * time.Minute

// loader fills the tables.
type loader struct {
	p       workload.Params
	o       workload.PrepareOptions
	crew    *crew.Crew
	done    atomic.Int64   // rows
	left    []atomic.Int32 // jobs of each warehouse that are not done
	batches sync.Pool
	made    []string // tables
}

// alone runs f on one session, which ctx can end.
func alone(ctx context.Context, t drive.Target, f func(s drive.Session) error) error {
	c, err := crew.Hire(ctx, t, 1)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Work(ctx, 1, func(s drive.Session, _ int) error { return f(s) })
}

// Prepare makes the tables, fills them by clause 4.3.3 and adds the indexes. When it fails or ctx ends, it removes
// what it made.
func (w *tpcc) Prepare(ctx context.Context, o workload.PrepareOptions) error {
	l := &loader{p: w.p, o: o}
	l.p.Warehouses = max(l.p.Warehouses, 1)
	l.left = make([]atomic.Int32, l.p.Warehouses+1)
	for i := range l.left {
		l.left[i].Store(jobsOfWarehouse)
	}
	l.batches.New = func() any { return &batch{loader: l} }
	var err error
	if l.crew, err = crew.Hire(ctx, o.Target, o.Threads); err != nil {
		return err
	}
	defer l.crew.Close()
	// Sessions hold their processors while they wait; the rest of the program needs some, too.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), l.crew.Size()+2)))
	err = l.crew.Work(ctx, 1, func(s drive.Session, _ int) error { return l.create(s) })
	if err == nil {
		err = l.crew.Work(ctx, items/chunk+jobsOfWarehouse*l.p.Warehouses, l.write)
	}
	if err == nil {
		err = l.index(ctx)
	}
	if err != nil {
		return l.undo(ctx, err)
	}
	if o.Progress != nil {
		o.Progress(l.done.Load(), l.done.Load())
	}
	return nil
}

// undo removes what was made, and says what it could not remove.
func (l *loader) undo(ctx context.Context, why error) error {
	if len(l.made) == 0 {
		return why
	}
	if err := l.crew.Undo(ctx, tidying, func(s drive.Session) error { return drop(s, l.made, nil) }); err != nil {
		return fmt.Errorf("%w; tables are left behind (risso bench cleanup tpcc), because of %q", why, err.Error())
	}
	return fmt.Errorf("%w; what was created has been removed", why)
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
		if errors.As(err, &server) && server.Code == errno.NeedsPrimaryKey {
			_, err = s.Exec(drive.Other, t.create(s.Dialect(), l.p, true))
		}
		if err == nil || !errors.As(err, &server) {
			l.made = append(l.made, t.name) // also if it is unknown whether it was made
		}
		if err != nil {
			return fmt.Errorf("make table %s: %w", t.name, err)
		}
	}
	return nil
}

// chunk is how many items or rows of stock one session writes at a time.
const chunk = 10000

// jobsOfWarehouse is how many parts the data of a warehouse has: its stock, and the customers and the orders of each
// district.
const jobsOfWarehouse = items/chunk + 2*districts

// rows is about how many rows there will be: the number of order lines is drawn.
func (l *loader) rows() int64 {
	lines := int64(fewestLines+mostLines) / 2
	return items + int64(l.p.Warehouses)*(1+districts+items+districts*(2*customers+firstOrders*(1+lines)+firstUnsent))
}

// write writes one part of the data: items first, then warehouse by warehouse. Its random numbers depend on the seed and
// on which part it is, not on the threads: the same seed gives the same data. The session that ends the last part of a warehouse writes
// the warehouse's own row, so that the table of warehouses shows which are complete.
func (l *loader) write(s drive.Session, job int) error {
	b := l.batches.Get().(*batch)
	defer l.batches.Put(b)
	b.session = s
	rng := func(job int) *rand.Rand { return rand.New(rand.NewPCG(l.p.Seed, uint64(job))) }
	n := job - items/chunk
	if n < 0 {
		return writeItems(b, rng(job), int64(job))
	}
	w, part := int64(n/jobsOfWarehouse)+1, int64(n%jobsOfWarehouse)
	var err error
	switch stock := int64(items / chunk); {
	case part < stock:
		err = writeStock(b, rng(job), w, part)
	case part < stock+districts:
		err = writeCustomers(b, rng(job), w, part-stock+1)
	default:
		err = writeOrders(b, rng(job), w, part-stock-districts+1)
	}
	if err != nil || l.left[w].Add(-1) > 0 {
		return err
	}
	return writeWarehouse(b, rng(-int(w)), w)
}

// index makes the secondary indexes and the foreign keys, several tables at a time, and has the server look at the tables,
// so that the first transactions do not run on guesses.
func (l *loader) index(ctx context.Context) error {
	plain, keys := indexes(l.p.ForeignKeys)
	if err := l.alter(ctx, byTable(l.o.Target.Dialect(), plain)); err != nil {
		return err
	}
	var statements []string
	for _, x := range keys {
		statements = append(statements, "ALTER TABLE "+x.table+" ADD CONSTRAINT "+x.definition)
	}
	if l.o.Target.Dialect() == drive.MySQL && len(keys) > 0 {
		// The data is right; to check it InnoDB would copy each table.
		statements = slices.Concat([]string{"SET foreign_key_checks = 0"}, statements, []string{"SET foreign_key_checks = 1"})
	}
	// One after another: each locks two tables.
	err := l.crew.Work(ctx, 1, func(s drive.Session, _ int) error { return each(s, statements) })
	if err != nil {
		return err
	}
	statements = nil
	for _, t := range tables() {
		if l.o.Target.Dialect() == drive.Postgres {
			statements = append(statements, "VACUUM ANALYZE "+t.name)
		} else {
			statements = append(statements, "ANALYZE TABLE "+t.name)
		}
	}
	return l.alter(ctx, statements)
}

// byTable returns one statement for the indexes of each table.
func byTable(d drive.Dialect, list []index) (statements []string) {
	at := map[string]int{}
	for _, x := range list {
		name, columns, _ := strings.Cut(x.definition, " ")
		sql, joint := "CREATE INDEX "+name+" ON "+x.table+" "+columns, "; "
		if d == drive.MySQL {
			sql, joint = "ADD INDEX "+x.definition, ", "
		}
		if i, ok := at[x.table]; ok {
			statements[i] += joint + sql
			continue
		}
		at[x.table] = len(statements)
		if d == drive.MySQL {
			sql = "ALTER TABLE " + x.table + " " + sql
		}
		statements = append(statements, sql)
	}
	return statements
}

// alter runs statements, several at a time.
func (l *loader) alter(ctx context.Context, statements []string) error {
	return l.crew.Work(ctx, len(statements), func(s drive.Session, i int) error { return each(s, statements[i:i+1]) })
}

// each runs statements.
func each(s drive.Session, statements []string) error {
	for _, sql := range statements {
		if _, err := s.Exec(drive.Other, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// batchBytes is how long an INSERT gets; a server takes at least 1 MB.
const batchBytes = 512 << 10

// batch gathers rows of one table into a long INSERT.
type batch struct {
	session drive.Session
	loader  *loader
	sql     []byte
	head    int // length of what precedes the rows
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
