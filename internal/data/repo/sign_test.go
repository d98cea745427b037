package repo

import (
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// signer makes a key, like that of a separate account.
func signer(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	k, err := SigningKey(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// taken takes a backup with a view.
func taken(t *testing.T, r *Repo, id string, at time.Time, view string) string {
	t.Helper()
	return takenAs(t, r, id, at, view, Format)
}

// takenAs takes a backup as one of a format.
func takenAs(t *testing.T, r *Repo, id string, at time.Time, view string, format int) string {
	t.Helper()
	h, d := Header{Format: format, ID: id, Kind: Logical, Began: at, Snapshot: at, Ended: at, Tables: 1, Server: Server{Identity: "s1", Name: "db1"}}, NewDraft()
	defer d.Close()
	if err := r.Begin(t.Context(), h, nil); err != nil {
		t.Fatal(err)
	}
	for _, l := range []Line{{Table: &Table{Schema: "s", Name: "t", Create: "CREATE TABLE t (id INT)"}}, {Object: &Object{Kind: View, Schema: "s", Name: "v", Create: view}}} {
		if err := d.Add(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Finish(t.Context(), h, d); err != nil {
		t.Fatal(err)
	}
	return id
}

// readAll reads a manifest as a restore does.
func readAll(t *testing.T, dir, id string, k Keys) error {
	t.Helper()
	r, err := OpenWith(t.Context(), folder(dir), k)
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Manifest(t.Context(), id)
	if err != nil {
		return err
	}
	defer m.Close()
	return m.Each(func(Line) error { return nil })
}

// TestNewerFormat: what a newer program wrote is refused with a word on why, and stays as it is.
func TestNewerFormat(t *testing.T) {
	dir, now := t.TempDir(), time.Now().Add(-time.Hour)
	r := made(t, dir, with(Keys{}, signer(t), nil))
	id := takenAs(t, r, NewID(now), now, "CREATE VIEW v AS SELECT 1", Format+1)
	before := files(t, dir)
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "has format 2, this risso reads up to 1: take a newer one") || errors.Is(err, ErrDamaged) {
			t.Errorf("%s: got %v; want an error, \"has format 2, this risso reads up to 1: take a newer one\" in the error, errors.Is(err, ErrDamaged) false",
				what, err)
		}
	}
	refused("a backup", readAll(t, dir, id, Keys{}))
	if _, err := r.Prune(t.Context(), PruneOptions{Retention: Retention{Last: 1}}); err != nil {
		t.Log(err)
	}
	path := filepath.Join(dir, configKey)
	b := []byte(strings.Replace(string(before[configKey]), `"format":1`, `"format":2`, 1))
	if string(b) == string(before[configKey]) {
		t.Fatalf("no format in %s, want not string(before[configKey])", b)
	}
	for key, want := range before {
		if got := files(t, dir)[key]; string(got) != string(want) {
			t.Errorf("%s was changed, want string(got) %v", key, string(want))
		}
	}
	putFile(t, dir, configKey, b)
	for _, open := range []func() error{
		func() error { _, err := OpenWith(t.Context(), folder(dir), Keys{}); return err },
		func() error { _, err := CreateWith(t.Context(), folder(dir), Keys{}); return err },
	} {
		refused("the repository", open())
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != string(b) {
		t.Errorf("%s was changed: %v; want string(got) %v", path, err, string(b))
	}
}

// TestForged puts into a repository what its taker did not sign, plain and encrypted: a restore reports it, and it is never read
// to its end.
func TestForged(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		mine, theirs := signer(t), signer(t)
		var identity, write Keys
		if encrypted {
			_, write, identity = keys(t)
		}
		now := time.Now().Add(-time.Hour).UTC()
		older, newer := NewID(now), NewID(now.Add(time.Minute))
		model := t.TempDir()
		own := made(t, model, with(write, mine, nil))
		taken(t, own, older, now, "CREATE VIEW v AS SELECT 1")
		taken(t, own, newer, now.Add(time.Minute), "CREATE VIEW v AS SELECT 2")
		move := func(dir string, from, to string, files ...string) {
			t.Helper()
			if err := os.MkdirAll(filepath.Join(dir, "backups", to), 0o700); err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				b, err := os.ReadFile(filepath.Join(dir, "backups", from, f))
				name := filepath.Join(dir, "backups", to, f)
				os.Remove(name) // files put there are not writable
				if err == nil {
					err = os.WriteFile(name, b, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		all := []string{"head", "objects", "manifest", "signature"}
		later := NewID(now.Add(2 * time.Minute))
		for _, c := range []struct {
			name  string
			forge func(dir string)
			id    string
			want  error
		}{
			{"as it was", func(string) {}, newer, nil},
			{"another definition of a view", func(dir string) {
				taken(t, made(t, dir, write), newer, now.Add(time.Minute), "CREATE DATABASE pwned")
			}, newer, ErrForged},
			{"a manifest of another backup", func(dir string) { move(dir, older, newer, "manifest") }, newer, ErrForged},
			{"all of another backup", func(dir string) { move(dir, older, newer, all...) }, newer, ErrForged},
			{"an older one under a new name", func(dir string) { move(dir, older, later, all...) }, later, ErrForged},
			{"the newest is an older one under a new name", func(dir string) { move(dir, older, later, all...) }, "", ErrForged},
			{"no signature", func(dir string) { os.Remove(filepath.Join(dir, signatureKey(newer))) }, newer, ErrUnsigned},
			{"a new one without signature", func(dir string) {
				taken(t, made(t, dir, write), later, now, "CREATE DATABASE pwned")
			}, "", ErrUnsigned},
			{"signed by somebody else", func(dir string) {
				taken(t, made(t, dir, with(write, theirs, nil)), newer, now.Add(time.Minute), "CREATE DATABASE pwned")
			}, newer, ErrForeign},
			{"a damaged signature", func(dir string) {
				name := filepath.Join(dir, signatureKey(newer))
				b, _ := os.ReadFile(name)
				b[20] ^= 1
				os.Remove(name)
				os.WriteFile(name, b, 0o600)
			}, newer, ErrDamaged},
		} {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(model)); err != nil {
				t.Fatal(err)
			}
			c.forge(dir)
			trust := &Trust{Dir: t.TempDir(), Place: "/b", Keys: []PublicKey{PublicOf(mine)}}
			if err := readAll(t, dir, c.id, with(identity, nil, trust)); !errors.Is(err, c.want) {
				t.Errorf("encrypted %t, %s: %v, not %v", encrypted, c.name, err, c.want)
			}
			v, err := opened(t, dir, with(identity, nil, trust)).Verify(t.Context(), VerifyOptions{})
			if err != nil || v.Whole() != (c.want == nil) {
				t.Errorf("encrypted %t, %s: verified %+v, %v; want v.Whole() %v", encrypted, c.name, v, err, c.want == nil)
			}
			if c.want == ErrForged || c.want == ErrDamaged { // the flag is for unsigned backups, not for changed ones
				trust.Unsigned = true
				if err := readAll(t, dir, c.id, with(identity, nil, trust)); !errors.Is(err, c.want) {
					t.Errorf("encrypted %t, %s, unsigned allowed: %v, not %v", encrypted, c.name, err, c.want)
				}
			}
		}
		// The head next to it, which lists use, is compared with what was signed.
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(model)); err != nil {
			t.Fatal(err)
		}
		forger, h := made(t, dir, write), Header{Format: Format, ID: newer, Kind: Logical, Began: now.AddDate(0, 0, 1), Tables: 99}
		if err := forger.writeHead(t.Context(), h, NewDraft()); err != nil {
			t.Fatal(err)
		}
		if v, err := opened(t, dir, with(identity, nil, nil)).Verify(t.Context(), VerifyOptions{}); err != nil || v.Whole() {
			t.Errorf("encrypted %t: a head that says something else is whole: %+v, %v", encrypted, v, err)
		}
		// A copy has the signatures.
		to := t.TempDir()
		if _, err := own.CopyTo(t.Context(), folder(to), CopyOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := readAll(t, to, newer, with(identity, nil, &Trust{Dir: t.TempDir(), Keys: []PublicKey{PublicOf(mine)}})); err != nil {
			t.Errorf("of a copy: %v", err)
		}
		// What prune removes it removes with its signature.
		if _, err := own.Prune(t.Context(), PruneOptions{Remove: []string{older}}); err != nil {
			t.Fatal(err)
		}
		if list, _ := filepath.Glob(filepath.Join(model, "backups", older, "*")); len(list) != 0 {
			t.Errorf("prune leaves %v, want none", list)
		}
	}
}

// with adds a signer and a policy to keys.
func with(k Keys, signer ed25519.PrivateKey, p *Trust) Keys {
	if k.Signer = signer; p != nil {
		k.Policy = p
	}
	return k
}

// TestFirstUse: the first key of a repository is trusted and written down, another one is not, nor another repository in its place;
// own keys are trusted.
func TestFirstUse(t *testing.T) {
	dir, account := t.TempDir(), t.TempDir()
	mine, theirs := signer(t), signer(t)
	now := time.Now().Add(-time.Hour)
	first := taken(t, made(t, dir, with(Keys{}, mine, nil)), NewID(now), now, "CREATE VIEW v AS SELECT 1")
	second := taken(t, made(t, dir, with(Keys{}, theirs, nil)), NewID(now.Add(time.Minute)), now, "CREATE VIEW v AS SELECT 1")
	unsigned := taken(t, made(t, dir, Keys{}), NewID(now.Add(2*time.Minute)), now, "CREATE VIEW v AS SELECT 1")
	var said []string
	read := func(place, id string, change ...func(*Trust)) error {
		p := &Trust{Dir: account, Place: place, Said: func(text string) { said = append(said, text) }}
		for _, c := range change {
			c(p)
		}
		return readAll(t, place, id, with(Keys{}, nil, p))
	}
	tells := func(word string) {
		t.Helper()
		if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, word) }) {
			t.Errorf("nothing of %q in %q", word, said)
		}
		said = nil
	}
	if err := read(dir, unsigned); !errors.Is(err, ErrUnsigned) {
		t.Errorf("unsigned: got %v, want ErrUnsigned", err)
	}
	if err := read(dir, first); err != nil {
		t.Error(err)
	}
	tells(string(PublicOf(mine)))
	if err := read(dir, first); err != nil || len(said) > 0 {
		t.Errorf("the second time: got %v, %q; want none", err, said)
	}
	if err := read(dir, second); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), string(PublicOf(theirs))) {
		t.Errorf("another key: got %v; want ErrForeign, string(PublicOf(theirs)) in the error", err)
	}
	if err := read(dir, second, func(p *Trust) { p.Unsigned = true }); err != nil {
		t.Error(err)
	}
	tells("is not trusted")
	if err := read(dir, unsigned, func(p *Trust) { p.Unsigned = true }); err != nil {
		t.Error(err)
	}
	tells("is not signed")
	if err := read(dir, second, func(p *Trust) { p.Keys = []PublicKey{PublicOf(theirs)} }); err != nil {
		t.Error(err)
	}
	if err := read(dir, second); err != nil {
		t.Errorf("trusted before: %v", err)
	}
	if st, err := os.Stat(filepath.Join(account, knownFile)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v; want Mode().Perm() 0o600", st, err)
	}
	// Another repository in the same place.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	other := taken(t, made(t, dir, with(Keys{}, signer(t), nil)), NewID(now), now, "CREATE DATABASE pwned")
	if err := read(dir, other); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "has been replaced by another") {
		t.Errorf("another repository: got %v; want ErrForeign, \"has been replaced by another\" in the error", err)
	}
	// Taking backups implies trusting oneself, and then nobody else by first use.
	elsewhere := t.TempDir()
	key, err := SigningKey(account, true)
	if err != nil {
		t.Fatal(err)
	}
	r := made(t, elsewhere, with(Keys{}, key, nil))
	if err := (&Trust{Dir: account, Place: elsewhere}).Own(r.ID, PublicOf(key)); err != nil {
		t.Fatal(err)
	}
	foreign := taken(t, made(t, elsewhere, with(Keys{}, theirs, nil)), NewID(now), now, "CREATE DATABASE pwned")
	if err := read(elsewhere, foreign); !errors.Is(err, ErrForeign) {
		t.Errorf("another's in a repository of one's own: got %v, want ErrForeign", err)
	}
	if err := read(elsewhere, taken(t, r, NewID(now.Add(time.Minute)), now, "CREATE VIEW v AS SELECT 1")); err != nil {
		t.Errorf("one's own: %v", err)
	}
	if err := os.WriteFile(filepath.Join(account, knownFile), []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := read(elsewhere, foreign); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("with a damaged file of known keys: got %v; want an error, \"line 1\" in the error", err)
	}
}

// TestSigningKey: it is made once, for the account's eyes only, also by several processes at the same time.
func TestSigningKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "risso")
	if _, err := SigningKey(dir, false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("before there is one: %v, want os.ErrNotExist", err)
	}
	var wg sync.WaitGroup
	got := make([]PublicKey, 8)
	for i := range got {
		wg.Go(func() {
			if k, err := SigningKey(dir, true); err != nil {
				t.Error(err)
			} else {
				got[i] = PublicOf(k)
			}
		})
	}
	wg.Wait()
	if len(slices.Compact(got)) != 1 {
		t.Errorf("several keys: got %v, want len(slices.Compact(got)) 1", got)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 {
		t.Fatalf("got %v, %v; want length 1", list, err)
	}
	if st, err := list[0].Info(); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v; want Perm() 0o600", st.Mode(), err)
	}
	if k, err := ParsePublicKey(string(got[0]) + "\n"); err != nil || k != got[0] {
		t.Errorf("got %v, %v; want got[0]", k, err)
	}
	for _, bad := range []string{"", "ed25519:", "ed25519:AAAA", string(got[0]) + "A", "rsa:" + string(got[0][8:])} {
		if _, err := ParsePublicKey(bad); err == nil {
			t.Errorf("%q is taken for a key", bad)
		}
	}
}
