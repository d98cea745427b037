package agent

import (
	"strings"
	"testing"
	"time"
)

// TestUnled: that no controller answers is not said of those that have no such group, nor that a server is fenced for it.
func TestUnled(t *testing.T) {
	silent, absent := ControllerAnswered{URL: "http://a", Error: "refused"}, ControllerAnswered{URL: "http://b", absent: true}
	for _, c := range []struct {
		list []ControllerAnswered
		want string
	}{
		{[]ControllerAnswered{silent}, "none answers: an agent with --fence lost fences a server that takes writes after 3 s"},
		{[]ControllerAnswered{silent, absent}, "none has a group nope: while that is all they answer, an agent does not fence"},
	} {
		if got := unled(c.list, "nope", 3*time.Second).Why; !strings.HasPrefix(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
