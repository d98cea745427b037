// Package oltp has sysbench's oltp workloads: the same tables, statements, order and defaults, so that results are
// comparable and both programs can use the same tables. Source of these facts: the scripts that sysbench 1.0.20 comes with.
package oltp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/measure/workload/draw"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// tablePrefix is how sysbench calls its tables; their numbers begin at 1.
const tablePrefix = "sbtest"

// The limits of the tables: an INTEGER holds the ids, and tables have numbered names.
const (
	maxTables = 1_000_000
	maxRows   = 1<<31 - 1
)

// Summaries are the workloads with a line on each, in the order in which help shows them.
func Summaries() [][2]string {
	return [][2]string{
		{"read_only", "10 point selects and 4 ranges in a transaction"},
		{"read_write", "read_only with 2 updates, a delete and an insert"},
		{"write_only", "2 updates, a delete and an insert in a transaction"},
		{"point_select", "one row by its primary key"},
		{"update_index", "one update of an indexed column"},
		{"update_non_index", "one update of a column without an index"},
		{"insert", "one new row"},
		{"delete", "one row deleted by its primary key"},
		{"select_random_points", "10 values of an indexed column in one IN"},
		{"select_random_ranges", "10 ranges of an indexed column in one statement"},
		{"bulk_insert", "rows in statements of 512 KiB, a table for each session"},
	}
}

type oltp struct {
	name   string
	p      workload.Params
	ids    draw.Distribution
	unique *sequence // ids of new rows, if the client assigns them
	look   sync.Once // at the tables
	looked error
	notes  []string     // what was found there
	found  atomic.Int64 // statements by id that found their row
	missed atomic.Int64 // and that did not
}

// New makes one of them by sysbench's name without "oltp_".
func New(name string, p workload.Params) (workload.Workload, error) {
	if p.Distribution == "" {
		p.Distribution = "special"
	}
	if p.Engine == "" {
		p.Engine = "innodb"
	}
	ids, err := draw.New(p.Distribution, p.DistributionParams)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", workload.ErrUsage, err)
	}
	if err := check(name, p); errors.Is(err, workload.ErrUsage) {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", workload.ErrUsage, err)
	}
	return &oltp{name: name, p: p, ids: ids, unique: newSequence()}, nil
}

// check says which parameter makes no sense.
func check(name string, p workload.Params) error {
	for _, v := range []struct {
		flag           string
		value, low, up int
	}{
		{"tables", p.Tables, 1, maxTables}, {"table-size", p.TableSize, 1, maxRows}, {"range-size", p.RangeSize, 1, maxRows},
		{"point-selects", p.PointSelects, 0, maxRows}, {"simple-ranges", p.SimpleRanges, 0, maxRows}, {"sum-ranges", p.SumRanges, 0, maxRows},
		{"order-ranges", p.OrderRanges, 0, maxRows}, {"distinct-ranges", p.DistinctRanges, 0, maxRows},
		{"index-updates", p.IndexUpdates, 0, maxRows}, {"non-index-updates", p.NonIndexUpdates, 0, maxRows}, {"delete-inserts", p.DeleteInserts, 0, maxRows},
		{"random-points", p.RandomPoints, 1, 1<<16 - 1}, {"random-ranges", p.RandomRanges, 1, 1<<15 - 1}, {"delta", p.Delta, 0, maxRows},
	} {
		if v.value < v.low || v.value > v.up {
			return fmt.Errorf("--%s is %d: it must be from %d to %d", v.flag, v.value, v.low, v.up)
		}
	}
	if err := workload.CheckEngine(p.Engine); err != nil {
		return err
	}
	if strings.HasPrefix(name, "select_random_") && p.Tables != 1 {
		return fmt.Errorf("%s works on one table: --tables is %d", name, p.Tables)
	}
	if do, ok := plans()[name]; !ok {
		return fmt.Errorf("no workload %q", name)
	} else if do.steps != nil && total(do.steps(p)) == 0 {
		return errors.New("all statements are switched off: nothing would be measured")
	}
	return nil
}

func total(steps []step) (n int) {
	for _, s := range steps {
		n += s.repeat
	}
	return n
}

func (o *oltp) Name() string { return o.name }

// Writes reports whether the workload changes rows.
func (o *oltp) Writes() bool { return plans()[o.name].writes }

// Client prepares the statements of one session: each statement for each table, as sysbench does.
func (o *oltp) Client(s drive.Session, id int, rng *rand.Rand) (workload.Client, error) {
	c := &client{
		session: s, rng: rng, ids: o.ids.Over(1, int64(o.p.TableSize)), tables: o.p.Tables, rangeSize: int64(o.p.RangeSize),
		delta: int64(o.p.Delta), unique: o.unique, unprepared: o.p.Unprepared, giveID: o.p.NoAutoInc || keyless(o.p),
	}
	c.segment = c.ids
	if n := int64(o.p.Clients); n > 0 && strings.HasPrefix(o.name, "select_random_") {
		// sysbench's own arithmetic, with its overlap of one value: each session has its part of the rows.
		at, part := int64(id)%n, float64(o.p.TableSize)/float64(n)
		low := part * float64(at)
		c.segment = o.ids.Over(int64(low), int64(low+part))
	}
	if o.name == "bulk_insert" {
		return newBulk(s, id)
	}
	if o.look.Do(func() { o.looked = o.lookAt(s) }); o.looked != nil {
		return nil, o.looked
	}
	c.found, c.missed = &o.found, &o.missed
	if err := c.prepare(plans()[o.name], o.p); err != nil {
		var server *drive.ServerError
		if errors.As(err, &server) && server.Code == errno.TooManyStatements {
			return nil, fmt.Errorf("%w: raise max_prepared_stmt_count, or use --unprepared, or fewer --tables or --threads", err)
		}
		return nil, err
	}
	return c, nil
}

// keyless reports whether nothing but the order of the heap finds an id.
func keyless(p workload.Params) bool { return p.NoPrimaryKey && !p.Secondary }

// sequence gives each 32-bit number once, in an order that looks random, to all sessions of a run. Source: J. Preshing,
// "How to generate a sequence of unique random integers", 2012: x² modulo a prime that is 3 modulo 4 meets each residue
// once for x up to half the prime.
type sequence struct {
	next   atomic.Uint32
	offset uint32
}

const sequencePrime = 4294967291 // the largest prime below 2^32; it is 3 modulo 4

func permute(x uint32) uint32 {
	if x >= sequencePrime {
		return x
	}
	residue := uint32(uint64(x) * uint64(x) % sequencePrime)
	if x <= sequencePrime/2 {
		return residue
	}
	return sequencePrime - residue
}

func newSequence() *sequence {
	s := &sequence{offset: rand.Uint32()}
	s.next.Store(rand.Uint32())
	return s
}

// take returns a number in the range of INTEGER.
func (s *sequence) take() int64 {
	return int64(permute(permute(s.next.Add(1))+s.offset)) - 1<<31
}
