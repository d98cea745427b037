package group_test

import (
	"errors"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
)

// TestSet holds which statuses follow each other: a faulty server returns only by SPARE, and nobody becomes the primary but by promotion.
func TestSet(t *testing.T) {
	now := time.Now()
	allowed := map[[2]group.Status]bool{
		{group.Secondary, group.Spare}: true, {group.Secondary, group.Faulty}: true,
		{group.Spare, group.Secondary}: true, {group.Spare, group.Faulty}: true, {group.Faulty, group.Spare}: true,
	}
	for _, from := range group.Statuses() {
		for _, to := range group.Statuses() {
			g := group.Group{Name: "g", Members: []group.Member{{Name: "a", Status: from, Errant: "x"}}}
			err := g.Set("a", to, "it died", now)
			if want := from == to || allowed[[2]group.Status{from, to}]; (err == nil) != want || err != nil && !errors.Is(err, group.ErrStatus) {
				t.Errorf("%s to %s: %v", from, to, err)
			}
			if err != nil && g.Members[0].Status != from {
				t.Errorf("%s to %s was refused, and done", from, to)
			}
		}
	}
}

// TestTake holds that one process at a time has the lease, and that each has a higher epoch.
func TestTake(t *testing.T) {
	now := time.Now()
	g := group.Group{Epoch: 7}
	if err := g.Take("a", now, time.Minute); err != nil || g.Lease.Epoch != 8 {
		t.Fatalf("%v, %+v", err, g.Lease)
	}
	if err := g.Take("b", now.Add(59*time.Second), time.Minute); !errors.Is(err, group.ErrHeld) {
		t.Errorf("%v", err)
	}
	if err := g.Take("b", now.Add(61*time.Second), time.Minute); err != nil || g.Lease.Epoch != 9 || g.Lease.Holder != "b" {
		t.Errorf("%v, %+v", err, g.Lease)
	}
	g.Free("a") // too late
	if g.Lease.Holder != "b" {
		t.Error("a freed the lease of b")
	}
}
