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

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/digits"
)

// logs plans to copy the mirrored binary logs that are finished and are missing at the other place.
func (c *copier) logs(ctx context.Context, would *Copied) error {
	from, err := sizes(ctx, c.from.store, LogPrefix)
	if err != nil {
		return err
	}
	to, err := sizes(ctx, c.to.store, LogPrefix)
	if err != nil {
		return err
	}
	var names []string
	for key := range from {
		if name, ok := strings.CutSuffix(key, LogIndex); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		log := name // if the mirror has a separate folder it may be uncompressed
		for _, ext := range []string{LogPacked, LogSealed} {
			if _, packed := from[name+ext]; packed {
				log = name + ext
			}
		}
		size, there := from[log]
		var missing []string
		if there {
			missing, err = c.lacksLog(ctx, name, log, from, to)
		} else {
			err = c.gone(ctx, name)
		}
		if err != nil {
			return fmt.Errorf("copy the mirrored log %s: %w", log, err)
		}
		if len(missing) == 0 {
			continue
		}
		would.Logs++
		would.LogBytes += size
		would.Steps = append(would.Steps, change.Step{What: "copy", Where: logWords(name), Why: digits.Bytes(size), Do: func(ctx context.Context) error {
			done, err := c.log(ctx, name, missing)
			if err != nil {
				return fmt.Errorf("copy the mirrored log %s: %w", log, err)
			}
			if done {
				c.res.Logs++
				c.res.LogBytes += size
			}
			return nil
		}})
	}
	return nil
}

// lacksLog says which parts of a mirrored log are missing at the other place, and can be copied: the log before its index, without which it is not
// seen.
func (c *copier) lacksLog(ctx context.Context, name, log string, from, to map[string]int64) (missing []string, err error) {
	for _, key := range []string{log, name + LogIndex} {
		switch have, ok := to[key]; {
		case !ok:
			missing = append(missing, key)
		case have != from[key]:
			if err := c.differ(ctx, key); err != nil {
				return nil, err
			}
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	if len(missing) == 1 {
		switch fits, err := c.fits(ctx, log, name+LogIndex, missing[0]); {
		case errors.Is(err, fs.ErrNotExist): // removed in the meantime
			return nil, nil
		case err != nil:
			return nil, err
		case !fits:
			c.refuse(Damaged, logWords(name), "a part of it is there, but differs from the one here")
			return nil, nil
		}
	}
	_, _, err = c.index(ctx, name)
	if ok, err := c.came(ctx, name, err); !ok {
		return nil, err
	}
	return missing, nil
}

// log copies what is missing of one mirrored log.
func (c *copier) log(ctx context.Context, name string, missing []string) (done bool, err error) {
	x, index, err := c.index(ctx, name)
	for _, key := range missing {
		switch {
		case err != nil:
		case key == name+LogIndex: // what was checked, whatever is there now
			err = c.to.store.Put(ctx, key, strings.NewReader(string(index)))
		default:
			err = c.sendLog(ctx, key, x)
		}
	}
	return c.came(ctx, name, err)
}

// came reports whether there was no error with a log. An error that concerns nothing else is noted.
func (c *copier) came(ctx context.Context, name string, err error) (bool, error) {
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist) && !told(err): // removed in the meantime
		return false, nil
	}
	return false, c.only(ctx, logWords(name), err)
}

// logWords names a mirrored log for people.
func logWords(name string) string { return "mirrored log " + strings.TrimPrefix(name, LogPrefix) }

// fits reports whether the one part of a log that the other place has is the same as here: what comes has to belong to it.
func (c *copier) fits(ctx context.Context, log, index, missing string) (bool, error) {
	there := log
	if missing == log {
		there = index
	}
	if c.told[there] {
		return false, nil
	}
	same, err := c.same(ctx, there)
	if err == nil && !same {
		err = c.differ(ctx, there)
	}
	return same, err
}

// gone reports a log whose index says that it was stored, but which is missing.
func (c *copier) gone(ctx context.Context, name string) error {
	x, _, err := c.index(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // removed in the meantime: its index is removed last
	case errors.Is(err, ErrDamaged):
		c.refuse(Damaged, logWords(name), err.Error())
	case err != nil && !told(err):
		return err
	case x.Stored > 0:
		c.refuse(Missing, logWords(name), "its index is there, but the log is not")
	}
	return nil
}

// index reads the index of a log, and asks the policy.
func (c *copier) index(ctx context.Context, name string) (x MirroredLog, b []byte, err error) {
	rc, err := c.from.store.Get(ctx, name+LogIndex)
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
	x.Name = path.Base(name)
	return x, b, x.Signature.Accept(c.from.policy, c.from.ID, x.Claim(c.from.ID, path.Base(path.Dir(name))))
}

// sendLog copies a log as it is stored. What is not what its index says does not arrive.
func (c *copier) sendLog(ctx context.Context, key string, x MirroredLog) error {
	rc, err := c.from.store.Get(ctx, key)
	if err != nil {
		return err
	}
	defer rc.Close()
	want, unpack := x.SHA256, false
	switch {
	case strings.HasSuffix(key, LogSealed):
		want = x.StoredSHA256
	case strings.HasSuffix(key, LogPacked):
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
			return fmt.Errorf("its bytes do not match its index: %w", ErrDamaged)
		}
		return nil
	})
	defer in.close()
	return c.to.store.Put(ctx, key, in)
}
