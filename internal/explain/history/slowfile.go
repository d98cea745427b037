package history

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/pattern"
)

// logPlace is a place in a log: the file, known again after it was renamed or copied, and the bytes of it that are done with.
type logPlace struct {
	Path    string            `json:"path"` // the name that the server writes to
	found   string            // where the file is, if it is not there
	Device  uint64            `json:"device"`
	Inode   uint64            `json:"inode"`
	Head    string            `json:"head"` // SHA-256 of its first HeadLen bytes, in hex
	HeadLen int64             `json:"head_len"`
	Offset  int64             `json:"offset"`
	Context digest.LogContext `json:"context"`
	// After leaves out events from before this time, in microseconds; 0: none.
	After int64 `json:"after,omitempty"`
}

const (
	headBytes = 1024      // of a log identify it
	lookBack  = 256 << 10 // how much of a log is read to know its current database
	mostFiles = 5000      // in a folder that are looked at
)

// logFile is a log that is read.
type logFile struct {
	logPlace
	f     *os.File
	from  int64 // where the scanner began
	at    int64 // the position of reading
	scan  *digest.Scanner
	final bool // nothing more will come
	moved bool // another file has its name
}

// openPlace opens a log at a place.
func openPlace(p logPlace) (*logFile, error) {
	f, err := os.Open(cmp.Or(p.found, p.Path))
	if err != nil {
		return nil, err
	}
	l := &logFile{logPlace: p, f: f, from: p.Offset, at: p.Offset}
	if err := l.begin(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

func (l *logFile) begin() error {
	st, err := l.f.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", l.Path)
	}
	l.Device, l.Inode = inodeOf(st)
	if err := l.remember(st.Size()); err != nil {
		return err
	}
	if _, err := l.f.Seek(l.Offset, io.SeekStart); err != nil {
		return err
	}
	if l.scan, err = digest.NewScanner(l, nil); err != nil {
		return err
	}
	l.scan.SetContext(l.Context)
	return nil
}

// openEnd opens a log at its end: what it holds already is skipped, except what later events leave out.
func openEnd(path string) (*logFile, error) {
	l, err := openPlace(logPlace{Path: path})
	if err != nil {
		return nil, err
	}
	st, err := l.f.Stat()
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	tail := make([]byte, min(st.Size(), lookBack))
	n, err := l.f.ReadAt(tail, st.Size()-int64(len(tail)))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, l.close())
	}
	tail = tail[:n]
	begin := 0
	if int64(len(tail)) < st.Size() {
		begin = max(digest.FirstEvent(tail), 0)
	}
	// Who reads its end as if it were growing takes whole events only; one that is being written is read from its beginning.
	past, err := digest.NewScanner(&piece{tail[begin:]}, nil)
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	for idle := false; !idle; {
		if idle, err = past.Next(func(*digest.Event) {}); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	l.Offset = st.Size() - int64(len(tail)-begin) + past.Offset()
	l.Context = past.Context()
	l.from, l.at = l.Offset, l.Offset
	if err := l.begin(); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// piece is a part of a log that may grow.
type piece struct{ b []byte }

func (p *piece) Read(b []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, digest.ErrIdle
	}
	n := copy(b, p.b)
	p.b = p.b[n:]
	return n, nil
}

// Read implements io.Reader for the scanner.
func (l *logFile) Read(b []byte) (int, error) {
	n, err := l.f.Read(b)
	l.at += int64(n)
	switch {
	case n > 0:
		return n, nil
	case err != nil && !errors.Is(err, io.EOF):
		return 0, err
	case l.final:
		return 0, io.EOF
	}
	return 0, digest.ErrIdle
}

// next reads a part of the log; the place moves after it.
func (l *logFile) next(each func(*digest.Event)) (idle bool, err error) {
	idle, err = l.scan.Next(each)
	l.Offset, l.Context = l.from+l.scan.Offset(), l.scan.Context()
	return idle, err
}

// behind is how many bytes are not read yet.
func (l *logFile) behind() int64 {
	st, err := l.f.Stat()
	if err != nil {
		return 0
	}
	return max(st.Size()-l.Offset, 0)
}

func (l *logFile) close() error { return l.f.Close() }

// remember notes the head, as far as the file is long enough.
func (l *logFile) remember(size int64) error {
	if l.HeadLen >= headBytes || size <= l.HeadLen {
		return nil
	}
	sum, n, err := headOf(l.f, min(size, headBytes))
	if err == nil {
		l.Head, l.HeadLen = sum, n
	}
	return err
}

// headOf is the sum of the first n bytes of a file, or of all it has.
func headOf(f io.ReaderAt, n int64) (string, int64, error) {
	b := make([]byte, n)
	got, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", 0, err
	}
	sum := sha256.Sum256(b[:got])
	return hex.EncodeToString(sum[:]), int64(got), nil
}

// same reports whether a file begins as the log of the place does.
func (p logPlace) same(f io.ReaderAt, size int64) bool {
	if size < p.HeadLen || size < p.Offset {
		return false
	}
	sum, n, err := headOf(f, p.HeadLen)
	return err == nil && n == p.HeadLen && (sum == p.Head || n == 0)
}

func inodeOf(st fs.FileInfo) (device, inode uint64) {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Dev), s.Ino
	}
	return 0, 0
}

// turn is what became of a log's name.
type turn int

const (
	turnNone    turn = iota
	turnGone         // the name is no file
	turnRotated      // it is another file, and this one was read to its end
	turnCut          // the file was cut, or rewritten
)

// look sees what became of the file after its end was read.
func (l *logFile) look() (turn, error) {
	mine, err := l.f.Stat()
	if err != nil {
		return turnNone, err
	}
	if mine.Size() < l.at || !l.same(l.f, mine.Size()) {
		return turnCut, nil
	}
	if err := l.remember(mine.Size()); err != nil {
		return turnNone, err
	}
	named, err := os.Stat(l.Path)
	switch {
	case err != nil:
		return turnGone, nil
	case os.SameFile(mine, named):
		l.moved = false
		return turnNone, nil
	case !l.moved: // the server may have written to the old one until now
		l.moved = true
		return turnNone, nil
	}
	l.final = true
	return turnRotated, nil
}

// follow finds what is to be read from a place on: the log itself or what it was renamed or copied to, what was written and
// rotated after it, and at last the file that has the name now. lost says that the first no longer exists.
func (p logPlace) follow() (list []logPlace, lost bool) {
	now, err := os.Open(p.Path)
	current := uint64(0)
	if err == nil {
		defer now.Close() // was only read
		st, err := now.Stat()
		if err == nil {
			_, current = inodeOf(st)
			if current == p.Inode && p.same(now, st.Size()) {
				return []logPlace{p}, false
			}
		}
	}
	old, later, found := p.rotated(now)
	if found {
		list = append(list, old)
	}
	list = append(list, later...)
	if err == nil {
		list = append(list, logPlace{Path: p.Path, After: p.After})
	}
	return list, !found && p.HeadLen > 0
}

// rotated looks in the log's folder for what it was renamed or copied to, and for logs that came after that one.
func (p logPlace) rotated(current *os.File) (old logPlace, later []logPlace, found bool) {
	entries, err := os.ReadDir(filepath.Dir(p.Path))
	if err != nil {
		return old, nil, false
	}
	type candidate struct {
		logPlace
		time int64
	}
	var list []candidate
	var oldTime int64
	for _, e := range entries[:min(len(entries), mostFiles)] {
		path := filepath.Join(filepath.Dir(p.Path), e.Name())
		if path == p.Path || !e.Type().IsRegular() {
			continue
		}
		st, err := e.Info()
		if err != nil {
			continue
		}
		device, inode := inodeOf(st)
		named := strings.HasPrefix(e.Name(), strings.TrimSuffix(filepath.Base(p.Path), ".log"))
		if !named && (device != p.Device || inode != p.Inode) {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		switch {
		case p.HeadLen > 0 && p.same(f, st.Size()) && (!found || inode == p.Inode):
			old, found, oldTime = p, true, st.ModTime().UnixNano()
			old.found = path
		case named && isSlowLog(f) && !sameHead(f, current):
			list = append(list, candidate{logPlace{Path: p.Path, found: path}, st.ModTime().UnixNano()})
		}
		f.Close() // was only read
	}
	if !found {
		return old, nil, false
	}
	slices.SortFunc(list, func(a, b candidate) int { return cmp.Compare(a.time, b.time) })
	for _, c := range list {
		if c.time > oldTime {
			later = append(later, c.logPlace)
		}
	}
	return old, later, true
}

func isSlowLog(f io.ReaderAt) bool {
	b := make([]byte, 4096)
	n, err := f.ReadAt(b, 0)
	return (err == nil || errors.Is(err, io.EOF)) && digest.FormatOf(b[:n]) == digest.FormatSlow
}

// sameHead reports whether two files begin alike: one is a copy of the other.
func sameHead(a, b *os.File) bool {
	if b == nil {
		return false
	}
	x, n, err := headOf(a, headBytes)
	y, m, err2 := headOf(b, headBytes)
	return err == nil && err2 == nil && n == m && x == y
}

var bannerSocket = pattern.Lazy(`(?m)^T(?:cp|CP) (?:port|Port): \d+ +(?:Unix|Named) (?:socket|Pipe): (.*?)\r?$`)

// isLogOf reports whether the log at path is that of the server with this socket, as far as its banners tell: a server writes one
// when it opens the log. A log without a banner was cut.
func isLogOf(path, socket string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // was only read
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	last := ""
	for _, from := range []int64{0, max(st.Size()-lookBack, 0)} { // the newest banner counts
		b := make([]byte, min(st.Size(), lookBack))
		n, err := f.ReadAt(b, from)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if all := bannerSocket().FindAllSubmatch(b[:n], -1); len(all) > 0 {
			last = string(all[len(all)-1][1])
		}
	}
	if last != "" && socket != "" && last != socket {
		return fmt.Errorf("%s is the log of another server: its socket is %s, this one's is %s", path, last, socket)
	}
	return nil
}
