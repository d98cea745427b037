package applier

import (
	"time"

	"github.com/rissodb/risso/internal/mysql"
)

// Transaction is one of a binary log: what replaying it beside others depends on. Slices are the caller's, and valid until Add returns.
type Transaction struct {
	GTID mysql.GTID
	File string
	Pos  int64
	Time time.Time // when it was committed, as precise as the log has it

	// Of MySQL: see binlogevent.GTID.
	LastCommitted, Sequence int64
	// Of MariaDB.
	ByGroup               bool // the log has groups of commits, not numbers
	Group                 uint64
	Domain                uint32
	Transactional, Waited bool
	Serial                bool

	DDL     bool
	Rows    int64
	Bytes   int64
	Seconds float64 // that its statements took at least where they were run first, of those that are logged as text
	Tables  []Table
	Keys    []uint64 // of the rows that it changed; see Unkeyed
	// Unkeyed: it changed rows that no key tells apart, or more than Keys has.
	Unkeyed bool
	// Statements: it changed rows by statements that are logged as text: which is not known.
	Statements bool
}

// MostKeys is how many keys of a transaction are of use: no server remembers more.
const MostKeys = history + 1

// Table is a table's name.
type Table struct{ Schema, Name string }

// String is the name as people write it.
func (t Table) String() string {
	if t.Name == "" {
		return t.Schema
	}
	return t.Schema + "." + t.Name
}

// Costs say what applying a transaction takes. They are assumed: a log has no times of rows. Only what they are to each other matters for a
// speed-up.
type Costs struct {
	Name   string  `json:"by"`             // rows, bytes, or equal: all transactions cost the same
	Commit float64 `json:"commit_seconds"` // of each transaction, in seconds
	Row    float64 `json:"row_seconds"`    // of each row, in seconds
	Byte   float64 `json:"byte_seconds"`   // of each byte, in seconds
}

// What is assumed if nothing else is known: a row that is in memory, and a commit on a disk that has a cache of its own.
const (
	CommitTime = 100 * time.Microsecond
	RowTime    = 10 * time.Microsecond
)

// rowBytes is how long a row is taken to be, to compare costs by bytes with those by rows.
const rowBytes = 200

// costsOf are the costs that are tried: the first are those that count.
func costsOf(commit, row time.Duration) (byRows, byBytes, alike Costs) {
	c, r := commit.Seconds(), row.Seconds()
	return Costs{Name: "rows", Commit: c, Row: r}, Costs{Name: "bytes", Commit: c, Byte: r / rowBytes}, Costs{Name: "equal", Commit: c}
}

// of is what a transaction takes. What a statement that is logged as text took on the source it takes again.
func (c Costs) of(t *Transaction) float64 {
	return c.Commit + float64(t.Rows)*c.Row + float64(t.Bytes)*c.Byte + t.Seconds
}
