// Package size is what a server's data takes on its disks: schemas, tables, indexes, partitions, undo, logs and temporary space, by the files
// and not by estimates, with what is free in them, where they grow, and what could be had back. Tally, Squarify, Trend and the words are
// pure; Read, Widths and Measure ask a server.
package size

import (
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// Report is what a server's data takes.
type Report struct {
	Server   string     `json:"server"`  // kind and version
	At       time.Time  `json:"at"`      // when it was read
	Schema   string     `json:"schema"`  // only this one was asked for; "" is all
	Source   string     `json:"source"`  // SourceFiles or SourceEstimates
	Total    Sum        `json:"total"`   // of tables and spaces
	Schemas  []Schema   `json:"schemas"` // the largest first
	Tables   []Table    `json:"tables"`  // the largest ones, the largest first
	Rest     Rest       `json:"rest"`    // tables that Tables leaves out
	Spaces   []Space    `json:"spaces"`  // what belongs to no single table
	Disk     *Disk      `json:"disk,omitzero"`
	Growth   *Growth    `json:"growth,omitzero"`   // nil: not known
	Widths   []Width    `json:"widths,omitzero"`   // nil: not looked for
	Measured []Measured `json:"measured,omitzero"` // nil: not asked for

	Words   []string        `json:"words"`   // what it says, in sentences
	Unknown []fleet.Trouble `json:"unknown"` // what could not be read, and why
	Cost    Cost            `json:"cost"`
}

// Where the sizes come from.
const (
	SourceFiles     = "files"     // InnoDB asked the file system for each file
	SourceEstimates = "estimates" // information_schema.TABLES: sampled, and of what the account may see only
)

// Sum is a size on disk.
type Sum struct {
	File      int64 `json:"file_bytes"`      // from beginning to end of the files
	Allocated int64 `json:"allocated_bytes"` // what the file system has given for them: less than File if there are holes
}

func (s *Sum) add(o Sum) { s.File += o.File; s.Allocated += o.Allocated }

// Schema is one schema.
type Schema struct {
	Name   string `json:"name"`
	Tables int    `json:"tables"`
	Sum
}

// Table is one table with its indexes and partitions.
type Table struct {
	Schema     string `json:"schema"`
	Name       string `json:"name"`
	Engine     string `json:"engine"`
	RowFormat  string `json:"row_format"` // as the server names it: Dynamic, Compressed
	Options    string `json:"options"`    // as information_schema has them: compression, partitioned
	Sum               // with full-text indexes
	Rows       *int64 `json:"rows"` // as the server estimates; null: not known
	Free       *int64 `json:"free_bytes"`
	Data       *int64 `json:"data_bytes"`    // clustered index, or rows; as the server estimates
	IndexBytes *int64 `json:"index_bytes"`   // secondary indexes; as the server estimates
	Average    *int64 `json:"bytes_per_row"` // allocated bytes by rows

	Indexes        []Index     `json:"indexes"`
	PartitionCount int         `json:"partition_count"` // files: partitions, or subpartitions
	Partitions     []Partition `json:"partitions"`      // the largest ones
}

// Index is the size of one index, by the number of its pages when the server last counted them.
type Index struct {
	Name  string    `json:"name"`
	Bytes int64     `json:"bytes"`
	AsOf  time.Time `json:"as_of,omitzero"` // when its pages were counted; by the server's clock, read as UTC
}

// Partition is one partition's file, or that of a subpartition.
type Partition struct {
	Name string `json:"name"`
	Sum
}

// Rest sums up the tables that are not listed.
type Rest struct {
	Tables int `json:"tables"`
	Sum
}

// Kinds of spaces.
const (
	KindSystem      = "system"
	KindShared      = "shared tablespace"
	KindUndo        = "undo"
	KindRedo        = "redo"
	KindTemporary   = "temporary"
	KindDoublewrite = "doublewrite"
	KindBinlog      = "binary logs"
	KindRelay       = "relay logs"
	KindLog         = "logs"
)

// Space is what belongs to no single table.
type Space struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Sum
	Free *int64 `json:"free_bytes"`     // free inside; null: the server does not say
	Note string `json:"note,omitempty"` // what else is to be said of it
}

// Disk is the file system of the data directory; only seen if the server runs on this machine.
type Disk struct {
	Path string `json:"path"`
	Size int64  `json:"size_bytes"`
	Left int64  `json:"left_bytes"` // for the server's account
}

// Cost is what reading took.
type Cost struct {
	Seconds    float64 `json:"seconds"`
	Statements int64   `json:"statements"`
	Received   int64   `json:"received_bytes"` // from the server
	Tables     int     `json:"tables"`
}
