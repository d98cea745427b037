package prove

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rissodb/risso/internal/sandbox"
)

// A proof's sandbox has a file of its name among the state, locked as long as its process lives: one that is not locked is that of a process
// that was killed.

// claim takes a name for a sandbox; release gives it up.
func claim(state string) (name string, release func(), err error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return "", nil, fmt.Errorf("claim a sandbox: %w", err)
	}
	name = "prove-" + strings.ToLower(rand.Text()[:8])
	path := filepath.Join(state, name+".lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		return "", nil, fmt.Errorf("claim a sandbox: %w", err)
	}
	return name, func() { os.Remove(path); f.Close() }, nil
}

// Sweep throws away the servers that killed proofs left, and names them.
func Sweep(ctx context.Context, state, sandboxes string) (swept []string, err error) {
	entries, err := os.ReadDir(state)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("look for what killed proofs left: %w", err)
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".lock")
		if !ok || !strings.HasPrefix(name, "prove-") {
			continue
		}
		path := filepath.Join(state, e.Name())
		f, openErr := os.OpenFile(path, os.O_RDWR, 0o600)
		if openErr != nil {
			continue // gone meanwhile
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			list, listErr := sandbox.List(sandboxes)
			downErr := listErr
			for _, s := range list {
				if s.Name == name {
					downErr = s.Down(ctx)
					swept = append(swept, name)
				}
			}
			if downErr == nil {
				os.Remove(path)
			} else {
				err = errors.Join(err, fmt.Errorf("throw away sandbox %s: %w", name, downErr))
			}
		}
		f.Close()
	}
	return swept, err
}
