package repo

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/rissodb/risso/internal/store/blob/blobtest"
)

// rowsLike makes raw rows as a server sends them: a number, a word of few, random text, a time.
func rowsLike(n int) []byte {
	var b []byte
	random := blobtest.Bytes(5, n)
	words := []string{"paid", "shipped", "cancelled", "open"}
	field := func(s string) { b = append(append(b, byte(len(s))), s...) }
	for i := 0; len(b) < n; i++ {
		r := random[i*8%(len(random)-8):]
		field(strconv.Itoa(1000000 + i))
		field(words[r[0]%4])
		field(fmt.Sprintf("%016x%08x", binary.LittleEndian.Uint64(r), i))
		field(fmt.Sprintf("2026-11-%02d %02d:%02d:%02d", r[1]%28+1, r[2]%24, r[3]%60, r[4]%60))
	}
	return b[:n]
}

// nowhere takes objects and keeps none: the way there is measured.
type nowhere struct{ Store }

func (nowhere) Size(context.Context, string) (int64, error) { return 0, notExist(errNowhere) }
func (nowhere) Put(_ context.Context, _ string, r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// cpu reports how many bytes of raw rows a second of processor time takes: on a busy machine elapsed time says little.
func cpu(b *testing.B, bytes int) func() {
	used := func() float64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
	}
	before := used()
	return func() { b.ReportMetric(float64(bytes)*float64(b.N)/1e6/(used()-before), "MB/cpu-s") }
}

func BenchmarkKeep(b *testing.B) {
	raw := rowsLike(16 << 20)
	for name, k := range map[string]Keys{"plain": {}, "encrypted": benchKeys(b)} {
		b.Run(name, func(b *testing.B) {
			r, err := CreateWith(b.Context(), folder(b.TempDir()), k)
			if err != nil {
				b.Fatal(err)
			}
			r.store = nowhere{r.store}
			keeper, err := r.NewKeeper()
			if err != nil {
				b.Fatal(err)
			}
			defer cpu(b, len(raw))()
			for b.Loop() {
				if _, err := keeper.Keep(b.Context(), "s", "t", raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("sha256", func(b *testing.B) {
		defer cpu(b, len(raw))()
		for b.Loop() {
			sha256.Sum256(raw)
		}
	})
	for _, level := range []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedDefault} {
		b.Run("zstd "+level.String(), func(b *testing.B) {
			zw, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1))
			if err != nil {
				b.Fatal(err)
			}
			var out []byte
			defer cpu(b, len(raw))()
			for b.Loop() {
				out = zw.EncodeAll(raw, out[:0])
			}
			b.ReportMetric(float64(len(raw))/float64(len(out)), "ratio")
		})
	}
}
