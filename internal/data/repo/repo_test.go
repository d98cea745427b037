package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/store/blob"
)

// folderPlace is a repository's store in a folder.
type folderPlace struct {
	place
	dir string
}

// folder opens one; there is nothing to close.
func folder(dir string) folderPlace {
	s, err := blob.Open(context.Background(), dir, blob.Options{})
	if err != nil {
		panic(err) // the path of a folder is not wrong
	}
	return folderPlace{place{s}, dir}
}

// path is the file of a key, made writable: objects are put read-only.
func (f folderPlace) path(t *testing.T, key string) string {
	t.Helper()
	path := filepath.Join(f.dir, filepath.FromSlash(key))
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func begun(t *testing.T, r *Repo) (Header, *Draft) {
	t.Helper()
	now := time.Now().UTC()
	h := Header{Format: Format, ID: NewID(now), Kind: Logical, Began: now}
	if err := r.Begin(t.Context(), h, nil); err != nil {
		t.Fatal(err)
	}
	d := NewDraft()
	t.Cleanup(d.Close)
	return h, d
}

// TestManifest: lines come back in the order of restoring, and any changed byte or cut is found.
func TestManifest(t *testing.T) {
	place := folder(t.TempDir())
	r, err := CreateWith(t.Context(), place, Keys{})
	if err != nil {
		t.Fatal(err)
	}
	h, d := begun(t, r)
	for _, l := range []Line{
		{Object: &Object{Kind: Trigger, Name: "tr"}}, {Table: &Table{Schema: "s", Name: "t\n\"`'"}},
		{Object: &Object{Kind: View, Name: "v"}}, {Object: &Object{Kind: Sequence, Name: "q"}}, {Schema: &Schema{Name: "s"}},
	} {
		if err := d.Add(l); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := r.Backups(t.Context()); err != nil || len(list) != 0 {
		t.Fatalf("before the manifest there is %v, %v; want none", list, err)
	}
	if err := r.Finish(t.Context(), h, d); err != nil {
		t.Fatal(err)
	}
	read := func() (names []string, err error) {
		m, err := r.Manifest(t.Context(), "")
		if err != nil {
			return nil, err
		}
		defer m.Close()
		err = m.Each(func(l Line) error {
			switch {
			case l.Schema != nil:
				names = append(names, l.Schema.Name)
			case l.Table != nil:
				names = append(names, l.Table.Name)
			default:
				names = append(names, l.Object.Name)
			}
			return nil
		})
		return names, err
	}
	if names, err := read(); err != nil || !slices.Equal(names, []string{"s", "q", "t\n\"`'", "v", "tr"}) {
		t.Fatalf("got %q, %v; want []string{\"s\", \"q\", \"t\\n\\\"`'\", \"v\", \"tr\"}", names, err)
	}
	path := place.path(t, manifestKey(h.ID))
	everyDamage(t, path, func() error {
		_, err := read()
		return err
	})
}

// TestChunk: the same rows are stored once, and any changed bit or cut is found.
func TestChunk(t *testing.T) {
	place := folder(t.TempDir())
	r, err := CreateWith(t.Context(), place, Keys{})
	if err != nil {
		t.Fatal(err)
	}
	k, err := r.NewKeeper()
	if err != nil {
		t.Fatal(err)
	}
	raw := []byte(strings.Repeat("\x03abc\xfb", 50) + "\x04last")
	first, err := k.Keep(t.Context(), "odd `name.x", "größe/..", raw)
	if err != nil || !first.New {
		t.Fatalf("got %+v, %v; want New true", first, err)
	}
	again, err := k.KeepStream(t.Context(), "odd `name.x", "größe/..", func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(raw))
		return err
	})
	if err != nil || again.New || again.Hash != first.Hash || again.Stored != first.Stored {
		t.Fatalf("got %+v after %+v, %v; want New false, Hash %v, Stored %v", again, first, err, first.Hash, first.Stored)
	}
	read := func() ([]byte, error) {
		rc, err := r.Chunk(t.Context(), "odd `name.x", "größe/..", first.Hash)
		if err != nil {
			return nil, err
		}
		defer rc.Close()
		return io.ReadAll(rc)
	}
	if b, err := read(); err != nil || !bytes.Equal(b, raw) {
		t.Fatalf("got %q, %v; want %q", b, err, raw)
	}
	path := place.path(t, chunkKey("odd `name.x", "größe/..", first.Hash))
	everyDamage(t, path, func() error {
		_, err := read()
		return err
	})
	if _, err := r.Chunk(t.Context(), "s", "t", first.Hash); !errors.Is(err, ErrDamaged) {
		t.Fatalf("a missing chunk gives %v, want ErrDamaged", err)
	}
}

// TestNames: no two names share a key, and no name leaves its folder.
func TestNames(t *testing.T) {
	seen := map[string]string{}
	for _, n := range []string{"", "a", "A", "a.b", "a/b", "..", "a%2Fb", "größe", "😀", "new\nline", strings.Repeat("x", 100), strings.Repeat("x", 101), strings.Repeat("ü", 64), strings.Repeat("ü", 63) + "ö"} {
		e := escape(n)
		if len(e) > maxName || strings.ContainsAny(e, "/\n ") || e == ".." || e == "." {
			t.Errorf("%q becomes %q; want len(e) at most %v, strings.ContainsAny(e, \"/\\n \") false, e not \"..\", e not \".\"", n, e, maxName)
		}
		if other, ok := seen[e]; ok {
			t.Errorf("%q and %q both become %q", n, other, e)
		}
		seen[e] = n
	}
	if a, b := NewID(time.Unix(1, 0)), NewID(time.Unix(2, 0)); a >= b {
		t.Errorf("got %v, want a less than %v", fmt.Sprint(a, b), b)
	}
}

// everyDamage changes a bit of each byte of a file, and cuts it at each: what reads it must say that it is damaged. The last cut
// stays.
func everyDamage(t *testing.T, path string, read func() error) {
	t.Helper()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		damaged := slices.Clone(whole)
		damaged[i] ^= 1 << (i % 8)
		for what, b := range map[string][]byte{"a changed bit": damaged, "a cut": whole[:i]} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := read(); !errors.Is(err, ErrDamaged) {
				t.Fatalf("%s at byte %d of %d gives %v, want ErrDamaged", what, i, len(whole), err)
			}
		}
	}
}
