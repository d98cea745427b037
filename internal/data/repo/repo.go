// Package repo is a backup repository: what lies where in a place, how it is compressed, encrypted and checked. It knows no
// server and no SQL. FORMAT.md describes the layout.
//
// Whatever is named by a hash is written once and never changed; a manifest is written last. So a process that is killed
// leaves chunks that nobody asks for, and never a backup that looks whole and is not.
package repo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

// Store is what a repository needs of the place it lies in. Keys are paths with slashes.
type Store interface {
	// Put writes an object, whole or not at all, durable when it returns. What was there is replaced.
	Put(ctx context.Context, key string, r io.Reader) error
	// Get reads an object; an error is fs.ErrNotExist when there is none.
	Get(ctx context.Context, key string) (io.ReadCloser, error)
	// Size gives an object's size in bytes; an error is fs.ErrNotExist when there is none.
	Size(ctx context.Context, key string) (int64, error)
	// List gives the objects whose keys begin with prefix, in the order of their keys.
	List(ctx context.Context, prefix string, f func(key string, size int64) error) error
	// Delete removes an object; that there is none is no error.
	Delete(ctx context.Context, key string) error
}

// Errors of a repository.
var (
	ErrNoRepository = errors.New("there is no backup repository")
	ErrNoBackup     = errors.New("there is no such backup")
)

// config is the repository's own file.
type config struct {
	Format  int       `json:"format"`
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
}

// Repo is an open repository. Its methods may be called from several goroutines.
type Repo struct {
	ID    string
	store Store
}

// Open opens a repository; ErrNoRepository when the place holds none.
func Open(ctx context.Context, s Store) (*Repo, error) {
	rc, err := s.Get(ctx, configKey)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoRepository
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
	if c.Format > Format {
		return nil, fmt.Errorf("the repository has format %d, this risso reads up to %d: take a newer one", c.Format, Format)
	}
	return &Repo{ID: c.ID, store: s}, nil
}

// Create opens a repository, and makes one where there is none.
func Create(ctx context.Context, s Store) (*Repo, error) {
	r, err := Open(ctx, s)
	if !errors.Is(err, ErrNoRepository) {
		return r, err
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	b, err := json.Marshal(config{Format: Format, ID: hex.EncodeToString(id[:]), Created: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return nil, err
	}
	if err := s.Put(ctx, configKey, bytes.NewReader(append(b, '\n'))); err != nil {
		return nil, fmt.Errorf("make a repository: %w", err)
	}
	return Open(ctx, s)
}

// Begin notes that a backup runs, so that what it writes is not taken for rubbish, and that a broken one can be told.
func (r *Repo) Begin(ctx context.Context, h Header) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return r.store.Put(ctx, unfinishedKey(h.ID), bytes.NewReader(b))
}

// Abandon takes back what Begin noted. Chunks stay for the next backup, or for prune.
func (r *Repo) Abandon(ctx context.Context, id string) error {
	return r.store.Delete(ctx, unfinishedKey(id))
}

// Finish writes the manifest: from then on there is a backup.
func (r *Repo) Finish(ctx context.Context, h Header, d *Draft) error {
	pr, pw := io.Pipe()
	done := make(chan error, 1)
	go func() { // ends when Put has read all, or has closed pr
		err := d.writeObject(pw, h)
		pw.CloseWithError(err)
		done <- err
	}()
	err := r.store.Put(ctx, manifestKey(h.ID), pr)
	pr.CloseWithError(err)
	if werr := <-done; err == nil {
		err = werr
	}
	if err != nil {
		return fmt.Errorf("write the manifest of %s: %w", h.ID, err)
	}
	return r.store.Delete(ctx, unfinishedKey(h.ID))
}

// Manifest opens the manifest of a backup; "" is the newest. The caller closes it.
func (r *Repo) Manifest(ctx context.Context, id string) (*Manifest, error) {
	if id == "" {
		list, err := r.Backups(ctx)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("%w: the repository holds none", ErrNoBackup)
		}
		id = list[len(list)-1].ID
	}
	rc, err := r.store.Get(ctx, manifestKey(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNoBackup, id)
	}
	if err != nil {
		return nil, err
	}
	o, err := openObject("the manifest", rc)
	if err != nil {
		return nil, err
	}
	m, err := newManifest(o)
	if err != nil {
		return nil, fmt.Errorf("backup %s: %w", id, err)
	}
	if m.Header.ID != id {
		m.Close()
		return nil, fmt.Errorf("backup %s: its manifest is that of %s: %w", id, m.Header.ID, ErrDamaged)
	}
	return m, nil
}

// Backups lists the backups that are whole as far as their manifests are there, the oldest first.
func (r *Repo) Backups(ctx context.Context) ([]Header, error) {
	var ids []string
	err := r.store.List(ctx, backupPrefix, func(key string, _ int64) error {
		if id, ok := strings.CutSuffix(strings.TrimPrefix(key, backupPrefix), "/manifest"); ok {
			ids = append(ids, id)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the backups: %w", err)
	}
	list := make([]Header, 0, len(ids))
	for _, id := range ids {
		m, err := r.Manifest(ctx, id)
		if err != nil {
			return nil, err
		}
		list = append(list, m.Header)
		m.Close()
	}
	return list, nil
}
