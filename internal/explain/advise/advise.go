// Package advise says what is wrong with a server before it hurts: facts in, the time passed in, findings out. It is pure; package gather
// reads the facts. Whatever it advises can be applied together: no statement takes away what another finding, a foreign key, a unique
// rule or a hint relies on.
package advise

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// Finding is something that costs, or will, with the statement that mends it.
type Finding = fleet.Advice

// Cost is what a finding costs now.
type Cost = fleet.AdviceCost

// How sure a finding can be.
const (
	Certain = fleet.Certain
	Likely  = fleet.Likely
)

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
func Rank(list []Finding) {
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(b.Cost.Seconds, a.Cost.Seconds), cmp.Compare(b.Cost.Bytes, a.Cost.Bytes),
			strings.Compare(a.ID, b.ID), strings.Compare(a.Object, b.Object))
	})
}
