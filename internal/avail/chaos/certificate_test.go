package chaos

import (
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/avail/chaos/ledger"
)

// TestDiffer: members that have as many rows which were never acknowledged, and not the same, differ.
func TestDiffer(t *testing.T) {
	for which, want := range map[string]bool{"aa": false, "bb": true} {
		c := Certificate{Final: []ledger.Found{{Server: "db1", Unacknowledged: 1, Which: "aa"}, {Server: "db2", Unacknowledged: 1, Which: which}}}
		c.violations()
		if got := slices.ContainsFunc(c.Violations, func(v string) bool { return strings.Contains(v, "and not the same: they differ") }); got != want {
			t.Errorf("%s: %q", which, c.Violations)
		}
	}
}
