// Package ring keeps records by the second on disk, for a bounded time and in bounded space: the oldest are given up first. What is lost at
// a kill is at most the record that was being written; FORMAT.md says how the files are made.
//
// A record may need those before it in its block, to which it only adds: a reader gets whole blocks, from their first record on.
package ring

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/squeeze"
)

// Options say where a ring is, and how much it may hold.
type Options struct {
	Dir    string
	Keep   time.Duration // older records are given up
	Most   int64         // bytes on disk, at the most
	Damage func(string)  // is told what was found damaged, in words; may be nil
}

// Limits of a block and a segment.
const (
	blockRecords = 60
	blockBytes   = 1 << 20 // of its records, before they are packed
	segmentSpan  = 3600    // seconds in one file
)

// ErrOld means that the ring has a newer record already: this machine's clock went back.
var ErrOld = errors.New("the ring has newer records")

// Record is what was kept of a second.
type Record struct {
	At      int64 // unix seconds
	Payload []byte
}

// Ring is one ring. It may be used by any number of goroutines.
type Ring struct {
	opts Options

	mu       sync.Mutex
	segments []*segment // by time; the last one grows
	tail     *os.File   // the records of the block that is not full yet
	pending  []Record
	size     int   // bytes of pending
	written  int64 // bytes of the tail
	broken   bool  // a record could not be written: the next one begins a block
	newest   int64
	enc      *squeeze.Encoder
}

// segment is a file of blocks.
type segment struct {
	path   string
	size   int64
	blocks []block
	torn   int64 // the first second of what follows them and is no block, where that can be read
}

// block is where a block is, and from when to when.
type block struct {
	first, last, offset int64
	length              int
}

// Open opens a ring, or makes one. What a kill left half written is taken away; what is damaged otherwise is told and left out.
func Open(o Options) (*Ring, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of moments: %w", err)
	}
	enc, err := squeeze.NewEncoder()
	if err != nil {
		return nil, fmt.Errorf("pack moments: %w", err)
	}
	r := &Ring{opts: o, enc: enc}
	if err := r.load(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Ring) damaged(format string, a ...any) {
	if r.opts.Damage != nil {
		r.opts.Damage(fmt.Sprintf(format, a...))
	}
}

// load reads what there is.
func (r *Ring) load() error {
	names, err := filepath.Glob(filepath.Join(r.opts.Dir, "*"+segmentSuffix))
	if err != nil {
		return fmt.Errorf("list moments: %w", err)
	}
	type torn struct {
		words string
		first int64
	}
	var ends []torn
	for _, path := range names {
		if _, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(path), segmentSuffix), 10, 64); err != nil {
			continue
		}
		s, cut, err := readSegment(path)
		if err != nil {
			return fmt.Errorf("read moments: %w", err)
		}
		if cut > 0 {
			ends = append(ends, torn{fmt.Sprintf("%d bytes at the end of %s were not written whole or are damaged: their seconds are missing", cut, filepath.Base(path)), s.torn})
			if err := os.Truncate(path, s.size); err != nil {
				return fmt.Errorf("cut what was not written whole: %w", err)
			}
		}
		if len(s.blocks) > 0 {
			r.segments = append(r.segments, s)
		}
	}
	slices.SortFunc(r.segments, func(a, b *segment) int { return cmp.Compare(a.blocks[0].first, b.blocks[0].first) })
	for _, s := range r.segments {
		r.newest = max(r.newest, s.blocks[len(s.blocks)-1].last)
	}
	if r.tail, err = os.OpenFile(filepath.Join(r.opts.Dir, tailName), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return fmt.Errorf("open the newest moments: %w", err)
	}
	list, cut, err := readTail(r.tail)
	if err != nil {
		return fmt.Errorf("read the newest moments: %w", err)
	}
	if cut > 0 {
		r.damaged("the last %d bytes of the newest moments were not written whole: the second in which Risso was killed is missing", cut)
	}
	for _, rec := range list {
		if rec.At > r.newest { // else it was packed already when Risso was killed
			r.pending, r.newest = append(r.pending, rec), rec.At
		}
	}
	for _, e := range ends {
		if len(r.pending) == 0 || e.first > 0 && e.first < r.pending[0].At { // else Risso was killed while it packed what is in the tail
			r.damaged("%s", e.words)
		}
	}
	return r.pack()
}

// Append keeps a record of a second, made by encode: from scratch where fresh, else by what it adds to those before it in its block.
func (r *Ring) Append(at int64, encode func(fresh bool) []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at <= r.newest {
		return ErrOld
	}
	// A failed pack is tried again with the next record; the block grows meanwhile, up to twice its size.
	if n := len(r.pending); r.broken || n >= blockRecords || r.size >= blockBytes {
		if err := r.pack(); err != nil && (r.broken || n >= 2*blockRecords || r.size >= 2*blockBytes) {
			return err
		}
	}
	payload := encode(len(r.pending) == 0)
	if _, err := r.tail.WriteAt(tailRecord(at, payload), r.written); err != nil {
		r.broken = true // those after it would refer to a record that is not there
		return fmt.Errorf("write a moment: %w", err)
	}
	r.pending, r.newest = append(r.pending, Record{at, payload}), at
	r.size += len(payload)
	r.written += int64(tailHead + len(payload))
	return nil
}

// pack puts the pending records into a segment, as one block.
func (r *Ring) pack() error {
	if len(r.pending) > 0 {
		first, last := r.pending[0].At, r.pending[len(r.pending)-1].At
		s, err := r.segmentFor(first)
		if err != nil {
			return err
		}
		body, err := packBlock(r.enc, r.pending)
		if err != nil {
			return err
		}
		if err := appendTo(s.path, s.size, body); err != nil {
			return fmt.Errorf("write moments: %w", err)
		}
		s.blocks = append(s.blocks, block{first, last, s.size, len(body)})
		s.size += int64(len(body))
		r.pending, r.size = nil, 0
	}
	r.written, r.broken = 0, false
	if err := r.tail.Truncate(0); err != nil {
		return fmt.Errorf("begin a block of moments: %w", err)
	}
	return r.giveUp(r.newest)
}

// segmentFor is the segment into which a block belongs that begins at a time.
func (r *Ring) segmentFor(at int64) (*segment, error) {
	begin := at - at%segmentSpan
	path := filepath.Join(r.opts.Dir, strconv.FormatInt(begin, 10)+segmentSuffix)
	if n := len(r.segments); n > 0 && r.segments[n-1].path == path {
		return r.segments[n-1], nil
	}
	if err := appendTo(path, 0, []byte(segmentMagic)); err != nil {
		return nil, fmt.Errorf("begin a file of moments: %w", err)
	}
	s := &segment{path: path, size: int64(len(segmentMagic))}
	r.segments = append(r.segments, s)
	return s, nil
}

// giveUp deletes what is too old, or too much.
func (r *Ring) giveUp(now int64) error {
	total := r.bytes()
	for len(r.segments) > 1 {
		s := r.segments[0]
		old := len(s.blocks) == 0 || now-s.blocks[len(s.blocks)-1].last > int64(r.opts.Keep.Seconds())
		if !old && (r.opts.Most <= 0 || total <= r.opts.Most) {
			return nil
		}
		if err := os.Remove(s.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("give up old moments: %w", err)
		}
		total -= s.size
		r.segments = r.segments[1:]
	}
	return nil
}

func (r *Ring) bytes() (sum int64) {
	for _, s := range r.segments {
		sum += s.size
	}
	return sum + int64(r.size)
}

// Span is the oldest and the newest second that are kept, and how many bytes are; 0, 0: none.
func (r *Ring) Span() (oldest, newest, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(r.segments) > 0:
		oldest = r.segments[0].blocks[0].first
	case len(r.pending) > 0:
		oldest = r.pending[0].At
	}
	if oldest > 0 {
		newest = r.newest
	}
	return oldest, newest, r.bytes()
}

// Pace is how many bytes a second the newest blocks take on disk, of some ten minutes; 0: there are not enough to tell.
func (r *Ring) Pace() float64 {
	const judged, enough = 10, 5 // blocks
	r.mu.Lock()
	defer r.mu.Unlock()
	bytes, seconds, blocks := 0, int64(0), 0
	for i := len(r.segments) - 1; i >= 0; i-- {
		for _, b := range slices.Backward(r.segments[i].blocks) {
			if blocks == judged {
				break
			}
			bytes, seconds, blocks = bytes+b.length, seconds+b.last-b.first+1, blocks+1
		}
	}
	if blocks < enough {
		return 0
	}
	return float64(bytes) / float64(seconds)
}

// Blocks calls f with the records of each block that has some from one second to another, both included; f gets whole blocks. A block
// that cannot be read is told as damaged, and left out.
func (r *Ring) Blocks(from, to int64, f func([]Record) error) error {
	type place struct {
		path string
		block
	}
	r.mu.Lock()
	var places []place
	for _, s := range r.segments {
		for _, b := range s.blocks {
			if b.last >= from && b.first <= to {
				places = append(places, place{s.path, b})
			}
		}
	}
	pending := slices.Clone(r.pending)
	r.mu.Unlock()
	for _, p := range places {
		list, err := readBlock(p.path, p.block)
		switch {
		case errors.Is(err, os.ErrNotExist): // it was given up meanwhile
			continue
		case err != nil:
			r.damaged("moments from %s on cannot be read: %v", time.Unix(p.first, 0).Format(time.DateTime), err)
			continue
		}
		if err := f(list); err != nil {
			return err
		}
	}
	if len(pending) > 0 && pending[len(pending)-1].At >= from && pending[0].At <= to {
		return f(pending)
	}
	return nil
}

// Close packs what is pending.
func (r *Ring) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.pack()
	return errors.Join(err, r.tail.Close())
}
