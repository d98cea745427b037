// Package await is how tests wait for something to happen.
package await

import (
	"testing"
	"time"
)

// limit is for a machine that is starved.
const limit = 4 * time.Minute

// Until asks is again and again, soon at first and then each 20 ms, until it says yes. If that takes minutes the test fails; format and
// args say what was awaited, and are put together only then.
func Until(t testing.TB, is func() bool, format string, args ...any) {
	t.Helper()
	until(t, limit, is, format, args...)
}

func until(t testing.TB, limit time.Duration, is func() bool, format string, args ...any) {
	t.Helper()
	pause := time.Millisecond
	for began := time.Now(); !is(); pause = min(2*pause, 20*time.Millisecond) {
		if time.Since(began) > limit {
			t.Fatalf("waited %s for "+format, append([]any{limit}, args...)...)
		}
		time.Sleep(pause)
	}
}
