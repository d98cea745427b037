// Package squeeze makes zstd frames (RFC 8878) as fast as the build allows: whole frames by libzstd at level 1 in builds with cgo,
// which takes half the processor time of the Go encoder and compresses slightly better, and by the Go encoder in other builds.
// Streams are written by the Go encoder, the only one of the two that adds a checksum. Every zstd decoder reads the output of both.
//
// Decoding is left to the Go decoder, so that possibly damaged input never reaches C code.
package squeeze

import (
	"io"

	"github.com/klauspost/compress/zstd"
)

// Encoder makes frames. It belongs to one goroutine and is used again and again.
type Encoder struct {
	frames  *frames
	streams *zstd.Encoder // nil until there is one
}

// NewEncoder returns an encoder.
func NewEncoder() (*Encoder, error) {
	f, err := newFrames()
	if err != nil {
		return nil, err
	}
	return &Encoder{frames: f}, nil
}

// Append appends one frame that holds raw. From 256 bytes on the frame says how many it holds.
// It has no checksum: who stores it seals it.
func (e *Encoder) Append(to, raw []byte) ([]byte, error) { return e.frames.append(to, raw) }

// Writer begins a frame into w that grows with what is written, and ends with a checksum. Close ends the frame, not w. Until
// then the encoder is busy: a new Writer ends the old one's use.
func (e *Encoder) Writer(w io.Writer) (io.WriteCloser, error) {
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

func newGo(checksum bool) (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(checksum), zstd.WithZeroFrames(true))
}
