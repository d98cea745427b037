package config

import (
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// TestAdvice: what the block says is taken, and a mistake in it is named.
func TestAdvice(t *testing.T) {
	a, err := adviceConfig{}.check()
	if err != nil || a.Every != 24*time.Hour || a.At != 3*time.Hour || a.Ring != fleet.SeverityCritical || a.Time != 10*time.Minute {
		t.Errorf("got %+v, %v; want once a day at 3, critical", a, err)
	}
	a, err = adviceConfig{Every: "7d", At: "22:30", Ring: "warning", LeaveOut: []string{"test_*"}, Time: "1m", MaxThreadsRunning: 5}.check()
	if err != nil || a.Every != 7*24*time.Hour || a.At != 22*time.Hour+30*time.Minute || a.Ring != fleet.SeverityWarning || a.MaxThreadsRunning != 5 || a.Time != time.Minute || a.LeaveOut[0] != "test_*" {
		t.Errorf("got %+v, %v", a, err)
	}
	a, err = adviceConfig{Every: "off", Ring: "off"}.check()
	if err != nil || a.Every != 0 || a.Ring != 0 {
		t.Errorf("off: got %+v, %v", a, err)
	}
	for want, c := range map[string]adviceConfig{"every": {Every: "1s"}, "at": {At: "24:00"}, "ring": {Ring: "loud"}, "time": {Time: "x"}, "leave_out": {LeaveOut: []string{""}}, "max_threads": {MaxThreadsRunning: -1}} {
		if _, err := c.check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: got %v, want an error about %s", c, err, want)
		}
	}
}
