package await

import (
	"errors"
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
	seen, at, problem := []int{0}, "nowhere", errors.New("old")
	defer func() {
		if r := recover(); r != any(f) {
			t.Fatalf("it ended with %v, want any(f)", r)
		}
		if want := "waited 10ms for a one, not [2] here: new, old"; f.said != want {
			t.Errorf("said %q, want %q", f.said, want)
		}
	}()
	until(f, 10*time.Millisecond, func() bool { seen[0], at, problem = 2, "here", errors.New("new"); return false }, "a one, not %v %s: %v, %v", seen, &at, &problem, problem)
	t.Error("it did not fail")
}
