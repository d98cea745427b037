package failover

import (
	"errors"
	"testing"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/fleet"
)

// TestFindings holds what rings of a group: a dead primary that nobody replaces, one that somebody closed, nobody who could follow, members that are out.
func TestFindings(t *testing.T) {
	well := &group.Group{Name: "shop", Active: true, Members: []group.Member{{Name: "a", Status: group.Primary}, {Name: "b", Status: group.Secondary}}}
	out := &group.Group{Name: "shop", Active: true, Members: []group.Member{{Name: "a", Status: group.Primary}, {Name: "b", Status: group.Faulty, Fault: "it died"}}}
	ready := standing{seen: &carry.Forecast{Alive: true, Choice: failover.Choice{Winner: "b"}}}
	unready := standing{seen: &carry.Forecast{Alive: true, Choice: failover.Choice{Refused: []failover.Refusal{failover.NewRefusal("nobody", "", "b: it does not apply")}}}}
	alone := &group.Group{Name: "shop", Members: well.Members}
	cameUp, closed := ready, ready
	cameUp.seen = &carry.Forecast{Old: "a", Alive: true, Choice: ready.seen.Choice, Closed: &carry.Closed{Trouble: fleet.Trouble{What: "a takes no writes", Why: "it came up so", Remedy: "risso group promote shop a"}, Opens: true}}
	closed.seen = &carry.Forecast{Old: "a", Alive: true, Choice: ready.seen.Choice, Closed: &carry.Closed{Trouble: fleet.Trouble{What: "a takes no writes", Why: "somebody made it read-only", Remedy: "risso group promote shop a"}}}
	nobodyReceives := failover.NewRefusal("not_receiving", "START REPLICA IO_THREAD on b", "no member receives from a")
	deaf := standing{seen: &carry.Forecast{Alive: true, Choice: failover.Choice{Winner: "b", Deaf: &nobodyReceives}}}
	tooFew := failover.NewRefusal("too_few_receive", "START REPLICA IO_THREAD on b", "of 2 replicas only 1 receives from a")
	few := standing{seen: &carry.Forecast{Alive: true, Choice: failover.Choice{Winner: "c", Few: &tooFew}}}
	hangs := standing{seen: &carry.Forecast{Old: "a", Alive: true, Choice: failover.Choice{Winner: "b"}, Commits: []carry.Lack{{Trouble: fleet.Trouble{What: "commits of a hang", Why: "nobody acknowledges", Remedy: "risso group prepare shop"}, Blocks: true}}}}
	for _, c := range []struct {
		what string
		g    *group.Group
		b    failover.State
		s    standing
		care carry.Care
		want []string
	}{
		{"all is well", well, failover.Alive, ready, carry.Looks, nil},
		{"nobody looked yet", well, failover.Alive, standing{}, carry.Looks, nil},
		{"nobody could follow", well, failover.Alive, unready, carry.Tends, []string{"failover.unready"}},
		{"commits hang", well, failover.Alive, hangs, carry.Tends, []string{"failover.semisync"}},
		{"dead, by hand", well, failover.Dead, ready, carry.Looks, []string{"failover.manual"}},
		{"dead, and it is failed over", well, failover.Dead, ready, carry.Tends, nil},
		{"it came up read-only, and is opened", well, failover.Alive, cameUp, carry.Opens, nil},
		{"it came up read-only, and nobody opens it", well, failover.Alive, cameUp, carry.Looks, []string{"failover.closed"}},
		{"somebody closed it", well, failover.Alive, closed, carry.Tends, []string{"failover.closed"}},
		{"nobody is to look after it", alone, failover.Dead, closed, carry.Looks, nil},
		{"nobody receives", well, failover.Alive, deaf, carry.Tends, []string{"failover.unready"}},
		{"too few receive", well, failover.Alive, few, carry.Tends, []string{"failover.unready"}},
		{"too few receive, by hand", well, failover.Alive, few, carry.Opens, nil},
		{"dead, and others are awaited", well, failover.Dead, standing{awaits: "b had more"}, carry.Tends, []string{"failover.manual"}},
		{"dead, and nobody may follow", well, failover.Dead, standing{refused: errors.New("nobody can follow")}, carry.Tends, []string{"failover.manual"}},
		{"dead, and nobody may follow, by hand", well, failover.Dead, standing{refused: errors.New("nobody can follow")}, carry.Looks, []string{"failover.manual"}},
		{"dead, and left alone for a while", well, failover.Dead, standing{left: errors.New("it was failed over at 12:00")}, carry.Tends, []string{"failover.manual"}},
		{"it lives, and is left alone for a while", well, failover.Alive, standing{left: errors.New("it was failed over at 12:00")}, carry.Tends, nil},
		{"a member is out", out, failover.Alive, unready, carry.Tends, []string{"failover.unready", "failover.member"}},
	} {
		var got []string
		for _, f := range findings(c.g, failover.Belief{State: c.b}, c.s, c.care) {
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

// TestByHand: a person who is told to fail a group over is told which command does it.
func TestByHand(t *testing.T) {
	g := &group.Group{Name: "shop", Active: true, Policy: group.Policy{Lossless: true}, Members: []group.Member{{Name: "a", Status: group.Primary}, {Name: "b", Status: group.Secondary}}}
	rival := failover.NewRefusal("rival", "risso failover --group shop --to b", "b takes writes")
	for remedy, f := range map[string]*carry.Forecast{
		"risso failover --group shop":               {Choice: failover.Choice{Winner: "b"}},
		"risso failover --group shop --accept-loss": {Choice: failover.Choice{Winner: "b", Count: 2, Lost: "0-1-8,0-1-9"}},
		"risso failover --group shop --to b":        {Choice: failover.Choice{Refused: []failover.Refusal{rival}}},
	} {
		for _, b := range []failover.Belief{{State: failover.Dead}, {State: failover.Unreachable, Alone: true}} {
			if list := findings(g, b, standing{seen: f}, carry.Looks); len(list) != 1 || list[0].ID != "failover.manual" || list[0].Remedy != remedy {
				t.Errorf("%s: %+v, want %s", b.State, list, remedy)
			}
		}
	}
}
