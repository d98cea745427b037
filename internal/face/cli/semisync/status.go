package semisync

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/semisync"
	"github.com/rissodb/risso/internal/avail/semisync/turn"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
)

type statusFlags struct {
	group
	dryRun  bool
	commits int
}

func newStatus(s screen.Streams) *cobra.Command {
	f := statusFlags{group: group{Streams: s}}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Whether commits wait for a replica now, who acknowledges, what it costs, what would be lost",
		Long: `Says whether commits wait for a replica now, which replicas acknowledge, what waiting costs by
the server's counters, and what would be lost if the primary died at this moment. When writes are
blocked because nobody can acknowledge them, it says so, and what ends that.

--measure-commits makes so many commits on the primary, in a schema that is dropped at the end, and
says what each of them took and how much of that was waiting. They replicate. With --dry-run it
only prints what it would do.`,
		Example: `  risso semisync status --dsn 'risso:secret@tcp(db1:3306)/'
  risso semisync status --dsn 'risso:secret@tcp(db1:3306)/' --replica 'risso:secret@tcp(db2:3306)/' -o json
  risso semisync status --dsn 'risso:secret@tcp(db1:3306)/' --measure-commits 50`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.Flags().Changed("measure-commits"))
		},
	}
	f.bind(cmd)
	fl := cmd.Flags()
	fl.IntVar(&f.commits, "measure-commits", 0, "make so many commits, and say what they take")
	fl.BoolVar(&f.dryRun, "dry-run", false, "with --measure-commits: print what it would do, and do not do it")
	return cmd
}

func (f *statusFlags) run(ctx context.Context, measure bool) error {
	switch {
	case !measure && f.dryRun:
		return fault.Usagef("--dry-run is for --measure-commits")
	case measure && (f.commits < 1 || f.commits > turn.MostCommits):
		return fault.Usagef("--measure-commits %d: 1 to %d", f.commits, turn.MostCommits)
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	g, err := turn.Look(ctx, o)
	if err != nil {
		return err
	}
	defer g.Close()
	var plan change.Plan
	if measure {
		if plan, err = g.Measure(f.commits); err != nil {
			return err
		}
		if !f.dryRun {
			if err := g.RunMeasure(ctx, plan); err != nil {
				return err
			}
		}
	}
	a := StatusAnswer{Report: semisync.Judge(g.Facts), Gaps: g.Gaps, Left: g.Left(ctx)}
	if f.dryRun {
		a.Plan = plan.Words()
	}
	if f.output == "json" {
		return errors.Join(render.JSON(f.Out, a), g.Missing())
	}
	f.report(a.Report)
	f.gaps(g)
	for _, left := range a.Left {
		fmt.Fprintf(f.Out, "  %-9s %s\n", "left", left)
	}
	if f.dryRun {
		fmt.Fprintln(f.Out, "\nplan of the measurement:")
		screen.Steps(f.Out, plan)
	}
	return g.Missing()
}

// report writes a verdict.
func (g *group) report(r semisync.Report) {
	line := func(label, text string) { fmt.Fprintf(g.Out, "  %-9s %s\n", label, text) }
	fmt.Fprintf(g.Out, "%s: %s: %s\n", r.Primary, r.State, r.Words)
	line("lost", "if it died now: "+r.Loss)
	line("cost", r.Cost)
	if s := r.Source; s.Loaded {
		line("counted", fmt.Sprintf("%s with an acknowledgement, %s without, since the server started", digits.Counted(s.Yes, "commit"), digits.Thousands(s.No)))
	}
	for _, p := range r.Replicas {
		text := p.Name + ": does not acknowledge"
		if p.Side.InForce {
			text = p.Name + ": acknowledges"
		}
		if p.Missing > 0 {
			text += fmt.Sprintf("; has not received %s", digits.Counted(p.Missing, "transaction"))
		} else if p.Missing < 0 {
			text += "; how far it has received is unknown"
		}
		line("replica", text)
	}
	for _, p := range r.Problems {
		line("problem", p.Words+" ("+p.Code+")")
		if p.Next != "" {
			line("", "next: "+p.Next)
		}
	}
}

// gaps says of which replicas nothing is known.
func (g *group) gaps(of *turn.Group) {
	for _, t := range of.Gaps {
		fmt.Fprintf(g.Out, "  %-9s %s\n", "not seen", t.What+": "+fault.Line(t.Why, t.Remedy))
	}
}
