package alter

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/explain/alter/perform"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
)

type statusFlags struct {
	flags.Server
	state, output string
}

func newStatus(s screen.Streams) *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say what became of an ALTER TABLE after risso was killed",
		Long: `Says what became of an ALTER TABLE that risso alter run began on a server, after risso was
killed or lost the connection: whether the server still does it, has done it, or has taken
it back. What is over is forgotten once it was said; journals of what was done stay.

` + fault.Help,
		Example: `  risso alter status --dsn 'risso@unix(/run/mysqld/mysqld.sock)/'`,
		Args:    flags.AtMost(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runStatus(cmd.Context(), s, f) },
	}
	f.Bind(cmd, "the server")
	cmd.Flags().StringVar(&f.state, "state", "", "folder of the journals (default "+home.State("alter")+")")
	flags.OutputVar(cmd.Flags(), &f.output, "", "text", "json")
	return cmd
}

func runStatus(ctx context.Context, s screen.Streams, f statusFlags) error {
	target, err := f.Target()
	if err != nil {
		return err
	}
	st, err := perform.Look(ctx, target, state(f.state), true)
	if err != nil {
		return err
	}
	if f.output == "json" {
		return render.JSON(s.Out, st)
	}
	if st.Left != nil {
		fmt.Fprintf(s.Out, "begun at %s: %s\n", screen.ShortTime(st.Since), shown(st.Left.Statement))
	}
	_, err = fmt.Fprintf(s.Out, "%s: %s\n", st.State, shown(st.What))
	return err
}
