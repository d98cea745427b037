package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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
	"github.com/rissodb/risso/internal/store/blob"
)

type copyFlags struct {
	flags.Source
	places.Trust
	to      string
	backups []string
	threads int
	dryRun  bool
	output  string
}

func newBackupCopy(s screen.Streams) *cobra.Command {
	var f copyFlags
	cmd := &cobra.Command{
		Use:   "copy --from PLACE --to PLACE",
		Short: "Copy backups to a second place",
		Long: `Copies backups, the results of drills and mirrored binary logs from one place to another: only what
is missing there, byte for byte, so no identity is needed. Each object's seal is checked on the way,
and its contents too with --identity or if nothing is encrypted, so damage is not copied. A backup
that is incomplete at the second place is completed. Nothing there is ever replaced: objects that
differ are reported with both sizes. A backup that is damaged or refused is reported as well; the
others are copied, and the exit code is 1. An interrupted copy continues when it is run again, and
a backup becomes visible at the second place once it is complete there. After that every command
works with either place.

` + flags.TrustHelp,
		Example: `  risso backup copy --from /backups/db1 --to 's3://backups/db1?region=eu-central-1'
  risso backup copy --from 's3://backups/db1?region=eu-central-1' --to /rescue --backup newest`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runCopy(cmd.Context(), s, f) },
	}
	fl := cmd.Flags()
	f.Source.Bind(cmd)
	flags.BindTrust(&f.Trust, cmd)
	fl.StringVar(&f.to, "to", "", "the second place")
	fl.StringArrayVar(&f.backups, "backup", nil, "only the backup with this ID, or newest; may be repeated")
	fl.IntVar(&f.threads, "threads", 0, "objects copied at once (default two per processor, at most 16)")
	fl.BoolVar(&f.dryRun, "dry-run", false, "show what would be copied, and copy nothing")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	return cmd
}

func runCopy(ctx context.Context, s screen.Streams, f copyFlags) error {
	switch {
	case f.to == "":
		return fault.Usagef("give the place to write to: --to PLACE, one of %s", blob.Forms)
	case f.threads < 0 || f.threads > 256:
		return fault.Usagef("--threads %d: 1 to 256", f.threads)
	case f.From != "" && places.Words(f.From) == places.Words(f.to):
		return fault.Usagef("--from and --to are one place")
	}
	if err := blob.Check(f.to); err != nil {
		return err
	}
	policy, err := f.Trust.Policy(f.From, screen.Says(s.Err))
	if err != nil {
		return err
	}
	f.Source.Policy = policy
	r, closeFrom, err := f.Open(ctx)
	if err != nil {
		return err
	}
	defer closeFrom()
	to, err := blob.Open(ctx, f.to, blob.Options{})
	if err != nil {
		return err
	}
	defer to.Close()
	o := repo.CopyOptions{Threads: f.threads, DryRun: f.dryRun}
	if o.Backups, err = backupIDs(ctx, r, f.backups); err != nil {
		return places.Failure(ctx, f.From, err)
	}
	began := time.Now()
	progress := screen.NewProgress(s.Err)
	defer progress.End()
	o.Progress, o.Waiting = progress.Set, waitsFor(progress, s.Err)
	c, err := r.CopyTo(ctx, repo.On(to), o)
	progress.End()
	switch {
	case ctx.Err() != nil:
		return fault.New(fault.Interrupted, "started again it continues from here", errors.New("interrupted"))
	case errors.Is(err, repo.ErrOther):
		return fault.New(fault.Failed, "use an empty place, or one below it", fmt.Errorf("%s: %w", places.Words(f.to), err))
	case err != nil:
		return places.Failure(ctx, f.From, err)
	}
	if f.output == "json" {
		err = render.JSON(s.Out, CopiedAnswer{places.Words(f.From), places.Words(f.to), f.dryRun, time.Since(began).Seconds(), *c})
	} else {
		copyText(s.Out, c, places.Words(f.to), f.dryRun, time.Since(began))
	}
	if err != nil || c.Whole() {
		return err
	}
	return copyFailure(c)
}

// copyText says what a copy did.
func copyText(w io.Writer, c *repo.Copied, to string, dry bool, took time.Duration) {
	for _, r := range c.Refused {
		fmt.Fprintf(w, "refused    %s\n", r)
	}
	for _, d := range c.Different {
		fmt.Fprintf(w, "different  %s\n", d)
	}
	verb := "Copied"
	if dry {
		verb = "Would copy"
	}
	fmt.Fprintf(w, "%s %s, %s of %s, to %s", verb, digits.Counted(len(c.Backups), "backup"), digits.Counted(c.Objects, "object"), digits.Bytes(c.Bytes), to)
	if !dry {
		fmt.Fprintf(w, " in %s", digits.Seconds(took.Seconds()))
	}
	if c.Logs > 0 {
		fmt.Fprintf(w, "; %s of %s", digits.Counted(c.Logs, "mirrored log"), digits.Bytes(c.LogBytes))
	}
	if c.Mended > 0 {
		fmt.Fprintf(w, "; %s missing from backups there", digits.Counted(c.Mended, "object"))
	}
	if len(c.There) > 0 {
		fmt.Fprintf(w, "; %s there before", digits.Plural(len(c.There), "was", "were"))
	}
	fmt.Fprintln(w)
	if dry {
		screen.Steps(w, c.Steps)
	} else if len(c.Backups) > 0 {
		fmt.Fprintln(w, strings.Join(c.Backups, "\n"))
	}
}

// copyFailure is the error of an incomplete copy, and how to fix it.
func copyFailure(c *repo.Copied) error {
	remedy := "risso verify shows which place has the original; risso verify --set-aside moves away what is damaged at the second one, and the next copy brings it again"
	if len(c.Different) == 0 && !slices.ContainsFunc(c.Refused, func(r repo.Refusal) bool { return r.Kind != repo.Foreign }) {
		remedy = repo.TrustRemedy
	}
	return fault.New(fault.Failed, remedy, errors.New(c.Problems()))
}
