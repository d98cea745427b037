package repo

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPrunePlan: what of a place is planned, step by step, without a place.
func TestPrunePlan(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	whole := func(id string, days int) Entry {
		return Entry{ID: id, Whole: true, Header: Header{ID: id, Kind: Logical, Began: now.AddDate(0, 0, -days), Tables: 1, Server: Server{Identity: "s"}}}
	}
	physical := func(e Entry, parent string) Entry {
		e.Header.Kind, e.Header.Parent = Physical, parent
		return e
	}
	begun := func(id string, ago time.Duration) Entry { return Entry{ID: id, Renewed: now.Add(-ago)} }
	broken := func(e Entry) Entry {
		e.Header, e.Err = Header{}, ErrDamaged
		return e
	}
	const sweep = "remove objects: no backup needs them\nremove notes: their backups no longer exist\nremove interrupted uploads\n"
	last := Retention{Last: 1}
	for _, c := range []struct {
		name    string
		seen    seen
		rules   Retention
		remove  string
		trusted string
		want    string
		err     error
	}{
		{name: "an empty place", rules: last, want: sweep},
		{name: "no rule", seen: seen{entries: []Entry{whole("a", 2), whole("b", 1)}}, want: sweep},
		{name: "a rule", seen: seen{entries: []Entry{whole("a", 2), whole("b", 1)}}, rules: last, want: "remove backup a: no rule keeps it\n" + sweep},
		{name: "one was killed", seen: seen{entries: []Entry{whole("a", 2), begun("d", time.Hour), whole("b", 1)}}, rules: last,
			want: "give up backup d: it was killed before it was complete\nremove backup a: no rule keeps it\n" + sweep},
		{name: "one runs", seen: seen{entries: []Entry{whole("a", 2), whole("b", 1), begun("r", time.Minute)}}, rules: last, want: "remove backup a: no rule keeps it\n"},
		{name: "just before it counts as killed", seen: seen{entries: []Entry{begun("r", LeaseLife-1)}}, rules: last, want: ""},
		{name: "just when it counts as killed", seen: seen{entries: []Entry{begun("d", LeaseLife)}}, rules: last, want: "give up backup d: it was killed before it was complete\n" + sweep},
		{name: "no manifest", seen: seen{entries: []Entry{whole("a", 2)}, headless: []string{"h"}}, rules: last, want: sweep},
		{name: "no manifest, by name", seen: seen{entries: []Entry{whole("a", 2), whole("b", 1)}, headless: []string{"g", "h"}}, remove: "h",
			want: "remove backup h: it has no manifest, and was selected\n" + sweep},
		{name: "by name", seen: seen{entries: []Entry{whole("a", 2), whole("b", 1)}, headless: []string{"h"}}, remove: "h b",
			want: "remove backup h: it has no manifest, and was selected\nremove backup b: it was named\n" + sweep},
		{name: "by a name that is not there", seen: seen{entries: []Entry{whole("a", 2)}}, remove: "x", err: ErrNoBackup},
		{name: "proven", seen: seen{entries: []Entry{whole("a", 3), whole("b", 2), whole("c", 1)}, proven: map[string]proof{"a": claimed}}, rules: last, want: "remove backup b: no rule keeps it\n" + sweep},
		{name: "proven, and by name", seen: seen{entries: []Entry{whole("a", 2), whole("b", 1)}, proven: map[string]proof{"a": vouched}}, remove: "a", want: sweep},
		{name: "parents", seen: seen{entries: []Entry{physical(whole("a", 4), ""), physical(whole("b", 3), ""), physical(whole("c", 2), "b"), physical(whole("d", 1), "c")}}, rules: last,
			want: "remove backup a: no rule keeps it\n" + sweep},
		{name: "a parent of one that runs", seen: seen{entries: []Entry{physical(whole("a", 4), ""), physical(whole("b", 3), ""), physical(whole("c", 2), ""), physical(begun("r", 0), "a")}}, rules: last,
			want: "remove backup b: no rule keeps it\n"},
		{name: "one that runs does not say what it builds on", seen: seen{entries: []Entry{whole("l", 5), whole("m", 4), physical(whole("a", 3), ""), physical(whole("b", 2), ""), physical(begun("r", 0), "")}}, rules: last,
			want: "remove backup l: no rule keeps it\n"},
		{name: "damaged", seen: seen{entries: []Entry{broken(whole("a", 3)), whole("b", 2), whole("c", 1)}}, rules: last, want: "remove backup b: no rule keeps it\n" + sweep},
		{name: "damaged, with parts", seen: seen{entries: []Entry{broken(whole("a", 3)), physical(whole("b", 2), ""), physical(whole("c", 1), "")}, parts: map[string]bool{"a": true}}, rules: last, want: sweep},
		{name: "not what was signed", seen: seen{entries: []Entry{whole("a", 3), whole("b", 2), whole("c", 1)}, takers: map[string]taker{"c": {err: ErrForged}}}, rules: last,
			want: "remove backup a: no rule keeps it\n" + sweep},
		{name: "not trusted", seen: seen{entries: []Entry{whole("a", 3), whole("b", 2), whole("c", 1)}, takers: map[string]taker{"a": {key: "me"}, "b": {key: "me"}}}, rules: last, trusted: "me",
			want: "remove backup a: no rule keeps it\n" + sweep},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.seen.now = now
			o := PruneOptions{Retention: c.rules, Remove: strings.Fields(c.remove)}
			if c.trusted != "" {
				o.Trusted = []PublicKey{PublicKey(c.trusted)}
			}
			res, err := c.seen.plan(o)
			if !errors.Is(err, c.err) || err != nil && c.err == nil {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if err != nil {
				return
			}
			got := ""
			for _, words := range (&pruner{res: res}).steps().Words() {
				got += words + "\n"
			}
			if got != c.want {
				t.Errorf("got plan\n%swant\n%s", got, c.want)
			}
		})
	}
}

// TestPruneNote: the note of a backup that begins while a prune is at work, and waits for it, stays for the next prune to see.
func TestPruneNote(t *testing.T) {
	dir := t.TempDir()
	five(t, made(t, dir, Keys{}))
	note := unfinishedKey(NewID(time.Now()))
	r := opened(t, dir, Keys{})
	o := PruneOptions{Retention: Retention{Last: 1}, Progress: func(int64) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, note)), 0o700); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(filepath.Join(dir, note), []byte("{}"), 0o600); err != nil {
			t.Error(err)
		}
	}}
	p, err := r.Prune(t.Context(), o)
	if err != nil || p.Objects == 0 {
		t.Fatalf("got %+v, %v, want objects removed", p, err)
	}
	if _, err := os.Stat(filepath.Join(dir, note)); err != nil {
		t.Errorf("the note of a backup that begins: %v, want it there", err)
	}
}
