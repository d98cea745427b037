// Package trace shows what one connection did: its statements, stages, waits and stored-program instructions, from the
// server's performance_schema, as a tree, a timeline and an execution map.
//
// The pure parts (Build, NewMap, NewReport and the writers of a Report) need no server. Run polls one; Enable and
// Restore switch instruments on and put them back.
//
// Column and table names are those of
// https://dev.mysql.com/doc/refman/8.4/en/performance-schema-event-timing.html and
// https://dev.mysql.com/doc/refman/8.4/en/performance-schema-statement-tables.html.
package trace

import (
	"strings"
	"time"
)

// Kind is the kind of event that performance_schema recorded.
type Kind string

// The kinds of event, from the outside in. Transactions cut across the others: one may span several statements or begin in
// the middle of one.
const (
	KindStatement   Kind = "statement"   // also an instruction of a stored program: statement/sp/…
	KindStage       Kind = "stage"       // a phase of a statement; a connection is in one stage at a time
	KindWait        Kind = "wait"        // for a table, a file, a lock, the client
	KindTransaction Kind = "transaction" //
)

// Program is the stored program that an instruction belongs to.
type Program struct {
	Type   string `json:"type"` // FUNCTION, PROCEDURE, TRIGGER, EVENT
	Schema string `json:"schema"`
	Name   string `json:"name"`
}

// String is FUNCTION schema.name.
func (p Program) String() string {
	if p.Name == "" {
		return ""
	}
	return p.Type + " " + p.Schema + "." + p.Name
}

// Object is what a wait was for.
type Object struct {
	Type   string `json:"type"` // TABLE, FILE, SOCKET, TEMPORARY TABLE, …
	Schema string `json:"schema,omitempty"`
	Name   string `json:"name"` // a table's name, a file's path
	Index  string `json:"index,omitempty"`
}

// Table is schema.name, or "" when the object is no table.
func (o Object) Table() string {
	if o.Type != "TABLE" || o.Name == "" {
		return ""
	}
	return o.Schema + "." + o.Name
}

// Event is one row of a performance_schema.events_… table.
type Event struct {
	Kind Kind   `json:"kind"`
	ID   uint64 `json:"id"`            // EVENT_ID, which counts the events of this connection from 1
	End  uint64 `json:"end,omitempty"` // END_EVENT_ID, the connection's last event when this one ended; 0: it has not ended
	Name string `json:"name"`          // the instrument, such as stage/sql/Opening tables

	// Start and Stop are picoseconds since the server started; both 0: not timed; of one that has not ended, Stop is when it was last seen.
	Start uint64 `json:"start"`
	Stop  uint64 `json:"stop,omitempty"`

	// Running says that the event was still running when the trace ended; Stop is then the end of the trace.
	Running bool `json:"running,omitempty"`

	// Nesting is NESTING_EVENT_ID as the server wrote it. It is kept for the record only: the servers let it point at the
	// statement that ran last, and at transactions. Build nests by ID and End instead.
	Nesting uint64 `json:"nesting,omitempty"`

	// Of statements.
	SQL          string   `json:"sql,omitempty"`     // as much of the statement as the server kept
	Cut          bool     `json:"sql_cut,omitempty"` // the server cut SQL at performance_schema_max_sql_text_length
	Digest       string   `json:"digest,omitempty"`
	Schema       string   `json:"schema,omitempty"` // the default database
	Program      *Program `json:"program,omitempty"`
	Level        int      `json:"level,omitempty"` // nesting level: 0: sent by the client; 1: run by a stored program; …
	Errno        int      `json:"errno,omitempty"`
	Message      string   `json:"message,omitempty"`
	RowsSent     int64    `json:"rows_sent,omitempty"`
	RowsExamined int64    `json:"rows_examined,omitempty"`
	RowsAffected int64    `json:"rows_affected,omitempty"`
	TmpTables    int64    `json:"tmp_tables,omitempty"`
	TmpDisk      int64    `json:"tmp_disk_tables,omitempty"`
	SortRows     int64    `json:"sort_rows,omitempty"`
	NoIndex      bool     `json:"no_index_used,omitempty"`
	LockTime     uint64   `json:"lock_time,omitempty"` // picoseconds

	// For waits: what was waited for.
	Object    *Object `json:"object,omitempty"`
	Operation string  `json:"operation,omitempty"`
	Bytes     int64   `json:"bytes,omitempty"`

	// Of transactions.
	State string `json:"state,omitempty"` // ACTIVE, COMMITTED, ROLLED BACK
}

// Timed reports whether the server measured the event's time.
func (e *Event) Timed() bool { return e.Start != 0 }

// Ended reports whether the event was over when it was read.
func (e *Event) Ended() bool { return e.End != 0 }

// Duration is how long the event took; of one that has not ended, until now (picoseconds since the server started).
func (e *Event) Duration(now uint64) time.Duration {
	return picos(e.stop(now) - min(e.Start, e.stop(now)))
}

func (e *Event) stop(now uint64) uint64 {
	switch {
	case e.Start == 0:
		return 0
	case e.Stop >= e.Start:
		return e.Stop
	case e.Ended():
		return e.Start
	default:
		return max(now, e.Start)
	}
}

// Idle reports whether the connection waited for its client.
func (e *Event) Idle() bool { return e.Name == "idle" }

// Instruction reports whether the event is an instruction of a stored program.
func (e *Event) Instruction() bool { return strings.HasPrefix(e.Name, "statement/sp/") }

// Short is the instrument's name without what every event of its kind has in front: Opening tables, sp/set, io/table/handler.
func (e *Event) Short() string { return shortName(e.Name) }

var prefixes = strings.NewReplacer("statement/sql/", "", "stage/sql/", "", "stage/innodb/", "innodb: ", "statement/sp/", "sp/",
	"statement/com/", "com/", "wait/io/table/sql/handler", "table io", "wait/lock/table/sql/handler", "table lock",
	"wait/lock/metadata/sql/mdl", "metadata lock", "wait/io/file/", "file ", "wait/io/socket/", "socket ", "wait/synch/", "", "statement/", "", "stage/", "")

func shortName(name string) string { return prefixes.Replace(name) }

// picos makes a duration of picoseconds.
func picos(ps uint64) time.Duration { return time.Duration(ps / 1000) }
