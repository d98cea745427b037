package bench

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// Checked is what `bench check --output json` writes.
type Checked struct {
	Workload string             `json:"workload"`
	Server   string             `json:"server"`
	OK       bool               `json:"ok"`
	Checks   []workload.Finding `json:"checks"`
}

type benchCheckFlags struct {
	workloadFlags
	output string
}

func newBenchCheck(s screen.Streams) *cobra.Command {
	var f benchCheckFlags
	cmd := &cobra.Command{
		Use: "check WORKLOAD", Short: "Check whether a workload's tables are consistent", Args: cobra.ExactArgs(1),
		Long: `Checks whether a workload's tables are consistent: after a load, a run or a failover. For tpcc these
are the twelve conditions of clause 3.3.2 of the specification. All are evaluated on the same
snapshot, so the check may run during a benchmark. For ontime the server's answers are compared with
those known from generating the rows: give the --scale and --seed used for prepare. The exit code is
1 if a condition does not hold.`,
		Example: `  risso bench check tpcc --dsn 'root@unix(/run/mysqld/mysqld.sock)/tpcc'
  risso bench check tpcc --dsn 'postgres://risso:secret@db1/tpcc' --output json
  risso bench check ontime --dsn 'root@unix(/run/mysqld/mysqld.sock)/flights' --scale 4`,
		RunE: func(cmd *cobra.Command, args []string) error { return runBenchCheck(cmd.Context(), s, f, args[0]) },
	}
	f.bind(cmd)
	flags.OutputVar(cmd.Flags(), &f.output, "", "text", "json")
	return cmd
}

func runBenchCheck(ctx context.Context, s screen.Streams, f benchCheckFlags, name string) error {
	target, w, err := f.open(name)
	if err != nil {
		return err
	}
	c, ok := w.(workload.Checker)
	if !ok {
		return fault.Usagef("%s has nothing to check; tpcc and ontime have", name)
	}
	found, err := c.Check(ctx, target)
	err = f.lacking(ctx, err)
	var server *drive.ServerError
	switch {
	case errors.As(err, &server):
		return benchError(err, name)
	case err != nil:
		return prepareError(ctx, err)
	}
	out := Checked{Workload: name, Server: target.String(), OK: true, Checks: found}
	broken := 0
	for _, x := range found {
		if !x.OK {
			out.OK = false
			broken++
		}
	}
	if f.output == "json" {
		err = render.JSON(s.Out, out)
	} else {
		err = out.text(s.Out)
	}
	if err == nil && broken > 0 {
		err = fault.New(fault.Failed, "", fmt.Errorf("%d of %s found something wrong", broken, digits.Counted(len(found), "check")))
	}
	return err
}

func (c Checked) text(out io.Writer) error {
	var errs []error
	for _, x := range c.Checks {
		word, detail := "ok    ", ""
		if !x.OK {
			word, detail = "BROKEN", ": "+x.Detail
		}
		_, err := fmt.Fprintf(out, "%s  %s%s\n", word, x.Name, detail)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
