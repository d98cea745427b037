package repo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCandidates: what retention knows about each whole backup.
func TestCandidates(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	of := func(kind Kind, id string, change ...func(*Entry)) Entry {
		e := Entry{ID: id, Whole: true, Header: Header{ID: id, Kind: kind, Began: now.Add(-time.Hour), Tables: 10, Rows: 100, Bytes: 1000, Server: Server{Identity: "s"}}}
		for _, c := range change {
			c(&e)
		}
		return e
	}
	begun := func(e *Entry) { e.Whole, e.Renewed = false, now }
	killed := func(e *Entry) { e.Whole, e.Renewed = false, now.Add(-LeaseLife) }
	damaged := func(e *Entry) { e.Err = ErrDamaged }
	nameless := func(e *Entry) { e.Header.Server.Identity = "" }
	on := func(id string) func(*Entry) { return func(e *Entry) { e.Header.Parent = id } }
	tables := func(n int64) func(*Entry) { return func(e *Entry) { e.Header.Tables = n } }
	for _, c := range []struct {
		name string
		seen seen
		want string // of each: its ID and what is known of it
	}{
		{"unknown", seen{entries: []Entry{of(Logical, "a")}}, "a"},
		{"what drills found", seen{entries: []Entry{of(Logical, "a"), of(Logical, "b"), of(Logical, "c"), of(Logical, "d")}, proven: map[string]proof{"b": unread, "c": claimed, "d": vouched}}, "a, b unread, c proven, d proven vouched"},
		{"who signed", seen{entries: []Entry{of(Logical, "a"), of(Logical, "b")}, takers: map[string]taker{"a": {key: "me"}, "b": {key: "you"}}}, "a by me trusted, b by you"},
		{"damaged", seen{entries: []Entry{of(Logical, "a", damaged), of(Logical, "b"), of(Logical, "c", damaged)}, proven: map[string]proof{"a": vouched, "b": vouched, "c": unread}}, "a vouched stays as it cannot be read, b proven vouched, c stays as it cannot be read"},
		{"forged", seen{entries: []Entry{of(Logical, "a")}, takers: map[string]taker{"a": {err: errors.New("forged")}}}, "a stays as it cannot be read"},
		{"parents", seen{entries: []Entry{of(Physical, "a"), of(Physical, "b", on("a")), of(Logical, "c", on("a"))}}, "a, b on a, c"},
		{"one is taken that builds on another", seen{entries: []Entry{of(Physical, "a"), of(Physical, "b"), of(Physical, "r", begun, on("a"))}}, "a stays as r builds on it, b"},
		{"one that was killed built on another", seen{entries: []Entry{of(Physical, "a"), of(Physical, "r", killed, on("a"))}}, "a stays as r builds on it"},
		{"one has just begun", seen{entries: []Entry{of(Physical, "a"), of(Logical, "b"), of(Physical, "r", begun, nameless)}}, "a stays as r may build on it, b"},
		{"a logical one has just begun", seen{entries: []Entry{of(Physical, "a"), of(Logical, "r", begun, nameless)}}, "a"},
		{"one that is full is taken", seen{entries: []Entry{of(Physical, "a"), of(Physical, "r", begun)}}, "a"},
		{"one was killed soon after its beginning", seen{entries: []Entry{of(Physical, "a"), of(Physical, "r", killed, nameless)}}, "a"},
		{"a damaged one with parts", seen{entries: []Entry{of(Logical, "d", damaged), of(Physical, "a"), of(Logical, "b")}, parts: map[string]bool{"d": true}}, "d stays as it cannot be read, a stays as d may build on it, b"},
		{"a hollow one", seen{entries: []Entry{of(Logical, "a"), of(Logical, "b", tables(4)), of(Logical, "c", tables(5)), of(Logical, "d", tables(2))}, proven: map[string]proof{"b": claimed, "c": claimed, "d": unread}}, "a, b hollow, c proven, d hollow"},
		{"a stranger's makes none hollow", seen{entries: []Entry{of(Logical, "a", tables(100)), of(Logical, "b"), of(Logical, "c", tables(4))}, takers: map[string]taker{"b": {key: "me"}, "c": {key: "me"}}}, "a, b by me trusted, c by me trusted hollow"},
		{"a trusted one makes a stranger's hollow", seen{entries: []Entry{of(Logical, "a"), of(Logical, "b", tables(4))}, takers: map[string]taker{"a": {key: "me"}}}, "a by me trusted, b hollow"},
	} {
		c.seen.now = now
		var got []string
		for _, x := range c.seen.candidates(PruneOptions{Trusted: []PublicKey{"me"}}) {
			words := []string{x.ID}
			say := func(is bool, format string, args ...any) {
				if is {
					words = append(words, fmt.Sprintf(format, args...))
				}
			}
			say(x.Signer != "", "by %s", x.Signer)
			say(x.Trusted, "trusted")
			say(x.Proven, "proven")
			say(x.Unread, "unread")
			say(x.Vouched, "vouched")
			say(x.Parent != "", "on %s", x.Parent)
			say(x.Hollow != "", "hollow")
			say(strings.Contains(x.Keep, "cannot be read: "), "stays as it cannot be read")
			if id, _, ok := strings.Cut(x.Keep, ", which is running, builds on it"); ok {
				say(true, "stays as %s builds on it", id)
			} else if id, _, ok := strings.Cut(x.Keep, ", which "); ok {
				say(true, "stays as %s may build on it", id)
			}
			if damaged := strings.HasPrefix(x.Group, "damaged "); damaged != strings.Contains(x.Keep, "it cannot be read") || damaged && x.Group != "damaged "+x.ID {
				t.Errorf("%s: %s is in the group %q, and stays for %q", c.name, x.ID, x.Group, x.Keep)
			}
			got = append(got, strings.Join(words, " "))
		}
		if g := strings.Join(got, ", "); g != c.want {
			t.Errorf("%s: got %s; want %s", c.name, g, c.want)
		}
	}
}

// TestPlanned: which lists a plan has, none of them null in JSON; if backups are named, no rule applies.
func TestPlanned(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	s := seen{now: now, headless: []string{"g", "h"}, entries: []Entry{
		{ID: "a", Whole: true, Header: Header{ID: "a", Kind: Logical, Tables: 1, Began: now.Add(-2 * time.Hour)}}, {ID: "b", Whole: true, Header: Header{ID: "b", Kind: Logical, Tables: 1, Began: now.Add(-time.Hour)}},
		{ID: "r", Renewed: now}, {ID: "d", Renewed: now.Add(-time.Hour)}}}
	for _, c := range []struct {
		name                             string
		o                                PruneOptions
		removed, headless, running, dead string
		reasons                          string
	}{
		{"a rule", PruneOptions{Retention: Retention{Last: 1}}, "a", "g h", "r", "d", "a: no rule keeps it; b: the newest, one of the last 1"}, {"no rule", PruneOptions{}, "", "g h", "r", "d", "a: no rule was given; b: no rule was given"},
		{"the newest, by name", PruneOptions{Retention: Retention{Last: 1}, Remove: []string{"b"}}, "b", "g h", "r", "d", "a: not selected; b: it was named"}, {"one without a manifest, by name", PruneOptions{Retention: Retention{Last: 1}, Remove: []string{"h"}}, "h a", "g", "r", "d", "a: no rule keeps it; b: the newest, one of the last 1"},
		{"both by name", PruneOptions{Remove: []string{"a", "g"}}, "g a", "h", "r", "d", "a: it was named; b: not selected"},
	} {
		p, err := s.plan(c.o)
		if err != nil {
			t.Fatal(err)
		}
		for what, list := range map[string][2]string{"removed": {strings.Join(p.Removed, " "), c.removed}, "without a manifest": {strings.Join(p.Headless, " "), c.headless}, "running": {strings.Join(p.Running, " "), c.running}, "dead": {strings.Join(p.Dead, " "), c.dead}} {
			if list[0] != list[1] {
				t.Errorf("%s: got %s %s, want %s", c.name, what, list[0], list[1])
			}
		}
		var reasons []string
		for _, d := range p.Decisions {
			reasons = append(reasons, d.ID+": "+strings.Join(d.Reasons, ", "))
		}
		if g := strings.Join(reasons, "; "); g != c.reasons {
			t.Errorf("%s: got %s; want %s", c.name, g, c.reasons)
		}
	}
	p, err := seen{}.plan(PruneOptions{})
	if err != nil || slices.ContainsFunc([][]string{p.Removed, p.Dead, p.Headless, p.Running}, func(l []string) bool { return l == nil || len(l) > 0 }) {
		t.Errorf("an empty place: got %+v, %v; want empty lists", p, err)
	}
	if _, err := s.plan(PruneOptions{Remove: []string{"r"}}); !errors.Is(err, ErrNoBackup) {
		t.Errorf("one that runs, by name: got %v, want no such backup", err)
	}
}
