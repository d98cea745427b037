package galera

import (
	"strings"
	"testing"
)

// percona is the error log of a node of Percona XtraDB Cluster 8.0, in the forms in which its users and pt-galera-log-explainer published such lines.
const percona = `2025-02-18T11:54:01.000000Z 0 [Note] [MY-000000] [Galera] wsrep_load(): loading provider library '/usr/lib64/galera4/libgalera_smm.so'
2025-02-18T11:54:01.100000Z 0 [Note] [MY-000000] [Galera] Setting initial position to c233f7ed-eade-11f1-ae92-16cb3fa80945:150
2025-02-18T11:54:02.000000Z 1 [Note] [MY-000000] [Galera] ####### My UUID: 60205de0-5cf6-11ec-8884-3a01908be11a
2025-02-18T11:54:02.100000Z 1 [Note] [MY-000000] [WSREP] Server db1a connected to cluster at position c233f7ed-eade-11f1-ae92-16cb3fa80945:170 with ID 60205de0-5cf6-11ec-8884-3a01908be11a
2025-02-18T12:06:01.000000Z 2 [Note] [MY-000000] [Galera] State transfer required: 
2025-02-18T12:06:01.100000Z 2 [Note] [MY-000000] [Galera] Requesting state transfer: success, donor: 0
`

const perconaHas = `2025-02-18T12:06:11.553625Z 3 [System] [MY-000000] [WSREP] SST completed
2025-02-18T12:06:11.554000Z 3 [Note] [MY-000000] [Galera] Recovered position from storage: c233f7ed-eade-11f1-ae92-16cb3fa80945:160
2025-02-18T12:06:11.555000Z 3 [Note] [MY-000000] [Galera] SST received: c233f7ed-eade-11f1-ae92-16cb3fa80945:160
2025-02-18T12:06:11.555894Z 0 [Note] [MY-000000] [Galera] SST leaving flow control
2025-02-18T12:06:11.555900Z 0 [Note] [MY-000000] [Galera] Shifting JOINER -> JOINED (TO: 170)
2025-02-18T12:06:12.720113Z 2 [Note] [MY-000000] [WSREP] Synchronized with group, ready for connections
`

// TestPercona: the same is read of a log of Percona XtraDB Cluster as of MariaDB's.
func TestPercona(t *testing.T) {
	for _, c := range []struct {
		name, log string
		blank     Blank
		at        int64
		recovered int64
	}{
		{"it asked for a state", percona, BlankCopy, 150, -1},
		{"it was level", percona + perconaHas, BlankDDL, 170, -1},
		{"and recovered", percona + perconaHas + "2026-10-06T01:44:30.673582Z 0 [Note] [MY-000000] [WSREP] Recovered position: c233f7ed-eade-11f1-ae92-16cb3fa80945:603\n", BlankDDL, 603, 603},
		{"by mysqld_safe of 5.7", percona + perconaHas + "150224 21:16:58 mysqld_safe WSREP: Recovered position c233f7ed-eade-11f1-ae92-16cb3fa80945:604\n", BlankDDL, 604, 604},
		{"found to differ", percona + perconaHas + "2026-01-01T01:01:01.000000Z 1 [ERROR] [MY-000000] [Galera] Inconsistency detected: Inconsistent by consensus on 8c9b5610-e020-11ed-a5ea-e253cc5f629d:127\n", BlankDiffers, 170, -1},
		{"found to differ, by a vote", percona + perconaHas + "2026-01-01T01:01:01.000000Z 16 [ERROR] [MY-000000] [Galera] Vote 0 (success) on 7b1a6710-18da-11ed-b777-42b15728f657:20 is inconsistent with group. Leaving cluster.\n", BlankDiffers, 170, -1},
	} {
		n := zeroed(1, "", strings.Split(c.log, "\n")...)
		if n.Blank != c.blank || n.AtLeast.Seqno != c.at || n.Recovered.Seqno != c.recovered || n.ID != "60205de0-5cf6-11ec-8884-3a01908be11a" {
			t.Errorf("%s: got %q, at least %d, recovered %d, ID %s; want %q, %d, %d", c.name, n.Blank, n.AtLeast.Seqno, n.Recovered.Seqno, n.ID, c.blank, c.at, c.recovered)
		}
	}
	if n := Down("", "/d", grastate(historyA, -1, 0), "", nil, strings.Split(percona, "\n")); n.Name != "db1a" {
		t.Errorf("its name: got %q; want db1a", n.Name)
	}
	c := ReadConflicts(strings.Split(strings.ReplaceAll(conflictLog, "[Note] WSREP: ", "[Note] [MY-000000] [WSREP] "), "\n"))
	if want := ReadConflicts(strings.Split(conflictLog, "\n")); c.Logged != want.Logged || len(c.Tables) != len(want.Tables) || c.Keys != want.Keys {
		t.Errorf("conflicts: got %+v; want %+v", c, want)
	}
}
