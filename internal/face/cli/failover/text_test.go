package failover

import (
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/avail/failover"
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

// TestReceiptText: a receipt names the old primary, if there was one.
func TestReceiptText(t *testing.T) {
	var out strings.Builder
	(&receipt{}).text(&out, ReceiptsAnswer{Receipts: []failover.Receipt{{Kind: failover.Failover, Group: "shop", Old: "db1", New: "db2"}, {Kind: failover.Failover, Group: "shop", New: "db2"}}})
	for _, want := range []string{"failover of shop from db1 to db2, epoch", "failover of shop to db2, epoch"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %q, want %q in it", out.String(), want)
		}
	}
}
