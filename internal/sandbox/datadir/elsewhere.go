package datadir

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/pattern"
)

// elsewhere doubts that nobody uses the files: locks on an overlay are on its own files, not on those of its layers, and locks of other machines are
// not seen here, or not always.
func (l *Look) elsewhere(dir string, names []string) {
	if l.State != Free {
		return
	}
	unknown := func(why string) {
		l.State, l.Words = Unknown, "whether a server uses it cannot be seen: "+why
	}
	for _, o := range overlaysOf(dir) {
		merged := Look{State: Unknown}
		merged.look(o.merged)
		if merged.State == InUse {
			l.State, l.Words, l.Holders = InUse, merged.Words, merged.Holders
			l.Notes = append(l.Notes, "by way of the overlay that is mounted at "+o.at+", whose upper directory this is")
			return
		}
		unknown("it is in the upper directory of an overlay, mounted at " + o.at + ": locks of servers there are on the overlay's files; ask there")
	}
	if l.State == Free && layer(dir) {
		unknown("it is in a layer of a container or another overlay: locks of servers there are on the overlay's files; ask in the container")
	}
	for _, name := range append([]string{dir}, names...) {
		var st unix.Statfs_t
		if l.State != Free || unix.Statfs(name, &st) != nil {
			continue
		}
		if kind := shared(int64(st.Type)); kind != "" {
			unknown(name + " is on " + kind + ", where a server of another machine may work on it; ask on each machine that mounts it")
		}
	}
}

// shared is what a file system is called that several machines may have mounted; "" for others. Sources: statfs(2), linux/magic.h, and the file systems' own headers.
func shared(magic int64) string {
	switch uint32(magic) {
	case 0x6969:
		return "NFS"
	case 0xff534d42, 0xfe534d42, 0x517b:
		return "SMB"
	case 0x01161970:
		return "GFS2"
	case 0x7461636f:
		return "OCFS2"
	case 0x00c36400:
		return "CephFS"
	case 0x0bd00bd0:
		return "Lustre"
	case 0x47504653:
		return "GPFS"
	case 0x19830326:
		return "BeeGFS"
	case 0x5346414f, 0x6b414653:
		return "AFS"
	case 0x73757245:
		return "Coda"
	case 0x786f4256:
		return "a shared folder of VirtualBox"
	case 0x01021997:
		return "9P, a folder of the machine that this one runs on"
	case 0x65735546:
		return "FUSE, as GlusterFS, sshfs and virtiofs are"
	}
	return ""
}

// layers are where container engines keep theirs: Docker, Podman and CRI-O, containerd.
var layers = pattern.Lazy(`/(overlay2?|overlay-containers)/[^/]+/diff(/|$)|/io\.containerd\.snapshotter\.v1\.overlayfs/snapshots/[0-9]+/fs(/|$)`)

// layer reports whether a directory is in a layer of an overlay, by its place or by what the overlay wrote on it; the latter only root sees.
func layer(dir string) bool {
	if layers().MatchString(dir) {
		return true
	}
	for d := dir; ; d = filepath.Dir(d) {
		for _, name := range []string{"origin", "impure", "opaque", "uuid"} {
			if n, err := unix.Lgetxattr(d, "trusted.overlay."+name, nil); err == nil && n >= 0 {
				return true
			}
		}
		if d == filepath.Dir(d) {
			return false
		}
	}
}

// overlay is one that is mounted over a directory as its upper one.
type overlay struct {
	at     string // where it is mounted
	merged string // the directory as it is seen there, by a way that leads to it from here
}

// overlaysOf finds the overlays that write to a directory, in the mount namespaces of all processes that may be looked at.
func overlaysOf(dir string) (list []overlay) {
	found, _ := filepath.Glob("/proc/[0-9]*/mountinfo") // the form is good
	seen := map[string]bool{}
	for _, file := range found {
		proc := filepath.Dir(file)
		ns, err := os.Readlink(filepath.Join(proc, "ns/mnt"))
		if err != nil || seen[ns] {
			continue
		}
		seen[ns] = true
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		root := filepath.Join(proc, "root")
		for line := range bytes.Lines(text) {
			at, upper, ok := overlayLine(string(line))
			if !ok {
				continue
			}
			if rest, ok := below(dir, root, upper); ok {
				list = append(list, overlay{at, root + filepath.Join(at, rest)})
			}
		}
	}
	return list
}

// overlayLine reads a line of mountinfo: where an overlay is mounted, and its upper directory.
func overlayLine(line string) (at, upper string, ok bool) {
	before, after, _ := strings.Cut(line, " - ")
	place, fs := strings.Fields(before), strings.Fields(after)
	if len(place) < 5 || len(fs) < 3 || fs[0] != "overlay" {
		return "", "", false
	}
	for option := range strings.SplitSeq(fs[2], ",") {
		if v, is := strings.CutPrefix(option, "upperdir="); is {
			return unescaped(place[4]), unescaped(v), true
		}
	}
	return "", "", false
}

// unescaped takes back how the kernel writes blanks in paths: \040.
func unescaped(text string) string {
	for _, c := range []byte{' ', '\t', '\n', '\\'} {
		text = strings.ReplaceAll(text, fmt.Sprintf(`\%03o`, c), string(c))
	}
	return text
}

// below is the way from a directory that has a path in another mount namespace to one here, if that is in it.
func below(dir, root, upper string) (rest string, ok bool) {
	if !filepath.IsAbs(upper) {
		return "", false
	}
	there, err := os.Stat(root + upper)
	if err != nil {
		return "", false
	}
	for d := dir; ; d = filepath.Dir(d) {
		if here, err := os.Stat(d); err == nil && os.SameFile(here, there) {
			rest, err := filepath.Rel(d, dir)
			return rest, err == nil
		}
		if d == filepath.Dir(d) {
			return "", false
		}
	}
}
