package series

import (
	"bytes"
	"context"
	"math"
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

// columnsOf reads all of a block in memory: the bits of each series' values, and what was reported of damage.
func columnsOf(t *testing.T, b []byte) (cols map[string][]uint64, said []error, f *blockFile) {
	t.Helper()
	dec, err := newDecompressor()
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	cat, err := newCatalog(dec)
	if err != nil {
		t.Fatal(err)
	}
	cols = map[string][]uint64{}
	f, err = readBlock("x", bytes.NewReader(b), int64(len(b)), cat, dec)
	if err != nil {
		return cols, []error{err}, nil
	}
	if f.hurt != nil {
		said = append(said, f.hurt)
	}
	var sc scratch
	for i := range f.series {
		var s segment
		vals := make([]float64, hourSeconds)
		err := f.readSegment(&s, i, true)
		if err == nil {
			err = f.values(&sc, &s, 0, vals, true)
		}
		if err != nil {
			said = append(said, err)
			continue
		}
		bits := make([]uint64, len(vals))
		for k, v := range vals {
			bits[k] = math.Float64bits(v)
		}
		cols[f.sch.series[i].key] = bits
	}
	return cols, said, f
}

// needing says which series need the byte at a place of a block: none if it is stored twice.
func needing(t *testing.T, f *blockFile, at int) (keys []string) {
	t.Helper()
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
		if i == hit || hit >= 0 && slices.ContainsFunc(s.entries, func(e entry) bool { return e.kind == columnVarying && e.ref == hit }) {
			keys = append(keys, f.sch.series[i].key)
		}
	}
	return keys
}

// TestOneBitCostsOneColumn flips bits everywhere in the block of an hour. What all columns need is stored twice: a bit costs at
// most the column that it is in and those derived from it, that is reported, and nothing wrong is served.
func TestOneBitCostsOneColumn(t *testing.T) {
	m, dir, rel := hourFile(t)
	good, err := os.ReadFile(filepath.Join(dir, rel))
	if err != nil {
		t.Fatal(err)
	}
	want, said, whole := columnsOf(t, good)
	if len(said) > 0 || len(want) != whole.series {
		t.Fatalf("the file as it was written: %v; want no said, len(want) %v", said, whole.series)
	}
	r := rand.New(rand.NewPCG(1, 2))
	step, stride := max(len(good)/500, 1), 1
	if testing.Short() {
		t.Log("short: a tenth of the places")
		step, stride = 10*step, 10
	}
	for at := 0; at < len(good); at += stride {
		if at >= blockHead && at < int(whole.tail) { // of what is stored twice every byte, of the rest some
			at += r.IntN(2 * step)
		}
		bad := bytes.Clone(good)
		at = min(at, len(good)-1)
		bad[at] ^= 1 << r.IntN(8)
		got, said, _ := columnsOf(t, bad)
		if len(said) == 0 {
			t.Errorf("a bit at %d of %d: nothing is said, want len(said) not 0", at, len(good))
		}
		may := needing(t, whole, at)
		for key, bits := range want {
			switch g, ok := got[key]; {
			case ok && !slices.Equal(g, bits):
				t.Errorf("a bit at %d of %d: %s has wrong values", at, len(good), key)
			case !ok && !slices.Contains(may, key):
				t.Errorf("a bit at %d of %d cost %s, which only %v need: %v", at, len(good), key, may, said)
			}
		}
	}
	// The same through the store, which reports it and repairs the file.
	for _, at := range []int{2, 40, int(whole.tail) + 5, int(whole.tail + whole.sections()), len(good) - 1} {
		bad := bytes.Clone(good)
		bad[at] ^= 16
		if lost := damaged(t, m, copyDir(t, dir), rel, bad, "a flipped bit", at); len(lost) > 0 {
			t.Errorf("a bit at %d of %d cost %v, want none", at, len(good), lost)
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
	dec, err := newDecompressor()
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	scan := func(b []byte) scannedFrames {
		cat, err := newCatalog(dec) // one that knows nothing, as after a restart
		if err != nil {
			t.Fatal(err)
		}
		f, err := scanFrames(b, "db", cat)
		f.bad = f.bad || err != nil
		return f
	}
	whole := scan(good)
	if whole.bad || whole.foreign || len(whole.schemas) != 2 {
		t.Fatalf("the file as it was written: bad %v, names stand %d times; want whole.bad false, whole.foreign false, len(whole.schemas) 2",
			whole.bad, len(whole.schemas))
	}
	frame := func(at int) bool {
		return slices.ContainsFunc(whole.records, func(r record) bool {
			off := len(framesMagic) + r.off
			return r.kind == recordFrame && off <= at && at < off+r.size()
		})
	}
	r := rand.New(rand.NewPCG(1, 2))
	for at := range len(good) {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << r.IntN(8)
		f, may := scan(bad), 0
		if frame(at) {
			may = 1
		}
		if lost := len(whole.refs) - len(f.refs); lost > may {
			t.Errorf("a bit at %d of %d cost %d minutes, want at most %d", at, len(good), lost, may)
		}
		if !f.bad && !f.foreign && f.torn == 0 {
			t.Errorf("a bit at %d of %d: nothing is said", at, len(good))
		}
	}
	for _, at := range []int{1, 6, 30} { // through the store
		bad := bytes.Clone(good)
		bad[at] ^= 16
		if lost := damaged(t, m, copyDir(t, dir), rel, bad, "a flipped bit", at); len(lost) > 0 {
			t.Errorf("a bit at %d of %d cost %v, want none", at, len(good), lost)
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
		t.Fatalf("version %d, %v; want 2", h.version, err)
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
	for range 5 {
		at := r.IntN(len(old))
		bad := bytes.Clone(old)
		bad[at] ^= 1 << r.IntN(8)
		damaged(t, m, copyDir(t, dir), rel, bad, "a flipped bit in version 1", at)
	}
}

// TestRepairedFileIsWhole: what is stored twice and was damaged once is rewritten, so that a second damage costs nothing more.
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
			t.Fatalf("lost %v, want none", lost)
		}
	}
}
