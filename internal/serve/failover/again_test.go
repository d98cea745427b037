package failover

import (
	"errors"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/mysql/read"
)

// TestAgain holds when a failover is tried again that did not succeed: one that was refused as soon as a member says something else, or something else was set.
func TestAgain(t *testing.T) {
	now := time.Now()
	refused := errors.New("nobody may follow")
	for _, c := range []struct {
		what    string
		ago     time.Duration
		refused error
		change  func(g *group.Group, last map[string]seen)
		want    bool
	}{
		{"it has just failed", time.Second, nil, nil, false},
		{"it failed", 2 * time.Second, nil, nil, true},
		{"it has just been refused, and a member came back", time.Second, refused, func(_ *group.Group, last map[string]seen) { last["c"] = seen{executed: "1-1-9"} }, false},
		{"it was refused, and all is as it was", 29 * time.Second, refused, nil, false},
		{"it was refused for long", 30 * time.Second, refused, nil, true},
		{"a member came back", 2 * time.Second, refused, func(_ *group.Group, last map[string]seen) { last["c"] = seen{executed: "1-1-9"} }, true},
		{"a member applied more", 2 * time.Second, refused, func(_ *group.Group, last map[string]seen) {
			last["b"] = seen{executed: "1-1-8", channels: last["b"].channels}
		}, true},
		{"a member received more", 2 * time.Second, refused, func(_ *group.Group, last map[string]seen) {
			last["b"] = seen{executed: "1-1-7", channels: []read.ReplicaChannel{{Received: "1-1-9", SQLRunning: true}}}
		}, true},
		{"its receiver was started", 2 * time.Second, refused, func(_ *group.Group, last map[string]seen) {
			last["b"] = seen{executed: "1-1-7", channels: []read.ReplicaChannel{{Received: "1-1-8", SQLRunning: true, IORunning: true}}}
		}, false},
		{"a loss is accepted", 2 * time.Second, refused, func(g *group.Group, _ map[string]seen) { g.Policy.Lossless = false }, true},
		{"a member may be promoted", 2 * time.Second, refused, func(g *group.Group, _ map[string]seen) { g.Members[1].Rule = group.Neutral }, true},
	} {
		g := &group.Group{Name: "g", Policy: group.Policy{Lossless: true}, Members: []group.Member{{Name: "a", Status: group.Primary}, {Name: "b", Status: group.Secondary, Rule: group.Never}, {Name: "c", Status: group.Secondary}}}
		last := map[string]seen{"a": {kind: "refused"}, "b": {executed: "1-1-7", channels: []read.ReplicaChannel{{Received: "1-1-8", SQLRunning: true}}}, "c": {kind: "refused"}}
		s := standing{tried: now.Add(-c.ago), refused: c.refused, stood: stands(g, last)}
		if c.change != nil {
			c.change(g, last)
		}
		if got := s.again(now, stands(g, last)); got != c.want {
			t.Errorf("%s: tried again: %t, want %t", c.what, got, c.want)
		}
	}
}
