package repo

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestCreateAtOnce: of several who make a repository in one place at the same time one wins, and all have the same.
func TestCreateAtOnce(t *testing.T) {
	_, write, read := keys(t)
	for name, k := range map[string]Keys{"plain": {}, "encrypted": write} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 5 {
				dir := t.TempDir()
				repos := make([]*Repo, 6)
				var wg sync.WaitGroup
				for i := range repos {
					wg.Go(func() {
						own := k
						own.CacheDir = t.TempDir() // as of another host
						if name == "encrypted" {
							own.Identities = read.Identities
						}
						var err error
						if repos[i], err = CreateWith(t.Context(), folder(dir), own); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				for _, r := range repos {
					switch {
					case r == nil || repos[0] == nil:
					case r.ID != repos[0].ID:
						t.Fatalf("two repositories in one place: got %s, %s; want repos[0].ID", r.ID, repos[0].ID)
					case r.cipher != nil && string(r.cipher.names) != string(repos[0].cipher.names):
						t.Fatal("they name chunks by different keys")
					}
				}
			}
		})
	}
}

// TestHeadless: a place that has lost the repository's own file gets no new one, neither by a backup nor by a copy.
func TestHeadless(t *testing.T) {
	dir := t.TempDir()
	r := made(t, dir, Keys{})
	back(t, r, time.Now(), map[string][]string{"s.t": {"rows"}})
	head := folder(dir).path(t, configKey)
	was, err := os.ReadFile(head)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(head); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateWith(t.Context(), folder(dir), Keys{}); !errors.Is(err, ErrHeadless) {
		t.Errorf("a backup: got %v, want ErrHeadless", err)
	}
	other := made(t, t.TempDir(), Keys{})
	back(t, other, time.Now(), map[string][]string{"s.t": {"rows"}})
	if _, err := other.CopyTo(t.Context(), folder(dir), CopyOptions{}); !errors.Is(err, ErrHeadless) {
		t.Errorf("a copy: got %v, want ErrHeadless", err)
	}
	if _, err := os.Stat(filepath.Join(dir, configKey)); err == nil {
		t.Error("a new one was made")
	}
	if err := os.WriteFile(head, was, 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := CreateWith(t.Context(), folder(dir), Keys{}); err != nil || again.ID != r.ID {
		t.Errorf("put back: got %v; want again.ID %v", err, r.ID)
	}
}

// TestCutManifest: a backup whose manifest was cut is damaged, no backup that others are removed for, and none that counts.
func TestCutManifest(t *testing.T) {
	dir := t.TempDir()
	r := made(t, dir, Keys{})
	now := time.Now()
	whole := back(t, r, now.Add(-2*time.Hour), map[string][]string{"s.t": {"rows"}})
	cut := back(t, r, now.Add(-time.Hour), map[string][]string{"s.t": {"rows"}})
	path := folder(dir).path(t, manifestKey(cut))
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{st.Size() - 1, 200, 0} {
		if err := os.Truncate(path, min(size, st.Size()-1)); err != nil {
			t.Fatal(err)
		}
		list, err := r.Catalogue(t.Context())
		if err != nil || len(list) != 2 || list[0].Err != nil || !errors.Is(list[1].Err, ErrDamaged) {
			t.Fatalf("cut to %d: got %+v, %v; want len(list) 2, ErrDamaged", size, list, err)
		}
		if list, err := r.Backups(t.Context()); err != nil || len(list) != 1 || list[0].ID != whole {
			t.Errorf("cut to %d: counted: got %v, %v; want len(list) 1, list[0].ID %v", size, list, err, whole)
		}
		got, err := r.Prune(t.Context(), PruneOptions{Retention: Retention{Last: 1}, DryRun: true})
		if err != nil || len(got.Removed) > 0 {
			t.Errorf("cut to %d: prune removes %v, %v; want none", size, got.Removed, err)
		}
	}
}
