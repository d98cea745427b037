package mysql

import "testing"

// TestOldReplicaVariable: only words that were renamed are turned into those before.
func TestOldReplicaVariable(t *testing.T) {
	for name, want := range map[string]string{
		"rpl_semi_sync_source_enabled": "rpl_semi_sync_master_enabled", "replica_parallel_workers": "slave_parallel_workers", "log_replica_updates": "log_slave_updates",
		"Rpl_semi_sync_replica_status": "rpl_semi_sync_slave_status", "group_replication_group_name": "group_replication_group_name", "slave_net_timeout": "slave_net_timeout",
	} {
		if got := OldReplicaVariable(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
