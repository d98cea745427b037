package cli

import (
	"testing"
	"time"

	"github.com/rissodb/risso/internal/throttle"
)

func TestLimits(t *testing.T) {
	got, err := throttleFlags{maxLag: time.Minute, maxRunning: 5, maxRate: "1KiB"}.limits(3)
	if want := (throttle.Limits{MaxLag: time.Minute, MaxThreadsRunning: 5, MaxRate: 1024, Own: 3}); err != nil || got != want {
		t.Errorf("%+v: %v", got, err)
	}
	for _, f := range []throttleFlags{{maxLag: -1}, {maxRunning: -1}, {maxRate: "0"}, {maxRate: "fast"}, {maxRate: "0.5"}} {
		if l, err := f.limits(0); err == nil {
			t.Errorf("%+v passes as %+v", f, l)
		}
	}
}
