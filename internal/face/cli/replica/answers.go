package replica

import (
	"github.com/rissodb/risso/internal/avail/repoint"
)

// Answer is what is to be done to replicas, and was.
type Answer struct {
	DryRun   bool      `json:"dry_run"`
	Replicas []Pointed `json:"replicas"` // in the order in which they are done
}

// Pointed is one replica that is pointed elsewhere, or told to stay behind.
type Pointed struct {
	Replica string   `json:"replica"`      // its name
	Channel string   `json:"channel"`      // "" for the only one
	From    string   `json:"from"`         // address that it replicated from
	To      string   `json:"to,omitempty"` // address that it is to replicate from; empty: the same
	Plan    []string `json:"plan"`         // what is done
	Notes   []string `json:"notes"`        // what a person should know before
	Undo    string   `json:"undo"`         // what takes it back when it is done
	Done    bool     `json:"done"`
	Journal string   `json:"journal,omitempty"` // file that says what was done
	Error   string   `json:"error,omitempty"`   // why it was not done; the last one
}

// SkipAnswer is the transaction that is passed over.
type SkipAnswer struct {
	DryRun      bool     `json:"dry_run"`
	Replica     string   `json:"replica"`           // its name
	Channel     string   `json:"channel"`           // "" for the only one
	Error       string   `json:"error"`             // why it cannot be applied
	Transaction string   `json:"transaction"`       // its GTID, or its place in the source's log
	Would       []string `json:"would"`             // what it would have changed
	Unknown     string   `json:"unknown,omitempty"` // why that is not known
	Plan        []string `json:"plan"`              // what is done
	Notes       []string `json:"notes"`             // what a person should know before
	Done        bool     `json:"done"`
	After       string   `json:"after,omitempty"`   // how the channel went on
	Journal     string   `json:"journal,omitempty"` // file that says what was done
}

// BackAnswer is what was left of moves that were cut off, and given back.
type BackAnswer struct {
	DryRun  bool   `json:"dry_run"`
	Servers []Back `json:"servers"` // on which something was left
}

// Back is one server of them.
type Back struct {
	Server string             `json:"server"`
	Left   []repoint.Returned `json:"left"`
	Done   bool               `json:"done"` // it was given back
}
