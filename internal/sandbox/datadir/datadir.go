// Package datadir finds out whether a server works on a data directory: by the locks on its files and by who has them open, not by names
// of processes, by pid files or by sockets, which are there when no server is, and missing when one is.
package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/digits"
)

// State says whether a data directory is in use.
type State string

// The states. What could not be looked at is Unknown, never Free.
const (
	InUse   State = "in use"
	Free    State = "free"
	Unknown State = "unknown"
)

// Holder is a process that works on the files.
type Holder struct {
	PID     int    `json:"pid"`     // 0: it is not visible from here, such as one in another container
	Command string `json:"command"` // "" if that cannot be read
	File    string `json:"file"`    // one of the files
	Locked  bool   `json:"locked"`  // it holds a lock on it; else it only has it open
}

// Look is what was found about a data directory.
type Look struct {
	Dir     string   `json:"dir"` // without symbolic links
	State   State    `json:"state"`
	Words   string   `json:"words"`
	Files   int      `json:"files"` // that were looked at
	Holders []Holder `json:"holders"`
	Notes   []string `json:"notes"` // what is not as it seems, or could not be seen
}

// locked are the files that servers lock or keep open as long as they run. Sources: InnoDB's os_file_lock (data files), Aria's control file.
var locked = []string{"ibdata*", "aria_log_control", "ibtmp*", "undo*", "ib_logfile*", "mysql.ibd", "#innodb_redo/#ib_redo*", "#ib_*"}

// At looks at a data directory. It changes nothing.
func At(dir string) (l Look) {
	l = Look{Dir: dir, State: Unknown, Holders: []Holder{}, Notes: []string{}}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		l.unseen(err)
		return l
	}
	l.Dir = real
	if names := l.look(real); len(names) > 0 {
		l.elsewhere(real, names)
		l.pidFiles(real)
	}
	return l
}

func (l *Look) unseen(err error) { l.Words = "the directory cannot be looked at: " + err.Error() }

// look looks at the files in a directory, and returns which.
func (l *Look) look(dir string) (names []string) {
	names, err := candidates(dir)
	if err != nil {
		l.unseen(err)
		return nil
	}
	if len(names) == 0 {
		l.Words = "there are no files of a server that it would lock: no ibdata1, no aria_log_control"
		return nil
	}
	unread := 0
	idents := map[ident]string{}
	for _, name := range names {
		id, h, err := holderOf(name)
		switch {
		case err != nil:
			unread++
		case h != nil:
			l.add(*h)
		}
		if id != (ident{}) {
			l.Files++
			idents[id] = name
		}
	}
	for _, h := range listedLocks(idents) {
		l.add(h)
	}
	l.judge(unread, l.openers(idents))
	return names
}

func (l *Look) add(h Holder) {
	if h.PID > 0 {
		h.Command = command(h.PID)
		if i := slices.IndexFunc(l.Holders, func(o Holder) bool { return o.PID == h.PID }); i >= 0 {
			l.Holders[i].Locked = l.Holders[i].Locked || h.Locked
			return
		}
	} else if slices.ContainsFunc(l.Holders, func(o Holder) bool { return o.PID == 0 }) {
		return
	}
	l.Holders = append(l.Holders, h)
}

func (l *Look) judge(unread, blind int) {
	// A lock whose holder is hidden, beside a holder that is seen, is the same one: the kernel names one of them for each file.
	if len(l.Holders) > 1 {
		l.Holders = slices.DeleteFunc(l.Holders, func(h Holder) bool { return h.PID == 0 })
	}
	switch {
	case len(l.Holders) > 0:
		l.State = InUse
		h := l.Holders[0]
		how := map[bool]string{true: "holds a lock on ", false: "has open "}[h.Locked] + filepath.Base(h.File)
		switch {
		case h.PID == 0:
			l.Words = "in use: a process that cannot be seen from here, in another container or PID namespace, " + how
		case h.Command == "":
			l.Words = fmt.Sprintf("in use: process %d, whose command cannot be read, %s", h.PID, how)
		default:
			l.Words = fmt.Sprintf("in use: process %d (%s) %s", h.PID, h.Command, how)
		}
	case l.Files == 0 || unread > 0 && unread == l.Files && blind > 0:
		l.Words = "whether a server uses it cannot be seen: " + digits.Counted(unread, "file") + " cannot be opened"
	case unread > 0:
		l.Words = "whether a server uses it cannot be seen: " + digits.Counted(unread, "file") + " cannot be opened to ask for locks"
	default:
		l.State = Free
		l.Words = "not in use: nobody holds a lock on " + digits.Counted(l.Files, "file") + ", or has one open"
		if blind > 0 {
			l.Words = "not in use: nobody holds a lock on " + digits.Counted(l.Files, "file")
			l.Notes = append(l.Notes, "which files "+digits.Counted(blind, "process")+" of other users have open cannot be seen")
		}
	}
}

// candidates are the files in a directory that tell.
func candidates(dir string) (names []string, err error) {
	_, err = os.ReadDir(dir)              // a pattern matches nothing where it may not look, without an error
	if errors.Is(err, fs.ErrPermission) { // what is there by its usual name may be looked at nevertheless
		for _, name := range []string{"ibdata1", "aria_log_control", "mysql.ibd"} {
			if _, serr := os.Stat(filepath.Join(dir, name)); serr == nil {
				names = append(names, filepath.Join(dir, name))
			}
		}
		if len(names) > 0 {
			return names, nil
		}
	}
	if err != nil {
		return nil, err
	}
	for _, pattern := range locked {
		found, err := filepath.Glob(filepath.Join(escape(dir), pattern))
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			if fi, err := os.Stat(name); err == nil && fi.Mode().IsRegular() {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// escape takes a path as it is in a pattern.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// ident is a file, whatever it is called.
type ident struct {
	major, minor uint32
	inode        uint64
}

func identOf(st *unix.Stat_t) ident {
	return ident{unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino}
}

// holderOf asks the kernel who would be in the way of a lock on a file. Nothing is locked. id is known even if err says that it cannot be asked.
func holderOf(name string) (id ident, h *Holder, err error) {
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil {
		return id, nil, err
	}
	id = identOf(&st)
	f, err := os.Open(name)
	if err != nil {
		return id, nil, err
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: int16(io.SeekStart)}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return id, nil, fmt.Errorf("ask for locks: %w", err)
	}
	if lock.Type == unix.F_UNLCK {
		return id, nil, nil
	}
	return id, &Holder{PID: max(int(lock.Pid), 0), File: name, Locked: true}, nil // -1: a lock of an open file description, 0: of another namespace
}

// listedLocks finds files in /proc/locks, by device and inode: also those that may not be opened.
func listedLocks(files map[ident]string) (list []Holder) {
	text, err := os.ReadFile("/proc/locks")
	if err != nil {
		return nil
	}
	for _, line := range strings.Split(string(text), "\n") {
		// 1: POSIX  ADVISORY  WRITE 4711 08:01:131073 0 EOF, with -> before POSIX for one that waits
		f := strings.Fields(line)
		if len(f) < 6 || f[1] == "->" {
			continue
		}
		id, ok := listed(f[5])
		if name := files[id]; ok && name != "" {
			pid, _ := strconv.Atoi(f[4])
			list = append(list, Holder{PID: max(pid, 0), File: name, Locked: true})
		}
	}
	return list
}

func listed(text string) (id ident, ok bool) {
	p := strings.Split(text, ":")
	if len(p) != 3 {
		return id, false
	}
	major, err1 := strconv.ParseUint(p[0], 16, 32)
	minor, err2 := strconv.ParseUint(p[1], 16, 32)
	inode, err3 := strconv.ParseUint(p[2], 10, 64)
	return ident{uint32(major), uint32(minor), inode}, errors.Join(err1, err2, err3) == nil
}

// openers finds processes that have one of the files open, such as a server that may only read, which locks nothing. blind is how many
// processes could not be looked at.
func (l *Look) openers(files map[ident]string) (blind int) {
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return 1
	}
	own := os.Getpid()
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == own {
			continue
		}
		dir := filepath.Join("/proc", p.Name(), "fd")
		fds, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrPermission) {
			blind++
		}
		for _, fd := range fds {
			var st unix.Stat_t
			if unix.Stat(filepath.Join(dir, fd.Name()), &st) != nil {
				continue // closed meanwhile
			}
			if name := files[identOf(&st)]; name != "" && st.Mode&unix.S_IFMT == unix.S_IFREG && writes(pid, fd.Name()) {
				l.add(Holder{PID: pid, File: name})
				break
			}
		}
	}
	return blind
}

// writes reports whether a descriptor is open for writing: a backup that copies the files is no server.
func writes(pid int, fd string) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, fd))
	if err != nil {
		return true
	}
	for _, line := range strings.Split(string(text), "\n") {
		if octal, ok := strings.CutPrefix(line, "flags:"); ok {
			flags, err := strconv.ParseInt(strings.TrimSpace(octal), 8, 64)
			return err != nil || flags&unix.O_ACCMODE != unix.O_RDONLY
		}
	}
	return true
}

// command is how a process was called; "" if it is gone or hidden.
func command(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(text), "\x00")
	if first == "" {
		return ""
	}
	return filepath.Base(first)
}

// pidFiles notes pid files that mislead.
func (l *Look) pidFiles(dir string) {
	names, err := filepath.Glob(filepath.Join(escape(dir), "*.pid"))
	if err != nil {
		return
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || pid <= 0 || slices.ContainsFunc(l.Holders, func(h Holder) bool { return h.PID == pid }) {
			continue
		}
		about := "which does not run"
		if err := syscall.Kill(pid, 0); err == nil || errors.Is(err, syscall.EPERM) {
			about = "which has nothing to do with these files"
			if c := command(pid); c != "" {
				about += " (" + c + ")"
			}
		}
		if len(l.Holders) == 1 && l.Holders[0].PID == 0 {
			about = "which is another process here, or that of the server in its own namespace"
		}
		l.Notes = append(l.Notes, fmt.Sprintf("%s names process %d, %s", filepath.Base(name), pid, about))
	}
}
