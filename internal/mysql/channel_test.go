package mysql

import (
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

// TestChannelStatements: the words of each flavour and version, with and without the name of a channel.
func TestChannelStatements(t *testing.T) {
	of := func(version string) Server { return Of(fleet.ServerOf(version, "")) }
	for _, c := range []struct{ got, want string }{
		{of("5.7.44").SetReplicaDelay("", 0), "STOP SLAVE SQL_THREAD; CHANGE MASTER TO MASTER_DELAY = 0; START SLAVE SQL_THREAD"},
		{of("9.7.0").SetReplicaDelay("b'c", 60), "STOP REPLICA SQL_THREAD FOR CHANNEL 'b''c'; CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 60 FOR CHANNEL 'b''c'; START REPLICA SQL_THREAD FOR CHANNEL 'b''c'"},
		{of("10.11.6-MariaDB").SetReplicaDelay("b", 60), "STOP SLAVE 'b'; CHANGE MASTER 'b' TO MASTER_DELAY = 60; START SLAVE 'b'"},
		{of("9.7.0").StartReplica(`b'c`), "START REPLICA FOR CHANNEL 'b''c'"},
		{of("10.11.6-MariaDB").StopReplica(`b'c`), "STOP SLAVE 'b''c'"},
		{of("9.7.0").ForgetChannel(""), "RESET REPLICA ALL FOR CHANNEL ''"},
		{of("5.7.44").ForgetChannel("b"), "RESET SLAVE ALL FOR CHANNEL 'b'"},
		{of("10.11.6-MariaDB").ForgetChannel("b"), "RESET SLAVE 'b' ALL"},
		{of("10.11.6-MariaDB").RestartReceiver("b"), "STOP SLAVE 'b' IO_THREAD; START SLAVE 'b' IO_THREAD"},
		{of("8.0.22").RestartReceiver(""), "STOP REPLICA IO_THREAD; START REPLICA IO_THREAD"},
		{of("8.0.17").CompressChannel(""), "SET GLOBAL slave_compressed_protocol = ON; STOP SLAVE IO_THREAD; START SLAVE IO_THREAD"},
		{of("8.0.22").CompressChannel(""), "STOP REPLICA IO_THREAD; CHANGE MASTER TO MASTER_COMPRESSION_ALGORITHMS = 'zstd'; START REPLICA IO_THREAD"},
		{of("9.7.0").CompressChannel(""), "STOP REPLICA IO_THREAD; CHANGE REPLICATION SOURCE TO SOURCE_COMPRESSION_ALGORITHMS = 'zstd'; START REPLICA IO_THREAD"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestLogBytes(t *testing.T) {
	logs := []Log{{Name: "b.1", Size: 100}, {Name: "b.2", Size: 200}, {Name: "b.3", Size: 50}}
	for _, c := range []struct {
		from string
		at   int64
		to   string
		pos  int64
		want int64
	}{
		{"b.2", 20, "b.2", 120, 100}, {"b.1", 40, "b.3", 10, 60 + 200 + 10}, {"b.3", 10, "b.1", 90, 0}, {"b.2", 120, "b.2", 20, 0},
		{"b.0", 4, "b.1", 10, -1}, {"b.9", 4, "b.9", 10, 6}, {"b.1", -1, "b.2", 10, -1},
	} {
		if got := LogBytes(logs, c.from, c.at, c.to, c.pos); got != c.want {
			t.Errorf("from %s:%d to %s:%d: got %d, want %d", c.from, c.at, c.to, c.pos, got, c.want)
		}
	}
}
