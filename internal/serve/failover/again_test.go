package failover

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/mysql/read"
)

// TestAgain holds when a failover is tried again that did not succeed: one that was refused as soon as a member says something else, or something else was set.
func TestAgain(t *testing.T) {
	now := time.Now()
	refused := refusedAfter
	for _, c := range []struct {
		what   string
		ago    time.Duration
		after  time.Duration
		change func(g *group.Group, last map[string]seen)
		want   bool
	}{
		{"it has just failed", time.Second, 0, nil, false},
		{"it failed", 2 * time.Second, 0, nil, true},
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
		s := standing{tried: now.Add(-c.ago), after: c.after, stood: stands(g, last)}
		if c.change != nil {
			c.change(g, last)
		}
		if got := s.again(now, stands(g, last)); got != c.want {
			t.Errorf("%s: tried again: %t, want %t", c.what, got, c.want)
		}
	}
}

// TestEnded: a failover that was cut off, or refused while members did not answer that answer here, is tried again soon, also if the members say what they said; the latter less often each time.
func TestEnded(t *testing.T) {
	refused, now := fmt.Errorf("failover: %w", carry.ErrRefused), time.Now()
	last := map[string]seen{"b": {executed: "1-1-7", at: now, ended: now}, "c": {kind: "timeout", at: now, ended: now}, "d": {at: now, ended: now.Add(patience)}}
	for _, c := range []struct {
		what   string
		before time.Duration
		err    error
		want   time.Duration
	}{
		{"refused", 0, refused, refusedAfter},
		{"an error", refusedAfter, errors.New("its disk is full"), 0},
		{"cut off", refusedAfter, context.Canceled, 0},
		{"refused, as a look was cut off", refusedAfter, errors.Join(refused, context.Canceled), 0},
		{"refused as one did not answer that does not answer here", 0, &carry.Unheard{Refusal: refused, Members: []string{"c"}}, refusedAfter},
		{"refused as one did not answer that answers here only after a second", 0, &carry.Unheard{Refusal: refused, Members: []string{"d"}}, refusedAfter},
		{"refused as one did not answer that answers here", 0, &carry.Unheard{Refusal: refused, Members: []string{"c", "b"}}, retryAfter},
		{"once more", retryAfter, &carry.Unheard{Refusal: refused, Members: []string{"c", "b"}}, 2 * retryAfter},
		{"again and again", 20 * time.Second, &carry.Unheard{Refusal: refused, Members: []string{"b"}}, refusedAfter},
	} {
		s := standing{after: c.before}
		if s.ended(c.err, last); s.after != c.want {
			t.Errorf("%s: after %s, want %s", c.what, s.after, c.want)
		}
	}
}
