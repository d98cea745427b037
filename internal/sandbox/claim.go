package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
)

// unnamedPrefix begins the name of a claim's file that has none yet.
const unnamedPrefix = ".new-"

// claims is the folder of the claims for a purpose, next to the sandboxes. A sandbox that lives only as long as the process that made it has a
// file of its name there, locked as long as that process lives: a file that is not locked is that of a process that was killed.
func claims(dir, purpose string) (string, error) {
	if dir == "" {
		var err error
		if dir, err = DefaultDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "."+purpose), nil
}

// Claim takes a name, purpose-…, for a sandbox that is not to outlive this process. It is locked before it becomes visible; release gives it up,
// after Down. Sweep takes down what a killed process leaves.
func Claim(dir, purpose string) (name string, release func(), err error) {
	folder, err := claims(dir, purpose)
	if err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", nil, fmt.Errorf("%s: %w", purpose, err)
	}
	f, err := os.CreateTemp(folder, unnamedPrefix+"*")
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", purpose, err)
	}
	name = purpose + "-" + strings.ToLower(rand.Text()[:8])
	path := filepath.Join(folder, name)
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		f.Close()
		return "", nil, fmt.Errorf("%s: %w", purpose, err)
	}
	return name, func() {
		os.Remove(path)
		f.Close()
	}, nil
}

// Passing is a sandbox that lives no longer than the process that made it.
type Passing struct {
	*Sandbox
	Swept   []string // sandboxes of killed processes that were thrown away before
	release func()
}

// UpFor is Up for a purpose, of a sandbox that is not to outlive this process. What killed processes left for that purpose is thrown away first.
func UpFor(ctx context.Context, purpose string, o Options) (*Passing, error) {
	swept, err := sweepFor(ctx, o.Dir, purpose)
	if err != nil {
		return nil, fmt.Errorf("throw away what a killed process left: %w", err)
	}
	name, release, err := Claim(o.Dir, purpose)
	if err != nil {
		return nil, err
	}
	o.Name = name
	s, err := Up(ctx, o)
	if err != nil {
		release()
		return nil, err
	}
	return &Passing{s, swept, release}, nil
}

// ErrFull is the reason when a sandbox has no room on its disk.
var ErrFull = errors.New("no room")

// little is how much free space on a disk, in bytes, explains that a server on it fails.
const little = 16 << 20

// Why says of an error what of the sandbox may be its cause: its disk is full, its server ended.
func (p *Passing) Why(err error) error {
	if err == nil {
		return nil
	}
	var disk unix.Statfs_t
	if unix.Statfs(p.Dir, &disk) == nil {
		if free := int64(disk.Bavail) * disk.Bsize; free < little {
			return fmt.Errorf("%w: %w: the disk of %s has only %s left", err, ErrFull, filepath.Dir(p.Dir), digits.Bytes(free))
		}
	}
	p.Refresh()
	if n := p.Primary(); n.State != StateRunning {
		return fmt.Errorf("%w: the throw-away server has ended; risso sandbox up shows whether one like it stays up on this machine", err)
	}
	return err
}

// End throws it away, also when ctx is over. If that fails the claim stays as long as the process: the next sweep takes it.
func (p *Passing) End(ctx context.Context) error {
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := p.Down(clean); err != nil {
		return fmt.Errorf("throw away sandbox %s: %w", p.Name, err)
	}
	p.release()
	return nil
}

// Sweep throws away what killed processes left of the sandboxes that they had claimed for a purpose: servers, data, claims.
func Sweep(ctx context.Context, dir, purpose string) error {
	_, err := sweepFor(ctx, dir, purpose)
	return err
}

// sweepFor is Sweep, and returns the names of the sandboxes that it threw away.
func sweepFor(ctx context.Context, dir, purpose string) (swept []string, err error) {
	folder, err := claims(dir, purpose)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		was, err := sweepOne(ctx, dir, purpose, filepath.Join(folder, e.Name()))
		if err != nil {
			return swept, err
		}
		if was {
			swept = append(swept, e.Name())
		}
	}
	return swept, nil
}

// sweepOne removes a claim of a process that is gone; was says that there was a sandbox.
func sweepOne(ctx context.Context, dir, purpose, path string) (was bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, nil // removed in the meantime
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false, nil // its process lives
	}
	name := filepath.Base(path)
	switch {
	case strings.HasPrefix(name, unnamedPrefix):
		if st, err := f.Stat(); err != nil || time.Since(st.ModTime()) < time.Minute {
			return false, nil // perhaps about to be locked
		}
	case strings.HasPrefix(name, purpose+"-"):
		if err := Down(ctx, dir, name); err == nil {
			was = true
		} else if !gone(err) {
			return false, err
		}
	}
	return was, os.Remove(path)
}

// gone reports whether there was no such sandbox: the process was killed before it made one, or after it removed it.
func gone(err error) bool {
	return fault.Code(err) == fault.Usage || errors.Is(err, fs.ErrNotExist)
}
