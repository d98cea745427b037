package mirror

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/repo"
)

// TestListTells: a list says what cannot be read, and takes no index for that of another log.
func TestListTells(t *testing.T) {
	for _, c := range []struct {
		name string
		put  func(dir string) error
		want error
	}{
		{"an index under its own name", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "b.000004.json"), []byte(`{"name": "b.000004"}`), 0o600)
		}, nil},
		{"an index of another log", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "b.000005.json"), []byte(`{"name": "b.000004"}`), 0o600)
		}, repo.ErrDamaged},
		{"a log that cannot be read", func(dir string) error { return os.Mkdir(filepath.Join(dir, "b.000004"), 0o700) }, &fs.PathError{}},
		{"a log in which nothing is yet", func(dir string) error { return os.WriteFile(filepath.Join(dir, "b.000004"), nil, 0o600) }, nil},
	} {
		dir := t.TempDir()
		series := filepath.Join(dir, root, "s")
		if err := errors.Join(os.MkdirAll(series, 0o700), c.put(series)); err != nil {
			t.Fatal(err)
		}
		list, err := List(t.Context(), keyed(dir, repo.Keys{}), dir)
		var unread *fs.PathError
		switch {
		case c.want == nil && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != nil && !errors.Is(err, c.want) && !(errors.As(c.want, &unread) && errors.As(err, &unread)):
			t.Errorf("%s: %v, list %+v", c.name, err, list)
		case err != nil && !strings.Contains(err.Error(), "b.00000"):
			t.Errorf("%s: which log is not said: %v", c.name, err)
		}
	}
}
