package failover

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
)

// TestSettings holds what a setting changes, what it says of that, and what is refused.
func TestSettings(t *testing.T) {
	status := func(s group.Status) *group.Status { return &s }
	weight := func(w float64) *float64 { return &w }
	yes, no := true, false
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
		{name: "what it is", s: Setting{Member: "b", Status: status(group.Secondary), Weight: weight(1)}, says: "nothing changes", member: group.Member{Name: "b", Status: group.Secondary, Weight: 1}, auto: true, active: true},
		{name: "no reads", s: Setting{Member: "b", Weight: weight(0)}, says: "the weight 0 instead of 1", member: group.Member{Name: "b", Status: group.Secondary}, auto: true, active: true},
		{name: "less than nothing", s: Setting{Member: "b", Weight: weight(-1)}, fails: "-1 is no weight"},
		{name: "nobody", s: Setting{Member: "x", Weight: weight(1)}, fails: "no such server"},
		{name: "by promotion alone", s: Setting{Member: "b", Status: status(group.Primary)}, fails: "made by a switchover"},
		{name: "by hand", s: Setting{Automatic: &no}, says: "by hand only", member: group.Member{Name: "b", Status: group.Secondary, Weight: 1}, active: true},
		{name: "automatic already", s: Setting{Automatic: &yes}, says: "nothing changes", member: group.Member{Name: "b", Status: group.Secondary, Weight: 1}, auto: true, active: true},
		{name: "left alone", s: Setting{Active: &no}, says: "leaves g alone", member: group.Member{Name: "b", Status: group.Secondary, Weight: 1}, auto: true},
	} {
		g := &group.Group{Name: "g", Active: true, Policy: group.Policy{Automatic: true}, Members: []group.Member{{Name: "a", Status: group.Primary, Weight: 1}, {Name: "b", Status: group.Secondary, Weight: 1}}}
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
		if b := g.Members[1]; b.Name != c.member.Name || b.Status != c.member.Status || b.Weight != c.member.Weight || g.Policy.Automatic != c.auto || g.Active != c.active {
			t.Errorf("%s: %+v, automatic %v, active %v", c.name, b, g.Policy.Automatic, g.Active)
		}
	}
}
