package backup

import (
	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql/snapshot"
)

// What commands write with -o json, where no room below has a type for the whole of it. docs/json.md is made from these types and
// their comments.

// Answer is the result of a backup.
type Answer struct {
	dump.Result
	To       string                `json:"to"`                 // the place
	Held     float64               `json:"throttled_seconds"`  // how long it paused because the server was busy
	Guardian []snapshot.GuardEvent `json:"guardian,omitempty"` // what was done about statements that its locks blocked
}

// CatalogueAnswer lists the backups of a place.
type CatalogueAnswer struct {
	Repository string   `json:"repository"` // the place's identity
	Encrypted  bool     `json:"encrypted"`
	Backups    []listed `json:"backups"` // oldest first
}

// ShownAnswer is what a backup contains.
type ShownAnswer struct {
	Tables []ShownTable `json:"tables"`
	shownRest
}

// shownRest is written when all tables were.
type shownRest struct {
	Header  repo.Header      `json:"header"`
	Signer  repo.PublicKey   `json:"signed_by"` // the key that signed it; empty: unsigned
	Schemas []*ShownSchema   `json:"schemas"`
	Objects map[string]int64 `json:"objects"` // how many views, triggers, routines, events and accounts, by kind
}

// PrunedAnswer is what was removed, and what was kept and why.
type PrunedAnswer struct {
	From   string `json:"from"` // the place
	DryRun bool   `json:"dry_run"`
	repo.Pruned
}

// CopiedAnswer is what was copied to a second place.
type CopiedAnswer struct {
	From    string  `json:"from"` // the first place
	To      string  `json:"to"`   // the second place
	DryRun  bool    `json:"dry_run"`
	Seconds float64 `json:"seconds"`
	repo.Copied
}

// VerifiedAnswer is the result of verifying a place.
type VerifiedAnswer struct {
	From    string  `json:"from"`  // the place
	Whole   bool    `json:"whole"` // nothing is missing or damaged
	Seconds float64 `json:"seconds"`
	repo.Verified
	Logs verifiedLogs `json:"mirrored_logs"`
}

// AcceptedAnswer names the backup that was accepted.
type AcceptedAnswer struct {
	Accepted string `json:"accepted"` // the backup's name
}

// KeyAnswer is the key that identifies this account's backups.
type KeyAnswer struct {
	Key string `json:"key"` // the public half, for --trust
}
