package physical

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// program is a tool that is run.
type program struct {
	path    string
	args    []string
	options string // of an option file, whose path replaces optionFilePath in args; "": none
	dir     string // where it runs
	soft    bool   // it may end cleanly (SIGTERM); else it is killed: mariadb-backup takes no notice of less
	line    func(string)
}

// optionFilePath is where a program finds the option file that was made for it: a file in memory that has no name, so that
// password is ever on a disk.
const optionFilePath = "/proc/self/fd/3"

// run runs the program and hands its standard output to consume. When ctx ends, or consume fails, the program is ended; it
// also ends with this process.
func (p program) run(ctx context.Context, consume func(io.Reader) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, p.path, p.args...)
	cmd.Dir = p.dir
	cmd.Env = quietEnviron()
	tail := &lines{each: p.line}
	cmd.Stderr = tail
	// A separate process group: Ctrl-C in the terminal reaches Risso only, which ends things in its own order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	sig := syscall.SIGKILL
	if p.soft {
		sig = syscall.SIGTERM
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, sig) }
	cmd.WaitDelay = 10 * time.Second
	if p.options != "" {
		f, err := memoryFile(p.options)
		if err != nil {
			return fmt.Errorf("hand over the login: %w", err)
		}
		defer f.Close()
		cmd.ExtraFiles = []*os.File{f}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	widen(out)
	// PR_SET_PDEATHSIG depends on the thread that started the program: it must not end before.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", filepath.Base(p.path), err)
	}
	cerr := consume(out)
	if cerr != nil {
		cancel(cerr)
	} else if _, err := io.Copy(io.Discard, out); err != nil { // nothing, or the program would wait for a reader
		cerr = err
	}
	werr := cmd.Wait()
	tail.end()
	switch {
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), cerr):
		return context.Cause(ctx)
	case werr != nil && cerr == nil, werr != nil && !errors.Is(context.Cause(ctx), cerr):
		return &toolError{name: filepath.Base(p.path), err: werr, said: tail.said()}
	case cerr != nil && tail.bad(): // the program broke off: that is why its output has no end
		return &toolError{name: filepath.Base(p.path), err: cerr, said: tail.said()}
	}
	return cerr
}

// widen lets a pipe hold more, so that both ends are woken less often. If that is not allowed it stays as it is.
func widen(out io.Reader) {
	if f, ok := out.(*os.File); ok {
		if c, err := f.SyscallConn(); err == nil {
			_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, readAhead) })
		}
	}
}

// quietEnviron leaves out what would change a tool's behaviour.
func quietEnviron() []string {
	var env []string
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "MYSQL") || strings.HasPrefix(name, "MARIADB") {
			continue
		}
		env = append(env, e)
	}
	return append(env, "LC_ALL=C")
}

// memoryFile is a file that exists in memory only and that only this process and its child can open.
func memoryFile(text string) (*os.File, error) {
	fd, err := unix.MemfdCreate("risso-options", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "option file")
	// The programs ignore an option file that others may write.
	if err := f.Chmod(0o600); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// lines cuts what a program writes to its standard error into lines, and keeps those that say why it failed.
type lines struct {
	each  func(string)
	rest  []byte
	last  []string // the last ones
	wrong []string // those that say that something is wrong
}

const keptLines = 8

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			break
		}
		l.take(string(l.rest[:i]))
		l.rest = l.rest[i+1:]
	}
	if len(l.rest) > 64<<10 {
		l.end()
	}
	return len(b), nil
}

func (l *lines) end() {
	if len(l.rest) > 0 {
		l.take(string(l.rest))
		l.rest = nil
	}
}

func (l *lines) take(s string) {
	s = strings.TrimSpace(s)
	if s == "" {
		return
	}
	l.last = append(l.last, s)
	l.last = l.last[max(0, len(l.last)-keptLines):]
	if isComplaint(s) {
		l.wrong = append(l.wrong, s)
		l.wrong = l.wrong[max(0, len(l.wrong)-keptLines):]
	}
	if l.each != nil {
		l.each(s)
	}
}

func isComplaint(s string) bool {
	low := strings.ToLower(s)
	if strings.Contains(low, "streaming ") || strings.Contains(low, "copying ") || strings.Contains(low, "...done") {
		return false // the name of a file may hold any word
	}
	for _, word := range []string{"error", "failed", "fatal", "cannot", "can't", "denied", "unknown option", "unknown variable", "no space"} {
		if strings.Contains(low, word) {
			return true
		}
	}
	return false
}

func (l *lines) bad() bool { return len(l.wrong) > 0 }

// said is what the user should read of it: the complaints, else the last lines.
func (l *lines) said() string {
	list := l.wrong
	if len(list) == 0 {
		list = l.last[max(0, len(l.last)-2):]
	}
	return strings.Join(list[max(0, len(list)-3):], "; ")
}

// toolError is a tool that failed, with what it said of it.
type toolError struct {
	name string
	err  error
	said string
}

func (e *toolError) Error() string {
	if e.said == "" {
		return fmt.Sprintf("%s: %v", e.name, e.err)
	}
	return fmt.Sprintf("%s: %v: %s", e.name, e.err, e.said)
}

func (e *toolError) Unwrap() error { return e.err }

// Remedy is how to fix it, as far as that is known.
func (e *toolError) Remedy() string {
	for _, h := range toolRemedies {
		if strings.Contains(strings.ToLower(e.said), h.sign) {
			return h.remedy
		}
	}
	return ""
}

// needsGrant represents the GRANT that the account must have.
const needsGrant = "GRANT"

// toolRemedies are the troubles that people meet, by a part of what the tools say in lower case.
var toolRemedies = []struct{ sign, remedy string }{
	{"access denied", needsGrant},
	{"missing required privilege", needsGrant},
	{"too many open files", "raise the limit of open files (ulimit -n) above the number of tables"},
	{"open files limit", "raise the limit of open files (ulimit -n) above the number of tables"},
	{"overwritten", "the server wrote its redo log faster than it could be copied: make it larger (innodb_log_file_size), or take the backup at a quieter time"},
	{"log block", "the server wrote its redo log faster than it could be copied: make it larger (innodb_log_file_size), or take the backup at a quieter time"},
	{"no space left", "the disk is full"},
	{"unsupported server version", "take the tool of the server's own version"},
	{"unsupported redo log", "take the tool of the server's own version"},
	{"upgrade after a crash is not supported", "take the tool of the server's own version"},
	{"permission denied", "run Risso as the user that owns the server's data directory, or as root"},
	{"error on backup stage", "the lock could not be had in time: end long-running statements, raise --lock-wait, or let Risso end them: --kill-long-queries"},
	{"killed", "the lock could not be had in time: end long-running statements, or raise --lock-wait"},
	{"lock wait timeout", "the lock could not be had in time: end long-running statements, or raise --lock-wait"},
	{"cannot allocate", "less memory: lower --use-memory"},
}
