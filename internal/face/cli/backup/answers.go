package backup

import (
	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql/snapshot"
)

// What commands write with -o json, where no room below has a type for the whole of it. docs/json.md is made from these types and
// their comments.

// Answer is what a backup brought.
type Answer struct {
	dump.Result
	To       string                `json:"to"`                 // the place
	Held     float64               `json:"throttled_seconds"`  // for how long it stood still because the server was busy
	Guardian []snapshot.GuardEvent `json:"guardian,omitempty"` // what was done to statements that waited for its locks
}

// CatalogueAnswer is what stands in a place.
type CatalogueAnswer struct {
	Repository string   `json:"repository"` // the place's identity
	Encrypted  bool     `json:"encrypted"`
	Backups    []listed `json:"backups"` // the oldest first
}

// ShownAnswer is what a backup holds.
type ShownAnswer struct {
	Tables []ShownTable `json:"tables"`
	shownRest
}

// shownRest is written when all tables were.
type shownRest struct {
	Header  repo.Header      `json:"header"`
	Signer  repo.PublicKey   `json:"signed_by"` // whose key signed it; empty: nobody's
	Schemas []*ShownSchema   `json:"schemas"`
	Objects map[string]int64 `json:"objects"` // how many views, triggers, routines, events and accounts, by kind
}

// PrunedAnswer is what went, and what stayed why.
type PrunedAnswer struct {
	From   string `json:"from"` // the place
	DryRun bool   `json:"dry_run"`
	repo.Pruned
}

// CopiedAnswer is what went to a second place.
type CopiedAnswer struct {
	From    string  `json:"from"` // the first place
	To      string  `json:"to"`   // the second place
	DryRun  bool    `json:"dry_run"`
	Seconds float64 `json:"seconds"`
	repo.Copied
}

// VerifiedAnswer is whether a place is whole.
type VerifiedAnswer struct {
	From    string  `json:"from"`  // the place
	Whole   bool    `json:"whole"` // nothing is missing or damaged
	Seconds float64 `json:"seconds"`
	repo.Verified
	Logs verifiedLogs `json:"mirrored_logs"`
}

// AcceptedAnswer names the backup that counts from now on.
type AcceptedAnswer struct {
	Accepted string `json:"accepted"` // the backup's name
}

// KeyAnswer is the key by which this account's backups are known.
type KeyAnswer struct {
	Key string `json:"key"` // the public half, for --trust
}
