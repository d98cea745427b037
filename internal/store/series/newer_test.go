package series

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
)

// newerVersion makes a file one of a version that this program does not know, and back: what an upgrade and the way back from
// it leave.
func newerVersion(t *testing.T, path string, version byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".rsb") {
		for _, at := range []int{0, len(b) - blockFoot - blockHead} {
			h := b[at : at+blockHead]
			h[4] = version
			binary.LittleEndian.PutUint32(h[blockHead-4:], checksum(h[:blockHead-4]))
		}
	} else {
		m := fileMagic(string(b[:4]), version)
		copy(b, m[:])
	}
	if err := os.WriteFile(path, b, 0o640); err != nil {
		t.Fatal(err)
	}
}

// TestNewerFiles goes back to an older program in the middle of an hour, and on to the newer one again. What the newer one wrote
// stays as it is, to the bit; that is reported for each file; and in the end everything is there that either of them kept.
func TestNewerFiles(t *testing.T) {
	for _, merged := range []bool{false, true} { // while the older program runs, the hour ends
		dir := t.TempDir()
		s := openStore(t, dir)
		descs, gen := mixed(16)
		m, r := newModel(descs), rand.New(rand.NewPCG(3, 4))
		write := func(s *Store, from, to int64) {
			t.Helper()
			w := openWriterT(t, s, "db")
			define(w, descs)
			for at := from; at < to; at++ {
				m.append(t, w, at, gen(r, at), false)
			}
		}
		compact := func(s *Store, at int64) {
			t.Helper()
			if err := s.Compact(t.Context(), time.Unix(at, 0)); err != nil {
				t.Error(err)
			}
		}
		const hour = t0 + hourSeconds // the second one
		write(s, t0, hour+600)
		compact(s, hour+120)
		live := copyDir(t, dir) // with a log, as a kill leaves it
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		in := filepath.Join(dir, "instances", "db")
		log := filepath.Join(in, "wal-00000099.rsw")
		logs, err := filepath.Glob(filepath.Join(live, "instances", "db", "wal-*"))
		if err != nil || len(logs) == 0 {
			t.Fatalf("no log: got %v; want len(logs) not 0", err)
		}
		if err := os.Rename(logs[len(logs)-1], log); err != nil {
			t.Fatal(err)
		}
		block := filepath.Join(in, blockName(t0, hour))
		versions := map[string]byte{block: blockVersion, framesPath(in, hour): 1, log: 1}
		newer := map[string][]byte{}
		for path := range versions {
			newerVersion(t, path, 200)
			if newer[path], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}

		ev := &events{}
		older := openStore(t, dir, func(o *Options) { o.OnEvent = ev.add })
		write(older, hour+600, hour+1300)
		await.Until(t, func() bool {
			if n := m.check(t, older, "db", t0, hour+1300, true); n == 0 {
				t.Error("the older program reads what the newer one wrote")
			}
			return ev.about(block) && ev.about(log) && ev.about(framesPath(in, hour))
		}, "events about all three files; there are:\n%v", ev)
		m.check(t, older, "db", hour+600, hour+1300, false)
		if n := strings.Count(ev.String(), "A newer Risso wrote it"); n != len(newer) {
			t.Errorf("%d files are told of, not %d: %s", n, len(newer), ev)
		}
		if merged {
			older.instance("db").closeWriter()
			if err := older.instance("db").sealAll(); err != nil {
				t.Fatal(err)
			}
			compact(older, hour+hourSeconds+120)
		}
		if err := older.Close(); err != nil {
			t.Fatal(err)
		}
		older = openStore(t, dir) // what it has written itself it reads again
		m.check(t, older, "db", hour+600, hour+1300, false)
		write(older, hour+1300, hour+1400)
		if err := older.Close(); err != nil {
			t.Fatal(err)
		}
		for path, want := range newer {
			if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, want) {
				t.Errorf("merged %v: the older program changed %s (%v); want b %v", merged, filepath.Base(path), err, want)
			}
		}
		if left, err := filepath.Glob(filepath.Join(dir, "damaged", "*")); err != nil || len(left) > 0 {
			t.Errorf("set aside as damaged: got %v %v; want none", left, err)
		}

		for path, version := range versions {
			newerVersion(t, path, version)
		}
		for range 2 {
			s = openStore(t, dir)
			m.check(t, s, "db", t0, hour+1400, false)
			if _, err := os.Stat(besidePath(in, hour)); err == nil {
				t.Error("what the older program wrote beside the file was not taken into it")
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
