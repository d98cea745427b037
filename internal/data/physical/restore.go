package physical

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// RestoreOptions say what Restore does.
type RestoreOptions struct {
	Repo      *repo.Repo
	Backup    string // empty: the newest physical one
	Datadir   string // must be empty, or not be there yet
	Threads   int    // that fetch and unpack; 0: 2
	UseMemory int64  // bytes that the tool may use to apply the redo log; 0: its own default (100 MB)
	Progress  func(Progress)
}

// Restored is the result of Restore.
type Restored struct {
	Header   repo.Header   `json:"backup"`
	Chain    []string      `json:"chain"` // backups that were combined, the full one first
	Files    int64         `json:"files"`
	Bytes    int64         `json:"bytes"`
	Fetch    time.Duration `json:"fetch"`    // time to fetch, check and write the files
	Prepare  time.Duration `json:"prepare"`  // time to apply the redo log and incremental backups
	Settings []string      `json:"settings"` // key=value settings that the server needs to read these files
}

// RestorePlan is what Restore would do.
type RestorePlan struct {
	Header  repo.Header `json:"backup"`
	Chain   []string    `json:"chain"`   // backups that are combined, the full one first
	Datadir string      `json:"datadir"` // the directory that would be filled
	Bytes   int64       `json:"bytes"`   // about as much is written
	Steps   change.Plan `json:"steps"`   // what is done, in this order
}

// PrepareRestore says what Restore would do, and changes nothing. It fails where Restore would before its first change.
func PrepareRestore(ctx context.Context, o RestoreOptions) (RestorePlan, error) {
	r, err := newRestore(ctx, o)
	if err != nil {
		return RestorePlan{}, err
	}
	return RestorePlan{Header: r.out.Header, Chain: r.out.Chain, Datadir: r.Datadir, Bytes: r.total, Steps: r.steps()}, nil
}

// The files that Restore leaves in a data directory.
const (
	unfinishedFile = "risso_restore_unfinished" // while it works: what is there is no data directory yet
	restoredFile   = "risso_restored.json"      // the header of the backup that it was made of
)

// Restore makes a data directory of a physical backup: it fetches the files, checks every byte, and applies the redo log and
// the incremental backups. It never writes into a directory that is not empty, except to clear what an interrupted Restore left.
func Restore(ctx context.Context, o RestoreOptions) (Restored, error) {
	r, err := newRestore(ctx, o)
	if err != nil {
		return Restored{}, err
	}
	done, err := change.Execute(ctx, r.steps(), change.Log{})
	if err != nil && done > 0 {
		err = errors.Join(err, r.clear())
	}
	if err != nil {
		return Restored{}, err
	}
	return r.out, nil
}

type restore struct {
	RestoreOptions
	chain  []link
	tool   string // path of the program; empty: the server recovers the files
	out    Restored
	total  int64
	done   int64
	made   bool   // the directory was not there before
	left   bool   // in it is what an interrupted Restore left
	beside string // where incremental backups are unpacked
}

// link is one backup of a chain.
type link struct {
	header repo.Header
	parts  []repo.Part
}

func newRestore(ctx context.Context, o RestoreOptions) (*restore, error) {
	r := &restore{RestoreOptions: o}
	if r.Threads <= 0 {
		r.Threads = 2
	}
	if r.Progress == nil {
		r.Progress = func(Progress) {}
	}
	var err error
	if r.Datadir, err = filepath.Abs(o.Datadir); err != nil {
		return nil, err
	}
	r.beside = r.Datadir + ".risso-incremental"
	if r.chain, err = readChain(ctx, o.Repo, o.Backup); err != nil {
		return nil, err
	}
	for _, l := range r.chain {
		r.total += l.header.Bytes
		r.out.Chain = append(r.out.Chain, l.header.ID)
	}
	r.out.Header = r.chain[len(r.chain)-1].header
	if err := r.findTool(ctx); err != nil {
		return nil, err
	}
	return r, r.look()
}

// readChain reads the manifests of a backup and of those that it builds on, the whole one first.
func readChain(ctx context.Context, r *repo.Repo, id string) (chain []link, err error) {
	if id == "" {
		if id, err = newest(ctx, r); err != nil {
			return nil, err
		}
	}
	for {
		l, err := readLink(ctx, r, id)
		if err != nil {
			return nil, err
		}
		if len(chain) > 0 && l.header.Stream.ToLSN != chain[0].header.Stream.FromLSN {
			return nil, fmt.Errorf("backup %s begins at LSN %d, and %s, which it builds on, ends at %d: %w", chain[0].header.ID, chain[0].header.Stream.FromLSN, id, l.header.Stream.ToLSN, repo.ErrDamaged)
		}
		chain = slices.Insert(chain, 0, l)
		if l.header.Stream.FromLSN == 0 {
			return chain, nil
		}
		if id = l.header.Parent; slices.ContainsFunc(chain, func(l link) bool { return l.header.ID == id }) || id == "" {
			return nil, fmt.Errorf("backup %s does not say what it builds on: %w", l.header.ID, repo.ErrDamaged)
		}
	}
}

func newest(ctx context.Context, r *repo.Repo) (string, error) {
	list, err := r.Backups(ctx)
	if err != nil {
		return "", err
	}
	if h, ok := repo.Newest(list, time.Now(), func(h repo.Header) bool { return h.Kind == repo.Physical }); ok {
		return h.ID, nil
	}
	return "", mended("risso backup --physical takes one", "%w: the repository holds no physical one", repo.ErrNoBackup)
}

func readLink(ctx context.Context, r *repo.Repo, id string) (l link, err error) {
	m, err := r.Manifest(ctx, id)
	if err != nil {
		return l, err
	}
	defer m.Close()
	l.header = m.Header
	if l.header.Kind != repo.Physical || l.header.Stream == nil {
		return l, mended("leave out --datadir: it is loaded into a running server, --into DSN or --sandbox", "backup %s is a logical one", id)
	}
	if f := l.header.Stream.Form; f != "xbstream" {
		return l, fmt.Errorf("backup %s is a stream of the form %q: take a newer risso", id, f)
	}
	err = m.Each(func(line repo.Line) error {
		if line.Part == nil {
			return nil
		}
		if line.Part.Number != len(l.parts) {
			return fmt.Errorf("backup %s: part %d is where %d should be: %w", id, line.Part.Number, len(l.parts), repo.ErrDamaged)
		}
		l.parts = append(l.parts, *line.Part)
		return nil
	})
	return l, err
}

// findTool finds the program that prepares the files: it has to be of the series of the server that they come from.
func (r *restore) findTool(ctx context.Context) error {
	tool := mysql.CopyTool(r.out.Header.Stream.Tool)
	if tool == mysql.ToolClone {
		return nil // the server itself recovers the files when it starts
	}
	for _, name := range toolNames(tool) {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		j := job{server: mysql.Of(r.out.Header.Server.Server)}
		j.plan.Tool, j.plan.Path = tool, path
		r.tool = path
		return j.checkVersion(ctx)
	}
	return mended(packages(tool), "%w: %s has to prepare the files, and is not on PATH", ErrNoTool, tool)
}

// look makes sure of an empty directory, or of one that an interrupted Restore left, in which there is room.
func (r *restore) look() error {
	entries, err := os.ReadDir(r.Datadir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.made = true
	case err != nil:
		return err
	case len(entries) > 0:
		if _, err := os.Stat(filepath.Join(r.Datadir, unfinishedFile)); err != nil {
			return mended("give an empty directory; a server's data is never overwritten", "%w: %s", ErrNotEmpty, r.Datadir)
		}
		r.left = true
		return nil // there is more room when that is gone
	}
	return r.room()
}

// room makes sure that the backup fits.
func (r *restore) room() error {
	dir := r.Datadir
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) { // the disk is that of the first folder that is there
		dir = filepath.Dir(dir)
		err = unix.Statfs(dir, &st)
	}
	if free := int64(st.Bavail) * st.Bsize; err == nil && free < r.total {
		return mended("free some, or give another --datadir", "%w: %s has room for %s, the backup needs %s", ErrNoRoom, r.Datadir, digits.Bytes(free), digits.Bytes(r.total))
	}
	return nil
}

// steps are all that changes the disk, in this order.
func (r *restore) steps() change.Plan {
	first := change.Step{What: "make data directory", Where: r.Datadir, Do: func(context.Context) error { return r.begin() }}
	if r.left {
		first.What, first.Why = "empty directory", "an interrupted restore left files there"
	}
	p := change.Plan{first}
	for i, l := range r.chain {
		dir := r.Datadir
		if i > 0 {
			dir = r.beside
		}
		p = append(p, change.Step{What: "fetch backup", Where: l.header.ID, Why: digits.Bytes(l.header.Bytes) + " into " + dir, Do: func(ctx context.Context) error {
			if i > 0 {
				if err := os.Mkdir(dir, 0o700); err != nil {
					return err
				}
			}
			return r.fetch(ctx, l, dir)
		}})
		if r.tool == "" {
			continue
		}
		p = append(p, change.Step{What: "apply redo log", Where: l.header.ID, Why: "by " + filepath.Base(r.tool), Do: func(ctx context.Context) error {
			if err := r.prepare(ctx, i); err != nil {
				return err
			}
			return os.RemoveAll(r.beside)
		}})
	}
	return append(p, change.Step{What: "finish data directory", Where: r.Datadir, Why: "the tool's own files are removed, all others belong to the owner of the folder and are synced", Do: func(context.Context) error { return r.finish() }})
}

// begin makes the directory, or empties it, and marks it.
func (r *restore) begin() error {
	if r.left { // by a Restore that was killed
		if err := r.empty(); err != nil {
			return err
		}
		if err := r.room(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(r.Datadir, 0o750); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Datadir, unfinishedFile), []byte("risso restore works here, or was ended: this is not a data directory yet\n"), 0o600)
}

// empty removes what an interrupted Restore left, the marker last.
func (r *restore) empty() error {
	if err := os.RemoveAll(r.beside); err != nil {
		return err
	}
	entries, err := os.ReadDir(r.Datadir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == unfinishedFile {
			continue
		}
		if err := os.RemoveAll(filepath.Join(r.Datadir, e.Name())); err != nil {
			return err
		}
	}
	return os.Remove(filepath.Join(r.Datadir, unfinishedFile))
}

// clear removes what a failed restore left.
func (r *restore) clear() error {
	if err := r.empty(); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	if r.made {
		return os.Remove(r.Datadir)
	}
	return nil
}

// fetch writes the files of one backup under dir.
func (r *restore) fetch(ctx context.Context, l link, dir string) error {
	began := time.Now()
	s := newSource(ctx, r.Repo, l.header.ID, l.parts, r.Threads)
	defer s.Close()
	var bytes int64
	files, err := extract(ctx, s, dir, func(n int64) {
		bytes = n
		r.Progress(Progress{Stage: "fetching", Done: r.done + n, Total: r.total})
	})
	if err != nil {
		return fmt.Errorf("backup %s: %w", l.header.ID, err)
	}
	if files != l.header.Stream.Files {
		return fmt.Errorf("backup %s: %s came out of the stream, %d went in: %w", l.header.ID, digits.Counted(files, "file"), l.header.Stream.Files, repo.ErrDamaged)
	}
	r.done += bytes
	r.out.Files += files
	r.out.Bytes += bytes
	r.out.Fetch += time.Since(began)
	return nil
}

// prepareArgs are the arguments by which the tool applies redo log and changed pages to the files in target. Of xtrabackup
// they follow its manual and were never run: except for the last one, --apply-log-only leaves transactions open that the next
// incremental backup goes on with. mariadb-backup (10.2 and later) needs no such thing.
func prepareArgs(tool mysql.CopyTool, target, incremental string, last bool, memory int64) []string {
	args := []string{"--prepare", "--target-dir=" + target}
	if tool == mysql.ToolXtraBackup && !last {
		args = append(args, "--apply-log-only")
	}
	if incremental != "" {
		args = append(args, "--incremental-dir="+incremental)
	}
	if memory > 0 {
		args = append(args, "--use-memory="+strconv.FormatInt(memory, 10))
	}
	return args
}

// prepare applies the nth backup of the chain.
func (r *restore) prepare(ctx context.Context, n int) error {
	tool := mysql.CopyTool(r.out.Header.Stream.Tool)
	began := time.Now()
	r.Progress(Progress{Stage: "preparing", Done: r.done, Total: r.total})
	incremental := ""
	if n > 0 {
		incremental = r.beside
	}
	log := &toolLog{say: func(string) {}}
	p := program{path: r.tool, args: prepareArgs(tool, r.Datadir, incremental, n == len(r.chain)-1, r.UseMemory), dir: "/", line: log.line}
	if err := p.run(ctx, func(io.Reader) error { return nil }); err != nil {
		return fmt.Errorf("prepare backup %s: %w", r.chain[n].header.ID, err)
	}
	if !log.completed() {
		return fmt.Errorf("prepare backup %s: %s ended without saying that it is complete", r.chain[n].header.ID, tool)
	}
	r.out.Prepare += time.Since(began)
	return nil
}

// finish takes the tool's own files away, notes what this is, and hands the files to the directory's owner.
func (r *restore) finish() error {
	var err error
	if r.out.Settings, err = r.settings(); err != nil {
		return err
	}
	entries, err := os.ReadDir(r.Datadir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type().IsRegular() && (strings.HasPrefix(e.Name(), "xtrabackup_") || strings.HasPrefix(e.Name(), "mariadb_backup_") || e.Name() == "backup-my.cnf") {
			if err := os.Remove(filepath.Join(r.Datadir, e.Name())); err != nil {
				return err
			}
		}
	}
	b, err := json.MarshalIndent(r.out.Header, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.Datadir, restoredFile), append(b, '\n'), 0o640); err != nil {
		return err
	}
	if err := r.own(); err != nil {
		return err
	}
	if err := syncAll(r.Datadir); err != nil {
		return err
	}
	return os.Remove(filepath.Join(r.Datadir, unfinishedFile))
}

// settings are what the server needs to read these files.
func (r *restore) settings() (list []string, err error) {
	vars := r.out.Header.Server.Variables
	for _, name := range []string{"lower_case_table_names", "innodb_page_size", "innodb_data_file_path", "innodb_undo_tablespaces"} {
		if v := vars[name]; v != "" {
			list = append(list, name+"="+v)
		}
	}
	return list, nil
}

// own hands everything to whom the directory, or the one above it, belongs: the tools write as root where root runs them.
func (r *restore) own() error {
	if os.Geteuid() != 0 {
		return nil
	}
	of := r.Datadir
	if r.made {
		of = filepath.Dir(r.Datadir)
	}
	var st unix.Stat_t
	if err := unix.Stat(of, &st); err != nil {
		return err
	}
	if st.Uid == 0 {
		return nil
	}
	return filepath.WalkDir(r.Datadir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(st.Uid), int(st.Gid))
	})
}
