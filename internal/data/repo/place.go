package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/rissodb/risso/internal/store/blob"
)

// On lays a repository's store over a place for blobs.
func On(s blob.Store) Store { return place{s} }

type place struct{ blobs blob.Store }

// Put promises that what a key names never changes where it is named by what it holds, so an interrupted upload may go on.
func (p place) Put(ctx context.Context, key string, r io.Reader) error {
	_, err := p.blobs.Put(ctx, key, r, blob.PutOptions{Resume: immutable(key)})
	return err
}

// Create puts an object that does not exist yet, atomically; fs.ErrExist if it does.
func (p place) Create(ctx context.Context, key string, r io.Reader) error {
	_, err := p.blobs.Put(ctx, key, r, blob.PutOptions{Fresh: true})
	if errors.Is(err, blob.ErrExists) {
		return fmt.Errorf("%w (%w)", err, fs.ErrExist)
	}
	return err
}

func (p place) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	rc, err := p.blobs.Get(ctx, key, 0, -1)
	return rc, notExist(err)
}

// GetFrom reads an object from an offset on.
func (p place) GetFrom(ctx context.Context, key string, offset int64) (io.ReadCloser, error) {
	rc, err := p.blobs.Get(ctx, key, offset, -1)
	return rc, notExist(err)
}

func (p place) Size(ctx context.Context, key string) (int64, error) {
	st, err := p.blobs.Stat(ctx, key)
	return st.Size, notExist(err)
}

// Modified is when a key was put, by the clock of the place.
func (p place) Modified(ctx context.Context, key string) (time.Time, error) {
	st, err := p.blobs.Stat(ctx, key)
	return st.Modified, notExist(err)
}

func (p place) List(ctx context.Context, prefix string, f func(key string, size int64) error) error {
	for st, err := range p.blobs.List(ctx, prefix) {
		if err == nil {
			err = f(st.Name, st.Size)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p place) Delete(ctx context.Context, key string) error { return p.blobs.Delete(ctx, key) }

// notExist returns the error that a repository looks for.
func notExist(err error) error {
	if errors.Is(err, blob.ErrNotFound) {
		return fmt.Errorf("%w (%w)", err, fs.ErrNotExist)
	}
	return err
}

// Clean removes what uploads that began before a time left without a name, and counts it.
func (p place) Clean(ctx context.Context, before time.Time, dry bool) (n int64, err error) {
	for l, err := range p.blobs.Leftovers(ctx, before) {
		if err == nil && !dry {
			err = p.blobs.Discard(ctx, l)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
