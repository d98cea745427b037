package physical

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/data/repo"
)

// partSize is how much of a stream is one object: large enough for S3, small enough that a handful fits into memory.
const partSize = 16 << 20

// sink cuts a stream into parts, which several workers compress, encrypt and store at the same time.
type sink struct {
	ctx    context.Context
	group  *errgroup.Group
	free   chan []byte
	work   chan piece
	closed bool
	buf    []byte
	number int

	mu     sync.Mutex
	add    func(repo.Part) error
	early  map[int]repo.Part // stored before their turn
	next   int
	bytes  int64
	stored int64
}

type piece struct {
	number int
	raw    []byte
}

// newSink begins. add gets the parts in their order; it must not block. The caller ends it with Close.
func newSink(ctx context.Context, r *repo.Repo, id string, threads int, add func(repo.Part) error) (*sink, error) {
	s := &sink{free: make(chan []byte, threads+1), work: make(chan piece), add: add, early: map[int]repo.Part{}}
	s.group, s.ctx = errgroup.WithContext(ctx)
	for range threads + 1 {
		s.free <- nil
	}
	for range threads {
		k, err := r.NewKeeper()
		if err != nil {
			return nil, err
		}
		s.group.Go(func() error {
			for p := range s.work {
				part, err := k.KeepPart(s.ctx, id, p.number, p.raw)
				if err != nil {
					return err
				}
				s.free <- p.raw[:0]
				if err := s.kept(part); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return s, nil
}

// kept hands parts on in their order.
func (s *sink) kept(p repo.Part) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes += p.Bytes
	s.stored += p.Stored
	s.early[p.Number] = p
	for {
		p, ok := s.early[s.next]
		if !ok {
			return nil
		}
		delete(s.early, s.next)
		s.next++
		if err := s.add(p); err != nil {
			return err
		}
	}
}

// Write takes the next bytes of the stream. It waits while all workers are busy.
func (s *sink) Write(b []byte) (int, error) {
	written := 0
	for len(b) > 0 {
		if s.buf == nil {
			select {
			case s.buf = <-s.free:
			case <-s.ctx.Done():
				return written, context.Cause(s.ctx)
			}
			if s.buf == nil {
				s.buf = make([]byte, 0, partSize)
			}
		}
		n := min(partSize-len(s.buf), len(b))
		s.buf = append(s.buf, b[:n]...)
		b, written = b[n:], written+n
		if len(s.buf) == partSize {
			if err := s.flush(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

func (s *sink) flush() error {
	select {
	case s.work <- piece{s.number, s.buf}:
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
	s.number++
	s.buf = nil
	return nil
}

// Close stores what is left, and returns when all is stored, or why it could not be. It may be called again.
func (s *sink) Close() error {
	var err error
	if s.closed {
		return nil
	}
	s.closed = true
	if len(s.buf) > 0 {
		err = s.flush()
	}
	close(s.work)
	if werr := s.group.Wait(); werr != nil {
		return werr // what stopped the workers is the cause of all else
	}
	return err
}

// sizes are the bytes stored so far, before and after compression.
func (s *sink) sizes() (bytes, stored int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes, s.stored
}

// source reads parts one after the other; several are fetched, decrypted and unpacked ahead. A part is checked before its
// first byte is returned.
type source struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	parts  chan chan fetched
	free   chan []byte // buffers of parts that were read
	whole  []byte      // the part that now is the rest of
	now    []byte
}

type fetched struct {
	raw []byte
	err error
}

var errClosed = errors.New("closed")

// newSource begins to read. The caller closes it.
func newSource(ctx context.Context, r *repo.Repo, id string, list []repo.Part, threads int) *source {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &source{ctx: ctx, cancel: cancel, parts: make(chan chan fetched, threads), free: make(chan []byte, threads+2)}
	// Ends when all parts are handed over or ctx ends; Close ends ctx.
	go func() {
		defer close(s.parts)
		for _, p := range list {
			slot := make(chan fetched, 1)
			select {
			case s.parts <- slot:
			case <-ctx.Done():
				return
			}
			go func() { // never blocks: the slot has room
				raw, err := s.fetch(r, id, p)
				slot <- fetched{raw, err}
			}()
		}
	}()
	return s
}

// fetch reads one part whole and checks it.
func (s *source) fetch(r *repo.Repo, id string, p repo.Part) ([]byte, error) {
	if p.Bytes < 0 || p.Bytes > maxPayload {
		return nil, fmt.Errorf("part %d of backup %s has %d bytes: %w", p.Number, id, p.Bytes, repo.ErrDamaged)
	}
	rc, err := r.Part(s.ctx, id, p)
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	var raw []byte
	select {
	case raw = <-s.free:
	default:
	}
	if int64(cap(raw)) < p.Bytes {
		raw = make([]byte, p.Bytes)
	}
	raw = raw[:p.Bytes]
	if _, err := io.ReadFull(rc, raw); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("part %d of backup %s: %w", p.Number, id, damagedEnd(err))
	}
	var more [1]byte
	if n, err := rc.Read(more[:]); n > 0 || !errors.Is(err, io.EOF) { // the checksum is looked at here
		if err == nil || errors.Is(err, io.EOF) {
			err = fmt.Errorf("it is longer than it was: %w", repo.ErrDamaged)
		}
		return nil, fmt.Errorf("part %d of backup %s: %w", p.Number, id, err)
	}
	return raw, nil
}

func damagedEnd(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it is shorter than it was: %w", repo.ErrDamaged)
	}
	return err
}

// Read returns the next bytes of the stream.
func (s *source) Read(b []byte) (int, error) {
	for len(s.now) == 0 {
		if s.whole != nil {
			select {
			case s.free <- s.whole:
			default:
			}
			s.whole = nil
		}
		slot, ok := <-s.parts
		if !ok && s.ctx.Err() != nil {
			return 0, context.Cause(s.ctx) // it was not the end of the stream
		}
		if !ok {
			return 0, io.EOF
		}
		f := <-slot
		if f.err != nil {
			s.cancel(f.err)
			return 0, f.err
		}
		s.whole, s.now = f.raw, f.raw
	}
	n := copy(b, s.now)
	s.now = s.now[n:]
	return n, nil
}

// Close ends what is still under way.
func (s *source) Close() error {
	s.cancel(errClosed)
	return nil
}

// taken is how many bytes of the stream were stored.
func (s *sink) taken() int64 {
	n, _ := s.sizes()
	return n
}
