package repo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"strings"
)

// compare notes what differs of a backup that is at both places, as far as sizes and its signature show.
func (c *copier) compare(ctx context.Context, id string) error {
	for _, key := range []string{headKey(id), objectsKey(id), signatureKey(id), manifestKey(id)} {
		h, isHere := c.here[key]
		t, isThere := c.there[key]
		differs := isHere && isThere && h != t || isThere && !isHere && key == signatureKey(id)
		if isHere && isThere && !differs && key == signatureKey(id) {
			same, err := c.same(ctx, key)
			if err != nil {
				return err
			}
			differs = !same
		}
		if differs {
			if err := c.differ(ctx, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// same reports whether an object is the same at both places, to the last byte.
func (c *copier) same(ctx context.Context, key string) (bool, error) {
	var sums [2][]byte
	for i, r := range []*Repo{c.from, c.to} {
		rc, err := r.store.Get(ctx, key)
		if err != nil {
			return false, fmt.Errorf("%s: %w", key, err)
		}
		h := sha256.New()
		_, err = io.Copy(h, rc)
		rc.Close()
		if err != nil {
			return false, fmt.Errorf("%s: %w", key, err)
		}
		sums[i] = h.Sum(nil)
	}
	return bytes.Equal(sums[0], sums[1]), nil
}

// differ notes, once, that an object is not the same at both places, with what is known of each.
func (c *copier) differ(ctx context.Context, key string) error {
	if c.told[key] {
		return nil
	}
	c.told[key] = true
	d := Difference{Key: key}
	for r, side := range map[*Repo]*Side{c.from: &d.Here, c.to: &d.There} {
		var err error
		if *side, err = c.side(ctx, r, key); err != nil {
			return err
		}
	}
	c.res.Different = append(c.res.Different, d)
	return nil
}

// side reads what one place has of an object.
func (c *copier) side(ctx context.Context, r *Repo, key string) (s Side, err error) {
	rc, err := r.store.Get(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return Side{State: "it is missing"}, nil
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", key, err)
	}
	n := &counting{ReadCloser: rc}
	defer n.Close()
	in, good := io.Reader(n), ""
	if !strings.HasPrefix(key, LogPrefix) {
		in, good = &sealed{r: n, sum: sha256.New()}, "its seal matches"
	}
	if want, sum := c.contents(key); want != "" {
		held := c.from.holding(in, path.Base(key), want, sum)
		defer held.close()
		in, good = held, "its contents match its name"
	}
	h := sha256.New()
	_, err = io.Copy(h, in)
	switch {
	case errors.Is(err, ErrDamaged):
		_, err = io.Copy(io.Discard, n) // for its size
		s.State = "damaged"
	case good == "":
		s.State = "SHA-256 " + hex.EncodeToString(h.Sum(nil)[:8]) + "…"
	default:
		s.State = good
	}
	s.Bytes = n.n
	if err != nil {
		return s, fmt.Errorf("%s: %w", key, err)
	}
	return s, nil
}

// holding passes an object on. At its end it fails with ErrDamaged when it does not hold what has the hash want. The caller closes it.
func (r *Repo) holding(in io.Reader, name, want string, sum hash.Hash) *beside {
	return readBeside(in, func(out io.ReadCloser) error {
		o, err := r.openObject(name, out)
		if err != nil {
			return err
		}
		defer o.zr.Close()
		if _, err := io.Copy(sum, o); err != nil {
			return err
		}
		if hex.EncodeToString(sum.Sum(nil)) != want {
			return fmt.Errorf("%s: its contents do not match its name: %w", name, ErrDamaged)
		}
		return nil
	})
}

// beside passes bytes on, and reads them at the same time to find out whether they are good.
type beside struct {
	in   io.Reader
	to   *io.PipeWriter
	done chan error // nil: err is known
	err  error
}

// readBeside hands what is read of in to check as well: its error replaces the end. The caller closes it.
func readBeside(in io.Reader, check func(io.ReadCloser) error) *beside {
	out, to := io.Pipe()
	b := &beside{in: in, to: to, done: make(chan error, 1)}
	go func() { // ends with the pipe, which close closes
		err := check(out)
		out.CloseWithError(err) // the writer gets it
		b.done <- err
	}()
	return b
}

func (b *beside) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	if n > 0 {
		if _, werr := b.to.Write(p[:n]); werr != nil && b.wait() != nil {
			return n, b.err
		}
	}
	if errors.Is(err, io.EOF) {
		b.to.Close()
		if werr := b.wait(); werr != nil {
			return n, werr
		}
	}
	return n, err
}

// wait waits for the end of the concurrent reading.
func (b *beside) wait() error {
	if b.done != nil {
		b.err, b.done = <-b.done, nil
	}
	return b.err
}

// close releases what was not read to its end, too.
func (b *beside) close() {
	b.to.CloseWithError(io.ErrUnexpectedEOF)
	_ = b.wait() // reported by Read
}
