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
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// CopyOptions say what is copied to a second place.
type CopyOptions struct {
	Backups []string // IDs; empty: all that are whole
	Threads int      // objects on the way at once; 0: two for each processor, at most 16
	DryRun  bool     // say what would be copied
	// Waiting is told when a prune at the other place is waited for; nil: silence.
	Waiting func(Holder)
	// Progress is told now and then how many bytes are done, of how many. It may be called from several goroutines.
	Progress func(done, total int64)
}

// Copied is what a copy did, or would do.
type Copied struct {
	Backups []string `json:"backups"` // that were copied
	There   []string `json:"there"`   // that were there already
	Objects int64    `json:"objects"` // that were copied
	Mended  int64    `json:"mended"`  // of them, those that backups which were there already lacked
	Bytes   int64    `json:"bytes"`   // of those objects
	Logs    int64    `json:"logs"`    // mirrored binary logs that were copied
	// LogBytes are those of the logs as they are stored.
	LogBytes int64 `json:"log_bytes"`
}

// ErrOther says that a place holds another repository.
var ErrOther = errors.New("the place holds another repository, not a copy of this one")

// CopyTo copies backups, and finished mirrored logs, to another place, the oldest first, and makes the repository there when it is the first time: the same
// one, with the same ID and the same recipients. Only what is missing there is copied, as it is, so no identity is needed; the
// seal of each object is checked on the way. A backup that is there and lacks objects gets them. A copy that is cut goes on when it is started again; a backup is seen at the
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
	var list []string
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
			list = append(list, e.ID)
		default:
			return nil, err
		}
	}
	for _, id := range o.Backups {
		if !slices.ContainsFunc(entries, func(e Entry) bool { return e.ID == id && e.Whole }) {
			return nil, fmt.Errorf("%w: %s", ErrNoBackup, id)
		}
	}
	c := &copier{from: r, to: t, o: o, res: res, id: NewID(time.Now())}
	end, err := c.begin(ctx, list)
	if err != nil {
		return nil, err
	}
	defer end()
	for _, id := range res.There {
		if err := c.objects(ctx, id); err != nil {
			return nil, fmt.Errorf("mend backup %s: %w", id, err)
		}
	}
	res.Mended = c.copied.Load()
	for _, id := range list {
		err := c.objects(ctx, id)
		if err == nil {
			err = c.publish(ctx, id)
		}
		if err != nil {
			return nil, fmt.Errorf("copy backup %s: %w", id, err)
		}
		res.Backups = append(res.Backups, id)
	}
	res.Objects, res.Bytes = c.copied.Load(), c.bytes.Load()
	if !o.DryRun {
		err = c.proofs(ctx)
	}
	if err == nil {
		err = c.logs(ctx)
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

// begin lists what is at the other place and plans. When something is to be copied it first tells that place, so that prune
// there removes no objects, and looks again. end takes the word back.
func (c *copier) begin(ctx context.Context, list []string) (end func(), err error) {
	end = func() {}
	if err := c.plan(ctx, list); err != nil || c.o.DryRun || c.total == 0 && len(list) == 0 {
		return end, err
	}
	if err := c.to.Begin(ctx, Header{Format: Format, ID: c.id, Kind: Copying, Began: time.Now().UTC()}, c.o.Waiting); err != nil {
		return nil, err
	}
	end = func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = c.to.Abandon(clean, c.id) // one that stays grows old
	}
	if err := c.plan(ctx, list); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// plan lists what is at the other place, and counts what is missing there, for the progress.
func (c *copier) plan(ctx context.Context, list []string) error {
	c.have, c.total = keySet{}, 0
	for _, prefix := range []string{dataPrefix, physicalPrefix} {
		err := c.to.store.List(ctx, prefix, func(key string, size int64) error {
			c.have.add(key, size)
			return nil
		})
		if err != nil {
			return err
		}
	}
	planned := keySet{}
	for _, id := range slices.Concat(c.res.There, list) {
		err := c.from.Needs(ctx, id, func(key string, size int64) error {
			if have, ok := c.have.size(key); !(ok && have == size) && planned.add(key, size) {
				c.total += size
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("backup %s: %w", id, err)
		}
	}
	return nil
}

// objects copies the objects that a backup needs and the other place lacks.
func (c *copier) objects(ctx context.Context, id string) error {
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
		return err2 // the first one; the other is its consequence
	}
	return err
}

// publish copies what stands beside a manifest, then that.
func (c *copier) publish(ctx context.Context, id string) error {
	if c.o.DryRun {
		return nil
	}
	if err := c.to.lost(ctx, c.id); err != nil {
		return err
	}
	for _, key := range []string{headKey(id), objectsKey(id), acceptedKey(id), signatureKey(id), manifestKey(id)} {
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

// proofs copies what drills found, and what was accepted since a backup was copied.
func (c *copier) proofs(ctx context.Context) error {
	for _, id := range c.res.There {
		if err := c.send(ctx, acceptedKey(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return c.from.store.List(ctx, proofPrefix, func(key string, size int64) error {
		if have, err := c.to.store.Size(ctx, key); err == nil && have == size {
			return nil
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return c.send(ctx, key)
	})
}

// logs copies the mirrored binary logs that are finished and are missing at the other place: each before its index, without
// which it is not seen.
func (c *copier) logs(ctx context.Context) error {
	lists := [2]map[string]int64{{}, {}}
	for i, r := range []*Repo{c.from, c.to} {
		err := r.store.List(ctx, binlogPrefix, func(key string, size int64) error {
			lists[i][key] = size
			return nil
		})
		if err != nil {
			return err
		}
	}
	from, to := lists[0], lists[1]
	for index := range from {
		name, ok := strings.CutSuffix(index, ".json")
		if !ok {
			continue
		}
		log := name // where the mirror lies in a folder of its own it may be uncompressed
		for _, ext := range []string{".zst", ".zst.age"} {
			if _, packed := from[name+ext]; packed {
				log = name + ext
			}
		}
		size, there := from[log]
		if have, ok := to[log]; !there || ok && have == size && to[index] == from[index] {
			continue
		}
		c.res.Logs++
		c.res.LogBytes += size
		for _, key := range []string{log, index} {
			if c.o.DryRun {
				break
			}
			rc, err := c.from.store.Get(ctx, key)
			if err == nil {
				err = c.to.store.Put(ctx, key, rc)
				rc.Close()
			}
			if err != nil {
				return fmt.Errorf("copy the mirrored log %s: %w", key, err)
			}
		}
	}
	return nil
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
