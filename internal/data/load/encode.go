package load

import (
	"errors"
	"fmt"
	"io"

	"github.com/rissodb/risso/internal/data/repo"
)

// feed turns the raw rows of a chunk (see repo's FORMAT.md) into the text that LOAD DATA reads with its default separators: a
// tab between values, a line feed after a row, \N for NULL. It holds neither a chunk nor a row in memory. It ends after the row with
// which limit raw bytes are reached; next goes on from there.
type feed struct {
	src     io.Reader // nil: all is in the window
	win     []byte    // what is read of src: win[r:w] is not used yet
	r, w    int
	columns int

	col   int // of the row: which value comes next
	state feedState
	left  uint64 // bytes of the value that are to come

	limit int64  // raw bytes of a batch
	raw   int64  // of this batch
	rows  int64  // of this batch, whole ones
	ended bool   // the source has no more rows
	kept  []byte // made and not read yet: there was room for one byte only
}

type feedState uint8

const (
	atValue  feedState = iota // a value's length is next
	inValue                   // its bytes are
	endValue                  // its separator is due
)

// window is how much of a large chunk is held at a time.
const window = 256 << 10

// feedBytes reads rows that are in memory.
func feedBytes(raw []byte, columns int) *feed {
	return &feed{win: raw, w: len(raw), columns: columns}
}

// feedReader reads rows as they come.
func feedReader(src io.Reader, columns int) *feed {
	return &feed{src: src, win: make([]byte, window), columns: columns}
}

// next begins a batch and says whether there is one.
func (f *feed) next(limit int64) (bool, error) {
	f.limit, f.raw, f.rows = limit, 0, 0
	if f.ended || f.columns == 0 {
		return false, nil
	}
	err := f.need(1)
	if errors.Is(err, io.EOF) {
		f.ended = true
		return false, nil
	}
	return err == nil, err
}

// need makes at least n bytes lie in the window; io.EOF when the source ends before the first of them.
func (f *feed) need(n int) error {
	for f.w-f.r < n {
		if f.src == nil {
			return f.short()
		}
		if f.r > 0 {
			f.w = copy(f.win, f.win[f.r:f.w])
			f.r = 0
		}
		k, err := f.src.Read(f.win[f.w:])
		f.w += k
		if errors.Is(err, io.EOF) && f.w-f.r < n {
			return f.short()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}

func (f *feed) short() error {
	if f.w == f.r {
		return io.EOF
	}
	return errTornRow
}

var errTornRow = fmt.Errorf("a row is cut off: %w", repo.ErrDamaged)

// Read returns the text of the batch.
func (f *feed) Read(p []byte) (int, error) {
	if len(f.kept) == 0 && len(p) == 1 {
		var two [2]byte
		n, err := f.Read(two[:])
		if err != nil {
			return 0, err
		}
		f.kept = append(f.kept, two[:n]...)
	}
	if len(f.kept) > 0 {
		n := copy(p, f.kept)
		f.kept = f.kept[n:]
		return n, nil
	}
	n := 0
	for len(p)-n >= 2 { // an escaped byte, \N and a separator need nothing else
		switch f.state {
		case atValue:
			if f.col == 0 && f.rows > 0 && f.raw >= f.limit {
				return f.end(n)
			}
			null, err := f.length()
			if errors.Is(err, io.EOF) && f.col == 0 {
				f.ended = true
				return f.end(n)
			}
			if err != nil {
				return n, torn(err)
			}
			if null {
				p[n], p[n+1] = '\\', 'N'
				n += 2
			}
		case inValue:
			if err := f.need(1); err != nil {
				return n, torn(err)
			}
			k := f.w - f.r
			if uint64(k) > f.left {
				k = int(f.left)
			}
			wrote, used := escape(p[n:], f.win[f.r:f.r+k])
			n += wrote
			f.took(used)
			if f.left -= uint64(used); f.left == 0 {
				f.state = endValue
			}
		case endValue:
			f.state = atValue
			if f.col++; f.col < f.columns {
				p[n] = '\t'
			} else {
				p[n] = '\n'
				f.col = 0
				f.rows++
			}
			n++
		}
	}
	return n, nil
}

func (f *feed) end(n int) (int, error) {
	if n > 0 {
		return n, nil
	}
	return 0, io.EOF
}

func torn(err error) error {
	if errors.Is(err, io.EOF) {
		return errTornRow
	}
	return err
}

func (f *feed) took(n int) {
	f.r += n
	f.raw += int64(n)
}

// length reads how long the next value is.
func (f *feed) length() (null bool, err error) {
	if err := f.need(1); err != nil {
		return false, err
	}
	n, null, err := lengthSize(f.win[f.r])
	if err != nil {
		return false, err
	}
	if null {
		f.took(1)
		f.state = endValue
		return true, nil
	}
	if err := f.need(n); err != nil {
		return false, err
	}
	f.left = lengthOf(f.win[f.r : f.r+n])
	f.took(n)
	f.state = inValue
	if f.left == 0 {
		f.state = endValue
	}
	return false, nil
}

// lengthSize says how many bytes a length-encoded number takes that begins with b. Source: MySQL's "Basic Data Types".
func lengthSize(b byte) (n int, null bool, err error) {
	switch b {
	case 0xfb:
		return 1, true, nil
	case 0xfc:
		return 3, false, nil
	case 0xfd:
		return 4, false, nil
	case 0xfe:
		return 9, false, nil
	case 0xff:
		return 0, false, fmt.Errorf("a value has no length: %w", repo.ErrDamaged)
	}
	return 1, false, nil
}

func lengthOf(b []byte) uint64 {
	if len(b) == 1 {
		return uint64(b[0])
	}
	var v uint64
	for i := len(b) - 1; i > 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

// escape copies as much of src to dst as has room there, with a backslash before what LOAD DATA would take for something else.
func escape(dst, src []byte) (wrote, used int) {
	for used < len(src) {
		run := src[used:]
		if room := len(dst) - wrote; len(run) > room {
			run = run[:room]
		}
		i := 0
		for i < len(run) && !special[run[i]] {
			i++
		}
		copy(dst[wrote:], run[:i])
		wrote += i
		used += i
		if i == len(run) && (used == len(src) || wrote == len(dst)) {
			return wrote, used
		}
		if len(dst)-wrote < 2 {
			return wrote, used
		}
		dst[wrote], dst[wrote+1] = '\\', src[used]
		wrote += 2
		used++
	}
	return wrote, used
}

// special are the bytes that LOAD DATA gives a meaning: its separators and the escape itself. An escaped tab or line feed
// means itself; so does a backslash. (MySQL manual, "LOAD DATA Statement"; MariaDB documentation, "LOAD DATA INFILE".)
var special = [256]bool{'\t': true, '\n': true, '\\': true}
