package mysql

import "testing"

// TestLogHeld holds who is taken for one that keeps the binary log.
func TestLogHeld(t *testing.T) {
	for _, c := range []struct {
		time, state, info string
		want              bool
	}{
		{"2", "Waiting for semi-sync ACK from slave", "INSERT INTO t VALUES (1)", true},
		{"9", "Waiting for semi-sync ACK from replica", "COMMIT", true},
		{"1", "Waiting for semi-sync ACK from slave", "COMMIT", false}, // as each commit does
		{"2", "starting", "SHOW /* risso: how far is the binary log? */ MASTER STATUS", true},
		{"2", "starting", "SHOW /* risso: how far is the binary log? */ BINARY LOG STATUS", true},
		{"2", "starting", "show binary logs", true},
		{"0", "starting", "SHOW MASTER STATUS", false},
		{"9", "", "SELECT 'SHOW MASTER STATUS'", false},
		{"9", "Commit", "INSERT INTO t VALUES (1)", false},
	} {
		if got := LogHeld([]map[string]string{{"Time": c.time, "State": c.state, "Info": c.info}}); got != c.want {
			t.Errorf("%+v: got %t", c, got)
		}
	}
}
