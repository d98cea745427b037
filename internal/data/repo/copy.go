package repo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// CopyOptions say what is copied to a second place.
type CopyOptions struct {
	Backups []string // IDs; empty: all that are whole
	Threads int      // objects on the way at once; 0: two for each processor, at most 16
	DryRun  bool     // say what would be copied
	// Progress is told now and then how many bytes are done, of how many. It may be called from several goroutines.
	Progress func(done, total int64)
}

// Copied is what a copy did, or would do.
type Copied struct {
	Backups []string `json:"backups"` // that were copied
	There   []string `json:"there"`   // that were there already
	Objects int64    `json:"objects"` // that were copied
	Bytes   int64    `json:"bytes"`
}

// ErrOther says that a place holds another repository.
var ErrOther = errors.New("the place holds another repository, not a copy of this one")

// CopyTo copies backups to another place, the oldest first, and makes the repository there when it is the first time: the same
// one, with the same ID and the same recipients. Only what is missing there is copied, as it is, so no identity is needed; the
// seal of each object is checked on the way. A copy that is cut goes on when it is started again; a backup is seen at the
// other place when it is whole there.
func (r *Repo) CopyTo(ctx context.Context, to Store, o CopyOptions) (*Copied, error) {
	if o.Threads <= 0 {
		o.Threads = min(16, 2*runtime.GOMAXPROCS(0))
	}
	res := &Copied{Backups: []string{}, There: []string{}}
	t, err := r.target(ctx, to, o.DryRun)
	if err != nil {
		return nil, err
	}
	entries, err := r.Catalogue(ctx)
	if err != nil {
		return nil, err
	}
	var list []Entry
	for _, e := range entries {
		if !e.Whole || len(o.Backups) > 0 && !slices.Contains(o.Backups, e.ID) {
			continue
		}
		if e.Err != nil {
			return nil, e.Err
		}
		_, err := to.Size(ctx, manifestKey(e.ID))
		switch {
		case err == nil:
			res.There = append(res.There, e.ID)
		case errors.Is(err, fs.ErrNotExist):
			list = append(list, e)
		default:
			return nil, err
		}
	}
	for _, id := range o.Backups {
		if !slices.ContainsFunc(entries, func(e Entry) bool { return e.ID == id && e.Whole }) {
			return nil, fmt.Errorf("%w: %s", ErrNoBackup, id)
		}
	}
	c := &copier{from: r, to: t, o: o, res: res, have: keySet{}, id: NewID(time.Now())}
	end, err := c.begin(ctx, len(list) > 0)
	if err != nil {
		return nil, err
	}
	defer end()
	planned := keySet{}
	for _, e := range list {
		if err := c.plan(ctx, e.ID, planned); err != nil {
			return nil, err
		}
	}
	for _, e := range list {
		if err := c.backup(ctx, e.ID); err != nil {
			return nil, fmt.Errorf("copy backup %s: %w", e.ID, err)
		}
		res.Backups = append(res.Backups, e.ID)
	}
	if !o.DryRun {
		err = c.proofs(ctx)
	}
	return res, err
}

// target opens the repository at the other place, or makes it.
func (r *Repo) target(ctx context.Context, to Store, dry bool) (*Repo, error) {
	t, err := Open(ctx, to)
	if err == nil && t.ID != r.ID {
		return nil, ErrOther
	}
	if !errors.Is(err, ErrNoRepository) {
		return t, err
	}
	t = &Repo{ID: r.ID, store: to, cipher: r.cipher}
	if dry {
		return t, nil
	}
	keys := []string{configKey}
	if r.Encrypted() {
		keys = []string{namesKey, configKey}
	}
	for _, key := range keys {
		rc, err := r.store.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(io.LimitReader(rc, 1<<20))
		rc.Close()
		if err == nil {
			err = to.Put(ctx, key, bytes.NewReader(b))
		}
		if err != nil {
			return nil, fmt.Errorf("make the repository: %w", err)
		}
	}
	return t, nil
}

// copier is one run.
type copier struct {
	from, to *Repo
	o        CopyOptions
	res      *Copied
	id       string // of the copy, as if it were a backup: prune at the other place sees that it runs
	have     keySet // what is at the other place, or on the way
	total    int64
	copied   atomic.Int64
	bytes    atomic.Int64
}

// plan counts what has to be copied for a backup, for the progress.
func (c *copier) plan(ctx context.Context, id string, planned keySet) error {
	return c.from.Needs(ctx, id, func(key string, size int64) error {
		if have, ok := c.have.size(key); !(ok && have == size) && planned.add(key, size) {
			c.total += size
		}
		return nil
	})
}

// begin tells the other place that objects come, so that prune there removes none, and lists what is there. end takes the
// word back.
func (c *copier) begin(ctx context.Context, anything bool) (end func(), err error) {
	end = func() {}
	if !anything {
		return end, nil
	}
	if !c.o.DryRun {
		if err := c.to.Begin(ctx, Header{Format: Format, ID: c.id, Kind: Copying, Began: time.Now().UTC()}); err != nil {
			return nil, err
		}
		end = func() {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			_ = c.to.Abandon(clean, c.id) // one that stays grows old
		}
	}
	for _, prefix := range []string{dataPrefix, physicalPrefix} {
		err := c.to.store.List(ctx, prefix, func(key string, size int64) error {
			c.have.add(key, size)
			return nil
		})
		if err != nil {
			end()
			return nil, err
		}
	}
	return end, nil
}

// backup copies one: its objects, then what stands beside its manifest, then that.
func (c *copier) backup(ctx context.Context, id string) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(c.o.Threads)
	err := c.from.Needs(gctx, id, func(key string, size int64) error {
		if have, ok := c.have.size(key); ok && have == size {
			return gctx.Err()
		}
		c.have.put(key, size)
		g.Go(func() error { return c.object(gctx, key, size) })
		return gctx.Err()
	})
	if err2 := g.Wait(); err2 != nil {
		err = err2 // the first one; the other is its consequence
	}
	c.res.Objects, c.res.Bytes = c.copied.Load(), c.bytes.Load()
	if err != nil || c.o.DryRun {
		return err
	}
	if err := c.to.lost(ctx, c.id); err != nil {
		return err
	}
	for _, key := range []string{headKey(id), objectsKey(id), manifestKey(id)} {
		if err := c.send(ctx, key); err != nil && (key == manifestKey(id) || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	if err := c.to.lost(ctx, c.id); err != nil { // see Finish
		return errors.Join(err, c.to.store.Delete(ctx, manifestKey(id)))
	}
	return nil
}

// object copies one.
func (c *copier) object(ctx context.Context, key string, size int64) error {
	if !c.o.DryRun {
		if err := c.send(ctx, key); err != nil {
			return err
		}
	}
	c.copied.Add(1)
	done := c.bytes.Add(size)
	if c.o.Progress != nil {
		c.o.Progress(done, c.total)
	}
	return nil
}

// send copies an object as it is, and checks its seal on the way: what is damaged does not arrive.
func (c *copier) send(ctx context.Context, key string) error {
	rc, err := c.from.store.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	defer rc.Close()
	if err := c.to.store.Put(ctx, key, &sealed{r: rc, sum: sha256.New()}); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// proofs copies what drills found.
func (c *copier) proofs(ctx context.Context) error {
	return c.from.store.List(ctx, proofPrefix, func(key string, size int64) error {
		if have, err := c.to.store.Size(ctx, key); err == nil && have == size {
			return nil
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return c.send(ctx, key)
	})
}

// sealed passes an object on, seal and all. At its end it fails with ErrDamaged when the seal does not agree.
type sealed struct {
	r    io.Reader
	sum  hash.Hash
	tail []byte // the last bytes that came: they may be the seal
}

func (s *sealed) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.tail = append(s.tail, p[:n]...)
	if more := len(s.tail) - sealSize; more > 0 {
		s.sum.Write(s.tail[:more])
		s.tail = s.tail[:copy(s.tail, s.tail[more:])]
	}
	if errors.Is(err, io.EOF) && (len(s.tail) < sealSize || !bytes.Equal(s.tail[:8], sealHead) || !bytes.Equal(s.tail[8:], s.sum.Sum(nil))) {
		return n, fmt.Errorf("its seal does not agree: %w", ErrDamaged)
	}
	return n, err
}
