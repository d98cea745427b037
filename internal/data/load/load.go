// Package load puts a logical backup back into a server: definitions, rows, and what belongs to them, in parallel, and proves
// at the end that what is there is what the manifest says.
//
// Nothing is changed before all of it was checked: that no table is in the way, and that the server understands what the
// backup holds. A journal in the target, in the schema risso_restore, tells which rows are in: it is written in the
// transaction that loads them, so a restore that was killed goes on where it was and loads no row twice.
package load

import (
	"context"
	"errors"
	"time"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
)

// The errors that a caller may want to tell apart.
var (
	ErrExists       = errors.New("there is data in the way")
	ErrIncompatible = errors.New("the server does not know all that the backup holds")
	ErrDifferent    = errors.New("what is there now is not what the backup holds")
	ErrUnfinished   = errors.New("another restore into this server was not finished")
	ErrBusy         = errors.New("another restore into this server runs")
	ErrNothing      = errors.New("the backup holds nothing of what was asked for")
	ErrLogs         = errors.New("the binary logs do not do")
	ErrPast         = errors.New("the backup is of a later moment than the one to stop at")
	ErrForged       = errors.New("the backup holds what no backup has, and would run it")
	ErrKind         = errors.New("this is not a logical backup")
	ErrLeftOut      = errors.New("the rest is there, but not all of the backup")
	ErrBroken       = errors.New("all is there, but views that were not broken where the backup was taken do not work here")
	ErrNotKept      = errors.New("the server would not keep the rows as they are")
	ErrMeet         = errors.New("two rows of the backup are one to a unique key here")
	ErrOrphans      = errors.New("all is there, but other tables hold rows that refer to rows which are not there")
)

// Options say what is restored, and how.
type Options struct {
	Repo   *repo.Repo
	Backup string // ID; empty: the newest
	Into   mysql.Target

	Schemas []string // patterns with *; with Tables empty too: everything
	Tables  []string // patterns schema.table with *; names with dots in backticks
	Rename  []string // old=new, of a schema or of a table (db.t=db.t2)

	Threads          int    // sessions; 0: 4
	BatchBytes       int64  // most raw bytes of one transaction, the last row may go beyond; 0: 64 MiB
	BulkBytes        int64  // chunks from this size on go in by mysql.Bulk where the server has it; 0: 64 KiB
	Overwrite        bool   // what is in the way goes
	SkipIncompatible bool   // what the server does not know stays away
	NoPrograms       bool   // procedures, functions, packages, triggers and events stay away
	Definer          string // user@host, or CurrentUser: the definer of all views and programs; empty: as the backup has it
	NoBinlog         bool   // the target writes no binary log of it
	SetGTID          bool   // the target says of itself that it has all transactions up to the snapshot

	Until  binlog.Stop // how far to go on behind the snapshot; the zero value: not at all
	Roller Roller      // who goes on; needed when Until is set
	DryRun bool        // ends after Confirm: nothing is changed
	Hold   bool        // leaves events switched off at the end, for who looks at the data first, or rolls it forward

	// Confirm is called once with what will be done, before the first change; an error ends it there. nil: yes. With DryRun it is
	// also called when the binary logs do not do, which Plan.Roll then says.
	Confirm func(Plan) error
	// Table is called when a table was compared with the manifest. It may be called from several goroutines. nil: nobody listens.
	Table func(TableResult)
	// Progress is called now and then. It may be called from several goroutines. nil: nobody listens.
	Progress func(Progress)
}

// Roll is what a Roller gets to know.
type Roll struct {
	Backup repo.Header // where the rows come from, and the position that they are of
	Into   mysql.Target
	Until  binlog.Stop
	Wants  func(schema, table string) bool             // whether a table is restored; nil: all are
	Names  func(schema, table string) (string, string) // the name under which it is; nil: its own
}

// Rolled is what a Roller did.
type Rolled struct {
	Transactions int64     `json:"transactions"`
	Resumed      bool      `json:"resumed,omitempty"` // an earlier run, which was cut off, had applied others before them
	Last         string    `json:"last,omitempty"`    // GTID of the last transaction
	LastTime     time.Time `json:"last_time,omitzero"`
	GTIDSet      string    `json:"gtid_set,omitempty"` // the position and all that was applied since
	Stopped      string    `json:"stopped,omitempty"`  // why it ended there
	Notes        []string  `json:"-"`                  // what a person should know; they become notes of the restore
}

// RollPlan is what a Roller would read and apply.
type RollPlan struct {
	Source       string    `json:"source,omitempty"` // where the logs are
	Logs         []RollLog `json:"logs,omitempty"`   // of which something is applied, in order
	Transactions int64     `json:"transactions"`     // of all tables, also where only some are restored
	Bytes        int64     `json:"bytes"`            // of these transactions
	Last         string    `json:"last,omitempty"`   // GTID of the last of them
	LastTime     time.Time `json:"last_time,omitzero"`
	Stops        string    `json:"stops,omitempty"`   // why it would end there
	Problem      string    `json:"problem,omitempty"` // why it cannot be; the rest is then what is there up to the obstacle
	Notes        []string  `json:"notes,omitempty"`

	Steps change.Plan `json:"-"` // what Roll would do
}

// RollLog is what of one binary log would be applied.
type RollLog struct {
	Name         string `json:"name"`
	From         int64  `json:"from"` // bytes from the beginning of the log
	To           int64  `json:"to"`
	Transactions int64  `json:"transactions"`
}

// Roller applies what the binary logs hold behind a backup's position, up to a point.
type Roller interface {
	// Check says, before anything is changed, what would be applied. It is an error when the logs do not reach from the position
	// to the point; the plan then tells how far they do.
	Check(ctx context.Context, r Roll) (RollPlan, error)
	// Roll applies them. After a kill it is called again with the same, and applies nothing twice: the server notes how far it came.
	Roll(ctx context.Context, r Roll) (Rolled, error)
	// Forget takes away what the server noted. It is called before the first Roll, for tables that were made anew have nothing of it, and behind the last.
	Forget(ctx context.Context, r Roll) error
}

// Plan is what a restore will do.
type Plan struct {
	Backup  repo.Header `json:"backup"`
	Target  string      `json:"target"` // user@address
	Resumes bool        `json:"resumes"`

	Schemas int64 `json:"schemas"`
	Tables  int64 `json:"tables"`
	Objects int64 `json:"objects"`
	Rows    int64 `json:"rows"`
	Bytes   int64 `json:"bytes"`

	Drops    []string  `json:"drops,omitempty"`    // what is in the way and will go; the first of them
	DropsAll int64     `json:"drops_all"`          // how many there are
	Findings []Finding `json:"findings,omitempty"` // what the server does not know
	Roll     *RollPlan `json:"roll,omitempty"`     // what comes from the binary logs

	// With DryRun: all that runs beside schemas, tables and rows.
	Programs []PlannedProgram `json:"programs,omitempty"` // and views, and sequences
	Accounts []PlannedAccount `json:"accounts,omitempty"`
	Settings []string         `json:"settings,omitempty"` // of the session, while some of them are made

	Stages change.Plan `json:"stages"` // what is done, in this order; those that an interrupted restore has done are passed over

	Notes []string `json:"notes,omitempty"`
}

// PlannedProgram is a view, sequence, routine, package, trigger or event that will be made.
type PlannedProgram struct {
	Kind    string `json:"kind"`
	Schema  string `json:"schema"` // in the target
	Name    string `json:"name"`
	Table   string `json:"table,omitempty"`   // of a trigger
	Definer string `json:"definer,omitempty"` // whose privileges it may use; empty: of who restores
	On      bool   `json:"on,omitempty"`      // of an event: it is switched on at the end
}

// PlannedAccount is an account that will be made, unless it is there, with its grants without their secrets.
type PlannedAccount struct {
	Name   string   `json:"name"`
	Grants []string `json:"grants,omitempty"`
}

// Finding is something that cannot come along as it is.
type Finding struct {
	What   string `json:"what"`             // the object
	Reason string `json:"reason"`           // why not
	Mapped string `json:"mapped,omitempty"` // what takes its place; empty: nothing
	Create string `json:"create,omitempty"` // of a view or program that does not come along: its definition, so that a person can mend it
}

// Progress is how far a restore is.
type Progress struct {
	Stage  string // in a word: tables, rows, indexes, compare, objects, binary logs
	Bytes  int64  // raw rows that are in, and compared ones
	Total  int64  // of both
	Tables int64  // that are done
	Of     int64
}

// TableResult is a table as it is now beside what the manifest says.
type TableResult struct {
	Schema string `json:"schema"` // in the target
	Table  string `json:"table"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	Sum    string `json:"sum"`
	Wants  string `json:"wants,omitempty"` // the manifest's rows and sum, where they are others
	Equal  bool   `json:"equal"`
}

// Result is what a restore did.
type Result struct {
	Backup    repo.Header   `json:"backup"`
	Changed   bool          `json:"changed"` // something was changed, by this call or by the one that it resumes
	Resumed   bool          `json:"resumed"` // an earlier one was cut off
	Schemas   int64         `json:"schemas"`
	Tables    int64         `json:"tables"` // that were compared
	Objects   int64         `json:"objects"`
	Rows      int64         `json:"rows"`
	Bytes     int64         `json:"bytes"`
	Different []TableResult `json:"different,omitempty"`
	Rolled    *Rolled       `json:"rolled,omitempty"`
	Notes     []string      `json:"notes,omitempty"`
	Kept      []string      `json:"kept,omitempty"`      // accounts that were there already: they stay as they are
	LeftOut   []Finding     `json:"left_out,omitempty"`  // what is not there; more than a thousand are counted in LeftOutAll only
	Otherwise []Finding     `json:"otherwise,omitempty"` // what is there in another form

	LeftOutAll int64 `json:"left_out_all,omitempty"`

	Broken  []Finding `json:"broken,omitempty"`  // views that are there and do not work, and were not broken where the backup was taken
	Orphans []Orphans `json:"orphans,omitempty"` // rows of tables that did not come back, which refer to what is not there

	Seconds        float64 `json:"seconds"`         // from the first question to the last answer
	RowSeconds     float64 `json:"row_seconds"`     // of them until all rows and indexes were there and compared
	SessionSeconds Phases  `json:"session_seconds"` // what the sessions did, summed up over them
}

// Orphans are rows of a table that a foreign key makes refer to rows which are not there.
type Orphans struct {
	Schema     string `json:"schema"` // of the table that holds them
	Table      string `json:"table"`
	Constraint string `json:"constraint"` // the foreign key
	ToSchema   string `json:"to_schema"`  // of the table that they refer to
	ToTable    string `json:"to_table"`   // its name
	Rows       int64  `json:"rows"`
	Unknown    string `json:"unknown,omitempty"` // why they could not be counted
	Query      string `json:"query"`             // the statement that shows them

	all string // the statement that shows all rows that refer to any
}

// Phases are times in seconds.
type Phases struct {
	Create  float64 `json:"create"`
	Load    float64 `json:"load"`
	Index   float64 `json:"index"`
	Compare float64 `json:"compare"`
}
