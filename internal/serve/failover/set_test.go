package failover

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/store/state"
)

// TestSettings holds what a setting changes, what it says of that, and what is refused.
func TestSettings(t *testing.T) {
	status := func(s group.Status) *group.Status { return &s }
	weight := func(w float64) *float64 { return &w }
	rule := func(r group.Rule) *group.Rule { return &r }
	yes, no := true, false
	east, odd := "east", "the east"
	for _, c := range []struct {
		name   string
		s      Setting
		says   string
		fails  string
		member group.Member
		auto   bool
		active bool
	}{
		{name: "a spare", s: Setting{Member: "b", Status: status(group.Spare)}, says: "b becomes SPARE instead of SECONDARY", member: group.Member{Name: "b", Status: group.Spare, Weight: 1}, auto: true, active: true},
		{name: "out", s: Setting{Member: "b", Status: status(group.Faulty)}, says: "b becomes FAULTY instead of SECONDARY: it gets nothing until somebody makes it SPARE", member: group.Member{Name: "b", Status: group.Faulty, Weight: 1, Fault: group.SaidSo, ByHand: true}, auto: true, active: true},
		{name: "what it is", s: Setting{Member: "b", Status: status(group.Secondary), Weight: weight(1)}, says: "nothing changes", member: group.Member{Name: "b", Status: group.Secondary, Weight: 1}, auto: true, active: true},
		{name: "no reads", s: Setting{Member: "b", Weight: weight(0)}, says: "the weight 0 instead of 1", member: group.Member{Name: "b", Status: group.Secondary}, auto: true, active: true},
		{name: "less than nothing", s: Setting{Member: "b", Weight: weight(-1)}, fails: "-1 is no weight"},
		{name: "nobody", s: Setting{Member: "x", Weight: weight(1)}, fails: "no such server"},
		{name: "by promotion alone", s: Setting{Member: "b", Status: status(group.Primary)}, fails: "made by a switchover"},
		{name: "a rule", s: Setting{Member: "b", Rule: rule(group.Never)}, says: "b has the rule never instead of neutral: it is not promoted", member: group.Member{Name: "b", Status: group.Secondary, Weight: 1, Rule: group.Never}, auto: true, active: true},
		{name: "no rule", s: Setting{Member: "b", Rule: rule("often")}, fails: "no rule"},
		{name: "a data center", s: Setting{Member: "b", Center: &east}, says: "b is in the data center east instead of no data center", member: group.Member{Name: "b", Status: group.Secondary, Weight: 1, Center: east}, auto: true, active: true},
		{name: "no data center", s: Setting{Member: "b", Center: &odd}, fails: "a name has letters"},
		{name: "by hand", s: Setting{Automatic: &no}, says: "by hand only", member: group.Member{Name: "b", Status: group.Secondary, Weight: 1}, active: true},
		{name: "automatic already", s: Setting{Automatic: &yes}, says: "nothing changes", member: group.Member{Name: "b", Status: group.Secondary, Weight: 1}, auto: true, active: true},
		{name: "left alone", s: Setting{Active: &no}, says: "leaves g alone", member: group.Member{Name: "b", Status: group.Secondary, Weight: 1}, auto: true},
	} {
		g := &group.Group{Name: "g", Active: true, Policy: group.Policy{Automatic: true}, Members: []group.Member{{Name: "a", Status: group.Primary, Weight: 1}, {Name: "b", Status: group.Secondary, Weight: 1, Rule: group.Neutral}}}
		words, err := c.s.apply(g, time.Now())
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v, want %q", c.name, err, c.fails)
			}
			continue
		}
		if err != nil || !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, c.says) }) {
			t.Errorf("%s: %v, %q, want %q", c.name, err, words, c.says)
		}
		g.Members[1].Since = time.Time{}
		if b := g.Members[1]; b.Name != c.member.Name || b.Status != c.member.Status || b.Weight != c.member.Weight || b.Rule != cmp.Or(c.member.Rule, group.Neutral) || b.Center != c.member.Center || b.Fault != c.member.Fault || b.ByHand != c.member.ByHand || g.Policy.Automatic != c.auto || g.Active != c.active {
			t.Errorf("%s: %+v, automatic %v, active %v", c.name, b, g.Policy.Automatic, g.Active)
		}
	}
}

// TestJournalsBegun: a change that has just begun has no steps, and says so: what reads it goes through them.
func TestJournalsBegun(t *testing.T) {
	docs, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer docs.Close()
	room := &keep.Room{Docs: docs}
	if err := room.Add(t.Context(), &group.Group{Name: "g"}, keep.Access{}); err != nil {
		t.Fatal(err)
	}
	if _, err := room.Begin(t.Context(), failover.Journal{Group: "g", Epoch: 1}); err != nil {
		t.Fatal(err)
	}
	list, err := (&Hand{Docs: docs}).Journals(t.Context(), "g", 1)
	if err != nil || len(list) != 1 || list[0].Steps == nil {
		t.Errorf("%+v, %v: want one change, with no steps instead of none known", list, err)
	}
}
