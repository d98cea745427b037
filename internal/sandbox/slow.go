package sandbox

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/fault"
)

// A disk is made slow by the kernel: the server's process is put into a control group whose writes to the node's own file system are limited. Both hierarchies are
// known: the old one with blkio, and the unified one with io.
const (
	blkioRoot   = "/sys/fs/cgroup/blkio"
	unifiedRoot = "/sys/fs/cgroup"
)

// limits is a hierarchy by which the kernel limits writes.
type limits struct {
	root string
	file string // in a group
	line string // of the file, with the device and the limit
	none string // the limit that is none
}

// limitsHere says by which hierarchy this machine limits writes.
func limitsHere() (limits, error) {
	if _, err := os.Stat(filepath.Join(blkioRoot, "blkio.throttle.write_iops_device")); err == nil {
		return limits{blkioRoot, "blkio.throttle.write_iops_device", "%s %s", "0"}, nil
	}
	b, err := os.ReadFile(filepath.Join(unifiedRoot, "cgroup.controllers"))
	if err == nil && strings.Contains(" "+strings.TrimSpace(string(b))+" ", " io ") {
		// The root hands the controller down to the groups below it; where it does already, this changes nothing.
		if err := os.WriteFile(filepath.Join(unifiedRoot, "cgroup.subtree_control"), []byte("+io"), 0); err != nil {
			return limits{}, fmt.Errorf("limit writes by a control group: %w", err)
		}
		return limits{unifiedRoot, "io.max", "%s wiops=%s", "max"}, nil
	}
	return limits{}, fault.New(fault.Usage, "leave slow disks out", errors.New("this machine has no control groups that limit writes"))
}

// group is the node's control group.
func (n *Node) group(l limits) string {
	h := fnv.New32a()
	h.Write([]byte(n.Datadir))
	return filepath.Join(l.root, fmt.Sprintf("risso-%08x", h.Sum32()))
}

// device is that of the node's own file system, as control groups name it.
func (n *Node) device() (string, error) {
	if n.sandbox.Disk == 0 {
		return "", errors.New("the sandbox's nodes have no disks of their own")
	}
	var st unix.Stat_t
	if err := unix.Stat(n.Datadir, &st); err != nil {
		return "", fmt.Errorf("find the disk of %s: %w", n.Name, err)
	}
	return fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)), nil
}

// Slow lets the server that runs now write to its disk only so many times a second, until Fast.
func (n *Node) Slow(writes int) error {
	l, err := limitsHere()
	if err != nil {
		return err
	}
	device, err := n.device()
	if err != nil {
		return err
	}
	p, _, ok := n.find()
	if !ok {
		return fmt.Errorf("slow the disk of %s: the server does not run", n.Name)
	}
	dir := n.group(l)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("slow the disk of %s: %w", n.Name, err)
	}
	err = os.WriteFile(filepath.Join(dir, l.file), fmt.Appendf(nil, l.line, device, strconv.Itoa(writes)), 0)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(p.PID)), 0)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("slow the disk of %s: %w", n.Name, err), n.Fast())
	}
	return nil
}

// Fast takes the limit away.
func (n *Node) Fast() error {
	l, err := limitsHere()
	if err != nil {
		return nil // so there is no limit
	}
	dir := n.group(l)
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	if device, err := n.device(); err == nil {
		_ = os.WriteFile(filepath.Join(dir, l.file), fmt.Appendf(nil, l.line, device, l.none), 0) // it goes with the group, too
	}
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return fmt.Errorf("free the disk of %s: %w", n.Name, err)
	}
	for _, pid := range strings.Fields(string(procs)) {
		if err := os.WriteFile(filepath.Join(l.root, "cgroup.procs"), []byte(pid), 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("free the disk of %s: %w", n.Name, err)
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("free the disk of %s: %w", n.Name, err)
	}
	return nil
}
