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
	"strings"
	"time"
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

// proofTime is how the time of a proof is written in its key.
const proofTime = "20060102T150405.000000Z"

// Proof is what a drill of a backup found, as data/drill writes it.
type Proof struct {
	Backup string
	Time   time.Time // when the drill began
	JSON   []byte
}

// AddProof stores what a drill found.
func (r *Repo) AddProof(ctx context.Context, p Proof) error {
	k, err := r.NewKeeper()
	if err != nil {
		return err
	}
	key := proofPrefix + p.Backup + "/" + p.Time.UTC().Format(proofTime)
	object, err := k.pack(p.JSON)
	if err != nil {
		return err
	}
	if err := r.store.Put(ctx, key, bytes.NewReader(object)); err != nil {
		return fmt.Errorf("store the proof of %s: %w", p.Backup, err)
	}
	return nil
}

// maxProof bounds a proof that is read.
const maxProof = 256 << 20

// Proofs hands over what drills found, of a backup or of all ("") in the order of their IDs; an older drill of a backup
// comes first.
func (r *Repo) Proofs(ctx context.Context, backup string, each func(Proof) error) error {
	prefix := proofPrefix
	if backup != "" {
		prefix += backup + "/"
	}
	var keys []string
	err := r.store.List(ctx, prefix, func(key string, _ int64) error {
		keys = append(keys, key)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list the proofs: %w", err)
	}
	for _, key := range keys {
		id, at, _ := strings.Cut(strings.TrimPrefix(key, proofPrefix), "/")
		t, err := time.Parse(proofTime, at)
		if err != nil {
			continue // somebody else's file
		}
		b, err := r.readObject(ctx, "the proof "+key, key)
		if err != nil {
			return err
		}
		if err := each(Proof{Backup: id, Time: t, JSON: b}); err != nil {
			return err
		}
	}
	return nil
}

// readObject reads a small object whole.
func (r *Repo) readObject(ctx context.Context, name, key string) ([]byte, error) {
	rc, err := r.store.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	o, err := r.openObject(name, rc)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	b, err := io.ReadAll(io.LimitReader(o, maxProof+1))
	if err == nil && len(b) > maxProof {
		err = fmt.Errorf("%s: over %d bytes: %w", name, maxProof, ErrDamaged)
	}
	return b, err
}
