package gtid

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/errant"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/mysql"
)

type backFlags struct {
	flags.Server
	state, output string
	dryRun        bool
}

func newBack(s screen.Streams) *cobra.Command {
	var f backFlags
	cmd := &cobra.Command{
		Use:   "back --dsn REPLICA",
		Short: "Put in order what a risso gtid repair that was killed left on a replica",
		Long: `Looks for what a risso gtid repair that was killed left: replication that stands still, and a binary log
that has begun anew and does not remember what the server has had. Replication starts again as it was;
the binary log remembers what the repair was about to let it. Then risso gtid errant says what is left.

It needs the journals of the repair, which are on the machine where that ran.`,
		Example: `  risso gtid back --dsn 'risso:secret@tcp(db2:3306)/' --dry-run
  risso gtid back --dsn 'risso:secret@tcp(db2:3306)/'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runBack(cmd.Context(), s, f) },
	}
	f.Server.Bind(cmd, "the replica")
	fl := cmd.Flags()
	fl.StringVar(&f.state, "state", "", "folder of the journals (default "+home.State("gtid")+")")
	fl.BoolVar(&f.dryRun, "dry-run", false, "show what would be done, and change nothing")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	return cmd
}

// keeper keeps the journals of a replica's repair.
func keeper(state string, replica mysql.Target) errant.Keeper {
	k := errant.Keeper{Dir: cmp.Or(state, home.State("gtid")), Command: "risso gtid back --dsn " + fleet.ShellWord(replica.Again())}
	if state != "" {
		k.Command += " --state " + fleet.ShellWord(state)
	}
	return k
}

func runBack(ctx context.Context, s screen.Streams, f backFlags) error {
	t, err := f.Target()
	if err != nil {
		return err
	}
	a := BackAnswer{Server: t.Address(), DryRun: f.dryRun, Left: []errant.Returned{}}
	left, err := keeper(f.state, t).Back(ctx, t.WithPatience(answerPatience), f.dryRun)
	if err != nil {
		return err
	}
	a.Left = append(a.Left, left...)
	if f.output == "json" {
		return render.JSON(s.Out, a)
	}
	if len(a.Left) == 0 {
		fmt.Fprintf(s.Out, "%s: nothing is left to put in order\n", a.Server)
	}
	how := "done"
	if f.dryRun {
		how = "to be done"
	}
	for _, l := range a.Left {
		fmt.Fprintf(s.Out, "%s, left at %s: %s: %s\n", a.Server, l.Since.Format("2006-01-02 15:04:05Z"), how, strings.Join(l.Steps, "; "))
	}
	return nil
}
