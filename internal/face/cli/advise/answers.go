package advise

import (
	"time"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/advice"
)

// Answer is what is wrong with one or several servers.
type Answer struct {
	Findings []advise.Finding `json:"findings"` // the worst first
	Servers  []Looked         `json:"servers"`
}

// Looked is a server that was looked at.
type Looked struct {
	Name       string          `json:"name"`
	Version    string          `json:"version,omitempty"`
	Tables     int             `json:"tables"`                       // that were looked at
	Seconds    float64         `json:"seconds"`                      // that it took
	Statements int             `json:"statements"`                   // that it was asked
	CPU        *float64        `json:"server_cpu_seconds,omitempty"` // that the server's process used meanwhile, for all that it did; absent: it does not run on this machine
	Watched    float64         `json:"watched_seconds"`              // for how long it was watched for what is wrong at the moment
	More       []advise.More   `json:"more,omitempty"`               // findings that are not listed, because there are very many of one ID
	Unknown    []fleet.Trouble `json:"unknown,omitempty"`            // what could not be read, so that nothing was looked for in it
	Error      string          `json:"error,omitempty"`              // why nothing is known of it
}

// ChecksAnswer are all things that are looked for.
type ChecksAnswer struct {
	Checks []CheckAnswer `json:"checks"`
}

// CheckAnswer is one of them.
type CheckAnswer struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Like  string `json:"like,omitempty"` // what other tools call it
}

// ProofAnswer is what was measured of a finding's statement.
type ProofAnswer struct {
	ID     string       `json:"id"`
	Object string       `json:"object"` // what the finding is about
	Proof  advise.Proof `json:"proof"`
}

// KeptAnswer is what a running risso serve keeps.
type KeptAnswer = advice.Answer

// KeptFinding is one finding of it.
type KeptFinding = advice.Kept

// DecidedAnswer is what was decided, or taken back.
type DecidedAnswer struct {
	Kind    string            `json:"kind,omitempty"`    // accepted, postponed or silenced
	Servers []string          `json:"servers,omitempty"` // names of those that have the finding
	Until   time.Time         `json:"until,omitzero"`    // when it is told again; absent: when it gets worse, or somebody undoes it
	Undone  []advice.Decision `json:"undone,omitempty"`  // what is advice again
}
