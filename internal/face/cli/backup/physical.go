package backup

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/physical"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/mysql"
)

// physicalHelp is what the help of risso backup says about --physical.
const physicalHelp = `With --physical the server's own files are copied, on the server's machine: by
mariadb-backup (MariaDB), by the CLONE plug-in (MySQL 8.0.17 and later), or by xtrabackup if it
is installed, which is untested with this version of Risso. --incremental stores only the pages
changed since the newest physical backup of the same server (mariadb-backup, xtrabackup).
CLONE needs its plug-in: with --install-clone Risso installs it and removes it afterwards.`

// physicalFlags are those of risso backup that belong to --physical.
type physicalFlags struct {
	on          bool
	incremental bool
	install     bool
	tool        string
	workDir     string
	stateDir    string
}

func (f *physicalFlags) bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.on, "physical", false, "copy the server's files instead of reading its rows")
	fl.BoolVar(&f.incremental, "incremental", false, "with --physical: store only pages changed since the newest physical backup of this server")
	fl.StringVar(&f.tool, "tool", "", "with --physical: mariadb-backup, clone or xtrabackup (default: the installed one that suits the server)")
	fl.BoolVar(&f.install, "install-clone", false, "with --physical: install the CLONE plug-in for the backup and remove it afterwards")
	fl.StringVar(&f.workDir, "work-dir", "", "with --physical --tool clone: where the server puts its temporary copy (default next to its data directory)")
	fl.StringVar(&f.stateDir, "state", "", "with --physical: folder of the journal of server settings to put back (default "+home.State("physical")+")")
}

// check refuses flags of --physical without it, and those that go by rows with it.
func (f physicalFlags) check(cmd *cobra.Command) error {
	with, without := []string{"incremental", "tool", "install-clone", "work-dir", "state"}, []string{"schema", "table", "exclude", "no-users", "no-rows", "no-history", "snapshot", "long-query", "partial", "accept-smaller", "compress"}
	for _, name := range with {
		if !f.on && cmd.Flags().Changed(name) {
			return fault.Usagef("--%s needs --physical", name)
		}
	}
	for _, name := range without {
		if f.on && cmd.Flags().Changed(name) {
			return fault.Usagef("--%s does not work with --physical: all files are copied, and compressed", name)
		}
	}
	return nil
}

// runPhysical is risso backup --physical, for what the other flags of risso backup say.
func (f backupFlags) runPhysical(ctx context.Context, s screen.Streams, d dump.Options, replicas []mysql.Target, keys repo.Keys) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	limits, err := f.Limits(1)
	if err != nil {
		return err
	}
	o := physical.Options{Target: d.Target, Name: d.Name, Tool: mysql.CopyTool(f.tool), Threads: f.threads, Incremental: f.incremental, LockWait: f.lockWait,
		KillLongQueries: f.killLong, Install: f.install, WorkDir: f.workDir, Rate: limits.MaxRate, JournalDir: cmp.Or(f.stateDir, home.State("physical"))}
	if f.to != "" {
		r, closePlace, err := f.placeFor(ctx, keys)
		if err != nil {
			return err
		}
		defer closePlace()
		o.Repo = r
	}
	if f.dryRun {
		plan, err := physical.Prepare(ctx, o)
		if err != nil {
			return err
		}
		if f.output == "json" {
			return render.JSON(s.Out, plan)
		}
		return writePlan(s.Out, plan)
	}
	if err := o.Repo.Idle(ctx, waitsFor(screen.NewProgress(s.Err), s.Err)); err != nil {
		return backupFailure(ctx, err)
	}
	gate, err := f.Gate(ctx, 1, o.Target, replicas...)
	if err != nil {
		return err
	}
	defer gate.Close()
	o.Gate = gate
	return takePhysical(ctx, s, o, f.output)
}

// placeFor opens the repository; a dry run makes none.
func (f backupFlags) placeFor(ctx context.Context, keys repo.Keys) (*repo.Repo, func(), error) {
	if !f.dryRun {
		return places.Make(ctx, f.to, keys)
	}
	signer, err := repo.SigningKey(home.Keys(), false)
	if errors.Is(err, fs.ErrNotExist) { // what is taken will be signed by a key that has signed nothing yet
		_, signer, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		return nil, nil, err
	}
	r, closePlace, err := flags.Source{From: f.to, Identity: f.Encrypt.Identity, Signer: signer}.Open(ctx)
	if errors.Is(err, repo.ErrNoRepository) {
		return nil, func() {}, nil
	}
	return r, closePlace, err
}

// takePhysical takes a physical backup and says so.
func takePhysical(ctx context.Context, s screen.Streams, o physical.Options, output string) error {
	line := screen.NewProgress(s.Err)
	o.Progress = func(p physical.Progress) { line.Stage(p.Stage, "bytes", p.Done, p.Total) }
	o.Waiting = waitsFor(line, s.Err)
	o.Planned = func(p physical.Plan) error { // what a person should know before it starts
		for _, n := range p.Notes {
			fmt.Fprintln(s.Err, "risso: note: "+n)
		}
		return nil
	}
	h, err := physical.Take(ctx, o)
	line.End()
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return fault.New(fault.Interrupted, "", errors.New("interrupted; what was stored of the backup has been removed"))
	case err != nil:
		return err
	case output == "json":
		return render.JSON(s.Out, h)
	}
	return writeTaken(s.Out, h)
}

func writePlan(w io.Writer, p physical.Plan) error {
	fmt.Fprintf(w, "%s by %s %s\n", p.Server, p.Tool, p.Version)
	if p.Parent != "" {
		fmt.Fprintf(w, "on top of backup %s\n", p.Parent)
	}
	for i, step := range p.Steps {
		fmt.Fprintf(w, "%d. %s\n", i+1, step)
	}
	for _, c := range p.Changes {
		fmt.Fprintf(w, "changes the server: %s\n", c)
	}
	for _, n := range p.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	_, err := fmt.Fprintf(w, "the account needs: %s\n", p.Needs)
	return err
}

func writeTaken(w io.Writer, h repo.Header) error {
	kind := "whole"
	if h.Parent != "" {
		kind = "incremental, on top of " + h.Parent
	}
	fmt.Fprintf(w, "backup %s of %s: %s, %s, by %s\n", h.ID, h.Server.Name, h.Kind, kind, h.Tool)
	fmt.Fprintf(w, "%s, %s, %s stored, in %s; locked for %s\n", digits.Counted(h.Stream.Files, "file"), digits.Bytes(h.Bytes), digits.Bytes(h.Stored), digits.Span(h.Ended.Sub(h.Began)), digits.Seconds(h.LockSeconds))
	if h.Position.File != "" {
		fmt.Fprintf(w, "position %s:%d %s\n", h.Position.File, h.Position.Offset, h.Position.GTIDSet)
	}
	for _, n := range h.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	return nil
}
