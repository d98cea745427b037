package squeeze

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// samples are bytes of several kinds and sizes.
func samples() map[string][]byte {
	random := rand.NewChaCha8([32]byte{1})
	noise := make([]byte, 400<<10+17)
	random.Read(noise)
	var rows []byte
	for i := range 20000 {
		rows = fmt.Appendf(rows, "\x07%07d\x04paid\x10%08x%08x", i, random.Uint64()&0xffffffff, i)
	}
	return map[string][]byte{
		"nothing": {}, "a byte": {7}, "few": []byte("a few bytes"), "noise": noise, "rows": rows,
		"zeros": make([]byte, 2<<20), "a block": rows[:128<<10], "a block and one": rows[:128<<10+1],
	}
}

func decode(t *testing.T, frame []byte) []byte {
	t.Helper()
	zr, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer zr.Close()
	out, err := zr.DecodeAll(frame, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFrames: what goes in comes out of the decoder that reads backups, in one call and in pieces, with one encoder in turns.
func TestFrames(t *testing.T) {
	e, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range samples() {
		frame, err := e.Append([]byte("before"), raw)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.HasPrefix(frame, []byte("before")) || !bytes.Equal(decode(t, frame[6:]), raw) {
			t.Errorf("%s: another comes out; want bytes.HasPrefix(frame, []byte(\"before\")) true, decode(t, frame[6:]) %v", name, raw)
		}
		var h zstd.Header
		if err := h.Decode(frame[6:]); err != nil || len(raw) >= 256 && !h.HasFCS || h.HasFCS && h.FrameContentSize != uint64(len(raw)) {
			t.Errorf("%s: the frame says %d bytes (%t), %v", name, h.FrameContentSize, h.HasFCS, err)
		}
		if name == "rows" && len(frame) > len(raw)/2 {
			t.Errorf("rows: %d bytes of %d", len(frame), len(raw))
		}
		for _, size := range []int{5003, 100003} {
			var b bytes.Buffer
			w, err := e.Writer(&b)
			if err != nil {
				t.Fatal(err)
			}
			for rest := raw; len(rest) > 0; {
				n := min(size, len(rest))
				if k, err := w.Write(rest[:n]); k != n || err != nil {
					t.Fatalf("%s: wrote %d of %d: %v", name, k, n, err)
				}
				rest = rest[n:]
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(decode(t, b.Bytes()), raw) {
				t.Errorf("%s in pieces of %d: another comes out, want decode(t, b.Bytes()) %v", name, size, raw)
			}
		}
	}
}

// TestStreamDamaged: the checksum of a stream finds a flipped bit wherever the decoder would not.
func TestStreamDamaged(t *testing.T) {
	e, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := e.Writer(&b)
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 1000)
	rand.NewChaCha8([32]byte{2}).Read(noise)
	if _, err := w.Write(noise); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	zr, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer zr.Close()
	frame := b.Bytes()
	frame[len(frame)/2] ^= 1
	if out, err := zr.DecodeAll(frame, nil); err == nil {
		t.Errorf("%d damaged bytes came out as if they were whole", len(out))
	}
}

type full struct{ room int }

var errFull = errors.New("disk full")

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// TestWriterFails: errors of the underlying writer are returned, at the latest by Close, and the encoder is usable afterwards.
func TestWriterFails(t *testing.T) {
	e, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	noise := samples()["noise"]
	w, err := e.Writer(&full{room: 200 << 10})
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(w, bytes.NewReader(noise))
	if err = errors.Join(err, w.Close()); !errors.Is(err, errFull) {
		t.Errorf("it says %v, want errFull", err)
	}
	frame, err := e.Append(nil, noise)
	if err != nil || !bytes.Equal(decode(t, frame), noise) {
		t.Errorf("afterwards: got %v; want decode(t, frame) %v", err, noise)
	}
}

// TestManyEncoders: encoders at work at the same time do not know each other, and those that are thrown away are freed while
// others work.
func TestManyEncoders(t *testing.T) {
	rows := samples()["rows"]
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for round := range 3 {
				e, err := NewEncoder()
				if err != nil {
					t.Error(err)
					return
				}
				raw := rows[i*1000 : len(rows)-round*500]
				frame, err := e.Append(nil, raw)
				if err != nil || !bytes.Equal(decode(t, frame), raw) {
					t.Errorf("another comes out: %v; want decode(t, frame) %v", err, raw)
				}
				runtime.GC()
			}
		})
	}
	wg.Wait()
}
