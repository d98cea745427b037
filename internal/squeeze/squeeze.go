// Package squeeze makes zstd frames (RFC 8878) as fast as the build allows. DuckDB, which is in builds with cgo anyway, carries
// libzstd: there that one is used, at level 1, which takes half of the processor time of the Go encoder and packs a little
// tighter. Elsewhere the Go encoder does it. What one writes every decoder of zstd reads.
//
// Reading is not here: it stays with the Go decoder, so that bytes that somebody may have damaged never meet C.
package squeeze

import "io"

// Encoder makes frames. It belongs to one goroutine and is used again and again.
type Encoder struct{ impl }

// NewEncoder gives an encoder.
func NewEncoder() (*Encoder, error) {
	var e Encoder
	if err := e.open(); err != nil {
		return nil, err
	}
	return &e, nil
}

// Append appends one frame that holds raw. From 256 bytes on the frame says how many it holds.
// It has no checksum: who stores it seals it.
func (e *Encoder) Append(to, raw []byte) ([]byte, error) { return e.append(to, raw) }

// Writer begins a frame into w that grows with what is written, and ends with a checksum. Close ends the frame, not w. Until
// then the encoder is busy: a new Writer ends the old one's use.
func (e *Encoder) Writer(w io.Writer) (io.WriteCloser, error) { return e.writer(w) }
