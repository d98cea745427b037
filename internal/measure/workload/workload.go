// Package workload is what a benchmark does: the tables it needs and the transactions it runs. A workload knows nothing of
// threads, clocks and figures; package bench runs it.
package workload

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/rissodb/risso/internal/measure/drive"
)

// ErrUsage is what errors of wrong use wrap: an unknown workload, a number out of range.
var ErrUsage = errors.New("wrong use")

// Mark is the comment of each table and schema that Prepare made. Cleanup drops nothing without it.
const Mark = "risso bench"

// Workload is one kind of work on one database.
type Workload interface {
	// Name is how users call it.
	Name() string
	// Client prepares the statements of one session, the id-th of the run, from 0. It is asked for again after a
	// reconnect.
	Client(s drive.Session, id int, rng *rand.Rand) (Client, error)
}

// Client runs transactions on one session.
type Client interface {
	// Transaction runs one unit of work. After an error that is a *drive.ServerError the session lives on, and the
	// client has rolled back what it began.
	Transaction() error
}

// Kinded is a workload whose transactions are of several kinds, and its clients tell which one the last was.
type Kinded interface {
	Workload
	KindNames() []string
}

// KindedClient tells the kind of the transaction that ended last: an index into KindNames.
type KindedClient interface {
	Client
	Kind() int
}

// Paced is a client that has a say in when its transactions begin: its user thinks, or it follows the clock of a
// recording. In an open loop the schedule alone says when.
type Paced interface {
	Client
	// Next prepares the next transaction and says when it is to begin, on the clock on which the one before it ended at
	// last; not before last. ok is false when this session has nothing more to do.
	Next(last time.Duration) (due time.Duration, ok bool)
}

// Writer says whether a workload writes; those that do not say so write.
type Writer interface{ Writes() bool }

// Preparer is a workload that needs tables.
type Preparer interface {
	Workload
	// Prepare makes and fills the tables. It refuses where they exist.
	Prepare(ctx context.Context, o PrepareOptions) error
	// Cleanup drops what Prepare made, and nothing else.
	Cleanup(ctx context.Context, o PrepareOptions) error
}

// Checker is a workload whose tables can be checked for consistency.
type Checker interface {
	Check(ctx context.Context, t drive.Target) ([]Finding, error)
}

// Finding is the outcome of one check.
type Finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"` // what was counted
}

// PrepareOptions are how tables are made.
type PrepareOptions struct {
	Target   drive.Target
	Threads  int
	Progress func(done, total int64) // rows; may be nil; called from several goroutines
	Yes      bool                    // the user allows to change what Prepare did not make
}

// Params are what users can set. A workload looks at those that mean something to it.
type Params struct {
	Tables, TableSize       int
	NoPrimaryKey, Secondary bool
	Distribution            string             // uniform, special, pareto, zipfian, gaussian
	DistributionParams      map[string]float64 // by sysbench's names: pareto-h, zipfian-exp, spec-pct, …

	// Statements in a transaction of the OLTP workloads, as sysbench calls them.
	RangeSize, PointSelects, SimpleRanges, SumRanges, OrderRanges, DistinctRanges int
	IndexUpdates, NonIndexUpdates, DeleteInserts                                  int
	SkipTransactions                                                              bool
	Unprepared                                                                    bool // statements as text

	Engine       string  // storage engine of new tables; "": the server's
	TableOptions string  // put behind CREATE TABLE (…)
	Warehouses   int     // tpcc
	Schemas      int     // schemas
	Scale        float64 // ontime: 1 is one million rows
	File         string  // script, replay
	Seed         uint64
	Dialect      drive.Dialect
}

// Defaults are those of sysbench 1.0.20 where it has them.
func Defaults() Params {
	return Params{
		Tables: 1, TableSize: 10000, Distribution: "special", RangeSize: 100,
		PointSelects: 10, SimpleRanges: 1, SumRanges: 1, OrderRanges: 1, DistinctRanges: 1,
		IndexUpdates: 1, NonIndexUpdates: 1, DeleteInserts: 1,
		Warehouses: 1, Schemas: 100, Scale: 1,
	}
}
