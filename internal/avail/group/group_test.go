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
