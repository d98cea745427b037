package fleet

import "time"

// Proof is what was measured of a finding's statement on a copy of its tables.
type Proof struct {
	Time      time.Time     `json:"time"`
	On        string        `json:"on"`   // the throw-away server
	Data      string        `json:"data"` // what the copy was made of, in words
	Statement string        `json:"statement"`
	Outcome   string        `json:"outcome"` // better, worse, mixed, or no difference
	Words     string        `json:"words"`
	Seconds   float64       `json:"seconds"` // that the statement took on the copy
	Classes   []ProvenClass `json:"classes"`
	Tables    []CopiedTable `json:"tables"`
	Worse     []string      `json:"worse"` // what got worse, in words; empty: nothing that was measured
	Notes     []string      `json:"notes"` // what was not measured, and why
}

// ProvenClass is a class of statements, or the INSERT of rows, before and after.
type ProvenClass struct {
	ID          string  `json:"id"` // insert: rows put into a copy of the table
	Fingerprint string  `json:"fingerprint"`
	Samples     int     `json:"samples"`     // statements with recorded parameters that were run
	RowsBefore  float64 `json:"rows_before"` // read by a call, as Handler_read counts
	RowsAfter   float64 `json:"rows_after"`  // the same after
	Before      float64 `json:"before"`      // seconds of a call, the median of the runs
	After       float64 `json:"after"`       // the same after
	Outcome     string  `json:"outcome"`     // as bench compare: faster, slower, no difference can be shown
	Verdict     string  `json:"verdict"`     // in words
}

// CopiedTable is a table of the copy.
type CopiedTable struct {
	Name string  `json:"name"`
	Rows float64 `json:"rows"` // in the copy
	Of   float64 `json:"of"`   // on the server, as it estimates
	All  bool    `json:"all"`  // every row was copied
}
