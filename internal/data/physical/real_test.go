package physical

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// folder is the plainest place there is.
type folder string

func (f folder) path(key string) string { return filepath.Join(string(f), filepath.FromSlash(key)) }

func (f folder) Put(_ context.Context, key string, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(f.path(key)), 0o700); err != nil {
		return err
	}
	w, err := os.Create(f.path(key) + ".new")
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := io.Copy(w, r); err != nil {
		return err
	}
	return os.Rename(w.Name(), f.path(key))
}

func (f folder) Get(_ context.Context, key string) (io.ReadCloser, error) {
	return os.Open(f.path(key))
}

func (f folder) Size(_ context.Context, key string) (int64, error) {
	st, err := os.Stat(f.path(key))
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func (f folder) List(_ context.Context, prefix string, each func(string, int64) error) error {
	return filepath.WalkDir(string(f), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(string(f), p)
		if err != nil || !strings.HasPrefix(filepath.ToSlash(rel), prefix) {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		return each(filepath.ToSlash(rel), st.Size())
	})
}

func (f folder) Delete(_ context.Context, key string) error {
	if err := os.Remove(f.path(key)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func newRepo(t *testing.T) (*repo.Repo, folder) {
	t.Helper()
	place := folder(t.TempDir())
	r, err := repo.Create(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	return r, place
}

func target(t *testing.T, n *sandbox.Node) mysql.Target {
	t.Helper()
	d, err := mysql.ParseTarget(n.DSN)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func run(t *testing.T, n *sandbox.Node, statements string) []sandbox.Result {
	t.Helper()
	r, err := n.Query(t.Context(), statements)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func one(t *testing.T, n *sandbox.Node, query string) string {
	t.Helper()
	r := run(t, n, query)
	if len(r[0].Rows) == 0 || r[0].Rows[0][0] == nil {
		return ""
	}
	return *r[0].Rows[0][0]
}

func TestMariaDB(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb", "log_bin=binlog")
	run(t, n, `CREATE DATABASE shop; USE shop; CREATE TABLE shop.a (id INT AUTO_INCREMENT PRIMARY KEY, t TEXT) ENGINE=InnoDB;
		CREATE TABLE shop.m (id INT PRIMARY KEY, t TEXT) ENGINE=Aria TRANSACTIONAL=0; CREATE DATABASE nothing;
		INSERT INTO shop.a (t) SELECT REPEAT(MD5(seq), 20) FROM seq_1_to_20000; INSERT INTO shop.m SELECT seq, MD5(seq) FROM seq_1_to_1000`)
	r, _ := newRepo(t)
	o := Options{Target: target(t, n), Repo: r, Name: "db1", Incremental: true}
	plan, err := Prepare(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%+v\n", plan)
	h, err := Take(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%+v\n%+v\n", h, h.Stream)
	run(t, n, `USE shop; INSERT INTO shop.a (t) SELECT MD5(seq) FROM seq_1_to_5000; UPDATE shop.a SET t='x' WHERE id=7`)
	h2, err := Take(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%+v\n%+v\n", h2, h2.Stream)
	got, err := Restore(t.Context(), RestoreOptions{Repo: r, Datadir: filepath.Join(t.TempDir(), "data")})
	fmt.Printf("%+v %v\n", got, err)
}
