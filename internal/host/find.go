package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
)

// Target says how a server is known; any one field is enough, and they are tried
// in this order.
type Target struct {
	Socket  string // the unix socket it listens on
	Port    int    // the TCP port it listens on
	PIDFile string
	DataDir string
}

// ErrNotFound says that no server of that description runs on this host.
var ErrNotFound = errors.New("no such server on this host")

// FindServer finds the process of a MySQL or MariaDB server. It returns
// ErrNotFound where nothing fits, and with it a gap when the reason is that
// Risso may not look into other users' processes.
func (h *Host) FindServer(t Target) (pid int, gap *fleet.Trouble, err error) {
	f := finder{h: h}
	if t.Socket != "" {
		pid, err = f.bySocket(t.Socket)
	}
	if pid == 0 && t.Port > 0 {
		pid, err = f.byPort(t.Port)
	}
	if pid == 0 && t.PIDFile != "" {
		pid, err = f.byPIDFile(t.PIDFile)
	}
	if pid == 0 && t.DataDir != "" {
		pid, err = f.byDataDir(t.DataDir)
	}
	switch {
	case pid != 0:
		return pid, nil, nil
	case err == nil:
		err = ErrNotFound
	}
	if f.denied > 0 {
		gap = &fleet.Trouble{
			What:   "the server's process",
			Why:    "no permission to see the open files of " + digits.Plural(f.denied, "process", "processes"),
			Remedy: "run Risso as root or as the user of the server, or: setcap cap_sys_ptrace,cap_dac_read_search=ep risso",
		}
	}
	return 0, gap, err
}

// finder is one search.
type finder struct {
	h      *Host
	denied int // processes whose files could not be seen
}

// bySocket finds who listens on a unix socket.
func (f *finder) bySocket(socket string) (int, error) {
	text, err := os.ReadFile(f.h.path("/proc/net/unix"))
	if err != nil {
		return 0, err
	}
	names := map[string]bool{filepath.Clean(socket): true}
	if real, err := filepath.EvalSymlinks(f.h.path(socket)); err == nil {
		names[real] = true
	}
	inodes, relative := map[string]bool{}, map[string]bool{}
	for line := range strings.SplitSeq(string(text), "\n") {
		// Num RefCount Protocol Flags Type St Inode Path; the path may hold blanks.
		p := strings.Fields(line)
		if len(p) < 8 || !listens(p[3]) {
			continue
		}
		at := strings.Index(line, " "+p[6]+" ")
		path := line[at+len(p[6])+2:]
		switch {
		case names[filepath.Clean(path)]:
			inodes[p[6]] = true
		case !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "@") && filepath.Base(path) == filepath.Base(socket):
			relative[p[6]] = true // bound from within its folder: the owner's folder decides
		}
	}
	if pid, err := f.owner(inodes, "socket "+socket, nil); pid != 0 || err != nil {
		return pid, err
	}
	dir := filepath.Dir(socket)
	return f.owner(relative, "socket "+socket, func(pid int) bool { return f.link(pid, "cwd") == dir })
}

// listens tells from the flags of /proc/net/unix: __SO_ACCEPTCON is 1<<16.
func listens(flags string) bool {
	v, err := strconv.ParseUint(flags, 16, 64)
	return err == nil && v&(1<<16) != 0
}

// byPort finds who listens on a TCP port, on any address.
func (f *finder) byPort(port int) (int, error) {
	what := fmt.Sprintf("port %d", port)
	list, read, err := f.h.listeners.list(f.h, time.Second)
	pid, oerr := f.owner(list[fmt.Sprintf("%04X", port)], what, nil)
	if pid == 0 && !read { // it may listen only since then
		list, _, err = f.h.listeners.list(f.h, 0)
		pid, oerr = f.owner(list[fmt.Sprintf("%04X", port)], what, nil)
	}
	return pid, errors.Join(err, oerr)
}

// listeners are the sockets that listen on TCP ports, as they were read last: where many servers are watched, each of them is searched for, and reading all connections of a busy
// machine takes long.
type listeners struct {
	mu    sync.Mutex
	at    time.Time
	ports map[string]map[string]bool // inodes by port, in hexadecimal digits
	err   error
}

// list lists them, as they were so long ago at most; read says that they were read for it.
func (l *listeners) list(h *Host, age time.Duration) (ports map[string]map[string]bool, read bool, err error) {
	const stateListen = "0A" // TCP_LISTEN of include/net/tcp_states.h
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at) < age {
		return l.ports, false, l.err
	}
	l.ports, l.err = map[string]map[string]bool{}, nil
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(h.path(file))
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				l.err = err
			}
			continue
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			if !strings.Contains(line, " "+stateListen+" ") {
				continue
			}
			// sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
			p := strings.Fields(line)
			if len(p) < 10 || p[3] != stateListen {
				continue
			}
			port := p[1][strings.LastIndexByte(p[1], ':')+1:]
			if l.ports[port] == nil {
				l.ports[port] = map[string]bool{}
			}
			l.ports[port][p[9]] = true
		}
	}
	l.at = time.Now()
	return l.ports, true, l.err
}

// owner finds the process that holds one of the sockets. Processes with a
// server's name are looked at first: they are few, and their files are enough.
func (f *finder) owner(inodes map[string]bool, what string, also func(pid int) bool) (int, error) {
	if len(inodes) == 0 {
		return 0, nil
	}
	pids := f.pids()
	sort.SliceStable(pids, func(i, j int) bool { return f.named(pids[i]) && !f.named(pids[j]) })
	stranger := ""
	for _, pid := range pids {
		if !f.holds(pid, inodes) || (also != nil && !also(pid)) {
			continue
		}
		if f.isServer(pid) {
			return pid, nil
		}
		stranger = fmt.Sprintf("%s belongs to %s (process %d), which is not a MySQL or MariaDB server", what, f.h.text(fmt.Sprintf("/proc/%d/comm", pid)), pid)
	}
	if stranger != "" {
		return 0, fmt.Errorf("%s: %w", stranger, ErrNotFound)
	}
	return 0, nil
}

// holds reports whether a process has one of the sockets open.
func (f *finder) holds(pid int, inodes map[string]bool) bool {
	dir := f.h.path(fmt.Sprintf("/proc/%d/fd", pid))
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			f.denied++
		}
		return false
	}
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			if errors.Is(err, fs.ErrPermission) {
				f.denied++
				return false
			}
			continue
		}
		if s, ok := strings.CutPrefix(target, "socket:["); ok && inodes[strings.TrimSuffix(s, "]")] {
			return true
		}
	}
	return false
}

// byPIDFile believes a pid file only when the process is a server: files stay
// behind after a crash, and numbers are used again.
func (f *finder) byPIDFile(path string) (int, error) {
	text, err := os.ReadFile(f.h.path(path))
	if err != nil {
		return 0, fmt.Errorf("pid file: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 {
		return 0, fmt.Errorf("pid file %s holds no number", path)
	}
	if !f.isServer(pid) {
		return 0, fmt.Errorf("pid file %s is out of date: process %d is not a server: %w", path, pid, ErrNotFound)
	}
	return pid, nil
}

// byDataDir finds the server that works in a data directory: it makes it its
// working folder.
func (f *finder) byDataDir(dir string) (int, error) {
	dir = filepath.Clean(dir)
	real := dir
	if r, err := filepath.EvalSymlinks(f.h.path(dir)); err == nil {
		real = r
	}
	for _, pid := range f.pids() {
		if !f.isServer(pid) {
			continue
		}
		if cwd := f.link(pid, "cwd"); cwd != "" && (cwd == dir || cwd == real) {
			return pid, nil
		}
		for _, arg := range f.args(pid) {
			if v, ok := strings.CutPrefix(arg, "--datadir="); ok && filepath.Clean(v) == dir {
				return pid, nil
			}
		}
	}
	return 0, nil
}

func (f *finder) pids() []int {
	entries, err := os.ReadDir(f.h.path("/proc"))
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

func (f *finder) link(pid int, name string) string {
	target, err := os.Readlink(f.h.path(fmt.Sprintf("/proc/%d/%s", pid, name)))
	if errors.Is(err, fs.ErrPermission) {
		f.denied++
	}
	return target
}

func (f *finder) args(pid int) []string {
	b, err := os.ReadFile(f.h.path(fmt.Sprintf("/proc/%d/cmdline", pid)))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
}

// serverNames are what server programs are called, before any suffix such as
// -debug.
var serverNames = []string{"mysqld", "mariadbd"}

func isServerName(program string) bool {
	for _, n := range serverNames {
		if rest, ok := strings.CutPrefix(program, n); ok {
			// mysqld_safe, mysqld_exporter and mysqld_multi only go by the name
			return !strings.HasPrefix(rest, "_") && !strings.HasPrefix(rest, "-safe") && !strings.HasPrefix(rest, "-exporter")
		}
	}
	return false
}

// named tells by the name alone, which is cheap.
func (f *finder) named(pid int) bool {
	return isServerName(f.h.text(fmt.Sprintf("/proc/%d/comm", pid)))
}

// isServer also sees a server that was started through the dynamic loader or a
// tool such as valgrind: its name is further along the command line. A
// command line with blanks in one argument (sh -c "mysqld …") is none.
func (f *finder) isServer(pid int) bool {
	if f.named(pid) {
		return true
	}
	for i, arg := range f.args(pid) {
		if isServerName(filepath.Base(arg)) && (i == 0 || strings.HasPrefix(arg, "/")) && !strings.ContainsAny(arg, " =") {
			return true
		}
	}
	return false
}
