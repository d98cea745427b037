package series

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// hourFile is a closed store with one hour in a block, and the block's path in it.
func hourFile(t *testing.T) (m *model, dir, rel string) {
	t.Helper()
	dir = t.TempDir()
	s := openStore(t, dir)
	m = small(t, s, "db", t0, t0+hourSeconds)
	s.instance("db").closeWriter()
	if err := s.instance("db").sealAll(); err != nil {
		t.Fatal(err)
	}
	if err := s.Compact(context.Background(), time.Unix(t0+hourSeconds+120, 0)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return m, dir, "instances/db/" + blockName(t0, t0+hourSeconds)
}

// touched says which series need the byte at a place of a block: none where it stands twice.
func touched(t *testing.T, b []byte, at int) (keys []string) {
	t.Helper()
	dec, err := newDecompressor()
	if err != nil {
		t.Fatal(err)
	}
	cat, err := newCatalog(dec)
	if err != nil {
		t.Fatal(err)
	}
	f, err := readBlock("x", bytes.NewReader(b), int64(len(b)), cat, dec)
	if err != nil {
		t.Fatal(err)
	}
	if at < blockHead || at >= int(f.tail) {
		return nil
	}
	hit := -1
	for i := range f.series {
		if int(f.offs[i]) <= at && at < int(f.offs[i+1]) {
			hit = i
		}
	}
	for i := range f.series {
		var s segment
		if err := f.readSegment(&s, i, true); err != nil {
			t.Fatal(err)
		}
		if i == hit || slices.ContainsFunc(s.entries, func(e entry) bool { return e.kind == columnVarying && e.ref == hit }) {
			keys = append(keys, f.sch.series[i].key)
		}
	}
	return keys
}

// TestOneBitCostsOneColumn flips bits everywhere in the block of an hour. What all columns need stands twice: a bit costs at
// most the column that it stands in and those that are told from it, and that is said.
func TestOneBitCostsOneColumn(t *testing.T) {
	m, dir, rel := hourFile(t)
	good, err := os.ReadFile(filepath.Join(dir, rel))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	places := []int{0, 4, 8, 20, 63, len(good) - 1, len(good) - blockFoot, len(good) - blockFoot - 1, len(good) - blockFoot - blockHead}
	for at := 0; at < len(good); at += 1 + r.IntN(len(good)/60) {
		places = append(places, at)
	}
	h, err := decodeBlockHeader(good)
	if err != nil {
		t.Fatal(err)
	}
	for at := int(h.tail); at < len(good); at += 1 + r.IntN(20) { // all that stands twice
		places = append(places, at)
	}
	for _, at := range places {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << r.IntN(8)
		may := touched(t, good, at)
		for key, n := range damaged(t, m, copyDir(t, dir), rel, bad, "a flipped bit", at) {
			if !slices.Contains(may, key) {
				t.Errorf("a bit at %d of %d cost %d samples of %s, which only %v need", at, len(good), n, key, may)
			}
		}
	}
}

// TestOneBitCostsOneMinute is the same for the frames of an hour that goes on.
func TestOneBitCostsOneMinute(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	m := small(t, s, "db", t0, t0+600)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	rel := "instances/db/" + filepath.Base(framesPath("", t0))
	good, err := os.ReadFile(filepath.Join(dir, rel))
	if err != nil {
		t.Fatal(err)
	}
	schemas := 0
	inSchema := func(at int) bool {
		for _, rec := range scanRecords(good[len(framesMagic):]).records {
			if off := len(framesMagic) + rec.off; rec.kind == recordSchema && off <= at && at < off+rec.size() {
				return true
			}
		}
		return at < len(framesMagic)
	}
	for _, rec := range scanRecords(good[len(framesMagic):]).records {
		if rec.kind == recordSchema {
			schemas++
		}
	}
	if schemas != 2 {
		t.Errorf("names stand %d times in the file, not twice", schemas)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for at := 0; at < len(good); at += 1 + r.IntN(len(good)/80) {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << r.IntN(8)
		for key, n := range damaged(t, m, copyDir(t, dir), rel, bad, "a flipped bit", at) {
			if n > minuteSeconds || inSchema(at) {
				t.Errorf("a bit at %d of %d cost %d samples of %s", at, len(good), n, key)
			}
		}
	}
}

// TestVersionOneIsRead: a block as Risso wrote it before, with everything once, is read whole, and damage in it is found.
func TestVersionOneIsRead(t *testing.T) {
	m, dir, rel := hourFile(t)
	path := filepath.Join(dir, rel)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := decodeBlockHeader(b)
	if err != nil || h.version != 2 {
		t.Fatalf("version %d, %v", h.version, err)
	}
	h.version = blockOnce
	old := append(h.encode(), b[blockHead:h.tail+h.sections()]...)
	old = append(old, blockFooter(h.total())...)
	if err := os.WriteFile(path, old, 0o640); err != nil {
		t.Fatal(err)
	}
	ev := &events{}
	s, err := Open(Options{Dir: dir, OnEvent: ev.add})
	if err != nil {
		t.Fatal(err)
	}
	m.check(t, s, "db", t0, t0+hourSeconds, false)
	if ev.about(path) {
		t.Errorf("a whole file is called damaged: %v", ev)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		at := r.IntN(len(old))
		bad := bytes.Clone(old)
		bad[at] ^= 1 << r.IntN(8)
		damaged(t, m, copyDir(t, dir), rel, bad, "a flipped bit in version 1", at)
	}
}

// TestRepairedFileIsWhole: what stood twice and was damaged once is written anew, so that a second damage costs nothing more.
func TestRepairedFileIsWhole(t *testing.T) {
	m, dir, rel := hourFile(t)
	path := filepath.Join(dir, rel)
	for _, back := range []int{blockFoot + blockHead + 3, blockFoot + 5, 4} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)-back] ^= 1
		if lost := damaged(t, m, dir, rel, b, "a flipped bit", len(b)-back); len(lost) > 0 {
			t.Fatalf("lost %v", lost)
		}
	}
}
