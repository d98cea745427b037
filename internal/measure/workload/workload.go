// Package workload is what a benchmark does: the tables it needs and the transactions it runs. A workload knows nothing about
// threads, clocks and measurements; package bench runs it.
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
	// Client prepares the statements of one session, the id-th of the run, from 0. It is called again after a
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

// RetryingClient tries a transaction again by itself when others got in its way. The time of all attempts is the
// transaction's.
type RetryingClient interface {
	Client
	// Retried returns the errors after which the last transaction was tried again; valid until the next one.
	Retried() []*drive.ServerError
}

// Finisher is a client that has something left to do when its last transaction has ended: to send what it held back, or to
// look at the server once more.
type Finisher interface {
	Client
	Finish() error
}

// Counted is a workload that reads, before and after a run, what the server itself counts.
type Counted interface {
	// Counters returns by how much each grew, by the server's names; nil if that is not known.
	Counters() map[string]int64
}

// Headliner is a workload of several kinds whose figure is one kind's transactions per minute.
type Headliner interface {
	Kinded
	// Headline returns that kind and what its rate is called.
	Headline() (kind int, unit string)
}

// Describer is a workload that finds out by itself what a result has to tell, such as how much data there is.
type Describer interface {
	// Describe returns names and values for the result's parameters, when sessions have been opened.
	Describe() map[string]any
}

// Paced is a client that has a say in when its transactions begin: its user thinks, or it follows the clock of a
// recording. In an open loop the schedule alone says when.
type Paced interface {
	Client
	// Next prepares the next transaction and says when it is to begin, on the clock on which the one before it ended at
	// last; not before last. ok is false when this session has nothing more to do.
	Next(last time.Duration) (due time.Duration, ok bool)
}

// Recorded is a workload whose kinds were measured before, somewhere else. It returns one entry for each of KindNames; nil
// if there is nothing to compare with.
type Recorded interface {
	Kinded
	Recorded() []*Before
}

// Before is how statements of one class performed when they were recorded.
type Before struct {
	Class       string  `json:"class"` // sqltext.ClassID
	Fingerprint string  `json:"fingerprint"`
	Calls       int64   `json:"calls"`
	Avg         float64 `json:"avg"`              // seconds, as are the others
	Median      float64 `json:"median,omitempty"` // 0: not recorded
	P95         float64 `json:"p95"`
	Max         float64 `json:"max"`
	// RoundTrip is how long a round trip to the server takes in this run, the median of some empty statements.
	RoundTrip float64 `json:"round_trip"`
	// Now is how long this run's server itself took; nil if it does not say.
	Now *ServerTime `json:"now,omitempty"`
}

// ServerTime is how long a server took for the statements of a class by its own account, in seconds.
type ServerTime struct {
	Calls  int64   `json:"calls"`
	Avg    float64 `json:"avg"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	// Empty is how long the server takes for a statement that does nothing: almost all of it is the cost of asking for the times.
	Empty float64 `json:"empty"`
}

// Mean is the average.
func (t *ServerTime) Mean() float64 { return t.Avg }

// Middle is the median.
func (t *ServerTime) Middle() float64 { return t.Median }

// Noted is a workload that has something to say of a run when it is over.
type Noted interface{ Notes() []string }

// Tolerant is a workload that goes on, on the same session, after errors that others take for senseless or for the end of
// the session: some of its statements may not fit the server.
type Tolerant interface {
	Tolerates(e *drive.ServerError) bool
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

// Counting is a Preparer whose Progress counts something else than rows and tables.
type Counting interface {
	// Counts returns what Prepare, or Cleanup, counts, such as "statements run"; "" for rows and tables, as others do.
	Counts(cleanup bool) string
}

// Timed is a Preparer that tells how long the steps of its last Prepare or Cleanup took.
type Timed interface{ Timings() []Timing }

// Timing is how long one kind of step took, in seconds.
type Timing struct {
	Step   string  `json:"step"`
	Count  int     `json:"count"`
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
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
	Progress func(done, total int64) // rows, or tables that are dropped, but see Counting; may be nil; called from several goroutines
	Yes      bool                    // the user allows to change what Prepare did not make
}

// Params are what users can set. A workload looks at those that mean something to it.
type Params struct {
	Tables, TableSize       int
	NoPrimaryKey, Secondary bool
	NoAutoInc, NoIndex      bool               // ids given by the client; no index on k: sysbench's auto_inc, create_secondary off
	Distribution            string             // uniform, special, pareto, zipfian, gaussian
	DistributionParams      map[string]float64 // by sysbench's names: pareto-h, zipfian-exp, spec-pct, …

	// Statements in a transaction of the OLTP workloads, as sysbench calls them.
	RangeSize, PointSelects, SimpleRanges, SumRanges, OrderRanges, DistinctRanges int
	IndexUpdates, NonIndexUpdates, DeleteInserts                                  int
	RandomPoints, RandomRanges, Delta                                             int
	SkipTransactions, NoRangeSelects                                              bool
	Unprepared                                                                    bool // statements as text

	Engine       string     // storage engine of new tables; "": the server's
	TableOptions string     // put after CREATE TABLE (…)
	Warehouses   int        // tpcc; 0: one when preparing, else all that are loaded
	ForeignKeys  bool       // tpcc
	Schemas      int        // schemas
	SchemaTables int        // schemas: tables of each
	SchemaRows   int        // schemas: rows of each table
	Clients      int        // sessions of the run, where a workload divides its rows among them; 0: it does not
	Scale        float64    // ontime: 1 is one million rows
	File         string     // script, replay
	Recording    *Recording // replay
	ReplayMode   string     // replay: mix or timeline
	ReplaySpeed  float64    // replay, of a time line: 2 is twice as fast as it was
	ReplayWrites bool       // replay: run statements that write, too
	Seed         uint64
	Dialect      drive.Dialect
}

// Defaults are those of sysbench 1.0.20 where it has them.
func Defaults() Params {
	return Params{
		Tables: 1, TableSize: 10000, Distribution: "special", RangeSize: 100,
		PointSelects: 10, SimpleRanges: 1, SumRanges: 1, OrderRanges: 1, DistinctRanges: 1,
		IndexUpdates: 1, NonIndexUpdates: 1, DeleteInserts: 1,
		RandomPoints: 10, RandomRanges: 10, Delta: 5,
		Schemas: 100, SchemaTables: 65, SchemaRows: 10, Scale: 1,
	}
}
