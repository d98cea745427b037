package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// folder keeps each blob as a file.
type folder struct {
	dir string

	mu   sync.Mutex
	made map[string]bool // folders that are there, and safe against a loss of power
}

func openFolder(dir string) (Store, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("place %s: %w", dir, err)
	}
	st, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("place %s: %w", dir, err)
	case !st.IsDir():
		return nil, &PlaceError{dir, "a file, not a folder"}
	}
	return &folder{dir: abs, made: map[string]bool{}}, nil
}

func (f *folder) Place() string { return f.dir }
func (f *folder) Close() error  { return nil }

// path is where a blob is.
func (f *folder) path(name string) (string, error) {
	if err := ValidName(name); err != nil {
		return "", err
	}
	return filepath.Join(f.dir, filepath.FromSlash(name)), nil
}

// Put writes a file without a name into the blob's folder, syncs it, renames it and syncs the folder.
func (f *folder) Put(ctx context.Context, name string, r io.Reader, o PutOptions) (Info, error) {
	path, err := f.path(name)
	if err != nil {
		return Info{}, err
	}
	info, err := f.put(ctx, path, r, o.Fresh)
	info.Name = name
	return info, fail("put", f.dir, name, err)
}

func (f *folder) put(ctx context.Context, path string, r io.Reader, fresh bool) (Info, error) {
	dir := filepath.Dir(path)
	if err := f.makeDir(dir); err != nil {
		return Info{}, err
	}
	tmp, err := os.CreateTemp(dir, tempPrefix+"*")
	if errors.Is(err, fs.ErrNotExist) { // somebody took the empty folder away
		f.forget(dir)
		if err = f.makeDir(dir); err == nil {
			tmp, err = os.CreateTemp(dir, tempPrefix+"*")
		}
	}
	if err != nil {
		return Info{}, err
	}
	n, err := copyTo(ctx, tmp, r)
	if err == nil {
		err = tmp.Sync()
	}
	var st fs.FileInfo
	if err == nil {
		st, err = tmp.Stat()
	}
	if err2 := tmp.Close(); err == nil {
		err = err2
	}
	if err == nil && st.Size() != n {
		err = errDamagedUpload
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = publish(tmp.Name(), path, fresh)
	}
	if err != nil {
		return Info{}, errors.Join(err, ignoreNotExist(os.Remove(tmp.Name())))
	}
	return Info{Size: n, Modified: st.ModTime()}, syncFolder(dir)
}

// publish gives a file its name. A link fails if the name exists, atomically; a file system without links is asked first.
func publish(tmp, path string, fresh bool) error {
	if !fresh {
		return os.Rename(tmp, path)
	}
	err := os.Link(tmp, path)
	if err == nil {
		return os.Remove(tmp)
	}
	if _, err2 := os.Lstat(path); err2 == nil {
		return ErrExists
	}
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) { // FAT says EPERM
		return os.Rename(tmp, path)
	}
	return err
}

// copyTo writes what r returns, in large pieces: each costs a call of the system, and Go's scheduler another thread.
func copyTo(ctx context.Context, f *os.File, r io.Reader) (int64, error) {
	if all, ok := r.(io.WriterTo); ok {
		return all.WriteTo(writer{ctx, f})
	}
	return io.CopyBuffer(writer{ctx, f}, reader{ctx, r}, make([]byte, 256<<10))
}

// makeDir makes a folder and those above it, each safe against a loss of power before anything is put into it.
func (f *folder) makeDir(dir string) error {
	f.mu.Lock()
	known := f.made[dir]
	f.mu.Unlock()
	if known {
		return nil
	}
	if _, err := os.Stat(dir); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return err
		}
		if err := f.makeDir(parent); err != nil {
			return err
		}
		// The content of a backup is for its owner alone.
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := syncFolder(parent); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made[dir] = true
	return nil
}

func (f *folder) forget(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for d := dir; f.made[d]; d = filepath.Dir(d) {
		delete(f.made, d)
	}
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// notFound returns the store's own error for a file that is not there. A folder is no blob.
func notFound(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotFound
	}
	return err
}

func (f *folder) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	path, err := f.path(name)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fail("get", f.dir, name, notFound(err))
	}
	st, err := file.Stat()
	if err == nil && st.IsDir() {
		err = ErrNotFound
	}
	if err == nil {
		_, err = file.Seek(offset, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, fail("get", f.dir, name, err)
	}
	var r io.Reader = file
	if length >= 0 {
		r = io.LimitReader(file, length)
	}
	return struct {
		io.Reader
		io.Closer
	}{reader{ctx, r}, file}, nil
}

func (f *folder) Stat(_ context.Context, name string) (Info, error) {
	path, err := f.path(name)
	if err != nil {
		return Info{}, err
	}
	st, err := os.Stat(path)
	if err == nil && st.IsDir() {
		err = ErrNotFound
	}
	if err != nil {
		return Info{}, fail("stat", f.dir, name, notFound(err))
	}
	return Info{Name: name, Size: st.Size(), Modified: st.ModTime()}, nil
}

func (f *folder) Delete(_ context.Context, name string) error {
	path, err := f.path(name)
	if err != nil {
		return err
	}
	if err := ignoreNotExist(os.Remove(path)); err != nil {
		return fail("delete", f.dir, name, err)
	}
	// A folder without blobs is taken away as well, so that a repository that shrank does not keep 100,000 of them.
	for dir := filepath.Dir(path); dir != f.dir && strings.HasPrefix(dir, f.dir); dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil {
			break
		}
		f.forget(dir)
	}
	return nil
}

func (f *folder) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		err := walk(ctx, prefix, f.readDir, func(e entry) bool {
			return e.temp || yield(Info{Name: e.name, Size: e.size, Modified: e.modified}, nil)
		})
		if err != nil {
			yield(Info{}, fail("list", f.dir, prefix, err))
		}
	}
}

func (f *folder) Leftovers(ctx context.Context, before time.Time) iter.Seq2[Leftover, error] {
	return func(yield func(Leftover, error) bool) {
		err := walk(ctx, "", f.readDir, func(e entry) bool {
			return !e.temp || !e.modified.Before(before) || yield(Leftover{Name: e.name, Began: e.modified, Size: e.size}, nil)
		})
		if err != nil {
			yield(Leftover{}, fail("list", f.dir, "", err))
		}
	}
}

func (f *folder) Discard(_ context.Context, l Leftover) error {
	path := filepath.Join(f.dir, filepath.FromSlash(l.Name))
	if !strings.HasPrefix(filepath.Base(path), tempPrefix) || !filepath.IsLocal(filepath.FromSlash(l.Name)) {
		return fmt.Errorf("discard %s: not a temporary file", l.Name)
	}
	return fail("discard", f.dir, l.Name, ignoreNotExist(os.Remove(path)))
}

// readDir returns what is in a folder of the store.
func (f *folder) readDir(_ context.Context, dir string) ([]entry, error) {
	list, err := os.ReadDir(filepath.Join(f.dir, filepath.FromSlash(dir)))
	if err != nil {
		return nil, ignoreNotExist(err)
	}
	entries := make([]entry, 0, len(list))
	for _, e := range list {
		if e.IsDir() {
			entries = append(entries, entry{name: e.Name(), dir: true})
			continue
		}
		st, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed in the meantime
		}
		if err != nil {
			return nil, err
		}
		if st.Mode().IsRegular() {
			entries = append(entries, entry{name: e.Name(), size: st.Size(), modified: st.ModTime()})
		}
	}
	return entries, nil
}
