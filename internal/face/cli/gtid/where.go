package gtid

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/errant"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
)

// mostWhere is how many transactions one call looks for.
const mostWhere = 1000

type whereFlags struct {
	flags.Servers
	output string
}

func newWhere(s screen.Streams) *cobra.Command {
	var f whereFlags
	cmd := &cobra.Command{
		Use:   "where GTID… --dsn DSN…",
		Short: "Find which server's which binary log has a transaction",
		Long: `Says of each transaction and each server whether its binary logs have it, in which file, where, from
when and what it changed, or that they have it no more, that a relay log has it and it is not applied,
or that the server has never seen it. Nothing is changed.

Where MariaDB's logs do not have a number, they do not tell whether a transaction ever had it.`,
		Example: `  risso gtid where 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 --dsn 'risso:secret@tcp(db1:3306)/' --dsn 'risso:secret@tcp(db2:3306)/'
  risso gtid where 0-1-4712 0-2-4712 --all --config risso.yaml`,
		Args: cobra.RangeArgs(1, mostWhere),
		RunE: func(cmd *cobra.Command, args []string) error { return runWhere(cmd.Context(), s, f, args) },
	}
	f.Servers.Bind(cmd)
	flags.OutputVar(cmd.Flags(), &f.output, "", "text", "json")
	return cmd
}

func runWhere(ctx context.Context, s screen.Streams, f whereFlags, args []string) error {
	var wanted []mysql.GTID
	var among mysql.GTIDSet
	for _, arg := range args {
		g, err := mysql.ParseGTID(arg)
		if err != nil {
			return fault.New(fault.Usage, "", err)
		}
		wanted = append(wanted, g)
		if !g.ByDomain() {
			among.Add(g)
		}
	}
	list, err := servers(f.Servers)
	if err != nil {
		return err
	}
	a := WhereAnswer{Places: []errant.Place{}, Notes: []string{}}
	var failed []error
	for _, n := range list {
		r, err := n.ask(ctx)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", n.name, err))
			a.Notes = append(a.Notes, fmt.Sprintf("%s could not be asked: %v", n.name, err))
			for _, g := range wanted {
				a.Places = append(a.Places, errant.Place{Server: n.name, GTID: g, State: errant.NotTold, Because: "it could not be asked"})
			}
			continue
		}
		seen, err := flags.ErrantLogs{Server: n.target}.Find(ctx, among, func(g mysql.GTID) bool { return slices.Contains(wanted, g) }, 0)
		if err != nil {
			a.Notes = append(a.Notes, fmt.Sprintf("the binary logs of %s: %v", n.name, err))
		}
		a.Notes = append(a.Notes, seen.Notes...)
		a.Places = append(a.Places, errant.Locate(&r, wanted, seen, err)...)
	}
	if len(failed) == len(list) {
		return errors.Join(failed...)
	}
	if f.output == "json" {
		return errors.Join(render.JSON(s.Out, a), partly(failed))
	}
	for _, g := range wanted {
		fmt.Fprintln(s.Out, g)
		for _, p := range a.Places {
			if p.GTID != g {
				continue
			}
			fmt.Fprintf(s.Out, "  %s: %s", p.Server, p.State)
			if p.Because != "" {
				fmt.Fprintf(s.Out, ": %s", p.Because)
			}
			fmt.Fprintln(s.Out)
			if p.Transaction != nil {
				writeTransaction(s.Out, *p.Transaction)
			}
		}
	}
	for _, n := range a.Notes {
		fmt.Fprintln(s.Out, "note:", n)
	}
	return partly(failed)
}

// partly ends a command whose answer leaves servers out.
func partly(failed []error) error {
	if len(failed) > 0 {
		return &fault.Told{Code: fault.Failed}
	}
	return nil
}

func joined(list []string) string { return strings.Join(list, ", ") }
