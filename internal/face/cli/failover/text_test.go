package failover

import (
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/binlog"
)

// TestConflictText: a conflict says where it is, if that is known.
func TestConflictText(t *testing.T) {
	var out strings.Builder
	reappliedText(&out, &binlog.ReapplyPlan{Transactions: []binlog.Reapplied{{State: binlog.ReapplyUnchecked, Conflicts: []binlog.Conflict{
		{Table: "s.t", Row: "id=1", Because: "the row is not there any more"}, {Unchecked: true, Because: "it was logged as a statement"}}}}})
	for _, want := range []string{"    s.t id=1: the row is not there any more\n", "    it was logged as a statement\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %q, want %q in it", out.String(), want)
		}
	}
}
