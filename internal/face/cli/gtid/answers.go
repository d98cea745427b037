package gtid

import "github.com/rissodb/risso/internal/avail/errant"

// SetAnswer is a set that was worked out.
type SetAnswer struct {
	Set   string  `json:"set"`   // in the server's own form; "" is the empty set
	Count *uint64 `json:"count"` // transactions in it; null: MariaDB's positions do not tell
}

// SubsetAnswer is whether a set is part of another.
type SubsetAnswer struct {
	Subset  bool   `json:"subset"`  // all of the first is in the second
	Missing string `json:"missing"` // what is in the first and not in the second
}

// ErrantAnswer is what replicas have that others have not.
type ErrantAnswer struct {
	Servers []errant.Verdict `json:"servers"`
}

// WhereAnswer is where transactions are.
type WhereAnswer struct {
	Places []errant.Place `json:"places"`
	Notes  []string       `json:"notes"` // servers that could not be asked, and logs that could not be read
}

// RepairAnswer is what a repair did, or would do.
type RepairAnswer struct {
	Plan    errant.Plan `json:"plan"`
	DryRun  bool        `json:"dry_run"`
	Done    int         `json:"done"`              // steps
	Journal string      `json:"journal,omitempty"` // file that says what was done
	Saved   string      `json:"saved,omitempty"`   // file with the plan
}

// BackAnswer is what a repair that was killed left, and what was done about it.
type BackAnswer struct {
	Server string            `json:"server"`
	DryRun bool              `json:"dry_run"`
	Left   []errant.Returned `json:"left"` // none: nothing is left
}
