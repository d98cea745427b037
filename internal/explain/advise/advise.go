// Package advise says what is wrong with a server before it hurts: facts in, the time passed in, findings out. It is pure; package gather
// reads the facts. Whatever it advises can be applied together: no statement takes away what another finding, a foreign key, a unique
// rule or a hint relies on.
package advise

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// Finding is something that costs, or will, with the statement that mends it.
type Finding struct {
	ID        string         `json:"id"`               // of the check: index.redundant
	Object    string         `json:"object,omitempty"` // schema.table, schema.table.index, user@host or a variable; empty: the server
	Severity  fleet.Severity `json:"severity"`
	What      string         `json:"what"`                // one sentence: what was seen
	Why       string         `json:"why,omitempty"`       // why it matters, in plain words
	Evidence  []string       `json:"evidence"`            // what was seen, each with its numbers
	Statement string         `json:"statement,omitempty"` // what mends it, as it can be run; empty: no statement does
	Advice    string         `json:"advice,omitempty"`    // what mends it where no statement does, or what to do before the statement
	Undo      string         `json:"undo,omitempty"`      // what takes the statement back
	Effect    string         `json:"effect,omitempty"`    // what the statement does to the server
	Sure      Sureness       `json:"sure"`
	Doubt     string         `json:"doubt,omitempty"` // what is not known, if it is not certain
	Cost      Cost           `json:"cost"`
	Since     time.Time      `json:"since,omitzero"`    // since when it is so, or was seen to be so; zero: unknown
	Servers   []string       `json:"servers,omitempty"` // of several that were asked: where it was found
}

// Sureness is how sure a finding is.
type Sureness string

// How sure a finding can be.
const (
	Certain Sureness = "certain" // what it says follows from what was read
	Likely  Sureness = "likely"  // it depends on statements or times that were not seen
)

// Cost is what a finding costs now. Findings are ranked by it within a severity.
type Cost struct {
	Seconds float64 `json:"seconds,omitempty"` // of load, per second: 0.5 is half a session
	Bytes   float64 `json:"bytes,omitempty"`   // of disk and memory
	Risk    string  `json:"risk,omitempty"`    // what can happen, in a few words
}

// Check is one of the things that are looked for.
type Check struct {
	ID    string // as the field calls it: schema.no_pk
	Title string // what it detects, in a few words
	Like  string // which other tools know it, and what they call it
}

// tableCheck looks at one table.
type tableCheck struct {
	Check
	look func(s *Server, t *Table) []Finding
}

// serverCheck looks at the server as a whole.
type serverCheck struct {
	Check
	look func(s *Server) []Finding
}

// Checks are all that this package looks for, by ID.
func Checks() []Check {
	var list []Check
	for _, c := range tableChecks() {
		list = append(list, c.Check)
	}
	for _, c := range serverChecks() {
		list = append(list, c.Check)
	}
	slices.SortFunc(list, func(a, b Check) int { return strings.Compare(a.ID, b.ID) })
	return list
}

func tableChecks() []tableCheck {
	return []tableCheck{
		{Check{"schema.no_pk", "tables without a primary key", "sys.schema_tables_with_no_primary_key; MySQL Shell"}, noPrimaryKey},
		{Check{"schema.autoinc", "AUTO_INCREMENT columns that are nearly used up", "sys.schema_auto_increment_columns"}, autoIncrement},
		{Check{"index.redundant", "indexes that another one of the table makes unnecessary", "pt-duplicate-key-checker; sys.schema_redundant_indexes"}, redundantIndexes},
	}
}

func serverChecks() []serverCheck { return nil }

// OfTable looks at one table. Of a server with very many they come one by one, so that nobody needs room for all.
func OfTable(s *Server, t *Table) (list []Finding) {
	for _, c := range tableChecks() {
		list = append(list, named(c.ID, c.look(s, t))...)
	}
	return list
}

// OfServer looks at the server as a whole.
func OfServer(s *Server) (list []Finding) {
	for _, c := range serverChecks() {
		list = append(list, named(c.ID, c.look(s))...)
	}
	return list
}

// named gives findings the ID of their check.
func named(id string, list []Finding) []Finding {
	for i := range list {
		list[i].ID = id
		if list[i].Sure == "" {
			list[i].Sure = Certain
		}
	}
	return list
}

// Rank sorts findings: the worst first, among equals what costs most, then by ID and object.
func Rank(list []Finding) { slices.SortStableFunc(list, Compare) }

// Compare orders findings as Rank does.
func Compare(a, b Finding) int {
	return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(b.Cost.Seconds, a.Cost.Seconds), cmp.Compare(b.Cost.Bytes, a.Cost.Bytes),
		strings.Compare(a.ID, b.ID), strings.Compare(a.Object, b.Object))
}
