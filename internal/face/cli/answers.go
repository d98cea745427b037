package cli

import (
	"time"

	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/physical"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/explain/trace"
	"github.com/rissodb/risso/internal/measure/compare"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/live"
)

// What commands write with -o json, where no room below has a type for the whole of it. docs/json.md is made from these types and
// their comments.

// backupAnswer is what a backup brought.
type backupAnswer struct {
	dump.Result
	To       string             `json:"to"`                 // the place
	Held     float64            `json:"throttled_seconds"`  // for how long it stood still because the server was busy
	Guardian []mysql.GuardEvent `json:"guardian,omitempty"` // what was done to statements that waited for its locks
}

// catalogueAnswer is what stands in a place.
type catalogueAnswer struct {
	Repository string   `json:"repository"` // the place's identity
	Encrypted  bool     `json:"encrypted"`
	Backups    []listed `json:"backups"` // the oldest first
}

// shownAnswer is what a backup holds.
type shownAnswer struct {
	Tables []shownTable `json:"tables"`
	shownRest
}

// shownRest is written when all tables were.
type shownRest struct {
	Header  repo.Header      `json:"header"`
	Signer  repo.PublicKey   `json:"signed_by"` // whose key signed it; empty: nobody's
	Schemas []*shownSchema   `json:"schemas"`
	Objects map[string]int64 `json:"objects"` // how many views, triggers, routines, events and accounts, by kind
}

// prunedAnswer is what went, and what stayed why.
type prunedAnswer struct {
	From   string `json:"from"` // the place
	DryRun bool   `json:"dry_run"`
	repo.Pruned
}

// copiedAnswer is what went to a second place.
type copiedAnswer struct {
	From    string  `json:"from"` // the first place
	To      string  `json:"to"`   // the second place
	DryRun  bool    `json:"dry_run"`
	Seconds float64 `json:"seconds"`
	repo.Copied
}

// verifiedAnswer is whether a place is whole.
type verifiedAnswer struct {
	From    string  `json:"from"`  // the place
	Whole   bool    `json:"whole"` // nothing is missing or damaged
	Seconds float64 `json:"seconds"`
	repo.Verified
	Logs verifiedLogs `json:"mirrored_logs"`
}

// acceptedAnswer names the backup that counts from now on.
type acceptedAnswer struct {
	Accepted string `json:"accepted"` // the backup's name
}

// keyAnswer is the key by which this account's backups are known.
type keyAnswer struct {
	Key string `json:"key"` // the public half, for --trust
}

// forgottenAnswer is what was known of a restore that was cut off.
type forgottenAnswer struct {
	load.Forgotten
	DryRun bool `json:"dry_run"`
}

// filesAnswer is a physical backup that runs in a sandbox.
type filesAnswer struct {
	physical.Restored
	Sandbox string `json:"sandbox"` // the DSN of the server that runs on it
}

// undoneAnswer is the inverse of a transaction.
type undoneAnswer struct {
	binlog.UndoResult
	SQL string `json:"sql"` // the statements
}

// purgedAnswer is which mirrored logs went.
type purgedAnswer struct {
	DryRun bool              `json:"dry_run"`
	Logs   []mirror.Decision `json:"logs"`
}

// topAnswer is a line of top: one each second.
type topAnswer struct {
	Time      time.Time  `json:"time"`
	Instances []live.Row `json:"instances"` // the worst first
}

// statementsAnswer is what a trace would run.
type statementsAnswer struct {
	Statements []string `json:"statements"`
}

// connectionsAnswer is which connections could be traced.
type connectionsAnswer struct {
	Connections []trace.Connection `json:"connections"`
}

// restoredAnswer is what a killed command had left set on a server.
type restoredAnswer struct {
	Found      bool       `json:"found"` // something was on record
	DryRun     bool       `json:"dry_run"`
	Since      *time.Time `json:"since,omitempty"`     // when it was set
	Restarted  *bool      `json:"restarted,omitempty"` // the server was restarted since, so that nothing is to be put back
	Statements []string   `json:"statements,omitzero"` // that put it back
}

// comparisonPlan is what a comparison would do.
type comparisonPlan struct {
	A        string        `json:"a"` // the first side
	B        string        `json:"b"` // the second side
	Workload string        `json:"workload"`
	Order    string        `json:"order"`    // of the runs, as ABBA…
	Seconds  float64       `json:"seconds"`  // how long it will take
	Settings *compare.Plan `json:"settings"` // that would be set; null: none
}

// workloadAnswer is a workload that bench knows.
type workloadAnswer struct {
	Name    string `json:"name"`
	Summary string `json:"summary"` // what it does, in a line
}

// grantsAnswer is what an account needs.
type grantsAnswer struct {
	Server     string      `json:"server"` // its version
	Account    string      `json:"account"`
	Jobs       []mysql.Job `json:"jobs"`
	Statements []string    `json:"statements"` // GRANTs, without semicolons
}

// doctorAnswer is what stands in the way.
type doctorAnswer struct {
	Bad      int       `json:"bad"` // how many findings are bad; the exit code is 1 then
	Findings []finding `json:"findings"`
}

// configAnswer is what stands in a config file that is right.
type configAnswer struct {
	File    string             `json:"file"`
	Servers []configuredServer `json:"servers"`
}

// configuredServer is a server of the config file.
type configuredServer struct {
	Name      string `json:"name"`
	Address   string `json:"address"`
	Protected bool   `json:"protected"` // it has a protect block
}

// sandboxesAnswer is which sandboxes there are.
type sandboxesAnswer struct {
	Sandboxes []*sandbox.Sandbox `json:"sandboxes"`
}

// serversAnswer is which servers are installed here.
type serversAnswer struct {
	Servers []sandbox.Server `json:"servers"`
	Looked  []string         `json:"looked"` // where they were looked for
}

// resultsAnswer is what statements gave, one after the other.
type resultsAnswer struct {
	Results []sandbox.Result `json:"results"`
}

// removedAnswer is which sandboxes are gone.
type removedAnswer struct {
	Removed []string `json:"removed"` // their names
}

// tokensAnswer is who has a token.
type tokensAnswer struct {
	Tokens []tokenAnswer `json:"tokens"`
}

// tokenAnswer is a token; its secret is told once, when it is made.
type tokenAnswer struct {
	Name     string     `json:"name"`
	ID       string     `json:"id"`
	Role     state.Role `json:"role"` // look or act
	Created  time.Time  `json:"created"`
	LastUsed *time.Time `json:"last_used"` // null: never
}

// madeToken is a token that was just made.
type madeToken struct {
	Name  string     `json:"name"`
	ID    string     `json:"id"`
	Role  state.Role `json:"role"`  // look or act
	Token string     `json:"token"` // the secret: it is stored nowhere
}

// revokedAnswer is whose token does not count any more.
type revokedAnswer struct {
	Revoked []string `json:"revoked"` // the names
}
