package ask

import (
	"slices"
	"strconv"
	"testing"

	"github.com/rissodb/risso/internal/explain/alter"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// TestSettings: what the server does to so many pages at a time is cut as its memory for pages is. Else a sandbox's small memory would be emptied each
// second, and a copy be forecast to take twice as long. Of the redo log only what InnoDB does not keep free is cut.
func TestSettings(t *testing.T) {
	for _, c := range []struct {
		share, redo float64 // MiB
		want        []string
	}{
		{0.5, 100, []string{"loose_innodb_buffer_pool_size=134217728", "loose_innodb_lru_scan_depth=512", "loose_innodb_redo_log_capacity=57147392"}},
		{0.05, 100, []string{"loose_innodb_buffer_pool_size=25165824", "loose_innodb_lru_scan_depth=100", "loose_innodb_redo_log_capacity=14208204"}},
		{0.05, 8, []string{"loose_innodb_redo_log_capacity=8388608"}},
		{1, 100, []string{"loose_innodb_buffer_pool_size=268435456", "loose_innodb_redo_log_capacity=104857600"}},
	} {
		f := alter.Facts{Server: mysql.Server{Server: fleet.Server{Flavour: fleet.FlavourMySQL, Number: 90704}}, Variables: map[string]string{"innodb_buffer_pool_size": "268435456", "innodb_lru_scan_depth": "1024",
			"innodb_redo_log_capacity": strconv.FormatFloat(c.redo*(1<<20), 'f', 0, 64)}}
		got := settings(&f, c.share)
		for _, w := range c.want {
			if !slices.Contains(got, w) {
				t.Errorf("a share of %g: got %q; want %s in it", c.share, got, w)
			}
		}
	}
}
