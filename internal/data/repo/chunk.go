package repo

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

	"github.com/rissodb/risso/internal/squeeze"
)

// Keeper puts chunks into a repository. It belongs to one goroutine; its buffers are used again and again.
type Keeper struct {
	repo   *Repo
	zw     *squeeze.Encoder
	out    []byte
	packed []byte // compressed, on the way to be encrypted

	// Plain leaves rows as they are, for places that are faster than the processor: still in a zstd frame.
	Plain bool
}

// squeeze appends a zstd frame of raw bytes.
func (k *Keeper) squeeze(to, raw []byte) ([]byte, error) {
	if k.Plain {
		return appendPlainFrame(to, raw), nil
	}
	return k.zw.Append(to, raw)
}

// pack makes an object of raw bytes. It is good until the next call.
func (k *Keeper) pack(raw []byte) ([]byte, error) {
	if k.repo.cipher == nil {
		frame, err := k.squeeze(k.out[:0], raw)
		if err != nil {
			return nil, err
		}
		k.out = appendSeal(frame)
		return k.out, nil
	}
	var err error
	if k.packed, err = k.squeeze(k.packed[:0], raw); err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(k.out[:0])
	w, err := k.repo.cipher.encrypt(b)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(k.packed); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	k.out = appendSeal(b.Bytes())
	return k.out, nil
}

// NewKeeper returns a keeper.
func (r *Repo) NewKeeper() (*Keeper, error) {
	zw, err := squeeze.NewEncoder()
	if err != nil {
		return nil, err
	}
	return &Keeper{repo: r, zw: zw}, nil
}

// Kept is the result of storing a chunk.
type Kept struct {
	Hash   string
	Stored int64 // size of the object, in bytes
	New    bool  // it was not there before
}

// Keep stores the rows of a chunk, unless the repository has them.
func (k *Keeper) Keep(ctx context.Context, schema, table string, raw []byte) (Kept, error) {
	kept, key, err := k.known(ctx, schema, table, raw)
	if err != nil || key == "" {
		return kept, err
	}
	if k.Plain && k.repo.cipher == nil {
		object := newPlainObject(raw)
		kept.Stored = object.Size()
		return kept, k.repo.putChunk(ctx, key, object, schema, table)
	}
	object, err := k.pack(raw)
	if err != nil {
		return kept, err
	}
	kept.Stored = int64(len(object))
	return kept, k.repo.putChunk(ctx, key, bytes.NewReader(object), schema, table)
}

// KeepLater is Keep without the waiting: put, which any goroutine may call once, stores the rows. It is nil if the repository
// has them.
func (k *Keeper) KeepLater(ctx context.Context, schema, table string, raw []byte) (kept Kept, put func(context.Context) error, err error) {
	kept, key, err := k.known(ctx, schema, table, raw)
	if err != nil || key == "" {
		return kept, nil, err
	}
	object, err := k.pack(raw)
	if err != nil {
		return kept, nil, err
	}
	object = bytes.Clone(object)
	kept.Stored = int64(len(object))
	r := k.repo
	return kept, func(ctx context.Context) error {
		return r.putChunk(ctx, key, bytes.NewReader(object), schema, table)
	}, nil
}

// known hashes the rows of a chunk and checks whether the repository has them; else it returns the key to store them by.
func (k *Keeper) known(ctx context.Context, schema, table string, raw []byte) (kept Kept, key string, err error) {
	sum, err := k.repo.newHash()
	if err != nil {
		return kept, "", err
	}
	sum.Write(raw)
	kept.Hash = hex.EncodeToString(sum.Sum(nil))
	key = chunkKey(schema, table, kept.Hash)
	kept.Stored, err = k.repo.store.Size(ctx, key)
	if !errors.Is(err, fs.ErrNotExist) {
		return kept, "", err
	}
	kept.New = true
	return kept, key, nil
}

func (r *Repo) putChunk(ctx context.Context, key string, object io.Reader, schema, table string) error {
	if err := r.store.Put(ctx, key, object); err != nil {
		return fmt.Errorf("store a chunk of %s.%s: %w", schema, table, err)
	}
	return nil
}

// KeepStream stores a chunk that is too large for memory: write hands it over piece by piece. It passes through a file
// without a name, because its name is known only at its end.
func (k *Keeper) KeepStream(ctx context.Context, schema, table string, write func(io.Writer) error) (Kept, error) {
	var kept Kept
	f, err := os.CreateTemp("", "risso-chunk-*")
	if err != nil {
		return kept, err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return kept, err
	}
	sum, err := k.repo.newHash()
	if err != nil {
		return kept, err
	}
	sealed := newSealWriter(f)
	enc, err := k.repo.cipher.encrypt(sealed)
	if err != nil {
		return kept, err
	}
	zw, err := k.zw.Writer(enc)
	if err != nil {
		return kept, err
	}
	if err := write(io.MultiWriter(zw, sum)); err != nil {
		return kept, err
	}
	if err := zw.Close(); err != nil {
		return kept, err
	}
	if err := enc.Close(); err != nil {
		return kept, err
	}
	if err := sealed.seal(); err != nil {
		return kept, err
	}
	kept.Hash = hex.EncodeToString(sum.Sum(nil))
	key := chunkKey(schema, table, kept.Hash)
	if size, err := k.repo.store.Size(ctx, key); err == nil {
		kept.Stored = size
		return kept, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return kept, err
	}
	if kept.Stored, err = f.Seek(0, io.SeekEnd); err != nil {
		return kept, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return kept, err
	}
	kept.New = true
	if err := k.repo.store.Put(ctx, key, f); err != nil {
		return kept, fmt.Errorf("store a chunk of %s.%s: %w", schema, table, err)
	}
	return kept, nil
}

// Chunk reads the raw rows of a chunk. The reader fails with ErrDamaged at the end when they are not those that were stored:
// a caller that must not act on damaged rows reads to the end first. The caller closes it.
func (r *Repo) Chunk(ctx context.Context, schema, table, hash string) (io.ReadCloser, error) {
	rc, err := r.store.Get(ctx, chunkKey(schema, table, hash))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("chunk %.12s of %s.%s is missing: %w", hash, schema, table, ErrDamaged)
	}
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("chunk %.12s of %s.%s", hash, schema, table)
	sum, err := r.newHash()
	if err != nil {
		rc.Close()
		return nil, err
	}
	o, err := r.openObject(name, rc)
	if err != nil {
		return nil, err
	}
	return &checked{object: o, want: hash, sum: sum}, nil
}

// checked hashes what passes through it.
type checked struct {
	*object
	want string
	sum  hash.Hash
}

func (c *checked) Read(b []byte) (int, error) {
	n, err := c.object.Read(b)
	c.sum.Write(b[:n])
	if errors.Is(err, io.EOF) && hex.EncodeToString(c.sum.Sum(nil)) != c.want {
		return n, fmt.Errorf("%s: its rows do not match its name: %w", c.name, ErrDamaged)
	}
	return n, err
}
