package failover

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/read"
)

// TestTendPace holds that a group is looked after more seldom only while all that is seen of it is as it should be.
func TestTendPace(t *testing.T) {
	channels := func(io, sql bool) []read.ReplicaChannel {
		return []read.ReplicaChannel{{IORunning: io, SQLRunning: sql}}
	}
	for _, c := range []struct {
		what   string
		change func(g *group.Group, b *failover.Belief, last map[string]seen)
		want   time.Duration
	}{
		{"all is well", func(*group.Group, *failover.Belief, map[string]seen) {}, tendWell},
		{"the primary is suspected", func(_ *group.Group, b *failover.Belief, _ map[string]seen) { b.State = failover.Suspect }, tendEvery},
		{"a member was not seen yet", func(_ *group.Group, _ *failover.Belief, last map[string]seen) { delete(last, "b") }, tendEvery},
		{"a member does not answer", func(_ *group.Group, _ *failover.Belief, last map[string]seen) { last["b"] = seen{kind: "refused"} }, tendEvery},
		{"a member is out", func(g *group.Group, _ *failover.Belief, _ map[string]seen) { g.Members[1].Status = group.Faulty }, tendEvery},
		{"the primary takes no writes", func(_ *group.Group, _ *failover.Belief, last map[string]seen) { last["a"] = seen{} }, tendEvery},
		{"the primary replicates", func(_ *group.Group, _ *failover.Belief, last map[string]seen) {
			last["a"] = seen{open: true, channels: channels(true, true)}
		}, tendEvery},
		{"a replica takes writes", func(_ *group.Group, _ *failover.Belief, last map[string]seen) {
			last["b"] = seen{open: true, channels: channels(true, true)}
		}, tendEvery},
		{"a replica does not receive", func(_ *group.Group, _ *failover.Belief, last map[string]seen) {
			last["b"] = seen{channels: channels(false, true)}
		}, tendEvery},
		{"a replica does not apply", func(_ *group.Group, _ *failover.Belief, last map[string]seen) {
			last["b"] = seen{channels: channels(true, false)}
		}, tendEvery},
		{"a replica does not replicate", func(_ *group.Group, _ *failover.Belief, last map[string]seen) { last["b"] = seen{} }, tendEvery},
	} {
		g := &group.Group{Name: "g", Members: []group.Member{{Name: "a", Status: group.Primary}, {Name: "b", Status: group.Secondary}}}
		b := failover.Belief{State: failover.Alive}
		last := map[string]seen{"a": {open: true}, "b": {channels: channels(true, true)}}
		c.change(g, &b, last)
		if got := tendPace(g, "a", b, last, 3); got != c.want {
			t.Errorf("%s: each %s, want %s", c.what, got, c.want)
		}
		if got, want := urgent(g, "a", last), strings.HasSuffix(c.what, "takes no writes") || strings.HasSuffix(c.what, "takes writes"); got != want {
			t.Errorf("%s: urgent: %t", c.what, got)
		}
		if c.want == tendWell {
			for groups, want := range map[int]time.Duration{100: tendWell, 200: 10 * time.Second, 1000: tendMost} {
				if got := tendPace(g, "a", b, last, groups); got != want {
					t.Errorf("of %d groups: each %s, want %s", groups, got, want)
				}
			}
		}
	}
}

// TestTellsOfNoPrimary: of a group without a primary it is said that it has none, and what gives it one.
func TestTellsOfNoPrimary(t *testing.T) {
	var told []string
	w := &watcher{d: &Desk{Options: Options{Logger: slog.New(slog.DiscardHandler), Event: func(e fleet.Event) { told = append(told, e.Text) }}},
		g: &group.Group{Name: "g", Active: true}, belief: failover.Belief{State: failover.Dead, Words: "the group has no primary"}}
	w.tell(failover.Belief{State: failover.Alive})
	if want := "g has no primary: nobody takes writes until risso group promote g"; len(told) != 1 || told[0] != want {
		t.Errorf("%q, want %q", told, want)
	}
}
