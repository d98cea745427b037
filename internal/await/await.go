// Package await is how tests wait for something to happen.
package await

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"
)

// limit is for a machine that is starved.
const limit = 4 * time.Minute

// Until asks is again and again, soon at first and then each 20 ms, until it says yes. If that takes minutes the test fails; format and
// args say what was awaited, and are put together only then: of those that are pointers to what was seen last, what they point at.
func Until(t testing.TB, is func() bool, format string, args ...any) {
	t.Helper()
	until(t, limit, is, format, args...)
}

func until(t testing.TB, limit time.Duration, is func() bool, format string, args ...any) {
	t.Helper()
	pause := time.Millisecond
	for began := time.Now(); !is(); pause = min(2*pause, 20*time.Millisecond) {
		if time.Since(began) > limit {
			t.Fatalf("waited %s for "+format, append([]any{limit}, last(args)...)...)
		}
		time.Sleep(pause)
	}
}

// last replaces pointers by what they point at now, but for those that can say it themselves.
func last(args []any) []any {
	list := slices.Clone(args)
	for i, a := range args {
		switch v := reflect.ValueOf(a); a.(type) {
		case error, fmt.Stringer:
		default:
			if v.Kind() == reflect.Pointer && !v.IsNil() {
				list[i] = v.Elem().Interface()
			}
		}
	}
	return list
}
