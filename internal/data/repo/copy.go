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
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
)

// CopyOptions say what is copied to a second place.
type CopyOptions struct {
	Backups []string // IDs; empty: all that are whole
	Threads int      // objects transferred at the same time; 0: two for each processor, at most 16
	DryRun  bool     // say what would be copied
	// Waiting is called when a prune at the other place is waited for; nil: silence.
	Waiting func(Holder)
	// Progress is called now and then with how many bytes are done, of how many. It may be called from several goroutines.
	Progress func(done, total int64)
}

// Copied is what a copy did, or would do.
type Copied struct {
	Backups []string `json:"backups"` // that were copied
	There   []string `json:"there"`   // that were there already
	Objects int64    `json:"objects"` // that were copied
	Mended  int64    `json:"mended"`  // of these, objects missing from backups that were already there
	Bytes   int64    `json:"bytes"`   // of those objects
	Logs    int64    `json:"logs"`    // mirrored binary logs that were copied
	// LogBytes is the stored size of those logs.
	LogBytes  int64        `json:"log_bytes"`
	Refused   []Refusal    `json:"refused"`   // that were not copied
	Different []Difference `json:"different"` // objects that differ at the second place, where they were left unchanged

	Steps change.Plan `json:"steps"` // what was done, or would be, in this order
}

// Whole reports whether everything that was asked for is at the other place, as it is here.
func (c *Copied) Whole() bool { return len(c.Refused) == 0 && len(c.Different) == 0 }

// Problems counts what was not copied, in words.
func (c *Copied) Problems() string {
	var list []string
	if n := len(c.Refused); n > 0 {
		list = append(list, fmt.Sprintf("%d refused", n))
	}
	if n := len(c.Different); n > 0 {
		list = append(list, fmt.Sprintf("%s different at the second place and left unchanged", digits.Counted(n, "object")))
	}
	return strings.Join(list, ", ")
}

// Refusal is a backup or mirrored log that was not copied.
type Refusal struct {
	Kind          ProblemKind `json:"kind"`
	fleet.Trouble             // of a backup with its ID, or a mirrored log with its name
}

func (r Refusal) String() string { return r.What + ": " + r.Why }

// Difference is an object that differs between the two places. Neither was changed.
type Difference struct {
	Key   string `json:"key"`
	Here  Side   `json:"here"`
	There Side   `json:"there"`
}

// Side is an object in one of the places.
type Side struct {
	Bytes int64  `json:"bytes"`
	State string `json:"state"` // its state, in words
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: %d bytes here, %s; %d bytes there, %s", d.Key, d.Here.Bytes, d.Here.State, d.There.Bytes, d.There.State)
}

// ErrOther says that a place holds another repository.
var ErrOther = errors.New("the place contains a different repository, not a copy of this one")

// CopyTo copies backups, and finished mirrored logs, to another place, the oldest first, and makes the repository there when it is the
// first time: the same one, with the same ID and the same recipients. Only what is missing there is copied, as it is, so no identity is
// needed; the seal of each object is checked on the way, and with an identity what it holds. An incomplete backup there gets its missing
// objects. Nothing that is there is ever replaced: what differs there is in the result, and so is each backup and log that is damaged, or
// refused by the policy that the repository was opened with; the others are copied. A copy that is cut goes on when it is started again; a
// backup is seen at the other place when it is whole there.
func (r *Repo) CopyTo(ctx context.Context, to Store, o CopyOptions) (*Copied, error) {
	if o.Threads <= 0 {
		o.Threads = min(16, 2*runtime.GOMAXPROCS(0))
	}
	t, steps, err := r.target(ctx, to)
	if err != nil {
		return nil, err
	}
	c := &copier{from: r, to: t, o: o, id: NewID(time.Now()), parts: map[string]string{}, told: map[string]bool{},
		res: &Copied{Backups: []string{}, There: []string{}, Refused: []Refusal{}, Different: []Difference{}}}
	list, err := c.choose(ctx)
	if err != nil {
		return nil, err
	}
	if !o.DryRun {
		if _, err := change.Execute(ctx, steps, change.Log{}); err != nil {
			return nil, err
		}
		end, err := c.begin(ctx, list)
		if err != nil {
			return nil, err
		}
		defer end()
	}
	would, err := c.plan(ctx, list)
	if err != nil {
		return nil, err
	}
	c.res.Steps = slices.Concat(steps, would.Steps)
	if o.DryRun {
		c.res.Backups, c.res.Objects, c.res.Mended, c.res.Bytes, c.res.Logs, c.res.LogBytes = would.Backups, would.Objects, would.Mended, would.Bytes, would.Logs, would.LogBytes
		return c.res, nil
	}
	c.total = would.Bytes
	if _, err := change.Execute(ctx, would.Steps, change.Log{}); err != nil {
		return nil, err
	}
	c.res.Objects, c.res.Bytes = c.copied.Load(), c.bytes.Load()
	return c.res, nil
}

// choose finds the backups that are copied, those that are there already, and whether those are the same.
func (c *copier) choose(ctx context.Context) (list []string, err error) {
	entries, err := c.from.Catalogue(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range c.o.Backups {
		if !slices.ContainsFunc(entries, func(e Entry) bool { return e.ID == id && e.Whole }) {
			return nil, fmt.Errorf("%w: %s", ErrNoBackup, id)
		}
	}
	if c.here, err = sizes(ctx, c.from.store, backupPrefix); err != nil {
		return nil, err
	}
	if c.there, err = sizes(ctx, c.to.store, backupPrefix); err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.Whole || len(c.o.Backups) > 0 && !slices.Contains(c.o.Backups, e.ID) {
			continue
		}
		_, there := c.there[manifestKey(e.ID)]
		if e.Err != nil && !(e.cut && there) { // of a manifest that was cut the objects can be compared
			c.refuse(kindOf(e.Err), "backup "+e.ID, e.Err.Error())
			continue
		}
		if !there {
			list = append(list, e.ID)
			continue
		}
		c.res.There = append(c.res.There, e.ID)
		if err := c.compare(ctx, e.ID); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// sizes lists the objects below a prefix.
func sizes(ctx context.Context, s Store, prefix string) (map[string]int64, error) {
	list := map[string]int64{}
	err := s.List(ctx, prefix, func(key string, size int64) error {
		list[key] = size
		return nil
	})
	return list, err
}

// target opens the repository at the other place; make are the steps that make it if there is none.
func (r *Repo) target(ctx context.Context, to Store) (t *Repo, make change.Plan, err error) {
	t, err = Open(ctx, to)
	if err == nil && t.ID != r.ID {
		return nil, nil, ErrOther
	}
	if !errors.Is(err, ErrNoRepository) {
		return t, nil, err
	}
	return &Repo{ID: r.ID, store: to, cipher: r.cipher}, change.Plan{{What: "make repository", Where: r.ID, Do: func(ctx context.Context) error {
		keys := []string{configKey}
		if r.Encrypted() {
			keys = []string{namesKey, configKey}
		}
		for _, key := range keys {
			rc, err := r.store.Get(ctx, key)
			if err != nil {
				return err
			}
			b, err := io.ReadAll(io.LimitReader(rc, 1<<20))
			rc.Close()
			if err == nil {
				err = putNew(ctx, to, key, b)
			}
			if err != nil {
				return fmt.Errorf("create the repository: %w", err)
			}
		}
		return nil
	}}}, nil
}

// putNew puts a small object, unless it is there as it is. A different object there is not replaced.
func putNew(ctx context.Context, to Store, key string, b []byte) error {
	rc, err := to.Get(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		if err = to.Create(ctx, key, bytes.NewReader(b)); !errors.Is(err, fs.ErrExist) {
			return err
		}
		rc, err = to.Get(ctx, key)
	}
	if err != nil {
		return err
	}
	defer rc.Close()
	old, err := io.ReadAll(io.LimitReader(rc, 1<<20))
	if err == nil && !bytes.Equal(old, b) {
		err = fmt.Errorf("%s exists but is different: %w", key, ErrOther)
	}
	return err
}

// copier is one run.
type copier struct {
	from, to *Repo
	o        CopyOptions
	res      *Copied
	id       string            // of the copy, as if it were a backup: prune at the other place sees that it runs
	here     map[string]int64  // what is there besides the objects of backups
	there    map[string]int64  // the same at the other place
	have     keySet            // objects that are at the other place, or on the way
	parts    map[string]string // hashes of what the parts of physical backups hold, as far as they are known
	told     map[string]bool   // what was refused or differs
	total    int64
	copied   atomic.Int64
	bytes    atomic.Int64
}

// begin tells the other place that a copy runs, if there are objects to copy, so that prune there removes none. end takes that back.
func (c *copier) begin(ctx context.Context, list []string) (end func(), err error) {
	end = func() {}
	if any, err := c.any(ctx, list); err != nil || !any {
		return end, err
	}
	if err := c.to.Begin(ctx, Header{Format: Format, ID: c.id, Kind: Copying, Began: time.Now().UTC()}, c.o.Waiting); err != nil {
		return nil, err
	}
	return func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = c.to.Abandon(clean, c.id) // one that stays grows old
	}, nil
}

// any reports whether objects of backups are missing at the other place.
func (c *copier) any(ctx context.Context, list []string) (lacks bool, err error) {
	if len(list) > 0 {
		return true, nil
	}
	if err := c.list(ctx); err != nil {
		return false, err
	}
	for _, id := range c.res.There {
		err := c.from.Needs(ctx, id, func(key string, _ int64) error {
			_, ok := c.have.size(key)
			lacks = lacks || !ok
			return nil
		})
		if err != nil && !told(err) && !errors.Is(err, fs.ErrNotExist) { // those are reported as problems of the backup
			return false, fmt.Errorf("backup %s: %w", id, err)
		}
	}
	return lacks, nil
}

// list looks which objects of backups are at the other place.
func (c *copier) list(ctx context.Context) error {
	c.have = keySet{}
	for _, prefix := range []string{dataPrefix, physicalPrefix} {
		err := c.to.store.List(ctx, prefix, func(key string, size int64) error {
			c.have.add(key, size)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// plan finds out what is missing at the other place, and returns the steps that bring it, with their sum as if they were done. What cannot
// be copied is noted.
func (c *copier) plan(ctx context.Context, list []string) (would Copied, err error) {
	would.Backups = []string{}
	if err := c.list(ctx); err != nil {
		return would, err
	}
	planned := keySet{}
	for i, id := range slices.Concat(c.res.There, list) {
		mends := i < len(c.res.There)
		objects, bytes, err := c.lacks(ctx, id, planned)
		if err == nil && objects >= 0 {
			err = c.sound(ctx, id)
		}
		if objects < 0 && err == nil {
			continue
		}
		if err != nil {
			if err = c.only(ctx, "backup "+id, err); err != nil {
				return would, fmt.Errorf("backup %s: %w", id, err)
			}
			continue
		}
		would.Objects += objects
		would.Bytes += bytes
		why := digits.Counted(objects, "object") + ", " + digits.Bytes(bytes)
		if mends {
			would.Mended += objects
			would.Steps = append(would.Steps, change.Step{What: "repair backup", Where: id, Why: "it lacks " + why, Do: func(ctx context.Context) error {
				before := c.copied.Load()
				err := c.only(ctx, "backup "+id, c.objects(ctx, id))
				if c.res.Mended += c.copied.Load() - before; err != nil {
					return fmt.Errorf("repair backup %s: %w", id, err)
				}
				return nil
			}})
			continue
		}
		would.Backups = append(would.Backups, id)
		would.Steps = append(would.Steps, change.Step{What: "copy backup", Where: id, Why: why, Do: func(ctx context.Context) error {
			err := c.objects(ctx, id)
			if err == nil {
				err = c.publish(ctx, id)
			}
			if err == nil {
				c.res.Backups = append(c.res.Backups, id)
			} else if err = c.only(ctx, "backup "+id, err); err != nil {
				return fmt.Errorf("copy backup %s: %w", id, err)
			}
			return nil
		}})
	}
	proofs, err := c.proofs(ctx)
	if err == nil {
		would.Steps = append(would.Steps, proofs...)
		err = c.logs(ctx, &would)
	}
	return would, err
}

// only notes an error that concerns one thing only, so that others go on; else it returns it.
func (c *copier) only(ctx context.Context, what string, err error) error {
	var r *refusedError
	switch {
	case errors.As(err, &r):
		c.refuse(r.kind, what, r.Error())
	case err == nil || ctx.Err() != nil || !told(err):
		return err
	default:
		c.refuse(kindOf(err), what, err.Error())
	}
	return nil
}

// kindOf is the kind of problem that an error of one backup is.
func kindOf(err error) ProblemKind {
	switch {
	case Untrusted(err):
		return Foreign
	case errors.Is(err, ErrNoKey):
		return Locked
	}
	return Damaged
}

// refusedError says why a backup is not copied.
type refusedError struct {
	kind ProblemKind
	what string
}

func (e *refusedError) Error() string { return e.what }

// refuse notes, once, what is not copied.
func (c *copier) refuse(kind ProblemKind, what, why string) {
	if !c.told[what] {
		c.told[what] = true
		c.res.Refused = append(c.res.Refused, Refusal{kind, fleet.Trouble{What: what, Why: why}})
	}
}

// lacks counts the objects of a backup that are missing at the other place, without those planned already, to which it adds them; objects
// is -1 if the backup is there and complete. What is different there is noted, and is an error if the backup is not there yet.
func (c *copier) lacks(ctx context.Context, id string, planned keySet) (objects, bytes int64, err error) {
	_, there := c.there[manifestKey(id)]
	lacks, differs := !there, ""
	err = c.from.Needs(ctx, id, func(key string, size int64) error {
		switch have, ok := c.have.size(key); {
		case !ok:
			lacks = true
			if planned.add(key, size) {
				objects++
				bytes += size
			}
		case have != size:
			differs = key
			return c.differ(ctx, key)
		}
		return ctx.Err()
	})
	if err == nil && differs != "" && !there {
		err = &refusedError{Damaged, differs + " is there, but differs from the one here"}
	}
	if !lacks {
		objects = -1
	}
	return objects, bytes, err
}

// sound reads a backup's objects besides its rows to their end, and asks the policy: what is not what its taker signed, or what no trusted
// key signed, is an error.
func (c *copier) sound(ctx context.Context, id string) error {
	v := newVerifier(c.from, VerifyOptions{})
	v.res.Backups = []string{id}
	if err := v.manifests(ctx); err != nil {
		return err
	}
	for key, hash := range v.parts {
		c.parts[key] = hash
	}
	if len(v.res.Problems) == 0 {
		return nil
	}
	p := v.res.Problems[0]
	return &refusedError{p.Kind, p.What}
}

// objects copies the objects that a backup needs and the other place does not have.
func (c *copier) objects(ctx context.Context, id string) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(c.o.Threads)
	var mu sync.Mutex
	under := keySet{} // on their way
	err := c.from.Needs(gctx, id, func(key string, size int64) error {
		if !c.have.add(key, size) {
			return gctx.Err()
		}
		mu.Lock()
		under.add(key, size)
		mu.Unlock()
		g.Go(func() error {
			if err := c.object(gctx, key, size); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			under.remove(key)
			return nil
		})
		return gctx.Err()
	})
	if err2 := g.Wait(); err2 != nil {
		for h := range under { // they did not arrive: another backup may need them
			delete(c.have, h)
		}
		return err2 // the first one; the other is its consequence
	}
	return err
}

// publish copies what accompanies a manifest, then the manifest.
func (c *copier) publish(ctx context.Context, id string) error {
	if err := c.to.lost(ctx, c.id); err != nil {
		return err
	}
	for _, key := range []string{headKey(id), objectsKey(id), acceptedKey(id), signatureKey(id), manifestKey(id)} {
		if _, there := c.there[key]; there { // of a copy that was cut
			same, err := c.same(ctx, key)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if !same {
				return errors.Join(&refusedError{Damaged, key + " is there, but differs from the one here"}, c.differ(ctx, key))
			}
			continue
		}
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
	if err := c.send(ctx, key); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return &refusedError{Missing, key + " is not there"}
		}
		return err
	}
	c.copied.Add(1)
	done := c.bytes.Add(size)
	if c.o.Progress != nil {
		c.o.Progress(done, c.total)
	}
	return nil
}

// send copies an object as it is, and checks its seal on the way, and what it holds if that can be read: what is damaged does
// not arrive.
func (c *copier) send(ctx context.Context, key string) error {
	rc, err := c.from.store.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	defer rc.Close()
	var in io.Reader = &sealed{r: rc, sum: sha256.New()}
	if want, sum := c.contents(key); want != "" {
		held := c.from.holding(in, path.Base(key), want, sum)
		defer held.close()
		in = held
	}
	if err := c.to.store.Put(ctx, key, in); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// contents returns the hash of what an object of rows or files must hold; "" if that is unknown.
func (c *copier) contents(key string) (want string, sum hash.Hash) {
	if !c.from.Readable() {
		return "", nil
	}
	if strings.HasPrefix(key, physicalPrefix) {
		return c.parts[key], sha256.New()
	}
	if !strings.HasPrefix(key, dataPrefix) {
		return "", nil
	}
	sum, err := c.from.newHash()
	if err != nil { // verify says so
		return "", nil
	}
	return path.Base(key), sum
}

// proofs plans to copy what drills found, and what was accepted since a backup was copied.
func (c *copier) proofs(ctx context.Context) (p change.Plan, err error) {
	var keys []string
	for _, id := range c.res.There {
		key := acceptedKey(id)
		if _, there := c.there[key]; !there && c.here[key] > 0 && !c.told["backup "+id] {
			keys = append(keys, key)
		}
	}
	there, err := sizes(ctx, c.to.store, proofPrefix)
	if err != nil {
		return nil, err
	}
	here, err := sizes(ctx, c.from.store, proofPrefix)
	if err != nil {
		return nil, err
	}
	// Signatures first: else others would see an unsigned proof.
	proofs := slices.Sorted(maps.Keys(here))
	slices.SortStableFunc(proofs, func(a, b string) int {
		switch first, second := strings.HasSuffix(a, proofSigned), strings.HasSuffix(b, proofSigned); {
		case first == second:
			return 0
		case first:
			return -1
		}
		return 1
	})
	for _, key := range proofs {
		switch have, ok := there[key]; {
		case !ok:
			keys = append(keys, key)
		case have != here[key]:
			if err := c.differ(ctx, key); err != nil {
				return nil, err
			}
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	return change.Plan{{What: "copy what drills found, and what was accepted", Why: digits.Counted(len(keys), "object"), Do: func(ctx context.Context) error {
		for _, key := range keys {
			err := c.send(ctx, key)
			if errors.Is(err, fs.ErrNotExist) || told(err) && !strings.HasPrefix(key, proofPrefix) { // removed in the meantime; verify reports what was accepted
				continue
			}
			if err := c.only(ctx, "proof "+strings.TrimPrefix(key, proofPrefix), err); err != nil {
				return err
			}
		}
		return nil
	}}}, nil
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
		return n, fmt.Errorf("its seal does not match: %w", ErrDamaged)
	}
	return n, err
}
