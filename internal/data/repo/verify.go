package repo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
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

// VerifyOptions say what of a repository is verified. The zero value: all of it.
type VerifyOptions struct {
	Backups []string // IDs; empty: all that are whole
	Quick   bool     // objects are there and as long as they should be; they are not read
	// SetAside puts damaged objects away under damaged/, so that the next backup, or a copy from a second place, stores them
	// again. Without that a backup that has the same rows takes the damaged object for them.
	SetAside bool
	Threads  int // objects read at the same time; 0: two for each processor, at most 16
	// Journal is a file of this host in which verified objects are noted, so that an interrupted run goes on; "": none. The
	// caller removes it when it wants all to be read again; a run that reaches its end removes it.
	Journal string
	// Progress is called now and then with how many bytes of objects are verified, of how many. It may be called from several
	// goroutines.
	Progress func(done, total int64)
}

// ProblemKind is the kind of a problem with an object in a repository.
type ProblemKind string

const (
	Damaged ProblemKind = "damaged" // it is not what was put there
	Missing ProblemKind = "missing" // a backup needs it
	Foreign ProblemKind = "foreign" // it is not signed, or not by a trusted key
	Locked  ProblemKind = "locked"  // it is encrypted, and none of the identities opens it: whether it is damaged is not known
)

// Problem is something wrong with an object.
type Problem struct {
	Kind    ProblemKind `json:"kind"`
	Key     string      `json:"key"`
	Backups []string    `json:"backups"`         // backups that need it
	What    string      `json:"what"`            // in words
	Aside   string      `json:"aside,omitempty"` // where it was moved to
}

// Taken reports whether the next backup that holds the same takes the object as it is, because it is named by what it holds; a part of a
// physical backup is that backup's alone.
func (p Problem) Taken() bool { return p.Kind == Damaged && strings.HasPrefix(p.Key, dataPrefix) }

// Movable reports whether VerifyOptions.SetAside puts it away.
func (p Problem) Movable() bool { return p.Kind == Damaged && immutable(p.Key) }

// Verified is what a verification found.
type Verified struct {
	Backups     []string  `json:"backups"`     // that were verified
	Objects     int64     `json:"objects"`     // objects of these backups, each counted once
	Bytes       int64     `json:"bytes"`       // of those objects in the place
	Again       int64     `json:"again"`       // objects already verified by an interrupted run
	Superfluous int64     `json:"superfluous"` // objects that no backup needs; prune removes them
	SuperBytes  int64     `json:"superfluous_bytes"`
	SealsOnly   bool      `json:"seals_only"` // it is encrypted and no identity was given: seals were checked, contents were not
	Problems    []Problem `json:"problems"`
	Broken      []string  `json:"broken"` // backups that cannot be restored in full
}

// Whole reports whether nothing is wrong.
func (v *Verified) Whole() bool { return len(v.Problems) == 0 }

// maxProblems bounds the list of problems, not their count: a place that lost everything is described in a page.
const maxProblems = 10000

// verifier is one run.
type verifier struct {
	r       *Repo
	o       VerifyOptions
	journal *journal
	began   time.Time

	needed keySet            // by what is verified
	others keySet            // by other backups
	parts  map[string]string // hash of the raw bytes of a part

	done, total     atomic.Int64
	named, misnamed atomic.Int64 // chunks that hold what they are named by, and that do not

	mu  sync.Mutex
	res Verified
	bad map[string]int // key → its problem's index
}

func newVerifier(r *Repo, o VerifyOptions) *verifier {
	v := &verifier{r: r, o: o, began: time.Now(), needed: keySet{}, others: keySet{}, parts: map[string]string{}, bad: map[string]int{}}
	v.res.Problems, v.res.Broken, v.res.SealsOnly = []Problem{}, []string{}, !r.Readable()
	return v
}

// Verify reads what backups need and compares it with the names, sizes, hashes and seals that were given to it. It restores
// nothing. What is damaged or missing is in the result; an error means that it could not go on.
func (r *Repo) Verify(ctx context.Context, o VerifyOptions) (*Verified, error) {
	if o.Threads <= 0 {
		o.Threads = min(16, 2*runtime.GOMAXPROCS(0))
	}
	v := newVerifier(r, o)
	if err := v.choose(ctx); err != nil {
		return nil, err
	}
	var err error
	if v.journal, err = openJournal(o.Journal, r.ID); err != nil {
		return nil, err
	}
	defer v.journal.close()
	if err := v.manifests(ctx); err != nil {
		return nil, err
	}
	if err := v.objects(ctx); err != nil {
		return nil, err
	}
	if err := v.missing(ctx); err != nil {
		return nil, err
	}
	if err := v.besides(ctx); err != nil {
		return nil, err
	}
	if err := v.blame(ctx); err != nil {
		return nil, err
	}
	if err := v.setAside(ctx); err != nil {
		return nil, err
	}
	return &v.res, v.journal.remove()
}

// setAside copies damaged objects to another name and then takes them away.
func (v *verifier) setAside(ctx context.Context) error {
	if !v.o.SetAside {
		return nil
	}
	if v.r.Encrypted() && v.r.Readable() && v.named.Load() == 0 && v.misnamed.Load() > 0 {
		return fmt.Errorf("no object matches its name: %s is not the key they were named with; nothing is set aside. Put the right key back first (every copy of the place has it, and every host that takes backups)", namesKey)
	}
	_, err := change.Execute(ctx, v.asides(), change.Log{})
	return err
}

// asides are the steps that put damaged objects away.
func (v *verifier) asides() (p change.Plan) {
	for i := range v.res.Problems {
		if bad := &v.res.Problems[i]; bad.Movable() {
			p = append(p, change.Step{What: "set aside", Where: bad.Key, Why: bad.What, Do: func(ctx context.Context) error { return v.aside(ctx, bad) }})
		}
	}
	return p
}

func (v *verifier) aside(ctx context.Context, bad *Problem) error {
	to := damagedPrefix + v.began.UTC().Format("20060102T150405Z") + "/" + bad.Key
	rc, err := v.r.store.Get(ctx, bad.Key)
	if err == nil {
		err = v.r.store.Put(ctx, to, rc)
		rc.Close()
	}
	if err == nil {
		err = v.r.store.Delete(ctx, bad.Key)
	}
	if err != nil {
		return fmt.Errorf("set %s aside: %w", bad.Key, err)
	}
	bad.Aside = to
	return nil
}

// choose finds the backups.
func (v *verifier) choose(ctx context.Context) error {
	entries, err := v.r.Catalogue(ctx)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Whole && (len(v.o.Backups) == 0 || slices.Contains(v.o.Backups, e.ID)) {
			v.res.Backups = append(v.res.Backups, e.ID)
			if e.Err != nil {
				v.problem(Damaged, headKey(e.ID), e.Err.Error())
			}
		}
	}
	for _, id := range v.o.Backups {
		if !slices.Contains(v.res.Backups, id) {
			return fmt.Errorf("%w: %s", ErrNoBackup, id)
		}
	}
	if len(v.o.Backups) == 0 {
		headless, err := v.r.Headless(ctx)
		if err != nil {
			return err
		}
		for _, e := range headless {
			v.problem(Missing, manifestKey(e.ID), e.Err.Error())
			v.res.Broken = append(v.res.Broken, e.ID)
		}
	}
	if len(v.res.Backups) == 0 && len(v.bad) == 0 {
		return fleet.WithRemedy(fmt.Errorf("%w: the repository holds none", ErrNoBackup), "risso backup --to takes one")
	}
	for _, e := range entries {
		if e.Whole && !slices.Contains(v.res.Backups, e.ID) {
			// What another backup needs is not superfluous. That its list is damaged is found when it is verified itself.
			err := v.r.Needs(ctx, e.ID, func(key string, size int64) error { v.others.add(key, size); return nil })
			if err != nil && !told(err) {
				return err
			}
		}
	}
	return nil
}

// told reports whether an error concerns one backup, and is reported as its problem.
func told(err error) bool {
	return Untrusted(err) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrNoKey)
}

// manifests reads the manifests to their ends and gathers what they need.
func (v *verifier) manifests(ctx context.Context) error {
	for _, id := range v.res.Backups {
		listed, count, err := v.listed(ctx, id)
		if err != nil {
			return err
		}
		if !v.r.Readable() {
			if err := v.seal(ctx, manifestKey(id)); err != nil {
				return err
			}
			switch _, err := v.r.signed(ctx, id); {
			case Untrusted(err):
				v.problem(Foreign, manifestKey(id), err.Error())
			case errors.Is(err, ErrDamaged):
				v.problem(Damaged, signatureKey(id), err.Error())
			case err != nil:
				return err
			}
			continue
		}
		if err := v.manifest(ctx, id, listed, count); err != nil {
			return err
		}
	}
	return nil
}

// listed reads the list of objects of a backup: a set of them, and how many differ.
func (v *verifier) listed(ctx context.Context, id string) (keySet, int64, error) {
	mine := keySet{}
	err := v.r.Needs(ctx, id, func(key string, size int64) error {
		mine.add(key, size)
		if v.needed.add(key, size) {
			v.total.Add(size)
		}
		return nil
	})
	if Untrusted(err) {
		return nil, 0, nil // reported of the manifest
	}
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrNoKey) {
		v.problem(kindOf(err), objectsKey(id), err.Error())
		return nil, 0, nil
	}
	return mine, int64(len(mine)), err
}

// manifest reads a manifest and compares what it needs with the list next to it.
func (v *verifier) manifest(ctx context.Context, id string, listed keySet, count int64) error {
	m, err := v.r.Manifest(ctx, id)
	if err == nil {
		defer m.Close()
		seen := keySet{}
		err = m.Each(func(l Line) error {
			for _, x := range refsOf(l) {
				key := x.key(id)
				seen.add(key, x.Size)
				if size, ok := listed.size(key); listed != nil && (!ok || size != x.Size) {
					return fmt.Errorf("%s is not in the list of objects: %w", key, ErrDamaged)
				}
				if v.needed.add(key, x.Size) {
					v.total.Add(x.Size)
				}
			}
			if l.Part != nil {
				v.parts[partKey(id, l.Part.Number)] = l.Part.Hash
			}
			return nil
		})
		if err == nil {
			err = v.head(ctx, m.Header)
		}
		if err == nil && listed != nil && int64(len(seen)) != count {
			err = fmt.Errorf("it needs %s, its list has %d: %w", digits.Counted(len(seen), "object"), count, ErrDamaged)
		}
	}
	switch {
	case errors.Is(err, ErrNoKey) && !v.r.fits:
		return err // no identity has opened anything: what others are is not known
	case told(err):
		v.problem(kindOf(err), manifestKey(id), err.Error())
		return nil
	case errors.Is(err, ErrNoBackup):
		v.problem(Missing, manifestKey(id), "it was removed in the meantime")
		return nil
	}
	return err
}

// head compares the header next to the manifest, which catalogues use, with the manifest's own. Damage in itself is reported already.
func (v *verifier) head(ctx context.Context, h Header) error {
	beside, err := v.r.head(ctx, h.ID)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) {
		return nil
	}
	if err != nil {
		return err
	}
	want, err := json.Marshal(v.r.shown(h))
	if err != nil {
		return err
	}
	if got, err := json.Marshal(beside); err != nil || !bytes.Equal(got, want) {
		return errors.Join(err, fmt.Errorf("its head differs: %w", ErrDamaged))
	}
	return nil
}

// objects goes through what the place holds and verifies what is needed of it.
func (v *verifier) objects(ctx context.Context) error {
	found := keySet{}
	g, gctx := errgroup.WithContext(ctx)
	keys := make(chan string, 2*v.o.Threads)
	for range v.o.Threads {
		g.Go(func() error {
			for key := range keys {
				if err := v.object(gctx, key); err != nil {
					return err
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		defer close(keys)
		for _, prefix := range []string{dataPrefix, physicalPrefix} {
			err := v.r.store.List(gctx, prefix, func(key string, size int64) error {
				want, ok := v.needed.size(key)
				if !ok {
					if _, others := v.others.size(key); !others {
						v.res.Superfluous++
						v.res.SuperBytes += size
					}
					return nil
				}
				found.add(key, size)
				v.res.Objects++
				v.res.Bytes += size
				switch {
				case size != want:
					v.problem(Damaged, key, fmt.Sprintf("it has %d bytes, not %d", size, want))
				case v.o.Quick:
				case v.journal.has(key):
					v.res.Again++
					v.named.Add(1)
				default:
					select {
					case keys <- key:
						return nil // counted when it is read
					case <-gctx.Done():
						return gctx.Err()
					}
				}
				v.progress(size)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return err
	}
	for h := range found {
		delete(v.needed, h)
	}
	return nil
}

func (v *verifier) progress(bytes int64) {
	done := v.done.Add(bytes)
	if v.o.Progress != nil {
		v.o.Progress(done, v.total.Load())
	}
}

// missing reports what is needed and was not found.
func (v *verifier) missing(ctx context.Context) error {
	if len(v.needed) == 0 {
		return nil
	}
	for _, id := range v.res.Backups {
		tell := func(key string, _ int64) error {
			if _, ok := v.needed.size(key); ok {
				v.problem(Missing, key, "it is missing")
			}
			return nil
		}
		err := v.r.Needs(ctx, id, tell)
		if errors.Is(err, ErrDamaged) && v.r.Readable() {
			err = v.r.needsByManifest(ctx, id, tell)
		}
		if err != nil && !told(err) {
			return err
		}
	}
	return nil
}

// problem notes something that is wrong, once for each key.
func (v *verifier) problem(kind ProblemKind, key, what string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.bad[key]; ok || len(v.bad) >= maxProblems {
		return
	}
	v.bad[key] = len(v.res.Problems)
	v.res.Problems = append(v.res.Problems, Problem{Kind: kind, Key: key, What: what, Backups: []string{}})
}

// blame says which backups each problem concerns.
func (v *verifier) blame(ctx context.Context) error {
	if len(v.bad) == 0 {
		return nil
	}
	for _, id := range v.res.Backups {
		concerned := map[int]bool{}
		for _, key := range []string{headKey(id), objectsKey(id), manifestKey(id), signatureKey(id)} {
			if i, ok := v.bad[key]; ok {
				concerned[i] = true
			}
		}
		// A damaged list of objects alone does not prevent a restore.
		broken := v.hasProblem(manifestKey(id)) || v.hasProblem(signatureKey(id))
		note := func(key string, _ int64) error {
			if i, ok := v.bad[key]; ok {
				concerned[i], broken = true, true
			}
			return nil
		}
		err := v.r.Needs(ctx, id, note)
		if errors.Is(err, ErrDamaged) && v.r.Readable() && !broken {
			err = v.r.needsByManifest(ctx, id, note)
		}
		if err != nil && !told(err) && !errors.Is(err, ErrNoBackup) {
			return err
		}
		for i := range concerned {
			v.res.Problems[i].Backups = append(v.res.Problems[i].Backups, id)
		}
		if broken {
			v.res.Broken = append(v.res.Broken, id)
		} else if i, ok := v.bad[headKey(id)]; ok {
			v.res.Problems[i].What += "; it is skipped if no backup is given, but can still be restored by its ID (--backup " + id + ")"
		}
	}
	for _, id := range v.res.Broken { // without a manifest
		if i, ok := v.bad[manifestKey(id)]; ok && len(v.res.Problems[i].Backups) == 0 {
			v.res.Problems[i].Backups = append(v.res.Problems[i].Backups, id)
		}
	}
	slices.Sort(v.res.Broken)
	slices.SortFunc(v.res.Problems, func(a, b Problem) int { return strings.Compare(a.Key, b.Key) })
	return nil
}

func (v *verifier) hasProblem(key string) bool { _, ok := v.bad[key]; return ok }

// object verifies one object that is there.
func (v *verifier) object(ctx context.Context, key string) error {
	var size int64
	var err error
	if v.r.Readable() {
		size, err = v.contents(ctx, key)
	} else {
		size, err = v.r.checkSeal(ctx, key)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.problem(Missing, key, "it was removed in the meantime")
	case errors.Is(err, ErrNoKey) && !v.r.fits:
		return err
	case errors.Is(err, ErrDamaged) || errors.Is(err, ErrNoKey):
		v.problem(kindOf(err), key, err.Error())
	case err != nil:
		return err
	default:
		if err := v.journal.note(key); err != nil {
			return err
		}
	}
	v.progress(size)
	return nil
}

// besides checks the seals of what no backup needs for its rows: proofs, and the key of names.
func (v *verifier) besides(ctx context.Context) error {
	if v.o.Quick {
		return nil
	}
	keys := []string{}
	if v.r.Encrypted() {
		keys = append(keys, namesKey)
	}
	var proofs []string
	for _, id := range v.res.Backups {
		err := v.r.store.List(ctx, proofPrefix+id+"/", func(key string, _ int64) error {
			proofs = append(proofs, key)
			return nil
		})
		if err != nil {
			return err
		}
	}
	keys = append(keys, proofs...)
	for _, key := range keys {
		if err := v.seal(ctx, key); err != nil {
			return err
		}
	}
	if v.r.otherNames {
		v.problem(Damaged, namesKey, "it differs from the key this host keeps for naming objects: other hosts will consider every object damaged")
	}
	for _, key := range proofs {
		id, at, _ := strings.Cut(strings.TrimPrefix(key, proofPrefix), "/")
		if _, err := time.Parse(proofTime, at); err != nil {
			continue
		}
		p, err := v.r.proof(ctx, id, at)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrDamaged): // removed in the meantime, or reported
		case err != nil:
			return err
		case v.hasProblem(key) || v.hasProblem(key+proofSigned):
		case errors.Is(p.Doubt, ErrDamaged): // forged ones, too
			v.problem(Damaged, key, p.Doubt.Error())
		case errors.Is(p.Doubt, ErrNoKey) && v.r.Readable():
			v.problem(Locked, key, p.Doubt.Error())
		}
	}
	return nil
}

// contents reads an object to its end: seal, decryption, decompression, and the hash that it was given.
func (v *verifier) contents(ctx context.Context, key string) (int64, error) {
	rc, err := v.r.store.Get(ctx, key)
	if err != nil {
		return 0, err
	}
	n := &counting{ReadCloser: rc}
	o, err := v.r.openObject(path.Base(key), n)
	if err != nil {
		return 0, err
	}
	defer o.Close()
	var sum hash.Hash = sha256.New()
	want, isPart := v.parts[key]
	if !isPart {
		want = path.Base(key)
		if sum, err = v.r.newHash(); err != nil {
			return 0, err
		}
	}
	if _, err := io.Copy(sum, o); err != nil {
		return n.n, err
	}
	if !isPart && strings.HasPrefix(key, physicalPrefix) {
		return n.n, nil // its manifest is damaged, and reported; the seal says that at least this is whole
	}
	if hex.EncodeToString(sum.Sum(nil)) != want {
		if !isPart {
			v.misnamed.Add(1)
		}
		return n.n, fmt.Errorf("its contents do not match its name: %w", ErrDamaged)
	}
	if !isPart {
		v.named.Add(1)
	}
	return n.n, nil
}

// counting counts the bytes that it returns.
type counting struct {
	io.ReadCloser
	n int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n += int64(n)
	return n, err
}

// seal checks the seal of an object other than data.
func (v *verifier) seal(ctx context.Context, key string) error {
	_, err := v.r.checkSeal(ctx, key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.problem(Missing, key, "it is missing")
		return nil
	case errors.Is(err, ErrDamaged):
		v.problem(Damaged, key, err.Error())
		return nil
	}
	return err
}

// checkSeal reads an object and checks its seal, without opening it.
func (r *Repo) checkSeal(ctx context.Context, key string) (int64, error) {
	rc, err := r.store.Get(ctx, key)
	if err != nil {
		return 0, err
	}
	n := &counting{ReadCloser: rc}
	defer n.Close()
	_, err = io.Copy(io.Discard, newUnsealer(n))
	return n.n, err
}
