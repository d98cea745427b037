package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/delay"
)

// process identifies one run of a program. A pid alone does not, as pids are reused; pid, start time and boot together are
// unique.
type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // field 22 of /proc/PID/stat, clock ticks since boot
	Boot  string `json:"boot"`  // /proc/sys/kernel/random/boot_id
}

// bootID is the identity of this run of the kernel.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "" // no boot id: the start time has to do
	}
	return strings.TrimSpace(string(b))
}

// procStat reads start time and state letter of a process.
func procStat(pid int) (start uint64, state byte, err error) {
	return statOf(fmt.Sprintf("/proc/%d", pid))
}

// statOf reads them in the folder of a process or of a thread of it.
func statOf(dir string) (start uint64, state byte, err error) {
	b, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return 0, 0, err
	}
	// The name in field 2 may hold anything, also blanks and parentheses.
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return 0, 0, fmt.Errorf("%s/stat has no name", dir)
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 20 {
		return 0, 0, fmt.Errorf("%s/stat has %d fields", dir, len(f))
	}
	start, err = strconv.ParseUint(f[19], 10, 64)
	return start, f[0][0], err
}

// argv reads the arguments of a process; none for a kernel thread or a zombie.
func argv(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// serves reports whether these arguments are those of a server, or of a helper
// that it started, that works on a data directory at or under dir. A person's
// `tail -f` or client in the same folder does not count.
func serves(args []string, dir string) bool {
	under := func(p string) bool {
		p = strings.TrimSuffix(p, "/")
		return p == dir || strings.HasPrefix(p, dir+"/")
	}
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, "--datadir="); ok && under(v) {
			return true
		}
		if a == "--datadir" && i+1 < len(args) && under(args[i+1]) {
			return true // the scripts of a Galera state transfer
		}
		if v, ok := strings.CutPrefix(a, "--config="); ok && filepath.Base(v) == "rsync_sst.conf" && under(v) {
			return true
		}
	}
	return false
}

// alive reports whether this very run still exists and works on dir. The letter
// is that of /proc/PID/stat: 'T' for a stopped process.
func (p process) alive(dir string) (letter byte, ok bool) {
	if p.PID <= 1 || p.Boot != bootID() {
		return 0, false
	}
	start, state, err := procStat(p.PID)
	if err != nil || start != p.Start || state == 'Z' || state == 'X' {
		return 0, false
	}
	return state, serves(argv(p.PID), dir)
}

// runs reports whether a thread of it is neither stopped nor gone.
func (p process) runs() bool {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", p.PID))
	return err == nil && slices.ContainsFunc(tasks, func(dir string) bool {
		_, state, err := statOf(dir)
		return err == nil && !strings.ContainsRune("TtZX", rune(state))
	})
}

// signal sends sig to this very run, or says os.ErrProcessDone. A foreign
// process that got the same pid is never hit: the pid file descriptor is taken
// first and checked second, so that what was checked is what is signalled.
func (p process) signal(sig syscall.Signal, dir string) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	switch {
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL):
		return os.ErrProcessDone
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
		// A kernel before 5.3, or a container that forbids it.
		if _, ok := p.alive(dir); !ok {
			return os.ErrProcessDone
		}
		return killed(syscall.Kill(p.PID, sig))
	case err != nil:
		return fmt.Errorf("take hold of process %d: %w", p.PID, err)
	}
	defer unix.Close(fd)
	if _, ok := p.alive(dir); !ok {
		return os.ErrProcessDone
	}
	return killed(unix.PidfdSendSignal(fd, sig, nil, 0))
}

func killed(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// identify fills in what makes a pid unmistakable.
func identify(pid int) (process, error) {
	start, _, err := procStat(pid)
	if err != nil {
		return process{}, fmt.Errorf("read the start time of process %d: %w", pid, err)
	}
	return process{PID: pid, Start: start, Boot: bootID()}, nil
}

// processesUnder finds every server, and helper of one, of this user that works
// on a data directory at or under dir: also those whose pid was never recorded.
func processesUnder(dir string) ([]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// A foreign user may call a process what they like: it is none of ours.
		if fi, err := e.Info(); err != nil || !ownedByUs(fi) {
			continue
		}
		// Taken before the arguments are read, checked again before a signal.
		p, err := identify(pid)
		if err != nil || !serves(argv(pid), dir) {
			continue
		}
		found = append(found, p)
	}
	return found, nil
}

func ownedByUs(fi os.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// endAll kills every process that works on dir and waits until all have ended.
// It looks again each time, because a dying server may start a helper. It
// returns whom it has ended: their parent may not have noticed yet.
func endAll(ctx context.Context, dir string) (ended []process, err error) {
	for {
		ps, err := processesUnder(dir)
		if err != nil || len(ps) == 0 {
			return ended, err
		}
		for _, p := range ps {
			if err := p.signal(syscall.SIGKILL, dir); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return ended, fmt.Errorf("end process %d: %w", p.PID, err)
			}
			if !slices.Contains(ended, p) {
				ended = append(ended, p)
			}
		}
		if err := delay.For(ctx, 5*time.Millisecond); err != nil {
			return ended, fmt.Errorf("process %d does not stop: %w", ps[0].PID, err)
		}
	}
}

// reapTime is how long awaitReaped waits. Some inits of containers look for
// dead children only every second or two, and some never.
const reapTime = 3 * time.Second

// awaitReaped waits until processes that have ended are out of the process
// list. An orphan stays there as a zombie until init takes notice of it. It
// holds nothing any more, so to wait longer than a moment is not worth it.
func awaitReaped(ctx context.Context, ended []process) {
	ctx, cancel := context.WithTimeout(ctx, reapTime)
	defer cancel()
	for _, p := range ended {
		for {
			start, _, err := procStat(p.PID)
			if err != nil || start != p.Start {
				break
			}
			if delay.For(ctx, 5*time.Millisecond) != nil {
				return
			}
		}
	}
}
