package agree

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestStride: what failed last, or is under way for long, is wrong, until something succeeds.
func TestStride(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stride
		full := errors.New("full")
		is := func(when string, want error) {
			t.Helper()
			if got := s.wrong(time.Second); got != want {
				t.Errorf("%s: got %v, want %v", when, got, want)
			}
		}
		is("nothing is done", nil)
		a, b := s.begin(), s.begin()
		time.Sleep(2 * time.Second)
		is("it lasts", errHangs)
		a(nil)
		is("one of two ended", nil)
		time.Sleep(2 * time.Second)
		is("the other one lasts", errHangs)
		b(full)
		is("it failed", full)
		s.begin()(nil)
		is("one succeeded since", nil)
		s.begin()(full)
		s.mended()
		is("it was mended", nil)
	})
}

// TestHeardBesideHangingFile: the leader is heard while the log, or the state file, of a follower cannot be written: what is agreed on meanwhile is
// not known there, and it does not say so.
func TestHeardBesideHangingFile(t *testing.T) {
	a := found(t, "c1")
	until(t, "a leader of one", a.Leader)
	b, c := joinTo(t, a, "c2", sandboxtest.FreeAddress(t)), joinTo(t, a, "c3", sandboxtest.FreeAddress(t))
	until(t, "three votes", votes(a, 3))
	beat := a.Folder.heartbeat()
	for _, file := range []string{filepath.Join(c.Folder.Path, logFile), c.Store.Path()} {
		until(t, "c3 to know what was agreed on", func() bool { return time.Since(c.Heard()) < beat })
		db, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		var tx *sql.Tx
		until(t, "the file", func() bool { tx, err = db.Begin(); return err == nil })
		defer tx.Rollback()
		if err := write(t.Context(), b, filepath.Base(file), `{}`); err != nil {
			t.Fatal(err)
		}
		agreed := time.Now()
		for time.Since(agreed) < 7*beat { // the write waits, then it fails
			if ahead := c.Heard().Sub(agreed); ahead > beat*3/2 {
				t.Fatalf("%s cannot be written: c3 says that it knows what was agreed on %s later", filepath.Base(file), ahead)
			}
			time.Sleep(beat / 50)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		until(t, "c3 to know it", func() bool { return c.Heard().After(agreed.Add(7 * beat)) })
		if list, err := c.Store.Documents(t.Context(), "k"); err != nil || list[len(list)-1].Key != filepath.Base(file) && list[0].Key != filepath.Base(file) {
			t.Errorf("c3 has %v, %v; want what was agreed on", list, err)
		}
	}
}
