package series

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
)

// small fills a store with few series, so that its files are small enough to damage everywhere.
func small(t testing.TB, s *Store, id string, from, to int64) *model {
	t.Helper()
	descs, gen := mixed(16)
	m := newModel(descs)
	w := openWriterT(t, s, id)
	define(w, descs)
	r := rand.New(rand.NewPCG(3, 4))
	for at := from; at < to; at++ {
		if at%97 != 0 {
			m.append(t, w, at, gen(r, at), at%50 == 0)
		}
	}
	return m
}

// damaged opens a store of which one file was changed, reads all of it, and demands that nothing wrong is served, that the
// file is named, and that a copy of it is in the damaged folder.
// It returns the keys of the series that lost something.
func damaged(t *testing.T, m *model, dir, rel string, content []byte, what string, at int) (lost map[string]int) {
	t.Helper()
	path := filepath.Join(dir, rel)
	if err := os.WriteFile(path, content, 0o640); err != nil {
		t.Fatal(err)
	}
	ev := &events{}
	s, err := Open(Options{Dir: dir, OnEvent: ev.add})
	if err != nil {
		t.Fatalf("%s at %d: %v", what, at, err)
	}
	defer s.Close()
	m.check(t, s, "db", t0-daySeconds, t0+2*daySeconds, true)
	if _, err := s.Bands(t.Context(), "db", []string{m.descs[1].Key()}, t0, t0+daySeconds, hourSeconds); err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool { return ev.about(path) }, "an event that names %s, %s at byte %d of %d; there are:\n%v", path, what, at, len(content), ev)
	lost = m.missing(t, s, "db", t0-daySeconds, t0+2*daySeconds, true)
	aside, _ := filepath.Glob(filepath.Join(dir, "damaged", "db-"+filepath.Base(rel)+"-*"))
	if len(aside) == 0 {
		t.Fatalf("%s at byte %d: nothing is in the damaged folder, want len(aside) not 0", what, at)
	}
	return lost
}

// everywhere damages a file in many places, one at a time.
func everywhere(t *testing.T, m *model, master, rel string) {
	good, err := os.ReadFile(filepath.Join(master, rel))
	if err != nil {
		t.Fatal(err)
	}
	step, cuts, zeros := max(1, len(good)/120), 20, 10
	if testing.Short() {
		t.Log("short: a fifth of the places")
		step, cuts, zeros = max(1, len(good)/24), 4, 2
	}
	r := rand.New(rand.NewPCG(9, 9))
	for at := 0; at < len(good); at += 1 + r.IntN(2*step) {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << r.IntN(8)
		damaged(t, m, copyDir(t, master), rel, bad, "a flipped bit", at)
	}
	for range cuts {
		at := 1 + r.IntN(len(good)-1)
		if recordEnds(good, at) {
			continue // a log that ends between two records is whole, only shorter
		}
		damaged(t, m, copyDir(t, master), rel, good[:at], "a cut", at)
	}
	for range zeros {
		at := r.IntN(len(good) - 64)
		bad := bytes.Clone(good)
		clear(bad[at : at+64])
		if bytes.Equal(bad, good) {
			continue
		}
		damaged(t, m, copyDir(t, master), rel, bad, "zeros", at)
	}
}

// recordEnds reports whether a record of a log or frames file ends at a byte.
func recordEnds(b []byte, at int) bool {
	for _, r := range scanRecords(b[len(walMagic):]).records {
		if len(walMagic)+r.off == at {
			return true
		}
	}
	return false
}

// copyDir copies a store that is closed.
func copyDir(t *testing.T, from string) string {
	t.Helper()
	to, err := os.MkdirTemp(t.TempDir(), "copy")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestDamagedHour(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	m := small(t, s, "db", t0, t0+hourSeconds+120)
	if err := s.Compact(context.Background(), time.Unix(t0+hourSeconds+120, 0)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	everywhere(t, m, dir, "instances/db/"+blockName(t0, t0+hourSeconds))
}

func TestDamagedDay(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	m := small(t, s, "db", t0, t0+2*hourSeconds)
	if err := s.Compact(context.Background(), time.Unix(t0+2*daySeconds, 0)); err != nil {
		t.Fatal(err)
	}
	s.instance("db").closeWriter()
	if err := s.instance("db").sealAll(); err != nil {
		t.Fatal(err)
	}
	if err := s.Compact(context.Background(), time.Unix(t0+2*daySeconds, 0)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	day := floorTo(t0, daySeconds)
	everywhere(t, m, dir, "instances/db/"+blockName(day, day+daySeconds))
}

func TestDamagedFrames(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	m := small(t, s, "db", t0, t0+600)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	everywhere(t, m, dir, "instances/db/"+filepath.Base(framesPath("", t0)))
}

func TestDamagedLog(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	m := small(t, s, "db", t0, t0+230)
	if err := s.w.flushForTest(s); err != nil {
		t.Fatal(err)
	}
	crashed := copyDir(t, dir)
	if err := os.RemoveAll(filepath.Join(crashed, "instances/db", filepath.Base(framesPath("", t0)))); err != nil {
		t.Fatal(err)
	}
	everywhere(t, m, crashed, "instances/db/"+filepath.Base(walPath("", 1)))
}

// flushForTest waits until all finished minutes are sealed.
func (w *worker) flushForTest(s *Store) error {
	for _, in := range s.all() {
		if err := in.sealPending(); err != nil {
			return err
		}
	}
	return nil
}

// TestDamageWhileOpen changes files of an open store.
func TestDamageWhileOpen(t *testing.T) {
	dir := t.TempDir()
	ev := &events{}
	s := openStore(t, dir, func(o *Options) { o.OnEvent = ev.add; o.CacheBytes = 1 })
	m := small(t, s, "db", t0, t0+hourSeconds+600)
	if err := s.Compact(context.Background(), time.Unix(t0+hourSeconds+200, 0)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{blockName(t0, t0+hourSeconds), filepath.Base(framesPath("", t0+hourSeconds))} {
		path := filepath.Join(dir, "instances/db", name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/3] ^= 0x40
		if err := os.WriteFile(path, b, 0o640); err != nil {
			t.Fatal(err)
		}
		missing := m.check(t, s, "db", t0, t0+2*hourSeconds, true)
		await.Until(t, func() bool { return ev.about(path) }, "an event that names %s", path)
		s.w.repair()
		if after := m.check(t, s, "db", t0, t0+2*hourSeconds, true); after > missing+hourSeconds || missing == 0 {
			t.Fatalf("%d samples are missing before the repair, %d after it; want after at most %d, missing not 0", missing, after, missing+hourSeconds)
		}
	}
}
