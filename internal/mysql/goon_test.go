package mysql

import (
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

// TestCannotCount: when a MariaDB is not to count, and what is said then.
func TestCannotCount(t *testing.T) {
	maria, other := Of(fleet.ServerOf("10.11.19-MariaDB", "MariaDB")), Of(fleet.ServerOf("9.7.0", "MySQL"))
	const count = "SET GLOBAL sql_slave_skip_counter = 1; START SLAVE"
	const alone = "STOP SLAVE; SET GLOBAL slave_parallel_threads = 0; START SLAVE"
	for _, c := range []struct {
		what   string
		server Server
		byGTID bool
		gtid   string
		set    ReplicaSettings
		want   string
	}{
		{"one thread", maria, true, "0-1-7", ReplicaSettings{Position: "0-1-6,7-1-2"}, count}, {"one domain", maria, true, "0-1-7", ReplicaSettings{Threads: 4, Position: "0-1-6"}, count},
		{"by file and position", maria, false, "0-1-7", ReplicaSettings{Threads: 4, Position: "0-1-6,7-1-2"}, count}, {"two domains", maria, true, "0-1-7", ReplicaSettings{Threads: 4, Position: "0-1-6,7-1-2"}, alone},
		{"domains that are not known", maria, true, "0-1-7", ReplicaSettings{Threads: 4}, alone}, {"not named", maria, true, "", ReplicaSettings{Threads: 4, Position: "0-1-6,7-1-2"}, alone},
		{"MySQL without GTIDs", other, false, "", ReplicaSettings{GTIDMode: "OFF", Threads: 4}, "SET GLOBAL sql_replica_skip_counter = 1; START REPLICA"},
	} {
		ch := fleet.Channel{GTID: c.byGTID}
		ch.SQL = fleet.ReplicaError{Number: 1050, Text: "Table 't' already exists", GTID: c.gtid}
		if steps := c.server.SkipSteps(ch, c.set); (steps == nil) != (c.want == alone) {
			t.Errorf("%s: got the steps %q", c.what, steps)
		}
		if got := c.server.GoOn(ch, c.set).Statements; got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
}
