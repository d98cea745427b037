package repo

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPruneStrangers: whoever puts backups into a place, and whatever they claim, prune removes none of those that others
// signed.
func TestPruneStrangers(t *testing.T) {
	mine, theirs := signer(t), signer(t)
	now := time.Now().Add(-time.Hour).UTC()
	rules := []Retention{{Last: 1}, {Last: 2}, {Within: 3 * time.Minute}, {Daily: 1}, {Yearly: 1}}
	for name, strange := range map[string]ed25519.PrivateKey{"nobody": nil, "somebody else": theirs} {
		for _, trusted := range [][]PublicKey{{PublicOf(mine)}, nil} {
			dir := t.TempDir()
			own := made(t, dir, with(Keys{}, mine, nil))
			var others []string
			for i := range 4 {
				at := now.Add(time.Duration(i) * time.Minute)
				taken(t, own, NewID(at), at, "CREATE VIEW v AS SELECT 1")
			}
			want := map[int][]string{}
			for i, p := range rules {
				want[i] = decided(t, own, p, trusted)
			}
			stranger := made(t, dir, with(Keys{}, strange, nil))
			for i := range 5 {
				at := now.Add(time.Duration(4+i) * time.Minute)
				others = append(others, taken(t, stranger, NewID(at), at, "CREATE DATABASE pwned"))
				if err := stranger.AddProof(t.Context(), Proof{Backup: others[i], Time: now, JSON: []byte(`{"passed":true}`)}); err != nil {
					t.Fatal(err)
				}
			}
			for i, p := range rules {
				got := decided(t, own, p, trusted)
				kept := slices.DeleteFunc(slices.Clone(got), func(id string) bool { return slices.Contains(others, id) })
				if !slices.Equal(kept, want[i]) {
					t.Errorf("got %s, trusted %q, %+v: with others there stay %q, alone %q; want want[i]", name, trusted, p, kept, want[i])
				}
				if p.Last == 1 && len(got)-len(kept) != 1 {
					t.Errorf("%s, trusted %q: of five others stay %q", name, trusted, got)
				}
			}
			// What is trusted replaces what is not.
			at := now.Add(30 * time.Minute)
			newest := taken(t, own, NewID(at), at, "CREATE VIEW v AS SELECT 1")
			p, err := own.Prune(t.Context(), PruneOptions{Retention: Retention{Last: 1}, Trusted: trusted})
			if err != nil {
				t.Fatal(err)
			}
			proven := others[4]
			stay := []string{proven, newest}
			if got := kept(p.Decisions); !slices.Equal(got, stay) {
				t.Errorf("%s, trusted %q: there stay %q, not %q", name, trusted, got, stay)
			}
			for _, d := range p.Decisions {
				said := strings.Join(d.Reasons, "; ")
				if d.ID == proven && !strings.Contains(said, "it replaces none signed by another key") || d.ID == newest && trusted != nil && strings.Contains(said, "replaces") {
					t.Errorf("%+v", d)
				}
			}
		}
	}
}

// TestPruneForged: what is not what was signed stays, and is reported; it replaces none.
func TestPruneForged(t *testing.T) {
	mine := signer(t)
	dir := t.TempDir()
	now := time.Now().Add(-time.Hour).UTC()
	own := made(t, dir, with(Keys{}, mine, nil))
	good := taken(t, own, NewID(now), now, "CREATE VIEW v AS SELECT 1")
	bad := taken(t, own, NewID(now.Add(time.Minute)), now.Add(time.Minute), "CREATE VIEW v AS SELECT 1")
	b, err := os.ReadFile(filepath.Join(dir, signatureKey(good)))
	if err != nil {
		t.Fatal(err)
	}
	putFile(t, dir, signatureKey(bad), b)
	list, err := own.Plan(t.Context(), PruneOptions{Retention: Retention{Last: 1}, Trusted: []PublicKey{PublicOf(mine)}})
	if err != nil || !slices.Equal(kept(list), []string{good, bad}) {
		t.Fatalf("got %+v, %v; want %v", list, err, []string{good, bad})
	}
	if said := strings.Join(list[1].Reasons, "; "); !strings.Contains(said, "it cannot be read") {
		t.Errorf("of the forged one is said %q, want \"it cannot be read\" in it", said)
	}
}

// TestPruneHollowStranger: that somebody else's backup is small does not make a small one of this account a full one.
func TestPruneHollowStranger(t *testing.T) {
	mine := signer(t)
	dir := t.TempDir()
	now := time.Now().Add(-time.Hour).UTC()
	own, stranger := made(t, dir, with(Keys{}, mine, nil)), made(t, dir, Keys{})
	take := func(r *Repo, minute int, tables int64, smaller bool) string {
		t.Helper()
		at := now.Add(time.Duration(minute) * time.Minute)
		h, d := Header{Format: Format, ID: NewID(at), Kind: Logical, Began: at, Tables: tables, Smaller: smaller, Server: Server{Identity: "s1"}}, NewDraft()
		defer d.Close()
		if err := r.Begin(t.Context(), h, nil); err != nil {
			t.Fatal(err)
		}
		if err := r.Finish(t.Context(), h, d); err != nil {
			t.Fatal(err)
		}
		return h.ID
	}
	full := take(own, 0, 100, false)
	take(stranger, 1, 1, true)
	take(own, 2, 1, false)
	if got := decided(t, own, Retention{Last: 1}, []PublicKey{PublicOf(mine)}); !slices.Contains(got, full) {
		t.Errorf("the last full one goes; there stay %q; want %v in it", got, full)
	}
}

// TestKnown: a prune trusts this account's key, those written down for the repository, and those that are named.
func TestKnown(t *testing.T) {
	dir := t.TempDir()
	id, other := strings.Repeat("ab", 16), strings.Repeat("cd", 16)
	trust := &Trust{Dir: dir, Place: "/b"}
	if keys, err := trust.Known(id); err != nil || len(keys) != 0 {
		t.Errorf("got %v, %v; want none", keys, err)
	}
	one, two, named := PublicOf(signer(t)), PublicOf(signer(t)), PublicOf(signer(t))
	for repository, key := range map[string]PublicKey{id: one, other: two} {
		if err := trust.Own(repository, key); err != nil {
			t.Fatal(err)
		}
	}
	mine, err := SigningKey(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	trust.Keys = []PublicKey{named}
	if keys, err := trust.Known(id); err != nil || !slices.Equal(keys, []PublicKey{named, one, PublicOf(mine)}) {
		t.Errorf("got %v, %v; want []PublicKey{named, one, PublicOf(mine)}", keys, err)
	}
}

// decided are the backups that stay, the oldest first.
func decided(t *testing.T, r *Repo, p Retention, trusted []PublicKey) []string {
	t.Helper()
	list, err := r.Plan(t.Context(), PruneOptions{Retention: p, Trusted: trusted})
	if err != nil {
		t.Fatal(err)
	}
	return kept(list)
}

func kept(list []Decision) (ids []string) {
	for _, d := range list {
		if d.Keep {
			ids = append(ids, d.ID)
		}
	}
	return ids
}
