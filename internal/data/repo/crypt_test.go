package repo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/rissodb/risso/internal/store/blob"
)

// keys makes an identity and the keys that go with it.
func keys(t *testing.T) (who *age.X25519Identity, write, read Keys) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	return id, Keys{Recipients: []string{id.Recipient().String()}, CacheDir: cache}, Keys{Identities: []age.Identity{id}}
}

// made makes a repository in a folder.
func made(t *testing.T, dir string, k Keys) *Repo {
	t.Helper()
	s, err := blob.Open(t.Context(), dir, blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := CreateWith(t.Context(), On(s), k)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// opened opens the repository in a folder.
func opened(t *testing.T, dir string, k Keys) *Repo {
	t.Helper()
	s, err := blob.Open(t.Context(), dir, blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := OpenWith(t.Context(), On(s), k)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// back takes a backup of made up tables: content by schema.table, a chunk each; and a physical part for each of parts.
func back(t *testing.T, r *Repo, at time.Time, tables map[string][]string, parts ...string) string {
	t.Helper()
	h, d := Header{Format: Format, ID: NewID(at), Kind: Logical, Began: at, Snapshot: at, Ended: at.Add(time.Minute), Server: Server{Identity: "s1", Name: "db1", LogDo: []string{"secret_do"}, LogIgnore: []string{"secret_ignore"}}, Notes: []string{"secret note"}}, NewDraft()
	defer d.Close()
	if err := r.Begin(t.Context(), h, nil); err != nil {
		t.Fatal(err)
	}
	k, err := r.NewKeeper()
	if err != nil {
		t.Fatal(err)
	}
	for name, chunks := range tables {
		schema, table, _ := strings.Cut(name, ".")
		line := &Table{Schema: schema, Name: table, Create: "CREATE TABLE secret definition"}
		for _, raw := range chunks {
			kept, err := k.Keep(t.Context(), schema, table, []byte(raw))
			if err != nil {
				t.Fatal(err)
			}
			line.Chunks = append(line.Chunks, Chunk{Hash: kept.Hash, Bytes: int64(len(raw)), Stored: kept.Stored})
			h.Bytes += int64(len(raw))
		}
		if err := d.Add(Line{Table: line}); err != nil {
			t.Fatal(err)
		}
		h.Tables++
	}
	for i, raw := range parts {
		p, err := k.KeepPart(t.Context(), h.ID, i, []byte(raw))
		if err == nil {
			err = d.Add(Line{Part: &p})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Finish(t.Context(), h, d); err != nil {
		t.Fatal(err)
	}
	return h.ID
}

// files reads all files below a folder.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		all[filepath.ToSlash(rel)] = b
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEncryption: without the identity nothing can be read; with it all can; equal rows are still stored once.
func TestEncryption(t *testing.T) {
	dir := t.TempDir()
	who, write, read := keys(t)
	r := made(t, dir, write)
	raw := strings.Repeat("very secret rows ", 100)
	now := time.Now()
	id := back(t, r, now.Add(-time.Hour), map[string][]string{"s.t": {raw, raw + "2"}}, "part of secret files")
	before := len(files(t, dir))
	back(t, opened(t, dir, write), now, map[string][]string{"s.t": {raw, raw + "3"}})
	if n := len(files(t, dir)) - before; n != 4 { // one chunk, head, objects, manifest
		t.Errorf("the second backup added %d files, want 4", n)
	}
	for name, b := range files(t, dir) {
		if bytes.Contains(b, []byte("AGE-SECRET")) || bytes.Contains(b, []byte(strings.ToLower(who.String()))) {
			t.Errorf("%s holds the identity; want no []byte(\"AGE-SECRET\") in b, no []byte(strings.ToLower(who.String())) in b", name)
		}
		if zstdHolds(t, b, "secret") {
			t.Errorf("%s can be read by anybody", name)
		}
		if name != "risso.json" && !strings.Contains(name, "/head") && !strings.Contains(name, "/objects") && !bytes.HasPrefix(b, []byte("age-encryption.org/v1\n")) {
			t.Errorf("%s is not encrypted", name)
		}
	}
	rows := func(r *Repo) (string, error) {
		m, err := r.Manifest(t.Context(), id)
		if err != nil {
			return "", err
		}
		defer m.Close()
		var got string
		return got, m.Each(func(l Line) error {
			if l.Table == nil {
				rc, err := r.Part(t.Context(), id, *l.Part)
				if err != nil {
					return err
				}
				defer rc.Close()
				b, err := io.ReadAll(rc)
				got += string(b)
				return err
			}
			for _, c := range l.Table.Chunks {
				rc, err := r.Chunk(t.Context(), "s", "t", c.Hash)
				if err != nil {
					return err
				}
				b, err := io.ReadAll(rc)
				rc.Close()
				if err != nil {
					return err
				}
				got += string(b)
			}
			return nil
		})
	}
	if got, err := rows(opened(t, dir, read)); err != nil || len(got) != len(raw+raw+"2"+"part of secret files") {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := rows(opened(t, dir, write)); !errors.Is(err, ErrNoKey) {
		t.Errorf("without an identity: got %v, want ErrNoKey", err)
	}
	// The host that writes knows what it wrote last, to cut tables alike; no other host does.
	list, err := opened(t, dir, write).Backups(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("got %+v, %v; want length 2", list, err)
	}
	m, err := opened(t, dir, write).Manifest(t.Context(), list[1].ID)
	if err != nil || m.Each(func(Line) error { return nil }) != nil || len(m.Header.Notes) != 1 {
		t.Errorf("the host that writes reads its own manifest: got %+v, %v; want Each(func(Line) error { return nil }) nil, len(Header.Notes) 1", m, err)
	}
	if _, err := opened(t, dir, Keys{}).Manifest(t.Context(), list[1].ID); !errors.Is(err, ErrNoKey) {
		t.Errorf("another host reads a manifest: got %v, want ErrNoKey", err)
	}
	_, _, stranger := keys(t)
	s, _ := blob.Open(t.Context(), dir, blob.Options{})
	if _, err := OpenWith(t.Context(), On(s), stranger); !errors.Is(err, ErrNoKey) {
		t.Errorf("with a stranger's identity: got %v, want ErrNoKey", err)
	}
	if list, err := opened(t, dir, Keys{}).Backups(t.Context()); err != nil || len(list) != 2 || list[0].Server.Name != "db1" || len(list[0].Notes) != 0 {
		t.Errorf("the catalogue without an identity: got %+v, %v; want len(list) 2, list[0].Server.Name \"db1\", no list[0].Notes", list, err)
	}
	otherHost(t, dir, raw, read)
	otherRecipients(t, dir, r.ID, write)
}

// otherHost: a host that has neither the identity nor the key of names does not write; with the identity it does, and from then on.
func otherHost(t *testing.T, dir, raw string, read Keys) {
	elsewhere := Keys{CacheDir: t.TempDir()}
	if k, err := opened(t, dir, elsewhere).NewKeeper(); err != nil {
		t.Fatal(err)
	} else if _, err := k.Keep(t.Context(), "s", "t", []byte(raw)); err == nil {
		t.Error("a host without the key of names writes")
	}
	opened(t, dir, Keys{CacheDir: elsewhere.CacheDir, Identities: read.Identities})
	k, err := opened(t, dir, elsewhere).NewKeeper()
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := k.Keep(t.Context(), "s", "t", []byte(raw)); err != nil || kept.New {
		t.Errorf("a host that was given the identity once: %+v, %v", kept, err)
	}
}

// otherRecipients: somebody adds recipients.
func otherRecipients(t *testing.T, dir, id string, write Keys) {
	thief, _, _ := keys(t)
	b, err := config{Format: Format, ID: id, Created: time.Now().UTC().Truncate(time.Second), Recipients: []string{thief.Recipient().String()}}.encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "risso.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]Keys{"recipients": {Recipients: write.Recipients}, "this host": {CacheDir: write.CacheDir}} {
		if _, err := OpenWith(t.Context(), at(t, dir), k); !errors.Is(err, ErrRecipients) {
			t.Errorf("other recipients than %s knows: got %v, want ErrRecipients", name, err)
		}
	}
}

// zstdHolds reports whether bytes hold a word, as they are or unpacked.
func zstdHolds(t *testing.T, b []byte, word string) bool {
	t.Helper()
	if bytes.Contains(b, []byte(word)) {
		return true
	}
	o, err := openObject("x", io.NopCloser(bytes.NewReader(b)), nil)
	if err != nil {
		return false
	}
	defer o.Close()
	plain, _ := io.ReadAll(o)
	return bytes.Contains(plain, []byte(word))
}

// TestEncryptedDamage: any flipped bit of an encrypted object is damage, not a missing key, with an identity or without.
func TestEncryptedDamage(t *testing.T) {
	dir := t.TempDir()
	_, write, read := keys(t)
	id := back(t, made(t, dir, write), time.Now(), map[string][]string{"s.t": {"rows"}})
	r := opened(t, dir, read)
	for name, b := range files(t, dir) {
		if !strings.HasPrefix(name, "data/") && !strings.HasSuffix(name, "/manifest") {
			continue
		}
		for i := 0; i < len(b); i += 5 {
			damaged := bytes.Clone(b)
			damaged[i] ^= 1 << (i % 8)
			if err := os.WriteFile(filepath.Join(dir, name), damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			var err error
			if strings.HasPrefix(name, "data/") {
				var rc io.ReadCloser
				if rc, err = r.Chunk(context.Background(), "s", "t", filepath.Base(name)); err == nil {
					_, err = io.ReadAll(rc)
					rc.Close()
				}
			} else {
				var m *Manifest
				if m, err = r.Manifest(context.Background(), id); err == nil {
					err = m.Each(func(Line) error { return nil })
					m.Close()
				}
			}
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("%s: bit of byte %d of %d: %v, want ErrDamaged", name, i, len(b), err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadRecipients: a recipient, a file of them, and what is not one; no secret in an error.
func TestReadRecipients(t *testing.T) {
	a, _, _ := keys(t)
	b, _, _ := keys(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	if list, err := ReadRecipients(a.Recipient().String()); err != nil || len(list) != 1 {
		t.Errorf("got %q, %v; want length 1", list, err)
	}
	two := write("two", "# both\n\n"+a.Recipient().String()+"\n"+b.Recipient().String()+"\n"+a.Recipient().String()+"\n")
	if list, err := ReadRecipients(two); err != nil || len(list) != 2 {
		t.Errorf("got %q, %v; want length 2", list, err)
	}
	for _, spec := range []string{"", "age1nonsense", filepath.Join(dir, "none"), write("empty", "# nobody\n"), write("secret", a.String()+"\n"), a.String()} {
		list, err := ReadRecipients(spec)
		if err == nil || strings.Contains(err.Error(), a.String()) {
			t.Errorf("%.20q gives %q, %v; want an error, no %q in the error", spec, list, err, a.String())
		}
	}
	if list, err := ReadIdentities(write("id", "# created\n"+a.String()+"\n")); err != nil || len(list) != 1 {
		t.Errorf("got %d identities, %v; want 1", len(list), err)
	}
	if _, err := ReadIdentities(write("half", a.String()[:40]+"\n")); err == nil || strings.Contains(err.Error(), a.String()[:40]) {
		t.Errorf("half an identity: got %v; want an error, no a.String()[:40] in the error", err)
	}
}

var errNowhere = blob.ErrNotFound

func benchKeys(b *testing.B) Keys {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		b.Fatal(err)
	}
	return Keys{Recipients: []string{id.Recipient().String()}, Identities: []age.Identity{id}}
}
