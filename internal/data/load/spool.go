package load

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/rissodb/risso/internal/data/repo"
)

// spool holds the lines of a manifest that are wanted, so that they can be read in any order without being in memory. Its file
// has no name: a killed process leaves nothing behind.
type spool struct {
	file *os.File
	size int64
	zw   *zstd.Encoder
	zr   *zstd.Decoder
	buf  []byte
}

// ref is the place of a line.
type ref struct {
	at    int64
	size  int32
	bytes int64 // of a table's rows
}

func newSpool() (*spool, error) {
	f, err := os.CreateTemp("", "risso-restore-*")
	if err != nil {
		return nil, fmt.Errorf("buffer the manifest: %w", err)
	}
	s := &spool{file: f}
	if err = os.Remove(f.Name()); err == nil {
		s.zw, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	}
	if err == nil {
		s.zr, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<32))
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("buffer the manifest: %w", err)
	}
	return s, nil
}

func (s *spool) close() {
	s.zr.Close()
	s.file.Close()
}

// add puts a line away. It is called by one goroutine, and not any more once get is.
func (s *spool) add(l repo.Line) (ref, error) {
	b, err := json.Marshal(l)
	if err != nil {
		return ref{}, fmt.Errorf("buffer the manifest: %w", err)
	}
	s.buf = s.zw.EncodeAll(b, s.buf[:0])
	at := ref{at: s.size, size: int32(len(s.buf))}
	if _, err := s.file.Write(s.buf); err != nil {
		return ref{}, fmt.Errorf("buffer the manifest: %w", err)
	}
	s.size += int64(len(s.buf))
	return at, nil
}

// get reads a line. Several goroutines may call it.
func (s *spool) get(at ref) (repo.Line, error) {
	var l repo.Line
	b := make([]byte, at.size)
	_, err := io.ReadFull(io.NewSectionReader(s.file, at.at, int64(at.size)), b)
	if err == nil {
		b, err = s.zr.DecodeAll(b, nil)
	}
	if err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err != nil {
		return l, fmt.Errorf("read the buffered manifest: %w", err)
	}
	return l, nil
}
