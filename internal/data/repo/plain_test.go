package repo

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
)

func TestPlainFrame(t *testing.T) {
	zr, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer zr.Close()
	for _, size := range []int{0, 1, 128<<10 - 1, 128 << 10, 128<<10 + 1, 3 << 20} {
		raw := bytes.Repeat([]byte("rows "), size/5+1)[:size]
		got, err := zr.DecodeAll(appendPlainFrame(nil, raw), nil)
		if err != nil || !bytes.Equal(got, raw) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// TestPlainObject compares what an object in pieces returns, whichever way it is read, with the same put together.
func TestPlainObject(t *testing.T) {
	for _, size := range []int{0, 1, plainBlock, plainBlock + 1, 300_000} {
		raw := bytes.Repeat([]byte("rows "), size/5+1)[:size]
		want := appendSeal(appendPlainFrame(nil, raw))
		o := newPlainObject(raw)
		if o.Size() != int64(len(want)) {
			t.Errorf("%d bytes: the size is %d, not %d", size, o.Size(), len(want))
		}
		if err := iotest.TestReader(struct{ io.Reader }{o}, want); err != nil {
			t.Errorf("%d bytes: read: %v", size, err)
		}
		if err := iotest.TestReader(io.NewSectionReader(o, 0, o.Size()), want); err != nil {
			t.Errorf("%d bytes: read from places: %v", size, err)
		}
		half := newPlainObject(raw)
		begin := make([]byte, len(want)/2)
		if _, err := io.ReadFull(half, begin); err != nil {
			t.Fatal(err)
		}
		rest := bytes.NewBuffer(begin)
		if n, err := half.WriteTo(rest); err != nil || n != int64(len(want)-len(want)/2) || !bytes.Equal(rest.Bytes(), want) {
			t.Errorf("%d bytes: the second half has %d bytes, %v; want n %d, rest.Bytes() %v", size, n, err, int64(len(want)-len(want)/2), want)
		}
	}
}
