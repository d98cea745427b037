package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Storage describes the storage of a folder: its file system and disk.
type Storage struct {
	Folder     string   `json:"folder"`
	Mount      string   `json:"mount"`
	FileSystem string   `json:"file_system"` // ext4, xfs, zfs, overlay …
	Options    string   `json:"options"`     // options of the mount and of the file system
	Source     string   `json:"source"`      // /dev/sda1, or the file system's name for it
	SizeBytes  int64    `json:"size_bytes,omitempty"`
	FreeBytes  int64    `json:"free_bytes,omitempty"`
	Device     string   `json:"device,omitempty"` // sda1; empty: not a block device of this host
	Model      string   `json:"model,omitempty"`
	Scheduler  string   `json:"scheduler,omitempty"`
	Rotational *bool    `json:"rotational,omitempty"` // true: a spinning disk; nil: not known
	WriteCache string   `json:"write_cache,omitempty"`
	ReadAhead  string   `json:"read_ahead_kb,omitempty"`
	On         []string `json:"on,omitempty"` // devices underlying a mapped one (LVM, RAID)
}

// Storage finds what is under a folder as the process pid sees it, which may be in a container; pid 0 is this process.
func (h *Host) Storage(pid int, folder string) (Storage, error) {
	proc := "/proc/self"
	if pid > 0 {
		proc = "/proc/" + strconv.Itoa(pid)
	}
	text, err := os.ReadFile(h.path(proc + "/mountinfo"))
	if err != nil {
		return Storage{}, fmt.Errorf("read mounts: %w", err)
	}
	inside := h.path(folder)
	if pid > 0 && exists(h.path(proc+"/root")) {
		inside = filepath.Join(h.path(proc+"/root"), folder)
	}
	if real, err := filepath.EvalSymlinks(h.path(folder)); err == nil && h.root == "/" {
		folder = real
	}
	s, number, ok := mountOf(string(text), folder)
	if !ok {
		return s, fmt.Errorf("%s is on no known mount", folder)
	}
	var st unix.Statfs_t
	if unix.Statfs(inside, &st) == nil {
		s.SizeBytes, s.FreeBytes = int64(st.Blocks)*st.Bsize, int64(st.Bavail)*st.Bsize
	}
	h.device(&s, number)
	return s, nil
}

// mountOf picks the mount that holds a folder: of those with the longest path the last, which covers the others. The
// columns are those of proc_pid_mountinfo(5).
func mountOf(text, folder string) (s Storage, number string, ok bool) {
	for line := range strings.SplitSeq(text, "\n") {
		before, after, found := strings.Cut(line, " - ")
		b, a := strings.Fields(before), strings.Fields(after)
		if !found || len(b) < 6 || len(a) < 3 {
			continue
		}
		point := unescapeMount(b[4])
		if (point == "/" || folder == point || strings.HasPrefix(folder, point+"/")) && len(point) >= len(s.Mount) {
			s = Storage{Folder: folder, Mount: point, FileSystem: a[0], Source: unescapeMount(a[1]), Options: joinOptions(b[5], a[2])}
			number, ok = b[2], true
		}
	}
	return s, number, ok
}

// joinOptions joins the options of a mount with those of its file system, each once. Paths of an overlay's layers say
// nothing and are long.
func joinOptions(lists ...string) string {
	var out []string
	for _, l := range lists {
		for o := range strings.SplitSeq(l, ",") {
			name, _, _ := strings.Cut(o, "=")
			switch name {
			case "", "lowerdir", "upperdir", "workdir", "password", "username", "credentials":
				continue
			}
			if !contains(out, o) {
				out = append(out, o)
			}
		}
	}
	return strings.Join(out, ",")
}

// device reads of the disk under a file system; number is its major:minor. File systems with several devices (btrfs, zfs)
// have their own number: there the source names one.
func (h *Host) device(s *Storage, number string) {
	dir, err := filepath.EvalSymlinks(h.path("/sys/dev/block/" + number))
	if err != nil {
		name, ok := strings.CutPrefix(s.Source, "/dev/")
		if !ok {
			return
		}
		if dir, err = filepath.EvalSymlinks(h.path("/sys/class/block/" + filepath.Base(name))); err != nil {
			return
		}
	}
	s.Device = filepath.Base(dir)
	if slaves, err := os.ReadDir(filepath.Join(dir, "slaves")); err == nil {
		for _, e := range slaves {
			s.On = append(s.On, e.Name())
		}
	}
	if !exists(filepath.Join(dir, "queue")) { // a partition: the queue is its disk's
		dir = filepath.Dir(dir)
	}
	s.Scheduler = chosen(word(dir, "queue/scheduler"))
	s.WriteCache = word(dir, "queue/write_cache")
	s.ReadAhead = word(dir, "queue/read_ahead_kb")
	s.Model = word(dir, "device/model")
	if r := word(dir, "queue/rotational"); r != "" {
		spins := r == "1"
		s.Rotational = &spins
	}
}
