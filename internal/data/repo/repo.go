// Package repo is a backup repository: the layout of a place, and how objects are compressed, encrypted and verified. It knows
// nothing about servers or SQL. FORMAT.md describes the layout.
//
// Objects named by a hash are written once and never changed; the manifest is written last. So a killed process leaves
// unreferenced chunks behind, but never a backup that looks complete and is not.
package repo

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// Store is what a repository needs from its place. Keys are paths with slashes.
type Store interface {
	// Put writes an object, whole or not at all, durable when it returns. What was there is replaced.
	Put(ctx context.Context, key string, r io.Reader) error
	// Create puts a small object if there is none, atomically: of several that do so one wins, the others get fs.ErrExist.
	Create(ctx context.Context, key string, r io.Reader) error
	// Get reads an object; an error is fs.ErrNotExist when there is none.
	Get(ctx context.Context, key string) (io.ReadCloser, error)
	// Size returns an object's size in bytes; an error is fs.ErrNotExist when there is none.
	Size(ctx context.Context, key string) (int64, error)
	// List returns the objects whose keys begin with prefix, in the order of their keys.
	List(ctx context.Context, prefix string, f func(key string, size int64) error) error
	// Delete removes an object; a missing one is no error.
	Delete(ctx context.Context, key string) error
}

// Errors of a repository.
var (
	ErrNoRepository = errors.New("there is no backup repository")
	ErrNoBackup     = fleet.WithRemedy(errors.New("there is no such backup"), "risso backup list shows those that are there")
	// ErrHeadless says that a place holds what belongs to a repository, but not the file that says which.
	ErrHeadless = errors.New("its " + configKey + " is lost; a new one would make everything there unreadable for good: " +
		"put it back (every copy of the place has the same file), or use another place")
)

// config is the repository's own file.
type config struct {
	Format  int       `json:"format"`
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	// Recipients are those everything is encrypted to; empty: nothing is.
	Recipients []string `json:"recipients,omitempty"`
	// Check is the SHA-256 of the file with an empty check.
	Check string `json:"check"`
}

// encode returns the file. There is only one way to write it, so any other byte is damage.
func (c config) encode() ([]byte, error) {
	c.Check = ""
	b, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	h := sha256.Sum256(b)
	c.Check = hex.EncodeToString(h[:])
	b, err = json.Marshal(c)
	return append(b, '\n'), err
}

// Repo is an open repository. Its methods may be called from several goroutines.
type Repo struct {
	ID     string
	store  Store
	cipher *cipher // nil: not encrypted
	// otherNames says that the key of names in the place is not the one that this host keeps.
	otherNames bool
	fits       bool // an identity has opened the key of names, so it opens what was put here
	leases     leases
	cache      string // folder of what this host keeps of an encrypted repository; "": nothing
	signer     ed25519.PrivateKey
	policy     Policy
	growing    string // folder of the keys of growing files; "": none are kept
}

// Open opens a repository that is not encrypted; ErrNoRepository when the place holds none, ErrHeadless when it holds one without its own file.
func Open(ctx context.Context, s Store) (*Repo, error) { return OpenWith(ctx, s, Keys{}) }

// OpenWith opens a repository; ErrNoRepository when the place holds none, ErrHeadless when it holds one without its own file. Without identities an encrypted one can be listed,
// pruned and copied, and its seals be verified.
func OpenWith(ctx context.Context, s Store, k Keys) (*Repo, error) {
	rc, err := s.Get(ctx, configKey)
	if errors.Is(err, fs.ErrNotExist) {
		held, herr := holds(ctx, s)
		switch {
		case herr != nil:
			return nil, herr
		case held == "":
			return nil, ErrNoRepository
		}
		// Somebody may have made it just now, and put something there.
		if rc, err = s.Get(ctx, configKey); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the place contains %s of a backup repository, but %w", held, ErrHeadless)
		}
	}
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	var c config
	b, err := io.ReadAll(io.LimitReader(rc, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", configKey, err)
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", configKey, ErrDamaged, err)
	}
	again, err := c.encode()
	if err != nil {
		return nil, err
	}
	switch {
	case c.Format > Format:
		return nil, fmt.Errorf("the repository has format %d, this risso reads up to %d: take a newer one", c.Format, Format)
	case c.Format < 1 || !validID(c.ID) || !bytes.Equal(again, b):
		return nil, fmt.Errorf("%s: %w", configKey, ErrDamaged)
	case len(k.Recipients) > 0 && len(c.Recipients) == 0:
		return nil, fmt.Errorf("%w: it was created without encryption; use another place for an encrypted one", ErrRecipients)
	case len(k.Recipients) > 0 && !slices.Equal(k.Recipients, c.Recipients):
		return nil, fmt.Errorf("%w: it is encrypted to %s", ErrRecipients, strings.Join(c.Recipients, ", "))
	}
	r := &Repo{ID: c.ID, store: s, signer: k.Signer, policy: k.Policy}
	if r.cipher, err = newCipher(c.Recipients, k.Identities); err != nil || r.cipher == nil {
		return r, err
	}
	if k.CacheDir != "" {
		r.cache = filepath.Join(k.CacheDir, "manifests-"+r.ID)
		r.growing = filepath.Join(k.CacheDir, "growing-"+r.ID)
	}
	return r, r.findNames(ctx, k, c.Recipients)
}

// CreateWith opens a repository, and makes one if there is none, encrypted when there are recipients.
func CreateWith(ctx context.Context, s Store, k Keys) (*Repo, error) {
	r, err := OpenWith(ctx, s, k)
	if !errors.Is(err, ErrNoRepository) {
		return r, err
	}
	return initialize(ctx, s, k)
}

// holds returns a key that only a repository puts into a place; "" if there is none.
func holds(ctx context.Context, s Store) (held string, err error) {
	found := errors.New("found")
	for _, prefix := range []string{backupPrefix, dataPrefix, physicalPrefix} {
		err := s.List(ctx, prefix, func(key string, _ int64) error {
			held = key
			return found
		})
		if err != nil {
			return held, ignore(err, found)
		}
	}
	return "", nil
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

// initialize writes the repository's own file last: until then there is none. Of several that do so at the same time one wins, and
// the others take what it made.
func initialize(ctx context.Context, s Store, k Keys) (*Repo, error) {
	c := config{Format: Format, ID: randomHex(16), Created: time.Now().UTC().Truncate(time.Second), Recipients: k.Recipients}
	r := &Repo{ID: c.ID, store: s}
	var err error
	if r.cipher, err = newCipher(c.Recipients, k.Identities); err != nil {
		return nil, err
	}
	var names []byte
	if r.cipher != nil {
		names, err = r.makeNames(ctx)
		if errors.Is(err, fs.ErrExist) { // somebody else was first
			return OpenWith(ctx, s, k)
		}
		if err != nil {
			return nil, err
		}
	}
	b, err := c.encode()
	if err != nil {
		return nil, err
	}
	err = s.Create(ctx, configKey, bytes.NewReader(b))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create a repository: %w", err)
	}
	made, err := OpenWith(ctx, s, Keys{})
	if err != nil {
		return nil, fmt.Errorf("create a repository: %w", err)
	}
	if made.ID == r.ID && r.cipher != nil {
		if err := r.ownNames(ctx, k, c.Recipients, names); err != nil {
			return nil, err
		}
	}
	return OpenWith(ctx, s, k)
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}

// validID reports whether an ID is one that this package makes: it becomes the name of a file.
func validID(id string) bool {
	b, err := hex.DecodeString(id)
	return err == nil && len(b) == 16
}

// Finish writes the manifest: from then on there is a backup. ErrLost if prune took it for killed in the meantime.
func (r *Repo) Finish(ctx context.Context, h Header, d *Draft) error {
	err := r.finish(ctx, h, d)
	if err != nil {
		return fmt.Errorf("write the manifest of %s: %w", h.ID, err)
	}
	return r.release(ctx, unfinishedKey(h.ID))
}

func (r *Repo) finish(ctx context.Context, h Header, d *Draft) error {
	if err := r.lost(ctx, h.ID); err != nil {
		return err
	}
	if err := r.writeHead(ctx, h, d); err != nil {
		return err
	}
	if err := r.sign(ctx, h, d); err != nil {
		return err
	}
	if err := r.putStream(ctx, manifestKey(h.ID), func(w io.Writer) error { return d.writeObject(w, h, r.cipher) }); err != nil {
		return err
	}
	// Prune notes that it takes a backup for killed before it reads manifests. So either it has seen this one, or this shows.
	if err := r.lost(ctx, h.ID); err != nil {
		return errors.Join(err, r.store.Delete(ctx, manifestKey(h.ID)))
	}
	r.keepManifest(h, d)
	return nil
}

// Manifest opens the manifest of a backup; "" is the newest. The caller closes it. If the repository was opened with a policy, one
// that this refuses is an error. Only after the manifest was read to its end is it known to be what was signed: act on none of it
// before.
func (r *Repo) Manifest(ctx context.Context, id string) (*Manifest, error) {
	if id == "" {
		var err error
		if id, err = r.newest(ctx); err != nil {
			return nil, err
		}
	}
	sig, err := r.signed(ctx, id)
	if err != nil {
		return nil, err
	}
	return r.manifest(ctx, id, sig)
}

// manifest opens a manifest, no matter who signed it.
func (r *Repo) manifest(ctx context.Context, id string, sig *signature) (*Manifest, error) {
	if m := r.keptManifest(id, sig); m != nil {
		return m, nil
	}
	rc, err := r.store.Get(ctx, manifestKey(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNoBackup, id)
	}
	if err != nil {
		return nil, err
	}
	o, err := r.openObject("the manifest", rc)
	if err != nil {
		return nil, err
	}
	m, err := newManifest(o, sig)
	if err != nil {
		return nil, fmt.Errorf("backup %s: %w", id, err)
	}
	if m.Header.ID != id {
		m.Close()
		return nil, fmt.Errorf("backup %s: its manifest is that of %s: %w", id, m.Header.ID, ErrDamaged)
	}
	return m, nil
}

// newest is the backup that began last of those that have a manifest, by the clock of this host: one that is dated ahead of it
// counts only when there is no other.
func (r *Repo) newest(ctx context.Context) (string, error) {
	var last []Header // of the newest second
	now := time.Now()
	err := r.store.List(ctx, backupPrefix, func(key string, _ int64) error {
		id, ok := strings.CutSuffix(strings.TrimPrefix(key, backupPrefix), "/manifest")
		if !ok {
			return nil
		}
		h := Header{ID: id, Began: timeOf(id)}
		switch {
		case len(last) == 0 || later(h, last[0], now):
			last = []Header{h}
		case !later(last[0], h, now):
			last = append(last, h)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if len(last) == 0 {
		return "", fleet.WithRemedy(fmt.Errorf("%w: the repository holds none", ErrNoBackup), "risso backup --to takes one")
	}
	if len(last) == 1 {
		return last[0].ID, nil
	}
	entries := make([]Entry, 0, len(last))
	for _, h := range last {
		e := Entry{ID: h.ID, Whole: true}
		if err := r.entry(ctx, &e, true); err != nil {
			return "", err
		}
		entries = append(entries, e)
	}
	return slices.MaxFunc(entries, Entry.Before).ID, nil
}

// later reports whether one backup counts as newer than another: one that is dated ahead of now is older than all that are not.
func later(h, o Header, now time.Time) bool {
	if a, b := fleet.Ahead(h.Began, now), fleet.Ahead(o.Began, now); a != b {
		return b
	}
	return h.Began.After(o.Began)
}

// Newest returns the newest of some backups, the oldest first as Backups gives them, that fit; ok is false when none does. One
// that is dated ahead of now counts only when there is no other.
func Newest(list []Header, now time.Time, fits func(Header) bool) (h Header, ok bool) {
	for _, x := range list {
		if fits(x) && (!ok || !later(h, x, now)) {
			h, ok = x, true
		}
	}
	return h, ok
}

// ahead lists the whole backups that are dated ahead of now.
func (r *Repo) ahead(ctx context.Context, now time.Time) (ids []string, err error) {
	err = r.store.List(ctx, backupPrefix, func(key string, _ int64) error {
		if id, ok := strings.CutSuffix(strings.TrimPrefix(key, backupPrefix), "/manifest"); ok && fleet.Ahead(timeOf(id), now) {
			ids = append(ids, id)
		}
		return nil
	})
	return ids, err
}

// AheadNote says which whole backups are dated ahead of now, if one was taken for the newest; "" when there are none. A clock was
// wrong when they were taken, or is wrong here.
func (r *Repo) AheadNote(ctx context.Context, newest string, now time.Time) (string, error) {
	ids, err := r.ahead(ctx, now)
	switch {
	case err != nil || len(ids) == 0:
		return "", err
	case slices.Contains(ids, newest):
		return "all backups are dated in the future: a clock is wrong; the newest is still chosen by date", nil
	}
	return "dated in the future because a clock was wrong, and so not considered the newest: " + strings.Join(ids, ", "), nil
}

// SetBackNote warns that others in the place are dated in the future; "" if none is. By then it is unknown
// which was taken first.
func (r *Repo) SetBackNote(ctx context.Context, now time.Time) (string, error) {
	ids, err := r.ahead(ctx, now)
	if err != nil || len(ids) == 0 {
		return "", err
	}
	return "The clock was set back, or was wrong before. Taken before this backup, but dated later, are " + strings.Join(ids, ", ") +
		". Once their dates have come they will count as newer than this one: remove them then (risso backup prune --remove ID), or give the backup to restore.", nil
}

// Backups lists the backups that have a manifest, the oldest first. Those whose header is damaged are left out, because one of them
// must not prevent the next backup: Catalogue and Verify report them.
func (r *Repo) Backups(ctx context.Context) ([]Header, error) {
	entries, err := r.Catalogue(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Header, 0, len(entries))
	for _, e := range entries {
		if e.Whole && e.Err == nil {
			list = append(list, e.Header)
		}
	}
	return list, nil
}
