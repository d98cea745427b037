package carry

import (
	"testing"

	"github.com/rissodb/risso/internal/avail/failover"
)

// TestEndWords: what became of a change that somebody else ended.
func TestEndWords(t *testing.T) {
	for _, c := range []struct {
		j       failover.Journal
		primary string
		want    string
	}{
		{failover.Journal{Kind: failover.Switchover, Stage: failover.Undone, EndedBy: "serve@db1/12/ab"}, "a", "risso serve (process 12 on db1) took the switchover to b that was cut off back meanwhile: a is the primary of g as before"},
		{failover.Journal{Kind: failover.Switchover, Stage: failover.Done, EndedBy: "risso@db1/12/ab"}, "b", "a risso command (process 12 on db1) brought the switchover to b that was cut off to its end meanwhile: b is the primary of g"},
		{failover.Journal{Kind: failover.Failover, Stage: failover.Undone}, "", "another process took the failover to b that was cut off back meanwhile: the group has no primary"},
		{failover.Journal{Kind: failover.Failover, Stage: failover.Failed, EndedBy: "x", Problem: "b is gone"}, "a", "x could neither finish the failover to b that was cut off nor take it back: b is gone; a is the primary of g"},
	} {
		c.j.Group, c.j.Old, c.j.New = "g", "a", "b"
		if got := EndWords(&c.j, c.primary); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
