package failover

import (
	"testing"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/fleet"
)

// TestFindings holds what rings of a group: a dead primary that nobody replaces, nobody who could follow, members that are out.
func TestFindings(t *testing.T) {
	well := &group.Group{Name: "shop", Members: []group.Member{{Name: "a", Status: group.Primary}, {Name: "b", Status: group.Secondary}}}
	out := &group.Group{Name: "shop", Members: []group.Member{{Name: "a", Status: group.Primary}, {Name: "b", Status: group.Faulty, Fault: "it died"}}}
	ready := standing{seen: &carry.Forecast{Alive: true, Choice: failover.Choice{Winner: "b"}}}
	unready := standing{seen: &carry.Forecast{Alive: true, Choice: failover.Choice{Refused: []failover.Refusal{failover.NewRefusal("nobody", "", "b: it does not apply")}}}}
	hangs := standing{seen: &carry.Forecast{Old: "a", Alive: true, Choice: failover.Choice{Winner: "b"}, Commits: []carry.Lack{{Trouble: fleet.Trouble{What: "commits of a hang", Why: "nobody acknowledges", Remedy: "risso group prepare shop"}, Blocks: true}}}}
	for _, c := range []struct {
		what string
		g    *group.Group
		b    failover.State
		s    standing
		auto bool
		want []string
	}{
		{"all is well", well, failover.Alive, ready, false, nil},
		{"nobody looked yet", well, failover.Alive, standing{}, false, nil},
		{"nobody could follow", well, failover.Alive, unready, true, []string{"failover.unready"}},
		{"commits hang", well, failover.Alive, hangs, true, []string{"failover.semisync"}},
		{"dead, by hand", well, failover.Dead, ready, false, []string{"failover.manual"}},
		{"dead, and it is failed over", well, failover.Dead, ready, true, nil},
		{"a member is out", out, failover.Alive, unready, true, []string{"failover.unready", "failover.member"}},
	} {
		var got []string
		for _, f := range findings(c.g, failover.Belief{State: c.b}, c.s, c.auto) {
			got = append(got, f.ID)
			if f.What == "" || f.Why == "" || f.Remedy == "" {
				t.Errorf("%s: %+v", c.what, f)
			}
		}
		if len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
