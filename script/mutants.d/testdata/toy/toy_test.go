package toy

import "testing"

func TestLeft(t *testing.T) {
	if got := Left(0); got != 60 {
		t.Errorf("got %d, want 60", got)
	}
}
