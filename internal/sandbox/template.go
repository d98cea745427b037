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
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// bootstrapTimeout bounds the making of one template. It takes some seconds on
// an idle machine.
const bootstrapTimeout = 2 * time.Minute

// template returns the folder of a fresh data directory for a server, made
// once per server build and kept in the cache; making it takes seconds, a copy
// of it a fraction of one. Scratch is a folder of the sandbox that is being
// made: the work happens there, so that it is found and removed with the
// sandbox when Risso dies meanwhile.
func template(ctx context.Context, cache, scratch string, s Server, r recipe, say func(string)) (string, error) {
	key, err := templateKey(s, r)
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, "templates")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", fmt.Errorf("make the cache of templates: %w", err)
	}
	dir := filepath.Join(root, key)
	if isDir(dir) {
		return dir, nil
	}
	unlock, err := lockFile(ctx, dir+".lock", bootstrapTimeout)
	if err != nil {
		return "", fmt.Errorf("wait for the template of %s: %w", s.Name, err)
	}
	defer unlock()
	if isDir(dir) {
		return dir, nil // another up made it while this one waited
	}
	say(fmt.Sprintf("%s %s: first use, making a data directory", s.Family, s.Version))
	start := time.Now()
	work := filepath.Join(scratch, key)
	if err := bootstrap(ctx, work, s, r); err != nil {
		return "", err
	}
	// The copy gets its own name first: a template is there as a whole or not at all.
	half := dir + ".half"
	if err := os.RemoveAll(half); err != nil {
		return "", fmt.Errorf("clear an unfinished template: %w", err)
	}
	if err := copyTree(ctx, half, filepath.Join(work, "data"), true); err != nil {
		return "", fmt.Errorf("keep the template of %s: %w", s.Name, err)
	}
	if err := os.Rename(half, dir); err != nil {
		return "", fmt.Errorf("keep the template of %s: %w", s.Name, err)
	}
	if err := os.RemoveAll(work); err != nil {
		return "", fmt.Errorf("clear the work of a template: %w", err)
	}
	say(fmt.Sprintf("%s %s: data directory made and kept (%s)", s.Family, s.Version, seconds(start)))
	return dir, nil
}

// templateKey names a template by all that shapes it: the program, and how it was made.
func templateKey(s Server, r recipe) (string, error) {
	fi, err := os.Stat(s.Binary)
	if err != nil {
		return "", fmt.Errorf("server %s: %w", s.Name, err)
	}
	args, err := r.bootstrap(s, "D", "E")
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, s.Binary, s.Version, fi.Size(), fi.ModTime().UnixNano(), os.Geteuid(), args, r.extraSQL)
	return s.Name + "-" + hex.EncodeToString(h.Sum(nil))[:12], nil
}

// bootstrap makes work/data.
func bootstrap(ctx context.Context, work string, s Server, r recipe) error {
	data, extra := filepath.Join(work, "data"), filepath.Join(work, "extra.sql")
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(extra, []byte(r.extraSQL), 0o600); err != nil {
		return err
	}
	args, err := r.bootstrap(s, data, extra)
	if err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		args = append(args, "--user=root") // servers refuse root unless told
	}
	args = append(args, "--tmpdir="+work)
	ctx, cancel := context.WithTimeoutCause(ctx, bootstrapTimeout, fmt.Errorf("not done after %s", bootstrapTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = environ(s.Basedir)
	cmd.Dir = work
	// A script and the server that it starts die together, and Ctrl-C reaches
	// Risso only, which then ends them in its own order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	out, err := cmd.CombinedOutput()
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("make a data directory with %s: %w", s.Name, cause)
	}
	if err != nil {
		return fmt.Errorf("make a data directory with %s: %w: %s", filepath.Base(args[0]), err, lastErrors(string(out)))
	}
	// The identity of a server must not be copied.
	if err := os.Remove(filepath.Join(data, "auto.cnf")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clear the server's identity: %w", err)
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
func seconds(start time.Time) string {
	return strconv.FormatFloat(time.Since(start).Seconds(), 'f', 1, 64) + " s"
}

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
