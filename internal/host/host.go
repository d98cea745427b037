// Package host reads one Linux host: processors, pressure, memory, disks,
// network, file systems, and a server's process with its control group.
//
// It is made to be read every second. Files stay open and are read into one
// buffer; text is parsed without making strings; in steady state a read
// allocates nothing. What the host does not offer (no PSI, a container without
// /proc/diskstats, a hung NFS mount) is no error but a fleet.Gap with its reason
// and what mends it.
package host

import (
	"errors"
	"fmt"
	"path/filepath"
	"sort"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/fleet"
)

// Options say which host is read.
type Options struct {
	// Root is what stands before every path: "/" for this host, a folder with
	// proc, sys and etc in it for another tree. Empty means "/".
	Root string
	// FilesystemEvery is how often file systems are asked for their free space;
	// zero means 10 s. Between two times the last figures stand.
	FilesystemEvery time.Duration
}

// Host reads one Linux host. Its methods are for one goroutine, but for Gaps,
// which any goroutine may call.
type Host struct {
	set
	root   string
	buf    []byte
	groups []*group
	fs     *filesystems
	gaps   gapList
	closed bool
}

// group is one file and what is made of it.
type group struct {
	file     procFile
	parse    func([]byte)
	what     string // for the gap: "disk statistics"
	remedy   string
	optional bool // its absence is nothing to speak of
	wait     int  // reads to let pass before the next try
}

// retryReads is how many reads a missing file is left alone before it is tried again.
const retryReads = 30

// New opens a host. It fails only where there is no /proc at all; what else is
// missing is told by Gaps.
func New(o Options) (*Host, error) {
	if o.Root == "" {
		o.Root = "/"
	}
	if o.FilesystemEvery <= 0 {
		o.FilesystemEvery = 10 * time.Second
	}
	h := &Host{root: o.Root, buf: make([]byte, 32<<10)}
	var st unix.Stat_t
	if err := unix.Stat(h.path("/proc/stat"), &st); err != nil {
		return nil, fmt.Errorf("read host: %s: %w (is /proc mounted there?)", h.path("/proc/stat"), err)
	}
	h.addCPU()
	h.addPressure()
	h.addMemory()
	h.addNetwork()
	h.fs = startFilesystems(h.root, o.FilesystemEvery, &h.gaps)
	h.addDisks()
	return h, nil
}

// path puts the root before an absolute path.
func (h *Host) path(p string) string { return filepath.Join(h.root, p) }

// add makes a group known.
func (h *Host) add(path, what, remedy string, parse func([]byte)) *group {
	g := &group{file: newProcFile(h.path(path)), parse: parse, what: what, remedy: remedy}
	h.groups = append(h.groups, g)
	return g
}

// Metrics describes the values of the last Read, position by position. The slice
// only grows; what stands at a position stays there.
func (h *Host) Metrics() []Metric { return h.metrics }

// Read reads everything and returns the values at the positions of Metrics; NaN
// is a value that is absent now, such as that of a disk which was pulled. The
// slice belongs to the Host and is good until the next Read.
func (h *Host) Read() []float64 {
	h.clear()
	if h.closed {
		return h.values
	}
	for _, g := range h.groups {
		h.readGroup(g)
	}
	h.readFilesystems()
	return h.values
}

// Each calls f for every value that is present in the last Read.
func (h *Host) Each(f func(m *Metric, value float64)) { h.each(f) }

func (s *set) each(f func(m *Metric, value float64)) {
	for i, v := range s.values {
		if v == v {
			f(&s.metrics[i], v)
		}
	}
}

func (h *Host) readGroup(g *group) {
	if g.wait > 0 {
		g.wait--
		return
	}
	b, err := g.file.read(&h.buf)
	if err != nil {
		g.wait = retryReads
		if !g.optional {
			h.gaps.set(fleet.Gap{What: g.what, Reason: reason(g.file.path, err), Remedy: g.remedy})
		}
		return
	}
	if !g.optional {
		h.gaps.drop(g.what)
	}
	g.parse(b)
}

// Gaps lists what could not be read, and what mends it.
func (h *Host) Gaps() []fleet.Gap { return h.gaps.list() }

// Close closes the files and ends the goroutine that asks the file systems. A
// statfs that hangs in the kernel cannot be ended: its goroutine ends when the
// kernel lets it go.
func (h *Host) Close() error {
	if h.closed {
		return nil
	}
	h.closed = true
	for _, g := range h.groups {
		g.file.close()
	}
	h.fs.stop()
	return nil
}

// reason puts an error into words.
func reason(path string, err error) string {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return "there is no " + path
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return "no permission to read " + path
	case errors.Is(err, unix.EOPNOTSUPP):
		return "the kernel has switched " + path + " off"
	default:
		return path + ": " + err.Error()
	}
}

// gapList is a small set of gaps, one per What.
type gapList struct {
	mu   sync.Mutex
	gaps map[string]fleet.Gap
}

func (l *gapList) set(g fleet.Gap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gaps == nil {
		l.gaps = map[string]fleet.Gap{}
	}
	l.gaps[g.What] = g
}

func (l *gapList) drop(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.gaps) > 0 {
		delete(l.gaps, what)
	}
}

func (l *gapList) list() []fleet.Gap {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]fleet.Gap, 0, len(l.gaps))
	for _, g := range l.gaps {
		out = append(out, g)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].What < out[j].What })
	return out
}
