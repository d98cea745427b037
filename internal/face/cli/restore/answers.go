package restore

import (
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/physical"
)

// ForgottenAnswer is what was recorded about an interrupted restore.
type ForgottenAnswer struct {
	load.Forgotten
	DryRun bool `json:"dry_run"`
}

// FilesAnswer is a physical backup that runs in a sandbox.
type FilesAnswer struct {
	physical.Restored
	Sandbox string `json:"sandbox"` // the DSN of the server that runs on it
}
