package repo

import (
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// Format is the version of the layout that this package writes. FORMAT.md describes it.
const Format = 1

// Kind says how a backup was taken.
type Kind string

const (
	Logical  Kind = "logical"  // rows and definitions, by SQL
	Physical Kind = "physical" // the server's own files
	Copying  Kind = "copy"     // no backup: backups are being copied into this place; never whole
)

// Header describes a backup. It is the first line of a manifest, so that listing backups need not read further.
type Header struct {
	Format   int       `json:"format"`
	ID       string    `json:"id"`
	Kind     Kind      `json:"kind"`
	Began    time.Time `json:"began"`
	Snapshot time.Time `json:"snapshot"` // the time of the snapshot, by the server's clock
	Ended    time.Time `json:"ended"`
	Server   Server    `json:"server"`
	Position Position  `json:"position"`
	Parent   string    `json:"parent,omitempty"`  // the backup whose chunks were reused (logical), or that this one builds on (physical)
	Tool     string    `json:"tool"`              // the program that took it, with its version
	Partial  []string  `json:"partial,omitempty"` // the schemas and tables selected, if not everything
	Smaller  bool      `json:"smaller,omitempty"` // it was accepted that it may hold much less than the one before
	Stream   *Stream   `json:"stream,omitempty"`  // for a physical backup: what its parts are

	Schemas int64 `json:"schemas"`
	Tables  int64 `json:"tables"`
	Objects int64 `json:"objects"` // views, routines, triggers, events, sequences, accounts
	Rows    int64 `json:"rows"`
	Bytes   int64 `json:"bytes"`  // raw rows, or files before compression
	Stored  int64 `json:"stored"` // bytes that this backup added to the place

	LockSeconds float64  `json:"lock_seconds"`    // how long a global lock was held
	Notes       []string `json:"notes,omitempty"` // what a person should know: tables without transactions, objects that could not be read
}

// Moment is when the server was at the position, by its own clock, or at the latest then.
func (h Header) Moment() time.Time {
	if h.Kind == Logical && !h.Snapshot.IsZero() {
		return h.Snapshot
	}
	return h.Ended
}

// Server is where a backup came from.
type Server struct {
	Identity string `json:"identity"` // identifies a server: the same for all its backups, different for any other
	Name     string `json:"name"`     // its usual name: the address, or its name in the inventory
	fleet.Server
	Variables map[string]string `json:"variables,omitempty"`  // variables that matter for restoring, such as lower_case_table_names
	LogDo     []string          `json:"log_do,omitempty"`     // binlog_do_db when the backup was taken: only these schemas are in the binary logs
	LogIgnore []string          `json:"log_ignore,omitempty"` // binlog_ignore_db when the backup was taken: these schemas are not in the binary logs
}

// Unlogged returns those of some schemas whose changes the server's binary logs leave out, so that rolling forward restores none of them.
func (s Server) Unlogged(schemas []string) (list []string) {
	for _, name := range schemas {
		same := func(other string) bool { return strings.EqualFold(name, other) } // as lower_case_table_names may have it
		if len(s.LogDo) > 0 && !slices.ContainsFunc(s.LogDo, same) || len(s.LogDo) == 0 && slices.ContainsFunc(s.LogIgnore, same) {
			list = append(list, name)
		}
	}
	return list
}

// Position is the position in the server's binary logs that matches the snapshot: everything before it is in the backup,
// nothing after it is.
type Position struct {
	File    string    `json:"file,omitempty"`
	Offset  int64     `json:"offset,omitempty"`
	GTIDSet string    `json:"gtid_set,omitempty"` // MySQL: gtid_executed; MariaDB: gtid_binlog_pos
	State   string    `json:"state,omitempty"`    // MariaDB: gtid_binlog_state, the last transaction of each server
	Sources []Channel `json:"sources,omitempty"`  // on a replica: how far each of its sources had been applied
}

// Channel is a replica's position in one of its sources.
type Channel struct {
	Name    string `json:"name,omitempty"`
	Host    string `json:"host"`
	Port    int    `json:"port"`
	File    string `json:"file,omitempty"`
	Offset  int64  `json:"offset,omitempty"`
	GTIDSet string `json:"gtid_set,omitempty"`
}

// Schema is a database with its definition.
type Schema struct {
	Name   string `json:"name"`
	Create string `json:"create"`
}

// Table is a table with its rows' chunks.
type Table struct {
	Schema        string   `json:"schema"`
	Name          string   `json:"name"`
	Create        string   `json:"create"`
	Engine        string   `json:"engine"`
	Transactional bool     `json:"transactional"`
	Elsewhere     bool     `json:"elsewhere,omitempty"` // its rows are those of other tables or of another server, and not in the backup
	History       bool     `json:"history,omitempty"`   // MariaDB, WITH SYSTEM VERSIONING: rows of the past are among the rows; the columns of their times are the last, or where the table has them
	Columns       []Column `json:"columns"`             // those that chunks hold, in their order: generated ones are left out
	Key           []string `json:"key,omitempty"`       // the columns by which chunks are cut and rows are ordered; empty: no usable key, one chunk, any order
	Rows          int64    `json:"rows"`
	Bytes         int64    `json:"bytes"`
	Sum           string   `json:"sum"` // chunk.Sum of all rows, hex
	Chunks        []Chunk  `json:"chunks,omitempty"`
	Typed         []Chunk  `json:"typed,omitempty"` // values in JSON documents whose types their text does not show: see FORMAT.md
}

// Column is a column of a table as far as a loader has to know it.
type Column struct {
	Name    string `json:"name"`
	Type    string `json:"type"`              // data type without length: int, varchar, json, bit, point…
	Charset string `json:"charset,omitempty"` // of text
}

// Chunk is the rows of one range of the key: Lower < key <= Upper, in SQL literals; empty means open.
type Chunk struct {
	Lower  []string `json:"lower,omitempty"`
	Upper  []string `json:"upper,omitempty"`
	Rows   int64    `json:"rows"`
	Bytes  int64    `json:"bytes"`
	Sum    string   `json:"sum"`
	Hash   string   `json:"hash"`          // names the object
	Stored int64    `json:"stored"`        // size of the object, in bytes
	Big    bool     `json:"big,omitempty"` // too large to be held in memory
}

// ObjectKind is what an Object is.
type ObjectKind string

const (
	Sequence    ObjectKind = "sequence"
	View        ObjectKind = "view"
	Function    ObjectKind = "function"
	Procedure   ObjectKind = "procedure"
	Package     ObjectKind = "package"      // MariaDB, sql_mode=ORACLE
	PackageBody ObjectKind = "package body" // MariaDB, sql_mode=ORACLE
	Trigger     ObjectKind = "trigger"
	Event       ObjectKind = "event"
	Account     ObjectKind = "account" // a user or a role, with its grants
)

// Object is what a server has besides tables, with what its definition depends on.
type Object struct {
	Kind      ObjectKind `json:"kind"`
	Schema    string     `json:"schema,omitempty"`
	Name      string     `json:"name"`
	Table     string     `json:"table,omitempty"` // for a trigger: its table
	Create    string     `json:"create"`
	After     []string   `json:"after,omitempty"`   // further statements: the grants of an account, the state of a sequence
	Columns   []string   `json:"columns,omitempty"` // of a view: for the table that replaces it until all views are there
	Broken    bool       `json:"broken,omitempty"`  // a view whose server said that it selects from what does not exist
	SQLMode   string     `json:"sql_mode,omitempty"`
	Charset   string     `json:"charset,omitempty"`   // character_set_client
	Collation string     `json:"collation,omitempty"` // collation_connection
	Database  string     `json:"database_collation,omitempty"`
	TimeZone  string     `json:"time_zone,omitempty"` // of an event
	Definer   string     `json:"definer,omitempty"`
}

// Stream describes the parts of a physical backup, which are concatenated.
type Stream struct {
	Tool    string   `json:"tool"`               // mariadb-backup, xtrabackup or clone: what turns it into a data directory
	Form    string   `json:"form"`               // xbstream
	Files   int64    `json:"files"`              // in the stream
	FromLSN uint64   `json:"from_lsn,omitempty"` // 0: full; otherwise the parent's ToLSN: only pages changed since
	ToLSN   uint64   `json:"to_lsn,omitempty"`   // the FromLSN of an incremental backup on top of this one
	LeftOut []string `json:"left_out,omitempty"` // tables that will be empty when restored, as CLONE copies only InnoDB; the first 10,000
}

// Part is a piece of a physical backup's stream, in the order of its number.
type Part struct {
	Number int    `json:"number"`
	Bytes  int64  `json:"bytes"`
	Hash   string `json:"hash"`
	Stored int64  `json:"stored"`
}

// Trailer ends a manifest. Without it, or when it does not agree, the manifest is damaged.
type Trailer struct {
	Lines  int64  `json:"lines"`  // before this one
	SHA256 string `json:"sha256"` // of the bytes of those lines
}

// Line is one line of a manifest. Exactly one field is set.
type Line struct {
	Backup *Header  `json:"backup,omitempty"`
	Schema *Schema  `json:"schema,omitempty"`
	Table  *Table   `json:"table,omitempty"`
	Object *Object  `json:"object,omitempty"`
	Part   *Part    `json:"part,omitempty"`
	End    *Trailer `json:"end,omitempty"`
}

// rank orders lines as they must be restored: what others need comes first.
func (l Line) rank() int {
	switch {
	case l.Schema != nil:
		return 0
	case l.Object != nil && l.Object.Kind == Account: // definers are there before what they define
		return 1
	case l.Object != nil && l.Object.Kind == Sequence: // tables take default values from them
		return 2
	case l.Object != nil && (l.Object.Kind == Function || l.Object.Kind == Package): // views and triggers call them
		return 4
	case l.Object != nil && (l.Object.Kind == Procedure || l.Object.Kind == PackageBody):
		return 5
	case l.Object != nil && l.Object.Kind == View:
		return 6
	case l.Object != nil && l.Object.Kind == Trigger:
		return 7
	case l.Object != nil:
		return 8
	default: // tables, parts
		return 3
	}
}

const ranks = 9
