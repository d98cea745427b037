//go:build !cgo

package squeeze

import "github.com/klauspost/compress/zstd"

// Native is true if this build uses libzstd.
const Native = false

type frames struct{ zw *zstd.Encoder }

func newFrames() (*frames, error) {
	zw, err := newGo(false)
	return &frames{zw}, err
}

func (f *frames) append(to, raw []byte) ([]byte, error) { return f.zw.EncodeAll(raw, to), nil }
