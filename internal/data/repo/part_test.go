package repo

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
)

// TestPart: a part comes back as it was, any changed bit or cut is found, and those of a whole backup are not removed.
func TestPart(t *testing.T) {
	place := folder(t.TempDir())
	r, err := CreateWith(t.Context(), place, Keys{})
	if err != nil {
		t.Fatal(err)
	}
	h, d := begun(t, r)
	k, err := r.NewKeeper()
	if err != nil {
		t.Fatal(err)
	}
	raw := bytes.Repeat([]byte("pages of a file "), 40)
	part, err := k.KeepPart(t.Context(), h.ID, 7, raw)
	if err != nil || part.Bytes != int64(len(raw)) || part.Number != 7 {
		t.Fatalf("got %+v, %v; want Bytes %v, Number 7", part, err, int64(len(raw)))
	}
	read := func() ([]byte, error) {
		rc, err := r.Part(t.Context(), h.ID, part)
		if err != nil {
			return nil, err
		}
		defer rc.Close()
		return io.ReadAll(rc)
	}
	if b, err := read(); err != nil || !bytes.Equal(b, raw) {
		t.Fatalf("got %q, %v; want %q", b, err, raw)
	}
	path := place.path(t, partKey(h.ID, 7))
	whole, err := os.ReadFile(path)
	if err != nil || int64(len(whole)) != part.Stored {
		t.Fatal(len(whole), part.Stored, err)
	}
	everyDamage(t, path, func() error {
		_, err := read()
		return err
	})
	// Another part under this name is whole, but not this one.
	other, err := k.KeepPart(t.Context(), h.ID, 7, raw[1:])
	if err != nil || other.Hash == part.Hash {
		t.Fatalf("got %v, %v; want Hash not %v", other, err, part.Hash)
	}
	if _, err := read(); !errors.Is(err, ErrDamaged) {
		t.Fatalf("another part gives %v, want ErrDamaged", err)
	}
	if err := r.RemoveParts(t.Context(), h.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := read(); !errors.Is(err, ErrDamaged) {
		t.Fatalf("a part that is gone gives %v, want ErrDamaged", err)
	}
	if err := r.Finish(t.Context(), h, d); err != nil {
		t.Fatal(err)
	}
	if err := r.RemoveParts(t.Context(), h.ID); err == nil {
		t.Fatal("the parts of a whole backup were removed")
	}
}
