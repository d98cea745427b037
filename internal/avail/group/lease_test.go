package group_test

import (
	"errors"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
)

// TestTake holds who may take a lease that another process has, whatever the clocks of both say.
func TestTake(t *testing.T) {
	now := time.Now()
	for name, skew := range map[string]time.Duration{"clocks alike": 0, "the holder's an hour ahead": time.Hour, "the holder's an hour behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			g := group.Group{Epoch: 7}
			if err := g.Take(group.Claim{Holder: "a", Reign: 3}, now.Add(skew), time.Minute); err != nil || g.Lease.Epoch != 8 {
				t.Fatalf("%v, %+v", err, g.Lease)
			}
			refused := func(what string, c group.Claim, after time.Duration) {
				t.Helper()
				if err := g.Take(c, now.Add(after), time.Minute); !errors.Is(err, group.ErrHeld) || g.Lease.Holder != "a" {
					t.Errorf("%s: %v, %+v", what, err, g.Lease)
				}
			}
			s := new(group.Sight)
			refused("who never looked", group.Claim{Holder: "b"}, 48*time.Hour)
			refused("the same leadership", group.Claim{Holder: "b", Reign: 3}, 0)
			refused("an older leadership", group.Claim{Holder: "b", Reign: 2}, 0)
			if s.See(g.Lease, now) {
				t.Error("the first look is no change")
			}
			refused("too early", group.Claim{Holder: "b", Sight: s}, 59*time.Second)
			g.Renew(now.Add(50*time.Second + skew))
			refused("it was renewed since", group.Claim{Holder: "b", Sight: s}, 2*time.Minute)
			if !s.See(g.Lease, now.Add(time.Minute)) {
				t.Error("a renewal is a change")
			}
			refused("too early after a renewal", group.Claim{Holder: "b", Sight: s}, 119*time.Second)
			if err := g.Take(group.Claim{Holder: "b", Sight: s}, now.Add(121*time.Second), time.Minute); err != nil || g.Lease.Epoch != 9 || g.Lease.Holder != "b" || g.Lease.Reign != 0 {
				t.Fatalf("it was not renewed for as long as it holds: %v, %+v", err, g.Lease)
			}
			if err := g.Take(group.Claim{Holder: "c", Reign: 9}, now, time.Minute); !errors.Is(err, group.ErrHeld) {
				t.Errorf("a controller takes the lease of a command: %v", err)
			}
			g.Free("a") // too late
			if g.Lease.Holder != "b" {
				t.Error("a freed the lease of b")
			}
			g.Free("b")
			if err := g.Take(group.Claim{Holder: "c", Reign: 3}, now, time.Minute); err != nil || g.Lease.Epoch != 10 {
				t.Fatalf("%v, %+v", err, g.Lease)
			}
			if err := g.Take(group.Claim{Holder: "d", Reign: 4}, now, time.Minute); err != nil || g.Lease.Holder != "d" || g.Lease.Epoch != 11 {
				t.Errorf("a later leadership: %v, %+v", err, g.Lease)
			}
		})
	}
}
