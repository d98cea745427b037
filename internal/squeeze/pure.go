//go:build !cgo

package squeeze

import (
	"io"

	"github.com/klauspost/compress/zstd"
)

// Native says whether this build uses libzstd.
const Native = false

type frames struct {
	zw      *zstd.Encoder
	streams *zstd.Encoder // nil until there is one
}

func newFrames() (*frames, error) {
	zw, err := newGo(false)
	return &frames{zw: zw}, err
}

func (f *frames) append(to, raw []byte) ([]byte, error) { return f.zw.EncodeAll(raw, to), nil }

func (f *frames) writer(w io.Writer) (_ io.WriteCloser, err error) {
	if f.streams == nil {
		if f.streams, err = newGo(true); err != nil {
			return nil, err
		}
	}
	f.streams.Reset(w)
	return f.streams, nil
}
