package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/fault"
)

// The files in a sandbox's folder, besides a folder per node.
const (
	recordFile = "sandbox.json"
	secretFile = "secret" // the password of the account, mode 0600
	busyFile   = "lock"   // locked while an up or a down works on the sandbox
)

// ErrBusy is the reason when another process works on the sandbox.
var ErrBusy = errors.New("another risso is using this sandbox")

// lockFile takes an exclusive lock on a file, which it makes if needed, and
// returns what unlocks it. The kernel unlocks when the process dies, however
// it dies. Wait 0 tries once.
func lockFile(ctx context.Context, path string, wait time.Duration) (unlock func(), err error) {
	return flock(ctx, path, unix.LOCK_EX, wait)
}

func flock(ctx context.Context, path string, how int, wait time.Duration) (func(), error) {
	deadline := time.Now().Add(wait)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !time.Now().Before(deadline) {
			f.Close()
			return nil, ErrBusy
		}
		if err := delay.For(ctx, 20*time.Millisecond); err != nil {
			f.Close()
			return nil, err
		}
	}
}

// lockSandbox keeps every other Up, Down and Start away from a sandbox.
func lockSandbox(ctx context.Context, dir string, wait time.Duration) (func(), error) {
	// A listing looks at the lock for a moment: that must not fail a down.
	unlock, err := lockFile(ctx, filepath.Join(dir, busyFile), max(wait, 500*time.Millisecond))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("sandbox %s is gone: %w", filepath.Base(dir), err)
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox %s: %w", filepath.Base(dir), err)
	}
	return unlock, nil
}

// create makes the folder and the record of a sandbox, before anything runs in
// it, and returns it locked.
func create(ctx context.Context, p *plan) (s *Sandbox, unlock func(), err error) {
	if err := os.MkdirAll(p.root, 0o700); err != nil {
		return nil, nil, fmt.Errorf("create the folder of sandboxes: %w", err)
	}
	// Servers show the path as they were given it, so there must be one only.
	root, err := filepath.EvalSymlinks(p.root)
	if err != nil {
		return nil, nil, fmt.Errorf("folder of sandboxes: %w", err)
	}
	free, err := lockFile(ctx, filepath.Join(root, ".lock"), 10*time.Second)
	if err != nil {
		return nil, nil, fmt.Errorf("folder of sandboxes %s: %w", root, err)
	}
	defer free()
	sweep(root)
	name, err := claim(root, p.name, p.servers[0].server.Name)
	if err != nil {
		return nil, nil, err
	}
	s = p.sandbox(root, name)
	unlock, err = lockSandbox(ctx, s.Dir, 0)
	if err == nil {
		err = s.save()
	}
	if err != nil {
		if unlock != nil {
			unlock()
		}
		return nil, nil, errors.Join(fmt.Errorf("sandbox %s: %w", name, err), os.RemoveAll(s.Dir))
	}
	return s, unlock, nil
}

// claim makes the folder of a sandbox: that of the name, or of the first free
// name made from base.
func claim(root, name, base string) (string, error) {
	if name != "" {
		err := os.Mkdir(filepath.Join(root, name), 0o700)
		if errors.Is(err, fs.ErrExist) {
			return "", fault.New(fault.Usage, "choose another name, or run risso sandbox down "+name, fmt.Errorf("sandbox %s exists", name))
		}
		if err != nil {
			return "", fmt.Errorf("sandbox %s: %w", name, err)
		}
		return name, nil
	}
	for i := 1; ; i++ {
		name = base
		if i > 1 {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		err := os.Mkdir(filepath.Join(root, name), 0o700)
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("sandbox %s: %w", name, err)
		}
	}
}

// save writes the record so that a reader sees the old or the new one.
func (s *Sandbox) save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	path := filepath.Join(s.Dir, recordFile)
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	return nil
}

// Open reads the sandbox of that name under dir (empty: DefaultDir), and what runs of it.
func Open(dir, name string) (*Sandbox, error) {
	root, err := rootOf(dir)
	if err != nil {
		return nil, err
	}
	if !nameForm().MatchString(name) || !isDir(filepath.Join(root, name)) {
		return nil, fault.New(fault.Usage, "risso sandbox list shows them", fmt.Errorf("no sandbox %q in %s", name, root))
	}
	return read(filepath.Join(root, name))
}

// List reads all sandboxes under dir (empty: DefaultDir), by name.
func List(dir string) ([]*Sandbox, error) {
	root, err := rootOf(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	var all []*Sandbox
	for _, e := range entries {
		if !e.IsDir() || !nameForm().MatchString(e.Name()) {
			continue
		}
		s, err := read(filepath.Join(root, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // went down in the meantime
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all, nil
}

func rootOf(dir string) (string, error) {
	if dir == "" {
		d, err := DefaultDir()
		if err != nil {
			return "", err
		}
		dir = d
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("folder of sandboxes: %w", err)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real, nil
	}
	return dir, nil // nothing there yet
}

// read makes a Sandbox of a folder. A folder without a readable record, as a
// crash between two system calls may leave one, is a sandbox without nodes:
// Down clears it.
func read(dir string) (*Sandbox, error) {
	fi, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("sandbox %s: %w", filepath.Base(dir), err)
	}
	s := &Sandbox{Name: filepath.Base(dir), Created: fi.ModTime()}
	b, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the record of sandbox %s: %w", s.Name, err)
	}
	if err == nil {
		if jerr := json.Unmarshal(b, s); jerr != nil {
			s = &Sandbox{Name: filepath.Base(dir), Created: fi.ModTime()}
		}
	}
	s.Dir = dir
	s.timeout = nodeTimeout
	s.progress = func(string) {}
	if s.Nodes == nil {
		s.Nodes = []*Node{}
	}
	for _, n := range s.Nodes {
		n.sandbox = s
	}
	s.Refresh()
	return s, nil
}

// Refresh reads again which nodes run.
func (s *Sandbox) Refresh() {
	running, paused := 0, 0
	for _, n := range s.Nodes {
		switch n.refresh() {
		case StateRunning:
			running++
		case StatePaused:
			paused++
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.beingWorkedOn():
		s.State = StateStarting
	case len(s.Nodes) > 0 && running+paused == 0:
		s.State = StateStopped
	case !s.Ready || running < len(s.Nodes) || len(s.Nodes) == 0:
		s.State = StatePartial
	default:
		s.State = StateRunning
	}
}

// beingWorkedOn reports whether an up or a down of a live process holds the sandbox.
func (s *Sandbox) beingWorkedOn() bool {
	path := filepath.Join(s.Dir, busyFile)
	if _, err := os.Stat(path); err != nil {
		return false
	}
	unlock, err := flock(context.Background(), path, unix.LOCK_SH, 0)
	if err != nil {
		return errors.Is(err, ErrBusy)
	}
	unlock()
	return false
}

// remove ends all that runs in the sandbox and removes its files. It can be
// cut off anywhere and done again.
func (s *Sandbox) remove(ctx context.Context) error {
	ended, err := endAll(ctx, s.Dir)
	if err != nil {
		return fmt.Errorf("sandbox %s: %w", s.Name, err)
	}
	for _, n := range s.Nodes {
		if s.Disk > 0 {
			if err := errors.Join(n.Fast(), n.unmount()); err != nil {
				return fmt.Errorf("sandbox %s: %w", s.Name, err)
			}
		}
	}
	if s.Network != nil {
		if err := s.Network.remove(ctx); err != nil {
			return fmt.Errorf("sandbox %s: remove its network: %w", s.Name, err)
		}
	}
	if s.SocketDir != "" {
		if err := removeSocketDir(s.SocketDir); err != nil {
			return fmt.Errorf("sandbox %s: remove its sockets: %w", s.Name, err)
		}
	}
	// Out of the way by one step first: the name is free and no listing shows a half.
	trash := filepath.Join(filepath.Dir(s.Dir), ".trash-"+s.Name+"-"+rand.Text()[:8])
	if err := os.Rename(s.Dir, trash); err != nil {
		return fmt.Errorf("sandbox %s: remove its folder: %w", s.Name, err)
	}
	if err := os.RemoveAll(trash); err != nil {
		return fmt.Errorf("sandbox %s: remove its folder: %w", s.Name, err)
	}
	awaitReaped(ctx, ended)
	return nil
}

// sweep clears what a killed down left.
func sweep(root string) {
	left, _ := filepath.Glob(filepath.Join(root, ".trash-*")) // the pattern is good
	for _, d := range left {
		_ = os.RemoveAll(d) // the next one tries again
	}
}

// socketLimit is the longest path of a Unix socket (sun_path, less the zero).
const socketLimit = 107

const socketDirPrefix = "risso-sandbox-"

// removeSocketDir removes a folder of sockets, and nothing that is not one.
func removeSocketDir(dir string) error {
	if !strings.HasPrefix(filepath.Base(dir), socketDirPrefix) {
		return fmt.Errorf("%s is not a folder of sockets", dir)
	}
	return os.RemoveAll(dir)
}
