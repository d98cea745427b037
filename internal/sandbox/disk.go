package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/fault"
)

// A node may have a file system of its own for its data: an image in its folder, mounted at its data directory. It can be filled, and made slow, without harm to
// anything else on the machine.

// image is the file that holds the file system.
func (n *Node) image() string { return filepath.Join(n.dir(), "disk.img") }

// makeDisk makes the file system, if the sandbox has such.
func (n *Node) makeDisk(ctx context.Context) error {
	size := n.sandbox.Disk
	if size == 0 {
		return nil
	}
	if os.Geteuid() != 0 {
		return fault.New(fault.Usage, "run it as root, or without disks of its own", errors.New("only root can mount file systems"))
	}
	f, err := os.OpenFile(n.image(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return err
	}
	if err := os.Mkdir(n.Datadir, 0o700); err != nil {
		return err
	}
	if err := tool(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", n.image()); err != nil {
		return err
	}
	if err := tool(ctx, "mount", "-o", "loop", n.image(), n.Datadir); err != nil {
		return err
	}
	// A server would take it for a schema.
	return os.Remove(filepath.Join(n.Datadir, "lost+found"))
}

// unmount takes the node's file system away, if it has one that is mounted.
func (n *Node) unmount() error {
	for {
		switch err := unix.Unmount(n.Datadir, unix.MNT_DETACH); {
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT): // nothing is mounted there
			return nil
		case err != nil:
			return fmt.Errorf("node %s: unmount %s: %w", n.Name, n.Datadir, err)
		}
	}
}

// filler is the file that fills a node's file system.
func (n *Node) filler() string { return filepath.Join(n.Datadir, "risso-filler.tmp") }

// Fill leaves no room on the node's file system, until Empty. It refuses if the node has none of its own.
func (n *Node) Fill(ctx context.Context) error {
	if n.sandbox.Disk == 0 {
		return errors.New("the sandbox's nodes have no disks of their own")
	}
	f, err := os.OpenFile(n.filler(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("fill the disk of %s: %w", n.Name, err)
	}
	defer f.Close()
	// In steps that get smaller: what is left in the end is less than a block.
	at := int64(0)
	for step := int64(64 << 20); step >= 4096 && ctx.Err() == nil; {
		err := unix.Fallocate(int(f.Fd()), 0, at, step)
		switch {
		case err == nil:
			at += step
		case errors.Is(err, unix.ENOSPC):
			step /= 2
		case !errors.Is(err, unix.EINTR):
			return fmt.Errorf("fill the disk of %s: %w", n.Name, err)
		}
	}
	return ctx.Err()
}

// Empty makes room again.
func (n *Node) Empty() error {
	if err := os.Remove(n.filler()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("empty the disk of %s: %w", n.Name, err)
	}
	return nil
}

// tool runs a program of the system.
func tool(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}
