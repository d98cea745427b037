package digest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	// blockSize is what a worker takes at a time: small enough to stay in a core's cache.
	blockSize = 512 << 10
	// readSize is what is read at a time: so little that Go's scheduler does not take a read from the page cache
	// for one that blocks, which would cost two switches of threads.
	readSize = 64 << 10
	// statementLimit bounds the bytes of one event that are examined; the rest is counted, not read.
	statementLimit = 8 << 20
	// overlap is what is looked at again when the end of a long event is searched piece by piece: it must
	// hold the lines that mark an event's beginning.
	overlap = 4 << 10
)

// errIdle is what a reader that follows a file returns, with no bytes, when there is nothing new for now.
var errIdle = errors.New("nothing new")

// blocks cuts a log into blocks of whole events, for workers that ask for them in turn.
type blocks struct {
	mu   sync.Mutex
	r    io.Reader
	size int
	seq  int64
	off  int64  // of the next block
	tail []byte // read, but belongs to the next block
	err  error  // io.EOF or why reading ended
	read func(n int)

	searched int64 // bytes that were searched for the end of an event over the limit
}

// block is a part of a log: whole events.
type block struct {
	seq    int64
	offset int64
	data   []byte
	cut    int64 // bytes that follow the data and belong to its last event, which is too long
	idle   bool  // there is no more for now
	last   bool  // the log ends with it
}

// next reads a block into buf, which may grow; it returns the buffer for the next call.
func (r *blocks) next(buf []byte) (block, []byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil && len(r.tail) == 0 {
		return block{}, buf, r.err
	}
	if want := max(r.size, len(r.tail)+r.size/2); cap(buf) < want {
		buf = make([]byte, want)
	}
	buf = buf[:cap(buf)]
	n := copy(buf, r.tail)
	r.tail = r.tail[:0]
	b := block{seq: r.seq, offset: r.off}
	searched := 0
	for {
		idle := false
		for n < len(buf) && r.err == nil && !idle {
			m, err := r.r.Read(buf[n:min(n+readSize, len(buf))])
			n += m
			r.read(m)
			if idle = errors.Is(err, errIdle); err != nil && !idle {
				r.err = err
			}
		}
		if r.err != nil && !errors.Is(r.err, io.EOF) {
			return block{}, buf, fmt.Errorf("after %d bytes: %w", r.off+int64(n), r.err)
		}
		end := -1
		if r.err == nil || n > r.size { // else the rest of the log is one block
			end = lastEvent(buf[:n], searched)
		}
		if end < 0 && n >= statementLimit {
			end = lastWhole(buf[:n])
		}
		switch {
		case end > 0:
		case r.err != nil || idle && bytes.HasSuffix(buf[:n], []byte(";\n")):
			end = n
		case idle:
			end = 0
		case n >= statementLimit:
			return r.long(b, buf, n)
		default: // one event fills the buffer
			searched = max(n-overlap, 0)
			buf = append(make([]byte, 0, min(2*len(buf), statementLimit+r.size)), buf[:n]...)
			buf = buf[:cap(buf)]
			continue
		}
		b.idle = idle
		b.last = r.err != nil && end == n
		b.data = buf[:end]
		r.tail = append(r.tail, buf[end:n]...)
		r.off += int64(end)
		r.seq++
		return b, buf, nil
	}
}

// long makes a block of the beginning of an event that is over the limit, and skips its rest.
func (r *blocks) long(b block, buf []byte, n int) (block, []byte, error) {
	b.data = buf[:statementLimit]
	piece := make([]byte, n-statementLimit+256<<10)
	m := copy(piece, buf[statementLimit-overlap:n])
	b.cut = -overlap // what piece begins with belongs to the data
	for {
		// The piece is filled before it is searched: some readers give a line at a time, and its beginning is searched again each time.
		idle := false
		for m < len(piece) && r.err == nil && !idle {
			got, err := r.r.Read(piece[m:])
			m += got
			r.read(got)
			if idle = errors.Is(err, errIdle); err != nil && !idle {
				if r.err = err; !errors.Is(err, io.EOF) {
					return block{}, buf, err
				}
			}
		}
		r.searched += int64(m)
		if end := nextHeader(piece[:m]); end >= 0 {
			b.cut += int64(end)
			r.tail = append(r.tail, piece[end:m]...)
			break
		}
		if r.err != nil {
			b.cut += int64(m)
			break
		}
		keep := min(m, overlap)
		b.cut += int64(m - keep)
		copy(piece, piece[m-keep:m])
		m = keep
	}
	if b.cut < 0 { // the event ends just before the limit
		b.data = b.data[:len(b.data)+int(b.cut)]
		b.cut = 0
	}
	r.off += int64(len(b.data)) + b.cut
	r.seq++
	return b, buf, nil
}

// lastEvent returns where the last event starts that follows a line ended by ";" at or after from, or -1.
func lastEvent(b []byte, from int) int {
	for end := len(b); end > from; {
		i := bytes.LastIndexByte(b[from:end], '#')
		if i < 0 {
			return -1
		}
		i += from
		end = i
		if i < 2 || b[i-1] != '\n' || bytes.IndexByte(b[i:], '\n') < 0 {
			continue
		}
		at := i - 2
		if b[at] == '\r' && at > 0 {
			at--
		}
		if b[at] == ';' && isHead(b, i) {
			return i
		}
	}
	return -1
}

// lastWhole returns where the last whole header starts, after any line, or -1: for logs whose statements have no ends.
// The beginning of b does not count.
func lastWhole(b []byte) int {
	for end := len(b); end > 0; {
		end = bytes.LastIndex(b[:end], []byte("\n"+queryMark))
		if end < 0 || !wholeHeader(b[end+1:]) {
			continue
		}
		i := end + 1
		for prev := i; prev > 1; i = prev { // the lines before it
			if prev = bytes.LastIndexByte(b[:prev-1], '\n') + 1; b[prev] != '#' {
				break
			}
		}
		if i == 0 {
			return -1
		}
		for ; i <= end+1; i = lineEnd(b, i) { // of which the first may be no header's
			if isHead(b, i) && wholeHeader(b[i:]) {
				return i
			}
		}
	}
	return -1
}

// nextHeader returns where the next event starts in the rest of a statement, or -1: after a line ended by ";", or where nothing but a
// whole header shows it.
func nextHeader(b []byte) int {
	end := nextEvent(b, 0, false)
	nl := bytes.IndexByte(b, '\n')
	if nl < 0 {
		return end
	}
	if broken := brokenAt(b, nl); broken >= 0 && (end < 0 || broken < end) {
		return broken
	}
	return end
}
