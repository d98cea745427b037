package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/digits"
)

// bootstrapTimeout bounds the making of one template. It takes some seconds on
// an idle machine.
const bootstrapTimeout = 5 * time.Minute

// template is a fresh data directory for a server, made once per server build
// and kept in the cache; making it takes seconds, a copy of it a fraction of one.
type template struct {
	server Server
	recipe recipe
	galera bool     // with the state of a new cluster in it
	birth  []string // settings that a data directory has for good
	cache  string   // Risso's cache folder
	// scratch is a folder of the sandbox that is being made: the work happens
	// there, so that it is found and removed with the sandbox when Risso dies.
	scratch string
	say     func(string)
}

// ofBirth are those of some settings that a data directory gets when it is made, and that no server can change later; defaults are left out.
func ofBirth(settings []string) (list []string) {
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		name = strings.TrimPrefix(strings.ReplaceAll(name, "-", "_"), "loose_")
		if name == "innodb_page_size" && value != "16384" || name == "lower_case_table_names" && value != "0" {
			list = append(list, name+"="+value)
		}
	}
	return list
}

// ensure makes the template when there is none, and returns its folder.
func (t template) ensure(ctx context.Context) (string, error) {
	key, err := t.key()
	if err != nil {
		return "", err
	}
	root := filepath.Join(t.cache, "templates")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", fmt.Errorf("create the cache of templates: %w", err)
	}
	dir := filepath.Join(root, key)
	if isDir(dir) {
		return dir, nil
	}
	unlock, err := lockFile(ctx, dir+".lock", bootstrapTimeout)
	if err != nil {
		return "", fmt.Errorf("wait for the template of %s: %w", t.server.Name, err)
	}
	defer unlock()
	if isDir(dir) {
		return dir, nil // another up made it while this one waited
	}
	t.say(fmt.Sprintf("%s %s: first use, making a data directory", t.server.Family, t.server.Version))
	start := time.Now()
	if err := t.build(ctx, filepath.Join(t.scratch, key), dir); err != nil {
		return "", fmt.Errorf("make a data directory for %s: %w", t.server.Name, err)
	}
	t.say(fmt.Sprintf("%s %s: data directory made and kept (%s)", t.server.Family, t.server.Version, seconds(start)))
	return dir, nil
}

// build makes the template in work and puts it to dir as a whole.
func (t template) build(ctx context.Context, work, dir string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bootstrapTimeout, fmt.Errorf("not done after %s", bootstrapTimeout))
	defer cancel()
	data := filepath.Join(work, "data")
	if err := t.bootstrap(ctx, work, data); err != nil {
		return err
	}
	if t.galera {
		if err := t.foundCluster(ctx, work, data); err != nil {
			return fmt.Errorf("found a cluster: %w", err)
		}
	}
	half := dir + ".half"
	if err := os.RemoveAll(half); err != nil {
		return err
	}
	if err := copyTree(ctx, half, data, true); err != nil {
		return err
	}
	if err := os.Rename(half, dir); err != nil {
		return err
	}
	return os.RemoveAll(work)
}

// key names a template by all that shapes it: the program, and how it is made.
func (t template) key() (string, error) {
	fi, err := os.Stat(t.server.Binary)
	if err != nil {
		return "", fmt.Errorf("server %s: %w", t.server.Name, err)
	}
	args, err := t.recipe.bootstrap(t.recipe, t.server, "D", "E")
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, t.server.Binary, t.server.Version, fi.Size(), fi.ModTime().UnixNano(), os.Geteuid(), append(args, t.birth...), t.recipe.extraSQL)
	kind := ""
	if t.galera {
		kind = "-galera"
	}
	return t.server.Name + kind + "-" + hex.EncodeToString(h.Sum(nil))[:12], nil
}

// bootstrap fills data with system tables.
func (t template) bootstrap(ctx context.Context, work, data string) error {
	extra := filepath.Join(work, "extra.sql")
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(extra, []byte(t.recipe.extraSQL), 0o600); err != nil {
		return err
	}
	args, err := t.recipe.bootstrap(t.recipe, t.server, data, extra)
	if err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		args = append(args, "--user=root") // servers refuse root without it
	}
	args = append(append(args, dashed(t.birth)...), "--tmpdir="+work)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = environ(t.server.Basedir)
	cmd.Dir = work
	// A script and the server that it starts die together, and Ctrl-C reaches
	// Risso only, which then ends them in its own order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	out, err := cmd.CombinedOutput()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(args[0]), err, lastErrors(string(out)))
	}
	// The identity of a server must not be copied.
	return removeFiles(data, "auto.cnf")
}

// removeFiles removes files from dir, as far as they are there.
func removeFiles(dir string, names ...string) error {
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// copyTree copies a folder of plain files. Keep is for a template: the files
// are written through to the disk, because it has to be whole after a power cut.
func copyTree(ctx context.Context, dst, src string, keep bool) error {
	var g errgroup.Group
	g.SetLimit(8)
	err := filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dst, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(to, 0o700)
		case d.Type().IsRegular():
			g.Go(func() error { return copyFile(to, path, keep) })
		}
		return nil // sockets and links are no part of a data directory at rest
	})
	return errors.Join(err, g.Wait())
}

func isDir(p string) bool {
	fi, err := os.Stat(p)
	return err == nil && fi.IsDir()
}

// seconds is the time since start, for a person.
func seconds(start time.Time) string { return digits.Span(time.Since(start)) }

// lastErrors picks the lines of a server's log that say what went wrong, the
// last few; without such lines, the last lines at all.
func lastErrors(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	var bad []string
	for _, l := range lines {
		if strings.Contains(l, "[ERROR]") || strings.HasPrefix(l, "mysqld: ") || strings.Contains(l, "FATAL") {
			bad = append(bad, strings.TrimSpace(l))
		}
	}
	if len(bad) == 0 {
		bad = lines
	}
	return strings.Join(bad[max(0, len(bad)-3):], "; ")
}
