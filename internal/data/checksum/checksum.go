// Package checksum finds out whether tables are the same on two servers: a primary and its replicas, or any two. It reads both in
// ranges of the key and compares checksums of rows; where they differ it finds the rows, and reads them again until it is sure
// that they do not merely differ because they were being changed. It writes nothing. Mend repairs differences through the primary.
package checksum

import (
	"context"
	"errors"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
)

// Options are what Compare compares and how.
type Options struct {
	Primary mysql.Target
	Others  []mysql.Target // at least one
	// Replicas says that the others replicate from Primary, directly or over others: they are waited for. Otherwise they are
	// servers that have nothing to do with it.
	Replicas bool

	Schemas []string // patterns with *; empty: all but the server's own
	Tables  []string // schema.table, patterns with *, as pattern.Name reads them; empty: all
	// Rename returns a schema's name on the others, if it differs; nil: it is the same.
	Rename func(schema string) string

	Threads  int           // tables, or chunks of a large one, at a time; 0: 1
	Target   time.Duration // time that reading one chunk should take; 0: half a second
	Patience time.Duration // how long a replica may take to reach the primary's place before what differs counts as not comparable; 0: 10 s
	Silence  time.Duration // how long a server may be silent in the middle of an answer; 0: a minute
	Return   time.Duration // how long a server that was lost is waited for; 0: 20 s
	Rounds   int           // how often a row must be seen unequal and unchanged before it counts as different; 0: 10
	MaxRows  int           // differing rows to list, for each table and server; 0: 100
	Method   Method        // "": MethodAuto
	Gate     Gate          // nil: no throttle
	State    string        // file that remembers what was compared; "": none
	Resume   bool          // go on from State
	Redact   bool          // leave the values of rows out of what is reported

	choice *pattern.Choice // Schemas and Tables

	mostLoose int // different rows of a table without a key whose hashes are in memory; 0: a million

	Each     func(Table)    // receives each table as it is done, one call at a time; may be nil
	Progress func(Progress) // may be called from several goroutines; may be nil
}

// Method is how the sums of a chunk are made.
type Method string

// The methods. DESIGN.md has the figures behind MethodAuto.
const (
	MethodAuto   Method = "auto"   // MethodServer between servers of MariaDB 10.8 and later, else whichever is faster in the first chunks of a table
	MethodRows   Method = "rows"   // the rows travel, and their sum is made here
	MethodQuick  Method = "quick"  // as MethodServer, with one CRC32 for each row: less work, and one different chunk in 2^32 is not seen
	MethodServer Method = "server" // the servers make the sum; only rows of chunks that differ travel
)

// Gate says when the next chunk may be read. bytes is the size of what was read since the last call. It returns when the
// servers may be given load, or with an error when they may not any more.
type Gate interface {
	Pass(ctx context.Context, bytes int64) error
}

// Progress is how far a comparison is.
type Progress struct {
	Table  string // the one that moved, schema.table
	Tables int64  // done
	Rows   int64  // read on the primary
	Bytes  int64  // of them
	Of     int64  // rows to be read, as the server estimates them, in the tables that are known by now
	Differ int64  // tables that differ
}

// Errors that a caller may want to distinguish.
var (
	ErrNothing = errors.New("no table to compare")
	ErrState   = errors.New("the state file cannot be used")

	ErrNotReplica = errors.New("it is not a replica: it replicates from no server")
)

// Verdict is the result of comparing a table on one server with the primary.
type Verdict string

// The verdicts, from good to bad.
const (
	Equal        Verdict = "equal"
	Filtered     Verdict = "filtered"      // the replica's filters leave the table out: it was not compared
	Changing     Verdict = "changing"      // some rows changed each time they were looked at; all others are equal
	Behind       Verdict = "behind"        // some rows differ, and the replica did not reach the primary's place: nothing can be said of them
	Failed       Verdict = "failed"        // it could not be read to the end
	Differs      Verdict = "differs"       // rows differ for sure
	MissingTable Verdict = "missing table" // it is on the primary only
	ExtraTable   Verdict = "extra table"   // it is on the other server only
)

// Bad reports whether the two are different for sure.
func (v Verdict) Bad() bool { return v == Differs || v == MissingTable || v == ExtraTable }

// Open reports whether it is still unknown whether they are equal.
func (v Verdict) Open() bool { return v == Changing || v == Behind || v == Failed }

var severity = map[Verdict]int{Equal: 0, Filtered: 1, Changing: 2, Behind: 3, Failed: 4, Differs: 5, MissingTable: 6, ExtraTable: 7}

// worse is the worse of two verdicts.
func worse(a, b Verdict) Verdict {
	if severity[b] > severity[a] {
		return b
	}
	return a
}

// Result is the result of Compare.
type Result struct {
	Began   time.Time `json:"began"`
	Seconds float64   `json:"seconds"`
	Primary Side      `json:"primary"`
	Others  []Side    `json:"others"`
	Tables  int64     `json:"tables"`
	Rows    int64     `json:"rows"`  // rows of the primary
	Bytes   int64     `json:"bytes"` // bytes of these rows
	Counts  Counts    `json:"counts"`
	// Definitions are differing definitions of objects other than tables.
	Definitions []Definition `json:"definitions,omitempty"`
	Unseen      []Unseen     `json:"unseen,omitempty"` // what was not compared because an account may not see it
	Notes       []string     `json:"notes,omitempty"`
	List        []Table      `json:"list,omitempty"` // tables that are not equal everywhere
}

// Counts counts tables by their worst verdict.
type Counts struct {
	Equal    int64 `json:"equal"`
	Differ   int64 `json:"differ"`
	Open     int64 `json:"open"` // tables for which some rows could not be judged
	Filtered int64 `json:"filtered"`
	// Definitions counts differing definitions of tables and other objects; Undefined those that could not be compared.
	Definitions int64 `json:"definitions"`
	Undefined   int64 `json:"definitions_open"`
}

// Unseen is what an account may not see of the objects to compare.
type Unseen struct {
	Server string `json:"server"`
	fleet.Trouble
}

// Side is one of the servers.
type Side struct {
	Server  string   `json:"server"` // user@address
	Version string   `json:"version"`
	ID      string   `json:"server_id"`
	Notes   []string `json:"notes,omitempty"`
}

// Table is what was found about one table.
type Table struct {
	Schema  string   `json:"schema"`
	Name    string   `json:"table"`
	Key     []string `json:"key,omitempty"` // columns by which it is split into chunks
	Rows    int64    `json:"rows"`
	Bytes   int64    `json:"bytes"`
	Chunks  int64    `json:"chunks"`
	Seconds float64  `json:"seconds"`
	Method  Method   `json:"method,omitempty"` // method used for most chunks
	Sum     string   `json:"sum,omitempty"`    // checksum of all rows, as in a backup's manifest, if all chunks were summed here
	Notes   []string `json:"notes,omitempty"`
	On      []On     `json:"on"`
}

// Verdict is the worst on any server.
func (t Table) Verdict() Verdict {
	v := Equal
	for _, o := range t.On {
		v = worse(v, o.Verdict)
	}
	return v
}

// On is the result for one table on one of the other servers.
type On struct {
	Server    string   `json:"server"`
	Verdict   Verdict  `json:"verdict"`
	Missing   int64    `json:"missing,omitempty"`   // rows of the primary that are not there
	Extra     int64    `json:"extra,omitempty"`     // rows that the primary does not have
	Different int64    `json:"different,omitempty"` // rows with the same key and other values
	AtLeast   bool     `json:"at_least,omitempty"`  // there may be more: counting was stopped
	Changing  int64    `json:"changing,omitempty"`  // rows that changed each time
	Behind    int64    `json:"behind,omitempty"`    // chunks that could not be compared
	Again     int64    `json:"again,omitempty"`     // chunks that were read again
	Settled   int64    `json:"settled,omitempty"`   // rows that differed at first, but no longer
	Written   int64    `json:"written,omitempty"`   // rows whose values are written differently but mean the same
	Rows      []Row    `json:"rows,omitempty"`      // the first that differ
	Notes     []string `json:"notes,omitempty"`
	// Definition is how the table's definition differs there, Undefined which parts of it cannot be compared.
	Definition    []string `json:"definition,omitempty"`
	Undefined     []string `json:"definition_open,omitempty"`
	fleet.Trouble          // why it could not be read to its end
}

// differing is how many rows were found to differ.
func (o *On) differing() int64 { return o.Missing + o.Extra + o.Different }

// Kind is how a row differs.
type Kind string

// The kinds.
const (
	Missing   Kind = "missing"   // on the primary only
	Extra     Kind = "extra"     // on the other server only
	Different Kind = "different" // on both, with other values
)

// Row is one row that differs.
type Row struct {
	Kind    Kind     `json:"kind"`
	Key     []Value  `json:"key,omitempty"`
	Columns []Column `json:"columns,omitempty"` // columns that differ; all columns if there is no key
	Times   int64    `json:"times,omitempty"`   // for a row without a key: how many more copies of it there are

	key [][]byte // as the server has it
}

// Value is a value of a key.
type Value struct {
	Column string `json:"column"`
	Value  string `json:"value"`
}

// Column is a column of a row with its values on both sides; nil for NULL and if there is no row.
type Column struct {
	Name    string  `json:"name"`
	Primary *string `json:"primary"`
	Other   *string `json:"other"`
}

// Defaults of Options.
const (
	defaultTarget   = 500 * time.Millisecond
	defaultPatience = 10 * time.Second
	defaultSilence  = time.Minute
	defaultReturn   = 20 * time.Second
	defaultRounds   = 10
	defaultMaxRows  = 100
)

func (o *Options) fill() {
	if o.Threads <= 0 {
		o.Threads = 1
	}
	if o.Target <= 0 {
		o.Target = defaultTarget
	}
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	if o.Silence <= 0 {
		o.Silence = defaultSilence
	}
	if o.Return <= 0 {
		o.Return = defaultReturn
	}
	if o.Rounds <= 0 {
		o.Rounds = defaultRounds
	}
	if o.MaxRows <= 0 {
		o.MaxRows = defaultMaxRows
	}
	if o.mostLoose <= 0 {
		o.mostLoose = looseRows
	}
	if o.Method == "" {
		o.Method = MethodAuto
	}
	if o.Rename == nil {
		o.Rename = func(s string) string { return s }
	}
}

// hidden replaces a value that is not shown.
const hidden = "(hidden)"

// redact hides the values of rows.
func (t *Table) redact() {
	for i := range t.On {
		for j := range t.On[i].Rows {
			r := &t.On[i].Rows[j]
			for k := range r.Key {
				r.Key[k].Value = hidden
			}
			for k := range r.Columns {
				for _, v := range []**string{&r.Columns[k].Primary, &r.Columns[k].Other} {
					if *v != nil {
						word := hidden
						*v = &word
					}
				}
			}
		}
	}
}
