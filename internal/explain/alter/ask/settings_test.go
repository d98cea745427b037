package ask

import (
	"slices"
	"testing"

	"github.com/rissodb/risso/internal/explain/alter"
)

// TestSettings: what the server does to so many pages at a time is cut as its memory for pages is. Else a sandbox's small memory would be emptied each
// second, and a copy be forecast to take twice as long.
func TestSettings(t *testing.T) {
	for _, c := range []struct {
		share  float64
		memory string
		scan   string
	}{
		{0.5, "loose_innodb_buffer_pool_size=134217728", "loose_innodb_lru_scan_depth=512"},
		{0.05, "loose_innodb_buffer_pool_size=25165824", "loose_innodb_lru_scan_depth=100"},
	} {
		f := alter.Facts{Variables: map[string]string{"innodb_buffer_pool_size": "268435456", "innodb_lru_scan_depth": "1024"}}
		if got := settings(&f, c.share); !slices.Contains(got, c.memory) || !slices.Contains(got, c.scan) {
			t.Errorf("a share of %g: got %q; want %s and %s in it", c.share, got, c.memory, c.scan)
		}
	}
}
