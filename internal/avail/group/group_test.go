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

// TestSaidFaulty: what a person made FAULTY is told from what Risso made so, also where both did.
func TestSaidFaulty(t *testing.T) {
	now := time.Now()
	g := group.Group{Name: "g", Members: []group.Member{{Name: "a", Status: group.Secondary}}}
	m := &g.Members[0]
	said := func(status group.Status) {
		t.Helper()
		if err := g.Set("a", status, group.SaidSo, now); err != nil {
			t.Fatal(err)
		}
	}
	g.KeepOut("a", "it died", now)
	if m.ByHand {
		t.Error("Risso made it FAULTY, and it is by hand")
	}
	m.Errant = "x"
	for range 2 { // the second time changes nothing
		said(group.Faulty)
		if !m.ByHand || m.Errant != "x" || m.Fault != "it died; "+group.SaidSo {
			t.Errorf("a person said so, too: %+v", *m)
		}
	}
	said(group.Spare)
	if m.ByHand {
		t.Errorf("a person said otherwise: %+v", *m)
	}
	said(group.Faulty)
	if !m.ByHand || m.Fault != group.SaidSo {
		t.Errorf("a person said so: %+v", *m)
	}
	if err := g.Promoted("a", group.Faulty, "", 2, now); err != nil || m.ByHand {
		t.Errorf("promoted: %v, %+v", err, *m)
	}
}
