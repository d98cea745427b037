package repo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// KeepPart stores a piece of a physical backup.
func (k *Keeper) KeepPart(ctx context.Context, id string, number int, raw []byte) (Part, error) {
	h := sha256.Sum256(raw)
	object, err := k.pack(raw)
	if err != nil {
		return Part{}, err
	}
	if err := k.repo.store.Put(ctx, partKey(id, number), bytes.NewReader(object)); err != nil {
		return Part{}, fmt.Errorf("store part %d of %s: %w", number, id, err)
	}
	return Part{Number: number, Bytes: int64(len(raw)), Hash: hex.EncodeToString(h[:]), Stored: int64(len(object))}, nil
}

// Part reads the raw bytes of a piece of a physical backup. As with Chunk, that they are damaged is known at their end.
func (r *Repo) Part(ctx context.Context, id string, p Part) (io.ReadCloser, error) {
	name := fmt.Sprintf("part %d of backup %s", p.Number, id)
	rc, err := r.store.Get(ctx, partKey(id, p.Number))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing: %w", name, ErrDamaged)
	}
	if err != nil {
		return nil, err
	}
	o, err := r.openObject(name, rc)
	if err != nil {
		return nil, err
	}
	return &checked{object: o, want: p.Hash, sum: sha256.New()}, nil
}

// RemoveParts removes the pieces of a physical backup that was given up. It refuses one that has a manifest.
func (r *Repo) RemoveParts(ctx context.Context, id string) error {
	if _, err := r.store.Size(ctx, manifestKey(id)); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("backup %s is whole: its parts stay: %w", id, err)
	}
	var keys []string
	err := r.store.List(ctx, partPrefix(id), func(key string, _ int64) error {
		keys = append(keys, key)
		return nil
	})
	for _, key := range keys {
		if err == nil {
			err = r.store.Delete(ctx, key)
		}
	}
	if err != nil {
		return fmt.Errorf("remove the parts of %s: %w", id, err)
	}
	return nil
}
