package mysql

import (
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

// TestSemiSyncSides: the names of the plug-ins and variables by version.
func TestSemiSyncSides(t *testing.T) {
	for _, c := range []struct {
		version, plugin, library, prefix, count, replica string
		sides                                            int
	}{
		{"5.7.44", "rpl_semi_sync_master", "semisync_master.so", "rpl_semi_sync_master", "wait_for_slave_count", "rpl_semi_sync_slave", 1},
		{"8.0.25", "rpl_semi_sync_master", "semisync_master.so", "rpl_semi_sync_master", "wait_for_slave_count", "rpl_semi_sync_slave", 1},
		{"8.0.26", "rpl_semi_sync_source", "semisync_source.so", "rpl_semi_sync_source", "wait_for_replica_count", "rpl_semi_sync_replica", 2},
		{"9.7.0", "rpl_semi_sync_source", "semisync_source.so", "rpl_semi_sync_source", "wait_for_replica_count", "rpl_semi_sync_replica", 2},
		{"10.2.44-MariaDB", "rpl_semi_sync_master", "semisync_master.so", "rpl_semi_sync_master", "", "rpl_semi_sync_slave", 1},
		{"10.11.6-MariaDB", "", "", "rpl_semi_sync_master", "", "rpl_semi_sync_slave", 1},
	} {
		source, replica := Of(fleet.ServerOf(c.version, "")).SemiSyncSides()
		if s := source[0]; len(source) != c.sides || s.Plugin != c.plugin || s.Library != c.library || s.Prefix != c.prefix || s.Count != c.count || replica[0].Prefix != c.replica {
			t.Errorf("%s: got %+v, %+v, want %+v", c.version, source, replica, c)
		}
	}
}
