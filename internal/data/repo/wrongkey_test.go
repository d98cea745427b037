package repo

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
)

// TestVerifyWrongKey: an identity that opens nothing is one error, and nothing is set aside because a key is missing, whatever is known of
// it here.
func TestVerifyWrongKey(t *testing.T) {
	one, write, _ := keys(t)
	two, _, _ := keys(t)
	stranger, _, _ := keys(t)
	write.Recipients = append(write.Recipients, two.Recipient().String())
	slices.Sort(write.Recipients)
	dir := t.TempDir()
	r := made(t, dir, write)
	id := back(t, r, time.Now().Add(-time.Hour), map[string][]string{"s.t": {"rows 1", "rows 2"}, "s.other": {"rows 3"}}, "files")
	whole := files(t, dir)
	names := whole[namesKey]
	with := func(ids ...age.Identity) Keys { return Keys{CacheDir: write.CacheDir, Identities: ids} }
	look := func(k Keys) (*Verified, error) {
		r, err := openedAgain(dir, k)
		if err != nil {
			return nil, err
		}
		return r.Verify(t.Context(), VerifyOptions{SetAside: true})
	}
	for what, k := range map[string]Keys{"wrong": with(stranger), "wrong, another host": {Identities: []age.Identity{stranger}}} {
		for how, there := range map[string][]byte{"as it is": names, "the key of names damaged": append([]byte("x"), names...), "the key of names lost": nil} {
			if putFile(t, dir, namesKey, there); there == nil {
				os.Remove(filepath.Join(dir, namesKey))
			}
			v, err := look(k)
			if err == nil || there != nil && len(there) == len(names) && !errors.Is(err, ErrNoKey) || k.CacheDir != "" && !errors.Is(err, ErrNoKey) {
				t.Errorf("%s identity, %s: %+v, %v", what, how, v, err)
			}
			if k.CacheDir != "" && err != nil && !strings.Contains(err.Error(), "the given identity") {
				t.Errorf("%s identity, %s: %v", what, how, err)
			}
			putFile(t, dir, namesKey, names)
			if got := files(t, dir); !sameFiles(got, whole) {
				t.Fatalf("%s identity, %s: the place has changed", what, how)
			}
		}
	}
	for what, k := range map[string]Keys{"one of two": with(one), "the other": with(two), "among others": with(stranger, two)} {
		if v, err := look(k); err != nil || !v.Whole() || v.Objects != 4 {
			t.Errorf("%s: got %+v, %v; want Whole() true, Objects 4", what, v, err)
		}
	}
	// An object, and a manifest, of another recipient in the same place: reported, and left where they are.
	other := t.TempDir()
	more, _, _ := keys(t)
	both := []string{stranger.Recipient().String(), more.Recipient().String()} // so that sizes agree
	slices.Sort(both)
	strange := made(t, other, Keys{Recipients: both, CacheDir: t.TempDir()})
	strangeID := back(t, strange, time.Now(), map[string][]string{"s.other": {"rows 3"}})
	all := files(t, other)
	for name, b := range all {
		if !strings.HasPrefix(name, dataPrefix) {
			continue
		}
		for mine := range whole {
			if !strings.HasPrefix(mine, dataPrefix+"s/other/") {
				continue
			}
			for key, object := range map[string][]byte{mine: b, manifestKey(id): all[manifestKey(strangeID)]} {
				putFile(t, dir, key, object)
				v, err := look(with(one))
				if err != nil || len(v.Broken) != 1 || !slices.ContainsFunc(v.Problems, func(p Problem) bool { return p.Key == key && p.Kind == Locked }) {
					t.Errorf("%s of another recipient: %+v, %v", key, v, err)
				}
				if got := files(t, dir); !bytes.Equal(got[key], object) || slices.ContainsFunc(v.Problems, func(p Problem) bool { return p.Aside != "" }) {
					t.Errorf("%s was set aside: %+v", key, v.Problems)
				}
				putFile(t, dir, key, whole[key])
			}
		}
	}
	// What is damaged is damaged, and set aside, also where its first bytes are those that say who opens it.
	for name, b := range whole {
		if !strings.HasPrefix(name, dataPrefix) {
			continue
		}
		for _, at := range []int{30, 60, len(b) / 2} {
			bad := bytes.Clone(b)
			bad[at] ^= 4
			putFile(t, dir, name, bad)
			if v, err := look(with(one)); err != nil || len(v.Problems) != 1 || v.Problems[0].Kind != Damaged || v.Problems[0].Aside == "" {
				t.Errorf("byte %d of %s changed: got %+v, %v; want len(Problems) 1, v.Problems[0].Kind Damaged, v.Problems[0].Aside not \"\"", at, name, v, err)
			}
			putFile(t, dir, name, b)
		}
	}
	plain := t.TempDir()
	back(t, made(t, plain, Keys{}), time.Now(), map[string][]string{"s.t": {"rows"}})
	dir = plain
	if v, err := look(with(stranger)); err != nil || !v.Whole() {
		t.Errorf("an identity for what is not encrypted: %+v, %v", v, err)
	}
}

// TestOtherNames: where the key of names was put there from elsewhere, by somebody who knows the recipients, nothing is set aside for it.
func TestOtherNames(t *testing.T) {
	one, write, _ := keys(t)
	dir := t.TempDir()
	back(t, made(t, dir, write), time.Now().Add(-time.Hour), map[string][]string{"s.t": {"rows 1", "rows 2"}})
	other := t.TempDir()
	made(t, other, Keys{Recipients: write.Recipients, CacheDir: t.TempDir()})
	putFile(t, dir, namesKey, files(t, other)[namesKey])
	was := files(t, dir)
	r := opened(t, dir, Keys{Identities: []age.Identity{one}})
	if v, err := r.Verify(t.Context(), VerifyOptions{SetAside: true}); err == nil || !strings.Contains(err.Error(), namesKey) || !sameFiles(files(t, dir), was) {
		t.Errorf("on another host: got %+v, %v; want an error, %q in the error, sameFiles(files(t, dir), was) true", v, err, namesKey)
	}
	r = opened(t, dir, Keys{Identities: []age.Identity{one}, CacheDir: write.CacheDir})
	v, err := r.Verify(t.Context(), VerifyOptions{SetAside: true})
	if err != nil || len(v.Problems) != 1 || v.Problems[0].Key != namesKey || v.Problems[0].Kind != Damaged || !sameFiles(files(t, dir), was) {
		t.Errorf("on the host that keeps the key: %+v, %v; want len(Problems) 1, Problems[0].Key %v, Problems[0].Kind Damaged, sameFiles(files(t, dir), was) true",
			v, err, namesKey)
	}
}

func sameFiles(a, b map[string][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for name := range a {
		if !bytes.Equal(a[name], b[name]) {
			return false
		}
	}
	return true
}
