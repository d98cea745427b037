package drill

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
	"github.com/rissodb/risso/internal/sandbox"
)

// A drill's sandbox has a file of its name in the folder .drill next to it, locked as long as its process lives. A file that
// is not locked is that of a drill that was killed.
const lockFolder = ".drill"

// namePrefix begins the names of drills' sandboxes.
const namePrefix = "drill-"

// unnamedPrefix begins the name of a lock that has none yet.
const unnamedPrefix = ".new-"

func lockDir(dir string) (string, error) {
	if dir == "" {
		var err error
		if dir, err = sandbox.DefaultDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, lockFolder), nil
}

// claim takes a name for a sandbox. It is locked before it becomes visible; release gives it up.
func claim(dir string) (name string, release func(), err error) {
	folder, err := lockDir(dir)
	if err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", nil, fmt.Errorf("drill: %w", err)
	}
	f, err := os.CreateTemp(folder, unnamedPrefix+"*")
	if err != nil {
		return "", nil, fmt.Errorf("drill: %w", err)
	}
	name = namePrefix + strings.ToLower(rand.Text()[:8])
	path := filepath.Join(folder, name)
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		f.Close()
		return "", nil, fmt.Errorf("drill: %w", err)
	}
	return name, func() {
		os.Remove(path)
		f.Close()
	}, nil
}

// Sweep throws away what killed drills left: servers, data, locks.
func Sweep(ctx context.Context, dir string) error {
	folder, err := lockDir(dir)
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
		if err := sweepOne(ctx, dir, filepath.Join(folder, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func sweepOne(ctx context.Context, dir, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil // removed in the meantime
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil // its drill lives
	}
	name := filepath.Base(path)
	switch {
	case strings.HasPrefix(name, unnamedPrefix):
		if st, err := f.Stat(); err != nil || time.Since(st.ModTime()) < time.Minute {
			return nil // perhaps about to be locked
		}
	case strings.HasPrefix(name, namePrefix):
		if err := sandbox.Down(ctx, dir, name); err != nil && !gone(err) {
			return err
		}
	}
	return os.Remove(path)
}

// gone reports whether there was no such sandbox: the drill was killed before it made one, or after it removed it.
func gone(err error) bool {
	return fault.Code(err) == fault.Usage || errors.Is(err, fs.ErrNotExist)
}
