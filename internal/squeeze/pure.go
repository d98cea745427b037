//go:build !cgo || !linux || (!amd64 && !arm64)

package squeeze

import (
	"io"

	"github.com/klauspost/compress/zstd"
)

// Native says whether this build uses libzstd.
const Native = false

// impl is the Go encoder, once for frames and once for streams, which have a checksum.
type impl struct{ frames, streams *zstd.Encoder }

func (e *Encoder) open() (err error) {
	e.frames, err = newGo(false)
	return err
}

func newGo(checksum bool) (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(checksum), zstd.WithZeroFrames(true))
}

func (e *Encoder) append(to, raw []byte) ([]byte, error) { return e.frames.EncodeAll(raw, to), nil }

func (e *Encoder) writer(w io.Writer) (io.WriteCloser, error) {
	if e.streams == nil {
		z, err := newGo(true)
		if err != nil {
			return nil, err
		}
		e.streams = z
	}
	e.streams.Reset(w)
	return e.streams, nil
}
