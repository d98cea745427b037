// Package load restores a logical backup into a server: definitions, rows, and what belongs to them, in parallel, and proves
// at the end that the result matches the manifest.
//
// Nothing is changed until everything has been checked: that no table is in the way, and that the server supports what the
// backup contains. A journal in the target, in the schema risso_restore, records which rows are loaded: it is written in the
// same transaction as the rows, so a killed restore continues where it stopped and loads no row twice.
package load

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// The errors that a caller may want to distinguish.
var (
	ErrExists       = errors.New("there is data in the way")
	ErrIncompatible = errors.New("the server does not support everything in the backup")
	ErrDifferent    = errors.New("what was restored differs from the backup")
	ErrUnfinished   = errors.New("an earlier restore into this server was not finished")
	ErrBusy         = errors.New("another restore into this server is running")
	ErrReadOnly     = errors.New("the server takes no changes from this account")
	ErrNothing      = errors.New("the backup contains nothing of what was selected")
	ErrLogs         = errors.New("the binary logs cannot be used")
	ErrPast         = errors.New("the backup is from a later time than the one to stop at")
	ErrForged       = errors.New("the backup contains statements that no backup has, and would run them")
	ErrKind         = errors.New("this is not a logical backup")
	ErrLeftOut      = errors.New("not all of the backup was restored")
	ErrBroken       = errors.New("everything was restored, but views that worked where the backup was taken do not work here")
	ErrNotKept      = errors.New("the server would not keep the rows as they are")
	ErrMeet         = errors.New("two rows of the backup are equal for a unique key here")
	ErrOrphans      = errors.New("everything was restored, but other tables have rows that refer to missing rows")
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
	SkipIncompatible bool   // leave out what the server does not support
	NoPrograms       bool   // procedures, functions, packages, triggers and events stay away
	Definer          string // user@host, or CurrentUser: the definer of all views and programs; empty: as the backup has it
	NoBinlog         bool   // the target writes no binary log of it
	SetGTID          bool   // the target says of itself that it has all transactions up to the snapshot

	Until  binlog.Stop // how far to go on after the snapshot; the zero value: not at all
	Roller Roller      // who goes on; needed when Until is set
	DryRun bool        // ends after Confirm: nothing is changed
	// Replica says that the target is to be a replica: events that are enabled in the backup stay as a replica has them, and run on its source only.
	Replica bool
	Hold    bool // leaves events disabled at the end, for callers that inspect the data first or roll it forward

	// Confirm is called once with what will be done, before the first change; an error ends it there. nil: yes. With DryRun it is
	// also called when the binary logs do not do, which Plan.Roll then says.
	Confirm func(Plan) error
	// Table is called when a table was compared with the manifest. It may be called from several goroutines, and may be nil.
	Table func(TableResult)
	// Progress is called now and then. It may be called from several goroutines, and may be nil.
	Progress func(Progress)
}

// Roll is what a Roller gets to know.
type Roll struct {
	Backup repo.Header // where the rows come from, and the position that they are of
	Into   mysql.Target
	Until  binlog.Stop
	Wants  func(schema, table string) bool             // whether a table is restored; nil: all are
	Names  func(schema, table string) (string, string) // the name under which it is restored; nil: its own
}

// Rolled is what a Roller did.
type Rolled struct {
	Transactions int64     `json:"transactions"`
	Resumed      bool      `json:"resumed,omitempty"` // an earlier, interrupted run had applied transactions before these
	Last         string    `json:"last,omitempty"`    // GTID of the last transaction
	LastTime     time.Time `json:"last_time,omitzero"`
	GTIDSet      string    `json:"gtid_set,omitempty"` // the starting position, plus all transactions applied since
	Stopped      string    `json:"stopped,omitempty"`  // why it stopped there
	Notes        []string  `json:"-"`                  // what a person should know; they become notes of the restore
}

// RollPlan is what a Roller would read and apply.
type RollPlan struct {
	Source       string    `json:"source,omitempty"` // where the logs are
	Logs         []RollLog `json:"logs,omitempty"`   // logs from which something is applied, in order
	Transactions int64     `json:"transactions"`     // transactions on all tables, even if only some are restored
	Bytes        int64     `json:"bytes"`            // bytes of these transactions
	Last         string    `json:"last,omitempty"`   // GTID of the last of them
	LastTime     time.Time `json:"last_time,omitzero"`
	Stops        string    `json:"stops,omitempty"`   // why it would stop there
	Problem      string    `json:"problem,omitempty"` // why it is not possible; the other fields then describe what there is up to the obstacle
	Notes        []string  `json:"notes,omitempty"`

	Steps change.Plan `json:"steps,omitempty"` // what is done, in this order
}

// RollLog is the part of one binary log that would be applied.
type RollLog struct {
	Name         string `json:"name"`
	From         int64  `json:"from"` // bytes from the beginning of the log
	To           int64  `json:"to"`
	Transactions int64  `json:"transactions"`
}

// Roller applies the binary logs after a backup's position, up to a point.
type Roller interface {
	// Check says, before anything is changed, what would be applied. It is an error when the logs do not reach from the position
	// to the point; the plan then says how far they do.
	Check(ctx context.Context, r Roll) (RollPlan, error)
	// Roll applies them. After a kill it is called again with the same, and applies nothing twice: the server notes how far it came.
	Roll(ctx context.Context, r Roll) (Rolled, error)
	// Forget removes what the server recorded. It is called before the first Roll, because recreated tables have nothing of it, and after
	// the last.
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

	Drops    []string  `json:"drops,omitempty"`    // what is in the way and will be dropped; the first ones
	DropsAll int64     `json:"drops_all"`          // how many there are in total
	Findings []Finding `json:"findings,omitempty"` // what the server does not support
	Roll     *RollPlan `json:"roll,omitempty"`     // what is applied from the binary logs

	// With DryRun: all that runs besides schemas, tables and rows.
	Programs []PlannedProgram `json:"programs,omitempty"` // programs, views and sequences
	Accounts []PlannedAccount `json:"accounts,omitempty"`
	Settings []string         `json:"settings,omitempty"` // session settings while some of them are created

	Steps change.Plan `json:"steps"` // what is done, in this order; those that an interrupted restore has done are skipped

	Notes []string `json:"notes,omitempty"`
}

// PlannedProgram is a view, sequence, routine, package, trigger or event that will be created.
type PlannedProgram struct {
	Kind    string `json:"kind"`
	Schema  string `json:"schema"` // on the target
	Name    string `json:"name"`
	Table   string `json:"table,omitempty"`   // for a trigger: its table
	Definer string `json:"definer,omitempty"` // the account whose privileges it uses; empty: the account that restores
	On      bool   `json:"on,omitempty"`      // for an event: it is enabled at the end
}

// PlannedAccount is an account that will be created unless it exists, with its grants but no secrets.
type PlannedAccount struct {
	Name   string   `json:"name"`
	Grants []string `json:"grants,omitempty"`
}

// Finding is something that cannot be restored as it is.
type Finding struct {
	fleet.Trouble        // What is the object
	Mapped        string `json:"mapped,omitempty"` // what replaces it; empty: nothing
	Create        string `json:"create,omitempty"` // for a view or program that is not restored: its definition, so that a person can fix it
}

// UnmarshalJSON reads journals of earlier versions, too, in which why was called reason.
func (f *Finding) UnmarshalJSON(b []byte) error {
	type plain Finding
	x := struct {
		*plain
		Reason string `json:"reason"`
	}{plain: (*plain)(f)}
	err := json.Unmarshal(b, &x)
	f.Why = cmp.Or(f.Why, x.Reason)
	return err
}

// Progress is how far a restore is.
type Progress struct {
	Stage  string // in a word: tables, rows, indexes, compare, objects, binary logs
	Bytes  int64  // raw rows that are in, and compared ones
	Total  int64  // of both
	Tables int64  // that are done
	Of     int64
}

// TableResult is a restored table compared with the manifest.
type TableResult struct {
	Schema string `json:"schema"` // on the target
	Table  string `json:"table"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	Sum    string `json:"sum"`
	Wants  string `json:"wants,omitempty"` // the manifest's rows and sum, if they differ
	Equal  bool   `json:"equal"`
}

// Result is what a restore did.
type Result struct {
	Backup    repo.Header   `json:"backup"`
	Changed   bool          `json:"changed"` // something was changed, by this run or by the one that it resumes
	Resumed   bool          `json:"resumed"` // it resumed an interrupted restore
	Schemas   int64         `json:"schemas"`
	Tables    int64         `json:"tables"` // tables compared
	Objects   int64         `json:"objects"`
	Rows      int64         `json:"rows"`
	Bytes     int64         `json:"bytes"`
	Different []TableResult `json:"different,omitempty"`
	Rolled    *Rolled       `json:"rolled,omitempty"`
	Notes     []string      `json:"notes,omitempty"`
	Kept      []string      `json:"kept,omitempty"`      // accounts that already existed and were left unchanged
	LeftOut   []Finding     `json:"left_out,omitempty"`  // what was not restored; beyond a thousand they are only counted, in LeftOutAll
	Otherwise []Finding     `json:"otherwise,omitempty"` // what was restored in a different form

	LeftOutAll int64 `json:"left_out_all,omitempty"`

	Broken  []Finding `json:"broken,omitempty"`  // restored views that do not work, but did on the backup's server
	Orphans []Orphans `json:"orphans,omitempty"` // rows of tables that were not restored that refer to rows that no longer exist

	Seconds        float64 `json:"seconds"`         // from the first query to the last answer
	RowSeconds     float64 `json:"row_seconds"`     // of these, until all rows and indexes were loaded and compared
	SessionSeconds Phases  `json:"session_seconds"` // what the sessions did, summed over all sessions
}

// Orphans are rows of a table whose foreign key refers to rows that do not exist.
type Orphans struct {
	Schema     string `json:"schema"` // schema of the referring table
	Table      string `json:"table"`
	Constraint string `json:"constraint"` // the foreign key
	ToSchema   string `json:"to_schema"`  // schema of the referenced table
	ToTable    string `json:"to_table"`   // its name
	Rows       int64  `json:"rows"`
	Unknown    string `json:"unknown,omitempty"` // why they could not be counted
	Query      string `json:"query"`             // a statement that shows them

	all string // the statement that shows all rows that refer to any
}

// Phases are durations in seconds.
type Phases struct {
	Create  float64 `json:"create"`
	Load    float64 `json:"load"`
	Index   float64 `json:"index"`
	Compare float64 `json:"compare"`
}
