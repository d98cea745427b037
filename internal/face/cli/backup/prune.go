package backup

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
)

type pruneFlags struct {
	flags.Source
	trust  []string
	keep   repo.Retention
	within string
	remove []string
	dryRun bool
	output string
}

func newBackupPrune(s screen.Streams) *cobra.Command {
	var f pruneFlags
	cmd := &cobra.Command{
		Use:   "prune --from PLACE --keep-daily 7 --keep-weekly 4 --keep-monthly 12",
		Short: "Remove backups by rule, and objects no longer needed",
		Long: `Shows for each backup whether it is kept, and why; then removes the others, and all objects that no
backup needs any more. With --dry-run it only shows this. The rules are applied separately to each
server, and to logical and physical backups. --keep-daily 7 keeps the last backup of each of the
last 7 days on which there was one (days in this host's time zone; weeks begin on Monday).

Always kept, whatever the rules: the newest backup, the newest one proven by a drill, backups that
others build on, backups that cannot be read, and backups dated in the future, because a clock was
wrong (these do not count for the rules, and only --remove removes them). Without a rule all backups
are kept, and only what killed backups left behind is removed.

A backup that is unsigned, or signed by a key that is not trusted, never replaces one signed by a
trusted key or by a different key; among backups of its own kind the same rules apply. Trusted are
this account's key, the keys it has remembered for the repository, and those given by --trust.

It may run during a backup: objects are then removed the next time. No identity is needed.`,
		Example: `  risso backup prune --from /backups/db1 --keep-daily 7 --keep-weekly 4 --keep-monthly 12 --dry-run
  risso backup prune --from 's3://backups/db1?region=eu-central-1' --keep-within 14d --keep-last 3
  risso backup prune --from /backups/db1 --remove 20261121T183700Z-1a2b3c`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runPrune(cmd.Context(), s, f) },
	}
	fl := cmd.Flags()
	f.Source.Bind(cmd)
	fl.IntVar(&f.keep.Last, "keep-last", 0, "keep this many of the newest backups")
	fl.StringVar(&f.within, "keep-within", "", "keep all that are at most this much older than the newest: 36h, 14d, 8w")
	fl.IntVar(&f.keep.Daily, "keep-daily", 0, "keep the last one of each of this many days")
	fl.IntVar(&f.keep.Weekly, "keep-weekly", 0, "keep the last one of each of this many weeks")
	fl.IntVar(&f.keep.Monthly, "keep-monthly", 0, "keep the last one of each of this many months")
	fl.IntVar(&f.keep.Yearly, "keep-yearly", 0, "keep the last one of each of this many years")
	fl.StringArrayVar(&f.remove, "remove", nil, "remove the backup with this ID instead of following rules; may be repeated")
	fl.StringArrayVar(&f.trust, "trust", nil, "let backups signed by this key (printed by risso backup key), or by the keys in this file, replace others; may be repeated")
	fl.BoolVar(&f.dryRun, "dry-run", false, "show what would be removed, and remove nothing")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	return cmd
}

// options reads the flags.
func (f pruneFlags) options() (repo.PruneOptions, error) {
	o := repo.PruneOptions{Retention: f.keep, Zone: time.Local, Remove: f.remove, DryRun: f.dryRun}
	for _, n := range []int{f.keep.Last, f.keep.Daily, f.keep.Weekly, f.keep.Monthly, f.keep.Yearly} {
		if n < 0 {
			return o, fault.Usagef("how many backups are kept cannot be %d", n)
		}
	}
	var err error
	if o.Retention.Within, err = digits.ParseAge(f.within); err != nil {
		return o, fault.Usagef("--keep-within: %w", err)
	}
	if len(o.Remove) > 0 && !o.Retention.Empty() {
		return o, fault.Usagef("--remove and --keep-… exclude each other")
	}
	return o, nil
}

func runPrune(ctx context.Context, s screen.Streams, f pruneFlags) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	r, closePlace, err := f.Open(ctx)
	if err != nil {
		return err
	}
	defer closePlace()
	progress := screen.NewProgress(s.Err)
	defer progress.End()
	o.Progress = func(n int64) {
		progress.Show(func(elapsed float64) string {
			return fmt.Sprintf("%s removed, %s", digits.Counted(n, "object"), digits.Rate(float64(n)/elapsed))
		})
	}
	if o.Trusted, err = (places.Trust{Keys: f.trust}).Known(r, f.From); err != nil {
		return err
	}
	p, err := r.Prune(ctx, o)
	progress.End()
	if err != nil {
		return places.Failure(ctx, f.From, err)
	}
	if f.output == "json" {
		return render.JSON(s.Out, PrunedAnswer{places.Words(f.From), f.dryRun, *p})
	}
	pruneText(s.Out, p, f.dryRun)
	return nil
}

func pruneText(w io.Writer, p *repo.Pruned, dry bool) {
	for _, d := range p.Decisions {
		word := "keep  "
		if !d.Keep {
			word = "remove"
		}
		fmt.Fprintf(w, "%s  %s  %s\n", word, d.ID, strings.Join(d.Reasons, "; "))
	}
	verb := "Removed"
	if dry {
		verb = "Would remove"
	}
	fmt.Fprintf(w, "%s %s of %d", verb, digits.Counted(len(p.Removed), "backup"), len(p.Decisions))
	if len(p.Running) > 0 {
		fmt.Fprintf(w, "; their objects another time, for %s is at work, or was killed on another machine within the last %s", strings.Join(p.Running, ", "), digits.Seconds(repo.LeaseLife.Seconds()))
	} else {
		fmt.Fprintf(w, ", %s of %s", digits.Counted(p.Objects, "object"), digits.Bytes(p.Bytes))
	}
	if p.Leftovers > 0 {
		fmt.Fprintf(w, ", %s", digits.Counted(p.Leftovers, "interrupted upload"))
	}
	fmt.Fprintln(w)
	if len(p.Dead) > 0 {
		fmt.Fprintf(w, "Killed before they were complete: %s\n", strings.Join(p.Dead, ", "))
	}
	for _, id := range p.Headless {
		fmt.Fprintf(w, "%s has no manifest, so nothing of it can be restored: a copy of the place was interrupted or is not finished, or a file is lost. What is left of it is kept; --remove %s removes it.\n", id, id)
	}
}
