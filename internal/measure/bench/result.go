package bench

import (
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/measure/workload"
)

// UnknownWorkload is the workload of a result whose source does not name it.
const UnknownWorkload = "unknown"

// Result is what one run measured. Times are seconds unless a name says otherwise.
type Result struct {
	// Source is the program that measured, if it was not Risso.
	Source     string         `json:"source,omitempty"`
	Workload   string         `json:"workload"`
	Parameters map[string]any `json:"parameters,omitempty"`
	Server     string         `json:"server"` // address, without the password
	// Transport is how the sessions reached it: raw by plain system calls, library by the usual libraries, as TLS needs.
	// Figures of the two are not comparable.
	Transport     string    `json:"transport,omitempty"`
	ServerVersion string    `json:"server_version,omitempty"`
	Began         time.Time `json:"began"`
	Threads       int       `json:"threads"`
	Rate          float64   `json:"rate,omitempty"` // requested transactions per second; 0: closed loop
	WarmupSeconds float64   `json:"warmup_seconds"`
	// WarmupSteady says whether an automatic warm-up ended because the figures were steady, not because it reached its limit.
	WarmupSteady *bool `json:"warmup_steady,omitempty"`
	// Seconds is the measured time, up to the end of the last transaction that began in time.
	Seconds     float64 `json:"seconds"`
	Interrupted bool    `json:"interrupted,omitempty"`

	// Transactions is how many succeeded. Queries counts statements that succeeded, including those of transactions that failed later.
	Transactions          int64   `json:"transactions"`
	Queries               int64   `json:"queries"`
	Reads                 int64   `json:"reads"`
	Writes                int64   `json:"writes"`
	Others                int64   `json:"others"`
	TransactionsPerSecond float64 `json:"transactions_per_second"`
	QueriesPerSecond      float64 `json:"queries_per_second"`

	// Latency of transactions. In an open loop it runs from the moment at which the transaction was to begin. It has also
	// those that were still under way, or had not begun, when the run ended, with the time that they had taken or waited by
	// then: to leave them out would hide the worst.
	Latency Latency `json:"latency"`
	// ServiceTime runs from the moment at which the transaction did begin; only in an open loop.
	ServiceTime *Latency     `json:"service_time,omitempty"`
	Kinds       []KindResult `json:"kinds,omitempty"`
	// Statements are the individual statements, if they were measured.
	Statements []StatementResult `json:"statements,omitempty"`
	// Headline is the figure that a workload is commonly known by, such as new orders per minute for TPC-C.
	Headline *Headline `json:"headline,omitempty"`
	Notes    []string  `json:"notes,omitempty"` // remarks of the workload on the run, one sentence each
	// ServerCounters is what the server itself counted from the beginning of the first session to the end of the run, for all its clients.
	ServerCounters map[string]int64 `json:"server_counters,omitempty"`

	// Counted is by how much the server's own counters grew in the measured time, for all its clients: those of Counters.
	Counted map[string]int64 `json:"counted,omitempty"`

	Errors     []ErrorCount `json:"errors,omitempty"`
	Reconnects int64        `json:"reconnects"`
	Outages    []Outage     `json:"outages,omitempty"`
	// Unfinished transactions were abandoned: the server had not answered some seconds after the end.
	Unfinished int64    `json:"unfinished,omitempty"`
	Backlog    *Backlog `json:"backlog,omitempty"`
	Ledger     *Ledger  `json:"ledger,omitempty"`
	// Timeline has the warm-up and the measured time by whole seconds; what ended in a part of a second at the end is only
	// in the totals.
	Timeline []Second `json:"timeline"`
	Steady   Steady   `json:"steady"`

	// ClientCPUSeconds is the processor time of this process in the measured time.
	ClientCPUSeconds float64 `json:"client_cpu_seconds"`
	// Use is who used the load driver's machine during the run; nil if it was not observed.
	Use *environ.Use `json:"use,omitempty"`
	// Environment is what the run ran under; nil if it was not recorded.
	Environment *environ.Environment `json:"environment,omitempty"`
	// Histogram of Latency in nanoseconds: HdrHistogram V2, compressed, base64.
	Histogram string `json:"histogram,omitempty"`
}

// Latency reports how long transactions took. Percentiles are at most 1 % too long, the others are exact.
type Latency struct {
	Min         float64      `json:"min"`
	Avg         float64      `json:"avg"`
	Max         float64      `json:"max"`
	Stddev      float64      `json:"stddev"`
	Percentiles []Percentile `json:"percentiles"`
}

// Percentile is a time that this share of the transactions did not exceed.
type Percentile struct {
	Percentile float64 `json:"percentile"` // 0 to 100
	Seconds    float64 `json:"seconds"`
}

// At returns the time of one percentile; 0 if it is not among them.
func (l Latency) At(percentile float64) float64 {
	for _, p := range l.Percentiles {
		if p.Percentile == percentile {
			return p.Seconds
		}
	}
	return 0
}

// KindResult is one kind of transaction.
type KindResult struct {
	Name         string  `json:"name"`
	Transactions int64   `json:"transactions"`
	PerMinute    float64 `json:"per_minute"`
	Latency      Latency `json:"latency"`
	// Minutes of the measured time; the last may be shorter than a minute.
	Minutes []Minute `json:"minutes,omitempty"`
	// Recorded is how the same statements performed when they were recorded; only for workload replay.
	Recorded *workload.Before `json:"recorded,omitempty"`
}

// Minute is one minute of one kind of transaction.
type Minute struct {
	Minute       int     `json:"minute"`  // minutes since the start of the measured time, from 0
	Seconds      float64 `json:"seconds"` // how long it lasted
	Transactions int64   `json:"transactions"`
	PerMinute    float64 `json:"per_minute"`
	P95          float64 `json:"p95"`
	P99          float64 `json:"p99"`
	Max          float64 `json:"max"`
}

// Headline is the rate of one kind of transaction under the name it is commonly known by.
type Headline struct {
	Kind      string  `json:"kind"`
	Unit      string  `json:"unit"`
	PerMinute float64 `json:"per_minute"`
}

// String is the line as tpcc-mysql prints it: 12345.000 TpmC.
func (h Headline) String() string { return fmt.Sprintf("%.3f %s", h.PerMinute, h.Unit) }

// ErrorCount counts errors of one kind.
type ErrorCount struct {
	Label   string `json:"label"`   // the server's error number, an SQLSTATE, "lost", or "connect" if it could not be reached
	Message string `json:"message"` // message of the first one
	Count   int64  `json:"count"`
	Retried int64  `json:"retried,omitempty"` // of these, errors after which the same transaction was retried, its time running on
}

// Outage is a span in which no transaction of any session succeeded, from the last success to the next one, while
// something failed; or, without errors, while transactions waited.
type Outage struct {
	From         float64 `json:"from"` // since the start of the measured time
	Milliseconds int64   `json:"milliseconds"`
	Errors       bool    `json:"errors"` // false: a stall, nothing failed
}

// Backlog is the transactions that an open loop could not begin in time.
type Backlog struct {
	Max          int64   `json:"max"`           // most transactions waiting at once; computed from the rate and the longest wait
	AtEnd        int64   `json:"at_end"`        // waiting when time was up
	NeverStarted int64   `json:"never_started"` // of those, transactions that no session ever began: all
	MaxWait      float64 `json:"max_wait"`      // the longest wait for a free session
}

// Ledger compares what the server acknowledged with what it holds afterwards.
type Ledger struct {
	Acknowledged int64    `json:"acknowledged"`
	Found        int64    `json:"found"`
	Missing      int64    `json:"missing"`      // acknowledged but not there: lost
	MissingKeys  []string `json:"missing_keys"` // the first of them: session:number
	Unsure       int64    `json:"unsure"`       // there, but the acknowledgement never came
	// Error says why the ledger could not be read; the other fields are then meaningless.
	Error string `json:"error,omitempty"`
}

// Steady says whether the measured time was steady.
type Steady struct {
	Reached    bool `json:"reached"`
	FromSecond int  `json:"from_second"` // where the steady part begins
	// Slope is how much the line through the steady part rises (falls, if negative) from its beginning to its end, as a share
	// of its mean.
	Slope float64 `json:"slope"`
	Test  string  `json:"test"` // in words
}

// Second is one second of a run.
type Second struct {
	Second       int     `json:"second"` // since the start of the measured time; negative: warm-up
	Transactions int64   `json:"transactions"`
	Queries      int64   `json:"queries"`
	Errors       int64   `json:"errors,omitempty"`
	P50          float64 `json:"p50"`
	P95          float64 `json:"p95"`
	P99          float64 `json:"p99"`
	Max          float64 `json:"max"`
	Backlog      int64   `json:"backlog,omitempty"`
	// Warmup marks seconds that are not measured. While the end of an automatic warm-up is not known, Second counts from the
	// beginning of the run.
	Warmup bool `json:"warmup,omitempty"`
}

// The percentiles that every result has.
var percentiles = []float64{50, 75, 90, 95, 99, 99.9, 99.99}
