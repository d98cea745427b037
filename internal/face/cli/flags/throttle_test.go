package flags

import (
	"testing"
	"time"

	"github.com/rissodb/risso/internal/throttle"
)

func TestLimits(t *testing.T) {
	got, err := Throttle{MaxLag: time.Minute, maxRunning: 5, maxRate: "1KiB"}.Limits(3)
	if want := (throttle.Limits{MaxLag: time.Minute, MaxThreadsRunning: 5, MaxRate: 1024, Own: 3}); err != nil || got != want {
		t.Errorf("got %+v: %v; want %+v", got, err, want)
	}
	for _, f := range []Throttle{{MaxLag: -1}, {maxRunning: -1}, {maxRate: "0"}, {maxRate: "fast"}, {maxRate: "0.5"}} {
		if l, err := f.Limits(0); err == nil {
			t.Errorf("%+v passes as %+v", f, l)
		}
	}
}
