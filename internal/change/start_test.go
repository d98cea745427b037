package change

import "testing"

// TestSameStart: two readings of one start are at most two seconds apart, whichever clock goes ahead.
func TestSameStart(t *testing.T) {
	for apart, want := range map[int64]bool{0: true, 1: true, 2: true, 3: false, 1000: false} {
		for _, sign := range []int64{1, -1} {
			if got := sameStart(1_700_000_000, 1_700_000_000+sign*apart); got != want {
				t.Errorf("%d s apart: got one life %v, want %v", sign*apart, got, want)
			}
		}
	}
}
