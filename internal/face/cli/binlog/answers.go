package binlog

import (
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/binlog/mirror"
)

// UndoneAnswer is the inverse of a transaction.
type UndoneAnswer struct {
	binlog.UndoResult
	SQL string `json:"sql"` // the statements
}

// AppliedAnswer is what was applied, or would be.
type AppliedAnswer struct {
	binlog.RollResult
	Steps change.Plan `json:"steps"` // what was done, or would be, in this order
}

// PurgedAnswer lists the mirrored logs that were removed.
type PurgedAnswer struct {
	DryRun bool              `json:"dry_run"`
	Logs   []mirror.Decision `json:"logs"`
	Steps  change.Plan       `json:"steps"` // what was done, or would be, in this order
}
