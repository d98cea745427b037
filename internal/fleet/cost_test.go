package fleet_test

import (
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

func TestCost(t *testing.T) {
	before := fleet.Cost{Calls: 10, Seconds: 1.5, LockSeconds: 0.25, RowsSent: 1, RowsExamined: 2, RowsAffected: 3, Errors: 4, Warnings: 5, TmpTables: 6, TmpDiskTables: 7,
		NoIndex: 8, SortRows: 9, MaxSeconds: 0.5}
	added := fleet.Cost{Calls: 1, Seconds: 0.75, LockSeconds: 0.5, RowsSent: 20, RowsExamined: 30, RowsAffected: 40, Errors: 50, Warnings: 60, TmpTables: 70, TmpDiskTables: 80,
		NoIndex: 90, SortRows: 100, MaxSeconds: 0.75}
	now := before
	now.Add(added)
	if want := (fleet.Cost{Calls: 11, Seconds: 2.25, LockSeconds: 0.75, RowsSent: 21, RowsExamined: 32, RowsAffected: 43, Errors: 54, Warnings: 65, TmpTables: 76, TmpDiskTables: 87,
		NoIndex: 98, SortRows: 109, MaxSeconds: 0.75}); now != want {
		t.Errorf("sum: got %+v, want %+v", now, want)
	}
	if got := now.Since(before); got != added {
		t.Errorf("difference: got %+v, want %+v", got, added)
	}
	slower := now
	slower.MaxSeconds = before.MaxSeconds
	if got := slower.Since(before); got.MaxSeconds != 0 {
		t.Errorf("the slowest call was earlier: got %v, want 0", got.MaxSeconds)
	}
	fell := now
	fell.RowsSent, fell.LockSeconds = 0, 0
	if got := fell.Since(before); got.RowsSent != 0 || got.LockSeconds != 0 || got.Calls != 1 {
		t.Errorf("a counter that fell by itself: got %+v; want RowsSent 0, LockSeconds 0, Calls 1", got)
	}
	for _, c := range []struct {
		name string
		now  fleet.Cost
		want bool
	}{{"as it was", before, false}, {"fewer calls", fleet.Cost{Calls: 9, Seconds: 2}, true}, {"less time", fleet.Cost{Calls: 10, Seconds: 1}, true}} {
		if got := c.now.Anew(before); got != c.want {
			t.Errorf("%s began anew: got %v, want %v", c.name, got, c.want)
		}
		if got := c.now.Since(before); c.want && got != c.now {
			t.Errorf("%s: got %+v, want all of it", c.name, got)
		}
	}
}
