package repo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Suffixes of mirrored logs.
const (
	logIndex  = ".json"
	logPacked = ".zst"
	logSealed = ".zst.age"
)

// loggedIndex is what a copy reads of a mirrored log's index; data/binlog writes it.
type loggedIndex struct {
	Name         string        `json:"name"`
	Size         int64         `json:"size"`
	SHA256       string        `json:"sha256"`
	HMAC         string        `json:"hmac"`
	StoredSHA256 string        `json:"stored_sha256"`
	Before       string        `json:"gtids_before"`
	Signature    *LogSignature `json:"signature"`
}

// logs copies the mirrored binary logs that are finished and are missing at the other place: each before its index, without
// which it is not seen.
func (c *copier) logs(ctx context.Context) error {
	from, err := sizes(ctx, c.from.store, binlogPrefix)
	if err != nil {
		return err
	}
	to, err := sizes(ctx, c.to.store, binlogPrefix)
	if err != nil {
		return err
	}
	var names []string
	for key := range from {
		if name, ok := strings.CutSuffix(key, logIndex); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		log := name // where the mirror lies in a folder of its own it may be uncompressed
		for _, ext := range []string{logPacked, logSealed} {
			if _, packed := from[name+ext]; packed {
				log = name + ext
			}
		}
		if _, there := from[log]; !there {
			continue
		}
		if err := c.log(ctx, name, log, from, to); err != nil {
			return fmt.Errorf("copy the mirrored log %s: %w", log, err)
		}
	}
	return nil
}

// log copies one mirrored log, and its index.
func (c *copier) log(ctx context.Context, name, log string, from, to map[string]int64) error {
	var missing []string
	for _, key := range []string{log, name + logIndex} {
		switch have, ok := to[key]; {
		case !ok:
			missing = append(missing, key)
		case have != from[key]:
			if err := c.differ(ctx, key); err != nil {
				return err
			}
		}
	}
	what := "mirrored log " + strings.TrimPrefix(name, binlogPrefix)
	if len(missing) == 0 {
		return nil
	}
	if c.told[log] || c.told[name+logIndex] {
		c.refuse(Damaged, what, "a part of it is there, and not as here")
		return nil
	}
	x, index, err := c.index(ctx, name)
	if err == nil && !c.o.DryRun {
		for _, key := range missing {
			if key == name+logIndex { // what was looked at, whatever lies there now
				err = c.to.store.Put(ctx, key, strings.NewReader(string(index)))
			} else {
				err = c.sendLog(ctx, key, x)
			}
			if err != nil {
				break
			}
		}
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case told(err):
		c.refuse(kindOf(err), what, err.Error())
		return nil
	case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		return nil
	case err != nil:
		return err
	}
	c.res.Logs++
	c.res.LogBytes += from[log]
	return nil
}

// index reads the index of a log, and asks the policy.
func (c *copier) index(ctx context.Context, name string) (x loggedIndex, b []byte, err error) {
	rc, err := c.from.store.Get(ctx, name+logIndex)
	if err != nil {
		return x, nil, err
	}
	defer rc.Close()
	if b, err = io.ReadAll(io.LimitReader(rc, 16<<20)); err != nil {
		return x, nil, err
	}
	if err := json.Unmarshal(b, &x); err != nil {
		return x, nil, fmt.Errorf("its index: %w: %w", ErrDamaged, err)
	}
	claim := LogClaim{Repository: c.from.ID, Series: path.Base(path.Dir(name)), Name: path.Base(name), Complete: true, Size: x.Size, Sum: x.SHA256 + x.HMAC, Stored: x.StoredSHA256, Before: x.Before}
	return x, b, c.from.AcceptLog(claim, x.Signature)
}

// AcceptLog checks who signed a mirrored log, and asks the policy whether it may be read.
func (r *Repo) AcceptLog(claim LogClaim, s *LogSignature) error {
	signer, err := s.Check(claim)
	if err == nil && r.policy != nil {
		err = r.policy.Accept(r.ID, "mirrored log "+claim.Series+"/"+claim.Name, signer)
	}
	return err
}

// sendLog copies a log as it is stored. What is not what its index says does not arrive.
func (c *copier) sendLog(ctx context.Context, key string, x loggedIndex) error {
	rc, err := c.from.store.Get(ctx, key)
	if err != nil {
		return err
	}
	defer rc.Close()
	want, unpack := x.SHA256, false
	switch {
	case strings.HasSuffix(key, logSealed):
		want = x.StoredSHA256
	case strings.HasSuffix(key, logPacked):
		unpack = true
	}
	if want == "" {
		return c.to.store.Put(ctx, key, rc)
	}
	in := readBeside(rc, func(out io.ReadCloser) error {
		sum, plain := sha256.New(), io.Reader(out)
		if unpack {
			z, err := zstd.NewReader(out, zstd.WithDecoderConcurrency(1))
			if err != nil {
				return err
			}
			defer z.Close()
			plain = z
		}
		if _, err := io.Copy(sum, plain); err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if hex.EncodeToString(sum.Sum(nil)) != want {
			return fmt.Errorf("its bytes are not those of its index: %w", ErrDamaged)
		}
		return nil
	})
	defer in.close()
	return c.to.store.Put(ctx, key, in)
}
