package index

import (
	"time"

	"github.com/rissodb/risso/internal/explain/retire"
)

// RetireAnswer is what retiring indexes will do, and did.
type RetireAnswer struct {
	DryRun  bool            `json:"dry_run"`
	Indexes []RetiredAnswer `json:"indexes"`
}

// RetiredAnswer is one of them.
type RetiredAnswer struct {
	Object string   `json:"object"`          // schema.table.index
	Plan   []string `json:"plan"`            // what is done now
	Later  []string `json:"later"`           // what risso index check does
	Undo   string   `json:"undo"`            // what takes it back
	Notes  []string `json:"notes"`           // what a person should know before
	Phase  string   `json:"phase,omitempty"` // where it stands now; empty: nothing was done
}

// ListAnswer is where all indexes stand.
type ListAnswer struct {
	Indexes []StandAnswer `json:"indexes"`
}

// StandAnswer is where one index stands.
type StandAnswer struct {
	Server  string              `json:"server"`
	Object  string              `json:"object"` // schema.table.index
	Phase   retire.Phase        `json:"phase"`
	Hidden  time.Time           `json:"hidden,omitzero"`  // since when
	Due     time.Time           `json:"due,omitzero"`     // when it may be dropped
	Checked time.Time           `json:"checked,omitzero"` // when last
	Undo    string              `json:"undo,omitempty"`   // what takes it back now
	Worse   []retire.Regression `json:"worse,omitempty"`
	Log     []retire.Entry      `json:"log"`
}

// CheckAnswer is what a check found and did.
type CheckAnswer struct {
	DryRun  bool           `json:"dry_run"`
	Indexes []CheckedIndex `json:"indexes"`
}

// CheckedIndex is one index of a check.
type CheckedIndex struct {
	StandAnswer
	Watched int      `json:"watched"`           // classes of statements of its table that ran since it was hidden
	Fresh   int      `json:"fresh"`             // thereof such as did not run before
	Unasked []string `json:"unasked,omitempty"` // servers that are watched, too, and were not named
	Did     string   `json:"did"`               // what was done, in words
	Error   string   `json:"error,omitempty"`
}
