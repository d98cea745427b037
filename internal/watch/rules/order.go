package rules

import (
	"cmp"
	"slices"
	"strings"
)

// sortEntries sorts findings: the worst first, among equals by the order of the
// rules, and then the oldest first.
func sortEntries(es []*entry) {
	slices.SortFunc(es, func(a, b *entry) int {
		return cmp.Or(
			cmp.Compare(b.finding.Severity, a.finding.Severity),
			cmp.Compare(a.order, b.order),
			a.finding.Since.Compare(b.finding.Since),
			strings.Compare(a.finding.ID, b.finding.ID),
			strings.Compare(a.finding.What, b.finding.What),
		)
	})
}

// rank orders the states.
func (s State) rank() int {
	switch s {
	case StateDown:
		return 4
	case StateCritical:
		return 3
	case StateWarning:
		return 2
	case StateNew:
		return 1
	default:
		return 0
	}
}

// Compare orders verdicts for slices.SortFunc, the worst first: by state, then by
// the number of findings, then the newest trouble first. Verdicts that differ in
// nothing of it are equal, and their names decide.
func Compare(a, b Verdict) int {
	c := cmp.Or(
		cmp.Compare(b.State.rank(), a.State.rank()),
		cmp.Compare(len(b.Findings), len(a.Findings)),
	)
	if c != 0 || a.State.rank() <= StateNew.rank() {
		return c
	}
	return b.Since.Compare(a.Since)
}
