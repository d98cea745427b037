// Package squeeze makes zstd frames (RFC 8878) as fast as the build allows: whole frames by libzstd at level 1 in builds with cgo,
// which takes half of the processor time of the Go encoder and packs a little tighter, and by that one elsewhere. Streams are
// made by the Go encoder, which alone of the two gives them a checksum. What one writes every decoder of zstd reads.
//
// Reading is not here: it stays with the Go decoder, so that bytes that somebody may have damaged never meet C.
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

// NewEncoder gives an encoder.
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
