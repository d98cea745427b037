package fleet

import "time"

// Advice is something that costs, or will, with the statement that mends it: a finding of risso advise.
type Advice struct {
	ID        string     `json:"id"`               // of the check: index.redundant
	Object    string     `json:"object,omitempty"` // schema.table, schema.table.index, user@host or a variable; empty: the server
	Severity  Severity   `json:"severity"`
	What      string     `json:"what"`                // one sentence: what was seen
	Why       string     `json:"why,omitempty"`       // why it matters, in plain words
	Evidence  []string   `json:"evidence"`            // what was seen, each with its numbers
	Statement string     `json:"statement,omitempty"` // what mends it, as it can be run; empty: no statement does
	Advice    string     `json:"advice,omitempty"`    // what mends it where no statement does, or what to do before the statement
	Undo      string     `json:"undo,omitempty"`      // what takes the statement back
	Effect    string     `json:"effect,omitempty"`    // what the statement does to the server
	Sure      Sureness   `json:"sure"`
	Doubt     string     `json:"doubt,omitempty"` // what is not known, if it is not certain
	Cost      AdviceCost `json:"cost"`
	Since     time.Time  `json:"since,omitzero"`    // since when it is so, or was seen to be so; zero: unknown
	Proof     *Proof     `json:"proof,omitempty"`   // what risso advise prove measured of the statement
	Servers   []string   `json:"servers,omitempty"` // of several that were asked: where it was found
}

// Sureness is how sure advice is.
type Sureness string

// How sure advice can be.
const (
	Certain Sureness = "certain" // what it says follows from what was read
	Likely  Sureness = "likely"  // it depends on statements or times that were not seen
)

// AdviceCost is what something costs now. Advice is ranked by it within a severity.
type AdviceCost struct {
	Seconds float64 `json:"seconds,omitempty"` // of load, per second: 0.5 is half a session
	Bytes   float64 `json:"bytes,omitempty"`   // of disk and memory
	Risk    string  `json:"risk,omitempty"`    // what can happen, in a few words
}
