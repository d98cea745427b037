package mirror

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/squeeze"
)

// finisher stores finished logs, one after the other, in its own goroutine until ctx ends. What fails is tried
// again: the log stays where it was written.
func (f *follower) finisher(ctx context.Context) {
	wait, last := time.Second, ""
	for {
		err := f.finishAll(ctx)
		if ctx.Err() != nil {
			return
		}
		pause := time.Hour
		switch {
		case err == nil:
			wait, last = time.Second, ""
		default:
			if err.Error() != last {
				f.note(true, "%v; the log stays in %s until it can be stored", err, f.o.Dir)
				last = err.Error()
			}
			pause, wait = wait, min(2*wait, time.Minute)
		}
		select {
		case <-ctx.Done():
			return
		case <-f.done:
		case <-time.After(pause):
		}
	}
}

// finishAll finishes every log that is followed by another one, then removes what is too old.
func (f *follower) finishAll(ctx context.Context) error {
	f.finishing.Lock()
	defer f.finishing.Unlock()
	logs, err := localLogs(f.o.Dir)
	if err != nil {
		return err
	}
	defer f.takeFinished("")
	for i, l := range logs {
		if i+1 == len(logs) || logs[i+1].key != l.key {
			continue // the last one of its series may still grow
		}
		if !f.takeFinished(l.path) {
			continue
		}
		if f.o.Plain {
			err = f.finishPlain(ctx, l)
		} else {
			err = f.finish(ctx, l)
		}
		if err != nil {
			return fmt.Errorf("store %s: %w", l.name, err)
		}
	}
	if f.o.Keep > 0 {
		list, err := List(ctx, f.o.Place, f.o.Dir)
		if err != nil {
			return err
		}
		_, err = change.Execute(ctx, Purge(f.o.Place, f.o.Dir, Expired(list, f.o.Keep, time.Now())), change.Log{After: func(_ context.Context, s change.Step) error {
			f.note(false, "removed %s: %s", s.Where, s.Why)
			return nil
		}})
		return err
	}
	return nil
}

// finish verifies a log, stores it compressed, reads back what was stored, writes the index and removes the log. Only then
// is there one copy less. A process that dies in between does it again.
func (f *follower) finish(ctx context.Context, l localLog) error {
	name := root + l.key + "/" + l.name
	x, err := f.store(ctx, name, l.path)
	if errors.Is(err, repo.ErrNoKey) {
		// A power cut may bring a removed file back, and not its key: with an index the log is in its place.
		if _, ierr := readIndex(ctx, f.o.Place, name+extIndex); ierr == nil {
			return removeLocal(l.path)
		}
	}
	if err != nil {
		return err
	}
	if err := f.sign(l, &x); err != nil {
		return err
	}
	if err := f.putIndex(ctx, name, x); err != nil {
		return err
	}
	if err := removeLocal(l.path); err != nil {
		return err
	}
	f.note(false, "%s is complete: %d bytes, %s, stored in %d bytes", l.name, x.Size, digits.Counted(x.Transactions, "transaction"), x.Stored)
	if f.o.Place.encrypted() {
		return f.o.Place.Repo.Grown(logName(l.path))
	}
	return nil
}

// removeLocal removes a log that is in its place now, then what was signed of it while it grew.
func removeLocal(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	if err := syncPath(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Remove(path + extSigned); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// store stores a log, compressed and, if the place is encrypted, encrypted, and compares what is there with what was written.
// A process that only has the key to write cannot read an encrypted log back: the compressed log is unpacked again on the way, and what is
// stored is compared with what was sent.
func (f *follower) store(ctx context.Context, name, path string) (binlog.Index, error) {
	p, err := f.pack(ctx, name+f.o.Place.ext(), path)
	if err != nil {
		return p.index, err
	}
	return p.index, f.check(ctx, name, p)
}

// check compares what is stored with what was read of the log.
func (f *follower) check(ctx context.Context, name string, p packed) error {
	x := p.index
	if f.o.Place.encrypted() {
		if p.inside != x.HMAC {
			return fmt.Errorf("the compressed data does not read back as written: %s, not %s", p.inside, x.HMAC)
		}
		return f.o.Place.checkStored(ctx, name, x)
	}
	in, err := f.o.Place.Get(ctx, name+extPacked)
	if err != nil {
		return err
	}
	sum, err := plainSum(in)
	if err != nil || sum != x.SHA256 {
		return fmt.Errorf("the stored data does not read back as written: %w", errors.Join(err, fmt.Errorf("SHA-256 %s, not %s", sum, x.SHA256)))
	}
	return nil
}

// checkStored compares the bytes that are stored of an encrypted log with its index.
func (p Place) checkStored(ctx context.Context, name string, x binlog.Index) error {
	in, err := p.Get(ctx, name+extSealed)
	if err != nil {
		return err
	}
	defer in.Close()
	h := sha256.New()
	n, err := io.Copy(h, in)
	if err != nil {
		return err
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != x.StoredSHA256 || n != x.Stored {
		return fmt.Errorf("%s: the stored data is not what was sent: %d bytes with SHA-256 %s, not %d with %s", x.Name, n, sum, x.Stored, x.StoredSHA256)
	}
	return nil
}

// finishPlain writes only the index.
func (f *follower) finishPlain(ctx context.Context, l localLog) error {
	name := root + l.key + "/" + l.name
	if in, err := f.o.Place.Get(ctx, name+extIndex); err == nil {
		return in.Close()
	}
	x, err := scanFile(ctx, f.o.Place, l.path)
	if err == nil {
		err = f.sign(l, &x)
	}
	if err == nil {
		err = f.putIndex(ctx, name, x)
	}
	if err != nil {
		return err
	}
	if err := os.Remove(l.path + extSigned); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (f *follower) putIndex(ctx context.Context, name string, x binlog.Index) error {
	b, err := json.MarshalIndent(x, "", " ")
	if err != nil {
		return err
	}
	return f.o.Place.Put(ctx, name+extIndex, bytes.NewReader(append(b, '\n')))
}

// packed is what became of a log.
type packed struct {
	index  binlog.Index
	inside string // of an encrypted log, the hash of its bytes as they were unpacked again
}

// pack stores a log compressed, and makes its index: it is read once. What cannot be verified is not stored.
func (f *follower) pack(ctx context.Context, name, path string) (p packed, err error) {
	in, err := openLocal(f.o.Place, path)
	if err != nil {
		return p, err
	}
	defer in.Close()
	r, w := io.Pipe()
	done := make(chan error, 1)
	// Ends when the pipe is read to its end or closed.
	go func() {
		scanned, again := io.Pipe()
		verified := make(chan error, 1)
		go func() { // ends with the pipe
			var err error
			p.index, err = scan(ctx, f.o.Place, filepath.Base(path), scanned)
			scanned.CloseWithError(err)
			verified <- err
		}()
		err := f.compress(w, io.TeeReader(in, again), &p.inside)
		again.CloseWithError(err)
		if verr := <-verified; verr != nil {
			err = verr
		}
		w.CloseWithError(err)
		done <- err
	}()
	sum := sha256.New()
	count := &counter{}
	err = f.o.Place.Put(ctx, name, io.TeeReader(r, io.MultiWriter(sum, count)))
	r.CloseWithError(errors.Join(err, io.ErrClosedPipe))
	if werr := <-done; werr != nil && !errors.Is(werr, io.ErrClosedPipe) {
		err = werr
	}
	p.index.Stored = count.n
	if f.o.Place.encrypted() {
		p.index.Encrypted, p.index.StoredSHA256 = true, hex.EncodeToString(sum.Sum(nil))
	}
	return p, err
}

// counter counts what is written to it.
type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}

// compress writes a log as it is stored. Of one that is encrypted it computes the hash of what is inside.
func (f *follower) compress(w io.Writer, in io.Reader, inside *string) error {
	if !f.o.Place.encrypted() {
		return compressTo(w, in)
	}
	sealed, err := f.o.Place.Repo.Encrypt(w)
	if err != nil {
		return err
	}
	h, err := f.o.Place.Repo.NewHash()
	if err != nil {
		return err
	}
	r, again := io.Pipe()
	done := make(chan error, 1)
	go func() { // ends with the pipe
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
		if err == nil {
			_, err = io.Copy(h, z)
			z.Close()
		}
		r.CloseWithError(err)
		done <- err
	}()
	err = compressTo(io.MultiWriter(sealed, again), in)
	again.CloseWithError(err)
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	*inside = hex.EncodeToString(h.Sum(nil))
	return sealed.Close()
}

func compressTo(w io.Writer, in io.Reader) error {
	e, err := squeeze.NewEncoder()
	if err != nil {
		return err
	}
	z, err := e.Writer(w)
	if err != nil {
		return err
	}
	_, err = io.Copy(z, in)
	return errors.Join(err, z.Close())
}

// plainSum is the SHA-256 of what is in a compressed file, which it closes.
func plainSum(in io.ReadCloser) (string, error) {
	plain, err := binlog.Uncompressed(in)
	if err != nil {
		return "", err
	}
	defer plain.Close()
	h := sha256.New()
	if _, err := io.Copy(h, plain); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Verify reads a finished log and compares it with its index. Of an encrypted one the stored bytes are compared, and what they
// hold, too, if an identity opens them.
func Verify(ctx context.Context, place Place, key string, l Log) error {
	name := root + key + "/" + l.Name
	if err := place.accept(place.complete(key, l.Index), l.Signature); err != nil {
		return err
	}
	if l.Encrypted {
		if err := place.checkStored(ctx, name, l.Index); err != nil || place.Repo == nil || !place.Repo.Readable() {
			return err
		}
	}
	plain, err := openStored(ctx, place, name)
	if err != nil {
		return err
	}
	defer plain.Close()
	sum, want := sha256.New(), l.SHA256
	if l.Encrypted {
		if sum, err = place.Repo.NewHash(); err != nil {
			return err
		}
		want = l.HMAC
	}
	x, err := binlog.ScanSum(ctx, l.Name, plain, sum)
	if err != nil {
		return err
	}
	if x.SHA256 != want || x.Size != l.Size {
		return fmt.Errorf("%s: its bytes do not match its index", l.Name)
	}
	return nil
}

// Decision is a log that can be removed, and why.
type Decision struct {
	Key    string `json:"key"`
	Name   string `json:"name"`
	Stored int64  `json:"bytes"`
	Reason string `json:"reason"`
}

// Expired decides which finished logs are old enough to go: those whose last event is older than keep, from the oldest on
// without a hole, and never the newest of a series.
func Expired(list []Series, keep time.Duration, now time.Time) []Decision {
	var out []Decision
	for _, s := range list {
		for i, l := range s.Logs {
			age := now.Sub(l.Last)
			if !l.Finished || age <= keep || i+1 == len(s.Logs) {
				break
			}
			out = append(out, Decision{Key: s.Key, Name: l.Name, Stored: l.Stored, Reason: fmt.Sprintf("its last event is %s old, over %s", digits.Age(age.Seconds()), digits.Duration(keep))})
		}
	}
	return out
}

// Purge is the removal of such logs, in their order. It may be killed: what is left goes the next time.
func Purge(place Place, dir string, gone []Decision) (p change.Plan) {
	for _, d := range gone {
		p = append(p, change.Step{What: "remove log", Where: d.Key + "/" + d.Name, Why: d.Reason, Do: func(ctx context.Context) error { return remove(ctx, place, dir, d) }})
	}
	return p
}

// remove removes a finished log: the index last, so that what is left of a removal is removed by the next.
func remove(ctx context.Context, place Place, dir string, d Decision) error {
	name := root + d.Key + "/" + d.Name
	if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, ext := range []string{extPacked, extSealed} {
		if err := place.Delete(ctx, name+ext); err != nil {
			return err
		}
	}
	return place.Delete(ctx, name+extIndex)
}

// Gap is a point in a series at which transactions are missing, between one log and the next.
type Gap struct{ After, Before string } // names of logs

func (g Gap) String() string { return "between " + g.After + " and " + g.Before }

// MarshalText writes it as people read it.
func (g Gap) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// Gaps are those of a series.
func (s Series) Gaps() []Gap {
	var out []Gap
	for i, l := range s.Logs[:max(0, len(s.Logs)-1)] {
		next := s.Logs[i+1]
		if binlog.Number(next.Name) == binlog.Number(l.Name)+1 && (l.After.ContainsSet(next.Before) || next.Before.Empty()) {
			continue
		}
		out = append(out, Gap{l.Name, next.Name})
	}
	return slices.Clip(out)
}
