package drill

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// beside turns the installed server into one that a test can hinder: it gets too little memory while a file "short" is there, and
// while "spoiled" is there the system tablespace of the data that it gets is cut off if it has the schema shop.
func beside(t *testing.T) (dir, binary string) {
	t.Helper()
	real, err := exec.LookPath("mariadbd")
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		lack.Of(t, "mariadbd is not on PATH")
	}
	dir = t.TempDir()
	base := filepath.Dir(filepath.Dir(real))
	for _, name := range []string{"bin", "share", "lib"} {
		if err := os.Symlink(filepath.Join(base, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	binary = filepath.Join(dir, "sbin", "mariadbd")
	script := `#!/bin/sh
for a; do case "$a" in --datadir=*) data="${a#--datadir=}";; esac; done
[ ! -e '` + dir + `/short' ] || ulimit -v 150000
[ ! -e '` + dir + `/spoiled' ] || [ ! -d "$data/shop" ] || truncate -s 4096 "$data/ibdata1"
exec '` + real + `' "$@"
`
	if err := os.Mkdir(filepath.Dir(binary), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir, binary
}

// TestServerNeverStarts: if no server starts nothing is recorded about the backup; if one starts but not with the backup's files, the
// backup is at fault.
func TestServerNeverStarts(t *testing.T) {
	base, binary := beside(t)
	n := sandboxtest.Up(t, "mariadb")
	r := openRepo(t, t.TempDir())
	h := take(t, n, r)
	logical := logicalOf(t, r, h)
	put := func(name string) func() {
		t.Helper()
		path := filepath.Join(base, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return func() { os.Remove(path) }
	}
	proofs := func() int {
		t.Helper()
		list, err := Proofs(t.Context(), r, "")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	o := Options{Repo: r, Dir: shortDir(t), Server: binary, SkipCheck: true}
	away := put("short")
	for kind, id := range map[repo.Kind]string{repo.Physical: h.ID, repo.Logical: logical} {
		o.Backup = id
		var e *unknownError
		if p, err := Run(t.Context(), o); !errors.As(err, &e) || !strings.Contains(err.Error(), "start a server") || proofs() != 0 {
			t.Errorf("%s, where no server starts: %+v, %v, %d proofs", kind, p, err, proofs())
		}
	}
	away()
	o.Backup = h.ID
	away = put("spoiled")
	if p, err := Run(t.Context(), o); err != nil || p.Passed || len(p.Failures) != 1 || !strings.Contains(p.Failures[0], "an empty one starts") || proofs() != 1 {
		t.Errorf("a copy that does not start: got %+v, %v; want Passed false, len(Failures) 1, \"an empty one starts\" in Failures[0], proofs() 1",
			p, err)
	}
	away()
	if p, err := Run(t.Context(), o); err != nil || !p.Passed {
		t.Errorf("as it should be: %+v, %v", p, err)
	}
}

// logicalOf puts a logical backup next to a physical one.
func logicalOf(t *testing.T, r *repo.Repo, of repo.Header) string {
	t.Helper()
	h, d := of, repo.NewDraft()
	defer d.Close()
	h.ID, h.Kind, h.Stream = repo.NewID(of.Began), repo.Logical, nil
	if err := r.Begin(t.Context(), h, nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Finish(t.Context(), h, d); err != nil {
		t.Fatal(err)
	}
	return h.ID
}
