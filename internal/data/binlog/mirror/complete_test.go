package mirror

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestFollowBehindComplete begins where a process was killed when it had made the next log and written nothing into it: the log before is
// complete and not stored. The finisher stores it while the mirror looks for its place.
func TestFollowBehindComplete(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb", settings("mariadb")...)
	db := open(t, n)
	exec1(t, db, "CREATE TABLE test.t (id INT PRIMARY KEY, v TEXT)", "FLUSH BINARY LOGS")
	load(t, db, 0, 5)
	exec1(t, db, "FLUSH BINARY LOGS")
	load(t, db, 5, 10)
	logs, names := serverLogs(t, n), []string{"binlog.000001", "binlog.000002", "binlog.000003"}
	if len(logs) != len(names) {
		t.Fatalf("got %d logs, want %d", len(logs), len(names))
	}
	first := t.TempDir()
	if err := Follow(t.Context(), Options{Target: target(t, n), Place: folder(first), Dir: first, Once: true}); err != nil {
		t.Fatal(err)
	}
	list, err := List(t.Context(), folder(first), first)
	if err != nil || len(list) != 1 {
		t.Fatalf("got %d series: %v; want 1", len(list), err)
	}
	// killed is a place as the process left it, with so many complete logs and the next one empty.
	killed := func(t *testing.T, place Place, dir string, complete int) {
		t.Helper()
		for i, name := range names[:complete+1] {
			w, err := create(place, filepath.Join(dir, root, list[0].Key, name))
			if err != nil {
				t.Fatal(err)
			}
			if i == complete {
				err = w.file.Close()
			} else {
				w.buf = append(w.buf[:0], logs[name]...)
				w.pos = int64(len(w.buf))
				err = w.close()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	goesOn := func(t *testing.T, place, read Place, dir string) {
		t.Helper()
		o := Options{Target: target(t, n), Place: place, Dir: dir, Once: true, Note: func(n Note) {
			if n.Warning {
				t.Errorf("got %v, want n.Warning false", n.Text)
			}
		}}
		if err := Follow(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		all, err := List(t.Context(), read, dir)
		if err != nil || len(all) != 1 || len(all[0].Logs) != len(names) {
			t.Fatalf("got %+v: %v; want len(all) 1, len(all[0].Logs) %v", all, err, len(names))
		}
		sameIn(t, read, dir, serverLogs(t, n)) // MariaDB may have written a checkpoint since
	}
	for range 3 {
		for complete := 1; complete <= 2; complete++ {
			dir := t.TempDir()
			killed(t, folder(dir), dir, complete)
			goesOn(t, folder(dir), folder(dir), dir)

			who, sealed, cache := encrypted(t)
			writer := keyed(sealed, repo.Keys{CacheDir: cache})
			killed(t, writer, sealed, complete)
			goesOn(t, writer, keyed(sealed, who), sealed)
		}
	}
	t.Run("without the key", func(t *testing.T) {
		_, sealed, cache := encrypted(t)
		killed(t, keyed(sealed, repo.Keys{CacheDir: cache}), sealed, 1)
		writer := keyed(sealed, repo.Keys{CacheDir: cache})
		grown, err := filepath.Glob(filepath.Join(cache, "growing-*"))
		if err != nil || len(grown) != 1 {
			t.Fatalf("%v: got %v; want length 1", grown, err)
		}
		if err := os.RemoveAll(grown[0]); err != nil {
			t.Fatal(err)
		}
		err = Follow(t.Context(), Options{Target: target(t, n), Place: writer, Dir: sealed, Once: true})
		if !errors.Is(err, repo.ErrNoKey) {
			t.Errorf("got %v, want repo.ErrNoKey", err)
		}
		if all, err := List(t.Context(), writer, sealed); err != nil || len(all) != 1 {
			t.Errorf("got %d series: %v; want 1", len(all), err)
		}
	})
}
