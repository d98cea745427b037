package host

import (
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/fleet"
)

// statfsLimit is how long a file system may take to answer. A dead NFS server
// blocks statfs for good, and nothing in user space can end it.
const statfsLimit = 2 * time.Second

func flushGap(device string) fleet.Trouble {
	return fleet.Trouble{
		What:   "flush latency of " + device,
		Why:    "the kernel does not count flushes in /proc/diskstats",
		Remedy: "run Linux 5.5 or newer",
	}
}

// mount is one line of /proc/self/mounts.
type mount struct{ device, point, fstype, options string }

// usage is what a file system answered.
type usage struct {
	mount
	size, avail, free, files, filesFree float64 // NaN: no answer
	readonly                            float64
}

// filesystems asks the real file systems for their space, in goroutines of its
// own, so that no tick ever waits for a disk or a server far away.
type filesystems struct {
	root string
	gaps *gapList
	also func()
	quit chan struct{}
	done chan struct{}

	mu      sync.Mutex
	version uint64           // grows when latest changes
	latest  []usage          // sorted by mount point
	mounted map[string]bool  // device names such as sda1
	stuck   map[string]mount // by mount point: a statfs that has not come back
	told    map[string]bool  // the current gaps

	statfs func(path string, st *unix.Statfs_t) error // a hung mount in tests

	// Of Read alone:
	seen      uint64
	current   []usage
	positions map[mount]int
	first     []int // by index of current
}

// startFilesystems begins to ask, and calls also as often.
func startFilesystems(root string, every time.Duration, gaps *gapList, also func()) *filesystems {
	f := newFilesystems(root, gaps)
	f.also = also
	first := make(chan struct{})
	go f.run(every, first)
	select { // the first Read should have them; a hung mount must not hold up the start
	case <-first:
	case <-time.After(statfsLimit / 4):
	}
	return f
}

func newFilesystems(root string, gaps *gapList) *filesystems {
	return &filesystems{root: root, gaps: gaps, quit: make(chan struct{}), done: make(chan struct{}),
		stuck: map[string]mount{}, told: map[string]bool{}, positions: map[mount]int{}, statfs: unix.Statfs}
}

func (f *filesystems) run(every time.Duration, first chan<- struct{}) {
	defer close(f.done)
	f.pass(statfsLimit)
	f.also()
	close(first)
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-f.quit:
			return
		case <-t.C:
			f.pass(statfsLimit)
			f.also()
		}
	}
}

func (f *filesystems) stop() {
	close(f.quit)
	<-f.done
}

// pass asks every file system once and publishes the answers.
func (f *filesystems) pass(limit time.Duration) {
	const what = "file systems"
	text, err := os.ReadFile(filepath.Join(f.root, "/proc/self/mounts"))
	if err != nil {
		f.gaps.set(fleet.Trouble{What: what, Why: reason(filepath.Join(f.root, "/proc/self/mounts"), err), Remedy: "mount /proc"})
		return
	}
	f.gaps.drop(what)
	mounts, devices := realMounts(string(text))

	answers := make(chan usage, len(mounts)) // buffered: a late answer never blocks its goroutine
	waiting := map[string]mount{}
	for _, m := range mounts {
		if f.begin(m) {
			waiting[m.point] = m
			go f.ask(m, answers)
		}
	}
	var got []usage
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for len(waiting) > 0 {
		select {
		case u := <-answers:
			delete(waiting, u.point)
			got = append(got, u)
			continue
		case <-timer.C:
		case <-f.quit:
		}
		break
	}
	f.publish(got, mounts, devices)
}

// begin notes that a mount is being asked; false while an older question hangs.
func (f *filesystems) begin(m mount) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, hangs := f.stuck[m.point]; hangs {
		return false
	}
	f.stuck[m.point] = m
	return true
}

func (f *filesystems) ask(m mount, answers chan<- usage) {
	u := usage{mount: m, size: math.NaN(), avail: math.NaN(), free: math.NaN(), files: math.NaN(), filesFree: math.NaN()}
	var st unix.Statfs_t
	if err := f.statfs(filepath.Join(f.root, m.point), &st); err == nil {
		unit := float64(st.Bsize)
		if st.Frsize > 0 {
			unit = float64(st.Frsize)
		}
		u.size, u.avail, u.free = float64(st.Blocks)*unit, float64(st.Bavail)*unit, float64(st.Bfree)*unit
		u.files, u.filesFree = float64(st.Files), float64(st.Ffree)
	}
	for o := range strings.SplitSeq(m.options, ",") {
		if o == "ro" {
			u.readonly = 1
		}
	}
	f.mu.Lock()
	delete(f.stuck, m.point)
	f.mu.Unlock()
	answers <- u
}

func (f *filesystems) publish(got []usage, mounts []mount, devices map[string]bool) {
	kept := got[:0]
	for _, u := range got {
		if u.size > 0 { // pseudo file systems have no size; no answer is NaN
			kept = append(kept, u)
		}
	}
	sort.Slice(kept, func(i, j int) bool { return kept[i].point < kept[j].point })
	f.mu.Lock()
	defer f.mu.Unlock()
	f.latest, f.mounted = kept, devices
	f.version++
	for what := range f.told {
		f.gaps.drop(what)
	}
	clear(f.told)
	for _, m := range mounts {
		if _, hangs := f.stuck[m.point]; hangs {
			what := "file system " + m.point
			f.told[what] = true
			f.gaps.set(fleet.Trouble{What: what, Why: m.fstype + " from " + m.device + " does not answer",
				Remedy: "umount -f -l " + m.point})
		}
	}
}

// mountedDevices names the block devices that hold a mounted file system.
func (f *filesystems) mountedDevices() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mounted
}

var filesystemTemplates = []template{
	{name: "node_filesystem_size_bytes", unit: "bytes", help: "Size of the file system."},
	{name: "node_filesystem_avail_bytes", unit: "bytes", help: "Space available to users other than root."},
	{name: "node_filesystem_files", unit: "1", help: "Inodes in total."},
	{name: "node_filesystem_files_free", unit: "1", help: "Free inodes."},
	{name: "node_filesystem_free_bytes", unit: "bytes", help: "Space that is free, with what only root may use."},
	{name: "node_filesystem_device_error", unit: "1", help: "0: the file system answered."},
	{name: "node_filesystem_readonly", unit: "1", help: "1 if it is mounted read-only, as ext4 is after an error."},
}

// readFilesystems copies the latest answers into the values.
func (h *Host) readFilesystems() {
	f := h.fs
	f.mu.Lock()
	if f.version != f.seen {
		f.seen = f.version
		f.current = append(f.current[:0], f.latest...)
		f.mu.Unlock()
		f.first = f.first[:0]
		for _, u := range f.current {
			f.first = append(f.first, h.filesystemPosition(u.mount))
		}
	} else {
		f.mu.Unlock()
	}
	for i := range f.current {
		if f.first[i] < 0 {
			continue
		}
		u, v := &f.current[i], h.values[f.first[i]:]
		v[0], v[1], v[2], v[3], v[4], v[5], v[6] = u.size, u.avail, u.files, u.filesFree, u.free, 0, u.readonly
	}
}

func (h *Host) filesystemPosition(m mount) int {
	m.options = "" // a remount is the same file system
	first, ok := h.fs.positions[m]
	if !ok {
		first = -1
		if len(h.fs.positions) < maxDevices {
			first = h.defineAll(filesystemTemplates, "statfs",
				Label{Name: "device", Value: m.device}, Label{Name: "fstype", Value: m.fstype}, Label{Name: "mountpoint", Value: m.point})
			h.fs.positions[m] = first
		}
	}
	return first
}

// pseudoTypes are file systems that hold no data of anybody's.
var pseudoTypes = map[string]bool{
	"autofs": true, "binfmt_misc": true, "bpf": true, "cgroup": true, "cgroup2": true, "configfs": true, "debugfs": true,
	"devpts": true, "devtmpfs": true, "efivarfs": true, "fusectl": true, "hugetlbfs": true, "iso9660": true, "mqueue": true,
	"nsfs": true, "proc": true, "pstore": true, "ramfs": true, "rootfs": true, "rpc_pipefs": true, "securityfs": true,
	"selinuxfs": true, "squashfs": true, "sysfs": true, "tracefs": true, "fuse.lxcfs": true, "fuse.gvfsd-fuse": true, "fuse.portal": true,
}

// realMounts picks the file systems that can fill up from the text of
// /proc/self/mounts, each device once (the shortest mount point: the others are
// bind mounts of it), and names the block devices among them.
func realMounts(text string) ([]mount, map[string]bool) {
	byDevice := map[string]mount{}
	devices := map[string]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		p := strings.Fields(line)
		if len(p) < 4 {
			continue
		}
		m := mount{device: unescapeMount(p[0]), point: unescapeMount(p[1]), fstype: p[2], options: p[3]}
		if !realMount(m) {
			continue
		}
		key := m.device
		if !strings.Contains(key, "/") && !strings.Contains(key, ":") {
			key = m.point // "tmpfs", "overlay": the name says nothing
		}
		if d, ok := strings.CutPrefix(m.device, "/dev/"); ok && !strings.HasPrefix(m.point, "/boot") {
			devices[d] = true
		}
		if old, ok := byDevice[key]; ok && len(old.point) <= len(m.point) {
			continue
		}
		byDevice[key] = m
	}
	out := make([]mount, 0, len(byDevice))
	for _, m := range byDevice {
		out = append(out, m)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].point < out[j].point })
	return out, devices
}

func realMount(m mount) bool {
	if pseudoTypes[m.fstype] || strings.HasPrefix(m.device, "/dev/loop") && strings.HasPrefix(m.options+",", "ro,") { // an image, such as a snap
		return false
	}
	for _, p := range []string{"/proc", "/sys", "/dev", "/run"} {
		if m.point == p || strings.HasPrefix(m.point, p+"/") {
			return false
		}
	}
	switch m.fstype {
	case "overlay": // a container's root; those of others are of no use here
		return m.point == "/"
	case "tmpfs": // tmpdir may well be one, and it fills up; a read-only one does not
		return !strings.HasPrefix(m.options+",", "ro,")
	}
	return true
}

// unescapeMount undoes the octal escapes of /proc/mounts: \040 is a blank.
func unescapeMount(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
