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

// Sweep throws away what killed processes left of the sandboxes that they had claimed for a purpose: servers, data, claims.
func Sweep(ctx context.Context, dir, purpose string) error {
	folder, err := claims(dir, purpose)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := sweepOne(ctx, dir, purpose, filepath.Join(folder, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func sweepOne(ctx context.Context, dir, purpose, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil // removed in the meantime
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil // its process lives
	}
	name := filepath.Base(path)
	switch {
	case strings.HasPrefix(name, unnamedPrefix):
		if st, err := f.Stat(); err != nil || time.Since(st.ModTime()) < time.Minute {
			return nil // perhaps about to be locked
		}
	case strings.HasPrefix(name, purpose+"-"):
		if err := Down(ctx, dir, name); err != nil && !gone(err) {
			return err
		}
	}
	return os.Remove(path)
}

// gone reports whether there was no such sandbox: the process was killed before it made one, or after it removed it.
func gone(err error) bool {
	return fault.Code(err) == fault.Usage || errors.Is(err, fs.ErrNotExist)
}
