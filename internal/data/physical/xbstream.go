package physical

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/rissodb/risso/internal/data/repo"
)

// The form of the stream in which xtrabackup and mariadb-backup hand over files (storage/innobase/xtrabackup/doc in Percona's
// source calls it xbstream, MariaDB's tool is mbstream): chunks of files, several files mixed.
//
//	"XBSTCK01"  flags  type  length of path (4)  path
//	type P and S go on:  [S: number of holes (4)]  length (8)  offset (8)  CRC-32 of the payload (4)
//	                     [S: for each hole: bytes to skip (4), bytes to write after it (4)]  payload
//
// Numbers are little-endian. A chunk of type E ends its file.
const (
	chunkMagic = "XBSTCK01"

	chunkPayload = 'P'
	chunkSparse  = 'S'
	chunkEnd     = 'E'

	flagIgnorable = 0x01 // a reader that does not know the type may skip the chunk
)

// Bounds on what a chunk may claim. The tools write at most 10 MiB at a time.
const (
	maxPath    = 4096
	maxPayload = 1 << 30
	maxHoles   = 1 << 20
)

// chunk is the head of a piece of a file.
type chunk struct {
	kind   byte
	path   string
	length int64
	offset int64
	sum    uint32
	holes  []hole
}

// hole says how far to skip, and how much of the payload follows it.
type hole struct{ skip, length uint32 }

// streamReader reads a stream chunk by chunk.
type streamReader struct {
	r    *bufio.Reader
	at   int64 // bytes read
	left int64 // of the payload of the last chunk
	sum  uint32
	want uint32
	path string
}

func newStreamReader(r io.Reader) *streamReader {
	return &streamReader{r: bufio.NewReaderSize(r, readAhead)}
}

// readAhead is how much is read at a time: as much as a pipe holds at best.
const readAhead = 256 << 10

// full reads exactly b.
func (s *streamReader) full(b []byte) error {
	n, err := io.ReadFull(s.r, b)
	s.at += int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the stream ends prematurely after %d bytes: %w", s.at, repo.ErrDamaged)
	}
	return err
}

// next returns the next chunk, whose payload then comes from Read; io.EOF at the end of the stream and nowhere else.
func (s *streamReader) next() (c chunk, err error) {
	if err := s.skip(); err != nil {
		return c, err
	}
	if _, err := s.r.Peek(1); err != nil {
		return c, err // io.EOF: between two chunks the stream may end
	}
	var head [14]byte
	if err := s.full(head[:]); err != nil {
		return c, err
	}
	if string(head[:8]) != chunkMagic {
		return c, fmt.Errorf("byte %d of the stream is not the beginning of a chunk: %w", s.at-14, repo.ErrDamaged)
	}
	c.kind = head[9]
	n := binary.LittleEndian.Uint32(head[10:])
	if n == 0 || n > maxPath {
		return c, fmt.Errorf("byte %d of the stream: a path of %d bytes: %w", s.at, n, repo.ErrDamaged)
	}
	path := make([]byte, n)
	if err := s.full(path); err != nil {
		return c, err
	}
	c.path = string(path)
	switch {
	case c.kind == chunkEnd:
		return c, nil
	case c.kind != chunkPayload && c.kind != chunkSparse && head[8]&flagIgnorable == 0:
		return c, fmt.Errorf("byte %d of the stream: a chunk of the unknown type %q: take a newer risso", s.at, c.kind)
	}
	return c, s.body(&c)
}

// body reads what is between the path and the payload.
func (s *streamReader) body(c *chunk) error {
	var b [24]byte
	holes := uint32(0)
	if c.kind == chunkSparse {
		if err := s.full(b[:4]); err != nil {
			return err
		}
		if holes = binary.LittleEndian.Uint32(b[:]); holes > maxHoles {
			return fmt.Errorf("byte %d of the stream: %d holes: %w", s.at, holes, repo.ErrDamaged)
		}
	}
	if err := s.full(b[:20]); err != nil {
		return err
	}
	length, offset := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
	if length > maxPayload || offset > 1<<62 {
		return fmt.Errorf("byte %d of the stream: %d bytes at %d: %w", s.at, length, offset, repo.ErrDamaged)
	}
	c.length, c.offset, c.sum = int64(length), int64(offset), binary.LittleEndian.Uint32(b[16:])
	covered := uint64(0)
	for range holes {
		if err := s.full(b[:8]); err != nil {
			return err
		}
		h := hole{binary.LittleEndian.Uint32(b[:]), binary.LittleEndian.Uint32(b[4:])}
		covered += uint64(h.length)
		c.holes = append(c.holes, h)
	}
	if c.kind == chunkSparse && covered > length {
		return fmt.Errorf("byte %d of the stream: holes around %d of %d bytes: %w", s.at, covered, length, repo.ErrDamaged)
	}
	s.left, s.sum, s.want, s.path = c.length, 0, c.sum, c.path
	if s.left == 0 && c.sum != 0 {
		return s.mismatch()
	}
	return nil
}

func (s *streamReader) mismatch() error {
	return fmt.Errorf("file %q in the stream: its checksum does not match: %w", s.path, repo.ErrDamaged)
}

// skip skips the rest of the payload, and verifies its checksum in place.
func (s *streamReader) skip() error {
	for s.left > 0 {
		if s.r.Buffered() == 0 {
			if _, err := s.r.Peek(1); errors.Is(err, io.EOF) {
				return fmt.Errorf("the stream ends prematurely after %d bytes: %w", s.at, repo.ErrDamaged)
			} else if err != nil {
				return err
			}
		}
		b, err := s.r.Peek(int(min(int64(s.r.Buffered()), s.left)))
		if err != nil {
			return err
		}
		s.sum = crc32.Update(s.sum, crc32.IEEETable, b)
		s.at += int64(len(b))
		s.left -= int64(len(b))
		if _, err := s.r.Discard(len(b)); err != nil {
			return err
		}
		if s.left == 0 && s.sum != s.want {
			return s.mismatch()
		}
	}
	return nil
}

// Read returns the payload of the chunk; its checksum is verified when the last byte was read.
func (s *streamReader) Read(b []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err := s.r.Read(b[:min(int64(len(b)), s.left)])
	s.at += int64(n)
	s.left -= int64(n)
	s.sum = crc32.Update(s.sum, crc32.IEEETable, b[:n])
	switch {
	case errors.Is(err, io.EOF) && s.left > 0:
		return n, fmt.Errorf("the stream ends prematurely after %d bytes: %w", s.at, repo.ErrDamaged)
	case err != nil && !errors.Is(err, io.EOF):
		return n, err
	case s.left == 0 && s.sum != s.want:
		return n, s.mismatch()
	}
	return n, nil
}

// maxKept bounds a small file that is kept in memory.
const maxKept = 1 << 20

// scan reads a whole stream: it counts files, keeps the contents of those that want names, and fails when a chunk is
// damaged or a file has no end.
func scan(r io.Reader, want func(path string) bool) (files int64, kept map[string][]byte, err error) {
	s := newStreamReader(r)
	kept = map[string][]byte{}
	open := map[string]bool{}
	for {
		c, err := s.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return files, kept, err
		}
		if c.kind == chunkEnd {
			if !open[c.path] {
				files++ // an empty one
			}
			delete(open, c.path)
			continue
		}
		if !open[c.path] {
			open[c.path] = true
			files++
		}
		if c.kind == chunkPayload && want(c.path) && c.offset+c.length <= maxKept {
			b := kept[c.path]
			if grow := c.offset + c.length - int64(len(b)); grow > 0 {
				b = append(b, make([]byte, grow)...)
			}
			if _, err := io.ReadFull(s, b[c.offset:c.offset+c.length]); err != nil && c.length > 0 {
				return files, kept, err
			}
			kept[c.path] = b
		}
	}
	for path := range open {
		return files, kept, fmt.Errorf("file %q in the stream has no end: %w", path, repo.ErrDamaged)
	}
	return files, kept, nil
}

// streamWriter writes a stream.
type streamWriter struct {
	w    io.Writer
	buf  []byte
	head []byte
}

// writeChunk is how much of a file goes into a chunk.
const writeChunk = 4 << 20

func newStreamWriter(w io.Writer) *streamWriter {
	return &streamWriter{w: w, buf: make([]byte, writeChunk)}
}

// file writes a whole file.
func (s *streamWriter) file(path string, r io.Reader) error {
	for at := uint64(0); ; {
		n, err := io.ReadFull(r, s.buf)
		if n > 0 {
			if werr := s.put(path, at, s.buf[:n]); werr != nil {
				return werr
			}
			at += uint64(n)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			_, err := s.w.Write(s.begin(path, chunkEnd))
			return err
		case err != nil:
			return err
		}
	}
}

func (s *streamWriter) begin(path string, kind byte) []byte {
	s.head = append(s.head[:0], chunkMagic...)
	s.head = append(s.head, 0, kind)
	s.head = binary.LittleEndian.AppendUint32(s.head, uint32(len(path)))
	return append(s.head, path...)
}

func (s *streamWriter) put(path string, at uint64, b []byte) error {
	s.head = s.begin(path, chunkPayload)
	s.head = binary.LittleEndian.AppendUint64(s.head, uint64(len(b)))
	s.head = binary.LittleEndian.AppendUint64(s.head, at)
	s.head = binary.LittleEndian.AppendUint32(s.head, crc32.ChecksumIEEE(b))
	if _, err := s.w.Write(s.head); err != nil {
		return err
	}
	_, err := s.w.Write(b)
	return err
}
