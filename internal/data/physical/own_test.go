package physical

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/blob"
)

// TestBuildsOnOwn: an incremental backup builds on what its own account signed, to the end of the chain, or is whole and says why.
func TestBuildsOnOwn(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb")
	dir := t.TempDir()
	take := func(k repo.Keys) repo.Header {
		t.Helper()
		s, err := blob.Open(t.Context(), dir, blob.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := repo.CreateWith(t.Context(), repo.On(s), k)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Target: target(t, n), Repo: r, Name: "db1", Incremental: true}
		plan, err := Prepare(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		h, err := Take(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if plan.Parent != h.Parent {
			t.Errorf("planned on %q, taken on %q", plan.Parent, h.Parent)
		}
		return h
	}
	key := func() (k repo.Keys) {
		t.Helper()
		var err error
		if k.Signer, err = repo.SigningKey(t.TempDir(), true); err != nil {
			t.Fatal(err)
		}
		return k
	}
	whole := func(h repo.Header, on, why string) {
		t.Helper()
		if h.Parent != "" || h.Stream.FromLSN != 0 || !strings.Contains(strings.Join(h.Notes, "\n"), "does not build on "+on) || !strings.Contains(strings.Join(h.Notes, "\n"), why) {
			t.Errorf("on %q, from LSN %d, with %q: not whole for %s is %s; want h.Parent \"\", h.Stream.FromLSN 0, %q in strings.Join(h.Notes, \"\\n\"), %q in strings.Join(h.Notes, \"\\n\")",
				h.Parent, h.Stream.FromLSN, h.Notes, on, why, "does not build on "+on, why)
		}
	}
	old := take(repo.Keys{}) // as an older version took it
	mine := key()
	first := take(mine)
	whole(first, old.ID, "not signed")
	second := take(mine)
	if second.Parent != first.ID || second.Stream.FromLSN == 0 {
		t.Errorf("got %+v does not build on %s; want Parent %v, Stream.FromLSN not 0", second, first.ID, first.ID)
	}
	whole(take(key()), second.ID, "a key that is not trusted")
	third := take(mine) // after the foreign one it goes on
	if third.Parent != second.ID {
		t.Errorf("%+v does not build on %s", third, second.ID)
	}
	if err := os.Remove(filepath.Join(dir, "backups", first.ID, "signature")); err != nil {
		t.Fatal(err)
	}
	whole(take(mine), third.ID, "backup "+first.ID+": it is not signed")
}
