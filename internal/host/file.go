package host

import (
	"errors"

	"golang.org/x/sys/unix"
)

// procFile is a file of /proc, /sys or a cgroup that stays open and is read
// again from its start each time: no open, no close, no allocation per tick.
type procFile struct {
	path string
	fd   int // -1 while closed
}

func newProcFile(path string) procFile { return procFile{path: path, fd: -1} }

// maxFile bounds what one file may hold; /proc/stat of a machine with thousands
// of processors stays far below it.
const maxFile = 8 << 20

// errTooBig says that a file holds more than maxFile.
var errTooBig = errors.New("file is larger than 8 MiB")

// read returns the whole file in *buf, which it grows if needed. The
// result is good until *buf is used again.
func (f *procFile) read(buf *[]byte) ([]byte, error) {
	if f.fd < 0 {
		fd, err := openRead(f.path)
		if err != nil {
			return nil, err
		}
		f.fd = fd
	}
	b := *buf
	n := 0
	for {
		if n == len(b) {
			if n >= maxFile {
				return nil, errTooBig
			}
			// A file that grew between two reads may be torn: begin again.
			b = make([]byte, max(16<<10, 2*len(b)))
			*buf, n = b, 0
		}
		// The kernel hands out at most a page of most files at a time.
		m, err := unix.Pread(f.fd, b[n:], int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			f.close()
			return nil, err
		}
		if m == 0 {
			return b[:n], nil
		}
		n += m
	}
}

func (f *procFile) close() {
	if f.fd >= 0 {
		unix.Close(f.fd)
		f.fd = -1
	}
}

// openRead opens a file for reading; a signal does not disturb it.
func openRead(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// cursor walks over text line by line, field by field, without allocating. Every
// method is safe at the end and on malformed text.
type cursor struct {
	b []byte
	i int
}

// line returns the next line without its end, and false after the last one.
func (c *cursor) line() (cursor, bool) {
	if c.i >= len(c.b) {
		return cursor{}, false
	}
	start := c.i
	for c.i < len(c.b) && c.b[c.i] != '\n' {
		c.i++
	}
	l := cursor{b: c.b[start:c.i]}
	c.i++
	return l, true
}

// field returns the next run of bytes that are neither blank nor tab; empty at the end.
func (c *cursor) field() []byte {
	for c.i < len(c.b) && (c.b[c.i] == ' ' || c.b[c.i] == '\t') {
		c.i++
	}
	start := c.i
	for c.i < len(c.b) && c.b[c.i] != ' ' && c.b[c.i] != '\t' {
		c.i++
	}
	return c.b[start:c.i]
}

// uint reads the next field as an unsigned number.
func (c *cursor) uint() (uint64, bool) { return parseUint(c.field()) }

// skip skips n fields.
func (c *cursor) skip(n int) {
	for range n {
		c.field()
	}
}

// parseUint reads a whole field of decimal digits.
func parseUint(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	var v uint64
	for _, d := range b {
		if d < '0' || d > '9' {
			return 0, false
		}
		v = v*10 + uint64(d-'0')
	}
	return v, true
}

// parseDecimal reads digits with an optional fraction, as in /proc/loadavg.
func parseDecimal(b []byte) (float64, bool) {
	v, scale, point, digits := 0.0, 1.0, false, 0
	for _, d := range b {
		switch {
		case d == '.' && !point:
			point = true
		case d >= '0' && d <= '9':
			v = v*10 + float64(d-'0')
			digits++
			if point {
				scale *= 10
			}
		default:
			return 0, false
		}
	}
	return v / scale, digits > 0
}

// hasPrefix reports whether b starts with p, without allocating.
func hasPrefix(b []byte, p string) bool { return len(b) >= len(p) && string(b[:len(p)]) == p }
