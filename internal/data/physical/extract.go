package physical

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/data/repo"
)

// directoriesFile names, in a stream that Risso made itself, the directories that hold no file.
const directoriesFile = "risso_directories"

// extract writes the files of a stream under dir, durable when it returns. done is called with the bytes written so far.
func extract(ctx context.Context, r io.Reader, dir string, done func(bytes int64)) (files int64, err error) {
	x := extractor{dir: dir, s: newStreamReader(r), open: map[string]*os.File{}, done: done, buf: make([]byte, 1<<20)}
	defer func() {
		for _, f := range x.open {
			f.Close()
		}
	}()
	for {
		if err := ctx.Err(); err != nil {
			return x.files, context.Cause(ctx)
		}
		c, err := x.s.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = x.chunk(c)
		}
		if err != nil {
			return x.files, err
		}
	}
	for path := range x.open {
		return x.files, fmt.Errorf("file %q in the stream has no end: %w", path, repo.ErrDamaged)
	}
	if err := x.directories(); err != nil {
		return x.files, err
	}
	return x.files, syncAll(dir)
}

type extractor struct {
	dir   string
	s     *streamReader
	open  map[string]*os.File
	files int64
	bytes int64
	done  func(int64)
	buf   []byte
}

func (x *extractor) chunk(c chunk) error {
	f := x.open[c.path]
	if f == nil {
		if !filepath.IsLocal(c.path) {
			return fmt.Errorf("the stream holds a file %q outside of its directory: %w", c.path, repo.ErrDamaged)
		}
		path := filepath.Join(x.dir, c.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return err
		}
		var err error
		// No O_TRUNC: newer tools go back to a file and write a part of it again.
		if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640); err != nil {
			return err
		}
		x.open[c.path] = f
		x.files++
	}
	switch c.kind {
	case chunkEnd:
		delete(x.open, c.path)
		return f.Close()
	case chunkSparse:
		return x.sparse(f, c)
	case chunkPayload:
		return x.copy(f, c.offset, c.length)
	}
	return nil // a chunk that may be ignored
}

// copy writes the next bytes of the payload to a place of a file.
func (x *extractor) copy(f *os.File, at, length int64) error {
	for length > 0 {
		n, err := io.ReadFull(x.s, x.buf[:min(int64(len(x.buf)), length)])
		if err != nil {
			return err
		}
		if _, err := f.WriteAt(x.buf[:n], at); err != nil {
			return err
		}
		at, length = at+int64(n), length-int64(n)
		x.bytes += int64(n)
	}
	x.done(x.bytes)
	return nil
}

// sparse writes a payload around its holes.
func (x *extractor) sparse(f *os.File, c chunk) error {
	at := c.offset
	for _, h := range c.holes {
		at += int64(h.skip)
		if err := x.copy(f, at, int64(h.length)); err != nil {
			return err
		}
		at += int64(h.length)
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if st.Size() < at { // it ends with a hole
		return f.Truncate(at)
	}
	return nil
}

// directories makes those that hold no file.
func (x *extractor) directories() error {
	path := filepath.Join(x.dir, directoriesFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		if name == "" {
			continue
		}
		if !filepath.IsLocal(name) {
			return fmt.Errorf("the backup holds a directory %q outside its own: %w", name, repo.ErrDamaged)
		}
		if err := os.MkdirAll(filepath.Join(x.dir, name), 0o750); err != nil {
			return err
		}
	}
	x.files--
	return os.Remove(path)
}

// syncAll makes everything below dir durable (syncfs(2)).
func syncAll(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
