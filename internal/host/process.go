package host

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/fleet"
)

// ErrGone says that a process has ended, or that its number belongs to another one now.
var ErrGone = errors.New("the process has ended")

// Process reads one process and its control group. Like a Host it is for one
// goroutine, except for Gaps.
//
// Context switches are left out on purpose: /proc has them per thread only, and
// those of a server's main thread, which /proc/PID/status shows, say nothing.
type Process struct {
	reader
	pid     int
	started uint64 // clock ticks since boot: with the pid it names a process for good
	stat    procFile
	at      int // position of the first of processTemplates
	fds     fdCount
	group   *cgroup
	gone    bool
	page    float64
	boot    float64
}

var processTemplates = []template{
	{name: "risso_process_cpu_seconds_total", unit: "seconds", kind: Counter, label: "mode", value: "user", help: "Processor time of the process, all threads."},
	{name: "risso_process_cpu_seconds_total", unit: "seconds", kind: Counter, label: "mode", value: "system", help: "Processor time of the process, all threads."},
	{name: "risso_process_major_faults_total", unit: "1", kind: Counter, help: "Page faults that had to read from disk."},
	{name: "risso_process_threads", unit: "1", help: "Threads of the process."},
	{name: "risso_process_virtual_memory_bytes", unit: "bytes", help: "Address space."},
	{name: "risso_process_resident_memory_bytes", unit: "bytes", help: "Memory that is in RAM."},
	{name: "risso_process_start_time_seconds", unit: "seconds", help: "When the process began, Unix time."},
}

// Process opens the reader of a process. It returns ErrGone if there is none.
func (h *Host) Process(pid int) (*Process, error) {
	dir := h.path(fmt.Sprintf("/proc/%d", pid))
	p := &Process{pid: pid, stat: newProcFile(dir + "/stat"), page: float64(os.Getpagesize()), reader: reader{buf: make([]byte, 16<<10)}}
	b, err := p.stat.read(&p.buf)
	if err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
			err = ErrGone
		}
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	st, ok := parseStat(b)
	if !ok {
		p.stat.close()
		return nil, fmt.Errorf("process %d: %s is not understood", pid, p.stat.path)
	}
	p.started, p.boot = st.start, h.bootTime()
	p.at = p.defineAll(processTemplates, "/proc/PID/stat")

	remedy := "run Risso as root or as the user of the server"
	io := &keyed{s: &p.set, at: map[string]slot{
		"read_bytes:": {p.define(Metric{Name: "risso_process_read_bytes_total", Counter: true, Unit: "bytes", Source: "/proc/PID/io",
			Help: "Bytes that the process caused to be read from disks."}), 1},
		"write_bytes:": {p.define(Metric{Name: "risso_process_write_bytes_total", Counter: true, Unit: "bytes", Source: "/proc/PID/io",
			Help: "Bytes that the process caused to be written to disks."}), 1},
	}}
	p.add(dir+"/io", "input and output of the process", remedy, io.parse)

	swap := p.define(Metric{Name: "risso_process_swap_bytes", Unit: "bytes", Source: "/proc/PID/status",
		Help: "Memory of the process that was moved to swap."})
	status := &keyed{s: &p.set, at: map[string]slot{"VmSwap:": {swap, 1024}}}
	p.add(dir+"/status", "swapped memory of the process", remedy, status.parse).hold(10, swap)

	p.fds = fdCount{path: dir + "/fd", fd: -1, at: p.define(Metric{Name: "risso_process_open_fds", Unit: "1",
		Source: "/proc/PID/fd", Help: "Open files and sockets."})}
	p.group = newCgroup(&p.reader, h.root, pid)
	return p, nil
}

// bootTime reads when the host was booted, unix time; zero if unknown.
func (h *Host) bootTime() float64 {
	in := cursor{b: []byte(h.text("/proc/stat"))}
	for l, ok := in.line(); ok; l, ok = in.line() {
		if string(l.field()) == "btime" {
			v, _ := l.uint()
			return float64(v)
		}
	}
	return 0
}

// PID is the number of the process.
func (p *Process) PID() int { return p.pid }

// Started is when the process began; the zero time if the host does not say.
func (p *Process) Started() time.Time {
	if p.boot == 0 {
		return time.Time{}
	}
	return time.Unix(int64(p.boot), 0).Add(time.Duration(p.started) * time.Second / userHZ)
}

// Read reads the process; the values are at the positions of Metrics, as those
// of Host.Read do. It returns ErrGone once the process has ended, for good.
func (p *Process) Read() ([]float64, error) {
	p.clear()
	if p.gone {
		return p.values, ErrGone
	}
	b, err := p.stat.read(&p.buf)
	if err != nil { // ESRCH: an open file of /proc belongs to the process, not to its number
		p.end()
		return p.values, ErrGone
	}
	st, ok := parseStat(b)
	if !ok || st.start != p.started || st.state == 'Z' || st.state == 'X' {
		p.end()
		return p.values, ErrGone
	}
	v := p.values[p.at:]
	v[0], v[1] = float64(st.utime)/userHZ, float64(st.stime)/userHZ
	v[2], v[3] = float64(st.majflt), float64(st.threads)
	v[4], v[5] = float64(st.vsize), float64(st.rss)*p.page
	if p.boot > 0 {
		v[6] = p.boot + float64(p.started)/userHZ
	}
	p.readGroups()
	p.fds.read(&p.reader)
	p.group.read()
	return p.values, nil
}

func (p *Process) end() {
	p.gone = true
	p.Close()
}

// Close closes the files. A closed process reads as gone.
func (p *Process) Close() error {
	p.gone = true
	p.stat.close()
	p.closeGroups()
	p.fds.close()
	p.group.close()
	return nil
}

// procStat is what matters of /proc/PID/stat.
type procStat struct {
	state                                            byte
	majflt, utime, stime, threads, start, vsize, rss uint64
	cutime, cstime                                   uint64 // of children that ended
}

// parseStat reads /proc/PID/stat. The name is in parentheses and may hold
// blanks and parentheses itself, so the last one counts.
func parseStat(b []byte) (s procStat, ok bool) {
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return s, false
	}
	c := cursor{b: bytes.TrimRight(b[end+1:], "\n")}
	state := c.field() // column 3 of proc(5)
	if len(state) != 1 {
		return s, false
	}
	s.state = state[0]
	c.skip(8) // 4 to 11
	s.majflt, _ = c.uint()
	c.skip(1)
	s.utime, _ = c.uint()
	s.stime, _ = c.uint()
	s.cutime, _ = c.uint()
	s.cstime, _ = c.uint()
	c.skip(2)
	s.threads, _ = c.uint()
	c.skip(1)
	s.start, ok = c.uint()
	s.vsize, _ = c.uint()
	s.rss, _ = c.uint()
	return s, ok
}

// fdCount counts the open files of a process.
type fdCount struct {
	path  string
	fd    int
	at    int
	wait  int
	last  float64
	tried bool
}

// countEvery is at how many reads the folder is walked on kernels before 6.2,
// which do not say its size.
const countEvery = 10

func (f *fdCount) read(r *reader) {
	if f.wait > 0 {
		f.wait--
		r.values[f.at] = f.last
		return
	}
	if f.fd < 0 {
		fd, err := unix.Open(f.path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			f.wait, f.last = retryReads, math.NaN()
			r.gaps.set(fleet.Trouble{What: "open files of the process", Why: reason(f.path, err), Remedy: "run Risso as root or as the user of the server"})
			return
		}
		f.fd = fd
		r.gaps.drop("open files of the process")
	}
	var st unix.Stat_t
	if unix.Fstat(f.fd, &st) == nil && st.Size > 0 && f.sizeIsCount() {
		f.last = float64(st.Size)
		r.values[f.at] = f.last
		return
	}
	f.wait = countEvery - 1
	f.last = countEntries(f.fd, r.buf)
	r.values[f.at] = f.last
}

// sizeIsCount reports whether the folder is one of the real /proc: elsewhere its
// size means bytes.
func (f *fdCount) sizeIsCount() bool {
	if f.tried {
		return true
	}
	var fs unix.Statfs_t
	f.tried = unix.Fstatfs(f.fd, &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC
	return f.tried
}

// countEntries counts the entries of an open folder, except . and .. .
func countEntries(fd int, buf []byte) float64 {
	if _, err := unix.Seek(fd, 0, 0); err != nil {
		return math.NaN()
	}
	n := 0
	for {
		m, err := unix.ReadDirent(fd, buf)
		if err != nil {
			return math.NaN()
		}
		if m == 0 {
			return float64(n)
		}
		for b := buf[:m]; len(b) > 19; { // struct linux_dirent64: inode 8, offset 8, length 2, type 1, name
			length := int(b[16]) | int(b[17])<<8
			if length < 20 || length > len(b) {
				return math.NaN()
			}
			if name := b[19:length]; !(name[0] == '.' && (name[1] == 0 || name[1] == '.' && len(name) > 2 && name[2] == 0)) {
				n++
			}
			b = b[length:]
		}
	}
}

func (f *fdCount) close() {
	if f.fd >= 0 {
		unix.Close(f.fd)
		f.fd = -1
	}
}
