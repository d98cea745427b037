package blob

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/pkg/sftp"
)

// sftpStore keeps each blob as a file on another host. It has one connection, which is reopened when it breaks.
type sftpStore struct {
	c     sftpConfig
	idle  time.Duration
	retry retry

	mu     sync.Mutex
	conn   *sftpConn
	closed bool
	made   map[string]bool // folders that are there
}

// sftpBlock is how much of a blob is sent or requested at a time; it is in memory until the host has confirmed it.
const sftpBlock = 2 << 20

func openSFTP(ctx context.Context, c sftpConfig, o Options) (Store, error) {
	s := &sftpStore{c: c, idle: o.Idle, retry: o.retry(), made: map[string]bool{}}
	patient := s.retry
	s.retry.patience = min(patient.patience, openTime)
	err := s.do(ctx, "open", func(c *sftp.Client) error {
		st, err := c.Stat(s.c.dir)
		if err == nil && !st.IsDir() {
			return &PlaceError{s.c.place, "a file, not a folder"}
		}
		return ignoreNotExist(err)
	})
	s.retry = patient
	if err != nil {
		s.Close()
		return nil, fail("open", c.place, "", err)
	}
	return s, nil
}

func (s *sftpStore) Place() string { return s.c.place }

func (s *sftpStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.conn != nil {
		s.conn.close()
		s.conn = nil
	}
	return nil
}

// current is the connection, made if there is none.
func (s *sftpStore) current(ctx context.Context) (*sftpConn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the store is closed")
	}
	if s.conn == nil {
		conn, err := dialSFTP(ctx, s.c, s.idle)
		if err != nil {
			return nil, err
		}
		s.conn = conn
	}
	return s.conn, nil
}

// drop forgets a connection that broke.
func (s *sftpStore) drop(c *sftpConn) {
	c.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == c {
		s.conn = nil
	}
}

// do asks the host. When ctx ends in the meantime the connection is closed, because the protocol has no other way to cancel a request;
// its other users open a new one.
func (s *sftpStore) do(ctx context.Context, op string, ask func(*sftp.Client) error) error {
	return s.retry.do(ctx, op, sftpPasses, func(ctx context.Context) error {
		return s.once(ctx, ask)
	})
}

func (s *sftpStore) once(ctx context.Context, ask func(*sftp.Client) error) error {
	conn, err := s.current(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, conn.close)
	err = ask(conn.client)
	stop()
	if err != nil && (sftpPasses(err) || ctx.Err() != nil) {
		s.drop(conn)
	}
	return sftpExplain(err)
}

// sftpPasses reports whether an error may be gone at the next try: that is so for broken connections.
func sftpPasses(err error) bool {
	return errors.Is(err, sftp.ErrSSHFxConnectionLost) || errors.Is(err, sftp.ErrSSHFxNoConnection) || networkPasses(err)
}

// sftpExplain says more about the one error that SFTP has for all that is not a missing file or a missing right.
func sftpExplain(err error) error {
	var status *sftp.StatusError
	if errors.As(err, &status) && status.FxCode() == sftp.ErrSSHFxFailure {
		return fmt.Errorf("%w: the host gives no reason; is its disk full?", err)
	}
	return err
}

func (s *sftpStore) path(name string) (string, error) {
	if err := ValidName(name); err != nil {
		return "", err
	}
	return path.Join(s.c.dir, name), nil
}

func (s *sftpStore) Put(ctx context.Context, name string, r io.Reader, o PutOptions) (Info, error) {
	p, err := s.path(name)
	if err != nil {
		return Info{}, err
	}
	var random [8]byte
	rand.Read(random[:])
	w := &sftpWriter{s: s, ctx: ctx, op: "put " + name, tmp: path.Join(path.Dir(p), tempPrefix+hex.EncodeToString(random[:]))}
	err = w.copy(r)
	if err == nil {
		err = w.publish(p, o.Fresh)
	}
	if err != nil {
		w.discard()
		return Info{}, fail("put", s.c.place, name, err)
	}
	return Info{Name: name, Size: w.size, Modified: time.Now()}, nil
}

// sftpWriter is a temporary file that outlives connections: what the host has confirmed stays, the rest is sent again.
type sftpWriter struct {
	s    *sftpStore
	ctx  context.Context
	op   string
	tmp  string
	size int64

	file *sftp.File // of the connection below; nil: to be opened
	conn *sftp.Client
	made bool
}

// open returns the file on this connection.
func (w *sftpWriter) open(c *sftp.Client) (*sftp.File, error) {
	if w.file != nil && w.conn == c {
		return w.file, nil
	}
	if err := w.s.makeDir(c, path.Dir(w.tmp)); err != nil {
		return nil, err
	}
	f, err := c.OpenFile(w.tmp, os.O_WRONLY|os.O_CREATE)
	if errors.Is(err, fs.ErrNotExist) { // somebody took the empty folder away
		w.s.forget(path.Dir(w.tmp))
		if err = w.s.makeDir(c, path.Dir(w.tmp)); err == nil {
			f, err = c.OpenFile(w.tmp, os.O_WRONLY|os.O_CREATE)
		}
	}
	if err != nil {
		return nil, err
	}
	if !w.made {
		// The content of a backup is for its owner alone.
		if err := f.Chmod(0o600); err != nil {
			f.Close()
			return nil, err
		}
	}
	w.file, w.conn, w.made = f, c, true
	return f, nil
}

// copy sends all of r.
func (w *sftpWriter) copy(r io.Reader) error {
	var buf []byte
	src := reader{w.ctx, r}
	for {
		b, err := readFull(src, buf[:0], sftpBlock)
		buf = b
		if err != nil && err != io.EOF {
			return err
		}
		end := err == io.EOF
		err = w.s.do(w.ctx, w.op, func(c *sftp.Client) error {
			f, err := w.open(c)
			if err == nil && len(b) > 0 {
				_, err = f.WriteAt(b, w.size)
			}
			return err
		})
		if err != nil {
			return err
		}
		w.size += int64(len(b))
		if end {
			return nil
		}
	}
}

// publish makes the file safe against a loss of power, if the host can, and gives it its name atomically.
func (w *sftpWriter) publish(to string, fresh bool) error {
	renamed := false
	return w.s.do(w.ctx, w.op, func(c *sftp.Client) error {
		if !renamed {
			f, err := w.open(c)
			if err != nil {
				return err
			}
			if _, ok := c.HasExtension("fsync@openssh.com"); ok {
				if err := f.Sync(); err != nil {
					return err
				}
			}
			st, err := f.Stat()
			if err == nil && st.Size() != w.size {
				err = fmt.Errorf("%w: %d bytes of %d", errDamagedUpload, st.Size(), w.size)
			}
			if err2 := f.Close(); err == nil {
				err = err2
			}
			w.file = nil
			if err != nil {
				return err
			}
			renamed = true // from here on it may have happened though no answer came
		}
		if fresh {
			return name(c, w.tmp, to)
		}
		err := rename(c, w.tmp, to)
		if errors.Is(err, fs.ErrNotExist) {
			if st, err2 := c.Stat(to); err2 == nil && st.Size() == w.size {
				return nil
			}
		}
		return err
	})
}

// rename replaces what is there in one step where the host knows OpenSSH's extension. Plain SFTP (version 3) does not
// replace: there the old file goes first, and for a moment neither is seen.
func rename(c *sftp.Client, from, to string) error {
	if _, ok := c.HasExtension("posix-rename@openssh.com"); ok {
		return c.PosixRename(from, to)
	}
	err := c.Rename(from, to)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err2 := c.Stat(to); err2 != nil {
		return err
	}
	if err := c.Remove(to); err != nil {
		return err
	}
	return c.Rename(from, to)
}

// name gives a file a name that does not exist yet, atomically: by OpenSSH's extension for links, else by plain SFTP's rename,
// which fails if it exists.
func name(c *sftp.Client, from, to string) error {
	var err error
	if _, ok := c.HasExtension("hardlink@openssh.com"); ok {
		if err = c.Link(from, to); err == nil {
			return c.Remove(from)
		}
	} else if _, err = c.Stat(to); errors.Is(err, fs.ErrNotExist) { // some hosts replace nevertheless
		if err = c.Rename(from, to); err == nil {
			return nil
		}
	}
	if _, err2 := c.Stat(to); err2 == nil {
		return ErrExists
	}
	return err
}

// discard takes the temporary file away, also when ctx has ended.
func (w *sftpWriter) discard() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), 5*time.Second)
	defer cancel()
	// One that stays is a leftover, which prune finds.
	_ = w.s.once(ctx, func(c *sftp.Client) error {
		if w.file != nil && w.conn == c {
			w.file.Close()
		}
		return c.Remove(w.tmp)
	})
}

// makeDir makes a folder and those above it.
func (s *sftpStore) makeDir(c *sftp.Client, dir string) error {
	s.mu.Lock()
	known := s.made[dir]
	s.mu.Unlock()
	if known || dir == "." || dir == "/" {
		return nil
	}
	if st, err := c.Stat(dir); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := s.makeDir(c, path.Dir(dir)); err != nil {
			return err
		}
		if err := c.Mkdir(dir); err == nil {
			err = c.Chmod(dir, 0o700)
			if err != nil {
				return err
			}
		} else if st, err2 := c.Stat(dir); err2 != nil || !st.IsDir() { // another worker may have made it
			return err
		}
	} else if !st.IsDir() {
		return fmt.Errorf("%s is a file, not a folder", dir)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made[dir] = true
	return nil
}

func (s *sftpStore) forget(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d := dir; s.made[d]; d = path.Dir(d) {
		delete(s.made, d)
	}
}

func (s *sftpStore) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	p, err := s.path(name)
	if err != nil {
		return nil, err
	}
	if offset < 0 {
		return nil, fail("get", s.c.place, name, errors.New("negative offset"))
	}
	end := int64(-1)
	if length >= 0 {
		end = offset + length
	}
	open := func(ctx context.Context, from int64) (io.ReadCloser, int64, error) {
		var r *sftpReader
		err := s.once(ctx, func(c *sftp.Client) error {
			f, err := c.Open(p)
			if err != nil {
				return notFound(err)
			}
			st, err := f.Stat()
			if err == nil && st.IsDir() {
				err = ErrNotFound
			}
			if err != nil {
				f.Close()
				return err
			}
			if end < 0 || end > st.Size() {
				end = st.Size()
			}
			r = &sftpReader{s: s, ctx: ctx, file: f, client: c, at: from, end: end}
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
		return r, max(0, end-from), nil
	}
	r, err := newResuming(ctx, &resuming{retry: s.retry, op: "get " + name, passes: sftpPasses, open: open}, offset)
	if err != nil {
		return nil, fail("get", s.c.place, name, err)
	}
	return r, nil
}

// sftpReader reads a file in blocks, for each of which several requests are sent at the same time.
type sftpReader struct {
	s       *sftpStore
	ctx     context.Context
	file    *sftp.File
	client  *sftp.Client
	at, end int64
	buf     []byte
	have    []byte // of buf, not given yet
}

func (r *sftpReader) Read(p []byte) (int, error) {
	if len(r.have) == 0 {
		want := min(sftpBlock, r.end-r.at)
		if want <= 0 {
			return 0, io.EOF
		}
		if int64(cap(r.buf)) < want {
			r.buf = make([]byte, want)
		}
		n := 0
		err := r.s.once(r.ctx, func(c *sftp.Client) (err error) {
			if c != r.client {
				return io.ErrUnexpectedEOF // the connection it was opened on is gone
			}
			n, err = r.file.ReadAt(r.buf[:want], r.at)
			if err == io.EOF && n > 0 {
				err = nil
			}
			return err
		})
		if n == 0 {
			return 0, err
		}
		r.at += int64(n)
		r.have = r.buf[:n]
	}
	n := copy(p, r.have)
	r.have = r.have[n:]
	return n, nil
}

func (r *sftpReader) Close() error {
	r.s.mu.Lock()
	alive := r.s.conn != nil && r.s.conn.client == r.client
	r.s.mu.Unlock()
	if !alive {
		return nil
	}
	return r.file.Close()
}

func (s *sftpStore) Stat(ctx context.Context, name string) (Info, error) {
	p, err := s.path(name)
	if err != nil {
		return Info{}, err
	}
	var st fs.FileInfo
	err = s.do(ctx, "stat "+name, func(c *sftp.Client) (err error) {
		st, err = c.Stat(p)
		if err == nil && st.IsDir() {
			err = ErrNotFound
		}
		return notFound(err)
	})
	if err != nil {
		return Info{}, fail("stat", s.c.place, name, err)
	}
	return Info{Name: name, Size: st.Size(), Modified: st.ModTime()}, nil
}

func (s *sftpStore) Delete(ctx context.Context, name string) error {
	p, err := s.path(name)
	if err != nil {
		return err
	}
	err = s.do(ctx, "delete "+name, func(c *sftp.Client) error {
		if err := ignoreNotExist(c.Remove(p)); err != nil {
			return err
		}
		for dir := path.Dir(p); dir != s.c.dir && strings.HasPrefix(dir, s.c.dir); dir = path.Dir(dir) {
			if err := c.RemoveDirectory(dir); err != nil {
				if sftpPasses(err) {
					return err
				}
				break // not empty
			}
			s.forget(dir)
		}
		return nil
	})
	return fail("delete", s.c.place, name, err)
}

func (s *sftpStore) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		err := walk(ctx, prefix, s.readDir, func(e entry) bool {
			return e.temp || yield(Info{Name: e.name, Size: e.size, Modified: e.modified}, nil)
		})
		if err != nil {
			yield(Info{}, fail("list", s.c.place, prefix, err))
		}
	}
}

func (s *sftpStore) Leftovers(ctx context.Context, before time.Time) iter.Seq2[Leftover, error] {
	return func(yield func(Leftover, error) bool) {
		err := walk(ctx, "", s.readDir, func(e entry) bool {
			return !e.temp || !e.modified.Before(before) || yield(Leftover{Name: e.name, Began: e.modified, Size: e.size}, nil)
		})
		if err != nil {
			yield(Leftover{}, fail("list", s.c.place, "", err))
		}
	}
}

func (s *sftpStore) Discard(ctx context.Context, l Leftover) error {
	if !strings.HasPrefix(path.Base(l.Name), tempPrefix) || strings.HasPrefix(path.Clean(l.Name), "..") {
		return fmt.Errorf("discard %s: not a temporary file", l.Name)
	}
	return fail("discard", s.c.place, l.Name, s.do(ctx, "discard "+l.Name, func(c *sftp.Client) error {
		return ignoreNotExist(c.Remove(path.Join(s.c.dir, l.Name)))
	}))
}

// readDir returns what is in a folder of the store.
func (s *sftpStore) readDir(ctx context.Context, dir string) ([]entry, error) {
	var list []fs.FileInfo
	err := s.do(ctx, "list "+dir, func(c *sftp.Client) (err error) {
		list, err = c.ReadDirContext(ctx, path.Join(s.c.dir, dir))
		return ignoreNotExist(err)
	})
	if err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(list))
	for _, st := range list {
		if st.IsDir() || st.Mode().IsRegular() {
			entries = append(entries, entry{name: st.Name(), dir: st.IsDir(), size: st.Size(), modified: st.ModTime()})
		}
	}
	return entries, nil
}
