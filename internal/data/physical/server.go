package physical

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/pattern"
)

// readable says whether the files of a data directory can be read.
func readable(dir string) error {
	f, err := os.Open(filepath.Join(dir, "ibdata1"))
	switch {
	case errors.Is(err, fs.ErrPermission):
		return mended("run Risso as the user that owns the server's data directory, or as root", "the server's files: %w", err)
	case errors.Is(err, fs.ErrNotExist):
		// Where innodb_data_file_path names another file, the directory has to do.
		if _, err := os.ReadDir(dir); err != nil {
			return mended("run Risso on the server's own machine, outside of its container", "%w: %w", ErrRemote, err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("the server's files: %w", err)
	}
	return f.Close()
}

// sizeOf adds up the files of a data directory that a backup holds; 0 if they cannot be seen.
func sizeOf(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // an estimate: what cannot be seen is left out
		if err != nil {
			return nil
		}
		if d.Type().IsRegular() && !logFile(d.Name()) {
			if st, err := d.Info(); err == nil {
				sum += st.Size()
			}
		}
		return nil
	})
	return sum
}

var logForm = pattern.Lazy(`\.[0-9]{6,}$|^ib_logfile|^#ib_redo|^ibtmp|^ib_buffer_pool|\.(log|pid|sock|err)$`)

// logFile recognizes binary logs, redo logs and what else belongs to the running server only.
func logFile(name string) bool { return logForm().MatchString(name) }

// toolNames are the names of a tool's program.
func toolNames(t mysql.CopyTool) []string {
	if t == mysql.ToolMariaDBBackup {
		return []string{"mariadb-backup", "mariabackup"}
	}
	return []string{string(t)}
}

// packages say where a tool comes from.
func packages(t mysql.CopyTool) string {
	switch t {
	case mysql.ToolMariaDBBackup:
		return "install mariadb-backup of the server's version (Debian: package mariadb-backup; RHEL: MariaDB-backup)"
	case mysql.ToolXtraBackup:
		return "install Percona XtraBackup of the server's version"
	}
	return ""
}

// chooseTool takes the tool that was asked for, or the first that fits the server and is installed.
func (j *job) chooseTool(ctx context.Context) error {
	fits := j.server.CopyTools()
	if j.Tool != "" {
		found := false
		for _, t := range fits {
			found = found || t == j.Tool
		}
		if !found {
			return mended(fmt.Sprintf("for %s %s there is %s", j.server.Flavour, j.server.Version, join(fits)), "%w: %s cannot copy this server", ErrNoTool, j.Tool)
		}
		fits = []mysql.CopyTool{j.Tool}
	}
	for _, t := range fits {
		j.plan.Tool = t
		if t == mysql.ToolClone {
			j.plan.Version = j.server.Version
			return nil
		}
		for _, name := range toolNames(t) {
			path, err := exec.LookPath(name)
			if err != nil {
				continue
			}
			j.plan.Path = path
			j.plan.Untested = t == mysql.ToolXtraBackup
			return j.checkVersion(ctx)
		}
	}
	return mended(packages(fits[0]), "%w: looked for %s on PATH", ErrNoTool, join(fits))
}

func join(list []mysql.CopyTool) string {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}

var versionForm = pattern.Lazy(`(?:server|version) (\d+\.\d+\.\d+[^ ]*)`)

// checkVersion asks the tool for its version: it has to be of the server's series.
func (j *job) checkVersion(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, j.plan.Path, "--version")
	cmd.Env = quietEnviron()
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s --version: %w: %.200s", j.plan.Path, err, out)
	}
	m := versionForm().FindStringSubmatch(string(out))
	if m == nil {
		return fmt.Errorf("%s --version says no version: %.200s", j.plan.Path, out)
	}
	j.plan.Version = m[1]
	want := j.server.Number.Series()
	if got := fleet.ParseVersion(m[1]).Series(); got != want {
		return mended(packages(j.plan.Tool), "%s is of %s, the server of %s: a tool of another series may write a backup that cannot be restored", j.plan.Tool, got, want)
	}
	return nil
}

// chooseParent finds the backup that an incremental one builds on.
func (j *job) chooseParent(ctx context.Context) error {
	if !j.Incremental {
		return nil
	}
	if j.plan.Tool == mysql.ToolClone {
		j.plan.Notes = append(j.plan.Notes, "CLONE copies everything each time: this backup is not incremental")
		return nil
	}
	if j.Repo == nil { // a plan without a place
		j.plan.Notes = append(j.plan.Notes, "there is no repository yet: this backup is whole")
		return nil
	}
	list, err := j.Repo.Backups(ctx)
	if err != nil {
		return err
	}
	for i := len(list) - 1; i >= 0; i-- {
		h := list[i]
		if h.Kind == repo.Physical && h.Server.Identity == j.server.ID && h.Stream != nil && h.Stream.Tool == string(j.plan.Tool) && h.Stream.ToLSN > 0 {
			if !h.Server.Number.SameSeries(j.server.Number) {
				break
			}
			h, why, err := j.buildable(ctx, h.ID)
			if err != nil {
				return err
			}
			if why != nil {
				j.plan.Notes = append(j.plan.Notes, fmt.Sprintf("this backup does not build on %s, because a restore would refuse it with that one: %v", list[i].ID, why))
				continue
			}
			j.parent, j.plan.Parent = &h, h.ID
			return nil
		}
	}
	j.plan.Notes = append(j.plan.Notes, "there is no physical backup of this server and version yet to build on: this one is whole")
	return nil
}

// buildable reads what a backup, and all that it builds on, say of themselves. why: they are not what this account took.
func (j *job) buildable(ctx context.Context, id string) (h repo.Header, why, err error) {
	seen := map[string]bool{}
	for next := id; ; {
		l, err := j.Repo.Mine(ctx, next)
		switch {
		case repo.Unfit(err):
			return h, err, nil
		case err != nil:
			return h, nil, err
		}
		if next == id {
			h = l
		}
		seen[next] = true
		switch {
		case l.Stream == nil:
			return h, fmt.Errorf("backup %s is no physical one: %w", next, repo.ErrDamaged), nil
		case l.Stream.FromLSN == 0:
			return h, nil, nil
		case seen[l.Parent]:
			return h, fmt.Errorf("backup %s builds on itself: %w", next, repo.ErrDamaged), nil
		}
		next = l.Parent
	}
}

// describe fills in what is known of the server before the copy.
func (j *job) describe(ctx context.Context) error {
	vars, err := read.Variables(ctx, j.conn, j.server.FilesVariables())
	if err != nil {
		return err
	}
	j.header.Server = repo.Server{Identity: j.server.ID, Name: j.Name, Server: j.server.Server, Variables: vars}
	switch filter, err := j.conn.LogFilter(ctx); {
	case mysql.ClassOf(err) == mysql.ClassPrivilege:
		j.header.Notes = append(j.header.Notes, "it is not known whether the binary logs hold all changes, because the account may not ask, and so whether rolling forward is complete (before the next backup run "+j.server.CopyGrants(j.plan.Tool)+")")
	case err != nil:
		return err
	case filter.String() != "":
		j.header.Server.LogDo, j.header.Server.LogIgnore = filter.Do, filter.Ignore
		j.header.Notes = append(j.header.Notes, "the server writes only some of its changes to the binary log: "+filter.String())
	}
	j.header.Stream = &repo.Stream{Tool: string(j.plan.Tool), Form: "xbstream", LeftOut: j.leftOut}
	if j.parent != nil {
		j.header.Parent = j.parent.ID
	}
	return nil
}

// userName is the name of a user, or its number if it has none.
func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// privatePrefix begins the names of private directories.
const privatePrefix = "risso-physical-"

// privateDir makes a directory that nobody else can read, for temporary files. It is locked as long as this process
// lives; those of killed ones are removed as well.
func privateDir() (dir string, remove func(), err error) {
	sweepPrivate()
	if dir, err = os.MkdirTemp("", privatePrefix+"*"); err != nil {
		return "", nil, err
	}
	f, err := os.Open(dir)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		return "", nil, errors.Join(err, os.Remove(dir))
	}
	return dir, func() {
		_ = os.RemoveAll(dir) // what cannot be removed is where temporary files are
		f.Close()
	}, nil
}

// sweepPrivate removes the directories of killed processes: empty ones only, as the tools write nothing there.
func sweepPrivate() {
	list, _ := filepath.Glob(filepath.Join(os.TempDir(), privatePrefix+"*")) // the pattern is good
	for _, dir := range list {
		f, err := os.Open(dir)
		if err != nil {
			continue
		}
		st, err := f.Stat()
		if err == nil && time.Since(st.ModTime()) > time.Minute && unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.Remove(dir)
		}
		f.Close()
	}
}
