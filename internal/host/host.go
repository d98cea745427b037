// Package host reads one Linux host: processors, pressure, memory, disks,
// network, file systems, and a server's process with its control group.
//
// It is made to be read every second. Files stay open and are read into one
// buffer; text is parsed without making strings; in steady state a read
// allocates nothing. Missing features of the host (no PSI, a container without
// /proc/diskstats, a hung NFS mount) are not errors: they are reported as a
// fleet.Trouble with its reason and remedy.
package host

import (
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Options say which host is read.
type Options struct {
	// Root is the prefix of every path: "/" for this host, a folder with
	// proc, sys and etc in it for another tree. Empty means "/".
	Root string
	// FilesystemEvery is how often file systems are asked for their free space;
	// zero means 10 s. In between the last figures are kept.
	FilesystemEvery time.Duration
	// Processors reads only processors and pressure, for callers that need no more.
	Processors bool
}

// Host reads one Linux host. Read, Metrics, Each and Close are for one goroutine;
// any goroutine may call Gaps, Identity, FindServer and Process.
type Host struct {
	reader
	root   string
	fs     *filesystems
	clock  *clock
	links  *links
	closed bool

	listeners listeners
}

// New opens a host. It fails only if there is no /proc at all; what else is
// missing is reported by Gaps.
func New(o Options) (*Host, error) {
	if o.Root == "" {
		o.Root = "/"
	}
	if o.FilesystemEvery <= 0 {
		o.FilesystemEvery = 10 * time.Second
	}
	h := &Host{root: o.Root, reader: reader{buf: make([]byte, 32<<10)}}
	var st unix.Stat_t
	if err := unix.Stat(h.path("/proc/stat"), &st); err != nil {
		return nil, fmt.Errorf("read host: %s: %w (is /proc mounted there?)", h.path("/proc/stat"), err)
	}
	h.addCPU()
	h.addPressure()
	if o.Processors {
		return h, nil
	}
	h.addMemory()
	h.addNetwork()
	h.addKernel()
	h.links = &links{h: h, latest: map[string]*link{}, first: map[string]int{}}
	h.fs = startFilesystems(h.root, o.FilesystemEvery, &h.gaps, h.links.look)
	h.addDisks()
	return h, nil
}

// path puts the root before an absolute path.
func (h *Host) path(p string) string { return filepath.Join(h.root, p) }

// add makes a file of the host known.
func (h *Host) add(path, what, remedy string, parse func([]byte)) *group {
	return h.reader.add(h.path(path), what, remedy, parse)
}

// Read reads everything and returns the values at the positions of Metrics; NaN
// is a value that is absent now, such as that of a disk which was pulled. The
// slice belongs to the Host and is good until the next Read.
func (h *Host) Read() []float64 {
	h.clear()
	if h.closed {
		return h.values
	}
	h.readGroups()
	if h.fs != nil {
		h.readFilesystems()
		h.links.put()
	}
	if h.clock != nil {
		h.clock.read()
	}
	return h.values
}

// Close closes the files and ends the goroutine that asks the file systems. A
// statfs that hangs in the kernel cannot be ended: its goroutine ends when the
// kernel lets it go.
func (h *Host) Close() error {
	if h.closed {
		return nil
	}
	h.closed = true
	h.closeGroups()
	if h.fs != nil {
		h.fs.stop()
	}
	return nil
}
