package drill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/data/physical"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sandbox"
)

// What a throw-away server needs in addition to the rows of a logical backup, and how little space means that a disk was full. The
// server allocates space in steps that are larger than what is left then.
const (
	serverRoom = 256 << 20
	fullDisk   = 64 << 20
)

// errServerEnded says that the throw-away server ended in the middle of the work, by itself.
var errServerEnded = errors.New("the throw-away server exited")

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
		return fmt.Errorf("find the free space for a sandbox: %w", err)
	}
	if need := r.header.Bytes + r.header.Bytes/4 + serverRoom; free < need { // rows in pages, and indexes
		return unknown(fmt.Errorf("%w: %s has room for %s, but the drill needs about %s", physical.ErrNoRoom, dir, digits.Bytes(free), digits.Bytes(need)), "free some, or name another folder in RISSO_SANDBOX_DIR")
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

// whileAlive does something with the server, and ends it when the server is gone: otherwise it would be tried again
// for minutes. A full disk of this machine says nothing about the backup, nor does a server that something else ended.
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
	if ctx.Err() != nil {
		return err
	}
	gone := r.gone(ctx, err)
	stop(nil)
	<-watched
	if err == nil && (!gone || len(r.proof.Failures) == 0) { // all was looked at before it ended
		return nil
	}
	if free, ferr := freeIn(filepath.Dir(r.node.Datadir)); err != nil && ferr == nil && free < fullDisk {
		return unknown(fmt.Errorf("%w: the disk of the throw-away server is full: %w", physical.ErrNoRoom, err), "free some, or name another folder in RISSO_SANDBOX_DIR")
	}
	switch {
	case gone && r.node.Killed():
		return killed(sandbox.ErrKilled)
	case gone:
		return fmt.Errorf("%w: %s", errServerEnded, r.node.LastErrors())
	}
	return err
}

// endTime is how long a server that no longer answers may take to end, giving back its memory.
const endTime = 30 * time.Second

// gone reports whether the server has ended. Connections break a moment before it has.
func (r *run) gone(ctx context.Context, err error) bool {
	wait := time.Duration(0)
	c, n := mysql.ClassOf(err), mysql.ErrorNumber(err)
	if mysql.Lost(err) || c == mysql.ClassRefused || n == errno.ServerShutdown || n == errno.ConnectionKilled {
		wait = endTime
	}
	select {
	case <-r.node.Ended():
		return true
	case <-ctx.Done():
	case <-time.After(wait):
	}
	select { // of two that are there select takes any
	case <-r.node.Ended():
		return true
	default:
		return false
	}
}

// killed is the error of a drill in which something else ended what it needs: nothing is known of the backup.
func killed(err error) error {
	return unknown(fmt.Errorf("in the middle of the drill %w; this says nothing about the backup, and nothing is recorded", err),
		"repeat the drill; if the kernel ran out of memory (dmesg), free some, or give the server less: --option innodb_buffer_pool_size=64M")
}

// killedTool reports whether an error is that something else ended a program that works on the files.
func killedTool(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.ExitCode() != 0 && sandbox.Killed(exit.ProcessState)
}
