// Package events keeps rows: what classes of statements cost in each minute, samples of them, and their plans.
//
// There are two stores behind one interface: DuckDB, embedded, in one file of the data folder, in builds with cgo;
// and ClickHouse, over its native protocol, when one machine is not enough. Both answer the same queries, and one suite of tests runs
// on both. DESIGN.md explains the design.
package events

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/aside"
)

// The errors that a caller may want to distinguish.
var (
	// ErrNotBuilt says that this program was built without cgo and so has no embedded columnar store.
	ErrNotBuilt = errors.New("the embedded columnar store (DuckDB) is not in this build of Risso, which was built without cgo")
	// ErrInUse says that another process has the file open.
	ErrInUse = errors.New("another process is using the store of statements")
	// ErrNewer says that a newer Risso or a newer DuckDB wrote the file. It is left alone.
	ErrNewer = errors.New("the store of statements was written by a newer Risso")
	// ErrMemory says that questions need more memory than the store may take.
	ErrMemory = errors.New("queries about statements have used all the memory they may use")
	// ErrBadQuestion says that the question, not the store, is at fault.
	ErrBadQuestion = errors.New("bad query")
)

// Bucket counts calls by their latency. Number is the bucket's number in MySQL's own histograms: bucket n holds
// calls that took less than 10 µs · 10^(n/50) and not less than the bucket before, so a quantile read from them is at
// most 4.7 % too high (MySQL manual, "Statement Histogram Summary Tables").
type Bucket struct {
	Number int16
	Calls  int64
}

// Buckets is how many buckets there are; the last one also holds all that took longer.
const Buckets = 450

// Row is what the statements of one class cost in one minute, in one schema.
type Row struct {
	Class  string // class ID, 32 upper-case hex digits
	Schema string // the default schema they ran in; empty when there was none
	User   string // who ran them, if the source says; else empty

	fleet.Cost
	Latency []Bucket // of as many calls as the source tells, ascending; nil when it does not
}

// UnmarshalJSON reads what older versions wrote, too: their costs had other names in JSON.
func (r *Row) UnmarshalJSON(b []byte) error {
	type row Row
	var old struct {
		LockSeconds, MaxSeconds                     float64
		RowsSent, RowsExamined, RowsAffected        int64
		TmpTables, TmpDiskTables, NoIndex, SortRows int64
	}
	if err := errors.Join(json.Unmarshal(b, (*row)(r)), json.Unmarshal(b, &old)); err != nil {
		return err
	}
	r.Cost.Add(fleet.Cost{LockSeconds: old.LockSeconds, MaxSeconds: old.MaxSeconds, RowsSent: old.RowsSent, RowsExamined: old.RowsExamined, RowsAffected: old.RowsAffected,
		TmpTables: old.TmpTables, TmpDiskTables: old.TmpDiskTables, NoIndex: old.NoIndex, SortRows: old.SortRows})
	return nil
}

// Minute is the statements of one instance in one minute.
type Minute struct {
	Instance string
	Time     int64 // unix seconds at which the minute began
	Rows     []Row // one for each class, schema and user
}

// Class is what a class of statements is, and where it was seen.
type Class struct {
	Instance    string
	ID          string // 32 upper-case hex digits
	Digest      string // the server's own DIGEST, where it has one
	PtID        string // what pt-query-digest calls the class, where that is known
	Fingerprint string
	Verb        string // SELECT, INSERT, …
	Tables      string // schema.table, parted by commas
	FirstSeen   int64  // unix seconds
	LastSeen    int64
}

// Sample is one statement as it was run. Its text is stored unchanged: a caller that must not keep literals hides them first.
type Sample struct {
	Instance string  `json:"instance"`
	Class    string  `json:"-"`
	Time     int64   `json:"time"` // unix seconds
	Text     string  `json:"text"`
	Seconds  float64 `json:"seconds"`
	Schema   string  `json:"schema,omitempty"`
	User     string  `json:"user,omitempty"`
	Host     string  `json:"host,omitempty"`
}

// Plan is an execution plan that a class had.
type Plan struct {
	Instance  string `json:"instance"`
	Class     string `json:"-"`
	Schema    string `json:"schema,omitempty"`
	ID        string `json:"id"` // equal for plans of equal shape
	FirstSeen int64  `json:"first"`
	LastSeen  int64  `json:"last"`
	Origin    string `json:"origin"` // "explain": by EXPLAIN FORMAT=JSON; "running": by EXPLAIN FOR CONNECTION while it ran; "slow log": MariaDB's explain lines
	Text      string `json:"text"`   // as the server gave it
}

// Flip is the moment at which a class was first seen to have another plan than before.
type Flip struct {
	Instance string `json:"instance"`
	Class    string `json:"-"`
	Schema   string `json:"schema,omitempty"`
	Time     int64  `json:"time"`
	Old      string `json:"old"` // plan IDs
	New      string `json:"new"`
}

// Store keeps the statements of all instances. All methods may be called from any goroutine; each is bounded in time
// and memory, and returns ErrBadQuestion for a question that makes no sense.
type Store interface {
	// AddMinutes stores minutes; each is stored whole or not at all. One that is there already stays as it is: twice is
	// once. Those older than minutes are kept are left out. It tells how many were new. A minute without rows says that the
	// instance was read and nothing ran.
	AddMinutes(ctx context.Context, minutes ...Minute) (int, error)
	// AddActivity stores what sessions were found doing, minute by minute; as with AddMinutes, twice is once.
	AddActivity(ctx context.Context, minutes ...ActivityMinute) (int, error)
	// AddClasses notes classes; one that is known gets the earlier first and the later last time. A class without a
	// fingerprint is one that was noted before and is seen again; its PtID is taken if none was known.
	AddClasses(ctx context.Context, classes ...Class) error
	// AddSamples stores samples; the same class at the same second of the same instance is stored once.
	AddSamples(ctx context.Context, samples ...Sample) error
	// AddPlan notes that a class was seen with a plan at p.LastSeen. If its last plan of the same origin was another one, it
	// returns the flip: one plan has different IDs in different formats.
	AddPlan(ctx context.Context, p Plan) (*Flip, error)
	// Classes lists what is known of the classes of an instance, most recently seen first; at most limit.
	Classes(ctx context.Context, instance string, limit int) ([]Class, error)
	// Prune deletes the minutes, activity and samples from before minutes, and all from before everything. What is in hours that are not
	// rolled up yet stays, and ClickHouse deletes a month when all of it is older.
	Prune(ctx context.Context, minutes, everything time.Time) error

	// Top returns the classes that cost most in a range.
	Top(ctx context.Context, q TopQuestion) (*TopAnswer, error)
	// Class returns the history of one class.
	Class(ctx context.Context, q ClassQuestion) (*ClassAnswer, error)
	// Schemas returns what ran in each default schema in a range, the most costly first; no instances means all.
	Schemas(ctx context.Context, r Range, instances []string) ([]Part, error)
	// Covered returns when each instance was read in a range, by instance and time, as finely as about so many points; no
	// instances means all.
	Covered(ctx context.Context, r Range, instances []string, points int) ([]Covered, error)
	// Plan returns one plan of a class, the newest when several instances or schemas have it; "" means any instance. nil
	// when there is none.
	Plan(ctx context.Context, class, id, instance string) (*Plan, error)
	// Compare returns what changed between two ranges.
	Compare(ctx context.Context, q CompareQuestion) (*CompareAnswer, error)

	// Damage reports what was set aside when the store was opened; nil when nothing was.
	Damage() *aside.Damage
	// Name says what the store is, for people; without a password.
	Name() string
	Close() error
}

// Limits of what one question may ask for.
const (
	MaxLimit  = 500  // classes in an answer
	MaxPoints = 1500 // points of a history
	minute    = 60
	hour      = 3600
	day       = 24 * hour
)

// key is how a class is stored in the tables: the first 16 digits of its ID as a number. Two of a million classes share
// one with a chance of one in forty million.
func key(id string) (int64, error) {
	if len(id) != 32 {
		return 0, badQuestion("a class ID has 32 hex digits, %q has %d", id, len(id))
	}
	u, err := strconv.ParseUint(id[:16], 16, 64)
	if err != nil {
		return 0, badQuestion("a class ID consists of hex digits, not %q", id)
	}
	return int64(u), nil
}

// checkMinutes refuses what cannot be stored and leaves out minutes in which nothing ran and those from before pruned: their
// hours cannot be rebuilt, because the other minutes are gone.
func checkMinutes(minutes []Minute, pruned int64) ([]Minute, error) {
	list := make([]Minute, 0, len(minutes))
	for _, m := range minutes {
		if m.Instance == "" || m.Time <= 0 || m.Time%minute != 0 {
			return nil, badQuestion("a minute needs an instance and must begin at a whole minute, not %q at %d", m.Instance, m.Time)
		}
		if len(m.Rows) > 0 && m.Time >= pruned {
			list = append(list, m)
		}
	}
	return list, nil
}

// Add adds another row of the same class, schema and user.
func (r *Row) Add(o Row) {
	r.Cost.Add(o.Cost)
	r.Latency = joinBuckets(append(append([]Bucket(nil), r.Latency...), o.Latency...))
}
