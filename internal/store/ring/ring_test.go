package ring

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/squeeze"
	"time"
)

const base = 1795480000 - 1795480000%segmentSpan

func open(t *testing.T, o Options) *Ring {
	t.Helper()
	r, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func put(t *testing.T, r *Ring, at int64) {
	t.Helper()
	if err := r.Append(at, func(fresh bool) []byte { return fmt.Appendf(nil, "%d %v %s", at, fresh, strings.Repeat("x", 100)) }); err != nil {
		t.Fatal(err)
	}
}

// ticks are the seconds that are there, each with the payload that was written.
func ticks(t *testing.T, r *Ring, from, to int64) (out []int64) {
	t.Helper()
	err := r.Blocks(from, to, func(list []Record) error {
		for i, rec := range list {
			if want := fmt.Sprintf("%d %v ", rec.At, i == 0); !bytes.HasPrefix(rec.Payload, []byte(want)) {
				t.Errorf("second %d has the payload %.30q, want %q at its begin", rec.At, rec.Payload, want)
			}
			if rec.At >= from && rec.At <= to {
				out = append(out, rec.At)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func seconds(from, to int64) (out []int64) {
	for at := from; at <= to; at++ {
		out = append(out, at)
	}
	return out
}

// TestKilled: whatever is on disk after any record, as a kill leaves it, is read in the next run, up to that record; what is torn is told.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := open(t, Options{Dir: dir, Keep: time.Hour})
	for i := range int64(150) {
		put(t, r, base+i)
	}
	for _, c := range []struct {
		name   string
		harm   func(t *testing.T, dir string)
		last   int64
		damage string
	}{
		{"killed", func(*testing.T, string) {}, base + 149, ""},
		{"within a record", func(t *testing.T, dir string) { cut(t, filepath.Join(dir, tailName), 40) }, base + 148, "in which Risso was killed"},
		{"within a block", func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, tailName), 0); err != nil {
				t.Fatal(err)
			}
			cut(t, filepath.Join(dir, fmt.Sprint(base)+segmentSuffix), 10)
		}, base + 59, "were not written whole"},
		{"while a block was packed", func(t *testing.T, dir string) {
			path := filepath.Join(dir, fmt.Sprint(base)+segmentSuffix)
			tail, err := os.Open(filepath.Join(dir, tailName))
			if err != nil {
				t.Fatal(err)
			}
			defer tail.Close()
			list, _, err := readTail(tail)
			if err != nil {
				t.Fatal(err)
			}
			enc, err := squeeze.NewEncoder()
			if err != nil {
				t.Fatal(err)
			}
			info, statErr := os.Stat(path)
			block, packErr := packBlock(enc, list)
			if err := errors.Join(statErr, packErr); err != nil {
				t.Fatal(err)
			}
			if err := appendTo(path, info.Size(), block[:len(block)/2]); err != nil {
				t.Fatal(err)
			}
		}, base + 149, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			other := t.TempDir()
			if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			c.harm(t, other)
			var told []string
			again := open(t, Options{Dir: other, Keep: time.Hour, Damage: func(s string) { told = append(told, s) }})
			if got, want := ticks(t, again, base, base+1000), seconds(base, c.last); !slices.Equal(got, want) {
				t.Errorf("got %d seconds up to %d, want %d up to %d", len(got), got[len(got)-1], len(want), c.last)
			}
			if words := strings.Join(told, "; "); c.damage == "" && words != "" || !strings.Contains(words, c.damage) {
				t.Errorf("told %q, want %q in it", words, c.damage)
			}
			put(t, again, base+200)
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
			if got := ticks(t, open(t, Options{Dir: other, Keep: time.Hour}), base+100, base+300); got[len(got)-1] != base+200 {
				t.Errorf("the newest second is %d, want %d", got[len(got)-1], base+200)
			}
		})
	}
}

func cut(t *testing.T, path string, n int64) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-n); err != nil {
		t.Fatal(err)
	}
}

// TestKilledBetween: a block that is in the segment and still in the tail is there once.
func TestKilledBetween(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := open(t, Options{Dir: dir, Keep: time.Hour})
	for i := range int64(20) {
		put(t, r, base+i)
	}
	tail, err := os.ReadFile(filepath.Join(dir, tailName))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, tailName), tail, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ticks(t, open(t, Options{Dir: dir, Keep: time.Hour}), base, base+100); !slices.Equal(got, seconds(base, base+19)) {
		t.Errorf("got %v, want each second once", got)
	}
}

// TestBounds: the oldest are given up, by time and by size; the newest stay.
func TestBounds(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"time": {Keep: 3 * time.Hour}, "size": {Keep: 1000 * time.Hour, Most: 8_000}} {
		t.Run(name, func(t *testing.T) {
			o.Dir = t.TempDir()
			r := open(t, o)
			for i := int64(0); i < 10*segmentSpan; i += 20 {
				put(t, r, base+i)
			}
			oldest, newest, size := r.Span()
			if newest != base+10*segmentSpan-20 || oldest <= base || newest-oldest < segmentSpan/2 {
				t.Errorf("kept from %d to %d of %d to %d", oldest, newest, base, base+10*segmentSpan-20)
			}
			if o.Most > 0 && size > o.Most+10_000 {
				t.Errorf("%d bytes, want about %d", size, o.Most)
			}
			if o.Most == 0 && newest-oldest > 4*segmentSpan+100 {
				t.Errorf("%d seconds are kept, want four hours at most", newest-oldest)
			}
		})
	}
}

// TestDamagedBlock: what cannot be read is told and left out; the rest is there.
func TestDamagedBlock(t *testing.T) {
	t.Parallel()
	var told []string
	o := Options{Dir: t.TempDir(), Keep: time.Hour, Damage: func(s string) { told = append(told, s) }}
	r := open(t, o)
	for i := range int64(185) {
		put(t, r, base+i)
	}
	path := filepath.Join(o.Dir, fmt.Sprint(base)+segmentSuffix)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[r.segments[0].blocks[1].offset+blockHead+20] ^= 0x40
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	want := append(seconds(base, base+59), seconds(base+120, base+184)...)
	if got := ticks(t, r, base, base+1000); !slices.Equal(got, want) {
		t.Errorf("got %d seconds, want %d", len(got), len(want))
	}
	if len(told) != 1 || !strings.Contains(told[0], "cannot be read") {
		t.Errorf("told %q, want one block that cannot be read", told)
	}
}

// TestClockGoesBack: what is kept stays, and an older second is refused.
func TestClockGoesBack(t *testing.T) {
	t.Parallel()
	r := open(t, Options{Dir: t.TempDir(), Keep: time.Hour})
	put(t, r, base+10)
	if err := r.Append(base+10, func(bool) []byte { return nil }); !errors.Is(err, ErrOld) {
		t.Errorf("the same second again: %v, want ErrOld", err)
	}
	if got := ticks(t, r, 0, base+100); !slices.Equal(got, []int64{base + 10}) {
		t.Errorf("got %v, want one second", got)
	}
}

// TestNotWritten: a record that cannot be written is an error, and those after it can be read, for they begin a block.
func TestNotWritten(t *testing.T) {
	t.Parallel()
	r := open(t, Options{Dir: t.TempDir(), Keep: time.Hour})
	put(t, r, base)
	whole := r.tail
	readonly, err := os.Open(whole.Name())
	if err != nil {
		t.Fatal(err)
	}
	r.tail = readonly
	if err := r.Append(base+1, func(bool) []byte { return []byte("lost") }); err == nil {
		t.Error("a record was kept in a file that cannot be written")
	}
	r.tail = whole
	put(t, r, base+2)
	if got := ticks(t, r, base, base+10); !slices.Equal(got, []int64{base, base + 2}) {
		t.Errorf("got %v, want the second between to be missing", got)
	}
}

// TestPace: the pace is what the newest blocks take on disk, and is told when there are enough of them.
func TestPace(t *testing.T) {
	t.Parallel()
	r := open(t, Options{Dir: t.TempDir(), Keep: time.Hour})
	noise := rand.New(rand.NewPCG(1, 1))
	write := func(from, to int64, size int) {
		for at := from; at < to; at++ {
			b := make([]byte, size)
			for i := range b {
				b[i] = byte(noise.Uint32())
			}
			if err := r.Append(at, func(bool) []byte { return b }); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(base, base+5*blockRecords, 1000) // the fifth block is packed with the next record
	if p := r.Pace(); p != 0 {
		t.Errorf("the pace is %.0f after four blocks, want 0: too few", p)
	}
	write(base+5*blockRecords, base+6*blockRecords, 1000)
	if p := r.Pace(); p < 1000 || p > 1050 {
		t.Errorf("the pace is %.0f, want a little more than 1000", p)
	}
	write(base+6*blockRecords, base+17*blockRecords, 200)
	if p := r.Pace(); p < 200 || p > 250 {
		t.Errorf("the pace is %.0f, want a little more than 200: older blocks do not count", p)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}
