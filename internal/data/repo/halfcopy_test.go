package repo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestWithoutManifest: if a place was copied in part, a backup without its manifest is reported, and prune leaves what it needs until it is
// named.
func TestWithoutManifest(t *testing.T) {
	dir := t.TempDir()
	r := made(t, dir, Keys{})
	now := time.Now()
	whole := back(t, r, now.Add(-2*time.Hour), map[string][]string{"s.t": {"rows", "more"}})
	lost := back(t, r, now.Add(-time.Hour), map[string][]string{"s.t": {"rows", "other"}}, "part")
	manifest := manifestKey(lost)
	was := files(t, dir)
	if err := os.Remove(filepath.Join(dir, manifest)); err != nil {
		t.Fatal(err)
	}
	list, err := r.Headless(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != lost || list[0].Header.ID != lost || !errors.Is(list[0].Err, ErrDamaged) {
		t.Fatalf("got %+v, %v; want len(list) 1, list[0].ID %v, list[0].Header.ID %v, ErrDamaged", list, err, lost, lost)
	}
	v, err := r.Verify(t.Context(), VerifyOptions{})
	if err != nil || v.Whole() || !slices.Equal(v.Broken, []string{lost}) || v.Problems[0].Kind != Missing || v.Problems[0].Key != manifest || !slices.Equal(v.Problems[0].Backups, []string{lost}) {
		t.Errorf("verify: got %+v, %v; want Whole() false, Broken %v, Problems[0].Kind Missing, Problems[0].Key %v, Problems[0].Backups %v",
			v, err, []string{lost}, manifest, []string{lost})
	}
	if v, err := r.Verify(t.Context(), VerifyOptions{Backups: []string{whole}}); err != nil || !v.Whole() {
		t.Errorf("of another one: %+v, %v", v, err)
	}
	for _, dry := range []bool{true, false} {
		p, err := r.Prune(t.Context(), PruneOptions{Retention: Retention{Last: 1}, DryRun: dry})
		if err != nil || !slices.Equal(p.Headless, []string{lost}) || p.Objects > 0 || len(p.Removed) > 0 {
			t.Errorf("prune, dry %t: got %+v, %v; want Headless %v, Objects at most 0, no p.Removed", dry, p, err, []string{lost})
		}
	}
	putFile(t, dir, manifest, was[manifest]) // the copy went on
	if !sameFiles(files(t, dir), was) {
		t.Error("prune took something away")
	}
	if list, err := r.Headless(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("got %+v, %v; want none", list, err)
	}
	// Without the list of its objects, too, it is unknown what it needs.
	for _, key := range []string{manifest, objectsKey(lost)} {
		if err := os.Remove(filepath.Join(dir, filepath.FromSlash(key))); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := r.Prune(t.Context(), PruneOptions{Retention: Retention{Last: 1}}); err != nil || p.Objects > 0 {
		t.Errorf("prune: got %+v, %v; want Objects at most 0", p, err)
	}
	p, err := r.Prune(t.Context(), PruneOptions{Remove: []string{lost}})
	if err != nil || !slices.Equal(p.Removed, []string{lost}) || len(p.Headless) > 0 || p.Objects != 2 {
		t.Errorf("by name: got %+v, %v; want Removed %v, no p.Headless, Objects 2", p, err, []string{lost})
	}
	for name := range files(t, dir) {
		if strings.Contains(name, lost) {
			t.Errorf("there stays %s, want no %q in it", name, lost)
		}
	}
	if v, err := r.Verify(t.Context(), VerifyOptions{}); err != nil || !v.Whole() || v.Superfluous > 0 {
		t.Errorf("got %+v, %v; want Whole() true, Superfluous at most 0", v, err)
	}
}

// TestAbandoned: a backup that cannot put its manifest leaves nothing next to it.
func TestAbandoned(t *testing.T) {
	dir := t.TempDir()
	r := made(t, dir, with(Keys{}, signer(t), nil))
	h, d := begun(t, r)
	r.store = fullPlace{r.store.(place), func(key string) bool { return key == manifestKey(h.ID) }}
	if err := r.Finish(t.Context(), h, d); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v, want syscall.ENOSPC", err)
	}
	if err := r.Abandon(t.Context(), h.ID); err != nil {
		t.Fatal(err)
	}
	for name := range files(t, dir) {
		if strings.HasPrefix(name, backupPrefix) {
			t.Errorf("there stays %s, want strings.HasPrefix(name, backupPrefix) false", name)
		}
	}
}

// fullPlace has no room for a byte of some objects.
type fullPlace struct {
	place
	of func(key string) bool
}

func (f fullPlace) Put(ctx context.Context, key string, r io.Reader) error {
	if b, err := io.ReadAll(r); err != nil || len(b) > 0 && f.of(key) {
		return errors.Join(err, &os.PathError{Op: "write", Path: key, Err: syscall.ENOSPC})
	} else {
		r = bytes.NewReader(b)
	}
	return f.place.Put(ctx, key, r)
}

// TestPruneFullPlace: if there is no room for a byte prune makes some, and puts killed backups away; a backup does not begin.
func TestPruneFullPlace(t *testing.T) {
	dir := t.TempDir()
	ids := five(t, made(t, dir, Keys{}))
	dead := NewID(time.Now().Add(-time.Hour))
	putFile(t, dir, unfinishedKey(dead), []byte(`{"id":"`+dead+`"}`))
	older(t, dir, unfinishedKey(dead), 2*LeaseLife)
	r := opened(t, dir, Keys{})
	r.store = fullPlace{r.store.(place), func(string) bool { return true }}
	if err := r.Begin(t.Context(), Header{ID: NewID(time.Now())}, nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a backup: got %v, want syscall.ENOSPC", err)
	}
	p, err := r.Prune(t.Context(), PruneOptions{Retention: Retention{Last: 2}})
	if err != nil || len(p.Removed) != 3 || p.Objects == 0 || !slices.Equal(p.Dead, []string{dead}) {
		t.Fatalf("got %+v, %v; want len(Removed) 3, Objects not 0, Dead %v", p, err, []string{dead})
	}
	whole(t, r, ids[3:]...)
	if left, err := os.ReadDir(filepath.Join(dir, "locks")); err == nil && len(left) > 0 {
		t.Errorf("there stays %v", left)
	}
}

// TestNewerSignature: a signature that this version does not know concerns its own backup only.
func TestNewerSignature(t *testing.T) {
	dir := t.TempDir()
	r := made(t, dir, with(Keys{}, signer(t), nil))
	now := time.Now().Add(-time.Hour)
	id := taken(t, r, NewID(now), now, "CREATE VIEW v AS SELECT 1")
	other := taken(t, r, NewID(now.Add(time.Minute)), now.Add(time.Minute), "CREATE VIEW v AS SELECT 1")
	var b bytes.Buffer
	if err := writePlain(&b, func(w io.Writer) error { _, err := io.WriteString(w, `{"format":2}`); return err }); err != nil {
		t.Fatal(err)
	}
	putFile(t, dir, signatureKey(id), b.Bytes())
	r = opened(t, dir, with(Keys{}, nil, &Trust{Dir: t.TempDir()}))
	list, err := r.Catalogue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Strangers(t.Context(), list); err != nil || len(got) != 1 || !strings.Contains(got[id], "take a newer one") {
		t.Errorf("got %q, %v; want len(got) 1, \"take a newer one\" in got[id]", got, err)
	}
	if p, err := r.Prune(t.Context(), PruneOptions{Retention: Retention{Last: 1}, DryRun: true}); err != nil || !slices.Equal(kept(p.Decisions), []string{id, other}) {
		t.Errorf("got %+v, %v; want kept(p.Decisions) %v", p, err, []string{id, other})
	}
	if v, err := r.Verify(t.Context(), VerifyOptions{}); err != nil || !slices.Equal(v.Broken, []string{id}) {
		t.Errorf("got %+v, %v; want Broken %v", v, err, []string{id})
	}
}
