package alter

import (
	core "github.com/rissodb/risso/internal/explain/alter"
	"github.com/rissodb/risso/internal/explain/alter/perform"
)

// RunAnswer is what was planned, and done.
type RunAnswer struct {
	Plan    core.Plan      `json:"plan"`
	DryRun  bool           `json:"dry_run"`
	Servers []ServerAnswer `json:"servers"`
}

// ServerAnswer is what was done on one server.
type ServerAnswer struct {
	Server string         `json:"server"`
	Done   bool           `json:"done"`
	Error  string         `json:"failed,omitempty"` // why not
	Result perform.Result `json:"result"`
}
