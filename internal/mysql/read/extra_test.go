package read

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestExtraQuestionRests: what only dashboards ask for is asked more and more seldom while it fails, is a gap from the third time on, and
// begins anew once it is answered. What ends the connection is passed on.
func TestExtraQuestionRests(t *testing.T) {
	t.Parallel()
	g := &group{what: "sizes of tables", extra: true}
	r := &Reader{}
	slow := errors.New("took too long")
	var got []string
	for range 8 {
		if err := r.settle(g, nil, 1000, slow); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(g.retryAt-1000, " ", g.gap != nil))
	}
	if want := "60 false, 120 false, 240 true, 480 true, 960 true, 1920 true, 3840 true, 3840 true"; strings.Join(got, ", ") != want {
		t.Errorf("rests and gaps: got %s, want %s", strings.Join(got, ", "), want)
	}
	if g.gap.Remedy == "" || g.gap.Why != slow.Error() {
		t.Errorf("the gap: got %+v, want a remedy and the reason", g.gap)
	}
	if err := r.settle(g, nil, 1000, nil); err != nil || g.gap != nil || g.failed != 0 {
		t.Errorf("after an answer: got %v, %v, %d failures, want none", err, g.gap, g.failed)
	}
	if err := r.settle(g, nil, 1000, context.DeadlineExceeded); err == nil {
		t.Error("a server that does not answer is no error, want one")
	}
}
