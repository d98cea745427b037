package semisync

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/semisync"
	"github.com/rissodb/risso/internal/avail/semisync/turn"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
)

type turnFlags struct {
	group
	on, dryRun, yes bool
	acks            int
}

func newOn(s screen.Streams) *cobra.Command {
	f := turnFlags{group: group{Streams: s}, on: true}
	cmd := &cobra.Command{
		Use:   "on",
		Short: "Let commits wait for a replica, with settings under which nothing acknowledged is lost",
		Long: `Switches semi-synchronous replication on: AFTER_SYNC, a time-out that never comes, and waiting also
without replicas. Replicas first, then the primary, when enough of them can acknowledge. Plug-ins are
installed where they are not yet. MySQL keeps the settings; of other servers it prints what belongs
into the option file.

From then on writes wait while too few replicas are connected: that is what it is for.
risso semisync status says so, and risso semisync off ends it.

The plan is printed first, and carried out with --yes. It stops at the first surprise, puts the primary
back as it was, and says how to go back on the replicas.

` + fault.Help,
		Example: `  risso semisync on --dsn 'risso:secret@tcp(db1:3306)/' --dry-run
  risso semisync on --dsn 'risso:secret@tcp(db1:3306)/' --replica 'risso:secret@tcp(db2:3306)/' --yes
  risso semisync on --dsn 'risso:secret@tcp(db1:3306)/' --acks 2 --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), cmd.Flags().Changed("acks")) },
	}
	f.bindTurn(cmd)
	cmd.Flags().IntVar(&f.acks, "acks", 0, "replicas that have to acknowledge a commit; not on MariaDB (default: as it is, at first 1)")
	return cmd
}

func newOff(s screen.Streams) *cobra.Command {
	f := turnFlags{group: group{Streams: s}}
	cmd := &cobra.Command{
		Use:   "off",
		Short: "Let commits wait for nobody",
		Long: `Switches semi-synchronous replication off: the primary first, so that commits that wait go on at
once, then the replicas that can be asked. Plug-ins stay installed.

The plan is printed first, and carried out with --yes.

` + fault.Help,
		Example: `  risso semisync off --dsn 'risso:secret@tcp(db1:3306)/' --dry-run
  risso semisync off --dsn 'risso:secret@tcp(db1:3306)/' --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), false) },
	}
	f.bindTurn(cmd)
	return cmd
}

func (f *turnFlags) bindTurn(cmd *cobra.Command) {
	f.bind(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.dryRun, "dry-run", false, "print the plan and end")
	fl.BoolVar(&f.yes, "yes", false, "carry the plan out")
	fl.StringVar(&f.state, "state", "", "folder of the journal (default "+home.State("semisync")+")")
}

// mostAcks is more replicas than a primary has.
const mostAcks = 100

func (f *turnFlags) run(ctx context.Context, given bool) error {
	switch {
	case f.dryRun && f.yes:
		return fault.Usagef("either --dry-run or --yes")
	case given && (f.acks < 1 || f.acks > mostAcks):
		return fault.Usagef("--acks %d: 1 to %d", f.acks, mostAcks)
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	o.Count = f.acks
	g, err := turn.Look(ctx, o)
	if err != nil {
		return err
	}
	defer g.Close()
	make := g.Off
	if f.on {
		make = g.On
	}
	t, err := make()
	if err != nil {
		return err
	}
	a := TurnAnswer{Primary: g.Facts.Primary, Plan: t.Plan.Words(), Notes: t.Notes, Lines: t.Lines, Gaps: g.Gaps}
	if f.output != "json" {
		fmt.Fprintf(f.Out, "plan for %s:\n", a.Primary)
		screen.Steps(f.Out, t.Plan)
		for _, n := range a.Notes {
			fmt.Fprintln(f.Out, "note:", n)
		}
		f.gaps(g)
	}
	if !f.dryRun && !f.yes {
		return fault.New(fault.Usage, "--yes carries it out, --dry-run only prints it", errors.New("nothing was changed"))
	}
	if f.yes {
		a.Journal, err = t.Run(ctx)
		a.Undo = t.Undo()
		if err != nil {
			return f.failed(a, err)
		}
		a.Done = true
		if err := g.Read(ctx); err != nil {
			return err
		}
		after := semisync.Judge(g.Facts)
		a.After = &after
	}
	if f.output == "json" {
		err = render.JSON(f.Out, a)
	} else {
		err = f.write(a)
	}
	return errors.Join(err, g.Missing())
}

// failed says how to go back from what was done.
func (f *turnFlags) failed(a TurnAnswer, err error) error {
	if f.output == "json" {
		if jerr := render.JSON(f.Out, a); jerr != nil {
			return errors.Join(err, jerr)
		}
	} else {
		f.undo(a)
	}
	if a.Journal == "" {
		return err
	}
	return fault.New(fault.Failed, "the journal says how far it came: "+a.Journal, err)
}

func (f *turnFlags) undo(a TurnAnswer) {
	if len(a.Undo) > 0 {
		fmt.Fprintln(f.Out, "to go back, in this order:")
	}
	for _, u := range a.Undo {
		fmt.Fprintf(f.Out, "  on %s: %s;\n", u.Server, u.Statement)
	}
}

func (f *turnFlags) write(a TurnAnswer) error {
	for _, l := range a.Lines {
		fmt.Fprintf(f.Out, "in the option file of %s, so that a restart keeps it:\n", l.Server)
		for _, line := range l.Lines {
			fmt.Fprintln(f.Out, "  "+line)
		}
	}
	if !a.Done {
		return nil
	}
	f.undo(a)
	fmt.Fprintln(f.Out, "done; journal:", a.Journal)
	f.report(*a.After)
	return nil
}
