package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Reseed throws away what a node of a replication topology has, and lets it get everything again from a primary, whose binary logs go back to the beginning. The node
// comes back closed to clients. Settings that a data directory has for good have to be the usual ones.
func (n *Node) Reseed(ctx context.Context, primary *Node) error {
	r, err := recipeFor(n.Program)
	if err != nil {
		return err
	}
	password, err := n.sandbox.Password()
	if err != nil {
		return err
	}
	cache, err := DefaultCacheDir()
	if err != nil {
		return err
	}
	scratch := filepath.Join(n.sandbox.Dir, "bootstrap")
	t := template{server: n.Program, recipe: r, cache: cache, scratch: scratch, say: n.sandbox.progress}
	dir, err := t.ensure(ctx)
	if err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	if err := errors.Join(os.RemoveAll(scratch), n.Kill(syscall.SIGKILL), n.unused(ctx)); err != nil {
		return err
	}
	entries, err := os.ReadDir(n.Datadir) // it may be where a file system is mounted
	if err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(n.Datadir, e.Name())); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	if err := copyTree(ctx, n.Datadir, dir, false); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	if err := n.StartClosed(ctx); err != nil {
		return err
	}
	if err := n.follow(ctx, primary, r, password); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	return nil
}
