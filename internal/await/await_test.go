package await

import (
	"fmt"
	"testing"
	"time"
)

// failing is a test that notes how it fails.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}

// TestUntil: it ends with the condition, else it fails and says what came last.
func TestUntil(t *testing.T) {
	asked := 0
	Until(t, func() bool { asked++; return asked == 3 }, "the third question")
	if asked != 3 {
		t.Errorf("asked %d times, want 3", asked)
	}
	f := &failing{TB: t}
	seen := []int{0}
	defer func() {
		if r := recover(); r != any(f) {
			t.Fatalf("it ended with %v, want any(f)", r)
		}
		if want := "waited 10ms for a one, not [2]"; f.said != want {
			t.Errorf("said %q, want %q", f.said, want)
		}
	}()
	until(f, 10*time.Millisecond, func() bool { seen[0] = 2; return false }, "a one, not %v", seen)
	t.Error("it did not fail")
}
