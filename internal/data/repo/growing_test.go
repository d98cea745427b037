package repo

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"filippo.io/age"
)

// TestGrowing writes a growing file in pieces and reads it after every kind of cut and damage: what is read is always a beginning
// of what was written, and ends with a frame.
func TestGrowing(t *testing.T) {
	who, write, _ := keys(t)
	dir := t.TempDir()
	r := made(t, dir, write)
	g, err := r.Grow("S/log.000001")
	if err != nil {
		t.Fatal(err)
	}
	file := bytes.Clone(g.Head())
	var plain []byte
	ends := map[int]int{len(file): 0} // bytes of the file → bytes of what it holds
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 7, 300, 2*growingFrame + 5, 40} {
		piece := make([]byte, n)
		for i := range piece {
			piece[i] = byte(rnd.Uint32())
		}
		file = g.Append(file, piece, int64(len(plain)))
		plain = append(plain, piece...)
		ends[len(file)] = len(plain)
	}
	if bytes.Contains(file, plain[20:60]) {
		t.Error("it is not encrypted")
	}
	read := func(r *Repo, file []byte) ([]byte, *GrowingReader, error) {
		in := bytes.NewReader(file)
		g, err := r.Regrow("S/log.000001", in)
		if err != nil {
			return nil, nil, err
		}
		gr := g.Reader(in)
		b, err := io.ReadAll(gr)
		return b, gr, err
	}
	for name, k := range map[string]Keys{"the host that writes": write, "an identity": {Identities: []age.Identity{who}}} {
		if b, _, err := read(opened(t, dir, k), file); err != nil || !bytes.Equal(b, plain) {
			t.Errorf("%s reads %d bytes of %d: %v; want b %v", name, len(b), len(plain), err, plain)
		}
	}
	if _, _, err := read(opened(t, dir, Keys{}), file); !errors.Is(err, ErrNoKey) {
		t.Errorf("without a key: got %v, want ErrNoKey", err)
	}
	if n, err := GrowingSize(bytes.NewReader(file)); err != nil || n != int64(len(plain)) {
		t.Errorf("it counts %d bytes: got %v; want %d", n, err, int64(len(plain)))
	}
	small := file[:len(file)-2*growingFrame-5-3*frameOver-40-frameOver] // the first three pieces
	for cut := range small {
		b, gr, err := read(r, small[:cut])
		whole, at := 0, ends[cut]
		for end, n := range ends {
			if end <= cut {
				whole = max(whole, n)
			}
		}
		switch {
		case cut < len(g.Head()):
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("cut at %d in the head: got %v, want io.ErrUnexpectedEOF", cut, err)
			}
		case err != nil || !bytes.Equal(b, plain[:whole]) || gr.Torn != (whole != at || ends[cut] == 0 && cut != len(g.Head())):
			t.Fatalf("cut at %d: got %d bytes of %d, torn %v: %v; want b plain[:whole], gr.Torn whole != at || ends[cut] == 0 && cut != len(g.Head())",
				cut, len(b), whole, gr.Torn, err)
		}
	}
	for i := len(g.Head()); i < len(small); i++ {
		bad := bytes.Clone(small)
		bad[i] ^= 1 << (i % 8)
		b, gr, err := read(r, bad)
		if err == nil && !gr.Torn || !bytes.HasPrefix(plain, b) {
			t.Fatalf("a bit changed at %d: %d bytes, %v", i, len(b), err)
		}
		if lastFrame := i >= len(small)-300-frameOver; errors.Is(err, ErrDamaged) && gr.Tail() && !lastFrame {
			t.Fatalf("a bit changed at %d: taken for what a crash leaves", i)
		}
	}
	// Blocks that did not reach the disk.
	_, gr, err := read(r, append(bytes.Clone(small), make([]byte, 5000)...))
	if !errors.Is(err, ErrDamaged) || !gr.Tail() {
		t.Errorf("zeros at the end: got %v; want ErrDamaged, gr.Tail() true", err)
	}
	// Frames exchanged.
	h := len(g.Head())
	swapped := append(append(bytes.Clone(small[:h]), small[h+1+frameOver:h+8+2*frameOver]...), small[h:h+1+frameOver]...)
	if b, _, err := read(r, swapped); !errors.Is(err, ErrDamaged) || len(b) != 0 {
		t.Errorf("frames exchanged: got %d bytes, %v; want ErrDamaged, no b", len(b), err)
	}
	if err := r.Grown("S/log.000001"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(r, file); !errors.Is(err, ErrNoKey) {
		t.Errorf("this host keeps the key: %v, want ErrNoKey", err)
	}
}
