package restore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/physical"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox"
)

// restoreFilesHelp is what the help of risso restore says about physical backups.
const restoreFilesHelp = `A physical backup becomes a data directory (--datadir, which must be empty) or a throw-away server
(--sandbox); incremental backups are combined with those they build on. To get single tables or a
later moment out of one takes further steps: see docs/backup-physical.md.`

// filesFlags are those of risso restore that belong to physical backups.
type filesFlags struct {
	datadir   string
	useMemory string
}

func (f *filesFlags) bind(fl *pflag.FlagSet) {
	fl.StringVar(&f.datadir, "datadir", "", "turn a physical backup into this data directory, which must be empty or not exist")
	fl.StringVar(&f.useMemory, "use-memory", "", "memory for applying the redo log of a physical backup, such as 1GiB (default 100 MiB)")
}

// restorePhysical restores a physical backup; it reports false if the backup is not physical.
func (f Flags) restorePhysical(ctx context.Context, s screen.Streams, r *repo.Repo, until binlog.Stop) (bool, error) {
	h, err := f.backupHeader(ctx, r)
	if err != nil {
		return true, Failure(ctx, err, false, nil)
	}
	switch {
	case h.Kind != repo.Physical && f.datadir != "":
		return true, fault.New(fault.Usage, "it is loaded into a server: --into DSN or --sandbox NAME; --backup names another, risso backup list shows them", fmt.Errorf("backup %s is a logical one", h.ID))
	case h.Kind != repo.Physical:
		return false, nil
	case f.into != "":
		return true, fault.New(fault.Usage, "it becomes a data directory: --datadir DIR or --sandbox NAME; --backup names another, risso backup list shows them", fmt.Errorf("backup %s is a physical one", h.ID))
	case len(f.tables)+len(f.schemas)+len(f.rename) > 0 || !until.IsZero():
		return true, fault.New(fault.Usage, "restore it with --sandbox, continue there with risso binlog apply, and extract single tables from there with risso backup --table", fmt.Errorf("backup %s is a physical one: it can only be restored as a whole", h.ID))
	}
	o := physical.RestoreOptions{Repo: r, Backup: h.ID, Datadir: f.datadir, Threads: f.threads}
	if f.useMemory != "" {
		if o.UseMemory, err = digits.ParseBytes(f.useMemory); err != nil {
			return true, fault.Usagef("--use-memory: %s", err)
		}
	}
	line := screen.NewProgress(s.Err)
	defer line.End()
	o.Progress = func(p physical.Progress) { line.Stage(p.Stage, "bytes", p.Done, p.Total) }
	if f.sandbox != "" {
		return true, f.filesIntoSandbox(ctx, s, o, h)
	}
	if f.dryRun {
		plan, err := physical.PrepareRestore(ctx, o)
		if err != nil {
			return true, err
		}
		if f.output == "json" {
			return true, render.JSON(s.Out, plan)
		}
		fmt.Fprintf(s.Out, "Backup %s of %s (%s %s), as it was at %s, by %s\nwould become the data directory %s: about %s, in this order:\n", h.ID, h.Server.Name, h.Server.Flavour, h.Server.Version,
			h.Snapshot.Local().Format("2006-01-02 15:04:05"), h.Tool, plan.Datadir, digits.Bytes(plan.Bytes))
		screen.Steps(s.Out, plan.Steps)
		fmt.Fprintln(s.Out, "Nothing was changed.")
		return true, nil
	}
	got, err := physical.Restore(ctx, o)
	line.End()
	if err != nil {
		return true, filesFailure(ctx, err)
	}
	if f.output == "json" {
		return true, render.JSON(s.Out, got)
	}
	dir, err := filepath.Abs(f.datadir)
	if err != nil {
		return true, err
	}
	fmt.Fprintf(s.Out, "Backup %s of %s is a data directory now: %s\n", got.Header.ID, got.Header.Server.Name, dir)
	filesText(s, got)
	fmt.Fprintf(s.Out, "Start %s %s on it with:\n", got.Header.Server.Flavour, got.Header.Server.Version)
	for _, setting := range got.Settings {
		fmt.Fprintln(s.Out, "  "+setting)
	}
	return true, nil
}

// backupHeader reads the header of the backup that is meant: the newest, or with --datadir the newest physical one.
func (f Flags) backupHeader(ctx context.Context, r *repo.Repo) (repo.Header, error) {
	if f.backup == "" && f.datadir != "" {
		list, err := r.Backups(ctx)
		if err != nil {
			return repo.Header{}, err
		}
		if h, ok := repo.Newest(list, time.Now(), func(h repo.Header) bool { return h.Kind == repo.Physical }); ok {
			return h, nil
		}
	}
	m, err := r.Manifest(ctx, f.backup)
	if err != nil {
		return repo.Header{}, err
	}
	return m.Header, m.Close()
}

// filesIntoSandbox starts a throw-away server on a physical backup.
func (f Flags) filesIntoSandbox(ctx context.Context, s screen.Streams, o physical.RestoreOptions, h repo.Header) error {
	if f.dryRun {
		return fault.Usagef("--dry-run and --sandbox: a new server has nothing to check")
	}
	spec := f.server
	if spec == "" {
		spec = sandbox.Like(ctx, h.Server.Flavour, h.Server.Number)
	}
	var got physical.Restored
	box, err := sandbox.Up(ctx, sandbox.Options{Name: f.sandbox, Servers: []string{spec}, Data: func(ctx context.Context, dir string) ([]string, error) {
		var err error
		o.Datadir = dir
		got, err = physical.Restore(ctx, o)
		return got.Settings, err
	}})
	if err != nil {
		return filesFailure(ctx, err)
	}
	if f.output == "json" {
		return render.JSON(s.Out, FilesAnswer{got, box.Primary().DSN})
	}
	fmt.Fprintf(s.Out, "Backup %s of %s runs as %s; away with it: risso sandbox down %s\n", got.Header.ID, got.Header.Server.Name, box.Primary().DSN, box.Name)
	filesText(s, got)
	return nil
}

// filesText says what was restored, in words.
func filesText(s screen.Streams, got physical.Restored) {
	fmt.Fprintf(s.Out, "%s, %s; fetched in %s, prepared in %s\n", digits.Counted(got.Files, "file"), digits.Bytes(got.Bytes), digits.Seconds(got.Fetch.Seconds()), digits.Seconds(got.Prepare.Seconds()))
	if len(got.Chain) > 1 {
		fmt.Fprintf(s.Out, "Put together of %s\n", strings.Join(got.Chain, ", "))
	}
	if p := got.Header.Position; p.File != "" {
		fmt.Fprintf(s.Out, "Position %s:%d %s\n", p.File, p.Offset, p.GTIDSet)
	}
}

// filesFailure says of a signal that it ended the restore.
func filesFailure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fault.New(fault.Interrupted, "", errors.New("interrupted; what was restored has been removed"))
	}
	return err
}
