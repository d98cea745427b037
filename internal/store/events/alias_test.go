package events

import (
	"errors"
	"strings"
	"testing"
)

// TestAliases: a class is found by its ID, by what pt-query-digest calls it and by the DIGEST of each server that ran it.
func TestAliases(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		const pt = "0123456789ABCDEF0123456789ABCDEF"
		mine, other := strings.Repeat("ab12cd34", 8), "fedcba9876543210fedcba9876543210"
		ctx := t.Context()
		add(t, s, Minute{"db1", at(0), []Row{row(1, 100, 4), row(2, 50, 3)}})
		one, two := class("db1", 1, at(0)), class("db1", 2, at(0))
		one.PtID, two.PtID, one.Digest = "", "", mine
		elsewhere := one
		elsewhere.Instance, elsewhere.Digest = "db2", other
		if err := s.AddClasses(ctx, one, two, elsewhere); err != nil {
			t.Fatal(err)
		}
		named := Class{Instance: "db1", ID: one.ID, Digest: mine, PtID: pt, FirstSeen: at(0), LastSeen: at(0)}
		second := named
		second.PtID = "11111111111111111111111111111111"
		// Known later; the first stays; a new process does not know it and removes nothing.
		for _, c := range []Class{named, second, one} {
			if err := s.AddClasses(ctx, c); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{one.ID, strings.ToLower(one.ID), pt, strings.ToLower(pt), "0x" + pt, mine, strings.ToUpper(mine), other} {
			a, err := s.Class(ctx, ClassQuestion{Range: Range{at(0), at(10)}, ID: name, Points: 10})
			if err != nil || a.ID != one.ID || a.PtID != pt || a.Fingerprint != one.Fingerprint || a.Total.Calls != 100 {
				t.Errorf("%s: got %+v, %v; want ID %v, PtID %v, Fingerprint %v, Total.Calls 100", name, a, err, one.ID, pt, one.Fingerprint)
			}
			if name == other {
				name = name[3:15] // part of it is enough
			}
			if list := top(t, s, TopQuestion{Range: Range{at(0), at(10)}, Search: name}).Classes; len(list) != 1 || list[0].ID != one.ID {
				t.Errorf("searching for %s: got %+v; want len(list) 1, list[0].ID %v", name, list, one.ID)
			}
		}
		for _, name := range []string{second.PtID, strings.Repeat("9", 64), strings.Repeat("9", 32)} {
			if a, err := s.Class(ctx, ClassQuestion{Range: Range{at(0), at(10)}, ID: name, Points: 10}); err != nil || a.ID != "" {
				t.Errorf("%s is nobody's name: %+v, %v; want ID \"\"", name, a, err)
			}
		}
		for _, name := range []string{"", "0x", "abc", strings.Repeat("g", 32), strings.Repeat("a", 63), strings.Repeat("x", 64), "' OR 1=1 -- ' OR 1=1 -- ' OR 1=1"} {
			if _, err := s.Class(ctx, ClassQuestion{Range: Range{at(0), at(10)}, ID: name, Points: 10}); !errors.Is(err, ErrBadQuestion) {
				t.Errorf("%q: got %v, want ErrBadQuestion", name, err)
			}
		}
	})
}
