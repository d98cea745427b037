package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/rissodb/risso/internal/fault"
)

// fakeTime are the places where Debian and its relatives, and others, put libfaketime for programs with threads.
var fakeTime = []string{"/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib64/faketime/libfaketimeMT.so.1", "/usr/lib/faketime/libfaketimeMT.so.1", "/usr/local/lib/faketime/libfaketimeMT.so.1"}

// clockFile says how far the node's clock is from the machine's.
func (n *Node) clockFile() string { return filepath.Join(n.dir(), "clock") }

// ownClock lets a server see the time of day as its clock file says. What it measures by the monotonic clock, such as time-outs, is not touched: that is what a
// clock that is set does, too. MySQL asks for the time so often
// that 9.7 starts in half a minute with it, not half a second; MariaDB is as fast as without.
func (n *Node) ownClock(cmd *exec.Cmd) error {
	var lib string
	for _, p := range fakeTime {
		if found, _ := filepath.Glob(p); len(found) > 0 { // the patterns are good
			lib = found[0]
			break
		}
	}
	if lib == "" {
		return fault.New(fault.Usage, "install it (Debian: faketime), or leave clock jumps out", errors.New("libfaketime is needed for a clock that jumps"))
	}
	if _, err := os.Stat(n.clockFile()); err != nil {
		if err := n.Jump(0); err != nil {
			return err
		}
	}
	cmd.Env = append(cmd.Env, "LD_PRELOAD="+lib, "FAKETIME_TIMESTAMP_FILE="+n.clockFile(), "FAKETIME_CACHE_DURATION=1", "FAKETIME_DONT_FAKE_MONOTONIC=1")
	return nil
}

// SlowClock reports whether a server with a clock of its own is too slow to be of use.
func (s Server) SlowClock() bool {
	r, err := recipeFor(s)
	return err == nil && r.slowClock
}

// Jump sets the node's clock so far ahead of the machine's, or behind it; the server sees it within a second.
func (n *Node) Jump(by time.Duration) error {
	if !n.sandbox.Clock {
		return errors.New("the sandbox's nodes have no clocks of their own")
	}
	path := n.clockFile()
	err := os.WriteFile(path+".new", fmt.Appendf(nil, "%+.0fs\n", by.Seconds()), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("set the clock of %s: %w", n.Name, err)
	}
	return nil
}
