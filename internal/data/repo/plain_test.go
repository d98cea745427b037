package repo

import (
	"bytes"
	"testing"

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
