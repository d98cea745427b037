package web

import (
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/avail/group"
)

// TestMeaningless: an order with fields of another path is not taken for one without them: it would promote whoever is the best.
func TestMeaningless(t *testing.T) {
	spare, yes := group.Spare, true
	for _, c := range []struct {
		what string
		o    order
		want string
	}{
		{"switchover", order{Group: "g", To: "b", DryRun: true}, ""},
		{"switchover", order{Group: "g", Member: "b"}, "member"},
		{"switchover", order{Group: "g", AcceptLoss: true, Active: &yes}, "accept_loss active"},
		{"failover", order{Group: "g", To: "b", AcceptLoss: true}, ""},
		{"failover", order{Group: "g", Status: &spare}, "status"},
		{"member", order{Group: "g", Member: "b", Status: &spare}, ""},
		{"member", order{Group: "g", Member: "b", Status: &spare, To: "b", Automatic: &yes}, "to automatic"},
		{"policy", order{Group: "g", Automatic: &yes, Active: &yes}, ""},
		{"policy", order{Group: "g", Active: &yes, Member: "b"}, "member"},
	} {
		if got := strings.Join(c.o.meaningless(c.what), " "); got != c.want {
			t.Errorf("%s of %+v: got %q, want %q", c.what, c.o, got, c.want)
		}
	}
}
