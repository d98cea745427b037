package drill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/rissodb/risso/internal/data/physical"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/sandbox"
)

// What a throw-away server needs beside the rows of a logical backup, and how little room says that a disk was full. The
// server makes room in steps that are larger than what is left then.
const (
	serverRoom = 256 << 20
	fullDisk   = 64 << 20
)

// errServerEnded says that the throw-away server is gone in the middle of the work.
var errServerEnded = errors.New("the throw-away server ended by itself")

// room makes sure that the rows of a logical backup fit on the disk of sandboxes: a server whose disk is full would look like
// a backup that does not restore. Of a physical backup its restore sees to that.
func (r *run) room() error {
	if r.header.Kind != repo.Logical {
		return nil
	}
	dir := r.Dir
	if dir == "" {
		var err error
		if dir, err = sandbox.DefaultDir(); err != nil {
			return err
		}
	}
	free, err := freeIn(dir)
	if err != nil {
		return fmt.Errorf("how much room is there for a sandbox: %w", err)
	}
	if need := r.header.Bytes + r.header.Bytes/4 + serverRoom; free < need { // rows in pages, and indexes
		return &Error{Hint: "free some, or name another folder in RISSO_SANDBOX_DIR",
			Err: fmt.Errorf("%w: %s has room for %d MB, the drill needs about %d", physical.ErrNoRoom, dir, free>>20, need>>20)}
	}
	return nil
}

// freeIn is the room for files in a folder that may not be there yet, in bytes.
func freeIn(dir string) (int64, error) {
	for {
		var st syscall.Statfs_t
		err := syscall.Statfs(dir, &st)
		if err == nil {
			return int64(st.Bavail) * st.Bsize, nil
		}
		up := filepath.Dir(dir)
		if !errors.Is(err, os.ErrNotExist) || up == dir {
			return 0, err
		}
		dir = up
	}
}

// whileAlive does something with the server, and ends it when the server is gone: who works with it would try to reach it
// for minutes. A full disk of this machine says nothing of the backup.
func (r *run) whileAlive(ctx context.Context, do func(context.Context) error) error {
	alive, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	watched := make(chan struct{})
	go func() { // ends with alive, at the latest with this function
		defer close(watched)
		select {
		case <-r.node.Ended():
			stop(errServerEnded)
		case <-alive.Done():
		}
	}()
	err := do(alive)
	gone := errors.Is(context.Cause(alive), errServerEnded)
	stop(nil)
	<-watched
	if err == nil || ctx.Err() != nil {
		return err
	}
	if free, ferr := freeIn(filepath.Dir(r.node.Datadir)); ferr == nil && free < fullDisk {
		return &Error{Hint: "free some, or name another folder in RISSO_SANDBOX_DIR", Err: fmt.Errorf("%w: the disk of the throw-away server is full: %w", physical.ErrNoRoom, err)}
	}
	if gone {
		return fmt.Errorf("%w: %s", errServerEnded, r.node.LastErrors())
	}
	return err
}
