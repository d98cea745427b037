package mysql

import (
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

// TestGaveUp: texts of servers whose source was away.
func TestGaveUp(t *testing.T) {
	const (
		new9 = "Error reconnecting to source 'risso@127.0.0.1:18460'. This was attempt 10/10, with a delay of 1 seconds between attempts. Message: Can't connect to MySQL server on '127.0.0.1:18460' (111)"
		old8 = "error reconnecting to master 'risso@127.0.0.1:29091' - retry-time: 1  retries: 2"
		ma10 = "error reconnecting to master 'risso@127.0.0.1:29091' - retry-time: 1  maximum-retries: 2  message: Can't connect to server on '127.0.0.1' (111 \"Connection refused\")"
	)
	for _, c := range []struct {
		text, running string
		tries         int
		want          bool
	}{{new9, "No", 10, true}, {new9, "Connecting", 10, false}, {new9, "No", 86400, false}, {new9, "No", 0, false}, {old8, "No", 2, true}, {old8, "No", 86400, false}, {ma10, "No", 2, false}, {"", "No", 0, false}} {
		if got := GaveUp(fleet.Channel{IORunning: c.running, IO: fleet.ReplicaError{Number: 2003, Text: c.text}}, c.tries); got != c.want {
			t.Errorf("%s, %s, %d: got %t", c.text, c.running, c.tries, got)
		}
	}
}
